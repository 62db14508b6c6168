//! What a provider is and what its failures mean.
//!
//! The shell recognises (a base URL, a status, a marker in a body) and reports closed
//! facts; the tables that give them a class and a consequence are here (law 1).

use serde::{Deserialize, Serialize};

/// Where a provider runs, as the shell recognised it from the base URL (spec 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProviderClass {
    /// A public service.
    Cloud,
    /// A server of one's own on the network.
    SelfHosted,
    /// A server on this machine or in its private network.
    Local,
}

/// A hint in an error body that the shell recognised. A closed set: the text itself stays outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Marker {
    /// Nothing recognised.
    None,
    /// Too many requests, quota of a short window.
    RateLimit,
    /// The allowance of a day or longer is used up.
    UsageWindow,
    /// The service is overloaded.
    Overloaded,
    /// Payment or credit.
    Billing,
    /// The prompt does not fit the model's window.
    ContextOverflow,
    /// No such model.
    ModelNotFound,
    /// Wrong or missing credentials.
    Auth,
    /// The request was not understood.
    Format,
    /// No connection: refused, unresolvable, unreachable.
    Connect,
    /// The TLS handshake or certificate failed.
    Tls,
    /// The connection broke while the answer was under way.
    Transport,
    /// One event of the stream exceeded the reader's byte limit (S-04).
    Oversized,
    /// The answer is not of the promised type, such as a page instead of a stream.
    NotAStream,
}

/// When a provider wants to be asked again, as its answer says (B-057).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum RetryAfter {
    /// It does not say, or what it says can't be read.
    #[default]
    Unsaid,
    /// In so many milliseconds.
    Ms(u64),
    /// Later than a number of milliseconds can say.
    Unrepresentable,
}

/// A provider's failure, as reported by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProviderError {
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What the shell recognised.
    pub marker: Marker,
    /// When it wants to be asked again.
    pub retry_after: RetryAfter,
    /// Whether the provider's own words lie under the attempt's detail handle.
    pub detail: bool,
}

/// The class of a provider error (spec 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ErrorClass {
    /// Credentials were refused.
    Auth,
    /// The request was not understood.
    Format,
    /// Too many requests.
    RateLimit,
    /// The service is overloaded.
    Overloaded,
    /// Payment is missing.
    Billing,
    /// The service failed.
    ServerError,
    /// The service or a gateway before it gave up waiting.
    Timeout,
    /// The TLS handshake or certificate failed.
    TlsCertificate,
    /// The prompt does not fit.
    ContextOverflow,
    /// No such model.
    ModelNotFound,
    /// The service can't be reached, or the connection broke.
    Network,
    /// The answer could not be read as a model stream.
    Protocol,
    /// None of these: said as it is (law 10).
    Unknown,
}

impl ProviderError {
    /// The class of this error. A specific marker beats the status (spec 5.3).
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        match self.marker {
            Marker::RateLimit | Marker::UsageWindow => ErrorClass::RateLimit,
            Marker::Overloaded => ErrorClass::Overloaded,
            Marker::Billing => ErrorClass::Billing,
            Marker::ContextOverflow => ErrorClass::ContextOverflow,
            Marker::ModelNotFound => ErrorClass::ModelNotFound,
            Marker::Auth => ErrorClass::Auth,
            Marker::Format => ErrorClass::Format,
            Marker::Connect | Marker::Transport => ErrorClass::Network,
            Marker::Tls => ErrorClass::TlsCertificate,
            Marker::Oversized | Marker::NotAStream => ErrorClass::Protocol,
            Marker::None => match self.status {
                Some(429) => ErrorClass::RateLimit,
                Some(529) => ErrorClass::Overloaded,
                Some(408 | 499 | 504 | 522 | 524) => ErrorClass::Timeout,
                Some(402) => ErrorClass::Billing,
                Some(401 | 403) => ErrorClass::Auth,
                Some(404) => ErrorClass::ModelNotFound,
                Some(400 | 405 | 413 | 415 | 422) => ErrorClass::Format,
                Some(500..=599) => ErrorClass::ServerError,
                _ => ErrorClass::Unknown,
            },
        }
    }
}
