//! One WebSocket from challenge to close.
//!
//! Two halves run side by side in one task: the reader starts requests, the writer empties
//! the outbox. When one ends, the other gets a bounded time to say goodbye. Requests under
//! way are dropped with the connection; an accepted run goes on without it (R200).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tidegate_wire::{BadFrame, Challenge, Request, Response, ServerFrame, WireError, event_name};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::events::{Hears, Interest};
use crate::gate::{Gate, GateKey, is_gate_error};
use crate::handshake::{self, Peer, Refusal, Scope};
use crate::limits::{
    CLOSE_GRACE_MS, HANDSHAKE_MS, MAX_PAYLOAD_BYTES, MAX_REQUESTS, PING_MS, PREAUTH_BYTES,
    RETRY_AFTER_MS, WRITE_STALL_MS,
};
use crate::methods::{self, Started};
use crate::outbox::{Out, Outbox, close};
use crate::queries;
use crate::seats::Seat;
use crate::server::Shared;
use crate::tasks::Done;

/// The longest header of a frame, in bytes (RFC 6455, 5.2).
const FRAME_HEADER_BYTES: usize = 14;

/// The buffers of an idle connection: small, because most connections are idle.
const IO_BUFFER_BYTES: usize = 16 * 1024;

type Ws<S> = WebSocketStream<Gate<S>>;

/// Serves one WebSocket to its end.
pub(crate) async fn run<S>(shared: Arc<Shared>, io: S, peer: SocketAddr, seat: Seat)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let (gate, key) = Gate::new(io, PREAUTH_BYTES + FRAME_HEADER_BYTES);
    let config = WebSocketConfig::default()
        .read_buffer_size(IO_BUFFER_BYTES)
        .write_buffer_size(IO_BUFFER_BYTES)
        .max_frame_size(Some(MAX_PAYLOAD_BYTES))
        .max_message_size(Some(MAX_PAYLOAD_BYTES));
    let mut ws = WebSocketStream::from_raw_socket(gate, Role::Server, Some(config)).await;
    let Some(conn_id) = fresh_id() else {
        tracing::error!("the system gives no randomness; a connection was turned away");
        return goodbye(ws, &key, close::INTERNAL, "no randomness").await;
    };
    let limit = Duration::from_millis(HANDSHAKE_MS);
    let first = tokio::select! {
        biased;
        () = shared.stopped() => Err(Stranger::Close(close::RESTART, "service restart")),
        first = timeout(limit, greet(&mut ws, &shared)) => first.unwrap_or(Err(Stranger::Close(close::NORMAL, ""))),
    };
    match first {
        Ok(known) => {
            tracing::debug!(%peer, conn = %conn_id, client = %known.client, "connected");
            key.open();
            session(shared, ws, known, seat, &conn_id).await;
            tracing::debug!(%peer, conn = %conn_id, "disconnected");
        }
        Err(Stranger::Gone) => {}
        Err(Stranger::Close(code, reason)) => goodbye(ws, &key, code, reason).await,
        Err(Stranger::Refused(refusal)) => {
            tracing::warn!(%peer, reason = %refusal.reason, "a handshake was refused");
            let text = ServerFrame::Response(refusal.response).to_text();
            let said = ws.send(Message::text(text));
            if let Ok(Ok(())) = timeout(Duration::from_millis(CLOSE_GRACE_MS), said).await {
                goodbye(ws, &key, refusal.code, &refusal.reason).await;
            }
        }
    }
}

/// A socket that did not come in.
enum Stranger {
    /// It left, or its connection broke.
    Gone,
    /// It is closed without an answer.
    Close(u16, &'static str),
    /// It is answered and closed.
    Refused(Box<Refusal>),
}

impl From<Box<Refusal>> for Stranger {
    fn from(refusal: Box<Refusal>) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Stranger {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) if is_gate_error(&error) => {
                Self::Close(close::TOO_BIG, "preauth payload too large")
            }
            Error::Capacity(CapacityError::MessageTooLong { .. }) => {
                Self::Close(close::TOO_BIG, "preauth payload too large")
            }
            Error::Protocol(_) | Error::Utf8(_) => Self::Close(close::PROTOCOL, "invalid frame"),
            _ => Self::Gone,
        }
    }
}

