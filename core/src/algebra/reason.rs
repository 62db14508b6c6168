//! The nine reasons for which a run ends, and what each of them means to a reader.
//!
//! Owns the names and their tables: status, class, stickiness. A place that tells how a run
//! ended asks here, so that all places tell the same (law 10, P40).

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// Why a run ended (spec 1.4). One run has one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// A limit ended it after its work had begun. Sticky (I11).
    HardTimeout,
    /// A newer writer took its session. Sticky (I11, I12).
    Superseded,
    /// It stands before something that it can't pass.
    Blocked,
    /// It was broken off, and nobody said by whom.
    Aborted,
    /// Somebody stopped it, or a restart did. Sticky (I11).
    Cancelled,
    /// It was left behind without an answer and without a trace of work.
    Abandoned,
    /// A limit ended it before its work began, or nothing says when.
    TimedOut,
    /// Something went wrong.
    Failed,
    /// The model finished its answer.
    Completed,
}

/// How a run ended, in the three words that a waiter gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It has its answer.
    Ok,
    /// It has none.
    Error,
    /// It has none, since a limit passed.
    Timeout,
}

/// The kind of an end, from which a conversation takes its last word: success is shown as
/// final, cancellation as aborted, timeout and failure as an error (R127).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RunClass {
    /// The answer is there.
    Success,
    /// A limit passed.
    Timeout,
    /// The run was ended from outside.
    Cancellation,
    /// The run could not go on.
    Failure,
}

impl Reason {
    /// All reasons, in the order in which facts are tested for them (first match wins).
    pub const ALL: [Self; 9] = [
        Self::HardTimeout,
        Self::Superseded,
        Self::Blocked,
        Self::Aborted,
        Self::Cancelled,
        Self::Abandoned,
        Self::TimedOut,
        Self::Failed,
        Self::Completed,
    ];

    /// The class of this end.
    #[must_use]
    pub const fn class(self) -> RunClass {
        match self {
            Self::Completed => RunClass::Success,
            Self::HardTimeout | Self::TimedOut => RunClass::Timeout,
            Self::Superseded | Self::Aborted | Self::Cancelled => RunClass::Cancellation,
            Self::Blocked | Self::Abandoned | Self::Failed => RunClass::Failure,
        }
    }

    /// The status of this end. A cancelled run is an error to its waiter: it has no answer.
    #[must_use]
    pub const fn status(self) -> Status {
        match self.class() {
            RunClass::Success => Status::Ok,
            RunClass::Timeout => Status::Timeout,
            RunClass::Cancellation | RunClass::Failure => Status::Error,
        }
    }

    /// Whether a later, weaker end can't take this one's place (I11).
    #[must_use]
    pub const fn is_sticky(self) -> bool {
        matches!(self, Self::HardTimeout | Self::Superseded | Self::Cancelled)
    }

    /// The name, for records and the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HardTimeout => "hard_timeout",
            Self::Superseded => "superseded",
            Self::Blocked => "blocked",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::Completed => "completed",
        }
    }
}

impl Outcome {
    /// The reason of this outcome. Our own runs know who ended them, so four of the nine never
    /// come from here: they are read from what others report.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Completed => Reason::Completed,
            Self::Failed(_) => Reason::Failed,
            Self::TimedOut {
                provider_started: true,
                ..
            } => Reason::HardTimeout,
            Self::TimedOut {
                provider_started: false,
                ..
            } => Reason::TimedOut,
            // A message that gave way in a full queue was ended from outside, by a rule.
            Self::Cancelled { .. } | Self::Dropped { .. } => Reason::Cancelled,
            Self::Superseded => Reason::Superseded,
        }
    }
}
