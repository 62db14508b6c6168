//! Opening: schema, lease, key, permissions, and what the schema refuses.

use std::os::unix::fs::PermissionsExt;

use tidegate_core::Epoch;
use tidegate_store::{OpenError, SqliteStore, StateDir};

use crate::kit::*;

/// Migrations go forward only; the error names both versions and what to do.
#[test]
fn a_database_of_a_newer_schema_is_refused_and_left_alone() {
    let temp = tempfile::tempdir().expect("a test directory");
    raw(temp.path())
        .pragma_update(None, "user_version", 99)
        .expect("a pragma");
    let file = temp.path().join("tidegate.sqlite3");
    let before = std::fs::read(&file).expect("it is there");
    let dir = StateDir::acquire(temp.path()).expect("free");
    let error = SqliteStore::open(&dir).expect_err("newer");
    assert!(
        matches!(
            error,
            OpenError::NewerSchema {
                found: 99,
                known: 3,
                ..
            }
        ),
        "{error}"
    );
    let said = error.to_string();
    for part in [
        "schema 99",
        "up to 3",
        "start the newer build",
        "tidegate.sqlite3",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(std::fs::read(&file).expect("it is there"), before);
}

/// Law 10
#[test]
fn a_file_that_is_no_database_is_refused_by_its_name() {
    let temp = tempfile::tempdir().expect("a test directory");
    let file = temp.path().join("tidegate.sqlite3");
    std::fs::write(&file, "no database ".repeat(100)).expect("a test directory is writable");
    let dir = StateDir::acquire(temp.path()).expect("free");
    let error = SqliteStore::open(&dir).expect_err("no database");
    assert!(matches!(error, OpenError::Database { .. }), "{error}");
    assert!(error.to_string().contains("tidegate.sqlite3"), "{error}");
    std::fs::remove_file(&file).expect("our own file");
    std::fs::create_dir(&file).expect("a test directory is writable");
    let error = SqliteStore::open(&dir).expect_err("a directory");
    assert!(matches!(error, OpenError::Create { .. }), "{error}");
}

/// Design 3: each opener has a lease of its own.
#[test]
fn each_opening_takes_the_next_epoch() {
    let mut kit = Kit::new();
    for n in 1..=3 {
        assert_eq!(kit.epoch(), Epoch(n));
        kit.reopen();
    }
}

/// Design 3: ids mean the same after a restart, and nothing elsewhere.
#[test]
fn the_key_of_a_database_is_its_own_and_stays() {
    let (mut kit, mut other) = (Kit::new(), Kit::new());
    let key = kit.store().fingerprint_key();
    assert_ne!(key, other.store().fingerprint_key());
    assert_ne!(key, [0; 32]);
    kit.reopen();
    assert_eq!(kit.store().fingerprint_key(), key);
}

/// Conversations are their user's, whatever the directory's permissions are.
#[test]
fn the_database_and_its_log_are_readable_by_their_user_alone() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    for name in [
        "tidegate.sqlite3",
        "tidegate.sqlite3-wal",
        "tidegate.sqlite3-shm",
    ] {
        let mode = std::fs::metadata(kit.file(name))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// What no statement may write, and a statement that tries.
const ILLEGAL: &[(&str, &str)] = &[
    (
        "an end without a receipt",
        "UPDATE inbox SET state = 'ended' WHERE run_key = 'run-8'",
    ),
    (
        "an end taken back",
        "UPDATE inbox SET state = 'open' WHERE run_key = 'run-9'",
    ),
    (
        "a receipt of an open run",
        "INSERT INTO receipts (run, reason, ended_at, encoding, terminal)
             SELECT run, 'x', 1, 1, x'' FROM inbox WHERE run_key = 'run-8'",
    ),
    ("a receipt that goes", "DELETE FROM receipts"),
    (
        "two open writers",
        "UPDATE inbox SET attempt = 1, message = NULL, claimed_at = 1, saved_at = 1
             WHERE run_key = 'run-8'",
    ),
    (
        "a message at two places",
        "UPDATE inbox SET message = 'x' WHERE run_key = 'run-7'",
    ),
    (
        "a message at no place",
        "UPDATE inbox SET message = NULL WHERE run_key = 'run-8'",
    ),
    (
        "a second user row",
        "INSERT INTO transcript SELECT session, generation, seq + 9, role, mark, run, at, text
             FROM transcript WHERE role = 'user'",
    ),
    (
        "a second answer",
        "INSERT INTO transcript SELECT session, generation, seq + 9, role, 'partial', run, at,
             text FROM transcript WHERE role = 'assistant'",
    ),
    (
        "a partial question",
        "UPDATE transcript SET mark = 'partial' WHERE role = 'user'",
    ),
    (
        "a row of nobody",
        "UPDATE transcript SET run = zeroblob(16)",
    ),
    ("a short id", "UPDATE sessions SET session = x'00'"),
    ("generation 0", "UPDATE sessions SET generation = 0"),
    (
        "a writer without an attempt",
        "UPDATE sessions SET writer_attempt = NULL",
    ),
    ("an empty piece", "UPDATE partial SET text = ''"),
    (
        "a limit without a number",
        "UPDATE inbox SET budget = 'limited'",
    ),
    (
        "a message both in a turn and in the inbox",
        "UPDATE inbox SET along = (SELECT run FROM inbox WHERE run_key = 'run-7')
             WHERE run_key = 'run-8'",
    ),
    (
        "a run along with itself",
        "UPDATE inbox SET along = run, message = NULL WHERE run_key = 'run-8'",
    ),
    (
        "an open run that was dropped",
        "UPDATE inbox SET dropped = 'old', message = NULL WHERE run_key = 'run-8'",
    ),
    (
        "a chat message from nowhere",
        "UPDATE inbox SET turn = 'chat' WHERE run_key = 'run-8'",
    ),
    (
        "an unknown lane",
        "UPDATE inbox SET lane = 'fast' WHERE run_key = 'run-8'",
    ),
    (
        "an unknown queue mode",
        "UPDATE sessions SET queue_mode = 'soon'",
    ),
    (
        "an answer that was dropped",
        "UPDATE transcript SET mark = 'dropped' WHERE role = 'assistant'",
    ),
    ("two owners", "INSERT INTO meta VALUES (2, 1, zeroblob(32))"),
    (
        "a text as a number",
        "UPDATE inbox SET accepted_at = 'noon'",
    ),
];

/// The schema itself refuses illegal states, whoever writes them.
#[test]
fn illegal_states_do_not_fit_the_schema() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "half");
    kit.accept(1, 8);
    kit.start(2, 9);
    kit.complete(2, 9, "answer");
    let sql = kit.raw();
    for (what, statement) in ILLEGAL {
        assert!(sql.execute(statement, []).is_err(), "{what} was written");
    }
}
