//! A workspace, real commands in it, and what became of their processes. A test reads as a
//! script: what runs, what is done to it, what is left.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tidegate_core::{Attempt, CallId, RunId, SessionId, ToolEnd};
use tidegate_driver::{CallText, ToolCall, ToolSink, Tools};
use tidegate_tools::{Bounds, BuiltIn, Environment, Exec, ExecSettings};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// How long something that must come is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A grace for tests whose command refuses to end.
pub const SHORT: Bounds = Bounds {
    stop_grace_ms: 100,
    linger_ms: 100,
};

pub struct Stage {
    dir: TempDir,
    pub tools: BuiltIn,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(Bounds::default(), &[])
    }

    /// With other waits, and variables beside this process's `PATH`.
    pub fn with(bounds: Bounds, variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = std::env::var_os("PATH").map(|path| ("PATH".into(), path));
        let more = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let exec = Exec::open(ExecSettings {
            workspace: dir.path().join("workspace"),
            timeout_sec: NonZeroU32::new(1800).unwrap(),
            environment: Environment::of(path.into_iter().chain(more)),
            bounds,
        });
        Self {
            dir,
            tools: BuiltIn::new(Some(exec.unwrap())),
        }
    }

    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace").canonicalize().unwrap()
    }

    pub fn outside(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// Starts a call with these arguments.
    pub fn call(&self, arguments: &serde_json::Value) -> Running {
        let (sink, output, stop) = ToolSink::channel(1);
        let call = self.tools.run(call(&arguments.to_string()), sink);
        let end = tokio::runtime::Handle::current().spawn(call);
        Running {
            output,
            stop,
            end,
            text: String::new(),
        }
    }

    pub fn start(&self, command: &str) -> Running {
        self.call(&serde_json::json!({ "command": command }))
    }

    /// Runs a command to its end: what it wrote, and the end.
    pub async fn run(&self, command: &str) -> (String, ToolEnd) {
        self.start(command).end().await
    }
}

/// An `exec` call as the driver makes one.
pub fn call(arguments: &str) -> ToolCall {
    ToolCall {
        id: CallId {
            run: RunId([1; 16]),
            attempt: Attempt(1),
            call: 0,
        },
        session: SessionId([2; 16]),
        session_key: "agent:main:main".into(),
        run_key: "run".into(),
        text: CallText {
            id: "call_1_0".into(),
            name: "exec".into(),
            arguments: arguments.into(),
        },
    }
}

pub struct Running {
    pub output: mpsc::Receiver<String>,
    pub stop: watch::Sender<bool>,
    pub end: JoinHandle<ToolEnd>,
    pub text: String,
}

impl Running {
    /// Reads on until `line` is a line of the output.
    pub async fn wait_for(&mut self, line: &str) {
        while !self.text.lines().any(|seen| seen == line) {
            let piece = tokio::time::timeout(PATIENCE, self.output.recv()).await;
            match piece.expect("the line comes in time") {
                Some(piece) => self.text.push_str(&piece),
                None => panic!("{line:?} never came: {:?}", self.text),
            }
        }
    }

    /// The first line that is a process's number behind `name=`.
    pub async fn number(&mut self, name: &str) -> u32 {
        loop {
            let complete = self.text.rsplit_once('\n').map_or("", |(lines, _)| lines);
            let mut values = complete.lines().filter_map(|line| line.split_once('='));
            if let Some((_, value)) = values.find(|(seen, _)| *seen == name) {
                return value.parse().unwrap();
            }
            let piece = tokio::time::timeout(PATIENCE, self.output.recv()).await;
            let piece = piece.expect("the number comes in time");
            self.text
                .push_str(&piece.expect("the command says its number"));
        }
    }

    pub fn ask_to_stop(&self) {
        self.stop.send(true).unwrap();
    }

    pub async fn end(mut self) -> (String, ToolEnd) {
        let ended = async {
            while let Some(piece) = self.output.recv().await {
                self.text.push_str(&piece);
            }
            (self.text, self.end.await.unwrap())
        };
        tokio::time::timeout(PATIENCE, ended)
            .await
            .expect("the call ends in time")
    }
}

/// The state of a process as the kernel calls it (`S`, `T`, `Z`), if there is one.
pub fn state(number: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a process is over. An orphan's corpse may wait for its new parent; that is not ours.
pub fn is_over(number: u32) -> bool {
    matches!(state(number), None | Some('Z' | 'X'))
}

/// The children of this process that it has not collected, running or not.
pub fn children() -> Vec<u32> {
    let mut all = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path().join("children");
        let listed = fs::read_to_string(path).unwrap_or_default();
        all.extend(
            listed
                .split_whitespace()
                .map(|one| one.parse::<u32>().unwrap()),
        );
    }
    all
}

/// Looks again and again until it holds: there is no event for it.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let look = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, look)
        .await
        .unwrap_or_else(|_| panic!("it never came: {what}"));
}
