//! A gateway without a program around it: the real server, the real driver and the real
//! store, with models that follow a script, and a client that speaks frames.
#![allow(dead_code, reason = "each test file uses its part of the support")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // the tests own their runtime

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::serve::Listener;
use futures_util::future::BoxFuture;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tidegate_core::{Config, Marker, ModelEnd, Now};
use tidegate_driver::{
    Client, Clock, Driver, ModelCall, ModelEvent, ModelSink, Models, Role, SystemClock,
};
use tidegate_server::{Server, ServerConfig, TcpPort, Token};
use tidegate_store::{SqliteStore, StateDir};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

/// How long the answer to `bulk` is.
pub const BULK_BYTES: usize = 60_000;

pub const TOKEN: &str = "the-token-of-the-tests";

/// The piece after which the provider is away: the call fails with 503.
pub const AWAY: &str = "<away>";

/// The machine's clock, which the test may set forward.
struct Ahead {
    clock: SystemClock,
    ms: AtomicU64,
}

impl Clock for Ahead {
    fn now(&self) -> Now {
        let (now, ms) = (self.clock.now(), self.ms.load(Ordering::Relaxed));
        Now {
            time: now.time.plus(ms),
            ..now
        }
    }
}

/// What the models do depends on the message alone; a message that begins with `step` is
/// answered by the pieces that the test gives.
#[derive(Debug)]
struct Script {
    pieces: Arc<Mutex<mpsc::UnboundedReceiver<Option<&'static str>>>>,
}

impl Models for Script {
    fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd> {
        let message = call
            .transcript
            .iter()
            .rfind(|row| row.role == Role::User)
            .map(|row| row.text.clone())
            .unwrap_or_default();
        let pieces = Arc::clone(&self.pieces);
        Box::pin(async move {
            match message.as_str() {
                "bulk" => sink.send(ModelEvent::Text("b".repeat(BULK_BYTES))).await,
                step if step.starts_with("step") => {
                    let mut pieces = pieces.lock().await;
                    while let Some(Some(piece)) = pieces.recv().await {
                        if piece == AWAY {
                            return sink.fail(Some(503), Marker::None, "its own words").await;
                        }
                        sink.send(ModelEvent::Text(piece.to_owned())).await;
                    }
                }
                "refuse" => return sink.fail(Some(401), Marker::None, "no such key").await,
                "hang" => {
                    sink.send(ModelEvent::Text("so far".to_owned())).await;
                    std::future::pending::<()>().await;
                }
                _ => {
                    sink.send(ModelEvent::Text("you said ".to_owned())).await;
                    sink.send(ModelEvent::Text(message)).await;
                }
            }
            ModelEnd::Completed
        })
    }

    fn name(&self, candidate: u16) -> Arc<str> {
        format!("script/{candidate}").into()
    }
}

/// A running gateway.
pub struct Gateway {
    pub address: SocketAddr,
    pub client: Client,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    driven: JoinHandle<Result<(), tidegate_driver::DriverError>>,
    connect: Option<mpsc::Sender<DuplexStream>>,
    state: tempfile::TempDir,
    pieces: mpsc::UnboundedSender<Option<&'static str>>,
    clock: Arc<Ahead>,
    boots: u32,
}

impl Gateway {
    /// On a real port.
    pub async fn start() -> Self {
        Self::configured(Config::default()).await
    }

    /// On a real port, with a core that is configured otherwise.
    pub async fn configured(config: Config) -> Self {
        Self::over(tempfile::tempdir().unwrap(), config, 1).await
    }

