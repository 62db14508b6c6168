//! Lists for people: transcripts, sessions, and which sessions hold unfinished work.

use rusqlite::{Row, params};
use tidegate_core::{RunId, SessionId};
use tidegate_driver::{RowMark, SessionRow, TranscriptRow};

use crate::calls;
use crate::codec;
use crate::fault::Step;
use crate::queue;
use crate::rows::{Work, wall};

impl Work<'_> {
    /// The transcript of a session's current generation, oldest first.
    pub(crate) fn transcript(&self, session: SessionId) -> Step<Vec<TranscriptRow>> {
        let all = format!("{TRANSCRIPT_ROWS} ORDER BY t.seq");
        let mut statement = self.sql.prepare_cached(&all)?;
        let mut list = Vec::new();
        let mut rows = statement.query([session.0])?;
        while let Some(row) = rows.next()? {
            list.push(self.transcript_row(row)?);
        }
        Ok(list)
    }

    /// The sessions with open runs; the one whose open run was accepted first leads.
    pub(crate) fn open_sessions(&self) -> Step<Vec<SessionId>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT session FROM inbox WHERE state = 'open'
             GROUP BY session ORDER BY min(ordinal)",
        )?;
        let rows = statement.query_map([], |row| Ok(SessionId(row.get(0)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Sessions, last written first; of two at one instant the younger leads.
    pub(crate) fn sessions(&self, limit: u32) -> Step<Vec<SessionRow>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT s.session, s.session_key, s.generation, s.created_at, s.updated_at, i.run_key,
                    r.encoding, r.terminal,
                    (SELECT count(*) FROM inbox o
                     WHERE o.session = s.session AND o.state = 'open')
             FROM sessions s
             LEFT JOIN inbox i ON i.run = s.writer_run
             LEFT JOIN receipts r ON r.run = s.writer_run
             ORDER BY s.updated_at DESC, s.id DESC LIMIT ?1",
        )?;
        let mut list = Vec::new();
        let mut rows = statement.query(params![limit])?;
        while let Some(row) = rows.next()? {
            list.push(session_row(row)?);
        }
        Ok(list)
    }
}

/// The rows of a session's current transcript, as [`Work::transcript_row`] reads them. Which of
/// them, and in what order, follows.
pub(crate) const TRANSCRIPT_ROWS: &str =
    "SELECT t.seq, t.role, t.mark, t.run, i.run_key, t.turn, i.queue, t.at, t.text,
            s.session, s.generation, c.id, c.name, c.ended_as
     FROM sessions s
     JOIN transcript t ON t.session = s.session AND t.generation = s.generation
     JOIN inbox i ON i.run = t.run
     LEFT JOIN calls c ON c.session = t.session AND c.generation = t.generation
                      AND c.seq = t.asks AND c.call = t.call
     WHERE s.session = ?1";

impl Work<'_> {
    /// A row of [`TRANSCRIPT_ROWS`], with the calls that it asks for.
    pub(crate) fn transcript_row(&self, row: &Row<'_>) -> Step<TranscriptRow> {
        let (role, mark): (String, String) = (row.get(1)?, row.get(2)?);
        let (seq, mark) = (row.get(0)?, codec::mark_from_sql(&mark)?);
        let calls = match mark {
            RowMark::Calls => self.calls_of(row.get(9)?, row.get(10)?, seq)?,
            _ => Vec::new(),
        };
        Ok(TranscriptRow {
            seq: codec::from_sql(seq),
            role: codec::role_from_sql(&role)?,
            mark,
            run: RunId(row.get(3)?),
            run_key: row.get(4)?,
            turn: RunId(row.get(5)?),
            queue: queue::mode_from_row(row, 6)?,
            at: wall(row, 7)?,
            text: row.get(8)?,
            calls,
            answers: calls::answer_from_row(row, 11)?,
        })
    }
}

fn session_row(row: &Row<'_>) -> Step<SessionRow> {
    let last_terminal = match row.get::<_, Option<i64>>(6)? {
        None => None,
        Some(encoding) => {
            let bytes: Vec<u8> = row.get(7)?;
            Some(codec::terminal_from_sql(encoding, &bytes)?)
        }
    };
    Ok(SessionRow {
        session: SessionId(row.get(0)?),
        session_key: row.get(1)?,
        generation: codec::from_sql(row.get(2)?),
        created_at: wall(row, 3)?,
        updated_at: wall(row, 4)?,
        last_run_key: row.get(5)?,
        last_terminal,
        open_runs: codec::from_sql(row.get(8)?),
    })
}
