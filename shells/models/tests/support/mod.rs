//! A model server on the loopback that does what a test tells it, byte by byte, and a call
//! to it. A test reads as a script: who writes what, then what the other side saw.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::ErrorKind;
use std::sync::Arc;

use tidegate_core::{Attempt, CallEnd, Marker, ModelEnd, ProviderError, RunId, SessionId, Wall};
use tidegate_driver::{
    CallText, ModelCall, ModelEvent, ModelSink, Models, Role, RowMark, ToolAnswer, ToolSpec,
    TranscriptRow,
};
use tidegate_models::{Candidate, Chain, OpenAiChat, ReqwestTransport, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub const KEY: &str = "open-sesame-42";

/// The head of a streamed answer whose end is marked.
pub const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub struct Server(TcpListener);

impl Server {
    pub async fn start() -> Self {
        Self(
            TcpListener::bind("127.0.0.1:0")
                .await
                .expect("the loopback has a free port"),
        )
    }

    pub fn place(&self) -> String {
        self.0
            .local_addr()
            .expect("the listener is bound")
            .to_string()
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.place())
    }

    /// Starts a call to this server.
    pub fn call(&self) -> Call {
        Call::start(&provider(&self.url()), vec![user("hello")])
    }

    /// The next connection, with its whole request.
    pub async fn accept(&self) -> Connection {
        let mut connection = self.accept_raw().await;
        connection.next_request().await;
        connection
    }

    /// The next connection, with nothing read from it.
    pub async fn accept_raw(&self) -> Connection {
        let (stream, _) = self.0.accept().await.expect("the client connects");
        Connection {
            stream,
            request: String::new(),
        }
    }

    /// Whether somebody has connected and was not accepted. Asks the system itself, so it
    /// misses nothing.
    pub fn somebody_waits(self) -> bool {
        let listener = self.0.into_std().expect("the listener leaves the runtime");
        match listener.accept() {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        }
    }
}

pub struct Connection {
    stream: TcpStream,
    /// Head and body, as they came.
    pub request: String,
}

