//! From a log of inputs to a scenario: how a shrinker writes its finds.
//!
//! Owns the translation. It plays the log over a core once more, to know when each order went
//! out; what followed from that becomes the script of model and store, and the rest becomes
//! steps. What a scenario can't say (a lost report, another owner) is left out, so whoever
//! emits runs the result and compares the violation's code.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    AcceptReport, ClaimReport, Config, ConfigureReport, Fingerprint, Input, LoadReport,
    LookupReport, ModelFact, Now, Output, RequestId, ResetReport, RunId, Scope, SessionId,
    SettleReport, Speaker, StoreError, Ticket, Turn,
};

use super::ast::{Beat, Block, Part, Planted, Said, Scenario, Step, Terms, UNKNOWN};
use super::calls::{asks, ending};
use super::cast::{HEARTBEAT, ROOM};
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
struct Call {
    run: RunId,
    candidate: u16,
    at: u64,
    cancelled_at: Option<u64>,
    facts: Vec<(u64, ModelFact)>,
}

/// What the log shows of model, store, clock and process.
#[derive(Debug, Default)]
struct Seen {
    calls: Vec<Call>,
    by_ticket: BTreeMap<(u32, Ticket), usize>,
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
        let Some((ticket, refusal)) = store_report(&logged.input) else {
            return;
        };
        if let Some(at) = self.ordered.remove(&(life, ticket)) {
            let takes = self.takes.entry(at).or_insert(0);
            *takes = (*takes).max(now.saturating_sub(at));
            if let Some(error) = refusal {
                let step = Step::StoreRefuses {
                    error,
                    ends_only: matches!(logged.input, Input::Settled { .. }),
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

/// Names for the ids of a log, in the order of the ids.
#[derive(Debug, Default)]
struct Names {
    messages: BTreeMap<RunId, String>,
    sessions: BTreeMap<SessionId, String>,
    routes: BTreeMap<Fingerprint, String>,
    bodies: BTreeMap<RunId, [u8; 16]>,
    /// Requests that are left later have a client of their own.
    left: BTreeMap<RequestId, String>,
    speakers: BTreeMap<RequestId, Speaker>,
    asked: BTreeSet<RequestId>,
}

impl Names {
    fn of(log: &[Logged]) -> Self {
        let mut names = Self::default();
        let (mut runs, mut sessions, mut left) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut routes = BTreeSet::new();
        for logged in log {
            match &logged.input {
                Input::Submit(submit) => {
                    runs.insert(submit.run);
                    sessions.insert(submit.session);
                    if let Turn::Chat { route, speaker, .. } = submit.turn {
                        routes.insert(route);
                        names.speakers.insert(submit.request, speaker);
                    }
                    names.asked.insert(submit.request);
                }
                Input::Wait { request, .. } => {
                    names.asked.insert(*request);
                }
                Input::Abort { request, .. }
                | Input::Reset { request, .. }
                | Input::Configure { request, .. } => {
                    names.asked.insert(*request);
                }
                Input::Leave { request } => left.push(*request),
                _ => {}
            }
        }
        let number = |(id, n): (RunId, usize)| (id, format!("m{n}"));
        names.messages = runs.into_iter().zip(1..).map(number).collect();
        names.sessions = sessions
            .into_iter()
            .zip(0..)
            .map(|(id, n)| (id, letter(n)))
            .collect();
        // The first route is the plain one.
        let route = |(id, n): (Fingerprint, usize)| match n {
            0 => (id, String::new()),
            n => (id, format!("r{n}")),
        };
        names.routes = routes.into_iter().zip(0..).map(route).collect();
        names.left = left
            .into_iter()
            .zip(1_usize..)
            .map(|(id, n)| (id, format!("{}{n}", names.speaker(id).unwrap_or("bob"))))
            .collect();
        names
    }

    fn client(&self, request: RequestId) -> String {
        let speaker = || self.speaker(request).unwrap_or("alice").into();
        self.left.get(&request).cloned().unwrap_or_else(speaker)
    }

    /// Who sends a message whose sender's name says what he is.
    fn speaker(&self, request: RequestId) -> Option<&'static str> {
        match self.speakers.get(&request)? {
            Speaker::Room => Some(ROOM),
            Speaker::Heartbeat => Some(HEARTBEAT),
            Speaker::User => None,
        }
    }

    /// How a message takes part in a conversation.
    fn said(&self, turn: Turn) -> Option<Said> {
        match turn {
            Turn::Agent => None,
            Turn::Chat { queue, route, .. } => Some(Said {
                mode: queue,
                route: self.routes.get(&route).cloned().unwrap_or_default(),
            }),
        }
    }

    fn message(&self, run: RunId) -> String {
        self.messages
            .get(&run)
            .cloned()
            .unwrap_or_else(|| UNKNOWN.into())
    }

    fn step(&mut self, input: &Input) -> Option<Step> {
        match input {
            Input::Submit(submit) => {
                let (client, message) = (self.client(submit.request), self.message(submit.run));
                let Some(body) = self.bodies.get(&submit.run) else {
                    self.bodies.insert(submit.run, submit.body.0);
                    let session = self.sessions.get(&submit.session).cloned()?;
                    return Some(Step::Send {
                        client,
                        messages: vec![message],
                        session,
                        said: self.said(submit.turn),
                        terms: Terms {
                            budget: submit.budget,
                            lane: submit.lane,
                            priority: submit.priority,
                        },
                    });
                };
                Some(Step::Repeat {
                    client,
                    message,
                    other_body: *body != submit.body.0,
                })
            }
            Input::Wait {
                request,
                run,
                timeout_ms,
            } => Some(Step::Wait {
                client: self.client(*request),
                message: self.message(*run),
                limit_ms: *timeout_ms,
            }),
            Input::Abort {
                request,
                session,
                scope,
            } => {
                let named = self.sessions.get(session).cloned();
                let run = match scope {
                    Scope::Run(run) => Some(*run),
                    Scope::AtWork | Scope::Queued | Scope::All => None,
                };
                if run.is_none() && named.is_none() {
                    return None;
                }
                Some(Step::Abort {
                    client: self.client(*request),
                    message: run.map(|run| self.message(run)),
                    session: named.or_else(|| Some("elsewhere".into())),
                    part: match scope {
                        Scope::Queued => Part::Queued,
                        Scope::AtWork => Part::AtWork,
                        Scope::All | Scope::Run(_) => Part::All,
                    },
                })
            }
            Input::Reset {
                request,
                session,
                expected,
            } => Some(Step::Reset {
                client: self.client(*request),
                session: self.sessions.get(session).cloned()?,
                expected: *expected,
            }),
            Input::Configure {
                request,
                session,
                change,
            } => Some(Step::Queue {
                client: self.client(*request),
                session: self.sessions.get(session).cloned()?,
                change: *change,
            }),
            Input::Leave { request } => self.asked.contains(request).then(|| Step::Leave {
                client: self.client(*request),
            }),
            _ => None,
        }
    }

    /// What a call said of its own, and what it said once it was to stop.
    fn scripts(&self, call: &Call) -> (Step, Option<Step>) {
        let message = self.message(call.run);
        let until = call.cancelled_at.unwrap_or(u64::MAX);
        let (own, late): (Vec<_>, Vec<_>) = call.facts.iter().partition(|(at, _)| *at < until);
        let mut sent = 0;
        let answer = Step::Answer {
            message: message.clone(),
            fallback: (call.candidate > 0).then_some(call.candidate),
            beats: beats(call.at, &own, &mut sent),
        };
        let on_cancel = call.cancelled_at.map(|at| Step::OnCancel {
            message,
            beats: beats(at, &late, &mut sent),
        });
        (answer, on_cancel)
    }
}

fn letter(n: u8) -> String {
    match n {
        0..26 => char::from(b'A' + n).to_string(),
        n => format!("S{n}"),
    }
}

fn beats(from: u64, facts: &[&(u64, ModelFact)], sent: &mut u64) -> Vec<Beat> {
    let mut beats = Vec::new();
    let mut last = from;
    for (at, fact) in facts {
        let gap = at.saturating_sub(last);
        let one = |beat| match gap {
            0 => vec![beat],
            gap => vec![Beat::Pause(gap), beat],
        };
        let made = match fact {
            ModelFact::Structure => vec![Beat::Begins(gap)],
            ModelFact::Text { to } => {
                let bytes = to.saturating_sub(*sent);
                *sent = (*sent).max(*to);
                vec![Beat::Chunks {
                    count: 1,
                    apart_ms: gap,
                    bytes,
                }]
            }
            ModelFact::Alive => one(Beat::KeepAlives {
                every_ms: 0,
                for_ms: 0,
            }),
            ModelFact::Reasoning => one(Beat::Reasoning {
                every_ms: 0,
                for_ms: 0,
            }),
            ModelFact::Finished => one(Beat::Finishes),
            ModelFact::Ended(end) => {
                let mut beats: Vec<Beat> = asks(*end).into_iter().collect();
                beats.extend(one(Beat::Ends(ending(*end))));
                beats
            }
        };
        beats.extend(made);
        last = *at;
        if matches!(beats.last(), Some(Beat::Ends(_))) {
            return beats;
        }
    }
    beats.push(Beat::Silence);
    beats
}
