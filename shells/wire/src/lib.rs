//! The gateway's wire protocol, version 4: frames, parameters, results, events and error
//! codes, shared by the server and its clients.
//!
//! Types only. Nothing here does IO, keeps state or decides; what a run's end is called on
//! the wire is the server's `project` module. Parameter objects are closed: a name that is
//! not listed is refused, with its place, so that a typing error never passes as a default.

mod agent;
mod connect;
mod error;
mod event;
mod fields;
mod frame;
mod hello;
mod sessions;
mod status;

pub use agent::{
    AGENT_IGNORED, AckStatus, AgentAck, AgentFinal, AgentParams, AgentPayload, ChatAbortParams,
    ChatAborted, Disposition, Payload, RunMeta, RunResult, RunStatus, TerminalReply, TimeoutPhase,
    WaitParams, WaitResult,
};
pub use connect::{
    Auth, CLIENT_IDS, CLIENT_MODES, ClientInfo, ConnectParams, Device, PROTOCOL, Secret,
};
pub use error::{AuthProblem, ErrorCode, WireError};
pub use event::{
    AgentData, AgentEvent, Challenge, ChatEvent, ChatMessage, ChatState, ContentPart, Lifecycle,
    Phase, Shutdown, Tick, event_name,
};
pub use fields::{BadParams, Fields, Kind};
pub use frame::{BadFrame, Event, INVALID_ID, Request, Response, ServerFrame, event_text};
pub use hello::{
    Features, HelloAuth, HelloOk, Policy, ServerInfo, SessionDefaults, Snapshot, StateVersion,
};
pub use sessions::{
    SESSIONS_LIST_IGNORED, SessionRow, SessionRunStatus, SessionsList, SessionsListParams,
};
pub use status::{
    AgentHealth, AgentSessions, Health, HealthParams, ModelRuntime, RecentSession, Runs,
    SessionsBrief, Status, StatusParams,
};

/// The agent that a session key without one belongs to.
pub const DEFAULT_AGENT: &str = "main";

/// The session that a message without one belongs to.
pub const MAIN_SESSION_KEY: &str = "agent:main:main";

/// In `connect.caps`: `agent.wait` then says `known: false` about a run that the gateway has
/// no record of, instead of the bare timeout that older clients expect (vector 16.4).
pub const CAP_KNOWN_RUN: &str = "tidegate-known-run";

/// Names of the methods.
pub mod method {
    /// The handshake. Only as the first request of a socket.
    pub const CONNECT: &str = "connect";
    /// Is the gateway in order?
    pub const HEALTH: &str = "health";
    /// What is the gateway doing?
    pub const STATUS: &str = "status";
    /// Run the agent on a message. Two responses.
    pub const AGENT: &str = "agent";
    /// Wait for the end of a run.
    pub const AGENT_WAIT: &str = "agent.wait";
    /// Stop one run or all runs of a session.
    pub const CHAT_ABORT: &str = "chat.abort";
    /// The sessions, last written first.
    pub const SESSIONS_LIST: &str = "sessions.list";

    /// All methods that may follow `connect`, as advertised in hello.
    pub const ALL: [&str; 6] = [HEALTH, STATUS, AGENT, AGENT_WAIT, CHAT_ABORT, SESSIONS_LIST];
}
