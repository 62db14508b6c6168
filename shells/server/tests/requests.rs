//! Requests that need no run: errors, limits, queries, ticks, and going down.

mod support;

use futures_util::SinkExt;
use serde_json::{Value, json};
use std::time::Duration;
use support::{Closed, Gateway, Ws, connect_params};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, advance};
use tokio_tungstenite::tungstenite::Message;

/// Method, parameters, and what is wrong with them.
type Wrong = (&'static str, Value, &'static str);

fn wrong_agent_requests() -> Vec<Wrong> {
    vec![
        ("nope.nope", json!({}), "unknown method: nope.nope"),
        (
            "connect",
            json!({}),
            "connect is only valid as the first request",
        ),
        (
            "agent",
            json!({"idempotencyKey": "k"}),
            "invalid agent params: must have required property 'message'",
        ),
        (
            "agent",
            json!({"message": "x"}),
            "invalid agent params: must have required property 'idempotencyKey'",
        ),
        (
            "agent",
            json!({"message": 5, "idempotencyKey": "k"}),
            "invalid agent params: at /message: must be string that is not empty",
        ),
        (
            "agent",
            json!({"message": "x", "idempotencyKey": "k", "bogus": 1}),
            "invalid agent params: at root: unexpected property 'bogus'",
        ),
        (
            "agent",
            json!({"message": "x", "idempotencyKey": "k", "timeout": -1}),
            "invalid agent params: at /timeout: must be integer >= 0",
        ),
        (
            "agent",
            json!({"message": "x", "idempotencyKey": "k".repeat(513)}),
            "invalid agent params: at /idempotencyKey: must be string of 1 to 512 bytes",
        ),
        (
            "agent",
            json!({"message": "x", "idempotencyKey": "k", "sessionKey": "agent:main"}),
            "invalid agent params: at /sessionKey: must be agent:<agent>:<name> or a bare name, such as agent:main:main or main",
        ),
        (
            "agent",
            json!({"message": "x", "idempotencyKey": "k", "agentId": "ghost"}),
            "unknown agent \"ghost\": this gateway has one agent, \"main\"",
        ),
    ]
}

fn wrong_other_requests() -> Vec<Wrong> {
    vec![
        (
            "agent.wait",
            json!({"runId": "r", "timeoutMs": -1}),
            "invalid agent.wait params: at /timeoutMs: must be number >= 0",
        ),
        (
            "agent.wait",
            json!([]),
            "invalid agent.wait params: at root: must be object",
        ),
        (
            "chat.abort",
            json!({}),
            "invalid chat.abort params: must have required property 'sessionKey'",
        ),
        (
            "chat.send",
            json!({"sessionKey": "s", "message": "", "idempotencyKey": "k"}),
            "invalid chat.send params: at /message: must be string that is not empty",
        ),
        (
            "chat.send",
            json!({"sessionKey": "s", "message": "m", "idempotencyKey": "k", "queueMode": "stear"}),
            "invalid chat.send params: at /queueMode: must be equal to one of the allowed values: steer, followup, collect, interrupt",
        ),
        (
            "chat.send",
            json!({"sessionKey": "s", "message": "m", "idempotencyKey": "k", "attachments": [{}]}),
            "invalid chat.send params: at /attachments: is not supported yet and would be lost: leave it out",
        ),
        (
            "chat.history",
            json!({"sessionKey": "s", "maxBytes": 1023}),
            "invalid chat.history params: at /maxBytes: must be integer >= 1024",
        ),
        (
            "sessions.messages.subscribe",
            json!({"key": "agent:main"}),
            "invalid sessions.messages.subscribe params: at /key: must be agent:<agent>:<name> or a bare name, such as agent:main:main or main",
        ),
        (
            "sessions.abort",
            json!({}),
            "invalid sessions.abort params: must have required property 'key'",
        ),
        (
            "sessions.reset",
            json!({"key": "s", "reason": "old"}),
            "invalid sessions.reset params: at /reason: must be equal to one of the allowed values: new, reset",
        ),
        (
            "sessions.list",
            json!({"limit": 0}),
            "invalid sessions.list params: at /limit: must be integer >= 1",
        ),
        (
            "health",
            json!({"probe": 1}),
            "invalid health params: at /probe: must be boolean",
        ),
        (
            "status",
            json!({"x": 1}),
            "invalid status params: at root: unexpected property 'x'",
        ),
    ]
}

