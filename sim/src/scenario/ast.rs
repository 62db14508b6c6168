//! A scenario as data: what the text says, in types.
//!
//! Owns the shapes only. The reader makes them from text, a shrinker makes them from a log of
//! inputs, and the writer makes text of them again.

use tidegate_core::{
    Budget, CallFacts, Config, Decision, Generation, LaneName, Marker, Priority, QueueChange,
    QueueMode, RetryAfter, StoreError, ToolEnd,
};

pub use super::expect::{Cond, Ended, Expect, Failed, Happens, Row, Stand, Told, When};
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
    /// A person decides on a call that waits for that.
    Decide {
        /// Who.
        client: String,
        /// On which call; [`UNKNOWN`] for one that no model asked for.
        call: String,
        /// How.
        decision: Decision,
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
    /// What the tool does that carries out a call, once it is started.
    Runs {
        /// Which call.
        call: String,
        /// What it does.
        works: Vec<Work>,
    },
    /// What the tool of a call does once it is told to stop.
    OnStop {
        /// Which call.
        call: String,
        /// What it does then. Nothing: it goes on as if it had not been told.
        works: Vec<Work>,
    },
    /// Each commit of the store takes so many milliseconds from now on.
    StoreTakes(u64),
    /// What the store reports comes so many milliseconds later from now on.
    StoreReports(u64),
    /// The store refuses for a while.
    StoreRefuses {
        /// Why.
        error: StoreError,
        /// What it refuses.
        what: Refused,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// The store reports everything twice for so many milliseconds.
    StoreTwice(u64),
    /// Another process takes a session's lease, and gives it back later. What is open there it
    /// claims, and ends.
    TakenAway {
        /// Which session.
        session: String,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// Another process writes in a session under the lease that is ours: it claims it for a
    /// run of its own, and ends that later.
    Intruder {
        /// Which session.
        session: String,
        /// When that run ends, in milliseconds after its claim.
        for_ms: u64,
    },
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

/// What a store refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refused {
    /// Everything.
    #[default]
    All,
    /// The rows that end a run.
    Ends,
    /// The checkpoints before tool calls start.
    Launches,
}

/// A part of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Arguments of tool calls grow.
    Arguments {
        /// The time before each sign of it, in milliseconds; 0 for a single one at once.
        every_ms: u64,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// The answer asks for a tool call. That counts once the answer is whole.
    Calls {
        /// The call's name.
        call: String,
        /// What is recognised of it.
        facts: CallFacts,
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

/// A part of what a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Pieces of output.
    Outputs {
        /// How many.
        count: u64,
        /// How long after what was before each comes, in milliseconds.
        apart_ms: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// Nothing for so long, in milliseconds.
    Pause(u64),
    /// Nothing more comes, for ever.
    Silence,
    /// It is over.
    Ends(ToolEnd),
}

impl Step {
    /// Whether it says what a model or a tool is going to do, so that it has no time of its own.
    pub(super) const fn is_script(&self) -> bool {
        matches!(
            self,
            Self::Answer { .. } | Self::OnCancel { .. } | Self::Runs { .. } | Self::OnStop { .. }
        )
    }
}
