//! What single faults do to a drain, where it takes more than to drop or repeat an output.

use tidegate_core::{
    AcceptReport, Answer, Attempt, Claim, ClaimOrder, ClaimReport, Epoch, Event, Failure, Fence,
    Halt, HaltCode, Input, OpenRun, OrderKind, Outcome, Output, Place, Subject, Terminal, Ticket,
    Timer,
};

use super::Plant;
use crate::fault::Fault;

/// Releases of a drain come first.
pub(super) fn release_early(outputs: &mut [Output]) {
    outputs.sort_by_key(|output| !matches!(output, Output::Release { .. }));
}

/// A call of the first choice.
const fn start(ticket: Ticket, fence: Fence) -> Output {
    Output::StartModel {
        ticket,
        fence,
        candidate: 0,
    }
}

impl Plant {
    pub(super) fn alter(&mut self, outputs: &mut Vec<Output>) {
        let Some(at) = self.occasion(outputs) else {
            return;
        };
        match &mut outputs[at] {
            Output::Publish {
                session,
                run,
                seq,
                event: Event::End { terminal, .. },
            } => {
                let event = Event::Finishing {
                    outcome: terminal.outcome,
                };
                let late = Output::Publish {
                    session: *session,
                    run: *run,
                    seq: *seq + 1,
                    event,
                };
                outputs.insert(at + 1, late);
            }
            Output::Accept { accept, .. } if self.fault == Fault::TimesAltered => {
                accept.at.0 += 3_600_000;
            }
            Output::Save { to, .. } => *to = 0,
            Output::Accept { accept, .. } => {
                let halt = Halt {
                    code: HaltCode::LaneOrder,
                    entity: Subject::Session(accept.session),
                };
                outputs[at] = Output::Halt(halt);
            }
            Output::Publish {
                event: Event::Text { to, .. },
                ..
            } => *to -= 1,
            Output::Respond {
                answer: Answer::Final { terminal, .. },
                ..
            } => {
                terminal.outcome = match terminal.outcome {
                    Outcome::Completed => Outcome::Failed(Failure::Incomplete),
                    _ => Outcome::Completed,
                };
            }
            _ => {}
        }
    }

    /// The end of a run that a claim has just superseded is written once more, as its late
    /// model would have it, under the fence of the new writer.
    pub(super) fn late_append(&self, input: &Input, outputs: &mut Vec<Output>) {
        let (writer, superseded) = match input {
            Input::Claimed {
                ticket,
                report:
                    ClaimReport::Committed(Claim {
                        superseded: Some(old),
                    }),
            } => match ticket.subject {
                Subject::Run(run) => (Some(run), *old),
                _ => (None, *old),
            },
            Input::Accepted {
                ticket,
                report:
                    AcceptReport::Committed {
                        claim:
                            Some(Claim {
                                superseded: Some(old),
                            }),
                    },
            } => (self.accepts.get(ticket).map(|accept| accept.run), *old),
            _ => return,
        };
        let Some(&fence) = writer.and_then(|run| self.fences.get(&run)) else {
            return;
        };
        let ticket = Ticket {
            subject: Subject::Run(superseded.run),
            order: OrderKind::Settle,
            attempt: superseded.attempt,
            ordinal: u16::MAX,
        };
        let terminal = Terminal {
            outcome: Outcome::Completed,
            ..superseded
        };
        let epoch = Epoch(1);
        outputs.insert(
            0,
            Output::Settle {
                ticket,
                fence,
                epoch,
                terminal,
                results: Vec::new(),
            },
        );
    }

    pub(super) fn ack_early(&mut self, outputs: &mut Vec<Output>) {
        let Some(at) = outputs
            .iter()
            .position(|o| matches!(o, Output::Accept { .. }))
        else {
            return;
        };
        if !self.strikes() {
            return;
        }
        if let Output::Accept { accept, .. } = &outputs[at] {
            let answer = Answer::Accepted {
                run: accept.run,
                session: accept.session,
                at: accept.at,
                place: Place::Next,
            };
            let request = accept.request;
            outputs.insert(at, Output::Respond { request, answer });
        }
    }

