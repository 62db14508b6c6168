//! What the server says when a handshake went well.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The payload of the response to `connect`. A client must not rely on more than `protocol`:
/// other servers of the protocol leave parts out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HelloOk {
    /// Always `hello-ok`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The version that both sides now speak.
    pub protocol: u64,
    /// The server.
    #[serde(default)]
    pub server: ServerInfo,
    /// What it can do.
    #[serde(default)]
    pub features: Features,
    /// How things stand.
    #[serde(default)]
    pub snapshot: Snapshot,
    /// What the connection may do.
    #[serde(default)]
    pub auth: HelloAuth,
    /// The limits of the connection.
    #[serde(default)]
    pub policy: Policy,
}

/// The server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerInfo {
    /// Its version.
    pub version: String,
    /// This connection's name, for logs.
    pub conn_id: String,
    /// Changes with every start of the gateway.
    pub boot_id: String,
}

/// What exists. Clients ask here before they use a method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Features {
    /// Methods.
    pub methods: Vec<String>,
    /// Events.
    pub events: Vec<String>,
    /// Capabilities of the server.
    pub capabilities: Vec<String>,
}

/// How things stood when the handshake ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Snapshot {
    /// Who is there. We keep no such list.
    pub presence: Vec<Value>,
    /// Health; see the method `health`.
    pub health: Value,
    /// Versions of the two above.
    pub state_version: StateVersion,
    /// Milliseconds since the gateway started.
    pub uptime_ms: u64,
    /// Where messages go that name no session.
    pub session_defaults: SessionDefaults,
}

/// Versions of the shared state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateVersion {
    /// Of the presence list.
    pub presence: u64,
    /// Of health.
    pub health: u64,
}

/// Where messages go that name no session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionDefaults {
    /// The agent.
    pub default_agent_id: String,
    /// The short key of its main session.
    pub main_key: String,
    /// The whole key of its main session.
    pub main_session_key: String,
}

/// What the connection may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HelloAuth {
    /// How it proved itself.
    pub method: String,
    /// Its role.
    pub role: String,
    /// Its scopes.
    pub scopes: Vec<String>,
}

/// The limits of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// The most bytes of a frame to the server.
    pub max_payload: u64,
    /// The most bytes that wait for a slow reader.
    pub max_buffered_bytes: u64,
    /// How often `tick` comes, in milliseconds.
    pub tick_interval_ms: u64,
}
