//! Pure functions on bytes and text: the shell's eyes, without clock or IO.
//!
//! What is here takes bytes or text and gives a closed enum, a number or shaped text. What
//! follows from it is decided in the core (law 1). Readers that are fed piece by piece
//! ([`SseParser`], [`ChatStream`]) hold what they have not understood yet, and nothing else.

#![deny(
    clippy::unwrap_used,
    reason = "any bytes may come in; say with expect which invariant holds"
)]

mod chat_stream;
mod fingerprint;
mod provider_class;
mod provider_error;
mod sse;

pub use chat_stream::{ChatEnd, ChatError, ChatFact, ChatStream, Finish, Usage, read_whole_answer};
pub use fingerprint::Fingerprinter;
pub use provider_class::provider_class;
pub use provider_error::{ProviderWords, WORDS_LIMIT_CHARS, for_people, read_error_body};
pub use sse::{Oversized, SseItem, SseParser};
