//! What a turn takes along, what gave way, and what of it is told.

use tidegate_core::{
    AcceptReport, Attempt, Claim, ClaimReport, DropPolicy, LaneName, LookupReport, Outcome,
    Priority, QueueMode, Reply, SettleReport, StoreError, Terminal, Wall,
};
use tidegate_driver::{StoreOp, StoredText};

use crate::kit::*;

/// The end of run 7 of session 1, first attempt.
fn end(outcome: Outcome) -> Terminal {
    terminal(1, 7, 1, outcome)
}

/// A turn of run 7 that took 8 and 9 along.
fn turn() -> Kit {
    let mut kit = Kit::new();
    for n in 7..=9 {
        kit.say(1, n, QueueMode::Collect);
    }
    assert_eq!(kit.claim_along((1, 7, 1), &[8, 9]), CLAIMED);
    kit
}

/// P26, I26, R46: bound behind the run's own, in the order given, and known as taken along.
#[test]
fn a_claim_binds_what_its_turn_takes_along() {
    let mut kit = turn();
    let lines = [
        "1 user whole run-7: message 7",
        "2 user whole run-8: message 8",
        "3 user whole run-9: message 9",
    ];
    assert_eq!(kit.lines(1), lines);
    for row in kit.transcript(1) {
        assert_eq!((row.turn, row.queue), (run(7), Some(QueueMode::Collect)));
    }
    kit.reopen();
    let open: Vec<_> = kit
        .open_runs(1)
        .iter()
        .map(|open| (open.run, open.attempt, open.along))
        .collect();
    let first = (run(7), Attempt(1), None);
    let along = |n| (run(n), Attempt(0), Some(run(7)));
    assert_eq!(open, [first, along(8), along(9)]);
}

/// I26, P23: a turn that goes on after a crash binds nothing twice; a newcomer it takes along.
#[test]
fn a_repeated_claim_binds_each_message_once() {
    let mut kit = turn();
    kit.save(fence(1, 7, 1), 0, "half");
    kit.say(1, 10, QueueMode::Collect);
    kit.reopen();
    assert_eq!(kit.claim_along((1, 7, 2), &[8, 9, 10]), CLAIMED);
    let lines = [
        "1 user whole run-7: message 7",
        "2 user whole run-8: message 8",
        "3 user whole run-9: message 9",
        "4 assistant interrupted run-7: half",
        "5 user whole run-10: message 10",
    ];
    assert_eq!(kit.lines(1), lines);
}

/// Law 10: an order that can't be meant is refused as a whole and hurts no other.
#[test]
fn what_can_not_be_taken_along_refuses_the_claim() {
    let mut kit = turn();
    kit.complete(1, 7, "answer");
    kit.start(2, 20);
    kit.accept(2, 21);
    kit.say(1, 10, QueueMode::Collect);
    kit.say(1, 11, QueueMode::Collect);
    kit.say(1, 12, QueueMode::Collect);
    kit.settle((1, 12, 0), FAILED, StoredText::default());
    let before = kit.lines(1);
    for wrong in [8, 10, 12, 21, 99] {
        let refused = ClaimReport::Refused(StoreError::Io);
        assert_eq!(
            kit.claim_along((1, 10, 1), &[11, wrong]),
            refused,
            "{wrong}"
        );
        assert_eq!(kit.lines(1), before);
    }
    assert_eq!(kit.claim_along((1, 10, 1), &[11]), CLAIMED);
}

/// P26, P03, law 10: one transaction ends the turn and all in it, with one reply.
#[test]
fn what_was_taken_along_ends_with_its_turn() {
    let mut kit = turn();
    let told = Terminal {
        reply: Reply::Text { bytes: 6 },
        ..end(Outcome::Completed)
    };
    let committed = kit.settle_as(fence(1, 7, 1), told, reply("answer"));
    assert_eq!(committed, SettleReport::Committed);
    assert!(kit.open_runs(1).is_empty());
    let text = StoredText {
        turn_key: Some("run-7".into()),
        ..reply("answer")
    };
    for n in [8, 9] {
        let along = told.along(run(n), Wall(100));
        assert_eq!(along.turn, Some(run(7)));
        assert_eq!(kit.lookup(n), (LookupReport::Ended(along), text.clone()));
    }
    let mut again = kit.accept_op(1, 8, None);
    if let StoreOp::Accept { accept, .. } = &mut again {
        accept.turn = chat(QueueMode::Collect);
    }
    let terminal = Some(told.along(run(8), Wall(100)));
    assert_eq!(
        accepted(kit.one(again)),
        (AcceptReport::Duplicate { terminal }, text)
    );
    assert_eq!(kit.lines(1).len(), 4, "one answer for all");
}

/// Law 10: the provider's words are told to all whom they concern.
#[test]
fn a_turn_that_failed_tells_why_to_all() {
    let mut kit = turn();
    let text = StoredText {
        detail: Some("no credit".into()),
        ..StoredText::default()
    };
    let told = Terminal {
        detail: true,
        ..end(FAILED)
    };
    kit.settle_as(fence(1, 7, 1), told, text);
    let (report, text) = kit.lookup(9);
    assert_eq!(report, LookupReport::Ended(told.along(run(9), Wall(100))));
    assert_eq!(text.detail.as_deref(), Some("no credit"));
}

