//! An OpenAI-compatible model server that says what the test tells it to say, when the test
//! tells it to: each request becomes a [`Call`] that the test answers piece by piece.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::within;

/// Requests that may wait for the test to look at them.
const WAITING_CALLS: usize = 1_024;

/// The listening server. Dropping it stops it.
#[derive(Debug)]
pub struct Provider {
    port: u16,
    calls: mpsc::Receiver<Call>,
    task: JoinHandle<()>,
}

impl Provider {
    /// Listens on a free port.
    ///
    /// # Panics
    /// If there is none.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let (tx, calls) = mpsc::channel(WAITING_CALLS);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let tx = tx.clone();
                tokio::spawn(async move {
                    if let Some(call) = read(socket).await {
                        let _ = tx.send(call).await;
                    }
                });
            }
        });
        Self { port, calls, task }
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The next request.
    ///
    /// # Panics
    /// If none comes.
    pub async fn call(&mut self) -> Call {
        within("a model call comes", self.calls.recv())
            .await
            .expect("the server runs")
    }

    /// Answers every request from now on with [`reply_to`] its message in `pieces` pieces,
    /// but for those that `kept` takes: they go to `calls`. Each step is told to `moments`.
    pub fn answer_all_but(
        mut self,
        pieces: usize,
        moments: mpsc::UnboundedSender<()>,
        kept: fn(&Call) -> bool,
        calls: mpsc::UnboundedSender<Call>,
    ) -> JoinHandle<()> {
        tokio::spawn(async move {
            while let Some(call) = self.calls.recv().await {
                if kept(&call) {
                    let _ = calls.send(call);
                    continue;
                }
                let moments = moments.clone();
                tokio::spawn(async move { answer(call, pieces, &moments).await });
            }
        })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer that [`Provider::answer_all_but`] gives to a message.
#[must_use]
pub fn reply_to(message: &str) -> String {
    format!("The answer to <{message}> is <{message}>.")
}

async fn answer(mut call: Call, pieces: usize, moments: &mpsc::UnboundedSender<()>) {
    let text = reply_to(&call.message());
    let size = text.len().div_ceil(pieces);
    let _ = moments.send(());
    if !call.begin().await {
        return;
    }
    for piece in text.as_bytes().chunks(size) {
        let piece = std::str::from_utf8(piece).expect("test messages are ASCII");
        if !call.text(piece).await {
            return;
        }
        let _ = moments.send(());
    }
    call.done().await;
    let _ = moments.send(());
}

/// One request, waiting for what the test makes of it.
#[derive(Debug)]
pub struct Call {
    socket: TcpStream,
    /// The request's head: request line and header lines.
    pub head: String,
    /// The request's body.
    pub body: Value,
}

impl Call {
    /// The conversation that was sent, as (role, text).
    #[must_use]
    pub fn conversation(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = self.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        messages
            .iter()
            .map(|row| (text(&row["role"]), text(&row["content"])))
            .collect()
    }

    /// The newest user message.
    #[must_use]
    pub fn message(&self) -> String {
        let user = self
            .conversation()
            .into_iter()
            .rev()
            .find(|(role, _)| role == "user");
        user.map(|(_, text)| text).unwrap_or_default()
    }

    /// Sends the head of a stream. This and what follows say whether the gateway still
    /// listens.
    pub async fn begin(&mut self) -> bool {
        self.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").await
    }

    /// Sends a piece of the answer.
    pub async fn text(&mut self, text: &str) -> bool {
        let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] });
        self.event(&chunk.to_string()).await
    }

    /// Finishes the answer.
    pub async fn done(mut self) -> bool {
        let stop = json!({ "id": "c", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        self.event(&stop.to_string()).await
            && self.event("[DONE]").await
            && self.write("0\r\n\r\n").await
    }

    /// Ends the answer with calls of the tool `exec`: the id and the command of each. They come
    /// in pieces, as providers send them.
    pub async fn asks_for(mut self, calls: &[(&str, &str)]) -> bool {
        for (index, (id, command)) in calls.iter().enumerate() {
            let arguments = json!({ "command": command }).to_string();
            let (one, two) = arguments.split_at(arguments.len() / 2);
            let function = json!({ "name": "exec", "arguments": "" });
            let first =
                json!({ "index": index, "id": id, "type": "function", "function": function });
            let more = |part: &str| json!({ "index": index, "function": { "arguments": part } });
            for piece in [first, more(one), more(two)] {
                let delta = json!({ "tool_calls": [piece] });
                if !self.chunk(&delta, None).await {
                    return false;
                }
            }
        }
        self.chunk(&json!({}), Some("tool_calls")).await
            && self.event("[DONE]").await
            && self.write("0\r\n\r\n").await
    }

    async fn chunk(&mut self, delta: &Value, finish: Option<&str>) -> bool {
        let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": "scripted",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        self.event(&chunk.to_string()).await
    }

    /// The results of tools that were sent, each as its call's id and its text.
    #[must_use]
    pub fn results(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = self.body["messages"].as_array().into_iter().flatten();
        messages
            .filter(|row| row["role"] == "tool")
            .map(|row| (text(&row["tool_call_id"]), text(&row["content"])))
            .collect()
    }

    /// Refuses the request with an HTTP status and an error in the provider's form.
    pub async fn refuse(self, status: u16, message: &str) -> bool {
        self.refuse_with(status, "", message).await
    }

    /// The same, and asks to come back after so many seconds at the earliest.
    pub async fn refuse_for(self, status: u16, seconds: u64, message: &str) -> bool {
        let header = format!("Retry-After: {seconds}\r\n");
        self.refuse_with(status, &header, message).await
    }

    /// Breaks off, wherever it was.
    pub fn break_off(self) {}

    async fn refuse_with(mut self, status: u16, headers: &str, message: &str) -> bool {
        let body = json!({ "error": { "message": message, "type": "test" } }).to_string();
        let length = body.len();
        self.write(&format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ))
        .await
    }

    /// Waits until the gateway has closed the connection.
    ///
    /// # Panics
    /// If it does not.
    pub async fn closed(mut self) {
        let mut byte = [0; 64];
        within("the gateway closes its model call", async {
            while matches!(self.socket.read(&mut byte).await, Ok(n) if n > 0) {}
        })
        .await;
    }

    async fn event(&mut self, data: &str) -> bool {
        let event = format!("data: {data}\n\n");
        self.write(&format!("{:x}\r\n{event}\r\n", event.len()))
            .await
    }

    async fn write(&mut self, text: &str) -> bool {
        self.socket.write_all(text.as_bytes()).await.is_ok()
    }
}

/// Reads one request; `None` if the connection ends before it is whole.
async fn read(mut socket: TcpStream) -> Option<Call> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let length: usize = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0);
    while bytes.len() < head_end + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[head_end..head_end + length]).unwrap_or(Value::Null);
    Some(Call { socket, head, body })
}
