//! A client of the gateway: one socket, one handshake, requests and what comes back.
//!
//! It repeats nothing by itself and decides nothing. Its only bounds are those of a socket:
//! the handshake, the size of a frame, and silence longer than the gateway's own ticks allow.

use std::future::Future;
use std::io;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tidegate_wire::{
    ClientInfo, ConnectParams, ErrorCode, HelloOk, MAIN_SESSION_KEY, Request, Response,
    ServerFrame, WireError, event_name, method,
};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::exit::Exit;
use crate::problem::{Origin, Problem};
use crate::target::Target;

/// From the first packet to hello (the reference client gives up after 10 s).
const HANDSHAKE_MS: u64 = 10_000;

/// The most bytes of a frame from the gateway (surface 1.1: 25 MiB, with room for its frame).
const FRAME_BYTES: usize = 26 * 1024 * 1024;

/// The gateway's ticks where hello names no interval (surface 1.5).
const TICK_MS: u64 = 30_000;

/// Ticks that may stay out before the connection counts as dead (surface 9.11: two).
const LOST_TICKS: u64 = 2;

/// An open connection.
#[derive(Debug)]
pub struct Rpc {
    socket: WebSocketStream<TcpStream>,
    authority: String,
    silence: Duration,
    next_id: u64,
    /// Why the gateway goes down, once it said so.
    going_down: Option<String>,
    /// What the gateway said about itself.
    pub hello: HelloOk,
}

impl Rpc {
    /// Connects and shakes hands, and hears of every run.
    ///
    /// # Errors
    /// As [`Rpc::connect_with`].
    pub async fn connect(target: &Target, scopes: &[&str]) -> Result<Self, Problem> {
        Self::connect_with(target, scopes, &[]).await
    }

    /// Connects and shakes hands; `caps` is what the client can take beside the usual.
    ///
    /// # Errors
    /// [`Exit::Unreachable`] if no gateway answers there, [`Exit::Failed`] if it refuses.
    pub async fn connect_with(
        target: &Target,
        scopes: &[&str],
        caps: &[&str],
    ) -> Result<Self, Problem> {
        let authority = target.address.authority();
        let shaking = async {
            let socket = open(target).await?;
            let mut rpc = Self {
                socket,
                authority: authority.clone(),
                silence: Duration::from_millis(HANDSHAKE_MS),
                next_id: 0,
                going_down: None,
                hello: HelloOk {
                    kind: String::new(),
                    protocol: 0,
                    server: Default::default(),
                    features: Default::default(),
                    snapshot: Default::default(),
                    auth: Default::default(),
                    policy: Default::default(),
                },
            };
            rpc.shake_hands(target, scopes, caps).await?;
            Ok(rpc)
        };
        let silent = || {
            Problem::unreachable(format!(
                "{authority} takes connections and does not shake hands within {} s",
                HANDSHAKE_MS / 1_000
            ))
            .remedy("Another program may listen there; name the gateway's port with --port.")
        };
        bounded(Duration::from_millis(HANDSHAKE_MS), shaking, silent).await
    }

    async fn shake_hands(
        &mut self,
        target: &Target,
        scopes: &[&str],
        caps: &[&str],
    ) -> Result<(), Problem> {
        loop {
            match self.next().await? {
                ServerFrame::Event(event) if event.event == event_name::CHALLENGE => break,
                _ => {}
            }
        }
        let token = target.token.clone().ok_or_else(|| {
            Problem::configuration(format!(
                "there is no token to show to {}: {} keeps none",
                self.authority,
                target.state_dir.display()
            ))
            .remedy(
                "Name the gateway's state directory with --state-dir, or its token with --token.",
            )
        })?;
        let client = ClientInfo {
            id: "cli".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            platform: std::env::consts::OS.into(),
            mode: "cli".into(),
            ..ClientInfo::default()
        };
        let mut connect = ConnectParams::operator(client, token, scopes);
        connect.caps.extend(caps.iter().map(ToString::to_string));
        let hello = self
            .request(method::CONNECT, Some(params(&connect)))
            .await?;
        self.hello = serde_json::from_value(hello).map_err(|error| {
            Problem::transport(format!(
                "{} answers with a hello that is none: {error}",
                self.authority
            ))
        })?;
        let tick = match self.hello.policy.tick_interval_ms {
            0 => TICK_MS,
            ms => ms,
        };
        self.silence = Duration::from_millis(tick.saturating_mul(LOST_TICKS));
        Ok(())
    }

