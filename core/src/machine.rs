//! The front door: one input in, one drain out.
//!
//! Owns the state and the dispatch. It decides nothing about runs; each subject has a file.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::abort::Aborts;
use crate::config::Config;
use crate::digest::Digest;
use crate::drain::Gate;
use crate::halt::{Halt, HaltCode};
use crate::ids::{RequestId, RunId, SessionId, Subject};
use crate::input::Input;
use crate::lane::Lanes;
use crate::outcome::Limit;
use crate::output::Output;
use crate::run::Run;
use crate::session::Session;
use crate::time::{Now, Time};
use crate::timers::{Armed, Timer, Timers};
use crate::wait::Waits;

/// What the core counted since it was made. Counts change no decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Inputs handled.
    pub inputs: u64,
    /// Outputs that an earlier drain was dropped with; they lead the next drain.
    pub undrained: u64,
    /// Inputs whose time lay before that of an earlier one; it was clamped.
    pub clock_back: u64,
    /// Wakes later than the configured lateness; activity limits were shifted.
    pub late_wakes: u64,
    /// Store reports whose ticket was not expected any more.
    pub stale_store: u64,
    /// Model facts whose ticket was not expected any more.
    pub stale_model: u64,
    /// Facts about tool calls whose ticket was not expected any more.
    pub stale_tool: u64,
    /// Requests under an id that another one still uses; they were not taken in.
    pub reused_requests: u64,
    /// Text facts that did not grow the reply.
    pub stale_text: u64,
}

/// The state machine. See the crate's first page for how to drive it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Core {
    pub(crate) config: Config,
    pub(crate) now: Now,
    /// The wake that the last drain promised.
    promised: Option<Time>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// Boxed: a table's nodes are half empty, and a run is large.
    pub(crate) runs: BTreeMap<RunId, Box<Run>>,
    /// Accept orders under way, by the request in their ticket.
    pub(crate) accepting: BTreeMap<RequestId, RunId>,
    pub(crate) lanes: Lanes,
    pub(crate) waits: Waits,
    pub(crate) aborts: Aborts,
    pub(crate) gate: Gate,
    pub(crate) timers: Timers,
    outputs: VecDeque<Output>,
    pub(crate) counts: Counts,
    halted: Option<Halt>,
}

