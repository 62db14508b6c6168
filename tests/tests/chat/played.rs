//! The chat against a gateway that the test plays: for moments that a real one gives only by
//! chance.

use serde_json::{Value, json};
use tidegate_tests::{Played, Running, Stub, signal};

const KEY: &str = "agent:main:main";

/// Takes a chat's socket, up to the question what was said before.
async fn welcome(stub: &Stub) -> Played {
    let mut played = stub.welcome().await;
    let asked = expect(&mut played, "chat.history").await;
    let history = json!({ "sessionKey": KEY, "sessionId": "s#1", "messages": [],
        "pendingInputs": { "items": [], "total": 0 }, "deltaCursor": "c1", "totalMessages": 0,
        "sessionInfo": { "key": KEY, "agentId": "main", "sessionId": "s#1",
            "hasActiveRun": false, "activeRunIds": [] } });
    played.ok(&asked, history).await;
    let asked = expect(&mut played, "sessions.messages.subscribe").await;
    assert_eq!(asked["params"]["cursor"], "c1");
    played.ok(&asked, caught_up("c2", 7, json!({}))).await;
    played
}

async fn expect(played: &mut Played, method: &str) -> Value {
    let request = played.request().await;
    assert_eq!(request["method"], method, "{request}");
    request
}

/// The answer to a subscription.
fn caught_up(cursor: &str, seq: u64, more: Value) -> Value {
    let mut done = json!({ "subscribed": true, "key": KEY, "sessionId": "s#1",
        "sessionSeq": seq, "deltaCursor": cursor });
    if let (Some(to), Some(from)) = (done.as_object_mut(), more.as_object()) {
        to.extend(from.clone());
    }
    done
}

/// The chat has typed a message, which is acknowledged; gives its name.
async fn accept(chat: &mut Running, played: &mut Played, message: &str) -> Value {
    chat.types(message).await;
    let sent = expect(played, "chat.send").await;
    assert_eq!(
        (&sent["params"]["message"], &sent["params"]["sessionKey"]),
        (&json!(message), &json!(KEY))
    );
    let key = sent["params"]["idempotencyKey"].clone();
    let ack = json!({ "runId": key, "status": "started", "inputState": "started" });
    played.ok(&sent, ack).await;
    key
}

fn finale(run: &Value, text: &str) -> Value {
    json!({ "runId": run, "sessionKey": KEY, "agentId": "main", "seq": 2, "sessionSeq": 9,
        "state": "final", "message": { "role": "assistant", "timestamp": 1,
        "content": [{ "type": "text", "text": text }] } })
}

/// A second Ctrl-C does not wait for a gateway that does not answer.
#[tokio::test]
async fn a_second_ctrl_c_leaves_at_once() {
    let stub = Stub::listen().await;
    let mut chat = stub.chat();
    let mut played = welcome(&stub).await;
    accept(&mut chat, &mut played, "hi").await;
    signal(chat.pid(), "INT").await;
    let abort = expect(&mut played, "sessions.abort").await;
    assert_eq!(abort["params"], json!({ "key": KEY }));
    signal(chat.pid(), "INT").await;
    assert_eq!(chat.ended().await.code, Some(130));
}

/// P06, P33: what the gateway did not acknowledge goes out again under its name, what it did does
/// not; the chat names the place where it was.
#[tokio::test]
async fn only_what_was_not_acknowledged_is_sent_again() {
    let stub = Stub::listen().await;
    let mut chat = stub.chat();
    let mut played = welcome(&stub).await;
    let first = accept(&mut chat, &mut played, "first").await;
    chat.types("second").await;
    let sent = expect(&mut played, "chat.send").await;
    let event = json!({ "runId": first, "sessionKey": KEY, "agentId": "main", "seq": 1,
        "sessionSeq": 8, "state": "delta", "deltaText": "One" });
    played.event("chat", event).await;
    played.close(1011, "events were lost, connect again").await;
    chat.notes("connecting again\n").await;

    let mut played = stub.welcome().await;
    let asked = expect(&mut played, "sessions.messages.subscribe").await;
    assert_eq!(
        asked["params"],
        json!({ "key": KEY, "cursor": "c2", "sessionSeq": 8, "messageSeq": 0 })
    );
    let grew = json!({ "runId": first, "sessionKey": KEY, "agentId": "main", "seq": 2,
        "sessionSeq": 9, "state": "delta", "deltaText": " more" });
    let missed = json!({ "event": "chat", "payload": grew });
    let done = caught_up("c3", 9, json!({ "events": [missed] }));
    played.ok(&asked, done).await;
    let again = expect(&mut played, "chat.send").await;
    assert_eq!(again["params"], sent["params"]);
    let key = &sent["params"]["idempotencyKey"];
    played
        .ok(&again, json!({ "runId": key, "status": "in_flight" }))
        .await;
    let mut whole = finale(&first, "");
    whole["message"] = Value::Null;
    played.event("chat", whole).await;
    played.event("chat", finale(key, "Two.")).await;
    chat.types_no_more();
    let said = chat.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "One more\nTwo.\n"),
        "{said:#?}"
    );
}

