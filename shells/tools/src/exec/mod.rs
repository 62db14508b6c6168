//! `exec`: a shell command, from its arguments to its end.
//!
//! Owns the order of a command's life: start, output, end or stop, and that nothing of its
//! group is left afterwards. How long it may take is not its business; it is told to stop.

mod arguments;
mod environment;
mod flow;
mod group;
mod workspace;

use std::num::NonZeroU32;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
#[expect(clippy::disallowed_types, reason = "it is started by `Group` alone")]
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tidegate_core::{CallFacts, CallKind, ToolEnd};
use tidegate_driver::{ToolSink, ToolSpec};
use tokio::time::timeout;

use self::arguments::Arguments;
pub use self::environment::Environment;
use self::flow::Flow;
use self::group::Group;
use self::workspace::Workspace;
pub use self::workspace::WorkspaceError;
use crate::limits::Bounds;

/// The shell that every POSIX system has.
const SHELL: &str = "/bin/sh";

/// What `exec` is configured with.
#[derive(Clone, Debug)]
pub struct ExecSettings {
    /// Where commands start (`agents.defaults.workspace`).
    pub workspace: PathBuf,
    /// The longest that a call may ask for, and what one without a word gets, in seconds
    /// (`tools.exec.timeoutSec`). Only told: the core ends the call.
    pub timeout_sec: NonZeroU32,
    /// What commands see of the gateway's environment.
    pub environment: Environment,
    /// The waits around the end of a command.
    pub bounds: Bounds,
}

/// The tool that runs shell commands. See the module.
#[derive(Clone, Debug)]
pub struct Exec {
    workspace: Workspace,
    timeout_sec: NonZeroU32,
    environment: Environment,
    bounds: Bounds,
}

impl Exec {
    /// Its name among the tools.
    pub const NAME: &'static str = "exec";

    /// The tool with these settings. Its workspace is made if it is not there, for its owner
    /// alone.
    ///
    /// # Errors
    /// [`WorkspaceError`] when there is no directory and none can be made.
    pub fn open(settings: ExecSettings) -> Result<Self, WorkspaceError> {
        Ok(Self {
            workspace: Workspace::open(&settings.workspace)?,
            timeout_sec: settings.timeout_sec,
            environment: settings.environment,
            bounds: settings.bounds,
        })
    }

    /// What the model is told of it.
    pub(crate) fn spec(&self) -> ToolSpec {
        let limit = self.timeout_sec;
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command line, given to /bin/sh -c. Pipes, redirections \
                                    and several lines are possible.",
                },
                "workdir": {
                    "type": "string",
                    "description": "Where it runs: a directory inside the workspace, relative \
                                    to it. Without it, the workspace itself.",
                },
                "timeout": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": limit.get(),
                    "description": "After how many seconds it is stopped.",
                },
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        ToolSpec {
            name: Self::NAME.into(),
            description: format!(
                "Runs a shell command on the gateway's machine and gives back what it writes to \
                 stdout and stderr, as one text. It has no input and no terminal: use flags \
                 instead of prompts, pagers and editors. Each call is a new shell; the directory \
                 and the variables of an earlier call are forgotten, its files are not. A last \
                 line in brackets tells an exit code other than 0. Of a long output the \
                 middle is left out. The call ends with its command: what that leaves running in \
                 the background is killed. After {limit} s, or after `timeout`, it is stopped."
            ),
            parameters: parameters.to_string(),
        }
    }

    /// What a call with these arguments is. Starts nothing (I33).
    pub(crate) fn recognise(&self, arguments: &str) -> CallFacts {
        let configured = u64::from(self.timeout_sec.get());
        match Arguments::read(arguments, self.workspace.root()) {
            Ok(read) => CallFacts {
                kind: CallKind::Ready,
                guarded: true,
                timeout_ms: Some(configured.min(read.timeout_sec.unwrap_or(configured)) * 1000),
            },
            Err(_) => CallFacts {
                kind: CallKind::BadArguments,
                guarded: true,
                timeout_ms: None,
            },
        }
    }

    /// Why the arguments of a call do not fit, as a sentence.
    pub(crate) fn complaint(&self, arguments: &str) -> Option<String> {
        Arguments::read(arguments, self.workspace.root()).err()
    }

    /// Runs the command to its end, or until it is told to stop. Dropping the future kills its
    /// group at once.
    pub(crate) async fn run(&self, arguments: &str, sink: &ToolSink) -> ToolEnd {
        match self.start(arguments, sink) {
            Ok((group, flow)) => self.carry(group, flow, sink).await,
            Err(reason) => {
                sink.output(format!("{reason} Nothing was started.")).await;
                ToolEnd::Failed
            }
        }
    }

    /// Starts the command. The error is a sentence for the model.
    #[expect(clippy::disallowed_types, reason = "it is started by `Group` alone")]
    fn start(&self, arguments: &str, sink: &ToolSink) -> Result<(Group, Flow), String> {
        let arguments = Arguments::read(arguments, self.workspace.root())?;
        let workdir = self.workspace.enter(&arguments.workdir)?;
        let failed = |error| {
            let place = workdir.display();
            format!("The shell {SHELL} could not be started in {place}: {error}.")
        };
        // One pipe for both, so that the order of what is written is the order of what is read.
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let flow = Flow::new(reader, sink.clone()).map_err(failed)?;
        let mut command = Command::new(SHELL);
        command
            // `--`: a command that begins with a dash is not an option.
            .args(["-c", "--", &arguments.command])
            .current_dir(&workdir)
            .env_clear()
            .envs(self.environment.iter())
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(failed)?)
            .stderr(writer);
        let group = Group::start(&mut command).map_err(failed)?;
        // With `command` the last writing end of this process goes: the group's are the only ones.
        Ok((group, flow))
    }

    async fn carry(&self, mut group: Group, mut flow: Flow, sink: &ToolSink) -> ToolEnd {
        let mut lines = Vec::new();
        let stopped = flow
            .until(async {
                tokio::select! {
                    biased;
                    () = group.shell_ended() => false,
                    () = sink.stopped() => true,
                }
            })
            .await;
        if stopped {
            group.ask_to_end();
            let ended = async {
                flow.until(group.shell_ended()).await;
                flow.closed().await;
            };
            let _ = timeout(Duration::from_millis(self.bounds.stop_grace_ms), ended).await;
        } else {
            let linger_ms = self.bounds.linger_ms;
            let closed = timeout(Duration::from_millis(linger_ms), flow.closed());
            if closed.await.is_err() {
                lines.push(format!(
                    "the shell has ended; {linger_ms} ms later something that it left in the \
                     background still held the output open. It is read no further, and the \
                     command's process group was killed"
                ));
            }
        }
        group.kill();
        flow.until(group.shell_ended()).await;
        let remains = group.collect();
        flow.until(remains.gone()).await;
        lines.extend(status_line(remains.status));
        flow.finish(&lines).await;
        match remains.status {
            _ if stopped => ToolEnd::Cancelled,
            Some(status) if status.success() => ToolEnd::Ok,
            _ => ToolEnd::Failed,
        }
    }
}

/// What is said of a shell's end, if it is worth a line.
fn status_line(status: Option<ExitStatus>) -> Option<String> {
    let Some(status) = status else {
        return Some("exit code not known".into());
    };
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("killed by signal {signal}")),
        (None, None) => Some("exit code not known".into()),
    }
}
