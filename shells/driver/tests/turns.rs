//! The loop over a real store: a message all the way through, stops, crashes, bad providers.

mod stage;

use stage::*;
use tidegate_core::{Attempt, ErrorClass, Failure, ModelEnd, Outcome, Rejection, StoreError};
use tidegate_driver::{
    AbortScope, DriverError, Reply, Role, RowMark, RunEvent, Store, StoreDone, StoreOp,
};
use tidegate_store::StateDir;

fn state_dir() -> (tempfile::TempDir, StateDir) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = StateDir::acquire(&temp.path().join("state")).expect("it is ours");
    (temp, dir)
}

/// R1, R20, P02, I8: accepted, streamed, answered; events numbered without gaps; rows durable.
#[tokio::test]
async fn a_message_travels_through_and_back() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    assert_eq!(
        call.call.transcript.last().map(|row| row.text.as_str()),
        Some("hello")
    );
    call.text("Good ").await;
    call.text("day").await;
    call.end(ModelEnd::Completed);
    assert_eq!(
        answer(&mut replies).await,
        (Outcome::Completed, "Good day".to_owned())
    );

    let mut seqs = Vec::new();
    let mut shown = String::new();
    loop {
        let event = stage.events.recv().await.expect("an event");
        seqs.push(event.seq);
        match &event.event {
            RunEvent::Text { delta, .. } => shown.push_str(delta),
            RunEvent::End(finished) => {
                assert_eq!(finished.reply.as_deref(), Some("Good day"));
                break;
            }
            _ => {}
        }
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(shown, "Good day");

    let rows = stage
        .client
        .transcript("s".to_owned())
        .await
        .expect("runs")
        .expect("reads");
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (row.seq, row.role, row.mark, row.text.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            (1, Role::User, RowMark::Whole, "hello"),
            (2, Role::Assistant, RowMark::Whole, "Good day"),
        ]
    );
    let status = stage.client.status().await.expect("runs");
    assert_eq!(
        (status.live_runs, status.contents),
        (0, 0),
        "nothing of the run is kept in memory"
    );
    stage.stop().await.expect("in order");
}

/// P17, law 1: an abort drops the provider's future at once; the partial text is kept.
#[tokio::test]
async fn an_abort_closes_the_model_call() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    call.text("half").await;
    while !matches!(
        stage.events.recv().await.expect("an event").event,
        RunEvent::Text { .. }
    ) {}
    let mut abort = stage.client.abort("s".to_owned(), AbortScope::All);
    let Reply::Aborted { run_keys } = abort.next().await.expect("a reply") else {
        panic!("aborted")
    };
    assert_eq!(&*run_keys[0], "r1");
    let _ = call.dropped.await;
    let (outcome, text) = answer(&mut replies).await;
    assert!(matches!(
        outcome,
        Outcome::Cancelled {
            provider_started: true,
            ..
        }
    ));
    assert_eq!(text, "half");
    let rows = stage
        .client
        .transcript("s".to_owned())
        .await
        .expect("runs")
        .expect("reads");
    assert_eq!(rows.last().map(|row| row.mark), Some(RowMark::Partial));
}

