//! A round of tools: an answer asks for calls, they run, the model is asked with their results.
//!
//! Owns the way from an answer with calls to the next claim, or to the end of the run. Before
//! any call starts, a checkpoint that says so is durable (I34, law 12); after the last has ended,
//! the results are written with the next attempt's claim, or with the run's end (I24). So a call
//! starts at most once over all lives, and each has one result. What happens on one call stands
//! in `call`.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::call::{Call, CallState};
use crate::ids::{OrderKind, RunId, Subject, Ticket};
use crate::machine::Core;
use crate::outcome::{Failure, Limit, Outcome};
use crate::output::{Event, Output, Rejection};
use crate::run::{Pending, Run, State, store_backoff};
use crate::timers::Timer;
use crate::tool::{CallEnd, CallFacts, CallResult, LaunchOrder, LaunchReport};

/// When a person is asked before a guarded tool call starts (P27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Ask {
    /// Never: guarded calls start at once.
    Off,
    /// Before each guarded call.
    Always,
}

/// How tool calls are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolsConfig {
    /// When a person is asked (`tools.exec.ask`; approvals fail closed).
    pub ask: Ask,
    /// How long a call waits for a person (spec 7.3).
    pub approval_ms: u64,
    /// The limit of a call that names none (`tools.exec.timeoutSec`).
    pub timeout_ms: u64,
    /// How long the end of a call that is being stopped is waited for (spec 6, cleanup).
    pub cancel_ms: u64,
    /// Calls that one answer may ask for; the others are skipped (law 9).
    pub calls_max: u16,
    /// Answers of a run that may ask for calls; one more ends the run (law 9).
    pub rounds_max: u16,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            ask: Ask::Always,
            approval_ms: 1_800_000,
            timeout_ms: 1_800_000,
            cancel_ms: 10_000,
            calls_max: 32,
            rounds_max: 256,
        }
    }
}

/// As what a run ends whose budget has passed when it was to go on.
const OVER_BUDGET: Outcome = Outcome::TimedOut {
    limit: Limit::Budget,
    provider_started: true,
};

/// What the answer of the current attempt asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Its calls, in their order.
    pub(crate) calls: Vec<Call>,
    /// Whether the answer is a row of the transcript: a checkpoint of it is durable.
    pub(crate) recorded: bool,
    /// Checkpoints ordered so far, to tell one from the next.
    checkpoints: u16,
}

impl Round {
    /// Takes in a call of the answer. Those beyond the cap are never started.
    pub(crate) fn asked(&mut self, facts: CallFacts, config: &ToolsConfig) {
        if self.calls.len() < usize::from(u16::MAX) {
            let room = self.calls.len() < usize::from(config.calls_max);
            self.calls.push(Call::new(facts, config, room));
        }
    }

    /// The calls with their places.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u16, &Call)> + '_ {
        (0u16..).zip(&self.calls)
    }

    /// Whether a call waits for a person.
    pub(crate) fn asks(&self) -> bool {
        self.calls.iter().any(|call| call.state == CallState::Asked)
    }

    fn all_ended(&self) -> bool {
        self.calls
            .iter()
            .all(|call| matches!(call.state, CallState::Ended(_)))
    }

    /// The results to write.
    pub(crate) fn results(&self) -> Vec<CallResult> {
        let ended = |(call, it): (u16, &Call)| match it.state {
            CallState::Ended(end) => Some(CallResult { call, end }),
            _ => None,
        };
        self.places().filter_map(ended).collect()
    }
}

impl Core {
    /// The answer is whole and asks for calls: its checkpoint is ordered.
    pub(crate) fn begin_round(&mut self, id: RunId) {
        self.flush_text(id);
        self.disarm_call(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.recovery.answered();
        if self.budget_left(id) == Some(0) {
            return self.finish(id, OVER_BUDGET);
        }
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if run.rounds >= self.config.tools.rounds_max {
            return self.finish(id, Outcome::Failed(Failure::TooManyRounds));
        }
        run.rounds += 1;
        self.order_launch(id, 0);
    }

    /// Orders the checkpoint of all calls that were not in one yet, or whose checkpoint was
    /// refused.
    pub(crate) fn order_launch(&mut self, id: RunId, tries: u16) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let (mut start, mut ask) = (Vec::new(), Vec::new());
        for (place, call) in (0u16..).zip(&mut run.round.calls) {
            if let CallState::Requested { ask } = call.state {
                call.state = CallState::Launching { ask };
            }
            match call.state {
                CallState::Launching { ask: true } => ask.push(place),
                CallState::Launching { ask: false } => start.push(place),
                _ => {}
            }
        }
        run.round.checkpoints = run.round.checkpoints.wrapping_add(1);
        let ticket = Ticket {
            subject: Subject::Run(id),
            order: OrderKind::Launch,
            attempt: run.attempt,
            ordinal: run.stay.wrapping_add(run.round.checkpoints),
        };
        let ended_at = match run.state {
            State::Tools { ended_at, .. } => ended_at,
            _ => None,
        };
        run.state = State::Tools {
            checkpoint: Some(Pending::Ordered(ticket)),
            tries,
            ended_at,
        };
        let launch = LaunchOrder {
            bytes: run.stream.received,
            calls: u16::try_from(run.round.calls.len()).unwrap_or(u16::MAX),
            start,
            ask,
            at: self.now.wall,
        };
        let (fence, epoch) = (run.fence(), run.epoch);
        self.out(Output::Launch {
            ticket,
            fence,
            epoch,
            launch,
        });
    }

