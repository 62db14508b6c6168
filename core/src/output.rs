//! Outputs: orders to the shell. One that will report back carries a ticket.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::config::Budget;
use crate::halt::Halt;
use crate::ids::{
    Attempt, ContentOwner, Epoch, Fence, Fingerprint, Generation, Handle, RequestId, RunId,
    SessionId, Subject, Ticket,
};
use crate::lane::{LaneName, Priority};
use crate::outcome::{Outcome, Terminal};
use crate::queue::{Place, QueueOverride, QueueSettings, Turn};
use crate::time::{Time, Wall};
use crate::timers::Timer;
use crate::tool::{CallEnd, CallId, CallResult, Decision, LaunchOrder};

/// The conditional insert of an accepted message: session row and inbox row in one
/// transaction, and the claim with it when the run can start at once (law 5).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Accept {
    /// The session.
    pub session: SessionId,
    /// Its generation.
    pub generation: Generation,
    /// The lease under which it is written.
    pub epoch: Epoch,
    /// The run: the key of the conditional insert.
    pub run: RunId,
    /// The fingerprint compared when the run is known.
    pub body: Fingerprint,
    /// The request whose content holds the message's text.
    pub request: RequestId,
    /// The run's own limit.
    pub budget: Option<Budget>,
    /// How it takes part in its session; a chat message names its resolved mode.
    pub turn: Turn,
    /// The global lane that it runs in.
    pub lane: LaneName,
    /// Its place among those that wait for that lane.
    pub priority: Priority,
    /// When it was accepted.
    pub at: Wall,
    /// The claim to make in the same transaction, if the run starts at once.
    pub claim: Option<ClaimOrder>,
}

/// The durable statement "this attempt writes from now on" (R51). The transaction also
/// binds the run's message to the transcript, once (I26), turns what an earlier attempt
/// left of its reply into a row marked interrupted, and records a previous writer that had
/// not ended as superseded. Messages that were dropped from the queue since the last claim
/// reach the transcript now, marked, before all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimOrder {
    /// The attempt that claims.
    pub attempt: Attempt,
    /// Budget time left at the claim; `None` is unlimited. Restored after a crash (B-082).
    pub left_ms: Option<u64>,
    /// Wall time of the claim.
    pub at: Wall,
    /// Messages that are taken along: bound to the transcript behind the run's own, once, in
    /// this order. They end with the run, in the same transaction ([`Terminal::along`]).
    pub along: Vec<RunId>,
    /// The results of the calls that the attempt before asked for, in the order of the calls:
    /// rows of the transcript before all others of this claim (I24). Of calls that are not
    /// named, since an earlier life started them, the store writes that their result is not
    /// known, or that they were never started.
    pub results: Vec<CallResult>,
}

