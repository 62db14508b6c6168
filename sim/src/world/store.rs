//! The modelled store: durable truth under the rules that the real one keeps.
//!
//! Owns rows, claims and receipts, and what a kill or a loss of power leaves of them. It
//! carries orders out in the order in which they were given, each as a transaction; it draws
//! nothing and knows no time. Whatever a transaction wrote is noted as a [`Wrote`], so that
//! checkers judge what happened and not what was meant.

mod calls;
mod write;

use std::collections::{BTreeMap, VecDeque};

use self::calls::StoredCalls;
use tidegate_core::{
    Accept, AcceptReport, Attempt, Budget, CallEnd, CallId, ClaimOrder, ClaimReport,
    ConfigureReport, Epoch, Fence, Fingerprint, Generation, Input, LaneName, LaunchReport,
    LoadReport, LookupReport, OpenRun, Output, Priority, QueueOverride, ResetReport, RunId,
    SessionId, SettleReport, StoreError, Terminal, Ticket, Turn, Wall,
};

/// What a transcript row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The user's message, bound to the transcript.
    Message,
    /// The assistant's text, whole or partial.
    Reply,
    /// What an earlier attempt left.
    Interrupted,
    /// The text of a message that gave way in a full queue.
    Dropped,
    /// An answer that asks for tool calls.
    Calls,
    /// How a call ended.
    Result(CallId, CallEnd),
}

/// What a transaction wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrote {
    /// An inbox row.
    Inbox { session: SessionId, run: RunId },
    /// A claim: this attempt writes from now on.
    Claim { fence: Fence },
    /// A message was bound to the turn of another run, by that run's claim.
    Along { run: RunId, turn: RunId },
    /// A session began its next generation, which is named.
    Generation {
        session: SessionId,
        generation: Generation,
    },
    /// Another process took the session's lease, or wrote under ours.
    Foreign { session: SessionId },
    /// A transcript row of `run`, under `fence`; its number in the transcript, from 1.
    Row {
        run: RunId,
        kind: RowKind,
        fence: Fence,
        number: u64,
    },
    /// Streamed text.
    Saved { fence: Fence },
    /// A checkpoint: which calls of an answer may start, or wait for a person.
    Launched { fence: Fence },
    /// A receipt; `by` is the run whose fence wrote it.
    Receipt { terminal: Terminal, by: Fence },
}

/// A run as the store holds it.
#[derive(Clone, Debug)]
pub(crate) struct StoredRun {
    pub(crate) session: SessionId,
    pub(crate) generation: Generation,
    pub(crate) turn: Turn,
    lane: LaneName,
    priority: Priority,
    /// The run in whose turn a claim took it along.
    pub(crate) along: Option<RunId>,
    pub(crate) body: Fingerprint,
    pub(crate) budget: Option<Budget>,
    pub(crate) accepted_at: Wall,
    /// The last attempt that claimed; 0 if none.
    pub(crate) attempt: Attempt,
    left_ms: Option<u64>,
    claimed_at: Wall,
    seen_at: Wall,
    bound: bool,
    /// Text saved by the current attempt, in bytes.
    saved: u64,
    /// What its last answer with calls asked for.
    calls: StoredCalls,
    pub(crate) terminal: Option<Terminal>,
}

impl StoredRun {
    /// Budget time that earlier attempts left over, if it is limited and had begun to run.
    pub(crate) fn left_ms(&self) -> Option<u64> {
        let used = self.seen_at.0.saturating_sub(self.claimed_at.0);
        self.left_ms.map(|left| left.saturating_sub(used))
    }
}

#[derive(Clone, Debug)]
struct StoredSession {
    generation: Generation,
    queue: QueueOverride,
    writer: Option<(RunId, Attempt)>,
    inbox: Vec<RunId>,
    /// Messages that were dropped since the last claim.
    dropped: Vec<RunId>,
    /// Rows of the generation's transcript.
    rows: u64,
}

impl Default for StoredSession {
    fn default() -> Self {
        Self {
            generation: Generation(1),
            queue: QueueOverride::default(),
            writer: None,
            inbox: Vec::new(),
            dropped: Vec::new(),
            rows: 0,
        }
    }
}

/// Who holds a session, and under which lease it is ours.
#[derive(Clone, Copy, Debug)]
struct Lease {
    epoch: Epoch,
    given_away: bool,
}

const FIRST_LEASE: Lease = Lease {
    epoch: Epoch(1),
    given_away: false,
};

