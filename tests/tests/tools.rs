//! Commands that the model runs, as a user has them: allowed, denied, stopped, and over the
//! death of the gateway.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate_tests::{Call, Client, Gateway, Provider};

const SESSION: &str = "agent:main:main";

/// A gateway that lets a scripted model run commands.
struct Stage {
    dir: tempfile::TempDir,
    provider: Provider,
    gateway: Gateway,
}

impl Stage {
    /// One where a person must allow each command.
    async fn asking() -> Self {
        Self::set(r#"{ tools: { exec: { security: "full" } } }"#).await
    }

    /// One that runs commands without asking.
    async fn trusting() -> Self {
        Self::set(r#"{ tools: { exec: { security: "full", ask: "off" } } }"#).await
    }

    async fn set(configuration: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the state");
        let file = dir.path().join("tidegate.json5");
        std::fs::write(&file, configuration).expect("the configuration is written");
        let provider = Provider::start().await;
        let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
        Self {
            dir,
            provider,
            gateway,
        }
    }

    /// A file in the workspace.
    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("workspace").join(name)
    }

    /// A client that hears of tools.
    async fn client(&self) -> Client {
        let (url, token) = (self.gateway.url(), self.gateway.token());
        let connected = Client::connect_with(&url, &token, &["tool-events"]).await;
        connected.expect("the gateway takes its own token")
    }

    /// The next model call says `text` and asks for these commands.
    async fn asks_for(&mut self, text: &str, calls: &[(&str, &str)]) {
        let mut call = self.provider.call().await;
        assert!(call.begin().await);
        assert!(text.is_empty() || call.text(text).await);
        assert!(call.asks_for(calls).await);
    }

    /// The next model call, which is answered; gives the results that it was told.
    async fn answers(&mut self, answer: &str) -> Vec<(String, String)> {
        let call = self.provider.call().await;
        let results = call.results();
        finish(call, answer).await;
        results
    }

    /// Kills the gateway, and starts it again where it was.
    async fn killed_and_started(self) -> Self {
        let Self {
            dir,
            provider,
            gateway,
        } = self;
        let port = gateway.port;
        gateway.kill().await;
        let gateway = Gateway::with_provider_on(port, dir.path(), &provider.url()).await;
        Self {
            dir,
            provider,
            gateway,
        }
    }
}

async fn finish(mut call: Call, answer: &str) {
    assert!(call.begin().await && call.text(answer).await && call.done().await);
}

/// The approval of the next call that waits.
async fn approval(client: &mut Client) -> String {
    let asked = |frame: &Value| frame["event"] == "exec.approval.requested";
    let frame = client.find("a call waits for a person", asked).await;
    let id = frame["payload"]["id"].as_str();
    id.expect("an approval has an id").to_owned()
}

/// Waits for the end of a run, and gives its reply.
async fn reply(client: &mut Client, run: &str) -> String {
    let wait = json!({ "runId": run, "timeoutMs": 120_000 });
    let end = client.request("agent.wait", wait).await.expect("it ends");
    assert_eq!(end["status"], "ok", "{end}");
    let text = end["terminalReply"]["text"].as_str();
    text.unwrap_or_default().to_owned()
}

/// Waits until the call at work has put something out, and gives it.
async fn output(client: &mut Client) -> String {
    let grew = |frame: &Value| frame["payload"]["data"]["phase"] == "update";
    let frame = client.find("a command puts something out", grew).await;
    let text = &frame["payload"]["data"]["partialResult"]["content"][0]["text"];
    text.as_str().unwrap_or_default().trim().to_owned()
}

/// R96, R124, P08: calls of one answer run side by side, and the model is told both results in
/// the order in which it asked.
#[tokio::test]
async fn two_commands_run_side_by_side_and_the_model_answers() {
    let mut stage = Stage::trusting().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "look").await;
    // Each ends only when the other has begun.
    let meet = |own: &str, other: &str| {
        format!("touch {own}; while [ ! -e {other} ]; do sleep 0.01; done; echo {own} is here")
    };
    let (first, second) = (meet("a", "b"), meet("b", "a"));
    stage
        .asks_for("Both.", &[("c1", &first), ("c2", &second)])
        .await;
    let results = stage.answers("They met.").await;
    let told: Vec<_> = results
        .iter()
        .map(|(id, text)| (&**id, text.trim()))
        .collect();
    assert_eq!(told, [("c1", "a is here"), ("c2", "b is here")]);
    assert_eq!(reply(&mut client, "one").await, "They met.");
    let history = json!({ "sessionKey": SESSION });
    let history = client
        .request("chat.history", history)
        .await
        .expect("it is there");
    let rows = history["messages"].as_array().expect("a list");
    let roles: Vec<_> = rows.iter().filter_map(|row| row["role"].as_str()).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "toolResult", "toolResult", "assistant"]
    );
    assert_eq!(
        rows[1]["content"][0],
        json!({"type": "text", "text": "Both."})
    );
    assert_eq!(rows[1]["content"][2]["id"], "c2");
    assert_eq!(rows[2]["toolCallId"], "c1");
    assert_eq!(
        (&rows[3]["isError"], &rows[4]["stopReason"]),
        (&json!(false), &json!("stop"))
    );
}

