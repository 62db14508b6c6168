//! Sessions over the real socket: who hears how they change, what was said, stop and begin anew.

mod support;

use serde_json::{Value, json};
use support::{Gateway, is_chat, is_terminal};

/// The reasons of the changes among these frames, and what they say of the session.
fn changes(seen: &[Value]) -> Vec<(String, bool, Value)> {
    let of = |frame: &&Value| frame["event"] == "sessions.changed";
    let changes = seen.iter().filter(of).map(|frame| {
        let payload = &frame["payload"];
        (
            payload["reason"].as_str().unwrap().to_owned(),
            payload["hasActiveRun"] == true,
            payload["status"].clone(),
        )
    });
    changes.collect()
}

/// surface 2.5, 3.3: who subscribed hears how sessions change and what is written, others do not
#[tokio::test]
async fn a_subscriber_hears_how_sessions_change() {
    let gateway = Gateway::start().await;
    let mut plain = gateway.connect().await;
    let mut ws = gateway.connect().await;
    let bare = ws.call("sessions.subscribe", json!({})).await;
    assert_eq!(bare["payload"], json!({"subscribed": true}));
    let listed = ws.call("sessions.subscribe", json!({"limit": 5})).await;
    assert_eq!(listed["payload"]["list"]["count"], 0);
    plain.chat("one", "a", "hello").await;
    let mut rows = Vec::new();
    let mut seen = Vec::new();
    while rows.len() < 2 || changes(&seen).len() < 3 {
        let frame = ws.next().await.unwrap();
        if frame["event"] == "session.message" {
            rows.push(frame["payload"].clone());
        }
        seen.push(frame);
    }
    let mut told = changes(&seen);
    told.sort_by(|a, b| a.0.cmp(&b.0));
    let settled = ("agent.input.settled".to_owned(), false, json!("done"));
    let started = ("agent.run.started".to_owned(), true, json!("running"));
    let sent = ("send".to_owned(), true, Value::Null);
    assert_eq!(told[..2], [settled, started]);
    assert_eq!((&told[2].0, &told[2].2), (&sent.0, &sent.2));
    assert_eq!(
        rows[0],
        json!({
            "sessionKey": "agent:main:one", "agentId": "main", "sessionId": "agent:main:one#1",
            "messageId": "agent:main:one#1:1", "messageSeq": 1,
            "message": {
                "role": "user", "content": "hello", "timestamp": rows[0]["message"]["timestamp"],
                "idempotencyKey": "a:user",
                "__openclaw": {"id": "agent:main:one#1:1", "seq": 1, "runId": "a"},
            },
        })
    );
    assert_eq!(
        (&rows[1]["messageSeq"], &rows[1]["message"]["stopReason"]),
        (&json!(2), &json!("stop"))
    );
    ws.call("sessions.unsubscribe", json!({})).await;
    plain.chat("one", "b", "again").await;
    let seen = ws.until(|frame| is_terminal(frame, "b")).await;
    assert_eq!(changes(&seen), []);
    let seen = plain.until(|frame| is_terminal(frame, "b")).await;
    assert!(
        seen.iter()
            .all(|frame| frame["event"] != "sessions.changed")
    );
}

/// surface 3.3: the rows of a conversation that began anew are told from its first one on
#[tokio::test]
async fn a_subscriber_of_all_hears_every_row_over_a_reset() {
    let gateway = Gateway::start().await;
    let (mut one, mut all) = (gateway.connect().await, gateway.connect().await);
    all.call("sessions.subscribe", json!({})).await;
    one.call("sessions.messages.subscribe", json!({"key": "one"}))
        .await;
    for (run, message, generation) in [("a", "hello", 1), ("b", "again", 2)] {
        one.chat("one", run, message).await;
        for seq in 1..=2 {
            let seen = all.until(|frame| frame["event"] == "session.message").await;
            let id = format!("agent:main:one#{generation}:{seq}");
            assert_eq!(seen.last().unwrap()["payload"]["messageId"], json!(id));
        }
        one.call("sessions.reset", json!({"key": "one"})).await;
    }
}

