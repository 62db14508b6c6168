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
