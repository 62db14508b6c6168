//! A client that lost its socket comes back with its cursor: every character once, in order.

mod support;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::{AWAY, BULK_BYTES, Gateway, Socket, is_chat, is_terminal};
use tidegate_core::Config;
use tidegate_server::limits::{DELTA_BYTES, LOG_BYTES};

const KEY: &str = "agent:main:one";

/// What a client of one session knows. It takes nothing twice and leaves nothing out.
#[derive(Debug, Default)]
struct Follower {
    cursor: Option<String>,
    session_seq: u64,
    message_seq: u64,
    /// Texts of runs as `chat` told them.
    texts: BTreeMap<String, String>,
    /// Terminals that were told, by run.
    ends: BTreeMap<String, String>,
    rows: Vec<(u64, String)>,
    resets: u32,
}

impl Follower {
    /// One that subscribed for the first time.
    async fn joined(gateway: &Gateway) -> (Socket, Self) {
        let (mut ws, mut me) = (gateway.connect_scoped().await, Self::default());
        me.join(&mut ws).await;
        (ws, me)
    }

    /// Subscribes from where it is.
    async fn join(&mut self, ws: &mut Socket) {
        let mut params = json!({"key": "one"});
        if let Some(cursor) = &self.cursor {
            params = json!({"key": "one", "cursor": cursor, "sessionSeq": self.session_seq, "messageSeq": self.message_seq});
        }
        ws.request("join", "sessions.messages.subscribe", params)
            .await;
        // Nothing of a session comes before its subscription is answered.
        let answer = ws.next().await.unwrap();
        assert_eq!(answer["id"], "join", "{answer}");
        let joined = &answer["payload"];
        assert_eq!(
            (&joined["subscribed"], &joined["key"]),
            (&json!(true), &json!(KEY))
        );
        if joined["reset"] == true {
            self.resets += 1;
            self.texts.retain(|run, _| self.ends.contains_key(run));
        }
        if joined["replaceMessages"] == true {
            self.rows.clear();
            let first = &joined["messages"][0]["__openclaw"]["seq"];
            self.message_seq = first.as_u64().map_or(0, |seq| seq - 1);
        }
        for message in joined["messages"].as_array().unwrap() {
            self.row(message["__openclaw"]["seq"].as_u64().unwrap(), message);
        }
        let whole = self.cursor.is_none() || joined["reset"] == true;
        for event in joined["events"].as_array().unwrap() {
            let seq = event["payload"]["sessionSeq"].as_u64().unwrap();
            assert!(whole || seq > self.session_seq, "{event} came again");
            self.event(event["event"].as_str().unwrap(), &event["payload"]);
        }
        self.session_seq = joined["sessionSeq"].as_u64().unwrap();
        self.cursor = Some(joined["deltaCursor"].as_str().unwrap().to_owned());
    }

