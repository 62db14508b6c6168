//! The seam between a dialect and the network: one request, one streamed answer.
//!
//! A dialect is written against [`Transport`] alone, so that it also runs on a simulated
//! network. A transport has no limit of its own and repeats nothing.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tidegate_core::{Marker, Wall};

use crate::secret::Secret;

/// A JSON document to post.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The whole address.
    pub url: String,
    /// The key for the `Authorization` header.
    pub bearer: Option<Secret>,
    /// The document.
    pub body: Bytes,
}

/// An answer whose head is there and whose body follows. Dropping it closes the connection,
/// unless the body was read to its end.
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// The `Retry-After` header, as it came.
    pub retry_after: Option<String>,
    /// The `Retry-After-Ms` header, as it came.
    pub retry_after_ms: Option<String>,
    /// When the head came, by the wall clock of whoever carried it.
    pub came_at: Wall,
    /// The body, as it comes. It ends after an error.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

/// Why a request or an answer did not get through. The words come from the system or a
/// library; they name no key and no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The machine answers and nothing listens at the port.
    #[error("connection refused")]
    Refused,
    /// The host's name has no address.
    #[error("the name can't be resolved")]
    Unresolved,
    /// There is no way to the host, for another reason.
    #[error("{0}")]
    Unreachable(String),
    /// The TLS handshake or the certificate failed, or there is nothing to check it with.
    #[error("{0}")]
    Tls(String),
    /// The connection broke after it had been made.
    #[error("{0}")]
    Broken(String),
}

impl TransportError {
    /// The hint for the core.
    #[must_use]
    pub const fn marker(&self) -> Marker {
        match self {
            Self::Refused | Self::Unresolved | Self::Unreachable(_) => Marker::Connect,
            Self::Tls(_) => Marker::Tls,
            Self::Broken(_) => Marker::Transport,
        }
    }
}

/// Carries requests to a provider.
pub trait Transport: Send + Sync + 'static {
    /// Posts `request` once. The future ends when the head of the answer is there; dropping
    /// it closes the connection.
    fn post(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpAnswer, TransportError>>;
}
