//! The algebra of ends: what an end is called, and which of two that were seen stands.
//!
//! Runs and attempts are watched from more than one place, and an end may be seen twice, late
//! or as a mere hint. This module reads facts into one [`Reason`] and decides between two of
//! them, in total functions over plain data (spec 1.4, 1.5; vectors 16.2, 16.3). It holds no
//! state, arms no timer and ends no run: that is `settle`, the one door.
//!
//! One file for each subject: `reason` (the nine names and what follows from them),
//! `observation` (facts of an event into a reason), `merge` (two ends of a run), `attempt`
//! (what one attempt came to), `reply` (what was left to be read, and the proof of delivery).

mod attempt;
mod merge;
mod observation;
mod reason;
mod reply;

pub use attempt::{
    AbortSource, AttemptEnd, AttemptKind, AttemptPhase, AttemptTimeout, TimeoutSource,
};
pub use merge::{Ended, Verdict};
pub use observation::{EndPhase, EventStatus, Liveness, Observation, StopWord, TimeoutPhase};
pub use reason::{Reason, RunClass, Status};
pub use reply::{TerminalReceipt, TerminalReply};
