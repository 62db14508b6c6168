//! A message all the way through and back, as a user sees it.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tidegate_tests::{Gateway, Provider};

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the state")
}

/// A fresh state directory, one command, a reply.
#[tokio::test]
async fn a_first_message_is_answered_by_the_demo_model_which_says_so() {
    let dir = state();
    let gateway = Gateway::start(&dir.path().join("made/at/start"), &[]).await;
    let said = gateway.run(&["agent", "-m", "hello"]).await;
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (Some(0), ""),
        "{said:#?}"
    );
    assert!(said.stdout.to_lowercase().contains("demo"), "{said:#?}");
    assert!(
        said.stdout.ends_with('\n') && !said.stdout.ends_with("\n\n"),
        "{said:#?}"
    );
}

/// What the start prints is true, and the secret is not among it.
#[tokio::test]
async fn the_start_says_what_one_needs_to_know() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let banner = gateway.banner.join("\n");
    let path = dir.path().to_str().expect("the name is text");
    for needed in [
        &gateway.url(),
        path,
        "token",
        "demo",
        "--provider-url",
        "tidegate agent -m",
    ] {
        assert!(banner.contains(needed), "{needed} is missing:\n{banner}");
    }
    assert!(
        !banner.contains(&gateway.token()),
        "the token itself is printed:\n{banner}"
    );
    let mode = |name: &str| {
        let meta = std::fs::metadata(dir.path().join(name)).expect("it exists");
        meta.permissions().mode() & 0o777
    };
    assert_eq!(mode("token"), 0o600);
}

/// The final payload, with `status: "ok"` for a completed run.
#[tokio::test]
async fn the_json_answer_is_the_final_payload() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let said = gateway
        .run(&["agent", "-m", "hello", "--idempotency-key", "k1", "--json"])
        .await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let payload = said.json();
    assert_eq!(payload["status"], "ok");
    assert_eq!(payload["runId"], "k1");
    assert_eq!(payload["summary"], "completed");
    assert!(
        payload["result"]["payloads"][0]["text"].is_string(),
        "{payload}"
    );
}

/// The text comes while the model speaks, not at its end.
#[tokio::test]
async fn a_reply_is_printed_while_it_grows() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut agent = gateway.in_terminal(&["agent", "-m", "count"]);
    let mut call = provider.call().await;
    assert_eq!(call.message(), "count");
    assert!(call.begin().await && call.text("one, ").await);
    agent.says("one, ").await;
    assert!(call.text("two").await);
    agent.says("two").await;
    assert!(call.text(", three").await && call.done().await);
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "one, two, three\r\n"),
        "{said:#?}"
    );
}

/// An OpenAI-compatible server is asked with its key, and nobody else sees it.
#[tokio::test]
async fn the_provider_is_asked_for_the_model_with_its_key() {
    let dir = state();
    let mut provider = Provider::start().await;
    let url = provider.url();
    let flags = ["--provider-url", &url, "--model", "small-one"];
    let key = [("TIDEGATE_PROVIDER_KEY", "sk-very-secret")];
    let gateway = Gateway::start_in(dir.path(), &flags, &key).await;
    assert!(!gateway.banner.join("\n").contains("sk-very-secret"));
    let agent = gateway.command(&["agent", "-m", "hi"]);
    let mut call = provider.call().await;
    assert!(
        call.head.starts_with("POST /v1/chat/completions "),
        "{}",
        call.head
    );
    assert!(
        call.head.contains("Bearer sk-very-secret"),
        "the key is sent to the provider"
    );
    assert_eq!(
        (&call.body["model"], &call.body["stream"]),
        (&json!("small-one"), &json!(true))
    );
    assert!(call.begin().await && call.text("Hello.").await && call.done().await);
    assert_eq!(agent.ended().await.stdout, "Hello.\n");
}

/// The second message of a session is sent with the first and its answer.
#[tokio::test]
async fn a_session_remembers() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    for (message, reply) in [("my name is Ada", "Hello Ada."), ("who am I?", "Ada.")] {
        let agent = gateway.command(&["agent", "-m", message, "--session-key", "agent:main:s"]);
        let mut call = provider.call().await;
        if message == "who am I?" {
            let rows = call.conversation();
            let rows: Vec<_> = rows
                .iter()
                .map(|(who, what)| (who.as_str(), what.as_str()))
                .collect();
            let said = [
                ("user", "my name is Ada"),
                ("assistant", "Hello Ada."),
                ("user", message),
            ];
            assert_eq!(rows[rows.len() - 3..], said);
        }
        assert!(call.begin().await && call.text(reply).await && call.done().await);
        assert_eq!(agent.ended().await.code, Some(0));
    }
}

