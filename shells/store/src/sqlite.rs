//! The one writer connection, and the transactions that batches become.
//!
//! Owns how durable a commit is: a batch is one immediate transaction and one sync, a batch
//! of saves alone has no sync, a batch of reads no write at all. What an operation means
//! stands in its own file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior, params};
use tidegate_core::{
    AcceptReport, ClaimReport, ConfigureReport, Epoch, LaunchReport, LoadReport, LookupReport,
    ResetReport, SettleReport, StoreError,
};
use tidegate_driver::{Store, StoreDone, StoreOp, StoredText};

use crate::fault::{Fault, Step};
use crate::migrations::{self, SCHEMA};
use crate::rows::Work;
use crate::state_dir::StateDir;

/// The database in the state directory.
const DATABASE: &str = "tidegate.sqlite3";
/// How long a statement waits for another process that looks into the database.
const BUSY_TIMEOUT_MS: u64 = 5_000;
/// Prepared statements kept: all that the orders use, with room.
const STATEMENTS: usize = 64;
/// The write-ahead log is cut back to this after a checkpoint (law 9).
const LOG_LIMIT_BYTES: i64 = 64 * 1024 * 1024;
/// Bytes of the key under which outside names become ids.
const KEY_BYTES: usize = 32;

/// The database can't be opened. Nothing runs without it.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A newer build wrote this database.
    #[error(
        "{} has schema {found}, this build knows schemas up to {known}: start the newer build \
         that wrote it, or give this one another state directory",
        path.display()
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema of this build.
        known: i64,
    },
    /// SQLite can't work with the file.
    #[error(
        "the database {} can't be used: {source}; check its permissions, its disk's free space, \
         and that it is a Tidegate database",
        path.display()
    )]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The file can't be made.
    #[error("the database {} can't be made: {source}; check the directory's permissions", path.display())]
    Create {
        /// The database.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The system gave no random bytes for a new key.
    #[error("the system gave no random bytes for the key of a new database: {0}; try again")]
    Randomness(String),
}

/// How much a commit waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// For the disk: what was reported survives a power failure.
    Full,
    /// For the operating system: it survives the end of the process.
    Normal,
}

/// Durable truth in one SQLite file. See [`Store`] for what a batch promises.
///
/// One store at a time writes: whoever opened the database last has the lease, and an
/// earlier opener gets `NotOwner` for every order.
pub struct SqliteStore {
    sql: Connection,
    epoch: Epoch,
    key: [u8; KEY_BYTES],
    sync: Sync,
    /// The directory stays ours for as long as the database is open.
    _owned: Arc<File>,
}

