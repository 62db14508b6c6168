//! The modelled provider: answers, stalls, drips, breaks, and cancels that it ignores.
//!
//! Owns what a call will still say. A call's script is drawn when it goes out and replaced
//! when it is cancelled; each fact is put into the queue when the one before it has gone in,
//! so that a stream keeps its order whatever is drawn for an instant.

use tidegate_core::{
    Attempt, CallFacts, DEFAULT_BUDGET_MS, Fence, Marker, ModelEnd, ModelFact, ProviderError,
    RetryAfter, RunId, SessionId, Subject, Ticket,
};

use crate::choices::Choices;
use crate::world::swarm::{CANCELS, OnCancel, SCRIPTS, Script, Swarm};
use crate::world::tools::Tools;

/// A fact that a call will report, so long after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    after_ms: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Alive,
    Structure,
    Reasoning,
    Calling,
    Call(CallFacts),
    Text(u64),
    Finished,
    End(ModelEnd),
}

/// What a run can bear, as the world's provider knows it: what its stalls and the waits that
/// it asks for are measured by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) first_ms: u64,
    /// `None`: no limit.
    pub(crate) idle_ms: Option<u64>,
    /// Whether its provider itself has no idle limit.
    pub(crate) unbounded: bool,
    /// `None`: no limit.
    pub(crate) budget_ms: Option<u64>,
}

/// A model call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) ticket: Ticket,
    pub(crate) session: SessionId,
    /// The script's version: facts of an older one are void.
    pub(crate) version: u32,
    /// Whether its end was reported.
    pub(crate) over: bool,
    /// Whether nothing but a limit ends it.
    pub(crate) unbounded: bool,
    sent: u64,
    /// What is left of the script, last first.
    beats: Vec<Beat>,
}

impl Call {
    /// When the next fact is due after now; `None` if the call is silent from here on.
    pub(crate) fn next_in(&self) -> Option<u64> {
        if self.over {
            return None;
        }
        self.beats.last().map(|beat| beat.after_ms)
    }

    /// The fact that is due.
    pub(crate) fn take(&mut self) -> Option<ModelFact> {
        let beat = self.beats.pop()?;
        Some(match beat.what {
            What::Alive => ModelFact::Alive,
            What::Structure => ModelFact::Structure,
            What::Reasoning => ModelFact::Reasoning,
            What::Calling => ModelFact::Calling,
            What::Call(facts) => ModelFact::Call(facts),
            What::Text(bytes) => {
                self.sent += bytes;
                ModelFact::Text { to: self.sent }
            }
            What::Finished => ModelFact::Finished,
            What::End(end) => {
                self.over = true;
                ModelFact::Ended(end)
            }
        })
    }

    fn replace(&mut self, mut beats: Vec<Beat>) {
        beats.reverse();
        self.beats = beats;
        self.version += 1;
    }
}

const BROKEN: ModelEnd = ModelEnd::Failed(ProviderError {
    status: None,
    marker: Marker::Transport,
    retry_after: RetryAfter::Unsaid,
    detail: false,
});

/// All calls of one life of the process.
#[derive(Debug, Default)]
pub(crate) struct Provider {
    pub(crate) calls: Vec<Call>,
    /// The first call of this life.
    life_from: usize,
    /// From the heal on: who stays silent. Everybody else is answered.
    healed: Option<Vec<SessionId>>,
    /// How every call is answered until the outage is over, and whether it is one of all
    /// providers or of the first choice.
    pub(crate) outage: Option<(Script, bool)>,
    /// The longest script so far, in milliseconds.
    pub(crate) longest_ms: u64,
    /// The longest wait that it asked for and a run may keep, in milliseconds.
    pub(crate) asked_ms: u64,
}

impl Provider {
    /// A call goes out. Gives its index.
    pub(crate) fn start(
        &mut self,
        choices: &mut dyn Choices,
        swarm: &Swarm,
        (ticket, candidate): (Ticket, u16),
        fence: Fence,
        patience: Patience,
        tools: &mut Tools,
    ) -> usize {
        let session = fence.session;
        choices.begin("call");
        let script = match &self.healed {
            Some(victims) if victims.contains(&session) => Script::SilentFirst,
            Some(_) => Script::Answer,
            None => match (self.outage, swarm.temper(candidate)) {
                (Some((script, all)), _) if all || candidate == 0 => script,
                (_, Some(script)) => script,
                _ => SCRIPTS[choices.weighted(&swarm.scripts, "script")],
            },
        };
        let mut beats = draw(choices, swarm, script, patience);
        if beats.iter().any(|beat| beat.what == What::Structure) {
            let of = (fence.run, fence.attempt);
            let calls = tools.draw(choices, &swarm.tools, of);
            ask(choices, &mut beats, &calls);
        }
        choices.end();
        let asked = beats.last().map_or(0, asked_ms);
        self.asked_ms = self.asked_ms.max(asked);
        self.longest_ms = self.longest_ms.max(beats.iter().map(|b| b.after_ms).sum());
        beats.reverse();
        self.calls.push(Call {
            ticket,
            session,
            version: 0,
            over: false,
            unbounded: patience.unbounded,
            sent: 0,
            beats,
        });
        self.calls.len() - 1
    }