    async fn over(state: tempfile::TempDir, config: Config, boots: u32) -> Self {
        let port = TcpPort::bind((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .unwrap();
        let address = port.local_addr().unwrap();
        Self::serve(port, address, None, (config, state, boots), async {})
    }

    /// Stops it in the middle of its work, and starts another one over the same state.
    pub async fn restart(mut self, config: Config) -> Self {
        self.ask_to_stop();
        self.served.await.unwrap();
        self.client.stop().await;
        self.driven.await.unwrap().unwrap();
        Self::over(self.state, config, self.boots + 1).await
    }

    /// Begins a drain; it is over when the handle is.
    pub async fn drain(&self) -> JoinHandle<()> {
        let client = self.client.clone();
        let drain = tokio::spawn(async move { client.drain(None).await });
        while !self.client.status().await.unwrap().draining {}
        drain
    }

    /// Gives the model that answers a `step` a piece to say; `None` ends its answer.
    pub fn say(&self, piece: impl Into<Option<&'static str>>) {
        self.pieces.send(piece.into()).unwrap();
    }

    /// Sets the clock forward by so much, and lets the driver look at it.
    pub async fn pass(&self, ms: u64) {
        self.clock.ms.fetch_add(ms, Ordering::Relaxed);
        self.client.status().await.unwrap();
    }

    /// On pipes in memory, for tests that move the clock.
    pub fn on_pipes() -> Self {
        Self::woken(async {})
    }

    /// The same, whose driver answers nothing before it is woken.
    pub fn asleep() -> (Self, oneshot::Sender<()>) {
        let (wake, woken) = oneshot::channel();
        let gateway = Self::woken(async move {
            let _ = woken.await;
        });
        (gateway, wake)
    }

    fn woken(woken: impl Future<Output = ()> + Send + 'static) -> Self {
        let (connect, incoming) = mpsc::channel(8);
        let address = (Ipv4Addr::LOCALHOST, 1).into();
        Self::serve(
            Pipes { incoming, address },
            address,
            Some(connect),
            (Config::default(), tempfile::tempdir().unwrap(), 1),
            woken,
        )
    }

    fn serve<L>(
        listener: L,
        address: SocketAddr,
        connect: Option<mpsc::Sender<DuplexStream>>,
        (config, state, boots): (Config, tempfile::TempDir, u32),
        woken: impl Future<Output = ()> + Send + 'static,
    ) -> Self
    where
        L: Listener<Addr = SocketAddr>,
    {
        let store = SqliteStore::open(&StateDir::acquire(state.path()).unwrap()).unwrap();
        let clock = Arc::new(Ahead {
            clock: SystemClock::start(),
            ms: AtomicU64::new(0),
        });
        let key = store.fingerprint_key();
        let (pieces, rx) = mpsc::unbounded_channel();
        let models = Arc::new(Script {
            pieces: Arc::new(Mutex::new(rx)),
        });
        let tools = Arc::new(tidegate_driver::NoTools);
        let (driver, client) = Driver::new(config, store, models, tools, clock.clone(), key);
        let driven = tokio::spawn(async move {
            woken.await;
            driver.run().await
        });
        let config = ServerConfig {
            token: Token::new(TOKEN),
            version: "0.0.0-test".to_owned(),
            boot_id: format!("boot-{boots}"),
        };
        let server = Server::new(config, client.clone(), clock.clone());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(listener, async move {
            let _ = stopped.await;
        }));
        Self {
            address,
            client,
            stop: Some(stop),
            served,
            driven,
            connect,
            state,
            pieces,
            clock,
            boots,
        }
    }

    /// Asks the server to stop and waits until it has.
    pub async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.served.await.unwrap();
    }

    /// Asks the server to stop.
    pub fn ask_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// A raw socket.
    pub async fn socket(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// A raw pipe with room for `bytes`.
    pub async fn pipe(&self, bytes: usize) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(bytes);
        self.connect
            .as_ref()
            .expect("started on pipes")
            .send(theirs)
            .await
            .unwrap();
        ours
    }

    /// A WebSocket that has not said anything yet.
    pub async fn open(&self) -> Ws<TcpStream> {
        Ws::upgrade(self.socket().await, &[]).await.unwrap()
    }

    /// A WebSocket past its handshake.
    pub async fn connect(&self) -> Ws<TcpStream> {
        let mut ws = self.open().await;
        ws.hello(connect_params()).await;
        ws
    }

    /// One that hears only of the sessions that it subscribes to.
    pub async fn connect_scoped(&self) -> Ws<TcpStream> {
        let mut ws = self.open().await;
        let mut params = connect_params();
        params["caps"] = json!(["session-scoped-events"]);
        ws.hello(params).await;
        ws
    }
}

/// A listener whose sockets are pipes.
struct Pipes {
    incoming: mpsc::Receiver<DuplexStream>,
    address: SocketAddr,
}