impl Core {
    /// A core that holds nothing. What the store holds open is told by [`Input::Resume`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            now: Now::default(),
            promised: None,
            sessions: BTreeMap::new(),
            runs: BTreeMap::new(),
            accepting: BTreeMap::new(),
            lanes: Lanes::default(),
            waits: Waits::default(),
            aborts: Aborts::default(),
            gate: Gate::Open,
            timers: Timers::default(),
            outputs: VecDeque::new(),
            counts: Counts::default(),
            halted: None,
        }
    }

    /// Takes in a fact and gives the orders that follow from it. Total: any input in any
    /// state; never blocks, never panics. The last output is always [`Output::Sleep`].
    ///
    /// `now` must not go back; one that does is clamped and counted.
    #[must_use = "the orders are in the drain"]
    pub fn handle(&mut self, now: Now, input: Input) -> Drain<'_> {
        self.counts.undrained += self.outputs.len() as u64;
        if let Some(halt) = self.halted {
            self.outputs.clear();
            self.outputs.push_back(Output::Halt(halt));
            return Drain {
                core: self,
                slept: false,
            };
        }
        self.advance_clock(now);
        self.counts.inputs += 1;
        self.take_in(input);
        self.settle_drain();
        self.promised = self.timers.next().map(|(at, _)| at.max(self.now.time));
        Drain {
            core: self,
            slept: false,
        }
    }

    /// Hands a fact to its subject; also one that waited for its session.
    pub(crate) fn take_in(&mut self, input: Input) {
        match input {
            Input::Submit(submit) => self.submit(submit),
            Input::Wait {
                request,
                run,
                timeout_ms,
            } => self.wait(request, run, timeout_ms),
            Input::Abort {
                request,
                session,
                scope,
            } => self.abort(request, session, scope),
            Input::Reset {
                request,
                session,
                expected,
            } => self.reset(request, session, expected),
            Input::Configure {
                request,
                session,
                change,
            } => self.configure(request, session, change),
            Input::Leave { request } => self.leave(request),
            Input::Resume { request, session } => self.resume(request, session),
            Input::Loaded { ticket, report } => self.loaded(ticket, report),
            Input::Accepted { ticket, report } => self.accepted(ticket, report),
            Input::Claimed { ticket, report } => self.claimed(ticket, report),
            Input::Settled { ticket, report } => self.settled(ticket, report),
            Input::WasReset { ticket, report } => self.was_reset(ticket, report),
            Input::Configured { ticket, report } => self.configured(ticket, report),
            Input::LookedUp { ticket, report } => self.looked_up(ticket, report),
            Input::Model { ticket, fact } => self.model(ticket, fact),
            Input::Launched { ticket, report } => self.launched(ticket, report),
            Input::Tool { ticket, fact } => self.tool(ticket, fact),
            Input::Decide {
                request,
                call,
                decision,
            } => self.decide(request, call, decision),
            Input::Drain { request, budget_ms } => self.drain(request, budget_ms),
            Input::Tick => self.tick(),
        }
    }

    /// Lateness is measured against the promised wake. Activity limits are moved by it,
    /// since nobody could have acted in that time; absolute ones are not (P37).
    fn advance_clock(&mut self, now: Now) {
        if now.time < self.now.time {
            self.counts.clock_back += 1;
        }
        self.now = Now {
            time: now.time.max(self.now.time),
            wall: now.wall,
        };
        let late = self
            .promised
            .map_or(0, |promised| self.now.time.since(promised));
        if late > self.config.lateness_ms {
            self.counts.late_wakes += 1;
            let earliest = self.now.time.plus(self.config.resume_grace_ms);
            self.timers.shift_activity(late, earliest);
        }
    }

    /// Fires what is due. As many deadlines as were armed at the start, so that one which
    /// arms itself again for now can't hold the call.
    fn tick(&mut self) {
        for _ in 0..self.timers.len() {
            let Some(timer) = self.timers.pop_due(self.now.time) else {
                break;
            };
            match timer {
                Timer::Budget(run) => self.limit_reached(run, Limit::Budget),
                Timer::FirstEvent(run) => self.limit_reached(run, Limit::FirstEvent),
                Timer::Idle(run) => self.limit_reached(run, Limit::Idle),
                Timer::FinishTail(run) => self.finish_tail_due(run),
                Timer::ProviderRetry(run) => self.provider_retry_due(run),
                Timer::LaneLimit(run) => self.lane_limit_reached(run),
                Timer::Tool(run, call) => self.tool_due(run, call),
                Timer::Approval(run, call) => self.approval_due(run, call),
                Timer::OutputPace(run) => self.output_pace_due(run),
                Timer::StoreRetry(run) => self.retry_store(run),
                Timer::LoadRetry(session) => self.retry_load(session),
                Timer::Debounce(session) => self.advance(session),
                Timer::TextPace(run) => self.text_pace_due(run),
                Timer::SavePace(run) => self.save_pace_due(run),
                Timer::Wait(request) => self.wait_expired(request),
                Timer::Drain(_) => self.close(),
            }
        }
    }

    pub(crate) fn out(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(crate) fn arm(&mut self, timer: Timer, at: Time) {
        self.timers.arm(timer, self.now.time, at);
    }

    pub(crate) fn arm_in(&mut self, timer: Timer, ms: u64) {
        self.arm(timer, self.now.time.plus(ms));
    }

    /// Says that an invariant broke. From here on the core only repeats it.
    pub(crate) fn halt(&mut self, code: HaltCode, entity: Subject) {
        let halt = *self.halted.get_or_insert(Halt { code, entity });
        self.outputs.clear();
        self.outputs.push_back(Output::Halt(halt));
    }

    /// The broken invariant, if one broke.
    #[must_use]
    pub const fn halted(&self) -> Option<Halt> {
        self.halted
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What was counted.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Runs that have not ended.
    #[must_use]
    pub fn live_runs(&self) -> usize {
        self.runs.len()
    }

    /// Runs that hold a slot of the global lane.
    #[must_use]
    pub fn active_runs(&self) -> usize {
        self.lanes.active()
    }

    /// Whether new work is refused because the process is about to end.
    #[must_use]
    pub fn draining(&self) -> bool {
        !self.is_open()
    }

    /// Open waits.
    #[must_use]
    pub fn open_waits(&self) -> usize {
        self.waits.len()
    }

    /// The runs of a session at work, taken along and waiting, in their order. Empty for one
    /// that is not held.
    pub fn session_runs(&self, session: SessionId) -> impl Iterator<Item = RunId> + '_ {
        let runs = self.sessions.get(&session).into_iter();
        runs.flat_map(Session::runs).flat_map(|run| {
            let along = self.runs.get(&run).into_iter().flat_map(|run| &run.along);
            core::iter::once(run).chain(along.copied())
        })
    }

    /// What is armed, for whom, since when: soonest first.
    pub fn armed(&self) -> impl Iterator<Item = Armed> + '_ {
        self.timers.iter()
    }

    /// A digest of the whole state: equal states, equal digests, on every machine.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        self.hash(&mut digest);
        digest.finish()
    }

    /// The whole state, to be stored and restored bit for bit.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            schema: SNAPSHOT_SCHEMA,
            core: self.clone(),
        }
    }

    /// The core of a snapshot.
    ///
    /// # Errors
    /// [`WrongSchema`] if another build of the core made it.
    pub fn restore(snapshot: Snapshot) -> Result<Self, WrongSchema> {
        if snapshot.schema == SNAPSHOT_SCHEMA {
            Ok(snapshot.core)
        } else {
            Err(WrongSchema {
                found: snapshot.schema,
            })
        }
    }
}

/// The schema of [`Snapshot`]. Raised with every change of the state's shape.
pub const SNAPSHOT_SCHEMA: u32 = 5;

/// The whole state of a [`Core`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    schema: u32,
    core: Core,
}

/// The snapshot was made by a core of another schema; it can't be read by this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongSchema {
    /// The schema that was found; this build reads [`SNAPSHOT_SCHEMA`].
    pub found: u32,
}

impl core::fmt::Display for WrongSchema {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "snapshot of schema {}, this core reads {SNAPSHOT_SCHEMA}",
            self.found
        )
    }
}

impl core::error::Error for WrongSchema {}

/// The orders that follow from one input. Ends with [`Output::Sleep`].
///
/// It borrows the core: there is no way to hand in the next input before it is gone. What
/// is left in a dropped drain leads the next one and is counted.
#[must_use = "the orders are in the drain"]
#[derive(Debug)]
pub struct Drain<'core> {
    core: &'core mut Core,
    slept: bool,
}

impl Iterator for Drain<'_> {
    type Item = Output;

    fn next(&mut self) -> Option<Output> {
        if let Some(output) = self.core.outputs.pop_front() {
            return Some(output);
        }
        if self.slept {
            return None;
        }
        self.slept = true;
        let wake = match self.core.halted {
            Some(_) => None,
            None => self.core.timers.next(),
        };
        Some(Output::Sleep {
            until: wake.map(|(at, _)| at.max(self.core.now.time)),
            why: wake.map(|(_, timer)| timer),
        })
    }
}
