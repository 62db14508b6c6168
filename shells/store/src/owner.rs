//! Who owns a state directory: the words in `owner.lock`, for others to read.
//!
//! The lock itself is the operating system's and dies with its process; these words only
//! say whose it is. Nobody decides anything by them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tidegate_core::Wall;

/// No owner's words are longer; what is longer was not written by one.
const OWNER_MAX_BYTES: u64 = 4_096;

/// The process that owns a state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// When it took the directory, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Owner {
    /// This process, from now on.
    #[expect(
        clippy::disallowed_methods,
        reason = "only dates the ownership for people; nothing compares it"
    )]
    pub(crate) fn this_process() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            pid: std::process::id(),
            since_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Writes the owner into its lock file, in place of the one before.
    pub(crate) fn write(&self, lock: &mut File) -> io::Result<()> {
        lock.set_len(0)?;
        lock.seek(SeekFrom::Start(0))?;
        lock.write_all(serde_json::to_string(self)?.as_bytes())?;
        lock.write_all(b"\n")
    }

    /// Reads whom a lock file names; `None` if it names nobody yet.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let mut text = String::new();
        File::open(path)
            .ok()?
            .take(OWNER_MAX_BYTES)
            .read_to_string(&mut text)
            .ok()?;
        serde_json::from_str(&text).ok()
    }
}

impl fmt::Display for Owner {
    /// `process 4711, since 2026-11-30 16:06:00 UTC`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "process {}, since {} UTC",
            self.pid,
            Utc(Wall(self.since_ms))
        )
    }
}

/// Shows a wall time as date and time of day.
struct Utc(Wall);

impl fmt::Display for Utc {
    /// Days become a date by counting in years of 365.2425 days that begin in March, so that
    /// the leap day is the last of its year.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
        let seconds = self.0.0 / 1_000;
        let days = seconds / 86_400 + DAYS_FROM_MARCH_OF_YEAR_0;
        let (era, day) = (days / 146_097, days % 146_097);
        let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law 10: the start time that people are told is the true one.
    #[test]
    fn an_owner_names_its_process_and_its_start() {
        let at = |since_ms| {
            Owner {
                pid: 4711,
                since_ms,
            }
            .to_string()
        };
        assert_eq!(at(0), "process 4711, since 1970-01-01 00:00:00 UTC");
        assert_eq!(
            at(951_782_400_000),
            "process 4711, since 2000-02-29 00:00:00 UTC"
        );
        assert_eq!(
            at(1_796_054_760_999),
            "process 4711, since 2026-11-30 16:06:00 UTC"
        );
        assert_eq!(
            at(4_107_542_399_000),
            "process 4711, since 2100-02-28 23:59:59 UTC"
        );
        assert_eq!(
            at(4_107_542_400_000),
            "process 4711, since 2100-03-01 00:00:00 UTC"
        );
    }
}
