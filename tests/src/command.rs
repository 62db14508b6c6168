//! Runs the program's commands as a user would, and gives what they said.

use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::{program, within};

/// A command that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

impl Ended {
    /// Its stdout as JSON.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }
}

/// A command of the program, without the variables of whoever runs the tests.
pub(crate) fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args);
    cleared(command)
}

/// Takes from a command what it would inherit of whoever runs the tests: settings, proxies,
/// and a supervisor that is not its own.
fn cleared(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("TIDEGATE_")
            || name_text.ends_with("_proxy")
            || name_text.ends_with("_PROXY")
            || matches!(&*name_text, "NOTIFY_SOCKET" | "NO_COLOR")
        {
            command.env_remove(&name);
        }
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command to its end.
///
/// # Panics
/// If it cannot be started or is stuck.
pub async fn tidegate(args: &[&str]) -> Ended {
    Running::start(args).ended().await
}

/// A command that is running.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    said: String,
    noted: String,
}

impl Running {
    /// Starts it, without input.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(args: &[&str]) -> Self {
        Self::start_in(args, &[])
    }

    /// Starts it with these variables, without input.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_in(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = bare(args);
        command.envs(variables.iter().copied());
        Self::spawn(command)
    }

    /// Starts it with an input into which [`Running::types`] writes.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn talking(args: &[&str]) -> Self {
        let mut command = bare(args);
        command.stdin(Stdio::piped());
        Self::spawn(command)
    }

    /// Starts it in a terminal of its own, in which [`Running::types`] types. What the
    /// terminal shows, echo and all, is its stdout.
    ///
    /// # Panics
    /// If it cannot be started; `script` (util-linux) makes the terminal.
    #[must_use]
    pub fn in_terminal(args: &[&str]) -> Self {
        let words = args.iter().map(|arg| format!("'{arg}'"));
        let line = format!(
            "exec '{}' {}",
            program().display(),
            words.collect::<Vec<_>>().join(" ")
        );
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-f", "-c", &line, "/dev/null"]);
        command.env("SHELL", "/bin/sh");
        let mut command = cleared(command);
        command.stdin(Stdio::piped());
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let stderr = BufReader::new(child.stderr.take().expect("stderr is piped"));
        Self {
            stdin: child.stdin.take(),
            child,
            stdout,
            stderr,
            said: String::new(),
            noted: String::new(),
        }
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the command is running")
    }

    /// Types a line, with its end.
    ///
    /// # Panics
    /// If it takes no input.
    pub async fn types(&mut self, line: &str) {
        self.presses(&format!("{line}\n")).await;
    }

    /// Types this as it is.
    ///
    /// # Panics
    /// If it takes no input.
    pub async fn presses(&mut self, keys: &str) {
        let stdin = self.stdin.as_mut().expect("its input is open");
        within("it takes what is typed", async {
            stdin.write_all(keys.as_bytes()).await?;
            stdin.flush().await
        })
        .await
        .expect("the command reads its input");
    }

    /// Ends its input.
    pub fn types_no_more(&mut self) {
        self.stdin = None;
    }

    /// Waits until its stdout contains `text`.
    ///
    /// # Panics
    /// If stdout ends before.
    pub async fn says(&mut self, text: &str) {
        until("stdout", &mut self.stdout, &mut self.said, text).await;
    }

    /// Waits until its stderr contains `text`.
    ///
    /// # Panics
    /// If stderr ends before.
    pub async fn notes(&mut self, text: &str) {
        until("stderr", &mut self.stderr, &mut self.noted, text).await;
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it is stuck.
    pub async fn ended(mut self) -> Ended {
        let (mut rest, mut errors) = (Vec::new(), Vec::new());
        let status: ExitStatus = within("the command ends", async {
            let (out, err) = tokio::join!(
                self.stdout.read_to_end(&mut rest),
                self.stderr.read_to_end(&mut errors)
            );
            out.expect("stdout is readable");
            err.expect("stderr is readable");
            self.child
                .wait()
                .await
                .expect("the command can be waited for")
        })
        .await;
        Ended {
            code: status.code(),
            stdout: self.said + &String::from_utf8_lossy(&rest),
            stderr: self.noted + &String::from_utf8_lossy(&errors),
        }
    }
}

async fn until(name: &str, from: &mut (impl AsyncBufRead + Unpin), said: &mut String, text: &str) {
    within(&format!("{name} says {text:?}"), async {
        while !said.contains(text) {
            let piece = from.fill_buf().await.expect("it is readable");
            assert!(!piece.is_empty(), "{name} ended before {text:?}: {said:?}");
            said.push_str(&String::from_utf8_lossy(piece));
            let len = piece.len();
            from.consume(len);
        }
    })
    .await;
}
