//! `tidegate chat` as a user has it: through a pipe and in a terminal, with every queue mode,
//! over Ctrl-C, and over the death of its gateway.

#[path = "chat/played.rs"]
mod played;

use serde_json::Value;
use tidegate_tests::{Call, Draws, Ended, Gateway, Provider, Running, reply_to, signal, within};
use tokio::sync::mpsc;

/// A gateway with a scripted model.
struct Stage {
    dir: tempfile::TempDir,
    provider: Provider,
    gateway: Gateway,
}

impl Stage {
    async fn set() -> Self {
        let dir = tempfile::tempdir().expect("a directory for the state");
        let provider = Provider::start().await;
        let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
        Self {
            dir,
            provider,
            gateway,
        }
    }

    /// A run at work: the model was asked for `message` and has begun.
    async fn at_work(&mut self, chat: &mut Running, message: &str) -> Call {
        chat.types(message).await;
        let mut call = self.provider.call().await;
        assert_eq!(call.message(), message);
        assert!(call.begin().await && call.text("Well, ").await);
        call
    }

    /// The next model call, which must be about `message`, is answered.
    async fn answers(&mut self, message: &str, answer: &str) -> Vec<(String, String)> {
        let mut call = self.provider.call().await;
        let spoken = call.conversation();
        assert_eq!(call.message(), message);
        assert!(call.begin().await);
        finish(call, answer).await;
        spoken
    }

    /// Kills the gateway, and starts it again where it was.
    async fn killed_and_started(self, meanwhile: impl AsyncFnOnce()) -> Self {
        let Self {
            dir,
            provider,
            gateway,
        } = self;
        let port = gateway.port;
        gateway.kill().await;
        meanwhile().await;
        let gateway = Gateway::with_provider_on(port, dir.path(), &provider.url()).await;
        Self {
            dir,
            provider,
            gateway,
        }
    }
}

async fn finish(mut call: Call, rest: &str) {
    assert!(call.text(rest).await && call.done().await);
}

async fn over(mut chat: Running) -> Ended {
    chat.types_no_more();
    chat.ended().await
}

fn user_rows(spoken: &[(String, String)]) -> Vec<&str> {
    let users = spoken.iter().filter(|(role, _)| role == "user");
    users.map(|(_, text)| text.as_str()).collect()
}

/// Each answer comes whole, on lines of its own; nothing else is on stdout.
#[tokio::test]
async fn two_turns_through_a_pipe_give_two_whole_answers() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    let mut call = stage.at_work(&mut chat, "größe 漢字 👩‍💻 ?").await;
    assert!(call.text("漢").await);
    finish(call, "字 👍").await;
    chat.says("Well, 漢字 👍\n").await;
    chat.types("   ").await;
    chat.types("and now?").await;
    let spoken = stage.answers("and now?", "Two\nlines.").await;
    assert_eq!(user_rows(&spoken), ["größe 漢字 👩‍💻 ?", "and now?"]);
    chat.says("Two\nlines.\n").await;
    let said = over(chat).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Well, 漢字 👍\nTwo\nlines.\n"),
        "{said:#?}"
    );
    for none in ["\u{1b}", "tidegate: ", "> and now?"] {
        assert!(!said.stderr.contains(none), "{said:#?}");
    }
}

/// What was said before is shown, and is no answer of this chat.
#[tokio::test]
async fn a_chat_begins_with_what_was_said_before() {
    let mut stage = Stage::set().await;
    let mut first = stage.gateway.chat();
    first.types("my name is Ada").await;
    stage.answers("my name is Ada", "Hello Ada.").await;
    first.says("Hello Ada.").await;
    let mut call = stage.at_work(&mut first, "talk on").await;
    let mut second = stage.gateway.chat();
    second.notes("> my name is Ada\nHello Ada.\n").await;
    assert!(call.text("of course").await);
    finish(call, ".").await;
    second.says("Well, of course.\n").await;
    first.types("and on").await;
    stage.answers("and on", "And on.").await;
    second.notes("> and on\n").await;
    second.says("And on.\n").await;
    let said = over(second).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Well, of course.\nAnd on.\n"),
        "{said:#?}"
    );
    assert_eq!(over(first).await.code, Some(0));
}