/// A wrong request is named with its place, and the next good one works
#[tokio::test]
async fn wrong_requests_are_answered_and_the_next_good_one_works() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let cases = wrong_agent_requests()
        .into_iter()
        .chain(wrong_other_requests());
    for (method, params, message) in cases {
        let answer = ws.call(method, params).await;
        assert_eq!(answer["error"]["code"], "INVALID_REQUEST", "{method}");
        assert_eq!(answer["error"]["message"], message);
    }
    assert_eq!(ws.call("health", Value::Null).await["payload"]["ok"], true);
}

/// decisions: a malformed frame gets an answer and the socket stays
#[tokio::test]
async fn malformed_frames_are_answered_and_the_socket_stays() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let health = r#"{"type":"req","id":"b","method":"health"}"#;
    let cases = [
        (Message::text("not json"), "invalid"),
        (Message::text("[]"), "invalid"),
        (
            Message::text(r#"{"type":"req","method":"health"}"#),
            "invalid",
        ),
        (
            Message::text(r#"{"type":"res","id":"7","method":"health"}"#),
            "7",
        ),
        (
            Message::text(r#"{"type":"req","id":"8","method":"health","extra":1}"#),
            "8",
        ),
        (Message::binary(vec![0xff, 0xfe]), "invalid"),
    ];
    for (frame, id) in cases {
        ws.0.send(frame).await.unwrap();
        let answer = ws.next().await.unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!("INVALID_REQUEST"))
        );
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with("invalid request frame: "),
            "{answer}"
        );
    }
    ws.0.send(Message::binary(health.as_bytes().to_vec()))
        .await
        .unwrap();
    assert_eq!(ws.response("b").await["payload"]["ok"], true);
}

/// Law 9, surface 1.1: a message has a limit, and its peer can read why it was cut off
#[tokio::test]
async fn a_message_beyond_the_limit_closes_with_1009() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let frame = |bytes: usize| json!({"type": "req", "id": "big", "method": "nope", "params": {"x": "x".repeat(bytes)}});
    ws.send(frame(24 * 1024 * 1024)).await;
    assert_eq!(
        ws.response("big").await["error"]["message"],
        "unknown method: nope"
    );
    ws.send(frame(25 * 1024 * 1024)).await;
    assert_eq!(
        ws.next().await.unwrap_err(),
        Closed(1009, "payload too large".to_owned())
    );
    gateway.connect().await;
}

/// surface 1.3: a client that asked for less may do less, and is told what to ask for
#[tokio::test]
async fn a_reader_may_not_write() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.open().await;
    let mut params = connect_params();
    params["scopes"] = json!(["operator.read"]);
    ws.hello(params).await;
    let answer = ws.call("chat.abort", json!({"sessionKey": "main"})).await;
    assert_eq!(answer["error"]["code"], "FORBIDDEN");
    assert_eq!(
        answer["error"]["details"],
        json!({"code": "MISSING_SCOPE", "missingScope": "operator.write", "requiredScopes": ["operator.write"]})
    );
    assert_eq!(ws.call("health", json!({})).await["ok"], true);
}

