//! The modelled tools and the people who are asked: what starts, how it ends, who decides.
//!
//! Owns what a started call will still report, and what people will still say. A tool is outside
//! of the process: it may go on when that dies, but then nobody hears of its end. What it did,
//! it did; how often each call was started is counted by a checker that outlives the process.

use std::collections::BTreeMap;

use tidegate_core::{
    Attempt, CallFacts, CallId, CallKind, Decision, Input, RequestId, RunId, Ticket, ToolEnd,
    ToolFact,
};

use super::queue::Event;
use super::swarm::tools::{OnStop, PEOPLE, Person, STOPS, ToolSwarm, WAYS, Way};
use super::{Phase, World};
use crate::choices::Choices;
use crate::marks::Mark;

/// High bits of the names of requests that decide.
const DECIDES: u128 = 1 << 102;

/// A started call.
#[derive(Debug)]
pub(crate) struct Task {
    ticket: Ticket,
    /// Facts of an older version are void.
    version: u32,
    /// Whether its end was reported, or nobody hears of it.
    over: bool,
    /// Its process is dead.
    orphan: bool,
    sent: u64,
    /// What is left, last first: so long after the one before.
    beats: Vec<(u64, Beat)>,
}

#[derive(Clone, Copy, Debug)]
enum Beat {
    Output(u64),
    End(ToolEnd),
}

/// All tools. See the module.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    tasks: Vec<Task>,
    /// What each answer asked for.
    asked: BTreeMap<(RunId, Attempt), Vec<CallFacts>>,
    /// How many answers of a run asked.
    rounds: BTreeMap<RunId, u64>,
    /// Requests that decided.
    decisions: u64,
    /// Calls of which a question was shown, for those who answer another one.
    questions: Vec<CallId>,
    healed: bool,
}

/// Answers of a run that ask, beyond which a provider of the world asks no more. More than some
/// seeds allow.
const MOST_ROUNDS: u64 = 6;

impl Tools {
    /// The calls that an answer asks for; none, if it does not.
    pub(super) fn draw(
        &mut self,
        choices: &mut dyn Choices,
        swarm: &ToolSwarm,
        (run, attempt): (RunId, Attempt),
    ) -> Vec<CallFacts> {
        if swarm.asks == 0 {
            return Vec::new();
        }
        let rounds = self.rounds.entry(run).or_default();
        let wants = choices.chance(swarm.asks, 8, "asks");
        if !wants || *rounds >= MOST_ROUNDS || self.healed && *rounds >= 2 {
            return Vec::new();
        }
        *rounds += 1;
        let calls = match choices.chance(1, 16, "many calls") {
            true => choices.between(1, 40, "calls"),
            false => choices.between(1, swarm.calls, "calls"),
        };
        let facts: Vec<CallFacts> = (0..calls).map(|_| call(choices, swarm)).collect();
        self.asked.insert((run, attempt), facts.clone());
        facts
    }

    fn limit_ms(&self, call: CallId, default_ms: u64) -> u64 {
        let facts = self.asked.get(&(call.run, call.attempt));
        let facts = facts.and_then(|facts| facts.get(usize::from(call.call)));
        facts.and_then(|it| it.timeout_ms).unwrap_or(default_ms)
    }

    fn start(
        &mut self,
        choices: &mut dyn Choices,
        swarm: &ToolSwarm,
        ticket: Ticket,
        limit_ms: u64,
    ) -> usize {
        choices.begin("tool");
        let way = match self.healed {
            true => Way::Ok,
            false => WAYS[choices.weighted(&swarm.ways, "tool way")],
        };
        let mut beats = work(choices, way, limit_ms);
        choices.end();
        beats.reverse();
        self.tasks.push(Task {
            ticket,
            version: 0,
            over: false,
            orphan: false,
            sent: 0,
            beats,
        });
        self.tasks.len() - 1
    }

