//! Starting, asking, stopping, starting again.

use serde_json::{Value, json};
use tidegate_tests::{Frame, Gateway, Provider, signal, tidegate};

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the state")
}

#[tokio::test]
async fn health_is_asked_in_words_in_json_and_by_http() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let words = gateway.run(&["gateway", "health"]).await;
    assert_eq!(words.code, Some(0), "{words:#?}");
    assert!(
        words.stdout.starts_with("ok: gateway ") && words.stdout.lines().count() == 1,
        "{words:#?}"
    );
    let json = gateway.run(&["gateway", "health", "--json"]).await;
    assert_eq!((json.code, &json.json()["ok"]), (Some(0), &json!(true)));
    let (status, body) = gateway.get("/healthz").await;
    assert_eq!(status, 200);
    let live: Value = serde_json::from_str(&body).expect("the body is JSON");
    assert_eq!(live, json!({ "ok": true, "status": "live" }));
    let (status, body) = gateway.get("/readyz").await;
    let ready: Value = serde_json::from_str(&body).expect("the body is JSON");
    assert_eq!((status, &ready["ready"]), (200, &json!(true)));
}

#[tokio::test]
async fn a_call_prints_the_payload_and_takes_parameters() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let status = gateway.run(&["gateway", "call", "status"]).await;
    assert_eq!(status.code, Some(0), "{status:#?}");
    assert_eq!(status.json()["pid"], gateway.pid());
    for key in ["agent:main:a", "agent:main:b"] {
        let said = gateway
            .run(&["agent", "-m", "hi", "--session-key", key])
            .await;
        assert_eq!(said.code, Some(0), "{said:#?}");
    }
    let list = gateway
        .run(&[
            "gateway",
            "call",
            "sessions.list",
            "--params",
            r#"{"limit":1}"#,
        ])
        .await;
    assert_eq!(
        list.json()["sessions"][0]["key"],
        "agent:main:b",
        "{list:#?}"
    );
    assert_eq!(list.json()["count"], 1);
}

/// Surface 1.5: clients are told before they are left, and the end is in order.
#[tokio::test]
async fn a_signal_stops_the_gateway_in_order() {
    for name in ["TERM", "INT"] {
        let dir = state();
        let gateway = Gateway::start(dir.path(), &[]).await;
        let mut client = gateway.client().await;
        signal(gateway.pid(), name).await;
        let told = client
            .find("shutdown", |frame| frame["event"] == "shutdown")
            .await;
        assert!(told["payload"]["reason"].is_string(), "{told}");
        let close = loop {
            if let Frame::Closed(close) = client.frame().await {
                break close;
            }
        };
        assert_eq!(close.map(|close| close.0), Some(1012));
        assert_eq!(gateway.ended().await.0, Some(0), "{name}");
    }
}

/// P21, P22, P23, B-030, B-031: after SIGTERM the run at work ends and is answered; what waits
/// and what comes is deferred, and what was accepted runs after the next start.
#[tokio::test]
async fn a_stop_lets_the_run_at_work_end_and_keeps_what_waits() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    let first = client.submit("agent:main:main", "first", "one").await;
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("an ").await);
    let second = client.submit("agent:main:main", "second", "two").await;
    signal(gateway.pid(), "TERM").await;
    let refused = client.until_it_drains().await;
    assert_eq!(refused["retryable"], true, "{refused}");
    assert_eq!(
        refused["details"]["reason"], "gateway-restarting",
        "{refused}"
    );
    assert!(call.text("answer").await && call.done().await);
    let answer = client
        .response(&first)
        .await
        .expect("the run at work ended well");
    assert_eq!(answer["status"], "ok", "{answer}");
    let deferred = client
        .response(&second)
        .await
        .expect_err("the waiting one is deferred");
    assert_eq!(deferred["retryable"], true, "{deferred}");
    assert_eq!(gateway.ended().await.0, Some(0));

    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut call = provider.call().await;
    assert_eq!(call.message(), "two");
    assert!(call.begin().await && call.text("later").await && call.done().await);
    let mut client = gateway.client().await;
    let end = client
        .request("agent.wait", json!({ "runId": "second" }))
        .await
        .expect("answered");
    assert_eq!(end["status"], "ok", "{end}");
}

/// P21, P23, R147: a second signal ends the waiting for what is at work; it goes on after the
/// next start, and a wait is told why it was cut short.
#[tokio::test]
async fn a_run_that_a_second_signal_cuts_goes_on_after_the_next_start() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let agent = gateway.command(&["agent", "-m", "go on", "--idempotency-key", "kept"]);
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("half an ans").await);
    let mut client = gateway.client().await;
    let wait = client
        .send(
            "agent.wait",
            json!({ "runId": "kept", "timeoutMs": 500_000 }),
        )
        .await;
    signal(gateway.pid(), "TERM").await;
    client.until_it_drains().await;
    signal(gateway.pid(), "TERM").await;
    let cut = client.response(&wait).await.expect("an answer");
    assert_eq!(
        cut,
        json!({ "runId": "kept", "status": "timeout", "timeoutPhase": "gateway_draining" })
    );
    assert_eq!(gateway.ended().await.0, Some(0));
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(
        said.stderr.contains("kept and runs after the restart"),
        "{said:#?}"
    );
    call.closed().await;

    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut call = provider.call().await;
    assert_eq!(call.message(), "go on");
    assert!(call.begin().await && call.text("a whole answer").await && call.done().await);
    let said = gateway
        .run(&["agent", "-m", "go on", "--idempotency-key", "kept"])
        .await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "a whole answer\n"),
        "{said:#?}"
    );
}

/// P06, R8: the receipt is durable; the model is not asked again.
#[tokio::test]
async fn a_restart_remembers_a_finished_run() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let line = ["agent", "-m", "once", "--idempotency-key", "done", "--json"];
    let agent = gateway.command(&line);
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("Said once.").await && call.done().await);
    let first = agent.ended().await;
    gateway.kill().await;
    drop(provider);

    let gateway = Gateway::with_provider(dir.path(), "http://127.0.0.1:9/v1").await;
    let again = gateway.run(&line).await;
    assert_eq!(again.code, Some(0), "{again:#?}");
    assert_eq!(again.json(), first.json());
}

#[tokio::test]
async fn every_command_has_a_manual_page() {
    for command in [
        &[][..],
        &["agent"],
        &["gateway"],
        &["gateway", "run"],
        &["gateway", "health"],
        &["gateway", "call"],
        &["sim"],
        &["sim", "run"],
        &["sim", "replay"],
    ] {
        let mut line = command.to_vec();
        line.push("--help");
        let page = tidegate(&line).await;
        assert_eq!(page.code, Some(0), "{page:#?}");
        assert!(page.stdout.contains("Exit codes:"), "{page:#?}");
    }
}
