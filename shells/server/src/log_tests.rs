//! The memory of one session: what a client that was away is told.

use super::*;
use tidegate_core::{Attempt, Outcome, Reply, RunId, SessionId, Terminal, Wall};
use tidegate_driver::Finished;

/// Events of one session, numbered as the driver does.
struct Events {
    log: SessionLog,
    total: usize,
    seq: u64,
}

impl Events {
    fn new() -> Self {
        Self {
            log: SessionLog::new(0),
            total: 0,
            seq: 0,
        }
    }

    fn tell(&mut self, run: &str, event: RunEvent) -> Vec<Value> {
        self.seq += 1;
        let published = Published {
            run_key: run.into(),
            session_key: "agent:main:main".into(),
            seq: self.seq,
            at: Wall(self.seq),
            event,
        };
        let told = self.log.take(&Arc::new(published), 0, &mut self.total);
        told.iter()
            .map(|(_, text)| serde_json::from_str(text).unwrap())
            .collect()
    }

    fn start(&mut self, run: &str, attempt: u32) -> Vec<Value> {
        let (attempt, at) = (Attempt(attempt), Wall(1));
        self.tell(run, RunEvent::Start { attempt, at })
    }

    fn text(&mut self, run: &str, delta: &str, text: &str) -> Vec<Value> {
        let (delta, text) = (delta.to_owned(), text.to_owned());
        self.tell(run, RunEvent::Text { delta, text })
    }

    fn end(&mut self, run: &str, reply: &str) -> Vec<Value> {
        let terminal = Terminal {
            run: RunId::from_u128(1),
            session: SessionId::from_u128(2),
            outcome: Outcome::Completed,
            accepted_at: Wall(1),
            started_at: None,
            ended_at: Wall(2),
            attempt: Attempt(1),
            reply: Reply::Text { bytes: 1 },
            detail: false,
            turn: None,
        };
        let finished = Finished {
            run_key: run.into(),
            session_key: "agent:main:main".into(),
            terminal,
            turn: None,
            reply: Some(reply.into()),
            detail: None,
        };
        self.tell(run, RunEvent::End(finished))
    }

    /// What a client is told that saw everything up to this number.
    fn missed(&self, after: u64) -> Vec<String> {
        let missed = self.log.missed(after).expect("it is remembered");
        missed.iter().map(brief).collect()
    }
}

/// An event in short: its number, its name, and what it tells.
fn brief(event: &MissedEvent) -> String {
    let payload = &event.payload;
    let what = match (&payload["state"], &payload["stream"]) {
        (Value::String(state), _) if state == "delta" => format!(
            "{}{}",
            payload["deltaText"].as_str().unwrap(),
            if payload["replace"] == true { "!" } else { "" }
        ),
        (Value::String(state), _) => state.clone(),
        (_, Value::String(stream)) if stream == "assistant" => format!(
            "{}|{}",
            payload["data"]["delta"].as_str().unwrap(),
            payload["data"]["text"].as_str().unwrap()
        ),
        _ => payload["data"]["phase"].as_str().unwrap().to_owned(),
    };
    format!("{} {} {what}", payload["sessionSeq"], event.event)
}

/// surface 3.2: a delta is appended, or says that it replaces
#[test]
fn a_text_after_a_loss_replaces_what_was_told() {
    let mut events = Events::new();
    let said = |payloads: Vec<Value>| {
        let [agent, chat] = &payloads[..] else {
            panic!("two payloads")
        };
        assert_eq!(agent["data"].get("replace"), chat.get("replace"));
        let delta = agent["data"]["delta"].as_str().unwrap().to_owned();
        let replace = chat.get("replace").is_some();
        (
            delta,
            chat["deltaText"].as_str().unwrap().to_owned(),
            replace,
        )
    };
    let plain = |text: &str| (text.to_owned(), text.to_owned(), false);
    let whole = |text: &str| (String::new(), text.to_owned(), true);
    assert_eq!(said(events.text("r", "a", "a")), plain("a"));
    assert_eq!(said(events.text("r", "c", "abc")), whole("abc"));
    assert_eq!(said(events.text("r", "d", "abcd")), plain("d"));
    let anew = events.start("r", 2);
    assert_eq!(said(anew[1..].to_vec()), whole(""));
    // By its lengths alone this one would look like a continuation of the first attempt's.
    assert_eq!(said(events.text("r", "x", "wxyzx")), whole("wxyzx"));
}

/// L11, law 9: every payload has one number, and what was missed comes once and in order
#[test]
fn a_client_is_told_what_it_missed_and_nothing_twice() {
    let mut events = Events::new();
    events.start("r", 1);
    events.text("r", "one ", "one ");
    events.text("r", "two ", "one two ");
    events.text("r", "three", "one two three");
    assert_eq!(events.log.last(), 7);
    // Up to the text `one `, as `agent` but not as `chat`.
    assert_eq!(
        events.missed(2),
        ["6 agent two three|one two three", "7 chat one two three"]
    );
    assert_eq!(
        events.missed(0)[..2],
        ["1 agent start", "6 agent one two three|one two three"]
    );
    assert_eq!(events.missed(6), ["7 chat three"]);
    assert_eq!(events.missed(7), Vec::<String>::new());
    assert!(events.log.missed(8).is_none());
    events.end("r", "one two three");
    assert_eq!(
        events.missed(5),
        [
            "6 agent three|one two three",
            "7 chat three",
            "8 agent end",
            "9 chat final"
        ]
    );
}

