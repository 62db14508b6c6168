//! The stage: one run of a scenario, event by event, with all checkers looking on.
//!
//! It jumps from event to event like the world does, and draws nothing: the script says what
//! happens, and picks say in which order things of one instant come. Clients here keep one
//! rule of their own: what was never answered at all is sent again when the process is back.

mod carry;

use std::collections::BTreeMap;

use tidegate_core::{
    Attempt, Input, Now, RequestId, RunId, SessionId, StoreError, Subject, Time, Wall,
};

use super::ast::{Refused, Scenario, Step};
use super::calls::Calls;
use super::cast::Cast;
use super::jobs::Jobs;
use super::picks::Picks;
use super::record::{Record, What};
use super::trace::Trace;
use crate::adapter::System;
use crate::check::{Check, Checks, Moment, Rest};
use crate::violation::{Code, Violation};
use crate::world::others::FOREIGN;
use crate::world::store::Store;

macro_rules! moment {
    ($stage:expr) => {
        Moment {
            now: Time($stage.now),
            input: $stage.inputs,
            config: &$stage.scenario.config,
            store: &$stage.store,
            slack_ms: 0,
            store_ms: $stage.store_ms,
            found: &mut $stage.violations,
        }
    };
}

use moment;

/// Wall time at the start: 2026-01-01.
const EPOCH_MS: i64 = 1_767_225_600_000;
/// More inputs than this is no rest at all.
const MOST_INPUTS: u64 = 200_000;
/// As many ticks at one instant mean that a deadline stays due.
const MOST_TICKS: u32 = 8;
/// For orders without a report.
const NOBODYS: Subject = Subject::Session(SessionId::from_u128(0));

/// Where a process that is to die dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kill {
    /// At this input, from 1.
    pub(super) input: u64,
    /// After so many of its outputs; 0 is before the input is taken in.
    pub(super) after: usize,
    pub(super) power: bool,
    pub(super) down_ms: u64,
}

/// What keeps its order among events of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Script,
    Marked(usize),
    Store,
    Reports(Subject),
    Call(usize),
    Job(usize),
    Others,
    Process,
}

#[derive(Clone, Debug)]
enum Event {
    Step(usize),
    Apply(u32),
    Report(u32, Input),
    Fact(usize, u32),
    Tool(usize, u32),
    LeaseGiven(SessionId),
    IntruderEnds(RunId),
    Start,
}

/// What a client asked.
#[derive(Clone, Debug)]
struct Asked {
    step: usize,
    tries: u32,
    client: String,
    about: Option<RunId>,
    input: Input,
    /// Whether anything was answered, or nobody listens any more.
    done: bool,
}

impl Asked {
    fn who(&self) -> (&str, Option<RunId>) {
        (&self.client, self.about)
    }
}

/// See the module.
pub(super) struct Stage<'a> {
    scenario: &'a Scenario,
    steps: Vec<&'a Step>,
    pub(super) cast: Cast,
    pub(super) picks: Picks,
    kill: Option<Kill>,
    queue: BTreeMap<(u64, u64), (Lane, Event)>,
    put: u64,
    now: u64,
    wall_shift: i64,
    wake: Option<u64>,
    ticks: (u64, u32),
    life: u32,
    up: bool,
    /// The process is to end in order, and is down for so long then.
    ends: Option<u64>,
    /// It has done what it had to.
    drained: bool,
    system: System,
    store: Store,
    takes_ms: u64,
    reports_ms: u64,
    /// The most that a commit takes in this scenario, for the checkers.
    store_ms: u64,
    applied_at: u64,
    reported_at: u64,
    refusing: Option<(StoreError, Refused, u64)>,
    twice_until: u64,
    calls: Calls,
    jobs: Jobs,
    asked: BTreeMap<RequestId, Asked>,
    checks: Checks,
    pub(super) inputs: u64,
    /// How many outputs each input had.
    pub(super) drains: Vec<usize>,
    pub(super) violations: Vec<Violation>,
    pub(super) record: Record,
    pub(super) trace: Trace,
}

