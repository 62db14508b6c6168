//! Every bound of the network side, named, with its unit and its source. Bounds of IO only:
//! how long a run, a wait or an approval may take is the core's.

/// The most bytes a socket may send before it has proved itself (surface 1.1).
pub const PREAUTH_BYTES: usize = 64 * 1024;

/// The most bytes of a frame, and of a message, after that (surface 1.1).
pub const MAX_PAYLOAD_BYTES: usize = 25 * 1024 * 1024;

/// The most bytes that wait for a slow reader (surface 1.1). Beyond: text events are left
/// out, anything else closes the connection.
pub const MAX_BUFFERED_BYTES: usize = 50 * 1024 * 1024;

/// From the upgrade to the end of a good handshake (surface 1.1).
pub const HANDSHAKE_MS: u64 = 15_000;

/// For the header of an HTTP request, also on a connection that is kept open.
pub const HTTP_HEADER_MS: u64 = 15_000;

/// Sockets of one address that have not proved themselves (surface 1.1).
pub const PREAUTH_PER_ADDRESS: u32 = 32;

/// Sockets over all addresses.
pub const MAX_SOCKETS: u32 = 1_024;

/// For a refused socket to take the refusal.
pub const REFUSAL_MS: u64 = 1_000;

/// Requests under way on one connection; an `agent` request is under way until its final
/// response. Beyond: refused, to be tried again.
pub const MAX_REQUESTS: usize = 256;

/// How long a refused request should wait, in milliseconds.
pub const RETRY_AFTER_MS: u64 = 1_000;

/// For one write to a reader that does not read.
pub const WRITE_STALL_MS: u64 = 30_000;

/// Between two `tick` events (surface 1.5).
pub const TICK_MS: u64 = 30_000;

/// Between two pings. A ping that was written and not answered by the next one, by a pong or
/// by any other frame, ends the connection (surface 1.1).
pub const PING_MS: u64 = 25_000;

/// For the peer to answer our close, or to read why it was cut off (surface 1.1).
pub const CLOSE_GRACE_MS: u64 = 1_000;

/// For all connections to end when the server stops.
pub const SHUTDOWN_MS: u64 = 3_000;

/// For the driver to answer a readiness probe.
pub const READY_MS: u64 = 2_000;

/// Run events that may wait for the server before the driver leaves text out.
pub const EVENTS_CAPACITY: usize = 4_096;

/// Events of one session that are remembered for clients that were away. Text that grew costs
/// two a step; at the pace of 75 ms that is two and a half minutes of text.
pub const LOG_EVENTS: usize = 4_096;

/// The most bytes of them. Beyond this or [`LOG_EVENTS`] the oldest go, and who was further
/// back gets the text of the runs at work from its beginning.
pub const LOG_BYTES: usize = 1024 * 1024;

/// The most bytes of all sessions' remembered events. Beyond, each session gives its own.
pub const LOGS_BYTES: usize = 32 * 1024 * 1024;

/// Sessions that one connection may subscribe to.
pub const SUBSCRIPTIONS_PER_CONNECTION: usize = 256;

/// Rows that are read at once to be told as `session.message`.
pub const ROWS_AT_ONCE: u32 = 200;

/// Messages of a history that names no limit (surface 2.4).
pub const HISTORY_DEFAULT: u64 = 200;

/// The most messages of a history (surface 2.4).
pub const HISTORY_CAP: u64 = 1_000;

/// The most bytes of a history's messages (surface 2.4).
pub const HISTORY_BYTES: u64 = 6_291_456;

/// The most characters of one message in a history (surface 2.4).
pub const HISTORY_CHARS: u64 = 500_000;

/// The most messages of what came since a cursor, and their bytes (surface 2.4). Beyond, the
/// client gets the newest ones instead.
pub const DELTA_ROWS: u64 = 200;

/// See [`DELTA_ROWS`].
pub const DELTA_BYTES: u64 = 1024 * 1024;

/// How often a reading is made again because rows came meanwhile.
pub const READ_AGAIN: usize = 8;

/// Commands of chats whose repetition is recognised.
pub const COMMANDS_REMEMBERED: usize = 1_024;

/// Rows of sessions that a list looks at.
pub const SESSIONS_CAP: u32 = 1_000;

/// Sessions that `status` shows, the newest ones.
pub const STATUS_RECENT: usize = 10;

/// Rows of a list that names no limit.
pub const SESSIONS_DEFAULT: u64 = 100;

/// The most characters of a reply that an `agent.wait` result repeats (spec 1.4).
pub const TERMINAL_REPLY_CHARS: usize = 4_096;

/// The most bytes of a close frame's reason (RFC 6455, 5.5).
pub const CLOSE_REASON_BYTES: usize = 123;

/// The most characters of a tool's output in one event or message, its end and its beginning;
/// what is left out is counted (spec 7.1).
pub const TOOL_RESULT_CHARS: usize = 8_000;

/// The most characters of a call's arguments in an event. Beyond, they are told as text with
/// their beginning and their end; the conversation and an approval have them whole.
pub const TOOL_ARGS_CHARS: usize = 8_000;

/// The most characters of a command's first line where it is shown in short.
pub const TOOL_META_CHARS: usize = 160;
