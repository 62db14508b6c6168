//! The world around the core: provider, store, clients, process and clock.
//!
//! Owns the loop that jumps from event to event. It decides nothing that the core decides;
//! it draws what the outside does, carries out what the core orders, and tells the checkers
//! everything that crosses the front door. Reports of an instant go in before its tick.

mod clients;
pub(crate) mod commit;
pub(crate) mod others;
pub(crate) mod process;
mod provider;
mod queue;
pub(crate) mod store;
pub(crate) mod swarm;
mod tools;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use tidegate_core::{Digest, Input, Now, Output, SessionId, Subject, Time};

use crate::adapter::{System, Trick};
use crate::check::silence::{allowed, part};
use crate::check::{Check, Checks};
use crate::choices::Choices;
use crate::coverage::Operations;
use crate::fault::Fault;
use crate::marks::Marks;
use crate::run::{Step, Watch};
use crate::shrink::log::{self, Entry, What};
use crate::violation::{Code, Violation};
use clients::Clients;
use provider::{Patience, Provider};
use queue::{Event, Life, Queue, Refusing};
use store::{Store, StoredRun};
use swarm::Swarm;
use tools::Tools;

/// Wall time at the start of every run: 2026-01-01.
pub(crate) const EPOCH_MS: i64 = 1_767_225_600_000;
/// More inputs than this is no rest at all.
const MOST_INPUTS: u64 = 400_000;
/// Clients send no more messages than this, however closely they come.
const MOST_MESSAGES: usize = 2_000;
/// As many ticks at one instant mean that a deadline stays due.
pub(crate) const MOST_TICKS: u32 = 8;
/// How often the core checks itself, in inputs.
pub(crate) const CHECK_EVERY: u64 = 32;

/// Where a run of the world is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Load and faults.
    Work,
    /// Faults are over but for the victims; all else must be at rest by then.
    Healed { deadline: u64 },
}

/// See the module.
pub(crate) struct World<'a> {
    choices: &'a mut dyn Choices,
    watch: Option<&'a mut Watch<'a>>,
    pub(crate) swarm: Swarm,
    queue: Queue,
    pub(crate) now: u64,
    wall_shift: i64,
    /// The deadline that the core named.
    promised: Option<u64>,
    /// When the core was last told something.
    last_fed: u64,
    wake: Option<u64>,
    /// The instant of the last tick, and how many it had.
    ticks: (u64, u32),
    life: Life,
    up: bool,
    kill_in: Option<u64>,
    kills_left: u64,
    /// The drain of this life is over: the process ends when the drain's outputs are out.
    drained: bool,
    refusing: Refusing,
    phase: Phase,
    victims: Vec<SessionId>,
    system: System,
    store: Store,
    batch: usize,
    reported: BTreeMap<Subject, u64>,
    provider: Provider,
    tools: Tools,
    pub(crate) clients: Clients,
    pub(crate) checks: Checks,
    pub(crate) marks: Marks,
    pub(crate) operations: Operations,
    pub(crate) digest: Digest,
    pub(crate) inputs: u64,
    pub(crate) violations: Vec<Violation>,
    outputs: Vec<Output>,
    /// What the surroundings did, if somebody wants to know.
    pub(crate) log: Option<Vec<Entry>>,
}

/// What checkers see of now. A macro, since it borrows fields of the world one by one.
macro_rules! moment {
    ($world:expr) => {
        crate::check::Moment {
            now: tidegate_core::Time($world.now),
            input: $world.inputs,
            config: &$world.swarm.config,
            store: &$world.store,
            slack_ms: $world.swarm.jitter_ms,
            store_ms: $world.swarm.store_ms(),
            found: &mut $world.violations,
        }
    };
}
use moment;

impl<'a> World<'a> {
    /// A world that draws its character first.
    pub(crate) fn new(
        choices: &'a mut dyn Choices,
        fault: Option<Fault>,
        watch: Option<&'a mut Watch<'a>>,
    ) -> Self {
        let swarm = Swarm::draw(choices);
        let mut world = Self {
            choices,
            watch,
            system: System::new(swarm.config.clone(), fault),
            kills_left: swarm.kills,
            drained: false,
            swarm,
            queue: Queue::default(),
            now: 0,
            wall_shift: EPOCH_MS,
            promised: None,
            last_fed: 0,
            wake: None,
            ticks: (0, 0),
            life: 0,
            up: true,
            kill_in: None,
            refusing: Refusing::Nothing,
            phase: Phase::Work,
            victims: Vec::new(),
            store: Store::default(),
            batch: 0,
            reported: BTreeMap::new(),
            provider: Provider::default(),
            tools: Tools::default(),
            clients: Clients::default(),
            checks: Checks::default(),
            marks: Marks::default(),
            operations: Operations::default(),
            digest: Digest::new(),
            inputs: 0,
            violations: Vec::new(),
            outputs: Vec::new(),
            log: None,
        };
        world.plan_faults();
        world
    }

