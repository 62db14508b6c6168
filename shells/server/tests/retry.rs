//! A model call that is made again, as those who follow the conversation see it.

mod support;

use serde_json::{Value, json};
use support::{AWAY, Gateway, Socket, is_chat, is_terminal};
use tidegate_core::{Config, ProviderClass, ProviderConfig, RecoveryConfig};

/// A core that tells each piece of text at once.
fn unpaced() -> Config {
    Config {
        text_pace_ms: 0,
        ..Config::default()
    }
}

/// Reads up to the step that says that the model is asked again; its wait in milliseconds.
async fn until_retrying(ws: &mut Socket, run: &str) -> (Vec<Value>, u64) {
    let seen = ws
        .until(|frame| is_chat(frame, run, "status") && frame["payload"]["phase"] == "retrying")
        .await;
    let delay = seen.last().unwrap()["payload"]["delayMs"].as_u64();
    (seen, delay.expect("it has a length"))
}

/// What a conversation is told of a run, in short.
fn told(seen: &[Value], run: &str) -> Vec<String> {
    let ours = |frame: &&Value| frame["event"] == "chat" && frame["payload"]["runId"] == run;
    let short = |frame: &Value| {
        let payload = &frame["payload"];
        match payload["state"].as_str().unwrap() {
            "delta" => format!(
                "{}{}",
                payload["deltaText"].as_str().unwrap(),
                if payload["replace"] == true { "!" } else { "" }
            ),
            "status" => payload["phase"].as_str().unwrap().to_owned(),
            end => end.to_owned(),
        }
    };
    seen.iter().filter(ours).map(short).collect()
}

/// R140, B-058, spec 5.2, 10.2: who follows is told why and for how long the run waits; what was
/// shown is taken back when the next attempt begins, and its text stands alone
#[tokio::test]
async fn a_call_that_is_made_again_is_told_and_its_text_begins_anew() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut watch = gateway.connect().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("half an ");
    gateway.say(AWAY);
    let (mut seen, delay) = until_retrying(&mut watch, "a").await;
    let status = &seen.last().unwrap()["payload"];
    assert_eq!(
        (&status["attempt"], &status["maxAttempts"]),
        (&json!(2), &json!(9))
    );
    assert_eq!(
        (&status["reason"], &status["message"]),
        (
            &json!("server_error"),
            &json!("the model provider failed (HTTP 503)")
        )
    );
    let run_status = seen
        .iter()
        .find(|frame| frame["payload"]["data"]["phase"] == "retrying");
    let data = &run_status.expect("in both streams")["payload"];
    assert_eq!(data["stream"], "run_status");
    assert_eq!(data["data"]["delayMs"], status["delayMs"]);
    gateway.pass(delay).await;
    gateway.say("a whole ");
    gateway.say("answer");
    gateway.say(None);
    seen.extend(watch.until(|frame| is_terminal(frame, "a")).await);
    assert_eq!(
        told(&seen, "a"),
        [
            "seen", "half an ", "retrying", "!", "a whole ", "answer", "final"
        ]
    );
    let end = &seen.last().unwrap()["payload"];
    assert_eq!(end["message"]["content"][0]["text"], "a whole answer");
    let starts = seen
        .iter()
        .filter(|frame| frame["payload"]["data"]["phase"] == "start");
    let attempts: Vec<u64> = starts
        .map(|frame| frame["payload"]["data"]["attempt"].as_u64().unwrap())
        .collect();
    assert_eq!(attempts, [1, 2]);
}

