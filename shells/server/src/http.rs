//! One socket from its first byte: HTTP, and the upgrade to a WebSocket.
//!
//! The probes need no token and tell strangers nothing but a yes or no. A page in a browser
//! may not open the WebSocket from a foreign origin, even with the token: a site that a user
//! visits must not reach a gateway on the user's own machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::connection;
use crate::limits::HTTP_HEADER_MS;
use crate::queries;
use crate::seats::Seat;
use crate::server::Shared;

/// The socket that a request came over.
#[derive(Clone)]
struct Socket {
    peer: SocketAddr,
    upgrade: Arc<Mutex<Option<OnUpgrade>>>,
}

/// Serves one socket to its end.
pub(crate) async fn socket<S>(shared: Arc<Shared>, io: S, peer: SocketAddr, seat: Seat)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let upgrade = Arc::default();
    let socket = Socket {
        peer,
        upgrade: Arc::clone(&upgrade),
    };
    let service = TowerToHyperService::new(router(Arc::clone(&shared), socket));
    let http = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(HTTP_HEADER_MS))
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    let mut http = std::pin::pin!(http);
    let served = tokio::select! {
        biased;
        served = &mut http => served,
        () = shared.stopped() => {
            http.as_mut().graceful_shutdown();
            http.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "an HTTP connection broke");
        return;
    }
    let waiting = upgrade
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(waiting) = waiting else { return };
    match waiting.await {
        Ok(upgraded) => connection::run(shared, TokioIo::new(upgraded), peer, seat).await,
        Err(error) => tracing::debug!(%peer, %error, "an upgrade broke"),
    }
}

fn router(shared: Arc<Shared>, socket: Socket) -> Router {
    Router::new()
        .route("/", get(root))
        .route("/healthz", get(live))
        .route("/health", get(live))
        .route("/readyz", get(ready))
        .route("/ready", get(ready))
        .route("/startupz", get(started))
        .route("/startup", get(started))
        .layer(Extension(socket))
        .with_state(shared)
}

async fn live() -> Response {
    answer(StatusCode::OK, json!({"ok": true, "status": "live"}))
}

async fn ready(
    State(shared): State<Arc<Shared>>,
    Extension(socket): Extension<Socket>,
) -> Response {
    let failing = queries::failing(&shared).await;
    let mut body = json!({"ready": failing.is_empty()});
    if is_loopback(socket.peer.ip()) {
        body["failing"] = json!(failing);
        body["uptimeMs"] = json!(shared.uptime_ms());
    }
    answer(
        if failing.is_empty() {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        },
        body,
    )
}

async fn started(State(shared): State<Arc<Shared>>) -> Response {
    if shared.is_stopping() {
        return answer(
            StatusCode::SERVICE_UNAVAILABLE,
            json!({"ok": false, "status": "draining"}),
        );
    }
    let body = json!({"ok": true, "status": "started", "uptimeMs": shared.uptime_ms()});
    answer(StatusCode::OK, body)
}

fn answer(status: StatusCode, body: serde_json::Value) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

async fn root(Extension(socket): Extension<Socket>, mut request: Request) -> Response {
    let headers = request.headers();
    let Some(key) = websocket_key(headers).cloned() else {
        let hint = "this is a Tidegate gateway: its protocol is a WebSocket here, /healthz says whether it lives\n";
        return (
            StatusCode::UPGRADE_REQUIRED,
            [(header::UPGRADE, "websocket")],
            hint,
        )
            .into_response();
    };
    if let Some(origin) = headers.get(header::ORIGIN)
        && !may_come_from(origin, headers.get(header::HOST), socket.peer.ip())
    {
        tracing::warn!(peer = %socket.peer, ?origin, "a page of a foreign origin was refused");
        let why = "origin not allowed: open the gateway's own address in the browser\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    let upgrade = hyper::upgrade::on(&mut request);
    *socket
        .upgrade
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
    let accept = derive_accept_key(key.as_bytes());
    (
        StatusCode::SWITCHING_PROTOCOLS,
        [
            (header::CONNECTION, HeaderValue::from_static("upgrade")),
            (header::UPGRADE, HeaderValue::from_static("websocket")),
            (
                header::SEC_WEBSOCKET_ACCEPT,
                HeaderValue::from_str(&accept).expect("base64 is a header value"),
            ),
        ],
    )
        .into_response()
}

/// The key of a WebSocket upgrade, if the request is one.
fn websocket_key(headers: &HeaderMap) -> Option<&HeaderValue> {
    let says = |name, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| {
                value
                    .split(',')
                    .any(|part| part.trim().eq_ignore_ascii_case(word))
            })
    };
    let asks = says(header::CONNECTION, "upgrade")
        && says(header::UPGRADE, "websocket")
        && headers.get(header::SEC_WEBSOCKET_VERSION)?.as_bytes() == b"13";
    headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| asks)
}

/// Whether a page of this origin may open a WebSocket: one of this machine, or one that the
/// gateway's own address served. A name that only resolves to this machine is neither.
fn may_come_from(origin: &HeaderValue, host: Option<&HeaderValue>, peer: IpAddr) -> bool {
    let Some(origin) = origin
        .to_str()
        .ok()
        .and_then(|text| text.parse::<Uri>().ok())
    else {
        return false;
    };
    let (Some(_), Some(origin)) = (origin.scheme(), origin.authority()) else {
        return false;
    };
    if is_loopback_name(origin.host()) {
        return true;
    }
    let same = host
        .and_then(|host| host.to_str().ok())
        .is_some_and(|host| host.eq_ignore_ascii_case(origin.as_str()));
    same && (ip(origin.host()).is_some() || !is_loopback(peer))
}

fn is_loopback_name(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || ip(host).is_some_and(is_loopback)
}

fn ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site that the user visits can't reach a gateway on the user's machine, not even by a
    /// name that resolves to it.
    #[test]
    fn only_pages_of_this_machine_or_of_the_gateway_may_connect() {
        let may = |origin: &str, host: &str, peer: &str| {
            may_come_from(
                &HeaderValue::from_str(origin).unwrap(),
                Some(&HeaderValue::from_str(host).unwrap()),
                peer.parse().unwrap(),
            )
        };
        assert!(may(
            "http://127.0.0.1:18789",
            "127.0.0.1:18789",
            "127.0.0.1"
        ));
        assert!(may("http://localhost:5173", "127.0.0.1:18789", "127.0.0.1"));
        assert!(may("http://[::1]:18789", "[::1]:18789", "::1"));
        assert!(may(
            "http://192.0.2.7:18789",
            "192.0.2.7:18789",
            "192.0.2.9"
        ));
        assert!(may("http://gate.lan:18789", "gate.lan:18789", "192.0.2.9"));
        assert!(!may("https://evil.example", "127.0.0.1:18789", "127.0.0.1"));
        assert!(!may(
            "http://evil.example:18789",
            "evil.example:18789",
            "127.0.0.1"
        ));
        assert!(!may(
            "http://evil.example:18789",
            "evil.example:18789",
            "::ffff:127.0.0.1"
        ));
        assert!(!may(
            "http://localhost.evil.example",
            "127.0.0.1:18789",
            "127.0.0.1"
        ));
        assert!(!may("null", "127.0.0.1:18789", "127.0.0.1"));
        assert!(!may("http://192.0.2.7:80", "192.0.2.7:18789", "192.0.2.9"));
    }
}
