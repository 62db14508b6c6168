//! What a checker found: a stable code, whom it is about, and when.
//!
//! The code is the identity of a failure: two runs failed alike if their codes are the same,
//! whatever the words say. It keeps its name for ever; a new rule gets a new code.

use std::fmt;

use tidegate_core::{Subject, Time};

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $name:literal, $promises:literal, $sentence:literal;)*) => {
        /// What was violated. See [`Code::sentence`] for each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $code,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// The stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => $name,)* }
            }

            /// The promises that it guards, by id.
            #[must_use]
            pub const fn promises(self) -> &'static str {
                match self { $(Self::$code => $promises,)* }
            }

            /// What was violated, in one sentence.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$code => $sentence,)* }
            }
        }
    };
}

codes! {
    /// Two active runs of a session.
    TwoActive = "two-active", "P01 I14", "a run claimed while another run of its session was at work and within its lane grace";
    /// More runs at work than the cap.
    OverCap = "over-cap", "I13", "more runs were at work than the global lane has slots";
    /// A model call of a run that does not write.
    CallUnclaimed = "call-unclaimed", "P07 R51", "the model was called for a run whose claim is not durable";
    /// A model call given twice.
    CallTwice = "call-twice", "P06 I34 I60", "the same model call was started twice";
    /// Work waits beside a free slot.
    IdleLane = "idle-lane", "L3 L8 P04", "an accepted run waited although its session and a global slot were free";
    /// A run overtook another one.
    Overtaken = "overtaken", "P05 I15", "a run was admitted or claimed before an earlier message of its session";
    /// A slot given out of turn.
    LaneOrder = "lane-order", "I15 L12", "a run got a slot of its lane before one of a higher priority, or one that waited longer";
    /// A run ended twice.
    EndTwice = "end-twice", "P02 I6 I60", "a run published its end twice";
    /// Something after the end.
    AfterEnd = "after-end", "P03 I7 I9", "something of a run was published or ordered after its end";
    /// Work after a stop.
    AfterStop = "after-stop", "P17 I32 I40", "a run that was stopped called the model";
    /// An event number is missing or repeated.
    EventGap = "event-gap", "I8", "an event's number is not the one after its predecessor's";
    /// Published text has a hole or is not all.
    TextGap = "text-gap", "I47 L18", "the published text has a hole, overlaps, or is not all of the reply at the end";
    /// An acknowledgement before its row.
    AckEarly = "ack-early", "P42", "a message was acknowledged before its row was durable";
    /// An end before its receipt.
    EndEarly = "end-early", "P42", "an end was told before its receipt was durable";
    /// An end that differs from the receipt.
    EndUntrue = "end-untrue", "P40 I11", "an end was told that is not the one of the receipt";
    /// An abort named a run that was not stopped.
    AbortUntrue = "abort-untrue", "P17 P40", "an abort named a run as stopped whose durable end is not a cancelled one";
    /// A stopped run came back.
    AbortUndone = "abort-undone", "P17 I40 I60", "a run that an abort named as stopped claimed, called the model or ended again";
    /// An abort without an answer in time.
    AbortLate = "abort-late", "P17 L7", "an abort was not answered within the lane grace and the bounds of the store";
    /// A run that does not end.
    RunLate = "run-late", "L1", "a run went on beyond its budget, the lane grace and the bounds of the store";
    /// Times of an end out of order.
    TimesUntrue = "times-untrue", "I3 I4", "an end has another acceptance time than the row, or its times are out of order";
    /// Two answers.
    AnswerTwice = "answer-twice", "P02 I42", "a request got an answer after its last one, or of a wrong kind";
    /// No answer.
    Unanswered = "unanswered", "P02 L5", "a request was never answered";
    /// A wait without an answer in time.
    WaitLate = "wait-late", "L4 P10", "a wait was not answered within its limit";
    /// A wait ended before its limit, or said a wrong thing.
    WaitUntrue = "wait-untrue", "P09 P10 P14", "a wait timed out before its limit, or denied a run that the store holds";
    /// A wait or a leave changed something.
    WaitActed = "wait-acted", "P09 I58 R200", "a wait, or a caller that left, changed a run";
    /// A key accepted twice.
    AcceptedTwice = "accepted-twice", "P06 I1 I2", "one idempotency key was accepted twice";
    /// A key with another body accepted.
    ConflictAccepted = "conflict-accepted", "P06", "a known key with another body was not refused as a conflict";
    /// A row without the claim.
    RowUnclaimed = "row-unclaimed", "P07 I20 I21 I60", "a row was written by another run or attempt than the claimed one";
    /// Two receipts.
    ReceiptTwice = "receipt-twice", "P02 I11", "a run got a second receipt";
    /// A refused transaction wrote.
    RefusedWrote = "refused-wrote", "I22", "a transaction that was refused or fenced wrote a row";
    /// A transcript's rows are not numbered one after the other.
    RowNumber = "row-number", "I23", "a transcript row's number is not the one after its predecessor's";
    /// A save does not grow.
    SaveShort = "save-short", "I23", "a save names no more of the reply than an earlier one of its attempt";
    /// An attempt came again.
    AttemptBack = "attempt-back", "I60 B-121", "a run claimed under the number of an attempt that it had before";
    /// The message bound twice or never.
    MessageBound = "message-bound", "P05 I26", "a message was bound to the transcript twice, or ended at the model without being bound";
    /// A message that was taken along runs by itself.
    BoundRan = "bound-ran", "I30 I27", "a message was bound to two turns, or to one and ran by itself";
    /// The text of a dropped message.
    DroppedText = "dropped-text", "I27 P05", "the text of a dropped message did not reach the transcript with the next claim, once";
    /// Something of an earlier generation.
    OldGeneration = "old-generation", "P18 I12 B-023 B-024", "something of an earlier generation was claimed, called, written or shown after its session began anew";
    /// A run that outlives its generation.
    ResetSpared = "reset-spared", "P18 B-023", "a reset did not end a run of the generation before it";
    /// A reset told wrongly.
    ResetUntrue = "reset-untrue", "P18 P40", "the answer to a reset names another generation, or other runs than those that it ended";
    /// Work that begins in a drain.
    BegunDraining = "begun-draining", "P22 L11", "something began although the process was about to end";
    /// A drain without an end.
    DrainLate = "drain-late", "L11", "a drain was not over when its budget had passed";
    /// A place told wrongly.
    PlaceUntrue = "place-untrue", "P26 B-005", "a message was told another place than it has, or others ahead of it than there are";
    /// A wait for a lane told wrongly.
    WaitedUntrue = "waited-untrue", "B-005 P40", "what was told of a wait for a lane is not how it was";
    /// Another mode than the message's.
    ModeUntrue = "mode-untrue", "R44 R45 R46 R47", "a message was taken in under another queue mode than it or its session names";
    /// A message in a wrong turn.
    AlongWrong = "along-wrong", "I31 R46", "a turn took along a message of another route, or one that was neither collected with it nor to steer into it";
    /// A queue beyond its cap.
    OverQueue = "over-queue", "I28", "a chat message stayed in a queue that was full";
    /// The wrong message gave way.
    DropWrong = "drop-wrong", "I28 I27", "a message gave way that was not the one to give way";
    /// A refusal without its reason.
    RefusedWrongly = "refused-wrongly", "I28 P40", "a message was refused for a reason that there was not";
    /// A pending told wrongly.
    PendingUntrue = "pending-untrue", "R148 B-017", "a wait was told pending for a run that does not wait in its queue, or not told so for one that does";
    /// A turn told wrongly.
    BoundUntrue = "bound-untrue", "P26 I30", "a message was told to be in a turn in which it is not";
    /// Seen told wrongly.
    SeenUntrue = "seen-untrue", "P26 B-070", "a message was told as seen by the model before it answered, or not told so when it did";
    /// The wrong run interrupted.
    InterruptUntrue = "interrupt-untrue", "R47 P18 B-073", "a run was interrupted that no message was to interrupt, or one was not that a message was to";
    /// An accepted message without an outcome.
    NoOutcome = "no-outcome", "P05 L1 L3 P23", "an accepted message had no outcome when everything had come to rest or its time was over";
    /// A silent call that goes on.
    Silent = "silent", "P12 P15 L6 B-050", "a model call was silent beyond its limit and was not cancelled";
    /// A finished call that stays open.
    TailLong = "tail-long", "S-08", "a model call stayed open beyond the finish tail";
    /// A call beyond the budget.
    OverBudget = "over-budget", "L1 P13", "a model call went on beyond the run's budget";
    /// A restart gave a run more time than it had left.
    BudgetGrew = "budget-grew", "I39 B-082", "a run claimed with more budget than earlier lives left it, or with another one than its earlier calls did";
    /// A call made again, or not, against the rules.
    RetryWrong = "retry-wrong", "P16 R119", "a run asked its model again after what does not pass by itself, or ended although it had to ask again";
    /// A call made again too often.
    RetryOften = "retry-often", "P16 R119 I36 B-056", "a run asked its model again beyond the number, the window, the silent calls or the budget that it has";
    /// A call made again too soon.
    RetryEarly = "retry-early", "P16 B-056 B-057", "a run asked its model again sooner than half the doubled wait, or than the provider or it itself had said";
    /// A call made again too late.
    RetryLate = "retry-late", "P16 L1", "a run waited for its model longer than it may, or than it had said";
    /// A wait told wrongly.
    RetryUntrue = "retry-untrue", "P16 P40", "what was told of a wait for the model is not how it was";
    /// Text of a failed call.
    RetryText = "retry-text", "P16 R121 B-058", "the text of a failed call was not shown and saved before the next one, or was told under it";
    /// Another provider asked, or not, against the rules.
    FallbackWrong = "fallback-wrong", "P15 I41 B-021 B-051", "another provider was asked after what leads to none, or a run ended or asked the same one again although the next one had to be asked";
    /// A provider asked out of turn.
    FallbackOrder = "fallback-order", "P15 B-050", "another provider was asked than the next one of the chain, or one beyond its end";
    /// A fallback told wrongly.
    FallbackUntrue = "fallback-untrue", "P15 P40", "a call went to another provider than was told, or what was told of the failure is not how it was";
    /// The next provider was not asked at once.
    FallbackLate = "fallback-late", "P15 L1", "a run was told that the next provider is asked and did not claim for it at once";
    /// A call started without its checkpoint.
    ToolUnlaunched = "tool-unlaunched", "I34 law 12", "a tool call started whose checkpoint is not durable, or that no checkpoint let start";
    /// A call started twice.
    ToolTwice = "tool-twice", "I34 law 12", "a tool call started twice, in one life or in several";
    /// A call that may not start.
    ToolUncalled = "tool-uncalled", "I33 P27 P38", "a tool call was to start that can't be carried out, was one too many, or had not been allowed by a person";
    /// A call that nobody carries out.
    ToolIdle = "tool-idle", "L1 L3", "a tool call, or a run with all results of its calls, stood still although nothing was waited for";
    /// A tool beyond its limit.
    ToolLong = "tool-long", "P12 L6", "a tool was not stopped when its limit had passed, or its stop was waited for beyond the bound";
    /// A tool stopped too soon.
    ToolEarly = "tool-early", "P14 P37", "a tool was stopped before its limit, or given up before its bound, although its run went on";
    /// A tool that outlives its run.
    ToolLeft = "tool-left", "I40 P17", "a run ended or was let go while a tool ran that was not told to stop, or not waited for as long as it had to be";
    /// A round against the rules.
    RoundWrong = "round-wrong", "P08 P38 I33", "a checkpoint is not of the calls of a whole answer, or a run went on as if its answer had asked for none";
    /// Too many rounds.
    RoundsMany = "rounds-many", "L1 law 9", "a run's answers asked for tools more often than they may, or it was ended for that although they had not";
    /// A call told wrongly.
    ToolUntold = "tool-untold", "R96", "a tool call was not told to start and to end once each, in order, or its output has a hole";
    /// A result that is not so.
    ResultUntrue = "result-untrue", "P08 P40 law 10", "a tool call ended as something that is not so";
    /// A result that is missing.
    ResultMissing = "result-missing", "P08 I24", "a tool call has not exactly one result, in order, directly behind the answer that asks for it";
    /// An allowance told before it is durable.
    ApprovalEarly = "approval-early", "P27 I34", "a person was told that a call is allowed before that was durable";
    /// A word answered wrongly.
    ApprovalUntrue = "approval-untrue", "P27 P40", "a person's word on a call was not answered, told or heeded as it had to be: the first counts";
    /// A question without an end.
    ApprovalLate = "approval-late", "L15 P27", "a question stayed open beyond its limit";
    /// A limit fired too early.
    LimitEarly = "limit-early", "P11 P14", "a run was ended as silent before its limit had passed";
    /// Content was not freed.
    ContentLeak = "content-leak", "P36", "content was never released";
    /// Content was used after its release.
    ContentGone = "content-gone", "P36", "content was named that was released or never there";
    /// Content was freed twice.
    ReleasedTwice = "released-twice", "P36", "content was released that was released before or never there";
    /// A name was not freed.
    NameLeak = "name-leak", "P36", "a run or session was never forgotten";
    /// A name was freed twice.
    ForgottenTwice = "forgotten-twice", "P36", "a run or session was forgotten that was not held";
    /// A deadline of nobody.
    DeadlineOrphan = "deadline-orphan", "I59", "a drain named a deadline whose owner does not have it any more";
    /// A step that is not declared.
    Undeclared = "undeclared", "P02 I7", "a run took a step that the table of transitions does not declare";
    /// A run of the world without end.
    Endless = "endless", "L8", "a run of the world took more inputs than any sound one does";
    /// Two histories from one.
    Diverged = "diverged", "law 11", "a core restored from a snapshot, or driven in another legal way, went on differently";
    /// Time passes without progress.
    Spin = "spin", "L8", "a deadline stayed due although ticks came";
    /// An invariant of the core.
    Halt = "halt", "I13 I14 I59", "the core found one of its own invariants broken";
}

