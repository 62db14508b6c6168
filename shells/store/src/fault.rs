//! Why a statement failed, and what the core is told of it.
//!
//! Owns the table from SQLite's codes to [`StoreError`]. A fault says which column or record
//! was wrong, never what stood in it.

use rusqlite::ErrorCode;
use tidegate_core::StoreError;

/// A step of a transaction could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite refused.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored record can't be read; another program or a broken disk wrote it.
    #[error(
        "the stored {what} can't be read: expected {expected}; restore the database from a copy"
    )]
    Record {
        /// Which record.
        what: &'static str,
        /// What would be legal there.
        expected: &'static str,
    },
    /// An order contradicts what is stored; the gateway itself is at fault.
    #[error("an order can't be carried out: {0}; this is a defect of the gateway, report it")]
    Order(&'static str),
}

impl Fault {
    /// What the core is told.
    pub(crate) fn kind(&self) -> StoreError {
        match self.code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
            Some(ErrorCode::DiskFull) => StoreError::Full,
            _ => StoreError::Io,
        }
    }

    /// Whether one operation is at fault and not the medium: its neighbours can be carried
    /// out without it.
    pub(crate) fn is_of_one_operation(&self) -> bool {
        match self {
            Self::Record { .. } | Self::Order(_) => true,
            Self::Sqlite(rusqlite::Error::SqliteFailure(..)) => matches!(
                self.code(),
                Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
            ),
            Self::Sqlite(_) => true,
        }
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code(),
            Self::Record { .. } | Self::Order(_) => None,
        }
    }
}

/// The result of a step.
pub(crate) type Step<T> = Result<T, Fault>;