/// P26, R44: no boundary comes, so the message follows with an answer of its own.
#[tokio::test]
async fn a_message_during_a_run_is_steered_and_the_chat_says_so() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    let call = stage.at_work(&mut chat, "first").await;
    chat.types("second").await;
    chat.notes(
        "goes to the run at work before its next model call, if one follows; else follows it\n",
    )
    .await;
    finish(call, "one.").await;
    stage.answers("second", "Two.").await;
    let said = over(chat).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Well, one.\nTwo.\n"),
        "{said:#?}"
    );
}

/// R45, I29: each in its turn.
#[tokio::test]
async fn messages_during_a_run_queue_and_the_chat_says_behind_how_many() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    chat.types("/queue followup debounce:0ms").await;
    chat.says("Queue: followup").await;
    let call = stage.at_work(&mut chat, "first").await;
    for (message, place) in [
        ("second", "queued behind 1\n"),
        ("third", "queued behind 2\n"),
    ] {
        chat.types(message).await;
        chat.notes(place).await;
    }
    finish(call, "one.").await;
    stage.answers("second", "Two.").await;
    stage.answers("third", "Three.").await;
    let said = over(chat).await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let answers = said.stdout.lines().skip(1).collect::<Vec<_>>();
    assert_eq!(answers, ["Well, one.", "Two.", "Three."], "{said:#?}");
}

/// R46, P26: two messages, one turn, one answer; both are told whose it is.
#[tokio::test]
async fn collected_messages_are_answered_together_in_one_turn() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    chat.types("/queue collect debounce:0ms").await;
    chat.says("Queue: collect").await;
    let call = stage.at_work(&mut chat, "first").await;
    chat.types("second").await;
    chat.notes("queued behind 1\n").await;
    chat.types("third").await;
    chat.notes("queued behind 2\n").await;
    finish(call, "one.").await;
    let mut call = stage.provider.call().await;
    assert!(call.begin().await);
    let spoken = call.conversation();
    let new = spoken.iter().rev().take_while(|(role, _)| role == "user");
    let new: Vec<_> = new.map(|(_, text)| text.as_str()).collect();
    assert!(
        new.join(" ").contains("second") && new.join(" ").contains("third"),
        "{spoken:#?}"
    );
    finish(call, "Both.").await;
    let said = over(chat).await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let answers = said.stdout.lines().skip(1).collect::<Vec<_>>();
    assert_eq!(answers, ["Well, one.", "Both."], "{said:#?}");
    let together = "is answered together with \"";
    assert_eq!(said.stderr.matches(together).count(), 1, "{said:#?}");
}

/// R47: the run at work gives way.
#[tokio::test]
async fn an_interrupting_message_ends_the_run_and_the_chat_says_so() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    let call = stage.at_work(&mut chat, "first").await;
    chat.types("/queue interrupt second").await;
    chat.notes("interrupts the run at work\n").await;
    chat.notes("\"first\": stopped: a later message interrupts it\n")
        .await;
    call.closed().await;
    stage.answers("second", "Two.").await;
    let said = over(chat).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Two.\n"),
        "{said:#?}"
    );
    assert!(said.stderr.contains("Well, \n"), "what had come: {said:#?}");
}

/// I28, law 10: the message that gives way is named.
#[tokio::test]
async fn a_message_that_is_dropped_from_a_full_queue_is_said_to_be() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    chat.types("/queue followup cap:1 drop:old debounce:0ms")
        .await;
    chat.says("Queue: followup").await;
    let call = stage.at_work(&mut chat, "first").await;
    chat.types("second").await;
    chat.notes("queued behind 1\n").await;
    chat.types("third").await;
    chat.notes("\"second\": dropped: the queue is full\n").await;
    finish(call, "one.").await;
    stage.answers("third", "Three.").await;
    let said = over(chat).await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert!(said.stdout.ends_with("Well, one.\nThree.\n"), "{said:#?}");
}

/// P18: the next message does not see the old conversation; a new chat neither.
#[tokio::test]
async fn a_new_conversation_begins_on_demand() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    chat.types("old").await;
    stage.answers("old", "Old.").await;
    chat.says("Old.").await;
    chat.types("/new").await;
    chat.says("New session started.").await;
    chat.types("fresh").await;
    let spoken = stage.answers("fresh", "Fresh.").await;
    assert_eq!(user_rows(&spoken), ["fresh"]);
    let said = over(chat).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Old.\nNew session started.\nFresh.\n"),
        "{said:#?}"
    );
    let mut later = stage.gateway.chat();
    later.notes("Fresh.\n").await;
    let said = over(later).await;
    assert!(!said.stderr.contains("Old."), "{said:#?}");
}

