//! Reached-marks: what a campaign must have seen at least once to mean anything.
//!
//! A green campaign that never superseded a writer says nothing about supersession. Owns the
//! list and the counts; a run notes, a campaign adds up and names what is missing.

use tidegate_core::{
    AcceptReport, Answer, CallEnd, ClaimReport, Event, Failure, Input, LaunchReport, Limit,
    LoadReport, LookupReport, ModelFact, OrderKind, Outcome, Output, Place, Rejection, ResetReport,
    SettleReport, Subject, Terminal, Timer, WaitResult,
};

use crate::adapter::Trick;
use crate::world::store::{RowKind, Wrote};

macro_rules! marks {
    ($($(#[$doc:meta])* $mark:ident = $name:literal,)*) => {
        /// Something that can happen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Mark {
            $($(#[$doc])* $mark,)*
        }

        impl Mark {
            /// All marks.
            pub const ALL: &'static [Self] = &[$(Self::$mark,)*];

            /// The name for people.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$mark => $name,)* }
            }
        }
    };
}

marks! {
    /// A run completed.
    Completed = "a run completed",
    /// A provider's failure ended a run.
    ProviderFailed = "a provider's error ended a run",
    /// A stream ended without its terminal.
    Incomplete = "a stream ended without its terminal",
    /// A reply grew too large.
    TooLarge = "a reply grew beyond its cap",
    /// A provider said that its model finished and kept the call open.
    Finished = "a model finished before its call ended",
    /// Work was deferred by a drain.
    Deferred = "work was deferred by a drain",
    /// A drain cut a wait short.
    WaitDraining = "a drain cut a wait short",
    /// The budget ended a run.
    Budget = "the run budget ended a run",
    /// The first-event limit ended a run.
    FirstEvent = "the first-event limit ended a run",
    /// The idle limit ended a run.
    Idle = "the idle limit ended a run",
    /// The lane limit ended a run.
    LaneLimit = "the lane limit ended a run",
    /// A run was cancelled before its model call.
    CancelledEarly = "a run was cancelled before its model call",
    /// A run was cancelled at the model.
    CancelledLate = "a run was cancelled at the model",
    /// A claim superseded another run.
    Superseded = "a claim superseded another run",
    /// A settle was fenced.
    SettleFenced = "a settle was stopped by its fence",
    /// A claim was made with the acceptance.
    ClaimWithAccept = "acceptance and claim were one transaction",
    /// A message waited in its lane.
    Queued = "a message waited behind another run",
    /// A run claimed again.
    SecondAttempt = "a run claimed again",
    /// Text of an earlier attempt was marked interrupted.
    Interrupted = "partial text was marked interrupted",
    /// A restart found open work.
    Resumed = "a restart loaded open work",
    /// The process died.
    Died = "the process died",
    /// The durable insert found the run known and ended.
    DuplicateEnded = "a repeated key was answered with the known end",
    /// A live run was joined.
    Joined = "a repeated key joined a live run",
    /// A conflict was refused.
    Conflict = "a key with another body was refused",
    /// The session's queue was full.
    QueueFull = "a full session queue refused",
    /// Too many runs, waits or parked inputs.
    Busy = "a named bound refused as busy",
    /// The store could not promise.
    StorageRefused = "a message was refused because of the store",
    /// A claim was refused by the store.
    ClaimRefused = "the store refused a claim",
    /// A settle was refused by the store.
    SettleRefused = "the store refused a settle",
    /// A load was refused by the store.
    LoadRefused = "the store refused a load",
    /// A lookup was refused by the store.
    LookupRefused = "the store refused a lookup",
    /// An abort hit a run of another session.
    WrongSession = "an abort with a wrong session was refused",
    /// A wait got an end.
    WaitEnded = "a wait got the end",
    /// A wait on a known run timed out.
    WaitKnown = "a wait timed out on a known run",
    /// A wait on an unknown run timed out.
    WaitUnknown = "a wait timed out on an unknown run",
    /// A wait timed out without the store's word.
    WaitUnsure = "a wait timed out without the store's word",
    /// A wait found the end in the store.
    WaitLookedUp = "a wait found the end in the store",
    /// A provider finished, and its call stayed open.
    FinishTail = "the finish tail was the next deadline",
    /// An abort named what it had stopped.
    AbortNamed = "an abort named runs that it had stopped",
    /// Another process held the session.
    NotOwner = "another process held a session's lease",
    /// The lease was lost with work under way.
    LeaseLost = "a lease was lost while its session was at work",
    /// A fence told of another writer.
    EndLookedUp = "a fenced run was told the end that another process recorded",
    /// A message gave way.
    Dropped = "a message gave way in a full queue",
    /// A reset found another generation.
    SessionChanged = "a reset that expected another generation was refused",
    /// A lane was closed.
    LaneClosed = "a message for a closed lane was refused",
    /// A heartbeat came to a busy session.
    SessionBusy = "a heartbeat was refused by a busy session",
    /// A wait met a queued chat message.
    Pending = "a wait was told that its message waits in the queue",
    /// A session began anew.
    Reset = "a session began anew",
    /// Queue settings were told.
    QueueTold = "a session's queue settings were told",
    /// A message was taken along.
    TakenAlong = "a message was taken along in another run's turn",
    /// A message was taken along in its turn again after a restart.
    AlongResumed = "a restart found a message in another run's turn",
    /// A message was told to steer.
    Steering = "a message was to steer into the run at work",
    /// A message interrupted.
    Interrupting = "a message interrupted the run at work",
    /// The text of a dropped message reached the transcript.
    DroppedRow = "the text of a dropped message reached the transcript",
    /// A reset ended open runs.
    ResetEnded = "a reset ended open runs",
    /// A store refused a reset.
    ResetRefused = "the store refused a reset",
    /// A quiet queue was waited for.
    Debounced = "a quiet queue was the next deadline",
    /// A long wait for a lane was told.
    Waited = "a long wait for a lane was told",
    /// The core was restored in mid-run.
    Restored = "a core went on from a snapshot",
    /// A drain was dropped.
    Halves = "a drain was dropped half-way and led the next one",
    /// A time went back.
    ClockBack = "a time that went back was clamped",
    /// Keep-alive bytes came.
    Alive = "keep-alive bytes came",
    /// Reasoning came.
    Reasoning = "reasoning came",
    /// Streamed text was saved.
    Saved = "streamed text was saved",
    /// A failed call was made again.
    Retried = "a run asked its model again",
    /// An outage passed.
    OutagePassed = "an outage passed and its run completed",
    /// A wait of the provider's was kept.
    AskedWait = "a wait that the provider asked for was kept",
    /// A provider named a wait that can't be kept.
    AskedTooLong = "a provider asked for a wait that no run can keep",
    /// All repetitions were used up.
    RetriesSpent = "a run had asked its model as often as it may",
    /// Silent calls in a row.
    SilencesSpent = "too many silent calls in a row ended a run",
    /// An outage lasted too long.
    WindowOver = "an outage lasted longer than it is waited for",
    /// The next wait did not fit in the budget.
    BudgetShort = "a wait did not fit in what was left of a budget",
    /// Stopped while it waited.
    AbortedWaiting = "a run was stopped while it waited for its model",
    /// Interrupted while it waited.
    InterruptedWaiting = "a run was interrupted while it waited for its model",
    /// Its lane limit passed while it waited.
    LaneWaiting = "a lane limit ended a run that waited for its model",
    /// Its session began anew while it waited.
    ResetWaiting = "a session began anew while its run waited for its model",
    /// A drain was over while it waited.
    DrainedWaiting = "a drain was over while a run waited for its model",
    /// The process died while it waited.
    DiedWaiting = "the process died while a run waited for its model",
    /// Another provider was asked.
    FellBack = "a run asked the next provider of its chain",
    /// A fallback answered.
    FallbackCompleted = "a fallback answered and its run completed",
    /// A hung provider gave way.
    SilentLedOn = "a silent call led to the next provider",
    /// A provider that is far away gave way.
    FarLedOn = "a provider that wanted to be left alone for long gave way to the next one",
    /// The same provider was asked again, and then another one.
    RetriedThenLed = "a run asked the same provider again and then the next one",
    /// Nobody was left.
    ChainSpent = "the last provider of a chain failed and ended a run",
    /// A failure led nowhere.
    WrongEverywhere = "a failure that another provider could not mend ended a run",
    /// A stop came between two providers.
    AbortedLed = "a run was stopped while it claimed for the next provider",
    /// The process died between two providers.
    DiedLed = "the process died while a run claimed for the next provider",
    /// A tool succeeded.
    ToolOk = "a tool succeeded",
    /// A tool failed.
    ToolFailed = "a tool failed",
    /// A tool was stopped at its limit.
    ToolTimedOut = "a tool was stopped at its limit",
    /// A tool was stopped with its run.
    ToolCancelled = "a tool was stopped with its run",
    /// A tool did not stop.
    ToolUnknown = "a tool that did not stop was given up",
    /// A call was skipped.
    ToolSkipped = "a call was skipped",
    /// A call named no tool.
    NoSuchTool = "a call named no tool that there is",
    /// A call had wrong arguments.
    BadArguments = "a call had wrong arguments",
    /// A person did not allow a call.
    Denied = "a person did not allow a call",
    /// Nobody decided.
    Expired = "nobody decided on a call in time",
    /// A question was void.
    Stale = "a question was void when its process had died",
    /// A started call of an earlier life.
    UnknownAfter = "a call of an earlier life was recorded as unknown",
    /// A person allowed a call.
    Allowed = "a person allowed a call",
    /// Another word came later.
    AlreadyDecided = "another word on a call came too late",
    /// The same word came again.
    DecidedAgain = "the same word on a call came twice",
    /// Nobody waited for a word.
    NotAsked = "a word came on a call that waited for none",
    /// Two questions at once.
    TwoAsked = "two questions of a run were open at once",
    /// The store refused a checkpoint.
    LaunchRefused = "the store refused a checkpoint",
    /// A checkpoint was fenced.
    LaunchFenced = "a checkpoint was stopped by its fence",
    /// A checkpoint was written for an allowed call.
    LaunchedLater = "an allowed call had a checkpoint of its own",
    /// Calls ran side by side.
    SideBySide = "two calls of an answer ran side by side",
    /// An answer asked for too many calls.
    TooManyCalls = "an answer asked for more calls than it may",
    /// A run asked for too many rounds.
    TooManyRounds = "a run that asked for tools once more than it may was ended",
    /// A run completed behind its tools.
    ToolsThenDone = "a run completed after its tools",
    /// A call failed behind tools.
    RetriedBehind = "a run asked its model again after its tools",
    /// Another provider behind tools.
    LedBehind = "a run asked the next provider after its tools",
    /// An answer broke off.
    CallsBroken = "an answer broke off while it asked for tools",
    /// An answer hung.
    CallsHung = "an answer hung while it asked for tools",
    /// A message steered in.
    SteeredIn = "a message steered in behind the results of tools",
    /// A tool ended too late.
    ToolLate = "a tool ended when nobody waited for it any more",
    /// A tool outlived its process.
    Orphan = "a tool ended when its process was dead",
    /// A budget passed.
    BudgetTools = "a budget passed while tools were at work",
    /// A stop came.
    AbortedTools = "a run was stopped while its tools were at work",
    /// A stop came while a person was asked.
    AbortedAsked = "a run was stopped while a person was asked",
    /// An interrupt came.
    InterruptedTools = "a run was interrupted while its tools were at work",
    /// A reset came.
    ResetTools = "a session began anew while its tools were at work",
    /// Another writer came.
    SupersededTools = "a run was superseded while its tools were at work",
    /// A drain was over.
    DrainedTools = "a drain was over while tools were at work",
    /// The process died.
    DiedTools = "the process died while tools were at work",
}

/// How often each mark was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks([u64; Mark::ALL.len()]);

impl Default for Marks {
    fn default() -> Self {
        Self([0; Mark::ALL.len()])
    }
}

impl Marks {
    /// How often a mark was reached.
    #[must_use]
    pub fn count(&self, mark: Mark) -> u64 {
        self.0[mark as usize]
    }

    /// The marks that were never reached.
    #[must_use]
    pub fn missing(&self) -> Vec<Mark> {
        Mark::ALL
            .iter()
            .copied()
            .filter(|&mark| self.count(mark) == 0)
            .collect()
    }

    /// Adds another run's counts.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub(crate) fn hit(&mut self, mark: Mark) {
        self.0[mark as usize] += 1;
    }

    pub(crate) fn died(&mut self) {
        self.hit(Mark::Died);
    }

    pub(crate) fn tricked(&mut self, trick: Trick) {
        self.hit(match trick {
            Trick::Restore => Mark::Restored,
            Trick::Halves(_) => Mark::Halves,
            Trick::Back(_) => Mark::ClockBack,
        });
    }

    pub(crate) fn input(&mut self, input: &Input) {
        match input {
            Input::Accepted {
                report: AcceptReport::NotOwner,
                ..
            }
            | Input::Claimed {
                report: ClaimReport::NotOwner,
                ..
            }
            | Input::Settled {
                report: SettleReport::NotOwner,
                ..
            } => self.hit(Mark::LeaseLost),
            Input::Accepted { report, .. } => match report {
                AcceptReport::Committed { claim: Some(_) } => self.hit(Mark::ClaimWithAccept),
                AcceptReport::Committed { claim: None } => self.hit(Mark::Queued),
                _ => {}
            },
            Input::Claimed {
                report: ClaimReport::Refused(_),
                ..
            } => self.hit(Mark::ClaimRefused),
            Input::Launched { report, .. } => match report {
                LaunchReport::Fenced => self.hit(Mark::LaunchFenced),
                LaunchReport::Refused(_) => self.hit(Mark::LaunchRefused),
                LaunchReport::Committed | LaunchReport::NotOwner => {}
            },
            Input::Settled { report, .. } => match report {
                SettleReport::Fenced => self.hit(Mark::SettleFenced),
                SettleReport::Refused(_) => self.hit(Mark::SettleRefused),
                _ => {}
            },
            Input::Loaded { report, .. } => match report {
                LoadReport::Loaded { open, .. } if !open.is_empty() => {
                    self.hit(Mark::Resumed);
                    if open.iter().any(|run| run.along.is_some()) {
                        self.hit(Mark::AlongResumed);
                    }
                }
                LoadReport::Refused(_) => self.hit(Mark::LoadRefused),
                LoadReport::NotOwner => self.hit(Mark::NotOwner),
                _ => {}
            },
            Input::WasReset { report, .. } => match report {
                ResetReport::Committed { ended, .. } if !ended.is_empty() => {
                    self.hit(Mark::ResetEnded);
                }
                ResetReport::Refused(_) => self.hit(Mark::ResetRefused),
                _ => {}
            },
            Input::LookedUp { ticket, report } => match (report, ticket.subject) {
                (LookupReport::Ended(_), Subject::Request(_)) => self.hit(Mark::WaitLookedUp),
                (LookupReport::Ended(_), Subject::Run(_)) => self.hit(Mark::EndLookedUp),
                (LookupReport::Refused(_), _) => self.hit(Mark::LookupRefused),
                _ => {}
            },
            Input::Model { fact, .. } => match fact {
                ModelFact::Alive => self.hit(Mark::Alive),
                ModelFact::Reasoning => self.hit(Mark::Reasoning),
                ModelFact::Finished => self.hit(Mark::Finished),
                ModelFact::Structure
                | ModelFact::Calling
                | ModelFact::Call(_)
                | ModelFact::Text { .. }
                | ModelFact::Ended(_) => {}
            },
            _ => {}
        }
    }

    pub(crate) fn output(&mut self, output: &Output) {
        match output {
            Output::Publish {
                event: Event::End { terminal, .. },
                ..
            } => self.end(terminal),
            Output::Publish {
                event: Event::Bound { .. },
                ..
            } => self.hit(Mark::TakenAlong),
            Output::Publish {
                event: Event::Waited { .. },
                ..
            } => self.hit(Mark::Waited),
            Output::Publish {
                event: Event::ToolEnd { end, .. },
                ..
            } => self.call(*end),
            Output::Sleep {
                why: Some(Timer::Debounce(_)),
                ..
            } => self.hit(Mark::Debounced),
            Output::Sleep {
                why: Some(Timer::FinishTail(_)),
                ..
            } => self.hit(Mark::FinishTail),
            Output::Claim { ticket, .. }
                if ticket.order == OrderKind::Claim && ticket.attempt.0 > 1 =>
            {
                self.hit(Mark::SecondAttempt);
            }
            Output::Respond { answer, .. } => self.answer(answer),
            _ => {}
        }
    }

    /// How a call ended.
    fn call(&mut self, end: CallEnd) {
        self.hit(match end {
            CallEnd::Ok => Mark::ToolOk,
            CallEnd::Failed => Mark::ToolFailed,
            CallEnd::TimedOut => Mark::ToolTimedOut,
            CallEnd::Cancelled => Mark::ToolCancelled,
            CallEnd::Unknown => Mark::ToolUnknown,
            CallEnd::Skipped => Mark::ToolSkipped,
            CallEnd::NoSuchTool => Mark::NoSuchTool,
            CallEnd::BadArguments => Mark::BadArguments,
            CallEnd::Denied => Mark::Denied,
            CallEnd::Expired => Mark::Expired,
            CallEnd::Stale => return,
        });
    }

    fn end(&mut self, terminal: &Terminal) {
        self.hit(match terminal.outcome {
            Outcome::Completed => Mark::Completed,
            Outcome::Failed(Failure::Provider { .. }) => Mark::ProviderFailed,
            Outcome::Failed(Failure::Incomplete) => Mark::Incomplete,
            Outcome::Failed(Failure::ReplyTooLarge) => Mark::TooLarge,
            Outcome::Failed(Failure::TooManyRounds) => Mark::TooManyRounds,
            Outcome::TimedOut { limit, .. } => match limit {
                Limit::Budget => Mark::Budget,
                Limit::FirstEvent => Mark::FirstEvent,
                Limit::Idle => Mark::Idle,
                Limit::Lane => Mark::LaneLimit,
            },
            Outcome::Cancelled {
                provider_started: false,
                ..
            } => Mark::CancelledEarly,
            Outcome::Cancelled {
                provider_started: true,
                ..
            } => Mark::CancelledLate,
            Outcome::Dropped { .. } => Mark::Dropped,
            Outcome::Superseded => return,
        });
    }

    fn answer(&mut self, answer: &Answer) {
        self.hit(match answer {
            Answer::Final { replay: true, .. } => Mark::DuplicateEnded,
            Answer::InFlight { .. } => Mark::Joined,
            Answer::Rejected(why) => match why {
                Rejection::Conflict => Mark::Conflict,
                Rejection::QueueFull => Mark::QueueFull,
                Rejection::Busy => Mark::Busy,
                Rejection::Storage => Mark::StorageRefused,
                Rejection::WrongSession => Mark::WrongSession,
                Rejection::Draining => Mark::Deferred,
                Rejection::SessionChanged => Mark::SessionChanged,
                Rejection::LaneClosed => Mark::LaneClosed,
                Rejection::SessionBusy => Mark::SessionBusy,
                Rejection::NotAsked => Mark::NotAsked,
                Rejection::AlreadyDecided => Mark::AlreadyDecided,
                Rejection::NotOwner => return,
            },
            Answer::Wait { result, .. } => match result {
                WaitResult::Ended { .. } => Mark::WaitEnded,
                WaitResult::TimedOut {
                    known: Some(true), ..
                } => Mark::WaitKnown,
                WaitResult::TimedOut {
                    known: Some(false), ..
                } => Mark::WaitUnknown,
                WaitResult::TimedOut { known: None, .. } => Mark::WaitUnsure,
                WaitResult::Pending => Mark::Pending,
                WaitResult::Draining => Mark::WaitDraining,
            },
            Answer::Aborted { runs } if !runs.is_empty() => Mark::AbortNamed,
            Answer::Reset { .. } => Mark::Reset,
            Answer::Queue { .. } => Mark::QueueTold,
            Answer::Decided { .. } => return,
            Answer::Accepted { place, .. } => match place {
                Place::Steering { .. } => Mark::Steering,
                Place::Interrupting { .. } => Mark::Interrupting,
                Place::Next | Place::Queued { .. } => return,
            },
            Answer::Aborted { .. } | Answer::Final { .. } => return,
        });
    }

    pub(crate) fn wrote(&mut self, wrote: &Wrote) {
        match wrote {
            Wrote::Row {
                kind: RowKind::Interrupted,
                ..
            } => self.hit(Mark::Interrupted),
            Wrote::Row {
                kind: RowKind::Dropped,
                ..
            } => self.hit(Mark::DroppedRow),
            Wrote::Saved { .. } => self.hit(Mark::Saved),
            Wrote::Row {
                kind: RowKind::Result(_, CallEnd::Stale),
                ..
            } => self.hit(Mark::Stale),
            Wrote::Receipt { terminal, .. } if terminal.outcome == Outcome::Superseded => {
                self.hit(Mark::Superseded);
            }
            _ => {}
        }
    }
}
