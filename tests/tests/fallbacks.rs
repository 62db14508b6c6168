//! A chain of two models, as a user sees it: another is asked when one can't answer, and the
//! answer is one.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_tests::{Call, Ended, Gateway, Provider};

/// The keys of the two.
const KEYS: [(&str, &str); 2] = [("FIRST_KEY", "sk-of-one"), ("SECOND_KEY", "sk-of-two")];

/// A gateway with two scripted models in a row.
struct Stage {
    dir: tempfile::TempDir,
    first: Provider,
    second: Provider,
    gateway: Gateway,
}

impl Stage {
    async fn set(retries: u8) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the state");
        let (first, second) = (Provider::start().await, Provider::start().await);
        let provider = |url: String, key| json!({ "baseUrl": url, "apiKey": key });
        let file = json!({
            "models": { "providers": {
                "one": provider(first.url(), "${FIRST_KEY}"),
                "two": provider(second.url(), "${SECOND_KEY}"),
            } },
            "agents": { "defaults": { "model": { "primary": "one/m", "fallbacks": ["two/n"] } } },
            "retry": { "provider": { "maxRetries": retries } },
        });
        let path = dir.path().join("tidegate.json5");
        std::fs::write(path, file.to_string()).expect("the directory is writable");
        let gateway = started(dir.path()).await;
        Self {
            dir,
            first,
            second,
            gateway,
        }
    }

    /// The first model is asked about `message`, with its own key.
    async fn first(&mut self, message: &str) -> Call {
        let call = self.first.call().await;
        is_about(&call, message, "m", "sk-of-one");
        call
    }

    /// The second model is asked about `message`, with its own key.
    async fn second(&mut self, message: &str) -> Call {
        let call = self.second.call().await;
        is_about(&call, message, "n", "sk-of-two");
        call
    }
}

async fn started(dir: &Path) -> Gateway {
    Gateway::start_in(dir, &[], &KEYS).await
}

/// Each model is asked under its own name, with its own key and no other.
fn is_about(call: &Call, message: &str, model: &str, key: &str) {
    assert_eq!(
        (call.message().as_str(), &call.body["model"]),
        (message, &json!(model))
    );
    assert!(
        call.head.contains(&format!("Bearer {key}")),
        "{}",
        call.head
    );
    assert_eq!(call.head.matches("sk-of-").count(), 1, "{}", call.head);
    assert!(!call.body.to_string().contains("sk-of-"), "{}", call.body);
}

async fn answers(mut call: Call, answer: &str) {
    assert!(call.begin().await && call.text(answer).await && call.done().await);
}

/// What is said on standard error when the second is asked.
fn note(why: &str) -> String {
    format!("tidegate: one/m: {why}; asking two/n instead\n")
}

fn told(said: &Ended) -> (Option<i32>, &str, &str) {
    (said.code, &said.stdout, &said.stderr)
}

/// P15: refused credentials are no reason to leave a message without an answer. No key goes to
/// the other, neither on the wire nor into a word that is told.
#[tokio::test]
async fn the_second_answers_when_the_first_refuses() {
    let mut stage = Stage::set(8).await;
    let line = ["agent", "-m", "hello", "--idempotency-key", "one"];
    let agent = stage.gateway.command(&line);
    assert!(stage.first("hello").await.refuse(401, "unknown key").await);
    answers(stage.second("hello").await, "Good day.").await;
    let said = agent.ended().await;
    let why = note("the model provider refused the credentials (HTTP 401)");
    assert_eq!(told(&said), (Some(0), "Good day.\n", why.as_str()));
    let again = stage.gateway.run(&line).await;
    assert_eq!(told(&again), (Some(0), "Good day.\n", ""));
    let banner = stage.gateway.banner.join("\n");
    assert!(banner.contains("; else two/n"), "{banner}");
    assert!(!banner.contains("sk-of-"), "{banner}");
}

/// P15: the step is told to programs too, with names and without addresses.
#[tokio::test]
async fn the_step_to_the_second_is_an_event() {
    let mut stage = Stage::set(8).await;
    let mut client = stage.gateway.client().await;
    client.submit("agent:main:main", "one", "hello").await;
    assert!(stage.first("hello").await.refuse(402, "pay").await);
    let falls_back = |frame: &Value| frame["payload"]["data"]["phase"] == "fallback";
    let told = client.find("another is asked", falls_back).await;
    assert_eq!(
        told["payload"]["data"],
        json!({
            "phase": "fallback", "from": "one/m", "to": "two/n", "reason": "billing",
            "message": "the model provider asks for payment (HTTP 402)",
        })
    );
    answers(stage.second("hello").await, "Good day.").await;
}

/// P15, B-050, B-051: a model that hangs uses up its share of the run's time and no more; the
/// second has the rest.
#[tokio::test]
async fn the_second_answers_within_the_time_when_the_first_hangs() {
    let mut stage = Stage::set(8).await;
    let line = ["agent", "-m", "hello", "--timeout", "3"];
    let agent = stage.gateway.command(&line);
    let silent = stage.first("hello").await;
    let second = stage.second("hello").await;
    silent.closed().await;
    answers(second, "Good day.").await;
    let said = agent.ended().await;
    let why = "the model provider took the request and sent nothing within the first-event limit";
    assert_eq!(told(&said), (Some(0), "Good day.\n", note(why).as_str()));
}

