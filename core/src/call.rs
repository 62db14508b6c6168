//! One tool call: started, heard, limited, decided by a person, ended.
//!
//! Owns what moves a call within its round. A limit asks a call to stop and then waits for its
//! end, within a bound (M25); a person's first word counts (P27); whatever happens, a call ends
//! once, and its end is what is known of it (law 10).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::{RequestId, RunId, Subject, Ticket};
use crate::machine::Core;
use crate::output::{Answer, Event, Output, Rejection};
use crate::round::{Ask, ToolsConfig, call_ticket};
use crate::run::State;
use crate::time::Wall;
use crate::timers::Timer;
use crate::tool::{CallEnd, CallFacts, CallId, CallKind, Decision, ToolEnd, ToolFact};

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum CallState {
    /// In no checkpoint yet. With `ask`, its next one lets it wait for a person, else start.
    Requested {
        /// Whether a person is to be asked.
        ask: bool,
    },
    /// Its checkpoint is being committed.
    Launching {
        /// Whether a person is to be asked.
        ask: bool,
    },
    /// It waits for a person.
    Asked,
    /// It runs.
    Running,
    /// It runs and was told to stop; then it has ended so.
    Stopping(CallEnd),
    /// It has ended, or will never start.
    Ended(CallEnd),
}

/// A call of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Its own limit.
    timeout_ms: u64,
    pub(crate) state: CallState,
    /// Bytes that it has put out, and how many of them were published.
    output: u64,
    shown: u64,
    /// A person's word on it.
    decided: Option<Decision>,
    /// Who waits until that word is durable.
    pub(crate) askers: Vec<RequestId>,
}

impl Call {
    /// A call as it is asked for. `room`: whether it may start at all.
    pub(crate) fn new(facts: CallFacts, config: &ToolsConfig, room: bool) -> Self {
        let state = match facts.kind {
            CallKind::NoSuchTool => CallState::Ended(CallEnd::NoSuchTool),
            CallKind::BadArguments => CallState::Ended(CallEnd::BadArguments),
            CallKind::Ready if !room => CallState::Ended(CallEnd::Skipped),
            CallKind::Ready => CallState::Requested {
                ask: facts.guarded && config.ask == Ask::Always,
            },
        };
        Self {
            timeout_ms: facts.timeout_ms.unwrap_or(config.timeout_ms),
            state,
            output: 0,
            shown: 0,
            decided: None,
            askers: Vec::new(),
        }
    }

    pub(crate) const fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running | CallState::Stopping(_))
    }
}

impl Core {
    pub(crate) fn call_id(&self, id: RunId, place: u16) -> Option<CallId> {
        let attempt = self.runs.get(&id)?.attempt;
        Some(CallId {
            run: id,
            attempt,
            call: place,
        })
    }

    fn call(&self, id: RunId, place: u16) -> Option<&Call> {
        self.runs.get(&id)?.round.calls.get(usize::from(place))
    }

    fn call_mut(&mut self, id: RunId, place: u16) -> Option<&mut Call> {
        let run = self.runs.get_mut(&id)?;
        run.round.calls.get_mut(usize::from(place))
    }

    pub(crate) fn call_state(&self, id: RunId, place: u16) -> Option<CallState> {
        self.call(id, place).map(|call| call.state)
    }

    /// The call's checkpoint is durable: it starts, or waits for a person. If its run is being
    /// stopped it will do neither.
    pub(crate) fn go_on(&mut self, id: RunId, place: u16, stopped: bool) {
        let approval_ms = self.config.tools.approval_ms;
        let until = Wall(self.now.wall.0.saturating_add(approval_ms));
        let Some(call_id) = self.call_id(id, place) else {
            return;
        };
        let Some(call) = self.call_mut(id, place) else {
            return;
        };
        let CallState::Launching { ask } = call.state else {
            return;
        };
        self.answer_askers(id, place, !stopped);
        match ask {
            _ if stopped => self.call_ended(id, place, CallEnd::Skipped),
            true => {
                self.set_call(id, place, CallState::Asked);
                self.arm_in(Timer::Approval(id, place), approval_ms);
                self.publish(
                    id,
                    Event::ToolAsked {
                        call: call_id,
                        until,
                    },
                );
            }
            false => self.start_call(id, place, call_id),
        }
    }

    fn start_call(&mut self, id: RunId, place: u16, call_id: CallId) {
        let Some(call) = self.call_mut(id, place) else {
            return;
        };
        call.state = CallState::Running;
        let timeout_ms = call.timeout_ms;
        self.arm_in(Timer::Tool(id, place), timeout_ms);
        self.out(Output::StartTool {
            ticket: call_ticket(id, call_id.attempt, place),
            call: call_id,
        });
    }

