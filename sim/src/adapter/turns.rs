//! How faults of queues, turns, resets and drains strike. All of them strike always.
//!
//! A fault that only a rare moment allows would take long to be found at its third occasion;
//! found it is at the first one in any case.

use tidegate_core::{
    Answer, Attempt, ClaimOrder, ContentOwner, DropPolicy, Epoch, Event, Fence, Generation, Input,
    OrderKind, Outcome, Output, Place, Priority, QueueMode, Rejection, ResetReport, RunId,
    SessionId, StopReason, Subject, Terminal, Ticket, Timer, Turn, WaitResult, Wall,
};

use super::{Before, Plant};
use crate::fault::Fault;

/// Changes every output that one of these is.
fn each(outputs: &mut [Output], mut change: impl FnMut(&mut Output)) {
    outputs.iter_mut().for_each(&mut change);
}

fn each_event(outputs: &mut [Output], mut change: impl FnMut(RunId, &mut Event)) {
    each(outputs, |output| {
        if let Output::Publish { run, event, .. } = output {
            change(*run, event);
        }
    });
}

fn each_answer(outputs: &mut [Output], mut change: impl FnMut(&mut Answer)) {
    each(outputs, |output| {
        if let Output::Respond { answer, .. } = output {
            change(answer);
        }
    });
}

/// The outcome of an end, wherever it is told.
fn ends(output: &Output) -> Option<&Terminal> {
    match output {
        Output::Publish {
            event: Event::End { terminal, .. },
            ..
        }
        | Output::Respond {
            answer: Answer::Final { terminal, .. },
            ..
        } => Some(terminal),
        _ => None,
    }
}

const fn is_final_along(output: &Output) -> bool {
    matches!(output, Output::Respond { answer: Answer::Final { terminal, .. }, .. } if terminal.turn.is_some())
}

const fn is_dropping(output: &Output) -> bool {
    match output {
        Output::Publish {
            event: Event::Finishing { outcome },
            ..
        } => matches!(outcome, Outcome::Dropped { .. }),
        Output::Settle { terminal, .. } => matches!(terminal.outcome, Outcome::Dropped { .. }),
        _ => false,
    }
}

const fn is_interrupting(output: &Output) -> bool {
    matches!(
        output,
        Output::Respond {
            answer: Answer::Accepted {
                place: Place::Interrupting { .. },
                ..
            },
            ..
        }
    )
}

impl Plant {
    pub(super) fn before_turn(&mut self, input: &mut Input) -> Before {
        match (self.fault, input) {
            (Fault::PriorityIgnored, Input::Submit(submit)) => {
                let sent = std::mem::take(&mut submit.priority);
                self.priorities.insert(submit.run, sent);
            }
            (
                Fault::ResetForgotten,
                Input::WasReset {
                    report: ResetReport::Committed { ended, .. },
                    ..
                },
            ) => {
                ended.pop();
            }
            _ => {}
        }
        Before::Pass
    }

    pub(super) fn after_turn(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        match self.fault {
            Fault::AlongLost
            | Fault::AlongTwice
            | Fault::AlongSwapped
            | Fault::AlongUncalled
            | Fault::QueueJumped => self.alter_claim(outputs),
            Fault::BoundRuns => self.bound_runs(outputs),
            Fault::DrainBegins => self.drain_begins(input, outputs),
            Fault::OldWrites => self.old_writes(input, outputs),
            Fault::ResetSpares => spare(input, outputs),
            Fault::PendingAtWork => self.pending_at_work(input, outputs),
            Fault::InterruptOther => self.interrupt_other(outputs),
            Fault::PriorityIgnored => each(outputs, |output| {
                if let Output::Accept { accept, .. } = output {
                    let sent = self.priorities.get(&accept.run);
                    accept.priority = sent.copied().unwrap_or(Priority::Foreground);
                }
            }),
            Fault::InterruptLost => {
                if outputs.iter().any(is_interrupting) {
                    outputs.retain(|o| !matches!(o, Output::CancelModel { .. }));
                }
            }
            Fault::QueueOpen => outputs.retain(|o| !is_dropping(o)),
            Fault::SeenLost => outputs.retain(|o| {
                !matches!(
                    o,
                    Output::Publish {
                        event: Event::Seen,
                        ..
                    }
                )
            }),
            Fault::PendingLost => outputs.retain(|o| {
                !matches!(
                    o,
                    Output::Respond {
                        answer: Answer::Wait {
                            result: WaitResult::Pending,
                            ..
                        },
                        ..
                    }
                )
            }),
            Fault::AlongUnanswered => outputs.retain(|o| !is_final_along(o)),
            Fault::AlongUnended => outputs.retain(|o| {
                let end = matches!(o, Output::Publish { .. });
                !(end && ends(o).is_some_and(|end| end.turn.is_some()))
            }),
            Fault::AlongFinalTwice => {
                if let Some(at) = outputs.iter().position(is_final_along) {
                    outputs.insert(at, outputs[at].clone());
                }
            }
            Fault::SeenEarly => seen_early(outputs),
            Fault::RoomRefused => refuse(outputs),
            _ => retell(self.fault, outputs),
        }
    }

