//! Claiming the writer: from this row on, one attempt of one run writes to a session (R51).
//!
//! The same transaction settles what the claim makes untrue: a previous writer without an
//! end is superseded, and what an earlier attempt of the same run left of its reply becomes
//! a row marked interrupted. Both rows are written before the writer changes (I20, I21).

use rusqlite::params;
use tidegate_core::{
    Attempt, Claim, ClaimOrder, ClaimReport, Epoch, Fence, Outcome, Reply, RunId, Terminal, Wall,
};
use tidegate_driver::{Role, RowMark};

use crate::codec;
use crate::fault::Step;
use crate::rows::{NewRow, Work};

impl Work<'_> {
    /// Makes an attempt the writer, if its fence holds.
    pub(crate) fn claim(
        &self,
        fence: &Fence,
        epoch: Epoch,
        order: &ClaimOrder,
    ) -> Step<ClaimReport> {
        if !self.owns(epoch) {
            return Ok(ClaimReport::NotOwner);
        }
        Ok(match self.claim_fenced(fence, order)? {
            Some(claim) => ClaimReport::Committed(claim),
            None => ClaimReport::Fenced,
        })
    }

    /// The claim under a lease that holds; `None` if the fence does not.
    pub(crate) fn claim_fenced(&self, fence: &Fence, order: &ClaimOrder) -> Step<Option<Claim>> {
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
            Some((previous, attempt)) if previous != fence.run => {
                self.supersede(previous, attempt, fence, order.at)?
            }
            _ => None,
        };
        if run.attempt == Attempt(0) {
            self.bind_message(fence, order.at)?;
        } else {
            self.keep_interrupted(fence, order.at)?;
        }
        self.set_writer(fence, order)?;
        Ok(Some(Claim { superseded }))
    }

    /// Ends the previous writer if it has not ended, and tells its receipt: the core and the
    /// store say the same of it (P40). What it had streamed is kept.
    fn supersede(
        &self,
        previous: RunId,
        attempt: Attempt,
        fence: &Fence,
        at: Wall,
    ) -> Step<Option<Terminal>> {
        let Some(run) = self.inbox(previous)?.filter(|run| run.open) else {
            return Ok(None);
        };
        let text = self.take_partial(previous)?;
        if !text.is_empty() {
            self.append(&NewRow {
                to: (fence.session, fence.generation),
                role: Role::Assistant,
                mark: RowMark::Partial,
                run: previous,
                at,
                text: &text,
            })?;
        }
        let reply = match text.len() as u64 {
            0 => Reply::Empty,
            bytes => Reply::Text { bytes },
        };
        // Wall clocks may jump; a run's times do not (I4).
        let started_at = run.claimed_at.map(|at| at.max(run.accepted_at));
        let terminal = Terminal {
            run: previous,
            session: fence.session,
            outcome: Outcome::Superseded,
            accepted_at: run.accepted_at,
            started_at,
            ended_at: at.max(started_at.unwrap_or(run.accepted_at)),
            attempt,
            reply,
            detail: false,
        };
        self.end(&terminal, None)?;
        Ok(Some(terminal))
    }

    /// Moves the run's message from the inbox to the transcript. Only a run that never
    /// claimed holds one there, so it happens once (I26).
    fn bind_message(&self, fence: &Fence, at: Wall) -> Step<()> {
        let message: String = self
            .sql
            .prepare_cached("SELECT message FROM inbox WHERE run = ?1")?
            .query_row([fence.run.0], |row| row.get(0))?;
        self.append(&NewRow {
            to: (fence.session, fence.generation),
            role: Role::User,
            mark: RowMark::Whole,
            run: fence.run,
            at,
            text: &message,
        })
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
