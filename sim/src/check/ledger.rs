//! The ledger of inputs: conservation of messages, as one data structure (P05, L1, P23).
//!
//! Owns one entry for each message that the store took in. At the end of a run every entry
//! has exactly one fate; only a message of a session whose provider stays silent for ever may
//! still wait.

use std::collections::BTreeMap;

use tidegate_core::{Outcome, RunId, SessionId, StopReason, Terminal};

use super::{Check, Moment, Rest};
use crate::violation::Code;
use crate::world::store::Wrote;

/// What became of an accepted message. Later issues add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// It waits or is at work.
    Open,
    /// The model answered.
    Completed,
    /// Something went wrong, and it was said.
    Failed,
    /// A limit ended it.
    TimedOut,
    /// Somebody stopped it.
    Cancelled,
    /// A newer writer took its session.
    Superseded,
    /// It gave way in a full queue.
    Dropped,
    /// A later message interrupted it.
    Interrupted,
    /// Its session began anew.
    Reset,
    /// The turn of another run took it along; that run's end is its own.
    Along,
}

impl Fate {
    /// All fates.
    pub const ALL: [Self; 10] = [
        Self::Open,
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::Superseded,
        Self::Dropped,
        Self::Interrupted,
        Self::Reset,
        Self::Along,
    ];

    /// The name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::Dropped => "dropped",
            Self::Interrupted => "interrupted",
            Self::Reset => "ended by a reset",
            Self::Along => "answered along",
        }
    }

    const fn of(terminal: &Terminal) -> Self {
        if terminal.turn.is_some() {
            return Self::Along;
        }
        match terminal.outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed(_) => Self::Failed,
            Outcome::TimedOut { .. } => Self::TimedOut,
            Outcome::Cancelled { by, .. } => match by {
                StopReason::Rpc => Self::Cancelled,
                StopReason::Interrupt => Self::Interrupted,
                StopReason::Reset => Self::Reset,
            },
            Outcome::Superseded => Self::Superseded,
            Outcome::Dropped { .. } => Self::Dropped,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    session: SessionId,
    fate: Fate,
}

/// The ledger. See the module.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: BTreeMap<RunId, Entry>,
}

impl Ledger {
    /// How many messages have each fate, in the order of [`Fate::ALL`].
    #[must_use]
    pub fn counts(&self) -> [u64; Fate::ALL.len()] {
        Fate::ALL.map(|fate| self.entries.values().filter(|e| e.fate == fate).count() as u64)
    }
}

impl Check for Ledger {
    fn wrote(&mut self, at: &mut Moment<'_>, wrote: &Wrote) {
        match wrote {
            Wrote::Inbox { session, run } => {
                let entry = Entry {
                    session: *session,
                    fate: Fate::Open,
                };
                if self.entries.insert(*run, entry).is_some() {
                    at.run(Code::AcceptedTwice, *run);
                }
            }
            Wrote::Receipt { terminal, .. } => match self.entries.get_mut(&terminal.run) {
                Some(entry) => entry.fate = Fate::of(terminal),
                None => at.run(Code::EndUntrue, terminal.run),
            },
            Wrote::Claim { .. }
            | Wrote::Along { .. }
            | Wrote::Generation { .. }
            | Wrote::Foreign { .. }
            | Wrote::Row { .. }
            | Wrote::Launched { .. }
            | Wrote::Saved { .. } => {}
        }
    }

    fn rest(&mut self, at: &mut Moment<'_>, rest: Rest<'_>) {
        for (&run, entry) in &self.entries {
            let owed = rest.quiet || !rest.victims.contains(&entry.session);
            if entry.fate == Fate::Open && owed {
                at.run(Code::NoOutcome, run);
            }
        }
    }
}
