//! Abort: somebody wants a run, or all runs of a session, stopped (P17, B-075).
//!
//! It works in every phase and acts on the named run only (P18). What had already been
//! decided stays decided. The answer waits for the ends: it names the runs whose cancelled
//! end is durable, so an abort that was answered survives a crash (law 5).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::{RequestId, RunId, SessionId};
use crate::input::Input;
use crate::machine::Core;
use crate::outcome::{Outcome, StopReason};
use crate::output::{Answer, Output, Rejection};
use crate::run::{Pending, State};
use crate::session::{Phase, Session};

/// An abort that was not answered yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Abort {
    /// The runs whose ends it waits for.
    waiting: BTreeSet<RunId>,
    /// Those that have ended as cancelled.
    runs: Vec<RunId>,
}

/// All aborts that were not answered yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Aborts {
    by_request: BTreeMap<RequestId, Abort>,
}

impl Aborts {
    /// The runs that aborts wait for.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = RunId> + '_ {
        self.by_request
            .values()
            .flat_map(|abort| abort.waiting.iter().copied())
    }

    /// Takes a run's end in; gives the aborts that it completes.
    fn ended(&mut self, run: RunId, cancelled: bool) -> Vec<(RequestId, Vec<RunId>)> {
        let mut complete = Vec::new();
        for (&request, abort) in &mut self.by_request {
            if abort.waiting.remove(&run) {
                if cancelled {
                    abort.runs.push(run);
                }
                if abort.waiting.is_empty() {
                    complete.push((request, core::mem::take(&mut abort.runs)));
                }
            }
        }
        for (request, _) in &complete {
            self.by_request.remove(request);
        }
        complete
    }
}

impl Core {
    /// Stops what it can; the answer follows when the ends are durable. Nothing to stop is
    /// no error.
    pub(crate) fn abort(&mut self, request: RequestId, session: SessionId, run: Option<RunId>) {
        if self.aborts.by_request.contains_key(&request) {
            self.counts.reused_requests += 1;
            return;
        }
        if self.aborts.by_request.len() >= self.config.aborts_cap as usize {
            let answer = Answer::Rejected(Rejection::Busy);
            return self.out(Output::Respond { request, answer });
        }
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
        let waiting: BTreeSet<RunId> = targets
            .into_iter()
            .filter(|&target| self.abort_run(target))
            .collect();
        // Only now: nothing starts in the place of what the same abort stops.
        self.advance(session);
        if waiting.is_empty() {
            let answer = Answer::Aborted { runs: Vec::new() };
            return self.out(Output::Respond { request, answer });
        }
        let abort = Abort {
            waiting,
            runs: Vec::new(),
        };
        self.aborts.by_request.insert(request, abort);
    }

    /// A run is not held any more: answers the aborts that waited for it.
    pub(crate) fn abort_ended(&mut self, run: RunId, cancelled: bool) {
        for (request, runs) in self.aborts.ended(run, cancelled) {
            let answer = Answer::Aborted { runs };
            self.out(Output::Respond { request, answer });
        }
    }

    /// Gives up waiting for the ends of stopped runs: what has ended so far is named.
    pub(crate) fn drop_aborts(&mut self) -> Vec<(RequestId, Vec<RunId>)> {
        core::mem::take(&mut self.aborts.by_request)
            .into_iter()
            .map(|(request, abort)| (request, abort.runs))
            .collect()
    }

    /// Whether the run will end as cancelled, because of this abort or an earlier one.
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
                let stop = *run.stop.get_or_insert(cancelled(false));
                self.shorten_lane_limit(id);
                return is_cancelled(stop);
            }
            State::Claiming {
                pending: Pending::Refused,
                ..
            } => self.finish(id, cancelled(false)),
            State::Waiting | State::WaitingGlobal => {
                self.detach(id);
                self.finish(id, cancelled(false));
            }
            State::Attempting { .. } => self.stop(id, cancelled(true)),
            State::Stopping { outcome, .. } => return is_cancelled(outcome),
            State::Settling { terminal, .. } => return is_cancelled(terminal.outcome),
            State::Superseded { .. } => return false,
        }
        true
    }
}

pub(crate) const fn is_cancelled(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Cancelled { .. })
}
