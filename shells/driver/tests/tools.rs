//! Tool calls through the driver over a real store: asked for, run, recorded, told; and what is
//! left of them when the run, the tool or the process ends first.

mod stage;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stage::*;
use tidegate_core::{AcceptReport, Attempt, CallEnd, Config, ModelEnd, Outcome, ToolEnd};
use tidegate_driver::{
    AbortScope, Replies, Reply, Role, RowMark, RunEvent, Store, StoreDone, StoreOp, StoredText,
    TranscriptRow,
};
use tidegate_store::{SqliteStore, StateDir};

fn state_dir() -> (tempfile::TempDir, StateDir) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = StateDir::acquire(&temp.path().join("state")).expect("it is ours");
    (temp, dir)
}

/// A stage that shows text and output at once, whose `r1` asks for these calls.
async fn asking(dir: &StateDir, clock: Arc<Hand>, calls: &[(&str, &str)]) -> (Stage, Replies) {
    let config = Config {
        text_pace_ms: 0,
        ..Config::default()
    };
    let mut stage = Stage::timed(dir, config, clock);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    stage.next_call().await.ask_for(calls).await;
    (stage, replies)
}

/// The results in a transcript: the call's id, its end, what it put out.
fn results(rows: &[TranscriptRow]) -> Vec<(&str, CallEnd, &str)> {
    let of = |row: &TranscriptRow| row.role == Role::Tool;
    let rows = rows.iter().filter(|row| of(row));
    rows.map(|row| {
        let answer = row.answers.as_ref().expect("a result names its call");
        (answer.id.as_str(), answer.end, row.text.as_str())
    })
    .collect()
}

/// The ids that the row of an answer asks for.
fn asked_for(rows: &[TranscriptRow]) -> Vec<&str> {
    let calls = rows.iter().flat_map(|row| &row.calls);
    calls.map(|call| call.id.as_str()).collect()
}

async fn rows(stage: &Stage) -> Vec<TranscriptRow> {
    let rows = stage.client.transcript("s".to_owned()).await;
    rows.expect("runs").expect("reads")
}

async fn contents(stage: &Stage) -> u64 {
    stage.client.status().await.expect("runs").contents
}

/// P08, I24, I34, R96: both run at once, each result stands once and in the order of the calls,
/// and the model is asked with both.
#[tokio::test]
async fn two_calls_run_side_by_side_and_the_model_answers() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    let offered: Vec<_> = call.call.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(offered, ["look", "act"]);
    call.text("I look.").await;
    call.ask_for(&[("a", "look"), ("b", "look")]).await;
    let (first, second) = (stage.next_work().await, stage.next_work().await);
    assert_eq!(first.call.text.arguments, r#"{"of":"a"}"#);
    assert_eq!((first.call.id.call, second.call.id.call), (0, 1));
    let names = (&*second.call.session_key, &*second.call.run_key);
    assert_eq!(names, ("s", "r1"));
    second.output("two").await;
    second.end(ToolEnd::Ok);
    first.output("one").await;
    first.end(ToolEnd::Failed);

    let call = stage.next_call().await;
    assert_eq!(call.call.attempt, Attempt(2));
    let given = &call.call.transcript;
    let kinds: Vec<_> = given.iter().map(|row| (row.role, row.mark)).collect();
    let whole = RowMark::Whole;
    let asks = (Role::Assistant, RowMark::Calls);
    let result = (Role::Tool, whole);
    assert_eq!(kinds, [(Role::User, whole), asks, result, result]);
    assert_eq!(given[1].text, "I look.");
    assert_eq!(asked_for(given), ["a", "b"]);
    assert_eq!(
        results(given),
        [("a", CallEnd::Failed, "one"), ("b", CallEnd::Ok, "two")]
    );
    call.text("done").await;
    call.end(ModelEnd::Completed);
    let done = (Outcome::Completed, "done".to_owned());
    assert_eq!(answer(&mut replies).await, done);
    assert_eq!(results(&rows(&stage).await).len(), 2);
    assert_eq!(contents(&stage).await, 0);
}

