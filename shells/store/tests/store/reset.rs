//! A session begins anew, or sets how it queues; and the pieces of transcripts that people read.

use tidegate_core::{
    AcceptReport, ConfigureReport, DropPolicy, Fence, Generation, LoadReport, LookupReport,
    Outcome, QueueMode, QueueOverride, Reply, ResetReport, RunId, SettleReport, StopReason,
    Terminal, Wall,
};
use tidegate_driver::{HISTORY_MAX_BYTES, HISTORY_MAX_ROWS, StoreOp, StoredText};

use crate::kit::*;

/// How a run of session 1 ends by a reset at 500.
fn reset_end(run_n: u8, attempt: u32, bytes: u64) -> Terminal {
    Terminal {
        ended_at: Wall(500),
        reply: match bytes {
            0 => Reply::Empty,
            bytes => Reply::Text { bytes },
        },
        ..terminal(
            1,
            run_n,
            attempt,
            Outcome::Cancelled {
                by: StopReason::Reset,
                provider_started: attempt > 0,
            },
        )
    }
}

/// A session with a turn at work (7 took 8 along), one that waits (9), and one that gave way.
fn busy() -> Kit {
    let mut kit = Kit::new();
    kit.start(1, 1);
    kit.complete(1, 1, "before");
    for n in 7..=10 {
        kit.say(1, n, QueueMode::Collect);
    }
    let epoch = kit.epoch();
    let claim = order_along(1, 200, &[8]);
    let fence = fence(1, 7, 1);
    kit.one(StoreOp::Claim {
        fence,
        epoch,
        claim,
        outputs: Vec::new(),
    });
    kit.save(fence, 0, "half");
    kit.drop_waiting(1, 10, DropPolicy::Summarize);
    kit
}

/// P18, I12: one transaction ends all that is open, in order, and keeps what had arrived.
#[test]
fn a_reset_ends_every_open_run_in_order() {
    let mut kit = busy();
    let turn = reset_end(7, 1, 4);
    let along = turn.along(run(8), Wall(100));
    let waited = reset_end(9, 0, 0);
    let report = kit.reset(1, 1);
    assert_eq!(
        report,
        ResetReport::Committed {
            generation: Generation(2),
            ended: vec![turn, along, waited],
        }
    );
    assert_eq!(kit.lookup(7), (LookupReport::Ended(turn), reply("half")));
    assert_eq!(kit.lookup(8).1.reply.as_deref(), Some("half"));
    assert_eq!(
        kit.lookup(9),
        (LookupReport::Ended(waited), StoredText::default())
    );
    assert!(kit.open_runs(1).is_empty());
    assert!(kit.open_sessions().is_empty());
}

/// P18: the new generation begins empty and without a writer; the old one keeps its rows.
#[test]
fn a_reset_begins_an_empty_generation_and_keeps_the_old_one() {
    let mut kit = busy();
    kit.reset(1, 1);
    assert!(kit.transcript(1).is_empty());
    let row = &kit.sessions(9)[0];
    assert_eq!(row.generation, 2);
    assert_eq!((&row.last_run_key, row.last_terminal), (&None, None));
    let mut old = kit.raw();
    let old = old
        .transaction()
        .expect("readable")
        .prepare("SELECT mark || ' ' || text FROM transcript WHERE generation = 1 ORDER BY seq")
        .expect("a table")
        .query_map([], |row| row.get(0))
        .expect("rows")
        .collect::<Result<Vec<String>, _>>()
        .expect("texts");
    assert_eq!(
        old,
        [
            "whole message 1",
            "whole before",
            "whole message 7",
            "whole message 8",
            "summarized message 10",
            "partial half",
        ]
    );
}