/// surface 2.9, 3: who may start runs may not for that reason decide on what they do
#[tokio::test]
async fn who_may_write_may_not_decide() {
    let gateway = Gateway::start().await;
    let mut writer = gateway.open().await;
    let mut params = connect_params();
    params["scopes"] = json!(["operator.write"]);
    writer.hello(params.clone()).await;
    let resolve = json!({"id": "none", "decision": "allow-once"});
    for (method, params) in [
        ("exec.approval.list", json!({})),
        ("exec.approval.get", json!({"id": "none"})),
        ("exec.approval.resolve", resolve.clone()),
    ] {
        let answer = writer.call(method, params).await;
        assert_eq!(answer["error"]["code"], "FORBIDDEN", "{answer}");
        let scope = &answer["error"]["details"]["missingScope"];
        assert_eq!(scope, "operator.approvals");
    }
    let mut decider = gateway.open().await;
    params["scopes"] = json!(["operator.approvals"]);
    decider.hello(params).await;
    let list = decider.call("exec.approval.list", json!({})).await;
    assert_eq!(list["payload"], json!([]));
    for (method, params) in [
        ("exec.approval.get", json!({"id": "none"})),
        ("exec.approval.resolve", resolve),
    ] {
        let answer = decider.call(method, params).await;
        assert_eq!(answer["error"]["code"], "APPROVAL_NOT_FOUND", "{answer}");
        assert_eq!(answer["error"]["details"]["reason"], "APPROVAL_NOT_FOUND");
    }
    let refused = decider.call("status", json!({})).await;
    assert_eq!(refused["error"]["code"], "FORBIDDEN", "{refused}");
}

/// Law 9: requests under way on one connection are bounded; what is beyond may come again
#[tokio::test]
async fn requests_under_way_are_bounded() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    for n in 0..=256 {
        ws.request(
            &n.to_string(),
            "agent.wait",
            json!({"runId": "none", "timeoutMs": 3_600_000}),
        )
        .await;
    }
    let answer = ws.response("256").await;
    assert_eq!(answer["error"]["code"], "UNAVAILABLE");
    assert_eq!(
        (
            &answer["error"]["retryable"],
            &answer["error"]["retryAfterMs"]
        ),
        (&json!(true), &json!(1000))
    );
    assert_eq!(
        gateway.connect().await.call("health", json!({})).await["ok"],
        true
    );
}

/// R145, vector 16.4: an unknown run times out, bare; who announced it, is told more
#[tokio::test]
async fn an_unknown_run_is_told_to_those_who_understand() {
    let gateway = Gateway::start().await;
    let params = json!({"runId": "no-such-run", "timeoutMs": 0.9});
    let answer = gateway
        .connect()
        .await
        .call("agent.wait", params.clone())
        .await;
    assert_eq!(
        answer["payload"],
        json!({"runId": "no-such-run", "status": "timeout"})
    );
    let mut ws = gateway.open().await;
    let mut with = connect_params();
    with["caps"] = json!(["tidegate-known-run"]);
    ws.hello(with).await;
    let answer = ws.call("agent.wait", params).await;
    assert_eq!(
        answer["payload"],
        json!({"runId": "no-such-run", "status": "timeout", "known": false})
    );
}

/// surface 2.4: nothing to stop is no failure
#[tokio::test]
async fn nothing_to_abort_is_no_failure() {
    let gateway = Gateway::start().await;
    let answer = gateway
        .connect()
        .await
        .call("chat.abort", json!({"sessionKey": "main"}))
        .await;
    assert_eq!(
        answer["payload"],
        json!({"ok": true, "aborted": false, "runIds": []})
    );
}

/// surface 1.5: `tick` comes every 30 s, numbered from 1 without gaps, to everyone
#[tokio::test(start_paused = true)]
async fn ticks_are_numbered_from_one_without_gaps() {
    let gateway = Gateway::on_pipes();
    let mut ws = Ws::upgrade(gateway.pipe(64 * 1024).await, &[])
        .await
        .unwrap();
    ws.hello(connect_params()).await;
    for seq in 1..=3 {
        let tick = ws.next().await.unwrap();
        assert_eq!(
            (&tick["event"], &tick["seq"]),
            (&json!("tick"), &json!(seq))
        );
    }
}

