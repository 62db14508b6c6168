//! Settling: one end, under the fence, told alike everywhere.

use tidegate_core::{Fence, Generation, LookupReport, Outcome, SettleReport, StopReason, Terminal};
use tidegate_driver::StoredText;

use crate::kit::*;

const CANCELLED: Outcome = Outcome::Cancelled {
    by: StopReason::Rpc,
    provider_started: false,
};

/// P02, P40: one end, and every place tells it alike.
#[test]
fn an_end_is_written_once_and_told_alike() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "an");
    assert_eq!(kit.complete(1, 7, "an answer"), SettleReport::Committed);
    let end = terminal(1, 7, 1, Outcome::Completed);
    assert_eq!(
        kit.lookup(7),
        (LookupReport::Ended(end), reply("an answer"))
    );
    assert_eq!(kit.sessions(1)[0].last_terminal, Some(end));
    let lines = [
        "1 user whole run-7: message 7",
        "2 assistant whole run-7: an answer",
    ];
    assert_eq!(kit.lines(1), lines);
    assert!(kit.open_runs(1).is_empty());
    assert_eq!(
        kit.settle((1, 7, 1), FAILED, reply("other")),
        SettleReport::Fenced
    );
    assert_eq!(
        kit.lookup(7),
        (LookupReport::Ended(end), reply("an answer"))
    );
    assert_eq!(kit.lines(1), lines);
}

/// Law 10, P40: text of a run that did not complete is kept and marked.
#[test]
fn only_a_completed_reply_is_whole() {
    for outcome in [FAILED, CANCELLED] {
        let mut kit = Kit::new();
        kit.start(1, 7);
        kit.settle((1, 7, 1), outcome, reply("half"));
        assert_eq!(kit.lines(1)[1], "2 assistant partial run-7: half");
        assert_eq!(kit.lookup(7).1, reply("half"));
    }
}

/// No text, no row; the provider's words are kept with the receipt.
#[test]
fn an_end_without_text_has_no_row() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    let text = StoredText {
        reply: None,
        detail: Some("credit is used up".into()),
        turn_key: None,
    };
    kit.settle((1, 7, 1), FAILED, text.clone());
    assert_eq!(kit.lookup(7).1, text);
    kit.start(1, 8);
    let settled = kit.settle((1, 8, 1), Outcome::Completed, reply(""));
    assert_eq!(settled, SettleReport::Committed);
    assert_eq!(kit.lookup(8).1, StoredText::default());
    assert_eq!(
        kit.lines(1),
        [
            "1 user whole run-7: message 7",
            "2 user whole run-8: message 8"
        ]
    );
}

/// I22, P07, P18: under a fence that does not hold nothing changes.
#[test]
fn a_settle_whose_fence_does_not_hold_changes_nothing() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    kit.claim(1, 7, 2);
    kit.save(fence(1, 7, 2), 0, "half");
    kit.accept(1, 8);
    kit.accept(2, 5);
    let before = (kit.lines(1), kit.open_runs(1));
    let other_generation = Fence {
        generation: Generation(2),
        ..fence(1, 7, 2)
    };
    let wrong = [
        (fence(1, 7, 1), 7),
        (fence(1, 7, 3), 7),
        (fence(1, 7, 0), 7),
        (fence(2, 7, 2), 7),
        (other_generation, 7),
        (fence(1, 8, 1), 8),
        (fence(1, 9, 1), 9),
        (fence(1, 9, 0), 9),
        (fence(2, 8, 0), 8),
        (
            Fence {
                generation: Generation(2),
                ..fence(1, 8, 0)
            },
            8,
        ),
    ];
    for (fence, n) in wrong {
        let end = Terminal {
            session: fence.session,
            ..terminal(1, n, 1, FAILED)
        };
        let report = kit.settle_as(fence, end, StoredText::default());
        assert_eq!(report, SettleReport::Fenced, "{fence:?}");
    }
    assert_eq!((kit.lines(1), kit.open_runs(1)), before);
    let report = kit.settle((1, 7, 2), Outcome::Completed, reply("half and half"));
    assert_eq!(report, SettleReport::Committed);
}

/// P40: a receipt speaks of the run that the fence names.
#[test]
fn an_end_of_another_run_or_session_is_not_written() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.accept(1, 8);
    let end = terminal(1, 8, 1, FAILED);
    assert_eq!(
        kit.settle_as(fence(1, 7, 1), end, reply("x")),
        SettleReport::Fenced
    );
    let end = Terminal {
        session: session(2),
        ..terminal(1, 7, 1, FAILED)
    };
    assert_eq!(
        kit.settle_as(fence(1, 7, 1), end, reply("x")),
        SettleReport::Fenced
    );
    assert_eq!(kit.open_runs(1).len(), 2);
}

/// P05, P17: a waiting run ends beside the one at work, and disturbs nothing.
#[test]
fn a_run_that_never_claimed_ends_in_its_queue() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "ha");
    kit.accept(1, 8);
    let settled = kit.settle((1, 8, 0), CANCELLED, StoredText::default());
    assert_eq!(settled, SettleReport::Committed);
    let end = terminal(1, 8, 0, CANCELLED);
    assert_eq!(
        kit.lookup(8),
        (LookupReport::Ended(end), StoredText::default())
    );
    kit.save(fence(1, 7, 1), 2, "lf");
    assert_eq!(kit.complete(1, 7, "whole"), SettleReport::Committed);
    assert_eq!(
        kit.lines(1),
        [
            "1 user whole run-7: message 7",
            "2 assistant whole run-7: whole"
        ]
    );
}

/// P07, I20: a transcript row needs a claim.
#[test]
fn a_run_that_never_claimed_has_no_reply() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    assert_eq!(
        kit.settle((1, 7, 0), FAILED, reply("from nowhere")),
        SettleReport::Fenced
    );
    assert_eq!(kit.lookup(7).0, LookupReport::Open);
}

/// Design 5: a run that is stopped after a restart, before it claimed again, keeps what its
/// earlier attempt had streamed, marked interrupted.
#[test]
fn a_run_stopped_before_its_next_claim_keeps_its_interrupted_text() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "half");
    kit.reopen();
    let settled = kit.settle((1, 7, 1), CANCELLED, StoredText::default());
    assert_eq!(settled, SettleReport::Committed);
    assert_eq!(kit.lines(1)[1], "2 assistant interrupted run-7: half");
    assert_eq!(kit.lookup(7).1, StoredText::default());
}