    /// Runs to the end: until nothing moves any more, the time for liveness is over, or a
    /// checker found something.
    pub(crate) fn run(&mut self) {
        let mut quiet = false;
        while self.violations.is_empty() {
            if let Phase::Healed { deadline } = self.phase
                && self.now > deadline
            {
                break;
            }
            if self.inputs > MOST_INPUTS {
                self.found(Code::Endless, Subject::Session(clients::session(0)));
                break;
            }
            match (self.queue.next_at(), self.wake) {
                (Some(at), wake) if wake.is_none_or(|wake| at <= wake.max(self.now)) => {
                    self.event()
                }
                (_, Some(wake)) => self.tick(wake),
                (_, None) => {
                    quiet = true;
                    break;
                }
            }
        }
        if self.violations.is_empty() {
            self.rest(quiet);
        }
    }

    fn found(&mut self, code: Code, entity: Subject) {
        moment!(self).report(code, entity);
    }

    fn tie(&mut self) -> u64 {
        self.choices.pick(4, "tie")
    }

    /// Puts an event so many milliseconds after now; its place in that instant is drawn.
    fn after(&mut self, ms: u64, event: Event) {
        let tie = self.tie();
        self.queue.put(self.now.saturating_add(ms), tie, event);
    }

    fn event(&mut self) {
        let Some((at, event)) = self.queue.pop() else {
            return;
        };
        self.now = self.now.max(at);
        match event {
            Event::Client => self.clients_act(),
            Event::Retry(run) => {
                if let Some(input) = self.clients.retry(run) {
                    self.send(input);
                }
            }
            Event::Apply(life) => {
                if life == self.life && self.up {
                    self.apply();
                }
            }
            Event::Report(life, input) => {
                if life == self.life {
                    self.feed(input);
                }
            }
            Event::Fact { call, version } => self.fact(call, version),
            Event::Tool { task, version } => self.tool_beat(task, version),
            Event::Decide { call, decision } => self.decide(call, decision),
            Event::Heal => self.heal(),
            fault => self.fault(&fault),
        }
    }

    fn tick(&mut self, wake: u64) {
        self.now = self.now.max(wake);
        let (last, count) = self.ticks;
        self.ticks = (self.now, if last == self.now { count + 1 } else { 1 });
        if self.ticks.1 > MOST_TICKS {
            return self.found(Code::Spin, Subject::Session(clients::session(0)));
        }
        self.feed(Input::Tick);
    }

    /// A client's input. While the process is down it goes nowhere; a message is tried again.
    fn send(&mut self, input: Input) {
        if self.up {
            return self.feed(input);
        }
        if let Input::Submit(submit) = input {
            let ms = self.choices.between(100, 20_000, "retry");
            self.after(ms, Event::Retry(submit.run));
        }
    }

    fn clients_act(&mut self) {
        if self.phase != Phase::Work || self.clients.messages() >= MOST_MESSAGES {
            return;
        }
        let mut inputs = Vec::new();
        self.clients
            .act(self.choices, &self.swarm, &mut self.tools, &mut inputs);
        for input in inputs {
            self.send(input);
        }
        // Counted down from the longest pause, so that a recorded 0 is the calmest.
        let gap = match self.choices.chance(1, 3, "close") {
            true => 60 - self.choices.pick(60, "gap"),
            false => self.swarm.act_gap_ms - self.choices.pick(self.swarm.act_gap_ms, "gap"),
        };
        self.after(gap, Event::Client);
    }

    /// One input through the front door, and what follows from it.
    fn feed(&mut self, input: Input) {
        if !self.up || !self.violations.is_empty() {
            return;
        }
        self.inputs += 1;
        let noted = self.log.as_ref().map_or(0, Vec::len);
        if self.log.is_some()
            && let Some(what) = log::noted(&input)
        {
            self.note(what);
        }
        let now = Now {
            time: Time(self.now),
            wall: self.wall(),
        };
        self.digest.write_u64(self.now);
        input.hash(&mut self.digest);
        self.marks.input(&input);
        self.checks.input(&mut moment!(self), &input);
        let mut outputs = std::mem::take(&mut self.outputs);
        outputs.clear();
        let trick = self.trick();
        if let (Some(trick), Some(log)) = (trick, &mut self.log) {
            let at = self.now;
            let what = What::Trick(trick);
            log.insert(noted, Entry { at, what });
        }
        self.last_fed = self.now;
        if !self.system.handle(now, &input, trick, &mut outputs) {
            self.found(Code::Diverged, Subject::Session(clients::session(0)));
        }
        if let Some(watch) = &mut self.watch {
            watch(&Step {
                index: self.inputs,
                now,
                life: self.life,
                input: &input,
                outputs: &outputs,
            });
        }
        let dies = self.dies();
        let carried = match dies {
            true => usize::try_from(self.choices.pick(outputs.len() as u64 + 1, "died after"))
                .unwrap_or(0),
            false => outputs.len(),
        };
        if let (true, Some(log)) = (dies, &mut self.log) {
            let at = self.now;
            let what = What::Dies(carried);
            log.insert(noted, Entry { at, what });
        }
        self.operations.step(&input, &outputs[..carried]);
        for output in &outputs[..carried] {
            output.hash(&mut self.digest);
            self.marks.output(output);
            self.checks.output(&mut moment!(self), output);
            self.carry_out(output);
        }
        self.outputs = outputs;
        if dies {
            self.drained = false;
            return self.die();
        }
        if std::mem::take(&mut self.drained) {
            self.checks.stepped(&mut moment!(self), &input);
            return self.close();
        }
        self.checks.stepped(&mut moment!(self), &input);
        if self.inputs.is_multiple_of(CHECK_EVERY)
            && let Err(halt) = self.system.check()
        {
            self.found(Code::Halt, halt.entity);
        }
    }