    fn set_call(&mut self, id: RunId, place: u16, state: CallState) {
        if let Some(call) = self.call_mut(id, place) {
            call.state = state;
        }
    }

    /// A fact about a started call.
    pub(crate) fn tool(&mut self, ticket: Ticket, fact: ToolFact) {
        let place = ticket.ordinal;
        let known = match ticket.subject {
            Subject::Run(id) => self
                .call_id(id, place)
                .filter(|call| call_ticket(id, call.attempt, place) == ticket)
                .and_then(|_| self.call(id, place))
                .filter(|call| call.is_running())
                .map(|call| (id, call.state)),
            _ => None,
        };
        let Some((id, state)) = known else {
            self.counts.stale_tool += 1;
            return;
        };
        match fact {
            ToolFact::Output { to } => self.output_arrived(id, place, to),
            ToolFact::Ended(end) => {
                let end = match (end, state) {
                    (ToolEnd::Ok, _) => CallEnd::Ok,
                    (ToolEnd::Failed, _) => CallEnd::Failed,
                    (ToolEnd::Cancelled, CallState::Stopping(end)) => end,
                    // It says that it was stopped though nobody told it to.
                    (ToolEnd::Cancelled, _) => CallEnd::Failed,
                };
                self.call_ended(id, place, end);
                self.settle_round(id);
            }
        }
    }

    fn output_arrived(&mut self, id: RunId, place: u16, to: u64) {
        let now = self.now.time;
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let limit = (run.left_ms.is_none() && run.stop.is_none() && !run.paused)
            .then(|| run.lane_limit(&self.config, now));
        let Some(call) = run.round.calls.get_mut(usize::from(place)) else {
            return;
        };
        if to <= call.output {
            self.counts.stale_tool += 1;
            return;
        }
        call.output = to;
        if let Some(limit) = limit {
            self.arm(Timer::LaneLimit(id), limit);
        }
        if self.timers.at(Timer::OutputPace(id)).is_none() {
            self.output_pace_due(id);
        }
    }

    /// Publishes what the calls of a run have put out and was not shown; the next after the pace.
    pub(crate) fn output_pace_due(&mut self, id: RunId) {
        let calls = self.runs.get(&id).map_or(0, |run| run.round.calls.len());
        let mut any = false;
        for place in 0..calls {
            any |= self.flush_output(id, place as u16);
        }
        if any && self.config.text_pace_ms > 0 {
            self.arm_in(Timer::OutputPace(id), self.config.text_pace_ms);
        }
    }

    fn flush_output(&mut self, id: RunId, place: u16) -> bool {
        let Some(call_id) = self.call_id(id, place) else {
            return false;
        };
        let Some(call) = self.call_mut(id, place) else {
            return false;
        };
        let (from, to) = (call.shown, call.output);
        if from == to {
            return false;
        }
        call.shown = to;
        self.publish(
            id,
            Event::ToolOutput {
                call: call_id,
                from,
                to,
            },
        );
        true
    }

    /// A call has ended, or will never start. Told if its start was.
    fn call_ended(&mut self, id: RunId, place: u16, end: CallEnd) {
        self.timers.disarm(Timer::Tool(id, place));
        self.timers.disarm(Timer::Approval(id, place));
        self.set_call(id, place, CallState::Ended(end));
        self.tell_call_end(id, place, end);
    }

    pub(crate) fn tell_call_end(&mut self, id: RunId, place: u16, end: CallEnd) {
        self.flush_output(id, place);
        if let Some(call) = self.call_id(id, place) {
            self.publish(id, Event::ToolEnd { call, end });
        }
    }

    /// A call has had its time; or, being stopped, the time for that.
    pub(crate) fn tool_due(&mut self, id: RunId, place: u16) {
        match self.call_state(id, place) {
            Some(CallState::Running) => self.stop_call(id, place, CallEnd::TimedOut),
            Some(CallState::Stopping(_)) => {
                self.call_ended(id, place, CallEnd::Unknown);
                self.settle_round(id);
            }
            _ => {}
        }
    }

