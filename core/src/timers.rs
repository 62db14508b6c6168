//! The table of deadlines: what is armed, for whom, since when.
//!
//! A deadline is data with a name (law 7). Each kind belongs to one entity and is armed at
//! most once for it; arming again moves it. The table decides nothing: what a deadline
//! means stands with its owner, which takes it out when it ends, so a stale firing can't
//! happen (I59).

use alloc::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{RequestId, RunId, SessionId, Subject};
use crate::time::Time;

/// A deadline's kind and owner. At one instant the smaller fires first: a budget beats an
/// idle limit, so the recorded reason is the stronger one (decisions: ties).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Timer {
    /// The run used up its executed time (R149).
    Budget(RunId),
    /// The lane task has had its allowance; its slot is freed (spec 2.3).
    LaneLimit(RunId),
    /// The provider sent no event (P12).
    FirstEvent(RunId),
    /// The stream made no progress (R156).
    Idle(RunId),
    /// The provider said that the model finished, and the call stays open (S-08).
    FinishTail(RunId),
    /// The model is asked again after a failed call (spec 5.2).
    ProviderRetry(RunId),
    /// A tool call has had its time (M25); then, that its stop is waited for no longer. The
    /// number is its place in the answer.
    Tool(RunId, u16),
    /// A tool call waits for a person no longer (spec 7.3).
    Approval(RunId, u16),
    /// A refused store order of a run is given again.
    StoreRetry(RunId),
    /// A refused load of a session is given again.
    LoadRetry(SessionId),
    /// A session's queue has been quiet for long enough (spec 3.3).
    Debounce(SessionId),
    /// Text that arrived is published (L18).
    TextPace(RunId),
    /// Text that arrived is saved.
    SavePace(RunId),
    /// Output of tool calls that arrived is published.
    OutputPace(RunId),
    /// A wait has had its time (R145).
    Wait(RequestId),
    /// The drain has had its budget (spec 2.5).
    Drain(RequestId),
}

impl Timer {
    /// Whose deadline it is.
    #[must_use]
    pub const fn owner(self) -> Subject {
        match self {
            Self::Budget(run)
            | Self::LaneLimit(run)
            | Self::FirstEvent(run)
            | Self::Idle(run)
            | Self::FinishTail(run)
            | Self::ProviderRetry(run)
            | Self::Tool(run, _)
            | Self::Approval(run, _)
            | Self::OutputPace(run)
            | Self::StoreRetry(run)
            | Self::TextPace(run)
            | Self::SavePace(run) => Subject::Run(run),
            Self::LoadRetry(session) | Self::Debounce(session) => Subject::Session(session),
            Self::Wait(request) | Self::Drain(request) => Subject::Request(request),
        }
    }

    /// Whether it measures activity, which a late wake must not be blamed for; the others
    /// are absolute (design section 3, P37).
    #[must_use]
    pub const fn measures_activity(self) -> bool {
        self.measures_silence() || matches!(self, Self::LaneLimit(_) | Self::Tool(..))
    }

    /// Whether it measures how long a provider has been silent.
    const fn measures_silence(self) -> bool {
        matches!(
            self,
            Self::FirstEvent(_) | Self::Idle(_) | Self::FinishTail(_)
        )
    }

    /// The name under which people meet it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Budget(_) => "run budget",
            Self::LaneLimit(_) => "lane task limit",
            Self::FirstEvent(_) => "first-event limit",
            Self::Idle(_) => "idle limit",
            Self::FinishTail(_) => "finish tail",
            Self::ProviderRetry(_) => "provider retry",
            Self::Tool(..) => "tool limit",
            Self::Approval(..) => "approval limit",
            Self::StoreRetry(_) => "store retry",
            Self::LoadRetry(_) => "load retry",
            Self::Debounce(_) => "queue debounce",
            Self::TextPace(_) => "text pacing",
            Self::SavePace(_) => "save pacing",
            Self::OutputPace(_) => "output pacing",
            Self::Wait(_) => "wait limit",
            Self::Drain(_) => "drain budget",
        }
    }
}

/// An armed deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Armed {
    /// When it fires.
    pub at: Time,
    /// What it is and whose.
    pub timer: Timer,
    /// When it was armed or last moved.
    pub since: Time,
}