impl<'a> Stage<'a> {
    pub(super) fn new(scenario: &'a Scenario, picks: Picks, kill: Option<Kill>) -> Self {
        let cast = Cast::new(scenario);
        let planted = scenario.fault.map(|p| (p.fault, p.occasion));
        let mut stage = Self {
            scenario,
            steps: Vec::new(),
            calls: Calls::new(scenario, &cast),
            cast,
            picks,
            kill,
            queue: BTreeMap::new(),
            put: 0,
            now: 0,
            wall_shift: EPOCH_MS,
            wake: None,
            ticks: (0, 0),
            life: 0,
            up: true,
            ends: None,
            drained: false,
            system: System::planted(scenario.config.clone(), planted),
            store: Store::default(),
            takes_ms: 0,
            reports_ms: 0,
            jobs: Jobs::new(scenario),
            store_ms: slowest(scenario),
            applied_at: 0,
            reported_at: 0,
            refusing: None,
            twice_until: 0,
            asked: BTreeMap::new(),
            checks: Checks::default(),
            inputs: 0,
            drains: Vec::new(),
            violations: Vec::new(),
            record: Record::default(),
            trace: Trace::default(),
        };
        for block in &scenario.timeline {
            for step in &block.steps {
                let at = stage.steps.len();
                stage.steps.push(step);
                let lane = match block.any_order {
                    true => Lane::Marked(at),
                    false => Lane::Script,
                };
                if !step.is_script() {
                    stage.put(block.at_ms, lane, Event::Step(at));
                }
            }
        }
        stage
    }

    /// Runs until nothing moves any more or a checker found something.
    pub(super) fn run(&mut self) {
        while self.violations.is_empty() {
            if self.inputs > MOST_INPUTS {
                return self.found(Code::Spin);
            }
            let next = self.queue.first_key_value().map(|(&(at, _), _)| at);
            match (next, self.wake) {
                (Some(at), wake) if wake.is_none_or(|wake| at <= wake.max(self.now)) => {
                    self.event(at);
                }
                (_, Some(wake)) => self.tick(wake),
                (_, None) => break,
            }
        }
        if self.violations.is_empty() {
            let rest = Rest {
                quiet: true,
                victims: &[],
            };
            self.checks.rest(&mut moment!(self), rest);
        }
    }

    fn found(&mut self, code: Code) {
        moment!(self).report(code, Subject::Session(SessionId::from_u128(1)));
    }

    fn put(&mut self, at: u64, lane: Lane, event: Event) {
        self.put += 1;
        self.queue.insert((at, self.put), (lane, event));
    }

    /// Takes one of the events of the next instant. Events of one lane keep their order.
    fn event(&mut self, at: u64) {
        let mut heads: Vec<((u64, u64), Lane)> = Vec::new();
        for (&key, &(lane, _)) in self.queue.range((at, 0)..=(at, u64::MAX)) {
            if heads.iter().all(|&(_, other)| other != lane) {
                heads.push((key, lane));
            }
        }
        let marked = heads
            .first()
            .is_some_and(|(_, lane)| matches!(lane, Lane::Marked(_)));
        if !self.picks.free {
            match marked {
                true => heads.retain(|(_, lane)| matches!(lane, Lane::Marked(_))),
                false => heads.truncate(1),
            }
        }
        let picked = self.picks.pick(heads.len());
        let Some((_, event)) = heads
            .get(picked)
            .and_then(|(key, _)| self.queue.remove(key))
        else {
            return;
        };
        self.now = self.now.max(at);
        match event {
            Event::Step(step) => self.step(step),
            Event::Apply(life) if life == self.life && self.up => self.apply(),
            Event::Report(life, input) if life == self.life => self.feed(input),
            Event::Fact(call, version) => self.fact(call, version),
            Event::Tool(job, version) => self.tool_fact(job, version),
            Event::LeaseGiven(session) => self.lease_given(session),
            Event::IntruderEnds(run) => {
                self.store.end_elsewhere(run, Attempt(1), self.wall());
                self.tell(None);
            }
            Event::Start => self.start(),
            Event::Apply(_) | Event::Report(..) => {}
        }
    }

