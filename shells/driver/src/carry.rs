//! Carrying out the core's orders, and telling people about them in outside names.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{
    Accept, Answer, ContentOwner, Epoch, Event, Fence, Input, ModelEnd, ModelFact, Output, Place,
    RequestId, RunId, SessionId, Subject, Terminal, Ticket, WaitResult, Wall,
};
use tokio::sync::mpsc;

use crate::content::{Content, Names, prefix};
use crate::driver::Driver;
use crate::reply::{Finished, Placed, Published, Reply, RunEvent};
use crate::store::StoreOp;
use crate::writer::Origin;

/// Who listens: callers by request, and subscribers of all events.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    callers: BTreeMap<RequestId, mpsc::UnboundedSender<Reply>>,
    subscribers: Vec<mpsc::Sender<Arc<Published>>>,
}

impl Listeners {
    pub(crate) fn ask(&mut self, id: RequestId, replies: mpsc::UnboundedSender<Reply>) {
        self.callers.insert(id, replies);
    }

    pub(crate) fn leave(&mut self, id: RequestId) {
        self.callers.remove(&id);
    }

    pub(crate) fn subscribe(&mut self, events: mpsc::Sender<Arc<Published>>) {
        self.subscribers.push(events);
    }

    /// Answers a caller; after its last answer it is not listened to any more.
    fn reply(&mut self, id: RequestId, reply: Reply) {
        let more = matches!(reply, Reply::Accepted { .. } | Reply::InFlight { .. });
        let heard = self
            .callers
            .get(&id)
            .is_some_and(|caller| caller.send(reply).is_ok());
        if !(more && heard) {
            self.callers.remove(&id);
        }
    }

    fn nobody_subscribes(&self) -> bool {
        self.subscribers.is_empty()
    }

    /// A full channel loses text events only; anything else closes it.
    fn publish(&mut self, event: &Arc<Published>) {
        let droppable = matches!(event.event, RunEvent::Text { .. });
        self.subscribers
            .retain(|subscriber| match subscriber.try_send(event.clone()) {
                Ok(()) => true,
                Err(mpsc::error::TrySendError::Full(_)) => droppable,
                Err(mpsc::error::TrySendError::Closed(_)) => false,
            });
    }
}

