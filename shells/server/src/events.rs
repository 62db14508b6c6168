//! Fans the events of runs out to all connections.
//!
//! One subscription to the driver serves them all: an event is put into its words once, and
//! each connection numbers it for itself. Owns no run state but the length of the text that
//! was last told, to say `replace` when a text is not a continuation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_driver::{Client, Published, RunEvent};
use tidegate_wire::{
    AgentData, AgentEvent, ChatEvent, ChatMessage, ChatState, Lifecycle, Phase, event_name,
};
use tokio::sync::mpsc;

use crate::keys::agent_of;
use crate::limits::EVENTS_CAPACITY;
use crate::outbox::{Outbox, close};
use crate::project;

/// The connections that events go to.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    listeners: Mutex<Listeners>,
}

#[derive(Debug, Default)]
struct Listeners {
    next: u64,
    outboxes: BTreeMap<u64, Listener>,
}

#[derive(Debug)]
struct Listener {
    outbox: Arc<Outbox>,
    runs: bool,
}

/// A connection's place in the hub. Dropping it ends its events.
#[derive(Debug)]
pub(crate) struct Listening {
    hub: Arc<Hub>,
    id: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.hub.lock().outboxes.remove(&self.id);
    }
}

impl Hub {
    /// Lets a connection hear of everything from now on; of runs only if `runs`.
    pub fn listen(self: &Arc<Self>, outbox: &Arc<Outbox>, runs: bool) -> Listening {
        let mut listeners = self.lock();
        let id = listeners.next;
        listeners.next += 1;
        listeners.outboxes.insert(
            id,
            Listener {
                outbox: Arc::clone(outbox),
                runs,
            },
        );
        Listening {
            hub: Arc::clone(self),
            id,
        }
    }

    /// Tells all connections.
    pub fn tell(&self, name: &'static str, payload: &impl serde::Serialize) {
        let payload: Arc<str> = project::to_value(payload).to_string().into();
        for listener in self.lock().outboxes.values() {
            listener.outbox.event(name, &payload, false);
        }
    }

    /// Closes all connections.
    pub fn close(&self, code: u16, reason: &str) {
        for listener in self.lock().outboxes.values() {
            listener.outbox.close(code, reason);
        }
    }

