//! Inputs: facts that happened. Any input is legal in any state (design section 3).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::config::Budget;
use crate::ids::{Attempt, Epoch, Fingerprint, Generation, RequestId, RunId, SessionId, Ticket};
use crate::lane::{LaneName, Priority};
use crate::outcome::Terminal;
use crate::provider::ProviderError;
use crate::queue::{QueueChange, QueueOverride, Turn};
use crate::time::Wall;
use crate::tool::{CallFacts, CallId, Decision, LaunchReport, ToolFact};

/// A message that asks for a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Submit {
    /// To whom the answers go. The message's text lies under this request's content.
    pub request: RequestId,
    /// The session it is for.
    pub session: SessionId,
    /// The run that it asks for: the fingerprint of its idempotency key.
    pub run: RunId,
    /// Fingerprint of all that the request says. Same run, other body: a conflict.
    pub body: Fingerprint,
    /// The run's own limit, if the request names one.
    pub budget: Option<Budget>,
    /// How it takes part in its session.
    pub turn: Turn,
    /// The global lane that it runs in.
    pub lane: LaneName,
    /// Its place among those that wait for that lane.
    pub priority: Priority,
}

/// What an abort is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// One run.
    Run(RunId),
    /// The run that holds its session's lane, with what it took along; what waits goes on.
    AtWork,
    /// The runs of a session that wait; the one at work goes on.
    Queued,
    /// All runs of a session.
    All,
}

/// A fact for the core.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Input {
    /// A message arrived (R3).
    Submit(Submit),
    /// Somebody wants to know how a run ends (R4). Never changes the run (I58).
    Wait {
        /// To whom the answer goes.
        request: RequestId,
        /// The run waited for; it may be unknown.
        run: RunId,
        /// The limit of the wait; `None` is the default, 0 a peek (R145).
        timeout_ms: Option<u64>,
    },
    /// Somebody wants a run, or all runs of a session, stopped (P17).
    Abort {
        /// To whom the answer goes.
        request: RequestId,
        /// The session.
        session: SessionId,
        /// Which of its runs.
        scope: Scope,
    },
    /// Somebody wants the session to begin anew: its runs end, its next generation begins, and
    /// what belonged to the old one touches nothing any more (P18, I12).
    Reset {
        /// To whom the answer goes.
        request: RequestId,
        /// The session.
        session: SessionId,
        /// Only if this is its generation.
        expected: Option<Generation>,
    },
    /// Somebody wants to see or change how a session queues (spec 3).
    Configure {
        /// To whom the answer goes.
        request: RequestId,
        /// The session.
        session: SessionId,
        /// What to do.
        change: QueueChange,
    },
    /// A caller went away. Its waits end; an accepted run goes on (R200).
    Leave {
        /// The request that nobody listens to any more.
        request: RequestId,
    },
    /// The store holds unfinished work of this session from an earlier life (P23).
    Resume {
        /// Names the order that follows; fresh for each input.
        request: RequestId,
        /// The session.
        session: SessionId,
    },
    /// Report of [`Output::Load`](crate::Output::Load).
    Loaded {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: LoadReport,
    },
    /// Report of [`Output::Accept`](crate::Output::Accept).
    Accepted {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: AcceptReport,
    },
    /// Report of [`Output::Claim`](crate::Output::Claim).
    Claimed {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: ClaimReport,
    },
    /// Report of [`Output::Settle`](crate::Output::Settle).
    Settled {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: SettleReport,
    },
    /// Report of [`Output::Reset`](crate::Output::Reset).
    WasReset {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: ResetReport,
    },
    /// Report of [`Output::Configure`](crate::Output::Configure).
    Configured {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: ConfigureReport,
    },
    /// Report of [`Output::Lookup`](crate::Output::Lookup).
    LookedUp {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: LookupReport,
    },
    /// A fact about a model call that [`Output::StartModel`](crate::Output::StartModel) began.
    Model {
        /// The call's ticket.
        ticket: Ticket,
        /// What happened.
        fact: ModelFact,
    },
    /// Report of [`Output::Launch`](crate::Output::Launch).
    Launched {
        /// The order's ticket.
        ticket: Ticket,
        /// What came of it.
        report: LaunchReport,
    },
    /// A fact about a tool call that [`Output::StartTool`](crate::Output::StartTool) began.
    Tool {
        /// The call's ticket.
        ticket: Ticket,
        /// What happened.
        fact: ToolFact,
    },
    /// A person decided on a call that waits for that (P27).
    Decide {
        /// To whom the answer goes.
        request: RequestId,
        /// The call.
        call: CallId,
        /// The word.
        decision: Decision,
    },
    /// The process is about to end: nothing new begins, and [`Output::Drained`](crate::Output::Drained)
    /// follows when nothing is at work any more or the budget has passed (spec 2.5). A second
    /// one can only shorten the budget.
    Drain {
        /// Names the drain; fresh for each input.
        request: RequestId,
        /// The budget; `None` is the configured one, 0 ends the drain with the next tick.
        budget_ms: Option<u64>,
    },
    /// Time passed. Deadlines fire on this input only, after the reports of the same
    /// instant were handed in (law 7).
    Tick,
}

