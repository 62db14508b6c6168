//! Other processes: one that takes a session's lease for a time, one that writes in between.
//!
//! Owns what they do to the store. One that holds a lease may run what is open, and ends it
//! before it gives the lease back; one that writes in between supersedes the writer under the
//! same lease, so that the core learns of it from its fence alone.

use tidegate_core::{
    Accept, Attempt, ClaimOrder, Epoch, Fence, Fingerprint, Input, LaneName, Outcome, Priority,
    Reply, RequestId, RunId, SessionId, Terminal, Turn, Wall,
};

use super::World;
use super::queue::Event;
use super::store::Store;
use crate::check::Check;
use crate::shrink::log::What;

/// High bits of the runs of other processes.
pub(crate) const FOREIGN: u128 = 1 << 99;
/// High bits of the names of the requests that tell of a lease given back.
const GIVEN: u128 = 1 << 100;

impl Store {
    /// Another process takes a session's lease. If it `works`, it claims the first open run.
    pub(crate) fn lease_taken(&mut self, session: SessionId, works: bool, at: Wall) {
        if !self.take_lease(session) {
            return;
        }
        let open = self.open_runs_of(session).next();
        if works && let Some(run) = open {
            self.claim_again(run, at);
        }
    }

    /// It ends what it claimed and gives the lease back. Gives the input that tells the core
    /// of open work, if there is some.
    pub(crate) fn lease_given(&mut self, session: SessionId, at: Wall, time: u64) -> Option<Input> {
        if !self.has_given_away(session) {
            return None;
        }
        if let Some((run, attempt)) = self.writer(session) {
            self.end_elsewhere(run, attempt, at);
        }
        self.give_lease_back(session);
        self.open_runs_of(session).next()?;
        let name = u128::from_be_bytes(session.0) << 64 | u128::from(time);
        let request = RequestId::from_u128(GIVEN | name);
        Some(Input::Resume { request, session })
    }

    /// A foreign run claims the session under the lease that is ours.
    pub(crate) fn intrudes(&mut self, session: SessionId, run: RunId, at: Wall) {
        let claim = ClaimOrder {
            attempt: Attempt(1),
            left_ms: None,
            at,
            along: Vec::new(),
            results: Vec::new(),
        };
        self.intrude(&Accept {
            session,
            generation: self.generation(session),
            epoch: Epoch(0),
            run,
            body: Fingerprint(run.0),
            request: RequestId(run.0),
            budget: None,
            turn: Turn::Agent,
            lane: LaneName::Main,
            priority: Priority::Foreground,
            at,
            claim: Some(claim),
        });
    }

    /// Every process that wrote in between ends what it wrote.
    pub(crate) fn intruders_end(&mut self, at: Wall) {
        let foreign = |run: &RunId| u128::from_be_bytes(run.0) & FOREIGN != 0;
        let open: Vec<RunId> = self
            .open_sessions()
            .into_iter()
            .flat_map(|session| self.open_runs_of(session).collect::<Vec<_>>())
            .filter(foreign)
            .collect();
        for run in open {
            self.end_elsewhere(run, Attempt(1), at);
        }
    }

    /// Another process ends a run that it has claimed, if it is still its writer.
    pub(crate) fn end_elsewhere(&mut self, run: RunId, attempt: Attempt, at: Wall) {
        let Some(row) = self.run(run) else {
            return;
        };
        let (session, generation) = (row.session, row.generation);
        let accepted_at = row.accepted_at;
        let at = at.max(accepted_at);
        let fence = Fence {
            session,
            generation,
            run,
            attempt,
        };
        let terminal = Terminal {
            run,
            session,
            outcome: Outcome::Completed,
            accepted_at,
            started_at: Some(at),
            ended_at: at,
            attempt,
            reply: Reply::Empty,
            detail: false,
            turn: None,
        };
        self.settle(fence, terminal, &[]);
    }
}

impl World<'_> {
    /// Puts the drawn leases and intruders into the queue.
    pub(super) fn plan_others(&mut self, work_ms: u64) {
        for _ in 0..self.swarm.leases {
            let session = self.any_session();
            let at = self.choices.pick(work_ms, "lease at");
            let ms = self.choices.pick(self.swarm.lease_ms, "lease for");
            let works = self.choices.chance(1, 2, "lease works");
            self.queue.put(at, 0, Event::LeaseTaken { session, works });
            self.queue.put(at + ms, 0, Event::LeaseGiven { session });
        }
        for number in 0..self.swarm.intruders {
            let session = self.any_session();
            let at = self.choices.pick(work_ms, "intruder at");
            let ms = self.choices.pick(60_000, "intruder for");
            let name = u128::from_be_bytes(session.0) << 32 | u128::from(number);
            let run = RunId::from_u128(FOREIGN | name);
            self.queue.put(at, 0, Event::Intrudes { session, run });
            self.queue.put(at + ms, 0, Event::IntruderEnds { run });
        }
    }

    fn any_session(&mut self) -> SessionId {
        super::clients::session(self.choices.pick(self.swarm.sessions, "session"))
    }

    pub(super) fn lease_taken(&mut self, session: SessionId, works: bool) {
        self.note(What::LeaseTaken { session, works });
        let at = self.wall();
        self.store.lease_taken(session, works, at);
        self.told_of_writes(None);
    }

    pub(super) fn lease_given(&mut self, session: SessionId) {
        self.note(What::LeaseGiven { session });
        let (at, time) = (self.wall(), self.now);
        let resume = self.store.lease_given(session, at, time);
        self.told_of_writes(None);
        if let Some(resume) = resume {
            self.feed(resume);
        }
    }

    pub(super) fn intrudes(&mut self, session: SessionId, run: RunId) {
        // Over a writer of this life: what it said lies with this process.
        let busy = self.store.writer(session).is_some_and(|(run, attempt)| {
            let open = self.store.run(run).is_some_and(|r| r.terminal.is_none());
            open && self.provider.has_called(run, attempt)
        });
        if busy && !self.store.has_given_away(session) {
            self.note(What::Intrudes { session, run });
            let at = self.wall();
            self.store.intrudes(session, run, at);
            self.told_of_writes(None);
        }
    }

    pub(super) fn intruder_ends(&mut self, run: RunId) {
        self.note(What::IntruderEnds { run });
        let at = self.wall();
        self.store.end_elsewhere(run, Attempt(1), at);
        self.told_of_writes(None);
    }

    /// Tells the checkers what a transaction wrote, and what it reports.
    pub(super) fn told_of_writes(&mut self, carried: Option<&Input>) {
        let wrote = std::mem::take(&mut self.store.wrote);
        for fact in &wrote {
            self.marks.wrote(fact);
            self.checks.wrote(&mut super::moment!(self), fact);
        }
        self.checks
            .carried(&mut super::moment!(self), carried, &wrote);
    }

    /// The wall clock.
    pub(super) fn wall(&self) -> Wall {
        let wall = self.wall_shift.saturating_add_unsigned(self.now);
        Wall(wall.max(0).unsigned_abs())
    }
}