    fn row(&mut self, seq: u64, message: &Value) {
        assert_eq!(seq, self.message_seq + 1, "{message}");
        self.message_seq = seq;
        let content = &message["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str());
        self.rows.push((seq, text.unwrap().to_owned()));
    }

    fn event(&mut self, name: &str, payload: &Value) {
        if name != "chat" {
            return;
        }
        let run = payload["runId"].as_str().unwrap().to_owned();
        match payload["state"].as_str().unwrap() {
            "delta" => {
                let text = self.texts.entry(run).or_default();
                if payload["replace"] == true {
                    text.clear();
                }
                text.push_str(payload["deltaText"].as_str().unwrap());
            }
            "status" => {}
            end => {
                let before = self.ends.insert(run, end.to_owned());
                assert_eq!(before, None, "{payload} is a second end");
            }
        }
    }

    /// Takes a live frame.
    fn frame(&mut self, frame: &Value) {
        let payload = &frame["payload"];
        match frame["event"].as_str().unwrap_or_default() {
            name @ ("agent" | "chat") => {
                let seq = payload["sessionSeq"].as_u64().unwrap();
                assert_eq!(seq, self.session_seq + 1, "{frame}");
                self.session_seq = seq;
                self.event(name, payload);
            }
            "session.message" => {
                self.row(payload["messageSeq"].as_u64().unwrap(), &payload["message"]);
            }
            _ => {}
        }
    }

    /// Takes live frames up to one that is as wanted.
    async fn follow(&mut self, ws: &mut Socket, wanted: impl Fn(&Self) -> bool) {
        while !wanted(self) {
            let frame = ws.next().await.unwrap();
            self.frame(&frame);
        }
    }

    fn text(&self, run: &str) -> &str {
        self.texts.get(run).map_or("", String::as_str)
    }

    /// Follows until a run has ended and its row was told.
    async fn until_ended(&mut self, ws: &mut Socket, run: &str, rows: usize) {
        self.follow(ws, |me| me.ends.contains_key(run) && me.rows.len() >= rows)
            .await;
    }
}

/// A core that tells each piece of text at once.
fn unpaced() -> Config {
    Config {
        text_pace_ms: 0,
        ..Config::default()
    }
}

/// Says a piece and waits until a connection that lost nothing has been told it.
async fn said(gateway: &Gateway, watch: &mut Socket, piece: &'static str) {
    gateway.say(piece);
    watch
        .until(|frame| frame["payload"]["deltaText"] == piece)
        .await;
}

/// P34, B-097, B-098, I46: what was missed comes once, and then all that follows
#[tokio::test]
async fn a_lost_socket_loses_no_character_and_repeats_none() {
    let gateway = Gateway::configured(unpaced()).await;
    let (mut watch, mut sender) = (gateway.connect().await, gateway.connect().await);
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    sender.chat("one", "a", "step").await;
    said(&gateway, &mut watch, "one ").await;
    me.follow(&mut ws, |me| me.text("a") == "one ").await;
    drop(ws);
    said(&gateway, &mut watch, "two ").await;
    said(&gateway, &mut watch, "three ").await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!((me.text("a"), me.resets), ("one two three ", 0));
    said(&gateway, &mut watch, "four").await;
    gateway.say(None);
    me.until_ended(&mut ws, "a", 2).await;
    assert_eq!(me.text("a"), "one two three four");
    assert_eq!(
        me.rows,
        [(1, "step".to_owned()), (2, "one two three four".to_owned())]
    );
    assert_eq!(me.ends["a"], "final");
}

/// P34, P33: a run that ended while the client was away is told by its row; the next goes on live
#[tokio::test]
async fn what_ended_meanwhile_is_told_by_its_row() {
    let gateway = Gateway::configured(unpaced()).await;
    let (mut watch, mut sender) = (gateway.connect().await, gateway.connect().await);
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    sender.chat("one", "a", "step").await;
    said(&gateway, &mut watch, "one ").await;
    me.follow(&mut ws, |me| me.text("a") == "one ").await;
    ws.0.close(None).await.unwrap();
    while ws.next().await.is_ok() {}
    said(&gateway, &mut watch, "two").await;
    gateway.say(None);
    watch.until(|frame| is_terminal(frame, "a")).await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!(me.rows.last().unwrap().1, "one two");
    sender.chat("one", "b", "hello").await;
    me.until_ended(&mut ws, "b", 4).await;
    assert_eq!(me.text("b"), "you said hello");
    assert_eq!(me.rows.len(), 4);
}

/// P34, B-102: after an overflow the text of the run at work is told whole
#[tokio::test]
async fn after_an_overflow_the_text_is_told_from_its_beginning() {
    let gateway = Gateway::configured(unpaced()).await;
    let (mut watch, mut sender) = (gateway.connect().await, gateway.connect().await);
    let (mut stays, mut other) = Follower::joined(&gateway).await;
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    sender.chat("one", "first", "hello").await;
    me.until_ended(&mut ws, "first", 2).await;
    drop(ws);
    // A bulky end is remembered with its payload and its text.
    let bulks = LOG_BYTES / (2 * BULK_BYTES) + 1;
    answer_in_bulk(&mut sender, bulks).await;
    sender.chat("one", "a", "step").await;
    said(&gateway, &mut watch, "one ").await;
    said(&gateway, &mut watch, "two ").await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!((me.text("a"), me.resets), ("one two ", 1));
    assert_eq!(me.rows.len(), 3 + 2 * bulks);
    gateway.say("three");
    gateway.say(None);
    me.until_ended(&mut ws, "a", 4 + 2 * bulks).await;
    assert_eq!(me.text("a"), "one two three");
    other.until_ended(&mut stays, "a", 4 + 2 * bulks).await;
    assert_eq!((other.text("a"), other.resets), ("one two three", 0));
}

/// Gives a session this many bulky messages.
async fn answer_in_bulk(sender: &mut Socket, bulks: usize) {
    for n in 0..bulks {
        let run = format!("bulk-{n}");
        sender.chat("one", &run, "bulk").await;
        sender.until_ended(&[run.as_str()]).await;
    }
}

/// Law 9, surface 2.4: who missed more than a bounded piece gets the newest messages instead
#[tokio::test]
async fn who_missed_too_much_gets_the_newest_messages() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut sender = gateway.connect().await;
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    sender.chat("one", "a", "hello").await;
    me.until_ended(&mut ws, "a", 2).await;
    drop(ws);
    let bulks = usize::try_from(DELTA_BYTES).unwrap() / BULK_BYTES + 1;
    answer_in_bulk(&mut sender, bulks).await;
    let delta = json!({"sessionKey": "one", "cursor": me.cursor});
    let delta = sender.call("chat.history", delta).await;
    assert_eq!(delta["payload"], json!({"kind": "reset"}));
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!(me.resets, 1);
    let last = 2 + 2 * bulks as u64;
    assert_eq!(me.message_seq, last);
    assert!(
        me.rows[0].0 > 2 && me.rows.len() > bulks,
        "{:?}",
        me.rows[0].0
    );
}