/// P18, I12: whatever belonged to the old generation writes nothing any more.
#[test]
fn nothing_of_the_old_generation_is_written_after_a_reset() {
    let mut kit = busy();
    kit.reset(1, 1);
    let late = fence(1, 7, 1);
    assert_eq!(kit.save(late, 4, "late"), None);
    assert_eq!(kit.complete(1, 7, "late"), SettleReport::Fenced);
    assert_eq!(
        kit.claim(1, 9, 1),
        tidegate_core::ClaimReport::Fenced,
        "ended"
    );
    assert_eq!(kit.accept(1, 20), AcceptReport::NotOwner, "old generation");
    assert_eq!(kit.reset(1, 1), ResetReport::NotOwner, "old generation");
    let queue = QueueOverride::default();
    assert_eq!(kit.configure(1, 1, queue), ConfigureReport::NotOwner);
    assert!(kit.transcript(1).is_empty());

    let mut op = kit.accept_op(1, 20, Some(order(1, None, 600)));
    if let StoreOp::Accept { accept, .. } = &mut op {
        accept.generation = Generation(2);
    }
    assert_eq!(accepted(kit.one(op)).0, STARTED);
    let fence = Fence {
        generation: Generation(2),
        ..fence(1, 20, 1)
    };
    let end = terminal(1, 20, 1, Outcome::Completed);
    let committed = kit.settle_as(fence, end, reply("new"));
    assert_eq!(committed, SettleReport::Committed);
    assert_eq!(
        kit.lines(1),
        [
            "1 user whole run-20: message 20",
            "2 assistant whole run-20: new"
        ]
    );
}

/// P18: what gave way before the reset is not told to the new generation.
#[test]
fn what_was_dropped_before_a_reset_stays_with_the_old_generation() {
    let mut kit = busy();
    kit.reset(1, 1);
    let mut op = kit.accept_op(1, 20, Some(order(1, None, 600)));
    if let StoreOp::Accept { accept, .. } = &mut op {
        accept.generation = Generation(2);
    }
    kit.one(op);
    assert_eq!(kit.lines(1), ["1 user whole run-20: message 20"]);
}

/// Design 3: a session without a row is made by its reset.
#[test]
fn a_reset_of_an_unknown_session_makes_it() {
    let mut kit = Kit::new();
    let report = ResetReport::Committed {
        generation: Generation(2),
        ended: vec![],
    };
    assert_eq!(kit.reset(1, 1), report);
    let row = &kit.sessions(9)[0];
    assert_eq!((row.session_key.as_str(), row.generation), ("session-1", 2));
    assert_eq!(kit.reset(1, 7), ResetReport::NotOwner);
    assert!(matches!(
        kit.load(1).0,
        LoadReport::Loaded {
            generation: Generation(2),
            ..
        }
    ));
}

/// P07, law 3: neither passes under a lease that passed.
#[test]
fn a_passed_lease_changes_no_session() {
    let mut kit = busy();
    let other = tidegate_store::SqliteStore::open(kit.dir()).expect("a second opener");
    assert_eq!(kit.reset(1, 1), ResetReport::NotOwner);
    let queue = QueueOverride {
        cap: Some(3),
        ..QueueOverride::default()
    };
    assert_eq!(kit.configure(1, 1, queue), ConfigureReport::NotOwner);
    drop(other);
    kit.reopen();
    assert_eq!(kit.open_runs(1).len(), 3);
}

/// Spec 3: what a session sets is durable; clearing it goes back to nothing.
#[test]
fn a_session_keeps_how_it_queues() {
    let mut kit = Kit::new();
    let own = QueueOverride {
        mode: Some(QueueMode::Interrupt),
        debounce_ms: Some(0),
        cap: Some(u32::MAX),
        drop: Some(DropPolicy::New),
    };
    let told = |kit: &mut Kit| match kit.load(1).0 {
        LoadReport::Loaded { queue, .. } => queue,
        other => panic!("not loaded: {other:?}"),
    };
    assert_eq!(kit.configure(1, 1, own), ConfigureReport::Committed);
    kit.reopen();
    assert_eq!(told(&mut kit), own);
    let row = &kit.sessions(9)[0];
    assert_eq!((row.session_key.as_str(), row.open_runs), ("session-1", 0));
    kit.reset(1, 1);
    assert_eq!(told(&mut kit), own, "a reset does not change it");
    let cleared = kit.configure(1, 2, QueueOverride::default());
    assert_eq!(cleared, ConfigureReport::Committed);
    assert_eq!(told(&mut kit), QueueOverride::default());
}

