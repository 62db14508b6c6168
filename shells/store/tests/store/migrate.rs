//! A database of an earlier schema, as an earlier build left it, brought up to date.

use tidegate_core::{
    Attempt, CallEnd, DropPolicy, Epoch, LoadReport, LookupReport, Outcome, QueueMode,
    QueueOverride, Reply, SettleReport, Terminal, Turn, Wall,
};
use tidegate_driver::StoredText;

use crate::kit::*;

/// Schema 1 as it was released.
const SCHEMA_1: &str = include_str!("../../src/schema/0001_first.sql");

/// A completed run's receipt in encoding 1: run 1 of session 1, ended at 900, six bytes.
fn receipt_1() -> Vec<u8> {
    let mut bytes = [run(1).0, session(1).0].concat();
    bytes.extend([0, 100, 1, 200, 1, 0x84, 7, 1, 1, 6, 0]);
    bytes
}

/// Session 1: run 1 has ended with an answer, run 2 was stopped while it waited, run 3 has
/// claimed and streamed, run 4 waits. Session 2: run 5 waits and never began.
fn schema_1(dir: &std::path::Path) {
    let sql = raw(dir);
    sql.execute_batch(SCHEMA_1).expect("schema 1");
    sql.pragma_update(None, "user_version", 1)
        .expect("a pragma");
    let batch = format!(
        "BEGIN;
         INSERT INTO meta VALUES (1, 4, x'{key}');
         INSERT INTO sessions (session, session_key, generation, created_at, updated_at)
             VALUES (x'{s1}', 'session-1', 1, 100, 900), (x'{s2}', 'session-2', 1, 100, 100);
         INSERT INTO inbox (ordinal, run, session, run_key, body, budget, budget_ms, message,
                            state, attempt, left_ms, accepted_at, claimed_at, saved_at) VALUES
             (3, x'{r1}', x'{s1}', 'run-1', x'{b1}', 'default', NULL, NULL,
              'open', 1, 10000, 100, 200, 200),
             (4, x'{r2}', x'{s1}', 'run-2', x'{b2}', 'default', NULL, 'message 2',
              'open', 0, NULL, 100, NULL, NULL),
             (5, x'{r3}', x'{s1}', 'run-3', x'{b3}', 'limited', 500, NULL,
              'open', 2, 400, 100, 300, 350),
             (7, x'{r4}', x'{s1}', 'run-4', x'{b4}', 'default', NULL, 'message 4',
              'open', 0, NULL, 100, NULL, NULL),
             (8, x'{r5}', x'{s2}', 'run-5', x'{b5}', 'unlimited', NULL, 'message 5',
              'open', 0, NULL, 100, NULL, NULL);
         INSERT INTO transcript VALUES
             (x'{s1}', 1, 1, 'user', 'whole', x'{r1}', 200, 'message 1'),
             (x'{s1}', 1, 2, 'assistant', 'whole', x'{r1}', 900, 'answer'),
             (x'{s1}', 1, 3, 'user', 'whole', x'{r3}', 300, 'message 3'),
             (x'{s1}', 1, 4, 'assistant', 'interrupted', x'{r3}', 300, 'first');
         INSERT INTO partial VALUES (x'{r3}', 2, 0, 'sec'), (x'{r3}', 2, 3, 'ond');
         UPDATE sessions SET writer_run = x'{r3}', writer_attempt = 2
             WHERE session_key = 'session-1';",
        key = "07".repeat(32),
        s1 = hex(&session(1).0),
        s2 = hex(&session(2).0),
        r1 = hex(&run(1).0),
        r2 = hex(&run(2).0),
        r3 = hex(&run(3).0),
        r4 = hex(&run(4).0),
        r5 = hex(&run(5).0),
        b1 = body(1),
        b2 = body(2),
        b3 = body(3),
        b4 = body(4),
        b5 = body(5),
    );
    // The writer's index is per open run: run 1 has to end before run 3 is put beside it.
    let batch = batch.replacen("'open', 1, 10000", "'ended', 1, 10000", 1);
    let batch = batch.replacen(
        "'message 2',\n              'open'",
        "'message 2',\n              'ended'",
        1,
    );
    sql.pragma_update(None, "foreign_keys", false)
        .expect("a pragma");
    sql.execute_batch(&batch).expect("rows of schema 1");
    for (run_n, terminal) in [(1, receipt_1()), (2, receipt_2())] {
        sql.execute(
            "INSERT INTO receipts (run, reason, ended_at, encoding, terminal)
             VALUES (?1, 'x', 900, 1, ?2)",
            rusqlite::params![run(run_n).0, terminal],
        )
        .expect("a receipt");
    }
    commit_whole(&sql);
}

/// Ends the transaction of a database that is as an earlier build would have left it.
fn commit_whole(sql: &rusqlite::Connection) {
    sql.execute_batch("COMMIT").expect("it holds");
    let broken = sql
        .prepare("PRAGMA foreign_key_check")
        .and_then(|mut check| check.exists([]))
        .expect("a check");
    assert!(!broken, "the earlier database is whole");
}