/// An order to the shell, or the next deadline.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Output {
    /// Read a session and take its lease. Reported by [`Input::Loaded`](crate::Input::Loaded).
    Load {
        /// Comes back with the report.
        ticket: Ticket,
        /// The session.
        session: SessionId,
    },
    /// Commit an accepted message. Reported by [`Input::Accepted`](crate::Input::Accepted).
    Accept {
        /// Comes back with the report.
        ticket: Ticket,
        /// What to commit.
        accept: Accept,
    },
    /// Commit a claim. Reported by [`Input::Claimed`](crate::Input::Claimed).
    Claim {
        /// Comes back with the report.
        ticket: Ticket,
        /// Who claims: session, generation, run and the claiming attempt.
        fence: Fence,
        /// The lease under which it is written.
        epoch: Epoch,
        /// The claim.
        claim: ClaimOrder,
    },
    /// Save what has streamed, under the fence and without a sync of its own. Not reported.
    Save {
        /// Who writes.
        fence: Fence,
        /// The lease under which it is written.
        epoch: Epoch,
        /// The length of the reply to save, in bytes.
        to: u64,
        /// Wall time, from which a restart tells the executed time.
        at: Wall,
    },
    /// Commit the terminal rows under the fence: transcript row, inbox state, receipt.
    /// Reported by [`Input::Settled`](crate::Input::Settled).
    Settle {
        /// Comes back with the report.
        ticket: Ticket,
        /// Who writes.
        fence: Fence,
        /// The lease under which it is written.
        epoch: Epoch,
        /// The end.
        terminal: Terminal,
        /// The results of the calls that the attempt asked for and that have none yet, in the
        /// order of the calls: rows before that of the reply (P08).
        results: Vec<CallResult>,
    },
    /// Commit a launch checkpoint under the fence. Reported by
    /// [`Input::Launched`](crate::Input::Launched).
    Launch {
        /// Comes back with the report.
        ticket: Ticket,
        /// Who writes. Its attempt is the one whose answer asked for the calls.
        fence: Fence,
        /// The lease under which it is written.
        epoch: Epoch,
        /// What to commit.
        launch: LaunchOrder,
    },
    /// Begin the session's next generation: record every open run of it as cancelled by the
    /// reset, keep what had arrived of their replies in the old generation, and free the
    /// writer. Reported by [`Input::WasReset`](crate::Input::WasReset).
    Reset {
        /// Comes back with the report.
        ticket: Ticket,
        /// The session.
        session: SessionId,
        /// The generation that ends.
        generation: Generation,
        /// The lease under which it is written.
        epoch: Epoch,
        /// Wall time of the reset.
        at: Wall,
    },
    /// Keep how a session queues. Reported by [`Input::Configured`](crate::Input::Configured).
    Configure {
        /// Comes back with the report.
        ticket: Ticket,
        /// The session.
        session: SessionId,
        /// Its generation.
        generation: Generation,
        /// The lease under which it is written.
        epoch: Epoch,
        /// What the session sets for itself.
        queue: QueueOverride,
        /// Wall time of the change.
        at: Wall,
    },
    /// Look up how a run ended. Reported by [`Input::LookedUp`](crate::Input::LookedUp).
    Lookup {
        /// Comes back with the report. The texts of an ended run are laid under the request's
        /// content, if the subject is a request; under that of the attempt that ended, in
        /// place of what is there, if it is the run itself.
        ticket: Ticket,
        /// The run.
        run: RunId,
    },
    /// Call the model on the session's transcript. Facts come as [`Input::Model`](crate::Input::Model).
    StartModel {
        /// Comes back with each fact.
        ticket: Ticket,
        /// The attempt that asks. Its reply grows under its content.
        fence: Fence,
        /// Which provider of the chain is asked: 0 is
        /// [`Config::provider`](crate::Config::provider), the others are
        /// [`Config::fallbacks`](crate::Config::fallbacks).
        candidate: u16,
    },
    /// Stop a model call. Its end is still reported.
    CancelModel {
        /// The call.
        ticket: Ticket,
    },
    /// Start a tool call. Facts come as [`Input::Tool`](crate::Input::Tool). Its output grows
    /// under the attempt's content.
    StartTool {
        /// Comes back with each fact.
        ticket: Ticket,
        /// The call.
        call: CallId,
    },
    /// Stop a tool call. Its end is still reported.
    CancelTool {
        /// The call.
        ticket: Ticket,
    },
    /// Answer a request.
    Respond {
        /// To whom.
        request: RequestId,
        /// What.
        answer: Answer,
    },
    /// Publish an event of a run to all who listen.
    Publish {
        /// The run's session.
        session: SessionId,
        /// The run.
        run: RunId,
        /// The event's number within the run: from 1, without gaps (I8).
        seq: u64,
        /// The event.
        event: Event,
    },
    /// Nothing refers to this content any more: free it.
    Release {
        /// Whose content.
        owner: ContentOwner,
    },
    /// The drain is over: all listeners were told, and the process can end. What is still open
    /// is resumed by the next start.
    Drained,
    /// The core no longer holds this entity: maps of its outside names can go (P36).
    Forget {
        /// The entity.
        subject: Subject,
    },
    /// An invariant broke. The core answers nothing else any more.
    Halt(Halt),
    /// Nothing more to do until then. The last word of every drain.
    Sleep {
        /// When to send [`Input::Tick`](crate::Input::Tick) at the latest; `None`: not before
        /// another input.
        until: Option<Time>,
        /// The deadline that falls then.
        why: Option<Timer>,
    },
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// The message is durable (law 5, P42). A final answer to the same request follows.
    Accepted {
        /// The run.
        run: RunId,
        /// Its session.
        session: SessionId,
        /// When it was accepted.
        at: Wall,
        /// Where it stands.
        place: Place,
    },
    /// The run was accepted earlier and has not ended. A final answer to the same request
    /// follows if this process runs it.
    InFlight {
        /// The run.
        run: RunId,
        /// Its session.
        session: SessionId,
    },
    /// The run has ended. Text and detail, if the terminal names any, lie under `content`.
    Final {
        /// How.
        terminal: Terminal,
        /// Where its text lies until the drain releases it.
        content: ContentOwner,
        /// Whether this repeats an end that was told before.
        replay: bool,
    },
    /// The answer to a wait.
    Wait {
        /// The run waited for.
        run: RunId,
        /// What is known.
        result: WaitResult,
    },
    /// The answer to an abort, when the runs that it stopped have ended: those whose
    /// cancelled end is durable. None is no error.
    Aborted {
        /// The runs.
        runs: Vec<RunId>,
    },
    /// The session begins anew; this is durable.
    Reset {
        /// Its new generation.
        generation: Generation,
        /// The runs that the reset ended.
        runs: Vec<RunId>,
    },
    /// The decision on a tool call counts; if it allows the call, this is durable.
    Decided {
        /// The call.
        call: CallId,
        /// The decision: the first one.
        decision: Decision,
    },
    /// How the session queues.
    Queue {
        /// What holds for it.
        settings: QueueSettings,
        /// What it sets for itself.
        own: QueueOverride,
        /// Its messages that wait now.
        waiting: u32,
    },
    /// The request was refused. Nothing was accepted.
    Rejected(Rejection),
}

