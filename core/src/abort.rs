//! Abort: somebody wants a run, or all runs of a session, stopped (P17, B-075).
//!
//! It works in every phase and acts on the named run only (P18). What had already been
//! decided stays decided.

use alloc::vec::Vec;

use crate::ids::{RequestId, RunId, SessionId};
use crate::input::Input;
use crate::machine::Core;
use crate::outcome::{Outcome, StopReason};
use crate::output::{Answer, Output, Rejection};
use crate::run::{Pending, State};
use crate::session::{Phase, Session};

impl Core {
    /// Stops what it can and names it. Nothing to stop is no error.
    pub(crate) fn abort(&mut self, request: RequestId, session: SessionId, run: Option<RunId>) {
        if let Some(Session {
            phase: Phase::Loading { .. },
            ..
        }) = self.sessions.get(&session)
        {
            return self.park(
                session,
                Input::Abort {
                    request,
                    session,
                    run,
                },
            );
        }
        let targets: Vec<RunId> = match run {
            Some(run) => match self.runs.get(&run) {
                Some(held) if held.session != session => {
                    let answer = Answer::Rejected(Rejection::WrongSession);
                    return self.out(Output::Respond { request, answer });
                }
                _ => Vec::from([run]),
            },
            // The queue first, so that nothing starts in the place of what was stopped.
            None => {
                let mut all: Vec<RunId> = self
                    .sessions
                    .get(&session)
                    .into_iter()
                    .flat_map(Session::runs)
                    .collect();
                all.reverse();
                all
            }
        };
        let mut runs = Vec::new();
        for target in targets {
            if self.abort_run(target) {
                runs.push(target);
            }
        }
        self.out(Output::Respond {
            request,
            answer: Answer::Aborted { runs },
        });
    }

    /// Whether the run will end as cancelled because of this.
    fn abort_run(&mut self, id: RunId) -> bool {
        let cancelled = |provider_started| Outcome::Cancelled {
            by: StopReason::Rpc,
            provider_started,
        };
        let Some(run) = self.runs.get_mut(&id) else {
            return false;
        };
        match run.state {
            State::Accepting { .. }
            | State::Claiming {
                pending: Pending::Ordered(_),
                ..
            } => {
                if run.stop.is_some() {
                    return false;
                }
                run.stop = Some(cancelled(false));
                self.shorten_lane_limit(id);
            }
            State::Claiming {
                pending: Pending::Refused,
                ..
            } => self.finish(id, cancelled(false)),
            State::Waiting | State::WaitingGlobal => {
                let session = run.session;
                self.detach(id);
                self.finish(id, cancelled(false));
                self.advance(session);
            }
            State::Attempting { .. } => self.stop(id, cancelled(true)),
            State::Stopping { .. } | State::Settling { .. } | State::Superseded { .. } => {
                return false;
            }
        }
        true
    }
}
