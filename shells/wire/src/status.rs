//! `health` and `status`: how the gateway is, and what it is doing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fields::{BadParams, Fields, Kind};

/// The parameters of `health`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HealthParams {}

impl HealthParams {
    /// Reads the parameters. `probe` asks to look anew, which we always do.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        fields.ignore(&[("probe", Kind::Bool)])?;
        fields.end()?;
        Ok(Self {})
    }
}

/// The result of `health`. That it comes at all says that the driver answers; a gateway
/// whose core halted answers an error instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Always true.
    pub ok: bool,
    /// Whether it lets nothing new begin, because it is about to stop.
    #[serde(default)]
    pub draining: bool,
    /// Wall time in milliseconds.
    pub ts: u64,
    /// How long the look took.
    pub duration_ms: u64,
    /// Chat channels. None yet; clients expect the name.
    #[serde(default)]
    pub channels: Map<String, Value>,
    /// Their order.
    #[serde(default)]
    pub channel_order: Vec<String>,
    /// Their names.
    #[serde(default)]
    pub channel_labels: Map<String, Value>,
    /// The agent of messages that name none.
    #[serde(default)]
    pub default_agent_id: String,
    /// The agents.
    #[serde(default)]
    pub agents: Vec<AgentHealth>,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentHealth {
    /// Its id.
    pub agent_id: String,
    /// Whether messages that name no agent are its own.
    pub is_default: bool,
}

/// The sessions in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsBrief {
    /// How many were counted; at most the limit of a list.
    pub count: u64,
    /// The same, agent by agent. The CLI of release 2026.9.6 can't print a `status` without it.
    #[serde(default)]
    pub by_agent: Vec<AgentSessions>,
}

/// The sessions of one agent in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSessions {
    /// The agent.
    pub agent_id: String,
    /// How many were counted.
    pub count: u64,
    /// The few that changed last, newest first.
    #[serde(default)]
    pub recent: Vec<RecentSession>,
}

/// When a session last changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecentSession {
    /// Its key.
    pub key: String,
    /// Wall time in milliseconds.
    pub updated_at: u64,
    /// Milliseconds since then.
    pub age: u64,
}

/// The parameters of `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StatusParams {}

impl StatusParams {
    /// Reads the parameters. What they would add, we have not.
    ///
    /// # Errors
    /// [`BadParams`] with the place and the expectation.
    pub fn read(params: Option<Value>) -> Result<Self, BadParams> {
        let mut fields = Fields::of(params)?;
        fields.ignore(&[
            ("includeChannelSummary", Kind::Bool),
            ("includeCliProjection", Kind::Bool),
        ])?;
        fields.end()?;
        Ok(Self {})
    }
}

/// The result of `status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The gateway's version.
    pub runtime_version: String,
    /// Its process.
    pub pid: u32,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    /// Chat channels. None yet; clients expect the name.
    #[serde(default)]
    pub channel_summary: Vec<String>,
    /// Events that wait for a turn. None yet; clients expect the name.
    #[serde(default)]
    pub queued_system_events: Vec<Value>,
    /// The sessions.
    #[serde(default)]
    pub sessions: SessionsBrief,
    /// Whether the model side is in order.
    #[serde(default)]
    pub model_runtime: ModelRuntime,
    /// The runs.
    #[serde(default)]
    pub runs: Runs,
    /// Open WebSocket connections past their handshake.
    #[serde(default)]
    pub connections: u64,
    /// Why the core halted, if it has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub halted: Option<String>,
}

/// Whether the model side is in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRuntime {
    /// It is not.
    pub degraded: bool,
}

/// The runs in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Runs {
    /// Accepted and not ended.
    pub live: u64,
    /// At work.
    pub active: u64,
    /// How many may be at work at once.
    pub cap: u64,
    /// Open waits.
    pub waits: u64,
    /// Armed timers.
    pub timers: u64,
    /// Facts that the core has handled.
    pub inputs: u64,
    /// Texts held.
    pub contents: u64,
}
