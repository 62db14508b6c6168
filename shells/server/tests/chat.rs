//! Conversations over the real socket: one ack, and from then on events that tell the truth.

mod support;

use serde_json::{Value, json};
use support::{Gateway, is_chat, is_terminal};
use tidegate_core::{Config, DropPolicy, QueueMode, QueueSettings};

/// A core that queues in this mode and does not wait for quiet.
fn queueing(mode: QueueMode) -> Config {
    Config {
        queue: QueueSettings {
            mode,
            debounce_ms: 0,
            ..QueueSettings::default()
        },
        ..Config::default()
    }
}

/// What a message's way was, as the conversation was told it.
fn way(seen: &[Value], run: &str) -> Vec<String> {
    let of = |frame: &&Value| frame["event"] == "chat" && frame["payload"]["runId"] == run;
    let steps = seen.iter().filter(of).map(|frame| {
        let payload = &frame["payload"];
        let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
        match text("state").as_str() {
            "status" => text("phase"),
            "aborted" => format!("aborted {} {}", text("stopReason"), text("inputState")),
            state => state.to_owned(),
        }
    });
    steps.collect()
}

/// R2, P06, surface 2.3: one response, the rest as events; the same key is the same message
#[tokio::test]
async fn a_message_is_acknowledged_once_and_answered_by_events() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let ack = ws.chat("one", "run-1", "hello").await;
    assert_eq!(
        ack,
        json!({"runId": "run-1", "status": "started", "inputState": "started"})
    );
    let seen = ws.until(|frame| is_terminal(frame, "run-1")).await;
    let last = &seen.last().unwrap()["payload"];
    assert_eq!(
        (&last["state"], &last["message"]["content"][0]["text"]),
        (&json!("final"), &json!("you said hello"))
    );
    assert!(seen.iter().all(|frame| frame["type"] == "event"));
    assert_eq!(
        ws.chat("one", "run-1", "hello").await,
        json!({"runId": "run-1", "status": "ok"})
    );
    let other = json!({"sessionKey": "one", "message": "other", "idempotencyKey": "run-1"});
    let refused = ws.call("chat.send", other).await;
    assert_eq!(
        refused["error"]["details"]["reason"],
        "idempotency-conflict"
    );
}

/// surface 2.3: the stored outcome of a key is replayed as it was
#[tokio::test]
async fn a_repeated_key_tells_how_its_message_ended() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "run-1", "hang").await;
    ws.until(|frame| is_chat(frame, "run-1", "delta")).await;
    assert_eq!(
        ws.chat("one", "run-1", "hang").await,
        json!({"runId": "run-1", "status": "in_flight"})
    );
    ws.call("chat.abort", json!({"sessionKey": "one"})).await;
    assert_eq!(
        ws.chat("one", "run-1", "hang").await,
        json!({"runId": "run-1", "status": "timeout", "summary": "aborted", "stopReason": "rpc"})
    );
    ws.chat("one", "run-2", "refuse").await;
    ws.until(|frame| is_terminal(frame, "run-2")).await;
    let params = json!({"sessionKey": "one", "message": "refuse", "idempotencyKey": "run-2"});
    let failed = ws.call("chat.send", params).await;
    assert_eq!(
        (
            &failed["ok"],
            &failed["payload"]["status"],
            &failed["error"]["details"]["reason"]
        ),
        (&json!(false), &json!("error"), &json!("auth"))
    );
}

/// P26, R46, observed 5.1: messages answered in one turn keep their names, each has one end
#[tokio::test]
async fn collected_messages_say_in_whose_turn_they_were_answered() {
    let gateway = Gateway::configured(queueing(QueueMode::Collect)).await;
    let mut watch = gateway.connect().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("working");
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    let ack = ws.chat("one", "b", "second").await;
    assert_eq!(
        ack,
        json!({"runId": "b", "status": "started", "inputState": "queued", "queuedAhead": 1})
    );
    assert_eq!(ws.chat("one", "c", "third").await["queuedAhead"], 2);
    let wait = ws.call("agent.wait", json!({"runId": "c"})).await;
    assert_eq!(
        wait["payload"],
        json!({"runId": "c", "status": "pending", "timeoutPhase": "queue", "providerStarted": false})
    );
    gateway.say(None);
    let seen = watch.until_ended(&["a", "b", "c"]).await;
    assert_eq!(way(&seen, "c"), ["queued", "bound", "seen", "final"]);
    let end = |run: &str| {
        let end = seen.iter().find(|frame| is_terminal(frame, run));
        end.unwrap()["payload"].clone()
    };
    assert_eq!(end("c")["answeredIn"], "b");
    assert_eq!(end("c").get("message"), None);
    assert_eq!(end("b")["message"]["content"][0]["text"], "you said third");
    let wait = ws.call("agent.wait", json!({"runId": "c"})).await;
    assert_eq!(wait["payload"]["answeredIn"], "b");
}

