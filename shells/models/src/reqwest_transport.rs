//! The transport of production: HTTP/1.1 and HTTP/2 over TCP and TLS.
//!
//! Owns the client's settings and the naming of its failures. It has no time limit, follows
//! no redirect (the key must go nowhere else), repeats no request and keeps no connection.

use core::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use tidegate_core::ProviderClass;
use tidegate_driver::{Clock, SystemClock};
use tidegate_text::provider_class;

use crate::transport::{HttpAnswer, HttpRequest, Transport, TransportError};

/// The longest value of a response header that is passed on, in bytes.
const HEADER_LIMIT_BYTES: usize = 200;

/// How some providers name a wait more finely than HTTP can.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Posts over the real network, to one provider. Cheap to make: the client inside is built
/// at the first request, because it reads the system's certificates.
#[derive(Clone, Debug)]
pub struct ReqwestTransport {
    tls: bool,
    /// Past the proxy of the environment, which can't reach a private network.
    direct: bool,
    client: Arc<OnceLock<Result<reqwest::Client, TransportError>>>,
}

impl ReqwestTransport {
    /// A transport to the provider at `base_url`. Proxies that the environment names
    /// (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`) are used for all but local providers.
    #[must_use]
    pub fn new(base_url: &str) -> Self {
        Self {
            tls: !base_url
                .trim_start()
                .to_ascii_lowercase()
                .starts_with("http:"),
            direct: provider_class(base_url, "") == ProviderClass::Local,
            client: Arc::default(),
        }
    }

    fn client(&self) -> Result<reqwest::Client, TransportError> {
        self.client
            .get_or_init(|| build(self.tls, self.direct))
            .clone()
    }
}

fn build(tls: bool, direct: bool) -> Result<reqwest::Client, TransportError> {
    // Another part of the program may have installed it before us; then all is well too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // A connection that the provider closed while it was idle would fail the run that
        // takes it, and nothing below the core may repeat a request.
        .pool_max_idle_per_host(0);
    if !tls {
        // No certificate will be checked, so a machine without any can still talk plainly.
        builder = builder.tls_certs_only([]);
    }
    if direct {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| TransportError::Tls(innermost(&error)))
}

impl Transport for ReqwestTransport {
    fn post(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpAnswer, TransportError>> {
        let this = self.clone();
        async move {
            let client = this.client()?;
            let post = client
                .post(request.url)
                .headers(headers(request.bearer.as_ref()))
                .body(request.body);
            let response = post.send().await.map_err(|error| name(&error))?;
            let came_at = SystemClock::start().now().wall;
            let header = |header: HeaderName| {
                let value = response.headers().get(header)?.to_str().ok()?;
                Some(value.chars().take(HEADER_LIMIT_BYTES).collect())
            };
            Ok(HttpAnswer {
                status: response.status().as_u16(),
                content_type: header(CONTENT_TYPE),
                retry_after: header(RETRY_AFTER),
                retry_after_ms: header(RETRY_AFTER_MS),
                came_at,
                body: response
                    .bytes_stream()
                    .map(|read| read.map_err(|error| name(&error)))
                    .boxed(),
            })
        }
        .boxed()
    }
}

fn headers(bearer: Option<&crate::Secret>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("text/event-stream, application/json"),
    );
    let bearer = bearer.map(|key| HeaderValue::from_str(&format!("Bearer {}", key.expose())));
    // A key that fits no header was refused when the provider was made.
    if let Some(Ok(mut bearer)) = bearer {
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    headers
}

/// Names a failure by what lies at its root; the library's outer words name the address,
/// which may hold more than people should see.
fn name(error: &reqwest::Error) -> TransportError {
    let io_kind =
        causes(error).find_map(|cause| cause.downcast_ref::<io::Error>().map(io::Error::kind));
    if let Some(tls) = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
        TransportError::Tls(tls.to_string())
    } else if !error.is_connect() {
        TransportError::Broken(innermost(error))
    } else if error.is_dns() {
        TransportError::Unresolved
    } else if io_kind == Some(io::ErrorKind::ConnectionRefused) {
        TransportError::Refused
    } else {
        TransportError::Unreachable(innermost(error))
    }
}

/// An error and what caused it, outermost first. An `io::Error` hides the error that it
/// wraps from `source`, so it is asked for it.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    core::iter::successors(Some(error), |&cause| {
        let wrapped = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        match wrapped {
            Some(inner) => Some(inner),
            None => cause.source(),
        }
    })
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error)
        .last()
        .map_or_else(|| "no reason was given".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_a_header_does_not_show_itself() {
        let key = crate::Secret::new("open-sesame-42").expect("not empty");
        let headers = headers(Some(&key));
        assert_eq!(headers[AUTHORIZATION].as_bytes(), b"Bearer open-sesame-42");
        assert!(!format!("{headers:?}").contains("sesame"), "{headers:?}");
    }
}
