//! Who is told what, and what is freed when nobody needs it.

use super::*;
use crate::outbox::Out;
use tidegate_core::{Attempt, Outcome, Reply, RunId, SessionId, Terminal, Wall};
use tidegate_driver::Finished;

const KEY: &str = "agent:main:one";

fn event(run: &str, event: RunEvent) -> Arc<Published> {
    Arc::new(Published {
        run_key: run.into(),
        session_key: KEY.into(),
        seq: 1,
        at: Wall(1),
        event,
    })
}

fn start(run: &str) -> Arc<Published> {
    let (attempt, at) = (Attempt(1), Wall(1));
    event(run, RunEvent::Start { attempt, at })
}

fn end(run: &str) -> Arc<Published> {
    let finished = Finished {
        run_key: run.into(),
        session_key: KEY.into(),
        terminal: Terminal {
            run: RunId::from_u128(1),
            session: SessionId::from_u128(2),
            outcome: Outcome::Completed,
            accepted_at: Wall(1),
            started_at: None,
            ended_at: Wall(2),
            attempt: Attempt(1),
            reply: Reply::Empty,
            detail: false,
            turn: None,
        },
        turn: None,
        reply: None,
        detail: None,
    };
    event(run, RunEvent::End(finished))
}

/// The numbers of the session's events that a connection was told.
async fn numbers(outbox: &Outbox) -> Vec<u64> {
    outbox.close(close::NORMAL, "");
    let mut numbers = Vec::new();
    while let Out::Text(text) = outbox.next().await {
        let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
        numbers.extend(frame["payload"]["sessionSeq"].as_u64());
    }
    numbers
}

fn freed(hub: &Hub) -> bool {
    let state = hub.lock();
    state.logs.is_empty() && state.bytes == 0
}

/// Law 9, P36: what is remembered of a session goes with its last run, and no number comes twice
#[tokio::test]
async fn a_session_without_runs_and_listeners_costs_nothing() {
    let hub = Arc::new(Hub::default());
    let outbox = Arc::new(Outbox::default());
    let _listening = hub.listen(&outbox, Interest::Everything);
    for run in ["a", "b"] {
        hub.publish(&start(run));
        assert!(!freed(&hub));
        hub.publish(&end(run));
        assert!(freed(&hub));
    }
    let mut told = numbers(&outbox).await;
    assert_eq!(told.len(), 6);
    told.dedup();
    assert!(told.is_sorted() && told.len() == 6, "{told:?}");
}

/// Law 9: a listener keeps the memory of its session, and frees it when it goes
#[test]
fn a_listener_keeps_its_session_until_it_goes() {
    let hub = Arc::new(Hub::default());
    let outbox = Arc::new(Outbox::default());
    let listening = hub.listen(&outbox, Interest::Subscribed);
    let hold = hub.hold(KEY, None);
    let appended = hub.appended(KEY);
    let joined = hub.subscribe(listening.id, KEY, (1, 0), (appended, None), |_| {
        String::new()
    });
    assert_eq!(joined, Some(true));
    drop(hold);
    hub.publish(&start("a"));
    hub.publish(&end("a"));
    assert!(hub.lock().logs[KEY].missed(0).is_some());
    drop(listening);
    // Rows of the run are still to be told; there is nobody left to hear them.
    hub.lock().logs.get_mut(KEY).unwrap().dirty.clear();
    hub.lock().let_go(KEY);
    assert!(freed(&hub));
}

/// L11: rows that came between two looks are not left out
#[test]
fn a_look_is_refused_if_rows_came_meanwhile() {
    let hub = Arc::new(Hub::default());
    let outbox = Arc::new(Outbox::default());
    let listening = hub.listen(&outbox, Interest::Subscribed);
    let _hold = hub.hold(KEY, None);
    let appended = hub.appended(KEY);
    hub.publish(&start("a"));
    assert!(hub.look(KEY, appended).is_none());
    let again = hub.subscribe(listening.id, KEY, (1, 0), (appended, None), |_| {
        String::new()
    });
    assert_eq!(again, None);
    let appended = hub.appended(KEY);
    assert!(hub.look(KEY, appended).is_some());
}

/// Law 9: a connection listens to a bounded number of sessions
#[test]
fn subscriptions_of_a_connection_are_bounded() {
    let hub = Arc::new(Hub::default());
    let outbox = Arc::new(Outbox::default());
    let listening = hub.listen(&outbox, Interest::Subscribed);
    let join = |key: &str| {
        let _hold = hub.hold(key, None);
        hub.subscribe(listening.id, key, (1, 0), (0, None), |_| String::new())
    };
    for n in 0..SUBSCRIPTIONS_PER_CONNECTION {
        assert_eq!(join(&n.to_string()), Some(true));
    }
    assert_eq!(join("more"), Some(false));
    assert_eq!(join("0"), Some(true), "again is no more");
    hub.unsubscribe(listening.id, "0");
    assert_eq!(join("more"), Some(true));
}

/// Law 10: after events were lost, nobody is told that he is up to date
#[test]
fn lost_events_are_not_passed_over() {
    let hub = Arc::new(Hub::default());
    let _hold = hub.hold(KEY, None);
    hub.publish(&start("a"));
    let last = hub.lock().logs[KEY].last();
    hub.lock().forget();
    assert!(hub.lock().logs[KEY].missed(last).is_none());
}

/// R26, surface 3.1: what tools do is told to who asked for it, as `session.tool` to who only
/// subscribed, and to nobody else; approvals to who may decide
#[tokio::test]
async fn each_hears_of_tools_as_it_asked_to() {
    let hub = Arc::new(Hub::default());
    let _hold = hub.hold(KEY, None);
    let outboxes: [Arc<Outbox>; 4] = std::array::from_fn(|_| Arc::default());
    let hears = |tools, approvals| Hears {
        runs: Interest::Everything,
        tools,
        approvals,
    };
    let flags = [(true, false), (false, false), (false, true), (true, true)];
    let listening: Vec<Listening> = outboxes
        .iter()
        .zip(flags)
        .map(|(outbox, (tools, approvals))| hub.listen(outbox, hears(tools, approvals)))
        .collect();
    let subscribed = hub.subscribe(listening[1].id, KEY, (1, 0), (0, None), |_| "{}".to_owned());
    assert_eq!(subscribed, Some(true));
    hub.publish(&event(
        "r",
        RunEvent::ToolStart {
            id: "c".into(),
            name: "exec".into(),
            arguments: "{}".into(),
        },
    ));
    hub.publish(&event(
        "r",
        RunEvent::ToolAsked(tidegate_driver::PendingApproval {
            approval: "a".into(),
            run_key: "r".into(),
            session_key: KEY.into(),
            id: "c".into(),
            name: "exec".into(),
            arguments: "{}".into(),
            since: Wall(1),
            until: Wall(2),
        }),
    ));
    let mut told = Vec::new();
    for outbox in &outboxes {
        outbox.close(close::NORMAL, "");
        let mut names = Vec::new();
        while let Out::Text(text) = outbox.next().await {
            let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
            if let Some(name) = frame["event"].as_str() {
                let stream = frame["payload"]["stream"].as_str().unwrap_or_default();
                names.push(format!("{name} {stream}"));
            }
        }
        told.push(names);
    }
    let requested = "exec.approval.requested ";
    assert_eq!(told[0], ["agent tool", "agent approval"]);
    assert_eq!(told[1], ["session.tool tool", "agent approval"]);
    assert_eq!(told[2], ["agent approval", requested]);
    assert_eq!(told[3], ["agent tool", "agent approval", requested]);
}
