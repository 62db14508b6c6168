//! Claiming the writer: from this row on, one attempt of one run writes to a session (R51).
//!
//! The same transaction settles what the claim makes untrue: a previous writer without an
//! end is superseded, the calls that an earlier attempt asked for get their results, and what
//! it left of its reply, by a crash or a call that failed, becomes a row marked interrupted. It
//! also moves messages to the transcript: what gave way since the last claim, the run's own,
//! and what its turn takes along. All rows are written before the writer changes (I20, I21).

use rusqlite::params;
use tidegate_core::{
    Attempt, Claim, ClaimOrder, ClaimReport, Epoch, Fence, Generation, Outcome, RunId, SessionId,
    Terminal, Wall,
};
use tidegate_driver::{Role, RowMark};

use crate::codec;
use crate::fault::{Fault, Step};
use crate::queue;
use crate::rows::{NewRow, Work};

impl Work<'_> {
    /// Makes an attempt the writer, if its fence holds.
    pub(crate) fn claim(
        &self,
        fence: &Fence,
        epoch: Epoch,
        order: &ClaimOrder,
        outputs: &[String],
    ) -> Step<ClaimReport> {
        if !self.owns(epoch) {
            return Ok(ClaimReport::NotOwner);
        }
        Ok(match self.claim_fenced(fence, order, outputs)? {
            Some(claim) => ClaimReport::Committed(claim),
            None => ClaimReport::Fenced,
        })
    }

    /// The claim under a lease that holds; `None` if the fence does not.
    pub(crate) fn claim_fenced(
        &self,
        fence: &Fence,
        order: &ClaimOrder,
        outputs: &[String],
    ) -> Step<Option<Claim>> {
        let Some(session) = self.session(fence.session)? else {
            return Ok(None);
        };
        let Some(run) = self.inbox(fence.run)? else {
            return Ok(None);
        };
        let holds = session.generation == fence.generation
            && run.session == fence.session
            && run.open
            && run.attempt < order.attempt
            && fence.attempt == order.attempt;
        if !holds {
            return Ok(None);
        }
        let superseded = match session.writer {
            Some((previous, _)) if previous != fence.run => {
                self.supersede(previous, fence, order.at)?
            }
            _ => None,
        };
        if run.attempt > Attempt(0) {
            self.close_calls(fence.run, order.at, &order.results, outputs)?;
        } else if !order.results.is_empty() || !outputs.is_empty() {
            return Err(Fault::Order("a run's first claim has no results of calls"));
        }
        let to = (fence.session, fence.generation);
        self.move_dropped(to, Some(fence.run), order.at)?;
        if run.has_message {
            self.bind_message(fence, fence.run, order.at)?;
        } else {
            self.keep_interrupted(fence, order.at)?;
        }
        self.bind_along(fence, order)?;
        self.set_writer(fence, order)?;
        Ok(Some(Claim { superseded }))
    }

    /// Ends the previous writer if it has not ended, and tells its receipt: the core and the
    /// store say the same of it (P40). What it had streamed is kept.
    fn supersede(&self, previous: RunId, fence: &Fence, at: Wall) -> Step<Option<Terminal>> {
        let Some(inbox) = self.inbox(previous)?.filter(|inbox| inbox.open) else {
            return Ok(None);
        };
        self.close_calls(previous, at, &[], &[])?;
        let to = (fence.session, fence.generation);
        let terminal = self.cut(to, previous, &inbox, Outcome::Superseded, at)?;
        self.end(&terminal, None)?;
        Ok(Some(terminal))
    }

    /// Moves a run's message from the inbox to the transcript. It lies in one of them only,
    /// so it happens once (I26).
    fn bind_message(&self, fence: &Fence, run: RunId, at: Wall) -> Step<()> {
        let message: String = self
            .sql
            .prepare_cached("SELECT message FROM inbox WHERE run = ?1")?
            .query_row([run.0], |row| row.get(0))?;
        self.append(&NewRow {
            to: (fence.session, fence.generation),
            role: Role::User,
            mark: RowMark::Whole,
            run,
            turn: fence.run,
            at,
            text: &message,
        })
    }

    /// Binds the messages that the turn takes along behind its own, each once, in their order.
    fn bind_along(&self, fence: &Fence, order: &ClaimOrder) -> Step<()> {
        for &run in &order.along {
            let inbox = self.inbox(run)?;
            let inbox = inbox.filter(|inbox| inbox.open && inbox.session == fence.session);
            match inbox {
                Some(inbox) if inbox.along == Some(fence.run) => continue,
                Some(inbox) if inbox.has_message && run != fence.run => {}
                _ => return Err(Fault::Order("a message can't be taken along in this turn")),
            }
            self.bind_message(fence, run, order.at)?;
            self.sql
                .prepare_cached("UPDATE inbox SET along = ?2, message = NULL WHERE run = ?1")?
                .execute(params![run.0, fence.run.0])?;
        }
        Ok(())
    }

    /// Moves what gave way since the last claim to the transcript, marked and in the order of
    /// acceptance (spec 3.3). The rows belong to the claim of `turn`, if it is one.
    pub(crate) fn move_dropped(
        &self,
        to: (SessionId, Generation),
        turn: Option<RunId>,
        at: Wall,
    ) -> Step<()> {
        let mut statement = self.sql.prepare_cached(
            "SELECT run, message, dropped FROM inbox
             WHERE session = ?1 AND dropped IS NOT NULL AND message IS NOT NULL
             ORDER BY ordinal",
        )?;
        let dropped = statement
            .query_map([to.0.0], |row| {
                Ok((RunId(row.get(0)?), row.get(1)?, row.get(2)?))
            })?
            .collect::<Result<Vec<(RunId, String, String)>, _>>()?;
        for (run, text, by) in dropped {
            self.append(&NewRow {
                to,
                role: Role::User,
                mark: RowMark::Dropped {
                    told: queue::is_told(&by)?,
                },
                run,
                turn: turn.unwrap_or(run),
                at,
                text: &text,
            })?;
            self.sql
                .prepare_cached("UPDATE inbox SET message = NULL WHERE run = ?1")?
                .execute([run.0])?;
        }
        Ok(())
    }

    fn set_writer(&self, fence: &Fence, order: &ClaimOrder) -> Step<()> {
        let at = codec::to_sql(order.at.0);
        self.sql
            .prepare_cached(
                "UPDATE inbox SET attempt = ?2, left_ms = ?3, claimed_at = ?4, saved_at = ?4,
                                  message = NULL
                 WHERE run = ?1",
            )?
            .execute(params![
                fence.run.0,
                order.attempt.0,
                order.left_ms.map(codec::to_sql),
                at
            ])?;
        self.sql
            .prepare_cached(
                "UPDATE sessions SET writer_run = ?2, writer_attempt = ?3 WHERE session = ?1",
            )?
            .execute(params![fence.session.0, fence.run.0, order.attempt.0])?;
        self.touch(fence.session, order.at)
    }
}