/// The store. See the module.
#[derive(Debug, Default)]
pub(crate) struct Store {
    sessions: BTreeMap<SessionId, StoredSession>,
    runs: BTreeMap<RunId, StoredRun>,
    /// Leases that are not the first one.
    leases: BTreeMap<SessionId, Lease>,
    /// Orders that were not carried out yet.
    pub(crate) queue: VecDeque<Output>,
    /// Whether a batch is under way.
    pub(crate) busy: bool,
    /// Saves since the last sync: the run, and what it had before.
    unsynced: Vec<(RunId, u64, Wall)>,
    /// What transactions wrote since it was last asked.
    pub(crate) wrote: Vec<Wrote>,
}

impl Store {
    /// What is known of a run.
    pub(crate) fn run(&self, run: RunId) -> Option<&StoredRun> {
        self.runs.get(&run)
    }

    /// How many accepted runs have not ended.
    pub(crate) fn open_runs(&self) -> u64 {
        self.runs
            .values()
            .filter(|run| run.terminal.is_none())
            .count() as u64
    }

    /// The generation of a session's transcript.
    pub(crate) fn generation(&self, session: SessionId) -> Generation {
        let known = self.sessions.get(&session);
        known.map_or(Generation(1), |session| session.generation)
    }

    /// The writer of a session.
    pub(crate) fn writer(&self, session: SessionId) -> Option<(RunId, Attempt)> {
        self.sessions.get(&session).and_then(|s| s.writer)
    }

    /// Sessions with accepted runs that have not ended.
    pub(crate) fn open_sessions(&self) -> Vec<SessionId> {
        self.sessions
            .keys()
            .copied()
            .filter(|&session| self.open_runs_of(session).next().is_some())
            .collect()
    }