    /// A call is to stop. Gives its index, if it is known and not over.
    pub(crate) fn cancel(
        &mut self,
        choices: &mut dyn Choices,
        swarm: &Swarm,
        ticket: Ticket,
    ) -> Option<usize> {
        let index = self
            .calls
            .iter()
            .rposition(|call| call.ticket == ticket && !call.over)?;
        let way = match &self.healed {
            Some(victims) if victims.contains(&self.calls[index].session) => OnCancel::Never,
            Some(_) => OnCancel::Prompt,
            None => CANCELS[choices.weighted(&swarm.cancels, "on cancel")],
        };
        let end = |after_ms, end| Beat {
            after_ms,
            what: What::End(end),
        };
        let late = swarm.config.lane_grace_ms;
        let beats = match way {
            OnCancel::Prompt => vec![end(choices.pick(20, "cancel"), ModelEnd::Cancelled)],
            OnCancel::LateEnd => vec![end(choices.pick(2 * late, "cancel"), ModelEnd::Completed)],
            OnCancel::LateText => vec![
                Beat {
                    after_ms: choices.pick(late, "late text"),
                    what: What::Text(40),
                },
                Beat {
                    after_ms: choices.pick(late, "late text"),
                    what: What::Text(40),
                },
                end(choices.pick(late, "cancel"), ModelEnd::Cancelled),
            ],
            OnCancel::Never => Vec::new(),
        };
        self.calls[index].replace(beats);
        Some(index)
    }

    /// Faults stop: calls that only a missing limit keeps open break, the others go on as
    /// drawn. Gives the calls that break.
    pub(crate) fn heal(&mut self, victims: Vec<SessionId>) -> Vec<usize> {
        self.healed = Some(victims);
        let mut broken = Vec::new();
        for (index, call) in self.calls.iter_mut().enumerate() {
            if call.unbounded && !call.over {
                call.replace(vec![Beat {
                    after_ms: 0,
                    what: What::End(BROKEN),
                }]);
                broken.push(index);
            }
        }
        broken
    }

    /// Whether this life of the process called for an attempt.
    pub(crate) fn has_called(&self, run: RunId, attempt: Attempt) -> bool {
        let of_attempt = |call: &Call| {
            call.ticket.subject == Subject::Run(run) && call.ticket.attempt == attempt
        };
        self.calls.iter().skip(self.life_from).any(of_attempt)
    }

    /// The process is gone, its calls with it.
    pub(crate) fn crash(&mut self) {
        self.life_from = self.calls.len();
        for call in &mut self.calls {
            call.over = true;
            call.version += 1;
        }
    }
}

const fn beat(after_ms: u64, what: What) -> Beat {
    Beat { after_ms, what }
}

const DONE: What = What::End(ModelEnd::Completed);

fn draw(choices: &mut dyn Choices, swarm: &Swarm, script: Script, patience: Patience) -> Vec<Beat> {
    let idle = patience.idle_ms.unwrap_or(60_000);
    let mut beats = Vec::new();
    match script {
        Script::SilentFirst => return beats,
        Script::Drip => return drip(choices, patience.first_ms, idle),
        Script::AliveOnly => {
            for _ in 0..choices.between(1, 20, "pings") {
                beats.push(beat(choices.between(500, 15_000, "ping gap"), What::Alive));
            }
            return beats;
        }
        Script::Error | Script::Refused | Script::Limited | Script::Denied => {
            let end = What::End(ModelEnd::Failed(error(choices, swarm, script, patience)));
            return vec![beat(choices.pick(2_000, "end"), end)];
        }
        Script::Flood => {
            for _ in 0..choices.between(2, 30, "flood") {
                beats.push(beat(choices.pick(3, "flood gap"), What::Text(300)));
            }
        }
        Script::Reasoning => {
            for _ in 0..choices.between(1, 6, "reasoning") {
                let gap = choices.pick(idle.min(4_000), "reasoning gap");
                beats.push(beat(gap, What::Reasoning));
            }
            text(choices, swarm, &mut beats);
        }
        Script::FinishedOpen => {
            text(choices, swarm, &mut beats);
            beats.push(beat(choices.pick(50, "finish"), What::Finished));
            return beats;
        }
        _ => text(choices, swarm, &mut beats),
    }
    let stall = match script {
        Script::SilentLater => return beats,
        Script::StallUnder => idle.saturating_sub(1),
        Script::StallExact => idle,
        Script::StallOver => idle + 1,
        Script::Reset | Script::Incomplete => {
            let broken = match script {
                Script::Reset => BROKEN,
                _ => ModelEnd::Incomplete,
            };
            beats.push(beat(choices.pick(50, "end"), What::End(broken)));
            return beats;
        }
        _ => {
            beats.push(beat(choices.pick(20, "end"), DONE));
            return beats;
        }
    };
    beats.extend([beat(stall, What::Text(5)), beat(stall, DONE)]);
    beats
}

