//! The writer claim: who may write a session's transcript (R51, R52, spec 4).
//!
//! A run claims before it writes or asks the model. A claim never waits: it supersedes. The
//! store records the superseded writer's end in the same transaction, and the core tells it.

use crate::ids::{Attempt, OrderKind, RunId, Subject, Ticket};
use crate::input::{Claim, ClaimReport};
use crate::machine::Core;
use crate::outcome::Outcome;
use crate::output::{ClaimOrder, Output};
use crate::round::Round;
use crate::run::{Pending, State, Stream, store_backoff};
use crate::timers::Timer;

impl Core {
    /// The run holds both lanes: orders its claim.
    pub(crate) fn start_claim(&mut self, id: RunId) {
        self.take_along(id);
        self.order_claim(id, 0);
        if let Some(run) = self.runs.get(&id) {
            let limit = run.lane_limit(&self.config, self.now.time);
            self.arm(Timer::LaneLimit(id), limit);
        }
    }

    pub(crate) fn order_claim(&mut self, id: RunId, tries: u16) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let ticket = claim_ticket(id, run.attempt.next(), run.stay.wrapping_add(tries));
        run.state = State::Claiming {
            pending: Pending::Ordered(ticket),
            tries,
        };
        let mut fence = run.fence();
        fence.attempt = run.attempt.next();
        let claim = ClaimOrder {
            attempt: fence.attempt,
            left_ms: run.left_ms,
            at: self.now.wall,
            along: run.along.clone(),
            results: run.round.results(),
        };
        let epoch = run.epoch;
        self.out(Output::Claim {
            ticket,
            fence,
            epoch,
            claim,
        });
    }

    /// The report of a claim.
    pub(crate) fn claimed(&mut self, ticket: Ticket, report: ClaimReport) {
        let Subject::Run(id) = ticket.subject else {
            self.counts.stale_store += 1;
            return;
        };
        let Some(run) = self.runs.get_mut(&id) else {
            self.counts.stale_store += 1;
            return;
        };
        let State::Claiming {
            pending: Pending::Ordered(expected),
            tries,
        } = run.state
        else {
            self.counts.stale_store += 1;
            return;
        };
        if ticket != expected {
            self.counts.stale_store += 1;
            return;
        }
        let session = run.session;
        match report {
            ClaimReport::Committed(claim) => self.claim_committed(id, ticket.attempt, claim),
            ClaimReport::Fenced => self.look_up_end(id, Outcome::Superseded),
            ClaimReport::NotOwner => self.lose(session),
            ClaimReport::Refused(_) => match run.stop {
                Some(outcome) => self.finish(id, outcome),
                None => {
                    run.state = State::Claiming {
                        pending: Pending::Refused,
                        tries,
                    };
                    let wait = store_backoff(&self.config, tries);
                    self.arm_in(Timer::StoreRetry(id), wait);
                    self.take_out_stopped(id);
                }
            },
        }
    }

    /// The claim is durable. Whoever wrote before has ended, as the claim recorded it.
    pub(crate) fn claim_committed(&mut self, id: RunId, attempt: Attempt, claim: Claim) {
        if let Some(terminal) = claim.superseded
            && terminal.run != id
        {
            self.superseded(terminal);
        }
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let failed = core::mem::take(&mut run.has_content).then(|| run.content());
        run.attempt = attempt;
        run.stream = Stream::default();
        run.round = Round::default();
        if let Some(owner) = failed {
            self.out(Output::Release { owner });
        }
        self.bind_along(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if self.timers.at(Timer::LaneLimit(id)).is_none() && !run.detached {
            let limit = match run.stop {
                Some(_) => self.now.time.plus(self.config.lane_grace_ms),
                None => run.lane_limit(&self.config, self.now.time),
            };
            self.arm(Timer::LaneLimit(id), limit);
        }
        match self.runs.get(&id).and_then(|run| run.stop) {
            Some(outcome) => self.finish(id, outcome),
            None => self.start_model(id),
        }
    }

    /// Gives a refused order of a run again.
    pub(crate) fn retry_store(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        match run.state {
            State::Claiming {
                pending: Pending::Refused,
                tries,
            } => {
                self.order_claim(id, tries.saturating_add(1));
            }
            State::Tools {
                checkpoint: Some(Pending::Refused),
                tries,
                ..
            } => self.order_launch(id, tries.saturating_add(1)),
            State::Settling {
                pending: Pending::Refused,
                tries,
                terminal,
            } => {
                self.order_settle(id, tries.saturating_add(1), terminal);
            }
            State::Superseded {
                pending: Pending::Refused,
                tries,
                terminal,
            } => {
                self.order_end_lookup(id, tries.saturating_add(1), terminal);
            }
            _ => {}
        }
    }
}

const fn claim_ticket(run: RunId, attempt: Attempt, ordinal: u16) -> Ticket {
    Ticket {
        subject: Subject::Run(run),
        order: OrderKind::Claim,
        attempt,
        ordinal,
    }
}
