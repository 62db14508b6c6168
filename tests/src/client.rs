//! A client that speaks plain frames: JSON in, JSON out, no types of the gateway's.

use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::within;

/// What a gateway sends.
#[derive(Clone, Debug)]
pub enum Frame {
    /// A JSON frame.
    Json(Value),
    /// The close of the connection, with its code and reason where it had them.
    Closed(Option<(u16, String)>),
}

/// A refused `connect`.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The error object of the response.
    pub error: Value,
    /// How the connection was closed.
    pub close: Option<(u16, String)>,
}

/// A connected client.
#[derive(Debug)]
pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next_id: u64,
    /// Frames that came while something else was waited for.
    kept: VecDeque<Value>,
    /// The payload of hello.
    pub hello: Value,
}

impl Client {
    /// Opens a socket without a handshake.
    ///
    /// # Panics
    /// If nothing listens there.
    pub async fn open(url: &str) -> Self {
        let (socket, _) = within("the socket opens", connect_async(url))
            .await
            .expect("the gateway listens");
        Self {
            socket,
            next_id: 0,
            kept: VecDeque::new(),
            hello: Value::Null,
        }
    }

    /// Opens a socket and shakes hands.
    ///
    /// # Errors
    /// What the gateway says when it refuses.
    ///
    /// # Panics
    /// If the gateway breaks the protocol.
    pub async fn connect(url: &str, token: &str) -> Result<Self, Refused> {
        Self::connect_with(url, token, &[]).await
    }

    /// The same, for a client that says what it can take.
    ///
    /// # Errors
    /// What the gateway says when it refuses.
    ///
    /// # Panics
    /// If the gateway breaks the protocol.
    pub async fn connect_with(url: &str, token: &str, caps: &[&str]) -> Result<Self, Refused> {
        let mut client = Self::open(url).await;
        let Frame::Json(challenge) = client.frame().await else {
            panic!("closed before the challenge");
        };
        assert_eq!(challenge["event"], "connect.challenge");
        let params = json!({
            "minProtocol": 4, "maxProtocol": 4,
            "client": { "id": "cli", "mode": "cli", "version": "test", "platform": "linux" },
            "caps": caps, "role": "operator", "scopes": ["operator.admin"],
            "auth": { "token": token },
        });
        match client.request("connect", params).await {
            Ok(hello) => {
                client.hello = hello;
                Ok(client)
            }
            Err(error) => {
                let close = match client.frame().await {
                    Frame::Closed(close) => close,
                    Frame::Json(frame) => panic!("a refused client is sent {frame}"),
                };
                Err(Refused { error, close })
            }
        }
    }

    /// Sends a request and gives its id.
    ///
    /// # Panics
    /// If the connection is gone.
    pub async fn send(&mut self, method: &str, params: Value) -> String {
        self.try_send(method, params)
            .await
            .expect("the connection is open")
    }

    /// Sends a request and gives its id; `None` if the connection is gone.
    pub async fn try_send(&mut self, method: &str, params: Value) -> Option<String> {
        self.next_id += 1;
        let id = self.next_id.to_string();
        let frame = json!({ "type": "req", "id": id, "method": method, "params": params });
        self.raw(Message::text(frame.to_string()))
            .await
            .then_some(id)
    }

    /// Sends a message as it is; says whether the connection took it.
    pub async fn raw(&mut self, message: Message) -> bool {
        within("a frame is sent", self.socket.send(message))
            .await
            .is_ok()
    }

    /// The next frame, of the kept ones first.
    pub async fn frame(&mut self) -> Frame {
        match self.kept.pop_front() {
            Some(frame) => Frame::Json(frame),
            None => self.fresh().await,
        }
    }

    async fn fresh(&mut self) -> Frame {
        loop {
            match within("a frame comes", self.socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    return Frame::Json(serde_json::from_str(&text).expect("frames are JSON"));
                }
                Some(Ok(Message::Close(close))) => return Frame::Closed(close.map(close_of)),
                None
                | Some(Err(
                    Error::ConnectionClosed
                    | Error::AlreadyClosed
                    | Error::Io(_)
                    | Error::Protocol(_),
                )) => {
                    return Frame::Closed(None);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => panic!("the gateway sends a bad frame: {error}"),
            }
        }
    }

    /// The next frame that `wanted` takes; others are kept for later.
    ///
    /// # Panics
    /// If the connection closes before.
    pub async fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).expect("the position was just found");
        }
        loop {
            match self.fresh().await {
                Frame::Json(frame) if wanted(&frame) => return frame,
                Frame::Json(frame) => self.kept.push_back(frame),
                Frame::Closed(close) => panic!("closed ({close:?}) before {what}"),
            }
        }
    }

    /// The next response to the request `id`.
    ///
    /// # Errors
    /// The error object of the response.
    ///
    /// # Panics
    /// If the connection closes before.
    pub async fn response(&mut self, id: &str) -> Result<Value, Value> {
        let frame = self
            .find(&format!("response {id}"), |frame| {
                frame["type"] == "res" && frame["id"] == id
            })
            .await;
        if frame["ok"] == true {
            Ok(frame["payload"].clone())
        } else {
            Err(frame["error"].clone())
        }
    }

    /// Sends a request and waits for its first response.
    ///
    /// # Errors
    /// The error object of the response.
    ///
    /// # Panics
    /// If the connection closes before.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.response(&id).await
    }

    /// Waits until the gateway drains: the signal and what is asked race, and once the drain has
    /// begun, a wait is refused. Gives the refusal.
    ///
    /// # Panics
    /// If the connection closes before.
    pub async fn until_it_drains(&mut self) -> Value {
        let wait = json!({ "runId": "nobody", "timeoutMs": 0 });
        loop {
            if let Err(refused) = self.request("agent.wait", wait.clone()).await {
                return refused;
            }
        }
    }

    /// Sends a message for the agent and waits until it is accepted; gives the request's id.
    ///
    /// # Panics
    /// If it is not accepted.
    pub async fn submit(&mut self, session: &str, key: &str, message: &str) -> String {
        let id = self.send("agent", agent(session, key, message)).await;
        let first = self.response(&id).await.expect("the message is taken");
        assert_eq!(first["status"], "accepted", "{first}");
        id
    }

    /// Sends a message for the agent and waits for the final answer, however often the same
    /// key was sent before.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn answer(&mut self, session: &str, key: &str, message: &str) -> Value {
        let id = self.send("agent", agent(session, key, message)).await;
        loop {
            let payload = self.response(&id).await.expect("the message is taken");
            let status = payload["status"].as_str().unwrap_or_default();
            if !matches!(status, "accepted" | "in_flight") {
                return payload;
            }
        }
    }
}

/// The parameters of `agent`.
#[must_use]
fn agent(session: &str, key: &str, message: &str) -> Value {
    json!({ "sessionKey": session, "idempotencyKey": key, "message": message })
}

fn close_of(frame: CloseFrame) -> (u16, String) {
    (frame.code.into(), frame.reason.to_string())
}
