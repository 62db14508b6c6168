//! Listening to sessions, stopping them and beginning them anew: `sessions.subscribe`,
//! `sessions.messages.subscribe`, `sessions.abort`, `sessions.reset`, and their events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::KEY_BYTES;
use crate::fields::{BadParams, Fields, Kind};
use crate::history::HistoryMessage;
use crate::sessions::{SessionRunStatus, SessionsList, SessionsListParams};

/// The parameters of `sessions.subscribe`: those of `sessions.list`, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsSubscribeParams {
    /// The list that is wanted along, if any.
    pub list: Option<SessionsListParams>,
}

impl SessionsSubscribeParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let list = match params {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) if map.is_empty() => None,
            some => Some(SessionsListParams::read(some)?),
        };
        Ok(Self { list })
    }
}

/// The result of `sessions.subscribe` and `sessions.unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsSubscribed {
    /// Whether the connection listens now.
    pub subscribed: bool,
    /// The sessions, if the request had the parameters of a list.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub list: Option<SessionsList>,
}

/// The parameters of `sessions.messages.subscribe`, and but for the cursor of
/// `sessions.messages.unsubscribe`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessagesSubscribeParams {
    /// The session.
    pub key: String,
    /// The agent, where the key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Where the client was: the last `deltaCursor` that it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The `sessionSeq` of the last event that it saw behind the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_seq: Option<u64>,
    /// The `messageSeq` of the last message that it saw behind the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_seq: Option<u64>,
}

impl MessagesSubscribeParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let subscribe = Self {
            key: fields.need("key", Kind::Short(KEY_BYTES))?,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            cursor: fields.text("cursor", Kind::Name)?,
            session_seq: fields.whole("sessionSeq", 0)?,
            message_seq: fields.whole("messageSeq", 0)?,
        };
        fields.ignore(&[("includeApprovals", Kind::Bool)])?;
        fields.end()?;
        Ok(subscribe)
    }
}

/// The result of `sessions.messages.subscribe`. What comes after it goes on where it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessagesSubscribed {
    /// Always true.
    pub subscribed: bool,
    /// The session's whole key.
    pub key: String,
    /// This conversation of it.
    pub session_id: String,
    /// The events behind the cursor are not remembered: forget what you have of runs at work;
    /// `events` tell those that are, from their beginning.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub reset: bool,
    /// The messages behind the cursor are too many, or the conversation is another one:
    /// `messages` are the newest ones and stand in place of what you have. Comes with `reset`.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub replace_messages: bool,
    /// The messages behind the cursor, oldest first; none without a cursor.
    #[serde(default)]
    pub messages: Vec<HistoryMessage>,
    /// The events of runs behind the cursor, in order. Text that grew in several steps comes
    /// in one, under the number of the last.
    #[serde(default)]
    pub events: Vec<MissedEvent>,
    /// The `sessionSeq` of the last event that was told, here or before.
    pub session_seq: u64,
    /// Names this place.
    pub delta_cursor: String,
}

/// An event that a client missed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissedEvent {
    /// Its name.
    pub event: String,
    /// What it would have been told.
    pub payload: Value,
}

/// The result of `sessions.messages.unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesUnsubscribed {
    /// Always false.
    pub subscribed: bool,
    /// The session's whole key.
    pub key: String,
}

/// The parameters of `sessions.abort`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsAbortParams {
    /// The session.
    pub key: String,
    /// The agent, where the key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The run; the one at work if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Stop those that wait, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub clear_queued: bool,
}

impl SessionsAbortParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let abort = Self {
            key: fields.need("key", Kind::Short(KEY_BYTES))?,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            run_id: fields.text("runId", Kind::Short(KEY_BYTES))?,
            clear_queued: fields.flag("clearQueued")?,
        };
        fields.end()?;
        Ok(abort)
    }
}

/// Whether `sessions.abort` stopped anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbortStatus {
    /// It did.
    Aborted,
    /// There was nothing to stop, which is no failure.
    NoActiveRun,
}

/// The result of `sessions.abort`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsAborted {
    /// Always true.
    pub ok: bool,
    /// The first run that was stopped.
    #[serde(default)]
    pub aborted_run_id: Option<String>,
    /// All of them.
    #[serde(default)]
    pub run_ids: Vec<String>,
    /// Whether anything was stopped.
    pub status: AbortStatus,
}

/// The parameters of `sessions.reset`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsResetParams {
    /// The session.
    pub key: String,
    /// The agent, where the key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// `new` or `reset`; told in `sessions.changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Only if this is its conversation now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_session_id: Option<String>,
}

impl SessionsResetParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let reset = Self {
            key: fields.need("key", Kind::Short(KEY_BYTES))?,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            reason: fields.text("reason", Kind::OneOf(&["new", "reset"]))?,
            expected_session_id: fields.text("expectedSessionId", Kind::Name)?,
        };
        fields.end()?;
        Ok(reset)
    }
}

/// The result of `sessions.reset`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsResetDone {
    /// Always true.
    pub ok: bool,
    /// The session's whole key.
    pub key: String,
    /// The new conversation.
    pub entry: SessionEntry,
    /// The runs that the reset ended.
    #[serde(default)]
    pub run_ids: Vec<String>,
}

/// A conversation of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// Its name.
    pub session_id: String,
    /// When it last changed, in milliseconds of wall time.
    pub updated_at: u64,
}

/// Payload of `sessions.changed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsChanged {
    /// The session.
    pub session_key: String,
    /// Its agent.
    pub agent_id: String,
    /// `send`, `agent.run.started`, `agent.input.settled`, `new`, `reset` or `patch`.
    pub reason: String,
    /// Wall time in milliseconds.
    pub ts: u64,
    /// The run that it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub run_id: Option<String>,
    /// The conversation, after `new` and `reset`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<String>,
    /// How the session stands.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<SessionRunStatus>,
    /// When the run began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<u64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<u64>,
    /// How long it ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime_ms: Option<u64>,
    /// Whether a run that was told of has not ended.
    pub has_active_run: bool,
    /// Those runs; `null` if there is none.
    #[serde(default)]
    pub active_run_ids: Option<Vec<String>>,
}

/// Payload of `session.message`: a message that was appended to a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionMessage {
    /// The session.
    pub session_key: String,
    /// Its agent.
    pub agent_id: String,
    /// The conversation.
    pub session_id: String,
    /// The message.
    pub message: HistoryMessage,
    /// Its name.
    pub message_id: String,
    /// Its number in the conversation.
    pub message_seq: u64,
}
