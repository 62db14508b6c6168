//! A session as a whole: its next generation, and how it queues.
//!
//! A reset is one transaction: it ends every open run, keeps what had arrived of their
//! replies in the generation that ends, and frees the writer, so that nothing of the old
//! generation passes a fence any more (P18, I12).

use rusqlite::params;
use tidegate_core::{
    Attempt, ConfigureReport, Epoch, Generation, Outcome, QueueOverride, Reply, ResetReport, RunId,
    SessionId, StopReason, Terminal, Wall,
};
use tidegate_driver::{Role, RowMark, StoreDone, StoreOp};

use crate::accept::FIRST_GENERATION;
use crate::codec;
use crate::fault::Step;
use crate::queue;
use crate::rows::{NewRow, Work, wall};

/// An open run of the session.
struct Open {
    run: RunId,
    attempt: Attempt,
    accepted_at: Wall,
    claimed_at: Option<Wall>,
    along: Option<RunId>,
}

impl Work<'_> {
    /// A reset or a change of settings.
    pub(crate) fn change_session(&self, op: &StoreOp) -> Step<StoreDone> {
        match op {
            StoreOp::Reset {
                session,
                session_key,
                generation,
                epoch,
                at,
            } => {
                let holds = self.may_change(*session, *generation, *epoch)?;
                let report = match holds {
                    true => self.reset(*session, session_key, *generation, *at)?,
                    false => ResetReport::NotOwner,
                };
                Ok(StoreDone::WasReset(report))
            }
            StoreOp::Configure {
                session,
                session_key,
                generation,
                epoch,
                queue,
                at,
            } => {
                let report = match self.may_change(*session, *generation, *epoch)? {
                    true => {
                        self.touch_or_insert(*session, session_key, *generation, *at)?;
                        self.set_queue(*session, queue)?;
                        ConfigureReport::Committed
                    }
                    false => ConfigureReport::NotOwner,
                };
                Ok(StoreDone::Configured(report))
            }
            _ => Err(crate::fault::Fault::Order("no change of a session")),
        }
    }

    /// Whether the lease holds and covers this generation, as for an accept.
    fn may_change(&self, session: SessionId, generation: Generation, epoch: Epoch) -> Step<bool> {
        if !self.owns(epoch) {
            return Ok(false);
        }
        let found = match self.session(session)? {
            Some(session) => session.generation,
            None => FIRST_GENERATION,
        };
        Ok(found == generation)
    }

    fn reset(
        &self,
        session: SessionId,
        session_key: &str,
        generation: Generation,
        at: Wall,
    ) -> Step<ResetReport> {
        // What gave way before belongs to what ends; the next generation is not told of it.
        self.move_dropped((session, generation), None, at)?;
        let ended = self.end_all(session, generation, at)?;
        self.touch_or_insert(session, session_key, generation, at)?;
        let next = Generation(generation.0.saturating_add(1));
        self.sql
            .prepare_cached(
                "UPDATE sessions SET generation = ?2, writer_run = NULL, writer_attempt = NULL
                 WHERE session = ?1",
            )?
            .execute(params![session.0, codec::to_sql(next.0)])?;
        Ok(ResetReport::Committed {
            generation: next,
            ended,
        })
    }

    /// Ends every open run, in the order of acceptance; what was taken along ends with its
    /// turn. A message that never claimed stays in the inbox beside its receipt, as with any
    /// stop of a run that waits.
    fn end_all(&self, session: SessionId, generation: Generation, at: Wall) -> Step<Vec<Terminal>> {
        let open = self.open_in(session)?;
        let mut ended = Vec::with_capacity(open.len());
        for run in &open {
            let in_a_turn = open.iter().any(|turn| Some(turn.run) == run.along);
            if !in_a_turn {
                let terminal = self.end_by_reset(session, generation, run, at)?;
                let along = self.end(&terminal, None)?;
                ended.push(terminal);
                ended.extend(along);
            }
        }
        ended.sort_by_key(|end| open.iter().position(|run| run.run == end.run));
        Ok(ended)
    }

    fn end_by_reset(
        &self,
        session: SessionId,
        generation: Generation,
        run: &Open,
        at: Wall,
    ) -> Step<Terminal> {
        let text = self.take_partial(run.run)?;
        if !text.is_empty() {
            self.append(&NewRow {
                to: (session, generation),
                role: Role::Assistant,
                mark: RowMark::Partial,
                run: run.run,
                turn: run.run,
                at,
                text: &text,
            })?;
        }
        // Wall clocks may jump; a run's times do not (I4).
        let started_at = run.claimed_at.map(|at| at.max(run.accepted_at));
        Ok(Terminal {
            run: run.run,
            session,
            outcome: Outcome::Cancelled {
                by: StopReason::Reset,
                provider_started: run.attempt > Attempt(0),
            },
            accepted_at: run.accepted_at,
            started_at,
            ended_at: at.max(started_at.unwrap_or(run.accepted_at)),
            attempt: run.attempt,
            reply: match text.len() as u64 {
                0 => Reply::Empty,
                bytes => Reply::Text { bytes },
            },
            detail: false,
            turn: None,
        })
    }

    fn open_in(&self, session: SessionId) -> Step<Vec<Open>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT run, attempt, accepted_at, claimed_at, along FROM inbox
             WHERE session = ?1 AND state = 'open' ORDER BY ordinal",
        )?;
        let rows = statement.query_map([session.0], |row| {
            let claimed_at: Option<i64> = row.get(3)?;
            Ok(Open {
                run: RunId(row.get(0)?),
                attempt: Attempt(row.get(1)?),
                accepted_at: wall(row, 2)?,
                claimed_at: claimed_at.map(|at| Wall(codec::from_sql(at))),
                along: row.get::<_, Option<[u8; 16]>>(4)?.map(RunId),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn set_queue(&self, session: SessionId, own: &QueueOverride) -> Step<()> {
        self.sql
            .prepare_cached(
                "UPDATE sessions SET queue_mode = ?2, queue_debounce_ms = ?3, queue_cap = ?4,
                                     queue_drop = ?5
                 WHERE session = ?1",
            )?
            .execute(params![
                session.0,
                own.mode.map(queue::mode_to_sql),
                own.debounce_ms.map(codec::to_sql),
                own.cap,
                own.drop.map(queue::drop_to_sql),
            ])?;
        Ok(())
    }
}