impl Listener for Pipes {
    type Io = DuplexStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (DuplexStream, SocketAddr) {
        match self.incoming.recv().await {
            Some(pipe) => (pipe, self.address),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Parameters of a good handshake.
pub fn connect_params() -> Value {
    json!({
        "minProtocol": 4, "maxProtocol": 4,
        "client": {"id": "cli", "version": "2026.9.6", "platform": "linux", "deviceFamily": "Linux",
                   "mode": "cli", "instanceId": "54ad046a-8785-4683-9317-9dcd4e7d3085"},
        "caps": [], "auth": {"token": TOKEN}, "role": "operator", "scopes": ["operator.admin"],
    })
}

/// Whether a frame is the `chat` terminal of a run.
pub fn is_terminal(frame: &Value, run: &str) -> bool {
    frame["event"] == "chat"
        && frame["payload"]["runId"] == run
        && ["final", "aborted", "error"].contains(&frame["payload"]["state"].as_str().unwrap_or(""))
}

/// Whether a frame is an event of a `chat` in this state.
pub fn is_chat(frame: &Value, run: &str, state: &str) -> bool {
    frame["event"] == "chat"
        && frame["payload"]["runId"] == run
        && frame["payload"]["state"] == state
}

/// A client's end of a WebSocket.
pub struct Ws<S>(pub WebSocketStream<S>);

/// The same over a real socket.
pub type Socket = Ws<TcpStream>;

/// The end of a WebSocket as a client sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed(pub u16, pub String);

impl<S: AsyncRead + AsyncWrite + Unpin> Ws<S> {
    pub async fn upgrade(io: S, headers: &[(&'static str, &str)]) -> Result<Self, Error> {
        let mut request = "ws://127.0.0.1:1/".into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let (ws, _) = tokio_tungstenite::client_async(request, io).await?;
        Ok(Self(ws))
    }

    pub async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    pub async fn request(&mut self, id: &str, method: &str, params: Value) {
        self.send(json!({"type": "req", "id": id, "method": method, "params": params}))
            .await;
    }

    /// A request that goes out with the next one, in one write.
    pub async fn feed(&mut self, id: &str, method: &str, params: Value) {
        let frame = json!({"type": "req", "id": id, "method": method, "params": params});
        self.0.feed(Message::text(frame.to_string())).await.unwrap();
    }

    /// The next frame, or how the socket ended.
    pub async fn next(&mut self) -> Result<Value, Closed> {
        loop {
            return match self.0.next().await {
                Some(Ok(Message::Text(text))) => Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(Some(frame)))) => Err(Closed(
                    CloseCode::into(frame.code),
                    frame.reason.to_string(),
                )),
                Some(Ok(Message::Close(None))) => Err(Closed(1005, String::new())),
                Some(Ok(_)) => continue,
                Some(Err(error)) => Err(Closed(1006, error.to_string())),
                None => Err(Closed(1006, "ended".to_owned())),
            };
        }
    }

    /// The next response to a request; events before it are passed over.
    pub async fn response(&mut self, id: &str) -> Value {
        loop {
            let frame = self.next().await.unwrap();
            if frame["type"] == "res" && frame["id"] == id {
                return frame;
            }
        }
    }

    /// A request and its first response.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.request("call", method, params).await;
        self.response("call").await
    }

    /// Reads on until an event comes that is as wanted; all that was seen, it is the last.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next().await.unwrap());
            if seen.last().is_some_and(&wanted) {
                return seen;
            }
        }
    }

    /// Reads on until each of these runs has its `chat` terminal; all that was seen.
    pub async fn until_ended(&mut self, runs: &[&str]) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let ended = |run: &&str| seen.iter().any(|frame| is_terminal(frame, run));
            if runs.iter().all(ended) {
                return seen;
            }
            seen.push(self.next().await.unwrap());
        }
    }

    /// Sends a message of a conversation; the response's payload.
    pub async fn chat(&mut self, key: &str, run: &str, message: &str) -> Value {
        let params = json!({"sessionKey": key, "message": message, "idempotencyKey": run});
        let answer = self.call("chat.send", params).await;
        assert_eq!(answer["ok"], true, "{answer}");
        answer["payload"].clone()
    }

    /// The handshake; its payload.
    pub async fn hello(&mut self, params: Value) -> Value {
        let challenge = self.next().await.unwrap();
        assert_eq!(challenge["event"], "connect.challenge");
        self.request("connect", "connect", params).await;
        let hello = self.next().await.unwrap();
        assert_eq!(hello["ok"], true, "{hello}");
        hello["payload"].clone()
    }
}
