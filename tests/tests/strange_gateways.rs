//! The commands against gateways that behave as none of ours would: older, broken, going
//! down. Each end is told truly, with an exit code that a script can trust (surface 5.4).

use serde_json::{Value, json};
use tidegate_tests::{Played, Stub, signal};

const AGENT: [&str; 3] = ["agent", "-m", "hi"];

/// Takes an `agent` request and acknowledges it.
async fn accept(played: &mut Played) -> Value {
    let request = played.request().await;
    assert_eq!(request["method"], "agent");
    let ack = json!({ "runId": request["params"]["idempotencyKey"], "status": "accepted",
        "sessionKey": "agent:main:resolved" });
    played.ok(&request, ack).await;
    request
}

fn finished(request: &Value, status: &str, text: &str) -> Value {
    json!({ "runId": request["params"]["idempotencyKey"], "status": status, "summary": "s",
        "result": { "payloads": [{ "text": text }], "meta": { "durationMs": 1, "aborted": false } } })
}

/// An `agent` event with text.
fn text(run: &str, text: &str) -> Value {
    json!({ "runId": run, "sessionKey": "s", "agentId": "main", "stream": "assistant",
        "data": { "text": text, "delta": text }, "seq": 1, "ts": 1 })
}

#[tokio::test]
async fn one_answer_without_an_acceptance_is_enough() {
    let stub = Stub::listen().await;
    let agent = stub.command(&AGENT);
    let mut played = stub.welcome().await;
    let request = played.request().await;
    assert_eq!(request["params"]["message"], "hi");
    played
        .ok(&request, finished(&request, "ok", "Hello."))
        .await;
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Hello.\n"),
        "{said:#?}"
    );
}

#[tokio::test]
async fn any_other_end_than_ok_exits_1() {
    for status in ["timeout", "error"] {
        let stub = Stub::listen().await;
        let agent = stub.command(&["agent", "-m", "hi", "--json"]);
        let mut played = stub.welcome().await;
        let request = accept(&mut played).await;
        let payload = finished(&request, status, "so far");
        played.ok(&request, payload.clone()).await;
        let said = agent.ended().await;
        assert_eq!((said.code, said.json()), (Some(1), payload), "{said:#?}");
    }
}

#[tokio::test]
async fn a_refusal_after_the_acceptance_names_the_run() {
    let stub = Stub::listen().await;
    let agent = stub.command(&["agent", "-m", "hi", "--json", "--idempotency-key", "k"]);
    let mut played = stub.welcome().await;
    let request = accept(&mut played).await;
    let error = json!({ "code": "UNAVAILABLE", "message": "it threw", "retryable": true });
    played.refuse(&request, error).await;
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    let json = said.json();
    assert_eq!(json["runId"], "k");
    assert_eq!(json["origin"], "gateway");
    assert_eq!(json["error"]["message"], "it threw");
    assert_eq!(json["error"]["retryable"], true);
}

/// Surface 2.1: a failed run has a payload and an error; a script sees both.
#[tokio::test]
async fn a_failed_run_shows_its_payload_and_its_error() {
    let stub = Stub::listen().await;
    let agent = stub.command(&["agent", "-m", "hi", "--json", "--idempotency-key", "k"]);
    let mut played = stub.welcome().await;
    let request = accept(&mut played).await;
    let frame = json!({ "type": "res", "id": request["id"], "ok": false,
        "payload": { "runId": "k", "status": "error", "summary": "it threw" },
        "error": { "code": "UNAVAILABLE", "message": "it threw" } });
    played.raw(&frame.to_string()).await;
    let said = agent.ended().await;
    let expected = json!({ "ok": false, "origin": "gateway", "runId": "k", "status": "error",
        "summary": "it threw", "error": { "type": "gateway_request_error", "code": "UNAVAILABLE",
        "message": "it threw", "retryable": false } });
    assert_eq!((said.code, said.json()), (Some(1), expected), "{said:#?}");
}