    /// Notes what the surroundings do.
    fn note(&mut self, what: What) {
        let at = self.now;
        if let Some(log) = &mut self.log {
            log.push(Entry { at, what });
        }
    }

    /// How the core is driven at this input, where it is not in the plain way.
    fn trick(&mut self) -> Option<Trick> {
        if !self.swarm.odd_driver {
            return None;
        }
        let trick = match self.choices.pick(64, "trick") {
            63 => Trick::Restore,
            62 => Trick::Halves(self.choices.pick(6, "half")),
            // Only within an instant: to the core the input happens at the latest time it knows.
            61 if self.last_fed == self.now => Trick::Back(1 + self.choices.pick(500, "back")),
            _ => return None,
        };
        self.marks.tricked(trick);
        Some(trick)
    }

    fn carry_out(&mut self, output: &Output) {
        match output {
            Output::Load { .. }
            | Output::Accept { .. }
            | Output::Claim { .. }
            | Output::Save { .. }
            | Output::Settle { .. }
            | Output::Launch { .. }
            | Output::Reset { .. }
            | Output::Configure { .. }
            | Output::Lookup { .. } => {
                self.store.queue.push_back(output.clone());
                self.begin_batch();
            }
            Output::StartModel {
                ticket,
                fence,
                candidate,
            } => {
                let row = self.store.run(fence.run);
                let own = row.and_then(|row| row.budget);
                let left_ms = row.and_then(StoredRun::left_ms);
                let config = &self.swarm.config;
                let part = part(config, *candidate, left_ms);
                let limits = allowed(config, *candidate, own);
                let unbounded = limits.idle_ms.is_none();
                let limits = limits.with_part(part);
                let patience = Patience {
                    first_ms: limits.first_ms,
                    idle_ms: limits.idle_ms,
                    unbounded,
                    budget_ms: limits.budget_ms,
                };
                let call = self.provider.start(
                    self.choices,
                    &self.swarm,
                    (*ticket, *candidate),
                    *fence,
                    patience,
                    &mut self.tools,
                );
                self.next_fact(call);
            }
            Output::CancelModel { ticket } => {
                if let Some(call) = self.provider.cancel(self.choices, &self.swarm, *ticket) {
                    self.next_fact(call);
                }
            }
            Output::StartTool { ticket, call } => self.start_tool(*ticket, *call),
            Output::CancelTool { ticket } => self.stop_tool(*ticket),
            Output::Publish {
                event: tidegate_core::Event::ToolAsked { call, .. },
                ..
            } => self.ask_people(*call),
            Output::Respond { request, answer } => {
                if let Some(run) = self.clients.answered(*request, answer) {
                    let ms = self.choices.between(100, 20_000, "retry");
                    self.after(ms, Event::Retry(run));
                }
            }
            Output::Sleep { until, .. } => {
                self.sleep(until.map(|at| at.0));
            }
            Output::Halt(halt) => self.found(Code::Halt, halt.entity),
            Output::Drained => self.drained = true,
            Output::Publish { .. } | Output::Release { .. } | Output::Forget { .. } => {}
        }
    }

    /// The next tick. It comes late by a drawn jitter, once for each deadline.
    fn sleep(&mut self, until: Option<u64>) {
        if self.promised == until && self.wake.is_some() {
            return;
        }
        self.promised = until;
        self.wake = until.map(|at| match self.swarm.jitter_ms {
            ms if ms > 0 && at > self.now => at + self.choices.pick(ms + 1, "jitter"),
            _ => at,
        });
    }

    /// Puts the next fact of a call into the queue.
    fn next_fact(&mut self, call: usize) {
        let Some((ms, version)) = self
            .provider
            .calls
            .get(call)
            .and_then(|c| Some((c.next_in()?, c.version)))
        else {
            return;
        };
        self.after(ms, Event::Fact { call, version });
    }

    fn fact(&mut self, index: usize, version: u32) {
        let Some(call) = self.provider.calls.get_mut(index) else {
            return;
        };
        if call.over || call.version != version {
            return;
        }
        let ticket = call.ticket;
        let Some(fact) = call.take() else { return };
        self.feed(Input::Model { ticket, fact });
        if self
            .provider
            .calls
            .get(index)
            .is_some_and(|call| call.version == version)
        {
            self.next_fact(index);
        }
    }
}