/// P17: Ctrl-C stops the run itself, not only the command.
#[tokio::test]
async fn ctrl_c_stops_the_run_and_exits_130() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut agent = gateway.in_terminal(&["agent", "-m", "talk", "--idempotency-key", "long"]);
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("On and on").await);
    agent.says("On and on").await;
    agent.presses("\u{3}").await;
    let said = agent.ended().await;
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert!(said.stdout.starts_with("On and on"), "{said:#?}");
    assert!(said.stdout.contains("the run was stopped"), "{said:#?}");
    call.closed().await;
    let end = gateway
        .run(&[
            "gateway",
            "call",
            "agent.wait",
            "--params",
            r#"{"runId":"long","timeoutMs":0}"#,
        ])
        .await;
    assert_eq!(end.json()["stopReason"], "rpc", "{end:#?}");
}

/// P06: the same name is the same run; its answer is told again, the model is not asked.
#[tokio::test]
async fn the_same_key_is_the_same_run() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let line = ["agent", "-m", "once", "--idempotency-key", "same"];
    let first = gateway.command(&line);
    let mut call = provider.call().await;
    let second = gateway.command(&line);
    assert!(call.begin().await && call.text("Only once.").await && call.done().await);
    assert_eq!(first.ended().await.stdout, "Only once.\n");
    let second = second.ended().await;
    assert_eq!(
        (second.code, second.stdout.as_str()),
        (Some(0), "Only once.\n"),
        "{second:#?}"
    );
    let third = gateway.run(&line).await;
    assert_eq!(
        (third.code, third.stdout.as_str()),
        (Some(0), "Only once.\n"),
        "{third:#?}"
    );
    let other = gateway
        .run(&[
            "agent",
            "-m",
            "another text",
            "--idempotency-key",
            "same",
            "--json",
        ])
        .await;
    assert_eq!(other.code, Some(1), "same key, another body: {other:#?}");
    assert_eq!(
        other.json()["error"]["code"],
        "INVALID_REQUEST",
        "{other:#?}"
    );
}

/// P12, R157: `--provider-timeout` lowers the idle limit, and the reason is the true one.
#[tokio::test]
async fn a_stalled_provider_ends_the_run_by_its_idle_limit() {
    let dir = state();
    let mut provider = Provider::start().await;
    let url = provider.url();
    let flags = [
        "--provider-url",
        &url,
        "--model",
        "m",
        "--provider-timeout",
        "1",
        "--provider-retries",
        "0",
    ];
    let gateway = Gateway::start(dir.path(), &flags).await;
    let agent = gateway.command(&["agent", "-m", "hi", "--json"]);
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("and then").await);
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    let payload = said.json();
    assert_eq!(payload["status"], "timeout", "{payload}");
    assert_eq!(payload["timeoutPhase"], "provider", "{payload}");
    assert_eq!(payload["providerStarted"], true, "{payload}");
    call.closed().await;
}

/// A provider that refuses is named with its status, and the next one is well.
#[tokio::test]
async fn a_refusing_provider_fails_the_run_with_its_words() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let agent = gateway.command(&["agent", "-m", "hi"]);
    assert!(
        provider
            .call()
            .await
            .refuse(401, "this key is no key")
            .await
    );
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(1), ""),
        "{said:#?}"
    );
    assert!(
        said.stderr.contains("401") || said.stderr.contains("this key is no key"),
        "{said:#?}"
    );
    let agent = gateway.command(&["agent", "-m", "hi", "--json"]);
    assert!(provider.call().await.refuse(401, "no key").await);
    let told = agent.ended().await.json();
    assert_eq!(told["error"]["details"]["reason"], "auth", "{told:#}");
    let agent = gateway.command(&["agent", "-m", "again"]);
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("Well.").await && call.done().await);
    assert_eq!(agent.ended().await.stdout, "Well.\n");
}
