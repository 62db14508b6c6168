//! Tool calls as data: what a model asked for, what may start, how each call ended.
//!
//! Owns the words only; what is done with them stands in `round`. A call is known by its place
//! in the answer that asked for it, never by a name that a provider made up (I34).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::{Attempt, RunId};
use crate::input::StoreError;
use crate::time::Wall;

/// One tool call: the run, the attempt whose answer asked for it, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId {
    /// The run.
    pub run: RunId,
    /// The attempt whose answer asked for it.
    pub attempt: Attempt,
    /// Its place in that answer, from 0.
    pub call: u16,
}

/// Whether a call can be carried out at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CallKind {
    /// The tool is offered and the arguments fit it.
    Ready,
    /// No tool of that name is offered.
    NoSuchTool,
    /// The arguments are not complete, or do not fit (I33, P38).
    BadArguments,
}

/// What the shell recognises of a call, from its name and its arguments alone (law 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallFacts {
    /// Whether it can be carried out.
    pub kind: CallKind,
    /// Whether it acts outside, so that a person may have to allow it (P27).
    pub guarded: bool,
    /// The call's own limit, in milliseconds, if its arguments or its tool name one.
    pub timeout_ms: Option<u64>,
}

/// How a call ended, as its result says. Every call has one such end (P08, I24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CallEnd {
    /// It ran, and the tool says that it succeeded.
    Ok,
    /// It ran, and the tool says that it failed.
    Failed,
    /// Its limit passed and it was stopped.
    TimedOut,
    /// It ran and was stopped with its run.
    Cancelled,
    /// It was started; what became of it is not known. Never repeated (law 12).
    Unknown,
    /// It was never started: its run ended first, or its answer asked for too many.
    Skipped,
    /// There is no such tool. Nothing was started.
    NoSuchTool,
    /// Its arguments are not complete, or do not fit. Nothing was started.
    BadArguments,
    /// A person did not allow it. Nothing was started.
    Denied,
    /// Nobody decided in time. Nothing was started; not the same as denied.
    Expired,
    /// It waited for a person when the process ended. Nothing was started; its question is void.
    Stale,
}

impl CallEnd {
    /// Whether the call was started.
    #[must_use]
    pub const fn was_started(self) -> bool {
        matches!(
            self,
            Self::Ok | Self::Failed | Self::TimedOut | Self::Cancelled | Self::Unknown
        )
    }
}

/// What a tool says of its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ToolEnd {
    /// It did what it was asked for.
    Ok,
    /// It could not.
    Failed,
    /// It was stopped as ordered.
    Cancelled,
}

/// What happened on a started call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ToolFact {
    /// Its output grew.
    Output {
        /// The whole length so far, in bytes.
        to: u64,
    },
    /// It is over. The last fact of its ticket.
    Ended(ToolEnd),
}

/// A person's word on a call that waits for one. The first counts (spec 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Decision {
    /// It may start, this once.
    AllowOnce,
    /// It may not.
    Deny,
}

/// The launch checkpoint: durable before any of its calls starts, so that a call starts at most
/// once over all lives (I34, law 12). The first of an attempt writes the answer that asked as
/// a row of the transcript; a later one only adds to what may start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaunchOrder {
    /// How many bytes of text stand in the answer.
    pub bytes: u64,
    /// How many calls it asks for.
    pub calls: u16,
    /// Those that start with this checkpoint, ascending.
    pub start: Vec<u16>,
    /// Those that wait for a person from now on, ascending.
    pub ask: Vec<u16>,
    /// Wall time of the checkpoint.
    pub at: Wall,
}

/// What committing a launch checkpoint gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LaunchReport {
    /// It is durable: its calls may start.
    Committed,
    /// The fence did not hold; nothing was written.
    Fenced,
    /// The session belongs to another process.
    NotOwner,
    /// The store could not do it.
    Refused(StoreError),
}

/// The result of a call, to be written with the next claim or the end of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallResult {
    /// The call's place in the answer of the attempt before.
    pub call: u16,
    /// How it ended. Its output lies under that attempt's content.
    pub end: CallEnd,
}
