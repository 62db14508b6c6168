//! The launch checkpoint: durable before any of its calls starts (I34, law 12).
//!
//! The first of an attempt writes the answer that asks as a row of the transcript, with its
//! calls; a later one, or the same again, finds the row and only moves calls on. It never
//! takes one back, and never touches a call that has a result.

use rusqlite::params;
use tidegate_core::{Epoch, Fence, LaunchOrder, LaunchReport};
use tidegate_driver::{CallText, Role, RowMark};

use crate::calls::CallState;
use crate::codec;
use crate::fault::{Fault, Step};
use crate::rows::{NewRow, Work};

impl Work<'_> {
    /// Commits which calls wait for a person and which may start, if the fence is that of the
    /// session's writer.
    pub(crate) fn launch(
        &self,
        fence: &Fence,
        epoch: Epoch,
        order: &LaunchOrder,
        text: &str,
        calls: &[CallText],
    ) -> Step<LaunchReport> {
        if !self.owns(epoch) {
            return Ok(LaunchReport::NotOwner);
        }
        if !self.is_writer(fence)? {
            return Ok(LaunchReport::Fenced);
        }
        check(order, text, calls)?;
        match self.call_states(fence)? {
            states if states.is_empty() => self.ask(fence, order, text, calls)?,
            states => self.move_on(fence, order, &states)?,
        }
        self.touch(fence.session, order.at)?;
        Ok(LaunchReport::Committed)
    }

    /// The states of the attempt's calls, in their order; none before its first checkpoint.
    fn call_states(&self, fence: &Fence) -> Step<Vec<CallState>> {
        let mut statement = self.sql.prepare_cached(
            "SELECT state FROM calls WHERE run = ?1 AND attempt = ?2 ORDER BY call",
        )?;
        let mut rows = statement.query(params![fence.run.0, fence.attempt.0])?;
        let mut states = Vec::new();
        while let Some(row) = rows.next()? {
            let state: String = row.get(0)?;
            states.push(CallState::from_sql(&state)?);
        }
        Ok(states)
    }

    /// Writes the answer's row in place of the pieces that were saved of it, and its calls.
    fn ask(&self, fence: &Fence, order: &LaunchOrder, text: &str, calls: &[CallText]) -> Step<()> {
        self.drop_partial(fence.run)?;
        self.append(&NewRow {
            to: (fence.session, fence.generation),
            role: Role::Assistant,
            mark: RowMark::Calls,
            run: fence.run,
            turn: fence.run,
            at: order.at,
            text,
        })?;
        let seq: i64 = self
            .sql
            .prepare_cached("SELECT seq FROM transcript WHERE rowid = ?1")?
            .query_row([self.sql.last_insert_rowid()], |row| row.get(0))?;
        let mut insert = self.sql.prepare_cached(
            "INSERT INTO calls (session, generation, seq, call, run, attempt, id, name, arguments,
                                state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        for (call, text) in (0..order.calls).zip(calls) {
            let state = target(order, call).unwrap_or(CallState::Requested);
            insert.execute(params![
                fence.session.0,
                codec::to_sql(fence.generation.0),
                seq,
                call,
                fence.run.0,
                fence.attempt.0,
                text.id,
                text.name,
                text.arguments,
                state.to_sql(),
            ])?;
        }
        // The model was at work until now. What a later checkpoint waited for was a person,
        // and that is not charged (B-082, R164).
        self.note_work(fence.run, order.at)
    }

    fn move_on(&self, fence: &Fence, order: &LaunchOrder, states: &[CallState]) -> Step<()> {
        if states.len() != usize::from(order.calls) {
            return Err(Fault::Order("the answer asked for another number of calls"));
        }
        for (call, &state) in (0..order.calls).zip(states) {
            let to = match target(order, call) {
                None => continue,
                Some(to) if to == state => continue,
                Some(to) => to,
            };
            match (state, to) {
                (CallState::Requested, _) | (CallState::Asked, CallState::Launched) => {}
                _ => return Err(Fault::Order("a launched or ended call can't be moved on")),
            }
            self.sql
                .prepare_cached(
                    "UPDATE calls SET state = ?4 WHERE run = ?1 AND attempt = ?2 AND call = ?3",
                )?
                .execute(params![fence.run.0, fence.attempt.0, call, to.to_sql()])?;
        }
        Ok(())
    }
}

/// Where the checkpoint moves a call, if it does.
fn target(order: &LaunchOrder, call: u16) -> Option<CallState> {
    if order.start.contains(&call) {
        Some(CallState::Launched)
    } else if order.ask.contains(&call) {
        Some(CallState::Asked)
    } else {
        None
    }
}

/// Whether the order agrees with itself and with its texts.
fn check(order: &LaunchOrder, text: &str, calls: &[CallText]) -> Step<()> {
    if order.calls == 0 || calls.len() != usize::from(order.calls) {
        return Err(Fault::Order("a launch needs the text of each of its calls"));
    }
    if order.bytes != text.len() as u64 {
        return Err(Fault::Order("a launch has another text than it names"));
    }
    let ascends = |list: &[u16]| {
        list.is_sorted_by(|a, b| a < b) && list.last().is_none_or(|last| *last < order.calls)
    };
    let apart = order.start.iter().all(|call| !order.ask.contains(call));
    if !ascends(&order.start) || !ascends(&order.ask) || !apart {
        return Err(Fault::Order(
            "a launch names each of its calls at most once, ascending",
        ));
    }
    Ok(())
}
