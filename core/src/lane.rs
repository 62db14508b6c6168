//! The global lanes: how many runs of a kind work at once, over all sessions (R15, R42, I13).
//!
//! Owns slots and the order of those that wait for one. A run holds its session's lane
//! while it waits here. A slot is freed by its run's id, so it can't be freed twice (I16).

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::drain::Gate;
use crate::halt::HaltCode;
use crate::ids::{RunId, SessionId, Subject};
use crate::machine::Core;
use crate::output::Output;
use crate::run::State;
use crate::session::Phase;
use crate::time::Time;
use crate::timers::Timer;

/// A global lane (spec 2.1).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum LaneName {
    /// Turns of people.
    #[default]
    Main,
    /// Child agents.
    Subagent,
    /// Cron jobs around their agent turns. A run that asks for it gets [`Self::CronNested`],
    /// so that a job can't wait for a slot that it holds itself.
    Cron,
    /// Agent turns of cron jobs, and heartbeats.
    CronNested,
    /// Turns that an HTTP hook started. Shares one budget with [`Self::CronNested`], in which
    /// one slot is kept for hooks.
    HookDispatch,
    /// Other nested agent work.
    Nested,
    /// Maintenance.
    Background,
}

/// The place of a run among those that wait for the same lane: the smaller goes first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Priority {
    /// Somebody waits for it.
    #[default]
    Foreground,
    /// Neither.
    Normal,
    /// Nobody waits for it: cron, heartbeat, memory, maintenance.
    Background,
}

/// How many runs may work at once in the lanes other than [`LaneName::Main`]. 0 closes a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaneCaps {
    /// `agents.defaults.subagents.maxConcurrent` (spec 2.1).
    pub subagent: u32,
    /// Cron turns, and the budget that they share with hooks (spec 2.1).
    pub cron: u32,
    /// Turns of HTTP hooks; 0 while hooks are off (spec 2.1).
    pub hook_dispatch: u32,
    /// Other nested work (spec 2.1).
    pub nested: u32,
    /// Maintenance (spec 2.1).
    pub background: u32,
}

impl Default for LaneCaps {
    fn default() -> Self {
        Self {
            subagent: 8,
            cron: 8,
            hook_dispatch: 0,
            nested: 1,
            background: 3,
        }
    }
}

impl LaneName {
    /// The lane that a run which asks for this one gets.
    #[must_use]
    pub const fn of_run(self) -> Self {
        match self {
            Self::Cron => Self::CronNested,
            lane => lane,
        }
    }

    /// How many runs may work in it at once.
    #[must_use]
    pub const fn cap(self, config: &Config) -> u32 {
        match self {
            Self::Main => config.global_lane_cap,
            Self::Subagent => config.lanes.subagent,
            Self::Cron | Self::CronNested => config.lanes.cron,
            Self::HookDispatch => config.lanes.hook_dispatch,
            Self::Nested => config.lanes.nested,
            Self::Background => config.lanes.background,
        }
    }

    /// The name under which people meet it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Cron => "cron",
            Self::CronNested => "cron-nested",
            Self::HookDispatch => "hook-dispatch",
            Self::Nested => "nested",
            Self::Background => "background",
        }
    }
}

/// One lane's slots, and who waits for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Lane {
    active: BTreeSet<RunId>,
    waiting: BTreeMap<Priority, VecDeque<(Time, RunId)>>,
}

impl Lane {
    fn queued(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Who is let in next: the highest priority, and of that who came first.
    fn head(&self) -> Option<(Priority, Time, RunId)> {
        self.waiting
            .iter()
            .find_map(|(&priority, queue)| queue.front().map(|&(at, run)| (priority, at, run)))
    }
}

/// All global lanes. A lane that holds nothing is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Lanes {
    lanes: BTreeMap<LaneName, Lane>,
}

impl Lanes {
    fn active_in(&self, lane: LaneName) -> usize {
        self.lanes.get(&lane).map_or(0, |lane| lane.active.len())
    }

    /// How many slots are taken, over all lanes.
    pub(crate) fn active(&self) -> usize {
        self.lanes.values().map(|lane| lane.active.len()).sum()
    }

    /// Whether one more may work in a lane: its cap, and the budget that it shares, if any.
    fn has_room(&self, lane: LaneName, config: &Config) -> bool {
        let cron = self.active_in(LaneName::CronNested);
        let hooks = self.active_in(LaneName::HookDispatch);
        let budget = config.lanes.cron as usize;
        let kept = usize::from(config.lanes.hook_dispatch > 0);
        let shared = match lane {
            LaneName::CronNested => {
                cron + hooks < budget && cron < budget.saturating_sub(kept).max(1)
            }
            LaneName::HookDispatch => cron + hooks < budget,
            _ => true,
        };
        shared && self.active_in(lane) < lane.cap(config) as usize
    }

    /// Whether a newcomer would get a slot at once: one is free and nobody waits for it.
    pub(crate) fn is_open(&self, lane: LaneName, config: &Config) -> bool {
        let alone = self.lanes.get(&lane).is_none_or(|lane| lane.queued() == 0);
        alone && self.has_room(lane, config)
    }

    /// How many work in a lane, and how many wait for it.
    pub(crate) fn ahead(&self, lane: LaneName) -> (usize, usize) {
        self.lanes
            .get(&lane)
            .map_or((0, 0), |lane| (lane.active.len(), lane.queued()))
    }

