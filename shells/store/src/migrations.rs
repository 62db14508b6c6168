//! The schema's steps, forward only, counted by `user_version`.
//!
//! A step that was ever released is never edited: a change is the next step. A database
//! from a newer build is refused before anything in it is touched.

use rusqlite::{Connection, TransactionBehavior};

/// The steps in order. Applying the first n gives schema n.
const STEPS: &[&str] = &[
    include_str!("schema/0001_first.sql"),
    include_str!("schema/0002_queue.sql"),
    include_str!("schema/0003_tools.sql"),
];

/// The schema that this build reads and writes.
pub(crate) const SCHEMA: i64 = STEPS.len() as i64;

/// The schema of a database; 0 for a new file.
pub(crate) fn version(sql: &Connection) -> rusqlite::Result<i64> {
    sql.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a database from schema `from` to [`SCHEMA`], as a whole or not at all.
///
/// Foreign keys are off meanwhile, since a step may make a table anew; what they demand is
/// checked before the commit. Leaves them on.
pub(crate) fn migrate(sql: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or(0);
    if done < STEPS.len() {
        sql.pragma_update(None, "foreign_keys", false)?;
        apply(sql, &STEPS[done..])?;
    }
    sql.pragma_update(None, "foreign_keys", true)
}

fn apply(sql: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    let dangling = transaction
        .prepare("PRAGMA foreign_key_check")?
        .exists([])?;
    if dangling {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
        let what = "a row of the database names one that is not there".to_owned();
        return Err(rusqlite::Error::SqliteFailure(code, Some(what)));
    }
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()
}
