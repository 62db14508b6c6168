//! A broken invariant: a defect of the core, said once and never hidden (design section 3).

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::Subject;

/// Which invariant broke. The code is stable: a failure is known by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HaltCode {
    /// A session names a run that is not held.
    SessionWithoutRun,
    /// A run names a session that is not held.
    RunWithoutSession,
    /// A session lane has more than one active run, or a waiting run stands in it wrongly (P01, I14).
    LaneOrder,
    /// A lane has more active runs than its cap, or a slot without a run (I13).
    LaneSlots,
    /// A run that has not ended has neither an armed timer nor an order under way (P02).
    NothingPending,
    /// A timer is armed for nobody (I59).
    OrphanTimer,
    /// The timer table's two sides disagree.
    TimerTable,
    /// An abort waits for a run that is not held.
    AbortWithoutRun,
    /// A waiting list names a request that is not held, or the other way round.
    WaiterIndex,
}

/// The invariant and whom it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Halt {
    /// What broke.
    pub code: HaltCode,
    /// Of whom.
    pub entity: Subject,
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entity {
            Subject::Session(id) => write!(f, "{:?} of session {id}", self.code),
            Subject::Run(id) => write!(f, "{:?} of run {id}", self.code),
            Subject::Request(id) => write!(f, "{:?} of request {id}", self.code),
        }
    }
}

impl core::error::Error for Halt {}