/// surface 2.4: pages from the end, bounded by messages, characters and bytes
#[tokio::test]
async fn a_history_is_read_page_by_page() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    for run in ["a", "b", "c"] {
        ws.chat("one", run, &format!("message {run}")).await;
        ws.until(|frame| is_terminal(frame, run)).await;
    }
    let read = async |ws: &mut support::Ws<_>, extra: Value| {
        let mut params = json!({"sessionKey": "one"});
        let extra = extra.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(extra);
        ws.call("chat.history", params).await["payload"].clone()
    };
    let seqs = |page: &Value| -> Vec<u64> {
        let rows = page["messages"].as_array().unwrap().iter();
        rows.map(|row| row["__openclaw"]["seq"].as_u64().unwrap())
            .collect()
    };
    let all = read(&mut ws, json!({})).await;
    assert_eq!(seqs(&all), [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        (&all["sessionKey"], &all["totalMessages"], &all["hasMore"]),
        (&json!("agent:main:one"), &json!(6), &json!(false))
    );
    assert_eq!(all["sessionInfo"]["hasActiveRun"], false);
    let newest = read(&mut ws, json!({"limit": 2})).await;
    assert_eq!(
        (seqs(&newest), &newest["nextOffset"]),
        (vec![5, 6], &json!(2))
    );
    let before = read(&mut ws, json!({"limit": 3, "offset": 2})).await;
    assert_eq!(
        (seqs(&before), &before["nextOffset"]),
        (vec![2, 3, 4], &json!(5))
    );
    let oldest = read(&mut ws, json!({"limit": 3, "offset": 5})).await;
    assert_eq!(
        (seqs(&oldest), &oldest["hasMore"]),
        (vec![1], &json!(false))
    );
    assert_eq!(
        seqs(&read(&mut ws, json!({"offset": 9})).await),
        Vec::<u64>::new()
    );
    let short = read(&mut ws, json!({"maxChars": 7})).await;
    assert_eq!(
        (
            &short["messages"][0]["content"],
            &short["messages"][0]["truncated"]
        ),
        (&json!("message"), &json!(true))
    );
    ws.chat("one", "d", "bulk").await;
    ws.until(|frame| is_terminal(frame, "d")).await;
    let small = read(&mut ws, json!({"maxBytes": 1024})).await;
    assert_eq!(
        (seqs(&small), &small["messages"][0]["truncated"]),
        (vec![8], &json!(true))
    );
    assert!(small["messages"].to_string().len() <= 1024);
    let delta = read(&mut ws, json!({"cursor": newest["deltaCursor"]})).await;
    assert_eq!(
        (&delta["kind"], seqs(&delta)),
        (&json!("delta"), vec![7, 8])
    );
    let got = ws
        .call("sessions.get", json!({"key": "one", "limit": 1}))
        .await;
    assert_eq!(seqs(&got["payload"]), [8]);
}

/// P23, surface 2.4: what was accepted and waits is shown as waiting
#[tokio::test]
async fn a_history_shows_what_waits() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "hang").await;
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    ws.chat("one", "b", "later").await;
    let history = ws.call("chat.history", json!({"sessionKey": "one"})).await["payload"].clone();
    let pending = &history["pendingInputs"];
    assert_eq!(
        (
            &pending["total"],
            &pending["items"][0]["runId"],
            &pending["items"][0]["text"]
        ),
        (&json!(1), &json!("b"), &json!("later"))
    );
    assert_eq!(history["inFlightRun"]["text"], "so far");
    assert_eq!(history["sessionInfo"]["activeRunIds"], json!(["a", "b"]));
}

/// surface 2.5, P17: the run at work is stopped, or all that the session has
#[tokio::test]
async fn a_session_is_stopped() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let nothing = ws.call("sessions.abort", json!({"key": "one"})).await;
    assert_eq!(
        nothing["payload"],
        json!({"ok": true, "abortedRunId": null, "runIds": [], "status": "no-active-run"})
    );
    ws.chat("one", "a", "hang").await;
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    ws.chat("one", "b", "hang").await;
    let stopped = ws.call("sessions.abort", json!({"key": "one"})).await;
    assert_eq!(
        stopped["payload"],
        json!({"ok": true, "abortedRunId": "a", "runIds": ["a"], "status": "aborted"})
    );
    ws.until(|frame| is_chat(frame, "b", "delta")).await;
    ws.chat("one", "c", "hang").await;
    let all = ws
        .call("sessions.abort", json!({"key": "one", "clearQueued": true}))
        .await;
    let mut runs = all["payload"]["runIds"].as_array().unwrap().clone();
    runs.sort_by_key(ToString::to_string);
    assert_eq!(runs, [json!("b"), json!("c")]);
}

