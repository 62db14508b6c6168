//! A session begins anew, or changes how it queues: one order to the store at a time (P18).
//!
//! Owns the hold on a session while such an order is under way: what comes for the session
//! meanwhile waits, bounded, and is taken in its order. A reset is one transaction: it ends
//! the open runs and begins the next generation, so that nothing of the old one can write.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::{Generation, OrderKind, RequestId, RunId, SessionId, Subject, Ticket};
use crate::input::{ConfigureReport, Input, ResetReport};
use crate::machine::Core;
use crate::outcome::{Outcome, Terminal};
use crate::output::{Answer, Output, Rejection};
use crate::queue::{QueueChange, QueueOverride};
use crate::run::State;
use crate::session::{Phase, Session, fold};
use crate::timers::Timer;

/// What a session is held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Held {
    Reset,
    Configure(QueueOverride),
}

/// A session is held until the store has answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Hold {
    /// To whom the answer goes.
    pub(crate) request: RequestId,
    held: Held,
    /// Inputs that wait for it, in order.
    pub(crate) parked: VecDeque<Input>,
}

impl Core {
    /// Somebody wants the session to begin anew.
    pub(crate) fn reset(
        &mut self,
        request: RequestId,
        session: SessionId,
        expected: Option<Generation>,
    ) {
        let input = Input::Reset {
            request,
            session,
            expected,
        };
        let Some((epoch, generation)) = self.ready(session, request, input) else {
            return;
        };
        if expected.is_some_and(|expected| expected != generation) {
            self.reject(request, Rejection::SessionChanged);
            return self.advance(session);
        }
        let at = self.now.wall;
        let ticket = ticket(session, request, OrderKind::Reset);
        self.hold(session, request, Held::Reset);
        self.out(Output::Reset {
            ticket,
            session,
            generation,
            epoch,
            at,
        });
    }

    /// Somebody wants to see or change how the session queues.
    pub(crate) fn configure(
        &mut self,
        request: RequestId,
        session: SessionId,
        change: QueueChange,
    ) {
        let input = Input::Configure {
            request,
            session,
            change,
        };
        let Some((epoch, generation)) = self.ready(session, request, input) else {
            return;
        };
        let own = self.sessions.get(&session).map(|session| session.queue);
        let own = own.unwrap_or_default();
        let queue = match change {
            QueueChange::Show => own,
            QueueChange::Set(change) => own.with(change),
            QueueChange::Clear => QueueOverride::default(),
        };
        if queue == own {
            self.tell_queue(request, session);
            return self.advance(session);
        }
        let at = self.now.wall;
        let ticket = ticket(session, request, OrderKind::Configure);
        self.hold(session, request, Held::Configure(queue));
        self.out(Output::Configure {
            ticket,
            session,
            generation,
            epoch,
            queue,
            at,
        });
    }

    /// The lease and generation of a session that is ours and not held; else the input waits
    /// for that, or is refused.
    fn ready(
        &mut self,
        session: SessionId,
        request: RequestId,
        input: Input,
    ) -> Option<(crate::Epoch, Generation)> {
        if !self.is_open() {
            self.refuse(&input, Rejection::Draining);
            return None;
        }
        match self.sessions.get(&session) {
            None => self.load(session, request, Some(input), false),
            Some(Session {
                phase: Phase::Owned { epoch, generation },
                hold: None,
                ..
            }) => return Some((*epoch, *generation)),
            Some(_) => self.park(session, input),
        }
        None
    }

