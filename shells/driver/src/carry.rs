//! Carrying out the core's orders, and telling people about them in outside names.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{
    Answer, ContentOwner, Event, Fence, Input, ModelEnd, ModelFact, Output, RequestId, RunId,
    Subject, WaitResult, Wall,
};
use tokio::sync::mpsc;

use crate::client::{Published, Reply, RunEvent};
use crate::content::{Content, Names, finished, prefix};
use crate::driver::Driver;
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
            Output::Load { ticket, session } => {
                self.job(Origin::Order(ticket), StoreOp::Load { session })
            }
            Output::Accept { ticket, accept } => {
                let content = self.contents.get(ContentOwner::Request(accept.request));
                let names = content.and_then(|content| content.names.clone());
                let names = names.unwrap_or_else(|| self.runs.of(accept.run));
                let message = content
                    .map(|content| content.message.clone())
                    .unwrap_or_default();
                let stored = names.to_store();
                self.runs.insert(accept.run, names);
                self.job(
                    Origin::Order(ticket),
                    StoreOp::Accept {
                        accept,
                        names: stored,
                        message,
                    },
                );
            }
            Output::Claim {
                ticket,
                fence,
                epoch,
                claim,
            } => {
                self.job(
                    Origin::Order(ticket),
                    StoreOp::Claim {
                        fence,
                        epoch,
                        claim,
                    },
                );
            }
            Output::Save {
                fence,
                epoch,
                to,
                at,
            } => {
                let owner = owner(fence);
                let Some(content) = self.contents.get_mut(owner) else {
                    return;
                };
                let from = content.saved;
                let text = prefix(&content.reply, usize::try_from(to).unwrap_or(usize::MAX));
                let text = text.get(from..).unwrap_or_default().to_owned();
                let end = from + text.len();
                content.saved = end;
                let from_bytes = from as u64;
                self.job(
                    Origin::Save { owner, from, end },
                    StoreOp::Save {
                        fence,
                        epoch,
                        from: from_bytes,
                        text,
                        at,
                    },
                );
            }
            Output::Settle {
                ticket,
                fence,
                epoch,
                terminal,
            } => {
                let text = self.contents.texts(owner(fence), &terminal);
                self.job(
                    Origin::Order(ticket),
                    StoreOp::Settle {
                        fence,
                        epoch,
                        terminal,
                        text,
                    },
                );
            }
            Output::Lookup { ticket, run } => {
                self.job(Origin::Order(ticket), StoreOp::Lookup { run })
            }
            Output::StartModel { ticket, fence } => {
                self.contents.open(owner(fence), Content::default());
                self.calls.prepare(ticket, fence);
                self.job(
                    Origin::Call(ticket),
                    StoreOp::Transcript {
                        session: fence.session,
                    },
                );
            }
            Output::CancelModel { ticket } => {
                if self.calls.cancel(ticket) {
                    let fact = ModelFact::Ended(ModelEnd::Cancelled);
                    self.follow.push(Input::Model { ticket, fact });
                }
            }
            Output::Respond { request, answer } => {
                let reply = self.reply(request, answer);
                self.listeners.reply(request, reply);
            }
            Output::Publish {
                run, seq, event, ..
            } => self.publish(run, seq, event, wall),
            Output::Release { owner } => self.contents.release(owner),
            Output::Forget {
                subject: Subject::Run(run),
            } => self.runs.forget(run),
            Output::Forget { .. } => {}
            Output::Drained => self.drained(),
            Output::Halt(halt) => self.halt(halt),
            Output::Sleep { until, .. } => self.slept(until),
        }
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

    fn reply(&self, request: RequestId, answer: Answer) -> Reply {
        let content = ContentOwner::Request(request);
        match answer {
            Answer::Accepted { run, at, .. } => {
                let Names {
                    run_key,
                    session_key,
                } = self.names(run, content);
                Reply::Accepted {
                    run_key,
                    session_key,
                    at,
                }
            }
            Answer::InFlight { run, .. } => {
                let Names {
                    run_key,
                    session_key,
                } = self.names(run, content);
                Reply::InFlight {
                    run_key,
                    session_key,
                }
            }
            Answer::Final {
                terminal,
                content,
                replay,
            } => {
                let text = self.contents.texts(content, &terminal);
                Reply::Final {
                    finished: finished(self.names(terminal.run, content), terminal, text),
                    replay,
                }
            }
            Answer::Wait {
                result: WaitResult::Ended { terminal, content },
                ..
            } => {
                let text = self.contents.texts(content, &terminal);
                Reply::WaitEnded(finished(self.names(terminal.run, content), terminal, text))
            }
            Answer::Wait {
                result: WaitResult::TimedOut { known },
                ..
            } => Reply::WaitTimedOut { known },
            Answer::Wait {
                result: WaitResult::Draining,
                ..
            } => Reply::WaitDraining,
            Answer::Aborted { runs } => Reply::Aborted {
                run_keys: runs
                    .into_iter()
                    .map(|run| self.runs.of(run).run_key)
                    .collect(),
            },
            Answer::Rejected(why) => Reply::Rejected(why),
        }
    }

    fn publish(&mut self, run: RunId, seq: u64, event: Event, at: Wall) {
        if self.listeners.nobody_subscribes() {
            return;
        }
        let names = self.runs.of(run);
        let event = match event {
            Event::Start { attempt, at } => RunEvent::Start { attempt, at },
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
                let text = self.contents.texts(content, &terminal);
                RunEvent::End(finished(names.clone(), terminal, text))
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