/// R205, P27: nothing runs before a person allows it, and then it does.
#[tokio::test]
async fn a_command_waits_until_it_is_allowed() {
    let mut stage = Stage::asking().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "do it").await;
    stage
        .asks_for("", &[("c1", "echo yes > ran; echo did")])
        .await;
    let id = approval(&mut client).await;
    assert!(!stage.file("ran").exists());
    let list = stage.gateway.run(&["approvals", "list"]).await;
    let (head, command) = (
        format!("{id}  {SESSION}  expires in "),
        "  echo yes > ran; echo did\n",
    );
    let is_listed = list.stdout.starts_with(&head) && list.stdout.ends_with(command);
    assert!(list.code == Some(0) && is_listed, "{list:#?}");
    let allowed = stage.gateway.run(&["approvals", "allow", &id]).await;
    assert_eq!(
        (allowed.code, allowed.stdout),
        (Some(0), format!("allowed {id}\n"))
    );
    let results = stage.answers("It is done.").await;
    assert_eq!(results[0].1.trim(), "did");
    assert_eq!(reply(&mut client, "one").await, "It is done.");
    assert!(stage.file("ran").exists());
    let list = stage.gateway.run(&["approvals", "list"]).await;
    let nothing = "tidegate: no tool call waits to be allowed.\n";
    assert_eq!((list.stdout.as_str(), list.stderr.as_str()), ("", nothing));
}

/// R205: a command that is denied does not run, and the model is told why.
#[tokio::test]
async fn a_denied_command_does_not_run() {
    let mut stage = Stage::asking().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "do it").await;
    stage.asks_for("", &[("c1", "echo yes > ran")]).await;
    let id = approval(&mut client).await;
    let denied = stage.gateway.run(&["approvals", "deny", &id]).await;
    assert_eq!(
        (denied.code, denied.stdout),
        (Some(0), format!("denied {id}\n"))
    );
    let results = stage.answers("As you wish.").await;
    assert!(
        results[0].1.contains("a person did not allow it"),
        "{results:?}"
    );
    assert_eq!(reply(&mut client, "one").await, "As you wish.");
    assert!(!stage.file("ran").exists());
}

/// spec 7.3: the first answer counts; the same again is well, the other one is refused.
#[tokio::test]
async fn the_first_answer_counts() {
    let mut stage = Stage::asking().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "do it").await;
    stage
        .asks_for("", &[("c1", "echo one > one"), ("c2", "echo two > two")])
        .await;
    let first = approval(&mut client).await;
    let second = approval(&mut client).await;
    for _ in 0..2 {
        let denied = stage.gateway.run(&["approvals", "deny", &first]).await;
        assert_eq!(denied.code, Some(0), "{denied:#?}");
    }
    let other = stage
        .gateway
        .run(&["approvals", "allow", &first, "--json"])
        .await;
    assert_eq!(other.code, Some(1), "{other:#?}");
    let error = &other.json()["error"];
    assert_eq!(
        error["details"]["reason"], "APPROVAL_ALREADY_RESOLVED",
        "{error}"
    );
    let allowed = stage.gateway.run(&["approvals", "allow", &second]).await;
    assert_eq!(allowed.code, Some(0), "{allowed:#?}");
    let results = stage.answers("One of two.").await;
    assert_eq!(results.len(), 2);
    reply(&mut client, "one").await;
    assert!(!stage.file("one").exists() && stage.file("two").exists());
}