    /// The report of a checkpoint.
    pub(crate) fn launched(&mut self, ticket: Ticket, report: LaunchReport) {
        let run = match ticket.subject {
            Subject::Run(id) => self.runs.get_mut(&id),
            _ => None,
        };
        let Some((run, tries)) = run.and_then(|run| match run.state {
            State::Tools {
                checkpoint: Some(Pending::Ordered(expected)),
                tries,
                ..
            } if expected == ticket => Some((run, tries)),
            _ => None,
        }) else {
            self.counts.stale_store += 1;
            return;
        };
        let (id, session, stopped) = (run.id, run.session, run.stop.is_some());
        let State::Tools { checkpoint, .. } = &mut run.state else {
            return;
        };
        match report {
            LaunchReport::Committed => {
                *checkpoint = None;
                self.checkpoint_durable(id);
            }
            LaunchReport::Fenced => self.look_up_end(id, Outcome::Superseded),
            LaunchReport::NotOwner => self.lose(session),
            LaunchReport::Refused(_) => {
                *checkpoint = Some(Pending::Refused);
                if stopped {
                    self.settle_round(id);
                } else {
                    self.arm_in(Timer::StoreRetry(id), store_backoff(&self.config, tries));
                }
            }
        }
    }

    /// A checkpoint is durable: its calls start, or wait for a person; unless the run is being
    /// stopped.
    fn checkpoint_durable(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let first = !core::mem::replace(&mut run.round.recorded, true);
        let stopped = run.stop.is_some();
        let calls = run.round.calls.len();
        if first {
            for place in 0..calls {
                self.tell_start(id, place as u16);
            }
        }
        if !stopped && self.budget_left(id) == Some(0) {
            return self.stop(id, OVER_BUDGET); // a late wake: its deadline has passed too (I40)
        }
        for place in 0..calls {
            self.go_on(id, place as u16, stopped);
        }
        self.pace_budget(id);
        self.settle_round(id);
    }

    /// Goes on when nothing of the round is open any more: to the next attempt, or to the end.
    pub(crate) fn settle_round(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let State::Tools { checkpoint, .. } = run.state else {
            return;
        };
        let outcome = match (checkpoint, run.stop) {
            (Some(Pending::Ordered(_)), _) => return,
            (_, Some(outcome)) => {
                self.drop_checkpoint(id);
                outcome
            }
            (Some(Pending::Refused), None) => return,
            (None, None) => {
                let waits = |call: &Call| matches!(call.state, CallState::Requested { .. });
                if run.round.calls.iter().any(waits) {
                    return self.order_launch(id, 0);
                }
                if run.round.all_ended() {
                    self.next_round(id);
                }
                return;
            }
        };
        let over = |run: &Run| !run.round.recorded || run.round.all_ended();
        if self.runs.get(&id).is_some_and(|run| over(run)) {
            self.finish(id, outcome);
        }
    }

