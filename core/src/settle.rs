//! The one door through which every run ends (law 6).
//!
//! Finished, failed, timed out, cancelled, superseded: [`Core::finish`] decides the end and
//! orders its rows, [`Core::conclude`] does all duties once they are durable: last event,
//! callers, waits, content, timers, lane, queue. Nobody else ends a run.

use crate::abort::is_cancelled;
use crate::ids::{ContentOwner, OrderKind, RunId, Subject, Ticket};
use crate::input::{LookupReport, SettleReport};
use crate::machine::Core;
use crate::outcome::{Outcome, Reply, Terminal};
use crate::output::{Answer, Event, Output, Rejection};
use crate::run::{Pending, State, store_backoff};
use crate::time::Wall;
use crate::timers::Timer;
use crate::tool::CallEnd;

impl Core {
    /// Decides the end of an accepted run and orders its terminal rows.
    pub(crate) fn finish(&mut self, id: RunId, outcome: Outcome) {
        self.give_back_along(id);
        self.close_round(id, CallEnd::Skipped);
        self.disarm_attempt(id);
        self.timers.disarm(Timer::StoreRetry(id));
        self.flush_text(id);
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let decided_at = match run.state {
            State::Stopping { ended_at, .. }
            | State::Tools {
                ended_at: Some(ended_at),
                ..
            } => ended_at,
            _ => self.now.wall,
        };
        let terminal = self.terminal(id, outcome, decided_at);
        if let Some(terminal) = terminal {
            self.publish(id, Event::Finishing { outcome });
            self.order_settle(id, 0, terminal);
        }
    }

    /// The end as this core knows it. Wall clocks may jump; a run's times do not (I4).
    fn terminal(&self, id: RunId, outcome: Outcome, decided_at: Wall) -> Option<Terminal> {
        let run = self.runs.get(&id)?;
        let earliest = run.started_at.unwrap_or(run.accepted_at);
        Some(Terminal {
            run: id,
            session: run.session,
            outcome,
            accepted_at: run.accepted_at,
            started_at: run.started_at,
            ended_at: decided_at.max(earliest),
            attempt: run.attempt,
            // What stood before its calls is a row of its own already.
            reply: match run.stream.received * u64::from(!run.round.recorded) {
                0 => Reply::Empty,
                bytes => Reply::Text { bytes },
            },
            detail: run.stream.detail,
            turn: None,
        })
    }

    /// The outcome of a run that is decided and not durable.
    pub(crate) fn decided(&self, id: RunId) -> Option<Outcome> {
        let state = self.runs.get(&id)?.state;
        let state = match state {
            State::Along { turn, bound: true } => self.runs.get(&turn)?.state,
            state => state,
        };
        match state {
            State::Stopping { outcome, .. } => Some(outcome),
            State::Tools { .. } => self.runs.get(&id)?.stop,
            State::Settling { terminal, .. } => Some(terminal.outcome),
            _ => None,
        }
    }

