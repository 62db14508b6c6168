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
    /// A message is left out of a turn.
    AlongLost = "along-lost", "the last message that a claim takes along is left out, always";
    /// A message is taken along twice.
    AlongTwice = "along-twice", "the first message that a claim takes along is named twice, always";
    /// Two messages change places in a turn.
    AlongSwapped = "along-swapped", "two messages that a claim takes along change places, always";
    /// A message is taken along that was not called for.
    AlongUncalled = "along-uncalled", "a claim that takes nothing along takes the next message of its session, always";
    /// A message overtakes in its queue.
    QueueJumped = "queue-jumped", "a claim is made for a message that waits behind the one it is for, always";
    /// A message that was taken along runs by itself.
    BoundRuns = "bound-runs", "a message that is bound to a turn claims for itself, always";
    /// Bound is told of another turn.
    BoundElsewhere = "bound-elsewhere", "a message is told as bound to its own turn instead of the one that took it along, always";
    /// The final answer of a message taken along is lost.
    AlongUnanswered = "along-unanswered", "messages that were taken along get no final answer, always";
    /// The end of a message taken along is lost.
    AlongUnended = "along-unended", "the end of messages that were taken along is not shown, always";
    /// The final answer of a message taken along comes twice.
    AlongFinalTwice = "along-final-twice", "a message that was taken along gets its final answer twice, always";
    /// A dropped message is told as answered.
    DroppedAnswered = "dropped-answered", "the end of a dropped message is shown as a completed one, always";
    /// A drop is told under another policy.
    DropBlamed = "drop-blamed", "a message that waited longest is told to give way as the newest one, always";
    /// A full queue lets everybody stay.
    QueueOpen = "queue-open", "messages that had to give way in a full queue stay, always";
    /// A message is refused although there is room.
    RoomRefused = "room-refused", "messages are refused by a queue that has room, always";
    /// A message queues in another way.
    ModeOther = "mode-other", "chat messages are taken in under another queue mode, always";
    /// A place is told wrongly.
    PlaceWrong = "place-wrong", "a message is told one more ahead of it than there is, always";
    /// A wait for a lane is told wrongly.
    WaitedAlone = "waited-alone", "the notice of a long wait says that nobody was ahead, always";
    /// A run at work is told pending.
    PendingAtWork = "pending-at-work", "a wait for a run at the model is told pending, always";
    /// Pending is not told.
    PendingLost = "pending-lost", "the answer that a message waits in its queue is dropped, always";
    /// Seen comes too early.
    SeenEarly = "seen-early", "a message is told as seen when its call goes out, always";
    /// Seen never comes.
    SeenLost = "seen-lost", "that the model has seen a message is not told, always";
    /// An interrupt stops the wrong run.
    InterruptOther = "interrupt-other", "a message that interrupts has another run's call cancelled, always";
    /// An interrupt stops nobody.
    InterruptLost = "interrupt-lost", "a message that interrupts has no call cancelled, always";
    /// A cancel is told as an interrupt.
    InterruptUncalled = "interrupt-uncalled", "a run that was cancelled is told as interrupted, always";
    /// A quiet queue is waited for without an end.
    QuietForEver = "quiet-for-ever", "the deadline of a quiet queue is never named, always";
    /// A drain without an end.
    DrainForEver = "drain-for-ever", "the deadline of a drain is never named, always";
    /// Work begins in a drain.
    DrainBegins = "drain-begins", "a message that waits claims when a drain begins, always";
    /// A priority is not looked at.
    PriorityIgnored = "priority-ignored", "all messages wait for their lane as foreground ones, always";
    /// Something of an earlier generation writes.
    OldWrites = "old-writes", "a run claims again after its session began anew, always";
    /// A reset leaves a run as it was.
    ResetSpares = "reset-spares", "the first run that a reset ended is not told so, always";
    /// A reset's answer leaves a run out.
    ResetForgotten = "reset-forgotten", "the last run that a reset ended never reaches the core, always";
    /// A reset's answer names another generation.
    ResetLies = "reset-lies", "the answer to a reset names the generation after the one that began, always";
    /// A run that waited for its model never asks again.
    RetryDropped = "retry-dropped", "the claim of a run that waited for its model is dropped, always";
    /// A wait is not kept.
    RetryAtOnce = "retry-at-once", "a run that was told to wait for its model claims at once, always";
    /// An outage without an end.
    RetryForEver = "retry-for-ever", "an outage is waited for without a window, and silent calls without a number, always";
    /// Calls are made again that must not.
    RetryUncalled = "retry-uncalled", "a configuration without repetitions is taken for the default one, always";
    /// What the provider asks for is not heard.
    RetryAfterIgnored = "retry-after-ignored", "the wait that a provider asks for never reaches the core, always";
    /// A wait is not told.
    RetryingUntold = "retrying-untold", "that a run waits to ask its model again is not told, always";
    /// A wait is told under a wrong number.
    RetryMiscounted = "retry-miscounted", "a run that waits for its model is told a call further, always";
    /// A lasting failure is taken for a passing one.
    FailureExcused = "failure-excused", "a failure that does not pass by itself is told as a broken line, always";
    /// A passing failure is taken for a lasting one.
    RetryGivenUp = "retry-given-up", "a failure that passes by itself is told as refused credentials, always";
    /// Text of a failed call goes on under the next.
    TextCarriedOver = "text-carried-over", "the text of a failed call is counted into that of the next one, always";
    /// Text of a failed call is not kept.
    FailedTextUnsaved = "failed-text-unsaved", "the last text of a failed call is not saved before the next one, always";
    /// A provider is left out.
    FallbackSkipped = "fallback-skipped", "the provider after the next one is told and asked, always";
    /// That another provider is asked is not told.
    FallbackUntold = "fallback-untold", "that the next provider is asked is not told, always";
    /// The first provider is asked again.
    FallbackBack = "fallback-back", "every call goes to the first provider, whichever was told, always";
    /// A run that is to ask the next provider never does.
    FallbackUnclaimed = "fallback-unclaimed", "the claim of a run that is to ask the next provider is dropped, always";
    /// The reason is told wrongly.
    FallbackBlamed = "fallback-blamed", "the failure that led to the next provider is told as a stop, always";
    /// A wrong request goes to the next provider.
    WrongLedOn = "wrong-led-on", "a request that is wrong everywhere is told as refused credentials, always";
    /// The chain is not known.
    ChainUnheard = "chain-unheard", "the core is told of no fallbacks, always";
    /// The chain begins anew at its end.
    ChainUnending = "chain-unending", "a chain has its first provider once more at its end, always";
    /// Limits of another provider.
    LimitsOfTheFirst = "limits-of-the-first", "every fallback has the limits of the first provider, always";
    /// A checkpoint is not ordered.
    LaunchLost = "launch-lost", "the checkpoint of tool calls is dropped, always";
    /// A checkpoint is ordered twice.
    LaunchTwice = "launch-twice", "the checkpoint of tool calls is ordered twice, always";
    /// A refused checkpoint is taken for a durable one.
    LaunchBelieved = "launch-believed", "a checkpoint that the store refused is reported as committed, always";
    /// A checkpoint lets all calls start.
    LaunchAll = "launch-all", "a checkpoint lets every call of its answer start, always";
    /// A tool starts twice.
    ToolTwice = "tool-twice", "a tool call is started twice, always";
    /// A tool never starts.
    ToolUnstarted = "tool-unstarted", "the order to start a tool call is dropped, always";
    /// A tool starts too early.
    ToolBeforeLaunch = "tool-before-launch", "tool calls start when their checkpoint is ordered, always";
    /// A tool is not stopped.
    ToolUnstopped = "tool-unstopped", "the order to stop a tool call is dropped, always";
    /// A tool is stopped too early.
    ToolStoppedAtOnce = "tool-stopped-at-once", "each tool call that starts is told to stop, always";
    /// A tool without a limit.
    ToolForEver = "tool-for-ever", "the core is told of a tool limit a thousand times as long, always";
    /// A tool with another limit.
    ToolShort = "tool-short", "the core is told of half the tool limit, always";
    /// A stop without a bound.
    StopForEver = "stop-for-ever", "the core is told to wait for a stopped tool a thousand times as long, always";
    /// The end of a tool is not told.
    ToolEndLost = "tool-end-lost", "that a tool call has ended is not told, always";
    /// The end of a tool is told twice.
    ToolEndTwice = "tool-end-twice", "the end of a tool call is told twice, always";
    /// The end of a tool is told as another one.
    ToolEndRetold = "tool-end-retold", "a tool call that succeeded is told as failed, and any other one as succeeded, always";
    /// The end of a tool is heard as another one.
    ToolEndHeardWrong = "tool-end-heard-wrong", "the success of a tool reaches the core as a failure, always";
    /// Output of a tool is told too short.
    ToolOutputShort = "tool-output-short", "an event of a tool's output names less than it shows, always";
    /// A call is not heard.
    CallUnheard = "call-unheard", "that an answer asks for a tool call never reaches the core, always";
    /// A result is another one.
    ResultAltered = "result-altered", "the first result that a claim writes is another one, always";
    /// A result is left out.
    ResultLost = "result-lost", "the last result that a claim writes is left out, always";
    /// Results change places.
    ResultSwapped = "result-swapped", "the first two results that a claim writes change places, always";
    /// Results of an ended run are left out.
    LastResultLost = "last-result-lost", "the results that the end of a run writes are left out, always";
    /// Answers may ask for ever.
    RoundsUnbounded = "rounds-unbounded", "the core is told of no bound of rounds, always";
    /// Answers may ask for everything.
    CallsUnbounded = "calls-unbounded", "the core is told of no bound of calls, always";
    /// Nobody is asked.
    ApprovalUnasked = "approval-unasked", "the core is told to ask nobody, always";
    /// A question stays open.
    ApprovalForEver = "approval-for-ever", "the core is told to wait for people a thousand times as long, always";
    /// A question is closed too early.
    ApprovalShort = "approval-short", "the core is told to wait for people half as long, always";
    /// A run pays for the time of people.
    ApprovalCharged = "approval-charged", "a run of which a person was asked has half of what is left of its budget at each claim, always";
    /// An allowance is told too early.
    AllowedEarly = "allowed-early", "who allows a call is told so when its checkpoint is ordered, always";
    /// A denial is not heard.
    DenialUnheard = "denial-unheard", "every word on a call reaches the core as an allowance, always";
    /// A word is told as the other one.
    WordRetold = "word-retold", "a person's word on a call is shown as the other one, always";
    /// A word is not answered.
    WordUnanswered = "word-unanswered", "that a word on a call counts is not answered, always";
    /// The one that must always fail.
    Canary = "canary", "every answer is dropped: a campaign that stays green with it judges nothing";
}

impl Fault {
    /// Whether it is one of queues, turns, resets and drains.
    pub(crate) fn is_of_turns(self) -> bool {
        self > Self::TickLost && self < Self::RetryDropped
    }

    /// Whether it is one of asking a model again.
    pub(crate) fn is_of_retries(self) -> bool {
        self >= Self::RetryDropped && self < Self::FallbackSkipped
    }

    /// Whether it is one of the chain of providers.
    pub(crate) fn is_of_fallbacks(self) -> bool {
        self >= Self::FallbackSkipped && self < Self::LaunchLost
    }

    /// Whether it is one of tool calls.
    pub(crate) fn is_of_tools(self) -> bool {
        self >= Self::LaunchLost && self < Self::Canary
    }

    /// The fault of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }
}