    fn tick(&mut self, wake: u64) {
        self.now = self.now.max(wake);
        let (last, count) = self.ticks;
        self.ticks = (self.now, if last == self.now { count + 1 } else { 1 });
        if self.ticks.1 > MOST_TICKS {
            return self.found(Code::Spin);
        }
        self.feed(Input::Tick);
    }

    fn step(&mut self, at: usize) {
        let step = self.steps[at];
        if let Some(what) = Trace::aside(step) {
            self.trace.line(self.now, what);
        }
        match step {
            Step::StoreTakes(ms) => self.takes_ms = *ms,
            Step::StoreRefuses {
                error,
                what,
                for_ms,
            } => self.refusing = Some((*error, *what, self.now.saturating_add(*for_ms))),
            Step::StoreReports(ms) => self.reports_ms = *ms,
            Step::TakenAway { session, for_ms } => {
                let session = self.cast.session(session);
                self.store.lease_taken(session, true, self.wall());
                self.tell(None);
                let at = self.now.saturating_add(*for_ms);
                self.put(at, Lane::Others, Event::LeaseGiven(session));
            }
            Step::Intruder { session, for_ms } => {
                let session = self.cast.session(session);
                let run = RunId::from_u128(FOREIGN | at as u128);
                self.store.intrudes(session, run, self.wall());
                self.tell(None);
                let at = self.now.saturating_add(*for_ms);
                self.put(at, Lane::Others, Event::IntruderEnds(run));
            }
            Step::StoreTwice(ms) => self.twice_until = self.now.saturating_add(*ms),
            Step::Crash { power, down_ms } => self.die(*power, *down_ms),
            Step::Freeze(ms) => {
                self.now = self.now.saturating_add(*ms);
                self.checks.froze(*ms);
            }
            Step::WallJump(ms) => self.wall_shift = self.wall_shift.saturating_add(*ms),
            Step::Leave { client } => self.leave(client),
            Step::Drain { budget_ms, down_ms } => {
                self.ends = Some(*down_ms);
                let request = super::cast::request(at, 0);
                let budget_ms = *budget_ms;
                self.feed(Input::Drain { request, budget_ms });
            }
            _ => {
                let name = |tries| super::cast::request(at, tries);
                for (tries, (client, about, input)) in super::asks::inputs(step, &self.cast, name)
                    .into_iter()
                    .enumerate()
                {
                    let tries = u32::try_from(tries).unwrap_or(u32::MAX);
                    self.ask(Asked {
                        step: at,
                        tries,
                        client,
                        about,
                        input,
                        done: false,
                    });
                }
            }
        }
    }

    fn ask(&mut self, asked: Asked) {
        let input = asked.input.clone();
        self.asked
            .insert(super::cast::request(asked.step, asked.tries), asked);
        self.feed(input);
    }

    fn leave(&mut self, client: &str) {
        let open: Vec<RequestId> = self
            .asked
            .iter()
            .filter(|(_, asked)| asked.client == client)
            .map(|(&request, _)| request)
            .collect();
        for request in open {
            if let Some(asked) = self.asked.get_mut(&request) {
                asked.done = true;
            }
            self.feed(Input::Leave { request });
        }
    }

    fn wall(&self) -> Wall {
        let wall = self.wall_shift.saturating_add_unsigned(self.now).max(0);
        Wall(wall.unsigned_abs())
    }