    pub(super) fn second_writer(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        let Input::Accepted {
            ticket,
            report: AcceptReport::Committed { claim: None },
        } = input
        else {
            return;
        };
        let Some(accept) = self.accepts.get(ticket).cloned() else {
            return;
        };
        let claims =
            |o: &Output| matches!(o, Output::Claim { fence, .. } if fence.run == accept.run);
        if outputs.iter().any(claims) || !self.strikes() {
            return;
        }
        let fence = Fence {
            session: accept.session,
            generation: accept.generation,
            run: accept.run,
            attempt: Attempt(1),
        };
        let ticket = Ticket {
            subject: Subject::Run(accept.run),
            order: OrderKind::Claim,
            attempt: Attempt(1),
            ordinal: u16::MAX,
        };
        let claim = ClaimOrder {
            attempt: Attempt(1),
            left_ms: None,
            at: accept.at,
            along: Vec::new(),
            results: Vec::new(),
        };
        outputs.insert(
            0,
            Output::Claim {
                ticket,
                fence,
                epoch: accept.epoch,
                claim,
            },
        );
    }

    pub(super) fn call_early(&mut self, outputs: &mut Vec<Output>) {
        if let Some(at) = self.occasion(outputs)
            && let Output::Claim { fence, .. } = outputs[at]
        {
            let subject = Subject::Run(fence.run);
            let ticket = Ticket {
                subject,
                order: OrderKind::Model,
                attempt: fence.attempt,
                ordinal: 0,
            };
            outputs.insert(at, start(ticket, fence));
        }
    }

    /// An abort that found nothing to stop names a run that is at the model.
    pub(super) fn abort_lies(&mut self, outputs: &mut [Output]) {
        let calls = &self.calls;
        for output in outputs {
            if let Output::Respond {
                answer: Answer::Aborted { runs },
                ..
            } = output
                && runs.is_empty()
            {
                runs.extend(calls.keys().next());
            }
        }
    }

    pub(super) fn wait_acts(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        if let Input::Wait { run, .. } = input
            && let Some(&ticket) = self.calls.get(run)
            && self.strikes()
        {
            outputs.insert(0, Output::CancelModel { ticket });
        }
    }

    /// A run whose call is cancelled, and that does not go on, calls again.
    pub(super) fn call_again(&mut self, outputs: &mut Vec<Output>) {
        let goes_on = |output: &mut Output| {
            super::retries::retrying(output).is_some() || super::fallbacks::led(output).is_some()
        };
        if outputs.iter_mut().any(goes_on) {
            return;
        }
        let cancel = outputs.iter().enumerate().find_map(|(at, o)| match o {
            Output::CancelModel { ticket } => Some((at, *ticket)),
            _ => None,
        });
        let Some((at, ticket)) = cancel else { return };
        let Subject::Run(run) = ticket.subject else {
            return;
        };
        if let Some(&fence) = self.fences.get(&run) {
            let ticket = Ticket {
                ordinal: ticket.ordinal + 1,
                ..ticket
            };
            outputs.insert(at + 1, start(ticket, fence));
        }
    }

    /// Remembers a run that an abort stopped, as the store would tell of it while it is open.
    pub(super) fn note_stopped(&mut self, outputs: &[Output]) {
        for output in outputs {
            let Output::Respond {
                answer: Answer::Aborted { runs },
                ..
            } = output
            else {
                continue;
            };
            let accept = runs
                .iter()
                .find_map(|run| self.accepts.values().find(|accept| accept.run == *run));
            if let Some(accept) = accept {
                let open = OpenRun {
                    run: accept.run,
                    body: accept.body,
                    budget: accept.budget,
                    left_ms: Some(0),
                    accepted_at: accept.at,
                    attempt: self
                        .fences
                        .get(&accept.run)
                        .map_or(Attempt(0), |f| f.attempt),
                    turn: accept.turn,
                    lane: accept.lane,
                    priority: accept.priority,
                    along: None,
                };
                self.stopped = Some((accept.session, open));
            }
        }
    }

    pub(super) fn stale_deadline(&mut self, outputs: &mut [Output]) {
        if let (Some(run), Some(Output::Sleep { why: Some(why), .. })) =
            (self.ended, outputs.last_mut())
        {
            self.occasions += 1;
            if self.occasions == 3 {
                *why = Timer::Idle(run);
            }
        }
    }
}
