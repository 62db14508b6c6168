//! Batches as commits, and what a crash at any point leaves of them.

use std::path::Path;

use tidegate_core::{AcceptReport, Attempt, CallEnd, LookupReport, Outcome, SettleReport};
use tidegate_driver::{Store, StoreDone, StoreOp, StoredText};
use tidegate_store::{SqliteStore, StateDir};

use crate::kit::*;

const LOG: &str = "tidegate.sqlite3-wal";
const LOG_HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + 4_096;

/// Commits in the log: frames that name the size of the database (SQLite file format, 4.1).
fn commits(log: &Path) -> usize {
    let bytes = std::fs::read(log).expect("an open database has a log");
    let frames = bytes[LOG_HEADER_BYTES..].chunks_exact(FRAME_BYTES);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

/// P42, group commit: however many orders a batch has, it is one commit and so one sync.
#[test]
fn a_batch_is_one_commit() {
    let mut kit = Kit::new();
    let log = kit.file(LOG);
    let before = commits(&log);
    let mut batch: Vec<_> = (0..20).map(|n| kit.accept_op(n % 3, n, None)).collect();
    let epoch = kit.epoch();
    for attempt in [1, 2] {
        let claim = order(attempt, None, 300);
        batch.push(StoreOp::Claim {
            fence: fence(0, 0, attempt),
            epoch,
            claim,
            outputs: Vec::new(),
        });
        batch.push(kit.save_op(fence(0, 0, attempt), 0, "half", 400));
    }
    batch.push(StoreOp::OpenSessions);
    kit.run(batch);
    assert_eq!(commits(&log), before + 1);
    kit.run(vec![StoreOp::OpenSessions, StoreOp::Lookup { run: run(1) }]);
    assert_eq!(commits(&log), before + 1, "a batch of reads writes nothing");
}

/// Order in a batch: each operation sees what those before it did.
#[test]
fn a_batch_is_carried_out_in_order() {
    let mut kit = Kit::new();
    let epoch = kit.epoch();
    let end = terminal(1, 7, 1, Outcome::Completed);
    let batch = vec![
        StoreOp::Lookup { run: run(7) },
        kit.accept_op(1, 7, None),
        StoreOp::Claim {
            fence: fence(1, 7, 1),
            epoch,
            claim: order(1, None, 300),
            outputs: Vec::new(),
        },
        kit.save_op(fence(1, 7, 1), 0, "an", 400),
        StoreOp::Settle {
            fence: fence(1, 7, 1),
            epoch,
            terminal: end,
            text: reply("answer"),
            results: Vec::new(),
            outputs: Vec::new(),
        },
        StoreOp::Settle {
            fence: fence(1, 7, 1),
            epoch,
            terminal: end,
            text: reply("answer"),
            results: Vec::new(),
            outputs: Vec::new(),
        },
        StoreOp::Lookup { run: run(7) },
    ];
    let done = kit.run(batch);
    assert!(matches!(
        done[0],
        StoreDone::LookedUp {
            report: LookupReport::Unknown,
            ..
        }
    ));
    assert_eq!(claimed(&done[2]), CLAIMED);
    assert_eq!(settled(&done[4]), SettleReport::Committed);
    assert_eq!(settled(&done[5]), SettleReport::Fenced);
    assert!(
        matches!(done[6], StoreDone::LookedUp { report: LookupReport::Ended(e), .. } if e == end)
    );
}

/// P42, P23: what was reported is there after a crash, and the work goes on.
#[test]
fn a_crash_keeps_what_was_reported_and_the_work_goes_on() {
    let mut kit = Kit::new();
    kit.start(1, 1);
    kit.complete(1, 1, "answer");
    kit.start(1, 7);
    kit.accept(1, 8);
    kit.save(fence(1, 7, 1), 0, "half");
    let mut after = kit.crashed();
    let open = after.open_runs(1);
    let tries: Vec<_> = open.iter().map(|open| (open.run, open.attempt)).collect();
    assert_eq!(tries, [(run(7), Attempt(1)), (run(8), Attempt(0))]);
    assert_eq!(open[0].left_ms, Some(9_800));
    assert_eq!(
        after.start(1, 7),
        AcceptReport::Duplicate { terminal: None }
    );
    assert_eq!(after.claim(1, 7, 2), CLAIMED);
    let end = after.settle((1, 7, 2), Outcome::Completed, reply("whole"));
    assert_eq!(end, SettleReport::Committed);
    assert_eq!(after.claim(1, 8, 1), CLAIMED);
    let lines = [
        "1 user whole run-1: message 1",
        "2 assistant whole run-1: answer",
        "3 user whole run-7: message 7",
        "4 assistant interrupted run-7: half",
        "5 assistant whole run-7: whole",
        "6 user whole run-8: message 8",
    ];
    assert_eq!(after.lines(1), lines);
}

/// Five batches, each of three runs accepted and one of them begun and ended.
fn five_batches(kit: &mut Kit) {
    for batch in 0..5u8 {
        let epoch = kit.epoch();
        let first = batch * 3;
        let mut ops: Vec<_> = (first..first + 3)
            .map(|n| kit.accept_op(1, n, None))
            .collect();
        let (fence, claim) = (fence(1, first, 1), order(1, None, 300));
        ops.push(StoreOp::Claim {
            fence,
            epoch,
            claim,
            outputs: Vec::new(),
        });
        let terminal = terminal(1, first, 1, Outcome::Completed);
        ops.push(StoreOp::Settle {
            fence,
            epoch,
            terminal,
            text: reply("answer"),
            results: Vec::new(),
            outputs: Vec::new(),
        });
        kit.run(ops);
    }
}

/// The number of whole batches in a copy of the database whose log ends at `cut`; fails
/// where a batch is there in part.
fn batches_after_cut(kit: &Kit, cut: usize) -> usize {
    let temp = tempfile::tempdir().expect("a test directory");
    let log = std::fs::read(kit.file(LOG)).expect("an open database has a log");
    std::fs::write(temp.path().join(LOG), &log[..cut]).expect("a test directory is writable");
    let database = temp.path().join("tidegate.sqlite3");
    std::fs::copy(kit.file("tidegate.sqlite3"), database).expect("a test directory is writable");
    let mut after = Kit::on(temp);
    let open = after.open_runs(1).len();
    let rows = after.transcript(1).len();
    assert_eq!(open % 2, 0, "cut at {cut}: a batch in part");
    assert_eq!(rows, open, "cut at {cut}: a batch in part");
    let batches = open / 2;
    for n in 0..15 {
        let expected = match (usize::from(n) / 3 < batches, n % 3) {
            (false, _) => LookupReport::Unknown,
            (true, 0) => LookupReport::Ended(terminal(1, n, 1, Outcome::Completed)),
            (true, _) => LookupReport::Open,
        };
        assert_eq!(after.lookup(n).0, expected, "cut at {cut}: run {n}");
    }
    batches
}

/// P05, P42: wherever a crash cuts the log, what is left is a row of whole batches.
#[test]
fn a_torn_log_is_a_prefix_of_whole_batches() {
    let mut kit = Kit::new();
    five_batches(&mut kit);
    let bytes = std::fs::read(kit.file(LOG))
        .expect("an open database has a log")
        .len();
    let frames = (bytes - LOG_HEADER_BYTES) / FRAME_BYTES;
    let mut last = 0;
    let mut seen = Vec::new();
    for frame in 0..=frames {
        for torn in [0, 30, FRAME_BYTES / 2] {
            let cut = (LOG_HEADER_BYTES + frame * FRAME_BYTES + torn).min(bytes);
            if commits_before(&kit, cut) < FIRST_COMMITS {
                continue;
            }
            let batches = batches_after_cut(&kit, cut);
            assert!(batches >= last, "cut at {cut}: a longer log holds less");
            last = batches;
            seen.push(batches);
        }
    }
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
}

/// Commits that make the database itself: the schema and the lease.
const FIRST_COMMITS: usize = 2;

fn commits_before(kit: &Kit, cut: usize) -> usize {
    let bytes = std::fs::read(kit.file(LOG)).expect("an open database has a log");
    let frames = bytes[LOG_HEADER_BYTES..cut].chunks_exact(FRAME_BYTES);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

/// P23: a crash while the database is first made leaves one that opens.
#[test]
fn a_crash_at_the_first_start_leaves_a_directory_that_opens() {
    let kit = Kit::new();
    let log = std::fs::read(kit.file(LOG)).expect("an open database has a log");
    for cut in (0..log.len()).step_by(1_500) {
        let temp = tempfile::tempdir().expect("a test directory");
        std::fs::write(temp.path().join(LOG), &log[..cut]).expect("writable");
        let database = temp.path().join("tidegate.sqlite3");
        std::fs::copy(kit.file("tidegate.sqlite3"), database).expect("writable");
        let dir = StateDir::acquire(temp.path()).expect("free");
        let mut store = SqliteStore::open(&dir).expect("an unfinished database opens");
        let done = store.run(vec![StoreOp::OpenSessions]);
        assert!(matches!(&done[0], StoreDone::OpenSessions(Ok(list)) if list.is_empty()));
    }
}

/// Law 10: a receipt that can't be read is refused, not guessed at, and hurts no other.
#[test]
fn an_unreadable_receipt_refuses_its_own_run_alone() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.settle((1, 7, 1), FAILED, StoredText::default());
    kit.raw()
        .execute("UPDATE receipts SET encoding = 9", [])
        .expect("a table");
    let batch = vec![
        StoreOp::Lookup { run: run(7) },
        kit.accept_op(1, 8, None),
        kit.accept_op(1, 7, None),
    ];
    let done = kit.run(batch);
    let io = tidegate_core::StoreError::Io;
    assert!(
        matches!(done[0], StoreDone::LookedUp { report: LookupReport::Refused(e), .. } if e == io)
    );
    assert!(matches!(&done[1], StoreDone::Accepted { report, .. } if *report == ACCEPTED));
    let refused = AcceptReport::Refused(io);
    assert!(matches!(&done[2], StoreDone::Accepted { report, .. } if *report == refused));
}

/// What stands in the transcript after each step of [`a_round_of_tools`].
const ROUND: [&str; 8] = [
    "1 user whole run-7: message 7",
    "2 assistant calls run-7: asks",
    "3 tool c0 Ok run-7: out 0",
    "4 tool c1 Denied run-7: out 1",
    "5 assistant calls run-7: asks",
    "6 tool c0 Cancelled run-7: out 0",
    "7 tool c1 Skipped run-7: out 1",
    "8 assistant partial run-7: half",
];

/// Two answers that ask for two calls each, the second of which is stopped.
fn a_round_of_tools(kit: &mut Kit) {
    kit.start(1, 7);
    kit.launch(fence(1, 7, 1), 2, &[0], &[1]);
    kit.claim_with(fence(1, 7, 2), &[(0, CallEnd::Ok), (1, CallEnd::Denied)]);
    kit.launch(fence(1, 7, 2), 2, &[0], &[1]);
    let ends = [(0, CallEnd::Cancelled), (1, CallEnd::Skipped)];
    let end = kit.settle_with((1, 7, 2), FAILED, reply("half"), &ends);
    assert_eq!(end, SettleReport::Committed);
}

/// P08, P42, I24, I34: wherever a power loss cuts a round of tools, an answer is there with its
/// calls or not at all, and results are there all together; and what goes on from there ends
/// each call once.
#[test]
fn a_torn_round_of_tools_is_a_prefix_of_whole_steps() {
    let mut kit = Kit::new();
    a_round_of_tools(&mut kit);
    assert_eq!(kit.lines(1), ROUND);
    let log = std::fs::read(kit.file(LOG)).expect("an open database has a log");
    let mut seen = Vec::new();
    for frame in 0..=(log.len() - LOG_HEADER_BYTES) / FRAME_BYTES {
        let cut = (LOG_HEADER_BYTES + frame * FRAME_BYTES + 40).min(log.len());
        if commits_before(&kit, cut) < FIRST_COMMITS {
            continue;
        }
        let temp = tempfile::tempdir().expect("a test directory");
        std::fs::write(temp.path().join(LOG), &log[..cut]).expect("writable");
        let database = temp.path().join("tidegate.sqlite3");
        std::fs::copy(kit.file("tidegate.sqlite3"), database).expect("writable");
        let mut after = Kit::on(temp);
        let rows = after.lines(1).len();
        assert_eq!(after.lines(1), ROUND[..rows], "cut at {cut}");
        seen.push(rows);
        if let Some(open) = after.open_runs(1).first() {
            let next = open.attempt.0 + 1;
            assert_eq!(after.claim(1, 7, next), CLAIMED, "cut at {cut}");
            let tools = after
                .transcript(1)
                .iter()
                .filter(|row| row.answers.is_some())
                .count();
            let asked: usize = after.transcript(1).iter().map(|row| row.calls.len()).sum();
            assert_eq!(tools, asked, "cut at {cut}: each call has one result");
        }
    }
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 4, 5, 8]);
}
