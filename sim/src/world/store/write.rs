//! What the store's transactions write: acceptances, claims, ends, resets.
//!
//! Owns the rules of one transaction each. What is written is noted in its order.

use tidegate_core::{
    Accept, AcceptReport, Attempt, CallResult, Claim, ClaimOrder, Fence, Generation, Outcome,
    Reply, ResetReport, RunId, SessionId, SettleReport, StopReason, Terminal, Wall,
};

use super::{RowKind, Store, StoredCalls, StoredRun, Wrote};

impl Store {
    pub(super) fn accept(&mut self, accept: &Accept) -> AcceptReport {
        if let Some(known) = self.runs.get(&accept.run) {
            return if known.body == accept.body && known.session == accept.session {
                AcceptReport::Duplicate {
                    terminal: known.terminal,
                }
            } else {
                AcceptReport::Conflict
            };
        }
        if accept.generation != self.generation(accept.session) {
            return AcceptReport::NotOwner;
        }
        self.insert(accept)
    }

    pub(super) fn insert(&mut self, accept: &Accept) -> AcceptReport {
        self.unsynced.clear();
        self.runs.insert(
            accept.run,
            StoredRun {
                session: accept.session,
                generation: accept.generation,
                turn: accept.turn,
                lane: accept.lane,
                priority: accept.priority,
                along: None,
                body: accept.body,
                budget: accept.budget,
                accepted_at: accept.at,
                attempt: Attempt(0),
                left_ms: None,
                claimed_at: Wall(0),
                seen_at: Wall(0),
                bound: false,
                saved: 0,
                calls: StoredCalls::default(),
                terminal: None,
            },
        );
        self.sessions
            .entry(accept.session)
            .or_default()
            .inbox
            .push(accept.run);
        self.wrote.push(Wrote::Inbox {
            session: accept.session,
            run: accept.run,
        });
        let claim = accept.claim.as_ref().and_then(|claim| {
            let fence = Fence {
                session: accept.session,
                generation: accept.generation,
                run: accept.run,
                attempt: claim.attempt,
            };
            self.claim(fence, claim)
        });
        AcceptReport::Committed { claim }
    }

    /// `None` if the fence does not hold.
    pub(super) fn claim(&mut self, fence: Fence, claim: &ClaimOrder) -> Option<Claim> {
        let row = self.runs.get(&fence.run)?;
        let holds = fence.generation == self.generation(fence.session)
            && row.session == fence.session
            && row.terminal.is_none()
            && row.attempt < fence.attempt;
        if !holds {
            return None;
        }
        self.unsynced.clear();
        let superseded = self
            .writer(fence.session)
            .filter(|&(writer, _)| writer != fence.run)
            .and_then(|(writer, _)| self.supersede(writer, fence, claim.at));
        self.close_calls(fence.run, &claim.results);
        self.wrote.push(Wrote::Claim { fence });
        let mut interrupt = false;
        if let Some(row) = self.runs.get_mut(&fence.run) {
            interrupt = std::mem::take(&mut row.saved) > 0;
            row.attempt = fence.attempt;
            row.left_ms = claim.left_ms;
            row.claimed_at = claim.at;
            row.seen_at = claim.at;
        }
        let mut dropped = Vec::new();
        if let Some(session) = self.sessions.get_mut(&fence.session) {
            session.writer = Some((fence.run, fence.attempt));
            dropped = std::mem::take(&mut session.dropped);
        }
        for run in dropped {
            self.write_row(run, RowKind::Dropped, fence);
        }
        self.bind(fence.run, fence);
        if interrupt {
            self.write_row(fence.run, RowKind::Interrupted, fence);
        }
        for &run in &claim.along {
            self.bind_along(run, fence);
        }
        Some(Claim { superseded })
    }

    /// Binds a message to the transcript, once.
    fn bind(&mut self, run: RunId, fence: Fence) {
        let row = self.runs.get_mut(&run);
        if row.is_some_and(|row| !std::mem::replace(&mut row.bound, true)) {
            self.write_row(run, RowKind::Message, fence);
        }
    }

    fn bind_along(&mut self, run: RunId, fence: Fence) {
        let Some(row) = self.runs.get_mut(&run) else {
            return;
        };
        let free = row.along.is_none() && row.attempt == Attempt(0);
        if row.terminal.is_none() && free && row.session == fence.session {
            row.along = Some(fence.run);
            let turn = fence.run;
            self.wrote.push(Wrote::Along { run, turn });
            self.bind(run, fence);
        }
    }

    pub(super) fn write_row(&mut self, run: RunId, kind: RowKind, fence: Fence) {
        let session = self.sessions.entry(fence.session).or_default();
        session.rows += 1;
        self.wrote.push(Wrote::Row {
            run,
            kind,
            fence,
            number: session.rows,
        });
    }

    /// Records a previous writer that has not ended as superseded.
    fn supersede(&mut self, writer: RunId, by: Fence, at: Wall) -> Option<Terminal> {
        let row = self.runs.get(&writer)?;
        if row.terminal.is_some() {
            return None;
        }
        let terminal = row.cut_off(writer, Outcome::Superseded, at);
        self.close_calls(writer, &[]);
        self.receipts(terminal, by);
        Some(terminal)
    }

