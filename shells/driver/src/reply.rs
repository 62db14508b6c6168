//! What is said to and by a running driver, in outside names: messages, answers, events.
//!
//! Owns the words only. How they are asked and carried stands in `client`.

use std::sync::Arc;

use tidegate_core::{
    Attempt, Budget, CallEnd, Decision, LaneName, Outcome, Priority, QueueMode, QueueOverride,
    QueueSettings, Rejection, Terminal, Wall,
};

/// A message that asks for a run, in outside names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The session key.
    pub session_key: String,
    /// The idempotency key; it is the run's name.
    pub run_key: String,
    /// The text.
    pub message: String,
    /// The run's own limit, if the request names one.
    pub budget: Option<Budget>,
    /// How it takes part in its session.
    pub turn: SubmissionTurn,
    /// The global lane that it runs in.
    pub lane: LaneName,
    /// Its place among those that wait for that lane.
    pub priority: Priority,
}

/// How a message takes part in its session (R44 to R47).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmissionTurn {
    /// A run of its own, in the order of arrival; no queue mode applies.
    Agent,
    /// A user's message of a conversation.
    Chat {
        /// The mode of this message; `None` takes the session's.
        queue: Option<QueueMode>,
        /// Where it came from and where its answer goes. Messages of different routes are
        /// never answered in one turn (I31).
        route: String,
    },
}

/// Where an accepted message stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It begins at once.
    Next,
    /// It waits behind so many messages of its session, the one at work among them.
    Queued {
        /// How many.
        ahead: u32,
    },
    /// It waits for the next boundary of a run; if there is none, it follows it.
    Steering {
        /// The name of the run at work.
        into: Arc<str>,
    },
    /// It stops a run and takes its place.
    Interrupting {
        /// The name of the run at work.
        run: Arc<str>,
    },
}

/// A run that has ended, with its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The run's name.
    pub run_key: Arc<str>,
    /// The session's name.
    pub session_key: Arc<str>,
    /// How it ended.
    pub terminal: Terminal,
    /// The run that took the message along in its turn, by name. The reply is that turn's.
    pub turn: Option<Arc<str>>,
    /// The assistant's text. The answer only if the run completed.
    pub reply: Option<Arc<str>>,
    /// The provider's own words about its failure.
    pub detail: Option<Arc<str>>,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The message is durable; a final reply follows.
    Accepted {
        /// The run's name.
        run_key: Arc<str>,
        /// The session's name.
        session_key: Arc<str>,
        /// When it was accepted.
        at: Wall,
        /// Where it stands.
        place: Placed,
    },
    /// Accepted earlier and not ended; a final reply follows.
    InFlight {
        /// The run's name.
        run_key: Arc<str>,
        /// The session's name.
        session_key: Arc<str>,
    },
    /// The run has ended.
    Final {
        /// How, with its texts.
        finished: Finished,
        /// Whether this end was told before.
        replay: bool,
    },
    /// The result of a wait: the run has ended.
    WaitEnded(Finished),
    /// The result of a wait: its deadline passed.
    WaitTimedOut {
        /// Whether there is such a run; `None` if the store could not tell in time.
        known: Option<bool>,
        /// How it will end, where that is decided and not durable yet.
        decided: Option<Outcome>,
    },
    /// The result of a wait: the run is a chat message that waits in its queue (R148).
    WaitPending,
    /// The result of a wait: the gateway ends; the next start can be asked.
    WaitDraining,
    /// The runs that an abort stopped.
    Aborted {
        /// Their names.
        run_keys: Vec<Arc<str>>,
    },
    /// The session begins anew; this is durable (P18).
    Reset {
        /// Its new generation.
        generation: u64,
        /// The names of the runs that the reset ended.
        run_keys: Vec<Arc<str>>,
    },
    /// The decision on a tool call counts.
    Decided {
        /// The approval's id.
        approval: Arc<str>,
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
    /// Refused; nothing was accepted.
    Rejected(Rejection),
}

/// A tool call that waits for a person (R205).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingApproval {
    /// By which it is decided; unique among those that are pending.
    pub approval: Arc<str>,
    /// The run's name.
    pub run_key: Arc<str>,
    /// The session's name.
    pub session_key: Arc<str>,
    /// The call's id in its answer.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments, as the model wrote them.
    pub arguments: Arc<str>,
    /// Since when it waits.
    pub since: Wall,
    /// When it expires.
    pub until: Wall,
}

/// An event of a run, with its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The run's name.
    pub run_key: Arc<str>,
    /// The session's name.
    pub session_key: Arc<str>,
    /// Its number within the run: from 1, without gaps.
    pub seq: u64,
    /// Wall time of its publication.
    pub at: Wall,
    /// What happened.
    pub event: RunEvent,
}

/// What happened to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// An attempt began.
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
        /// The name of that run.
        turn: Arc<str>,
    },
    /// The model has answered a request that contains the message (B-070).
    Seen,
    /// The model asked for a tool call. The text of this attempt is whole and stays; what
    /// follows the calls is another attempt, with a text of its own (R96).
    ToolStart {
        /// The call's id: unique within its answer.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// The arguments, as the model wrote them.
        arguments: Arc<str>,
    },
    /// The call waits for a person (R205).
    ToolAsked(PendingApproval),
    /// A person decided on a call.
    ToolDecided {
        /// What was asked.
        asked: PendingApproval,
        /// The decision.
        decision: Decision,
    },
    /// A call's output grew. Droppable, as text is.
    ToolOutput {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// What it grew by.
        delta: String,
    },
    /// The call has ended, or will never start. One for each that was told to start; if it
    /// waited for a person and nobody decided, that is over with it.
    ToolEnd {
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// How it ended.
        end: CallEnd,
        /// What it put out, as the model is told it.
        output: Arc<str>,
        /// The approval that it waited for without an answer, if it did.
        unanswered: Option<PendingApproval>,
    },
    /// A model call failed, and the run asks again after a wait. What follows is another
    /// attempt: its text begins anew (P16, B-058).
    Retrying {
        /// Which call comes next, from 2.
        call: u16,
        /// How many calls there are at most.
        calls_max: u16,
        /// How long the run waits, in milliseconds.
        delay_ms: u64,
        /// How the run would have ended.
        because: Outcome,
    },
    /// A provider could not answer, and the next of the chain is asked. What follows is another
    /// attempt: its text begins anew (P15).
    Fallback {
        /// What people call the one that could not.
        from: Arc<str>,
        /// What people call the one that is asked now.
        to: Arc<str>,
        /// How the run would have ended.
        because: Outcome,
    },
    /// The assistant's text grew.
    Text {
        /// By this.
        delta: String,
        /// To this.
        text: String,
    },
    /// The outcome is decided and being written.
    Finishing {
        /// The outcome to come.
        outcome: Outcome,
    },
    /// The run has ended. Its last event.
    End(Finished),
}

/// What the gateway is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Runs that have not ended.
    pub live_runs: u64,
    /// Runs that hold a slot of the global lane.
    pub active_runs: u64,
    /// The global lane's cap.
    pub lane_cap: u64,
    /// Open waits.
    pub waits: u64,
    /// Armed timers.
    pub timers: u64,
    /// Core inputs handled since the start.
    pub inputs: u64,
    /// Pieces of content held, and requests whose first answer is still to come.
    pub contents: u64,
    /// Whether new work is refused because the gateway is about to end.
    pub draining: bool,
    /// Why the core halted, if it has.
    pub halted: Option<String>,
}
