//! What was said in a conversation: `chat.history`, `sessions.get`, and the shape of a stored
//! message.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::KEY_BYTES;
use crate::event::ContentPart;
use crate::fields::{BadParams, Fields, Kind};
use crate::tool::ToolDetails;

/// The parameters of `chat.history` that are known, checked and not acted upon.
pub const CHAT_HISTORY_IGNORED: &[(&str, Kind)] = &[
    ("messageId", Kind::NotYet),
    ("sessionId", Kind::Short(KEY_BYTES)),
    ("pendingBefore", Kind::NotYet),
    ("inputRunIds", Kind::NotYet),
];

/// The parameters of `chat.history` that we act upon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatHistoryParams {
    /// The session.
    pub session_key: String,
    /// The agent, where the session key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// At most this many messages, the newest ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Leave out this many of the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Only what came since; an earlier answer's `deltaCursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// At most this many bytes of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// At most this many characters of each message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u64>,
}

impl ChatHistoryParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let history = Self {
            session_key: fields.need("sessionKey", Kind::Short(KEY_BYTES))?,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            limit: fields.whole("limit", 1)?,
            offset: fields.whole("offset", 0)?,
            cursor: fields.text("cursor", Kind::Name)?,
            max_bytes: fields.whole("maxBytes", 1_024)?,
            max_chars: fields.whole("maxChars", 1)?,
        };
        fields.ignore(CHAT_HISTORY_IGNORED)?;
        fields.end()?;
        Ok(history)
    }
}

/// The parameters of `sessions.get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsGetParams {
    /// The session.
    pub key: String,
    /// The agent, where the key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// At most this many messages, the newest ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

impl SessionsGetParams {
    /// Reads the parameters. `sessionKey` is another name of `key`.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let other = fields.text("sessionKey", Kind::Short(KEY_BYTES))?;
        let key = match (fields.text("key", Kind::Short(KEY_BYTES))?, other) {
            (Some(key), _) | (None, Some(key)) => key,
            (None, None) => return Err(fields.missing("key")),
        };
        let get = Self {
            key,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            limit: fields.whole("limit", 1)?,
        };
        fields.end()?;
        Ok(get)
    }
}

/// The result of `sessions.get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMessages {
    /// The messages, oldest first.
    pub messages: Vec<HistoryMessage>,
}

/// What an answer of `chat.history` is, if a cursor was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HistoryKind {
    /// What came since the cursor.
    Delta,
    /// The cursor does not lead here any more: forget what you have and ask without one.
    Reset,
}

/// The result of `chat.history` where the cursor does not lead here any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryReset {
    /// [`HistoryKind::Reset`].
    pub kind: HistoryKind,
}

/// The result of `chat.history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatHistory {
    /// [`HistoryKind::Delta`] if a cursor was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<HistoryKind>,
    /// The session.
    pub session_key: String,
    /// This conversation of it; another one after a reset.
    pub session_id: String,
    /// The messages, oldest first.
    pub messages: Vec<HistoryMessage>,
    /// What was accepted and is in no message yet.
    pub pending_inputs: PendingInputs,
    /// The run at work, as far as it was told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_flight_run: Option<InFlightRun>,
    /// Names this place; for `chat.history` and `sessions.messages.subscribe`.
    pub delta_cursor: String,
    /// How many of the newest were left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    /// The offset of the page before this one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_offset: Option<u64>,
    /// Whether there is a page before this one.
    #[serde(default)]
    pub has_more: bool,
    /// How many messages there are.
    pub total_messages: u64,
    /// How the session stands.
    pub session_info: SessionInfo,
}

/// Messages that were accepted and are in no transcript yet, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingInputs {
    /// The messages.
    pub items: Vec<PendingInput>,
    /// How many they are.
    pub total: u64,
}

/// A message that was accepted and is in no transcript yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingInput {
    /// Its run.
    pub run_id: String,
    /// Its text.
    pub text: String,
    /// When it was accepted.
    pub accepted_at: u64,
}

/// A run at work, as far as it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InFlightRun {
    /// The run.
    pub run_id: String,
    /// Its text so far.
    pub text: String,
    /// When its attempt began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<u64>,
}

/// How a session stands, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its key.
    pub key: String,
    /// Its agent.
    pub agent_id: String,
    /// This conversation of it.
    pub session_id: String,
    /// Whether a run has not ended.
    pub has_active_run: bool,
    /// The runs that have not ended, in order.
    pub active_run_ids: Vec<String>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageContent {
    /// A user's text.
    Text(String),
    /// The parts of the assistant's, or of a tool's result.
    Parts(Vec<ContentPart>),
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryMessage {
    /// `user`, `assistant` or `toolResult`.
    pub role: String,
    /// What it says.
    pub content: MessageContent,
    /// When it was written, in milliseconds of wall time.
    pub timestamp: u64,
    /// `<run>:user`, on a user's message.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idempotency_key: Option<String>,
    /// `stop`, on a whole answer; `toolUse`, on one that asks for tool calls.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_reason: Option<String>,
    /// On a tool's result: the id of its call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_call_id: Option<String>,
    /// On a tool's result: the tool.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_name: Option<String>,
    /// On a tool's result: whether the call did anything else than succeed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub is_error: Option<bool>,
    /// On a tool's result: how the call ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<ToolDetails>,
    /// `partial`: what had come when the run was stopped or failed; `interrupted`: what a
    /// crash left; `dropped`: it gave way in a full queue and was never answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mark: Option<String>,
    /// Something of it was cut to `maxChars`.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub truncated: bool,
    /// Which message it is.
    #[serde(rename = "__openclaw")]
    pub row: MessageRow,
}

impl HistoryMessage {
    /// The text.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.content {
            MessageContent::Text(text) => text.clone(),
            MessageContent::Parts(parts) => parts.iter().map(ContentPart::as_text).collect(),
        }
    }
}

/// Which message it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageRow {
    /// Its name; the same at every reading.
    pub id: String,
    /// Its number in the conversation: from 1, without gaps.
    pub seq: u64,
    /// The run that it belongs to.
    pub run_id: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// surface 2.5: a session has two names for its key.
    #[test]
    fn a_session_is_got_under_either_name() {
        let read = |params| SessionsGetParams::read(Some(params)).map(|get| get.key);
        assert_eq!(
            read(json!({ "key": "a", "sessionKey": "b" })),
            Ok("a".into())
        );
        assert_eq!(read(json!({ "sessionKey": "b" })), Ok("b".into()));
        assert!(read(json!({})).is_err());
    }
}