/// R96: each call has one start, in the order of the answer, and one end, with its texts.
#[tokio::test]
async fn each_call_is_told_once_with_its_texts() {
    let (_temp, dir) = state_dir();
    let clock = Arc::new(Hand::default());
    let calls = [("a", "look"), ("b", "other")];
    let (mut stage, _replies) = asking(&dir, clock, &calls).await;
    let work = stage.next_work().await;
    work.output("out").await;
    work.end(ToolEnd::Ok);
    stage.next_call().await.end(ModelEnd::Completed);
    let mut told = Vec::new();
    loop {
        match &stage.events.recv().await.expect("an event").event {
            RunEvent::ToolStart {
                id,
                name,
                arguments,
            } => told.push(format!("{id} {name} {arguments}")),
            RunEvent::ToolOutput { id, delta, .. } => told.push(format!("{id}: {delta}")),
            RunEvent::ToolEnd {
                id, end, output, ..
            } => told.push(format!("{id} {end:?} {output}")),
            RunEvent::End(_) => break,
            _ => {}
        }
    }
    let expected = [
        r#"a look {"of":"a"}"#,
        r#"b other {"of":"b"}"#,
        "b NoSuchTool ",
        "a: out",
        "a Ok out",
    ];
    assert_eq!(told, expected);
}

/// P08: the model may name its calls alike or not at all; each has its own result.
#[tokio::test]
async fn two_calls_of_one_id_have_a_result_each() {
    let (_temp, dir) = state_dir();
    let calls = [("x", "look"), ("x", "look"), ("", "look")];
    let (mut stage, _replies) = asking(&dir, Arc::default(), &calls).await;
    for said in ["one", "two", "three"] {
        let work = stage.next_work().await;
        work.output(said).await;
        work.end(ToolEnd::Ok);
    }
    let call = stage.next_call().await;
    let given = &call.call.transcript;
    let ids = ["x", "call_1_1", "call_1_2"];
    assert_eq!(asked_for(given), ids);
    let outputs: Vec<_> = results(given)
        .into_iter()
        .map(|row| (row.0, row.2))
        .collect();
    assert_eq!(
        outputs,
        [(ids[0], "one"), (ids[1], "two"), (ids[2], "three")]
    );
}

/// S-11, I33, P38: calls of an answer that broke off are no calls.
#[tokio::test]
async fn a_call_of_a_broken_answer_is_never_started() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    accepted(&mut stage.say("s", "r1", "hello")).await;
    let call = stage.next_call().await;
    call.text("half").await;
    let asked = tidegate_driver::CallText {
        id: "a".to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    let asked = tidegate_driver::ModelEvent::Call(asked);
    call.sink.send(asked).await;
    call.end(ModelEnd::Incomplete);
    let is_retrying = |event: &RunEvent| matches!(event, RunEvent::Retrying { .. });
    stage.event("r1", is_retrying).await;
    assert!(stage.works.try_recv().is_err());
    assert_eq!(asked_for(&rows(&stage).await), [""; 0]);
}

/// P17, I40: a tool that is told to stop ends by itself, and the run is cancelled with its result.
#[tokio::test]
async fn an_abort_lets_a_tool_stop_by_itself() {
    let (_temp, dir) = state_dir();
    let (mut stage, mut replies) = asking(&dir, Arc::default(), &[("a", "look")]).await;
    let work = stage.next_work().await;
    work.output("half").await;
    let _abort = stage.client.abort("s".to_owned(), AbortScope::AtWork);
    work.sink.stopped().await;
    work.output(", tidied up").await;
    work.end(ToolEnd::Cancelled);
    let (outcome, _) = answer(&mut replies).await;
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    let cancelled = ("a", CallEnd::Cancelled, "half, tidied up");
    assert_eq!(results(&rows(&stage).await), [cancelled]);
    assert_eq!(contents(&stage).await, 0);
}