/// P17: the run is stopped and not the chat; when nothing is at work, the chat is left.
#[tokio::test]
async fn ctrl_c_stops_the_run_at_work_and_then_leaves() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    let call = stage.at_work(&mut chat, "talk").await;
    signal(chat.pid(), "INT").await;
    chat.notes("\"talk\": stopped\n").await;
    call.closed().await;
    chat.types("still there?").await;
    stage.answers("still there?", "Yes.").await;
    chat.says("Yes.\n").await;
    signal(chat.pid(), "INT").await;
    let said = chat.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(130), "Yes.\n"),
        "{said:#?}"
    );
}

/// P17: as `agent`, a chat whose last message was stopped by Ctrl-C ends with 130.
#[tokio::test]
async fn a_last_message_that_ctrl_c_stopped_exits_130() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    let _call = stage.at_work(&mut chat, "talk").await;
    chat.types_no_more();
    signal(chat.pid(), "INT").await;
    let said = chat.ended().await;
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert!(said.stderr.contains("\"talk\": stopped\n"), "{said:#?}");
}

#[tokio::test]
async fn a_last_message_that_failed_or_was_refused_exits_1() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    chat.types("hi").await;
    let call = stage.provider.call().await;
    assert!(call.refuse(401, "this key is no key").await);
    let said = over(chat).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(1), ""),
        "{said:#?}"
    );
    assert!(said.stderr.contains("this key is no key"), "{said:#?}");
    let mut chat = stage.gateway.chat();
    chat.types("/queue bogus").await;
    let said = over(chat).await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(
        said.stderr.contains("\"bogus\" is no queue mode"),
        "{said:#?}"
    );
}

/// A chat that is left does not take its run along.
#[tokio::test]
async fn a_chat_is_left_by_its_own_command_and_its_run_goes_on() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    let call = stage.at_work(&mut chat, "talk").await;
    chat.types("/help").await;
    chat.notes("/quit").await;
    chat.types("/quit").await;
    let said = chat.ended().await;
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    let mut again = stage.gateway.chat();
    again.notes("> talk\n").await;
    finish(call, "done.").await;
    again.says("Well, done.\n").await;
    assert_eq!(over(again).await.code, Some(0));
}

/// P06, P23, P33, L1: the gateway is killed in the middle of an answer. The run goes on, and so
/// does the chat: each message has its one answer, also the one that was typed meanwhile.
#[tokio::test]
async fn a_chat_goes_on_over_the_death_of_its_gateway() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    chat.types("/queue followup debounce:0ms").await;
    chat.says("Queue: followup").await;
    let call = stage.at_work(&mut chat, "first").await;
    chat.types("second").await;
    chat.notes("queued behind 1\n").await;
    let mut stage = stage
        .killed_and_started(async || {
            call.closed().await;
            chat.notes("connecting again\n").await;
            chat.types("third").await;
        })
        .await;
    stage.answers("first", "Well, one.").await;
    stage.answers("second", "Two.").await;
    stage.answers("third", "Three.").await;
    let said = over(chat).await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert!(said.stderr.contains("connected again\n"), "{said:#?}");
    let answers = said.stdout.lines().skip(1).collect::<Vec<_>>();
    assert_eq!(answers, ["Well, one.", "Two.", "Three."], "{said:#?}");
}

