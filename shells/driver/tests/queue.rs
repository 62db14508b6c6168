//! Messages for a busy session, over a real store: steered, followed up, collected,
//! interrupting, dropped, reset; and what of it a restart finds again.

mod stage;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stage::*;
use tidegate_core::{
    Config, DropPolicy, ModelEnd, Outcome, QueueChange, QueueMode, QueueOverride, QueueSettings,
    Rejection, StopReason,
};
use tidegate_driver::{
    AbortScope, Finished, HistoryQuery, Placed, Replies, Reply, RowMark, RunEvent, Store,
    StoreDone, StoreOp, Submission, SubmissionTurn,
};
use tidegate_store::StateDir;

fn state_dir() -> (tempfile::TempDir, StateDir) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = StateDir::acquire(&temp.path().join("state")).expect("it is ours");
    (temp, dir)
}

/// A queue that goes on at once.
fn config(mode: QueueMode) -> Config {
    Config {
        queue: QueueSettings {
            mode,
            debounce_ms: 0,
            ..QueueSettings::default()
        },
        ..Config::default()
    }
}

const QUEUED: fn(u32) -> Placed = |ahead| Placed::Queued { ahead };

/// A stage on which `r1` is at the model.
async fn busy(dir: &StateDir, mode: QueueMode) -> (Stage, Replies, Call) {
    let mut stage = Stage::configured(dir, config(mode));
    let mut first = stage.chat("s", "r1", None);
    assert_eq!(placed(&mut first).await, Placed::Next);
    let call = stage.next_call().await;
    (stage, first, call)
}

async fn complete(call: Call, text: &str) {
    call.text(text).await;
    call.end(ModelEnd::Completed);
}

/// R44, P26, B-070: what is to steer a run that waits for its lane goes to the model with it:
/// one call, one reply, an answer to each, and each is told which turn took it along.
#[tokio::test]
async fn a_steered_message_goes_along_in_the_turn() {
    let (_temp, dir) = state_dir();
    let mut config = config(QueueMode::Steer);
    config.global_lane_cap = 1;
    let mut stage = Stage::configured(&dir, config);
    let mut other = stage.say("other", "r0", "first");
    accepted(&mut other).await;
    let blocks = stage.next_call().await;
    let mut first = stage.chat("s", "r1", None);
    accepted(&mut first).await;
    let mut second = stage.chat("s", "r2", None);
    let place = placed(&mut second).await;
    assert_eq!(place, Placed::Steering { into: "r1".into() });
    complete(blocks, "done").await;

    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r1 says", "r2 says"]);
    let turn = call.call.run;
    assert!(call.call.transcript.iter().all(|row| row.turn == turn));
    let bound = stage
        .event("r2", |event| matches!(event, RunEvent::Bound { .. }))
        .await;
    assert_eq!(bound, RunEvent::Bound { turn: "r1".into() });
    complete(call, "to both").await;
    stage
        .event("r2", |event| matches!(event, RunEvent::Seen))
        .await;
    let (first, second) = (finished(&mut first).await, finished(&mut second).await);
    assert_eq!(first.turn, None);
    assert_eq!(second.turn.as_deref(), Some("r1"));
    for end in [&first, &second] {
        assert_eq!(end.reply.as_deref(), Some("to both"));
        assert_eq!(end.terminal.outcome, Outcome::Completed);
    }
    assert_eq!(&*second.run_key, "r2");
    assert_eq!(stage.client.status().await.expect("runs").contents, 0);

    // P10: the same is told after a restart, by repetition and by wait.
    stage.stop().await.expect("in order");
    let stage = Stage::start(&dir);
    let Ok(Reply::WaitEnded(told)) = stage.client.wait("r2".into(), Some(0)).next().await else {
        panic!("told")
    };
    assert_eq!(told, second);
    let again = stage.chat("s", "r2", None).next().await;
    let expected = Reply::Final {
        finished: second,
        replay: true,
    };
    assert_eq!(again, Ok(expected));
}