/// R140, B-058: a chat says that the model is asked again, and prints the text that counts alone.
#[tokio::test]
async fn a_text_that_is_taken_back_is_not_printed() {
    let stub = Stub::listen().await;
    let mut chat = stub.chat();
    let mut played = welcome(&stub).await;
    let run = accept(&mut chat, &mut played, "first").await;
    let event = |more: Value| {
        let mut event = json!({ "runId": run, "sessionKey": KEY, "agentId": "main", "seq": 1,
            "sessionSeq": 8 });
        if let (Some(to), Some(from)) = (event.as_object_mut(), more.as_object()) {
            to.extend(from.clone());
        }
        event
    };
    let retrying = json!({ "state": "status", "phase": "retrying", "attempt": 2,
        "maxAttempts": 9, "delayMs": 1_200, "reason": "network", "message": "it broke" });
    for said in [
        json!({ "state": "delta", "deltaText": "One" }),
        retrying,
        json!({ "state": "delta", "deltaText": "", "replace": true }),
        json!({ "state": "delta", "deltaText": "Two" }),
        json!({ "state": "final" }),
    ] {
        played.event("chat", event(said)).await;
    }
    chat.types_no_more();
    let said = chat.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Two\n"),
        "{said:#?}"
    );
    let note = "it broke; asking again in 1.2 s (call 2 of 9)\n";
    assert!(said.stderr.contains(note), "{said:#?}");
}

/// P33, law 10: where events are forgotten, answers come from what is kept, and the other ends
/// from a question.
#[tokio::test]
async fn an_end_that_was_missed_is_asked_for() {
    let stub = Stub::listen().await;
    let mut chat = stub.chat();
    let mut played = welcome(&stub).await;
    let answered = accept(&mut chat, &mut played, "first").await;
    let failed = accept(&mut chat, &mut played, "second").await;
    let alive = accept(&mut chat, &mut played, "third").await;
    played.close(1012, "service restart").await;

    let mut played = stub.welcome().await;
    let asked = expect(&mut played, "sessions.messages.subscribe").await;
    let row = json!({ "role": "assistant", "timestamp": 1, "stopReason": "stop",
        "content": [{ "type": "text", "text": "One." }],
        "__openclaw": { "id": "s#1:2", "seq": 2, "runId": answered } });
    let done = caught_up("c3", 1, json!({ "reset": true, "messages": [row] }));
    played.ok(&asked, done).await;
    for run in [&failed, &alive] {
        let look = expect(&mut played, "agent.wait").await;
        assert_eq!(look["params"], json!({ "runId": run, "timeoutMs": 0 }));
        let end = match run == &failed {
            true => json!({ "runId": run, "status": "error", "endedAt": 5, "error": "it threw" }),
            false => json!({ "runId": run, "status": "timeout" }),
        };
        played.ok(&look, end).await;
    }
    chat.notes("\"second\": it threw").await;
    played.event("chat", finale(&answered, "One.")).await;
    played.event("chat", finale(&alive, "Three.")).await;
    chat.types_no_more();
    let said = chat.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "One.\nThree.\n"),
        "{said:#?}"
    );
}

/// Text of other sessions is not of this conversation.
#[tokio::test]
async fn only_the_own_sessions_answers_are_printed() {
    let stub = Stub::listen().await;
    let mut chat = stub.chat();
    let mut played = welcome(&stub).await;
    let run = accept(&mut chat, &mut played, "hi").await;
    let mut other = finale(&json!("another"), "not this");
    other["sessionKey"] = json!("agent:main:other");
    played.event("chat", other).await;
    played.event("chat", finale(&run, "This.")).await;
    chat.types_no_more();
    let said = chat.ended().await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "This.\n"));
}