/// P17, I40, law 12: a tool that ignores its stop is dropped within the bound, with all that it
/// started, and its result says that nobody knows.
#[tokio::test]
async fn an_abort_ends_a_tool_that_ignores_its_stop() {
    let (_temp, dir) = state_dir();
    let clock = Arc::new(Hand::default());
    let (mut stage, mut replies) = asking(&dir, clock.clone(), &[("a", "look")]).await;
    let work = stage.next_work().await;
    work.output("half").await;
    let is_output = |event: &RunEvent| matches!(event, RunEvent::ToolOutput { .. });
    stage.event("r1", is_output).await;
    let mut abort = stage.client.abort("s".to_owned(), AbortScope::AtWork);
    work.sink.stopped().await;
    let Work {
        sink, mut dropped, ..
    } = work;
    contents(&stage).await;
    assert!(dropped.try_recv().is_err_and(still_held), "it has its time");
    clock.0.fetch_add(10_000, Ordering::Relaxed);
    contents(&stage).await;
    let _ = dropped.await;
    assert!(matches!(abort.next().await, Ok(Reply::Aborted { .. })));
    let (outcome, _) = answer(&mut replies).await;
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    sink.output("late".to_owned()).await;
    let unknown = ("a", CallEnd::Unknown, "half");
    assert_eq!(results(&rows(&stage).await), [unknown]);
    assert_eq!(contents(&stage).await, 0);
}

/// Whether what a test waits for is still to come.
fn still_held(error: tokio::sync::oneshot::error::TryRecvError) -> bool {
    error == tokio::sync::oneshot::error::TryRecvError::Empty
}

/// M25, law 9: what hangs beyond its limit and ignores its stop does not run on, while the other
/// calls have their time; and the run goes on.
#[tokio::test]
async fn a_call_that_hangs_does_not_end_its_run() {
    let (_temp, dir) = state_dir();
    let clock = Arc::new(Hand::default());
    let calls = [("a", "look"), ("b", "wait")];
    let (mut stage, mut replies) = asking(&dir, clock.clone(), &calls).await;
    let (hangs, waits) = (stage.next_work().await, stage.next_work().await);
    clock.0.fetch_add(1_800_000, Ordering::Relaxed);
    contents(&stage).await;
    hangs.sink.stopped().await;
    clock.0.fetch_add(10_000, Ordering::Relaxed);
    contents(&stage).await;
    let _ = hangs.dropped.await;
    waits.output("well").await;
    waits.end(ToolEnd::Ok);
    let call = stage.next_call().await;
    assert_eq!(
        results(&call.call.transcript),
        [("a", CallEnd::Unknown, ""), ("b", CallEnd::Ok, "well")]
    );
    call.end(ModelEnd::Completed);
    assert_eq!(answer(&mut replies).await.0, Outcome::Completed);
}

/// A store that waits for the test's word before it lists sessions, and knows nothing of its
/// lease of a session that `r2` comes to.
struct Slow {
    store: SqliteStore,
    word: std::sync::mpsc::Receiver<()>,
}

impl Store for Slow {
    fn run(&mut self, batch: Vec<StoreOp>) -> Vec<StoreDone> {
        batch.into_iter().map(|op| self.one(op)).collect()
    }
}

impl Slow {
    fn one(&mut self, op: StoreOp) -> StoreDone {
        match &op {
            StoreOp::Sessions { .. } => self.word.recv().expect("the test gives its word"),
            StoreOp::Accept { names, .. } if names.run_key == "r2" => {
                return StoreDone::Accepted {
                    report: AcceptReport::NotOwner,
                    text: StoredText::default(),
                };
            }
            _ => {}
        }
        self.store.run(vec![op]).remove(0)
    }
}

