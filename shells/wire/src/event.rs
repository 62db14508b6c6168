//! Events: what happens to runs and to the connection.

use serde::{Deserialize, Serialize};

use crate::agent::{TerminalReply, TimeoutPhase};

/// Names of the events.
pub mod event_name {
    /// The first word of the server on a socket. No `seq`.
    pub const CHALLENGE: &str = "connect.challenge";
    /// The gateway lives.
    pub const TICK: &str = "tick";
    /// The gateway goes down.
    pub const SHUTDOWN: &str = "shutdown";
    /// Something happened in a run.
    pub const AGENT: &str = "agent";
    /// The same as a conversation sees it. One terminal a run.
    pub const CHAT: &str = "chat";

    /// All events, as advertised in hello.
    pub const ALL: [&str; 5] = [CHALLENGE, TICK, SHUTDOWN, AGENT, CHAT];
}

/// Payload of `connect.challenge`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// Fresh for each socket.
    pub nonce: String,
    /// Wall time in milliseconds.
    pub ts: u64,
    /// What the server can do with `connect`.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// Payload of `tick`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Wall time in milliseconds.
    pub ts: u64,
}

/// Payload of `shutdown`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// Why, for people.
    pub reason: String,
    /// When it is expected back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub restart_expected_ms: Option<u64>,
}

/// Payload of `agent`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// The run.
    pub run_id: String,
    /// Its session.
    pub session_key: String,
    /// Its agent.
    pub agent_id: String,
    /// What happened.
    #[serde(flatten)]
    pub data: AgentData,
    /// Its number within the run: from 1, without gaps.
    pub seq: u64,
    /// Wall time in milliseconds.
    pub ts: u64,
}

/// What happened in a run, by stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stream", content = "data", rename_all = "lowercase")]
pub enum AgentData {
    /// A step of its life.
    Lifecycle(Lifecycle),
    /// The assistant's text grew.
    Assistant {
        /// To this.
        text: String,
        /// By this.
        delta: String,
        /// The text is no continuation of what was told: `delta` is empty, take the whole.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        replace: Option<bool>,
    },
}

/// A step of a run's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// An attempt began. After a restart of the gateway once more.
    Start,
    /// The outcome is decided, its rows are being written.
    Finishing,
    /// The run ended: completed, stopped or timed out.
    End,
    /// The run ended: failed.
    Error,
}

/// Data of stream `lifecycle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// The step.
    pub phase: Phase,
    /// The attempt that began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempt: Option<u32>,
    /// `cancelled` or `timeout`, on an end that is neither an answer nor a failure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<String>,
    /// When the first attempt began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<u64>,
    /// When the outcome was decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<u64>,
    /// Whether the run was ended from outside.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub aborted: Option<bool>,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_reason: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// Where a limit hit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_phase: Option<TimeoutPhase>,
    /// Whether the model had been asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider_started: Option<bool>,
    /// `true` on the terminal and nowhere else: the run will not begin again (P03).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub execution_settled: Option<bool>,
    /// What it left to be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub terminal_reply: Option<TerminalReply>,
}

impl Lifecycle {
    /// A step that says nothing more.
    #[must_use]
    pub const fn step(phase: Phase) -> Self {
        Self {
            phase,
            attempt: None,
            status: None,
            started_at: None,
            ended_at: None,
            aborted: None,
            stop_reason: None,
            error: None,
            timeout_phase: None,
            provider_started: None,
            execution_settled: None,
            terminal_reply: None,
        }
    }
}

/// Payload of `chat`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatEvent {
    /// The run.
    pub run_id: String,
    /// Its session.
    pub session_key: String,
    /// Its agent.
    pub agent_id: String,
    /// The number of the run's event that this one shows.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub state: ChatState,
}

/// What a conversation sees of a run. `final`, `aborted` and `error` are terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum ChatState {
    /// The text grew.
    Delta {
        /// By this.
        delta_text: String,
        /// To this.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<ChatMessage>,
        /// The text is no continuation of what was told: `delta_text` is the whole of it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        replace: Option<bool>,
    },
    /// The answer.
    Final {
        /// The whole of it; absent if it is empty.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<ChatMessage>,
        /// Why the model stopped.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        stop_reason: Option<String>,
    },
    /// Somebody stopped the run.
    Aborted {
        /// What had arrived.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<ChatMessage>,
        /// Who.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        stop_reason: Option<String>,
    },
    /// The run failed or timed out.
    Error {
        /// What had arrived.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<ChatMessage>,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error_message: Option<String>,
        /// `timeout`, `rate_limit` or `context_length`; absent for everything else.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        error_kind: Option<String>,
    },
}

/// A message of the assistant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Always `assistant`.
    pub role: String,
    /// Its parts.
    pub content: Vec<ContentPart>,
    /// Wall time in milliseconds.
    pub timestamp: u64,
}

impl ChatMessage {
    /// A message of one text.
    #[must_use]
    pub fn assistant(text: impl Into<String>, timestamp: u64) -> Self {
        Self {
            role: "assistant".to_owned(),
            content: vec![ContentPart {
                kind: "text".to_owned(),
                text: text.into(),
            }],
            timestamp,
        }
    }

    /// The text of all parts.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().map(|part| part.text.as_str()).collect()
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentPart {
    /// `text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text; empty for other kinds.
    #[serde(default)]
    pub text: String,
}
