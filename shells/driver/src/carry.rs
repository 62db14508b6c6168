//! Carrying out the core's orders, and answering requests in outside names.

use std::sync::Arc;

use tidegate_core::{
    Accept, Answer, Attempt, CallId, ContentOwner, Epoch, Fence, Input, LaunchOrder, ModelEnd,
    ModelFact, Output, Place, RequestId, RunId, SessionId, Subject, Terminal, Ticket, ToolEnd,
    ToolFact, WaitResult, Wall,
};

use crate::content::{Content, Names, prefix};
use crate::driver::Driver;
use crate::reply::{Finished, Placed, Reply};
use crate::store::StoreOp;
use crate::tools::{CallText, ToolCall};
use crate::writer::Origin;

impl Driver {
    /// Carries out one order.
    pub(crate) fn carry_out(&mut self, order: Output, wall: Wall) {
        match order {
            Output::Load { .. }
            | Output::Accept { .. }
            | Output::Claim { .. }
            | Output::Launch { .. }
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
            Output::StartTool { ticket, call } => self.start_tool(ticket, call),
            Output::CancelTool { ticket } => self.tasks.cancel(ticket),
            Output::Release { owner } => self.release(owner),
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
                // The results are of the calls that the attempt before asked for.
                let before = Attempt(fence.attempt.0.saturating_sub(1));
                let before = ContentOwner::Attempt(fence.run, before);
                let op = StoreOp::Claim {
                    fence,
                    epoch,
                    outputs: self.contents.outputs(before, &claim.results),
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
                results,
            } => {
                let op = StoreOp::Settle {
                    fence,
                    epoch,
                    text: self.contents.texts(owner(fence), &terminal),
                    terminal,
                    outputs: self.contents.outputs(owner(fence), &results),
                    results,
                };
                (ticket, op)
            }
            Output::Launch {
                ticket,
                fence,
                epoch,
                launch,
            } => {
                let (text, calls) = self.launched_texts(owner(fence), &launch);
                let op = StoreOp::Launch {
                    fence,
                    epoch,
                    launch,
                    text,
                    calls,
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

    /// The text of an answer that asks for calls, and the calls.
    fn launched_texts(&self, owner: ContentOwner, launch: &LaunchOrder) -> (String, Vec<CallText>) {
        let Some(content) = self.contents.get(owner) else {
            return (String::new(), Vec::new());
        };
        let bytes = usize::try_from(launch.bytes).unwrap_or(usize::MAX);
        let calls = content.calls.iter().take(usize::from(launch.calls));
        let calls = calls.map(|held| held.text.clone()).collect();
        (prefix(&content.reply, bytes).to_owned(), calls)
    }

    /// Starts a call with its text. One whose text is gone can't be carried out.
    fn start_tool(&mut self, ticket: Ticket, call: CallId) {
        let Some(held) = self.contents.call(call) else {
            tracing::error!(run = %call.run, call = call.call, "a tool call has no text");
            let fact = ToolFact::Ended(ToolEnd::Failed);
            return self.follow.push(Input::Tool { ticket, fact });
        };
        let names = self.runs.of(call.run);
        let call = ToolCall {
            id: call,
            session: self.fingerprints.session(&names.session_key),
            session_key: names.session_key,
            run_key: names.run_key,
            text: held.text.clone(),
        };
        self.tasks.start(ticket, call);
    }

    /// Frees what an owner holds. Nothing runs on that could still write there.
    fn release(&mut self, owner: ContentOwner) {
        if let ContentOwner::Attempt(run, attempt) = owner {
            self.tasks.release(run, attempt);
            self.approvals.release(run, attempt);
        }
        self.contents.release(owner);
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
    pub(crate) fn finished(
        &self,
        names: Names,
        terminal: Terminal,
        content: ContentOwner,
    ) -> Finished {
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
            Answer::Decided { call, decision } => Reply::Decided {
                approval: self.approvals.name_of(call, self.call_fingerprint(call)),
                decision,
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
}

const fn owner(fence: Fence) -> ContentOwner {
    ContentOwner::Attempt(fence.run, fence.attempt)
}
