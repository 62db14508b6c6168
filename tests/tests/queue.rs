//! Queue modes through the real gateway: what a chat message does to a session that is busy.

use serde_json::{Value, json};
use tidegate_tests::{Call, Client, Gateway, Provider, signal};

const MAIN: &str = "agent:main:main";

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the state")
}

/// Sends a chat message and gives the acknowledgement.
async fn send(client: &mut Client, run: &str, message: &str, mode: Option<&str>) -> Value {
    let mut params = json!({ "sessionKey": MAIN, "idempotencyKey": run, "message": message });
    if let Some(mode) = mode {
        params["queueMode"] = mode.into();
    }
    let sent = client.request("chat.send", params).await;
    sent.unwrap_or_else(|error| panic!("{run} is refused: {error}"))
}

/// The last word of the conversation about a run: state, text.
async fn last_word(client: &mut Client, run: &str) -> (String, Option<String>) {
    let told = client
        .find(&format!("the end of {run}"), |frame| {
            let payload = &frame["payload"];
            frame["event"] == "chat"
                && payload["runId"] == run
                && ["final", "aborted", "error"].contains(&payload["state"].as_str().unwrap_or(""))
        })
        .await;
    let payload = &told["payload"];
    let text = payload["message"]["content"][0]["text"].as_str();
    let state = payload["state"].as_str().unwrap_or_default();
    (state.to_owned(), text.map(ToOwned::to_owned))
}

fn answered(text: &str) -> (String, Option<String>) {
    ("final".to_owned(), Some(text.to_owned()))
}

/// Answers a call whole.
async fn answer(mut call: Call, text: &str) {
    assert!(call.begin().await && call.text(text).await && call.done().await);
}

/// A gateway whose main session has the run `first` at its model.
async fn busy(dir: &tempfile::TempDir) -> (Gateway, Provider, Client, Call) {
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    let ack = send(&mut client, "first", "one", None).await;
    assert_eq!(
        (&ack["status"], &ack["inputState"]),
        (&json!("started"), &json!("started"))
    );
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("first ").await);
    (gateway, provider, client, call)
}

/// R44, R148, P26, B-070: a steered message is told to be on its way, and has its own answer.
#[tokio::test]
async fn a_message_steers_into_the_run_at_work() {
    let dir = state();
    let (_gateway, mut provider, mut client, mut call) = busy(&dir).await;
    let ack = send(&mut client, "second", "two", Some("steer")).await;
    assert_eq!(
        (&ack["inputState"], &ack["steeredInto"]),
        (&json!("steered"), &json!("first"))
    );
    let wait = json!({ "runId": "second", "timeoutMs": 20_000 });
    let pending = client.request("agent.wait", wait).await.expect("an answer");
    let queued = json!({ "runId": "second", "status": "pending", "timeoutPhase": "queue", "providerStarted": false });
    assert_eq!(pending, queued);
    assert!(call.text("answer").await && call.done().await);
    assert_eq!(
        last_word(&mut client, "first").await,
        answered("first answer")
    );
    let call = provider.call().await;
    assert_eq!(call.message(), "two");
    answer(call, "second answer").await;
    assert_eq!(
        last_word(&mut client, "second").await,
        answered("second answer")
    );
}

/// R45, P05: follow-ups run one by one in their order.
#[tokio::test]
async fn messages_follow_the_run_at_work() {
    let dir = state();
    let (_gateway, mut provider, mut client, call) = busy(&dir).await;
    for (n, run) in ["second", "third"].into_iter().enumerate() {
        let ack = send(&mut client, run, run, Some("followup")).await;
        assert_eq!(
            (&ack["inputState"], &ack["queuedAhead"]),
            (&json!("queued"), &json!(n + 1))
        );
    }
    assert!(call.done().await);
    for run in ["second", "third"] {
        let call = provider.call().await;
        assert_eq!(call.message(), run);
        answer(call, run).await;
        assert_eq!(last_word(&mut client, run).await, answered(run));
    }
}