/// Why the store could not do what it was told. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StoreError {
    /// Busy beyond the store's own patience.
    Busy,
    /// No space left.
    Full,
    /// Any other failure of the medium.
    Io,
}

/// A run that the store holds as accepted and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenRun {
    /// The run.
    pub run: RunId,
    /// Fingerprint of its request.
    pub body: Fingerprint,
    /// Its own limit, if the request named one.
    pub budget: Option<Budget>,
    /// Budget time that earlier lives left over, where it is limited and had begun to run.
    pub left_ms: Option<u64>,
    /// When it was accepted.
    pub accepted_at: Wall,
    /// The last attempt that claimed; 0 if none did.
    pub attempt: Attempt,
    /// How it takes part in its session, as it was accepted.
    pub turn: Turn,
    /// The global lane that it runs in.
    pub lane: LaneName,
    /// Its place among those that wait for that lane.
    pub priority: Priority,
    /// The run in whose turn it was taken along, if a claim did that.
    pub along: Option<RunId>,
}

/// What loading a session gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LoadReport {
    /// The session is ours.
    Loaded {
        /// The lease.
        epoch: Epoch,
        /// The transcript's generation. A session that has no row yet is at 1.
        generation: Generation,
        /// How it queues, as it was set for this session.
        queue: QueueOverride,
        /// Accepted runs without an end, in the order of their acceptance.
        open: Vec<OpenRun>,
    },
    /// Another process owns it.
    NotOwner,
    /// The store could not tell.
    Refused(StoreError),
}

/// What a claim found (R51, spec 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The end of the previous writer, if it had not ended: the claim recorded it as
    /// superseded, and this is its receipt.
    pub superseded: Option<Terminal>,
}

/// What committing an accepted message gave. The insert is conditional on the run's id (P06).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AcceptReport {
    /// The row is durable; so is the claim, if one was ordered with it.
    Committed {
        /// The claim's result, if one was ordered.
        claim: Option<Claim>,
    },
    /// The run is known with the same body. If it has ended with text or detail, these lie
    /// under the request's content.
    Duplicate {
        /// How it ended, if it has.
        terminal: Option<Terminal>,
    },
    /// The run is known with another body.
    Conflict,
    /// The session belongs to another process.
    NotOwner,
    /// The store could not do it.
    Refused(StoreError),
}

/// What committing a claim gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClaimReport {
    /// The claim is durable.
    Committed(Claim),
    /// The fence did not hold: the run has ended, or a later attempt of it claimed.
    Fenced,
    /// The session belongs to another process.
    NotOwner,
    /// The store could not do it.
    Refused(StoreError),
}

/// What committing the terminal rows gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SettleReport {
    /// The terminal rows are durable.
    Committed,
    /// The fence did not hold; nothing was written (I22).
    Fenced,
    /// The session belongs to another process.
    NotOwner,
    /// The store could not do it.
    Refused(StoreError),
}

/// What a reset gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ResetReport {
    /// The next generation is durable. The runs that were open have ended with these receipts.
    Committed {
        /// The new generation.
        generation: Generation,
        /// The ends that the transaction recorded, in the order of the runs' acceptance.
        ended: Vec<Terminal>,
    },
    /// The session belongs to another process.
    NotOwner,
    /// The store could not do it.
    Refused(StoreError),
}

/// What keeping a session's queue settings gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConfigureReport {
    /// They are durable.
    Committed,
    /// The session belongs to another process.
    NotOwner,
    /// The store could not do it.
    Refused(StoreError),
}

/// What the store knows of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LookupReport {
    /// It has ended. Text and detail lie under the request's content.
    Ended(Terminal),
    /// It was accepted and has not ended.
    Open,
    /// There is no such run.
    Unknown,
    /// The store could not tell.
    Refused(StoreError),
}

/// What happened on a model call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModelFact {
    /// Bytes without data: a comment, a ping. Shows a live transport, no progress (law 8, S-05).
    Alive,
    /// Data without output: a first event, usage, an empty choice (S-12).
    Structure,
    /// The model thinks (B-043).
    Reasoning,
    /// The arguments of a tool call grow.
    Calling,
    /// The answer asks for this call; its arguments are complete, or will never be. The calls
    /// come in their order, after all text and before the end; they count only if the end is
    /// [`ModelEnd::Completed`] (S-11, I33).
    Call(CallFacts),
    /// The reply grew.
    Text {
        /// Its whole length so far, in bytes.
        to: u64,
    },
    /// The provider said that the model finished. The call's end is still to come; text may
    /// follow (S-09, S-10).
    Finished,
    /// The call is over. The last fact of its ticket.
    Ended(ModelEnd),
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ModelEnd {
    /// The provider said that the model finished.
    Completed,
    /// The transport ended and the provider had not said so (P38, S-07).
    Incomplete,
    /// The provider failed.
    Failed(ProviderError),
    /// The call was cancelled as ordered.
    Cancelled,
}
