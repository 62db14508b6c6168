//! P11, P12, P13, P14, P15, P37, B-050, L1, L6, S-08: a silent call is ended, neither late nor early.
//!
//! Owns its own reading of the table of limits (spec 5.1), written apart from the core's, so
//! that a slip in one shows against the other.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Attempt, Budget, Config, Event, Failure, Input, Limit, ModelFact, Outcome, Output,
    ProviderClass, ProviderConfig, RunId, Subject, Ticket, Time,
};

use super::lanes::full_budget;
use super::{Check, Moment};
use crate::violation::Code;

/// What a call is allowed, in milliseconds; `None` is no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) first_ms: u64,
    pub(crate) idle_ms: Option<u64>,
    pub(crate) budget_ms: Option<u64>,
}

/// What a call may be silent for by the chain: with others behind it, an equal part of the time
/// that is left when it goes out. `None` is no such limit.
pub(crate) fn part(config: &Config, candidate: u16, left_ms: Option<u64>) -> Option<u64> {
    let behind = config.fallbacks.len().checked_sub(usize::from(candidate))?;
    let sharers = 1 + u64::try_from(behind).unwrap_or(u64::MAX);
    left_ms.filter(|_| behind > 0).map(|ms| ms / sharers)
}

/// The provider that a place in the chain stands for.
fn provider(config: &Config, candidate: u16) -> ProviderConfig {
    let chain = [config.provider].into_iter();
    let mut chain = chain.chain(config.fallbacks.iter().copied());
    chain.nth(usize::from(candidate)).unwrap_or(config.provider)
}

impl Allowed {
    /// The limits of a call that goes out with so much left of its run's budget.
    pub(crate) fn with_part(self, part: Option<u64>) -> Self {
        let Some(part) = part else { return self };
        Self {
            first_ms: self.first_ms.min(part),
            idle_ms: Some(self.idle_ms.unwrap_or(part).min(part)),
            ..self
        }
    }
}

/// The limits of a provider's call for a run that names `own` as its limit.
pub(crate) fn allowed(config: &Config, candidate: u16, own: Option<Budget>) -> Allowed {
    let asked = provider(config, candidate);
    let agent = match config.agent_budget {
        Some(Budget::Limited(ms)) => Some(ms),
        _ => None,
    };
    let (first_base, idle_base) = match asked.class {
        ProviderClass::Cloud => (120_000, Some(120_000)),
        ProviderClass::SelfHosted => (300_000, Some(300_000)),
        ProviderClass::Local => (300_000, None),
    };
    let cap = |base: Option<u64>, limit: Option<u64>| match (base, limit) {
        (Some(base), Some(limit)) => Some(base.min(limit)),
        (one, other) => one.or(other),
    };
    let timeout = asked.timeout_ms;
    let outer = match own {
        None => agent,
        Some(Budget::Limited(ms)) => Some(ms),
        Some(Budget::Unlimited) => None,
    };
    let first_ms = cap(timeout.or(Some(first_base)), outer).unwrap_or(first_base);
    let idle_ms = if timeout.is_some() {
        cap(timeout, outer)
    } else if own == Some(Budget::Unlimited) {
        cap(idle_base, agent)
    } else {
        cap(idle_base, outer)
    };
    Allowed {
        first_ms,
        idle_ms,
        budget_ms: full_budget(config, own),
    }
}

#[derive(Clone, Copy, Debug)]
struct Call {
    run: RunId,
    attempt: Attempt,
    allowed: Allowed,
    started: Time,
    /// The last progress.
    since: Time,
    begun: bool,
    /// When the provider said that the model finished, if no output came after it.
    finished: Option<Time>,
    /// Whether arguments of tool calls came.
    calling: bool,
    /// How long the loop stood still since the last progress, and since the start.
    still_ms: u64,
    still_all_ms: u64,
    /// The end of the grace after the last late wake: no silence counts before it.
    heard_by: Time,
    /// By how much late wakes moved the limit since the last progress (P37).
    moved_ms: u64,
}

impl Call {
    /// Whether a call that was cancelled as completed could have gone on: neither the finish
    /// tail nor another limit had passed. What earlier attempts used of a budget is not known
    /// here.
    fn ends_early(&self, config: &Config, when: Time) -> bool {
        let passed = |since: Time, ms: Option<u64>| ms.is_some_and(|ms| when.since(since) >= ms);
        let tail = self
            .finished
            .is_some_and(|since| passed(since, Some(config.finish_tail_ms)));
        let budget = self.attempt != Attempt(1) || passed(self.started, self.allowed.budget_ms);
        !(tail || budget || passed(self.since, self.allowed.idle_ms))
    }

