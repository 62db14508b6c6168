//! An event of a run in the words of the wire: once as `agent`, and once more as `chat` where
//! a conversation sees it. Pure; how an end is called stands in `project`.

use std::sync::Arc;

use serde::Serialize;
use tidegate_driver::{Placed, Published, RunEvent};
use tidegate_wire::{
    AgentData, AgentEvent, ChatEvent, ChatMessage, ChatState, InputStep, Lifecycle, Phase,
    event_name,
};

use crate::keys::agent_of;
use crate::project;
use crate::sentences;
use crate::tools;

/// Of what an event tells: the session, the run, the run's own number of the event.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The session's key.
    pub session: Arc<str>,
    /// The run's id.
    pub run: Arc<str>,
    /// The event's number within the run; 0 if the gateway tells it of itself.
    pub seq: u64,
    /// Wall time in milliseconds.
    pub at: u64,
}

impl About {
    /// Of what a published event tells.
    pub fn published(event: &Published) -> Self {
        Self {
            session: Arc::clone(&event.session_key),
            run: Arc::clone(&event.run_key),
            seq: event.seq,
            at: event.at.0,
        }
    }

    /// Payload of `agent`.
    pub fn agent(&self, data: AgentData, session_seq: u64) -> AgentEvent {
        AgentEvent {
            run_id: self.run.to_string(),
            session_key: self.session.to_string(),
            agent_id: agent_of(&self.session).to_owned(),
            data,
            seq: self.seq,
            ts: self.at,
            session_seq: Some(session_seq),
        }
    }

    /// Payload of `chat`.
    pub fn chat(&self, state: ChatState, session_seq: u64) -> ChatEvent {
        ChatEvent {
            run_id: self.run.to_string(),
            session_key: self.session.to_string(),
            agent_id: agent_of(&self.session).to_owned(),
            seq: self.seq,
            session_seq: Some(session_seq),
            state,
        }
    }
}

/// What an event says in both streams. Text is told by [`grown`], the steps of a call's output
/// by `tools`, which also says what a call's end says of its approval.
pub(crate) fn said(event: &RunEvent) -> (AgentData, Option<ChatState>) {
    let step = match event {
        RunEvent::ToolStart { .. } | RunEvent::ToolEnd { .. } => {
            let step = tools::step(event).expect("a call's start and end have words");
            return (AgentData::Tool(step), None);
        }
        RunEvent::ToolOutput { id, name, delta } => {
            return (AgentData::Tool(tools::update(id, name, delta)), None);
        }
        RunEvent::ToolAsked(_) | RunEvent::ToolDecided { .. } => {
            let step = tools::approval(event).expect("an approval has words");
            return (step, None);
        }
        RunEvent::Start { attempt, at } => {
            let start = Lifecycle {
                attempt: Some(attempt.0),
                started_at: Some(at.0),
                ..Lifecycle::step(Phase::Start)
            };
            return (AgentData::Lifecycle(start), None);
        }
        RunEvent::Text { text, .. } => return grown(text, None, 0),
        RunEvent::Finishing { outcome } => {
            return (
                AgentData::Lifecycle(project::lifecycle_finishing(*outcome)),
                None,
            );
        }
        RunEvent::End(finished) => {
            return (
                AgentData::Lifecycle(project::lifecycle_end(finished)),
                Some(project::chat_end(finished)),
            );
        }
        RunEvent::Waited {
            ms,
            active_ahead,
            queued_ahead,
        } => InputStep::Waited {
            ms: *ms,
            active_ahead: *active_ahead,
            queued_ahead: *queued_ahead,
        },
        RunEvent::Bound { turn } => InputStep::Bound {
            turn: turn.to_string(),
        },
        RunEvent::Seen => InputStep::Seen,
        RunEvent::Retrying {
            call,
            calls_max,
            delay_ms,
            because,
        } => InputStep::Retrying {
            attempt: *call,
            max_attempts: *calls_max,
            delay_ms: *delay_ms,
            reason: sentences::outcome_word(*because).to_owned(),
            message: sentences::of_call(*because),
        },
        RunEvent::Fallback { from, to, because } => InputStep::Fallback {
            from: from.to_string(),
            to: to.to_string(),
            reason: sentences::outcome_word(*because).to_owned(),
            message: sentences::of_call(*because),
        },
    };
    both(step)
}

/// Where a message stands that was just accepted; `None` if it begins at once.
pub(crate) fn placed(place: &Placed) -> Option<(AgentData, Option<ChatState>)> {
    let step = match place {
        Placed::Next => return None,
        Placed::Queued { ahead } => InputStep::Queued { ahead: *ahead },
        Placed::Steering { into } => InputStep::Steered {
            into: into.to_string(),
        },
        Placed::Interrupting { run } => InputStep::Interrupting {
            run: run.to_string(),
        },
    };
    Some(both(step))
}

fn both(step: InputStep) -> (AgentData, Option<ChatState>) {
    (
        AgentData::RunStatus(step.clone()),
        Some(ChatState::Status(step)),
    )
}

/// A reply that is now `text`, of which the first `known` bytes were told. `None`: it is no
/// continuation of what was told.
pub(crate) fn grown(text: &str, known: Option<usize>, at: u64) -> (AgentData, Option<ChatState>) {
    let delta = known.and_then(|known| text.get(known..));
    let replace = delta.is_none().then_some(true);
    (
        AgentData::Assistant {
            text: text.to_owned(),
            delta: delta.unwrap_or_default().to_owned(),
            replace,
        },
        Some(ChatState::Delta {
            delta_text: delta.unwrap_or(text).to_owned(),
            message: Some(ChatMessage::assistant(text, at)),
            replace,
        }),
    )
}

/// The name under which data of a run is told: what tools do is for those who asked for that,
/// see [`Listener::name_for`](crate::events::Listener::name_for).
pub(crate) const fn name_of(data: &AgentData) -> &'static str {
    match data {
        AgentData::Tool(_) => event_name::SESSION_TOOL,
        _ => event_name::AGENT,
    }
}

/// The name and the text of an event's payloads; `first` is the number of the first.
pub(crate) fn payloads(
    about: &About,
    (agent, chat): (AgentData, Option<ChatState>),
    first: u64,
) -> Vec<(&'static str, Arc<str>)> {
    let mut payloads = Vec::with_capacity(2);
    let name = name_of(&agent);
    payloads.push((name, written(&about.agent(agent, first))));
    payloads.extend(chat.map(|chat| {
        let chat = about.chat(chat, first + 1);
        (event_name::CHAT, written(&chat))
    }));
    payloads
}

/// A payload as the text of JSON.
pub(crate) fn written(payload: &impl Serialize) -> Arc<str> {
    serde_json::to_string(payload)
        .expect("wire types have string keys and finite numbers only")
        .into()
}
