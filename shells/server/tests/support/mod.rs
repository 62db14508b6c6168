//! A gateway without a program around it: the real server, the real driver and the real
//! store, with models that follow a script, and a client that speaks frames.
#![allow(dead_code)] // each test file uses its part
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // the tests own their runtime

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::serve::Listener;
use futures_util::future::BoxFuture;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tidegate_core::{Config, Marker, ModelEnd};
use tidegate_driver::{Client, Driver, ModelCall, ModelEvent, ModelSink, Models, SystemClock};
use tidegate_server::{Server, ServerConfig, TcpPort, Token};
use tidegate_store::{SqliteStore, StateDir};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

pub const TOKEN: &str = "the-token-of-the-tests";

/// What the models do depends on the message alone.
#[derive(Debug)]
struct Script;

impl Models for Script {
    fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd> {
        let message = call
            .transcript
            .last()
            .map(|row| row.text.clone())
            .unwrap_or_default();
        Box::pin(async move {
            match message.as_str() {
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
}

/// A running gateway.
pub struct Gateway {
    pub address: SocketAddr,
    pub client: Client,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    connect: Option<mpsc::Sender<DuplexStream>>,
    _state: tempfile::TempDir,
}

impl Gateway {
    /// On a real port.
    pub async fn start() -> Self {
        let port = TcpPort::bind((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .unwrap();
        let address = port.local_addr().unwrap();
        Self::serve(port, address, None, Config::default())
    }

    /// On pipes in memory, for tests that move the clock.
    pub fn on_pipes() -> Self {
        let (connect, incoming) = mpsc::channel(8);
        let address = (Ipv4Addr::LOCALHOST, 1).into();
        Self::serve(
            Pipes { incoming, address },
            address,
            Some(connect),
            Config::default(),
        )
    }

    fn serve<L>(
        listener: L,
        address: SocketAddr,
        connect: Option<mpsc::Sender<DuplexStream>>,
        config: Config,
    ) -> Self
    where
        L: Listener<Addr = SocketAddr>,
    {
        let state = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&StateDir::acquire(state.path()).unwrap()).unwrap();
        let clock = Arc::new(SystemClock::start());
        let key = store.fingerprint_key();
        let models = Arc::new(Script);
        let (driver, client) = Driver::new(config, store, models, clock.clone(), key);
        tokio::spawn(driver.run());
        let config = ServerConfig {
            token: Token::new(TOKEN),
            version: "0.0.0-test".to_owned(),
            boot_id: "boot".to_owned(),
        };
        let server = Server::new(config, client.clone(), clock);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(listener, async move {
            let _ = stopped.await;
        }));
        Self {
            address,
            client,
            stop: Some(stop),
            served,
            connect,
            _state: state,
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

/// A client's end of a WebSocket.
pub struct Ws<S>(pub WebSocketStream<S>);

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