/// R200, B-018: a lost connection is not the end of the run, and is not called one.
#[tokio::test]
async fn a_gateway_that_goes_down_leaves_the_run_alive() {
    let stub = Stub::listen().await;
    let agent = stub.command(&["agent", "-m", "hi", "--json", "--idempotency-key", "k"]);
    let mut played = stub.welcome().await;
    accept(&mut played).await;
    played
        .event("shutdown", json!({ "reason": "upgrade" }))
        .await;
    played.close(1012, "service restart").await;
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    let json = said.json();
    assert_eq!(
        (&json["runId"], &json["error"]["type"]),
        (&json!("k"), &json!("gateway_transport_error"))
    );
    for needed in [
        "1012: service restart",
        "upgrade",
        "--idempotency-key k",
        "accepted",
    ] {
        assert!(said.stderr.contains(needed), "{needed}: {said:#?}");
    }
}

/// A second Ctrl-C does not wait for a gateway that does not answer.
#[tokio::test]
async fn a_second_ctrl_c_exits_at_once() {
    let stub = Stub::listen().await;
    let mut agent = stub.in_terminal(&["agent", "-m", "hi", "--idempotency-key", "k"]);
    let mut played = stub.welcome().await;
    accept(&mut played).await;
    played.event("agent", text("k", "On and on")).await;
    agent.says("On and on").await;
    agent.presses("\u{3}").await;
    let abort = played.request().await;
    assert_eq!(abort["method"], "chat.abort");
    assert_eq!(
        abort["params"],
        json!({ "runId": "k", "sessionKey": "agent:main:resolved" })
    );
    agent.presses("\u{3}").await;
    let said = agent.ended().await;
    assert_eq!(said.code, Some(130), "{said:#?}");
}

/// Law 10: what came too late to stop is not called stopped.
#[tokio::test]
async fn a_run_that_ended_before_its_abort_shows_its_answer() {
    let stub = Stub::listen().await;
    let agent = stub.command(&AGENT);
    let mut played = stub.welcome().await;
    let request = accept(&mut played).await;
    signal(agent.pid(), "INT").await;
    let abort = played.request().await;
    played
        .ok(
            &abort,
            json!({ "ok": true, "aborted": false, "runIds": [] }),
        )
        .await;
    played
        .ok(&request, finished(&request, "ok", "Done before."))
        .await;
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(130), "Done before.\n"),
        "{said:#?}"
    );
    assert!(!said.stderr.contains("stopped"), "{said:#?}");
}

#[tokio::test]
async fn frames_that_are_none_are_said_to_be_none() {
    for garbage in ["not JSON", "{}", r#"{"type":"other"}"#] {
        let stub = Stub::listen().await;
        let call = stub.command(&["gateway", "call", "status", "--json"]);
        let mut played = stub.welcome().await;
        played.request().await;
        played.raw(garbage).await;
        let said = call.ended().await;
        assert_eq!(said.code, Some(1), "{said:#?}");
        assert_eq!(
            said.json()["error"]["type"],
            "gateway_transport_error",
            "{said:#?}"
        );
    }
}

/// Text of other runs, and of streams unknown to us, is not this run's reply.
#[tokio::test]
async fn only_the_own_runs_text_is_printed() {
    let stub = Stub::listen().await;
    let mut agent = stub.in_terminal(&["agent", "-m", "hi", "--idempotency-key", "mine"]);
    let mut played = stub.welcome().await;
    let request = accept(&mut played).await;
    played.event("agent", text("another", "not this")).await;
    played
        .event(
            "agent",
            json!({ "runId": "mine", "stream": "thinking", "data": {} }),
        )
        .await;
    played.event("agent", text("mine", "This.")).await;
    agent.says("This.").await;
    played.ok(&request, finished(&request, "ok", "This.")).await;
    assert_eq!(agent.ended().await.stdout, "This.\r\n");
}