/// P18, surface 2.5: a session begins anew only if it is the one that was meant
#[tokio::test]
async fn a_reset_is_guarded_by_the_session_id() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.chat("one", "a", "hang").await;
    ws.until(|frame| is_chat(frame, "a", "delta")).await;
    let listed = ws.call("sessions.list", json!({})).await;
    let id = listed["payload"]["sessions"][0]["sessionId"].clone();
    assert_eq!(id, "agent:main:one#1");
    let reset = json!({"key": "one", "reason": "new", "expectedSessionId": id});
    let done = ws.call("sessions.reset", reset.clone()).await;
    assert_eq!(
        (
            &done["payload"]["key"],
            &done["payload"]["entry"]["sessionId"],
            &done["payload"]["runIds"]
        ),
        (
            &json!("agent:main:one"),
            &json!("agent:main:one#2"),
            &json!(["a"])
        )
    );
    for expected in [id, json!("agent:main:two#2"), json!("x")] {
        let reset = json!({"key": "one", "expectedSessionId": expected});
        let refused = ws.call("sessions.reset", reset).await;
        assert_eq!(
            (
                &refused["error"]["code"],
                &refused["error"]["details"]["reason"]
            ),
            (&json!("INVALID_REQUEST"), &json!("session-changed"))
        );
    }
    let again = json!({"key": "one", "expectedSessionId": "agent:main:one#2"});
    assert_eq!(ws.call("sessions.reset", again).await["ok"], true);
}

/// surface 3: what is sent behind a subscription comes behind it, also its end
#[tokio::test]
async fn a_subscription_that_is_ended_at_once_is_ended() {
    let gateway = Gateway::start().await;
    let mut sender = gateway.connect().await;
    let mut ws = gateway.connect_scoped().await;
    for run in ["a", "b", "c", "d"] {
        let key = json!({"key": "one"});
        ws.feed("1", "sessions.messages.subscribe", key.clone())
            .await;
        ws.request("2", "sessions.messages.unsubscribe", key).await;
        for (id, subscribed) in [("1", true), ("2", false)] {
            let answer = ws.next().await.unwrap();
            assert_eq!(
                (&answer["id"], &answer["payload"]["subscribed"]),
                (&json!(id), &json!(subscribed))
            );
        }
        sender.chat("one", run, "hello").await;
        sender.until(|frame| is_terminal(frame, run)).await;
        ws.request("h", "health", Value::Null).await;
        let next = ws.next().await.unwrap();
        assert_eq!(next["id"], "h", "{next}");
    }
}

/// surface 3: a client that asks for it hears only of the sessions that it subscribed to
#[tokio::test]
async fn a_scoped_client_hears_of_its_sessions_alone() {
    let gateway = Gateway::start().await;
    let mut sender = gateway.connect().await;
    let mut ws = gateway.connect_scoped().await;
    ws.call("sessions.messages.subscribe", json!({"key": "two"}))
        .await;
    sender.chat("one", "a", "hello").await;
    sender.until(|frame| is_terminal(frame, "a")).await;
    sender.chat("two", "b", "hello").await;
    let seen = ws.until(|frame| is_terminal(frame, "b")).await;
    assert!(
        seen.iter()
            .all(|frame| frame["payload"]["sessionKey"] == "agent:main:two")
    );
    let left = ws
        .call("sessions.messages.unsubscribe", json!({"key": "two"}))
        .await;
    assert_eq!(
        left["payload"],
        json!({"subscribed": false, "key": "agent:main:two"})
    );
    sender.chat("two", "c", "hello").await;
    sender.until(|frame| is_terminal(frame, "c")).await;
    ws.request("h", "health", Value::Null).await;
    let seen = ws.until(|frame| frame["id"] == "h").await;
    assert!(
        seen.iter().all(|frame| frame["payload"]["runId"] != "c"),
        "{seen:?}"
    );
}
