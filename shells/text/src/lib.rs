//! Pure functions on bytes and text: the shell's eyes, without clock or IO.
//!
//! What is here takes bytes or text and gives a closed enum, a number or shaped text. What
//! follows from it is decided in the core (law 1). Readers that are fed piece by piece
//! ([`SseParser`], [`ChatStream`]) hold what they have not understood yet, and nothing else.

#![deny(
    clippy::unwrap_used,
    reason = "any bytes may come in; say with expect which invariant holds"
)]

mod call_end;
mod chat_stream;
mod command;
mod fingerprint;
mod provider_class;
mod provider_error;
mod queue_words;
mod retry_after;
mod sse;
mod tool_calls;
mod used_up;

pub use call_end::call_end_words;
pub use chat_stream::{ChatEnd, ChatError, ChatFact, ChatStream, Finish, Usage, read_whole_answer};
pub use command::{BadCommand, Command, read_command};
pub use fingerprint::Fingerprinter;
pub use provider_class::provider_class;
pub use provider_error::{ProviderWords, WORDS_LIMIT_CHARS, for_people, read_error_body};
pub use queue_words::{
    DEBOUNCE_MAX_MS, DROP_POLICIES, Named, QUEUE_CAP_MAX, QUEUE_MODES, drop_policy,
    drop_policy_name, duration_ms, queue_mode, queue_mode_name,
};
pub use retry_after::read_retry_after;
pub use sse::{Oversized, SseItem, SseParser};
pub use tool_calls::{BadCalls, CALLS_MAX, CALLS_MAX_BYTES, ChatCall, is_json_object};