/// spec 7.3: what was asked is void after the end, and whoever answers then is told so.
#[tokio::test]
async fn an_answer_after_the_end_is_told_so() {
    let mut stage = Stage::asking().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "do it").await;
    stage.asks_for("", &[("c1", "echo yes > ran")]).await;
    let id = approval(&mut client).await;
    let abort = json!({ "sessionKey": SESSION, "runId": "one" });
    let aborted = client
        .request("chat.abort", abort)
        .await
        .expect("it is stopped");
    assert_eq!(aborted["runIds"], json!(["one"]));
    let late = stage.gateway.run(&["approvals", "allow", &id]).await;
    assert_eq!(late.code, Some(1), "{late:#?}");
    assert!(
        late.stderr.contains("no tool call waits under this id"),
        "{late:#?}"
    );
    assert!(late.stderr.contains("tidegate approvals list"), "{late:#?}");
    let over = |frame: &Value| frame["event"] == "exec.approval.resolved";
    let over = client.find("the approval is over", over).await;
    assert_eq!(over["payload"]["decision"], Value::Null);
    assert_eq!(over["payload"]["terminalReason"], "cancelled");
    assert!(!stage.file("ran").exists());
}

/// R205, I34: a question that a restart overtook is void: nothing was started, nothing can be
/// allowed any more, and the model is told so.
#[tokio::test]
async fn a_question_that_a_restart_overtook_is_void() {
    let mut stage = Stage::asking().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "do it").await;
    stage.asks_for("", &[("c1", "echo yes > ran")]).await;
    let id = approval(&mut client).await;
    let mut stage = stage.killed_and_started().await;
    let call = stage.provider.call().await;
    let results = call.results();
    assert!(
        results[0].1.contains("it can't be allowed any more"),
        "{results:?}"
    );
    let late = stage.gateway.run(&["approvals", "allow", &id]).await;
    assert_eq!(late.code, Some(1), "{late:#?}");
    finish(call, "Ask me again.").await;
    let mut client = stage.client().await;
    assert_eq!(reply(&mut client, "one").await, "Ask me again.");
    assert!(!stage.file("ran").exists());
}

/// I34, law 12: what a command did that a crash overtook is not known, and it is not repeated.
#[tokio::test]
async fn a_command_that_a_crash_overtook_is_not_repeated() {
    let mut stage = Stage::trusting().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "do it").await;
    let command =
        "echo begun >> runs; echo up; while [ -e runs -a ! -e over ]; do sleep 0.01; done";
    stage.asks_for("", &[("c1", command)]).await;
    assert_eq!(output(&mut client).await, "up");
    let mut stage = stage.killed_and_started().await;
    let results = stage.answers("I do not know.").await;
    assert!(
        results[0].1.contains("what became of it is not known"),
        "{results:?}"
    );
    let mut client = stage.client().await;
    assert_eq!(reply(&mut client, "one").await, "I do not know.");
    let runs = std::fs::read_to_string(stage.file("runs"));
    assert_eq!(runs.ok().as_deref(), Some("begun\n"), "it ran once");
    // The one of the life that was killed is nobody's child any more.
    std::fs::write(stage.file("over"), "").expect("the workspace is there");
}

