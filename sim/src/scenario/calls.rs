//! The scripted model: what each call says, and when.
//!
//! Owns the calls of one life of the process. An answer keeps its own time: what comes while
//! nobody listens comes all the same, so that it is there when somebody listens again.

use std::collections::{BTreeMap, VecDeque};

use tidegate_core::{
    CallFacts, CallId, Marker, ModelEnd, ModelFact, ProviderError, RetryAfter, RunId, Subject,
    Ticket,
};

use super::ast::{Beat, Ending, Scenario, Step};
use super::cast::{Cast, called};

/// What is answered where nothing is said.
const PLAIN: [Beat; 3] = [
    Beat::Begins(0),
    Beat::Chunks {
        count: 2,
        apart_ms: 10,
        bytes: 20,
    },
    Beat::Ends(Ending::Completes),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Fact(u8),
    Text(u64),
    Call(CallFacts),
    End(ModelEnd),
}

const ALIVE: What = What::Fact(0);
const STRUCTURE: What = What::Fact(1);
const REASONING: What = What::Fact(2);
const FINISHED: What = What::Fact(3);
const CALLING: What = What::Fact(4);

/// A call that went out.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) ticket: Ticket,
    /// Facts of an older version are void.
    pub(super) version: u32,
    over: bool,
    sent: u64,
    /// When the last fact was due.
    due: u64,
    left: VecDeque<(u64, What)>,
}

impl Call {
    /// When the next fact is due.
    pub(super) fn next_at(&self) -> Option<u64> {
        let &(gap, _) = self.left.front()?;
        (!self.over).then_some(self.due.saturating_add(gap))
    }

    /// The fact that is due.
    pub(super) fn take(&mut self, version: u32) -> Option<ModelFact> {
        if self.over || self.version != version {
            return None;
        }
        let (gap, what) = self.left.pop_front()?;
        self.due = self.due.saturating_add(gap);
        Some(match what {
            ALIVE => ModelFact::Alive,
            STRUCTURE => ModelFact::Structure,
            REASONING => ModelFact::Reasoning,
            CALLING => ModelFact::Calling,
            What::Call(facts) => ModelFact::Call(facts),
            What::Fact(_) => ModelFact::Finished,
            What::Text(bytes) => {
                self.sent = self.sent.saturating_add(bytes);
                ModelFact::Text { to: self.sent }
            }
            What::End(end) => {
                self.over = true;
                ModelFact::Ended(end)
            }
        })
    }
}

/// All calls, and what the scenario says of those to come.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) calls: Vec<Call>,
    answers: BTreeMap<(RunId, u16), Vec<Vec<Beat>>>,
    on_cancel: BTreeMap<RunId, Vec<Vec<Beat>>>,
    made: BTreeMap<(RunId, u16), usize>,
    cancelled: BTreeMap<RunId, usize>,
}

impl Calls {
    pub(super) fn new(scenario: &Scenario, cast: &Cast) -> Self {
        let mut calls = Self::default();
        for step in scenario.timeline.iter().flat_map(|block| &block.steps) {
            let scripts = match step {
                Step::Answer {
                    message, fallback, ..
                } => {
                    let whose = (cast.run(message), fallback.unwrap_or(0));
                    calls.answers.entry(whose).or_default()
                }
                Step::OnCancel { message, .. } => {
                    calls.on_cancel.entry(cast.run(message)).or_default()
                }
                _ => continue,
            };
            if let Step::Answer { beats, .. } | Step::OnCancel { beats, .. } = step {
                scripts.push(beats.clone());
            }
        }
        calls
    }

    /// A call goes out. Gives its index. What it is going to ask for gets its names.
    pub(super) fn start(
        &mut self,
        ticket: Ticket,
        (run, candidate): (RunId, u16),
        now: u64,
        cast: &mut Cast,
    ) -> usize {
        let own = self.answers.contains_key(&(run, candidate));
        let whose = (run, if own { candidate } else { 0 });
        let beats = which(&self.answers, &mut self.made, whose).unwrap_or(&PLAIN);
        for (call, name) in (0..).zip(called(beats)) {
            let attempt = ticket.attempt;
            cast.ask_for(CallId { run, attempt, call }, name);
        }
        self.calls.push(Call {
            ticket,
            version: 0,
            over: false,
            sent: 0,
            due: now,
            left: facts(beats),
        });
        self.calls.len() - 1
    }

    /// A call is told to stop. Gives its index, if its script changes by that.
    pub(super) fn cancel(&mut self, ticket: Ticket, now: u64) -> Option<usize> {
        let at = self
            .calls
            .iter()
            .rposition(|call| call.ticket == ticket && !call.over)?;
        let Subject::Run(run) = ticket.subject else {
            return None;
        };
        let beats = which(&self.on_cancel, &mut self.cancelled, run)
            .unwrap_or(&[Beat::Ends(Ending::Cancelled)]);
        if beats.is_empty() {
            return None;
        }
        let call = &mut self.calls[at];
        call.version += 1;
        call.due = now;
        call.left = facts(beats);
        Some(at)
    }