async fn greet<S>(ws: &mut Ws<S>, shared: &Shared) -> Result<Peer, Stranger>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let challenge = Challenge {
        nonce: fresh_id().ok_or(Stranger::Gone)?,
        ts: shared.wall_ms(),
        capabilities: Vec::new(),
    };
    let event = tidegate_wire::Event {
        event: event_name::CHALLENGE.to_owned(),
        payload: Some(crate::project::to_value(&challenge)),
        seq: None,
        state_version: None,
    };
    ws.send(Message::text(ServerFrame::Event(event).to_text()))
        .await?;
    loop {
        let frame = ws.next().await.ok_or(Stranger::Gone)??;
        match frame {
            Message::Text(_) | Message::Binary(_) => {
                return Ok(handshake::judge(&frame.into_data(), &shared.config.token)?);
            }
            Message::Close(_) => {
                // The next read sends the answer to it.
                let _ = ws.next().await;
                return Err(Stranger::Gone);
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}

async fn session<S>(shared: Arc<Shared>, ws: Ws<S>, peer: Peer, mut seat: Seat, conn_id: &str)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    seat.proved();
    let outbox = Arc::new(Outbox::default());
    let hello = queries::hello(&shared, &peer, conn_id);
    outbox.respond(ServerFrame::Response(Response::ok(peer.request_id.clone(), hello)).to_text());
    let interest = match (peer.holds(Scope::Read), peer.scoped) {
        (false, _) => Interest::Nothing,
        (true, false) => Interest::Everything,
        (true, true) => Interest::Subscribed,
    };
    let hears = Hears {
        runs: interest,
        tools: peer.tools,
        approvals: peer.holds(Scope::Approvals),
    };
    let listening = shared.hub.listen(&outbox, hears);
    if shared.is_stopping() {
        // The hub's own close went out before this connection was in it.
        outbox.close(close::RESTART, "service restart");
    }
    let ping_written = AtomicBool::new(false);
    let (mut sink, mut stream) = ws.split();
    let reader = Reader::new(
        shared,
        Arc::new(peer),
        (Arc::clone(&outbox), listening.id),
        &ping_written,
    );
    let grace = Duration::from_millis(CLOSE_GRACE_MS);
    let ended = {
        let writing = std::pin::pin!(write(&mut sink, &outbox, &ping_written));
        let reading = std::pin::pin!(reader.read(&mut stream));
        match select(writing, reading).await {
            Either::Left((closed, reading)) => {
                // We said goodbye: wait for the peer's.
                if closed.is_ok() {
                    let _ = timeout(grace, reading).await;
                }
                return;
            }
            Either::Right((ended, writing)) => {
                if let ReadEnd::Close(code, reason) = ended {
                    outbox.abandon(code, reason);
                    let _ = timeout(grace, writing).await;
                }
                ended
            }
        }
    };
    if let ReadEnd::Close(..) = ended
        && let Ok(mut ws) = stream.reunite(sink)
    {
        let _ = timeout(grace, read_away(ws.get_mut())).await;
    }
}

/// Empties the outbox into the socket until the close frame is out.
async fn write<S>(
    sink: &mut SplitSink<Ws<S>, Message>,
    outbox: &Outbox,
    ping_written: &AtomicBool,
) -> Result<(), ()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let out = outbox.next().await;
        let (is_ping, is_close) = (out == Out::Ping, matches!(out, Out::Close(..)));
        let message = match out {
            Out::Text(text) => Message::text(text),
            Out::Ping => Message::Ping(Default::default()),
            Out::Close(code, reason) => Message::Close(Some(close_frame(code, &reason))),
        };
        match timeout(Duration::from_millis(WRITE_STALL_MS), sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(()),
            Err(_) => {
                tracing::warn!(
                    "a reader took nothing for {WRITE_STALL_MS} ms; its connection is cut"
                );
                return Err(());
            }
        }
        if is_ping {
            ping_written.store(true, Ordering::Relaxed);
        }
        if is_close {
            return Ok(());
        }
    }
}

/// Why the reader ended.
#[derive(Clone, Copy, Debug)]
enum ReadEnd {
    /// The peer left, or the connection broke.
    Gone,
    /// The peer broke a rule of frames: close with this.
    Close(u16, &'static str),
}

struct Reader<'a> {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    outbox: Arc<Outbox>,
    listener: u64,
    requests: JoinSet<()>,
    /// A request before whose end no further frame is read.
    in_turn: Option<Done>,
    pings: Interval,
    ping_open: bool,
    ping_written: &'a AtomicBool,
}

