//! The rows that rules are checked against, and the few writes that several orders share.
//!
//! Owns [`Work`], the view of one open transaction, and the statements on a session's
//! writer, a run's inbox row, its streamed pieces and its transcript. Which order may do
//! what stands in the order's own file.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tidegate_core::{
    Attempt, Epoch, Fence, Generation, Outcome, Reply, RunId, SessionId, Terminal, Wall,
};
use tidegate_driver::{Role, RowMark, StoredText};

use crate::codec;
use crate::fault::Step;
use crate::queue;

/// One open transaction, with what was read once at its beginning.
pub(crate) struct Work<'t> {
    /// The connection inside its transaction.
    pub(crate) sql: &'t Connection,
    /// The epoch of whoever opened the database last.
    pub(crate) owner: Epoch,
    /// The epoch of this store.
    pub(crate) own: Epoch,
}

/// A session's row: its generation and its writer.
pub(crate) struct Session {
    /// The generation of its transcript.
    pub(crate) generation: Generation,
    /// The run and attempt of the last claim.
    pub(crate) writer: Option<(RunId, Attempt)>,
}

/// What the inbox says of a run.
pub(crate) struct Inbox {
    /// Its session.
    pub(crate) session: SessionId,
    /// Fingerprint of its request.
    pub(crate) body: [u8; 16],
    /// Whether it has not ended.
    pub(crate) open: bool,
    /// The last attempt that claimed.
    pub(crate) attempt: Attempt,
    /// When it was accepted.
    pub(crate) accepted_at: Wall,
    /// When the last attempt claimed.
    pub(crate) claimed_at: Option<Wall>,
    /// The run in whose turn it was taken along.
    pub(crate) along: Option<RunId>,
    /// Whether its message is still in the inbox.
    pub(crate) has_message: bool,
}

/// A row to append to a transcript.
pub(crate) struct NewRow<'a> {
    /// The session and its generation.
    pub(crate) to: (SessionId, Generation),
    /// Who speaks.
    pub(crate) role: Role,
    /// How complete it is.
    pub(crate) mark: RowMark,
    /// The run that the row belongs to.
    pub(crate) run: RunId,
    /// The run whose claim or end writes it.
    pub(crate) turn: RunId,
    /// When.
    pub(crate) at: Wall,
    /// What.
    pub(crate) text: &'a str,
}