/// P03, R140, B-058: a second attempt takes back the first one's text before it has its own
#[test]
fn what_was_missed_of_two_attempts_is_the_second_ones_text() {
    let mut events = Events::new();
    events.start("r", 1);
    events.text("r", "old", "old");
    events.start("r", 2);
    assert_eq!(events.missed(1), ["4 agent start", "5 agent |", "6 chat !"]);
    assert_eq!(events.log.in_flight().unwrap().text, "");
    events.text("r", "new", "new");
    assert_eq!(
        events.missed(1),
        ["4 agent start", "7 agent |new", "8 chat new!"]
    );
    assert_eq!(events.missed(6), ["7 agent new|new", "8 chat new"]);
    assert_eq!(events.log.in_flight().unwrap().text, "new");
    events.end("r", "");
    assert_eq!(events.missed(8), ["9 agent end", "10 chat final"]);
}

/// Law 9: the memory is bounded, and who was further back than it begins anew
#[test]
fn what_falls_off_the_far_end_is_not_made_up() {
    let mut events = Events::new();
    events.start("r", 1);
    let mut text = String::new();
    for _ in 0..LOG_EVENTS / 2 {
        text.push('x');
        events.text("r", "x", &text.clone());
    }
    assert_eq!(events.log.ring.len(), LOG_EVENTS);
    assert!(events.log.missed(0).is_none());
    assert_eq!(events.missed(1).len(), 2);
    assert_eq!(events.total, LOG_EVENTS * ENTRY_BYTES);
    events.end("r", &"y".repeat(LOG_BYTES / 2));
    assert!(events.total <= LOG_BYTES, "{}", events.total);
    let last = events.log.last();
    assert!(events.log.missed(last - 3).is_none());
    events.log.forget(&mut events.total);
    assert_eq!(events.total, 0);
    assert!(events.log.missed(last).is_none());
}

/// Law 9: all sessions together have one bound, and each gives of its own
#[test]
fn the_memory_of_all_sessions_is_bounded() {
    let mut events = Events::new();
    let mut full = LOGS_BYTES;
    events.log.tell_chat(
        &About {
            session: "s".into(),
            run: "r".into(),
            seq: 0,
            at: 0,
        },
        tidegate_wire::ChatState::Status(tidegate_wire::InputStep::Seen),
        &mut full,
    );
    assert_eq!((full, events.log.ring.len()), (LOGS_BYTES, 0));
    assert!(events.log.missed(0).is_none());
    assert!(events.log.missed(1).is_some());
}

/// Law 9: a log is needed by runs at work, by listeners and by readers, and by nobody else
#[test]
fn a_log_is_idle_when_nobody_needs_it() {
    let mut events = Events::new();
    assert!(events.log.is_idle());
    events.log.expect(&"r".into());
    assert!(!events.log.is_idle());
    assert!(events.log.accepted(&"r".into()));
    events.log.unexpect("r");
    assert!(!events.log.is_idle());
    events.start("r", 1);
    events.end("r", "");
    assert!(events.log.is_idle());
    events.log.expect(&"l".into());
    events.log.forget(&mut events.total);
    let heard = !events.log.accepted(&"l".into());
    assert!(heard, "its end may be among what was lost");
    events.log.unexpect("l");
    assert!(events.log.is_idle());
    events.log.expect(&"q".into());
    events.start("q", 1);
    events.end("q", "");
    assert!(!events.log.accepted(&"q".into()), "it was heard of already");
}

/// R140, P15: a step stands behind the text until the next attempt begins or none comes any more
#[test]
fn a_run_that_waits_is_told_with_its_step() {
    let mut events = Events::new();
    let fallback = || RunEvent::Fallback {
        from: "a/b".into(),
        to: "c/d".into(),
        because: Outcome::Completed,
    };
    let whole = |events: &Events| -> Vec<String> { events.log.whole().iter().map(brief).collect() };
    events.start("r", 1);
    events.text("r", "half", "half");
    assert_eq!(events.log.shown(), 3);
    events.tell("r", fallback());
    let told = [
        "5 agent start",
        "5 agent |half",
        "5 chat half!",
        "5 agent fallback",
        "5 chat status",
    ];
    assert_eq!(whole(&events), told);
    assert_eq!((events.log.shown(), events.log.last()), (3, 5));
    assert_eq!(events.missed(3), ["4 agent fallback", "5 chat status"]);
    events.start("r", 2);
    assert_eq!(whole(&events), ["8 agent start"]);
    assert_eq!(events.log.shown(), 8);
    events.tell("r", fallback());
    let outcome = Outcome::Completed;
    events.tell("r", RunEvent::Finishing { outcome });
    assert_eq!(whole(&events), ["11 agent start"]);
}

