//! A session as a whole: its next generation, and how it queues.
//!
//! A reset is one transaction: it ends every open run, keeps what had arrived of their
//! replies in the generation that ends, and frees the writer, so that nothing of the old
//! generation passes a fence any more (P18, I12).

use rusqlite::params;
use tidegate_core::{
    Attempt, ConfigureReport, Epoch, Generation, Outcome, QueueOverride, ResetReport, RunId,
    SessionId, StopReason, Terminal, Wall,
};
use tidegate_driver::{StoreDone, StoreOp};

use crate::accept::FIRST_GENERATION;
use crate::codec;
use crate::fault::Step;
use crate::queue;
use crate::rows::{Inbox, Work};

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
        if let Some((writer, _)) = self.session(session)?.and_then(|found| found.writer) {
            // First of all rows: a result stands directly behind the answer that asks.
            self.close_calls(writer, at, &[], &[])?;
        }
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
        for (run, inbox) in &open {
            let in_a_turn = open.iter().any(|(turn, _)| Some(*turn) == inbox.along);
            if !in_a_turn {
                let outcome = Outcome::Cancelled {
                    by: StopReason::Reset,
                    provider_started: inbox.attempt > Attempt(0),
                };
                let terminal = self.cut((session, generation), *run, inbox, outcome, at)?;
                let along = self.end(&terminal, None)?;
                ended.push(terminal);
                ended.extend(along);
            }
        }
        ended.sort_by_key(|end| open.iter().position(|(run, _)| *run == end.run));
        Ok(ended)
    }

    fn open_in(&self, session: SessionId) -> Step<Vec<(RunId, Inbox)>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT run FROM inbox WHERE session = ?1 AND state = 'open' ORDER BY ordinal",
        )?;
        let mut rows = statement.query([session.0])?;
        let mut open = Vec::new();
        while let Some(row) = rows.next()? {
            let run = RunId(row.get(0)?);
            open.extend(self.inbox(run)?.map(|inbox| (run, inbox)));
        }
        Ok(open)
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