/// What a finding says about the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A promise was broken by what was done.
    Violation,
    /// A promise was broken by what was never done, or not in time.
    Liveness,
    /// One history went on in two ways.
    Divergence,
    /// The core found itself broken.
    Halt,
    /// The run did not come to an end.
    Budget,
}

impl Code {
    /// What it says about the core.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Halt => Kind::Halt,
            Self::Diverged => Kind::Divergence,
            Self::Endless => Kind::Budget,
            Self::NoOutcome
            | Self::Unanswered
            | Self::WaitLate
            | Self::AbortLate
            | Self::RunLate
            | Self::TailLong
            | Self::DrainLate
            | Self::RetryLate
            | Self::OverBudget
            | Self::IdleLane
            | Self::Spin
            | Self::ToolIdle
            | Self::ToolLong
            | Self::ApprovalLate
            | Self::Silent => Kind::Liveness,
            _ => Kind::Violation,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What was violated: the failure's identity.
    pub code: Code,
    /// Of whom.
    pub entity: Subject,
    /// Simulated monotonic time.
    pub at: Time,
    /// The index of the input during or after which it showed, from 1.
    pub input: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            entity,
            at,
            input,
        } = self;
        write!(f, "{code}: {} (", code.sentence())?;
        match entity {
            Subject::Session(id) => write!(f, "session {id}")?,
            Subject::Run(id) => write!(f, "run {id}")?,
            Subject::Request(id) => write!(f, "request {id}")?,
        }
        write!(
            f,
            ", at {} ms, input {input}; guards {})",
            at.0,
            code.promises()
        )
    }
}