fn tool_start(events: &mut Events, id: &str) -> Vec<Value> {
    let (name, arguments) = ("exec".into(), r#"{"command":"ls"}"#.into());
    let id = id.into();
    events.tell(
        "r",
        RunEvent::ToolStart {
            id,
            name,
            arguments,
        },
    )
}

fn tool_output(events: &mut Events, id: &str, delta: &str) -> Vec<Value> {
    let (name, delta) = ("exec".into(), delta.to_owned());
    let id = id.into();
    events.tell("r", RunEvent::ToolOutput { id, name, delta })
}

fn tool_end(events: &mut Events, id: &str) -> Vec<Value> {
    let (name, output) = ("exec".into(), "done".into());
    let (id, end, unanswered) = (id.into(), tidegate_core::CallEnd::Ok, None);
    events.tell(
        "r",
        RunEvent::ToolEnd {
            id,
            name,
            end,
            output,
            unanswered,
        },
    )
}

/// R96, L11: the answer before the calls and the one behind them are two texts, also for who
/// was away
#[test]
fn what_was_missed_of_two_answers_is_both() {
    let mut events = Events::new();
    events.start("r", 1);
    events.text("r", "Let ", "Let ");
    events.text("r", "me see", "Let me see");
    tool_start(&mut events, "c1");
    tool_end(&mut events, "c1");
    events.start("r", 2);
    events.text("r", "Le", "Le");
    let all = [
        "1 agent start",
        "4 agent Let me see|Let me see",
        "5 chat Let me see",
        "6 session.tool start",
        "7 session.tool result",
        "8 agent start",
        "11 agent |Le",
        "12 chat Le!",
    ];
    assert_eq!(events.missed(0), all);
    assert_eq!(
        events.missed(3)[..2],
        ["4 agent me see|Let me see", "5 chat me see"]
    );
    assert_eq!(
        events.missed(7),
        ["8 agent start", "11 agent |Le", "12 chat Le!"]
    );
    events.end("r", "Le");
    assert_eq!(events.missed(0)[..8], all);
}

/// R205, law 9: output that grew is told to who was away in one step, and not at all once its
/// result is there
#[test]
fn output_that_was_missed_comes_once() {
    let mut events = Events::new();
    events.start("r", 1);
    tool_start(&mut events, "c1");
    tool_output(&mut events, "c1", "one ");
    let told = tool_output(&mut events, "c1", "two");
    let shown = &told[0]["data"]["partialResult"]["content"][0]["text"];
    assert_eq!(shown, "one two", "an update tells what there is so far");
    assert_eq!(
        events.missed(0),
        [
            "1 agent start",
            "2 session.tool start",
            "4 session.tool update"
        ]
    );
    tool_end(&mut events, "c1");
    assert_eq!(
        events.missed(0),
        [
            "1 agent start",
            "2 session.tool start",
            "5 session.tool result"
        ]
    );
    let long = "x".repeat(crate::limits::TOOL_RESULT_CHARS);
    tool_start(&mut events, "c2");
    tool_output(&mut events, "c2", "begin");
    let told = tool_output(&mut events, "c2", &long);
    assert_eq!(told[0]["data"]["partialResult"]["content"][0]["text"], long);
}

/// R140, R205: who comes in the middle is told of the calls that run and of what waits
#[test]
fn calls_that_run_are_told_to_who_comes() {
    let mut events = Events::new();
    let whole = |events: &Events| -> Vec<String> { events.log.whole().iter().map(brief).collect() };
    events.start("r", 1);
    events.text("r", "text", "text");
    tool_start(&mut events, "c1");
    tool_start(&mut events, "c2");
    let asked = tidegate_driver::PendingApproval {
        approval: "a1".into(),
        run_key: "r".into(),
        session_key: "agent:main:main".into(),
        id: "c2".into(),
        name: "exec".into(),
        arguments: r#"{"command":"ls"}"#.into(),
        since: Wall(1),
        until: Wall(9),
    };
    events.tell("r", RunEvent::ToolAsked(asked.clone()));
    tool_end(&mut events, "c1");
    assert_eq!(
        whole(&events),
        [
            "7 agent start",
            "7 agent |text",
            "7 chat text!",
            "7 session.tool start",
            "7 session.tool result",
            "7 session.tool start",
            "7 agent requested",
        ]
    );
    // A history tells the text and not the calls: its place is before them.
    assert_eq!((events.log.shown(), events.log.last()), (3, 7));
    let (behind, told) = events.log.stand_for("r", 0).expect("it waits");
    assert_eq!((behind, told.len()), (3, 4));
    let over = RunEvent::ToolEnd {
        id: "c2".into(),
        name: "exec".into(),
        end: tidegate_core::CallEnd::Expired,
        output: "".into(),
        unanswered: Some(asked),
    };
    let told = events.tell("r", over);
    assert_eq!(told[0]["data"]["result"]["details"]["status"], "expired");
    assert_eq!(told[1]["data"]["status"], "expired", "its approval is over");
    assert!(events.log.stand_for("r", 0).is_none());
    assert_eq!(events.log.shown(), events.log.last());
    events.start("r", 2);
    assert_eq!(whole(&events), ["12 agent start"]);
}