/// P17, B-076: a command that ignores the order to end is gone when its run has ended.
#[tokio::test]
async fn a_command_that_ignores_its_stop_is_gone_after_an_abort() {
    let mut stage = Stage::trusting().await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "do it").await;
    let command = "trap '' TERM; touch here; echo $$; while [ -e here ]; do sleep 0.05; done";
    stage.asks_for("", &[("c1", command)]).await;
    let process = Path::new("/proc").join(output(&mut client).await);
    assert!(process.exists(), "it runs");
    let abort = json!({ "sessionKey": SESSION, "runId": "one" });
    let aborted = client
        .request("chat.abort", abort)
        .await
        .expect("it is stopped");
    assert_eq!(aborted["runIds"], json!(["one"]));
    assert!(!process.exists(), "it is gone");
    let history = json!({ "sessionKey": SESSION });
    let history = client
        .request("chat.history", history)
        .await
        .expect("it is there");
    let result = &history["messages"][2];
    assert_eq!(result["details"]["status"], "cancelled", "{history}");
}

/// R204, R205: without a word in the configuration the model is offered nothing.
#[tokio::test]
async fn no_tools_are_offered_unless_the_configuration_says_so() {
    let mut stage = Stage::set("{}").await;
    let mut client = stage.client().await;
    client.submit(SESSION, "one", "hello").await;
    let call = stage.provider.call().await;
    assert!(call.body.get("tools").is_none(), "{}", call.body);
    // One that asks nevertheless gets nothing.
    let mut call = call;
    assert!(call.begin().await && call.asks_for(&[("c1", "echo yes > ran")]).await);
    let results = stage.answers("I can't.").await;
    assert!(
        results.is_empty() || results[0].1.contains("no tool"),
        "{results:?}"
    );
    assert_eq!(reply(&mut client, "one").await, "I can't.");
    assert!(!stage.file("ran").exists());
    assert!(
        stage
            .gateway
            .banner
            .iter()
            .any(|line| line.contains("tools    none"))
    );
    let mut on = Stage::trusting().await;
    let mut client = on.client().await;
    client.submit(SESSION, "one", "hello").await;
    let call = on.provider.call().await;
    assert_eq!(call.body["tools"][0]["function"]["name"], "exec");
    finish(call, "Hello.").await;
    let tells = |line: &String| line.contains("tools    exec in ");
    assert!(
        on.gateway.banner.iter().any(tells),
        "{:?}",
        on.gateway.banner
    );
}

/// R96, R124: `agent` says what runs and how it ended, keeps on a terminal what was said before,
/// and gives a pipe the final reply alone.
#[tokio::test]
async fn agent_shows_what_runs() {
    let mut stage = Stage::trusting().await;
    let piped = stage.gateway.command(&["agent", "-m", "look"]);
    stage
        .asks_for("Let me see.", &[("c1", "echo hi"), ("c2", "exit 3")])
        .await;
    stage.answers("I saw it.").await;
    let said = piped.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "I saw it.\n"),
        "{said:#?}"
    );
    let lines: Vec<&str> = said.stderr.lines().collect();
    assert_eq!(
        lines[..2],
        ["tidegate: [exec] echo hi", "tidegate: [exec] exit 3"],
        "{said:#?}"
    );
    assert!(
        lines.contains(&"tidegate: [exec] echo hi: done"),
        "{said:#?}"
    );
    assert!(
        lines.contains(&"tidegate: [exec] exit 3: failed, [exit code 3]"),
        "{said:#?}"
    );
    let terminal = stage.gateway.in_terminal(&["agent", "-m", "again"]);
    stage.asks_for("Let me see.", &[("c1", "echo hi")]).await;
    stage.answers("Seen again.").await;
    let said = terminal.ended().await;
    let shown = said.stdout.replace('\r', "");
    let all =
        "Let me see.\ntidegate: [exec] echo hi\ntidegate: [exec] echo hi: done\nSeen again.\n";
    assert_eq!(shown, all, "{said:#?}");
}

