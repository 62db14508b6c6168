//! Events of runs, told to whoever listens, in outside names and with their texts.
//!
//! What the core publishes is told once and in its order. The one thing kept of it is what
//! waits for a person, which is kept whether or not anybody listens.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{CallId, Event, RequestId, RunId, Wall};
use tokio::sync::mpsc;

use crate::content::{HeldCall, Names, prefix};
use crate::driver::Driver;
use crate::reply::{PendingApproval, Published, Reply, RunEvent};

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
    pub(crate) fn reply(&mut self, id: RequestId, reply: Reply) {
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

    /// A full channel loses events of text and output only; anything else closes it.
    fn publish(&mut self, event: &Arc<Published>) {
        let droppable = matches!(
            event.event,
            RunEvent::Text { .. } | RunEvent::ToolOutput { .. }
        );
        self.subscribers
            .retain(|subscriber| match subscriber.try_send(event.clone()) {
                Ok(()) => true,
                Err(mpsc::error::TrySendError::Full(_)) => droppable,
                Err(mpsc::error::TrySendError::Closed(_)) => false,
            });
    }
}

impl Driver {
    /// Tells an event of a run.
    pub(crate) fn publish(&mut self, run: RunId, seq: u64, event: Event, at: Wall) {
        let question = self.question(&event, at);
        if self.listeners.nobody_subscribes() {
            return;
        }
        let names = self.runs.of(run);
        let event = self.run_event(event, &names, question);
        let Some(event) = event else {
            tracing::error!(%run, seq, "a decision was told that nobody was asked for");
            return;
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

    /// The question to a person that an event is about. One that the event ends is pending no
    /// longer; and a call that has ended for the core does not run on.
    fn question(&mut self, event: &Event, at: Wall) -> Option<PendingApproval> {
        match *event {
            Event::ToolAsked { call, until } => {
                let question = self.ask_about(call, at, until);
                self.approvals.asked(call, question.clone());
                Some(question)
            }
            Event::ToolDecided { call, .. } => self.approvals.over(call),
            Event::ToolEnd { call, .. } => {
                self.tasks.give_up(call);
                self.approvals.over(call)
            }
            _ => None,
        }
    }

    /// What the name of a call's approval is made of.
    pub(crate) fn call_fingerprint(&self, call: CallId) -> [u8; 16] {
        let (attempt, place) = (call.attempt.0.to_le_bytes(), call.call.to_le_bytes());
        let fields: [&[u8]; 4] = [b"approval", &call.run.0, &attempt, &place];
        self.fingerprints.body(&fields).0
    }

    fn ask_about(&mut self, call: CallId, since: Wall, until: Wall) -> PendingApproval {
        let approval = self.approvals.name(call, self.call_fingerprint(call));
        let Names {
            run_key,
            session_key,
        } = self.runs.of(call.run);
        let text = self.contents.call(call).map(|held| held.text.clone());
        let text = text.unwrap_or_default();
        PendingApproval {
            approval,
            run_key,
            session_key,
            id: text.id.into(),
            name: text.name.into(),
            arguments: text.arguments.into(),
            since,
            until,
        }
    }

    /// An event of a tool call, with its texts. `None` if it tells of a decision that nobody
    /// was asked for.
    fn tool_event(&self, event: Event, question: Option<PendingApproval>) -> Option<RunEvent> {
        let none = HeldCall::default();
        let held = |call| self.contents.call(call).unwrap_or(&none);
        Some(match event {
            Event::ToolAsked { .. } => RunEvent::ToolAsked(question?),
            Event::ToolDecided { decision, .. } => RunEvent::ToolDecided {
                asked: question?,
                decision,
            },
            Event::ToolOutput { call, from, to } => {
                let HeldCall { text, output } = held(call);
                let output = prefix(output, usize::try_from(to).unwrap_or(usize::MAX));
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                RunEvent::ToolOutput {
                    id: text.id.as_str().into(),
                    name: text.name.as_str().into(),
                    delta: output.get(from..).unwrap_or_default().to_owned(),
                }
            }
            Event::ToolEnd { call, end } => {
                let HeldCall { text, output } = held(call);
                RunEvent::ToolEnd {
                    id: text.id.as_str().into(),
                    name: text.name.as_str().into(),
                    end,
                    output: output.as_str().into(),
                    unanswered: question,
                }
            }
            Event::ToolStart { call } => {
                let text = &held(call).text;
                RunEvent::ToolStart {
                    id: text.id.as_str().into(),
                    name: text.name.as_str().into(),
                    arguments: text.arguments.as_str().into(),
                }
            }
            _ => return None,
        })
    }

    /// An event in outside names and with its texts; of a tool call see [`Self::tool_event`].
    fn run_event(
        &self,
        event: Event,
        names: &Names,
        question: Option<PendingApproval>,
    ) -> Option<RunEvent> {
        Some(match event {
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
            Event::ToolStart { .. }
            | Event::ToolAsked { .. }
            | Event::ToolDecided { .. }
            | Event::ToolOutput { .. }
            | Event::ToolEnd { .. } => return self.tool_event(event, question),
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
        })
    }
}
