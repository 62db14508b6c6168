//! The exit codes of every command: one table, used by the code and printed by `--help`.
//!
//! A code says what a script should do next: mend the request, start a gateway, mend the
//! configuration, or read a simulator's finding. It never says more than that.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All went well.
    Ok,
    /// The run or the request failed; the message says why.
    Failed,
    /// The command line is wrong.
    Usage,
    /// No gateway could be reached.
    Unreachable,
    /// The configuration, the port or the state directory is not usable.
    Configuration,
    /// The simulator found a broken promise.
    Violation,
    /// The simulator found a run that never ends.
    Liveness,
    /// The same seed gave two histories.
    Divergence,
    /// The core found one of its own invariants broken.
    Halt,
    /// A campaign found nothing, but never reached all that it must.
    Unreached,
    /// A run of the simulated world took more inputs than any sound one does.
    Endless,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    /// Every code, in order.
    pub const ALL: [Self; 12] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::Unreachable,
        Self::Configuration,
        Self::Violation,
        Self::Liveness,
        Self::Divergence,
        Self::Halt,
        Self::Unreached,
        Self::Endless,
        Self::Interrupted,
    ];

    /// What a client command can end with.
    pub const CLIENT: [Self; 5] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::Unreachable,
        Self::Configuration,
    ];

    /// The process's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Configuration => 4,
            Self::Violation => 5,
            Self::Liveness => 6,
            Self::Divergence => 7,
            Self::Halt => 8,
            Self::Unreached => 9,
            Self::Endless => 10,
            Self::Interrupted => 130,
        }
    }

    /// The line of the manual.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "all went well",
            Self::Failed => "the run or the request failed; the message says why",
            Self::Usage => "the command line is wrong",
            Self::Unreachable => "no gateway could be reached",
            Self::Configuration => {
                "the configuration, the port or the state directory is not usable"
            }
            Self::Violation => "simulator: a promise was broken",
            Self::Liveness => "simulator: a run, a lane or a waiter never came to an end",
            Self::Divergence => "simulator: one seed gave two histories",
            Self::Halt => "the core found one of its own invariants broken and stopped",
            Self::Unreached => "simulator: nothing was broken, but not all was reached",
            Self::Endless => "simulator: a run took more inputs than any sound one does",
            Self::Interrupted => "interrupted (Ctrl-C)",
        }
    }

    /// The table of `codes` for a manual page.
    #[must_use]
    pub fn table(codes: &[Self]) -> String {
        codes
            .iter()
            .map(|exit| format!("{:>5}  {}", exit.code(), exit.meaning()))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ends_share_a_code() {
        let mut codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        codes.dedup();
        assert_eq!(codes.len(), Exit::ALL.len());
        assert!(codes.is_sorted(), "the table is printed in order");
    }
}
