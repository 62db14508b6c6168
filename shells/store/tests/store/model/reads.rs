//! What the model knows, as the store's reads tell it.

use tidegate_core::{LoadReport, LookupReport, OpenRun, RunId, SessionId};
use tidegate_driver::{
    History, HistoryQuery, PendingInput, RunNames, SessionRow, StoreDone, StoredText,
};

use super::Model;

impl Model {
    pub(super) fn load(&self, session: SessionId) -> StoreDone {
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
                turn: run.turn,
                lane: run.lane,
                priority: run.priority,
                along: run.along,
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
            generation: self.generation(session),
            queue: self
                .sessions
                .get(&session)
                .map(|session| session.queue)
                .unwrap_or_default(),
            open,
        };
        StoreDone::Loaded { report, names }
    }

    pub(super) fn lookup(&self, id: RunId) -> StoreDone {
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

    pub(super) fn history(&self, session: SessionId, query: &HistoryQuery) -> History {
        let rows = self
            .sessions
            .get(&session)
            .map_or(&[][..], |session| session.current());
        let limit = query.limit as usize;
        let from = match query.after_seq {
            Some(after) => usize::try_from(after).expect("small").min(rows.len()),
            None => rows.len().saturating_sub(limit),
        };
        let open = self.open_of(session).into_iter();
        let pending = open.filter_map(|(_, run)| {
            Some(PendingInput {
                run_key: run.key.clone(),
                text: run.message.clone()?,
                accepted_at: run.accepted_at,
            })
        });
        let pending: Vec<_> = pending.collect();
        History {
            generation: self.generation(session).0,
            rows: rows[from..].iter().take(limit).cloned().collect(),
            last_seq: rows.len() as u64,
            pending_total: pending.len() as u64,
            pending,
        }
    }

    pub(super) fn open_sessions(&self) -> Vec<SessionId> {
        let oldest = |id: &SessionId| self.open_of(*id).first().map(|(_, run)| run.ordinal);
        let mut open: Vec<_> = self
            .sessions
            .keys()
            .filter_map(|id| Some((oldest(id)?, *id)))
            .collect();
        open.sort_unstable();
        open.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn list(&self, limit: u32) -> Vec<SessionRow> {
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
                    generation: session.generation.0,
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
