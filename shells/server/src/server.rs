//! Accepts sockets, ticks, and takes everything down in order.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tidegate_core::Now;
use tidegate_driver::{Client, Clock};
use tidegate_wire::{Shutdown, Tick, event_name};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at, timeout};

use crate::commands::Recent;
use crate::events::Hub;
use crate::http;
use crate::limits::{EVENTS_CAPACITY, REFUSAL_MS, SHUTDOWN_MS, TICK_MS};
use crate::outbox::close;
use crate::seats::{NoSeat, Seats};
use crate::tasks::Tasks;
use crate::token::Token;

/// What a server needs to know.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The secret that makes a client the operator.
    pub token: Token,
    /// The gateway's version, as hello and `status` tell it.
    pub version: String,
    /// A name for this start of the gateway.
    pub boot_id: String,
}

/// What all connections share.
pub(crate) struct Shared {
    pub config: ServerConfig,
    pub client: Client,
    pub clock: Arc<dyn Clock>,
    pub hub: Arc<Hub>,
    pub seats: Seats,
    pub commands: Recent,
    pub tasks: Tasks,
    started: Now,
    stopping: watch::Sender<bool>,
}

impl Shared {
    /// Milliseconds since the server was made.
    pub fn uptime_ms(&self) -> u64 {
        self.clock.now().time.since(self.started.time)
    }

    /// Wall time in milliseconds.
    pub fn wall_ms(&self) -> u64 {
        self.clock.now().wall.0
    }

    /// Whether the server is going down.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Returns when the server goes down.
    pub async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives in `self`, so the wait can't fail.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }
}

/// The gateway's network side.
pub struct Server {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server of a driver. Nothing is served before [`Server::serve`].
    #[must_use]
    pub fn new(config: ServerConfig, client: Client, clock: Arc<dyn Clock>) -> Self {
        let started = clock.now();
        let shared = Shared {
            config,
            client,
            clock,
            hub: Arc::new(Hub::default()),
            seats: Seats::default(),
            commands: Recent::default(),
            tasks: Tasks::default(),
            started,
            stopping: watch::channel(false).0,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Serves until `shutdown` is done; then tells all connections, closes them with 1012 and
    /// returns when they have ended, after [`SHUTDOWN_MS`] at the latest. The driver is not
    /// stopped: that is for whoever made it.
    pub async fn serve<L>(self, mut listener: L, shutdown: impl Future<Output = ()>)
    where
        L: Listener<Addr = SocketAddr>,
    {
        let shared = self.shared;
        let mut sockets = JoinSet::new();
        let mut carrier = JoinSet::new();
        let (hub, client) = (Arc::clone(&shared.hub), shared.client.clone());
        let events = client.subscribe(EVENTS_CAPACITY);
        carrier.spawn(async move { hub.carry(client, events).await });
        let (hub, client) = (Arc::clone(&shared.hub), shared.client.clone());
        carrier.spawn(async move { hub.carry_rows(client).await });
        let period = Duration::from_millis(TICK_MS);
        let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                _ = ticks.tick() => shared.hub.tell(event_name::TICK, &Tick { ts: shared.wall_ms() }),
                Some(ended) = sockets.join_next(), if !sockets.is_empty() => note_panic(ended),
                (io, peer) = listener.accept() => match shared.seats.take(peer.ip()) {
                    Ok(seat) => {
                        sockets.spawn(http::socket(Arc::clone(&shared), io, peer, seat));
                    }
                    Err(why) => {
                        tracing::warn!(%peer, ?why, "a socket was refused");
                        sockets.spawn(refuse(io, why));
                    }
                },
            }
        }
        drop(listener);
        stop(&shared, sockets).await;
    }
}

async fn stop(shared: &Shared, mut sockets: JoinSet<()>) {
    let reason = "gateway stopping".to_owned();
    shared.hub.tell(
        event_name::SHUTDOWN,
        &Shutdown {
            reason,
            restart_expected_ms: None,
        },
    );
    shared.stopping.send_replace(true);
    shared.hub.close(close::RESTART, "service restart");
    let all = async {
        while let Some(ended) = sockets.join_next().await {
            note_panic(ended);
        }
    };
    if timeout(Duration::from_millis(SHUTDOWN_MS), all)
        .await
        .is_err()
    {
        tracing::warn!("connections that did not close in time were cut");
    }
}

fn note_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task broke; the others go on");
    }
}

/// Says why there is no place, for as long as a refused socket may take.
async fn refuse(mut io: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin, why: NoSeat) {
    let body = match why {
        NoSeat::Full => "the gateway has as many connections as it may\n",
        NoSeat::Strangers => "too many connections of this address that have not authenticated\n",
    };
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let say = async {
        io.write_all(head.as_bytes()).await?;
        io.write_all(body.as_bytes()).await?;
        io.shutdown().await?;
        // What the peer sends is read away: unread bytes would reset the connection and take
        // the answer with them.
        let mut sink = [0; 1024];
        while io.read(&mut sink).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = timeout(Duration::from_millis(REFUSAL_MS), say).await;
}