/// R44, I29: a run that has no boundary left is followed by what was to steer it, in order.
#[tokio::test]
async fn what_finds_no_boundary_follows_its_run() {
    let (_temp, dir) = state_dir();
    let (mut stage, mut first, call) = busy(&dir, QueueMode::Steer).await;
    let mut second = stage.chat("s", "r2", None);
    let place = placed(&mut second).await;
    assert_eq!(place, Placed::Steering { into: "r1".into() });
    complete(call, "one").await;
    assert_eq!(finished(&mut first).await.reply.as_deref(), Some("one"));
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r2 says"]);
    complete(call, "two").await;
    let second = finished(&mut second).await;
    assert_eq!((second.reply.as_deref(), second.turn), (Some("two"), None));
}

/// R45, P05: each gets a run of its own, in the order of arrival.
#[tokio::test]
async fn followups_run_one_by_one_in_order() {
    let (_temp, dir) = state_dir();
    let (mut stage, mut first, call) = busy(&dir, QueueMode::Followup).await;
    let mut second = stage.chat("s", "r2", None);
    assert_eq!(placed(&mut second).await, QUEUED(1));
    let mut third = stage.chat("s", "r3", None);
    assert_eq!(placed(&mut third).await, QUEUED(2));
    complete(call, "one").await;
    assert_eq!(finished(&mut first).await.reply.as_deref(), Some("one"));
    for (replies, run) in [(&mut second, "r2"), (&mut third, "r3")] {
        let call = stage.next_call().await;
        assert_eq!(asked(&call), [format!("{run} says")]);
        complete(call, run).await;
        let end = finished(replies).await;
        assert_eq!((end.reply.as_deref(), end.turn), (Some(run), None));
    }
}

/// R46, R148, P26: what waits is answered in one turn; meanwhile a wait is told that it waits.
#[tokio::test]
async fn collected_messages_are_answered_in_one_turn() {
    let (_temp, dir) = state_dir();
    let (mut stage, mut first, call) = busy(&dir, QueueMode::Collect).await;
    let mut second = stage.chat("s", "r2", None);
    assert_eq!(placed(&mut second).await, QUEUED(1));
    let mut third = stage.chat("s", "r3", None);
    assert_eq!(placed(&mut third).await, QUEUED(2));
    let waits = stage.client.wait("r3".into(), None).next().await;
    assert_eq!(waits, Ok(Reply::WaitPending));
    complete(call, "one").await;
    finished(&mut first).await;
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r2 says", "r3 says"]);
    let collected = |row: &tidegate_driver::TranscriptRow| row.queue == Some(QueueMode::Collect);
    assert!(call.call.transcript.iter().all(collected));
    complete(call, "both").await;
    for replies in [&mut second, &mut third] {
        assert_eq!(finished(replies).await.reply.as_deref(), Some("both"));
    }
}

/// R47: the newcomer stops the run at work and takes its place; the reason is true.
#[tokio::test]
async fn an_interrupting_message_takes_the_place_of_the_run_at_work() {
    let (_temp, dir) = state_dir();
    let (mut stage, mut first, call) = busy(&dir, QueueMode::Steer).await;
    call.text("half").await;
    stage
        .event("r1", |event| matches!(event, RunEvent::Text { .. }))
        .await;
    let mut second = stage.chat("s", "r2", Some(QueueMode::Interrupt));
    let place = placed(&mut second).await;
    assert_eq!(place, Placed::Interrupting { run: "r1".into() });
    let _ = call.dropped.await;
    let first = finished(&mut first).await;
    assert_eq!(first.reply.as_deref(), Some("half"));
    let interrupted = Outcome::Cancelled {
        by: StopReason::Interrupt,
        provider_started: true,
    };
    assert_eq!(first.terminal.outcome, interrupted);
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r2 says"]);
    complete(call, "yes").await;
    assert_eq!(finished(&mut second).await.reply.as_deref(), Some("yes"));
}