/// Surface 2.4, B-058: the failed attempt's text is a row of its own, told to who listens; the
/// answer is another
#[tokio::test]
async fn what_a_failed_call_showed_comes_as_a_row() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut ws = gateway.connect().await;
    ws.call("sessions.messages.subscribe", json!({"key": "one"}))
        .await;
    ws.chat("one", "a", "step").await;
    gateway.say("half ");
    gateway.say(AWAY);
    let (_, delay) = until_retrying(&mut ws, "a").await;
    let history = ws.call("chat.history", json!({"sessionKey": "one"})).await;
    let flight = &history["payload"]["inFlightRun"];
    assert_eq!(flight["text"], "half ", "it stands until the next begins");
    gateway.pass(delay).await;
    gateway.say("whole");
    gateway.say(None);
    let is_row = |frame: &Value| frame["event"] == "session.message";
    let mut rows = Vec::new();
    while rows.len() < 2 {
        let seen = ws.until(is_row).await;
        let row = &seen.last().unwrap()["payload"]["message"];
        if row["role"] == "assistant" {
            rows.push((row["mark"].clone(), row["content"][0]["text"].clone()));
        }
    }
    assert_eq!(
        rows,
        [
            (json!("interrupted"), json!("half ")),
            (Value::Null, json!("whole"))
        ]
    );
}

/// P16, P17, I36: where nothing is to be asked again, a failure ends the run at once; and a run
/// that waits is stopped at once
#[tokio::test]
async fn a_wait_is_stopped_and_none_is_begun_where_none_is_wanted() {
    let config = Config {
        recovery: RecoveryConfig::at_most(0),
        ..unpaced()
    };
    let gateway = Gateway::configured(config).await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say(AWAY);
    let seen = ws.until(|frame| is_terminal(frame, "a")).await;
    assert_eq!(told(&seen, "a"), ["error"]);

    let gateway = Gateway::configured(unpaced()).await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("half ");
    gateway.say(AWAY);
    until_retrying(&mut ws, "a").await;
    ws.request("stop", "sessions.abort", json!({"key": "one"}))
        .await;
    let seen = ws.until(|frame| is_terminal(frame, "a")).await;
    let end = &seen.last().unwrap()["payload"];
    assert_eq!(
        (&end["state"], &end["message"]["content"][0]["text"]),
        (&json!("aborted"), &json!("half "))
    );
}

/// P15, R140: who follows is told who could not and who is asked instead, in both streams; what
/// was shown is taken back, and the next one's text stands alone
#[tokio::test]
async fn another_provider_that_is_asked_is_told_and_the_text_begins_anew() {
    let config = Config {
        recovery: RecoveryConfig::at_most(0),
        fallbacks: vec![ProviderConfig {
            class: ProviderClass::Local,
            timeout_ms: None,
        }],
        ..unpaced()
    };
    let gateway = Gateway::configured(config).await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("half an ");
    gateway.say(AWAY);
    gateway.say("a whole ");
    gateway.say("answer");
    gateway.say(None);
    let seen = ws.until(|frame| is_terminal(frame, "a")).await;
    assert_eq!(
        told(&seen, "a"),
        [
            "seen", "half an ", "fallback", "!", "a whole ", "answer", "final"
        ]
    );
    let steps = seen.iter().map(|frame| &frame["payload"]);
    let steps: Vec<_> = steps
        .filter_map(|payload| match payload["phase"].as_str() {
            Some("fallback") => Some(payload),
            _ if payload["data"]["phase"] == "fallback" => Some(&payload["data"]),
            _ => None,
        })
        .collect();
    assert_eq!(steps.len(), 2, "in both streams: {seen:#?}");
    for step in steps {
        let told = ["from", "to", "reason", "message"].map(|name| step[name].as_str());
        let why = "the model provider failed (HTTP 503)";
        let expected = ["script/0", "script/1", "server_error", why];
        assert_eq!(told, expected.map(Some), "{step}");
    }
    let end = &seen.last().unwrap()["payload"];
    assert_eq!(end["message"]["content"][0]["text"], "a whole answer");
}

/// The phases of a run's steps that events told, by stream, in order.
fn steps<'a>(events: impl IntoIterator<Item = &'a Value>) -> Vec<(String, String)> {
    let step = |event: &Value| {
        let payload = &event["payload"];
        let phase = [&payload["phase"], &payload["data"]["phase"]]
            .into_iter()
            .find_map(Value::as_str)?;
        let name = event["event"].as_str()?.to_owned();
        matches!(phase, "retrying" | "fallback").then(|| (name, phase.to_owned()))
    };
    events.into_iter().filter_map(step).collect()
}

fn retrying() -> Vec<(String, String)> {
    ["agent", "chat"]
        .map(|name| (name.to_owned(), "retrying".to_owned()))
        .to_vec()
}