    pub(crate) fn holds(&self, lane: LaneName, run: RunId) -> bool {
        self.lanes
            .get(&lane)
            .is_some_and(|lane| lane.active.contains(&run))
    }

    pub(crate) fn awaits(&self, lane: LaneName, run: RunId) -> bool {
        let mut queues = self
            .lanes
            .get(&lane)
            .into_iter()
            .flat_map(|lane| lane.waiting.values());
        queues.any(|queue| queue.iter().any(|&(_, waiting)| waiting == run))
    }

    pub(crate) fn take(&mut self, lane: LaneName, run: RunId) {
        self.lanes.entry(lane).or_default().active.insert(run);
    }

    pub(crate) fn queue(&mut self, lane: LaneName, priority: Priority, now: Time, run: RunId) {
        let lane = self.lanes.entry(lane).or_default();
        lane.waiting
            .entry(priority)
            .or_default()
            .push_back((now, run));
    }

    /// Takes a run out, wherever it stands.
    pub(crate) fn remove(&mut self, name: LaneName, run: RunId) {
        let Some(lane) = self.lanes.get_mut(&name) else {
            return;
        };
        if !lane.active.remove(&run) {
            for queue in lane.waiting.values_mut() {
                queue.retain(|&(_, waiting)| waiting != run);
            }
            lane.waiting.retain(|_, queue| !queue.is_empty());
        }
        if lane.active.is_empty() && lane.waiting.is_empty() {
            self.lanes.remove(&name);
        }
    }

    /// Gives the next free slot: of the lanes that have room, to the highest priority, then to
    /// who waited longest, then by the lane's name (spec 2.2).
    fn grant(&mut self, config: &Config) -> Option<RunId> {
        let (_, _, name) = self
            .lanes
            .iter()
            .filter(|(name, _)| self.has_room(**name, config))
            .filter_map(|(&name, lane)| lane.head().map(|(priority, at, _)| (priority, at, name)))
            .min()?;
        let lane = self.lanes.get_mut(&name)?;
        let (priority, _, run) = lane.head()?;
        let queue = lane.waiting.get_mut(&priority)?;
        queue.pop_front();
        if queue.is_empty() {
            lane.waiting.remove(&priority);
        }
        lane.active.insert(run);
        Some(run)
    }

    /// The runs at work and waiting, each with its lane.
    pub(crate) fn members(&self) -> impl Iterator<Item = (LaneName, RunId)> + '_ {
        self.lanes.iter().flat_map(|(&name, lane)| {
            let waiting = lane.waiting.values().flatten().map(|&(_, run)| run);
            lane.active
                .iter()
                .copied()
                .chain(waiting)
                .map(move |run| (name, run))
        })
    }

    /// A lane in which more work than may, if there is one.
    pub(crate) fn overfull(&self, config: &Config) -> Option<RunId> {
        self.lanes
            .iter()
            .find(|(name, lane)| lane.active.len() > name.cap(config) as usize)
            .and_then(|(_, lane)| lane.active.first().copied())
    }
}

impl Core {
    /// Starts whatever can start: global slots first, then the head of this session's lane
    /// (L8), unless the process is about to end. A session that holds nothing any more goes cold.
    pub(crate) fn advance(&mut self, id: SessionId) {
        if self.is_open() {
            self.pump();
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if matches!(session.phase, Phase::Loading { .. }) {
            return;
        }
        if session.active.is_none()
            && session.hold.is_none()
            && self.gate == Gate::Open
            && let Some(&head) = session.waiting.front()
        {
            return self.begin(id, head);
        }
        if session.waiting.is_empty() {
            self.timers.disarm(Timer::Debounce(id));
        }
        if session.is_idle() {
            self.sessions.remove(&id);
            self.out(Output::Forget {
                subject: Subject::Session(id),
            });
        }
    }

    /// Gives the session's lane to the head of its line, unless that is not durable yet or
    /// waits for quiet.
    fn begin(&mut self, id: SessionId, head: RunId) {
        let Some(run) = self.runs.get(&head) else {
            return self.halt(HaltCode::SessionWithoutRun, Subject::Session(id));
        };
        let (lane, priority) = (run.lane, run.priority);
        if run.state != State::Waiting || self.must_debounce(id, head) {
            return;
        }
        self.timers.disarm(Timer::Debounce(id));
        self.waited(head);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.waiting.pop_front();
            session.active = Some(head);
            session.quiet_limit = None;
        }
        if self.lanes.is_open(lane, &self.config) {
            self.lanes.take(lane, head);
            return self.start_claim(head);
        }
        let (active, queued) = self.lanes.ahead(lane);
        let now = self.now.time;
        if let Some(run) = self.runs.get_mut(&head) {
            run.state = State::WaitingGlobal;
            run.waits_since = now;
            run.ahead = (
                u32::try_from(active).unwrap_or(u32::MAX),
                u32::try_from(queued).unwrap_or(u32::MAX),
            );
        }
        self.lanes.queue(lane, priority, now, head);
    }

    /// Fills the global lanes.
    fn pump(&mut self) {
        while let Some(run) = self.lanes.grant(&self.config) {
            self.waited(run);
            self.start_claim(run);
        }
    }

    /// Takes a run out of its session's lane and of the global lane. It stays known to the
    /// session until it has ended, so that the session is not loaded anew beneath it.
    pub(crate) fn detach(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.detached = true;
        self.lanes.remove(run.lane, id);
        if let Some(session) = self.sessions.get_mut(&run.session) {
            session.remove(id);
            session.detached.insert(id);
        }
    }
}