/// R44, B-070: a message for a busy run says into which one it goes, and when the model saw it
#[tokio::test]
async fn a_steered_message_tells_its_way() {
    let gateway = Gateway::configured(queueing(QueueMode::Followup)).await;
    let mut watch = gateway.connect().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("working");
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    let params = json!({"sessionKey": "one", "message": "and this", "idempotencyKey": "b", "queueMode": "steer"});
    let ack = ws.call("chat.send", params).await;
    assert_eq!(
        ack["payload"],
        json!({"runId": "b", "status": "started", "inputState": "steered", "steeredInto": "a"})
    );
    gateway.say(None);
    let seen = watch.until_ended(&["a", "b"]).await;
    let steered = seen
        .iter()
        .find(|frame| is_chat(frame, "b", "status"))
        .unwrap();
    assert_eq!(
        (
            &steered["payload"]["phase"],
            &steered["payload"]["into"],
            &steered["payload"]["seq"]
        ),
        (&json!("steered"), &json!("a"), &json!(0))
    );
    assert_eq!(way(&seen, "b").first().map(String::as_str), Some("steered"));
    assert_eq!(way(&seen, "b").last().map(String::as_str), Some("final"));
}

/// R47, P40: who is interrupted is told by whom, and has one end
#[tokio::test]
async fn an_interrupting_message_stops_the_run_at_work() {
    let gateway = Gateway::configured(queueing(QueueMode::Interrupt)).await;
    let mut watch = gateway.connect().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "hang").await;
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    let ack = ws.chat("one", "b", "instead").await;
    assert_eq!(
        ack,
        json!({"runId": "b", "status": "started", "inputState": "interrupting", "interruptedActiveRun": true})
    );
    let seen = watch.until_ended(&["a", "b"]).await;
    assert_eq!(way(&seen, "a"), ["seen", "delta", "aborted interrupt "]);
    let b = way(&seen, "b");
    assert_eq!(
        (b[0].as_str(), b.last().unwrap().as_str()),
        ("interrupting", "final")
    );
}

/// P10, P04: what gives way and what is taken back end once, with the true reason
#[tokio::test]
async fn a_message_that_no_model_saw_ends_with_its_reason() {
    let mut config = queueing(QueueMode::Followup);
    config.queue.cap = 1;
    config.queue.drop = DropPolicy::Old;
    let gateway = Gateway::configured(config).await;
    let mut watch = gateway.connect().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("working");
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    ws.chat("one", "b", "oldest").await;
    ws.chat("one", "c", "newest").await;
    let wait = ws.call("agent.wait", json!({"runId": "b"})).await["payload"].clone();
    assert_eq!(
        (&wait["status"], &wait["stopReason"]),
        (&json!("error"), &json!("dropped"))
    );
    assert!(wait["error"].as_str().unwrap().contains("queue was full"));
    let stopped = ws
        .call("chat.abort", json!({"sessionKey": "one", "runId": "c"}))
        .await;
    assert_eq!(stopped["payload"]["runIds"], json!(["c"]));
    gateway.say(None);
    let seen = watch.until_ended(&["a", "b", "c"]).await;
    assert_eq!(way(&seen, "b"), ["queued", "aborted dropped dropped"]);
    assert_eq!(way(&seen, "c"), ["queued", "aborted rpc given_back"]);
}

