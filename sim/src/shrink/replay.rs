//! Replays a log, or a part of one, against a fresh core, with all checkers looking on.
//!
//! Draws nothing. Every part of a log is something that could happen: an answer without its
//! question is left out, what must come before an entry is brought about first, ticks come
//! when they are due, and after the last entry everything goes on calmly until nothing moves:
//! the store does its part, open calls end, the process is there. What is found then would be
//! found whoever waits for it.

use std::collections::{BTreeMap, VecDeque};

use tidegate_core::{
    Attempt, Input, ModelEnd, ModelFact, Now, Output, RequestId, SessionId, Subject, Ticket, Time,
    ToolEnd, ToolFact, Wall,
};

use super::log::{Entry, Frame, OrderName, What};
use crate::adapter::{NOBODY, System, Trick};
use crate::check::{Check, Checks, Moment, Rest};
use crate::fault::Fault;
use crate::run::Step;
use crate::violation::{Code, Violation};
use crate::world::commit::report_lane;
use crate::world::store::Store;
use crate::world::{EPOCH_MS, MOST_TICKS, process};

/// The calm end of a log takes no more inputs than this.
const MOST_CALM: u32 = 4_000;

/// A model call or a tool that is not over.
#[derive(Debug)]
struct Call {
    ticket: Ticket,
    cancelled: bool,
}

/// Somebody who looks on.
type Watch<'a> = &'a mut dyn FnMut(&Step<'_>);

struct Replay<'a> {
    frame: &'a Frame,
    watch: Option<Watch<'a>>,
    now: u64,
    wall_shift: i64,
    wake: Option<u64>,
    ticks: (u64, u32),
    life: u32,
    up: bool,
    dies: Option<usize>,
    /// The drain is over: the process is about to end.
    closing: bool,
    trick: Option<Trick>,
    last_fed: u64,
    system: System,
    store: Store,
    /// Reports of the store on their way. Those of a session keep their order.
    reports: BTreeMap<Subject, VecDeque<(Ticket, Input)>>,
    /// Reports that came in, to be told again.
    told: BTreeMap<Ticket, Input>,
    calls: Vec<Call>,
    tools: Vec<Call>,
    checks: Checks,
    inputs: u64,
    found: Vec<Violation>,
}

macro_rules! moment {
    ($replay:expr) => {
        Moment {
            now: Time($replay.now),
            input: $replay.inputs,
            config: &$replay.frame.config,
            store: &$replay.store,
            slack_ms: $replay.frame.slack_ms,
            store_ms: $replay.frame.store_ms,
            found: &mut $replay.found,
        }
    };
}

/// What a replay came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replayed {
    pub(crate) violation: Option<Violation>,
    pub(crate) inputs: u64,
}

/// Replays entries. `watch` sees every step.
pub(crate) fn replay<'a>(
    frame: &'a Frame,
    fault: Option<Fault>,
    entries: impl Iterator<Item = &'a Entry>,
    watch: Option<Watch<'a>>,
) -> Replayed {
    let mut replay = Replay {
        frame,
        watch,
        now: 0,
        wall_shift: EPOCH_MS,
        wake: None,
        ticks: (0, 0),
        life: 0,
        up: true,
        dies: None,
        closing: false,
        trick: None,
        last_fed: u64::MAX,
        system: System::new(frame.config.clone(), fault),
        store: Store::default(),
        reports: BTreeMap::new(),
        told: BTreeMap::new(),
        calls: Vec::new(),
        tools: Vec::new(),
        checks: Checks::default(),
        inputs: 0,
        found: Vec::new(),
    };
    for entry in entries {
        if !replay.found.is_empty() {
            break;
        }
        replay.entry(entry);
    }
    replay.close();
    if replay.found.is_empty() {
        replay.calm();
    }
    Replayed {
        violation: replay.found.first().copied(),
        inputs: replay.inputs,
    }
}