/// R46, P33, I46: messages that were collected are answered once, together.
#[tokio::test]
async fn messages_are_collected_into_one_turn() {
    let dir = state();
    let (_gateway, mut provider, mut client, call) = busy(&dir).await;
    for run in ["second", "third"] {
        send(&mut client, run, &format!("message {run}"), Some("collect")).await;
    }
    assert!(call.done().await);
    let call = provider.call().await;
    let asked = call.message();
    let at = ["Queued #1", "message second", "Queued #2", "message third"].map(|part| {
        asked
            .find(part)
            .unwrap_or_else(|| panic!("no {part:?} in {asked:?}"))
    });
    assert!(at.is_sorted(), "{asked}");
    answer(call, "both").await;
    assert_eq!(last_word(&mut client, "second").await, answered("both"));
    assert_eq!(
        last_word(&mut client, "third").await,
        ("final".to_owned(), None)
    );
    let wait = json!({ "runId": "third" });
    let end = client.request("agent.wait", wait).await.expect("an answer");
    assert_eq!(
        (&end["status"], &end["answeredIn"]),
        (&json!("ok"), &json!("second"))
    );
    assert_eq!(end["terminalReply"]["text"], "both", "{end}");
}

/// R47, B-072, B-073: an interrupting message stops the run at work and is answered.
#[tokio::test]
async fn a_message_interrupts_the_run_at_work() {
    let dir = state();
    let (_gateway, mut provider, mut client, call) = busy(&dir).await;
    let ack = send(&mut client, "second", "two", Some("interrupt")).await;
    assert_eq!(
        (&ack["inputState"], &ack["interruptedActiveRun"]),
        (&json!("interrupting"), &json!(true))
    );
    call.closed().await;
    let stopped = ("aborted".to_owned(), Some("first ".to_owned()));
    assert_eq!(last_word(&mut client, "first").await, stopped);
    let call = provider.call().await;
    assert_eq!(call.message(), "two");
    answer(call, "second answer").await;
    assert_eq!(
        last_word(&mut client, "second").await,
        answered("second answer")
    );
}

/// R202, law 5: a session's own queue settings are set by `/queue`, told, and survive a restart.
#[tokio::test]
async fn queue_settings_of_a_session_survive_a_restart() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    send(&mut client, "set", "/queue collect debounce:50 cap:7", None).await;
    let (state, said) = last_word(&mut client, "set").await;
    let said = said.unwrap_or_default();
    assert!(
        state == "final" && said.contains("collect") && said.contains('7'),
        "{state}: {said}"
    );
    gateway.kill().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    send(&mut client, "first", "one", None).await;
    let call = provider.call().await;
    for run in ["second", "third"] {
        let ack = send(&mut client, run, run, None).await;
        assert_eq!(ack["inputState"], "queued", "{ack}");
    }
    answer(call, "x").await;
    let call = provider.call().await;
    assert!(call.message().contains("Queued #2"), "{}", call.message());
    answer(call, "y").await;
    last_word(&mut client, "third").await;
}

/// R45, R44: what the configuration says holds where neither message nor session says otherwise.
#[tokio::test]
async fn the_configured_mode_holds() {
    let dir = state();
    let config = dir.path().join("tidegate.json5");
    std::fs::write(
        &config,
        "{ messages: { queue: { mode: 'followup', debounceMs: 0 } } }",
    )
    .expect("the file is written");
    let mut provider = Provider::start().await;
    let url = provider.url();
    let path = config.to_str().expect("the name is text");
    let state = dir.path().join("state");
    let args = [
        "--config",
        path,
        "--provider-url",
        &url,
        "--model",
        "scripted",
    ];
    let gateway = Gateway::start(&state, &args).await;
    let mut client = gateway.client().await;
    send(&mut client, "first", "one", None).await;
    let call = provider.call().await;
    let ack = send(&mut client, "second", "two", None).await;
    assert_eq!(ack["inputState"], "queued", "{ack}");
    let ack = send(&mut client, "third", "three", Some("interrupt")).await;
    assert_eq!(ack["inputState"], "queued", "nobody overtakes: {ack}");
    answer(call, "x").await;
    assert_eq!(provider.call().await.message(), "two");
}