/// R20: the newest rows or those after a number, with what is not in the transcript yet.
#[test]
fn a_history_is_the_newest_rows_or_those_after_a_number() {
    let mut kit = Kit::new();
    let empty = kit.history(1, None, 10);
    assert_eq!((empty.generation, empty.last_seq), (1, 0));
    for n in 1..=3 {
        kit.start(1, n);
        kit.complete(1, n, "answer");
    }
    kit.start(1, 4);
    kit.accept(1, 5);
    kit.accept(1, 6);
    kit.settle((1, 6, 0), FAILED, StoredText::default());
    let seqs = |history: &tidegate_driver::History| -> Vec<u64> {
        history.rows.iter().map(|row| row.seq).collect()
    };
    let newest = kit.history(1, None, 3);
    assert_eq!(seqs(&newest), [5, 6, 7]);
    assert_eq!((newest.last_seq, newest.pending_total), (7, 1));
    let pending: Vec<_> = newest
        .pending
        .iter()
        .map(|input| (input.run_key.as_str(), input.text.as_str()))
        .collect();
    assert_eq!(pending, [("run-5", "message 5")]);
    assert_eq!(seqs(&kit.history(1, Some(2), 3)), [3, 4, 5]);
    assert!(seqs(&kit.history(1, Some(7), 3)).is_empty());
    assert!(seqs(&kit.history(1, Some(u64::MAX), 3)).is_empty());
    kit.reset(1, 1);
    let after = kit.history(1, None, 3);
    assert_eq!((after.generation, after.last_seq), (2, 0));
    assert_eq!((after.pending.len(), after.pending_total), (0, 0));
}

/// Law 9, law 10: what waits is shown within bounds and counted whole.
#[test]
fn a_history_counts_what_waits_beyond_what_it_shows() {
    let mut kit = Kit::new();
    let most = HISTORY_MAX_ROWS as usize;
    let waiting = (0..most as u128 + 2).map(|n| {
        let mut op = kit.accept_op(1, 7, None);
        if let StoreOp::Accept { accept, names, .. } = &mut op {
            accept.run = RunId::from_u128(n);
            names.run_key = format!("waiting-{n}");
        }
        op
    });
    kit.run(waiting.collect());
    let told = kit.history(1, None, 3);
    assert_eq!(told.pending.len(), most);
    assert_eq!(told.pending_total, u64::from(HISTORY_MAX_ROWS) + 2);

    let half = "x".repeat(usize::try_from(HISTORY_MAX_BYTES).expect("it fits") / 2);
    for n in 1..=3 {
        let mut op = kit.accept_op(2, n, None);
        if let StoreOp::Accept { message, .. } = &mut op {
            message.clone_from(&half);
        }
        kit.one(op);
    }
    kit.start(2, 4);
    kit.accept(3, 5);
    let told = kit.history(2, None, 3);
    assert_eq!((told.pending.len(), told.pending_total), (2, 3));
}

/// Law 9: a piece is bounded in bytes; what does not fit can be asked for next.
#[test]
fn a_history_is_bounded_and_always_gets_on() {
    let mut kit = Kit::new();
    let half = "x".repeat(usize::try_from(HISTORY_MAX_BYTES).expect("it fits") / 2);
    kit.start(1, 1);
    kit.complete(1, 1, &half);
    kit.start(1, 2);
    kit.complete(1, 2, &format!("{half}{half}y"));
    kit.start(1, 3);
    kit.complete(1, 3, &half);
    let seqs = |kit: &mut Kit, after| -> Vec<u64> {
        let history = kit.history(1, after, u32::MAX);
        history.rows.iter().map(|row| row.seq).collect()
    };
    assert_eq!(seqs(&mut kit, None), [5, 6]);
    assert_eq!(seqs(&mut kit, Some(0)), [1, 2, 3]);
    assert_eq!(
        seqs(&mut kit, Some(3)),
        [4],
        "one that is too large comes alone"
    );
    assert_eq!(seqs(&mut kit, Some(4)), [5, 6]);
}
