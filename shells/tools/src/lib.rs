//! The built-in tools: what a model can have done on this machine.
//!
//! [`BuiltIn`] offers [`Exec`], a shell command in a process group of its own, and carries out
//! one call at a time for whoever asks. It decides nothing: whether a call may start, how long
//! it may take and what its end means is the core's (law 1), and no call is started twice here
//! or outlives its future (law 12). The environment of a command is cleared: no key and
//! no token of the gateway reaches it.

#![deny(
    clippy::unwrap_used,
    reason = "a model may send anything; say with expect which invariant holds"
)]

mod bounded;
mod built_in;
mod clean;
mod exec;
mod limits;

pub use built_in::BuiltIn;
pub use exec::{Environment, Exec, ExecSettings, WorkspaceError};
pub use limits::{
    Bounds, COMMAND_LIMIT_BYTES, GONE_WAIT_MS, HEAD_BYTES, LINGER_MS, STOP_GRACE_MS, TAIL_BYTES,
};
