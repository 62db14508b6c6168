//! A model that fails for a while, as a user sees it: asked again, answered once, stopped at once.

use serde_json::{Value, json};
use tidegate_tests::{Client, Gateway, Provider, Running, signal};

/// A gateway with a scripted model.
struct Stage {
    dir: tempfile::TempDir,
    provider: Provider,
    gateway: Gateway,
}

impl Stage {
    async fn set(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the state");
        let provider = Provider::start().await;
        let url = provider.url();
        let mut all = vec!["--provider-url", &url, "--model", "scripted"];
        all.extend(flags);
        let gateway = Gateway::start(dir.path(), &all).await;
        Self {
            dir,
            provider,
            gateway,
        }
    }

    /// The next model call is about `message` and is refused for so long that no test waits.
    async fn is_refused_for_long(&mut self, message: &str) {
        let call = self.provider.call().await;
        assert_eq!(call.message(), message);
        assert!(call.refuse_for(429, 600, "come back later").await);
    }

    /// The next model call is about `message`, and is answered.
    async fn answers(&mut self, message: &str, answer: &str) {
        let mut call = self.provider.call().await;
        assert_eq!(call.message(), message);
        assert!(call.begin().await && call.text(answer).await && call.done().await);
    }

    /// Lets the gateway end, and starts it again where it was.
    async fn over_an_end(self, end: impl AsyncFnOnce(Gateway)) -> Self {
        let Self {
            dir,
            provider,
            gateway,
        } = self;
        let port = gateway.port;
        end(gateway).await;
        let gateway = Gateway::with_provider_on(port, dir.path(), &provider.url()).await;
        Self {
            dir,
            provider,
            gateway,
        }
    }

    /// The answer to a message that was sent before under this name.
    async fn answer_again(&self, message: &str, key: &str) -> String {
        let again = ["agent", "-m", message, "--idempotency-key", key];
        let said = self.gateway.run(&again).await;
        assert_eq!(said.code, Some(0), "{said:#?}");
        said.stdout
    }
}

/// Sends a message and waits until its run waits to ask again.
async fn until_it_waits(stage: &mut Stage, key: &str, message: &str) -> Client {
    let mut client = stage.gateway.client().await;
    client.submit("agent:main:main", key, message).await;
    stage.is_refused_for_long(message).await;
    let waits = |frame: &Value| frame["payload"]["data"]["phase"] == "retrying";
    let told = client.find("it waits to ask again", waits).await;
    let data = &told["payload"]["data"];
    assert_eq!(
        (&data["delayMs"], &data["attempt"], &data["maxAttempts"]),
        (&json!(600_000), &json!(2), &json!(10)),
        "B-057: {told}"
    );
    client
}

/// P16, B-056: an outage that passes costs time and no message; the user is told why it waits.
#[tokio::test]
async fn an_outage_that_passes_is_asked_again_and_answered_once() {
    let mut stage = Stage::set(&[]).await;
    let line = ["agent", "-m", "hello", "--idempotency-key", "one"];
    let agent = stage.gateway.command(&line);
    for _ in 0..2 {
        let call = stage.provider.call().await;
        assert_eq!(call.conversation().len(), 1, "the message, once");
        assert!(call.refuse(503, "under repair").await);
    }
    stage.answers("hello", "Good day.").await;
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Good day.\n"),
        "{said:#?}"
    );
    let notes: Vec<&str> = said.stderr.lines().collect();
    for (note, number) in notes.iter().zip(["2", "3"]) {
        let why = "tidegate: the model provider failed (HTTP 503); asking again in ";
        assert!(
            note.starts_with(why) && note.ends_with(&format!(" s (call {number} of 9)")),
            "{said:#?}"
        );
    }
    assert_eq!(notes.len(), 2, "{said:#?}");
    assert_eq!(stage.answer_again("hello", "one").await, "Good day.\n");
}

/// P16, B-057: a provider's own wait is kept, and told.
#[tokio::test]
async fn a_rate_limits_own_wait_is_kept() {
    let mut stage = Stage::set(&[]).await;
    let mut chat = stage.gateway.chat();
    chat.types("hello").await;
    let call = stage.provider.call().await;
    assert!(call.refuse_for(429, 2, "slow down").await);
    let why = "the model provider limits the rate of requests (HTTP 429); ";
    let told = format!("{why}asking again in 2 s (call 2 of 10)\n");
    chat.notes(&told).await;
    stage.answers("hello", "Good day.").await;
    chat.types_no_more();
    let said = chat.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Good day.\n"),
        "{said:#?}"
    );
}

