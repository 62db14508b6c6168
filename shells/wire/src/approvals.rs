//! Tool calls that wait for a person: `exec.approval.list`, `exec.approval.get`,
//! `exec.approval.resolve`, and their events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::KEY_BYTES;
use crate::fields::{BadParams, Fields, Kind};

/// What a person may answer. `allow-always` is a word of the protocol that this version
/// refuses.
pub const APPROVAL_DECISIONS: &[&str] = &["allow-once", "allow-always", "deny"];

/// What a person may decide here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalDecision {
    /// The call may run, this once.
    AllowOnce,
    /// It may not.
    Deny,
}

/// The parameters of `exec.approval.list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApprovalListParams {}

impl ApprovalListParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        Fields::of(params)?.end()?;
        Ok(Self {})
    }
}

/// The parameters of `exec.approval.get`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ApprovalGetParams {
    /// The approval.
    pub id: String,
}

impl ApprovalGetParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let get = Self {
            id: fields.need("id", Kind::Short(KEY_BYTES))?,
        };
        fields.end()?;
        Ok(get)
    }
}

/// The parameters of `exec.approval.resolve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApprovalResolveParams {
    /// The approval.
    pub id: String,
    /// The decision.
    pub decision: ApprovalDecision,
}

impl ApprovalResolveParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation; also for `allow-always`.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let id = fields.need("id", Kind::Short(KEY_BYTES))?;
        let word = fields.need("decision", Kind::OneOf(APPROVAL_DECISIONS))?;
        fields.ignore(&[
            ("reviewer", Kind::Any),
            ("grantExpiresInDays", Kind::NotYet),
        ])?;
        fields.end()?;
        let decision = match word.as_str() {
            "allow-once" => ApprovalDecision::AllowOnce,
            "deny" => ApprovalDecision::Deny,
            _ => {
                return Err(BadParams(
                    "at /decision: allow-always is not supported yet: what is allowed is not \
                     remembered; allow each call with allow-once"
                        .into(),
                ));
            }
        };
        Ok(Self { id, decision })
    }
}

/// The result of `exec.approval.resolve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalResolved {
    /// Always true: the decision counts.
    pub ok: bool,
}

/// What would run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalRequest {
    /// The command, whole; of another tool than `exec` its name and arguments.
    pub command: String,
    /// The directory, as the model named it; absent is the agent's workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Where it would run: `gateway`.
    pub host: String,
    /// The agent.
    pub agent_id: String,
    /// The session.
    pub session_key: String,
    /// The run.
    pub run_id: String,
    /// The call's id.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
}

/// A tool call that waits for a person: an item of `exec.approval.list`, and the payload of
/// `exec.approval.requested`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPending {
    /// By which it is decided.
    pub id: String,
    /// What would run.
    pub request: ApprovalRequest,
    /// Since when it waits, in milliseconds of wall time.
    pub created_at_ms: u64,
    /// When it expires.
    pub expires_at_ms: u64,
}

/// The result of `exec.approval.get`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalShown {
    /// By which it is decided.
    pub id: String,
    /// The command, whole.
    pub command_text: String,
    /// Its first line, in short.
    pub command_preview: String,
    /// What may be decided here.
    pub allowed_decisions: Vec<ApprovalDecision>,
    /// Where it would run: `gateway`.
    pub host: String,
    /// The node that it would run on. There is none; clients expect the name.
    #[serde(default)]
    pub node_id: Option<String>,
    /// The agent.
    pub agent_id: String,
    /// When it expires, in milliseconds of wall time.
    pub expires_at_ms: u64,
}

/// Payload of `exec.approval.resolved`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalOver {
    /// The approval.
    pub id: String,
    /// The decision; `null`: nobody decided.
    #[serde(default)]
    pub decision: Option<ApprovalDecision>,
    /// Who decided: `operator`; absent without a decision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resolved_by: Option<String>,
    /// Without a decision: `expired`, or `cancelled` with its run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub terminal_reason: Option<String>,
    /// Wall time in milliseconds.
    pub ts: u64,
    /// What would have run.
    pub request: ApprovalRequest,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// surface 2.9, law 10: a grant that would not hold is refused and not taken for another
    #[test]
    fn a_decision_for_ever_is_refused_by_name() {
        let read = |decision: &str| {
            ApprovalResolveParams::read(Some(json!({ "id": "a", "decision": decision })))
        };
        assert_eq!(
            read("allow-once").map(|it| it.decision),
            Ok(ApprovalDecision::AllowOnce)
        );
        assert_eq!(
            read("deny").map(|it| it.decision),
            Ok(ApprovalDecision::Deny)
        );
        let refused = read("allow-always").expect_err("refused").0;
        assert!(
            refused.contains("allow each call with allow-once"),
            "{refused}"
        );
        assert!(read("yes").is_err());
    }
}
