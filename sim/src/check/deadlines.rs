//! I59, P04: the deadline that a drain names belongs to somebody who still has it.
//!
//! A run has deadlines while it is held, those of its attempt only while its model call goes
//! on, and its budget also while it waits to ask again; a wait while it is open; a session
//! while it is held. Keeps its own book of these.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Answer, Event, Input, LoadReport, ModelFact, Output, RequestId, RunId, SessionId, Subject,
    Ticket, Timer,
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
    sessions: BTreeSet<SessionId>,
    waits: BTreeSet<RequestId>,
    draining: bool,
}

impl Deadlines {
    fn has(&self, timer: Timer) -> bool {
        match timer {
            Timer::Budget(run) => self.calls.contains_key(&run) || self.waiting.contains(&run),
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
            }
            Output::Publish { run, event, .. } => match event {
                Event::Retrying { .. } => {
                    self.waiting.insert(*run);
                }
                Event::Finishing { .. } => {
                    self.waiting.remove(run);
                }
                _ => {}
            },
            Output::Forget { subject } => match subject {
                Subject::Run(run) => {
                    self.waiting.remove(run);
                    self.runs.remove(run);
                    self.calls.remove(run);
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
