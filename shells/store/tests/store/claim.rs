//! Claiming: who writes from now on, and what that ends.

use tidegate_core::{
    AcceptReport, Attempt, Claim, ClaimOrder, ClaimReport, Epoch, Fence, Generation, LookupReport,
    Outcome, QueueMode, Reply, SettleReport, Terminal, Wall,
};
use tidegate_driver::{StoreOp, StoredText};

use crate::kit::*;

/// I26: over attempts and restarts.
#[test]
fn a_message_reaches_the_transcript_exactly_once() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    for attempt in 1..=3 {
        assert_eq!(kit.claim(1, 7, attempt), CLAIMED);
        assert_eq!(kit.lines(1), ["1 user whole run-7: message 7"]);
        kit.reopen();
    }
    let rows = kit.transcript(1);
    assert_eq!(rows[0].at, Wall(300));
    let left: Option<String> = kit
        .raw()
        .query_row("SELECT message FROM inbox", [], |row| row.get(0))
        .expect("its row is there");
    assert_eq!(left, None, "one owner per fact");
}

/// R52, P07: who is not what its fence says does not claim.
#[test]
fn a_claim_whose_fence_does_not_hold_changes_nothing() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.accept(1, 8);
    kit.accept(2, 9);
    let wrong = [
        fence(1, 7, 1),
        fence(1, 6, 1),
        fence(2, 8, 1),
        fence(3, 8, 1),
        fence(1, 8, 0),
        Fence {
            generation: Generation(2),
            ..fence(1, 8, 1)
        },
    ];
    for fence in wrong {
        assert_eq!(kit.claim_at(fence, 300), ClaimReport::Fenced, "{fence:?}");
    }
    let epoch = kit.epoch();
    let claim = order(2, None, 300);
    let differs = StoreOp::Claim {
        fence: fence(1, 8, 1),
        epoch,
        claim,
        outputs: Vec::new(),
    };
    assert_eq!(claimed(&kit.one(differs)), ClaimReport::Fenced);
    assert_eq!(kit.lines(1), ["1 user whole run-7: message 7"]);
    assert_eq!(kit.open_runs(1)[0].attempt, Attempt(1));
    assert_eq!(kit.open_runs(1)[1].attempt, Attempt(0));
}

/// B-121, I21: of two attempts the later is the writer, whatever order they come in.
#[test]
fn an_earlier_attempt_does_not_claim_after_a_later_one() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    assert_eq!(kit.claim(1, 7, 3), CLAIMED);
    assert_eq!(kit.claim(1, 7, 2), ClaimReport::Fenced);
    assert_eq!(kit.claim(1, 7, 3), ClaimReport::Fenced);
    assert_eq!(
        kit.settle((1, 7, 3), Outcome::Completed, reply("a")),
        SettleReport::Committed
    );
}

/// P03: an end is an end.
#[test]
fn an_ended_run_does_not_claim() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.complete(1, 7, "done");
    assert_eq!(kit.claim(1, 7, 2), ClaimReport::Fenced);
    kit.accept(1, 8);
    kit.settle((1, 8, 0), FAILED, StoredText::default());
    assert_eq!(kit.claim(1, 8, 1), ClaimReport::Fenced);
}

fn superseded_by_8() -> Terminal {
    Terminal {
        run: run(7),
        session: session(1),
        outcome: Outcome::Superseded,
        accepted_at: Wall(100),
        started_at: Some(Wall(200)),
        ended_at: Wall(300),
        attempt: Attempt(1),
        reply: Reply::Text { bytes: 9 },
        detail: false,
        turn: None,
    }
}

/// R54, I21, P40: the claim ends the previous writer, tells its receipt and keeps its text.
#[test]
fn a_claim_supersedes_the_writer_that_has_not_ended() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "half a");
    kit.save(fence(1, 7, 1), 6, " re");
    kit.accept(1, 8);
    let end = superseded_by_8();
    let report = kit.claim(1, 8, 1);
    assert_eq!(
        report,
        ClaimReport::Committed(Claim {
            superseded: Some(end)
        })
    );
    assert_eq!(
        kit.lookup(7),
        (LookupReport::Ended(end), reply("half a re"))
    );
    let lines = [
        "1 user whole run-7: message 7",
        "2 assistant partial run-7: half a re",
        "3 user whole run-8: message 8",
    ];
    assert_eq!(kit.lines(1), lines);
    assert_eq!(kit.open_runs(1).len(), 1);
}

/// R54, P07, I20, I21, I22
#[test]
fn a_superseded_writer_cannot_commit() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.start(1, 8);
    kit.save(fence(1, 7, 1), 0, "late");
    assert_eq!(kit.complete(1, 7, "late"), SettleReport::Fenced);
    assert_eq!(kit.claim(1, 7, 2), ClaimReport::Fenced);
    let end = Terminal {
        reply: Reply::Empty,
        ended_at: Wall(200),
        ..superseded_by_8()
    };
    assert_eq!(
        kit.lookup(7),
        (LookupReport::Ended(end), StoredText::default())
    );
    assert_eq!(
        kit.lines(1),
        [
            "1 user whole run-7: message 7",
            "2 user whole run-8: message 8"
        ]
    );
    assert_eq!(kit.complete(1, 8, "mine"), SettleReport::Committed);
}

/// R54: an accept that claims supersedes like any claim.
#[test]
fn an_accept_with_a_claim_supersedes_too() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    let end = Terminal {
        reply: Reply::Empty,
        ended_at: Wall(200),
        ..superseded_by_8()
    };
    let claim = Some(Claim {
        superseded: Some(end),
    });
    assert_eq!(kit.start(1, 8), AcceptReport::Committed { claim });
}