/// Spec 3.3, P42: the oldest gives way and is told so; its text reaches the transcript once,
/// also over a restart.
#[tokio::test]
async fn a_message_that_gives_way_is_told_and_its_text_kept() {
    let (_temp, dir) = state_dir();
    let mut config = config(QueueMode::Collect);
    config.queue.cap = 2;
    let mut stage = Stage::configured(&dir, config.clone());
    let mut first = stage.chat("s", "r1", None);
    accepted(&mut first).await;
    let call = stage.next_call().await;
    let mut second = stage.chat("s", "r2", None);
    accepted(&mut second).await;
    for run in ["r3", "r4"] {
        accepted(&mut stage.chat("s", run, None)).await;
    }
    let Finished { terminal, .. } = finished(&mut second).await;
    let by = DropPolicy::Summarize;
    assert_eq!(terminal.outcome, Outcome::Dropped { by });
    drop(call);
    stage.kill().await;

    let mut stage = Stage::configured(&dir, config);
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r1 says", "r2 says"]);
    complete(call, "to the first").await;
    let call = stage.next_call().await;
    let said = asked(&call);
    assert!(said.ends_with(&["r3 says", "r4 says"]), "{said:?}");
    let rows = &call.call.transcript;
    let marks: Vec<_> = rows.iter().map(|row| row.mark).collect();
    let told = RowMark::Dropped { told: true };
    let whole = RowMark::Whole;
    assert_eq!(marks, [whole, told, whole, whole, whole]);
    complete(call, "to the others").await;
    let mut fourth = stage.client.wait("r4".into(), None);
    assert!(matches!(fourth.next().await, Ok(Reply::WaitEnded(_))));
    let mut second = stage.chat("s", "r2", None);
    let told = finished(&mut second).await;
    assert_eq!(told.terminal.outcome, Outcome::Dropped { by });
    assert_eq!(told.reply, None);
}

/// P18, I12: a reset ends what is open and begins the next generation; the old run's late
/// words touch nothing, and its callers hear the true reason.
#[tokio::test]
async fn a_reset_begins_the_session_anew() {
    let (_temp, dir) = state_dir();
    let (mut stage, mut first, call) = busy(&dir, QueueMode::Collect).await;
    let mut second = stage.chat("s", "r2", None);
    accepted(&mut second).await;
    let wrong = stage.client.reset("s".into(), Some(7)).next().await;
    assert_eq!(wrong, Ok(Reply::Rejected(Rejection::SessionChanged)));
    let reset = stage.client.reset("s".into(), Some(1)).next().await;
    let expected = Reply::Reset {
        generation: 2,
        run_keys: vec!["r1".into(), "r2".into()],
    };
    assert_eq!(reset, Ok(expected));
    for (replies, provider_started) in [(&mut first, true), (&mut second, false)] {
        let cancelled = Outcome::Cancelled {
            by: StopReason::Reset,
            provider_started,
        };
        assert_eq!(finished(replies).await.terminal.outcome, cancelled);
    }
    call.text("late").await;
    let _ = call.dropped.await;
    let history = history(&stage).await;
    assert_eq!((history.generation, history.last_seq), (2, 0));
    let mut third = stage.chat("s", "r3", None);
    accepted(&mut third).await;
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r3 says"]);
    complete(call, "new").await;
    assert_eq!(finished(&mut third).await.reply.as_deref(), Some("new"));
    let unknown = stage.client.reset("never seen".into(), None).next().await;
    let expected = Reply::Reset {
        generation: 2,
        run_keys: vec![],
    };
    assert_eq!(unknown, Ok(expected));
    assert_eq!(stage.client.status().await.expect("runs").contents, 0);
    let sessions = stage
        .client
        .sessions(9)
        .await
        .expect("runs")
        .expect("reads");
    assert_eq!(sessions[0].session_key, "never seen");
}

async fn history(stage: &Stage) -> tidegate_driver::History {
    let query = HistoryQuery {
        after_seq: None,
        limit: 10,
    };
    let history = stage.client.history("s".into(), query).await;
    history.expect("runs").expect("reads")
}