    fn stop(
        &mut self,
        choices: &mut dyn Choices,
        swarm: &ToolSwarm,
        ticket: Ticket,
        cancel_ms: u64,
    ) -> Option<usize> {
        let live = |task: &Task| task.ticket == ticket && !task.over && !task.orphan;
        let index = self.tasks.iter().rposition(live)?;
        let way = match self.healed {
            true => OnStop::Prompt,
            false => STOPS[choices.weighted(&swarm.stops, "tool stop")],
        };
        let end = |ms, end| vec![(ms, Beat::End(end))];
        let beats = match way {
            OnStop::Prompt => end(choices.pick(20, "tool stop"), ToolEnd::Cancelled),
            OnStop::EndsItself => match choices.chance(1, 2, "tool stop") {
                true => end(0, ToolEnd::Failed),
                false => end(0, ToolEnd::Ok),
            },
            OnStop::Late => end(choices.pick(2 * cancel_ms, "tool stop"), ToolEnd::Cancelled),
            OnStop::AtBound => end(cancel_ms, ToolEnd::Cancelled),
            OnStop::Never => Vec::new(),
        };
        let task = &mut self.tasks[index];
        task.beats = beats;
        task.version += 1;
        Some(index)
    }

    /// The process is gone. Its tools go with it, or go on unheard.
    pub(super) fn crash(&mut self, orphans: bool) {
        for task in self.tasks.iter_mut().filter(|task| !task.over) {
            match orphans {
                true => task.orphan = true,
                false => {
                    task.over = true;
                    task.version += 1;
                }
            }
        }
    }

    /// Faults stop: tools end soon and stop when they are told to.
    pub(super) fn heal(&mut self) {
        self.healed = true;
    }

    /// A question that was asked once, or a call of which none was.
    pub(super) fn any_call(&self, choices: &mut dyn Choices, run: RunId) -> CallId {
        let late = self.questions.len().saturating_sub(4);
        let known = self.questions.get(late..).unwrap_or_default();
        let at = usize::try_from(choices.pick(known.len() as u64 + 1, "question"));
        let known = known.get(at.unwrap_or(0)).copied();
        known.unwrap_or(CallId {
            run,
            attempt: Attempt(1),
            call: 0,
        })
    }

    /// The next name of a request that decides.
    pub(super) fn request(&mut self) -> RequestId {
        self.decisions += 1;
        RequestId::from_u128(DECIDES | u128::from(self.decisions))
    }
}

fn call(choices: &mut dyn Choices, swarm: &ToolSwarm) -> CallFacts {
    let odd = swarm.odd && choices.chance(1, 4, "odd call");
    CallFacts {
        kind: match odd {
            true if choices.chance(1, 2, "odd call") => CallKind::NoSuchTool,
            true => CallKind::BadArguments,
            false => CallKind::Ready,
        },
        guarded: swarm.guarded > 0 && choices.chance(swarm.guarded, 4, "guarded"),
        timeout_ms: match choices.pick(4, "call limit") {
            2 => Some(choices.between(1, 2_000, "call limit")),
            3 => Some(choices.between(1, 90_000, "call limit")),
            _ => None,
        },
    }
}

fn work(choices: &mut dyn Choices, way: Way, limit_ms: u64) -> Vec<(u64, Beat)> {
    let mut beats = Vec::new();
    let talks = matches!(way, Way::Talks | Way::TalksForEver);
    let quiet = !talks && choices.chance(1, 2, "quiet tool");
    if !quiet {
        for _ in 0..choices.between(1, if talks { 8 } else { 2 }, "pieces") {
            let ms = choices.pick((limit_ms / 10).clamp(1, 500), "piece");
            beats.push((ms, Beat::Output(choices.between(1, 60, "piece"))));
        }
    }
    let so_far: u64 = beats.iter().map(|beat| beat.0).sum();
    let until = |ms: u64| ms.saturating_sub(so_far);
    let end = |ms, end| (ms, Beat::End(end));
    beats.push(match way {
        Way::Never | Way::TalksForEver => return beats,
        Way::Ok | Way::Talks => end(choices.pick(3_000, "tool end"), ToolEnd::Ok),
        Way::Failed => end(choices.pick(3_000, "tool end"), ToolEnd::Failed),
        Way::Panics => end(choices.pick(100, "tool end"), ToolEnd::Cancelled),
        Way::JustUnder => end(until(limit_ms.saturating_sub(1)), ToolEnd::Ok),
        Way::JustAt => end(until(limit_ms), ToolEnd::Ok),
        Way::JustOver => end(until(limit_ms + 1), ToolEnd::Ok),
    });
    beats
}

