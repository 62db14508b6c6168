//! What comes back: the store's results and what model and tool calls say, told to the core as
//! facts.
//!
//! Texts and names are laid before the fact that speaks of them is handed in.

use tidegate_core::{
    AcceptReport, CallKind, ContentOwner, Input, LoadReport, LookupReport, ModelEnd, ModelFact,
    StoreError, Subject, Ticket, ToolFact,
};

use crate::calls::{CallEvent, Said};
use crate::content::Names;
use crate::driver::{Driver, DriverError};
use crate::models::ModelEvent;
use crate::store::StoreDone;
use crate::tasks::{TaskEvent, ToolSaid};
use crate::tools::CallText;
use crate::writer::{Done, Origin};

impl Driver {
    /// A store operation is done.
    pub(crate) fn report(&mut self, Done { origin, done }: Done) {
        match (origin, done) {
            (Origin::Order(ticket), done) => {
                if let Some(input) = self.store_report(ticket, done) {
                    self.hand_in(input);
                }
            }
            (Origin::Call(ticket), StoreDone::Transcript(rows)) => match rows {
                Ok(transcript) => {
                    let tools = self.tasks.offered();
                    self.calls.start(ticket, transcript, tools);
                }
                Err(error) if self.calls.fence(ticket).is_some() => {
                    self.transcript_unreadable(ticket, error);
                }
                Err(_) => {}
            },
            (Origin::Save { owner, from, end }, StoreDone::Saved { kept }) => {
                // A piece that was not kept is sent again with the next save.
                if let Some(content) = self.contents.get_mut(owner)
                    && kept != Some(end as u64)
                {
                    content.saved = kept.and_then(|k| usize::try_from(k).ok()).unwrap_or(from);
                }
            }
            (Origin::Boot, StoreDone::OpenSessions(sessions)) => match sessions {
                Ok(sessions) => {
                    for session in sessions {
                        let request = self.own_request();
                        self.hand_in(Input::Resume { request, session });
                    }
                }
                Err(error) => self.failed = Some(DriverError::OpenWorkUnknown(error)),
            },
            (_, _) => {
                tracing::error!("the store answered something else than it was asked")
            }
        }
    }

    /// The core's report of a done operation. Texts and names are laid first.
    fn store_report(&mut self, ticket: Ticket, done: StoreDone) -> Option<Input> {
        let request = match ticket.subject {
            Subject::Request(request) => Some(ContentOwner::Request(request)),
            _ => None,
        };
        Some(match done {
            StoreDone::Loaded { report, names } => {
                if let LoadReport::Loaded { open, .. } = &report {
                    for (run, names) in open.iter().zip(names) {
                        self.runs.insert(run.run, names.into());
                    }
                }
                Input::Loaded { ticket, report }
            }
            StoreDone::Accepted { report, text } => {
                if let (AcceptReport::Duplicate { terminal: Some(_) }, Some(owner)) =
                    (&report, request)
                {
                    self.contents.lay(owner, None, text);
                }
                Input::Accepted { ticket, report }
            }
            StoreDone::Claimed(report) => Input::Claimed { ticket, report },
            StoreDone::Settled(report) => Input::Settled { ticket, report },
            StoreDone::Launched(report) => Input::Launched { ticket, report },
            StoreDone::WasReset(report) => Input::WasReset { ticket, report },
            StoreDone::Configured(report) => Input::Configured { ticket, report },
            StoreDone::LookedUp {
                report,
                names,
                text,
            } => {
                let owner = match (&report, ticket.subject) {
                    (LookupReport::Ended(terminal), Subject::Run(run)) => {
                        Some(ContentOwner::Attempt(run, terminal.attempt))
                    }
                    _ => request,
                };
                if let (LookupReport::Ended(_), Some(owner)) = (&report, owner) {
                    self.contents.lay(owner, names.map(Names::from), text);
                }
                Input::LookedUp { ticket, report }
            }
            StoreDone::Saved { .. }
            | StoreDone::Transcript(_)
            | StoreDone::History(_)
            | StoreDone::OpenSessions(_)
            | StoreDone::Sessions(_) => {
                tracing::error!(?ticket, "the store answered something else");
                return None;
            }
        })
    }