/// R205: `agent` says by which command what waits is allowed.
#[tokio::test]
async fn agent_says_how_to_allow_a_command() {
    let mut stage = Stage::asking().await;
    let mut agent = stage.gateway.command(&["agent", "-m", "do it"]);
    let mut client = stage.client().await;
    stage.asks_for("", &[("c1", "echo hi")]).await;
    agent.notes("the model asks to run: echo hi").await;
    let list = json!({});
    let list = client
        .request("exec.approval.list", list)
        .await
        .expect("a list");
    let id = list[0]["id"].as_str().expect("it waits").to_owned();
    agent
        .notes(&format!("approvals allow {id} --state-dir"))
        .await;
    let allowed = stage.gateway.run(&["approvals", "allow", &id]).await;
    assert_eq!(allowed.code, Some(0), "{allowed:#?}");
    stage.answers("Hi.").await;
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Hi.\n"),
        "{said:#?}"
    );
}

/// R205, law 10: a `y` in a terminal is about the call that was asked about alone, never about
/// one that came up beside it; and it is no message when nothing waits any more.
#[tokio::test]
async fn a_word_in_a_chat_is_about_what_was_asked() {
    let mut stage = Stage::asking().await;
    let mut chat = stage.gateway.chat_in_terminal();
    chat.types("do both").await;
    let both = [("c1", "echo 1 > one"), ("c2", "echo 2 > two")];
    stage.asks_for("Both.", &both).await;
    chat.says("run: echo 1 > one").await;
    chat.says("Allow? y/n").await;
    chat.says("run: echo 2 > two").await;
    chat.says("Allow? /approve ").await;
    chat.types("n").await;
    chat.says("denied: echo 1 > one").await;
    chat.says("run: echo 2 > two").await;
    chat.says("Allow? y/n").await;
    chat.types("y").await;
    chat.says("allowed: echo 2 > two").await;
    stage.answers("One of them.").await;
    chat.says("One of them.").await;
    assert!(stage.file("two").exists() && !stage.file("one").exists());

    let mut client = stage.client().await;
    chat.types("once more").await;
    stage.asks_for("", &[("c1", "echo 3 > three")]).await;
    chat.says("Allow? y/n").await;
    let id = approval(&mut client).await;
    let denied = stage.gateway.run(&["approvals", "deny", &id]).await;
    assert_eq!(denied.code, Some(0), "{denied:#?}");
    chat.says("denied elsewhere: echo 3 > three").await;
    chat.types("y").await;
    chat.says("nothing was decided by this, and nothing sent")
        .await;
    stage.answers("Not that.").await;
    chat.says("Not that.").await;
    assert!(!stage.file("three").exists());
    chat.types("/quit").await;
    assert_eq!(chat.ended().await.code, Some(0));
}

/// R205: a chat asks in place, in a terminal by `y`, through a pipe by `/deny`.
#[tokio::test]
async fn chat_asks_in_place() {
    let mut stage = Stage::asking().await;
    let mut chat = stage.gateway.chat_in_terminal();
    chat.types("do it").await;
    stage
        .asks_for("Let me do it.", &[("c1", "echo yes > ran; echo did")])
        .await;
    chat.says("Let me do it.").await;
    chat.says("the model asks to run: echo yes > ran; echo did")
        .await;
    chat.says("Allow? y/n").await;
    chat.types("y").await;
    let results = stage.answers("It is done.").await;
    assert_eq!(results[0].1.trim(), "did");
    chat.says("echo did: done").await;
    chat.says("It is done.").await;
    chat.types("/quit").await;
    let said = chat.ended().await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert!(!said.stdout.contains("begins anew"), "{said:#?}");

    let mut chat = stage.gateway.chat();
    chat.types("once more").await;
    stage
        .asks_for("Once more.", &[("c1", "echo yes > again")])
        .await;
    chat.notes("or /deny ").await;
    chat.types("/deny").await;
    stage.answers("Then not.").await;
    chat.types_no_more();
    let said = chat.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Once more.\nThen not.\n"),
        "{said:#?}"
    );
    assert!(
        said.stderr
            .contains("[exec] echo yes > again: denied, not run"),
        "{said:#?}"
    );
    assert!(stage.file("ran").exists() && !stage.file("again").exists());
}
