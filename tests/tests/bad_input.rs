//! What a gateway makes of what it should not get, at its socket and from its model provider;
//! and that the next good request works. The rows of `docs/errors.md` that no other test holds.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_tests::{Client, Frame, Gateway, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame as Raw;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the state")
}

/// What a model server does with a request.
#[derive(Clone, Debug)]
enum Answer {
    /// Says this and closes.
    Whole(String),
    /// Says this, and then nothing, with the connection open.
    Stuck(String),
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// A good answer.
fn well() -> Answer {
    Answer::Whole(format!(
        "{STREAM}data: {{\"choices\":[{{\"delta\":{{\"content\":\"Well.\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
         data: [DONE]\n\n"
    ))
}

/// A refusal in the form of the dialect.
fn refusal(status: u16, message: &str) -> Answer {
    let body = json!({ "error": { "message": message } }).to_string();
    Answer::Whole(format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// A model server that gives its answers in order, one to each request.
struct Answers {
    url: String,
    task: JoinHandle<()>,
}

impl Answers {
    async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let task = tokio::spawn(async move {
            let mut open = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().await.expect("the gateway connects");
                request_of(&mut socket).await;
                let (Answer::Whole(said) | Answer::Stuck(said)) = &answer;
                // A gateway that has heard enough hangs up in the middle: that is its right.
                let _ = socket.write_all(said.as_bytes()).await;
                if let Answer::Stuck(_) = answer {
                    open.push(socket);
                }
            }
            std::future::pending::<()>().await; // with the open sockets
        });
        Self {
            url: format!("http://127.0.0.1:{port}/v1"),
            task,
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a request to its end: unread bytes would reset the connection.
async fn request_of(socket: &mut TcpStream) {
    let mut bytes = Vec::new();
    loop {
        let read = socket.read_buf(&mut bytes).await.expect("a request");
        assert!(read > 0, "the gateway hung up in its request");
        let all = String::from_utf8_lossy(&bytes).to_lowercase();
        let Some((head, body)) = all.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return;
        }
    }
}

async fn gateway_of(dir: &Path, answers: &Answers, more: &[&str]) -> Gateway {
    let mut flags = vec!["--provider-url", &answers.url, "--model", "m"];
    flags.extend(["--provider-retries", "0"]);
    flags.extend(more);
    Gateway::start(dir, &flags).await
}

async fn answers_well(gateway: &Gateway) {
    let said = gateway.run(&["agent", "-m", "and now?"]).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Well.\n"),
        "{said:#?}"
    );
}

/// A failing answer, the sentence of its class, and what is said behind it.
type Failing = (Answer, &'static str, &'static str);

fn refusing() -> Vec<Failing> {
    vec![
        (
            refusal(401, "no such key"),
            "the model provider refused the credentials (HTTP 401): ",
            "no such key. No key was sent: set the provider's apiKey in the configuration, or TIDEGATE_PROVIDER_KEY for the first choice.",
        ),
        (
            refusal(403, "not for you"),
            "the model provider refused the credentials (HTTP 403): ",
            "not for you. No key was sent: set the provider's apiKey in the configuration, or TIDEGATE_PROVIDER_KEY for the first choice.",
        ),
        (
            refusal(404, "The model `m` does not exist"),
            "the model provider has no such model (HTTP 404): ",
            "does not exist. Check the model's name.",
        ),
        (
            refusal(429, "slow down"),
            "the model provider limits the rate of requests (HTTP 429): ",
            "slow down.",
        ),
        (
            refusal(500, "boom"),
            "the model provider failed (HTTP 500): ",
            "boom.",
        ),
    ]
}

fn no_streams() -> Vec<Failing> {
    let page = "<!doctype html><title>Welcome to nginx</title>";
    vec![
        (
            Answer::Whole(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n{page}"
            )),
            "the model provider's answer is no model stream (HTTP 200): ",
            "a web page: Welcome to nginx. Check the provider's URL",
        ),
        (
            Answer::Whole(format!(
                "{STREAM}data: {{\"choices\":[{{\"delta\":{{\"content\":\"half\"}}}}]}}\n\n"
            )),
            "the model's stream ended before the model had finished",
            "",
        ),
        (
            Answer::Whole(format!("{STREAM}data: {}", "x".repeat(1 << 21))),
            "the model provider's answer is no model stream: ",
            "the connection was closed.",
        ),
    ]
}

/// Law 10, spec 5.3: each failure of a provider is told by its class and its own words, ends
/// its run alone, and the next message is answered.
#[tokio::test]
async fn a_failing_provider_is_told_by_class_and_words_and_the_next_message_is_answered() {
    let cases: Vec<Failing> = refusing().into_iter().chain(no_streams()).collect();
    let in_turn = cases.iter().flat_map(|case| [case.0.clone(), well()]);
    let answers = Answers::start(in_turn.collect()).await;
    let dir = state();
    let gateway = gateway_of(dir.path(), &answers, &[]).await;
    for (_, class, words) in cases {
        let said = gateway.run(&["agent", "-m", "hi", "--json"]).await;
        let payload = said.json();
        let error = payload["error"]["message"].as_str().unwrap_or_default();
        assert!(
            error.starts_with(class) && error.contains(words),
            "{class}{words}: {said:#?}"
        );
        assert_eq!(
            (said.code, &payload["status"], &payload["error"]["code"]),
            (Some(1), &json!("error"), &json!("UNAVAILABLE")),
            "{said:#?}"
        );
        answers_well(&gateway).await;
    }
}

/// P12, R156: a provider that takes the request and says nothing is given up, by that reason.
#[tokio::test]
async fn a_provider_that_says_nothing_ends_the_run_by_its_first_event_limit() {
    let answers = Answers::start(vec![Answer::Stuck(String::new()), well()]).await;
    let dir = state();
    let gateway = gateway_of(dir.path(), &answers, &["--provider-timeout", "1"]).await;
    let said = gateway.run(&["agent", "-m", "hi", "--json"]).await;
    let payload = said.json();
    assert_eq!(
        (said.code, &payload["status"], &payload["timeoutPhase"]),
        (Some(1), &json!("timeout"), &json!("provider")),
        "{said:#?}"
    );
    let sentence = "the run timed out: the model provider took the request and sent nothing \
                    within the first-event limit";
    assert!(said.stderr.contains(sentence), "{said:#?}");
    answers_well(&gateway).await;
}

/// Opens a socket and takes its challenge.
async fn stranger(gateway: &Gateway) -> Client {
    let mut client = Client::open(&gateway.url()).await;
    let Frame::Json(challenge) = client.frame().await else {
        panic!("closed before the challenge");
    };
    assert_eq!(challenge["event"], "connect.challenge");
    client
}

async fn error_of(client: &mut Client) -> Value {
    match client.frame().await {
        Frame::Json(frame) if frame["type"] == "res" => frame["error"].clone(),
        other => panic!("no answer: {other:?}"),
    }
}

async fn close_of(client: &mut Client) -> (u16, String) {
    match client.frame().await {
        Frame::Closed(Some(close)) => close,
        other => panic!("no close with a reason: {other:?}"),
    }
}

/// Law 9, surface 1.4: what a socket may not say is answered or closed with the reason, and
/// the gateway goes on.
#[tokio::test]
async fn bad_first_frames_are_turned_away_with_a_reason() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let health = r#"{"type":"req","id":"1","method":"health"}"#;
    let connect = r#"{"type":"req","id":"1","method":"connect","params":{"minProtocol":4,
        "maxProtocol":4,"client":{"id":"cli","version":"1","platform":"linux","mode":"cli"}}}"#;
    for (frame, says, close) in [
        (
            Message::text(health),
            "invalid handshake: first request must be connect",
            "invalid handshake: first request must be connect",
        ),
        (
            Message::text("{"),
            "invalid request frame: must be one JSON object",
            "invalid request frame",
        ),
        (
            Message::binary(vec![0xff]),
            "invalid request frame: must be one JSON object",
            "invalid request frame",
        ),
        (
            Message::text(connect),
            "unauthorized: gateway token missing",
            "unauthorized: gateway token missing",
        ),
    ] {
        let mut client = stranger(&gateway).await;
        assert!(client.raw(frame).await);
        let error = error_of(&mut client).await;
        assert_eq!(error["code"], "INVALID_REQUEST", "{error}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(says), "{message}");
        let (code, reason) = close_of(&mut client).await;
        assert_eq!(code, 1008, "{says}");
        assert!(reason.starts_with(close), "{reason}");
    }

    let mut client = stranger(&gateway).await;
    client.raw(Message::text("x".repeat(70 * 1024))).await;
    let close = close_of(&mut client).await;
    assert_eq!(close, (1009, "preauth payload too large".into()));
    assert_eq!(gateway.client().await.hello["type"], "hello-ok");
}

