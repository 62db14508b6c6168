//! Admission: from a message to a durable, accepted run, at most once for each key (R3, P06).
//!
//! Owns the way from [`Submit`] to the report of the conditional insert. Nothing is promised
//! before that report (law 5, P42).

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::drain::Gate;
use crate::ids::{Attempt, ContentOwner, OrderKind, RunId, SessionId, Subject, Ticket};
use crate::input::{AcceptReport, Input, Submit};
use crate::machine::Core;
use crate::outcome::Terminal;
use crate::output::{Accept, Answer, ClaimOrder, Output, Rejection};
use crate::queue::Place;
use crate::recovery::Recovery;
use crate::round::Round;
use crate::run::{Run, State, Stream, full_budget};
use crate::session::{Phase, Session};

impl Core {
    /// A message arrived.
    pub(crate) fn submit(&mut self, submit: Submit) {
        if self.runs.contains_key(&submit.run) {
            return self.join(&submit);
        }
        if !self.is_open() {
            return self.refuse(&Input::Submit(submit), Rejection::Draining);
        }
        match self.sessions.get(&submit.session) {
            Some(Session {
                phase: Phase::Owned { .. },
                hold: None,
                ..
            }) => self.admit(submit),
            Some(_) => self.park(submit.session, Input::Submit(submit)),
            None if self.runs.len() >= self.config.live_runs_cap as usize => {
                self.refuse(&Input::Submit(submit), Rejection::Busy);
            }
            None => {
                let (session, request) = (submit.session, submit.request);
                self.load(session, request, Some(Input::Submit(submit)), false);
            }
        }
    }

    /// The run is held: its end is told to this caller as well (I2).
    fn join(&mut self, submit: &Submit) {
        if self.gate == Gate::Closed {
            return self.refuse(&Input::Submit(submit.clone()), Rejection::Draining);
        }
        let Some(run) = self.runs.get_mut(&submit.run) else {
            return;
        };
        let answer = if run.session != submit.session || run.body != submit.body {
            Some(Answer::Rejected(Rejection::Conflict))
        } else {
            let room = run.callers.len() < self.config.callers_cap as usize;
            if room {
                run.callers.push(submit.request);
            }
            match run.state {
                _ if !room => Some(Answer::Rejected(Rejection::Busy)),
                State::Accepting { .. } => None, // answered when it is durable
                _ => Some(Answer::InFlight {
                    run: run.id,
                    session: run.session,
                }),
            }
        };
        if let Some(answer) = answer {
            self.out(Output::Respond {
                request: submit.request,
                answer,
            });
        }
        self.out(Output::Release {
            owner: ContentOwner::Request(submit.request),
        });
    }

    /// Orders the conditional insert. When nothing stands before the run, its claim goes into
    /// the same transaction, and it takes both lanes now.
    fn admit(&mut self, submit: Submit) {
        if self.accepting.contains_key(&submit.request) {
            self.counts.reused_requests += 1;
            return;
        }
        let Some(session) = self.sessions.get(&submit.session) else {
            return;
        };
        let Phase::Owned { epoch, generation } = session.phase else {
            return;
        };
        let turn = submit.turn.resolved(self.settings(session));
        let lane = submit.lane.of_run();
        let refusal = if self.runs.len() >= self.config.live_runs_cap as usize {
            Some(Rejection::Busy)
        } else if lane.cap(&self.config) == 0 {
            Some(Rejection::LaneClosed)
        } else {
            self.line_refusal(session, turn)
        };
        if let Some(why) = refusal {
            self.refuse(&Input::Submit(submit), why);
            return;
        }
        let claims = session.active.is_none()
            && session.waiting.is_empty()
            && self.lanes.is_open(lane, &self.config);
        let place = if claims {
            Place::Next
        } else {
            self.place_of(session, turn)
        };
        let ahead = (
            u32::from(session.active.is_some()),
            u32::try_from(session.waiting.len()).unwrap_or(u32::MAX),
        );
        self.stand(submit.session, submit.run, lane, claims);
        let left_ms = full_budget(&self.config, submit.budget);
        let at = self.now.wall;
        let attempt = Attempt(u32::from(claims));
        self.runs.insert(
            submit.run,
            Box::new(Run {
                id: submit.run,
                session: submit.session,
                generation,
                epoch,
                body: submit.body,
                callers: vec![submit.request],
                budget: submit.budget,
                turn,
                lane,
                priority: submit.priority,
                place,
                steer: match place {
                    Place::Steering { into } => Some(into),
                    _ => None,
                },
                along: Vec::new(),
                waits_since: self.now.time,
                ahead,
                left_ms,
                accepted_at: at,
                started_at: None,
                attempt: Attempt(0),
                has_content: false,
                stream: Stream::default(),
                seen: false,
                recovery: Recovery::default(),
                candidate: 0,
                round: Round::default(),
                rounds: 0,
                paused: false,
                seq: 0,
                stay: 0,
                detached: false,
                stop: None,
                state: State::Accepting { claims },
            }),
        );
        self.accepting.insert(submit.request, submit.run);
        let ticket = Ticket {
            subject: Subject::Request(submit.request),
            order: OrderKind::Accept,
            attempt,
            ordinal: 0,
        };
        let claim = claims.then_some(ClaimOrder {
            results: Vec::new(),
            attempt,
            left_ms,
            at,
            along: Vec::new(),
        });
        self.out(Output::Accept {
            ticket,
            accept: Accept {
                session: submit.session,
                generation,
                epoch,
                run: submit.run,
                body: submit.body,
                request: submit.request,
                budget: submit.budget,
                turn,
                lane,
                priority: submit.priority,
                at,
                claim,
            },
        });
    }