/// P06, P23, P33, I29, L1: kills at drawn moments, with messages typed all the while. Each has its one
/// answer, in the order of typing.
#[tokio::test]
async fn every_message_of_a_chat_is_answered_once_over_many_kills() {
    const KILLS: u64 = 8;
    const MESSAGES_A_KILL: u64 = 4;
    let (mut draws, seed) = Draws::seeded();
    println!("TIDEGATE_TEST_SEED={seed}");
    let dir = tempfile::tempdir().expect("a directory for the state");
    let provider = Provider::start().await;
    let url = provider.url();
    let (moments, mut passed) = mpsc::unbounded_channel();
    let (kept, _none) = mpsc::unbounded_channel();
    let model = provider.answer_all_but(3, moments, |_| false, kept);
    let mut gateway = Gateway::with_provider(dir.path(), &url).await;
    let port = gateway.port;
    let mut chat = gateway.chat();
    chat.types("/queue followup debounce:0ms cap:100").await;
    chat.says("Queue: followup").await;
    let mut expected = Vec::new();
    for kill in 0..KILLS {
        for n in 0..MESSAGES_A_KILL {
            let message = format!("message {n} before kill {kill}");
            chat.types(&message).await;
            expected.push(reply_to(&message));
        }
        // Five steps a message, and some messages are left over from before.
        for _ in 0..draws.below(MESSAGES_A_KILL * 5) {
            within("the model is at work", passed.recv()).await;
        }
        gateway.kill().await;
        while passed.try_recv().is_ok() {}
        gateway = Gateway::with_provider_on(port, dir.path(), &url).await;
    }
    let said = over(chat).await;
    model.abort();
    assert_eq!(said.code, Some(0), "{said:#?}");
    let answers = said.stdout.lines().skip(1).collect::<Vec<_>>();
    assert_eq!(answers, expected, "{said:#?}");
}

/// P22: what is typed while the gateway stops in order is sent to the next one.
#[tokio::test]
async fn a_message_to_a_gateway_that_stops_is_sent_after_its_restart() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat();
    let call = stage.at_work(&mut chat, "first").await;
    let mut client = stage.gateway.client().await;
    signal(stage.gateway.pid(), "TERM").await;
    client.until_it_drains().await;
    chat.types("second").await;
    chat.notes("the message is sent after its restart\n").await;
    finish(call, "one.").await;
    chat.says("Well, one.\n").await;
    let port = stage.gateway.port;
    assert_eq!(stage.gateway.ended().await.0, Some(0));
    let url = stage.provider.url();
    stage.gateway = Gateway::with_provider_on(port, stage.dir.path(), &url).await;
    stage.answers("second", "Two.").await;
    let said = over(chat).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "Well, one.\nTwo.\n"),
        "{said:#?}"
    );
}

/// P33: what a terminal showed before the kill is not shown again.
#[tokio::test]
async fn a_terminal_shows_no_text_twice_over_the_death_of_its_gateway() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat_in_terminal();
    chat.says("\r\n> ").await;
    let call = stage.at_work(&mut chat, "first").await;
    chat.says("Well, ").await;
    let mut stage = stage
        .killed_and_started(async || {
            call.closed().await;
            chat.says("connecting again").await;
        })
        .await;
    // An answer to a command says that the chat listens again.
    chat.types("/queue").await;
    chat.says("Queue: steer").await;
    let mut call = stage.provider.call().await;
    let mut witness = stage.gateway.client().await;
    assert!(call.begin().await && call.text("We").await);
    let began = |frame: &Value| frame["payload"]["deltaText"] == "We";
    witness.find("the text begins again", began).await;
    assert!(call.text("ll, one").await);
    chat.says("one").await;
    finish(call, ", two.").await;
    chat.says(", two.\r\n> ").await;
    chat.types("/quit").await;
    let said = chat.ended().await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    assert_eq!(said.stdout.matches("Well, ").count(), 1, "{said:#?}");
    assert!(said.stdout.contains("\r\none, two.\r\n"), "{said:#?}");
}

/// What a model or another client says can't steer a terminal.
#[tokio::test]
async fn a_terminal_streams_and_nothing_in_a_text_steers_it() {
    let mut stage = Stage::set().await;
    let mut chat = stage.gateway.chat_in_terminal();
    chat.says("\r\n> ").await;
    let mut call = stage.at_work(&mut chat, "first").await;
    chat.says("Well, ").await;
    assert!(call.text("\u{1b}]0;owned\u{7}\u{9b}2Jyes\r").await);
    chat.says("Well, ]0;owned2Jyes").await;
    finish(call, ".").await;
    chat.says("yes.\r\n> ").await;
    let mut call = stage.at_work(&mut chat, "second").await;
    assert!(call.text("on").await);
    chat.says("Well, on").await;
    chat.presses("\u{3}").await;
    chat.says("\"second\": stopped").await;
    call.closed().await;
    chat.presses("\u{4}").await;
    let said = chat.ended().await;
    assert_eq!(said.code, Some(130), "{said:#?}");
    let dim = said
        .stdout
        .replace("\u{1b}[2m", "")
        .replace("\u{1b}[0m", "");
    let steers = |c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t' | '\u{8}');
    assert!(!dim.contains(steers), "{said:#?}");
}
