//! Tool calls as clients see them: what a run calls, what comes of it, and what waits for a
//! person to allow it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::ContentPart;

/// Data of stream `tool`. Every call that a model asks for has one start and one result, also
/// if it never ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "phase",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum ToolStep {
    /// A model asked for a call.
    Start {
        /// The tool.
        name: String,
        /// The call's id.
        tool_call_id: String,
        /// The arguments: an object; as text where the model's were none, or are too long to
        /// be told here.
        #[serde(default)]
        args: Value,
    },
    /// A call's output grew.
    Update {
        /// The tool.
        name: String,
        /// The call's id.
        tool_call_id: String,
        /// The last of the output so far, not what it grew by.
        #[serde(default)]
        partial_result: ToolContent,
    },
    /// A call has ended, or will never run.
    Result {
        /// The tool.
        name: String,
        /// The call's id.
        tool_call_id: String,
        /// Whether it did anything else than succeed.
        #[serde(default)]
        is_error: bool,
        /// Its output, as the model is told it but for its length.
        #[serde(default)]
        result: ToolContent,
        /// In a few words, what the call was about.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        meta: Option<String>,
    },
}

/// What a call put out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolContent {
    /// The parts, to be shown in order.
    pub content: Vec<ContentPart>,
    /// About the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ToolDetails>,
}

impl ToolContent {
    /// One text, of a call of this status.
    #[must_use]
    pub fn text(text: impl Into<String>, status: &str) -> Self {
        Self {
            content: vec![ContentPart::text(text)],
            details: Some(ToolDetails {
                status: status.to_owned(),
            }),
        }
    }

    /// The status, if it is told.
    #[must_use]
    pub fn status(&self) -> Option<&str> {
        self.details
            .as_ref()
            .map(|details| details.status.as_str())
            .filter(|status| !status.is_empty())
    }
}

/// About a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolDetails {
    /// How it stands or ended: `running`, `completed`, `failed`, `timed_out`, `cancelled`,
    /// `unknown`, `skipped`, `no_such_tool`, `bad_arguments`, `denied`, `expired` or `stale`.
    pub status: String,
}

/// Data of stream `approval`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStep {
    /// `requested` or `resolved`.
    pub phase: String,
    /// Always `exec`.
    pub kind: String,
    /// `pending`; then `allowed`, `denied`, `expired` or `cancelled`.
    pub status: String,
    /// By which the call is decided.
    pub approval_id: String,
    /// The call's id.
    pub tool_call_id: String,
    /// What would run.
    pub command: String,
    /// Where, if the call names a directory of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// When it expires, in milliseconds of wall time.
    pub expires_at_ms: u64,
}