/// P40: nobody is superseded that has ended, or writes elsewhere, or waits.
#[test]
fn a_claim_supersedes_nobody_but_an_open_writer_of_its_session() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.complete(1, 7, "done");
    kit.accept(1, 6);
    kit.start(2, 9);
    kit.accept(1, 8);
    assert_eq!(kit.claim(1, 8, 1), CLAIMED);
    assert_eq!(kit.lookup(6).0, LookupReport::Open);
    assert_eq!(kit.lookup(9).0, LookupReport::Open);
    assert_eq!(
        kit.lookup(7).0,
        LookupReport::Ended(terminal(1, 7, 1, Outcome::Completed))
    );
}

/// I4: a wall clock that went back does not end a run before it began.
#[test]
fn a_superseded_run_ends_no_earlier_than_it_began() {
    let mut kit = Kit::new();
    let op = kit.accept_op(1, 7, Some(order(1, None, 50)));
    kit.one(op);
    kit.accept(1, 8);
    let ClaimReport::Committed(claim) = kit.claim_at(fence(1, 8, 1), 20) else {
        panic!("the fence holds");
    };
    let end = claim.superseded.expect("it was open");
    assert_eq!((end.started_at, end.ended_at), (Some(Wall(100)), Wall(100)));
}

/// Design 5, P33: what a crash left of an attempt is kept, marked, and never an answer.
#[test]
fn interrupted_text_is_never_an_answer() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "first");
    kit.reopen();
    assert_eq!(kit.claim(1, 7, 2), CLAIMED);
    kit.save(fence(1, 7, 2), 0, "second");
    kit.reopen();
    assert_eq!(kit.claim(1, 7, 3), CLAIMED);
    let mut lines = vec![
        "1 user whole run-7: message 7",
        "2 assistant interrupted run-7: first",
        "3 assistant interrupted run-7: second",
    ];
    assert_eq!(kit.lines(1), lines);
    let end = terminal(1, 7, 3, Outcome::Completed);
    kit.settle_as(fence(1, 7, 3), end, StoredText::default());
    assert_eq!(
        kit.lookup(7),
        (LookupReport::Ended(end), StoredText::default())
    );
    kit.accept(1, 8);
    kit.claim(1, 8, 1);
    lines.push("4 user whole run-8: message 8");
    assert_eq!(kit.lines(1), lines);
}

/// P16, B-058, I26: within one life the next attempt begins anew. What the failed call had shown
/// becomes a row once, its messages stay where they are, and the budget goes on from what is left.
#[test]
fn a_call_that_is_made_again_begins_with_a_claim_of_its_own() {
    let mut kit = Kit::new();
    for n in 7..=8 {
        kit.say(1, n, QueueMode::Collect);
    }
    assert_eq!(kit.claim_along((1, 7, 1), &[8]), CLAIMED);
    kit.save(fence(1, 7, 1), 0, "half an ");
    kit.save(fence(1, 7, 1), 8, "answer");
    let epoch = kit.epoch();
    let mut again = |attempt, left_ms, at| {
        let claim = ClaimOrder {
            left_ms: Some(left_ms),
            ..order_along(attempt, at, &[8])
        };
        let fence = fence(1, 7, attempt);
        let done = kit.one(StoreOp::Claim {
            fence,
            epoch,
            claim,
            outputs: Vec::new(),
        });
        assert_eq!(claimed(&done), CLAIMED);
        let run = kit.open_runs(1).remove(0);
        assert_eq!(
            (run.attempt, run.left_ms),
            (Attempt(attempt), Some(left_ms))
        );
        kit.lines(1)
    };
    let mut lines = vec![
        "1 user whole run-7: message 7",
        "2 user whole run-8: message 8",
        "3 assistant interrupted run-7: half an answer",
    ];
    assert_eq!(again(2, 4_000, 900), lines);
    assert_eq!(
        again(3, 2_500, 2_400),
        lines,
        "the call before showed nothing"
    );
    assert_eq!(kit.save(fence(1, 7, 2), 0, "late"), None);
    assert_eq!(kit.save(fence(1, 7, 3), 0, "whole"), Some(5));
    assert_eq!(
        kit.settle((1, 7, 3), Outcome::Completed, reply("whole")),
        SettleReport::Committed
    );
    lines.push("4 assistant whole run-7: whole");
    assert_eq!(kit.lines(1), lines);
    assert_eq!(kit.lookup(8).1.reply.as_deref(), Some("whole"));
}

/// P07, law 3: another opener has the lease; the earlier one writes nothing more.
#[test]
fn nothing_is_written_under_an_epoch_that_passed() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    let passed = kit.epoch();
    let mut other = tidegate_store::SqliteStore::open(kit.dir()).expect("a second opener");
    assert_eq!(other.epoch(), Epoch(passed.0 + 1));
    assert_eq!(kit.start(1, 8), AcceptReport::NotOwner);
    assert_eq!(kit.accept(1, 7), AcceptReport::NotOwner);
    assert_eq!(kit.claim(1, 7, 2), ClaimReport::NotOwner);
    assert_eq!(kit.complete(1, 7, "late"), SettleReport::NotOwner);
    kit.save(fence(1, 7, 1), 0, "late");
    assert_eq!(kit.load(1).0, tidegate_core::LoadReport::NotOwner);
    let late = vec![StoreOp::Claim {
        fence: fence(1, 7, 2),
        epoch: passed,
        claim: order(2, None, 9),
        outputs: Vec::new(),
    }];
    let done = tidegate_driver::Store::run(&mut other, late);
    assert_eq!(
        claimed(&done[0]),
        ClaimReport::NotOwner,
        "an order of the earlier life"
    );
    kit.reopen();
    assert_eq!(kit.lines(1), ["1 user whole run-7: message 7"]);
    assert_eq!(kit.open_runs(1)[0].left_ms, Some(10_000));
}