/// `r1` has a tool at work over a slow store.
async fn slow(dir: &StateDir) -> (Stage, Work, std::sync::mpsc::Sender<()>) {
    let store = SqliteStore::open(dir).expect("the store opens");
    let key = store.fingerprint_key();
    let (go, word) = std::sync::mpsc::channel();
    let mut stage = Stage::with(Slow { store, word }, key);
    accepted(&mut stage.say("s", "r1", "hello")).await;
    stage.next_call().await.ask_for(&[("a", "look")]).await;
    let work = stage.next_work().await;
    (stage, work, go)
}

/// I34: a stop ends the tools first, however long the store takes.
#[tokio::test]
async fn a_stop_does_not_leave_tools_to_a_slow_store() {
    let (_temp, dir) = state_dir();
    let (stage, work, go) = slow(&dir).await;
    let client = stage.client.clone();
    let list = tokio::task::spawn(async move { client.sessions(1).await });
    contents(&stage).await;
    let stop = tokio::task::spawn(stage.stop());
    let _ = work.dropped.await;
    assert!(!stop.is_finished(), "it waits for the store");
    go.send(()).expect("the store listens");
    stop.await.expect("no panic").expect("in order");
    assert!(list.await.is_ok());
}

/// I34, law 12: what another process owns now is left alone: no tool of it runs on here.
#[tokio::test]
async fn a_lost_session_leaves_no_tool_running() {
    let (_temp, dir) = state_dir();
    let (mut stage, work, _go) = slow(&dir).await;
    let refused = stage.say("s", "r2", "and?").next().await;
    assert!(matches!(refused, Ok(Reply::Rejected(_))), "{refused:?}");
    let _ = work.dropped.await;
    let call = stage.next_call().await;
    let unknown = ("a", CallEnd::Unknown, "");
    assert_eq!(results(&call.call.transcript), [unknown]);
    assert!(stage.works.try_recv().is_err(), "not started again");
}

/// P35: who listens slowly loses output, as it does text, and stays.
#[tokio::test]
async fn a_slow_listener_loses_output_only() {
    let (_temp, dir) = state_dir();
    let config = Config {
        text_pace_ms: 0,
        ..Config::default()
    };
    let mut stage = Stage::configured(&dir, config);
    let mut slow = stage.client.subscribe(3);
    accepted(&mut stage.say("s", "r1", "hello")).await;
    stage.next_call().await.ask_for(&[("a", "look")]).await;
    let work = stage.next_work().await;
    let is_output = |event: &RunEvent| matches!(event, RunEvent::ToolOutput { .. });
    for _ in 0..3 {
        work.output("more").await;
        stage.event("r1", is_output).await;
    }
    let mut heard = 0;
    while slow.try_recv().is_ok() {
        heard += 1;
    }
    assert_eq!(heard, 3, "its start, the call's, and the first output");
    work.end(ToolEnd::Ok);
    let end = slow.recv().await.expect("it is still told");
    assert!(matches!(end.event, RunEvent::ToolEnd { .. }), "{end:?}");
}

/// I34, law 12: nothing runs when the stop is over; the next life does not start it again, and
/// its result says that nobody knows.
#[tokio::test]
async fn a_stopped_gateway_leaves_no_tool_running() {
    let (_temp, dir) = state_dir();
    let (mut stage, _replies) = asking(&dir, Arc::default(), &[("a", "look")]).await;
    let mut work = stage.next_work().await;
    stage.client.stop().await;
    assert!(
        work.dropped
            .try_recv()
            .is_err_and(|error| !still_held(error)),
        "it is gone with the stop"
    );
    stage.stop().await.expect("in order");
    unknown_and_not_again(&dir).await;
}

/// I34, P23, law 12: the same after a kill; the tool goes with its driver.
#[tokio::test]
async fn a_killed_gateway_starts_no_call_again() {
    let (_temp, dir) = state_dir();
    let (mut stage, _replies) = asking(&dir, Arc::default(), &[("a", "look")]).await;
    let work = stage.next_work().await;
    stage.kill().await;
    let _ = work.dropped.await;
    unknown_and_not_again(&dir).await;
}