/// Law 9: frames that are none are answered and the connection stays; one that is too large
/// ends it, and the next connection is served.
#[tokio::test]
async fn bad_frames_of_a_client_are_answered_and_the_next_good_one_works() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let mut client = gateway.client().await;
    for frame in [
        Message::text("not JSON"),
        Message::text(r#"{"type":"req","id":"1"}"#),
        Message::binary(vec![0xff, 0xfe]),
    ] {
        assert!(client.raw(frame).await);
        let error = error_of(&mut client).await;
        assert_eq!(error["code"], "INVALID_REQUEST", "{error}");
    }
    let bad =
        json!({ "message": "hi", "idempotencyKey": "k", "attachments": [{ "content": "x" }] });
    let error = client.request("agent", bad).await.expect_err("refused");
    assert_eq!(
        error["message"],
        "invalid agent params: at /attachments: is not supported yet and would be lost: leave it out"
    );
    let health = client.request("health", json!({})).await;
    assert_eq!(health.expect("well")["ok"], true);

    client
        .raw(Message::text("x".repeat(25 * 1024 * 1024 + 1)))
        .await;
    let close = close_of(&mut client).await;
    assert_eq!(close, (1009, "payload too large".into()));
    let health = gateway.client().await.request("health", json!({})).await;
    assert_eq!(health.expect("well")["ok"], true);
}

