//! From a log of inputs to a scenario: how a shrinker writes its finds.
//!
//! Owns the translation. It plays the log over a core once more, to know when each order went
//! out; what followed from that becomes the script of model and store, and the rest becomes
//! steps. What a scenario can't say (a lost report, another owner) is left out, so whoever
//! emits runs the result and compares the violation's code.

use std::collections::BTreeMap;

use tidegate_core::{
    AcceptReport, CallId, ClaimReport, Config, ConfigureReport, Input, LaunchReport, LoadReport,
    LookupReport, ModelFact, Now, Output, ResetReport, RunId, SettleReport, StoreError, Ticket,
    ToolFact,
};

use super::ast::{Block, Planted, Refused, Scenario, Step};
use super::names::Names;
use crate::adapter::System;

/// An input as a watcher saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When.
    pub now: Now,
    /// In which life of the process, from 0.
    pub life: u32,
    /// The input.
    pub input: Input,
}

/// A model call of the log.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) ticket: Ticket,
    pub(super) run: RunId,
    pub(super) candidate: u16,
    pub(super) at: u64,
    pub(super) cancelled_at: Option<u64>,
    pub(super) facts: Vec<(u64, ModelFact)>,
}

/// A tool of the log.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) call: CallId,
    pub(super) at: u64,
    pub(super) stopped_at: Option<u64>,
    pub(super) facts: Vec<(u64, ToolFact)>,
}

/// What the log shows of model, store, clock and process.
#[derive(Debug, Default)]
struct Seen {
    calls: Vec<Call>,
    by_ticket: BTreeMap<(u32, Ticket), usize>,
    jobs: Vec<Job>,
    jobs_by_ticket: BTreeMap<(u32, Ticket), usize>,
    ordered: BTreeMap<(u32, Ticket), u64>,
    /// How long the store took for what was ordered at a time.
    takes: BTreeMap<u64, u64>,
    steps: Vec<(u64, Step)>,
    promised: Option<u64>,
    clock: Option<i128>,
    /// Orders of this life to end, among the steps.
    drains: Vec<usize>,
    drained: bool,
}

impl Scenario {
    /// The scenario of a log of inputs, such as a shrinker is left with. It expects nothing
    /// but that no promise is broken: it fails as long as the defect is there.
    #[must_use]
    pub fn from_log(
        name: impl Into<String>,
        config: &Config,
        fault: Option<Planted>,
        log: &[Logged],
    ) -> Self {
        let mut seen = Seen::default();
        seen.play(config, fault, log);
        let mut names = Names::of(log);
        let mut timed: Vec<(u64, u8, Step)> = Vec::new();
        timed.extend(seen.steps.drain(..).map(|(at, step)| (at, 0, step)));
        timed.extend(
            seen.store_takes()
                .into_iter()
                .map(|(at, step)| (at, 0, step)),
        );
        for logged in log {
            if let Some(step) = names.step(&logged.input) {
                timed.push((logged.now.time.0, 1, step));
            }
        }
        for call in &seen.calls {
            let (answer, on_cancel) = names.scripts(call);
            timed.push((call.at, 2, answer));
            timed.extend(on_cancel.map(|step| (call.at, 2, step)));
        }
        for job in &seen.jobs {
            let scripts = names.tool_scripts(job);
            timed.extend(scripts.into_iter().flatten().map(|step| (job.at, 2, step)));
        }
        timed.sort_by_key(|&(at, rank, _)| (at, rank));
        let mut scenario = Self::new(name);
        scenario.config = config.clone();
        scenario.fault = fault;
        for (at_ms, _, step) in timed {
            match scenario.timeline.last_mut() {
                Some(block) if block.at_ms == at_ms => block.steps.push(step),
                _ => scenario.timeline.push(Block {
                    at_ms,
                    any_order: false,
                    steps: vec![step],
                }),
            }
        }
        scenario
    }
}

impl Seen {
    fn play(&mut self, config: &Config, fault: Option<Planted>, log: &[Logged]) {
        let mut system = System::planted(config.clone(), fault.map(|p| (p.fault, p.occasion)));
        let mut before: Option<(u64, u32)> = None;
        for logged in log {
            let (now, life) = (logged.now.time.0, logged.life);
            if let Some((last, _)) = before.filter(|&(_, old)| old != life) {
                self.died(last, now.saturating_sub(last));
                system.restart(config.clone());
                self.promised = None;
            }
            before = Some((now, life));
            self.clocks(logged);
            self.report(logged);
            if let Input::Drain { budget_ms, .. } = &logged.input {
                let budget_ms = *budget_ms;
                let step = Step::Drain {
                    budget_ms,
                    down_ms: 0,
                };
                self.drains.push(self.steps.len());
                self.steps.push((now, step));
            }
            let mut outputs = Vec::new();
            system.handle(logged.now, &logged.input, None, &mut outputs);
            for output in &outputs {
                self.order(now, life, output);
            }
        }
    }