impl Replay<'_> {
    fn entry(&mut self, entry: &Entry) {
        if !matches!(entry.what, What::Commit(..)) {
            self.close();
        }
        self.pass(entry.at);
        if !self.has_cause(&entry.what) {
            self.tick_now();
        }
        match &entry.what {
            What::Client(input) => self.feed(input.clone()),
            What::Fact(ticket, fact) => self.fact(*ticket, fact),
            What::Tool(ticket, fact) => self.tool(*ticket, *fact),
            What::Commit(name, refusal) => {
                if self.up {
                    self.commit(*name, *refusal);
                }
            }
            What::Report(ticket) => self.report(*ticket),
            What::Dies(carried) => self.dies = Some(*carried),
            What::Start => self.start(),
            What::Freeze(ms) => {
                self.now += ms;
                self.checks.froze(*ms);
            }
            What::WallJump(ms) => self.wall_shift += ms,
            What::LeaseTaken { session, works } => {
                let at = self.wall();
                self.store.lease_taken(*session, *works, at);
                self.tell(None);
            }
            What::LeaseGiven { session } => self.lease_given(*session),
            What::Intrudes { session, run } => {
                let at = self.wall();
                self.store.intrudes(*session, *run, at);
                self.tell(None);
            }
            What::IntruderEnds { run } => {
                let at = self.wall();
                self.store.end_elsewhere(*run, Attempt(1), at);
                self.tell(None);
            }
            What::Trick(trick) => self.trick = Some(*trick),
            What::Pass => {
                self.tick_now();
                // An input that changes nothing, so that what is late by now is seen.
                self.feed(Input::Leave { request: NOBODY });
            }
            What::Calm => self.settle_down(true),
            What::Served => self.settle_down(false),
        }
    }

    /// At this instant the store does its part, and with it the model, until nothing moves.
    fn settle_down(&mut self, model: bool) {
        for _ in 0..MOST_CALM {
            let moves = self.up
                && self.found.is_empty()
                && (self.serve() || model && (self.end_a_call() || self.end_a_tool()));
            if !moves {
                return;
            }
        }
    }

    /// Whether what an entry answers was asked. If not, a tick of the same instant may ask it.
    fn has_cause(&self, what: &What) -> bool {
        let ordered = |name| {
            let named = |order: &Output| OrderName::of(order) == Some(name);
            self.store.queue.iter().any(named)
        };
        match what {
            What::Commit(name, _) => ordered(*name),
            What::Report(ticket) => {
                let sent = |lane: &VecDeque<(Ticket, Input)>| lane.iter().any(|(t, _)| t == ticket);
                self.told.contains_key(ticket)
                    || self.reports.values().any(sent)
                    || ordered(OrderName::Ticket(*ticket))
            }
            What::Tool(ticket, _) => self.tools.iter().any(|tool| tool.ticket == *ticket),
            What::Fact(ticket, _) => self.calls.iter().any(|call| call.ticket == *ticket),
            _ => true,
        }
    }

    /// Fires what is due by now.
    fn tick_now(&mut self) {
        while let Some(wake) = self.wake
            && wake <= self.now
            && self.found.is_empty()
        {
            self.tick(wake);
        }
    }

    /// Time passes; what is due before then fires.
    fn pass(&mut self, at: u64) {
        while let Some(wake) = self.wake
            && wake < at
            && self.found.is_empty()
        {
            self.tick(wake);
        }
        self.now = self.now.max(at);
    }

    fn tick(&mut self, wake: u64) {
        self.now = self.now.max(wake);
        let (last, count) = self.ticks;
        self.ticks = (self.now, if last == self.now { count + 1 } else { 1 });
        if self.ticks.1 > MOST_TICKS {
            let nobody = Subject::Session(SessionId::from_u128(1));
            return moment!(self).report(Code::Spin, nobody);
        }
        self.feed(Input::Tick);
    }

    fn fact(&mut self, ticket: Ticket, fact: &ModelFact) {
        let Some(at) = self.calls.iter().position(|call| call.ticket == ticket) else {
            return;
        };
        if matches!(fact, ModelFact::Ended(_)) {
            self.calls.remove(at);
        }
        let fact = fact.clone();
        self.feed(Input::Model { ticket, fact });
    }

    fn tool(&mut self, ticket: Ticket, fact: ToolFact) {
        let Some(at) = self.tools.iter().position(|tool| tool.ticket == ticket) else {
            return;
        };
        if matches!(fact, ToolFact::Ended(_)) {
            self.tools.remove(at);
        }
        self.feed(Input::Tool { ticket, fact });
    }

    /// Carries out what was ordered up to an order. False if it is not waiting.
    fn commit(&mut self, name: OrderName, refusal: Option<tidegate_core::StoreError>) -> bool {
        let named = |order: &Output| OrderName::of(order) == Some(name);
        let Some(at) = self.store.queue.iter().position(named) else {
            return false;
        };
        for index in 0..=at {
            let Some(order) = self.store.queue.pop_front() else {
                break;
            };
            let report = self
                .store
                .carry_out(&order, refusal.filter(|_| index == at));
            self.tell(report.as_ref());
            if let (Some(report), Some(OrderName::Ticket(ticket)), Some(lane)) =
                (report, OrderName::of(&order), report_lane(&order))
            {
                self.reports
                    .entry(lane)
                    .or_default()
                    .push_back((ticket, report));
            }
        }
        true
    }

    /// A report comes in, after those of its session that were before it.
    fn report(&mut self, ticket: Ticket) {
        let waits = |reports: &VecDeque<(Ticket, Input)>| reports.iter().any(|(t, _)| *t == ticket);
        let mut lane = self
            .reports
            .iter()
            .find(|(_, reports)| waits(reports))
            .map(|(l, _)| *l);
        if lane.is_none() && self.up && self.commit(OrderName::Ticket(ticket), None) {
            lane = self
                .reports
                .iter()
                .find(|(_, reports)| waits(reports))
                .map(|(l, _)| *l);
        }
        let Some(lane) = lane else {
            if let Some(again) = self.told.get(&ticket).cloned() {
                self.feed(again);
            }
            return;
        };
        while let Some((first, report)) = self.reports.get_mut(&lane).and_then(VecDeque::pop_front)
        {
            self.told.insert(first, report.clone());
            self.feed(report);
            if first == ticket || !self.found.is_empty() || !self.up {
                break;
            }
        }
    }

    fn feed(&mut self, input: Input) {
        if !self.up || !self.found.is_empty() {
            return;
        }
        self.inputs += 1;
        let now = Now {
            time: Time(self.now),
            wall: self.wall(),
        };
        let within = self.last_fed == self.now;
        let trick = self
            .trick
            .take()
            .filter(|trick| within || !matches!(trick, Trick::Back(_)));
        self.last_fed = self.now;
        self.checks.input(&mut moment!(self), &input);
        let mut outputs = Vec::new();
        if !self.system.handle(now, &input, trick, &mut outputs) {
            let nobody = Subject::Session(SessionId::from_u128(1));
            moment!(self).report(Code::Diverged, nobody);
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
        let dies = self.dies.take();
        let carried = dies.unwrap_or(outputs.len()).min(outputs.len());
        for output in &outputs[..carried] {
            self.checks.output(&mut moment!(self), output);
            self.carry_out(output);
        }
        if dies.is_some() {
            return self.die();
        }
        self.checks.stepped(&mut moment!(self), &input);
        if self.inputs.is_multiple_of(crate::world::CHECK_EVERY)
            && let Err(halt) = self.system.check()
        {
            moment!(self).report(Code::Halt, halt.entity);
        }
    }

    fn carry_out(&mut self, output: &Output) {
        match output {
            Output::StartModel { ticket, .. } => self.calls.push(Call {
                ticket: *ticket,
                cancelled: false,
            }),
            Output::StartTool { ticket, .. } => self.tools.push(Call {
                ticket: *ticket,
                cancelled: false,
            }),
            Output::CancelModel { ticket } | Output::CancelTool { ticket } => {
                let open = self.calls.iter_mut().chain(&mut self.tools);
                for call in open.filter(|call| call.ticket == *ticket) {
                    call.cancelled = true;
                }
            }
            Output::Sleep { until, .. } => self.wake = until.map(|at| at.0),
            Output::Halt(halt) => moment!(self).report(Code::Halt, halt.entity),
            order if OrderName::of(order).is_some() => self.store.queue.push_back(order.clone()),
            Output::Drained => self.closing = true,
            _ => {}
        }
    }

    /// After a drain the process ends by itself, when the store has done what it was told.
    fn close(&mut self) {
        if !std::mem::take(&mut self.closing) {
            return;
        }
        while let Some(last) = self.store.queue.back().and_then(OrderName::of) {
            if !self.found.is_empty() || !self.commit(last, None) {
                break;
            }
        }
        self.end_life(false);
    }

    fn die(&mut self) {
        self.end_life(self.frame.power);
    }

    fn end_life(&mut self, power: bool) {
        self.closing = false;
        self.up = false;
        self.wake = None;
        self.trick = None;
        self.calls.clear();
        self.tools.clear();
        self.reports.clear();
        self.told.clear();
        self.store.crash(power);
        self.checks.died();
    }

    fn start(&mut self) {
        if self.up {
            return;
        }
        self.life += 1;
        self.up = true;
        self.last_fed = u64::MAX;
        self.system.restart(self.frame.config.clone());
        for session in self.store.open_sessions() {
            let request: RequestId = process::resume_request(session, self.life);
            self.feed(Input::Resume { request, session });
        }
    }

    fn lease_given(&mut self, session: SessionId) {
        let (at, time) = (self.wall(), self.now);
        let resume = self.store.lease_given(session, at, time);
        self.tell(None);
        if let Some(resume) = resume {
            self.feed(resume);
        }
    }

    /// Tells the checkers what a transaction wrote, and what it reports.
    fn tell(&mut self, carried: Option<&Input>) {
        let wrote = std::mem::take(&mut self.store.wrote);
        for fact in &wrote {
            self.checks.wrote(&mut moment!(self), fact);
        }
        self.checks.carried(&mut moment!(self), carried, &wrote);
    }

    fn wall(&self) -> Wall {
        let wall = self.wall_shift.saturating_add_unsigned(self.now);
        Wall(wall.max(0).unsigned_abs())
    }

    /// Everything goes on as it should until nothing moves any more; then the checkers have
    /// the last word.
    fn calm(&mut self) {
        for session in self.store.sessions_given_away() {
            self.lease_given(session);
        }
        let at = self.wall();
        self.store.intruders_end(at);
        self.tell(None);
        for _ in 0..MOST_CALM {
            if !self.found.is_empty() {
                return;
            }
            if !self.calm_step() {
                let rest = Rest {
                    quiet: true,
                    victims: &[],
                };
                self.checks.rest(&mut moment!(self), rest);
                if let Err(halt) = self.system.check() {
                    moment!(self).report(Code::Halt, halt.entity);
                }
                return;
            }
        }
    }

    /// One calm step; false if nothing moves.
    fn calm_step(&mut self) -> bool {
        self.close();
        if !self.up {
            self.start();
            return true;
        }
        if self.serve() || self.end_a_call() || self.end_a_tool() {
            return true;
        }
        let Some(wake) = self.wake else {
            return false;
        };
        self.tick(wake);
        true
    }

    /// The store does one thing that it owes; false if it owes nothing.
    fn serve(&mut self) -> bool {
        if let Some(last) = self.store.queue.back().and_then(OrderName::of) {
            return self.commit(last, None);
        }
        let report = self
            .reports
            .values()
            .find_map(|lane| lane.front().map(|(t, _)| *t));
        if let Some(ticket) = report {
            self.report(ticket);
            return true;
        }
        false
    }

    /// The oldest open call ends; false if there is none.
    fn end_a_call(&mut self) -> bool {
        if self.calls.is_empty() {
            return false;
        }
        let Call { ticket, cancelled } = self.calls.remove(0);
        let end = match cancelled {
            true => ModelEnd::Cancelled,
            false => ModelEnd::Completed,
        };
        let fact = ModelFact::Ended(end);
        self.feed(Input::Model { ticket, fact });
        true
    }

    /// The oldest tool that runs ends; false if none does.
    fn end_a_tool(&mut self) -> bool {
        if self.tools.is_empty() {
            return false;
        }
        let Call { ticket, cancelled } = self.tools.remove(0);
        let fact = ToolFact::Ended(match cancelled {
            true => ToolEnd::Cancelled,
            false => ToolEnd::Ok,
        });
        self.feed(Input::Tool { ticket, fact });
        true
    }
}
