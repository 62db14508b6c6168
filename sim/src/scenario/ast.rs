//! A scenario as data: what the text says, in types.
//!
//! Owns the shapes only. The reader makes them from text, a shrinker makes them from a log of
//! inputs, and the writer makes text of them again.

use tidegate_core::{
    Budget, Config, DropPolicy, ErrorClass, Failure, Generation, LaneName, Limit, Marker,
    Outcome as End, Priority, QueueChange, QueueMode, QueueOverride, RetryAfter, StopReason,
    StoreError,
};

use crate::fault::Fault;
use crate::violation::Code;

/// The name of a run that nobody ever sends.
pub const UNKNOWN: &str = "unknown";

/// A timeline, and what must come of it. See the module for how it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The name under which it was read, mostly a path.
    pub name: String,
    /// What it is about, for people: the comment lines at its head.
    pub about: Vec<String>,
    /// The promises that it proves, by id.
    pub proves: Vec<String>,
    /// The core's configuration.
    pub config: Config,
    /// A fault that is planted around the core.
    pub fault: Option<Planted>,
    /// What happens, by time.
    pub timeline: Vec<Block>,
    /// What must come of it.
    pub expects: Vec<Expect>,
    /// The violation that must be found; without one, none may be.
    pub violation: Option<Code>,
    /// The expected trace, if the file holds one.
    pub trace: Option<Vec<String>>,
}

impl Scenario {
    /// A scenario in which nothing happens yet.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            about: Vec::new(),
            proves: Vec::new(),
            config: Config::default(),
            fault: None,
            timeline: Vec::new(),
            expects: Vec::new(),
            violation: None,
            trace: None,
        }
    }
}

/// A fault of the adapter around the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planted {
    /// Which.
    pub fault: Fault,
    /// The occasion at which it strikes, from 1. A lasting fault begins there.
    pub occasion: u32,
}

/// Steps of one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// When, in milliseconds.
    pub at_ms: u64,
    /// Whether the steps are run in every order, and not only as written.
    pub any_order: bool,
    /// The steps.
    pub steps: Vec<Step>,
}

/// Which runs of a session are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    All,
    /// What waits.
    Queued,
    /// The one at work.
    AtWork,
}

/// Something that an actor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A client sends new messages to a session, one after the other.
    Send {
        /// Who.
        client: String,
        /// The messages' names.
        messages: Vec<String>,
        /// To which session.
        session: String,
        /// How they take part in a conversation; `None`: each is a run of its own.
        said: Option<Said>,
        /// What each run asks for.
        terms: Terms,
    },
    /// A client sends a message again, under the same key.
    Repeat {
        /// Who.
        client: String,
        /// Which.
        message: String,
        /// Whether its body differs.
        other_body: bool,
    },
    /// A client waits for the end of a run.
    Wait {
        /// Who.
        client: String,
        /// For which; [`UNKNOWN`] for a run that nobody sends.
        message: String,
        /// The limit in milliseconds; `None` is the default, 0 a peek.
        limit_ms: Option<u64>,
    },
    /// A client stops a run, or all of a session.
    Abort {
        /// Who.
        client: String,
        /// Which; `None` stops all.
        message: Option<String>,
        /// The session that is named; `None` is the message's own.
        session: Option<String>,
        /// Which of a session's, where no message is named.
        part: Part,
    },
    /// A client wants a session to begin anew.
    Reset {
        /// Who.
        client: String,
        /// Which.
        session: String,
        /// Only if it is at this generation.
        expected: Option<Generation>,
    },
    /// A client wants to see or change how a session queues.
    Queue {
        /// Who.
        client: String,
        /// Which session.
        session: String,
        /// What to do.
        change: QueueChange,
    },
    /// A client goes away; all its requests are left.
    Leave {
        /// Who.
        client: String,
    },
    /// How the model answers the next call for a message. It belongs to the call and not to
    /// a time: the first answer is for the first call, and the last one for all further ones.
    Answer {
        /// Which message.
        message: String,
        /// Which fallback answers, from 1; `None`: the first choice, and each fallback that has
        /// no answers of its own.
        fallback: Option<u16>,
        /// The answer.
        beats: Vec<Beat>,
    },
    /// How the model takes the cancel of a message's call.
    OnCancel {
        /// Which message.
        message: String,
        /// What it does then. Nothing: it goes on as if it had not been told.
        beats: Vec<Beat>,
    },
    /// Each commit of the store takes so many milliseconds from now on.
    StoreTakes(u64),
    /// The store refuses for a while.
    StoreRefuses {
        /// Why.
        error: StoreError,
        /// Only the rows that end a run.
        ends_only: bool,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// The store reports everything twice for so many milliseconds.
    StoreTwice(u64),
    /// The process is killed and started again.
    Crash {
        /// Whether the power fails too: what was not synced is lost.
        power: bool,
        /// When it is started again, in milliseconds after the kill.
        down_ms: u64,
    },
    /// The process is told to end in order, and started again.
    Drain {
        /// How long it waits for what is at work; `None` is what is configured.
        budget_ms: Option<u64>,
        /// When it is started again, in milliseconds after its end.
        down_ms: u64,
    },
    /// The loop stands still for so many milliseconds.
    Freeze(u64),
    /// The wall clock is set by so many milliseconds.
    WallJump(i64),
}

