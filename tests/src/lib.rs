//! What the black-box tests stand on: the built program as a child process, a client that
//! speaks plain frames, and a model provider that says what the test tells it to say.
//!
//! Nothing here links to the gateway's crates: a test sees what a user sees.

mod client;
mod command;
mod draws;
mod gateway;
mod program;
mod provider;
mod stub;

use std::future::Future;
use std::time::Duration;

pub use client::{Client, Frame, Refused};
pub use command::{Ended, Running, tidegate};
pub use draws::Draws;
pub use gateway::{DIED_BEFORE_LISTENING, Gateway, signal};
pub use program::program;
pub use provider::{Call, Provider, reply_to};
pub use stub::{Played, Stub};

/// How long anything here may take before the test calls it stuck. Only a guard: nothing is
/// asserted about time.
pub const STUCK: Duration = Duration::from_secs(120);

/// Waits for `future`.
///
/// # Panics
/// If it is stuck; the message names `what`.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(STUCK, future).await {
        Ok(value) => value,
        Err(_) => panic!("stuck for {} s: {what}", STUCK.as_secs()),
    }
}
