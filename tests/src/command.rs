//! Runs the program's commands as a user would, and gives what they said.

use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

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
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("TIDEGATE_")
            || name_text.ends_with("_proxy")
            || name_text.ends_with("_PROXY")
        {
            command.env_remove(&name);
        }
    }
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
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
    stdout: BufReader<ChildStdout>,
    said: String,
}

impl Running {
    /// Starts it.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(args: &[&str]) -> Self {
        Self::start_in(args, &[])
    }

    /// Starts it with these variables.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_in(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = bare(args)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self {
            child,
            stdout,
            said: String::new(),
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

    /// Waits until its stdout contains `text`.
    ///
    /// # Panics
    /// If stdout ends before.
    pub async fn says(&mut self, text: &str) {
        within(&format!("stdout says {text:?}"), async {
            while !self.said.contains(text) {
                let piece = self.stdout.fill_buf().await.expect("stdout is readable");
                assert!(
                    !piece.is_empty(),
                    "stdout ended before {text:?}: {:?}",
                    self.said
                );
                self.said.push_str(&String::from_utf8_lossy(piece));
                let len = piece.len();
                self.stdout.consume(len);
            }
        })
        .await;
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it is stuck.
    pub async fn ended(mut self) -> Ended {
        let mut stderr = self.child.stderr.take().expect("stderr is piped");
        let (mut rest, mut errors) = (Vec::new(), Vec::new());
        let status: ExitStatus = within("the command ends", async {
            let (out, err) = tokio::join!(
                self.stdout.read_to_end(&mut rest),
                stderr.read_to_end(&mut errors)
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
            stderr: String::from_utf8_lossy(&errors).into_owned(),
        }
    }
}
