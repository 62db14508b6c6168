//! Events: what happens to runs and to the connection.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::agent::{TerminalReply, TimeoutPhase};
use crate::tool::{ApprovalStep, ToolStep};

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
    /// A message was appended to a conversation. Only for those who subscribed.
    pub const SESSION_MESSAGE: &str = "session.message";
    /// What the tools of a run do. For those who subscribed and did not ask for tool events;
    /// who did gets them as `agent`.
    pub const SESSION_TOOL: &str = "session.tool";
    /// A session stands differently. Only for those who subscribed.
    pub const SESSIONS_CHANGED: &str = "sessions.changed";
    /// A tool call waits for a person. Only for those who may decide.
    pub const APPROVAL_REQUESTED: &str = "exec.approval.requested";
    /// It waits no more.
    pub const APPROVAL_RESOLVED: &str = "exec.approval.resolved";

    /// All events, as advertised in hello.
    pub const ALL: [&str; 10] = [
        CHALLENGE,
        TICK,
        SHUTDOWN,
        AGENT,
        CHAT,
        SESSION_MESSAGE,
        SESSION_TOOL,
        SESSIONS_CHANGED,
        APPROVAL_REQUESTED,
        APPROVAL_RESOLVED,
    ];
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
    /// Its number within the run: from 1, without gaps. 0: told before the run's first event.
    pub seq: u64,
    /// Wall time in milliseconds.
    pub ts: u64,
    /// Its number within the session, over `agent` and `chat` events: without gaps while
    /// somebody listens or works, and never the same twice in one life of the gateway.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_seq: Option<u64>,
}

/// What happened in a run, by stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stream", content = "data", rename_all = "lowercase")]
pub enum AgentData {
    /// A step of its life.
    Lifecycle(Lifecycle),
    /// The way of its message before the answer.
    #[serde(rename = "run_status")]
    RunStatus(InputStep),
    /// The assistant's text grew.
    Assistant {
        /// To this.
        text: String,
        /// By this.
        delta: String,
        /// The text is no continuation of what was told: `delta` is empty, take the whole.
        /// With an empty `text`, another attempt begins.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        replace: Option<bool>,
    },
    /// A tool call began, goes on or ended. Only for those who asked for tool events.
    Tool(ToolStep),
    /// A tool call waits for a person, or waits no more.
    Approval(ApprovalStep),
}

/// A step on a message's way to its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "phase",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum InputStep {
    /// It waits behind others.
    Queued {
        /// How many, the one at work among them.
        ahead: u32,
    },
    /// It waits for the next boundary of a run; if there is none, it follows that run.
    Steered {
        /// The run.
        into: String,
    },
    /// It stops a run and takes its place.
    Interrupting {
        /// The run.
        run: String,
    },
    /// It waited for its lanes longer than is normal, and goes on now (B-005).
    Waited {
        /// How long, in milliseconds.
        ms: u64,
        /// How many were at work ahead of it when it came.
        active_ahead: u32,
        /// How many waited ahead of it when it came.
        queued_ahead: u32,
    },
    /// It goes to the model in the turn of another run, whose answer answers it too (P26).
    Bound {
        /// That run.
        turn: String,
    },
    /// The model has answered a request that contains it (B-070).
    Seen,
    /// A model call failed, and the run asks again after a wait: the text begins anew (B-058).
    Retrying {
        /// Which call comes next, from 2.
        attempt: u16,
        /// How many there are at most.
        max_attempts: u16,
        /// How long the wait is, in milliseconds.
        delay_ms: u64,
        /// What went wrong, as a word: `timeout`, or a class of failures such as `rate_limit`.
        reason: String,
        /// The same in a sentence.
        message: String,
    },
    /// A provider could not answer, and the next of the chain is asked: the text begins anew
    /// (P15).
    Fallback {
        /// The model that could not, as the configuration calls it: `provider/model`.
        from: String,
        /// The model that is asked now.
        to: String,
        /// What went wrong, as a word: `timeout`, or a class of failures such as `auth`.
        reason: String,
        /// The same in a sentence.
        message: String,
    },
    /// A step that only other gateways tell. Never sent by ours.
    #[serde(other)]
    Other,
}

/// A step of a run's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// An attempt began: the first, or one more after a failed call or a restart.
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
    /// The run in whose turn the message was answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answered_in: Option<String>,
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
            answered_in: None,
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
    /// The number of the run's event that this one shows. 0: told before the run's first
    /// event, or without a run.
    pub seq: u64,
    /// Its number within the session; see [`AgentEvent::session_seq`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_seq: Option<u64>,
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
    /// The way of the message before the answer.
    Status(InputStep),
    /// The text grew.
    Delta {
        /// By this.
        delta_text: String,
        /// To this.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<ChatMessage>,
        /// The text is no continuation of what was told: `delta_text` is the whole of it, and
        /// empty where another attempt begins.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        replace: Option<bool>,
    },
    /// The answer.
    Final {
        /// The whole of it; absent if it is empty or stands with another run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<ChatMessage>,
        /// Why the model stopped.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        stop_reason: Option<String>,
        /// The run in whose turn the message was answered: its `final` has the answer.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        answered_in: Option<String>,
    },
    /// Somebody stopped the run, or it gave way.
    Aborted {
        /// What had arrived.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<ChatMessage>,
        /// Who or why: `rpc`, `interrupt`, `reset`, `superseded` or `dropped`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        stop_reason: Option<String>,
        /// `dropped`: the message gave way in a full queue. `given_back`: it was stopped before
        /// its turn came. Either way no model saw it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        input_state: Option<String>,
        /// The run whose turn had taken the message along.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        answered_in: Option<String>,
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
        /// The run whose turn had taken the message along.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        answered_in: Option<String>,
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
            content: vec![ContentPart::text(text)],
            timestamp,
        }
    }

    /// The text of all parts.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().map(ContentPart::as_text).collect()
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        #[serde(default)]
        text: String,
    },
    /// A tool call that the assistant asks for.
    ToolCall {
        /// Its id: unique in its message, and named by its result.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments: an object; as text where the model's were none, or were cut.
        #[serde(default)]
        arguments: Value,
    },
    /// A part that only other gateways have. Never sent by ours.
    #[serde(other)]
    Other,
}

impl ContentPart {
    /// A part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Its text; empty for other parts.
    #[must_use]
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text { text } => text,
            Self::ToolCall { .. } | Self::Other => "",
        }
    }
}
