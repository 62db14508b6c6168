//! What a newcomer does to a busy session: the queue modes and their options (R44 to R47, spec 3).
//!
//! Owns the words and how they are resolved. What a mode does stands with the subject: `admit`
//! (a newcomer arrives), `line` (who waits, who is dropped, who goes next).

use serde::{Deserialize, Serialize};

use crate::ids::Fingerprint;

/// What a message does when its session is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum QueueMode {
    /// It goes to the model at the next boundary of the run at work (R44).
    Steer,
    /// It gets a run of its own afterwards (R45).
    Followup,
    /// It is answered afterwards, in one turn with the others that wait (R46).
    Collect,
    /// It stops the run at work and takes its place (R47).
    Interrupt,
}

/// What gives way when a session's queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DropPolicy {
    /// The message that waited longest.
    Old,
    /// The newcomer: it is refused.
    New,
    /// The message that waited longest; the model is told its first words.
    Summarize,
}

/// How a session queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueSettings {
    /// What a message does that names no mode of its own.
    pub mode: QueueMode,
    /// How long a queue must have been quiet before it goes on, in milliseconds.
    pub debounce_ms: u64,
    /// The most chat messages that may wait. At least 1.
    pub cap: u32,
    /// What gives way beyond.
    pub drop: DropPolicy,
}

impl Default for QueueSettings {
    /// The built-in defaults of spec 3.
    fn default() -> Self {
        Self {
            mode: QueueMode::Steer,
            debounce_ms: 500,
            cap: 20,
            drop: DropPolicy::Summarize,
        }
    }
}

/// What a session sets for itself; the rest stays as configured. Durable.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct QueueOverride {
    /// The mode.
    pub mode: Option<QueueMode>,
    /// The quiet time, in milliseconds.
    pub debounce_ms: Option<u64>,
    /// The cap.
    pub cap: Option<u32>,
    /// What gives way.
    pub drop: Option<DropPolicy>,
}

impl QueueOverride {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These settings over the configured ones. A cap below 1 counts as 1.
    #[must_use]
    pub fn over(&self, configured: QueueSettings) -> QueueSettings {
        QueueSettings {
            mode: self.mode.unwrap_or(configured.mode),
            debounce_ms: self.debounce_ms.unwrap_or(configured.debounce_ms),
            cap: self.cap.unwrap_or(configured.cap).max(1),
            drop: self.drop.unwrap_or(configured.drop),
        }
    }

    /// This override with what a change sets.
    #[must_use]
    pub fn with(&self, change: Self) -> Self {
        Self {
            mode: change.mode.or(self.mode),
            debounce_ms: change.debounce_ms.or(self.debounce_ms),
            cap: change.cap.or(self.cap),
            drop: change.drop.or(self.drop),
        }
    }
}

/// What somebody wants to do with a session's queue settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum QueueChange {
    /// Only see them.
    Show,
    /// Set some of them for this session; the others stay.
    Set(QueueOverride),
    /// Go back to what is configured.
    Clear,
}

/// Who speaks in a chat (spec 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Speaker {
    /// A user who addresses the agent.
    User,
    /// Something that happens in the room; nobody waits for an answer to it.
    Room,
    /// The heartbeat: it runs only where nothing else does.
    Heartbeat,
}

/// How a message takes part in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Turn {
    /// A run of its own, strictly in the order of arrival; no queue mode applies (observed 5.1).
    Agent,
    /// A message of a conversation.
    Chat {
        /// The mode of this message; `None` takes the session's. Once accepted, the resolved one.
        queue: Option<QueueMode>,
        /// Where it came from and where its answer goes. Messages of different routes are
        /// never answered in one turn (I31).
        route: Fingerprint,
        /// Who speaks.
        speaker: Speaker,
    },
}

/// Where an accepted message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// It begins at once.
    Next,
    /// It waits behind others of its session.
    Queued {
        /// How many were ahead when it came, the one at work among them.
        ahead: u32,
    },
    /// It waits for the next boundary of this run; if there is none, it follows it.
    Steering {
        /// The run at work.
        into: crate::ids::RunId,
    },
    /// It stops this run and takes its place.
    Interrupting {
        /// The run at work.
        run: crate::ids::RunId,
    },
}
