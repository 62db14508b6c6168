//! The process and its clocks: kills, restarts, freezes, and the end of faults.
//!
//! A kill strikes between two outputs of a drain. What the store had not carried out is lost,
//! and so is every report on its way. A restart tells the new core of each session with open
//! work before any client gets a word in.

use tidegate_core::{Budget, Input, RequestId, SessionId};

use super::clients::session;
use super::queue::{Event, Refusing};
use super::swarm::{Script, few};
use super::{Phase, World, moment};
use crate::check::silence::allowed;
use crate::check::{Check, Rest};
use crate::shrink::log::What;
use crate::violation::Code;

/// Length of the working phase (the standard run).
const WORK_MS: u64 = 600_000;
/// Least messages of the standard run.
const WORK_MESSAGES: usize = 20;
/// Least inputs of the standard run.
const WORK_INPUTS: u64 = 300;
/// The working phase ends then, whatever it reached.
const WORK_MOST_MS: u64 = 6 * WORK_MS;
/// The longest limit that a call names, in milliseconds.
const LONGEST_TOOL_MS: u64 = 90_000;
/// Answers of a run that may still ask for tools when faults stop.
const ROUNDS_LEFT: u64 = 4;
/// High bits of the names of resume requests.
const RESUME: u128 = 1 << 98;

/// How a model's outage looks.
const OUTAGES: [Script; 5] = [
    Script::Limited,
    Script::Refused,
    Script::Reset,
    Script::Incomplete,
    Script::SilentFirst,
];

/// High bits of the names of drains.
const DRAIN: u128 = 1 << 101;

/// The name of the input that tells a new life of open work.
pub(crate) fn resume_request(session: SessionId, life: u32) -> RequestId {
    let name = u128::from_be_bytes(session.0) << 32 | u128::from(life);
    RequestId::from_u128(RESUME | name)
}

