//! How a run ended, and why: the one truth that every place reports (law 10, P40).

use serde::{Deserialize, Serialize};

use crate::ids::{Attempt, RunId, SessionId};
use crate::provider::ErrorClass;
use crate::queue::DropPolicy;
use crate::time::Wall;

/// Which limit ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Limit {
    /// The run used up its executed time (R149).
    Budget,
    /// The provider took the request and sent no event (P12).
    FirstEvent,
    /// The stream was open and made no progress (R156).
    Idle,
    /// The lane task made no progress for its whole allowance (spec 2.3).
    Lane,
}

/// Who asked for a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StopReason {
    /// An abort request of a client.
    Rpc,
    /// A later message that interrupts (R47).
    Interrupt,
    /// The session began anew (P18).
    Reset,
}

/// What went wrong in a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Failure {
    /// The provider answered with an error. Its own words, if any, are the detail.
    Provider {
        /// The class of the error (spec 5.3).
        class: ErrorClass,
        /// The HTTP status, where there was one.
        status: Option<u16>,
    },
    /// The stream ended without the provider's terminal (P38, S-07).
    Incomplete,
    /// The reply grew beyond the byte cap of a run (law 9).
    ReplyTooLarge,
    /// The run asked its model as often as a run may, and it still wants tools (law 9).
    TooManyRounds,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// The model finished its answer.
    Completed,
    /// Something went wrong.
    Failed(Failure),
    /// A limit ended the run.
    TimedOut {
        /// Which limit.
        limit: Limit,
        /// Whether a model request had gone out.
        provider_started: bool,
    },
    /// Somebody stopped the run.
    Cancelled {
        /// Who.
        by: StopReason,
        /// Whether a model request had gone out.
        provider_started: bool,
    },
    /// A newer writer took the session (R54).
    Superseded,
    /// It gave way in its session's full queue; its text is kept (spec 3.3).
    Dropped {
        /// By which rule.
        by: DropPolicy,
    },
}

/// What a run leaves behind to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reply {
    /// No text.
    Empty,
    /// Text of the assistant. It is the answer only if the run completed; otherwise it is
    /// what had arrived, kept and marked.
    Text {
        /// Its length.
        bytes: u64,
    },
}

/// The end of a run: what the receipt says, what the waiter gets, what the event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Terminal {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// How and why it ended.
    pub outcome: Outcome,
    /// When the message was accepted. Never changes (I3).
    pub accepted_at: Wall,
    /// When the first attempt of this process began, if one did.
    pub started_at: Option<Wall>,
    /// When the outcome was decided.
    pub ended_at: Wall,
    /// The attempt that ended; 0 if none had begun.
    pub attempt: Attempt,
    /// The text that was kept.
    pub reply: Reply,
    /// Whether the provider's own words about the failure were kept.
    pub detail: bool,
    /// The run whose turn took this message along; its reply answers this one too.
    pub turn: Option<RunId>,
}

impl Terminal {
    /// The end of a message that was taken along in this run's turn: the same outcome, the same
    /// reply. Core and store both tell it from here, so that they tell the same (law 10).
    #[must_use]
    pub fn along(&self, run: RunId, accepted_at: Wall) -> Self {
        let started_at = self.started_at.map(|at| at.max(accepted_at));
        Self {
            run,
            accepted_at,
            started_at,
            ended_at: self.ended_at.max(started_at.unwrap_or(accepted_at)),
            turn: Some(self.run),
            ..*self
        }
    }
}