/// Law 9, surface 1.1: a peer that answers no ping is cut off
#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_no_ping_is_cut_off() {
    let gateway = Gateway::on_pipes();
    let mut ws = Ws::upgrade(gateway.pipe(64 * 1024).await, &[])
        .await
        .unwrap();
    ws.hello(connect_params()).await;
    let connected = Instant::now();
    // The bytes are read below the WebSocket, which would answer the pings.
    let mut unanswered = Vec::new();
    ws.0.get_mut().read_to_end(&mut unanswered).await.unwrap();
    assert_eq!(connected.elapsed().as_secs(), 50);
}

/// Law 9, surface 1.1: a peer that answers its pings stays
#[tokio::test(start_paused = true)]
async fn a_quiet_peer_that_answers_pings_stays() {
    let gateway = Gateway::on_pipes();
    let mut ws = Ws::upgrade(gateway.pipe(64 * 1024).await, &[])
        .await
        .unwrap();
    ws.hello(connect_params()).await;
    for _ in 0..10 {
        assert_eq!(ws.next().await.unwrap()["event"], "tick");
    }
}

/// Law 9, surface 1.1: a peer is not cut off for answers that wait behind a request in its turn
#[tokio::test(start_paused = true)]
async fn a_peer_whose_answers_are_not_read_yet_stays() {
    let (gateway, wake) = Gateway::asleep();
    let mut ws = Ws::upgrade(gateway.pipe(64 * 1024).await, &[])
        .await
        .unwrap();
    ws.hello(connect_params()).await;
    let command = json!({"sessionKey": "one", "idempotencyKey": "k", "message": "/queue"});
    ws.request("1", "chat.send", command).await;
    for _ in 0..4 {
        assert_eq!(ws.next().await.unwrap()["event"], "tick");
    }
    wake.send(()).unwrap();
    assert_eq!(ws.response("1").await["ok"], true);
    let seen = ws.until(|frame| frame["seq"] == 10).await;
    assert_eq!(seen.last().unwrap()["event"], "tick");
}

/// Law 9: a peer that reads nothing does not hold its connection for ever
#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_is_cut_off() {
    let gateway = Gateway::on_pipes();
    let mut ws = Ws::upgrade(gateway.pipe(64 * 1024).await, &[])
        .await
        .unwrap();
    ws.hello(connect_params()).await;
    // Each answer repeats its id: more waits for this reader than the pipe holds.
    let long = json!({"type": "req", "id": "x".repeat(1_000_000), "method": "nope"});
    for _ in 0..4 {
        ws.send(long.clone()).await;
    }
    let mut other = Ws::upgrade(gateway.pipe(64 * 1024).await, &[])
        .await
        .unwrap();
    other.hello(connect_params()).await;
    let connections = async |other: &mut Ws<_>| {
        other.call("status", json!({})).await["payload"]["connections"].clone()
    };
    assert_eq!(connections(&mut other).await, 2);
    advance(Duration::from_secs(31)).await;
    assert_eq!(connections(&mut other).await, 1);
}

/// Going down is announced, closed with 1012, and the server returns
#[tokio::test]
async fn going_down_is_announced_and_closed_with_1012() {
    let mut gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let mut stranger = gateway.open().await;
    stranger.next().await.unwrap();
    gateway.ask_to_stop();
    let shutdown = ws.next().await.unwrap();
    assert_eq!(
        shutdown,
        json!({"type": "event", "event": "shutdown", "payload": {"reason": "gateway stopping"}, "seq": 1})
    );
    let restart = || Closed(1012, "service restart".to_owned());
    assert_eq!(ws.next().await.unwrap_err(), restart());
    assert_eq!(stranger.next().await.unwrap_err(), restart());
}

/// The server returns although a peer never says goodbye.
#[tokio::test(start_paused = true)]
async fn the_server_stops_in_spite_of_a_silent_peer() {
    let gateway = Gateway::on_pipes();
    let mut ws = Ws::upgrade(gateway.pipe(64 * 1024).await, &[])
        .await
        .unwrap();
    ws.hello(connect_params()).await;
    gateway.stop().await;
}