    /// The receipts of a run and of all that it took along.
    fn receipts(&mut self, terminal: Terminal, by: Fence) -> Vec<Terminal> {
        let along = self.along_of(terminal.run);
        let mut ends = vec![terminal];
        for run in along {
            if let Some(row) = self.runs.get(&run) {
                ends.push(terminal.along(run, row.accepted_at));
            }
        }
        for &terminal in &ends {
            if let Some(row) = self.runs.get_mut(&terminal.run) {
                row.terminal = Some(terminal);
            }
            self.wrote.push(Wrote::Receipt { terminal, by });
        }
        ends
    }

    /// The open messages that a run took along.
    fn along_of(&self, turn: RunId) -> Vec<RunId> {
        let Some(row) = self.runs.get(&turn) else {
            return Vec::new();
        };
        let open = self.open_runs_of(row.session);
        let along = |run: &RunId| self.runs.get(run).and_then(|row| row.along) == Some(turn);
        open.filter(along).collect()
    }

    /// Begins a session's next generation: whatever is open ends as cancelled.
    pub(super) fn reset(
        &mut self,
        session: SessionId,
        generation: Generation,
        at: Wall,
    ) -> ResetReport {
        if generation != self.generation(session) {
            return ResetReport::NotOwner;
        }
        self.unsynced.clear();
        if let Some((writer, _)) = self.writer(session) {
            self.close_calls(writer, &[]);
        }
        let mut ended = Vec::new();
        let open: Vec<RunId> = self.open_runs_of(session).collect();
        for &run in &open {
            let Some(row) = self.runs.get(&run).filter(|row| row.terminal.is_none()) else {
                continue; // with the run whose turn took it along
            };
            let fence = Fence {
                session,
                generation,
                run,
                attempt: row.attempt,
            };
            let outcome = Outcome::Cancelled {
                by: StopReason::Reset,
                provider_started: row.attempt > Attempt(0),
            };
            let terminal = row.cut_off(run, outcome, at);
            if terminal.reply != Reply::Empty {
                self.write_row(run, RowKind::Reply, fence);
            }
            ended.extend(self.receipts(terminal, fence));
        }
        ended.sort_by_key(|end| open.iter().position(|run| *run == end.run));
        let next = Generation(generation.0 + 1);
        let row = self.sessions.entry(session).or_default();
        let dropped = std::mem::take(&mut row.dropped);
        for run in dropped {
            let fence = Fence {
                session,
                generation,
                run,
                attempt: Attempt(0),
            };
            self.write_row(run, RowKind::Dropped, fence);
        }
        let row = self.sessions.entry(session).or_default();
        (row.generation, row.writer, row.rows) = (next, None, 0);
        self.wrote.push(Wrote::Generation {
            session,
            generation: next,
        });
        ResetReport::Committed {
            generation: next,
            ended,
        }
    }

    pub(super) fn save(&mut self, fence: Fence, to: u64, at: Wall) {
        if self.writer(fence.session) != Some((fence.run, fence.attempt)) {
            return;
        }
        let Some(row) = self.runs.get_mut(&fence.run) else {
            return;
        };
        if row.terminal.is_none() {
            self.unsynced.push((fence.run, row.saved, row.seen_at));
            row.saved = to;
            row.seen_at = row.seen_at.max(at);
            self.wrote.push(Wrote::Saved { fence });
        }
    }

    /// The store trusts the fence: it compares the fence's run and attempt with the claim.
    pub(crate) fn settle(
        &mut self,
        fence: Fence,
        terminal: Terminal,
        results: &[CallResult],
    ) -> SettleReport {
        let writes = self.writer(fence.session) == Some((fence.run, fence.attempt));
        let Some(fenced) = self.runs.get(&fence.run) else {
            return SettleReport::Fenced;
        };
        let holds = fenced.terminal.is_none()
            && fence.generation == self.generation(fence.session)
            && if fence.attempt == Attempt(0) {
                fenced.attempt == Attempt(0)
            } else {
                writes
            };
        if !holds {
            return SettleReport::Fenced;
        }
        self.unsynced.clear();
        self.close_calls(fence.run, results);
        if terminal.reply != Reply::Empty {
            self.write_row(terminal.run, RowKind::Reply, fence);
        }
        if matches!(terminal.outcome, Outcome::Dropped { .. }) {
            let session = self.sessions.entry(fence.session).or_default();
            session.dropped.push(terminal.run);
        }
        self.receipts(terminal, fence);
        if let Some(row) = self.runs.get_mut(&terminal.run) {
            row.saved = 0;
        }
        SettleReport::Committed
    }
}

impl StoredRun {
    /// The end of a run that did not tell one: what had been saved of its reply is kept.
    fn cut_off(&self, run: RunId, outcome: Outcome, at: Wall) -> Terminal {
        let begun = self.attempt > Attempt(0);
        let started = self.claimed_at.max(self.accepted_at);
        Terminal {
            run,
            session: self.session,
            outcome,
            accepted_at: self.accepted_at,
            started_at: begun.then_some(started),
            ended_at: at.max(started),
            attempt: self.attempt,
            reply: match self.saved {
                0 => Reply::Empty,
                bytes => Reply::Text { bytes },
            },
            detail: false,
            turn: None,
        }
    }
}