    /// A life is over: in order, if that was ordered and the core was done, or by a kill.
    fn died(&mut self, last: u64, down: u64) {
        let drains = std::mem::take(&mut self.drains);
        if !std::mem::take(&mut self.drained) {
            let step = Step::Crash {
                power: false,
                down_ms: down,
            };
            return self.steps.push((last, step));
        }
        for at in drains {
            if let Some((_, Step::Drain { down_ms, .. })) = self.steps.get_mut(at) {
                *down_ms = down;
            }
        }
    }

    /// A wall clock that was set, and a tick that came late.
    fn clocks(&mut self, logged: &Logged) {
        let now = logged.now.time.0;
        let shift = i128::from(logged.now.wall.0) - i128::from(now);
        if let Some(by) = self.clock.replace(shift).map(|old| shift - old)
            && by != 0
            && let Ok(by) = i64::try_from(by)
        {
            self.steps.push((now, Step::WallJump(by)));
        }
        if let (Input::Tick, Some(promised)) = (&logged.input, self.promised)
            && now > promised
        {
            self.steps.push((promised, Step::Freeze(now - promised)));
        }
    }

    fn report(&mut self, logged: &Logged) {
        let (now, life) = (logged.now.time.0, logged.life);
        if let Input::Model { ticket, fact } = &logged.input {
            let call = self
                .by_ticket
                .get(&(life, *ticket))
                .and_then(|&at| self.calls.get_mut(at));
            if let Some(call) = call {
                call.facts.push((now, fact.clone()));
            }
            return;
        }
        if let Input::Tool { ticket, fact } = &logged.input {
            let at = self.jobs_by_ticket.get(&(life, *ticket));
            if let Some(job) = at.and_then(|&at| self.jobs.get_mut(at)) {
                job.facts.push((now, *fact));
            }
            return;
        }
        let Some((ticket, refusal)) = store_report(&logged.input) else {
            return;
        };
        if let Some(at) = self.ordered.remove(&(life, ticket)) {
            let takes = self.takes.entry(at).or_insert(0);
            *takes = (*takes).max(now.saturating_sub(at));
            if let Some(error) = refusal {
                let step = Step::StoreRefuses {
                    error,
                    what: match logged.input {
                        Input::Settled { .. } => Refused::Ends,
                        Input::Launched { .. } => Refused::Launches,
                        _ => Refused::All,
                    },
                    for_ms: 1,
                };
                self.steps.push((now, step));
            }
        }
    }

    fn order(&mut self, now: u64, life: u32, output: &Output) {
        match output {
            Output::Load { ticket, .. }
            | Output::Accept { ticket, .. }
            | Output::Claim { ticket, .. }
            | Output::Settle { ticket, .. }
            | Output::Launch { ticket, .. }
            | Output::Reset { ticket, .. }
            | Output::Configure { ticket, .. }
            | Output::Lookup { ticket, .. } => {
                self.ordered.insert((life, *ticket), now);
            }
            Output::StartModel {
                ticket,
                fence,
                candidate,
            } => {
                self.by_ticket.insert((life, *ticket), self.calls.len());
                self.calls.push(Call {
                    ticket: *ticket,
                    run: fence.run,
                    candidate: *candidate,
                    at: now,
                    cancelled_at: None,
                    facts: Vec::new(),
                });
            }
            Output::CancelModel { ticket } => {
                let call = self.by_ticket.get(&(life, *ticket)).copied();
                if let Some(call) = call.and_then(|at| self.calls.get_mut(at)) {
                    call.cancelled_at.get_or_insert(now);
                }
            }
            Output::StartTool { ticket, call } => {
                self.jobs_by_ticket.insert((life, *ticket), self.jobs.len());
                self.jobs.push(Job {
                    call: *call,
                    at: now,
                    stopped_at: None,
                    facts: Vec::new(),
                });
            }
            Output::CancelTool { ticket } => {
                let at = self.jobs_by_ticket.get(&(life, *ticket)).copied();
                if let Some(job) = at.and_then(|at| self.jobs.get_mut(at)) {
                    job.stopped_at.get_or_insert(now);
                }
            }
            Output::Drained => self.drained = true,
            Output::Sleep { until, .. } => self.promised = until.map(|until| until.0),
            _ => {}
        }
    }

    fn store_takes(&self) -> Vec<(u64, Step)> {
        let mut steps = Vec::new();
        let mut current = 0;
        for (&at, &takes) in &self.takes {
            if takes != current {
                steps.push((at, Step::StoreTakes(takes)));
                current = takes;
            }
        }
        steps
    }
}

/// Whether an input is a report of the store, and why that refused.
fn store_report(input: &Input) -> Option<(Ticket, Option<StoreError>)> {
    Some(match input {
        Input::Loaded { ticket, report } => match report {
            LoadReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        Input::Accepted { ticket, report } => match report {
            AcceptReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        Input::Claimed { ticket, report } => match report {
            ClaimReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        Input::Settled { ticket, report } => match report {
            SettleReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        Input::Launched { ticket, report } => match report {
            LaunchReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        Input::LookedUp { ticket, report } => match report {
            LookupReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        Input::WasReset { ticket, report } => match report {
            ResetReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        Input::Configured { ticket, report } => match report {
            ConfigureReport::Refused(error) => (*ticket, Some(*error)),
            _ => (*ticket, None),
        },
        _ => return None,
    })
}
