//! What is expected of a scenario, as data.
//!
//! Owns the shapes only, as `ast` does for what happens. How each is judged stands in `judge`.

use tidegate_core::{
    CallEnd, Decision, DropPolicy, ErrorClass, Failure, Limit, Outcome as End, QueueOverride,
    StopReason,
};

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
    /// What happens to a tool call happens.
    Call(String, Happens),
    /// So many times the call was started.
    RanTimes(String, u64),
    /// The call has one durable result, and it is this one.
    CameOnce(String, CallEnd),
    /// A session begins anew.
    BeginsAnew(String),
    /// A client is told something of a run, or of a call.
    Told {
        /// Who.
        client: String,
        /// Of which run or call.
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

/// What can happen to a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happens {
    /// It is told that the model asked for it.
    AskedFor,
    /// It waits for a person.
    Asked,
    /// A person's word on it is told.
    Decided(Decision),
    /// Its tool is started.
    Runs,
    /// Its tool is told to stop.
    Stopped,
    /// Output of it is shown.
    Shown,
    /// Its end is told.
    Ends(CallEnd),
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
    /// The model wanted tools too often.
    TooManyRounds,
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
            End::Failed(Failure::TooManyRounds) => Self::Failed(Some(Failed::TooManyRounds)),
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
    /// Its word on a call counts.
    Decided(Decision),
    /// No such call waits for a person.
    NotAsked,
    /// Another word on the call came first.
    AlreadyDecided,
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
    /// The answer that asked for tool calls, with its text.
    Calls(String),
    /// The result of a call.
    Result(String, CallEnd),
    /// A message that gave way in a full queue.
    Dropped(String),
}