    fn limit(&self) -> Option<u64> {
        if self.begun {
            self.allowed.idle_ms
        } else {
            Some(self.allowed.first_ms)
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    calls: BTreeMap<Ticket, Call>,
    /// Calls that were cancelled and whose run's outcome is not known yet, with the time.
    cancelled: BTreeMap<RunId, (Call, Time)>,
    /// What the last claim of a run left of its budget.
    left_ms: BTreeMap<RunId, Option<u64>>,
    /// Runs that were told in this step to ask again, or another provider.
    again: BTreeSet<RunId>,
    /// The wake that the core asked for.
    promised: Option<Time>,
}

impl Silence {
    fn outcome(&mut self, at: &mut Moment<'_>, run: RunId, outcome: Outcome) {
        if let Some((call, when)) = self.cancelled.remove(&run) {
            Self::judge(at, &call, when, outcome);
        }
    }

    /// Whether a call could end so, that was cancelled then.
    fn judge(at: &mut Moment<'_>, call: &Call, when: Time, outcome: Outcome) {
        let run = call.run;
        // One that hangs while it asks for tools did not answer.
        let hangs = outcome == Outcome::Failed(Failure::Incomplete) && call.calling;
        let completed = outcome == Outcome::Completed;
        if (completed || hangs) && call.ends_early(at.config, when) {
            return at.run(Code::LimitEarly, run);
        }
        let Outcome::TimedOut { limit, .. } = outcome else {
            return;
        };
        let (passed, owed) = match limit {
            Limit::Idle => {
                let owed = call.allowed.idle_ms.map(|ms| ms + call.moved_ms);
                (when.since(call.since), owed)
            }
            Limit::FirstEvent => {
                let owed = call.allowed.first_ms + call.moved_ms;
                (when.since(call.started), Some(owed))
            }
            Limit::Budget if call.attempt == Attempt(1) => {
                (when.since(call.started), call.allowed.budget_ms)
            }
            Limit::Budget | Limit::Lane => return,
        };
        if owed.is_none_or(|owed| passed < owed) {
            at.run(Code::LimitEarly, run);
        }
    }
}

impl Check for Silence {
    fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
        let late = self.promised.map_or(0, |promised| at.now.since(promised));
        if late > at.config.lateness_ms {
            for call in self.calls.values_mut() {
                call.moved_ms += late;
                call.heard_by = at.now.plus(at.config.resume_grace_ms);
            }
        }
        let Input::Model { ticket, fact } = input else {
            return;
        };
        let Some(call) = self.calls.get_mut(ticket) else {
            return;
        };
        match fact {
            // Data without output begins a stream; after that it is a sign of life only.
            ModelFact::Structure if call.begun => {}
            ModelFact::Alive => {}
            ModelFact::Structure
            | ModelFact::Calling
            | ModelFact::Call(_)
            | ModelFact::Reasoning
            | ModelFact::Finished
            | ModelFact::Text { .. } => {
                call.calling |= *fact == ModelFact::Calling;
                call.finished = (*fact == ModelFact::Finished).then_some(at.now);
                call.begun = true;
                call.since = at.now;
                call.still_ms = 0;
                call.moved_ms = 0;
                call.heard_by = Time(0);
            }
            ModelFact::Ended(_) => {
                self.calls.remove(ticket);
            }
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Accept { accept, .. } => {
                if let Some(claim) = &accept.claim {
                    self.left_ms.insert(accept.run, claim.left_ms);
                }
            }
            Output::Claim { fence, claim, .. } => {
                self.left_ms.insert(fence.run, claim.left_ms);
            }
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                self.left_ms.remove(run);
            }
            Output::StartModel {
                ticket,
                fence,
                candidate,
            } => {
                let left_ms = self.left_ms.get(&fence.run).copied().flatten();
                let part = part(at.config, *candidate, left_ms);
                let own = at.store.run(fence.run).and_then(|row| row.budget);
                self.calls.insert(
                    *ticket,
                    Call {
                        run: fence.run,
                        attempt: fence.attempt,
                        allowed: allowed(at.config, *candidate, own).with_part(part),
                        started: at.now,
                        since: at.now,
                        begun: false,
                        finished: None,
                        calling: false,
                        still_ms: 0,
                        still_all_ms: 0,
                        moved_ms: 0,
                        heard_by: Time(0),
                    },
                );
            }
            Output::Sleep { until, .. } => self.promised = *until,
            Output::CancelModel { ticket } => {
                if let Some(call) = self.calls.remove(ticket)
                    && let Subject::Run(run) = ticket.subject
                    && !self.again.contains(&run)
                {
                    self.cancelled.insert(run, (call, at.now));
                }
            }
            Output::Publish {
                run,
                event: Event::Finishing { outcome },
                ..
            } => {
                self.outcome(at, *run, *outcome);
            }
            Output::Publish {
                run,
                event: Event::Retrying { because, .. } | Event::Fallback { because, .. },
                ..
            } => {
                self.again.insert(*run);
                if let Some(call) = self.calls.values().find(|call| call.run == *run) {
                    Self::judge(at, call, at.now, *because);
                }
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        self.again.clear();
        let mut found = None;
        for (&ticket, call) in &self.calls {
            let silent = call.limit().is_some_and(|ms| {
                let limit = call.since.plus(ms + call.still_ms);
                at.now > limit.max(call.heard_by).plus(at.slack_ms)
            });
            let over = call.allowed.budget_ms.is_some_and(|ms| {
                at.now
                    > call
                        .started
                        .plus(ms.saturating_add(call.still_all_ms + at.slack_ms))
            });
            let tail = call.finished.is_some_and(|since| {
                let limit = since.plus(at.config.finish_tail_ms + call.still_ms);
                at.now > limit.max(call.heard_by).plus(at.slack_ms)
            });
            let code = match (tail, silent, over) {
                (true, _, _) => Code::TailLong,
                (_, true, _) => Code::Silent,
                (_, _, true) => Code::OverBudget,
                _ => continue,
            };
            found = Some((ticket, code, call.run));
        }
        if let Some((ticket, code, run)) = found {
            self.calls.remove(&ticket);
            at.run(code, run);
        }
    }

    fn froze(&mut self, ms: u64) {
        for call in self.calls.values_mut() {
            call.still_ms += ms;
            call.still_all_ms += ms;
            // Nor could it be heard while the loop stood still again.
            call.heard_by = call.heard_by.plus(ms);
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::ProviderConfig;

    use super::*;

    /// R156, R157: corner cells of the measured table, so that this reading is one as well.
    #[test]
    fn the_second_reading_of_the_limits_agrees_with_the_measured_corners() {
        let cell = |class, timeout_ms, own, agent: Option<u64>| {
            let config = Config {
                provider: ProviderConfig { class, timeout_ms },
                agent_budget: agent.map(Budget::Limited),
                ..Config::default()
            };
            let allowed = allowed(&config, 0, own);
            (
                allowed.idle_ms.unwrap_or(0) / 1_000,
                allowed.first_ms / 1_000,
            )
        };
        let run = |s: u64| Some(Budget::Limited(s * 1_000));
        let unlimited = Some(Budget::Unlimited);
        assert_eq!(
            cell(ProviderClass::Cloud, None, unlimited, Some(90_000)),
            (90, 120)
        );
        assert_eq!(cell(ProviderClass::Local, None, None, None), (0, 300));
        assert_eq!(
            cell(ProviderClass::Local, None, None, Some(3_600_000)),
            (3_600, 300)
        );
        assert_eq!(
            cell(ProviderClass::Local, None, run(600), Some(90_000)),
            (600, 300)
        );
        assert_eq!(
            cell(ProviderClass::SelfHosted, None, run(30), None),
            (30, 30)
        );
        assert_eq!(
            cell(ProviderClass::Cloud, Some(900_000), run(600), None),
            (600, 600)
        );
    }

    /// P15, B-050: each of a chain has its own limits, and no more than its part.
    #[test]
    fn a_provider_of_a_chain_has_its_own_limits_within_its_part() {
        let local = ProviderConfig {
            class: ProviderClass::Local,
            timeout_ms: None,
        };
        let config = Config {
            fallbacks: vec![
                local,
                ProviderConfig {
                    timeout_ms: Some(7),
                    ..local
                },
            ],
            ..Config::default()
        };
        let first_ms = |n| allowed(&config, n, None).first_ms;
        assert_eq!([0, 1, 2].map(first_ms), [120_000, 300_000, 7]);
        let parts = |left_ms| [0, 1, 2, 3].map(|n| part(&config, n, left_ms));
        assert_eq!(
            parts(Some(180_000)),
            [Some(60_000), Some(90_000), None, None]
        );
        assert_eq!(parts(None), [None; 4]);
        let limits = allowed(&config, 1, None).with_part(Some(90_000));
        assert_eq!((limits.first_ms, limits.idle_ms), (90_000, Some(90_000)));
    }
}