    /// The run is being stopped: a checkpoint that was refused is not ordered again, and its calls
    /// never start.
    fn drop_checkpoint(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id).filter(|run| run.round.recorded) else {
            return;
        };
        if let State::Tools { checkpoint, .. } = &mut run.state {
            *checkpoint = None;
        }
        self.timers.disarm(Timer::StoreRetry(id));
        let launching =
            |&(_, call): &(u16, &Call)| matches!(call.state, CallState::Launching { .. });
        let launching = run.round.places().filter(launching);
        let launching: Vec<u16> = launching.map(|(place, _)| place).collect();
        for place in launching {
            self.go_on(id, place, true);
        }
    }

    /// The lane is freed: the end does not wait for the tools. Only a checkpoint under way is
    /// waited for, since it decides what the end has to say.
    pub(crate) fn end_round_now(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        if let (State::Tools { checkpoint, .. }, Some(outcome)) = (run.state, run.stop)
            && !matches!(checkpoint, Some(Pending::Ordered(_)))
        {
            self.finish(id, outcome);
        }
    }

    /// All results are there: the next attempt claims and writes them, and takes along what was
    /// to steer into the run.
    fn next_round(&mut self, id: RunId) {
        let left_ms = self.budget_left(id);
        if let Some(run) = self.runs.get_mut(&id) {
            run.left_ms = left_ms;
        }
        if left_ms == Some(0) {
            return self.stop(id, OVER_BUDGET); // its own deadline has passed too (I40)
        }
        self.timers.disarm(Timer::Budget(id));
        self.timers.disarm(Timer::OutputPace(id));
        self.steer_in(id);
        self.order_claim(id, 0);
    }

    /// Decides the outcome of a run whose tools are at work. Those that run are stopped, the
    /// others never start; the end follows when all have ended, or after a bound (I40).
    pub(crate) fn stop_round(&mut self, id: RunId, outcome: Outcome) {
        let now = self.now;
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let State::Tools { ended_at, .. } = &mut run.state else {
            return;
        };
        if run.stop.is_some() {
            return;
        }
        *ended_at = Some(now.wall);
        run.stop = Some(outcome);
        let (calls, detached) = (run.round.calls.len(), run.detached);
        self.timers.disarm(Timer::Budget(id));
        let grace_ms = self.config.lane_grace_ms;
        if self.timers.at(Timer::LaneLimit(id)).is_none() && !detached {
            self.arm_in(Timer::LaneLimit(id), grace_ms); // a person was waited for
        }
        self.shorten_lane_limit(id, grace_ms);
        for place in 0..calls {
            self.stop_call(id, place as u16, CallEnd::Cancelled);
        }
        self.settle_round(id);
    }

    /// The run goes no further here: ends at once what is still open of its round. `asked` is
    /// the end of a call that waits for a person.
    pub(crate) fn close_round(&mut self, id: RunId, asked: CallEnd) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        if run.round.calls.is_empty() {
            return;
        }
        let (calls, recorded) = (run.round.calls.len(), run.round.recorded);
        for place in 0..calls {
            self.give_up_call(id, place as u16, asked, recorded);
        }
        if !recorded && let Some(run) = self.runs.get_mut(&id) {
            run.round.calls.clear();
        }
    }

    /// The run is not ours any more: what it has at work is stopped, and nothing is told of it.
    pub(crate) fn abandon_round(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let round = core::mem::take(&mut run.round);
        let attempt = run.attempt;
        for (place, call) in round.places() {
            if call.is_running() {
                self.out(Output::CancelTool {
                    ticket: call_ticket(id, attempt, place),
                });
            }
            self.timers.disarm(Timer::Tool(id, place));
            self.timers.disarm(Timer::Approval(id, place));
            for &request in &call.askers {
                self.reject(request, Rejection::NotOwner);
            }
        }
    }

    /// While a person is waited for, the run's time stands still; afterwards exactly the rest
    /// goes on (P27, I39).
    pub(crate) fn pace_budget(&mut self, id: RunId) {
        let budget = self.budget_left(id);
        let now = self.now.time;
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if run.stop.is_some() {
            return;
        }
        if !run.round.asks() {
            if !core::mem::take(&mut run.paused) {
                return;
            }
            let left_ms = run.left_ms;
            let limit = run.lane_limit(&self.config, now);
            if let Some(left_ms) = left_ms {
                self.arm_in(Timer::Budget(id), left_ms.max(1));
            }
            return self.arm(Timer::LaneLimit(id), limit);
        }
        if core::mem::replace(&mut run.paused, true) {
            return;
        }
        run.left_ms = budget;
        self.timers.disarm(Timer::Budget(id));
        self.timers.disarm(Timer::LaneLimit(id));
    }
}

/// The name of the order to carry out a call.
pub(crate) const fn call_ticket(run: RunId, attempt: crate::Attempt, call: u16) -> Ticket {
    Ticket {
        subject: Subject::Run(run),
        order: OrderKind::Tool,
        attempt,
        ordinal: call,
    }
}

impl Core {
    /// Tells that a call was asked for, and that it will never start, if that is known.
    fn tell_start(&mut self, id: RunId, place: u16) {
        if let Some(call) = self.call_id(id, place) {
            self.publish(id, Event::ToolStart { call });
        }
        if let Some(CallState::Ended(end)) = self.call_state(id, place) {
            self.tell_call_end(id, place, end);
        }
    }
}