    fn hold(&mut self, session: SessionId, request: RequestId, held: Held) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.hold = Some(Hold {
                request,
                held,
                parked: VecDeque::new(),
            });
        }
    }

    /// The hold that this report belongs to, with what waits for it; else the report is stale.
    /// The session stays held until all that follows from the report was told.
    fn held(&mut self, report: Ticket, order: OrderKind) -> Option<(SessionId, Hold)> {
        let held = match report.subject {
            Subject::Session(id) => self.sessions.get_mut(&id).map(|session| (id, session)),
            _ => None,
        };
        let hold = held.and_then(|(id, session)| {
            let hold = session.hold.as_ref()?;
            let kind = match hold.held {
                Held::Reset => OrderKind::Reset,
                Held::Configure(_) => OrderKind::Configure,
            };
            let ours = kind == order && report == ticket(id, hold.request, order);
            let hold = session.hold.as_mut().filter(|_| ours)?;
            let parked = core::mem::take(&mut hold.parked);
            Some((id, Hold { parked, ..*hold }))
        });
        if hold.is_none() {
            self.counts.stale_store += 1;
        }
        hold
    }

    /// The report of a reset.
    pub(crate) fn was_reset(&mut self, ticket: Ticket, report: ResetReport) {
        let Some((id, hold)) = self.held(ticket, OrderKind::Reset) else {
            return;
        };
        match report {
            ResetReport::Committed { generation, ended } => {
                if let Some(session) = self.sessions.get_mut(&id)
                    && let Phase::Owned {
                        generation: ours, ..
                    } = &mut session.phase
                {
                    *ours = generation;
                }
                let runs: Vec<RunId> = ended.iter().map(|end| end.run).collect();
                self.end_generation(id, generation, ended);
                let answer = Answer::Reset { generation, runs };
                self.out(Output::Respond {
                    request: hold.request,
                    answer,
                });
                self.release(id, hold.parked);
            }
            ResetReport::NotOwner => self.hold_lost(id, hold),
            ResetReport::Refused(_) => {
                self.reject(hold.request, Rejection::Storage);
                self.release(id, hold.parked);
            }
        }
    }

    /// Ends what belongs to an earlier generation. What the reset did not record was ended by
    /// another writer: the store is asked how.
    fn end_generation(&mut self, id: SessionId, generation: Generation, ended: Vec<Terminal>) {
        for terminal in &ended {
            if let Some(run) = self.runs.get_mut(&terminal.run) {
                run.stop = None; // it has ended, whatever it was to end as
            }
        }
        for terminal in ended {
            self.ended_by_reset(id, terminal);
        }
        let old = self.runs.values().filter(|run| {
            let along = matches!(run.state, State::Along { .. });
            run.session == id && run.generation != generation && !along
        });
        let old: Vec<(RunId, State)> = old.map(|run| (run.id, run.state)).collect();
        for (run, state) in old {
            if let State::Attempting { call } = state {
                self.out(Output::CancelModel { ticket: call });
            }
            self.detach(run);
            if !matches!(state, State::Superseded { .. }) {
                self.timers.disarm(Timer::StoreRetry(run));
                self.look_up_end(run, Outcome::Superseded);
            }
        }
    }

    /// The reset recorded the end of a run. What was taken along ends with its turn.
    fn ended_by_reset(&mut self, session: SessionId, terminal: Terminal) {
        let ours = self
            .runs
            .get(&terminal.run)
            .is_some_and(|run| run.session == session && !matches!(run.state, State::Along { .. }));
        if ours {
            self.superseded(terminal);
        }
    }

    /// The report of changed queue settings.
    pub(crate) fn configured(&mut self, ticket: Ticket, report: ConfigureReport) {
        let Some((id, hold)) = self.held(ticket, OrderKind::Configure) else {
            return;
        };
        match (report, hold.held) {
            (ConfigureReport::Committed, Held::Configure(queue)) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.queue = queue;
                }
                self.tell_queue(hold.request, id);
                self.release(id, hold.parked);
            }
            (ConfigureReport::NotOwner, _) => self.hold_lost(id, hold),
            _ => {
                self.reject(hold.request, Rejection::Storage);
                self.release(id, hold.parked);
            }
        }
    }

    fn tell_queue(&mut self, request: RequestId, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let answer = Answer::Queue {
            settings: self.settings(session),
            own: session.queue,
            waiting: u32::try_from(session.waiting.len()).unwrap_or(u32::MAX),
        };
        self.out(Output::Respond { request, answer });
    }

    /// Takes in what waited, in its order. What holds the session again makes the rest wait.
    pub(crate) fn take_up(&mut self, id: SessionId, parked: VecDeque<Input>) {
        for input in parked {
            self.take_in(input);
        }
        self.advance(id);
    }

    /// The session is not held any more: takes in what waited.
    fn release(&mut self, id: SessionId, parked: VecDeque<Input>) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.hold = None;
        }
        self.take_up(id, parked);
    }

    /// The lease is gone, and with it the hold and all that waits for it.
    fn hold_lost(&mut self, id: SessionId, hold: Hold) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.hold = Some(hold);
        }
        self.lose(id);
    }

    pub(crate) fn reject(&mut self, request: RequestId, why: Rejection) {
        self.out(Output::Respond {
            request,
            answer: Answer::Rejected(why),
        });
    }
}

fn ticket(session: SessionId, request: RequestId, order: OrderKind) -> Ticket {
    Ticket {
        subject: Subject::Session(session),
        order,
        attempt: fold(request.0),
        ordinal: 0,
    }
}
