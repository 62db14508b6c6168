//! A model attempt: the call goes out, facts come in, limits watch it (spec 5.1).
//!
//! Owns the way from a durable claim to a decided outcome. Progress (reasoning, text) moves
//! the idle limit; mere liveness does not (law 8). Nothing moves the budget (P13, B-120).

use crate::ids::{OrderKind, RunId, Subject, Ticket};
use crate::input::{ModelEnd, ModelFact};
use crate::machine::Core;
use crate::outcome::{Failure, Limit, Outcome};
use crate::output::{Event, Output};
use crate::run::State;
use crate::timers::Timer;

impl Core {
    /// The claim is durable: asks the model.
    pub(crate) fn start_model(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let at = self.now.wall.max(run.accepted_at);
        run.started_at.get_or_insert(at);
        run.has_content = true;
        let call = Ticket {
            subject: Subject::Run(id),
            order: OrderKind::Model,
            attempt: run.attempt,
            ordinal: 0,
        };
        run.state = State::Attempting { call };
        let silence = run.silence(&self.config);
        let (fence, attempt, candidate, left_ms) =
            (run.fence(), run.attempt, run.candidate, run.left_ms);
        self.publish(id, Event::Start { attempt, at });
        self.out(Output::StartModel {
            ticket: call,
            fence,
            candidate,
        });
        if let Some(left_ms) = left_ms {
            // The attempt's own deadline: from now on the lane waits for that and the grace.
            self.arm_in(Timer::Budget(id), left_ms);
            let limit = self.now.time.plus(left_ms).plus(self.config.lane_grace_ms);
            self.arm(Timer::LaneLimit(id), limit);
        }
        self.arm_in(Timer::FirstEvent(id), silence.first_event_ms);
    }

    /// A fact about a model call.
    pub(crate) fn model(&mut self, ticket: Ticket, fact: ModelFact) {
        let Subject::Run(id) = ticket.subject else {
            self.counts.stale_model += 1;
            return;
        };
        match self.runs.get(&id).map(|run| run.state) {
            Some(State::Attempting { call }) if call == ticket => self.attempt_fact(id, fact),
            Some(State::Stopping { call, outcome, .. }) if call == ticket => {
                if matches!(fact, ModelFact::Ended(_)) {
                    self.finish(id, outcome);
                }
            }
            _ => self.counts.stale_model += 1,
        }
    }

    fn attempt_fact(&mut self, id: RunId, fact: ModelFact) {
        match fact {
            ModelFact::Alive => {}
            ModelFact::Structure => self.data_arrived(id, false),
            ModelFact::Reasoning => self.data_arrived(id, true),
            ModelFact::Calling => {
                self.data_arrived(id, true);
                if let Some(run) = self.runs.get_mut(&id) {
                    run.stream.calling = true;
                }
            }
            ModelFact::Call(facts) => {
                self.data_arrived(id, true);
                if let Some(run) = self.runs.get_mut(&id) {
                    run.round.asked(facts, &self.config.tools);
                }
            }
            ModelFact::Text { to } => self.text_arrived(id, to),
            ModelFact::Finished => self.model_finished(id),
            ModelFact::Ended(end) => self.model_ended(id, end),
        }
    }