/// P18, B-023, B-024: after a reset the old run is stopped, and its history is another one's.
#[tokio::test]
async fn a_reset_begins_a_new_history() {
    let dir = state();
    let (_gateway, mut provider, mut client, call) = busy(&dir).await;
    send(&mut client, "queued", "waits", Some("followup")).await;
    let reset = client
        .request("sessions.reset", json!({ "key": MAIN }))
        .await;
    assert_eq!(reset.expect("the session begins anew")["ok"], true);
    call.closed().await;
    assert_eq!(last_word(&mut client, "first").await.0, "aborted");
    assert_eq!(last_word(&mut client, "queued").await.0, "aborted");
    send(&mut client, "new", "hello", None).await;
    let call = provider.call().await;
    let said: Vec<String> = call
        .conversation()
        .into_iter()
        .filter(|(role, _)| role != "system")
        .map(|(_, text)| text)
        .collect();
    assert_eq!(said, ["hello"]);
    answer(call, "anew").await;
    last_word(&mut client, "new").await;
    let history = client
        .request("chat.history", json!({ "sessionKey": MAIN }))
        .await;
    let history = history.expect("a history");
    let texts: Vec<&Value> = history["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| &row["role"])
        .collect();
    assert_eq!(texts, ["user", "assistant"], "{history}");
}

/// P21, P22, P23, L11, B-030: SIGTERM during three runs and five queued messages: the runs end and
/// are answered, the process ends, and the next one answers the five in their order.
#[tokio::test]
async fn a_stop_keeps_what_is_queued_and_the_next_start_answers_it_in_order() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    let mut calls = Vec::new();
    let chat = |session: &str, run: &str| json!({ "sessionKey": format!("agent:main:{session}"), "idempotencyKey": run, "message": run, "queueMode": "followup" });
    for session in ["a", "b", "c"] {
        let sent = client
            .request("chat.send", chat(session, &format!("{session}0")))
            .await;
        sent.expect("accepted");
        let mut call = provider.call().await;
        assert!(call.begin().await);
        calls.push((session, call));
    }
    let queued = [
        ("a", "a1"),
        ("a", "a2"),
        ("b", "b1"),
        ("a", "a3"),
        ("c", "c1"),
    ];
    for (session, run) in queued {
        client
            .request("chat.send", chat(session, run))
            .await
            .expect("accepted");
    }
    signal(gateway.pid(), "TERM").await;
    // The signal and the request race; once the drain has begun, all are refused.
    let mut tries = 0;
    let late = loop {
        tries += 1;
        let late = client
            .request("chat.send", chat("d", &format!("late{tries}")))
            .await;
        match late {
            Err(late) => break late,
            Ok(_) => answer(provider.call().await, "in time").await,
        }
    };
    assert_eq!(
        (&late["retryable"], &late["details"]["reason"]),
        (&json!(true), &json!("gateway-restarting"))
    );
    for (session, mut call) in calls {
        assert!(call.text(session).await && call.done().await);
        let run = format!("{session}0");
        assert_eq!(last_word(&mut client, &run).await, answered(session));
    }
    assert_eq!(gateway.ended().await.0, Some(0));

    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    let mut order: Vec<String> = Vec::new();
    for _ in queued {
        let call = provider.call().await;
        let run = call.message();
        answer(call, &format!("answer {run}")).await;
        order.push(run);
    }
    for (session, expected) in [
        ("a", &["a1", "a2", "a3"][..]),
        ("b", &["b1"]),
        ("c", &["c1"]),
    ] {
        let ran: Vec<&String> = order
            .iter()
            .filter(|run| run.starts_with(session))
            .collect();
        assert_eq!(ran, expected);
    }
    for (_, run) in queued {
        let end = client
            .request("agent.wait", json!({ "runId": run }))
            .await
            .expect("an end");
        assert_eq!(
            (&end["status"], &end["terminalReply"]["text"]),
            (&json!("ok"), &json!(format!("answer {run}"))),
            "{end}"
        );
    }
}

/// R42, law 9: a run may ask for another global lane; one that is closed refuses at once.
#[tokio::test]
async fn a_run_may_ask_for_another_lane() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    let agent = |lane: &str| json!({ "sessionKey": MAIN, "idempotencyKey": lane, "message": lane, "lane": lane });
    let closed = client.request("agent", agent("hook-dispatch")).await;
    let closed = closed.expect_err("hooks are off");
    assert_eq!(closed["details"]["reason"], "lane-closed", "{closed}");
    let unknown = client.request("agent", agent("fast")).await;
    let unknown = unknown.expect_err("there is no such lane");
    let said = unknown["message"].as_str().unwrap_or_default();
    assert!(
        said.contains("lane") && said.contains("subagent"),
        "{unknown}"
    );
    let id = client.send("agent", agent("subagent")).await;
    let first = client.response(&id).await.expect("accepted");
    assert_eq!(first["status"], "accepted", "{first}");
    answer(provider.call().await, "from below").await;
    let last = client.response(&id).await.expect("answered");
    assert_eq!(last["status"], "ok", "{last}");
}