impl World<'_> {
    /// Puts the drawn faults into the queue.
    pub(super) fn plan_faults(&mut self) {
        self.choices.begin("faults");
        self.queue.put(0, 0, Event::Client);
        self.queue.put(WORK_MS, 0, Event::Heal);
        for _ in 0..self.swarm.refusals {
            let at = self.choices.pick(WORK_MS, "refusal at");
            let ms = self.choices.pick(self.swarm.refusal_ms, "refusal for");
            let what = match self.choices.pick(4, "refusal of") {
                0 | 1 => Refusing::Anything,
                2 => Refusing::Ends,
                _ => Refusing::Launches,
            };
            self.queue.put(at, 0, Event::Refusing(what));
            self.queue
                .put(at + ms, 0, Event::Refusing(Refusing::Nothing));
        }
        for _ in 0..self.swarm.outages {
            let at = self.choices.pick(WORK_MS, "outage at");
            let ms = self.choices.pick(self.swarm.outage_ms, "outage for");
            let kind = self.choices.pick(OUTAGES.len() as u64, "outage");
            let script = OUTAGES.get(usize::try_from(kind).unwrap_or(0)).copied();
            let all = self.choices.chance(1, 2, "outage of all");
            self.queue
                .put(at, 0, Event::Outage(script.map(|script| (script, all))));
            self.queue.put(at + ms, 0, Event::Outage(None));
        }
        for _ in 0..self.swarm.drains {
            let at = self.choices.pick(WORK_MS, "drain at");
            let budget = self.drain_budget();
            self.queue.put(at, 0, Event::Drain(budget));
            // The second signal, which can only shorten it.
            if self.choices.chance(1, 3, "second signal") {
                let later = self.choices.pick(60_000, "second signal after");
                let budget = self.drain_budget();
                self.queue.put(at + later, 0, Event::Drain(budget));
            }
        }
        for _ in 0..self.swarm.freezes {
            let at = self.choices.pick(WORK_MS, "freeze at");
            let ms = self.choices.pick(self.swarm.freeze_ms, "freeze for");
            self.queue.put(at, 0, Event::Freeze(ms));
        }
        for _ in 0..self.swarm.wall_jumps {
            let at = self.choices.pick(WORK_MS, "wall jump at");
            let ms = self.choices.pick(7_200_000, "wall jump by").cast_signed();
            self.queue.put(at, 0, Event::WallJump(ms - 3_600_000));
        }
        self.plan_others(WORK_MS);
        self.plan_kill();
        self.choices.end();
    }

    /// The next kill comes after so many inputs: near to what happens, wherever in time that is.
    fn plan_kill(&mut self) {
        self.kill_in = match self.kills_left {
            0 => None,
            _ => Some(self.choices.between(5, 250, "kill after")),
        };
    }

    /// Whether the process dies at this input.
    pub(super) fn dies(&mut self) -> bool {
        let Some(left) = &mut self.kill_in else {
            return false;
        };
        *left = left.saturating_sub(1);
        *left == 0
    }

    pub(super) fn fault(&mut self, fault: &Event) {
        let last = matches!(fault, Event::Start | Event::IntruderEnds { .. });
        if self.phase != Phase::Work && !last {
            return;
        }
        match *fault {
            Event::Refusing(what) => self.refusing = what,
            Event::Outage(outage) => self.provider.outage = outage,
            Event::Start => self.start(),
            Event::Drain(budget_ms) => self.drain(budget_ms),
            Event::Freeze(ms) => {
                self.note(What::Freeze(ms));
                self.now += ms;
                self.checks.froze(ms);
            }
            Event::WallJump(ms) => {
                self.note(What::WallJump(ms));
                self.wall_shift += ms;
            }
            Event::LeaseTaken { session, works } => self.lease_taken(session, works),
            Event::LeaseGiven { session } => self.lease_given(session),
            Event::Intrudes { session, run } => self.intrudes(session, run),
            Event::IntruderEnds { run } => self.intruder_ends(run),
            _ => {}
        }
    }

    fn drain_budget(&mut self) -> Option<u64> {
        match self.choices.pick(3, "drain budget") {
            0 => None,
            1 => Some(0),
            _ => Some(self.choices.pick(90_000, "drain budget")),
        }
    }

    /// The process is told to end. A drain of a dead process is none.
    fn drain(&mut self, budget_ms: Option<u64>) {
        let request = RequestId::from_u128(DRAIN | u128::from(self.now));
        self.feed(Input::Drain { request, budget_ms });
    }

    /// The drain is over: the store does what it was told, then the process ends.
    pub(super) fn close(&mut self) {
        while !self.store.queue.is_empty() && self.violations.is_empty() {
            self.batch = self.store.queue.len();
            self.apply();
        }
        self.kills_left += 1; // a stop in order is no kill
        self.end_life(false);
    }

    pub(super) fn die(&mut self) {
        self.end_life(self.swarm.power);
    }

    fn end_life(&mut self, power: bool) {
        if !self.up {
            return;
        }
        self.up = false;
        self.wake = None;
        self.kill_in = None;
        self.kills_left = self.kills_left.saturating_sub(1);
        self.store.crash(power);
        self.provider.crash();
        self.tools.crash(self.swarm.tools.orphans);
        self.checks.died();
        self.marks.died();
        for run in self.clients.crashed() {
            if self.choices.chance(2, 3, "ask again") {
                let ms = self.choices.between(100, 60_000, "retry");
                self.after(ms, Event::Retry(run));
            }
        }
        let ms = self.choices.pick(self.swarm.down_ms, "down");
        self.after(ms, Event::Start);
    }

    fn start(&mut self) {
        if self.up {
            return;
        }
        self.note(What::Start);
        self.life += 1;
        self.up = true;
        self.reported.clear();
        self.last_fed = u64::MAX;
        self.system.restart(self.swarm.config.clone());
        self.plan_kill();
        for session in self.store.open_sessions() {
            let request = resume_request(session, self.life);
            self.feed(Input::Resume { request, session });
        }
    }

    /// Faults stop for all but the victims. Most sessions get one more message,
    /// which shows that their lanes move; the others show that nothing waits for a push.
    pub(super) fn heal(&mut self) {
        let short = self.clients.messages() < WORK_MESSAGES || self.inputs < WORK_INPUTS;
        if short && self.now < WORK_MOST_MS {
            return self.after(20_000, Event::Heal);
        }
        self.kills_left = 0;
        self.kill_in = None;
        self.refusing = Refusing::Nothing;
        self.start();
        for index in 0..self.swarm.sessions {
            self.lease_given(session(index));
        }
        let mut sessions: Vec<SessionId> = (0..self.swarm.sessions).map(session).collect();
        for _ in 0..self.swarm.victims {
            let at = self.choices.pick(sessions.len() as u64, "victim");
            if let Ok(at) = usize::try_from(at) {
                self.victims.push(sessions.remove(at));
            }
        }
        self.tools.heal();
        for call in self.provider.heal(self.victims.clone()) {
            self.next_fact(call);
        }
        for index in 0..self.swarm.sessions {
            if !self.choices.chance(2, 3, "one more") {
                continue;
            }
            let input = self
                .clients
                .submit(self.choices, &self.swarm, session(index));
            self.send(input);
        }
        let deadline = self.now.saturating_add(self.liveness_bound());
        self.phase = Phase::Healed { deadline };
    }

    /// How long after the heal every message must have its outcome: as if all runs that are
    /// open went one after the other, each taking all that the configured limits allow.
    fn liveness_bound(&self) -> u64 {
        let config = &self.swarm.config;
        let owns = [
            None,
            Some(Budget::Limited(100_000)),
            Some(Budget::Unlimited),
        ];
        let chain = few(config.fallbacks.len());
        let silent = (0..=chain)
            .flat_map(|candidate| owns.map(|own| allowed(config, candidate, own)))
            .map(|limits| limits.first_ms + limits.idle_ms.unwrap_or(0))
            .max()
            .unwrap_or(0);
        let store = 8 * (self.swarm.commit_ms + self.swarm.report_ms + config.store_retry_max_ms);
        let quiet = u64::from(config.queue_debounces_max) * config.queue.debounce_ms.max(20_000);
        let call = silent + self.provider.longest_ms + 2 * config.lane_grace_ms + store;
        // A run asks again: as often as the configured number, after each wait that it may keep,
        // and each provider of its chain.
        let recovery = config.recovery;
        let again = u64::from(recovery.retries_max.max(recovery.rate_limit_retries_max));
        let again = again + u64::from(chain);
        let each = call + quiet + again.saturating_mul(call + recovery.delay_max_ms);
        let each = each + (again + 1) * self.provider.asked_ms;
        // A few answers ask for tools: a person is waited for, then a tool, then its stop; and the
        // store for two checkpoints and a claim.
        let tools = config.tools;
        let limit_ms = tools.timeout_ms.max(LONGEST_TOOL_MS);
        let round = tools.approval_ms + limit_ms + tools.cancel_ms + 3 * store + call;
        let rounds = if self.swarm.tools.asks > 0 {
            ROUNDS_LEFT
        } else {
            0
        };
        let each = each + rounds * round;
        let runs =
            self.clients.unsettled() as u64 + self.store.open_runs() + 2 * self.swarm.sessions;
        // Clients try up to 60 s after they lost their answer; waits last up to 120 s.
        runs.saturating_mul(each).saturating_add(200_000)
    }

    /// The last word of the checkers.
    pub(super) fn rest(&mut self, quiet: bool) {
        let victims = std::mem::take(&mut self.victims);
        self.checks.rest(
            &mut moment!(self),
            Rest {
                quiet,
                victims: &victims,
            },
        );
        if let Err(halt) = self.system.check() {
            self.found(Code::Halt, halt.entity);
        }
        self.victims = victims;
    }
}