    /// A message of a session that has been accepted, waits, and is not the one named.
    fn waits(&self, session: SessionId, not: RunId) -> Option<RunId> {
        let accepts = self.accepts.values();
        let mut waits = accepts.filter(|accept| {
            let claimed = self.claimed.contains(&accept.run);
            accept.session == session && accept.run != not && !claimed
        });
        waits.next().map(|accept| accept.run)
    }

    fn alter_claim(&self, outputs: &mut [Output]) {
        each(outputs, |output| {
            let Output::Claim { fence, claim, .. } = output else {
                return;
            };
            match self.fault {
                Fault::AlongLost => {
                    claim.along.pop();
                }
                Fault::AlongTwice => claim.along.extend(claim.along.first().copied()),
                Fault::AlongSwapped if claim.along.len() > 1 => claim.along.swap(0, 1),
                Fault::AlongUncalled if claim.along.is_empty() => {
                    claim.along.extend(self.waits(fence.session, fence.run));
                }
                Fault::QueueJumped => {
                    if let Some(run) = self.waits(fence.session, fence.run) {
                        fence.run = run;
                    }
                }
                _ => {}
            }
        });
    }

    /// A message that is bound to a turn claims for itself.
    fn bound_runs(&self, outputs: &mut Vec<Output>) {
        let bound = outputs.iter().find_map(|output| match output {
            Output::Publish {
                run,
                session,
                event: Event::Bound { .. },
                ..
            } => Some((*session, *run)),
            _ => None,
        });
        if let Some((session, run)) = bound {
            let generation = self.fences.get(&run).map(|fence| fence.generation);
            let fence = Fence {
                session,
                generation: generation.unwrap_or(Generation(1)),
                run,
                attempt: Attempt(1),
            };
            outputs.insert(0, claim(fence));
        }
    }

    fn drain_begins(&self, input: &Input, outputs: &mut Vec<Output>) {
        if let Input::Drain { .. } = input {
            let new = |run| !self.claimed.contains(run);
            let waits = self.fences.values().find(|fence| new(&fence.run));
            if let Some(fence) = waits {
                let mut fence = *fence;
                fence.attempt = Attempt(1);
                outputs.insert(0, claim(fence));
            }
        }
    }

    /// What a session did last before it began anew is called for once more.
    fn old_writes(&self, input: &Input, outputs: &mut Vec<Output>) {
        let session = match input {
            Input::WasReset { ticket, .. } => ticket.subject,
            _ => return,
        };
        let mut fences = self.fences.values();
        if let Some(&fence) = fences.find(|fence| Subject::Session(fence.session) == session) {
            let last = outputs.len().saturating_sub(1);
            outputs.insert(last, claim(fence));
        }
    }

    fn pending_at_work(&self, input: &Input, outputs: &mut [Output]) {
        let Input::Wait { request, run, .. } = input else {
            return;
        };
        if let (true, Some(first)) = (self.calls.contains_key(run), outputs.first_mut()) {
            let result = WaitResult::Pending;
            *first = Output::Respond {
                request: *request,
                answer: Answer::Wait { run: *run, result },
            };
        }
    }

    fn interrupt_other(&self, outputs: &mut [Output]) {
        if !outputs.iter().any(is_interrupting) {
            return;
        }
        each(outputs, |output| {
            if let Output::CancelModel { ticket } = output {
                let mut others = self.calls.values().filter(|call| *call != ticket);
                if let Some(other) = others.next() {
                    *ticket = *other;
                }
            }
        });
    }
}