/// Spec 3: what a session sets for itself holds after a restart, until it is cleared.
#[tokio::test]
async fn queue_settings_survive_a_restart() {
    let (_temp, dir) = state_dir();
    let stage = Stage::start(&dir);
    let own = QueueOverride {
        mode: Some(QueueMode::Followup),
        cap: Some(0),
        ..QueueOverride::default()
    };
    let told = |settings, own| {
        Ok(Reply::Queue {
            settings,
            own,
            waiting: 0,
        })
    };
    let holds = QueueSettings {
        mode: QueueMode::Followup,
        cap: 1,
        ..QueueSettings::default()
    };
    let set = stage.client.queue("s".into(), QueueChange::Set(own));
    let set = { set }.next().await;
    assert_eq!(set, told(holds, own));
    stage.kill().await;

    let stage = Stage::start(&dir);
    let shown = stage
        .client
        .queue("s".into(), QueueChange::Show)
        .next()
        .await;
    assert_eq!(shown, told(holds, own));
    let cleared = stage
        .client
        .queue("s".into(), QueueChange::Clear)
        .next()
        .await;
    let plain = told(QueueSettings::default(), QueueOverride::default());
    assert_eq!(cleared, plain);
    stage.kill().await;
    let stage = Stage::start(&dir);
    let shown = stage
        .client
        .queue("s".into(), QueueChange::Show)
        .next()
        .await;
    assert_eq!(shown, plain);
}

/// P23, P26, I26: a killed turn goes on with all that it had taken along, and ends them.
#[tokio::test]
async fn a_turn_with_messages_in_it_goes_on_after_a_restart() {
    let (_temp, dir) = state_dir();
    let (mut stage, _first, call) = busy(&dir, QueueMode::Collect).await;
    for run in ["r2", "r3"] {
        accepted(&mut stage.chat("s", run, None)).await;
    }
    complete(call, "one").await;
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r2 says", "r3 says"]);
    stage.kill().await;

    let mut stage = Stage::configured(&dir, config(QueueMode::Collect));
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r2 says", "r3 says"], "each once");
    let mut third = stage.chat("s", "r3", None);
    assert!(matches!(third.next().await, Ok(Reply::InFlight { .. })));
    complete(call, "both").await;
    let third = finished(&mut third).await;
    assert_eq!(third.reply.as_deref(), Some("both"));
    assert_eq!(third.turn.as_deref(), Some("r2"));
    let Ok(Reply::WaitEnded(second)) = stage.client.wait("r2".into(), None).next().await else {
        panic!("it has ended")
    };
    assert_eq!(second.reply.as_deref(), Some("both"));
    assert_eq!(stage.client.status().await.expect("runs").live_runs, 0);
}

/// R20: a history has what was accepted and is not in the transcript yet.
#[tokio::test]
async fn a_history_shows_what_waits() {
    let (_temp, dir) = state_dir();
    let (stage, _first, call) = busy(&dir, QueueMode::Followup).await;
    accepted(&mut stage.chat("s", "r2", None)).await;
    let told = history(&stage).await;
    assert_eq!(
        (told.generation, told.last_seq, told.pending_total),
        (1, 1, 1)
    );
    let pending: Vec<_> = told
        .pending
        .iter()
        .map(|input| (input.run_key.as_str(), input.text.as_str()))
        .collect();
    assert_eq!(pending, [("r2", "r2 says")]);
    drop(call);
}

/// P17: the queue is stopped without the run at work; both by their names.
#[tokio::test]
async fn aborting_the_queue_leaves_the_run_at_work() {
    let (_temp, dir) = state_dir();
    let (stage, mut first, call) = busy(&dir, QueueMode::Followup).await;
    let mut waiting = [stage.chat("s", "r2", None), stage.chat("s", "r3", None)];
    for replies in &mut waiting {
        accepted(replies).await;
    }
    let aborted = stage
        .client
        .abort("s".into(), AbortScope::Queued)
        .next()
        .await;
    let Ok(Reply::Aborted { mut run_keys }) = aborted else {
        panic!("{aborted:?}")
    };
    run_keys.sort();
    assert_eq!(run_keys, ["r2".into(), "r3".into()]);
    complete(call, "one").await;
    assert_eq!(finished(&mut first).await.reply.as_deref(), Some("one"));
}