    /// Sends a request and gives its id.
    ///
    /// # Errors
    /// If the connection is gone.
    pub async fn send(&mut self, method: &str, params: Option<Value>) -> Result<String, Problem> {
        self.next_id += 1;
        let id = self.next_id.to_string();
        let request = Request {
            id: id.clone(),
            method: method.into(),
            params,
        };
        match self.socket.send(Message::text(request.to_text())).await {
            Ok(()) => Ok(id),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// The next frame of the gateway. Nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// If the connection ends, falls silent, or carries something else than frames.
    pub async fn next(&mut self) -> Result<ServerFrame, Problem> {
        loop {
            let message = tokio::time::timeout(self.silence, self.socket.next()).await;
            let text = match message {
                Ok(Some(Ok(Message::Text(text)))) => text,
                Ok(Some(Ok(Message::Close(close)))) => return Err(self.closed(close)),
                Ok(Some(Ok(_))) => continue,
                Ok(Some(Err(error))) => return Err(self.broken(&error)),
                Ok(None) => return Err(self.closed(None)),
                Err(_) => {
                    return Err(Problem::transport(format!(
                        "{} has been silent for {} s",
                        self.authority,
                        self.silence.as_secs()
                    )));
                }
            };
            let frame = ServerFrame::read(&text).map_err(|error| {
                Problem::transport(format!(
                    "{} sends a frame that is none: {error}",
                    self.authority
                ))
            })?;
            if let ServerFrame::Event(event) = &frame
                && event.event == event_name::SHUTDOWN
            {
                let reason = event.payload.as_ref().and_then(|p| p["reason"].as_str());
                self.going_down = Some(reason.unwrap_or("no reason given").to_owned());
            }
            return Ok(frame);
        }
    }

    /// Sends a request and waits for its first response.
    ///
    /// # Errors
    /// As [`Rpc::send`] and [`Rpc::next`], and what the gateway refuses.
    pub async fn request(&mut self, method: &str, params: Option<Value>) -> Result<Value, Problem> {
        let id = self.send(method, params).await?;
        loop {
            if let ServerFrame::Response(response) = self.next().await?
                && response.id == id
            {
                return payload(response);
            }
        }
    }

    /// Says goodbye. What does not work about it does not matter any more.
    pub async fn close(mut self) {
        let _ = self.socket.close(None).await;
    }

    fn closed(&self, close: Option<CloseFrame>) -> Problem {
        let how = match close {
            Some(frame) if frame.reason.is_empty() => format!(" ({})", u16::from(frame.code)),
            Some(frame) => format!(" ({}: {})", u16::from(frame.code), frame.reason),
            None => String::new(),
        };
        let why = self
            .going_down
            .as_ref()
            .map(|why| format!("; it goes down: {why}"));
        Problem::transport(format!(
            "{} closed the connection{how}{}",
            self.authority,
            why.unwrap_or_default()
        ))
    }

    fn broken(&self, error: &WsError) -> Problem {
        match error {
            WsError::ConnectionClosed | WsError::AlreadyClosed => self.closed(None),
            error => Problem::transport(format!(
                "the connection to {} broke: {error}",
                self.authority
            )),
        }
    }
}

async fn bounded<T>(
    bound: Duration,
    work: impl Future<Output = Result<T, Problem>>,
    late: impl FnOnce() -> Problem,
) -> Result<T, Problem> {
    match tokio::time::timeout(bound, work).await {
        Ok(result) => result,
        Err(_) => Err(late()),
    }
}

async fn open(target: &Target) -> Result<WebSocketStream<TcpStream>, Problem> {
    let address = &target.address;
    let authority = address.authority();
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await;
    let stream = stream.map_err(|error| no_gateway(&authority, &error))?;
    // Frames are small and each is waited for.
    let _ = stream.set_nodelay(true);
    let config = WebSocketConfig::default()
        .max_message_size(Some(FRAME_BYTES))
        .max_frame_size(Some(FRAME_BYTES));
    let url = format!("ws://{authority}/");
    match client_async_with_config(url, stream, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(error) => Err(Problem::unreachable(format!(
            "{authority} answers, and is not a gateway: {error}"
        ))
        .remedy("Another program listens there; name the gateway's port with --port.")),
    }
}

fn no_gateway(authority: &str, error: &io::Error) -> Problem {
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        _ => error.to_string(),
    };
    Problem::unreachable(format!("no gateway answers at {authority} ({why})"))
        .remedy("Start one with `tidegate gateway run`, or name another with --port or --url.")
}

/// The session of a message that names none.
pub fn main_session(rpc: &Rpc) -> String {
    match rpc
        .hello
        .snapshot
        .session_defaults
        .main_session_key
        .as_str()
    {
        "" => MAIN_SESSION_KEY.into(),
        key => key.into(),
    }
}

/// A parameter object as JSON.
pub fn params(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("parameters have string keys and finite numbers only")
}

/// The payload of a response.
///
/// # Errors
/// What the gateway refuses.
pub fn payload(response: Response) -> Result<Value, Problem> {
    match (response.ok, response.error) {
        (true, _) => Ok(response.payload.unwrap_or(Value::Null)),
        (false, Some(error)) => Err(refused(&error)),
        (false, None) => Err(Problem::transport(
            "the gateway refuses and does not say why",
        )),
    }
}

/// An error answer of the gateway.
pub fn refused(error: &WireError) -> Problem {
    let mut problem = Problem::new(Exit::Failed, Origin::Gateway, error.message.clone());
    problem.code = serde_json::to_value(error.code)
        .ok()
        .and_then(|code| code.as_str().map(Into::into));
    problem.retryable = Some(error.retryable.unwrap_or(false));
    problem.details = error.details.clone().map(Box::new);
    problem.remedy = remedy(error);
    problem
}

fn remedy(error: &WireError) -> Option<String> {
    if error
        .details_code()
        .is_some_and(|code| code.starts_with("AUTH_"))
    {
        return Some(
            "The token lies in the gateway's state directory: name that with --state-dir, or the \
             token with --token or TIDEGATE_GATEWAY_TOKEN."
                .into(),
        );
    }
    if error.code == ErrorCode::ApprovalNotFound {
        return Some("`tidegate approvals list` says what waits.".into());
    }
    if error.message.starts_with("unknown method") {
        return Some(format!("This gateway has: {}.", method::ALL.join(", ")));
    }
    // How long a drain takes is not known; the message says when to send it again.
    if error.details_reason() == Some("gateway-restarting") {
        return None;
    }
    let wait = error.retry_after_ms?;
    Some(format!("Try again in {} s.", wait.div_ceil(1_000)))
}
