//! What was told of one session lately: the numbers of its events, the text of its runs at
//! work, and a bounded memory of what was told, from which a client catches up.
//!
//! Every `agent` and `chat` payload of a session has one number. Text is not kept step by
//! step: a step remembers only how long the text was, and a client that missed several gets
//! them in one. What falls off the far end is gone; who was further back begins anew.

mod missed;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tidegate_driver::{Published, RunEvent};
use tidegate_wire::{InFlightRun, MissedEvent, event_name};

use crate::limits::{LOG_BYTES, LOG_EVENTS, LOGS_BYTES};
use crate::rounds::{self, Round};
use crate::tools;
use crate::words::{self, About};

/// What an entry costs beside its payload, in bytes.
const ENTRY_BYTES: usize = 128;

/// An event as it is told: its name and the text of its payload.
pub(crate) type Told = (&'static str, Arc<str>);

/// What was told of one session.
#[derive(Debug)]
pub(crate) struct SessionLog {
    last: u64,
    ring: VecDeque<Entry>,
    bytes: usize,
    runs: BTreeMap<Arc<str>, LiveRun>,
    /// Requests under way that may be accepted as these runs.
    expected: BTreeMap<Arc<str>, Expected>,
    /// Readings under way that must not lose their place.
    pub holds: usize,
    /// Connections that listen to this session.
    pub subscribers: usize,
    /// How often rows may have come to the transcript since the log began.
    pub appended: u64,
    /// Runs whose rows are to be read and told.
    pub dirty: BTreeSet<Arc<str>>,
    /// How far rows were told to those who hear of all sessions: generation and number.
    pub rows: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Expected {
    requests: usize,
    spoken: bool,
}

#[derive(Debug, Default)]
struct LiveRun {
    start: Option<Arc<Published>>,
    text: Option<Arc<Published>>,
    /// How many bytes of its text were told.
    told: usize,
    /// Why its next attempt is not there yet.
    step: Option<Step>,
    /// The tool calls of its answer.
    round: Round,
}

/// A model is asked again, or another one: what stands until the next attempt begins.
#[derive(Debug)]
struct Step {
    event: Arc<Published>,
    /// The number of the last event before it.
    behind: u64,
    /// Connections from this number on were not there when it was told.
    newcomers: u64,
}

#[derive(Debug)]
struct Entry {
    seq: u64,
    cost: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Said(Told),
    Ended {
        told: Told,
        run: Arc<str>,
        text: Option<Arc<str>>,
    },
    Grew(Grew),
    /// The first tool call of an answer, whose text is whole with it. What grows behind it is
    /// another text.
    Called {
        told: Told,
        run: Arc<str>,
        text: Option<Arc<Published>>,
    },
    /// A step of a call's output.
    Output {
        run: Arc<str>,
        id: Arc<str>,
    },
}

/// A step of a run's text.
#[derive(Clone, Debug)]
struct Grew {
    name: &'static str,
    about: About,
    /// How long the text was before; `None` if it is no continuation.
    before: Option<usize>,
    after: usize,
}

impl SessionLog {
    /// An empty log, whose first event has the number behind `floor`.
    pub fn new(floor: u64) -> Self {
        Self {
            last: floor,
            ring: VecDeque::new(),
            bytes: 0,
            runs: BTreeMap::new(),
            expected: BTreeMap::new(),
            holds: 0,
            subscribers: 0,
            appended: 0,
            dirty: BTreeSet::new(),
            rows: None,
        }
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether nobody needs it: no run is at work, nobody listens, reads or is about to.
    pub fn is_idle(&self) -> bool {
        self.runs.is_empty()
            && self.expected.is_empty()
            && self.holds == 0
            && self.subscribers == 0
            && self.dirty.is_empty()
    }

    /// Forgets what it holds of a session about which events were lost.
    pub fn forget(&mut self, total: &mut usize) {
        // A number that nobody was told: whoever was here is no longer up to date.
        self.last += 1;
        *total -= self.bytes;
        self.bytes = 0;
        self.ring.clear();
        self.runs.clear();
        // An end may be among what was lost: none of these is known to be at work.
        for expected in self.expected.values_mut() {
            expected.spoken = true;
        }
    }

    /// The runs that were told of and have not ended.
    pub fn live(&self) -> Vec<String> {
        self.runs.keys().map(ToString::to_string).collect()
    }

    /// A request is under way that may be accepted as this run.
    pub fn expect(&mut self, run: &Arc<str>) {
        self.expected.entry(Arc::clone(run)).or_default().requests += 1;
    }

    /// That request is answered or gone.
    pub fn unexpect(&mut self, run: &str) {
        if let Some(expected) = self.expected.get_mut(run) {
            expected.requests -= 1;
            if expected.requests == 0 {
                self.expected.remove(run);
            }
        }
    }

    /// A run was accepted. `false` if events of it were told already.
    pub fn accepted(&mut self, run: &Arc<str>) -> bool {
        if self.expected.get(run).is_some_and(|it| it.spoken) {
            return false;
        }
        self.runs.entry(Arc::clone(run)).or_default();
        true
    }

    /// Takes an event in and gives its payloads. Connections from number `newcomers` on are
    /// not there yet; `total` counts the bytes of all logs.
    pub fn take(&mut self, event: &Arc<Published>, newcomers: u64, total: &mut usize) -> Vec<Told> {
        let about = About::published(event);
        if let Some(expected) = self.expected.get_mut(&event.run_key) {
            expected.spoken = true;
        }
        match &event.event {
            RunEvent::Text { delta, text } => {
                return self.grew(event, &about, (delta, text), total);
            }
            RunEvent::Start { .. } => {
                let run = self.runs.entry(Arc::clone(&event.run_key)).or_default();
                run.start = Some(Arc::clone(event));
                run.text = None;
                run.step = None;
                run.round = Round::default();
                let had_text = std::mem::take(&mut run.told) > 0;
                self.appended += 1;
                let mut told = self.tell(&about, words::said(&event.event), total);
                if had_text {
                    told.extend(self.tell_text(&about, "", None, total));
                }
                return told;
            }
            RunEvent::End(finished) => {
                self.runs.remove(&event.run_key);
                self.appended += 1;
                let told = words::payloads(&about, words::said(&event.event), self.last + 1);
                let text = finished.turn.is_none().then(|| finished.reply.clone());
                for one in &told {
                    let ended = Kind::Ended {
                        told: one.clone(),
                        run: Arc::clone(&event.run_key),
                        text: text.clone().flatten(),
                    };
                    self.push(ended, total);
                }
                return told;
            }
            RunEvent::Bound { .. } => {
                self.runs.entry(Arc::clone(&event.run_key)).or_default();
                self.appended += 1;
            }
            RunEvent::Retrying { .. } | RunEvent::Fallback { .. } => {
                let run = self.runs.entry(Arc::clone(&event.run_key)).or_default();
                run.step = Some(Step {
                    event: Arc::clone(event),
                    behind: self.last,
                    newcomers,
                });
            }
            // No further attempt comes.
            RunEvent::Finishing { .. } => {
                let run = self.runs.entry(Arc::clone(&event.run_key)).or_default();
                run.step = None;
            }
            RunEvent::ToolStart { .. }
            | RunEvent::ToolOutput { .. }
            | RunEvent::ToolAsked(_)
            | RunEvent::ToolDecided { .. }
            | RunEvent::ToolEnd { .. } => {
                return self.called(event, &about, newcomers, total);
            }
            RunEvent::Waited { .. } | RunEvent::Seen => {
                self.runs.entry(Arc::clone(&event.run_key)).or_default();
            }
        }
        self.tell(&about, words::said(&event.event), total)
    }

    /// Takes an event of a tool call in.
    fn called(
        &mut self,
        event: &Arc<Published>,
        about: &About,
        newcomers: u64,
        total: &mut usize,
    ) -> Vec<Told> {
        let behind = self.last;
        let run = self.runs.entry(Arc::clone(&event.run_key)).or_default();
        let is_first = !run.round.is_open();
        if is_first {
            (run.round.behind, run.round.newcomers) = (behind, newcomers);
        }
        run.round.take(event);
        let text = run.text.clone().filter(|_| is_first);
        let mut said = words::said(&event.event);
        let grew = match (&event.event, rounds::id_of(&event.event)) {
            (RunEvent::ToolOutput { .. }, Some(id)) => run.round.output(id).zip(Some(id)),
            _ => None,
        };
        if let Some(((_, step), _)) = &grew {
            said.0 = tidegate_wire::AgentData::Tool(step.clone());
        }
        // A row may have come: that of the answer, with the first of its calls or behind it.
        self.appended += u64::from(brings_rows(&event.event));
        let mut told = words::payloads(about, said, self.last + 1);
        for one in &told {
            let run = Arc::clone(&event.run_key);
            let kind = match (&grew, is_first) {
                (Some((_, id)), _) => Kind::Output {
                    run,
                    id: Arc::clone(id),
                },
                (None, true) => Kind::Called {
                    told: one.clone(),
                    run,
                    text: text.clone(),
                },
                (None, false) => Kind::Said(one.clone()),
            };
            self.push(kind, total);
        }
        if let RunEvent::ToolEnd { .. } = &event.event
            && let Some(step) = tools::approval(&event.event)
        {
            told.extend(self.tell(about, (step, None), total));
        }
        told
    }

    /// Tells something that the gateway says of itself.
    pub fn tell(
        &mut self,
        about: &About,
        said: (tidegate_wire::AgentData, Option<tidegate_wire::ChatState>),
        total: &mut usize,
    ) -> Vec<Told> {
        let told = words::payloads(about, said, self.last + 1);
        for one in &told {
            self.push(Kind::Said(one.clone()), total);
        }
        told
    }

    /// Tells a conversation something that belongs to no run.
    pub fn tell_chat(
        &mut self,
        about: &About,
        state: tidegate_wire::ChatState,
        total: &mut usize,
    ) -> Told {
        let chat = about.chat(state, self.last + 1);
        let told = (event_name::CHAT, words::written(&chat));
        self.push(Kind::Said(told.clone()), total);
        told
    }

    fn grew(
        &mut self,
        event: &Arc<Published>,
        about: &About,
        (delta, text): (&str, &str),
        total: &mut usize,
    ) -> Vec<Told> {
        let run = self.runs.entry(Arc::clone(&event.run_key)).or_default();
        let goes_on = run.told + delta.len() == text.len();
        let before = goes_on.then_some(run.told);
        run.text = Some(Arc::clone(event));
        run.told = text.len();
        self.tell_text(about, text, before, total)
    }

    /// Tells a step of a run's text.
    fn tell_text(
        &mut self,
        about: &About,
        text: &str,
        before: Option<usize>,
        total: &mut usize,
    ) -> Vec<Told> {
        let said = words::grown(text, before, about.at);
        let told = words::payloads(about, said, self.last + 1);
        for (name, _) in &told {
            let grew = Grew {
                name,
                about: about.clone(),
                before,
                after: text.len(),
            };
            self.push(Kind::Grew(grew), total);
        }
        told
    }

    fn push(&mut self, kind: Kind, total: &mut usize) {
        self.last += 1;
        let cost = ENTRY_BYTES
            + match &kind {
                Kind::Said((_, payload)) => payload.len(),
                Kind::Ended { told, text, .. } => {
                    told.1.len() + text.as_ref().map_or(0, |text| text.len())
                }
                Kind::Called { told, text, .. } => {
                    told.1.len() + text.as_ref().map_or(0, |text| text_of(text).len())
                }
                Kind::Grew(_) | Kind::Output { .. } => 0,
            };
        let entry = Entry {
            seq: self.last,
            cost,
            kind,
        };
        self.ring.push_back(entry);
        self.bytes += cost;
        *total += cost;
        while self.ring.len() > LOG_EVENTS || self.bytes > LOG_BYTES || *total > LOGS_BYTES {
            let Some(oldest) = self.ring.pop_front() else {
                return;
            };
            self.bytes -= oldest.cost;
            *total -= oldest.cost;
        }
    }

    /// The runs at work from their beginning, for a client that begins anew.
    pub fn whole(&self) -> Vec<MissedEvent> {
        let mut events = Vec::new();
        for run in self.runs.values() {
            if let Some(start) = &run.start {
                let (agent, _) = words::said(&start.event);
                let payload = About::published(start).agent(agent, self.last);
                events.push(again(&(event_name::AGENT, words::written(&payload))));
            }
            if let Some(text) = &run.text {
                let about = About::published(text);
                for name in [event_name::AGENT, event_name::CHAT] {
                    events.push(step(name, &about, text_of(text), None, self.last));
                }
            }
            events.extend(self.round_again(&run.round).iter().map(again));
            if let Some(step) = &run.step {
                events.extend(self.told_again(step).iter().map(again));
            }
        }
        events
    }

    /// Where a run stands that waits for its next attempt or for its tool calls, for a
    /// connection that was not there when it was told; with the number of the event before.
    pub fn stand_for(&self, run: &str, listener: u64) -> Option<(u64, Vec<Told>)> {
        let live = self.runs.get(run)?;
        if live.round.is_at_work() {
            let round = &live.round;
            let is_new = listener >= round.newcomers;
            return is_new.then(|| (round.behind, self.round_again(round)));
        }
        let step = live.step.as_ref()?;
        (listener >= step.newcomers).then(|| (step.behind, self.told_again(step)))
    }

    fn round_again(&self, round: &Round) -> Vec<Told> {
        let steps = round.whole().into_iter();
        let told = steps.map(|(about, data)| {
            let name = words::name_of(&data);
            (name, words::written(&about.agent(data, self.last)))
        });
        told.collect()
    }

    fn told_again(&self, step: &Step) -> Vec<Told> {
        let about = About::published(&step.event);
        let (agent, chat) = words::said(&step.event.event);
        let agent = words::written(&about.agent(agent, self.last));
        let chat = chat.map(|chat| words::written(&about.chat(chat, self.last)));
        let chat = chat.map(|chat| (event_name::CHAT, chat));
        [(event_name::AGENT, agent)]
            .into_iter()
            .chain(chat)
            .collect()
    }

    /// The number of the last event of which [`in_flight`](Self::in_flight) has all: a step at
    /// which a run waits, and its tool calls, are told behind it.
    pub fn shown(&self) -> u64 {
        let steps = self.runs.values().filter_map(|run| {
            let calls = run.round.is_at_work().then_some(run.round.behind);
            calls.or(run.step.as_ref().map(|step| step.behind))
        });
        let Some(behind) = steps.min() else {
            return self.last;
        };
        let later = self.ring.iter().rev();
        let mut later = later.take_while(|entry| entry.seq > behind);
        let first = self.ring.front().map_or(self.last + 1, |entry| entry.seq);
        let all_said = later.all(|entry| !matches!(entry.kind, Kind::Grew(_) | Kind::Ended { .. }));
        if all_said && first <= behind + 1 {
            behind
        } else {
            self.last
        }
    }

    /// The run at work, as far as it was told.
    pub fn in_flight(&self) -> Option<InFlightRun> {
        let (run, live) = self.runs.iter().find(|(_, live)| live.start.is_some())?;
        let started_at = live.start.as_ref().and_then(|start| match &start.event {
            RunEvent::Start { at, .. } => Some(at.0),
            _ => None,
        });
        Some(InFlightRun {
            run_id: run.to_string(),
            text: live.text.as_deref().map_or("", text_of).to_owned(),
            started_at,
        })
    }
}

/// Whether rows may have come to the transcript by an event of a tool call.
pub(crate) const fn brings_rows(event: &RunEvent) -> bool {
    matches!(
        event,
        RunEvent::ToolStart { .. } | RunEvent::ToolAsked(_) | RunEvent::ToolEnd { .. }
    )
}

fn text_of(event: &Published) -> &str {
    match &event.event {
        RunEvent::Text { text, .. } => text,
        _ => "",
    }
}

/// A text as one step.
fn step(name: &str, about: &About, text: &str, known: Option<usize>, seq: u64) -> MissedEvent {
    let (agent, chat) = words::grown(text, known, about.at);
    let payload = match chat {
        Some(chat) if name == event_name::CHAT => words::written(&about.chat(chat, seq)),
        _ => words::written(&about.agent(agent, seq)),
    };
    again(&(
        if name == event_name::CHAT {
            event_name::CHAT
        } else {
            event_name::AGENT
        },
        payload,
    ))
}

fn again((name, payload): &Told) -> MissedEvent {
    MissedEvent {
        event: (*name).to_owned(),
        payload: serde_json::from_str(payload).unwrap_or(Value::Null),
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
