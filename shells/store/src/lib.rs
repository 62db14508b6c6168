//! Durable truth in SQLite: what the driver's [`Store`](tidegate_driver::Store) promises,
//! kept in one file of the state directory.
//!
//! Owns the state directory (its one owner, its token, its database) and the rules that
//! make a write legal: the lease, the fence and the conditional insert, each checked inside
//! the transaction that writes (R51 to R54). It never decides when anything happens, never
//! retries, and reads no clock but the one that dates its ownership.

mod accept;
mod calls;
mod claim;
mod codec;
mod fault;
mod history;
mod launch;
mod list;
mod migrations;
mod owner;
mod queue;
mod read;
mod reset;
mod rows;
mod save;
mod settle;
mod sqlite;
mod state_dir;
mod token;

pub use owner::Owner;
pub use sqlite::{OpenError, SqliteStore};
pub use state_dir::{StateDir, StateDirError};
pub use token::{Token, TokenError};
