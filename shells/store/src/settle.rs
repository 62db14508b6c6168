//! Settling a run: the rows of its end, once, under the fence (I22).

use tidegate_core::{Attempt, CallResult, Epoch, Fence, Outcome, SettleReport, Terminal};
use tidegate_driver::{Role, RowMark, StoredText};

use crate::fault::{Fault, Step};
use crate::rows::{NewRow, Work};

impl Work<'_> {
    /// Writes the results of open calls, the reply's transcript row, the inbox state and the
    /// receipt, and the latter two for all that was taken along, if the fence holds; else
    /// nothing.
    pub(crate) fn settle(
        &self,
        fence: &Fence,
        epoch: Epoch,
        terminal: &Terminal,
        text: &StoredText,
        (results, outputs): (&[CallResult], &[String]),
    ) -> Step<SettleReport> {
        if !self.owns(epoch) {
            return Ok(SettleReport::NotOwner);
        }
        // An end may speak of nobody but the writer that its fence names.
        let same = terminal.run == fence.run && terminal.session == fence.session;
        let reply = text.reply.as_deref().filter(|reply| !reply.is_empty());
        if !same || !self.may_settle(fence, reply.is_some())? {
            return Ok(SettleReport::Fenced);
        }
        if fence.attempt > Attempt(0) {
            self.close_calls(fence.run, terminal.ended_at, results, outputs)?;
        } else if !results.is_empty() || !outputs.is_empty() {
            return Err(Fault::Order("a run that never claimed has no calls"));
        }
        match reply {
            Some(reply) => self.append_reply(fence, terminal, reply)?,
            // The attempt that streamed is gone with its process, and none followed it.
            None => self.keep_interrupted(fence, terminal.ended_at)?,
        }
        self.end(terminal, text.detail.as_deref())?;
        self.touch(fence.session, terminal.ended_at)?;
        Ok(SettleReport::Committed)
    }

    /// The reply as it ended: the answer if the run completed, else what had arrived.
    fn append_reply(&self, fence: &Fence, terminal: &Terminal, reply: &str) -> Step<()> {
        let mark = match terminal.outcome {
            Outcome::Completed => RowMark::Whole,
            _ => RowMark::Partial,
        };
        self.drop_partial(fence.run)?;
        self.append(&NewRow {
            to: (fence.session, fence.generation),
            role: Role::Assistant,
            mark,
            run: fence.run,
            turn: fence.run,
            at: terminal.ended_at,
            text: reply,
        })
    }

    /// A run that claimed ends as the active writer. One that never did ends in its queue,
    /// and has no reply: a row needs a claim (P07). One that was taken along ends with its
    /// turn and not by itself.
    fn may_settle(&self, fence: &Fence, has_reply: bool) -> Step<bool> {
        if fence.attempt > Attempt(0) {
            return self.is_writer(fence);
        }
        let Some(session) = self.session(fence.session)? else {
            return Ok(false);
        };
        let Some(run) = self.inbox(fence.run)? else {
            return Ok(false);
        };
        Ok(session.generation == fence.generation
            && run.session == fence.session
            && run.open
            && run.attempt == Attempt(0)
            && run.along.is_none()
            && !has_reply)
    }
}