/// P15, B-058: what the first had shown is marked as no part of the answer, which is the
/// second's alone; a script gets that one.
#[tokio::test]
async fn the_second_ones_text_stands_alone_when_the_first_breaks_off() {
    let mut stage = Stage::set(0).await;
    let line = ["agent", "-m", "tell", "--idempotency-key", "one"];
    let agent = stage.gateway.command(&line);
    let mut call = stage.first("tell").await;
    assert!(call.begin().await && call.text("Once upon").await);
    let mut json = line.to_vec();
    json.push("--json");
    let script = stage.gateway.command(&json);
    call.break_off();
    let mut call = stage.second("tell").await;
    let spoken = call.conversation();
    assert_eq!(spoken.iter().filter(|row| row.0 == "user").count(), 1);
    assert!(call.begin().await && call.text("There ").await && call.text("was.").await);
    assert!(call.done().await);
    let said = agent.ended().await;
    let why = "the model provider can't be reached, or the connection to it broke";
    assert_eq!(told(&said), (Some(0), "There was.\n", note(why).as_str()));
    let said = script.ended().await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let payloads = &said.json()["result"]["payloads"];
    assert_eq!(payloads.as_array().map(Vec::len), Some(1), "{said:#?}");
    assert_eq!(payloads[0]["text"], "There was.", "{said:#?}");
}

/// P15, P16: the first is asked again before the second is asked at all; when nobody can answer,
/// the last reason is told, once.
#[tokio::test]
async fn the_last_reason_is_told_when_both_fail() {
    let mut stage = Stage::set(1).await;
    let agent = stage.gateway.command(&["agent", "-m", "hello"]);
    for words in ["under repair", "still under repair"] {
        assert!(stage.first("hello").await.refuse(503, words).await);
    }
    assert!(stage.second("hello").await.refuse(401, "unknown key").await);
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(1), ""),
        "{said:#?}"
    );
    let lines: Vec<_> = said.stderr.lines().collect();
    let failed = "the model provider failed (HTTP 503)";
    assert!(lines[0].contains("; asking again in "), "{said:#?}");
    assert_eq!(format!("{}\n", lines[1]), note(failed), "{said:#?}");
    assert!(
        lines[2].contains("the model provider refused the credentials (HTTP 401)")
            && lines[2].contains("unknown key"),
        "{said:#?}"
    );
    assert!(!said.stderr.contains("under repair"), "{said:#?}");
    let agent = stage.gateway.command(&["agent", "-m", "and now?"]);
    answers(stage.first("and now?").await, "Now.").await;
    assert_eq!(agent.ended().await.stdout, "Now.\n");
}

/// P15: a request that is wrong is wrong everywhere: the second never hears of it.
#[tokio::test]
async fn a_wrong_request_is_final_and_asks_nobody_else() {
    let mut stage = Stage::set(8).await;
    let agent = stage.gateway.command(&["agent", "-m", "wrong"]);
    assert!(stage.first("wrong").await.refuse(400, "bad field").await);
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(
        said.stderr.contains("bad field") && !said.stderr.contains("instead"),
        "{said:#?}"
    );
    let agent = stage.gateway.command(&["agent", "-m", "right"]);
    assert!(stage.first("right").await.refuse(401, "unknown key").await);
    // Its first request is about the second message.
    answers(stage.second("right").await, "Well.").await;
    assert_eq!(agent.ended().await.stdout, "Well.\n");
}

/// P15, P23: a kill during the second's call leaves nothing half done; the next start begins
/// with the first.
#[tokio::test]
async fn a_kill_begins_the_chain_anew() {
    let mut stage = Stage::set(8).await;
    let mut client = stage.gateway.client().await;
    client.submit("agent:main:main", "kept", "hello").await;
    assert!(stage.first("hello").await.refuse(401, "unknown key").await);
    let mut call = stage.second("hello").await;
    assert!(call.begin().await && call.text("Once upon").await);
    client
        .find("it is shown", |frame| {
            frame["payload"]["data"]["text"] == "Once upon"
        })
        .await;
    stage.gateway.kill().await;
    call.closed().await;
    stage.gateway = started(stage.dir.path()).await;
    answers(stage.first("hello").await, "There was.").await;
    let line = ["agent", "-m", "hello", "--idempotency-key", "kept"];
    let said = stage.gateway.run(&line).await;
    assert_eq!(told(&said), (Some(0), "There was.\n", ""));
}

/// P15: a server of the command line is asked alone, and no key of the file goes to it.
#[tokio::test]
async fn a_server_of_the_command_line_has_no_fallbacks() {
    let mut stage = Stage::set(8).await;
    let url = stage.second.url();
    assert_eq!(stage.gateway.stop().await.0, Some(0));
    let flags = ["--provider-url", &url, "--model", "n"];
    stage.gateway = Gateway::start_in(stage.dir.path(), &flags, &KEYS).await;
    let agent = stage.gateway.command(&["agent", "-m", "hello"]);
    let call = stage.second.call().await;
    assert!(!call.head.contains("sk-of-"), "{}", call.head);
    assert!(call.refuse(401, "unknown key").await);
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(!said.stderr.contains("instead"), "{said:#?}");
}