/// P23, I26, I60: a killed driver's run goes on as the next attempt; its text is marked, the
/// user's message stands once, and what waited follows in order.
#[tokio::test]
async fn a_killed_driver_is_resumed_by_the_next() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let (mut first, mut second) = (stage.say("s", "r1", "one"), stage.say("s", "r2", "two"));
    accepted(&mut first).await;
    accepted(&mut second).await;
    let call = stage.next_call().await;
    call.text("lost").await;
    stage.kill().await;

    let mut stage = Stage::start(&dir);
    let call = stage.next_call().await;
    assert_eq!(call.call.attempt, Attempt(2));
    let mut joined = stage.say("s", "r1", "one");
    assert!(matches!(joined.next().await, Ok(Reply::InFlight { .. })));
    call.text("found").await;
    call.end(ModelEnd::Completed);
    assert_eq!(
        answer(&mut joined).await,
        (Outcome::Completed, "found".to_owned())
    );
    let call = stage.next_call().await;
    assert_eq!(
        call.call.transcript.last().map(|row| row.text.as_str()),
        Some("two")
    );
    call.end(ModelEnd::Completed);
    let mut wait = stage.client.wait("r2".to_owned(), None);
    assert!(matches!(wait.next().await, Ok(Reply::WaitEnded(_))));
    let rows = stage
        .client
        .transcript("s".to_owned())
        .await
        .expect("runs")
        .expect("reads");
    let users: Vec<_> = rows
        .iter()
        .filter(|row| row.role == Role::User)
        .map(|row| row.text.as_str())
        .collect();
    assert_eq!(users, ["one", "two"]);
    assert!(
        rows.iter()
            .all(|row| row.text != "lost" || row.mark == RowMark::Interrupted)
    );
}

/// P10, R32: the end of a finished run is told after a restart, by wait and by repetition.
#[tokio::test]
async fn a_finished_run_is_told_after_a_restart() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    call.text("done").await;
    call.end(ModelEnd::Completed);
    let told = answer(&mut replies).await;
    stage.stop().await.expect("in order");

    let stage = Stage::start(&dir);
    let Reply::Final {
        finished,
        replay: true,
    } = stage.say("s", "r1", "hello").next().await.expect("a reply")
    else {
        panic!("replayed")
    };
    assert_eq!(
        (finished.terminal.outcome, finished.reply.as_deref()),
        (told.0, Some("done"))
    );
    assert_eq!(&*finished.run_key, "r1");
    let Reply::WaitEnded(finished) = stage
        .client
        .wait("r1".to_owned(), Some(0))
        .next()
        .await
        .expect("a reply")
    else {
        panic!("told")
    };
    assert_eq!(
        (
            &*finished.run_key,
            &*finished.session_key,
            finished.reply.as_deref()
        ),
        ("r1", "s", Some("done"))
    );
    let reply = stage
        .say("s", "r1", "something else")
        .next()
        .await
        .expect("a reply");
    assert_eq!(reply, Reply::Rejected(tidegate_core::Rejection::Conflict));
    assert_eq!(stage.client.status().await.expect("runs").contents, 0);
}

/// P40: a panic in a provider is that run's failure; the gateway goes on.
#[tokio::test]
async fn a_provider_that_panics_fails_its_run_only() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    stage.next_call().await.panic();
    let (outcome, _) = answer(&mut replies).await;
    assert_eq!(
        outcome,
        Outcome::Failed(Failure::Provider {
            class: ErrorClass::Unknown,
            status: None
        })
    );
    let mut replies = stage.say("s", "r2", "again");
    accepted(&mut replies).await;
    stage.next_call().await.end(ModelEnd::Completed);
    assert_eq!(answer(&mut replies).await.0, Outcome::Completed);
}

/// R200: a caller that goes away loses its answer and not its run.
#[tokio::test]
async fn a_caller_that_leaves_does_not_end_its_run() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    drop(replies);
    stage.next_call().await.end(ModelEnd::Completed);
    assert!(matches!(
        stage.client.wait("r1".to_owned(), None).next().await,
        Ok(Reply::WaitEnded(_))
    ));
}

/// P35, law 9: a subscriber that does not read loses text, then its channel; nobody waits for it.
#[tokio::test]
async fn a_slow_subscriber_holds_nobody_up() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let mut slow = stage.client.subscribe(1);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    call.text("text").await;
    call.end(ModelEnd::Completed);
    answer(&mut replies).await;
    assert!(matches!(slow.recv().await.map(|event| event.seq), Some(1)));
    assert!(
        slow.recv().await.is_none(),
        "an event that may not be lost closed it"
    );
}