    /// The accepted runs of a session that have not ended, in their order.
    pub(crate) fn open_runs_of(&self, session: SessionId) -> impl Iterator<Item = RunId> + '_ {
        let inbox = self.sessions.get(&session).map(|s| s.inbox.as_slice());
        let open = |run: &RunId| self.runs.get(run).is_some_and(|r| r.terminal.is_none());
        inbox.unwrap_or_default().iter().copied().filter(open)
    }

    fn lease(&self, session: SessionId) -> Lease {
        self.leases.get(&session).copied().unwrap_or(FIRST_LEASE)
    }

    fn is_ours(&self, session: SessionId, epoch: Epoch) -> bool {
        let lease = self.lease(session);
        !lease.given_away && lease.epoch == epoch
    }

    /// Whether another process holds the session.
    pub(crate) fn has_given_away(&self, session: SessionId) -> bool {
        self.lease(session).given_away
    }

    /// Another process takes the lease; false if one has it already.
    pub(super) fn take_lease(&mut self, session: SessionId) -> bool {
        let lease = self.leases.entry(session).or_insert(FIRST_LEASE);
        let taken = !std::mem::replace(&mut lease.given_away, true);
        if taken {
            self.wrote.push(Wrote::Foreign { session });
        }
        taken
    }

    /// It gives it back: ours from now on, as the next one.
    pub(super) fn give_lease_back(&mut self, session: SessionId) {
        let lease = self.leases.entry(session).or_insert(FIRST_LEASE);
        lease.given_away = false;
        lease.epoch.0 += 1;
    }

    /// Another process claims an open run as its next attempt.
    pub(super) fn claim_again(&mut self, run: RunId, at: Wall) {
        if let Some(row) = self.runs.get(&run) {
            let claim = ClaimOrder {
                attempt: row.attempt.next(),
                left_ms: row.left_ms(),
                at,
                along: Vec::new(),
                results: Vec::new(),
            };
            let fence = Fence {
                session: row.session,
                generation: row.generation,
                run,
                attempt: claim.attempt,
            };
            self.claim(fence, &claim);
        }
    }

    /// Another process accepts and claims a run of its own under the lease that is ours.
    pub(super) fn intrude(&mut self, accept: &Accept) {
        let session = accept.session;
        self.wrote.push(Wrote::Foreign { session });
        self.insert(accept);
    }

    /// Sessions that another process holds.
    pub(crate) fn sessions_given_away(&self) -> Vec<SessionId> {
        let away = self.leases.iter().filter(|(_, lease)| lease.given_away);
        away.map(|(&session, _)| session).collect()
    }

    /// The process is gone: what was not carried out is lost; after a loss of power, unsynced
    /// saves as well.
    pub(crate) fn crash(&mut self, power: bool) {
        self.queue.clear();
        self.busy = false;
        if power {
            while let Some((run, saved, seen_at)) = self.unsynced.pop() {
                if let Some(run) = self.runs.get_mut(&run) {
                    run.saved = saved;
                    run.seen_at = seen_at;
                }
            }
        }
    }

    /// Carries one order out and gives the report, if it has one. With `refusal` nothing is
    /// written.
    pub(crate) fn carry_out(
        &mut self,
        order: &Output,
        refusal: Option<StoreError>,
    ) -> Option<Input> {
        match order {
            Output::Load { ticket, session } => {
                let report = match refusal {
                    Some(error) => LoadReport::Refused(error),
                    None => self.load(*session),
                };
                Some(Input::Loaded {
                    ticket: *ticket,
                    report,
                })
            }
            Output::Accept { ticket, accept } => {
                let report = match refusal {
                    Some(error) => AcceptReport::Refused(error),
                    None if !self.is_ours(accept.session, accept.epoch) => AcceptReport::NotOwner,
                    None => self.accept(accept),
                };
                Some(Input::Accepted {
                    ticket: *ticket,
                    report,
                })
            }
            Output::Claim {
                ticket,
                fence,
                claim,
                epoch,
            } => {
                let report = match refusal {
                    Some(error) => ClaimReport::Refused(error),
                    None if !self.is_ours(fence.session, *epoch) => ClaimReport::NotOwner,
                    None => self
                        .claim(*fence, claim)
                        .map_or(ClaimReport::Fenced, ClaimReport::Committed),
                };
                Some(Input::Claimed {
                    ticket: *ticket,
                    report,
                })
            }
            Output::Save {
                fence,
                to,
                at,
                epoch,
            } => {
                if refusal.is_none() && self.is_ours(fence.session, *epoch) {
                    self.save(*fence, *to, *at);
                }
                None
            }
            Output::Settle {
                ticket,
                fence,
                terminal,
                epoch,
                results,
            } => {
                let report = match refusal {
                    Some(error) => SettleReport::Refused(error),
                    None if !self.is_ours(fence.session, *epoch) => SettleReport::NotOwner,
                    None => self.settle(*fence, *terminal, results),
                };
                Some(Input::Settled {
                    ticket: *ticket,
                    report,
                })
            }
            Output::Launch {
                ticket,
                fence,
                epoch,
                launch,
            } => {
                let report = match refusal {
                    Some(error) => LaunchReport::Refused(error),
                    None if !self.is_ours(fence.session, *epoch) => LaunchReport::NotOwner,
                    None => self.launch(*fence, launch),
                };
                Some(Input::Launched {
                    ticket: *ticket,
                    report,
                })
            }
            Output::Reset {
                ticket,
                session,
                generation,
                epoch,
                at,
            } => {
                let report = match refusal {
                    Some(error) => ResetReport::Refused(error),
                    None if !self.is_ours(*session, *epoch) => ResetReport::NotOwner,
                    None => self.reset(*session, *generation, *at),
                };
                Some(Input::WasReset {
                    ticket: *ticket,
                    report,
                })
            }
            Output::Configure {
                ticket,
                session,
                epoch,
                queue,
                ..
            } => {
                let report = match refusal {
                    Some(error) => ConfigureReport::Refused(error),
                    None if !self.is_ours(*session, *epoch) => ConfigureReport::NotOwner,
                    None => {
                        self.unsynced.clear();
                        self.sessions.entry(*session).or_default().queue = *queue;
                        ConfigureReport::Committed
                    }
                };
                Some(Input::Configured {
                    ticket: *ticket,
                    report,
                })
            }
            Output::Lookup { ticket, run } => Some(self.lookup(*ticket, *run, refusal)),
            _ => None,
        }
    }

    fn load(&self, id: SessionId) -> LoadReport {
        let lease = self.lease(id);
        if lease.given_away {
            return LoadReport::NotOwner;
        }
        let open = self
            .open_runs_of(id)
            .filter_map(|run| self.runs.get(&run).map(|row| (run, row)))
            .map(|(run, row)| OpenRun {
                run,
                body: row.body,
                budget: row.budget,
                left_ms: row.left_ms(),
                accepted_at: row.accepted_at,
                attempt: row.attempt,
                turn: row.turn,
                lane: row.lane,
                priority: row.priority,
                along: row.along,
            })
            .collect();
        let session = self.sessions.get(&id);
        LoadReport::Loaded {
            epoch: lease.epoch,
            generation: self.generation(id),
            queue: session.map_or(QueueOverride::default(), |session| session.queue),
            open,
        }
    }

    fn lookup(&self, ticket: Ticket, run: RunId, refusal: Option<StoreError>) -> Input {
        let report = match (refusal, self.runs.get(&run)) {
            (Some(error), _) => LookupReport::Refused(error),
            (None, None) => LookupReport::Unknown,
            (None, Some(row)) => row.terminal.map_or(LookupReport::Open, LookupReport::Ended),
        };
        Input::LookedUp { ticket, report }
    }
}