/// A claim that nobody called for.
pub(super) fn claim(fence: Fence) -> Output {
    let ticket = Ticket {
        subject: Subject::Run(fence.run),
        order: OrderKind::Claim,
        attempt: fence.attempt,
        ordinal: u16::MAX,
    };
    let claim = ClaimOrder {
        attempt: fence.attempt,
        left_ms: None,
        at: Wall(0),
        along: Vec::new(),
        results: Vec::new(),
    };
    Output::Claim {
        ticket,
        fence,
        epoch: Epoch(1),
        claim,
    }
}

/// A reset tells nothing of the first run that it ended.
fn spare(input: &Input, outputs: &mut Vec<Output>) {
    if !matches!(input, Input::WasReset { .. }) {
        return;
    }
    let first = outputs.iter().find_map(ends).map(|end| end.run);
    outputs.retain(|output| match output {
        Output::Publish { run, .. } => Some(*run) != first,
        Output::Forget { subject } => Some(*subject) != first.map(Subject::Run),
        _ => true,
    });
}

/// A chat message is told as seen when its call goes out.
fn seen_early(outputs: &mut Vec<Output>) {
    let begins = outputs
        .iter()
        .enumerate()
        .find_map(|(at, output)| match output {
            Output::Publish {
                session,
                run,
                seq,
                event: Event::Start { .. },
            } => Some((at, *session, *run, *seq)),
            _ => None,
        });
    if let Some((at, session, run, seq)) = begins {
        let seen = Output::Publish {
            session,
            run,
            seq: seq + 1,
            event: Event::Seen,
        };
        outputs.insert(at + 1, seen);
    }
}

/// A message for which there is room is refused.
fn refuse(outputs: &mut Vec<Output>) {
    let accepts = outputs
        .iter()
        .enumerate()
        .find_map(|(at, output)| match output {
            Output::Accept { accept, .. } => Some((at, accept.request)),
            _ => None,
        });
    if let Some((at, request)) = accepts {
        outputs[at] = Output::Respond {
            request,
            answer: Answer::Rejected(Rejection::QueueFull),
        };
        let owner = ContentOwner::Request(request);
        outputs.insert(at + 1, Output::Release { owner });
    }
}

/// What is told of something else than happened.
fn retell(fault: Fault, outputs: &mut [Output]) {
    match fault {
        Fault::BoundElsewhere => each_event(outputs, |run, event| {
            if let Event::Bound { turn } = event {
                *turn = run;
            }
        }),
        Fault::WaitedAlone => each_event(outputs, |_, event| {
            if let Event::Waited {
                active_ahead,
                queued_ahead,
                ..
            } = event
            {
                (*active_ahead, *queued_ahead) = (0, 0);
            }
        }),
        Fault::DropBlamed => each_event(outputs, |_, event| {
            if let Event::Finishing {
                outcome: Outcome::Dropped { by },
            } = event
            {
                *by = DropPolicy::New;
            }
        }),
        Fault::InterruptUncalled => each_event(outputs, |_, event| {
            if let Event::Finishing {
                outcome: Outcome::Cancelled { by, .. },
            } = event
            {
                *by = StopReason::Interrupt;
            }
        }),
        Fault::DroppedAnswered => each(outputs, |output| {
            if let Output::Publish {
                event: Event::End { terminal, .. },
                ..
            } = output
                && matches!(terminal.outcome, Outcome::Dropped { .. })
            {
                terminal.outcome = Outcome::Completed;
            }
        }),
        Fault::PlaceWrong => each_answer(outputs, |answer| {
            if let Answer::Accepted {
                place: Place::Queued { ahead },
                ..
            } = answer
            {
                *ahead += 1;
            }
        }),
        Fault::ResetLies => each_answer(outputs, |answer| {
            if let Answer::Reset { generation, .. } = answer {
                generation.0 += 1;
            }
        }),
        Fault::ModeOther => each(outputs, |output| {
            if let Output::Accept { accept, .. } = output
                && let Turn::Chat { queue, .. } = &mut accept.turn
            {
                *queue = match queue {
                    Some(QueueMode::Collect) => Some(QueueMode::Followup),
                    _ => Some(QueueMode::Collect),
                };
            }
        }),
        // The deadline is not named, so nobody wakes the core for it.
        Fault::QuietForEver | Fault::DrainForEver => each(outputs, |output| {
            if let Output::Sleep { until, why } = output {
                let hidden = match why {
                    Some(Timer::Debounce(_)) => fault == Fault::QuietForEver,
                    Some(Timer::Drain(_)) => fault == Fault::DrainForEver,
                    _ => false,
                };
                if hidden {
                    (*until, *why) = (None, None);
                }
            }
        }),
        _ => {}
    }
}
