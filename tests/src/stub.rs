//! A gateway that is played by the test: for what a real one does not do on request.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async};

use crate::command::Running;
use crate::within;

/// A played gateway that waits for its client.
#[derive(Debug)]
pub struct Stub {
    listener: TcpListener,
}

impl Stub {
    /// Listens on a free port.
    ///
    /// # Panics
    /// If there is none.
    pub async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        Self { listener }
    }

    /// Starts a client command that leads here.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Running {
        self.leading(args, Running::start)
    }

    /// The same in a terminal.
    #[must_use]
    pub fn in_terminal(&self, args: &[&str]) -> Running {
        self.leading(args, Running::in_terminal)
    }

    /// Starts a chat that leads here, through a pipe.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn chat(&self) -> Running {
        self.leading(&["chat"], Running::talking)
    }

    fn leading(&self, args: &[&str], start: fn(&[&str]) -> Running) -> Running {
        let port = self
            .listener
            .local_addr()
            .expect("it is bound")
            .port()
            .to_string();
        let mut all = args.to_vec();
        all.extend(["--port", &port, "--token", "any", "--state-dir", "/nowhere"]);
        start(&all)
    }

    /// Takes the client's socket and shakes hands.
    ///
    /// # Panics
    /// If the client breaks the protocol.
    pub async fn welcome(&self) -> Played {
        let mut played = self.open().await;
        let challenge = json!({ "nonce": "n", "ts": 1 });
        played.event("connect.challenge", challenge).await;
        let connect = played.request().await;
        assert_eq!(connect["method"], "connect");
        let hello = json!({ "type": "hello-ok", "protocol": 4 });
        played.ok(&connect, hello).await;
        played
    }

    /// Takes the client's socket and says nothing.
    ///
    /// # Panics
    /// If no client comes.
    pub async fn open(&self) -> Played {
        let (socket, _) = within("a client comes", self.listener.accept())
            .await
            .expect("a socket");
        let socket = within("it upgrades", accept_async(socket))
            .await
            .expect("a WebSocket");
        Played { socket }
    }
}

/// A played gateway and its client.
#[derive(Debug)]
pub struct Played {
    socket: WebSocketStream<TcpStream>,
}

impl Played {
    /// The client's next request.
    ///
    /// # Panics
    /// If the client leaves.
    pub async fn request(&mut self) -> Value {
        let message = within("the client asks", self.socket.next()).await;
        let text = message
            .expect("the client is there")
            .expect("a frame")
            .into_text();
        serde_json::from_str(&text.expect("a text frame")).expect("frames are JSON")
    }

    /// Answers a request.
    pub async fn ok(&mut self, request: &Value, payload: Value) {
        self.raw(
            &json!({ "type": "res", "id": request["id"], "ok": true, "payload": payload })
                .to_string(),
        )
        .await;
    }

    /// Refuses a request.
    pub async fn refuse(&mut self, request: &Value, error: Value) {
        self.raw(
            &json!({ "type": "res", "id": request["id"], "ok": false, "error": error }).to_string(),
        )
        .await;
    }

    /// Tells an event.
    pub async fn event(&mut self, name: &str, payload: Value) {
        self.raw(&json!({ "type": "event", "event": name, "payload": payload }).to_string())
            .await;
    }

    /// Sends a text as it is.
    ///
    /// # Panics
    /// If the client is gone.
    pub async fn raw(&mut self, text: &str) {
        let sent = within("a frame is sent", self.socket.send(Message::text(text))).await;
        sent.expect("the client is there");
    }

    /// Closes with a code and a reason.
    ///
    /// # Panics
    /// If the client is gone.
    pub async fn close(&mut self, code: u16, reason: &str) {
        let frame = CloseFrame {
            code: code.into(),
            reason: reason.to_owned().into(),
        };
        self.socket
            .close(Some(frame))
            .await
            .expect("the client is there");
    }
}
