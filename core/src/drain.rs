//! Draining: the process is about to end, in order (spec 2.5).
//!
//! Nothing new begins: messages and waits are refused as deferrals, queued runs stay in the
//! store and run after the restart (P22, P23). Runs at work go on until they end or the
//! drain's budget does; what is still open then is taken up by the next start. The gate never
//! opens again in this life.

use serde::{Deserialize, Serialize};

use crate::ids::{RequestId, RunId};
use crate::machine::Core;
use crate::output::{Answer, Output, Rejection, WaitResult};
use crate::run::State;
use crate::session::Session;
use crate::timers::Timer;

/// Whether work is let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Gate {
    /// Yes.
    #[default]
    Open,
    /// Not any more; runs at work are waited for.
    Draining {
        /// Who asked first, and names the drain's deadline.
        request: RequestId,
    },
    /// The drain is over: the shell closes.
    Closed,
}

impl Core {
    /// Begins the drain, or shortens the one under way: its end never moves back.
    pub(crate) fn drain(&mut self, request: RequestId, budget_ms: Option<u64>) {
        let budget_ms = budget_ms.unwrap_or(self.config.drain_budget_ms);
        let end = self.now.time.plus(budget_ms);
        let timer = match self.gate {
            Gate::Open => {
                self.gate = Gate::Draining { request };
                Timer::Drain(request)
            }
            Gate::Draining { request } => Timer::Drain(request),
            Gate::Closed => return,
        };
        if self.timers.at(timer).is_none_or(|at| end < at) {
            self.arm(timer, end);
        }
    }

    /// Whether new work is let in.
    pub(crate) fn is_open(&self) -> bool {
        self.gate == Gate::Open
    }

    /// Whether the drain waits for this run: it is at work, or its acceptance is being
    /// written. One that waits to ask its model again goes on after the restart.
    fn is_at_work(state: State) -> bool {
        !matches!(
            state,
            State::Waiting | State::WaitingGlobal | State::Along { .. } | State::Backoff
        )
    }

    /// Ends the drain when nothing is at work any more.
    pub(crate) fn settle_drain(&mut self) {
        if let Gate::Draining { .. } = self.gate
            && !self.runs.values().any(|run| Self::is_at_work(run.state))
            && !self.sessions.values().any(|session| session.hold.is_some())
        {
            self.close();
        }
    }

    /// The drain is over. Everybody who still listens is told that the end will be told by
    /// the next start (P10, L11).
    pub(crate) fn close(&mut self) {
        if let Gate::Draining { request } = self.gate {
            self.timers.disarm(Timer::Drain(request));
        }
        self.gate = Gate::Closed;
        let requests: alloc::vec::Vec<RequestId> = self.waits.requests().collect();
        for request in requests {
            self.end_wait(request, WaitResult::Draining);
        }
        let runs: alloc::vec::Vec<RunId> = self.runs.keys().copied().collect();
        for id in runs {
            let Some(run) = self.runs.get_mut(&id) else {
                continue;
            };
            let deciders = run.round.calls.iter_mut();
            let deciders = deciders.flat_map(|call| core::mem::take(&mut call.askers));
            let deciders: alloc::vec::Vec<RequestId> = deciders.collect();
            let callers = core::mem::take(&mut run.callers);
            for request in callers.into_iter().chain(deciders) {
                let answer = Answer::Rejected(Rejection::Draining);
                self.out(Output::Respond { request, answer });
            }
        }
        let held: alloc::vec::Vec<RequestId> = self
            .sessions
            .values()
            .filter_map(|session| session.hold.as_ref().map(|hold| hold.request))
            .collect();
        for request in held {
            self.reject(request, Rejection::Draining);
        }
        let parked: alloc::vec::Vec<_> = self
            .sessions
            .values_mut()
            .flat_map(Session::take_parked)
            .collect();
        for input in parked {
            self.refuse(&input, Rejection::Draining);
        }
        for (request, runs) in self.drop_aborts() {
            let answer = Answer::Aborted { runs };
            self.out(Output::Respond { request, answer });
        }
        self.out(Output::Drained);
    }
}