/// How a message takes part in a conversation. Who speaks is told by the client: `room` and
/// `heartbeat`, also with a number behind, are what their names say; everybody else is a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The mode that it names.
    pub mode: Option<QueueMode>,
    /// The name of its route; empty for the plain one.
    pub route: String,
}

/// What a message asks for its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The run's own limit.
    pub budget: Option<Budget>,
    /// The global lane.
    pub lane: LaneName,
    /// Its place among those that wait for that lane.
    pub priority: Priority,
}

/// A part of a model's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The request is taken; nothing is said.
    Accepts,
    /// Data without output, so long after what was before.
    Begins(u64),
    /// Pieces of text.
    Chunks {
        /// How many.
        count: u64,
        /// How long after what was before each comes, in milliseconds.
        apart_ms: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// Signs of thinking.
    Reasoning {
        /// The time before each, in milliseconds; 0 for a single one at once.
        every_ms: u64,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// Bytes without data.
    KeepAlives {
        /// The time before each, in milliseconds; 0 for a single one at once.
        every_ms: u64,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// Nothing for so long.
    Pause(u64),
    /// The provider says that the model finished, and does not close the call.
    Finishes,
    /// The failure that follows says when the provider wants to be asked again.
    Asks(RetryAfter),
    /// Nothing more comes, for ever.
    Silence,
    /// The call ends.
    Ends(Ending),
}

/// How a model call ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Completes,
    /// The connection breaks.
    Resets,
    /// The stream ends and the provider had not said that the model finished.
    Incomplete,
    /// The provider has stopped as it was told.
    Cancelled,
    /// No connection.
    Refuses,
    /// An HTTP status.
    Status(u16),
    /// A recognised failure.
    Fails(Marker),
}

/// When something is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// From the first to the second time, both included, in milliseconds.
    Between(u64, u64),
    /// At the latest then, in milliseconds.
    By(u64),
    /// At some time, or when all has come to rest.
    Finally,
    /// At no time.
    Never,
    /// At no time from the first to the second, both included, in milliseconds.
    NotBetween(u64, u64),
}

/// An expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// When.
    pub when: When,
    /// Whether a crash may void it. Those with a time are void in a run that crashed anyway.
    pub unless_crashed: bool,
    /// What.
    pub what: Cond,
    /// The line that says so, from 1; 0 if it was never written.
    pub line: usize,
}

/// What can be expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond {
    /// The row of the message is durable.
    Accepted(String),
    /// An attempt of the run begins.
    Starts(String),
    /// The end of the run is told to all.
    Ends(String, Option<Ended>),
    /// The receipt of the run is durable, once, and so it ended.
    EndedOnce(String, Option<Ended>),
    /// The runs began in this order.
    StartedInOrder(Vec<String>),
    /// The runs ended in this order.
    EndedInOrder(Vec<String>),
    /// The run is accepted and not at work.
    Waits(String),
    /// The first run waits while the second one of its session is at work.
    WaitsBehind(String, String),
    /// The model is called for the run.
    Called(String),
    /// The call of the run is told to stop.
    Stopped(String),
    /// The model was called so often for the run.
    CalledTimes(String, u64),
    /// Text of the run is shown.
    Shown(String),
    /// The message is accepted, and its sender told where it stands.
    Stands(String, Stand),
    /// The run waited for its lanes, and it is told how many were at work and waited there.
    Waited(String, u64, u64),
    /// The first message is bound to the turn of the second one.
    TakenAlong(String, String),
    /// The receipt of the first message says that it ended in the turn of the second one.
    EndsInTurn(String, String),
    /// The model has answered a request that contains the message.
    Seen(String),
    /// A call of the run failed, and it waits to ask again.
    Retries(String),
    /// A provider could not answer, and this one of the chain is asked.
    FallsBack(String, u64),
    /// A session begins anew.
    BeginsAnew(String),
    /// A client is told something of a run.
    Told {
        /// Who.
        client: String,
        /// Of which run.
        message: String,
        /// What.
        told: Told,
    },
    /// A client is told how its session queues; what is not named may be anything.
    Queues(String, QueueOverride),
    /// A client is told that its abort found nothing to stop.
    NothingStopped(String),
    /// Anything is told, ordered or written for a run that has ended.
    AfterEnd(String),
    /// The process ends in order.
    ProcessEnds,
    /// More runs than this are at work at once.
    MoreAtWork(u64),
    /// The rows of a session's transcript.
    Transcript(String, Vec<Row>),
}