async fn unknown_and_not_again(dir: &StateDir) {
    let mut stage = Stage::start(dir);
    let call = stage.next_call().await;
    assert_eq!(call.call.attempt, Attempt(2));
    let unknown = ("a", CallEnd::Unknown, "");
    assert_eq!(results(&call.call.transcript), [unknown]);
    call.end(ModelEnd::Completed);
    let mut wait = stage.client.wait("r1".to_owned(), None);
    assert!(matches!(wait.next().await, Ok(Reply::WaitEnded(_))));
    assert!(stage.works.try_recv().is_err(), "not started again");
    assert_eq!(results(&rows(&stage).await), [unknown]);
}

/// I33: what is wrong with a call's arguments is told to the model with its result.
#[tokio::test]
async fn bad_arguments_are_told_with_their_reason() {
    let (_temp, dir) = state_dir();
    let calls = [("a", "odd")];
    let (mut stage, _replies) = asking(&dir, Arc::default(), &calls).await;
    let call = stage.next_call().await;
    let told = [("a", CallEnd::BadArguments, "Too odd.")];
    assert_eq!(results(&call.call.transcript), told);
}

/// P40: a panic in a tool is that call's failure, over its arguments or while it runs; the model
/// is told.
#[tokio::test]
async fn a_tool_that_panics_fails_its_call_only() {
    let (_temp, dir) = state_dir();
    let calls = [("a", "riddle"), ("b", "look"), ("c", "look")];
    let (mut stage, mut replies) = asking(&dir, Arc::default(), &calls).await;
    let (broken, whole) = (stage.next_work().await, stage.next_work().await);
    broken.output("half a line").await;
    broken.panic();
    whole.end(ToolEnd::Ok);
    let call = stage.next_call().await;
    let sentence = "half a line\n[The tool failed inside; this is a defect of the gateway.]\n";
    assert_eq!(
        results(&call.call.transcript),
        [
            ("a", CallEnd::BadArguments, ""),
            ("b", CallEnd::Failed, sentence),
            ("c", CallEnd::Ok, ""),
        ]
    );
    call.end(ModelEnd::Completed);
    assert_eq!(answer(&mut replies).await.0, Outcome::Completed);
}

/// Law 9, P35: what a call puts out is told as it grows and kept up to a bound; a tool that puts
/// out more goes on, and who listens is told what is kept.
#[tokio::test]
async fn output_is_streamed_and_bounded() {
    let (_temp, dir) = state_dir();
    let (mut stage, _replies) = asking(&dir, Arc::default(), &[("a", "look")]).await;
    let work = stage.next_work().await;
    let is_output = |event: &RunEvent| matches!(event, RunEvent::ToolOutput { .. });
    let mut shown = String::new();
    for piece in ["one ", "two "] {
        work.output(piece).await;
        let RunEvent::ToolOutput { delta, .. } = stage.event("r1", is_output).await else {
            panic!("it was looked for")
        };
        assert_eq!(delta, piece);
        shown.push_str(&delta);
    }
    for _ in 0..40 {
        work.output(&"é".repeat(50_000)).await;
    }
    work.end(ToolEnd::Ok);
    let call = stage.next_call().await;
    let end = loop {
        match &stage.events.recv().await.expect("an event").event {
            RunEvent::ToolOutput { delta, .. } => shown.push_str(delta),
            RunEvent::ToolEnd { end, output, .. } => break (*end, output.clone()),
            _ => {}
        }
    };
    let given = results(&call.call.transcript);
    assert_eq!((given[0].1, end.0), (CallEnd::Ok, CallEnd::Ok));
    assert!(given[0].2.len() <= 1024 * 1024, "{}", given[0].2.len());
    assert!(given[0].2.len() > 1024 * 1024 - 1_000);
    assert!(given[0].2.ends_with("1 MiB of a call is kept.]\n"));
    assert!(given[0].2 == &*end.1, "the listeners know what is kept");
    assert!(shown == given[0].2, "and have seen it grow");
}