/// What breaks the rules of WebSockets ends its connection and no other.
#[tokio::test]
async fn a_frame_that_breaks_the_rules_of_websockets_closes_with_1002() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let no_text = || {
        let frame = Raw::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
        Message::Frame(frame)
    };
    for mut client in [stranger(&gateway).await, gateway.client().await] {
        assert!(client.raw(no_text()).await);
        assert_eq!(close_of(&mut client).await, (1002, "invalid frame".into()));
    }
    assert_eq!(gateway.client().await.hello["type"], "hello-ok");
}

/// A page that the user visits does not reach the gateway, nor does it hurt it.
#[tokio::test]
async fn a_page_of_a_foreign_origin_does_not_come_in() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let mut request = gateway.url().into_client_request().expect("an address");
    let origin = "https://evil.example".parse().expect("a header");
    request.headers_mut().insert("origin", origin);
    let refused = within("an answer", tokio_tungstenite::connect_async(request)).await;
    let Err(Error::Http(response)) = refused else {
        panic!("a foreign page came in");
    };
    assert_eq!(response.status(), 403);
    assert_eq!(gateway.client().await.hello["type"], "hello-ok");
}

/// Vector 16.4: an unknown run is a bare timeout; who announced it, is told more.
#[tokio::test]
async fn a_wait_for_an_unknown_run_says_so_to_those_who_understand() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let params = json!({ "runId": "no-such-run", "timeoutMs": 0 });
    let bare = gateway
        .client()
        .await
        .request("agent.wait", params.clone())
        .await;
    let bare_end = json!({ "runId": "no-such-run", "status": "timeout" });
    assert_eq!(bare.expect("no failure"), bare_end);
    let line = [
        "gateway",
        "call",
        "agent.wait",
        "--params",
        &params.to_string(),
    ];
    let told = gateway.run(&line).await;
    let end = json!({ "runId": "no-such-run", "status": "timeout", "known": false });
    assert_eq!((told.code, told.json()), (Some(0), end), "{told:#?}");
}

/// Runs of a session: one at work and 256 that wait.
const SESSION_HOLDS: usize = 257;

/// Law 9: a full queue refuses the next message, and takes messages again once it has room.
#[tokio::test]
async fn a_full_session_refuses_and_takes_messages_again_once_it_has_room() {
    let answers = Answers::start(vec![Answer::Stuck(STREAM.into()), well()]).await;
    let dir = state();
    let gateway = gateway_of(dir.path(), &answers, &[]).await;
    let (mut one, mut two) = (gateway.client().await, gateway.client().await);
    for n in 1..SESSION_HOLDS {
        one.submit("full", &format!("run-{n}"), "wait").await;
    }
    two.submit("full", "last", "wait").await;
    let more = json!({ "sessionKey": "full", "idempotencyKey": "more", "message": "wait" });
    let error = two
        .request("agent", more)
        .await
        .expect_err("the queue is full");
    assert_eq!(
        (
            &error["code"],
            &error["details"]["reason"],
            &error["retryable"]
        ),
        (
            &json!("UNAVAILABLE"),
            &json!("session-queue-full"),
            &json!(true)
        ),
        "{error}"
    );
    let full = json!({ "sessionKey": "full" });
    let aborted = two.request("chat.abort", full).await.expect("an abort");
    let ended = aborted["runIds"].as_array().map(Vec::len);
    assert_eq!(ended, Some(SESSION_HOLDS), "{aborted}");
    let answer = two.answer("full", "more", "wait").await;
    assert_eq!(answer["result"]["payloads"][0]["text"], "Well.", "{answer}");
}

/// Law 9: what is beyond a gateway's own limit is refused, and taken once there is room.
#[tokio::test]
async fn a_full_gateway_refuses_a_wait_and_takes_it_once_there_is_room() {
    let dir = state();
    let file = dir.path().join("tidegate.json5");
    let limits = "{ tidegate: { limits: { waitsCap: 1 } } }";
    std::fs::write(&file, limits).expect("a test directory is writable");
    let answers = Answers::start(vec![Answer::Stuck(STREAM.into())]).await;
    let gateway = gateway_of(dir.path(), &answers, &[]).await;
    let mut client = gateway.client().await;
    client.submit("s", "run-1", "wait").await;
    let wait = json!({ "runId": "run-1", "timeoutMs": 3_600_000 });
    let first = client.send("agent.wait", wait.clone()).await;
    let second = client.request("agent.wait", wait.clone()).await;
    let error = second.expect_err("there is one wait");
    assert_eq!(
        (
            &error["code"],
            &error["details"]["reason"],
            &error["retryable"]
        ),
        (&json!("UNAVAILABLE"), &json!("gateway-busy"), &json!(true)),
        "{error}"
    );
    let abort = json!({ "sessionKey": "s" });
    client.request("chat.abort", abort).await.expect("an abort");
    let end = client.response(&first).await.expect("the run's end");
    assert_eq!(end["stopReason"], "rpc", "{end}");
    let again = client.request("agent.wait", wait).await;
    assert_eq!(again.expect("there is room"), end);
}
