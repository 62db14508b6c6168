//! Reading: sessions, runs and transcripts as people and the core see them.

use tidegate_core::{Generation, LoadReport, LookupReport, Outcome, QueueOverride, Wall};
use tidegate_driver::{Role, RowMark, StoreDone, StoreOp, StoredText, TranscriptRow};

use crate::kit::*;

/// Design 3: a session without a row is at its first generation.
#[test]
fn an_unknown_session_loads_empty_at_generation_1() {
    let mut kit = Kit::new();
    let epoch = kit.epoch();
    let (report, names) = kit.load(1);
    assert_eq!(
        report,
        LoadReport::Loaded {
            epoch,
            generation: Generation(1),
            queue: QueueOverride::default(),
            open: vec![]
        }
    );
    assert!(names.is_empty());
    assert!(kit.transcript(1).is_empty());
    assert!(kit.sessions(9).is_empty(), "a load makes no session");
}

/// P10: what is known of a run, and by which names.
#[test]
fn a_lookup_tells_unknown_open_and_ended_apart() {
    let mut kit = Kit::new();
    let look = |kit: &mut Kit| match kit.one(StoreOp::Lookup { run: run(7) }) {
        StoreDone::LookedUp {
            report,
            names,
            text,
        } => (report, names, text),
        other => panic!("a lookup gives no {other:?}"),
    };
    assert_eq!(
        look(&mut kit),
        (LookupReport::Unknown, None, StoredText::default())
    );
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "half");
    let open = (LookupReport::Open, Some(names(1, 7)), StoredText::default());
    assert_eq!(look(&mut kit), open);
    kit.complete(1, 7, "whole");
    let end = LookupReport::Ended(terminal(1, 7, 1, Outcome::Completed));
    assert_eq!(look(&mut kit), (end, Some(names(1, 7)), reply("whole")));
}

/// P05, P23: a restart finds every session with unfinished work, and no other.
#[test]
fn sessions_with_open_runs_come_by_their_oldest_one() {
    let mut kit = Kit::new();
    kit.start(3, 1);
    kit.accept(2, 2);
    kit.accept(1, 3);
    kit.accept(3, 4);
    kit.accept(2, 5);
    assert_eq!(kit.open_sessions(), [3, 2, 1].map(session));
    kit.complete(3, 1, "done");
    assert_eq!(kit.open_sessions(), [2, 1, 3].map(session));
    kit.settle((1, 3, 0), FAILED, StoredText::default());
    kit.reopen();
    assert_eq!(kit.open_sessions(), [2, 3].map(session));
}

fn accept_at(kit: &mut Kit, session_n: u8, run_n: u8, at: u64) {
    let op = match kit.accept_op(session_n, run_n, None) {
        StoreOp::Accept {
            mut accept,
            names,
            message,
        } => {
            accept.at = Wall(at);
            StoreOp::Accept {
                accept,
                names,
                message,
            }
        }
        other => other,
    };
    kit.one(op);
}

/// Law 9: a list has the end that was asked for.
#[test]
fn sessions_come_last_written_first_and_no_more_than_asked() {
    let mut kit = Kit::new();
    accept_at(&mut kit, 1, 1, 100);
    accept_at(&mut kit, 2, 2, 150);
    accept_at(&mut kit, 3, 3, 150);
    let keys = |kit: &mut Kit, limit| -> Vec<String> {
        kit.sessions(limit)
            .into_iter()
            .map(|row| row.session_key)
            .collect()
    };
    assert_eq!(keys(&mut kit, 9), ["session-3", "session-2", "session-1"]);
    assert_eq!(keys(&mut kit, 2), ["session-3", "session-2"]);
    assert!(keys(&mut kit, 0).is_empty());
    kit.claim(1, 1, 1);
    assert_eq!(keys(&mut kit, 1), ["session-1"]);
    accept_at(&mut kit, 1, 4, 7);
    assert_eq!(
        kit.sessions(1)[0].updated_at,
        Wall(300),
        "a wall clock that went back"
    );
}

/// One truth: the list says of a session what its rows say.
#[test]
fn a_session_row_tells_its_last_writer_and_its_open_runs() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    let row = kit.sessions(9).remove(0);
    assert_eq!(
        (row.session, row.session_key.as_str()),
        (session(1), "session-1")
    );
    assert_eq!((row.generation, row.open_runs), (1, 1));
    assert_eq!((row.created_at, row.updated_at), (Wall(100), Wall(100)));
    assert_eq!((row.last_run_key, row.last_terminal), (None, None));
    kit.claim(1, 7, 1);
    kit.accept(1, 8);
    let row = kit.sessions(9).remove(0);
    assert_eq!(
        (row.last_run_key.as_deref(), row.open_runs),
        (Some("run-7"), 2)
    );
    assert_eq!((row.last_terminal, row.updated_at), (None, Wall(300)));
    kit.complete(1, 7, "done");
    let row = kit.sessions(9).remove(0);
    assert_eq!(
        row.last_terminal,
        Some(terminal(1, 7, 1, Outcome::Completed))
    );
    assert_eq!(
        (row.open_runs, row.updated_at, row.created_at),
        (1, Wall(900), Wall(100))
    );
}

/// I23: from 1, without gaps, each session on its own.
#[test]
fn a_transcript_counts_from_1_without_gaps() {
    let mut kit = Kit::new();
    for n in 1..=3 {
        kit.start(1, n);
        kit.complete(1, n, "answer");
        kit.start(2, 10 + n);
    }
    let rows = kit.transcript(1);
    assert_eq!(
        rows.iter().map(|row| row.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    let expected = TranscriptRow {
        seq: 2,
        role: Role::Assistant,
        mark: RowMark::Whole,
        run: run(1),
        run_key: "run-1".into(),
        turn: run(1),
        queue: None,
        at: Wall(900),
        text: "answer".into(),
        calls: Vec::new(),
        answers: None,
    };
    assert_eq!(rows[1], expected);
    assert_eq!(kit.transcript(2).len(), 3);
}
