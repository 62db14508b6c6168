//! The global lane: how many runs work at once, over all sessions (R15, I13).
//!
//! Owns slots and the order of those that wait for one. A run holds its session's lane
//! while it waits here. A slot is freed by its run's id, so it can't be freed twice (I16).

use alloc::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::drain::Gate;
use crate::halt::HaltCode;
use crate::ids::{RunId, SessionId, Subject};
use crate::machine::Core;
use crate::output::Output;
use crate::run::State;
use crate::session::Phase;

/// The global lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Lane {
    active: BTreeSet<RunId>,
    waiting: VecDeque<RunId>,
}

impl Lane {
    /// How many slots are taken.
    pub(crate) fn active(&self) -> usize {
        self.active.len()
    }

    /// Whether a newcomer would get a slot at once: one is free and nobody waits for it.
    pub(crate) fn is_open(&self, cap: u32) -> bool {
        self.waiting.is_empty() && self.active.len() < cap as usize
    }

    pub(crate) fn holds(&self, run: RunId) -> bool {
        self.active.contains(&run)
    }

    pub(crate) fn awaits(&self, run: RunId) -> bool {
        self.waiting.contains(&run)
    }

    pub(crate) fn take(&mut self, run: RunId) {
        self.active.insert(run);
    }

    pub(crate) fn queue(&mut self, run: RunId) {
        self.waiting.push_back(run);
    }

    /// Takes a run out, wherever it stands.
    pub(crate) fn remove(&mut self, run: RunId) {
        if !self.active.remove(&run) {
            self.waiting.retain(|&r| r != run);
        }
    }

    /// Gives the next free slot to the one that waited longest.
    fn grant(&mut self, cap: u32) -> Option<RunId> {
        if self.active.len() >= cap as usize {
            return None;
        }
        let run = self.waiting.pop_front()?;
        self.active.insert(run);
        Some(run)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = RunId> + '_ {
        self.active
            .iter()
            .copied()
            .chain(self.waiting.iter().copied())
    }
}

impl Core {
    /// Starts whatever can start: global slots first, then the head of this session's lane
    /// (L8), unless the process is about to end. A session that holds nothing any more goes cold.
    pub(crate) fn advance(&mut self, id: SessionId) {
        if self.is_open() {
            self.pump();
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        if matches!(session.phase, Phase::Loading { .. }) {
            return;
        }
        if session.active.is_none()
            && self.gate == Gate::Open
            && let Some(&head) = session.waiting.front()
        {
            let Some(run) = self.runs.get_mut(&head) else {
                return self.halt(HaltCode::SessionWithoutRun, Subject::Session(id));
            };
            if run.state == State::Waiting {
                session.waiting.pop_front();
                session.active = Some(head);
                if self.lane.is_open(self.config.global_lane_cap) {
                    self.lane.take(head);
                    self.start_claim(head);
                } else {
                    run.state = State::WaitingGlobal;
                    self.lane.queue(head);
                }
            }
            return;
        }
        if session.is_idle() {
            self.sessions.remove(&id);
            self.out(Output::Forget {
                subject: Subject::Session(id),
            });
        }
    }

    /// Fills the global lane.
    fn pump(&mut self) {
        while let Some(run) = self.lane.grant(self.config.global_lane_cap) {
            self.start_claim(run);
        }
    }

    /// Takes a run out of its session's lane and of the global lane. It stays known to the
    /// session until it has ended, so that the session is not loaded anew beneath it.
    pub(crate) fn detach(&mut self, id: RunId) {
        self.lane.remove(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        run.detached = true;
        if let Some(session) = self.sessions.get_mut(&run.session) {
            session.remove(id);
            session.detached.insert(id);
        }
    }
}
