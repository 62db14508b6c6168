//! A failed model call is made again: what of the failed one stays, and what must not.

mod stage;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stage::*;
use tidegate_core::{
    Attempt, Config, ErrorClass, Failure, Limit, Marker, ModelEnd, Outcome, ProviderError,
    RetryAfter,
};
use tidegate_driver::{AbortScope, Replies, Reply, Role, RowMark, RunEvent};
use tidegate_store::StateDir;

const AWAY: ModelEnd = ModelEnd::Failed(ProviderError {
    status: Some(503),
    marker: Marker::None,
    retry_after: RetryAfter::Unsaid,
    detail: false,
});

/// A stage whose clock the test moves, and which shows each text at once.
struct Timed {
    stage: Stage,
    clock: Arc<Hand>,
    replies: Replies,
    _temp: tempfile::TempDir,
}

impl Timed {
    /// `r1` is at the model, and has shown this text.
    async fn at_work(text: &str) -> (Self, Call) {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = StateDir::acquire(&temp.path().join("state")).expect("it is ours");
        let clock = Arc::new(Hand::default());
        let config = Config {
            text_pace_ms: 0,
            ..Config::default()
        };
        let mut stage = Stage::timed(&dir, config, clock.clone());
        let mut replies = stage.say("s", "r1", "hello");
        accepted(&mut replies).await;
        let call = stage.next_call().await;
        call.text(text).await;
        let is_text = |event: &RunEvent| matches!(event, RunEvent::Text { .. });
        stage.event("r1", is_text).await;
        let timed = Self {
            stage,
            clock,
            replies,
            _temp: temp,
        };
        (timed, call)
    }

    /// Lets this much time pass.
    async fn pass(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
        // Whoever asks wakes the driver.
        self.contents().await;
    }

    /// Waits until the run waits to ask again: which call comes next of how many, the wait,
    /// and what went wrong.
    async fn retrying(&mut self) -> (u16, u16, u64, Outcome) {
        let is_retrying = |event: &RunEvent| matches!(event, RunEvent::Retrying { .. });
        let event = self.stage.event("r1", is_retrying).await;
        let RunEvent::Retrying {
            call,
            calls_max,
            delay_ms,
            because,
        } = event
        else {
            panic!("it was looked for: {event:?}")
        };
        (call, calls_max, delay_ms, because)
    }

    /// The next text that is shown: by what it grew, and to what.
    async fn shown(&mut self) -> (String, String) {
        let is_text = |event: &RunEvent| matches!(event, RunEvent::Text { .. });
        match self.stage.event("r1", is_text).await {
            RunEvent::Text { delta, text } => (delta, text),
            event => panic!("it was looked for: {event:?}"),
        }
    }

    async fn contents(&self) -> u64 {
        self.stage.client.status().await.expect("runs").contents
    }

    async fn rows(&self) -> Vec<(Role, RowMark, String)> {
        let rows = self.stage.client.transcript("s".to_owned()).await;
        let rows = rows.expect("runs").expect("reads").into_iter();
        rows.map(|row| (row.role, row.mark, row.text)).collect()
    }
}

/// P16, B-058, law 4: the failed attempt's text is a row of its own and its content is freed
/// once; the next attempt sees that row, and its text begins empty.
#[tokio::test]
async fn the_next_attempt_begins_anew_and_keeps_what_the_failed_one_showed() {
    let (mut timed, call) = Timed::at_work("half an ").await;
    call.end(AWAY);
    let (next, most, delay_ms, because) = timed.retrying().await;
    assert_eq!((next, most), (2, 9));
    let class = ErrorClass::ServerError;
    let status = Some(503);
    assert_eq!(
        because,
        Outcome::Failed(Failure::Provider { class, status })
    );
    assert_eq!(timed.contents().await, 1, "the failed attempt's text");
    timed.pass(delay_ms).await;

    let call = timed.stage.next_call().await;
    assert_eq!(call.call.attempt, Attempt(2));
    let given: Vec<_> = call.call.transcript.iter().map(|row| row.mark).collect();
    assert_eq!(given, [RowMark::Whole, RowMark::Interrupted]);
    assert_eq!(timed.contents().await, 1, "the next attempt's text alone");
    call.text("a whole ").await;
    let anew = ("a whole ".to_owned(), "a whole ".to_owned());
    assert_eq!(timed.shown().await, anew);
    call.text("answer").await;
    call.end(ModelEnd::Completed);
    let whole = (Outcome::Completed, "a whole answer".to_owned());
    assert_eq!(answer(&mut timed.replies).await, whole);
    assert_eq!(
        timed.rows().await,
        [
            (Role::User, RowMark::Whole, "hello".to_owned()),
            (Role::Assistant, RowMark::Interrupted, "half an ".to_owned()),
            (Role::Assistant, RowMark::Whole, "a whole answer".to_owned()),
        ]
    );
    assert_eq!(timed.contents().await, 0);
}

/// P16, law 4: a call that was given up as silent is dropped, and what it still says and how it
/// ends reaches nobody.
#[tokio::test]
async fn a_silent_call_that_ends_late_touches_no_later_attempt() {
    let (mut timed, call) = Timed::at_work("half ").await;
    // Deadline by deadline: who comes late to one was asleep, and the limits move.
    timed.pass(250).await;
    timed.pass(119_750).await;
    let (next, _, delay_ms, because) = timed.retrying().await;
    let idle = Outcome::TimedOut {
        limit: Limit::Idle,
        provider_started: true,
    };
    assert_eq!((next, because), (2, idle));
    call.text("late words").await;
    let Call { dropped, .. } = call;
    let _ = dropped.await;
    timed.pass(delay_ms).await;
    let call = timed.stage.next_call().await;
    call.text("well").await;
    assert_eq!(timed.shown().await.1, "well");
    call.end(ModelEnd::Completed);
    let well = (Outcome::Completed, "well".to_owned());
    assert_eq!(answer(&mut timed.replies).await, well);
    let kept: Vec<String> = timed.rows().await.into_iter().map(|row| row.2).collect();
    assert_eq!(kept, ["hello", "half ", "well"]);
    assert_eq!(timed.contents().await, 0);
}

/// P17: an abort ends a run that waits to ask again, and what it had shown is kept as it was.
#[tokio::test]
async fn an_abort_ends_the_wait() {
    let (mut timed, call) = Timed::at_work("half ").await;
    call.end(ModelEnd::Incomplete);
    timed.retrying().await;
    let client = timed.stage.client.clone();
    let mut abort = client.abort("s".to_owned(), AbortScope::AtWork);
    assert!(matches!(abort.next().await, Ok(Reply::Aborted { run_keys }) if run_keys.len() == 1));
    let (outcome, text) = answer(&mut timed.replies).await;
    assert!(matches!(outcome, Outcome::Cancelled { .. }), "{outcome:?}");
    assert_eq!(text, "half ");
    let last = timed.rows().await.pop().expect("rows");
    assert_eq!((last.1, last.2.as_str()), (RowMark::Partial, "half "));
    assert_eq!(timed.contents().await, 0);
    let mut next = timed.stage.say("s", "r2", "and now?");
    accepted(&mut next).await;
    timed.stage.next_call().await.end(ModelEnd::Completed);
    assert_eq!(answer(&mut next).await.0, Outcome::Completed);
}
