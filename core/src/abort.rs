//! Abort: somebody wants a run, or all runs of a session, stopped (P17, B-075).
//!
//! It works in every phase and acts on the named run only (P18). What had already been
//! decided stays decided. The answer waits for the ends: it names the runs whose cancelled
//! end is durable, so an abort that was answered survives a crash (law 5).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::{RequestId, RunId, SessionId};
use crate::input::{Input, Scope};
use crate::machine::Core;
use crate::outcome::{Outcome, StopReason};
use crate::output::{Answer, Output, Rejection};
use crate::run::{Pending, State};
use crate::session::Phase;

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
    pub(crate) fn abort(&mut self, request: RequestId, session: SessionId, scope: Scope) {
        if self.aborts.by_request.contains_key(&request) {
            self.counts.reused_requests += 1;
            return;
        }
        if self.aborts.by_request.len() >= self.config.aborts_cap as usize {
            let answer = Answer::Rejected(Rejection::Busy);
            return self.out(Output::Respond { request, answer });
        }
        let waits = self.sessions.get(&session).is_some_and(|session| {
            session.hold.is_some() || matches!(session.phase, Phase::Loading { .. })
        });
        if waits {
            let input = Input::Abort {
                request,
                session,
                scope,
            };
            return self.park(session, input);
        }
        if let Scope::Run(run) = scope
            && self
                .runs
                .get(&run)
                .is_some_and(|run| run.session != session)
        {
            return self.reject(request, Rejection::WrongSession);
        }
        let waiting: BTreeSet<RunId> = self
            .targets(session, scope)
            .into_iter()
            .filter(|&target| self.stop_run(target, StopReason::Rpc))
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

    /// The runs that an abort is about. The queue first, so that nothing starts in the place of
    /// what was stopped; what is taken along after its turn.
    fn targets(&self, session: SessionId, scope: Scope) -> Vec<RunId> {
        if let Scope::Run(run) = scope {
            return Vec::from([run]);
        }
        let Some(session) = self.sessions.get(&session) else {
            return Vec::new();
        };
        let mut targets = Vec::new();
        if scope != Scope::AtWork {
            targets.extend(session.waiting.iter().rev());
        }
        if scope != Scope::Queued {
            targets.extend(session.active);
            let active = session.active.and_then(|active| self.runs.get(&active));
            targets.extend(active.into_iter().flat_map(|run| run.along.iter().copied()));
        }
        targets
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

    /// Stops a run wherever it is. Whether it will end as cancelled, by this or by an earlier
    /// stop.
    pub(crate) fn stop_run(&mut self, id: RunId, by: StopReason) -> bool {
        let Some(run) = self.runs.get_mut(&id) else {
            return false;
        };
        let cancelled = Outcome::Cancelled {
            by,
            provider_started: run.has_asked(),
        };
        match run.state {
            State::Accepting { .. }
            | State::Claiming {
                pending: Pending::Ordered(_),
                ..
            } => {
                let stop = *run.stop.get_or_insert(cancelled);
                self.shorten_lane_limit(id, self.config.lane_grace_ms);
                return is_cancelled(stop);
            }
            // Bound to a turn, it ends with it; not yet bound, it may still be given back.
            State::Along { turn, bound } => {
                if bound {
                    return self.is_being_cancelled(turn);
                }
                run.stop.get_or_insert(cancelled);
                self.take_out(id, turn);
            }
            State::Claiming {
                pending: Pending::Refused,
                ..
            } => self.finish(id, cancelled),
            State::Waiting | State::WaitingGlobal => self.end_waiting(id, cancelled),
            State::Attempting { .. } => self.stop(id, cancelled),
            State::Tools { .. } => {
                if let Some(outcome) = run.stop {
                    return is_cancelled(outcome);
                }
                self.stop(id, cancelled);
            }
            State::Backoff => self.finish(id, cancelled),
            State::Stopping { outcome, .. } => return is_cancelled(outcome),
            State::Settling { terminal, .. } => return is_cancelled(terminal.outcome),
            State::Superseded { .. } => return false,
        }
        true
    }

    /// The claim of a run was refused: the stopped ones among those that it was to bind end.
    pub(crate) fn take_out_stopped(&mut self, turn: RunId) {
        let along = self.runs.get(&turn).map(|run| run.along.clone());
        for id in along.unwrap_or_default() {
            if self.runs.get(&id).is_some_and(|run| run.stop.is_some()) {
                self.take_out(id, turn);
            }
        }
    }

    /// A stopped message that was to be taken along ends by itself, if the claim that was to
    /// bind it was refused and waits to be ordered again.
    fn take_out(&mut self, id: RunId, turn: RunId) {
        let Some(head) = self.runs.get_mut(&turn) else {
            return;
        };
        let State::Claiming {
            pending: Pending::Refused,
            ..
        } = head.state
        else {
            return;
        };
        head.along.retain(|&run| run != id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.state = State::Waiting;
        if let Some(outcome) = run.stop {
            self.end_waiting(id, outcome);
        }
    }

    fn is_being_cancelled(&self, id: RunId) -> bool {
        let Some(run) = self.runs.get(&id) else {
            return false;
        };
        self.decided(id).or(run.stop).is_some_and(is_cancelled)
    }
}

pub(crate) const fn is_cancelled(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Cancelled { .. })
}
