//! I13, L8 and the order of the global lanes, and how long a quiet queue may be waited for:
//! the book that the lanes' checker keeps of them.
//!
//! Owns its own reading of the table of lanes (spec 2.1) and of the quiet time (spec 3.3),
//! written apart from the core's.

use std::collections::BTreeMap;

use tidegate_core::{
    Config, ConfigureReport, LaneName, Place, Priority, QueueMode, QueueOverride, RunId, SessionId,
    Ticket, Time, Turn,
};

use super::Moment;
use super::lanes::works_in;

/// The head of a session's line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    /// Whether a reset or a change of settings is under way.
    pub(super) held: bool,
    /// Whether a run of its session that may have lost the lane has not ended.
    pub(super) behind: bool,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    lane: LaneName,
    priority: Priority,
    /// Whether its mode has it wait for a quiet queue.
    waits_for_quiet: bool,
    /// Whether it stood behind others when it was accepted.
    stood_behind: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Quiet {
    /// When a message last joined the line.
    joined: Time,
    /// The head that waits beside a free session, since when, and how long the loop stood still
    /// meanwhile.
    idle: Option<(RunId, Time, u64)>,
    /// The longest quiet time that held meanwhile.
    slowest_ms: u64,
    queue: QueueOverride,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Slots {
    runs: BTreeMap<RunId, Run>,
    quiet: BTreeMap<SessionId, Quiet>,
    changes: BTreeMap<Ticket, (SessionId, QueueOverride)>,
    /// Heads that wait for nothing but a slot, and since which input they do: at the earliest,
    /// and at the latest if that is known to have come.
    eligible: BTreeMap<RunId, (u64, Option<u64>)>,
}

impl Slots {
    pub(super) fn admit(&mut self, run: RunId, turn: Turn, lane: LaneName, priority: Priority) {
        let quiet = Some(QueueMode::Followup)..=Some(QueueMode::Collect);
        let run_of = Run {
            waits_for_quiet: match turn {
                Turn::Chat { queue, .. } => quiet.contains(&queue),
                Turn::Agent => false,
            },
            lane: works_in(lane),
            priority,
            stood_behind: false,
        };
        self.runs.insert(run, run_of);
    }

    /// What an earlier life had at work takes its place at the load.
    pub(super) fn begins(&mut self, run: RunId, input: u64) {
        self.eligible.insert(run, (input, None));
    }

    /// Where a message was told to stand.
    pub(super) fn stands(&mut self, run: RunId, place: Place) {
        if let (Some(run), Place::Queued { ahead: 1.. }) = (self.runs.get_mut(&run), place) {
            run.stood_behind = true;
        }
    }

    pub(super) fn forget(&mut self, run: RunId) {
        self.runs.remove(&run);
        self.eligible.remove(&run);
    }

    pub(super) fn set(&mut self, session: SessionId, queue: QueueOverride) {
        self.quiet.insert(
            session,
            Quiet {
                queue,
                ..Quiet::default()
            },
        );
    }

    pub(super) fn configures(&mut self, ticket: Ticket, session: SessionId, queue: QueueOverride) {
        self.changes.insert(ticket, (session, queue));
    }

    pub(super) fn configured(&mut self, ticket: Ticket, report: &ConfigureReport) {
        if let (Some((session, queue)), ConfigureReport::Committed) =
            (self.changes.remove(&ticket), report)
        {
            self.quiet.entry(session).or_default().queue = queue;
        }
    }

    pub(super) fn joined(&mut self, session: SessionId, now: Time) {
        self.quiet.entry(session).or_default().joined = now;
    }

    pub(super) fn froze(&mut self, ms: u64) {
        for quiet in self.quiet.values_mut() {
            if let Some((_, _, still)) = &mut quiet.idle {
                *still += ms;
            }
        }
    }

    /// Whether a run waits, or may wait, for nothing but a slot.
    pub(super) fn waits(&self, run: RunId) -> bool {
        self.eligible.contains_key(&run)
    }

    /// How many of these work in a lane.
    fn count(&self, lane: LaneName, at_work: &[RunId]) -> u32 {
        let here = |run: &&RunId| self.runs.get(run).is_some_and(|run| run.lane == lane);
        u32::try_from(at_work.iter().filter(here).count()).unwrap_or(u32::MAX)
    }

    /// Whether one more would be too many in its lane. Hooks share the budget of cron turns,
    /// and one slot of it is kept for them while they are on.
    pub(super) fn is_full(&self, config: &Config, run: RunId, at_work: &[RunId]) -> bool {
        let Some(lane) = self.runs.get(&run).map(|run| run.lane) else {
            return false;
        };
        let (cron, hooks) = (
            self.count(LaneName::CronNested, at_work),
            self.count(LaneName::HookDispatch, at_work),
        );
        let budget = config.lanes.cron;
        let for_hooks = u32::from(config.lanes.hook_dispatch > 0);
        match lane {
            LaneName::Main => self.count(lane, at_work) >= config.global_lane_cap,
            LaneName::Subagent => self.count(lane, at_work) >= config.lanes.subagent,
            LaneName::Nested => self.count(lane, at_work) >= config.lanes.nested,
            LaneName::Background => self.count(lane, at_work) >= config.lanes.background,
            LaneName::Cron | LaneName::CronNested => {
                let most = budget.saturating_sub(for_hooks).max(1);
                cron + hooks >= budget || cron >= most
            }
            LaneName::HookDispatch => cron + hooks >= budget || hooks >= config.lanes.hook_dispatch,
        }
    }

    /// Whether a run takes a slot before another one of its lane that had to get it first.
    pub(super) fn overtakes(&self, run: RunId, heads: impl Iterator<Item = RunId>) -> bool {
        let Some(own) = self.runs.get(&run) else {
            return false;
        };
        let since = self.eligible.get(&run).map_or(u64::MAX, |since| since.0);
        let mut before = heads.filter(|&head| head != run).filter_map(|head| {
            let (other, since) = (self.runs.get(&head)?, self.eligible.get(&head)?.1?);
            (other.lane == own.lane).then_some((other.priority, since))
        });
        before.any(|other| other < (own.priority, since))
    }

    /// Of the heads that wait beside a free session: those that ought to be at work.
    pub(super) fn idle(&mut self, at: &Moment<'_>, heads: &[Member], busy: &[RunId]) -> Vec<RunId> {
        for (session, quiet) in &mut self.quiet {
            let waits = |head: &Member| head.session == *session && !head.behind;
            if !heads.iter().any(waits) {
                quiet.idle = None;
            }
        }
        let mut late = Vec::new();
        let mut eligible = BTreeMap::new();
        for head in heads {
            let quiet = self.quiet.entry(head.session).or_default();
            let (_, since, still) = match quiet.idle {
                Some(idle) if idle.0 == head.run && !head.behind && !head.held => idle,
                _ => (head.run, at.now, 0),
            };
            if !head.behind {
                if since == at.now {
                    quiet.slowest_ms = 0;
                }
                quiet.idle = Some((head.run, since, still));
            }
            let idle = (since, still);
            let quiet = head.behind || self.waits_for_quiet(at, *head, idle);
            let (first, last) = match self.eligible.get(&head.run) {
                Some(&since) => since,
                // While its session is held it takes no place in the lane.
                None if head.held => continue,
                None => (at.input, None),
            };
            let last = last.or((!quiet && !head.held).then_some(at.input));
            eligible.insert(head.run, (first, last));
            if !quiet && !head.held && !self.is_full(at.config, head.run, busy) {
                late.push(head.run);
            }
        }
        self.eligible = eligible;
        late
    }

    fn waits_for_quiet(&mut self, at: &Moment<'_>, head: Member, idle: (Time, u64)) -> bool {
        let waits = |run: &Run| run.stood_behind && run.waits_for_quiet;
        if !self.runs.get(&head.run).is_some_and(waits) {
            return false;
        }
        let Some(quiet) = self.quiet.get_mut(&head.session) else {
            return false;
        };
        let ms = quiet
            .queue
            .debounce_ms
            .unwrap_or(at.config.queue.debounce_ms);
        quiet.slowest_ms = quiet.slowest_ms.max(ms);
        let (since, still) = idle;
        let most = u64::from(at.config.queue_debounces_max) * quiet.slowest_ms;
        let due = quiet.joined.plus(ms).min(since.plus(most));
        ms > 0 && at.now <= due.plus(still + at.slack_ms)
    }
}