    /// Data came. The first ends the first-event limit and begins the idle limit; after that
    /// only progress moves it.
    fn data_arrived(&mut self, id: RunId, progress: bool) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let first = !core::mem::replace(&mut run.stream.begun, true);
        if first {
            self.timers.disarm(Timer::FirstEvent(id));
            self.seen(id);
        }
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if !(first || progress) {
            return;
        }
        if core::mem::take(&mut run.stream.finished) {
            self.timers.disarm(Timer::FinishTail(id));
        }
        let idle_ms = run.silence(&self.config).idle_ms;
        let lane_limit = run
            .left_ms
            .is_none()
            .then(|| run.lane_limit(&self.config, self.now.time));
        if let Some(ms) = idle_ms {
            self.arm_in(Timer::Idle(id), ms);
        }
        if let Some(limit) = lane_limit {
            self.arm(Timer::LaneLimit(id), limit);
        }
    }

    /// The model answers: it has seen the chat messages that its request contains (B-070).
    fn seen(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let along = run.along.clone();
        for id in core::iter::once(id).chain(along) {
            if let Some(run) = self.runs.get_mut(&id)
                && !core::mem::replace(&mut run.seen, true)
                && run.turn.is_chat()
            {
                self.publish(id, Event::Seen);
            }
        }
    }

    /// The provider said that the model finished. From here on the call may stay open for the
    /// tail only; output takes the word back, since some providers say it with every piece.
    fn model_finished(&mut self, id: RunId) {
        self.data_arrived(id, true);
        if let Some(run) = self.runs.get_mut(&id) {
            run.stream.finished = true;
            self.arm_in(Timer::FinishTail(id), self.config.finish_tail_ms);
        }
    }

    /// The model finished and its call was never closed. If it was asking for tools, its calls
    /// were never told whole: that is no answer (P38).
    pub(crate) fn finish_tail_due(&mut self, id: RunId) {
        match self
            .runs
            .get(&id)
            .map(|run| (run.state, run.stream.calling))
        {
            Some((State::Attempting { call }, true)) => {
                self.call_silent(id, call, Outcome::Failed(Failure::Incomplete));
            }
            _ => self.stop(id, Outcome::Completed),
        }
    }

    fn text_arrived(&mut self, id: RunId, to: u64) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if to <= run.stream.received {
            self.counts.stale_text += 1;
            return;
        }
        run.stream.received = to;
        self.data_arrived(id, true);
        if to > self.config.reply_cap_bytes {
            return self.stop(id, Outcome::Failed(Failure::ReplyTooLarge));
        }
        self.pace_text(id);
    }

    /// The call is over by itself.
    fn model_ended(&mut self, id: RunId, end: ModelEnd) {
        let asks = |id| {
            self.runs
                .get(id)
                .is_some_and(|run| !run.round.calls.is_empty())
        };
        if end == ModelEnd::Completed && asks(&id) {
            return self.begin_round(id);
        }
        let outcome = match end {
            ModelEnd::Completed => Outcome::Completed,
            ModelEnd::Failed(error) => {
                if let Some(run) = self.runs.get_mut(&id) {
                    run.stream.detail = error.detail;
                }
                Outcome::Failed(Failure::Provider {
                    class: error.class(),
                    status: error.status,
                })
            }
            // A call that says it was cancelled though nobody ordered it did not finish either.
            ModelEnd::Incomplete | ModelEnd::Cancelled => Outcome::Failed(Failure::Incomplete),
        };
        self.call_failed(id, end, outcome);
    }

    /// A limit of the attempt passed.
    pub(crate) fn limit_reached(&mut self, id: RunId, limit: Limit) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let outcome = Outcome::TimedOut {
            limit,
            provider_started: true,
        };
        match run.state {
            State::Attempting { .. } if run.stream.finished && !run.stream.calling => {
                self.stop(id, Outcome::Completed);
            }
            State::Attempting { call } if limit != Limit::Budget => {
                self.call_silent(id, call, outcome);
            }
            _ => self.stop(id, outcome),
        }
    }

    /// Decides the outcome of a run at the model and cancels the call. The lane slot is freed
    /// when the call has ended, or after the grace (spec 2.3).
    pub(crate) fn stop(&mut self, id: RunId, outcome: Outcome) {
        self.flush_text(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let call = match run.state {
            State::Attempting { call } => call,
            State::Tools { .. } => return self.stop_round(id, outcome),
            _ => return,
        };
        let ended_at = self.now.wall;
        run.state = State::Stopping {
            call,
            outcome,
            ended_at,
        };
        self.disarm_attempt(id);
        self.shorten_lane_limit(id, self.config.lane_grace_ms);
        self.out(Output::CancelModel { ticket: call });
    }

    /// From a stop on, the slot is held for a grace at most.
    pub(crate) fn shorten_lane_limit(&mut self, id: RunId, grace_ms: u64) {
        let grace = self.now.time.plus(grace_ms);
        if self
            .timers
            .at(Timer::LaneLimit(id))
            .is_some_and(|at| at > grace)
        {
            self.arm(Timer::LaneLimit(id), grace);
        }
    }

    /// Takes out the deadlines of the attempt. The lane limit stays: it bounds what follows.
    pub(crate) fn disarm_attempt(&mut self, id: RunId) {
        self.timers.disarm(Timer::Budget(id));
        self.timers.disarm(Timer::ProviderRetry(id));
        self.timers.disarm(Timer::OutputPace(id));
        self.disarm_call(id);
    }

    /// Takes out the deadlines of the model call.
    pub(crate) fn disarm_call(&mut self, id: RunId) {
        for timer in [
            Timer::FirstEvent(id),
            Timer::Idle(id),
            Timer::FinishTail(id),
            Timer::TextPace(id),
            Timer::SavePace(id),
        ] {
            self.timers.disarm(timer);
        }
    }

    /// The lane task had its allowance: the slot is freed whatever the run still waits for.
    /// What it writes from now on passes only until another run claims the session.
    pub(crate) fn lane_limit_reached(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let session = run.session;
        let outcome = Outcome::TimedOut {
            limit: Limit::Lane,
            provider_started: run.has_asked(),
        };
        match run.state {
            State::Claiming { pending, .. } => {
                let outcome = *run.stop.get_or_insert(outcome);
                self.detach(id);
                if pending == crate::run::Pending::Refused {
                    self.finish(id, outcome);
                }
            }
            State::Attempting { .. } | State::Backoff => {
                self.stop(id, outcome);
                self.detach(id);
                self.finish(id, outcome);
            }
            State::Tools { .. } => {
                self.stop(id, outcome);
                self.detach(id);
                self.end_round_now(id);
            }
            State::Stopping { outcome, .. } => {
                self.detach(id);
                self.finish(id, outcome);
            }
            _ => self.detach(id),
        }
        self.advance(session);
    }
}