    /// The process is gone, and its calls with it.
    pub(super) fn died(&mut self) {
        for call in &mut self.calls {
            call.over = true;
        }
    }
}

/// The script of the next call: the last one stands for all further ones.
pub(super) fn which<'a, Of: Clone + Ord, Part>(
    scripts: &'a BTreeMap<Of, Vec<Vec<Part>>>,
    made: &mut BTreeMap<Of, usize>,
    of: Of,
) -> Option<&'a [Part]> {
    let made = made.entry(of.clone()).or_insert(0);
    let scripts = scripts.get(&of)?;
    let beats = scripts.get(*made).or_else(|| scripts.last())?;
    *made += 1;
    Some(beats)
}

/// The facts of an answer, each with the time since the one before it.
fn facts(beats: &[Beat]) -> VecDeque<(u64, What)> {
    let mut facts = VecDeque::new();
    let mut pause: u64 = 0;
    let mut retry_after = RetryAfter::Unsaid;
    let mut calls = Vec::new();
    let mut put = |pause: &mut u64, gap: u64, what| {
        facts.push_back((std::mem::take(pause).saturating_add(gap), what));
    };
    for beat in beats {
        match *beat {
            Beat::Accepts | Beat::Silence => {}
            Beat::Begins(ms) => put(&mut pause, ms, STRUCTURE),
            Beat::Chunks {
                count,
                apart_ms,
                bytes,
            } => (0..count).for_each(|_| put(&mut pause, apart_ms, What::Text(bytes))),
            Beat::Reasoning { every_ms, for_ms }
            | Beat::Arguments { every_ms, for_ms }
            | Beat::KeepAlives { every_ms, for_ms } => {
                let what = match beat {
                    Beat::Reasoning { .. } => REASONING,
                    Beat::Arguments { .. } => CALLING,
                    _ => ALIVE,
                };
                let times = for_ms.checked_div(every_ms).unwrap_or(1);
                (0..times).for_each(|_| put(&mut pause, every_ms, what));
                pause += for_ms.checked_rem(every_ms).unwrap_or(0);
            }
            Beat::Pause(ms) => pause = pause.saturating_add(ms),
            Beat::Finishes => put(&mut pause, 0, FINISHED),
            Beat::Asks(after) => retry_after = after,
            Beat::Calls { facts, .. } => {
                put(&mut pause, 0, CALLING);
                calls.push(facts);
            }
            Beat::Ends(ending) => {
                // A call is told whole with the answer; a broken answer asks for nothing.
                let whole = ending == Ending::Completes;
                for facts in calls.drain(..).filter(|_| whole) {
                    put(&mut pause, 0, What::Call(facts));
                }
                put(&mut pause, 0, What::End(end(ending, retry_after)));
            }
        }
    }
    facts
}

/// How the core is told of an ending.
pub(super) const fn end(ending: Ending, retry_after: RetryAfter) -> ModelEnd {
    let (status, marker) = match ending {
        Ending::Completes => return ModelEnd::Completed,
        Ending::Incomplete => return ModelEnd::Incomplete,
        Ending::Cancelled => return ModelEnd::Cancelled,
        Ending::Resets => (None, Marker::Transport),
        Ending::Refuses => (None, Marker::Connect),
        Ending::Status(status) => (Some(status), Marker::None),
        Ending::Fails(marker) => (None, marker),
    };
    // The provider's own words come with an answer, not with a broken line.
    let detail = matches!(ending, Ending::Status(_) | Ending::Fails(_));
    ModelEnd::Failed(ProviderError {
        status,
        marker,
        retry_after,
        detail,
    })
}

pub(super) const fn ending(end: ModelEnd) -> Ending {
    match end {
        ModelEnd::Completed => Ending::Completes,
        ModelEnd::Incomplete => Ending::Incomplete,
        ModelEnd::Cancelled => Ending::Cancelled,
        ModelEnd::Failed(error) => match (error.marker, error.status) {
            (Marker::Connect, _) => Ending::Refuses,
            (Marker::Transport, _) => Ending::Resets,
            (Marker::None, Some(status)) => Ending::Status(status),
            (marker, _) => Ending::Fails(marker),
        },
    }
}

/// When the provider wants to be asked again, as a failed call says; nothing where it does not.
pub(super) const fn asks(end: ModelEnd) -> Option<Beat> {
    match end {
        ModelEnd::Failed(error) => match error.retry_after {
            RetryAfter::Unsaid => None,
            said => Some(Beat::Asks(said)),
        },
        _ => None,
    }
}
