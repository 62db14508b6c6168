//! A run: one accepted message on its way to exactly one end.
//!
//! Owns the run's states as data. What moves it from one to the next stands with the
//! subject: `admit`, `claim`, `attempt`, `settle`.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::config::{Budget, Config, DEFAULT_BUDGET_MS};
use crate::ids::{
    Attempt, ContentOwner, Epoch, Fence, Fingerprint, Generation, RequestId, RunId, SessionId,
    Ticket,
};
use crate::lane::{LaneName, Priority};
use crate::outcome::{Outcome, Terminal};
use crate::queue::{Place, Turn};
use crate::recovery::Recovery;
use crate::round::Round;
use crate::time::{Time, Wall};

/// An order to the store that is under way, or waits to be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Pending {
    /// Ordered; the report is expected.
    Ordered(Ticket),
    /// Refused; the store-retry timer gives it again.
    Refused,
}

/// What streams in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Stream {
    /// Bytes of reply that the shell has.
    pub(crate) received: u64,
    /// Bytes of it that were published.
    pub(crate) published: u64,
    /// Bytes of it that were saved.
    pub(crate) saved: u64,
    /// Whether data has come: only a stream that has begun can be idle.
    pub(crate) begun: bool,
    /// Whether the provider said that the model finished, and no output came after it.
    pub(crate) finished: bool,
    /// Whether arguments of tool calls have come.
    pub(crate) calling: bool,
    /// Whether the provider's own words about its failure were kept.
    pub(crate) detail: bool,
}

/// Where a run is (spec 1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum State {
    /// Its rows are being committed; nothing was promised yet. With `claims`, the claim is in
    /// the same transaction and the run already holds its lanes.
    Accepting {
        /// Whether the claim is ordered with it.
        claims: bool,
    },
    /// It waits behind other runs of its session.
    Waiting,
    /// It is taken along in another run's turn, and ends with it.
    Along {
        /// That run.
        turn: RunId,
        /// Whether the claim that binds it is durable. Before, it may be given back.
        bound: bool,
    },
    /// It holds its session's lane and waits for a global slot.
    WaitingGlobal,
    /// It holds both and its claim is being committed.
    Claiming {
        /// The claiming order.
        pending: Pending,
        /// How often it was refused.
        tries: u16,
    },
    /// The model is asked.
    Attempting {
        /// The model call.
        call: Ticket,
    },
    /// A call failed; it waits to ask again.
    Backoff,
    /// The answer asked for tool calls, which are at work.
    Tools {
        /// The checkpoint that is being committed.
        checkpoint: Option<Pending>,
        /// How often it was refused.
        tries: u16,
        /// When the run's end was decided, if it was; the outcome is in `stop`.
        ended_at: Option<Wall>,
    },
    /// The outcome is decided, the model call is being cancelled.
    Stopping {
        /// The model call.
        call: Ticket,
        /// The outcome.
        outcome: Outcome,
        /// When it was decided.
        ended_at: Wall,
    },
    /// The terminal rows are being committed.
    Settling {
        /// The settling order.
        pending: Pending,
        /// How often it was refused.
        tries: u16,
        /// The end to come.
        terminal: Terminal,
    },
    /// Another writer took the session; the store is asked for the end that it recorded.
    Superseded {
        /// The lookup.
        pending: Pending,
        /// How often it was refused.
        tries: u16,
        /// The end as far as it is known here.
        terminal: Terminal,
    },
}

/// A run that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) session: SessionId,
    pub(crate) generation: Generation,
    pub(crate) epoch: Epoch,
    pub(crate) body: Fingerprint,
    /// Who waits for the final answer.
    pub(crate) callers: Vec<RequestId>,
    /// The run's own limit, if the request named one.
    pub(crate) budget: Option<Budget>,
    /// How it takes part in its session; a chat message has its mode resolved.
    pub(crate) turn: Turn,
    /// The global lane that it runs in.
    pub(crate) lane: LaneName,
    pub(crate) priority: Priority,
    /// Where it stood when it was accepted.
    pub(crate) place: Place,
    /// The run that it is to steer into.
    pub(crate) steer: Option<RunId>,
    /// The messages that it takes along in its turn, in their order.
    pub(crate) along: Vec<RunId>,
    /// Since when it waits for the lane that it stands before.
    pub(crate) waits_since: Time,
    /// Who was at work and who waited in that lane when it came.
    pub(crate) ahead: (u32, u32),
    /// Budget time left at the next claim; `None` is unlimited.
    pub(crate) left_ms: Option<u64>,
    pub(crate) accepted_at: Wall,
    pub(crate) started_at: Option<Wall>,
    /// The last attempt whose claim is durable; 0 if none.
    pub(crate) attempt: Attempt,
    /// Whether this life's attempt has content in the shell.
    pub(crate) has_content: bool,
    pub(crate) stream: Stream,
    /// Whether a model has answered a request that contains its message.
    pub(crate) seen: bool,
    pub(crate) recovery: Recovery,
    /// Which provider of the chain it asks: 0 is the first choice.
    pub(crate) candidate: u16,
    /// What its answer asks for.
    pub(crate) round: Round,
    /// Answers of this life that asked for tool calls.
    pub(crate) rounds: u16,
    /// Its time stands still: a person is waited for.
    pub(crate) paused: bool,
    /// The number of the last published event.
    pub(crate) seq: u64,
    /// Tells the orders of this stay from those of an earlier one, whose late reports may name
    /// the same run and attempt: taken from the load that brought it.
    pub(crate) stay: u16,
    /// It no longer holds a lane: it was freed at its limit, or left the queue.
    pub(crate) detached: bool,
    /// The outcome to settle with as soon as the order under way has reported.
    pub(crate) stop: Option<Outcome>,
    pub(crate) state: State,
}

impl Run {
    /// The fence of what the run writes now.
    pub(crate) const fn fence(&self) -> Fence {
        Fence {
            session: self.session,
            generation: self.generation,
            run: self.id,
            attempt: self.attempt,
        }
    }

    /// Whether a model request of this life went out.
    pub(crate) const fn has_asked(&self) -> bool {
        self.started_at.is_some()
    }

    /// Where the text of the current attempt lies.
    pub(crate) const fn content(&self) -> ContentOwner {
        ContentOwner::Attempt(self.id, self.attempt)
    }

    /// How long the lane task may take from `now` on. An unlimited run is measured by the
    /// default budget, from its last progress (spec 2.3).
    pub(crate) fn lane_limit(&self, config: &Config, now: Time) -> Time {
        now.plus(self.left_ms.unwrap_or(DEFAULT_BUDGET_MS))
            .plus(config.lane_grace_ms)
    }
}

/// The budget that a run begins with; `None` is unlimited.
pub(crate) fn full_budget(config: &Config, own: Option<Budget>) -> Option<u64> {
    match own.or(config.agent_budget) {
        Some(Budget::Limited(ms)) => Some(ms),
        Some(Budget::Unlimited) => None,
        None => Some(DEFAULT_BUDGET_MS),
    }
}

/// The wait before the `tries`th repetition of a refused store order.
pub(crate) fn store_backoff(config: &Config, tries: u16) -> u64 {
    let doublings = u32::from(tries.min(32));
    config
        .store_retry_ms
        .saturating_mul(1u64 << doublings)
        .min(config.store_retry_max_ms)
        .max(1)
}