/// Subscribes; the answer's steps, and the answer.
async fn joined(ws: &mut Socket, params: Value) -> (Vec<(String, String)>, Value) {
    let answer = ws.call("sessions.messages.subscribe", params).await;
    let events = answer["payload"]["events"].as_array().expect("events");
    (steps(events), answer["payload"].clone())
}

/// R140, P34: who subscribes during the wait hears once that the run waits, however it came by
/// the conversation; who was there does not hear it again, and after the wait nobody does
#[tokio::test]
async fn a_newcomer_during_the_wait_hears_of_it_once() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "step").await;
    gateway.say("half ");
    gateway.say(AWAY);
    let (seen, delay) = until_retrying(&mut ws, "a").await;
    assert_eq!(steps(&seen), retrying());

    let mut late = gateway.connect().await;
    let (told, place) = joined(&mut late, json!({"key": "one"})).await;
    assert_eq!(told, retrying());
    let cursor = json!({"key": "one", "cursor": place["deltaCursor"]});
    assert_eq!(joined(&mut late, cursor.clone()).await.0, []);
    let bad = json!({"key": "one", "cursor": "of another life"});
    let (told, place) = joined(&mut late, bad.clone()).await;
    assert_eq!((told, &place["reset"]), (retrying(), &json!(true)));

    let history = late
        .call("chat.history", json!({"sessionKey": "one"}))
        .await;
    assert_eq!(history["payload"]["inFlightRun"]["text"], "half ");
    let read = json!({"key": "one", "cursor": history["payload"]["deltaCursor"]});
    let (told, place) = joined(&mut late, read.clone()).await;
    assert_eq!((told, &place["reset"]), (retrying(), &Value::Null));
    let mut heard = read;
    heard["sessionSeq"] = seen.last().unwrap()["payload"]["sessionSeq"].clone();
    assert_eq!(joined(&mut late, heard).await.0, []);

    gateway.pass(delay).await;
    late.until(|frame| is_chat(frame, "a", "delta")).await;
    assert_eq!(joined(&mut late, json!({"key": "one"})).await.0, []);
    assert_eq!(joined(&mut late, bad).await.0, []);
    gateway.say("whole");
    gateway.say(None);
    let rest = ws.until(|frame| is_terminal(frame, "a")).await;
    assert_eq!(steps(&rest), []);
}

/// R140, I36: who asks for a run that waits is told that it does, behind the acknowledgement and
/// once; who was there when it was told is not told again
#[tokio::test]
async fn a_second_request_for_a_waiting_run_is_told_of_the_wait() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut ws = gateway.connect().await;
    let again = json!({"message": "step", "sessionKey": "one", "idempotencyKey": "a"});
    ws.request("first", "agent", again.clone()).await;
    gateway.say("half ");
    gateway.say(AWAY);
    let (mut first, delay) = until_retrying(&mut ws, "a").await;

    let mut late = gateway.connect().await;
    let ack = late.call("agent", again.clone()).await;
    assert_eq!(ack["payload"]["status"], "in_flight", "{ack}");
    let (seen, left) = until_retrying(&mut late, "a").await;
    assert_eq!((steps(&seen), left), (retrying(), delay));
    late.request("third", "agent", again.clone()).await;
    ws.request("second", "agent", again.clone()).await;
    for (ws, id) in [(&mut late, "third"), (&mut ws, "second")] {
        let ack = ws.response(id).await;
        assert_eq!(ack["payload"]["status"], "in_flight", "{ack}");
    }
    gateway.pass(delay).await;
    first.extend(ws.until(|frame| is_chat(frame, "a", "delta")).await);
    let mut after = gateway.connect().await;
    let ack = after.call("agent", again).await;
    assert_eq!(ack["payload"]["status"], "in_flight", "{ack}");
    gateway.say("whole");
    gateway.say(None);
    first.extend(ws.until(|frame| is_terminal(frame, "a")).await);
    assert_eq!(steps(&first), retrying());
    for ws in [&mut late, &mut after] {
        let rest = ws.until(|frame| is_terminal(frame, "a")).await;
        assert_eq!(steps(&rest), []);
    }
}
