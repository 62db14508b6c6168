//! Saving: pieces of a reply, in order, under the fence.

use tidegate_core::{Fence, Generation, Outcome};
use tidegate_driver::StoredText;

use crate::kit::*;

/// What the saves hold, told by the row that a next attempt makes of them.
fn saved(mut kit: Kit) -> Option<String> {
    kit.claim(1, 7, 9);
    kit.transcript(1).into_iter().nth(1).map(|row| row.text)
}

/// Design 5: saved text has no gaps and no repeats.
#[test]
fn a_piece_that_does_not_continue_the_saved_text_is_not_kept() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    let fence = fence(1, 7, 1);
    assert_eq!(kit.save(fence, 3, "gap"), Some(0));
    assert_eq!(kit.save(fence, 0, "wave "), Some(5));
    kit.save(fence, 0, "wave ");
    kit.save(fence, 4, "overlap");
    kit.save(fence, 5, "");
    kit.save(fence, 5, "\u{1F30A}");
    kit.save(fence, 6, "in characters");
    kit.save(fence, 9, "!");
    assert_eq!(saved(kit).as_deref(), Some("wave \u{1F30A}!"));
}

/// P07, I20: a save is a write; only the writer saves.
#[test]
fn only_the_writer_saves() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    kit.save(fence(1, 7, 1), 0, "before the claim");
    kit.save(fence(1, 7, 0), 0, "attempt 0");
    kit.claim(1, 7, 2);
    kit.save(fence(1, 7, 1), 0, "earlier attempt");
    kit.save(fence(1, 7, 3), 0, "later attempt");
    kit.save(fence(2, 7, 2), 0, "other session");
    kit.save(
        Fence {
            generation: Generation(2),
            ..fence(1, 7, 2)
        },
        0,
        "other generation",
    );
    kit.save(fence(1, 8, 2), 0, "unknown run");
    kit.save(fence(1, 7, 2), 0, "mine");
    assert_eq!(saved(kit).as_deref(), Some("mine"));
}

/// P03, P36: an end leaves no pieces behind, and none come after it.
#[test]
fn an_end_frees_the_saved_pieces() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "half");
    kit.settle((1, 7, 1), FAILED, reply("half and more"));
    kit.save(fence(1, 7, 1), 0, "late");
    kit.save(fence(1, 7, 1), 4, "late");
    kit.start(1, 8);
    kit.save(fence(1, 8, 1), 0, "half");
    kit.start(1, 9);
    kit.save(fence(1, 9, 1), 0, "half");
    kit.claim(1, 9, 2);
    kit.settle((1, 9, 2), Outcome::Completed, StoredText::default());
    let pieces: i64 = kit
        .raw()
        .query_row("SELECT count(*) FROM partial", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(pieces, 0);
}

/// B-082, P13: a restart keeps what the saves prove to be left of the budget.
#[test]
fn the_time_between_claim_and_last_save_is_charged_to_the_budget() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    let left = |kit: &mut Kit| kit.open_runs(1)[0].left_ms;
    assert_eq!(left(&mut kit), Some(10_000));
    let save = |kit: &mut Kit, from: u64, text: &str, at: u64| {
        let op = kit.save_op(fence(1, 7, 1), from, text, at);
        kit.one(op);
    };
    save(&mut kit, 0, "a", 1_200);
    assert_eq!(left(&mut kit), Some(9_000));
    save(&mut kit, 1, "b", 700);
    assert_eq!(
        left(&mut kit),
        Some(9_000),
        "a wall clock that goes back gives nothing back"
    );
    save(&mut kit, 9, "a piece that is not kept", 2_200);
    assert_eq!(left(&mut kit), Some(8_000));
    save(&mut kit, 2, "c", 1_000_000);
    assert_eq!(left(&mut kit), Some(0));
    kit.reopen();
    assert_eq!(left(&mut kit), Some(0));
}

/// R151: no limit stays no limit.
#[test]
fn an_unlimited_run_has_no_remainder() {
    let mut kit = Kit::new();
    let op = kit.accept_op(1, 7, Some(order(1, None, 200)));
    kit.one(op);
    kit.save(fence(1, 7, 1), 0, "a");
    assert_eq!(kit.open_runs(1)[0].left_ms, None);
}
