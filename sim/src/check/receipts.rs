//! P26, I30, R47, B-070: what is told of a message on its way is so.
//!
//! Bound is told when the claim that binds it is durable, and names the run with which the
//! message ends. Seen is told when the model answers a request that contains it, neither
//! sooner nor never. A run ends as interrupted only if a message was told to interrupt it, and
//! its call is cancelled at once.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Answer, Event, Input, LoadReport, ModelFact, Outcome, Output, Place, RunId, StopReason,
    Subject, Ticket, ToolFact, Turn,
};

use super::{Check, Moment};
use crate::violation::Code;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    chats: BTreeSet<RunId>,
    held: BTreeSet<RunId>,
    /// Loads without a report: what a report that is told twice says is old.
    loads: BTreeSet<Ticket>,
    /// The run to whose turn each message is bound, in the order of the claim.
    bound: BTreeMap<RunId, RunId>,
    /// Calls that go on and have not said anything.
    silent: BTreeMap<Ticket, RunId>,
    /// Calls that go on.
    calls: BTreeMap<RunId, Ticket>,
    /// Tools that run and were not told to stop.
    tools: BTreeMap<Ticket, RunId>,
    /// Who must be told in this step that the model has seen the message.
    seen: BTreeSet<RunId>,
    /// Who was told so in this life: another call is no news.
    known: BTreeSet<RunId>,
    /// Runs that a message was told to interrupt.
    interrupted: BTreeSet<RunId>,
    /// The interruption that was told in this step, with the message that does it.
    told: Option<(RunId, RunId)>,
    /// Whether the interrupted run's call must be cancelled in this step.
    to_stop: bool,
}

const fn is_chat(turn: Turn) -> bool {
    matches!(turn, Turn::Chat { .. })
}

impl Receipts {
    fn says(&mut self, ticket: Ticket, fact: &ModelFact) {
        match fact {
            ModelFact::Alive | ModelFact::Text { to: 0 } => {}
            ModelFact::Ended(_) => {
                self.silent.remove(&ticket);
                self.calls.retain(|_, call| *call != ticket);
            }
            _ => {
                let Some(run) = self.silent.remove(&ticket) else {
                    return;
                };
                let along = self.bound.iter().filter(|(_, turn)| **turn == run);
                self.seen.extend(along.map(|(&message, _)| message));
                if self.chats.contains(&run) {
                    self.seen.insert(run);
                }
                self.seen.retain(|run| !self.known.contains(run));
            }
        }
    }

    fn event(&mut self, at: &mut Moment<'_>, run: RunId, event: &Event) {
        match event {
            Event::Bound { turn } => {
                let stored = at.store.run(run).and_then(|row| row.along);
                if stored != Some(*turn) {
                    at.run(Code::BoundUntrue, run);
                }
                self.bound.insert(run, *turn);
            }
            Event::Seen if !self.seen.remove(&run) => at.run(Code::SeenUntrue, run),
            Event::Seen => {
                self.known.insert(run);
            }
            Event::Finishing {
                outcome:
                    Outcome::Cancelled {
                        by: StopReason::Interrupt,
                        ..
                    },
            } if !self.interrupted.contains(&run) => at.run(Code::InterruptUntrue, run),
            // One that was withdrawn meanwhile interrupts nobody.
            Event::Finishing { .. } => {
                if let Some((other, _)) = self.told.take_if(|(_, by)| *by == run) {
                    self.interrupted.remove(&other);
                    self.to_stop = false;
                }
            }
            Event::End { terminal, .. } if self.bound.get(&run) != terminal.turn.as_ref() => {
                at.run(Code::BoundUntrue, run);
            }
            _ => {}
        }
    }
}

impl Check for Receipts {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        match input {
            Input::Loaded {
                ticket,
                report: LoadReport::Loaded { open, .. },
            } if self.loads.remove(ticket) => {
                for run in open {
                    self.held.insert(run.run);
                    if is_chat(run.turn) {
                        self.chats.insert(run.run);
                    }
                    self.bound.extend(run.along.map(|turn| (run.run, turn)));
                }
            }
            Input::Model { ticket, fact } => self.says(*ticket, fact),
            Input::Tool {
                ticket,
                fact: ToolFact::Ended(_),
            } => {
                self.tools.remove(ticket);
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, .. } => {
                self.loads.insert(*ticket);
            }
            Output::Accept { accept, .. } => {
                self.held.insert(accept.run);
                if is_chat(accept.turn) {
                    self.chats.insert(accept.run);
                }
            }
            Output::StartModel { ticket, fence, .. } => {
                if self.interrupted.contains(&fence.run) {
                    at.run(Code::AfterStop, fence.run);
                }
                self.silent.insert(*ticket, fence.run);
                self.calls.insert(fence.run, *ticket);
            }
            Output::StartTool { ticket, call } => {
                if self.interrupted.contains(&call.run) {
                    at.run(Code::AfterStop, call.run);
                }
                self.tools.insert(*ticket, call.run);
            }
            Output::CancelModel { ticket } | Output::CancelTool { ticket } => {
                self.tools.remove(ticket);
                self.silent.remove(ticket);
                self.calls.retain(|_, call| call != ticket);
                if self
                    .told
                    .is_some_and(|(run, _)| ticket.subject == Subject::Run(run))
                {
                    self.to_stop = false;
                }
            }
            Output::Respond {
                answer:
                    Answer::Accepted {
                        run: by,
                        place: Place::Interrupting { run },
                        ..
                    },
                ..
            } => {
                let tools = self.tools.values().any(|of| of == run);
                self.to_stop = tools || self.calls.contains_key(run);
                // One that is gone by now is nobody's to interrupt.
                let held = self.held.contains(run);
                self.told = (held && self.interrupted.insert(*run)).then_some((*run, *by));
            }
            Output::Publish { run, event, .. } => self.event(at, *run, event),
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                self.chats.remove(run);
                self.held.remove(run);
                self.bound.remove(run);
                self.known.remove(run);
                self.interrupted.remove(run);
                self.tools.retain(|_, of| of != run);
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        let told = self.told.take();
        if let (true, Some((run, _))) = (std::mem::take(&mut self.to_stop), told) {
            at.run(Code::InterruptUntrue, run);
        }
        if let Some(run) = self.seen.pop_first() {
            self.seen.clear();
            at.run(Code::SeenUntrue, run);
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }
}
