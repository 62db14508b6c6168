//! Faults of the system by name: what the oracle's audit breaks, without a rebuild.
//!
//! Owns names and meanings; the adapter carries them out. Each fault breaks one promise, and
//! the checkers must find it: a checker that no fault can turn red guards nothing.

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident = $name:literal, $says:literal;)*) => {
        /// A planted fault. It strikes at the third occasion, and then once, unless it says
        /// otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &'static [Self] = &[$(Self::$fault,)*];

            /// The name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$fault => $name,)* }
            }

            /// What it does, in one sentence.
            #[must_use]
            pub const fn says(self) -> &'static str {
                match self { $(Self::$fault => $says,)* }
            }
        }
    };
}

faults! {
    /// A lane is never freed.
    LaneReleaseLost = "lane-release-lost", "the report that frees a run's lane never reaches the core";
    /// A late append passes the fence.
    LateAppend = "late-append", "a superseded attempt's late end is written under the current fence";
    /// A waiter gets no answer.
    WaiterForgotten = "waiter-forgotten", "the answer to a wait is dropped";
    /// An acknowledgement comes before the commit.
    AckBeforeCommit = "ack-before-commit", "a message is acknowledged when its commit is ordered";
    /// A refused settle is taken for a durable one.
    EndBeforeReceipt = "end-before-receipt", "a settle that the store refused is reported as committed";
    /// An end is published twice.
    EndTwice = "end-twice", "the end of a run is published twice";
    /// An event is left out.
    EventSkipped = "event-skipped", "a text event is dropped";
    /// A text event is too short.
    TextShort = "text-short", "a text event names less than it shows";
    /// Content is never released.
    ReleaseLost = "release-lost", "a release of content is dropped";
    /// Content is released twice.
    ReleaseTwice = "release-twice", "a release of content is given twice";
    /// A name is never forgotten.
    ForgetLost = "forget-lost", "an order to forget a name is dropped";
    /// A name is forgotten twice.
    ForgetTwice = "forget-twice", "an order to forget a name is given twice";
    /// A model call is started twice.
    ModelTwice = "model-twice", "a model call is started twice";
    /// Silence is taken for progress.
    IdleIgnored = "idle-ignored", "silence limits of a run never fire, as if the model had made progress";
    /// Progress is not seen.
    ProgressUnseen = "progress-unseen", "text and reasoning never reach the core, from the third such fact on";
    /// A cancel is lost.
    CancelLost = "cancel-lost", "an order to cancel a model call is dropped";
    /// Two accepted runs change places.
    OrderSwapped = "order-swapped", "two open runs of a session are loaded in the wrong order, always";
    /// Two runs of a session are at work.
    TwoWriters = "two-writers", "a waiting run claims while another one of its session is at work";
    /// A claim comes late.
    ClaimLate = "claim-late", "a claim is ordered one input later than it could be";
    /// A repeated final differs.
    FinalAltered = "final-altered", "a final answer told again has another outcome";
    /// An acknowledgement is lost.
    AcceptedLost = "accepted-lost", "the answer that a message was accepted is dropped";
    /// A conflict is let through.
    ConflictAccepted = "conflict-accepted", "a conflict found by the store is reported as committed";
    /// A wait acts.
    WaitActs = "wait-acts", "a wait cancels the model call of its run";
    /// A restart forgets what was open.
    ResumeLost = "resume-lost", "restarts are told of no session with open work, always";
    /// A stopped run goes on.
    StopIgnored = "stop-ignored", "a run that was stopped calls the model again, always";
    /// A call goes out before its claim is durable.
    CallBeforeClaim = "call-before-claim", "the model is called when the claim is ordered";
    /// An event after the end.
    EventAfterEnd = "event-after-end", "an event is published after the end of its run";
    /// A final answer comes twice.
    FinalTwice = "final-twice", "a final answer is given twice";
    /// Content is gone too early.
    ReleaseEarly = "release-early", "content is released before the answers that name it, always";
    /// A wait ends too early.
    WaitShort = "wait-short", "a wait is told as one with half its limit";
    /// An abort tells of runs that it did not stop.
    AbortLies = "abort-lies", "an abort names a run as stopped that goes on";
    /// An abort gets no answer.
    AbortForgotten = "abort-forgotten", "the answer to an abort is dropped";
    /// A restart or a load brings a stopped run back.
    AbortUndone = "abort-undone", "a run that was stopped is loaded as an open one, always";
    /// The provider's last word is not seen.
    FinishUnseen = "finish-unseen", "that a model finished never reaches the core, always";
    /// A save does not grow.
    SaveShort = "save-short", "an order to save names nothing of the reply";
    /// A deadline of a run that ended.
    DeadlineStale = "deadline-stale", "a drain names a limit of a run that has ended";
    /// A restart forgets which attempt a run was at.
    AttemptReset = "attempt-reset", "restarts load every run as never claimed, always";
    /// The row of a message has another time than its end.
    TimesAltered = "times-altered", "a message is committed as accepted an hour later than it was";
    /// A restart forgets how long a run was at work.
    BudgetReset = "budget-reset", "restarts load every run with its whole budget, always";
    /// A failure is taken for an answer.
    FailureHidden = "failure-hidden", "the failed end of a model call is told as a completed one";
    /// The core says that it is broken.
    Halted = "halted", "the core reports a broken invariant";
    /// A deadline stays due.
    TickLost = "tick-lost", "ticks are lost from the third on";
    /// The one that must always fail.
    Canary = "canary", "every answer is dropped: a campaign that stays green with it judges nothing";
}

impl Fault {
    /// The fault of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }
}
