//! Running the agent: `agent`, `agent.wait` and `chat.abort`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::{BadParams, Fields, Kind};

/// The most bytes of a session key, a session id or an idempotency key (spec 2.3: 512).
pub(crate) const KEY_BYTES: usize = 512;

/// The global lanes that `lane` may name; none, or an empty one, is `main`.
pub const LANES: &[&str] = &[
    "",
    "main",
    "subagent",
    "cron",
    "cron-nested",
    "hook-dispatch",
    "nested",
    "background",
];

/// The parameters of `agent` that are known, checked and not acted upon. With the seven of
/// [`AgentParams`] they are the 48 names of release 2026.9.6. Those whose content would be
/// lost, or whose guard would not hold, are refused unless they are empty.
pub const AGENT_IGNORED: &[(&str, Kind)] = &[
    ("provider", Kind::Text),
    ("model", Kind::Text),
    ("to", Kind::Text),
    ("replyTo", Kind::Text),
    ("expectedExistingSessionId", Kind::NotYet),
    ("thinking", Kind::Text),
    ("deliver", Kind::Bool),
    ("attachments", Kind::NotYet),
    ("channel", Kind::Text),
    ("replyChannel", Kind::Text),
    ("accountId", Kind::Text),
    ("replyAccountId", Kind::Text),
    ("threadId", Kind::Text),
    ("groupId", Kind::Text),
    ("groupChannel", Kind::Text),
    ("groupSpace", Kind::Text),
    ("bestEffortDeliver", Kind::Bool),
    ("cwd", Kind::Name),
    ("cleanupBundleMcpOnRunEnd", Kind::Bool),
    ("modelRun", Kind::Bool),
    ("promptMode", Kind::OneOf(&["full", "minimal", "none"])),
    ("extraSystemPrompt", Kind::NotYet),
    (
        "bootstrapContextMode",
        Kind::OneOf(&["full", "lightweight"]),
    ),
    (
        "bootstrapContextRunKind",
        Kind::OneOf(&["default", "heartbeat", "cron"]),
    ),
    ("acpTurnSource", Kind::OneOf(&["manual_spawn"])),
    ("internalRuntimeHandoffId", Kind::Name),
    ("internalExecutionIdentityRetry", Kind::Bool),
    ("internalExecutionIdentityRecoveryAttempt", Kind::Whole(1)),
    ("execApprovalFollowupExpectedSessionId", Kind::Name),
    ("internalEvents", Kind::List),
    ("inputProvenance", Kind::Object),
    ("suppressPromptPersistence", Kind::Bool),
    ("sessionEffects", Kind::OneOf(&["visible", "internal"])),
    (
        "sourceReplyDeliveryMode",
        Kind::OneOf(&["automatic", "message_tool_only"]),
    ),
    ("disableMessageTool", Kind::Bool),
    ("swarmCollector", Kind::Bool),
    ("swarmOutputSchema", Kind::Object),
    ("forceRestartSafeTools", Kind::Bool),
    ("forceCodeModeTools", Kind::Bool),
    ("voiceWakeTrigger", Kind::Text),
    ("label", Kind::Short(512)),
];

/// The longest limit of a run, in seconds: a year. Who means milliseconds is told (B-055).
pub const MOST_TIMEOUT_S: u64 = 31_536_000;

/// The parameters of `agent` that we act upon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentParams {
    /// The text.
    pub message: String,
    /// The client's name for this request, and from then on the run's. The same name is the
    /// same run (P06).
    pub idempotency_key: String,
    /// The agent, where the session key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The session by id, where no key is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The run's own limit in **seconds**, at most [`MOST_TIMEOUT_S`]; 0 is none (R151).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// The global lane in which it runs; one of [`LANES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
}

impl AgentParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let agent = Self {
            message: fields.need("message", Kind::Name)?,
            idempotency_key: fields.need("idempotencyKey", Kind::Short(KEY_BYTES))?,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            session_key: fields.text("sessionKey", Kind::Short(KEY_BYTES))?,
            session_id: fields.text("sessionId", Kind::Short(KEY_BYTES))?,
            timeout: fields.whole_to("timeout", MOST_TIMEOUT_S)?,
            lane: fields.text("lane", Kind::OneOf(LANES))?,
        };
        fields.ignore(AGENT_IGNORED)?;
        fields.end()?;
        Ok(agent)
    }
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckStatus {
    /// The message is durable.
    Accepted,
    /// It was accepted before and has not ended.
    InFlight,
}

/// The first response to `agent`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentAck {
    /// The run.
    pub run_id: String,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_key: Option<String>,
    /// Its agent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent_id: Option<String>,
    /// How far it is.
    pub status: AckStatus,
    /// When it was accepted, in milliseconds of wall time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accepted_at: Option<u64>,
    /// The limit that the request named, as it takes effect: in **milliseconds**, 0 for none
    /// (B-055). Absent where the request named none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_ms: Option<u64>,
}