/// B-058, R121: what a broken stream had shown is marked as no part of the answer; a script gets the
/// answer alone.
#[tokio::test]
async fn a_reply_that_broke_off_begins_anew_and_is_given_once() {
    let mut stage = Stage::set(&[]).await;
    let line = ["agent", "-m", "tell", "--idempotency-key", "one"];
    let mut reader = stage.gateway.in_terminal(&line);
    let mut call = stage.provider.call().await;
    assert!(call.begin().await && call.text("Once upon").await);
    reader.says("Once upon").await;
    let script = stage.gateway.command(&line);
    let mut json = line.to_vec();
    json.push("--json");
    let json = stage.gateway.command(&json);
    call.break_off();
    reader.says("; asking again in ").await;
    let mut call = stage.provider.call().await;
    let spoken = call.conversation();
    assert_eq!(spoken.iter().filter(|row| row.0 == "user").count(), 1);
    assert!(call.begin().await && call.text("There ").await && call.text("was.").await);
    assert!(call.done().await);
    let said = reader.ended().await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let anew = "tidegate: the reply begins anew\r\nThere was.\r\n";
    assert!(said.stdout.ends_with(anew), "{said:#?}");
    let said = script.ended().await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "There was.\n"));
    assert!(!said.stderr.contains("begins anew"), "{said:#?}");
    let said = json.ended().await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let payloads = &said.json()["result"]["payloads"];
    assert_eq!(payloads[0]["text"], "There was.", "{said:#?}");
}

/// P17: Ctrl-C does not wait for the wait, and no model is asked any more.
#[tokio::test]
async fn ctrl_c_ends_the_wait_at_once() {
    let mut stage = Stage::set(&[]).await;
    let mut agent: Running = stage.gateway.command(&["agent", "-m", "talk"]);
    stage.is_refused_for_long("talk").await;
    agent.notes("asking again in 600 s (call 2 of 10)").await;
    signal(agent.pid(), "INT").await;
    let said = agent.ended().await;
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert!(said.stderr.contains("the run was stopped"), "{said:#?}");
    let agent = stage.gateway.command(&["agent", "-m", "and now?"]);
    stage.answers("and now?", "Now.").await;
    assert_eq!(agent.ended().await.stdout, "Now.\n");
}

/// P23: a run that waits to ask again is asked again by the next start, at once.
#[tokio::test]
async fn a_wait_that_a_kill_cuts_goes_on_after_the_next_start() {
    let mut stage = Stage::set(&[]).await;
    until_it_waits(&mut stage, "kept", "hello").await;
    let mut stage = stage.over_an_end(Gateway::kill).await;
    stage.answers("hello", "Good day.").await;
    assert_eq!(stage.answer_again("hello", "kept").await, "Good day.\n");
}

/// P21, P22, P23: a stop does not wait for a run that waits; it goes on after the next start.
#[tokio::test]
async fn a_stop_does_not_wait_for_the_wait() {
    let mut stage = Stage::set(&[]).await;
    until_it_waits(&mut stage, "kept", "hello").await;
    let stop = async |gateway: Gateway| assert_eq!(gateway.stop().await.0, Some(0));
    let mut stage = stage.over_an_end(stop).await;
    stage.answers("hello", "Good day.").await;
    assert_eq!(stage.answer_again("hello", "kept").await, "Good day.\n");
}

/// I36, R119: whoever wants no repetition gets none.
#[tokio::test]
async fn without_repetitions_a_failure_is_told_at_once() {
    let mut stage = Stage::set(&["--provider-retries", "0"]).await;
    let agent = stage.gateway.command(&["agent", "-m", "hello"]);
    let call = stage.provider.call().await;
    assert!(call.refuse(503, "under repair").await);
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(
        said.stderr.contains("under repair") && !said.stderr.contains("asking again"),
        "{said:#?}"
    );
    let agent = stage.gateway.command(&["agent", "-m", "again"]);
    stage.answers("again", "Well.").await;
    assert_eq!(agent.ended().await.stdout, "Well.\n");
}

/// P23, P33, B-058: what a terminal showed before a kill, and what the next attempt says otherwise, are not
/// taken for one text.
#[tokio::test]
async fn a_terminal_marks_a_reply_that_begins_anew_after_a_restart() {
    let mut stage = Stage::set(&[]).await;
    let mut chat = stage.gateway.chat_in_terminal();
    chat.says("\r\n> ").await;
    chat.types("tell").await;
    let mut call = stage.provider.call().await;
    assert!(call.begin().await && call.text("Once upon").await);
    chat.says("Once upon").await;
    let mut stage = stage.over_an_end(Gateway::kill).await;
    call.closed().await;
    stage.answers("tell", "There was.").await;
    chat.says("There was.\r\n> ").await;
    chat.types("/quit").await;
    let said = chat.ended().await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let shown = said
        .stdout
        .replace("\u{1b}[2m", "")
        .replace("\u{1b}[0m", "");
    assert!(
        shown.contains("the reply begins anew\r\nThere was.\r\n"),
        "{said:#?}"
    );
}