impl std::fmt::Debug for SqliteStore {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the database of a state directory, makes it where there is none, brings its
    /// schema up to date and takes the next epoch of its lease.
    ///
    /// # Errors
    /// See [`OpenError`]; a refused database is left as it was.
    pub fn open(dir: &StateDir) -> Result<Self, OpenError> {
        let path = dir.path().join(DATABASE);
        create_private(&path).map_err(|source| OpenError::Create {
            path: path.clone(),
            source,
        })?;
        let failed = |source| OpenError::Database {
            path: path.clone(),
            source,
        };
        let mut sql = Connection::open(&path).map_err(failed)?;
        sql.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))
            .map_err(failed)?;
        let found = migrations::version(&sql).map_err(failed)?;
        if found > SCHEMA {
            return Err(OpenError::NewerSchema {
                path,
                found,
                known: SCHEMA,
            });
        }
        configure(&sql).map_err(failed)?;
        migrations::migrate(&mut sql, found).map_err(failed)?;
        let mut fresh = [0; KEY_BYTES];
        getrandom::fill(&mut fresh).map_err(|error| OpenError::Randomness(error.to_string()))?;
        let (epoch, key) = take_lease(&sql, &fresh).map_err(failed)?;
        Ok(Self {
            sql,
            epoch,
            key,
            sync: Sync::Full,
            _owned: dir.lock(),
        })
    }

    /// The key under which outside names become ids. It belongs to this database.
    #[must_use]
    pub fn fingerprint_key(&self) -> [u8; KEY_BYTES] {
        self.key
    }

    /// The epoch of this store's lease: one more than that of the opener before it.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Carries out operations as one transaction; on a fault nothing of them is written.
    fn transact(&mut self, ops: &[StoreOp]) -> Step<Vec<StoreDone>> {
        let writes = ops.iter().any(is_write);
        let saves_only = ops.iter().all(|op| matches!(op, StoreOp::Save { .. }));
        if writes {
            self.set_sync(if saves_only { Sync::Normal } else { Sync::Full })?;
        }
        let behavior = match writes {
            true => TransactionBehavior::Immediate,
            false => TransactionBehavior::Deferred,
        };
        let done = self.transact_under(behavior, ops);
        self.set_sync(Sync::Full)?;
        done
    }

    fn transact_under(
        &mut self,
        behavior: TransactionBehavior,
        ops: &[StoreOp],
    ) -> Step<Vec<StoreDone>> {
        let own = self.epoch;
        let transaction = self.sql.transaction_with_behavior(behavior)?;
        let owner: i64 = transaction
            .prepare_cached("SELECT owner_epoch FROM meta")?
            .query_row([], |row| row.get(0))?;
        let work = Work {
            sql: &transaction,
            owner: Epoch(crate::codec::from_sql(owner)),
            own,
        };
        let done = ops
            .iter()
            .map(|op| work.carry_out(op))
            .collect::<Step<Vec<_>>>()?;
        transaction.commit()?;
        Ok(done)
    }

    fn set_sync(&mut self, sync: Sync) -> Step<()> {
        if self.sync != sync {
            self.sql.execute_batch(match sync {
                Sync::Full => "PRAGMA synchronous = FULL",
                Sync::Normal => "PRAGMA synchronous = NORMAL",
            })?;
            self.sync = sync;
        }
        Ok(())
    }

    /// One operation can't be done, and not because of the medium: its neighbours must not
    /// suffer, so each is carried out alone.
    fn each_alone(&mut self, batch: Vec<StoreOp>) -> Vec<StoreDone> {
        batch
            .into_iter()
            .flat_map(|op| {
                let alone = [op];
                self.transact(&alone)
                    .unwrap_or_else(|fault| refuse(&alone, &fault))
            })
            .collect()
    }
}

impl Store for SqliteStore {
    fn run(&mut self, batch: Vec<StoreOp>) -> Vec<StoreDone> {
        match self.transact(&batch) {
            Ok(done) => done,
            Err(fault) if fault.is_of_one_operation() && batch.len() > 1 => self.each_alone(batch),
            Err(fault) => refuse(&batch, &fault),
        }
    }
}

impl Work<'_> {
    fn carry_out(&self, op: &StoreOp) -> Step<StoreDone> {
        Ok(match op {
            StoreOp::Load { session } => self.load(*session)?,
            StoreOp::Accept {
                accept,
                names,
                message,
            } => self.accept(accept, names, message)?,
            StoreOp::Claim {
                fence,
                epoch,
                claim,
                outputs,
            } => StoreDone::Claimed(self.claim(fence, *epoch, claim, outputs)?),
            StoreOp::Launch {
                fence,
                epoch,
                launch,
                text,
                calls,
            } => StoreDone::Launched(self.launch(fence, *epoch, launch, text, calls)?),
            StoreOp::Save {
                fence,
                epoch,
                from,
                text,
                at,
            } => StoreDone::Saved {
                kept: self.save(fence, *epoch, *from, text, *at)?,
            },
            StoreOp::Settle {
                fence,
                epoch,
                terminal,
                text,
                results,
                outputs,
            } => {
                let calls = (&results[..], &outputs[..]);
                StoreDone::Settled(self.settle(fence, *epoch, terminal, text, calls)?)
            }
            StoreOp::Lookup { run } => self.lookup(*run)?,
            StoreOp::Reset { .. } | StoreOp::Configure { .. } => self.change_session(op)?,
            StoreOp::Transcript { session } => {
                StoreDone::Transcript(Ok(self.transcript(*session)?))
            }
            StoreOp::History { session, query } => {
                StoreDone::History(Ok(self.history(*session, query)?))
            }
            StoreOp::OpenSessions => StoreDone::OpenSessions(Ok(self.open_sessions()?)),
            StoreOp::Sessions { limit } => StoreDone::Sessions(Ok(self.sessions(*limit)?)),
        })
    }
}

