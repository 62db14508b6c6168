//! A small model of the rules, kept in plain maps: what the store must say and hold.

use std::collections::BTreeMap;

use tidegate_core::{
    Accept, AcceptReport, Attempt, Budget, Claim, ClaimOrder, ClaimReport, Epoch, Fence,
    Fingerprint, Generation, LoadReport, LookupReport, OpenRun, Outcome, Reply, RunId, SessionId,
    SettleReport, Terminal, Wall,
};
use tidegate_driver::{
    Role, RowMark, RunNames, SessionRow, StoreDone, StoreOp, StoredText, TranscriptRow,
};

struct Run {
    ordinal: usize,
    session: SessionId,
    key: String,
    body: Fingerprint,
    budget: Option<Budget>,
    accepted_at: Wall,
    message: String,
    attempt: Attempt,
    left_ms: Option<u64>,
    claimed_at: Wall,
    saved_at: Wall,
    partial: String,
    end: Option<(Terminal, StoredText)>,
}

struct Session {
    ordinal: usize,
    key: String,
    created_at: Wall,
    updated_at: Wall,
    writer: Option<(RunId, Attempt)>,
    rows: Vec<TranscriptRow>,
}

/// The rules, one function an order.
#[derive(Default)]
pub(crate) struct Model {
    epoch: Epoch,
    runs: BTreeMap<RunId, Run>,
    sessions: BTreeMap<SessionId, Session>,
}