    /// Gives a newcomer its place: both lanes at once, or the end of its session's line.
    fn stand(&mut self, session: SessionId, run: RunId, lane: crate::LaneName, claims: bool) {
        if claims {
            self.lanes.take(lane, run);
        }
        if let Some(session) = self.sessions.get_mut(&session) {
            if claims {
                session.active = Some(run);
            } else {
                session.waiting.push_back(run);
            }
        }
    }

    /// The report of the conditional insert.
    pub(crate) fn accepted(&mut self, ticket: Ticket, report: AcceptReport) {
        let held = match ticket {
            Ticket {
                subject: Subject::Request(request),
                order: OrderKind::Accept,
                ..
            } => self.accepting.remove(&request).map(|run| (request, run)),
            _ => None,
        };
        let Some((request, id)) = held else {
            self.counts.stale_store += 1;
            return;
        };
        let place = self.place_now(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let (session, at) = (run.session, run.accepted_at);
        let claims = run.state == State::Accepting { claims: true };
        match report {
            AcceptReport::Committed { claim } => {
                run.state = State::Waiting;
                for caller in run.callers.clone() {
                    let answer = if caller == request {
                        Answer::Accepted {
                            run: id,
                            session,
                            at,
                            place,
                        }
                    } else {
                        Answer::InFlight { run: id, session }
                    };
                    self.out(Output::Respond {
                        request: caller,
                        answer,
                    });
                }
                self.out(Output::Release {
                    owner: ContentOwner::Request(request),
                });
                match claim {
                    Some(claim) if claims => self.claim_committed(id, Attempt(1), claim),
                    // Ordered and not done, or done and not ordered: the lanes rule.
                    None if claims => self.start_claim(id),
                    _ => self.queued(id),
                }
            }
            AcceptReport::Duplicate { terminal } => self.known_already(request, id, terminal),
            AcceptReport::Conflict => self.drop_accepting(request, id, Rejection::Conflict),
            AcceptReport::NotOwner => {
                self.drop_accepting(request, id, Rejection::NotOwner);
                self.lose(session);
            }
            AcceptReport::Refused(_) => self.drop_accepting(request, id, Rejection::Storage),
        }
    }

    /// The run is durable and waits in its session's lane, unless it was stopped meanwhile.
    fn queued(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let session = run.session;
        match run.stop {
            Some(outcome) => self.end_waiting(id, outcome),
            None => self.joined_line(id),
        }
        self.advance(session);
    }

    /// The store knew the run: nothing new begins; the known end is told again (I2, R32).
    fn known_already(&mut self, request: crate::RequestId, id: RunId, terminal: Option<Terminal>) {
        let content = ContentOwner::Request(request);
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let session = run.session;
        for caller in run.callers.clone() {
            let answer = match terminal {
                Some(terminal) => Answer::Final {
                    terminal,
                    content,
                    replay: true,
                },
                None => Answer::InFlight { run: id, session },
            };
            self.out(Output::Respond {
                request: caller,
                answer,
            });
        }
        if let Some(terminal) = terminal {
            self.wake_waits(id, terminal, content);
        }
        self.out(Output::Release { owner: content });
        self.forget_run(id);
        self.advance(session);
    }

    fn drop_accepting(&mut self, request: crate::RequestId, id: RunId, why: Rejection) {
        let Some(session) = self.runs.get(&id).map(|run| run.session) else {
            return;
        };
        self.drop_run(id, why);
        self.out(Output::Release {
            owner: ContentOwner::Request(request),
        });
        self.advance(session);
    }
}