/// P06: a chat message is the same request only with the same mode and route.
#[tokio::test]
async fn a_repeated_chat_message_of_another_mode_or_route_is_a_conflict() {
    let (_temp, dir) = state_dir();
    let (stage, _first, _call) = busy(&dir, QueueMode::Steer).await;
    let same = stage.chat("s", "r1", None).next().await;
    assert!(matches!(same, Ok(Reply::InFlight { .. })), "{same:?}");
    let conflict = Ok(Reply::Rejected(Rejection::Conflict));
    let mode = stage.chat("s", "r1", Some(QueueMode::Collect)).next().await;
    assert_eq!(mode, conflict);
    let elsewhere = Submission {
        turn: SubmissionTurn::Chat {
            queue: None,
            route: "elsewhere".into(),
        },
        ..submission("s", "r1", "r1 says")
    };
    assert_eq!(stage.client.submit(elsewhere).next().await, conflict);
    let agent = stage.say("s", "r1", "r1 says").next().await;
    assert_eq!(agent, conflict);
}

/// I31: messages of different routes are not answered in one turn.
#[tokio::test]
async fn another_route_has_a_turn_of_its_own() {
    let (_temp, dir) = state_dir();
    let (mut stage, _first, call) = busy(&dir, QueueMode::Collect).await;
    accepted(&mut stage.chat("s", "r2", None)).await;
    let elsewhere = Submission {
        turn: SubmissionTurn::Chat {
            queue: None,
            route: "elsewhere".into(),
        },
        ..submission("s", "r3", "r3 says")
    };
    accepted(&mut stage.client.submit(elsewhere)).await;
    complete(call, "one").await;
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r2 says"]);
    complete(call, "two").await;
    let call = stage.next_call().await;
    assert_eq!(asked(&call), ["r3 says"]);
}

/// B-005: who waited longer than is normal is told how long and behind whom.
#[tokio::test]
async fn a_long_wait_in_the_queue_is_told() {
    let (_temp, dir) = state_dir();
    let clock = Arc::new(Hand::default());
    let mut stage = Stage::timed(&dir, config(QueueMode::Followup), clock.clone());
    let mut first = stage.chat("s", "r1", None);
    accepted(&mut first).await;
    let call = stage.next_call().await;
    let mut second = stage.chat("s", "r2", None);
    accepted(&mut second).await;
    clock.0.store(4_711, Ordering::Relaxed);
    call.end(ModelEnd::Completed);
    let waited = stage
        .event("r2", |event| matches!(event, RunEvent::Waited { .. }))
        .await;
    let expected = RunEvent::Waited {
        ms: 4_711,
        active_ahead: 1,
        queued_ahead: 0,
    };
    assert_eq!(waited, expected);
}

/// A store that waits for the test's word before each end that it writes.
struct Gated {
    store: tidegate_store::SqliteStore,
    word: std::sync::mpsc::Receiver<()>,
}

impl Store for Gated {
    fn run(&mut self, batch: Vec<StoreOp>) -> Vec<StoreDone> {
        if batch.iter().any(|op| matches!(op, StoreOp::Settle { .. })) {
            self.word.recv().expect("the test gives its word");
        }
        self.store.run(batch)
    }
}

/// Law 10, P26: nobody is told to steer into a run that ended while the message was accepted.
#[tokio::test]
async fn a_place_names_no_run_that_has_ended() {
    let (_temp, dir) = state_dir();
    let store = tidegate_store::SqliteStore::open(&dir).expect("the store opens");
    let key = store.fingerprint_key();
    let (go, word) = std::sync::mpsc::channel();
    let mut stage = Stage::with(Gated { store, word }, key);
    let mut first = stage.chat("s", "r1", None);
    accepted(&mut first).await;
    stage.next_call().await.end(ModelEnd::Completed);
    stage
        .event("r1", |event| matches!(event, RunEvent::Finishing { .. }))
        .await;
    let mut second = stage.chat("s", "r2", None);
    stage
        .client
        .status()
        .await
        .expect("it has taken the message");
    go.send(()).expect("the store listens");
    let place = placed(&mut second).await;
    assert_eq!(place, Placed::Queued { ahead: 1 });
    go.send(()).expect("the store listens");
    stage.next_call().await.end(ModelEnd::Completed);
    assert_eq!(finished(&mut second).await.turn, None);
}