    /// One input through the front door, and what follows from it.
    fn feed(&mut self, input: Input) {
        if !self.up || !self.violations.is_empty() {
            return;
        }
        self.inputs += 1;
        let kill = self.kill.filter(|kill| kill.input == self.inputs);
        if let Some(kill) = kill.filter(|kill| kill.after == 0) {
            return self.killed(kill);
        }
        let now = Now {
            time: Time(self.now),
            wall: self.wall(),
        };
        self.checks.input(&mut moment!(self), &input);
        let mut outputs = Vec::new();
        self.system.handle(now, &input, None, &mut outputs);
        self.drains.push(outputs.len());
        let client = |request| self.asked.get(&request).map(Asked::who);
        self.trace.input(self.now, &input, &self.cast, &client);
        for (at, output) in outputs.iter().enumerate() {
            if let Some(kill) = kill.filter(|kill| kill.after == at) {
                return self.killed(kill);
            }
            let client = |request| self.asked.get(&request).map(Asked::who);
            self.trace.output(output, &self.cast, &client);
            self.checks.output(&mut moment!(self), output);
            self.carry_out(output);
        }
        if let Some(kill) = kill {
            return self.killed(kill);
        }
        self.checks.stepped(&mut moment!(self), &input);
        if let Err(halt) = self.system.check() {
            moment!(self).report(Code::Halt, halt.entity);
        }
        if std::mem::take(&mut self.drained) {
            self.close();
        }
    }

    fn killed(&mut self, kill: Kill) {
        self.trace
            .line(self.now, "the process is killed here".into());
        self.die(kill.power, kill.down_ms);
    }

    /// The process ends in order, once the store has done what it was told.
    fn close(&mut self) {
        while !self.store.queue.is_empty() {
            self.apply();
        }
        self.trace.line(self.now, "the process ends".into());
        let down_ms = self.ends.unwrap_or_default();
        self.die(false, down_ms);
    }

    fn die(&mut self, power: bool, down_ms: u64) {
        if !self.up {
            return;
        }
        self.up = false;
        self.wake = None;
        self.ends = None;
        self.drained = false;
        self.applied_at = 0;
        self.reported_at = 0;
        self.store.crash(power);
        self.calls.died();
        self.jobs.died();
        self.checks.died();
        self.record.put(self.now, What::Died);
        let at = self.now.saturating_add(down_ms);
        self.put(at, Lane::Process, Event::Start);
    }

    /// A new life: first what the store holds open, then what clients never heard of.
    fn start(&mut self) {
        self.life += 1;
        self.up = true;
        self.trace.line(self.now, "process starts".into());
        self.system.restart(self.scenario.config.clone());
        for session in self.store.open_sessions() {
            let name = u128::from_be_bytes(session.0) << 32 | u128::from(self.life);
            let request = RequestId::from_u128(1 << 98 | name);
            self.feed(Input::Resume { request, session });
        }
        let open: Vec<RequestId> = self
            .asked
            .iter()
            .filter(|(_, asked)| {
                let again = matches!(
                    asked.input,
                    Input::Submit(_)
                        | Input::Abort { .. }
                        | Input::Reset { .. }
                        | Input::Configure { .. }
                        | Input::Decide { .. }
                );
                again && !asked.done
            })
            .map(|(&request, _)| request)
            .collect();
        for request in open {
            let Some(mut asked) = self.asked.remove(&request) else {
                continue;
            };
            asked.tries += 0x1_0000;
            let name = super::cast::request(asked.step, asked.tries);
            match &mut asked.input {
                Input::Submit(submit) => submit.request = name,
                Input::Abort { request, .. }
                | Input::Reset { request, .. }
                | Input::Configure { request, .. }
                | Input::Decide { request, .. } => *request = name,
                _ => {}
            }
            self.ask(asked);
        }
    }
}

fn slowest(scenario: &Scenario) -> u64 {
    let steps = scenario.timeline.iter().flat_map(|block| &block.steps);
    let (mut takes, mut reports) = (0, 0);
    for step in steps {
        match step {
            Step::StoreTakes(ms) => takes = takes.max(*ms),
            Step::StoreReports(ms) => reports = reports.max(*ms),
            _ => {}
        }
    }
    takes + reports
}
