//! `sessions.list`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::{BadParams, Fields, Kind};

/// The parameters of `sessions.list` that are known, checked and not acted upon: they ask
/// for what we do not have yet (labels, owners, archives), or for what we always do.
pub const SESSIONS_LIST_IGNORED: &[(&str, Kind)] = &[
    ("activeMinutes", Kind::Whole(1)),
    ("requireLastInteraction", Kind::Bool),
    (
        "sortBy",
        Kind::OneOf(&["updatedAt", "lastInteractionAt", "activity"]),
    ),
    ("includeGlobal", Kind::Bool),
    ("includeUnknown", Kind::Bool),
    ("includeDerivedTitles", Kind::Bool),
    ("includeLastMessage", Kind::Bool),
    ("includeActivitySummary", Kind::Bool),
    ("includePeople", Kind::Bool),
    ("configuredAgentsOnly", Kind::Bool),
    ("excludeSubagents", Kind::Bool),
    ("excludeCron", Kind::Bool),
    ("excludeSystem", Kind::Bool),
    ("label", Kind::Short(512)),
    ("boardFace", Kind::OneOf(&["chat", "dashboard"])),
    ("creatorId", Kind::Name),
    ("ownerId", Kind::Name),
    ("ownerFirst", Kind::Bool),
    ("involvingMe", Kind::Bool),
    ("involvingProfileId", Kind::Name),
    ("spawnedBy", Kind::Name),
    ("archived", Kind::BoolOr("all")),
    ("group", Kind::Text),
    ("pinned", Kind::Bool),
];

/// The parameters of `sessions.list` that we act upon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsListParams {
    /// At most this many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Leave out this many first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Only sessions with a run that has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_only: Option<bool>,
    /// Only sessions of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Only sessions whose key contains this, in any case of letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

impl SessionsListParams {
    /// Reads the parameters.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        let list = Self {
            limit: fields.whole("limit", 1)?,
            offset: fields.whole("offset", 0)?,
            active_only: fields
                .take("activeOnly", Kind::Bool)?
                .and_then(|v| v.as_bool()),
            agent_id: fields.text("agentId", Kind::Name)?,
            search: fields.text("search", Kind::Text)?,
        };
        fields.ignore(SESSIONS_LIST_IGNORED)?;
        fields.end()?;
        Ok(list)
    }
}

/// The result of `sessions.list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsList {
    /// Wall time in milliseconds.
    pub ts: u64,
    /// How many rows are here.
    pub count: u64,
    /// How many there are, counted up to the gateway's own limit.
    pub total_count: u64,
    /// The limit that was applied.
    pub limit_applied: u64,
    /// Where the next page begins; `null` on the last one.
    #[serde(default)]
    pub next_offset: Option<u64>,
    /// Whether there is a next page.
    #[serde(default)]
    pub has_more: bool,
    /// The rows, last written first.
    pub sessions: Vec<SessionRow>,
}

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionRunStatus {
    /// A run waits.
    Queued,
    /// A run is at work.
    Running,
    /// The last run completed.
    Done,
    /// The last run failed.
    Failed,
    /// The last run was stopped.
    Killed,
    /// The last run timed out.
    Timeout,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Its key.
    pub key: String,
    /// `direct`.
    pub kind: String,
    /// Its agent.
    pub agent_id: String,
    /// This conversation of it; another one after a reset.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<String>,
    /// When it was first written, in milliseconds of wall time.
    pub created_at: u64,
    /// When it was last written.
    pub updated_at: u64,
    /// How it stands; absent before its first run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<SessionRunStatus>,
    /// Whether a run has not ended.
    pub has_active_run: bool,
    /// The runs that have not ended, in order.
    pub active_run_ids: Vec<String>,
    /// The run that last wrote.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_run_id: Option<String>,
    /// Whether that one was ended from outside.
    #[serde(default)]
    pub aborted_last_run: bool,
    /// What went wrong with it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_run_error: Option<String>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_at: Option<u64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_at: Option<u64>,
    /// How long it ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime_ms: Option<u64>,
}