/// The database holds conversations: only its owner may read it, and SQLite gives its log
/// the same permissions.
fn create_private(path: &Path) -> std::io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map(drop)
}

fn configure(sql: &Connection) -> rusqlite::Result<()> {
    sql.set_prepared_statement_cache_capacity(STATEMENTS);
    sql.pragma_update(None, "journal_mode", "WAL")?;
    sql.pragma_update(None, "synchronous", "FULL")?;
    // A plan that does not depend on bound values: otherwise the cached statements that touch
    // a partial index are parsed again at every use.
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    sql.pragma_update(None, "journal_size_limit", LOG_LIMIT_BYTES)
}

/// Takes the next epoch; a new database also gets its key.
fn take_lease(
    sql: &Connection,
    fresh: &[u8; KEY_BYTES],
) -> rusqlite::Result<(Epoch, [u8; KEY_BYTES])> {
    sql.query_row(
        "INSERT INTO meta (only, owner_epoch, fingerprint_key) VALUES (1, 1, ?1)
         ON CONFLICT (only) DO UPDATE SET owner_epoch = owner_epoch + 1
         RETURNING owner_epoch, fingerprint_key",
        params![fresh],
        |row| Ok((Epoch(crate::codec::from_sql(row.get(0)?)), row.get(1)?)),
    )
}

fn is_write(op: &StoreOp) -> bool {
    match op {
        StoreOp::Accept { .. }
        | StoreOp::Claim { .. }
        | StoreOp::Launch { .. }
        | StoreOp::Save { .. }
        | StoreOp::Settle { .. }
        | StoreOp::Reset { .. }
        | StoreOp::Configure { .. } => true,
        StoreOp::Load { .. }
        | StoreOp::Lookup { .. }
        | StoreOp::Transcript { .. }
        | StoreOp::History { .. }
        | StoreOp::OpenSessions
        | StoreOp::Sessions { .. } => false,
    }
}

/// Says in the log what SQLite said, and to the core what kind of failure it was.
fn refuse(ops: &[StoreOp], fault: &Fault) -> Vec<StoreDone> {
    let kind = fault.kind();
    let operations = ops.len();
    tracing::error!(%fault, ?kind, operations, "the store refused a batch; nothing was written");
    ops.iter().map(|op| refused(op, kind)).collect()
}

fn refused(op: &StoreOp, kind: StoreError) -> StoreDone {
    match op {
        StoreOp::Load { .. } => StoreDone::Loaded {
            report: LoadReport::Refused(kind),
            names: Vec::new(),
        },
        StoreOp::Accept { .. } => StoreDone::Accepted {
            report: AcceptReport::Refused(kind),
            text: StoredText::default(),
        },
        StoreOp::Claim { .. } => StoreDone::Claimed(ClaimReport::Refused(kind)),
        StoreOp::Launch { .. } => StoreDone::Launched(LaunchReport::Refused(kind)),
        StoreOp::Save { .. } => StoreDone::Saved { kept: None },
        StoreOp::Settle { .. } => StoreDone::Settled(SettleReport::Refused(kind)),
        StoreOp::Reset { .. } => StoreDone::WasReset(ResetReport::Refused(kind)),
        StoreOp::Configure { .. } => StoreDone::Configured(ConfigureReport::Refused(kind)),
        StoreOp::Lookup { .. } => StoreDone::LookedUp {
            report: LookupReport::Refused(kind),
            names: None,
            text: StoredText::default(),
        },
        StoreOp::Transcript { .. } => StoreDone::Transcript(Err(kind)),
        StoreOp::History { .. } => StoreDone::History(Err(kind)),
        StoreOp::OpenSessions => StoreDone::OpenSessions(Err(kind)),
        StoreOp::Sessions { .. } => StoreDone::Sessions(Err(kind)),
    }
}

#[cfg(test)]
mod tests;
