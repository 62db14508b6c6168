//! The schema's steps, forward only, counted by `user_version`.
//!
//! A step that was ever released is never edited: a change is the next step. A database
//! from a newer build is refused before anything in it is touched.

use rusqlite::{Connection, TransactionBehavior};

/// The steps in order. Applying the first n gives schema n.
const STEPS: &[&str] = &[include_str!("schema/0001_first.sql")];

/// The schema that this build reads and writes.
pub(crate) const SCHEMA: i64 = STEPS.len() as i64;

/// The schema of a database; 0 for a new file.
pub(crate) fn version(sql: &Connection) -> rusqlite::Result<i64> {
    sql.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings a database from schema `from` to [`SCHEMA`], as a whole or not at all.
pub(crate) fn migrate(sql: &mut Connection, from: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or(0);
    if done >= STEPS.len() {
        return Ok(());
    }
    let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in &STEPS[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()
}