/// Puts calls before the end of an answer, or their arguments before its silence. One that breaks
/// off has told them too, at times: they count for nothing.
fn ask(choices: &mut dyn Choices, beats: &mut Vec<Beat>, calls: &[CallFacts]) {
    if calls.is_empty() {
        return;
    }
    let text = |beat: &Beat| matches!(beat.what, What::Text(_));
    if choices.chance(1, 2, "no text") {
        beats.retain(|beat| !text(beat));
    }
    let last = match beats.last() {
        Some(Beat {
            what: What::End(_) | What::Finished,
            ..
        }) => beats.pop(),
        _ => None,
    };
    for _ in 0..choices.between(1, 3, "fragments") {
        beats.push(beat(choices.pick(200, "fragment"), What::Calling));
    }
    let whole = matches!(
        last,
        Some(Beat {
            what: What::End(_),
            ..
        })
    );
    if whole {
        beats.extend(calls.iter().map(|&facts| beat(0, What::Call(facts))));
    }
    beats.extend(last);
}

/// Just enough progress to stay alive, for a while.
fn drip(choices: &mut dyn Choices, first_ms: u64, idle: u64) -> Vec<Beat> {
    let mut beats = vec![beat(choices.pick(first_ms, "first"), What::Structure)];
    for _ in 0..choices.between(2, 5, "drips") {
        beats.push(beat(choices.pick(idle, "drip gap"), What::Text(3)));
    }
    beats.push(beat(choices.pick(idle, "end"), DONE));
    beats
}

fn text(choices: &mut dyn Choices, swarm: &Swarm, beats: &mut Vec<Beat>) {
    let after_ms = choices.pick(1_500, "first text");
    beats.push(Beat {
        after_ms,
        what: What::Structure,
    });
    for _ in 0..choices.between(1, swarm.chunks, "chunks") {
        let after_ms = choices.pick(swarm.chunk_gap_ms, "chunk gap");
        let what = match choices.pick(12, "chunk") {
            11 => What::Alive,
            _ => What::Text(choices.between(1, 40, "bytes")),
        };
        beats.push(Beat { after_ms, what });
    }
}

fn error(
    choices: &mut dyn Choices,
    swarm: &Swarm,
    script: Script,
    patience: Patience,
) -> ProviderError {
    let (status, marker) = match script {
        Script::Refused => (None, Marker::Connect),
        Script::Limited => (Some(429), Marker::RateLimit),
        Script::Denied => (Some(401), Marker::Auth),
        _ => match choices.pick(9, "status") {
            0 => (Some(500), Marker::None),
            1 => (Some(429), Marker::RateLimit),
            2 => (Some(529), Marker::Overloaded),
            3 => (Some(401), Marker::Auth),
            4 => (Some(400), Marker::ContextOverflow),
            5 => (Some(200), Marker::NotAStream),
            6 => (Some(408), Marker::None),
            7 => (Some(400), Marker::Format),
            _ => (Some(429), Marker::UsageWindow),
        },
    };
    let retry_after = match script {
        Script::Refused | Script::Denied => RetryAfter::Unsaid,
        _ => retry_after(choices, swarm, patience),
    };
    let detail = choices.chance(1, 2, "detail");
    ProviderError {
        status,
        marker,
        retry_after,
        detail,
    }
}

/// When a provider wants to be asked again: mostly it does not say.
fn retry_after(choices: &mut dyn Choices, swarm: &Swarm, patience: Patience) -> RetryAfter {
    let beyond = |base: u64, more: u64| RetryAfter::Ms(base.saturating_add(1 + more));
    match choices.pick(10, "retry after") {
        0..=4 => RetryAfter::Unsaid,
        5 | 6 => RetryAfter::Ms(choices.pick(3_000, "retry after")),
        7 => {
            let more = choices.pick(5_000, "retry after");
            beyond(swarm.config.recovery.window_ms, more)
        }
        8 => {
            let more = choices.pick(60_000, "retry after");
            beyond(patience.budget_ms.unwrap_or(DEFAULT_BUDGET_MS), more)
        }
        _ => RetryAfter::Unrepresentable,
    }
}

/// How long a run may have to wait after a call that ends so.
const fn asked_ms(beat: &Beat) -> u64 {
    match beat.what {
        What::End(ModelEnd::Failed(error)) => match error.retry_after {
            RetryAfter::Ms(ms) => ms,
            RetryAfter::Unsaid | RetryAfter::Unrepresentable => 0,
        },
        _ => 0,
    }
}
