//! A model call that is made again, as those who follow the conversation see it.

mod support;

use serde_json::{Value, json};
use support::{AWAY, Gateway, Socket, is_chat, is_terminal};
use tidegate_core::{Config, RecoveryConfig};

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