impl<'a> Reader<'a> {
    fn new(
        shared: Arc<Shared>,
        peer: Arc<Peer>,
        (outbox, listener): (Arc<Outbox>, u64),
        ping_written: &'a AtomicBool,
    ) -> Self {
        let period = Duration::from_millis(PING_MS);
        let mut pings = interval_at(Instant::now() + period, period);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            shared,
            peer,
            outbox,
            listener,
            requests: JoinSet::new(),
            in_turn: None,
            pings,
            ping_open: false,
            ping_written,
        }
    }

    /// Reads frames and starts requests until the peer is gone.
    async fn read<S>(mut self, stream: &mut SplitStream<Ws<S>>) -> ReadEnd
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            let frame = tokio::select! {
                biased;
                Some(ended) = self.requests.join_next(), if !self.requests.is_empty() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a request's task broke; the connection goes on");
                    }
                    continue;
                }
                () = in_turn(&mut self.in_turn), if self.in_turn.is_some() => {
                    self.in_turn = None;
                    continue;
                }
                // Meanwhile no frame is read, so silence says nothing of the peer.
                _ = self.pings.tick(), if self.in_turn.is_none() => {
                    if self.is_dead() {
                        tracing::debug!("a ping was not answered; the connection is cut");
                        return ReadEnd::Gone;
                    }
                    continue;
                }
                frame = stream.next(), if self.in_turn.is_none() => frame,
            };
            self.ping_open = false;
            match frame {
                Some(Ok(frame @ (Message::Text(_) | Message::Binary(_)))) => {
                    self.frame(&frame.into_data())
                }
                Some(Ok(Message::Close(_))) => {
                    // The next read sends the answer to it.
                    let _ = timeout(Duration::from_millis(CLOSE_GRACE_MS), stream.next()).await;
                    return ReadEnd::Gone;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(Error::Capacity(_))) => {
                    return ReadEnd::Close(close::TOO_BIG, "payload too large");
                }
                Some(Err(Error::Protocol(_) | Error::Utf8(_))) => {
                    return ReadEnd::Close(close::PROTOCOL, "invalid frame");
                }
                Some(Err(_)) | None => return ReadEnd::Gone,
            }
        }
    }

    /// Whether the last ping went out and nothing came since. If not, the next one goes out.
    fn is_dead(&mut self) -> bool {
        if self.ping_open {
            // A ping that waits behind a slow reader's frames is the writer's to judge.
            return self.ping_written.load(Ordering::Relaxed);
        }
        self.ping_open = true;
        self.ping_written.store(false, Ordering::Relaxed);
        self.outbox.ping();
        false
    }

    fn frame(&mut self, frame: &[u8]) {
        if self.outbox.is_closing() {
            return;
        }
        let response = match Request::read(frame) {
            Err(BadFrame { id, error }) => Response::err(id, error),
            Ok(request) if self.requests.len() >= MAX_REQUESTS => {
                let why = format!(
                    "this connection has {MAX_REQUESTS} requests under way; wait for one of them"
                );
                Response::err(request.id, WireError::try_later(why, RETRY_AFTER_MS))
            }
            Ok(request) => match methods::start(
                &self.shared,
                &self.peer,
                &self.outbox,
                self.listener,
                request,
            ) {
                Started::Answered(response) => response,
                Started::UnderWay(rest) => {
                    self.requests.spawn(rest);
                    return;
                }
                Started::InTurn(rest) => {
                    self.in_turn = Some(self.shared.tasks.go_on(rest));
                    return;
                }
            },
        };
        self.outbox
            .respond(ServerFrame::Response(response).to_text());
    }
}

/// The end of a request in its turn.
async fn in_turn(request: &mut Option<Done>) {
    if let Some(done) = request {
        let _ = done.await;
    }
}

/// Closes a socket that did not come in.
async fn goodbye<S>(mut ws: Ws<S>, key: &GateKey, code: u16, reason: &str)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let part = async {
        if ws
            .send(Message::Close(Some(close_frame(code, reason))))
            .await
            .is_err()
        {
            return;
        }
        if code == close::TOO_BIG {
            key.open();
            read_away(ws.get_mut()).await;
        } else {
            while let Some(Ok(_)) = ws.next().await {}
        }
    };
    let _ = timeout(Duration::from_millis(CLOSE_GRACE_MS), part).await;
}

/// Reads and forgets: unread bytes would reset the connection and take our last words along.
async fn read_away(io: &mut (impl AsyncRead + Unpin)) {
    let mut sink = vec![0; IO_BUFFER_BYTES];
    while let Ok(1..) = io.read(&mut sink).await {}
}

fn close_frame(code: u16, reason: &str) -> CloseFrame {
    let mut end = reason.len().min(crate::limits::CLOSE_REASON_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    CloseFrame {
        code: CloseCode::from(code),
        reason: reason[..end].into(),
    }
}

/// A fresh name in the form of a random UUID.
fn fresh_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    Some(format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    ))
}
