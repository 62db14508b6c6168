//! I59, P04: the deadline that a drain names belongs to somebody who still has it.
//!
//! A run has deadlines while it is held, those of its attempt only while its model call goes
//! on, and its budget also while it waits to ask again or has tools at work and asks nobody; a
//! call while it runs or is asked about; a wait while it is open; a session while it is held. Keeps its own book of these.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Answer, CallId, Event, Input, LoadReport, ModelFact, Output, RequestId, RunId, SessionId,
    Subject, Ticket, Timer,
};

use super::{Check, Moment};
use crate::violation::Code;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    runs: BTreeSet<RunId>,
    /// Calls that go on.
    calls: BTreeMap<RunId, Ticket>,
    /// Runs that wait to ask their model again.
    waiting: BTreeSet<RunId>,
    /// Runs whose answer asked for tools, until the next claim or the end.
    rounds: BTreeSet<RunId>,
    /// Calls that were started, or asked about, and have not ended.
    tools: BTreeSet<CallId>,
    asked: BTreeSet<CallId>,
    sessions: BTreeSet<SessionId>,
    waits: BTreeSet<RequestId>,
    draining: bool,
}

impl Deadlines {
    fn has(&self, timer: Timer) -> bool {
        match timer {
            Timer::Budget(run) => {
                let asked = self.asked.iter().any(|call| call.run == run);
                let round = self.rounds.contains(&run) && !asked;
                self.calls.contains_key(&run) || self.waiting.contains(&run) || round
            }
            Timer::Tool(run, place) => is_of(&self.tools, run, place),
            Timer::Approval(run, place) => is_of(&self.asked, run, place),
            Timer::OutputPace(run) => self.rounds.contains(&run),
            Timer::ProviderRetry(run) => self.waiting.contains(&run),
            Timer::FirstEvent(run)
            | Timer::Idle(run)
            | Timer::FinishTail(run)
            | Timer::TextPace(run)
            | Timer::SavePace(run) => self.calls.contains_key(&run),
            Timer::LaneLimit(run) | Timer::StoreRetry(run) => self.runs.contains(&run),
            Timer::LoadRetry(session) | Timer::Debounce(session) => {
                self.sessions.contains(&session)
            }
            Timer::Wait(request) => self.waits.contains(&request),
            Timer::Drain(_) => self.draining,
        }
    }
}

/// Whether a call of a run at this place is among these.
fn is_of(calls: &BTreeSet<CallId>, run: RunId, place: u16) -> bool {
    let of = |call: &CallId| call.run == run && call.call == place;
    calls.iter().any(of)
}

impl Check for Deadlines {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        match input {
            Input::Wait { request, .. } => {
                self.waits.insert(*request);
            }
            Input::Leave { request } => {
                self.waits.remove(request);
            }
            Input::Drain { .. } => self.draining = true,
            Input::Loaded {
                report: LoadReport::Loaded { open, .. },
                ..
            } => self.runs.extend(open.iter().map(|run| run.run)),
            Input::Model {
                ticket,
                fact: ModelFact::Ended(_),
            } => {
                self.calls.retain(|_, call| call != ticket);
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { session, .. } => {
                self.sessions.insert(*session);
            }
            Output::Accept { accept, .. } => {
                self.runs.insert(accept.run);
            }
            Output::StartModel { ticket, fence, .. } => {
                self.calls.insert(fence.run, *ticket);
            }
            Output::CancelModel { ticket } => {
                self.calls.retain(|_, call| call != ticket);
            }
            Output::Claim { fence, .. } => {
                self.waiting.remove(&fence.run);
                self.rounds.remove(&fence.run);
            }
            Output::Launch { fence, .. } => {
                self.rounds.insert(fence.run);
            }
            Output::StartTool { call, .. } => {
                self.tools.insert(*call);
            }
            Output::Publish { run, event, .. } => match event {
                Event::Retrying { .. } => {
                    self.waiting.insert(*run);
                }
                Event::Finishing { .. } => {
                    self.waiting.remove(run);
                    self.rounds.remove(run);
                }
                Event::ToolAsked { call, .. } => {
                    self.asked.insert(*call);
                }
                Event::ToolDecided { call, .. } => {
                    self.asked.remove(call);
                }
                Event::ToolEnd { call, .. } => {
                    self.tools.remove(call);
                    self.asked.remove(call);
                }
                _ => {}
            },
            Output::Forget { subject } => match subject {
                Subject::Run(run) => {
                    self.waiting.remove(run);
                    self.runs.remove(run);
                    self.calls.remove(run);
                    self.rounds.remove(run);
                    self.tools.retain(|call| call.run != *run);
                    self.asked.retain(|call| call.run != *run);
                }
                Subject::Session(session) => {
                    self.sessions.remove(session);
                }
                Subject::Request(_) => {}
            },
            Output::Respond {
                request,
                answer: Answer::Wait { .. } | Answer::Rejected(_),
            } => {
                self.waits.remove(request);
            }
            Output::Sleep {
                until: Some(_),
                why: Some(timer),
            } if !self.has(*timer) => at.report(Code::DeadlineOrphan, timer.owner()),
            _ => {}
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }
}