/// How a run ended, in the words of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// The model finished its answer.
    Ok,
    /// A limit ended the run; in an `agent` response also: it was stopped.
    Timeout,
    /// It failed; in an `agent.wait` result also: it was stopped.
    Error,
    /// In an `agent.wait` result: it is a chat message that waits in its queue (R148).
    Pending,
}

/// Where a limit hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutPhase {
    /// Before the run's turn came.
    Queue,
    /// In its turn, before the model was asked.
    Preflight,
    /// While the model answered.
    Provider,
    /// After the answer.
    PostTurn,
    /// The gateway is going down; the run is not ended.
    GatewayDraining,
}

/// The last response to `agent`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentFinal {
    /// The run.
    pub run_id: String,
    /// How it ended.
    pub status: RunStatus,
    /// `completed`, `aborted`, `timed out`, or the sentence of a failure.
    pub summary: String,
    /// What it said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub result: Option<RunResult>,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_reason: Option<String>,
    /// Where a limit hit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_phase: Option<TimeoutPhase>,
    /// Whether the model had been asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider_started: Option<bool>,
}

/// A response to `agent`, as a client reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AgentPayload {
    /// A final one follows.
    Ack(AgentAck),
    /// The final one.
    Final(AgentFinal),
}

/// What a run said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The parts of the reply, to be shown in order.
    pub payloads: Vec<Payload>,
    /// About the run.
    pub meta: RunMeta,
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// Its text.
    pub text: String,
    /// Its media. We have none yet; clients expect the name.
    #[serde(default)]
    pub media_url: Option<String>,
    /// Whether it is the gateway's word about an error, not the model's.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_error: bool,
}

/// About a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunMeta {
    /// From its start (or acceptance, if it never started) to its end.
    pub duration_ms: u64,
    /// Whether it was ended from outside.
    pub aborted: bool,
}

/// The parameters of `agent.wait`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitParams {
    /// The run.
    pub run_id: String,
    /// How long to wait. 0 looks and returns; absent is the gateway's own limit (R145).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl WaitParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let wait = Self {
            run_id: fields.need("runId", Kind::Short(KEY_BYTES))?,
            timeout_ms: fields.floored("timeoutMs")?,
        };
        fields.end()?;
        Ok(wait)
    }
}

/// What a finished run left to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalReply {
    /// Whether there is something.
    pub disposition: Disposition,
    /// Up to 4 096 characters of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
}

/// Whether a finished run left something to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// A text.
    Visible,
    /// Nothing, on purpose.
    Silent,
    /// Nothing.
    Empty,
}

/// The result of `agent.wait`. With nothing but `runId` and `status` `timeout` the wait
/// ended and the run did not; a run's own end always carries `endedAt`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitResult {
    /// The run.
    pub run_id: String,
    /// How it ended, or that the wait did.
    pub status: RunStatus,
    /// When its first attempt began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<u64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<u64>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// Why it stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_reason: Option<String>,
    /// Where a limit hit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timeout_phase: Option<TimeoutPhase>,
    /// Whether the model had been asked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub provider_started: Option<bool>,
    /// What it left to be read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub terminal_reply: Option<TerminalReply>,
    /// The wait ended, and `error` is what the run will end with as soon as that is durable.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pending_error: Option<bool>,
    /// The run in whose turn the message was answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answered_in: Option<String>,
    /// `false`: there is no such run. Only for clients with
    /// [`CAP_KNOWN_RUN`](crate::CAP_KNOWN_RUN), and only where the gateway could tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub known: Option<bool>,
}

/// The parameters of `chat.abort`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatAbortParams {
    /// The session.
    pub session_key: String,
    /// The agent, where the session key does not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The run; all runs of the session if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

impl ChatAbortParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let abort = Self {
            session_key: fields.need("sessionKey", Kind::Short(KEY_BYTES))?,
            agent_id: fields.text("agentId", Kind::Short(KEY_BYTES))?,
            run_id: fields.text("runId", Kind::Short(KEY_BYTES))?,
        };
        fields.ignore(&[("preserveSideRuns", Kind::Bool)])?;
        fields.end()?;
        Ok(abort)
    }
}

/// The result of `chat.abort`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatAborted {
    /// Always true: nothing to stop is no failure.
    pub ok: bool,
    /// Whether anything was stopped.
    pub aborted: bool,
    /// What was stopped.
    pub run_ids: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Law 10: what would be lost is refused by name and not taken in silence.
    #[test]
    fn content_that_is_not_supported_yet_is_refused() {
        let params = |extra: Value| {
            let mut params = json!({ "message": "m", "idempotencyKey": "k" });
            if let (Some(to), Some(from)) = (params.as_object_mut(), extra.as_object()) {
                to.extend(from.clone());
            }
            AgentParams::read(Some(params))
        };
        assert!(params(json!({ "attachments": [], "extraSystemPrompt": "" })).is_ok());
        for extra in [
            json!({ "attachments": [{ "content": "x" }] }),
            json!({ "extraSystemPrompt": "be brief" }),
            json!({ "expectedExistingSessionId": "s" }),
        ] {
            let refused = params(extra).expect_err("refused").to_string();
            assert!(refused.contains("is not supported yet"), "{refused}");
        }
    }
}