impl Work<'_> {
    /// Whether an order under this lease may write.
    pub(crate) fn owns(&self, epoch: Epoch) -> bool {
        epoch == self.owner && self.own == self.owner
    }

    /// A session's row, if it has one.
    pub(crate) fn session(&self, session: SessionId) -> Step<Option<Session>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT generation, writer_run, writer_attempt FROM sessions WHERE session = ?1",
        )?;
        let row = statement.query_row([session.0], |row| {
            let run: Option<[u8; 16]> = row.get(1)?;
            let attempt: Option<u32> = row.get(2)?;
            Ok(Session {
                generation: Generation(codec::from_sql(row.get(0)?)),
                writer: run.map(RunId).zip(attempt.map(Attempt)),
            })
        });
        Ok(row.optional()?)
    }

    /// A run's inbox row, if it was accepted.
    pub(crate) fn inbox(&self, run: RunId) -> Step<Option<Inbox>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT session, body, state = 'open', attempt, accepted_at, claimed_at, along,
                    message IS NOT NULL
             FROM inbox WHERE run = ?1",
        )?;
        let row = statement.query_row([run.0], |row| {
            Ok(Inbox {
                session: SessionId(row.get(0)?),
                body: row.get(1)?,
                open: row.get(2)?,
                attempt: Attempt(row.get(3)?),
                accepted_at: wall(row, 4)?,
                claimed_at: row
                    .get::<_, Option<i64>>(5)?
                    .map(|at| Wall(codec::from_sql(at))),
                along: row.get::<_, Option<[u8; 16]>>(6)?.map(RunId),
                has_message: row.get(7)?,
            })
        });
        Ok(row.optional()?)
    }

    /// Whether the fence is that of the session's active writer, and its run open.
    pub(crate) fn is_writer(&self, fence: &Fence) -> Step<bool> {
        let mut statement = self.sql.prepare_cached(
            "SELECT 1 FROM sessions s JOIN inbox i ON i.run = s.writer_run
             WHERE s.session = ?1 AND s.generation = ?2 AND s.writer_run = ?3
               AND s.writer_attempt = ?4 AND i.state = 'open'",
        )?;
        let holds = statement.exists(params![
            fence.session.0,
            codec::to_sql(fence.generation.0),
            fence.run.0,
            fence.attempt.0
        ])?;
        Ok(holds)
    }

    /// Notes that a run was at work until now. A wall clock that goes back takes nothing back.
    pub(crate) fn note_work(&self, run: RunId, at: Wall) -> Step<()> {
        self.sql
            .prepare_cached("UPDATE inbox SET saved_at = max(saved_at, ?2) WHERE run = ?1")?
            .execute(params![run.0, codec::to_sql(at.0)])?;
        Ok(())
    }

    /// Appends a row to a transcript, under the next number.
    pub(crate) fn append(&self, row: &NewRow<'_>) -> Step<()> {
        self.sql
            .prepare_cached(
                "INSERT INTO transcript (session, generation, seq, role, mark, run, turn, at, text)
                 VALUES (?1, ?2,
                         (SELECT coalesce(max(seq), 0) + 1 FROM transcript
                          WHERE session = ?1 AND generation = ?2),
                         ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                row.to.0.0,
                codec::to_sql(row.to.1.0),
                codec::role_to_sql(row.role),
                codec::mark_to_sql(row.mark),
                row.run.0,
                row.turn.0,
                codec::to_sql(row.at.0),
                row.text,
            ])?;
        Ok(())
    }

    /// What has streamed of a run's reply and was saved. Taken: the pieces are gone.
    fn take_partial(&self, run: RunId) -> Step<String> {
        let mut text = String::new();
        let mut statement = self
            .sql
            .prepare_cached("SELECT text FROM partial WHERE run = ?1 ORDER BY attempt, start")?;
        let mut rows = statement.query([run.0])?;
        while let Some(row) = rows.next()? {
            text.push_str(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
        }
        self.drop_partial(run)?;
        Ok(text)
    }

    /// Keeps what an attempt left that nobody can finish any more. It answers for nothing.
    pub(crate) fn keep_interrupted(&self, fence: &Fence, at: Wall) -> Step<()> {
        let to = (fence.session, fence.generation);
        self.keep_partial(to, fence.run, RowMark::Interrupted, at)?;
        Ok(())
    }

    /// The end of a run that another order cuts off, with what had arrived as its reply. It is
    /// for the caller to write it.
    pub(crate) fn cut(
        &self,
        to: (SessionId, Generation),
        run: RunId,
        inbox: &Inbox,
        outcome: Outcome,
        at: Wall,
    ) -> Step<Terminal> {
        let reply = match self.keep_partial(to, run, RowMark::Partial, at)? {
            0 => Reply::Empty,
            bytes => Reply::Text { bytes },
        };
        // Wall clocks may jump; a run's times do not (I4).
        let started_at = inbox.claimed_at.map(|at| at.max(inbox.accepted_at));
        Ok(Terminal {
            run,
            session: to.0,
            outcome,
            accepted_at: inbox.accepted_at,
            started_at,
            ended_at: at.max(started_at.unwrap_or(inbox.accepted_at)),
            attempt: inbox.attempt,
            reply,
            detail: false,
            turn: None,
        })
    }

    /// Makes what a run's attempts left a row, if they left anything. How many bytes it has.
    fn keep_partial(
        &self,
        to: (SessionId, Generation),
        run: RunId,
        mark: RowMark,
        at: Wall,
    ) -> Step<u64> {
        let text = self.take_partial(run)?;
        if !text.is_empty() {
            self.append(&NewRow {
                to,
                role: Role::Assistant,
                mark,
                run,
                turn: run,
                at,
                text: &text,
            })?;
        }
        Ok(text.len() as u64)
    }

    /// Removes the saved pieces of a run's reply.
    pub(crate) fn drop_partial(&self, run: RunId) -> Step<()> {
        self.sql
            .prepare_cached("DELETE FROM partial WHERE run = ?1")?
            .execute([run.0])?;
        Ok(())
    }

    /// Ends a run: its inbox state and its receipt, and with it all that was taken along in
    /// its turn. The one door to an end (law 6). Gives the ends of the latter.
    pub(crate) fn end(&self, terminal: &Terminal, detail: Option<&str>) -> Step<Vec<Terminal>> {
        self.end_alone(terminal, detail)?;
        let mut statement = self.sql.prepare_cached(
            "SELECT run, accepted_at FROM inbox WHERE along = ?1 AND state = 'open'
             ORDER BY ordinal",
        )?;
        let along = statement
            .query_map([terminal.run.0], |row| {
                Ok(terminal.along(RunId(row.get(0)?), wall(row, 1)?))
            })?
            .collect::<Result<Vec<_>, _>>()?;
        for end in &along {
            // What the provider said is kept once, with the turn.
            self.end_alone(end, None)?;
        }
        Ok(along)
    }

    fn end_alone(&self, terminal: &Terminal, detail: Option<&str>) -> Step<()> {
        self.sql
            .prepare_cached(
                "INSERT INTO receipts (run, reason, ended_at, encoding, terminal, detail)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                terminal.run.0,
                codec::reason(&terminal.outcome),
                codec::to_sql(terminal.ended_at.0),
                codec::TERMINAL_ENCODING,
                codec::terminal_to_sql(terminal)?,
                detail,
            ])?;
        let dropped = match terminal.outcome {
            Outcome::Dropped { by } => Some(queue::drop_to_sql(by)),
            _ => None,
        };
        self.sql
            .prepare_cached(
                "UPDATE inbox SET state = 'ended',
                                  dropped = CASE WHEN message IS NOT NULL THEN ?2 END
                 WHERE run = ?1 AND state = 'open'",
            )?
            .execute(params![terminal.run.0, dropped])?;
        Ok(())
    }

    /// Notes that a session was written. A wall clock that goes back does not take it back.
    pub(crate) fn touch(&self, session: SessionId, at: Wall) -> Step<()> {
        self.sql
            .prepare_cached(
                "UPDATE sessions SET updated_at = max(updated_at, ?2) WHERE session = ?1",
            )?
            .execute(params![session.0, codec::to_sql(at.0)])?;
        Ok(())
    }

    /// Notes that a session was written, and gives it its row if it has none.
    pub(crate) fn touch_or_insert(
        &self,
        session: SessionId,
        session_key: &str,
        generation: Generation,
        at: Wall,
    ) -> Step<()> {
        self.sql
            .prepare_cached(
                "INSERT INTO sessions (session, session_key, generation, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?4)
                 ON CONFLICT (session) DO UPDATE SET updated_at = max(updated_at, ?4)",
            )?
            .execute(params![
                session.0,
                session_key,
                codec::to_sql(generation.0),
                codec::to_sql(at.0)
            ])?;
        Ok(())
    }

    /// How a run ended, with the texts that its end left: those of its turn, if one took it
    /// along.
    pub(crate) fn receipt(&self, run: RunId) -> Step<Option<(Terminal, StoredText)>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT r.encoding, r.terminal, o.detail, t.text, h.run_key
             FROM receipts r
             JOIN inbox i ON i.run = r.run
             JOIN receipts o ON o.run = coalesce(i.along, i.run)
             LEFT JOIN inbox h ON h.run = i.along
             LEFT JOIN transcript t ON t.run = o.run AND t.role = 'assistant'
                                   AND t.mark IN ('whole', 'partial')
             WHERE r.run = ?1",
        )?;
        let row = statement.query_row([run.0], |row| {
            let terminal: (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            Ok((
                terminal,
                StoredText {
                    detail: row.get(2)?,
                    reply: row.get(3)?,
                    turn_key: row.get(4)?,
                },
            ))
        });
        match row.optional()? {
            None => Ok(None),
            Some(((encoding, bytes), text)) => {
                Ok(Some((codec::terminal_from_sql(encoding, &bytes)?, text)))
            }
        }
    }
}

/// A wall time in a column.
pub(crate) fn wall(row: &Row<'_>, column: usize) -> rusqlite::Result<Wall> {
    Ok(Wall(codec::from_sql(row.get(column)?)))
}