impl World<'_> {
    /// A call starts: from here on it may have done what it does.
    pub(super) fn start_tool(&mut self, ticket: Ticket, call: CallId) {
        let limit_ms = self
            .tools
            .limit_ms(call, self.swarm.config.tools.timeout_ms);
        let swarm = &self.swarm.tools;
        let task = self.tools.start(self.choices, swarm, ticket, limit_ms);
        self.next_beat(task);
    }

    /// A call is to stop.
    pub(super) fn stop_tool(&mut self, ticket: Ticket) {
        let cancel_ms = self.swarm.config.tools.cancel_ms;
        let swarm = &self.swarm.tools;
        if let Some(task) = self.tools.stop(self.choices, swarm, ticket, cancel_ms) {
            self.next_beat(task);
        }
    }

    fn next_beat(&mut self, task: usize) {
        let Some(of) = self.tools.tasks.get(task) else {
            return;
        };
        let version = of.version;
        if let Some(&(ms, _)) = of.beats.last() {
            self.after(ms, Event::Tool { task, version });
        }
    }

    /// The next thing that a tool does.
    pub(super) fn tool_beat(&mut self, index: usize, version: u32) {
        let Some(task) = self.tools.tasks.get_mut(index) else {
            return;
        };
        if task.over || task.version != version {
            return;
        }
        let Some((_, beat)) = task.beats.pop() else {
            return;
        };
        let (ticket, orphan) = (task.ticket, task.orphan);
        let fact = match beat {
            Beat::Output(bytes) => {
                task.sent += bytes;
                ToolFact::Output { to: task.sent }
            }
            Beat::End(end) => {
                task.over = true;
                ToolFact::Ended(end)
            }
        };
        match orphan {
            true if matches!(fact, ToolFact::Ended(_)) => self.marks.hit(Mark::Orphan),
            true => {}
            false => self.feed(Input::Tool { ticket, fact }),
        }
        let task = self.tools.tasks.get(index);
        if task.is_some_and(|task| !task.over && task.version == version) {
            self.next_beat(index);
        }
    }

    /// A question is shown: people will say something, or nothing.
    pub(super) fn ask_people(&mut self, call: CallId) {
        self.tools.questions.push(call);
        let approval_ms = self.swarm.config.tools.approval_ms;
        self.choices.begin("person");
        let person = match self.phase {
            Phase::Work => PEOPLE[self.choices.weighted(&self.swarm.tools.people, "person")],
            Phase::Healed { .. } => Person::Allows,
        };
        let soon = self.choices.pick(4_000, "decides after");
        let late = self.choices.pick(2 * approval_ms, "decides after");
        let (mut first, mut other) = (Decision::AllowOnce, Decision::Deny);
        if self.choices.chance(1, 3, "denies") {
            std::mem::swap(&mut first, &mut other);
        }
        self.choices.end();
        let words = match person {
            Person::Allows => vec![(soon, Decision::AllowOnce)],
            Person::Denies => vec![(soon, Decision::Deny)],
            Person::AllowsLate => vec![(late, Decision::AllowOnce)],
            Person::Never => Vec::new(),
            Person::Repeats => vec![(soon, first), (soon + soon / 8, first)],
            Person::ChangesMind => vec![(soon, first), (soon + soon / 8, other)],
            Person::AtExpiry => vec![(approval_ms, first)],
        };
        for (ms, decision) in words {
            self.after(ms, Event::Decide { call, decision });
        }
    }

    /// A person says a word.
    pub(super) fn decide(&mut self, call: CallId, decision: Decision) {
        let request = self.tools.request();
        self.send(Input::Decide {
            request,
            call,
            decision,
        });
    }
}
