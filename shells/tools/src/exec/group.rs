//! A process group: a shell, all that it starts, and the end of them all.
//!
//! Owns the group's number and its shell's end. The number is the shell's and stays taken until
//! the shell is *collected*, so it is killed before that and never after: no signal of ours can
//! reach a group that took the number later. Dropping a [`Group`] kills it at once.
//!
//! What leaves the group by itself (`setsid`, `set -m`) can't be reached from here.

use std::io;
use std::os::unix::process::CommandExt;
#[expect(clippy::disallowed_types, reason = "this is where groups are started")]
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as Notices, SignalKind, signal};

use crate::limits::{GONE_LOOK_MS, GONE_WAIT_MS};

/// The shell of a group, not yet collected.
#[derive(Debug)]
struct Leader {
    child: Child,
    number: Pid,
    /// Comes with every SIGCHLD of this process, so the end is looked for after each.
    notices: Notices,
}

/// A running group. See the module.
#[derive(Debug)]
pub(crate) struct Group {
    /// There until it is collected.
    leader: Option<Leader>,
}

/// What a collected group leaves.
#[derive(Debug)]
pub(crate) struct Remains {
    /// How the shell ended, if the system said so.
    pub(crate) status: Option<ExitStatus>,
    number: Option<Pid>,
}

impl Group {
    /// Starts `command` in a group of its own.
    ///
    /// # Errors
    /// What the system says.
    #[expect(clippy::disallowed_types, reason = "this is where groups are started")]
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        // Before the start: no end can be missed.
        let notices = signal(SignalKind::child())?;
        let child = command.process_group(0).spawn()?;
        let number = Pid::from_child(&child);
        Ok(Self {
            leader: Some(Leader {
                child,
                number,
                notices,
            }),
        })
    }

    /// Waits for the end of the shell. It stays uncollected: its number is still taken.
    pub(crate) async fn shell_ended(&mut self) {
        if let Some(leader) = &mut self.leader {
            while !leader.has_ended() {
                let _ = leader.notices.recv().await;
            }
        }
    }

    /// Asks all of the group to end, also those that stand still.
    pub(crate) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Ends all of the group. Nothing of it can refuse, or start anything more.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = &self.leader {
            // It fails only for what belongs to another user; nothing more can be done then.
            let _ = kill_process_group(leader.number, signal);
        }
    }

    /// Kills the group and collects its shell. To be called after
    /// [`shell_ended`](Self::shell_ended), or it waits for the kill.
    pub(crate) fn collect(mut self) -> Remains {
        self.kill();
        let leader = self.leader.take();
        Remains {
            number: leader.as_ref().map(|leader| leader.number),
            status: leader.and_then(|mut leader| leader.child.wait().ok()),
        }
    }
}

impl Leader {
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.number), look) {
            Ok(status) => status.is_some(),
            // Only "no such child" is left then: there is nothing to wait for.
            Err(error) => error != Errno::INTR,
        }
    }

    async fn collect(mut self) {
        while let Ok(None) = self.child.try_wait() {
            let _ = self.notices.recv().await;
        }
    }
}

impl Remains {
    /// Waits until nothing of the killed group is left, at most [`GONE_WAIT_MS`].
    pub(crate) async fn gone(&self) {
        let Some(number) = self.number else { return };
        let look = async {
            while test_kill_process_group(number).is_ok() && has_living(number) {
                tokio::time::sleep(Duration::from_millis(GONE_LOOK_MS)).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(GONE_WAIT_MS), look).await;
    }
}

/// Whether a process of this group is more than a corpse that its new parent has not collected.
/// A system without `/proc` can't tell and says yes.
fn has_living(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    let group = group.as_raw_nonzero().to_string();
    processes
        .flatten()
        .filter(|process| {
            process
                .file_name()
                .as_encoded_bytes()
                .first()
                .is_some_and(u8::is_ascii_digit)
        })
        .filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok())
        .any(|stat| {
            // "number (name) state parent group …"; the name may hold anything.
            let (_, after) = stat.rsplit_once(") ").unwrap_or_default();
            let mut fields = after.split(' ');
            let state = fields.next();
            fields.nth(1) == Some(&*group) && !matches!(state, Some("Z" | "X"))
        })
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let Some(mut leader) = self.leader.take() else {
            return;
        };
        if !matches!(leader.child.try_wait(), Ok(None)) {
            return;
        }
        match Handle::try_current() {
            // It owns nothing but the killed shell and ends with it.
            Ok(runtime) => drop(runtime.spawn(leader.collect())),
            // Nothing else waits for this thread.
            Err(_) => drop(leader.child.wait()),
        }
    }
}
