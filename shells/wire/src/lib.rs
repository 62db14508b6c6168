//! The gateway's wire protocol, version 4: frames, parameters, results, events and error
//! codes, shared by the server and its clients.
//!
//! Types only. Nothing here does IO, keeps state or decides; what a run's end is called on
//! the wire is the server's `project` module. Parameter objects are closed: a name that is
//! not listed is refused, with its place, so that a typing error never passes as a default.

mod agent;
mod approvals;
mod chat;
mod connect;
mod error;
mod event;
mod fields;
mod frame;
mod hello;
mod history;
mod sessions;
mod status;
mod subscribe;
mod tool;

pub use agent::{
    AGENT_IGNORED, AckStatus, AgentAck, AgentFinal, AgentParams, AgentPayload, ChatAbortParams,
    ChatAborted, Disposition, LANES, MOST_TIMEOUT_S, Payload, RunMeta, RunResult, RunStatus,
    TerminalReply, TimeoutPhase, WaitParams, WaitResult,
};
pub use approvals::{
    APPROVAL_DECISIONS, ApprovalDecision, ApprovalGetParams, ApprovalListParams, ApprovalOver,
    ApprovalPending, ApprovalRequest, ApprovalResolveParams, ApprovalResolved, ApprovalShown,
};
pub use chat::{
    CHAT_SEND_IGNORED, ChatSendAck, ChatSendParams, InputState, QUEUE_MODES, Route, SendStatus,
};
pub use connect::{
    Auth, CLIENT_IDS, CLIENT_MODES, ClientInfo, ConnectParams, Device, PROTOCOL, Secret,
};
pub use error::{AuthProblem, ErrorCode, WireError};
pub use event::{
    AgentData, AgentEvent, Challenge, ChatEvent, ChatMessage, ChatState, ContentPart, InputStep,
    Lifecycle, Phase, Shutdown, Tick, event_name,
};
pub use fields::{BadParams, Fields, Kind};
pub use frame::{BadFrame, Event, INVALID_ID, Request, Response, ServerFrame, event_text};
pub use hello::{
    Features, HelloAuth, HelloOk, Policy, ServerInfo, SessionDefaults, Snapshot, StateVersion,
};
pub use history::{
    CHAT_HISTORY_IGNORED, ChatHistory, ChatHistoryParams, HistoryKind, HistoryMessage,
    HistoryReset, InFlightRun, MessageContent, MessageRow, PendingInput, PendingInputs,
    SessionInfo, SessionMessages, SessionsGetParams,
};
pub use sessions::{
    SESSIONS_LIST_IGNORED, SessionRow, SessionRunStatus, SessionsList, SessionsListParams,
};
pub use status::{
    AgentHealth, AgentSessions, Health, HealthParams, ModelRuntime, RecentSession, Runs,
    SessionsBrief, Status, StatusParams,
};
pub use subscribe::{
    AbortStatus, MessagesSubscribeParams, MessagesSubscribed, MessagesUnsubscribed, MissedEvent,
    SessionEntry, SessionMessage, SessionsAbortParams, SessionsAborted, SessionsChanged,
    SessionsResetDone, SessionsResetParams, SessionsSubscribeParams, SessionsSubscribed,
};

pub use tool::{ApprovalStep, ToolContent, ToolDetails, ToolStep};

/// The agent that a session key without one belongs to.
pub const DEFAULT_AGENT: &str = "main";

/// The session that a message without one belongs to.
pub const MAIN_SESSION_KEY: &str = "agent:main:main";

/// In `connect.caps`: `agent.wait` then says `known: false` about a run that the gateway has
/// no record of, instead of the bare timeout that older clients expect (vector 16.4).
pub const CAP_KNOWN_RUN: &str = "tidegate-known-run";

/// In `connect.caps`: events of runs come only of sessions that the connection subscribed to
/// (surface 3).
pub const CAP_SESSION_EVENTS: &str = "session-scoped-events";

/// In `connect.caps`: the connection hears what the tools of the runs do that it hears of
/// (surface 3.1).
pub const CAP_TOOL_EVENTS: &str = "tool-events";

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
    /// A message of a conversation. One response; the rest comes as events.
    pub const CHAT_SEND: &str = "chat.send";
    /// What was said in a conversation.
    pub const CHAT_HISTORY: &str = "chat.history";
    /// The sessions, last written first.
    pub const SESSIONS_LIST: &str = "sessions.list";
    /// What was said in a session, in short.
    pub const SESSIONS_GET: &str = "sessions.get";
    /// Hear how sessions change.
    pub const SESSIONS_SUBSCRIBE: &str = "sessions.subscribe";
    /// Hear it no more.
    pub const SESSIONS_UNSUBSCRIBE: &str = "sessions.unsubscribe";
    /// Hear all of one session, from a cursor on.
    pub const MESSAGES_SUBSCRIBE: &str = "sessions.messages.subscribe";
    /// Hear it no more.
    pub const MESSAGES_UNSUBSCRIBE: &str = "sessions.messages.unsubscribe";
    /// Stop what a session does.
    pub const SESSIONS_ABORT: &str = "sessions.abort";
    /// Begin a session anew.
    pub const SESSIONS_RESET: &str = "sessions.reset";

    /// The tool calls that wait for a person.
    pub const APPROVAL_LIST: &str = "exec.approval.list";
    /// One of them.
    pub const APPROVAL_GET: &str = "exec.approval.get";
    /// Allow one of them, or deny it.
    pub const APPROVAL_RESOLVE: &str = "exec.approval.resolve";

    /// All methods that may follow `connect`, as advertised in hello.
    pub const ALL: [&str; 18] = [
        HEALTH,
        STATUS,
        AGENT,
        AGENT_WAIT,
        CHAT_SEND,
        CHAT_ABORT,
        CHAT_HISTORY,
        SESSIONS_LIST,
        SESSIONS_GET,
        SESSIONS_SUBSCRIBE,
        SESSIONS_UNSUBSCRIBE,
        MESSAGES_SUBSCRIBE,
        MESSAGES_UNSUBSCRIBE,
        SESSIONS_ABORT,
        SESSIONS_RESET,
        APPROVAL_LIST,
        APPROVAL_GET,
        APPROVAL_RESOLVE,
    ];
}