/// Law 9: numbers that no event and no message has lead to a reset, whatever they are
#[tokio::test]
async fn impossible_numbers_lead_to_a_reset() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "hello").await;
    ws.until_ended(&["a"]).await;
    let history = ws.call("chat.history", json!({"sessionKey": "one"})).await;
    let cursor = &history["payload"]["deltaCursor"];
    for (cursor, session_seq, message_seq) in [
        (cursor.clone(), u64::MAX, 0),
        (cursor.clone(), 0, u64::MAX),
        (json!("no cursor"), 0, 0),
        (
            json!("t1.ffffffffffffffff.ffffffffffffffff.ffffffffffffffff.0.boot-1"),
            0,
            0,
        ),
    ] {
        let params = json!({"key": "one", "cursor": cursor, "sessionSeq": session_seq, "messageSeq": message_seq});
        let joined = ws.call("sessions.messages.subscribe", params).await;
        assert_eq!(joined["payload"]["reset"], true, "{joined}");
        assert_eq!(
            joined["payload"]["messages"].as_array().unwrap().len(),
            if session_seq > 0 { 0 } else { 2 }
        );
    }
}

/// P23, P34: after a restart the rows go on, and the resumed run's text begins anew
#[tokio::test]
async fn a_restart_keeps_the_rows_and_resets_the_text() {
    let gateway = Gateway::configured(unpaced()).await;
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    let mut sender = gateway.connect().await;
    sender.chat("one", "first", "hello").await;
    me.until_ended(&mut ws, "first", 2).await;
    sender.chat("one", "a", "step").await;
    gateway.say("lost ");
    me.follow(&mut ws, |me| me.text("a") == "lost ").await;
    let gateway = gateway.restart(unpaced()).await;
    let mut watch = gateway.connect().await;
    said(&gateway, &mut watch, "anew ").await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!((me.text("a"), me.resets), ("anew ", 1));
    gateway.say("and whole");
    gateway.say(None);
    me.follow(&mut ws, |me| {
        me.ends.contains_key("a") && me.rows.last().unwrap().1 == "anew and whole"
    })
    .await;
    assert_eq!(me.text("a"), "anew and whole");
    let rows: Vec<&str> = me.rows.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(rows[..3], ["hello", "you said hello", "step"]);
}

/// P34, R140, B-058: who comes back while the model is to be asked again sees what was shown, and
/// who comes back later the next attempt's text alone
#[tokio::test]
async fn a_call_that_is_made_again_leaves_no_text_of_two_attempts() {
    let gateway = Gateway::configured(unpaced()).await;
    let (mut watch, mut sender) = (gateway.connect().await, gateway.connect().await);
    let (mut stays, mut other) = Follower::joined(&gateway).await;
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    sender.chat("one", "a", "step").await;
    said(&gateway, &mut watch, "half ").await;
    me.follow(&mut ws, |me| me.text("a") == "half ").await;
    drop(ws);
    gateway.say(AWAY);
    let seen = watch
        .until(|frame| frame["payload"]["phase"] == "retrying")
        .await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!((me.text("a"), me.resets), ("half ", 0));
    drop(ws);
    let delay = &seen.last().unwrap()["payload"]["delayMs"];
    gateway.pass(delay.as_u64().unwrap()).await;
    watch
        .until(|frame| frame["payload"]["deltaText"] == "")
        .await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!((me.text("a"), me.resets), ("", 0));
    drop(ws);
    said(&gateway, &mut watch, "whole ").await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!((me.text("a"), me.resets), ("whole ", 0));
    gateway.say("answer");
    gateway.say(None);
    for (ws, follower) in [(&mut ws, &mut me), (&mut stays, &mut other)] {
        follower.until_ended(ws, "a", 3).await;
        assert_eq!(follower.text("a"), "whole answer");
        let rows: Vec<&str> = follower.rows.iter().map(|row| row.1.as_str()).collect();
        assert_eq!(rows, ["step", "half ", "whole answer"]);
    }
}