impl Model {
    /// The store was opened: nothing but its epoch changes.
    pub(crate) fn open(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    /// What comes of one operation.
    pub(crate) fn carry_out(&mut self, op: &StoreOp) -> StoreDone {
        match op {
            StoreOp::Load { session } => self.load(*session),
            StoreOp::Accept {
                accept,
                names,
                message,
            } => self.accept(accept, names, message),
            StoreOp::Claim {
                fence,
                epoch,
                claim,
            } => StoreDone::Claimed(if *epoch != self.epoch {
                ClaimReport::NotOwner
            } else {
                match self.claim(fence, claim) {
                    Some(claim) => ClaimReport::Committed(claim),
                    None => ClaimReport::Fenced,
                }
            }),
            StoreOp::Save {
                fence,
                epoch,
                from,
                text,
                at,
            } => {
                if *epoch == self.epoch && self.is_writer(fence) {
                    let run = self.runs.get_mut(&fence.run).expect("the writer is known");
                    if *from == run.partial.len() as u64 {
                        run.partial.push_str(text);
                    }
                    run.saved_at = run.saved_at.max(*at);
                    let kept = Some(run.partial.len() as u64);
                    return StoreDone::Saved { kept };
                }
                StoreDone::Saved { kept: None }
            }
            StoreOp::Settle {
                fence,
                epoch,
                terminal,
                text,
            } => StoreDone::Settled(self.settle(fence, *epoch, terminal, text)),
            StoreOp::Lookup { run } => self.lookup(*run),
            StoreOp::Transcript { session } => StoreDone::Transcript(Ok(self
                .sessions
                .get(session)
                .map(|session| session.rows.clone())
                .unwrap_or_default())),
            StoreOp::OpenSessions => StoreDone::OpenSessions(Ok(self.open_sessions())),
            StoreOp::Sessions { limit } => StoreDone::Sessions(Ok(self.list(*limit))),
        }
    }

    fn open_of(&self, session: SessionId) -> Vec<(&RunId, &Run)> {
        let mut open: Vec<_> = self
            .runs
            .iter()
            .filter(|(_, run)| run.session == session && run.end.is_none())
            .collect();
        open.sort_by_key(|(_, run)| run.ordinal);
        open
    }

    fn load(&self, session: SessionId) -> StoreDone {
        let runs = self.open_of(session);
        let open = runs
            .iter()
            .map(|(id, run)| OpenRun {
                run: **id,
                body: run.body,
                budget: run.budget,
                left_ms: run
                    .left_ms
                    .map(|left| left.saturating_sub(run.saved_at.0 - run.claimed_at.0)),
                accepted_at: run.accepted_at,
                attempt: run.attempt,
            })
            .collect();
        let names = runs
            .iter()
            .map(|(_, run)| RunNames {
                session_key: self.sessions[&session].key.clone(),
                run_key: run.key.clone(),
            })
            .collect();
        let report = LoadReport::Loaded {
            epoch: self.epoch,
            generation: Generation(1),
            open,
        };
        StoreDone::Loaded { report, names }
    }

    fn accept(&mut self, accept: &Accept, names: &RunNames, message: &str) -> StoreDone {
        let mut text = StoredText::default();
        let report = if accept.epoch != self.epoch {
            AcceptReport::NotOwner
        } else if let Some(run) = self.runs.get(&accept.run) {
            if run.body == accept.body && run.session == accept.session {
                if let Some((_, texts)) = &run.end {
                    text = texts.clone();
                }
                AcceptReport::Duplicate {
                    terminal: run.end.as_ref().map(|end| end.0),
                }
            } else {
                AcceptReport::Conflict
            }
        } else if accept.generation != Generation(1) {
            AcceptReport::NotOwner
        } else {
            self.insert(accept, names, message);
            let claim = accept.claim.as_ref().and_then(|order| {
                let fence = Fence {
                    session: accept.session,
                    generation: accept.generation,
                    run: accept.run,
                    attempt: order.attempt,
                };
                self.claim(&fence, order)
            });
            AcceptReport::Committed { claim }
        };
        StoreDone::Accepted { report, text }
    }

    fn insert(&mut self, accept: &Accept, names: &RunNames, message: &str) {
        let ordinal = self.sessions.len();
        let session = self
            .sessions
            .entry(accept.session)
            .or_insert_with(|| Session {
                ordinal,
                key: names.session_key.clone(),
                created_at: accept.at,
                updated_at: accept.at,
                writer: None,
                rows: Vec::new(),
            });
        session.updated_at = session.updated_at.max(accept.at);
        let run = Run {
            ordinal: self.runs.len(),
            session: accept.session,
            key: names.run_key.clone(),
            body: accept.body,
            budget: accept.budget,
            accepted_at: accept.at,
            message: message.into(),
            attempt: Attempt(0),
            left_ms: None,
            claimed_at: Wall(0),
            saved_at: Wall(0),
            partial: String::new(),
            end: None,
        };
        self.runs.insert(accept.run, run);
    }

    fn push(&mut self, id: RunId, role: Role, mark: RowMark, at: Wall, text: String) {
        let run = &self.runs[&id];
        let rows = &mut self
            .sessions
            .get_mut(&run.session)
            .expect("a run has a session")
            .rows;
        let (seq, run_key) = (rows.len() as u64 + 1, run.key.clone());
        rows.push(TranscriptRow {
            seq,
            role,
            mark,
            run: id,
            run_key,
            at,
            text,
        });
    }

    fn take_partial(&mut self, id: RunId) -> String {
        std::mem::take(&mut self.runs.get_mut(&id).expect("known").partial)
    }

    fn claim(&mut self, fence: &Fence, order: &ClaimOrder) -> Option<Claim> {
        let run = self.runs.get(&fence.run)?;
        let holds = run.session == fence.session
            && fence.generation == Generation(1)
            && run.end.is_none()
            && run.attempt < order.attempt;
        if !holds {
            return None;
        }
        let first = run.attempt == Attempt(0);
        let writer = self.sessions[&fence.session].writer;
        let superseded = match writer {
            Some((previous, _)) if previous != fence.run && self.runs[&previous].end.is_none() => {
                Some(self.supersede(previous, order.at))
            }
            _ => None,
        };
        if first {
            let message = self.runs[&fence.run].message.clone();
            self.push(fence.run, Role::User, RowMark::Whole, order.at, message);
        } else {
            self.interrupt(fence.run, order.at);
        }
        let run = self.runs.get_mut(&fence.run).expect("known");
        run.attempt = order.attempt;
        run.left_ms = order.left_ms;
        (run.claimed_at, run.saved_at) = (order.at, order.at);
        let session = self.sessions.get_mut(&fence.session).expect("known");
        session.writer = Some((fence.run, order.attempt));
        session.updated_at = session.updated_at.max(order.at);
        Some(Claim { superseded })
    }

    fn interrupt(&mut self, id: RunId, at: Wall) {
        let left = self.take_partial(id);
        if !left.is_empty() {
            self.push(id, Role::Assistant, RowMark::Interrupted, at, left);
        }
    }

    fn supersede(&mut self, id: RunId, at: Wall) -> Terminal {
        let text = self.take_partial(id);
        let run = &self.runs[&id];
        let started = run.claimed_at.max(run.accepted_at);
        let terminal = Terminal {
            run: id,
            session: run.session,
            outcome: Outcome::Superseded,
            accepted_at: run.accepted_at,
            started_at: Some(started),
            ended_at: at.max(started),
            attempt: run.attempt,
            reply: match text.len() as u64 {
                0 => Reply::Empty,
                bytes => Reply::Text { bytes },
            },
            detail: false,
        };
        let mut texts = StoredText::default();
        if !text.is_empty() {
            texts.reply = Some(text.clone());
            self.push(id, Role::Assistant, RowMark::Partial, at, text);
        }
        self.runs.get_mut(&id).expect("known").end = Some((terminal, texts));
        terminal
    }

    fn is_writer(&self, fence: &Fence) -> bool {
        fence.generation == Generation(1)
            && self
                .sessions
                .get(&fence.session)
                .is_some_and(|session| session.writer == Some((fence.run, fence.attempt)))
            && self.runs[&fence.run].end.is_none()
    }

    fn settle(
        &mut self,
        fence: &Fence,
        epoch: Epoch,
        terminal: &Terminal,
        text: &StoredText,
    ) -> SettleReport {
        if epoch != self.epoch {
            return SettleReport::NotOwner;
        }
        let waits = fence.attempt == Attempt(0)
            && fence.generation == Generation(1)
            && text.reply.is_none()
            && self.runs.get(&fence.run).is_some_and(|run| {
                run.session == fence.session && run.end.is_none() && run.attempt == Attempt(0)
            });
        if !waits && !self.is_writer(fence) {
            return SettleReport::Fenced;
        }
        match &text.reply {
            Some(reply) => {
                let mark = match terminal.outcome {
                    Outcome::Completed => RowMark::Whole,
                    _ => RowMark::Partial,
                };
                self.take_partial(fence.run);
                self.push(
                    fence.run,
                    Role::Assistant,
                    mark,
                    terminal.ended_at,
                    reply.clone(),
                );
            }
            None => self.interrupt(fence.run, terminal.ended_at),
        }
        self.runs.get_mut(&fence.run).expect("known").end = Some((*terminal, text.clone()));
        let session = self.sessions.get_mut(&fence.session).expect("known");
        session.updated_at = session.updated_at.max(terminal.ended_at);
        SettleReport::Committed
    }

    fn lookup(&self, id: RunId) -> StoreDone {
        let Some(run) = self.runs.get(&id) else {
            let text = StoredText::default();
            return StoreDone::LookedUp {
                report: LookupReport::Unknown,
                names: None,
                text,
            };
        };
        let names = Some(RunNames {
            session_key: self.sessions[&run.session].key.clone(),
            run_key: run.key.clone(),
        });
        let (report, text) = match &run.end {
            Some((terminal, text)) => (LookupReport::Ended(*terminal), text.clone()),
            None => (LookupReport::Open, StoredText::default()),
        };
        StoreDone::LookedUp {
            report,
            names,
            text,
        }
    }

    fn open_sessions(&self) -> Vec<SessionId> {
        let oldest = |id: &SessionId| self.open_of(*id).first().map(|(_, run)| run.ordinal);
        let mut open: Vec<_> = self
            .sessions
            .keys()
            .filter_map(|id| Some((oldest(id)?, *id)))
            .collect();
        open.sort_unstable();
        open.into_iter().map(|(_, id)| id).collect()
    }

    fn list(&self, limit: u32) -> Vec<SessionRow> {
        let mut list: Vec<_> = self.sessions.iter().collect();
        list.sort_by_key(|(_, session)| (session.updated_at, session.ordinal));
        let rows = list
            .into_iter()
            .rev()
            .take(limit as usize)
            .map(|(id, session)| {
                let last = session.writer.map(|(run, _)| &self.runs[&run]);
                SessionRow {
                    session: *id,
                    session_key: session.key.clone(),
                    generation: 1,
                    created_at: session.created_at,
                    updated_at: session.updated_at,
                    last_run_key: last.map(|run| run.key.clone()),
                    last_terminal: last.and_then(|run| run.end.as_ref().map(|end| end.0)),
                    open_runs: self.open_of(*id).len() as u64,
                }
            });
        rows.collect()
    }
}