    fn tell_run(&self, words: &[(&'static str, Arc<str>)], droppable: bool) {
        for listener in self
            .lock()
            .outboxes
            .values()
            .filter(|listener| listener.runs)
        {
            for (name, payload) in words {
                listener.outbox.event(name, payload, droppable);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        // The map is whole after every statement, so a panic elsewhere left nothing half done.
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries the driver's events to the connections, until the driver ends.
    pub async fn carry(&self, client: Client, mut events: mpsc::Receiver<Arc<Published>>) {
        let mut told = Told::default();
        loop {
            while let Some(event) = events.recv().await {
                let droppable = matches!(event.event, RunEvent::Text { .. });
                self.tell_run(&told.words(&event), droppable);
            }
            if client.status().await.is_err() {
                return;
            }
            // We fell behind by more than text. Whoever listens must begin anew.
            tracing::warn!(
                "events of runs were lost; connections are closed so that they look again"
            );
            self.close(close::INTERNAL, "events were lost, connect again");
            events = client.subscribe(EVENTS_CAPACITY);
            told = Told::default();
        }
    }
}

/// How much of each live run's text was told. Bounded by the live runs: an end removes it.
#[derive(Debug, Default)]
struct Told(BTreeMap<Arc<str>, usize>);

impl Told {
    /// An event in the words of the wire.
    fn words(&mut self, published: &Published) -> Vec<(&'static str, Arc<str>)> {
        let (data, chat) = match &published.event {
            RunEvent::Start { attempt, at } => (
                AgentData::Lifecycle(Lifecycle {
                    attempt: Some(attempt.0),
                    started_at: Some(at.0),
                    ..Lifecycle::step(Phase::Start)
                }),
                None,
            ),
            RunEvent::Text { delta, text } => self.text(published, delta, text),
            RunEvent::Finishing { outcome } => (
                AgentData::Lifecycle(project::lifecycle_finishing(*outcome)),
                None,
            ),
            RunEvent::End(finished) => {
                self.0.remove(&published.run_key);
                (
                    AgentData::Lifecycle(project::lifecycle_end(finished)),
                    Some(project::chat_end(finished)),
                )
            }
        };
        let agent_id = agent_of(&published.session_key);
        let mut words = Vec::with_capacity(2);
        words.push((
            event_name::AGENT,
            written(&AgentEvent {
                run_id: published.run_key.to_string(),
                session_key: published.session_key.to_string(),
                agent_id: agent_id.to_owned(),
                data,
                seq: published.seq,
                ts: published.at.0,
            }),
        ));
        words.extend(chat.map(|state| {
            let chat = ChatEvent {
                run_id: published.run_key.to_string(),
                session_key: published.session_key.to_string(),
                agent_id: agent_id.to_owned(),
                seq: published.seq,
                state,
            };
            (event_name::CHAT, written(&chat))
        }));
        words
    }

    fn text(
        &mut self,
        published: &Published,
        delta: &str,
        text: &str,
    ) -> (AgentData, Option<ChatState>) {
        let told = self
            .0
            .insert(Arc::clone(&published.run_key), text.len())
            .unwrap_or(0);
        let replace = (told + delta.len() != text.len()).then_some(true);
        let message = Some(ChatMessage::assistant(text, published.at.0));
        let delta_text = if replace.is_some() { text } else { delta }.to_owned();
        let delta = if replace.is_some() { "" } else { delta }.to_owned();
        (
            AgentData::Assistant {
                text: text.to_owned(),
                delta,
                replace,
            },
            Some(ChatState::Delta {
                delta_text,
                message,
                replace,
            }),
        )
    }
}

fn written(payload: &impl serde::Serialize) -> Arc<str> {
    serde_json::to_string(payload)
        .expect("wire types have string keys and finite numbers only")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tidegate_core::{Attempt, Wall};

    fn event(seq: u64, event: RunEvent) -> Published {
        Published {
            run_key: "r".into(),
            session_key: "agent:main:main".into(),
            seq,
            at: Wall(seq),
            event,
        }
    }

    fn text(seq: u64, delta: &str, text: &str) -> Published {
        event(
            seq,
            RunEvent::Text {
                delta: delta.to_owned(),
                text: text.to_owned(),
            },
        )
    }

    fn payloads(told: &mut Told, published: &Published) -> Vec<Value> {
        told.words(published)
            .iter()
            .map(|(_, text)| serde_json::from_str(text).unwrap())
            .collect()
    }

    /// surface 3.2: a delta is appended, or says that it replaces
    #[test]
    fn a_text_after_a_loss_replaces_what_was_told() {
        let mut told = Told::default();
        let [agent, chat] = &payloads(&mut told, &text(1, "a", "a"))[..] else {
            panic!("two events")
        };
        assert_eq!(
            (&agent["data"]["delta"], &chat["deltaText"]),
            (&"a".into(), &"a".into())
        );
        assert_eq!(
            (agent["data"].get("replace"), chat.get("replace")),
            (None, None)
        );
        let [agent, chat] = &payloads(&mut told, &text(3, "c", "abc"))[..] else {
            panic!("two events")
        };
        assert_eq!(
            (&agent["data"]["delta"], &agent["data"]["replace"]),
            (&"".into(), &true.into())
        );
        assert_eq!(
            (&chat["deltaText"], &chat["replace"]),
            (&"abc".into(), &true.into())
        );
        let [_, chat] = &payloads(&mut told, &text(4, "d", "abcd"))[..] else {
            panic!("two events")
        };
        assert_eq!(
            (&chat["deltaText"], chat.get("replace")),
            (&"d".into(), None)
        );
        payloads(
            &mut told,
            &event(
                5,
                RunEvent::Start {
                    attempt: Attempt(2),
                    at: Wall(5),
                },
            ),
        );
        let [_, chat] = &payloads(&mut told, &text(6, "new", "new"))[..] else {
            panic!("two events")
        };
        assert_eq!(
            (&chat["deltaText"], &chat["replace"]),
            (&"new".into(), &true.into())
        );
    }
}
