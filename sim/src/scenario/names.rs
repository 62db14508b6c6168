//! Names for what a log holds by id only, and scripts in those names.
//!
//! Owns the words of an emitted scenario: which message, session, route, client and call is
//! called how. The order of the ids stays the order of the names.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    CallId, Fingerprint, Input, ModelFact, RequestId, RunId, Scope, SessionId, Speaker, Subject,
    Ticket, ToolFact, Turn,
};

use super::ast::{Beat, Part, Said, Step, Terms, UNKNOWN, Work};
use super::calls::{asks, ending};
use super::cast::{HEARTBEAT, ROOM};
use super::emit::{Call, Job, Logged};

/// Names for the ids of a log, in the order of the ids.
#[derive(Debug, Default)]
pub(super) struct Names {
    messages: BTreeMap<RunId, String>,
    sessions: BTreeMap<SessionId, String>,
    routes: BTreeMap<Fingerprint, String>,
    bodies: BTreeMap<RunId, [u8; 16]>,
    calls: BTreeMap<CallId, String>,
    /// Requests that are left later have a client of their own.
    left: BTreeMap<RequestId, String>,
    speakers: BTreeMap<RequestId, Speaker>,
    asked: BTreeSet<RequestId>,
}

impl Names {
    pub(super) fn of(log: &[Logged]) -> Self {
        let mut names = Self::default();
        let (mut runs, mut sessions, mut left) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let mut routes = BTreeSet::new();
        let mut places: BTreeMap<Ticket, u16> = BTreeMap::new();
        for logged in log {
            match &logged.input {
                Input::Model {
                    ticket,
                    fact: ModelFact::Call(_),
                } => {
                    let place = places.entry(*ticket).or_default();
                    let name = format!("c{}", names.calls.len() + 1);
                    names
                        .calls
                        .extend(call_of(*ticket, *place).map(|call| (call, name)));
                    *place = place.saturating_add(1);
                }
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
                | Input::Decide { request, .. }
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

    fn call(&self, call: CallId) -> String {
        self.calls
            .get(&call)
            .cloned()
            .unwrap_or_else(|| UNKNOWN.into())
    }

    pub(super) fn step(&mut self, input: &Input) -> Option<Step> {
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
            Input::Decide {
                request,
                call,
                decision,
            } => Some(Step::Decide {
                client: self.client(*request),
                call: self.call(*call),
                decision: *decision,
            }),
            Input::Leave { request } => self.asked.contains(request).then(|| Step::Leave {
                client: self.client(*request),
            }),
            _ => None,
        }
    }

    /// What a call said of its own, and what it said once it was to stop.
    pub(super) fn scripts(&self, call: &Call) -> (Step, Option<Step>) {
        let message = self.message(call.run);
        let until = call.cancelled_at.unwrap_or(u64::MAX);
        let (own, late): (Vec<_>, Vec<_>) = call.facts.iter().partition(|(at, _)| *at < until);
        let mut sent = 0;
        let mut places = 0..u16::MAX;
        let mut name = || {
            let place = places.next()?;
            call_of(call.ticket, place).map(|call| self.call(call))
        };
        let answer = Step::Answer {
            message: message.clone(),
            fallback: (call.candidate > 0).then_some(call.candidate),
            beats: beats(call.at, &own, &mut sent, &mut name),
        };
        // A call that is stopped asks for nothing any more.
        let on_cancel = call.cancelled_at.map(|at| Step::OnCancel {
            message,
            beats: beats(at, &late, &mut sent, || None),
        });
        (answer, on_cancel)
    }

    /// What a tool did of its own, and what it did once it was to stop.
    pub(super) fn tool_scripts(&self, job: &Job) -> [Option<Step>; 2] {
        let Some(call) = self.calls.get(&job.call) else {
            return [None, None];
        };
        let until = job.stopped_at.unwrap_or(u64::MAX);
        let (own, late): (Vec<_>, Vec<_>) = job.facts.iter().partition(|(at, _)| *at < until);
        let mut sent = 0;
        let runs = Step::Runs {
            call: call.clone(),
            works: works(job.at, &own, &mut sent),
        };
        let on_stop = job.stopped_at.map(|at| Step::OnStop {
            call: call.clone(),
            works: works(at, &late, &mut sent),
        });
        [Some(runs), on_stop]
    }
}

/// The call of an answer at a place.
fn call_of(ticket: Ticket, call: u16) -> Option<CallId> {
    match ticket.subject {
        Subject::Run(run) => Some(CallId {
            run,
            attempt: ticket.attempt,
            call,
        }),
        _ => None,
    }
}

fn letter(n: u8) -> String {
    match n {
        0..26 => char::from(b'A' + n).to_string(),
        n => format!("S{n}"),
    }
}

fn beats(
    from: u64,
    facts: &[&(u64, ModelFact)],
    sent: &mut u64,
    mut name: impl FnMut() -> Option<String>,
) -> Vec<Beat> {
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
            ModelFact::Calling => one(Beat::Arguments {
                every_ms: 0,
                for_ms: 0,
            }),
            ModelFact::Call(facts) => match name() {
                Some(call) => one(Beat::Calls {
                    call,
                    facts: *facts,
                }),
                None => Vec::new(),
            },
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

fn works(from: u64, facts: &[&(u64, ToolFact)], sent: &mut u64) -> Vec<Work> {
    let mut works = Vec::new();
    let mut last = from;
    for &&(at, fact) in facts {
        let gap = at.saturating_sub(last);
        last = at;
        match fact {
            ToolFact::Output { to } => {
                let bytes = to.saturating_sub(*sent);
                *sent = (*sent).max(to);
                works.push(Work::Outputs {
                    count: 1,
                    apart_ms: gap,
                    bytes,
                });
            }
            ToolFact::Ended(end) => {
                works.extend((gap > 0).then_some(Work::Pause(gap)));
                works.push(Work::Ends(end));
                return works;
            }
        }
    }
    works.push(Work::Silence);
    works
}
