//! Model providers: one call, one answer, reported as it comes.
//!
//! [`OpenAiChat`] speaks the chat-completions dialect above a [`Transport`], a [`Chain`] has one
//! for each provider of the configuration; [`DemoModel`] answers by itself, for a gateway
//! without a provider. Nothing here waits by a clock, repeats a request or follows a redirect:
//! what a failure means and what comes next is decided in the core (law 1). A key is a
//! [`Secret`] and leaves in a request header only.

#![deny(
    clippy::unwrap_used,
    reason = "a provider may send anything; say with expect which invariant holds"
)]

mod answer;
mod chain;
mod demo;
mod messages;
mod openai;
mod reqwest_transport;
mod secret;
mod transport;

pub use answer::{ERROR_BODY_LIMIT_BYTES, EVENT_LIMIT_BYTES};
pub use chain::{Candidate, Chain};
pub use demo::DemoModel;
pub use openai::{BadProvider, OpenAiChat};
pub use reqwest_transport::ReqwestTransport;
pub use secret::Secret;
pub use transport::{HttpAnswer, HttpRequest, Transport, TransportError};