    fn transcript_unreadable(&mut self, ticket: Ticket, error: StoreError) {
        tracing::error!(?error, "a transcript could not be read");
        let owner = self.owner(ticket);
        let detail = owner
            .and_then(|owner| self.contents.get_mut(owner))
            .map(|content| {
                content.detail =
                    Some("The conversation could not be read from the store.".to_owned());
            });
        self.calls.ended(ticket);
        let error = tidegate_core::ProviderError {
            status: None,
            marker: tidegate_core::Marker::None,
            retry_after: tidegate_core::RetryAfter::Unsaid,
            detail: detail.is_some(),
        };
        let fact = ModelFact::Ended(ModelEnd::Failed(error));
        self.hand_in(Input::Model { ticket, fact });
    }

    fn owner(&self, ticket: Ticket) -> Option<ContentOwner> {
        self.calls
            .fence(ticket)
            .map(|fence| ContentOwner::Attempt(fence.run, fence.attempt))
    }

    /// A model call said something. Of a call that was cancelled, nothing is heard.
    pub(crate) fn call_said(&mut self, CallEvent { ticket, said }: CallEvent) {
        let Some(owner) = self.owner(ticket) else {
            return;
        };
        let fact = match said {
            Said::Event(ModelEvent::Alive) => ModelFact::Alive,
            Said::Event(ModelEvent::Structure) => ModelFact::Structure,
            Said::Event(ModelEvent::Reasoning) => ModelFact::Reasoning,
            Said::Event(ModelEvent::Calling) => ModelFact::Calling,
            Said::Event(ModelEvent::Call(text)) => {
                let Some(fact) = self.asked_for(owner, text) else {
                    return;
                };
                fact
            }
            Said::Event(ModelEvent::Finished) => ModelFact::Finished,
            Said::Event(ModelEvent::Text(text)) => {
                let Some(content) = self.contents.get_mut(owner) else {
                    return;
                };
                content.reply.push_str(&text);
                ModelFact::Text {
                    to: content.reply.len() as u64,
                }
            }
            Said::Event(ModelEvent::Detail(detail)) => {
                if let Some(content) = self.contents.get_mut(owner) {
                    content.detail = Some(detail);
                }
                return;
            }
            Said::End(end) => {
                self.calls.ended(ticket);
                ModelFact::Ended(end)
            }
        };
        self.hand_in(Input::Model { ticket, fact });
    }

    /// The answer asks for a call: keeps it, and tells what it is.
    fn asked_for(&mut self, owner: ContentOwner, text: CallText) -> Option<ModelFact> {
        let ContentOwner::Attempt(_, attempt) = owner else {
            return None;
        };
        let Some(call) = self.contents.get_mut(owner)?.add_call(attempt, text) else {
            tracing::warn!("an answer asks for more calls than can be numbered");
            return None;
        };
        let facts = self.tasks.recognise(&call.text);
        if facts.kind == CallKind::BadArguments
            && let Some(complaint) = self.tasks.complaint(&call.text)
        {
            call.output = complaint;
        }
        Some(ModelFact::Call(facts))
    }

    /// A tool call said something. Of a call that was dropped, nothing is heard.
    pub(crate) fn task_said(&mut self, TaskEvent { ticket, said }: TaskEvent) {
        let Some(call) = self.tasks.call(ticket) else {
            return;
        };
        let fact = match said {
            ToolSaid::Output(text) => {
                let Some(held) = self.contents.call_mut(call) else {
                    return;
                };
                held.output.push_str(&text);
                ToolFact::Output {
                    to: held.output.len() as u64,
                }
            }
            ToolSaid::End(end) => {
                self.tasks.ended(ticket);
                ToolFact::Ended(end)
            }
        };
        self.hand_in(Input::Tool { ticket, fact });
    }
}
