//! How commands end that do not end by themselves, and that nothing of them is left.

mod support;

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::{SHORT, Stage, call, is_over, state, until};
use tidegate_core::ToolEnd;
use tidegate_driver::{ToolSink, Tools};
use tidegate_tools::{Bounds, LINGER_MS};

/// A stop as patient as a test may be: what ends by it ended by itself.
const PATIENT: Bounds = Bounds {
    stop_grace_ms: 15_000,
    linger_ms: LINGER_MS,
};

#[tokio::test]
async fn a_stopped_command_may_still_say_good_bye() {
    let stage = Stage::with(PATIENT, &[]);
    let mut running =
        stage.start("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    running.wait_for("ready").await;
    running.ask_to_stop();
    let (text, end) = running.end().await;
    // The shell may tell of its own child's end in between.
    assert!(text.ends_with("\nbye\n[exit code 3]"), "{text}");
    assert_eq!(end, ToolEnd::Cancelled);
}

/// A stop is for the whole group: what runs in the background may end gently too.
#[tokio::test]
async fn what_runs_in_the_background_of_a_stopped_command_has_the_grace_too() {
    let stage = Stage::with(PATIENT, &[]);
    let mut running = stage.start(
        "(trap 'sleep 0.7; echo late; exit' TERM; echo ready; while :; do sleep 0.01; done) & wait",
    );
    running.wait_for("ready").await;
    running.ask_to_stop();
    let (text, end) = running.end().await;
    assert!(text.ends_with("\nlate\n[killed by signal 15]"), "{text}");
    assert_eq!(end, ToolEnd::Cancelled);
}

#[tokio::test]
async fn a_command_that_ignores_the_stop_is_killed_after_the_grace() {
    let stage = Stage::with(SHORT, &[]);
    let mut running = stage.start("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    running.wait_for("ready").await;
    running.ask_to_stop();
    let (text, end) = running.end().await;
    assert_eq!(text, "ready\n[killed by signal 9]");
    assert_eq!(end, ToolEnd::Cancelled);
}

#[tokio::test]
async fn a_grandchild_that_ignores_the_stop_is_killed_with_its_group() {
    let stage = Stage::with(SHORT, &[]);
    let mut running = stage.start(
        "sh -c 'trap \"\" TERM; echo child=$$; while :; do sleep 0.01; done' & echo shell=$$; wait",
    );
    let (child, shell) = (running.number("child").await, running.number("shell").await);
    running.ask_to_stop();
    let (text, end) = running.end().await;
    assert!(text.ends_with("[killed by signal 15]"), "{text}");
    assert_eq!(end, ToolEnd::Cancelled);
    assert_eq!(state(shell), None, "it is collected");
    assert!(is_over(child));
}

/// A command that stands still is woken to end, not only killed.
#[tokio::test]
async fn a_command_that_stopped_itself_is_woken_to_end() {
    let stage = Stage::with(PATIENT, &[]);
    let mut running = stage.start("echo shell=$$; kill -STOP $$; echo on");
    let shell = running.number("shell").await;
    until("the shell stands still", || state(shell) == Some('T')).await;
    running.ask_to_stop();
    let (text, end) = running.end().await;
    assert_eq!(text, format!("shell={shell}\n[killed by signal 15]"));
    assert_eq!(end, ToolEnd::Cancelled);
}

/// A child in the background that keeps the output open does not hold the call.
#[tokio::test]
async fn a_background_child_is_cut_off_and_killed_after_its_shell() {
    let stage = Stage::new();
    let mut running = stage.start("sleep 1000 & echo child=$!");
    let child = running.number("child").await;
    let (text, end) = running.end().await;
    let (_, line) = text.split_once('\n').unwrap();
    assert_eq!(
        line,
        format!(
            "[the shell has ended; {LINGER_MS} ms later something that it left in the background \
             still held the output open. It is read no further, and the command's process group \
             was killed]"
        )
    );
    assert_eq!(end, ToolEnd::Ok);
    assert!(is_over(child));
}

#[tokio::test]
async fn a_background_child_that_gave_its_output_away_ends_with_the_call() {
    let stage = Stage::new();
    let mut running = stage.start("sleep 1000 > /dev/null 2>&1 & echo child=$!");
    let child = running.number("child").await;
    let (text, end) = running.end().await;
    assert_eq!(text, format!("child={child}\n"));
    assert_eq!(end, ToolEnd::Ok);
    assert!(is_over(child));
}

/// What left the group can't be reached; it neither holds the call nor gets into its output.
#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_call() {
    let stage = Stage::with(SHORT, &[]);
    let mut running = stage.start("setsid sh -c 'echo away=$$; exec sleep 1000' & wait");
    let away = running.number("away").await;
    running.ask_to_stop();
    let (text, end) = running.end().await;
    assert_eq!(end, ToolEnd::Cancelled);
    assert!(text.ends_with("[killed by signal 15]"), "{text}");
    assert!(!is_over(away), "it is out of reach, as the docs say");
    let away = Pid::from_raw(i32::try_from(away).unwrap()).unwrap();
    kill_process(away, Signal::KILL).unwrap();
}

/// Nobody is left who could say stop: that is a stop.
#[tokio::test]
async fn a_call_whose_owner_is_gone_stops() {
    let stage = Stage::new();
    let mut running = stage.start("echo ready; sleep 1000");
    running.wait_for("ready").await;
    drop(running.stop);
    let end = tokio::time::timeout(Duration::from_secs(20), running.end).await;
    assert_eq!(end.unwrap().unwrap(), ToolEnd::Cancelled);
}

/// A dropped call leaves neither a process nor a corpse.
#[tokio::test]
async fn a_dropped_call_ends_its_group_at_once() {
    let stage = Stage::with(PATIENT, &[]);
    let mut running = stage.start(
        "trap '' TERM; sh -c 'trap \"\" TERM; echo child=$$; sleep 1000; :' & echo shell=$$; wait",
    );
    let (child, shell) = (running.number("child").await, running.number("shell").await);
    running.end.abort();
    until("the shell is collected", || state(shell).is_none()).await;
    until("the child is over", || is_over(child)).await;
}

/// The same when the runtime is gone before the call.
#[test]
fn a_call_dropped_after_its_runtime_is_collected_too() {
    let stage = Stage::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (sink, mut output, _stop) = ToolSink::channel(1);
    let arguments = r#"{"command":"echo $$; sleep 1000; :"}"#;
    let mut call = stage.tools.run(call(arguments), sink);
    let first = runtime.block_on(async {
        tokio::select! {
            end = &mut call => panic!("it ended: {end:?}"),
            piece = output.recv() => piece.unwrap(),
        }
    });
    let shell = first.trim().parse().unwrap();
    drop(runtime);
    assert!(!is_over(shell), "only the call can end it");
    drop(call);
    assert_eq!(state(shell), None);
}