/// A store whose answers the test spoils.
struct Spoiled {
    store: tidegate_store::SqliteStore,
    /// Whether an operation is refused.
    refuse: fn(&StoreOp) -> bool,
    refused: bool,
}

impl Store for Spoiled {
    fn run(&mut self, batch: Vec<StoreOp>) -> Vec<StoreDone> {
        batch.into_iter().map(|op| self.one(op)).collect()
    }
}

impl Spoiled {
    /// Refuses the first operation of its kind, and no other.
    fn one(&mut self, op: StoreOp) -> StoreDone {
        if !self.refused && (self.refuse)(&op) {
            self.refused = true;
            return match op {
                StoreOp::OpenSessions => StoreDone::OpenSessions(Err(StoreError::Io)),
                _ => StoreDone::Saved { kept: None },
            };
        }
        self.store.run(vec![op]).remove(0)
    }
}

/// P23: a start that can't know its open work admits nothing and says so.
#[tokio::test]
async fn a_start_that_cannot_list_its_open_work_ends() {
    let (_temp, dir) = state_dir();
    let store = tidegate_store::SqliteStore::open(&dir).expect("the store opens");
    let spoiled = Spoiled {
        store,
        refuse: |op| matches!(op, StoreOp::OpenSessions),
        refused: false,
    };
    let stage = Stage::with(spoiled, [0; 32]);
    assert_eq!(
        stage.ended().await,
        Err(DriverError::OpenWorkUnknown(StoreError::Io))
    );
}

/// Design section 5: a piece that the store could not keep is sent again with the next.
#[tokio::test]
async fn a_save_that_failed_leaves_no_gap() {
    let (_temp, dir) = state_dir();
    let store = tidegate_store::SqliteStore::open(&dir).expect("the store opens");
    let key = store.fingerprint_key();
    let spoiled = Spoiled {
        store,
        refuse: |op| matches!(op, StoreOp::Save { .. }),
        refused: false,
    };
    let mut stage = Stage::with(spoiled, key);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    for _ in 0..3 {
        call.text("piece ").await;
        stage.pass_a_save().await;
    }
    stage.kill().await;

    let mut stage = Stage::start(&dir);
    stage.next_call().await.end(ModelEnd::Completed);
    let mut wait = stage.client.wait("r1".to_owned(), None);
    assert!(matches!(wait.next().await, Ok(Reply::WaitEnded(_))));
    let rows = stage
        .client
        .transcript("s".to_owned())
        .await
        .expect("runs")
        .expect("reads");
    let left: Vec<_> = rows
        .iter()
        .filter(|row| row.mark == RowMark::Interrupted)
        .map(|row| row.text.as_str())
        .collect();
    assert_eq!(left, ["piece piece piece "]);
}

/// P21, P22, P23: a drain lets the run at work end, defers the rest, and loses nothing.
#[tokio::test]
async fn a_drain_waits_for_the_run_at_work() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let (mut first, mut second) = (stage.say("s", "r1", "one"), stage.say("s", "r2", "two"));
    accepted(&mut first).await;
    accepted(&mut second).await;
    let call = stage.next_call().await;
    let client = stage.client.clone();
    let drain = tokio::task::spawn(async move { client.drain(None).await });
    while !stage.client.status().await.expect("runs").draining {}
    let reply = stage.say("t", "r3", "three").next().await.expect("a reply");
    assert_eq!(reply, Reply::Rejected(Rejection::Draining));
    assert!(!drain.is_finished());
    call.end(ModelEnd::Completed);
    assert_eq!(answer(&mut first).await.0, Outcome::Completed);
    assert_eq!(
        second.next().await,
        Ok(Reply::Rejected(Rejection::Draining))
    );
    drain.await.expect("the drain is over");
    stage.client.drain(None).await;
    stage.stop().await.expect("in order");

    let mut stage = Stage::start(&dir);
    let call = stage.next_call().await;
    assert_eq!(
        call.call.transcript.last().map(|row| row.text.as_str()),
        Some("two")
    );
}
