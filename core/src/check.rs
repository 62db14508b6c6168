//! What must hold between any two inputs: the invariants that only the core can see.
//!
//! [`Core::check`] looks at everything and changes nothing. Simulations call it often, the
//! driver never needs to; the rules that show from outside are judged outside (sim).

use crate::call::CallState;
use crate::drain::Gate;
use crate::halt::{Halt, HaltCode};
use crate::ids::{RunId, SessionId, Subject};
use crate::machine::Core;
use crate::run::{Pending, Run, State};
use crate::session::{Phase, Session};
use crate::timers::Timer;

impl Core {
    /// Checks every invariant of the state.
    ///
    /// # Errors
    /// The first one that does not hold.
    pub fn check(&self) -> Result<(), Halt> {
        if let Some(halt) = self.halted() {
            return Err(halt);
        }
        for (&id, session) in &self.sessions {
            self.check_session(id, session)?;
        }
        for run in self.runs.values() {
            self.check_run(run)?;
        }
        if let Some(run) = self
            .aborts
            .awaited()
            .find(|run| !self.runs.contains_key(run))
        {
            return Err(Halt {
                code: HaltCode::AbortWithoutRun,
                entity: Subject::Run(run),
            });
        }
        self.check_lane()?;
        self.check_timers()
    }

    /// I14, P01: one run holds the lane, the others stand behind it, all of them are held.
    fn check_session(&self, id: SessionId, session: &Session) -> Result<(), Halt> {
        let halt = |code| Halt {
            code,
            entity: Subject::Session(id),
        };
        for run in session.runs().chain(session.detached.iter().copied()) {
            if !self.runs.contains_key(&run) {
                return Err(halt(HaltCode::SessionWithoutRun));
            }
        }
        for &run in &session.waiting {
            let at_rest = self.runs.get(&run).is_some_and(|run| {
                !run.detached
                    && matches!(
                        run.state,
                        State::Waiting | State::Accepting { claims: false }
                    )
            });
            if !at_rest {
                return Err(halt(HaltCode::LaneOrder));
            }
        }
        if session
            .active
            .is_some_and(|run| session.waiting.contains(&run))
        {
            return Err(halt(HaltCode::LaneOrder));
        }
        if let Phase::Loading { ordered, .. } = session.phase {
            let pending = ordered || self.timers.at(Timer::LoadRetry(id)).is_some();
            if !session.is_idle() || !pending {
                return Err(halt(HaltCode::NothingPending));
            }
        } else if session.is_idle() {
            return Err(halt(HaltCode::NothingPending));
        }
        Ok(())
    }

    /// P02: a run that has not ended stands somewhere and something will move it.
    fn check_run(&self, run: &Run) -> Result<(), Halt> {
        let halt = |code| Halt {
            code,
            entity: Subject::Run(run.id),
        };
        let Some(session) = self.sessions.get(&run.session) else {
            return Err(halt(HaltCode::RunWithoutSession));
        };
        let along = match run.state {
            State::Along { turn, .. } => self
                .runs
                .get(&turn)
                .is_some_and(|turn| turn.along.contains(&run.id) && turn.session == run.session),
            _ => false,
        };
        let places = u32::from(along)
            + u32::from(session.active == Some(run.id))
            + u32::from(session.waiting.contains(&run.id))
            + u32::from(session.detached.contains(&run.id));
        if places != 1 || session.detached.contains(&run.id) != run.detached {
            return Err(halt(HaltCode::LaneOrder));
        }
        let slot = match run.state {
            State::Accepting { claims } => claims,
            State::Waiting | State::WaitingGlobal | State::Along { .. } => false,
            _ => !run.detached,
        };
        if slot != self.lanes.holds(run.lane, run.id)
            || (run.state == State::WaitingGlobal) != self.lanes.awaits(run.lane, run.id)
        {
            return Err(halt(HaltCode::LaneSlots));
        }
        let retry = || self.timers.at(Timer::StoreRetry(run.id)).is_some();
        let moves = match run.state {
            State::Accepting { .. } => self.accepting.values().any(|&id| id == run.id),
            // Bounded by whoever holds the lane that it waits for.
            State::Waiting | State::WaitingGlobal | State::Along { .. } => true,
            State::Claiming { pending, .. }
            | State::Settling { pending, .. }
            | State::Superseded { pending, .. } => pending != Pending::Refused || retry(),
            State::Tools { checkpoint, .. } => self.round_moves(run, checkpoint),
            State::Backoff => self.timers.at(Timer::ProviderRetry(run.id)).is_some(),
            State::Attempting { .. } | State::Stopping { .. } => {
                self.timers.at(Timer::LaneLimit(run.id)).is_some()
            }
        };
        if moves {
            Ok(())
        } else {
            Err(halt(HaltCode::NothingPending))
        }
    }

    /// Every call of a round that is open has its deadline, and what is in no checkpoint yet
    /// waits for one.
    fn round_moves(&self, run: &Run, checkpoint: Option<Pending>) -> bool {
        let mut open = false;
        for (place, call) in run.round.places() {
            let moves = match call.state {
                CallState::Ended(_) => continue,
                CallState::Requested { .. } | CallState::Launching { .. } => checkpoint.is_some(),
                CallState::Asked => self.timers.at(Timer::Approval(run.id, place)).is_some(),
                CallState::Running | CallState::Stopping(_) => {
                    self.timers.at(Timer::Tool(run.id, place)).is_some()
                }
            };
            if !moves {
                return false;
            }
            open = true;
        }
        match checkpoint {
            Some(Pending::Ordered(_)) => true,
            Some(Pending::Refused) => self.timers.at(Timer::StoreRetry(run.id)).is_some(),
            None => open,
        }
    }

    /// I13: no more than the cap, and every slot and place belongs to a run.
    fn check_lane(&self) -> Result<(), Halt> {
        let halt = |run: RunId| Halt {
            code: HaltCode::LaneSlots,
            entity: Subject::Run(run),
        };
        for (lane, run) in self.lanes.members() {
            if self.runs.get(&run).is_none_or(|run| run.lane != lane) {
                return Err(halt(run));
            }
        }
        match self.lanes.overfull(&self.config) {
            Some(run) => Err(halt(run)),
            None => Ok(()),
        }
    }

    /// I59: every deadline has an owner, every wait a deadline, and the tables agree.
    fn check_timers(&self) -> Result<(), Halt> {
        let (timers_agree, waits_agree) = (self.timers.agree(), self.waits.agree());
        for armed in self.timers.iter() {
            let entity = armed.timer.owner();
            let held = match entity {
                Subject::Run(run) => self.runs.contains_key(&run),
                Subject::Session(session) => self.sessions.contains_key(&session),
                Subject::Request(request) => {
                    self.waits.holds(request) || self.gate == Gate::Draining { request }
                }
            };
            if !held {
                return Err(Halt {
                    code: HaltCode::OrphanTimer,
                    entity,
                });
            }
            if !timers_agree {
                return Err(Halt {
                    code: HaltCode::TimerTable,
                    entity,
                });
            }
        }
        for request in self.waits.requests() {
            if self.timers.at(Timer::Wait(request)).is_none() || !waits_agree {
                return Err(Halt {
                    code: HaltCode::WaiterIndex,
                    entity: Subject::Request(request),
                });
            }
        }
        Ok(())
    }
}