impl Connection {
    /// Waits for a whole request and keeps it.
    pub async fn next_request(&mut self) {
        let mut bytes = Vec::new();
        loop {
            let read = self
                .stream
                .read_buf(&mut bytes)
                .await
                .expect("the request arrives");
            assert_ne!(read, 0, "the client left in the middle of its request");
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                self.request = text;
                return;
            }
        }
    }

    /// Writes bytes. The client may have hung up: that is the test's business, not ours.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Writes a piece of a chunked body.
    pub async fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.write([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
            .await;
    }

    /// Marks the end of a chunked body.
    pub async fn end(&mut self) {
        self.write("0\r\n\r\n").await;
    }

    /// Answers with a status and a body of a known length.
    pub async fn answer(&mut self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        self.write(format!(
            "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Breaks the connection.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("the socket is open");
    }

    /// Waits until the client hangs up.
    pub async fn hung_up(mut self) {
        let mut byte = [0];
        match self.stream.read(&mut byte).await {
            Ok(0) => {}
            Ok(_) => panic!("the client says more"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
}

pub fn provider(url: &str) -> Chain {
    one(chat(url, KEY))
}

pub fn chat(url: &str, key: &str) -> OpenAiChat {
    OpenAiChat::new(url, "tide-1", Secret::new(key), ReqwestTransport::new(url))
        .expect("a good provider")
}

/// A chain of one.
pub fn one(chat: OpenAiChat) -> Chain {
    let name = "tide/tide-1".into();
    Chain::new(vec![Candidate { name, chat }])
}

pub fn row(role: Role, mark: RowMark, text: &str) -> TranscriptRow {
    let run = RunId::from_u128(1);
    TranscriptRow {
        seq: 1,
        role,
        mark,
        run,
        run_key: "run".into(),
        turn: run,
        queue: None,
        at: Wall(0),
        text: text.into(),
        calls: Vec::new(),
        answers: None,
    }
}

pub fn user(text: &str) -> TranscriptRow {
    row(Role::User, RowMark::Whole, text)
}

/// A call as a model writes it.
pub fn call_text(id: &str, name: &str, arguments: &str) -> CallText {
    CallText {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

/// An answer that asks for calls.
pub fn calls(text: &str, calls: Vec<CallText>) -> TranscriptRow {
    TranscriptRow {
        calls,
        ..row(Role::Assistant, RowMark::Calls, text)
    }
}

/// What came of a call.
pub fn result(id: &str, end: CallEnd, output: &str) -> TranscriptRow {
    TranscriptRow {
        answers: Some(ToolAnswer {
            id: id.into(),
            name: "exec".into(),
            end,
        }),
        ..row(Role::Tool, RowMark::Whole, output)
    }
}

/// The tool that runs commands, as it is offered.
pub fn exec() -> Arc<[ToolSpec]> {
    Arc::from([ToolSpec {
        name: "exec".into(),
        description: "Runs a command.".into(),
        parameters: r#"{"type":"object","properties":{"command":{"type":"string"}}}"#.into(),
    }])
}

/// A call under way. Dropping it does not cancel it; [`Call::cancel`] does.
pub struct Call {
    events: mpsc::Receiver<ModelEvent>,
    end: JoinHandle<ModelEnd>,
}

impl Call {
    pub fn start(models: &impl Models, transcript: Vec<TranscriptRow>) -> Self {
        Self::ask(models, 0, transcript)
    }

    /// The same, of another provider of the chain.
    pub fn ask(models: &impl Models, candidate: u16, transcript: Vec<TranscriptRow>) -> Self {
        Self::make(models, candidate, transcript, Arc::from([]))
    }

    /// A call that offers the tool that runs commands.
    pub fn offer(models: &impl Models, transcript: Vec<TranscriptRow>) -> Self {
        Self::make(models, 0, transcript, exec())
    }

    fn make(
        models: &impl Models,
        candidate: u16,
        transcript: Vec<TranscriptRow>,
        tools: Arc<[ToolSpec]>,
    ) -> Self {
        let call = ModelCall {
            session: SessionId::from_u128(1),
            run: RunId::from_u128(1),
            attempt: Attempt(1),
            candidate,
            transcript,
            tools,
        };
        let (sink, events) = ModelSink::channel(64);
        Self {
            events,
            end: tokio::spawn(models.call(call, sink)),
        }
    }

    pub async fn next(&mut self) -> ModelEvent {
        self.events.recv().await.expect("the call goes on")
    }

    /// All further events, and the end.
    pub async fn rest(mut self) -> (Vec<ModelEvent>, ModelEnd) {
        let mut events = Vec::new();
        while let Some(event) = self.events.recv().await {
            events.push(event);
        }
        (events, self.end.await.expect("the call does not panic"))
    }

    /// The whole text, and the end.
    pub async fn reply(self) -> (String, ModelEnd) {
        let (events, end) = self.rest().await;
        let text = events.into_iter().filter_map(|event| match event {
            ModelEvent::Text(text) => Some(text),
            _ => None,
        });
        (text.collect(), end)
    }

    /// The provider's status, the hint and the words, which never hold the key.
    pub async fn failure(self) -> (Option<u16>, Marker, String) {
        let (error, words) = self.error().await;
        (error.status, error.marker, words)
    }

    /// The provider's error and the words about it, which never hold the key.
    pub async fn error(self) -> (ProviderError, String) {
        let (events, end) = self.rest().await;
        let ModelEnd::Failed(error) = end else {
            panic!("{end:?} after {events:?}");
        };
        assert!(error.detail, "{error:?}");
        let Some(ModelEvent::Detail(words)) = events.last() else {
            panic!("no words: {events:?}")
        };
        assert!(!words.contains(KEY), "{words}");
        assert!(
            !events[..events.len() - 1]
                .iter()
                .any(|event| matches!(event, ModelEvent::Detail(_)))
        );
        (error, words.clone())
    }

    pub async fn cancel(self) {
        self.end.abort();
        assert!(self.end.await.expect_err("it was under way").is_cancelled());
    }
}

/// An event of a stream that carries text.
pub fn delta(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}