/// The result of a wait (spec 1.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WaitResult {
    /// The run has ended.
    Ended {
        /// How.
        terminal: Terminal,
        /// Where its text lies until the drain releases it.
        content: ContentOwner,
    },
    /// The run is a chat message that waits in its queue (R148).
    Pending,
    /// The process ends; the next one can be asked (R147).
    Draining,
    /// The wait's own deadline passed. Says nothing about the run (R146).
    TimedOut {
        /// Whether such a run exists; `None` if the store could not tell in time.
        known: Option<bool>,
        /// How the run will end, where that is decided and its rows are not durable yet. Not
        /// terminal: only durable rows are (law 5; spec 1.6).
        decided: Option<Outcome>,
    },
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Rejection {
    /// The idempotency key was used for another request.
    Conflict,
    /// The session's queue is full; try later.
    QueueFull,
    /// The gateway holds as many runs or waits as it may; try later.
    Busy,
    /// The store can't promise anything now; try later.
    Storage,
    /// Another process owns the session.
    NotOwner,
    /// The run belongs to another session.
    WrongSession,
    /// The session is at another generation than the request expects.
    SessionChanged,
    /// The lane that it asks for is closed by configuration.
    LaneClosed,
    /// No such call waits for a decision: it was decided by its limit, or its run has gone on.
    NotAsked,
    /// Another decision on the call came first.
    AlreadyDecided,
    /// A heartbeat is not queued: the session is busy (spec 3.1).
    SessionBusy,
    /// The process is about to end. Not a failure: try again after the restart (P22). For a
    /// run that was accepted, the end will be told then.
    Draining,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Event {
    /// An attempt began (lifecycle `start`).
    Start {
        /// Which.
        attempt: Attempt,
        /// When.
        at: Wall,
    },
    /// The message waited for its lanes longer than is normal; told when it goes on (B-005).
    Waited {
        /// How long, in milliseconds.
        ms: u64,
        /// How many were at work in the lane that it waited for, when it came.
        active_ahead: u32,
        /// How many waited there before it, when it came.
        queued_ahead: u32,
    },
    /// The message was bound to the turn of another run: that run's answer answers it too (P26).
    Bound {
        /// That run.
        turn: RunId,
    },
    /// The model has answered a request that contains the message (B-070).
    Seen,
    /// A model call failed, and the run asks again after a wait. What follows is another
    /// attempt: its text begins anew (P16, B-058).
    Retrying {
        /// Which call comes next, from 2: the repetitions of this life count, over all
        /// providers.
        call: u16,
        /// How many there are at most.
        calls_max: u16,
        /// How long it waits, in milliseconds.
        delay_ms: u64,
        /// How the run would have ended.
        because: Outcome,
    },
    /// The assistant's text grew.
    Text {
        /// The text.
        handle: Handle,
        /// Where the new part begins.
        from: u64,
        /// Where it ends.
        to: u64,
    },
    /// A provider could not answer, and the next of the chain is asked. What follows is another
    /// attempt: its text begins anew (P15).
    Fallback {
        /// Which is asked now: 1 is the first fallback.
        candidate: u16,
        /// How the run would have ended.
        because: Outcome,
    },
    /// The model asked for a tool call. Each call of an answer is told so once, in their order
    /// (R96).
    ToolStart {
        /// The call.
        call: CallId,
    },
    /// A call waits for a person (P27).
    ToolAsked {
        /// The call.
        call: CallId,
        /// Until when.
        until: Wall,
    },
    /// A person decided on a call.
    ToolDecided {
        /// The call.
        call: CallId,
        /// How.
        decision: Decision,
    },
    /// A call's output grew.
    ToolOutput {
        /// The call.
        call: CallId,
        /// Where the new part begins, in bytes.
        from: u64,
        /// Where it ends.
        to: u64,
    },
    /// A call has ended, or will never start. Each call that was told to start has one such
    /// event (R96).
    ToolEnd {
        /// The call.
        call: CallId,
        /// How.
        end: CallEnd,
    },
    /// The outcome is decided, its rows are being written (lifecycle `finishing`, I10).
    Finishing {
        /// The outcome to come.
        outcome: Outcome,
    },
    /// The run has ended and will not begin again (lifecycle `end` or `error` with
    /// `executionSettled`). The last event of a run (P03).
    End {
        /// How.
        terminal: Terminal,
        /// Where its text lies until the drain releases it.
        content: ContentOwner,
    },
}