/// R54, P26: a superseded turn ends those in it too, in the superseding transaction.
#[test]
fn a_superseded_turn_ends_what_it_took_along() {
    let mut kit = turn();
    kit.save(fence(1, 7, 1), 0, "half");
    kit.accept(1, 10);
    let ClaimReport::Committed(Claim {
        superseded: Some(told),
    }) = kit.claim(1, 10, 1)
    else {
        panic!("it was open");
    };
    assert_eq!(told.run, run(7));
    let (report, text) = kit.lookup(8);
    assert_eq!(report, LookupReport::Ended(told.along(run(8), Wall(100))));
    assert_eq!(text.reply.as_deref(), Some("half"));
    let open: Vec<_> = kit.open_runs(1).iter().map(|open| open.run).collect();
    assert_eq!(open, [run(10)]);
}

/// P26: a message in another run's turn has no end of its own.
#[test]
fn what_was_taken_along_does_not_end_by_itself() {
    let mut kit = turn();
    let alone = kit.settle((1, 8, 0), FAILED, StoredText::default());
    assert_eq!(alone, SettleReport::Fenced);
    assert_eq!(kit.lookup(8).0, LookupReport::Open);
}

/// Spec 3.3, design 8: text of what gave way reaches the transcript once, marked, first.
#[test]
fn a_dropped_message_reaches_the_transcript_with_the_next_claim() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    for n in 8..=11 {
        kit.say(1, n, QueueMode::Collect);
    }
    kit.drop_waiting(1, 9, DropPolicy::Old);
    kit.drop_waiting(1, 8, DropPolicy::Summarize);
    let gone = Outcome::Dropped {
        by: DropPolicy::Summarize,
    };
    let ended = LookupReport::Ended(terminal(1, 8, 0, gone));
    assert_eq!(kit.lookup(8), (ended, StoredText::default()));
    assert_eq!(kit.lines(1), ["1 user whole run-7: message 7"]);
    kit.reopen();
    kit.complete(1, 7, "answer");
    assert_eq!(kit.claim_along((1, 10, 1), &[11]), CLAIMED);
    let lines = [
        "1 user whole run-7: message 7",
        "2 assistant whole run-7: answer",
        "3 user summarized run-8: message 8",
        "4 user dropped run-9: message 9",
        "5 user whole run-10: message 10",
        "6 user whole run-11: message 11",
    ];
    assert_eq!(kit.lines(1), lines);
    assert!(kit.transcript(1)[2..].iter().all(|row| row.turn == run(10)));
    kit.complete(1, 10, "later");
    kit.start(1, 12);
    assert_eq!(kit.lines(1).len(), 8, "once");
}

/// A message that somebody stopped while it waited was not dropped: it stays in the inbox.
#[test]
fn a_stopped_message_does_not_reach_the_transcript() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.say(1, 8, QueueMode::Collect);
    kit.settle((1, 8, 0), FAILED, StoredText::default());
    kit.complete(1, 7, "answer");
    kit.start(1, 9);
    let lines = kit.lines(1);
    assert!(
        lines.iter().all(|line| !line.contains("message 8")),
        "{lines:?}"
    );
    let kept: String = kit
        .raw()
        .query_row(
            "SELECT message FROM inbox WHERE run_key = 'run-8'",
            [],
            |row| row.get(0),
        )
        .expect("its row is there");
    assert_eq!(kept, "message 8");
}

/// P23, I60: how a message takes part in its session survives a restart.
#[test]
fn a_load_tells_how_each_message_was_accepted() {
    let mut kit = Kit::new();
    let lanes = [
        LaneName::Main,
        LaneName::Subagent,
        LaneName::Cron,
        LaneName::CronNested,
        LaneName::HookDispatch,
        LaneName::Nested,
        LaneName::Background,
    ];
    let priorities = [Priority::Foreground, Priority::Normal, Priority::Background];
    let modes = [
        QueueMode::Steer,
        QueueMode::Followup,
        QueueMode::Collect,
        QueueMode::Interrupt,
    ];
    let mut expected = Vec::new();
    for (n, lane) in (1u8..).zip(lanes) {
        let turn = match n {
            1 => tidegate_core::Turn::Agent,
            n => chat(modes[usize::from(n) % 4]),
        };
        let priority = priorities[usize::from(n) % 3];
        let mut op = kit.accept_op(1, n, None);
        if let StoreOp::Accept { accept, .. } = &mut op {
            (accept.turn, accept.lane, accept.priority) = (turn, lane, priority);
        }
        kit.one(op);
        expected.push((turn, lane, priority));
    }
    kit.reopen();
    let told: Vec<_> = kit
        .open_runs(1)
        .iter()
        .map(|open| (open.turn, open.lane, open.priority))
        .collect();
    assert_eq!(told, expected);
}
