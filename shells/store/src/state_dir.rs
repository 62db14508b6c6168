//! The state directory: one folder that one gateway owns (spec 4.3).
//!
//! Owns the lock and the folder's permissions. The lock is the operating system's, so a
//! dead owner's is free at once; waiting for a live one is bounded and ends with its name.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::owner::Owner;
use crate::token::{self, Token, TokenError};

/// The file that is locked, and names the owner.
const LOCK: &str = "owner.lock";
/// How long a new owner waits for an earlier one to go (spec 4.3).
const OWNER_WAIT_MS: u64 = 5_000;
/// How often it looks meanwhile (spec 4.3).
const OWNER_POLL_MS: u64 = 100;

/// The state directory can't be had.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// Another process has it.
    #[error(
        "the state directory {} belongs to another gateway ({}): stop that one, or choose \
         another directory",
        path.display(),
        owner.map_or_else(|| "it has not written its name yet".into(), |owner| owner.to_string())
    )]
    Owned {
        /// The directory.
        path: PathBuf,
        /// Who has it, if it says.
        owner: Option<Owner>,
    },
    /// The path leads to something else.
    #[error("{} is not a directory: choose a directory, or a path where one can be made", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory can't be made.
    #[error("the state directory {} can't be made: {source}; make it, or choose another", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The lock file can't be written.
    #[error(
        "{} can't be written: {source}; the state directory must be writable by the user who \
         runs the gateway",
        path.display()
    )]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A state directory that this process owns for as long as this value, or a store opened
/// from it, lives.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    lock: Arc<File>,
}

impl StateDir {
    /// Takes the directory; makes it, readable by its user alone, where there is none. A
    /// live owner is given up to 5 s to go.
    ///
    /// # Errors
    /// See [`StateDirError`].
    pub fn acquire(path: &Path) -> Result<Self, StateDirError> {
        let mut polls = OWNER_WAIT_MS / OWNER_POLL_MS;
        Self::acquire_while(path, || {
            if polls == 0 {
                return false;
            }
            polls -= 1;
            pause();
            true
        })
    }

    /// As [`StateDir::acquire`], asking before each further look whether to go on.
    pub(crate) fn acquire_while(
        path: &Path,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Self, StateDirError> {
        make_directory(path)?;
        let file = path.join(LOCK);
        let failed = |source| StateDirError::Lock {
            path: file.clone(),
            source,
        };
        let mut options = OpenOptions::new();
        // Not truncated: while it is not ours, it names the owner.
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut lock = options.open(&file).map_err(failed)?;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if go_on() => {}
                Err(TryLockError::WouldBlock) => {
                    let owner = Owner::read(&file);
                    return Err(StateDirError::Owned {
                        path: path.into(),
                        owner,
                    });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        Owner::this_process().write(&mut lock).map_err(failed)?;
        Ok(Self {
            path: path.into(),
            lock: Arc::new(lock),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The token that clients must show; made at the first start.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn token(&self) -> Result<Token, TokenError> {
        token::read_or_make(&self.path)
    }

    /// The token of a directory that another process owns, for its clients.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn read_token(path: &Path) -> Result<Token, TokenError> {
        token::read(path)
    }

    /// A share in the lock.
    pub(crate) fn lock(&self) -> Arc<File> {
        Arc::clone(&self.lock)
    }
}

fn make_directory(path: &Path) -> Result<(), StateDirError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(StateDirError::NotADirectory { path: path.into() }),
        Err(_) => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| StateDirError::Create {
                path: path.into(),
                source,
            }),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one bounded wait of this crate (spec 4.3)"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(OWNER_POLL_MS));
}

#[cfg(test)]
mod tests;
