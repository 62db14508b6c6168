//! A piece of a transcript for people, with what was accepted and is not in it yet.
//!
//! One read of one moment, bounded in rows and bytes (law 9).

use rusqlite::{Rows, params};
use tidegate_core::SessionId;
use tidegate_driver::{
    HISTORY_MAX_BYTES, HISTORY_MAX_ROWS, History, HistoryQuery, PendingInput, TranscriptRow,
};

use crate::accept::FIRST_GENERATION;
use crate::codec;
use crate::fault::Step;
use crate::list::TRANSCRIPT_ROWS;
use crate::rows::{Work, wall};

/// Bytes that may still be read. The first text always fits.
struct Room {
    left: u64,
    first: bool,
}

impl Room {
    const fn new() -> Self {
        Self {
            left: HISTORY_MAX_BYTES,
            first: true,
        }
    }

    fn takes(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let fits = bytes <= self.left || std::mem::take(&mut self.first);
        self.first = false;
        self.left = self.left.saturating_sub(bytes);
        fits
    }
}

impl Work<'_> {
    /// The piece that is asked for.
    pub(crate) fn history(&self, session: SessionId, query: &HistoryQuery) -> Step<History> {
        let generation = match self.session(session)? {
            Some(session) => session.generation,
            None => FIRST_GENERATION,
        };
        // Numbers have no gaps: the last one is the count.
        let last: i64 = self
            .sql
            .prepare_cached(
                "SELECT coalesce(max(seq), 0) FROM transcript
                 WHERE session = ?1 AND generation = ?2",
            )?
            .query_row(params![session.0, codec::to_sql(generation.0)], |row| {
                row.get(0)
            })?;
        let limit = query.limit.min(HISTORY_MAX_ROWS);
        let rows = match query.after_seq {
            Some(after) => self.rows_after(session, after, limit)?,
            None => self.newest_rows(session, limit)?,
        };
        Ok(History {
            generation: generation.0,
            rows,
            last_seq: codec::from_sql(last),
            pending: self.pending(session)?,
            pending_total: self.pending_total(session)?,
        })
    }

    fn newest_rows(&self, session: SessionId, limit: u32) -> Step<Vec<TranscriptRow>> {
        let newest = format!("{TRANSCRIPT_ROWS} ORDER BY t.seq DESC LIMIT ?2");
        let mut statement = self.sql.prepare_cached(&newest)?;
        let mut list = self.read(statement.query(params![session.0, limit])?)?;
        list.reverse();
        Ok(list)
    }

    fn rows_after(&self, session: SessionId, after: u64, limit: u32) -> Step<Vec<TranscriptRow>> {
        let later = format!("{TRANSCRIPT_ROWS} AND t.seq > ?3 ORDER BY t.seq LIMIT ?2");
        let mut statement = self.sql.prepare_cached(&later)?;
        self.read(statement.query(params![session.0, limit, codec::to_sql(after)])?)
    }

    fn read(&self, mut rows: Rows<'_>) -> Step<Vec<TranscriptRow>> {
        let (mut list, mut room) = (Vec::new(), Room::new());
        while let Some(row) = rows.next()? {
            let row = self.transcript_row(row)?;
            if !room.takes(bytes(&row)) {
                break;
            }
            list.push(row);
        }
        Ok(list)
    }

    fn pending(&self, session: SessionId) -> Step<Vec<PendingInput>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT run_key, message, accepted_at FROM inbox
             WHERE session = ?1 AND state = 'open' AND message IS NOT NULL
             ORDER BY ordinal LIMIT ?2",
        )?;
        let mut rows = statement.query(params![session.0, HISTORY_MAX_ROWS])?;
        let (mut list, mut room) = (Vec::new(), Room::new());
        while let Some(row) = rows.next()? {
            let text: String = row.get(1)?;
            if !room.takes(text.len()) {
                break;
            }
            list.push(PendingInput {
                run_key: row.get(0)?,
                text,
                accepted_at: wall(row, 2)?,
            });
        }
        Ok(list)
    }

    fn pending_total(&self, session: SessionId) -> Step<u64> {
        let count: i64 = self
            .sql
            .prepare_cached(
                "SELECT count(*) FROM inbox
                 WHERE session = ?1 AND state = 'open' AND message IS NOT NULL",
            )?
            .query_row([session.0], |row| row.get(0))?;
        Ok(codec::from_sql(count))
    }
}

/// What a row holds of text: its own, and that of the calls that it asks for.
fn bytes(row: &TranscriptRow) -> usize {
    let calls = row.calls.iter();
    let of_calls = calls.map(|call| call.id.len() + call.name.len() + call.arguments.len());
    row.text.len() + of_calls.sum::<usize>()
}