    pub(crate) fn order_settle(&mut self, id: RunId, tries: u16, terminal: Terminal) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let ordinal = run.stay.wrapping_add(tries);
        let ticket = run_ticket(run.id, OrderKind::Settle, terminal, ordinal);
        run.state = State::Settling {
            pending: Pending::Ordered(ticket),
            tries,
            terminal,
        };
        let (fence, epoch) = (run.fence(), run.epoch);
        let results = run.round.results();
        self.out(Output::Settle {
            ticket,
            fence,
            epoch,
            terminal,
            results,
        });
    }

    /// The report of the terminal rows.
    pub(crate) fn settled(&mut self, ticket: Ticket, report: SettleReport) {
        let state = match ticket.subject {
            Subject::Run(id) => self.runs.get(&id).map(|run| (id, run.session, run.state)),
            _ => None,
        };
        let Some((
            id,
            session,
            State::Settling {
                pending,
                tries,
                terminal,
            },
        )) = state
        else {
            self.counts.stale_store += 1;
            return;
        };
        if pending != Pending::Ordered(ticket) {
            self.counts.stale_store += 1;
            return;
        }
        match report {
            SettleReport::Committed => self.conclude(id, terminal),
            SettleReport::Fenced => self.look_up_end(id, Outcome::Superseded),
            SettleReport::NotOwner => self.lose(session),
            SettleReport::Refused(_) => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.state = State::Settling {
                        pending: Pending::Refused,
                        tries,
                        terminal,
                    };
                }
                self.arm_in(Timer::StoreRetry(id), store_backoff(&self.config, tries));
            }
        }
    }

    /// The fence stopped the run: another writer recorded its end. Asks the store which, so
    /// that all places tell the same (law 10).
    pub(crate) fn look_up_end(&mut self, id: RunId, outcome: Outcome) {
        self.give_back_along(id);
        self.close_round(id, CallEnd::Stale);
        if let Some(terminal) = self.terminal(id, outcome, self.now.wall) {
            self.disarm_attempt(id);
            self.order_end_lookup(id, 0, terminal);
        }
    }

    pub(crate) fn order_end_lookup(&mut self, id: RunId, tries: u16, terminal: Terminal) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let ordinal = run.stay.wrapping_add(tries);
        let ticket = run_ticket(id, OrderKind::Lookup, terminal, ordinal);
        run.state = State::Superseded {
            pending: Pending::Ordered(ticket),
            tries,
            terminal,
        };
        self.out(Output::Lookup { ticket, run: id });
    }

    /// What the store says about the end of a superseded run. The texts of an end were laid
    /// under its attempt; whatever becomes of the report, they are released once.
    pub(crate) fn end_looked_up(&mut self, id: RunId, ticket: Ticket, report: &LookupReport) {
        if let LookupReport::Ended(recorded) = report {
            match self.runs.get_mut(&id) {
                Some(run) if run.attempt == recorded.attempt => run.has_content = true,
                _ => self.out(Output::Release {
                    owner: ContentOwner::Attempt(id, recorded.attempt),
                }),
            }
        }
        let Some(State::Superseded {
            pending,
            tries,
            terminal,
        }) = self.runs.get(&id).map(|run| run.state)
        else {
            self.counts.stale_store += 1;
            return;
        };
        if pending != Pending::Ordered(ticket) {
            self.counts.stale_store += 1;
            return;
        }
        match report {
            LookupReport::Ended(recorded) => self.conclude(id, *recorded),
            LookupReport::Unknown => self.conclude(id, terminal),
            // Open: the claim that stopped us is not in yet, or the store can't tell now.
            LookupReport::Open | LookupReport::Refused(_) => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.state = State::Superseded {
                        pending: Pending::Refused,
                        tries,
                        terminal,
                    };
                }
                self.arm_in(Timer::StoreRetry(id), store_backoff(&self.config, tries));
            }
        }
    }

    /// A later claim recorded the end of a run that is still held: its duties are done now. If
    /// its text was saved by an earlier life, the store is asked for it first.
    pub(crate) fn superseded(&mut self, terminal: Terminal) {
        let Some(run) = self.runs.get(&terminal.run) else {
            return;
        };
        let id = terminal.run;
        let lacks_text = !run.has_content && (terminal.reply != Reply::Empty || terminal.detail);
        if let State::Attempting { call } = run.state {
            self.out(Output::CancelModel { ticket: call });
        }
        self.close_round(id, CallEnd::Stale);
        self.disarm_attempt(id);
        self.flush_text(id);
        if lacks_text {
            // It waits for the store's word and for no lane.
            self.detach(id);
            self.timers.disarm(Timer::StoreRetry(id));
            self.order_end_lookup(id, 0, terminal);
        } else {
            self.conclude(id, terminal);
        }
    }

    /// The end is durable: all duties of an end, in the order in which they may be seen.
    fn conclude(&mut self, id: RunId, terminal: Terminal) {
        self.give_back_along(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let (session, content, has_content) = (run.session, run.content(), run.has_content);
        let along = core::mem::take(&mut run.along);
        self.tell_end(id, terminal, content);
        for other in along {
            if let Some(run) = self.runs.get(&other) {
                let terminal = terminal.along(other, run.accepted_at);
                self.tell_end(other, terminal, content);
                self.forget_run(other);
            }
        }
        if has_content {
            self.out(Output::Release { owner: content });
        }
        self.forget_run(id);
        self.advance(session);
    }

    /// Tells everybody who listens that a run has ended.
    fn tell_end(&mut self, id: RunId, terminal: Terminal, content: ContentOwner) {
        self.publish(id, Event::End { terminal, content });
        let callers = self
            .runs
            .get_mut(&id)
            .map(|run| core::mem::take(&mut run.callers));
        for request in callers.into_iter().flatten() {
            let answer = Answer::Final {
                terminal,
                content,
                replay: false,
            };
            self.out(Output::Respond { request, answer });
        }
        self.wake_waits(id, terminal, content);
        self.abort_ended(id, is_cancelled(terminal.outcome));
    }

    /// Drops a run without an end of its own: its acceptance failed, or the session is lost.
    pub(crate) fn drop_run(&mut self, id: RunId, why: Rejection) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let (content, has_content) = (run.content(), run.has_content);
        let callers = core::mem::take(&mut run.callers);
        self.abandon_round(id);
        for request in callers {
            self.out(Output::Respond {
                request,
                answer: Answer::Rejected(why),
            });
            if self.accepting.get(&request) == Some(&id) {
                self.accepting.remove(&request);
                self.out(Output::Release {
                    owner: ContentOwner::Request(request),
                });
            }
        }
        if has_content {
            self.out(Output::Release { owner: content });
        }
        self.forget_run(id);
    }

    /// Frees all that the core holds of a run: timers, slot, place, entry.
    pub(crate) fn forget_run(&mut self, id: RunId) {
        self.disarm_attempt(id);
        self.timers.disarm(Timer::LaneLimit(id));
        self.timers.disarm(Timer::StoreRetry(id));
        if let Some(run) = self.runs.remove(&id) {
            self.lanes.remove(run.lane, id);
            self.forget_accepting(&run);
            if let Some(session) = self.sessions.get_mut(&run.session) {
                session.remove(id);
            }
            self.abort_ended(id, false);
            self.out(Output::Forget {
                subject: Subject::Run(id),
            });
        }
    }

    /// An accept order under way for a run that is gone: its report is stale, its content free.
    fn forget_accepting(&mut self, run: &crate::run::Run) {
        if !matches!(run.state, State::Accepting { .. }) {
            return;
        }
        let orders: alloc::vec::Vec<crate::RequestId> = self
            .accepting
            .iter()
            .filter(|(_, id)| **id == run.id)
            .map(|(&request, _)| request)
            .collect();
        for request in orders {
            self.accepting.remove(&request);
            self.out(Output::Release {
                owner: ContentOwner::Request(request),
            });
        }
    }
}

const fn run_ticket(run: RunId, order: OrderKind, terminal: Terminal, ordinal: u16) -> Ticket {
    Ticket {
        subject: Subject::Run(run),
        order,
        attempt: terminal.attempt,
        ordinal,
    }
}