    /// Stops a call: one that runs is told so and waited for, one that was not started never is.
    /// What a checkpoint under way says is waited for.
    pub(crate) fn stop_call(&mut self, id: RunId, place: u16, end: CallEnd) {
        let Some(call_id) = self.call_id(id, place) else {
            return;
        };
        match self.call_state(id, place) {
            Some(CallState::Running) => {
                self.set_call(id, place, CallState::Stopping(end));
                self.arm_in(Timer::Tool(id, place), self.config.tools.cancel_ms);
                self.out(Output::CancelTool {
                    ticket: call_ticket(id, call_id.attempt, place),
                });
            }
            Some(CallState::Requested { .. } | CallState::Asked) => {
                let recorded = self.runs.get(&id).is_some_and(|run| run.round.recorded);
                self.answer_askers(id, place, false);
                if recorded {
                    self.call_ended(id, place, CallEnd::Skipped);
                }
            }
            _ => {}
        }
    }

    /// Nobody waits for a call any more: it ends as what is known of it.
    pub(crate) fn give_up_call(&mut self, id: RunId, place: u16, asked: CallEnd, recorded: bool) {
        self.answer_askers(id, place, false);
        let Some(call_id) = self.call_id(id, place) else {
            return;
        };
        let end = match self.call_state(id, place) {
            Some(CallState::Running | CallState::Stopping(_)) => {
                if self.call_state(id, place) == Some(CallState::Running) {
                    self.out(Output::CancelTool {
                        ticket: call_ticket(id, call_id.attempt, place),
                    });
                }
                CallEnd::Unknown
            }
            Some(CallState::Asked) => asked,
            Some(CallState::Requested { .. } | CallState::Launching { .. }) => CallEnd::Skipped,
            Some(CallState::Ended(_)) | None => return,
        };
        if recorded {
            self.call_ended(id, place, end);
        }
    }

    /// A person decided.
    pub(crate) fn decide(&mut self, request: RequestId, asked: CallId, decision: Decision) {
        let cap = self.config.callers_cap as usize;
        let id = asked.run;
        let held = self
            .runs
            .get_mut(&id)
            .filter(|run| run.attempt == asked.attempt && matches!(run.state, State::Tools { .. }));
        let call = held.and_then(|run| run.round.calls.get_mut(usize::from(asked.call)));
        let Some(call) = call else {
            return self.reject(request, Rejection::NotAsked);
        };
        let is_open = matches!(
            call.state,
            CallState::Requested { ask: false } | CallState::Launching { ask: false }
        );
        match (call.decided, call.state) {
            (Some(first), _) if first != decision => {
                self.reject(request, Rejection::AlreadyDecided);
            }
            // Allowed, and its run was stopped before that was durable.
            (Some(_), CallState::Ended(CallEnd::Skipped)) => {
                self.reject(request, Rejection::NotAsked);
            }
            (Some(_), _) if is_open && call.askers.len() < cap => call.askers.push(request),
            (Some(_), _) if is_open => self.reject(request, Rejection::Busy),
            (Some(_), _) => self.tell_decided(request, asked, decision),
            (None, CallState::Asked) => {
                call.decided = Some(decision);
                if decision == Decision::AllowOnce {
                    call.state = CallState::Requested { ask: false };
                    call.askers.push(request);
                }
                self.timers.disarm(Timer::Approval(id, asked.call));
                self.publish(
                    id,
                    Event::ToolDecided {
                        call: asked,
                        decision,
                    },
                );
                if decision == Decision::Deny {
                    self.tell_decided(request, asked, decision);
                    self.call_ended(id, asked.call, CallEnd::Denied);
                }
                self.pace_budget(id);
                self.settle_round(id);
            }
            (None, _) => self.reject(request, Rejection::NotAsked),
        }
    }

    fn tell_decided(&mut self, request: RequestId, call: CallId, decision: Decision) {
        self.out(Output::Respond {
            request,
            answer: Answer::Decided { call, decision },
        });
    }

    /// The person's word counts, or came too late.
    fn answer_askers(&mut self, id: RunId, place: u16, counts: bool) {
        let Some(asked) = self.call_id(id, place) else {
            return;
        };
        let Some(call) = self.call_mut(id, place) else {
            return;
        };
        let decided = call.decided;
        for request in core::mem::take(&mut call.askers) {
            match decided.filter(|_| counts) {
                Some(decision) => self.tell_decided(request, asked, decision),
                None => self.reject(request, Rejection::NotAsked),
            }
        }
    }

    /// Nobody decided in time.
    pub(crate) fn approval_due(&mut self, id: RunId, place: u16) {
        if self.call_state(id, place) == Some(CallState::Asked) {
            self.call_ended(id, place, CallEnd::Expired);
            self.pace_budget(id);
            self.settle_round(id);
        }
    }
}