/// Where a message stands when it is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// It begins at once.
    Next,
    /// Behind so many others, the one at work among them.
    Behind(u64),
    /// It is to steer this run.
    Steers(String),
    /// It is to stop this run and take its place.
    Interrupts(String),
}

/// How a run ended, as far as it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The model answered.
    Completed,
    /// Somebody stopped it, or anybody.
    Cancelled(Option<StopReason>),
    /// A newer writer took the session.
    Superseded,
    /// It gave way in a full queue, by this policy or any.
    Dropped(Option<DropPolicy>),
    /// A limit, or any.
    TimedOut(Option<Limit>),
    /// A failure, or any.
    Failed(Option<Failed>),
}

/// A failure, without its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The provider's error, by class.
    Provider(ErrorClass),
    /// The stream ended too early.
    Incomplete,
    /// The reply grew too large.
    TooLarge,
}

impl Ended {
    /// The end in full.
    pub(super) const fn of(end: End) -> Self {
        match end {
            End::Completed => Self::Completed,
            End::Cancelled { by, .. } => Self::Cancelled(Some(by)),
            End::Superseded => Self::Superseded,
            End::Dropped { by } => Self::Dropped(Some(by)),
            End::TimedOut { limit, .. } => Self::TimedOut(Some(limit)),
            End::Failed(Failure::Provider { class, .. }) => {
                Self::Failed(Some(Failed::Provider(class)))
            }
            End::Failed(Failure::Incomplete) => Self::Failed(Some(Failed::Incomplete)),
            End::Failed(Failure::ReplyTooLarge) => Self::Failed(Some(Failed::TooLarge)),
        }
    }

    /// Whether an end in full is what this says.
    pub(super) fn fits(self, end: Self) -> bool {
        match (self, end) {
            (Self::TimedOut(None), Self::TimedOut(_))
            | (Self::Failed(None), Self::Failed(_))
            | (Self::Cancelled(None), Self::Cancelled(_))
            | (Self::Dropped(None), Self::Dropped(_)) => true,
            _ => self == end,
        }
    }
}

/// What a client is told of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is accepted.
    Accepted,
    /// It was accepted before and has not ended.
    InFlight,
    /// It has ended so.
    End(Ended),
    /// It had ended so before.
    EndAgain(Ended),
    /// The wait is over; the run exists and has not ended.
    StillOpen,
    /// The wait is over; there is no such run.
    NoSuchRun,
    /// The wait is over; the store could not say.
    NoWord,
    /// It was stopped.
    Stopped,
    /// It waits in its queue.
    Pending,
    /// The key was used for another message.
    Conflict,
    /// The session's queue is full.
    QueueFull,
    /// The gateway is full.
    Busy,
    /// The store can't promise anything now.
    Storage,
    /// Another process owns the session.
    NotOwner,
    /// It belongs to another session.
    WrongSession,
    /// The session has begun anew meanwhile.
    SessionChanged,
    /// The lane is closed.
    LaneClosed,
    /// The session is busy, and the message is not for waiting.
    SessionBusy,
    /// The process is about to end; it was accepted before, or is to be sent again.
    Draining,
}

/// A row of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The message itself.
    User(String),
    /// The whole reply.
    Whole(String),
    /// A part of the reply, kept and marked at the end.
    Partial(String),
    /// What an earlier attempt left.
    Interrupted(String),
    /// A message that gave way in a full queue.
    Dropped(String),
}