/// P06, surface 2.3: a command is carried out once, acknowledged, and answered as a `chat` final
#[tokio::test]
async fn a_command_is_carried_out_and_answered() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "hang").await;
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    for (run, command, answer) in [
        (
            "q1",
            "/queue collect cap:5",
            "Queue: collect (set for this session), debounce 500 ms, cap 5, drop summarize. 0 waiting.",
        ),
        (
            "q2",
            "/queue default",
            "Queue: steer (as configured), debounce 500 ms, cap 20, drop summarize. 0 waiting.",
        ),
        ("s1", "/stop", "Stopped."),
        ("s2", "/stop", "Nothing was running."),
        ("n1", "/new", "New session started."),
        ("r1", "/reset", "Session reset."),
    ] {
        let ack = ws.chat("one", run, command).await;
        assert_eq!(ack, json!({"runId": run, "status": "ok"}), "{command}");
        let seen = ws.until(|frame| is_terminal(frame, run)).await;
        let end = &seen.last().unwrap()["payload"];
        assert_eq!(end["message"]["content"][0]["text"], answer);
        assert_eq!((&end["state"], &end["seq"]), (&json!("final"), &json!(0)));
    }
    let history = ws.call("chat.history", json!({"sessionKey": "one"})).await;
    assert_eq!(history["payload"]["messages"], json!([]));
    assert_eq!(history["payload"]["sessionId"], "agent:main:one#3");
    assert_eq!(
        ws.chat("one", "n1", "/new").await,
        json!({"runId": "n1", "status": "ok"})
    );
    let again = ws.call("chat.history", json!({"sessionKey": "one"})).await;
    assert_eq!(again["payload"]["sessionId"], "agent:main:one#3");
}

/// P18, P06: the message behind `/new` is the first of the new session, however often it is sent
#[tokio::test]
async fn a_message_behind_new_begins_the_session_once() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "hang").await;
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    let ack = ws.chat("one", "b", "/new hello").await;
    assert_eq!(ack["status"], "started");
    ws.until(|frame| is_terminal(frame, "b")).await;
    assert_eq!(ws.chat("one", "b", "/new hello").await["status"], "ok");
    let history = ws.call("chat.history", json!({"sessionKey": "one"})).await["payload"].clone();
    assert_eq!(history["sessionId"], "agent:main:one#2");
    let said: Vec<&Value> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["content"])
        .collect();
    assert_eq!(
        said,
        [
            &json!("hello"),
            &json!([{"type": "text", "text": "you said hello"}])
        ]
    );
    let wait = ws.call("agent.wait", json!({"runId": "a"})).await;
    assert_eq!(wait["payload"]["stopReason"], "reset");
}

/// Law 10: a command that can't be understood is refused, and text can be kept from being one
#[tokio::test]
async fn a_command_is_understood_or_refused() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    for message in ["/queue stear", "/queue collect cap:3 hello"] {
        let params = json!({"sessionKey": "one", "message": message, "idempotencyKey": "k"});
        let refused = ws.call("chat.send", params).await;
        assert_eq!(
            refused["error"]["details"]["reason"], "bad-command",
            "{message}"
        );
    }
    let params = json!({"sessionKey": "one", "message": "/stop", "idempotencyKey": "k", "suppressCommandInterpretation": true});
    assert_eq!(
        ws.call("chat.send", params).await["payload"]["status"],
        "started"
    );
    let seen = ws.until(|frame| is_terminal(frame, "k")).await;
    assert_eq!(
        seen.last().unwrap()["payload"]["message"]["content"][0]["text"],
        "you said /stop"
    );
}

/// P22, B-010: during a drain nothing new is taken, and that is no failure
#[tokio::test]
async fn a_drain_defers_what_it_does_not_take() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("working");
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    let drain = gateway.drain().await;
    let send =
        |message: &str| json!({"sessionKey": "one", "message": message, "idempotencyKey": "k"});
    for (method, params) in [
        ("chat.send", send("hello")),
        ("chat.send", send("/new")),
        ("chat.send", send("/new hello")),
        ("chat.send", send("/queue collect")),
        ("sessions.reset", json!({"key": "one"})),
    ] {
        let refused = ws.call(method, params).await;
        assert_eq!(
            (
                &refused["error"]["retryable"],
                &refused["error"]["details"]["reason"]
            ),
            (&json!(true), &json!("gateway-restarting")),
            "{method} {refused}"
        );
    }
    let history = ws.call("chat.history", json!({"sessionKey": "one"})).await;
    assert_eq!(history["payload"]["inFlightRun"]["text"], "working");
    gateway.say(None);
    drain.await.unwrap();
}