/// Run 2 was cancelled by request while it waited, at 900.
fn receipt_2() -> Vec<u8> {
    let mut bytes = [run(2).0, session(1).0].concat();
    bytes.extend([3, 0, 0, 100, 0, 0x84, 7, 0, 0, 0]);
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn body(n: u8) -> String {
    format!("{n:032x}")
}

fn migrated() -> Kit {
    let temp = tempfile::tempdir().expect("a test directory");
    schema_1(temp.path());
    Kit::on(temp)
}

/// P10, P23, P42, I60: nothing that schema 1 held is lost: ends, open work, texts, order.
#[test]
fn a_database_of_schema_1_loses_nothing() {
    let mut kit = migrated();
    assert_eq!(kit.epoch(), Epoch(5), "its lease goes on");
    assert_eq!(kit.store().fingerprint_key(), [7; 32], "its names stay");
    let end = Terminal {
        reply: Reply::Text { bytes: 6 },
        ..terminal(1, 1, 1, Outcome::Completed)
    };
    assert_eq!(kit.lookup(1), (LookupReport::Ended(end), reply("answer")));
    let (report, text) = kit.lookup(2);
    assert!(matches!(report, LookupReport::Ended(end) if end.turn.is_none()));
    assert_eq!(text, StoredText::default());
    let open: Vec<_> = kit
        .open_runs(1)
        .iter()
        .map(|open| (open.run, open.attempt, open.left_ms, open.turn, open.along))
        .collect();
    assert_eq!(
        open,
        [
            (run(3), Attempt(2), Some(350), Turn::Agent, None),
            (run(4), Attempt(0), None, Turn::Agent, None)
        ]
    );
    assert_eq!(kit.open_runs(2)[0].run, run(5));
    assert_eq!(kit.open_sessions(), [session(1), session(2)]);
    let lines = [
        "1 user whole run-1: message 1",
        "2 assistant whole run-1: answer",
        "3 user whole run-3: message 3",
        "4 assistant interrupted run-3: first",
    ];
    assert_eq!(kit.lines(1), lines);
    assert!(kit.transcript(1).iter().all(|row| row.turn == row.run));
}

/// P23: the work of schema 1 goes on as if nothing had been.
#[test]
fn the_work_of_a_database_of_schema_1_goes_on() {
    let mut kit = migrated();
    assert_eq!(kit.save(fence(1, 3, 2), 6, " try"), Some(10));
    assert_eq!(kit.claim(1, 3, 3), CLAIMED);
    let end = kit.settle((1, 3, 3), Outcome::Completed, reply("third"));
    assert_eq!(end, SettleReport::Committed);
    kit.say(1, 6, tidegate_core::QueueMode::Collect);
    assert_eq!(kit.claim_along((1, 4, 1), &[6]), CLAIMED);
    let lines = kit.lines(1);
    assert_eq!(
        lines[4..],
        [
            "5 assistant interrupted run-3: second try",
            "6 assistant whole run-3: third",
            "7 user whole run-4: message 4",
            "8 user whole run-6: message 6",
        ]
    );
    let ordinal: i64 = kit
        .raw()
        .query_row("SELECT max(ordinal) FROM inbox", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(ordinal, 9, "numbers go on");
    kit.configure(2, 1, QueueOverride::default());
    assert_eq!(kit.complete(1, 4, "both"), SettleReport::Committed);
    assert_eq!(kit.lookup(6).1.reply.as_deref(), Some("both"));
    assert_eq!(kit.transcript(1).last().map(|row| row.at), Some(Wall(900)));
}

/// P42: a row that names nothing stops the migration, and the database is left as it was.
#[test]
fn a_broken_database_of_schema_1_is_refused_and_left_alone() {
    let temp = tempfile::tempdir().expect("a test directory");
    schema_1(temp.path());
    let sql = raw(temp.path());
    sql.pragma_update(None, "foreign_keys", false)
        .expect("a pragma");
    sql.execute("UPDATE transcript SET run = zeroblob(16) WHERE seq = 2", [])
        .expect("a table");
    drop(sql);
    let dir = tidegate_store::StateDir::acquire(temp.path()).expect("free");
    let error = tidegate_store::SqliteStore::open(&dir).expect_err("broken");
    assert!(
        error.to_string().contains("names one that is not there"),
        "{error}"
    );
    let sql = raw(temp.path());
    let version: i64 = sql
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .expect("a pragma");
    assert_eq!(version, 1);
    sql.execute("UPDATE inbox SET message = message", [])
        .expect("the old table is there");
    sql.prepare("SELECT dropped FROM inbox")
        .expect_err("and no new one");
}

/// Schema 2 as it was released, behind schema 1.
const SCHEMA_2: &str = include_str!("../../src/schema/0002_queue.sql");

/// The database of schema 1, brought to schema 2 and gone on there: run 6 gave way and stands
/// in the transcript, run 7 was taken along by run 3, and session 1 queues its own way.
fn schema_2(dir: &std::path::Path) {
    schema_1(dir);
    let sql = raw(dir);
    sql.pragma_update(None, "foreign_keys", false)
        .expect("a pragma");
    sql.execute_batch(SCHEMA_2).expect("schema 2");
    sql.pragma_update(None, "user_version", 2)
        .expect("a pragma");
    let chat = "'chat', 'collect', zeroblob(16), 'user', 'main', 'foreground'";
    let batch = format!(
        "BEGIN;
         INSERT INTO inbox (run, session, run_key, body, budget, state, attempt, accepted_at, turn,
                            queue, route, speaker, lane, priority, along, dropped) VALUES
             (x'{r6}', x'{s1}', 'run-6', x'{b6}', 'default', 'ended', 0, 100, {chat}, NULL,
              'summarize'),
             (x'{r7}', x'{s1}', 'run-7', x'{b7}', 'default', 'open', 0, 100, {chat}, x'{r3}',
              NULL);
         INSERT INTO transcript VALUES
             (x'{s1}', 1, 5, 'user', 'summarized', x'{r6}', x'{r3}', 300, 'message 6'),
             (x'{s1}', 1, 6, 'user', 'whole', x'{r7}', x'{r3}', 300, 'message 7');
         UPDATE sessions SET queue_mode = 'followup', queue_cap = 3
             WHERE session_key = 'session-1';",
        s1 = hex(&session(1).0),
        r3 = hex(&run(3).0),
        r6 = hex(&run(6).0),
        r7 = hex(&run(7).0),
        b6 = body(6),
        b7 = body(7),
    );
    sql.execute_batch(&batch).expect("rows of schema 2");
    sql.execute(
        "INSERT INTO receipts (run, reason, ended_at, encoding, terminal)
         VALUES (?1, 'x', 900, 2, ?2)",
        rusqlite::params![run(6).0, receipt_6()],
    )
    .expect("a receipt");
    commit_whole(&sql);
}

/// Run 6 gave way at 900 and its first words were kept, in encoding 2.
fn receipt_6() -> Vec<u8> {
    let mut bytes = [run(6).0, session(1).0].concat();
    bytes.extend([5, 2, 100, 0, 0x84, 7, 0, 0, 0, 0]);
    bytes
}

fn migrated_from_2() -> Kit {
    let temp = tempfile::tempdir().expect("a test directory");
    schema_2(temp.path());
    Kit::on(temp)
}

/// P10, P23, P42, I60: nothing that schema 2 held is lost: rows, marks, turns, settings.
#[test]
fn a_database_of_schema_2_loses_nothing() {
    let mut kit = migrated_from_2();
    let mut lines = vec![
        "1 user whole run-1: message 1",
        "2 assistant whole run-1: answer",
        "3 user whole run-3: message 3",
        "4 assistant interrupted run-3: first",
        "5 user summarized run-6: message 6",
        "6 user whole run-7: message 7",
    ];
    assert_eq!(kit.lines(1), lines);
    let rows = kit.transcript(1);
    let turns: Vec<_> = rows.iter().map(|row| row.turn).collect();
    assert_eq!(turns, [run(1), run(1), run(3), run(3), run(3), run(3)]);
    assert!(
        rows.iter()
            .all(|row| row.calls.is_empty() && row.answers.is_none())
    );
    assert_eq!(rows[5].queue, Some(QueueMode::Collect));
    assert_eq!(kit.lookup(1).1, reply("answer"));
    let by = DropPolicy::Summarize;
    let end = terminal(1, 6, 0, Outcome::Dropped { by });
    assert_eq!(kit.lookup(6).0, LookupReport::Ended(end));
    let LoadReport::Loaded { queue, open, .. } = kit.load(1).0 else {
        panic!("its lease holds");
    };
    assert_eq!(
        (queue.mode, queue.cap),
        (Some(QueueMode::Followup), Some(3))
    );
    let open: Vec<_> = open.iter().map(|open| (open.run, open.along)).collect();
    assert_eq!(
        open,
        [(run(3), None), (run(4), None), (run(7), Some(run(3)))]
    );
    assert_eq!(kit.launch(fence(1, 3, 2), 1, &[0], &[]), LAUNCHED);
    assert_eq!(kit.claim_with(fence(1, 3, 3), &[(0, CallEnd::Ok)]), CLAIMED);
    let end = kit.settle((1, 3, 3), Outcome::Completed, reply("third"));
    assert_eq!(end, SettleReport::Committed);
    lines.extend([
        "7 assistant calls run-3: asks",
        "8 tool c0 Ok run-3: out 0",
        "9 assistant whole run-3: third",
    ]);
    assert_eq!(kit.lines(1), lines);
    assert_eq!(kit.lookup(7).1.reply.as_deref(), Some("third"));
}

/// P42: a schema that was brought up to date step by step is the one that a new database has.
#[test]
fn a_migrated_database_has_the_schema_of_a_new_one() {
    let schema = |kit: &Kit| -> Vec<String> {
        let sql = kit.raw();
        let mut read = sql
            .prepare("SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
            .expect("a table");
        let rows = read.query_map([], |row| row.get(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("words")
    };
    assert_eq!(schema(&migrated_from_2()), schema(&Kit::new()));
}
