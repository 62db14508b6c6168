//! The first time and the hundredth: commands that refuse to end are gone, and this process has
//! no children left. Alone in its program, since it counts all children.

mod support;

use support::{SHORT, Stage, children, is_over, state};
use tidegate_core::ToolEnd;

/// A shell and its child, both deaf to SIGTERM.
const DEAF: &str =
    "trap '' TERM; sh -c 'echo child=$$; while :; do sleep 1; done' & echo shell=$$; wait; wait";

/// Law 9: whatever a call started ends with it, also the hundredth time.
#[tokio::test]
async fn a_hundred_commands_that_refuse_to_end_leave_nothing() {
    let stage = Stage::with(SHORT, &[]);
    for batch in 0..4 {
        let mut running: Vec<_> = (0..25).map(|_| stage.start(DEAF)).collect();
        let mut numbers = Vec::new();
        for call in &mut running {
            numbers.push((call.number("shell").await, call.number("child").await));
        }
        for call in &running {
            call.ask_to_stop();
        }
        for call in running {
            let (text, end) = call.end().await;
            assert!(
                text.ends_with("[killed by signal 9]"),
                "batch {batch}: {text}"
            );
            assert_eq!(end, ToolEnd::Cancelled);
        }
        for (shell, child) in numbers {
            assert_eq!(state(shell), None, "batch {batch}");
            assert!(is_over(child), "batch {batch}");
        }
        assert_eq!(children(), Vec::<u32>::new(), "batch {batch}");
    }
}