impl Driver {
    /// Carries out one order.
    pub(crate) fn carry_out(&mut self, order: Output, wall: Wall) {
        match order {
            Output::Load { .. }
            | Output::Accept { .. }
            | Output::Claim { .. }
            | Output::Save { .. }
            | Output::Settle { .. }
            | Output::Reset { .. }
            | Output::Configure { .. }
            | Output::Lookup { .. } => self.order_store(order),
            Output::StartModel {
                ticket,
                fence,
                candidate,
            } => {
                self.contents.open(owner(fence), Content::default());
                self.calls.prepare(ticket, fence, candidate);
                let session = fence.session;
                self.job(Origin::Call(ticket), StoreOp::Transcript { session });
            }
            Output::CancelModel { ticket } => {
                if self.calls.cancel(ticket) {
                    let fact = ModelFact::Ended(ModelEnd::Cancelled);
                    self.follow.push(Input::Model { ticket, fact });
                }
            }
            Output::Respond { request, answer } => {
                let reply = self.reply(request, answer);
                self.asked.answered(request);
                self.listeners.reply(request, reply);
            }
            Output::Publish {
                run, seq, event, ..
            } => self.publish(run, seq, event, wall),
            Output::Release { owner } => self.contents.release(owner),
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                if let Some(names) = self.runs.forget(run)
                    && self.asked.len() > 0
                {
                    let session = self.fingerprints.session(&names.session_key);
                    self.asked.forgotten(session, run, &names.run_key);
                }
            }
            Output::Forget { .. } => {}
            Output::Drained => self.drained(),
            Output::Halt(halt) => self.halt(halt),
            Output::Sleep { until, .. } => self.slept(until),
        }
    }

    /// Hands an order on to the store, with the texts and names that the core does not have.
    fn order_store(&mut self, order: Output) {
        let (ticket, op) = match order {
            Output::Load { ticket, session } => (ticket, StoreOp::Load { session }),
            Output::Accept { ticket, accept } => (ticket, self.accept(accept)),
            Output::Claim {
                ticket,
                fence,
                epoch,
                claim,
            } => {
                let op = StoreOp::Claim {
                    fence,
                    epoch,
                    claim,
                };
                (ticket, op)
            }
            Output::Save {
                fence,
                epoch,
                to,
                at,
            } => return self.save(fence, epoch, to, at),
            Output::Settle {
                ticket,
                fence,
                epoch,
                terminal,
            } => {
                let text = self.contents.texts(owner(fence), &terminal);
                let op = StoreOp::Settle {
                    fence,
                    epoch,
                    terminal,
                    text,
                };
                (ticket, op)
            }
            Output::Lookup { ticket, run } => (ticket, StoreOp::Lookup { run }),
            other => match self.session_op(other) {
                Some(order) => order,
                None => return,
            },
        };
        self.job(Origin::Order(ticket), op);
    }

    /// The orders on a session as a whole.
    fn session_op(&self, order: Output) -> Option<(Ticket, StoreOp)> {
        match order {
            Output::Reset {
                ticket,
                session,
                generation,
                epoch,
                at,
            } => {
                let op = StoreOp::Reset {
                    session,
                    session_key: self.session_key(session),
                    generation,
                    epoch,
                    at,
                };
                Some((ticket, op))
            }
            Output::Configure {
                ticket,
                session,
                generation,
                epoch,
                queue,
                at,
            } => {
                let op = StoreOp::Configure {
                    session,
                    session_key: self.session_key(session),
                    generation,
                    epoch,
                    queue,
                    at,
                };
                Some((ticket, op))
            }
            _ => None,
        }
    }

    /// The name of a session that is asked about; its id in hexadecimal where nobody told it.
    fn session_key(&self, session: SessionId) -> String {
        match self.asked.session_key(session) {
            Some(key) => key.to_string(),
            None => session.to_string(),
        }
    }

    fn accept(&mut self, accept: Accept) -> StoreOp {
        let content = self.contents.get(ContentOwner::Request(accept.request));
        let names = content.and_then(|content| content.names.clone());
        let names = names.unwrap_or_else(|| self.runs.of(accept.run));
        let message = content
            .map(|content| content.message.clone())
            .unwrap_or_default();
        let stored = names.to_store();
        self.runs.insert(accept.run, names);
        StoreOp::Accept {
            accept,
            names: stored,
            message,
        }
    }

    fn save(&mut self, fence: Fence, epoch: Epoch, to: u64, at: Wall) {
        let owner = owner(fence);
        let Some(content) = self.contents.get_mut(owner) else {
            return;
        };
        let from = content.saved;
        let text = prefix(&content.reply, usize::try_from(to).unwrap_or(usize::MAX));
        let text = text.get(from..).unwrap_or_default().to_owned();
        let end = from + text.len();
        content.saved = end;
        let op = StoreOp::Save {
            fence,
            epoch,
            from: from as u64,
            text,
            at,
        };
        self.job(Origin::Save { owner, from, end }, op);
    }

    /// The names of a run: as the core holds it, or as the store told them with the request.
    fn names(&self, run: RunId, content: ContentOwner) -> Names {
        match self.runs.get(run) {
            Some(names) => names.clone(),
            None => self
                .contents
                .get(content)
                .and_then(|content| content.names.clone())
                .unwrap_or_else(|| self.runs.of(run)),
        }
    }

    /// The name of a run that an answer to a request mentions.
    fn named(&self, request: RequestId, run: RunId) -> Arc<str> {
        match self.runs.get(run) {
            Some(names) => names.run_key.clone(),
            None => self
                .asked
                .run_key(request, run)
                .unwrap_or_else(|| self.runs.of(run).run_key),
        }
    }

    /// An end with its names and texts.
    fn finished(&self, names: Names, terminal: Terminal, content: ContentOwner) -> Finished {
        let text = self.contents.texts(content, &terminal);
        let turn = terminal.turn.map(|turn| match self.runs.get(turn) {
            Some(names) => names.run_key.clone(),
            None => self
                .contents
                .get(content)
                .and_then(|content| content.turn.clone())
                .unwrap_or_else(|| self.runs.of(turn).run_key),
        });
        Finished {
            run_key: names.run_key,
            session_key: names.session_key,
            terminal,
            turn,
            reply: text.reply.map(Into::into),
            detail: text.detail.map(Into::into),
        }
    }

    fn placed(&self, place: Place) -> Placed {
        match place {
            Place::Next => Placed::Next,
            Place::Queued { ahead } => Placed::Queued { ahead },
            Place::Steering { into } => Placed::Steering {
                into: self.runs.of(into).run_key,
            },
            Place::Interrupting { run } => Placed::Interrupting {
                run: self.runs.of(run).run_key,
            },
        }
    }

    fn reply(&self, request: RequestId, answer: Answer) -> Reply {
        let own = ContentOwner::Request(request);
        match answer {
            Answer::Accepted { run, at, place, .. } => {
                let Names {
                    run_key,
                    session_key,
                } = self.names(run, own);
                Reply::Accepted {
                    run_key,
                    session_key,
                    at,
                    place: self.placed(place),
                }
            }
            Answer::InFlight { run, .. } => {
                let Names {
                    run_key,
                    session_key,
                } = self.names(run, own);
                Reply::InFlight {
                    run_key,
                    session_key,
                }
            }
            Answer::Final {
                terminal,
                content,
                replay,
            } => Reply::Final {
                finished: self.finished(self.names(terminal.run, content), terminal, content),
                replay,
            },
            Answer::Wait { result, .. } => self.waited(result),
            Answer::Aborted { runs } => Reply::Aborted {
                run_keys: runs.iter().map(|&run| self.named(request, run)).collect(),
            },
            Answer::Reset { generation, runs } => Reply::Reset {
                generation: generation.0,
                run_keys: runs.iter().map(|&run| self.named(request, run)).collect(),
            },
            Answer::Queue {
                settings,
                own,
                waiting,
            } => Reply::Queue {
                settings,
                own,
                waiting,
            },
            Answer::Rejected(why) => Reply::Rejected(why),
        }
    }

    fn waited(&self, result: WaitResult) -> Reply {
        match result {
            WaitResult::Ended { terminal, content } => {
                let names = self.names(terminal.run, content);
                Reply::WaitEnded(self.finished(names, terminal, content))
            }
            WaitResult::Pending => Reply::WaitPending,
            WaitResult::TimedOut { known, decided } => Reply::WaitTimedOut { known, decided },
            WaitResult::Draining => Reply::WaitDraining,
        }
    }

    fn publish(&mut self, run: RunId, seq: u64, event: Event, at: Wall) {
        if self.listeners.nobody_subscribes() {
            return;
        }
        let names = self.runs.of(run);
        let event = match event {
            Event::Start { attempt, at } => RunEvent::Start { attempt, at },
            Event::Waited {
                ms,
                active_ahead,
                queued_ahead,
            } => RunEvent::Waited {
                ms,
                active_ahead,
                queued_ahead,
            },
            Event::Bound { turn } => RunEvent::Bound {
                turn: self.runs.of(turn).run_key,
            },
            Event::Seen => RunEvent::Seen,
            Event::Retrying {
                call,
                calls_max,
                delay_ms,
                because,
            } => RunEvent::Retrying {
                call,
                calls_max,
                delay_ms,
                because,
            },
            Event::Fallback { candidate, because } => RunEvent::Fallback {
                from: self.calls.name(candidate.saturating_sub(1)),
                to: self.calls.name(candidate),
                because,
            },
            Event::Finishing { outcome } => RunEvent::Finishing { outcome },
            Event::Text { handle, from, to } => {
                let reply = self
                    .contents
                    .get(handle.owner)
                    .map_or("", |content| content.reply.as_str());
                let text = prefix(reply, usize::try_from(to).unwrap_or(usize::MAX));
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                RunEvent::Text {
                    delta: text.get(from..).unwrap_or_default().to_owned(),
                    text: text.to_owned(),
                }
            }
            Event::End { terminal, content } => {
                RunEvent::End(self.finished(names.clone(), terminal, content))
            }
        };
        let event = Published {
            run_key: names.run_key,
            session_key: names.session_key,
            seq,
            at,
            event,
        };
        self.listeners.publish(&Arc::new(event));
    }
}

const fn owner(fence: Fence) -> ContentOwner {
    ContentOwner::Attempt(fence.run, fence.attempt)
}