/// P18, I12: a session that began anew is told anew
#[tokio::test]
async fn a_reset_session_is_told_anew() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut sender = gateway.connect().await;
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    sender.chat("one", "a", "hello").await;
    me.until_ended(&mut ws, "a", 2).await;
    drop(ws);
    sender.call("sessions.reset", json!({"key": "one"})).await;
    sender.chat("one", "b", "again").await;
    sender.until(|frame| is_terminal(frame, "b")).await;
    let delta = json!({"sessionKey": "one", "cursor": me.cursor});
    let delta = sender.call("chat.history", delta).await;
    assert_eq!(delta["payload"], json!({"kind": "reset"}));
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!(me.resets, 1);
    assert_eq!(
        me.rows,
        [(1, "again".to_owned()), (2, "you said again".to_owned())]
    );
}

/// surface 3.3: who stays subscribed over a reset hears the rows of the new conversation
#[tokio::test]
async fn a_subscription_goes_on_over_a_reset() {
    let gateway = Gateway::configured(unpaced()).await;
    let mut sender = gateway.connect().await;
    let (mut ws, mut me) = Follower::joined(&gateway).await;
    sender.chat("one", "a", "hello").await;
    me.until_ended(&mut ws, "a", 2).await;
    sender.call("sessions.reset", json!({"key": "one"})).await;
    let seen = ws
        .until(|frame| frame["payload"]["reason"] == "reset")
        .await;
    assert_eq!(
        seen.last().unwrap()["payload"]["sessionId"],
        "agent:main:one#2"
    );
    sender.chat("one", "b", "again").await;
    let is_row = |frame: &Value| frame["event"] == "session.message";
    for (seq, id) in [(1, "agent:main:one#2:1"), (2, "agent:main:one#2:2")] {
        let seen = ws.until(is_row).await;
        let row = &seen.last().unwrap()["payload"];
        assert_eq!(
            (&row["messageSeq"], &row["messageId"]),
            (&json!(seq), &json!(id))
        );
    }
}

/// P34, B-098: a history and a subscription from its cursor tell the text of a run at work once
#[tokio::test]
async fn a_subscription_goes_on_where_the_history_ends() {
    let gateway = Gateway::configured(unpaced()).await;
    let (mut watch, mut sender) = (gateway.connect().await, gateway.connect().await);
    sender.chat("one", "a", "step").await;
    said(&gateway, &mut watch, "one ").await;
    let history = sender
        .call("chat.history", json!({"sessionKey": "one"}))
        .await;
    let history = &history["payload"];
    let flight = &history["inFlightRun"];
    assert_eq!(
        (&flight["runId"], &flight["text"]),
        (&json!("a"), &json!("one "))
    );
    assert!(flight["startedAt"].is_u64());
    let mut me = Follower {
        cursor: history["deltaCursor"].as_str().map(str::to_owned),
        message_seq: 1,
        texts: BTreeMap::from([("a".to_owned(), "one ".to_owned())]),
        ..Follower::default()
    };
    said(&gateway, &mut watch, "two ").await;
    let mut ws = gateway.connect_scoped().await;
    me.join(&mut ws).await;
    assert_eq!((me.text("a"), me.resets), ("one two ", 0));
    gateway.say("three");
    gateway.say(None);
    me.until_ended(&mut ws, "a", 1).await;
    assert_eq!(me.text("a"), "one two three");
    assert_eq!(me.rows, [(2, "one two three".to_owned())]);
    assert!(is_chat(
        watch
            .until(|frame| is_terminal(frame, "a"))
            .await
            .last()
            .unwrap(),
        "a",
        "final"
    ));
}