/// The table. Both sides hold the same timers; [`Timers::agree`] checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Time, Timer)>,
    by_timer: BTreeMap<Timer, (Time, Time)>,
}

impl Timers {
    /// Arms or moves a deadline.
    pub(crate) fn arm(&mut self, timer: Timer, now: Time, at: Time) {
        if let Some((old, _)) = self.by_timer.insert(timer, (at, now)) {
            if old == at {
                return;
            }
            self.by_time.remove(&(old, timer));
        }
        self.by_time.insert((at, timer));
    }

    /// Takes a deadline out. One that is not armed is no error.
    pub(crate) fn disarm(&mut self, timer: Timer) {
        if let Some((at, _)) = self.by_timer.remove(&timer) {
            self.by_time.remove(&(at, timer));
        }
    }

    /// When it fires, if it is armed.
    pub(crate) fn at(&self, timer: Timer) -> Option<Time> {
        self.by_timer.get(&timer).map(|&(at, _)| at)
    }

    /// The soonest deadline.
    pub(crate) fn next(&self) -> Option<(Time, Timer)> {
        self.by_time.first().copied()
    }

    /// Takes the soonest deadline out if it is due.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        let (at, timer) = self.next()?;
        if at > now {
            return None;
        }
        self.disarm(timer);
        Some(timer)
    }

    /// Moves every activity limit by `ms`: time in which nobody could have acted. A provider's
    /// silence does not count before `earliest`: who lives far away has time to be heard.
    pub(crate) fn shift_activity(&mut self, ms: u64, earliest: Time) {
        let late: alloc::vec::Vec<(Timer, Time, Time)> = self
            .by_timer
            .iter()
            .filter(|(timer, _)| timer.measures_activity())
            .map(|(&timer, &(at, since))| (timer, at, since))
            .collect();
        for (timer, at, since) in late {
            let at = at.plus(ms);
            let at = if timer.measures_silence() {
                at.max(earliest)
            } else {
                at
            };
            self.arm(timer, since, at);
        }
    }

    /// All armed deadlines, soonest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Armed> + '_ {
        self.by_time.iter().map(|&(at, timer)| Armed {
            at,
            timer,
            since: self.by_timer.get(&timer).map_or(at, |&(_, since)| since),
        })
    }

    /// How many are armed.
    pub(crate) fn len(&self) -> usize {
        self.by_timer.len()
    }

    /// Whether both sides hold the same timers.
    pub(crate) fn agree(&self) -> bool {
        self.by_time.len() == self.by_timer.len()
            && self
                .by_time
                .iter()
                .all(|(at, timer)| self.by_timer.get(timer).is_some_and(|(a, _)| a == at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_u128(1);

    #[test]
    fn arming_again_moves_the_deadline() {
        let mut timers = Timers::default();
        timers.arm(Timer::Idle(RUN), Time(0), Time(10));
        timers.arm(Timer::Idle(RUN), Time(5), Time(20));
        assert_eq!(timers.pop_due(Time(19)), None);
        assert_eq!(timers.pop_due(Time(20)), Some(Timer::Idle(RUN)));
        assert_eq!(timers.next(), None);
        assert!(timers.agree());
    }

    /// decisions: ties
    #[test]
    fn at_one_instant_the_budget_fires_before_the_idle_limit() {
        let mut timers = Timers::default();
        timers.arm(Timer::Idle(RUN), Time(0), Time(10));
        timers.arm(Timer::Budget(RUN), Time(0), Time(10));
        assert_eq!(timers.pop_due(Time(10)), Some(Timer::Budget(RUN)));
    }

    /// P37
    #[test]
    fn lateness_moves_activity_limits_and_no_absolute_ones() {
        let mut timers = Timers::default();
        timers.arm(Timer::Idle(RUN), Time(0), Time(10));
        timers.arm(Timer::Budget(RUN), Time(0), Time(10));
        timers.shift_activity(100, Time(0));
        assert_eq!(timers.at(Timer::Idle(RUN)), Some(Time(110)));
        assert_eq!(timers.at(Timer::Budget(RUN)), Some(Time(10)));
        timers.shift_activity(5, Time(500));
        assert_eq!(timers.at(Timer::Idle(RUN)), Some(Time(500)));
    }
}
