//! Saying something in a conversation: `chat.send`, and where a message stands that was just
//! accepted. Its further way is told by events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::KEY_BYTES;
use crate::fields::{BadParams, Fields, Kind};

/// The modes that `queueMode` may name.
pub const QUEUE_MODES: &[&str] = &["steer", "followup", "collect", "interrupt"];

/// The parameters of `chat.send` that are known, checked and not acted upon. With those of
/// [`ChatSendParams`] they are the 28 names of release 2026.9.6. Content that would be lost
/// and guards that would not hold are refused unless they are empty.
pub const CHAT_SEND_IGNORED: &[(&str, Kind)] = &[
    ("sessionId", Kind::Short(KEY_BYTES)),
    ("thinking", Kind::Text),
    ("fastMode", Kind::BoolOr("auto")),
    ("fastAutoOnSeconds", Kind::Whole(1)),
    ("deliver", Kind::Bool),
    ("attachments", Kind::NotYet),
    ("replyToId", Kind::Text),
    ("expectedLeafEntryId", Kind::NotYet),
    ("expectedPermissionMode", Kind::NotYet),
    ("expectedToolOverrides", Kind::NotYet),
    ("expectedSessionRoutingContract", Kind::NotYet),
    ("mentions", Kind::List),
    ("workContext", Kind::Any),
    ("intent", Kind::Any),
    ("toolBindings", Kind::NotYet),
    ("systemInputProvenance", Kind::Any),
    ("systemProvenanceReceipt", Kind::NotYet),
];

/// Where a message came from and where its answer goes. Messages of different routes are
/// never answered in one turn (I31).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_channel: Option<String>,
    /// The addressee in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_to: Option<String>,
    /// The account in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_account_id: Option<String>,
    /// The thread in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_thread_id: Option<String>,
}

/// The parameters of `chat.send` that we act upon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatSendParams {
    /// The session.
    pub session_key: String,
    /// The text.
    pub message: String,
    /// The client's name for this message, and from then on the run's (P06).
    pub idempotency_key: String,
    /// The agent, where the session key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// How this message queues; one of [`QUEUE_MODES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_mode: Option<String>,
    /// The run's own limit in **milliseconds**; 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The message is text for the agent even if it reads as a command.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppress_command_interpretation: bool,
    /// Its route.
    #[serde(flatten)]
    pub route: Route,
}

impl ChatSendParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let send = Self {
            session_key: fields.need("sessionKey", Kind::Short(KEY_BYTES))?,
            message: fields.need("message", Kind::Name)?,
            idempotency_key: fields.need("idempotencyKey", Kind::Short(KEY_BYTES))?,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            queue_mode: fields.text("queueMode", Kind::OneOf(QUEUE_MODES))?,
            timeout_ms: fields.whole("timeoutMs", 0)?,
            suppress_command_interpretation: fields.flag("suppressCommandInterpretation")?,
            route: Route {
                originating_channel: fields.text("originatingChannel", Kind::Short(KEY_BYTES))?,
                originating_to: fields.text("originatingTo", Kind::Short(KEY_BYTES))?,
                originating_account_id: fields
                    .text("originatingAccountId", Kind::Short(KEY_BYTES))?,
                originating_thread_id: fields
                    .text("originatingThreadId", Kind::Short(KEY_BYTES))?,
            },
        };
        fields.ignore(CHAT_SEND_IGNORED)?;
        fields.end()?;
        Ok(send)
    }
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendStatus {
    /// It is durable; the rest comes as events.
    Started,
    /// It was accepted before and has not ended.
    InFlight,
    /// It was answered before, or was a command and is carried out.
    Ok,
}

/// Where a message stands that was just accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputState {
    /// Its run begins at once.
    Started,
    /// It waits behind others.
    Queued,
    /// It goes to the run at work, at its next boundary.
    Steered,
    /// It stops the run at work and takes its place.
    Interrupting,
}

/// The one response to `chat.send`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatSendAck {
    /// The run.
    pub run_id: String,
    /// How far the message is.
    pub status: SendStatus,
    /// Where it stands, if it was just accepted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_state: Option<InputState>,
    /// Behind how many messages it waits, the one at work among them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queued_ahead: Option<u32>,
    /// The run that it goes to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steered_into: Option<String>,
    /// It stops the run at work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interrupted_active_run: Option<bool>,
}

impl ChatSendAck {
    /// An ack that says no more than how far the message is.
    #[must_use]
    pub fn of(run_id: impl Into<String>, status: SendStatus) -> Self {
        Self {
            run_id: run_id.into(),
            status,
            input_state: None,
            queued_ahead: None,
            steered_into: None,
            interrupted_active_run: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Law 10: content that would be lost and guards that would not hold are refused by name.
    #[test]
    fn what_can_not_be_kept_is_refused() {
        let send = |extra: Value| {
            let mut params = json!({ "sessionKey": "s", "message": "m", "idempotencyKey": "k" });
            if let (Some(to), Some(from)) = (params.as_object_mut(), extra.as_object()) {
                to.extend(from.clone());
            }
            ChatSendParams::read(Some(params))
        };
        assert!(send(json!({ "attachments": [], "expectedLeafEntryId": null })).is_ok());
        for extra in [
            json!({ "attachments": [{ "content": "x" }] }),
            json!({ "expectedLeafEntryId": "row" }),
            json!({ "expectedToolOverrides": { "a": 1 } }),
        ] {
            let refused = send(extra).expect_err("refused").to_string();
            assert!(refused.contains("is not supported yet"), "{refused}");
        }
    }
}
