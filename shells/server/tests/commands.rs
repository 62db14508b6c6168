//! Commands among messages: their order, their names, and clients that go away.

mod support;

use serde_json::{Value, json};
use support::{Gateway, is_terminal};

fn send(key: &str, message: &str) -> Value {
    json!({"sessionKey": "one", "idempotencyKey": key, "message": message})
}

/// P05, P18: what is sent behind `/new` with a message comes behind it, and not before it
#[tokio::test]
async fn what_is_sent_behind_a_command_comes_behind_it() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    for round in 0..8 {
        let name = |n: u32| format!("{round}-{n}");
        ws.feed("1", "chat.send", send(&name(1), "/new first"))
            .await;
        ws.request("2", "chat.send", send(&name(2), "second")).await;
        for run in [name(1), name(2)] {
            let seen = ws.until(|frame| is_terminal(frame, &run)).await;
            assert_eq!(seen.last().unwrap()["payload"]["state"], "final", "{run}");
        }
        let history = ws.call("chat.history", json!({"sessionKey": "one"})).await;
        let said: Vec<&Value> = history["payload"]["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["role"] == "user")
            .map(|row| &row["content"])
            .collect();
        assert_eq!(said, ["first", "second"]);
    }
}

/// P06, P18: a repetition of `/new` with a message ends nothing that the first one began
#[tokio::test]
async fn a_repeated_beginning_does_not_end_what_it_began() {
    let gateway = Gateway::start().await;
    let (mut a, mut b) = (gateway.connect().await, gateway.connect().await);
    for round in 0..8 {
        let key = format!("k{round}");
        a.request("1", "chat.send", send(&key, "/new hello")).await;
        b.request("1", "chat.send", send(&key, "/new hello")).await;
        let seen = a.until(|frame| is_terminal(frame, &key)).await;
        assert_eq!(seen.last().unwrap()["payload"]["state"], "final", "{key}");
        let history = a.call("chat.history", json!({"sessionKey": "one"})).await;
        let generation = format!("agent:main:one#{}", round + 2);
        assert_eq!(history["payload"]["sessionId"], generation);
    }
}

/// P06: a command under the name of a message, and a message under that of a command, are
/// other requests under a known key
#[tokio::test]
async fn commands_and_messages_share_no_name() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.request("1", "chat.send", send("k1", "hang")).await;
    let conflict = |answer: &Value| answer["error"]["details"]["reason"] == "idempotency-conflict";
    let answer = ws.call("chat.send", send("k1", "/queue")).await;
    assert!(conflict(&answer), "{answer}");
    let answer = ws.call("chat.send", send("q1", "/queue")).await;
    assert_eq!(answer["payload"]["status"], "ok");
    let answer = ws.call("chat.send", send("q1", "hello")).await;
    assert!(conflict(&answer), "{answer}");
}

/// P35, R200: where a message stands is told to whoever listens, also if its sender has gone
#[tokio::test]
async fn a_sender_that_leaves_does_not_silence_its_message() {
    let gateway = Gateway::start().await;
    let mut watch = gateway.connect().await;
    watch.request("1", "chat.send", send("a", "hang")).await;
    for n in 0..8 {
        let key = format!("b{n}");
        let mut sender = gateway.connect().await;
        let mut params = send(&key, "later");
        params["queueMode"] = "followup".into();
        sender.request("1", "chat.send", params).await;
        drop(sender);
        watch
            .until(|frame| {
                frame["payload"]["runId"] == key && frame["payload"]["phase"] == "queued"
            })
            .await;
    }
}

/// P18, R199: an abort of what is at work stops what was at work when it came, and no message
/// that is sent behind it; which runs it stops is said in one way only
#[tokio::test]
async fn an_abort_stops_nothing_that_is_sent_behind_it() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    for round in 0..8 {
        let key = format!("k{round}");
        ws.feed("1", "sessions.abort", json!({"key": "one"})).await;
        ws.request("2", "chat.send", send(&key, "hello")).await;
        let answer = ws.response("1").await;
        assert_eq!(answer["payload"]["status"], "no-active-run", "{answer}");
        let seen = ws.until(|frame| is_terminal(frame, &key)).await;
        assert_eq!(seen.last().unwrap()["payload"]["state"], "final");
    }
    let both = json!({"key": "one", "runId": "k1", "clearQueued": true});
    let answer = ws.call("sessions.abort", both).await;
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("/clearQueued"), "{answer}");
}
