//! Another provider is asked when one can't answer: which call asks whom, and what is kept.

mod stage;

use std::sync::Arc;

use stage::*;
use tidegate_core::{
    Attempt, Config, ErrorClass, Failure, Marker, ModelEnd, Outcome, ProviderClass, ProviderConfig,
    ProviderError, RetryAfter,
};
use tidegate_driver::{Role, RowMark, RunEvent};
use tidegate_store::StateDir;

const REFUSED: ModelEnd = ModelEnd::Failed(ProviderError {
    status: Some(401),
    marker: Marker::None,
    retry_after: RetryAfter::Unsaid,
    detail: false,
});

/// A first choice and one fallback.
fn two() -> Config {
    Config {
        fallbacks: vec![ProviderConfig {
            class: ProviderClass::Local,
            timeout_ms: None,
        }],
        ..Config::default()
    }
}

/// P15: the next attempt asks the next provider, and who follows is told both by their names
/// and nothing else of them.
#[tokio::test]
async fn the_next_attempt_asks_the_next_provider() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = StateDir::acquire(&temp.path().join("state")).expect("it is ours");
    let mut stage = Stage::configured(&dir, two());
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    assert_eq!((call.call.attempt, call.call.candidate), (Attempt(1), 0));
    call.text("half ").await;
    call.end(REFUSED);
    let is_fallback = |event: &RunEvent| matches!(event, RunEvent::Fallback { .. });
    let told = stage.event("r1", is_fallback).await;
    let refused = Failure::Provider {
        class: ErrorClass::Auth,
        status: Some(401),
    };
    let expected = RunEvent::Fallback {
        from: Arc::from("model 0"),
        to: Arc::from("model 1"),
        because: Outcome::Failed(refused),
    };
    assert_eq!(told, expected);
    let call = stage.next_call().await;
    assert_eq!((call.call.attempt, call.call.candidate), (Attempt(2), 1));
    call.text("whole").await;
    call.end(ModelEnd::Completed);
    let whole = (Outcome::Completed, "whole".to_owned());
    assert_eq!(answer(&mut replies).await, whole);
    let rows = stage.client.transcript("s".to_owned()).await;
    let rows = rows.expect("runs").expect("reads").into_iter();
    let rows: Vec<_> = rows.map(|row| (row.role, row.mark, row.text)).collect();
    assert_eq!(
        rows[1..],
        [
            (Role::Assistant, RowMark::Interrupted, "half ".to_owned()),
            (Role::Assistant, RowMark::Whole, "whole".to_owned()),
        ]
    );
}

/// P15, P23: a run that a kill cuts at its fallback begins again with the first choice.
#[tokio::test]
async fn a_kill_begins_the_chain_anew() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let path = temp.path().join("state");
    let dir = StateDir::acquire(&path).expect("it is ours");
    let mut stage = Stage::configured(&dir, two());
    accepted(&mut stage.say("s", "r1", "hello")).await;
    stage.next_call().await.end(REFUSED);
    assert_eq!(stage.next_call().await.call.candidate, 1);
    stage.kill().await;
    drop(dir);
    let dir = StateDir::acquire(&path).expect("its owner has gone");
    let mut stage = Stage::configured(&dir, two());
    let call = stage.next_call().await;
    assert_eq!((call.call.attempt, call.call.candidate), (Attempt(3), 0));
    call.end(ModelEnd::Completed);
}
