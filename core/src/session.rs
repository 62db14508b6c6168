//! Sessions: cold, loading, owned, lost.
//!
//! A session that holds nothing is cold: it is not in the map and costs nothing. The first
//! input for it orders a load; further ones wait, bounded, until the report. Owns the
//! session's lane: one active run, the others in the order of their admission (R2, R14).

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::ids::{
    Attempt, ContentOwner, Epoch, Generation, OrderKind, RequestId, RunId, SessionId, Subject,
    Ticket,
};
use crate::input::{Input, LoadReport, OpenRun, Submit};
use crate::machine::Core;
use crate::output::{Answer, Output, Rejection};
use crate::queue::{Place, QueueOverride};
use crate::recovery::Recovery;
use crate::reset::Hold;
use crate::round::Round;
use crate::run::{Run, State, Stream, full_budget, store_backoff};
use crate::time::Time;
use crate::timers::Timer;

/// Whether the session is ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// A load is under way, or waits to be ordered again.
    Loading {
        /// Tells this load from earlier ones of the session; folded from what caused it.
        name: Attempt,
        /// Whether the order is under way.
        ordered: bool,
        /// How often the load was refused, or the lease was lost.
        tries: u16,
        /// Inputs that wait for the report, in order.
        parked: VecDeque<Input>,
        /// The store holds work of this session: the load must succeed in the end.
        must: bool,
        /// That was said while the order was under way: a report that denies the lease may be
        /// older than the word.
        again: bool,
    },
    /// The lease is ours.
    Owned {
        /// The lease.
        epoch: Epoch,
        /// The transcript's generation.
        generation: Generation,
    },
}

/// A session that is not cold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) phase: Phase,
    /// The run that holds the session's lane.
    pub(crate) active: Option<RunId>,
    /// The runs behind it, in the order of their admission.
    pub(crate) waiting: VecDeque<RunId>,
    /// Runs that hold no lane and have not ended yet.
    pub(crate) detached: BTreeSet<RunId>,
    /// What the session sets for itself; the store's word.
    pub(crate) queue: QueueOverride,
    /// A reset or a change of settings under way: all else waits for it.
    pub(crate) hold: Option<Hold>,
    /// When the last message joined the line.
    pub(crate) last_joined: Time,
    /// However closely messages follow each other, the line goes on then.
    pub(crate) quiet_limit: Option<Time>,
}

impl Session {
    const fn new(phase: Phase) -> Self {
        Self {
            phase,
            active: None,
            waiting: VecDeque::new(),
            detached: BTreeSet::new(),
            queue: QueueOverride {
                mode: None,
                debounce_ms: None,
                cap: None,
                drop: None,
            },
            hold: None,
            last_joined: Time(0),
            quiet_limit: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_none()
            && self.waiting.is_empty()
            && self.detached.is_empty()
            && self.hold.is_none()
    }

    /// Takes a run out, wherever it stands.
    pub(crate) fn remove(&mut self, run: RunId) {
        if self.active == Some(run) {
            self.active = None;
        } else if !self.detached.remove(&run) {
            self.waiting.retain(|&r| r != run);
        }
    }

    /// Takes out the inputs that wait for a load or a hold.
    pub(crate) fn take_parked(&mut self) -> VecDeque<Input> {
        match (&mut self.phase, &mut self.hold) {
            (Phase::Loading { parked, .. }, _) => core::mem::take(parked),
            (_, Some(hold)) => core::mem::take(&mut hold.parked),
            _ => VecDeque::new(),
        }
    }

    /// The runs at work and waiting, in their order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.active
            .iter()
            .copied()
            .chain(self.waiting.iter().copied())
    }
}

impl Core {
    /// The store holds open work of this session.
    pub(crate) fn resume(&mut self, request: RequestId, session: SessionId) {
        if !self.is_open() {
            return; // the next start lists it again
        }
        match self.sessions.get_mut(&session) {
            None => self.load(session, request, None, true),
            Some(Session {
                phase:
                    Phase::Loading {
                        must,
                        again,
                        ordered,
                        ..
                    },
                ..
            }) => {
                *must = true;
                *again = *ordered;
            }
            Some(_) => {}
        }
    }

    /// Orders the load of a cold session. `first` waits for it.
    pub(crate) fn load(
        &mut self,
        session: SessionId,
        request: RequestId,
        first: Option<Input>,
        must: bool,
    ) {
        let phase = Phase::Loading {
            name: fold(request.0),
            ordered: false,
            tries: 0,
            parked: first.into_iter().collect(),
            must,
            again: false,
        };
        self.sessions.insert(session, Session::new(phase));
        self.order_load(session);
    }

    fn order_load(&mut self, id: SessionId) {
        if let Some(Session {
            phase:
                Phase::Loading {
                    name,
                    ordered,
                    tries,
                    ..
                },
            ..
        }) = self.sessions.get_mut(&id)
        {
            *ordered = true;
            let ticket = load_ticket(id, *name, *tries);
            self.out(Output::Load {
                ticket,
                session: id,
            });
        }
    }

    /// Lets an input wait for the load or the hold, or refuses it when too many wait.
    pub(crate) fn park(&mut self, session: SessionId, input: Input) {
        let cap = self.config.load_queue_cap as usize;
        let parked = match self.sessions.get_mut(&session) {
            Some(Session {
                phase: Phase::Loading { parked, .. },
                ..
            }) => Some(parked),
            Some(Session {
                hold: Some(hold), ..
            }) => Some(&mut hold.parked),
            _ => None,
        };
        if let Some(parked) = parked
            && parked.len() < cap
        {
            return parked.push_back(input);
        }
        self.refuse(&input, Rejection::Busy);
    }

    /// Refuses an input that was never admitted.
    pub(crate) fn refuse(&mut self, input: &Input, why: Rejection) {
        match input {
            Input::Submit(Submit { request, .. }) => {
                self.out(Output::Respond {
                    request: *request,
                    answer: Answer::Rejected(why),
                });
                self.out(Output::Release {
                    owner: ContentOwner::Request(*request),
                });
            }
            Input::Abort { request, .. }
            | Input::Reset { request, .. }
            | Input::Configure { request, .. } => {
                self.out(Output::Respond {
                    request: *request,
                    answer: Answer::Rejected(why),
                });
            }
            _ => {}
        }
    }

    /// The report of a load.
    pub(crate) fn loaded(&mut self, ticket: Ticket, report: LoadReport) {
        let Subject::Session(id) = ticket.subject else {
            self.counts.stale_store += 1;
            return;
        };
        let Some(Session {
            phase: phase @ Phase::Loading { .. },
            ..
        }) = self.sessions.get_mut(&id)
        else {
            self.counts.stale_store += 1;
            return;
        };
        let Phase::Loading {
            name,
            ordered,
            tries,
            parked,
            must,
            again,
        } = phase
        else {
            return;
        };
        if !*ordered || ticket != load_ticket(id, *name, *tries) {
            self.counts.stale_store += 1;
            return;
        }
        *ordered = false;
        if report == LoadReport::NotOwner && core::mem::take(again) {
            *tries = tries.saturating_add(1);
            return self.order_load(id);
        }
        let waiting = core::mem::take(parked);
        match report {
            LoadReport::Loaded {
                epoch,
                generation,
                queue,
                open,
            } => {
                *phase = Phase::Owned { epoch, generation };
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.queue = queue;
                }
                // What an earlier life had at work goes on first: a message that was accepted
                // before it may be open still, if its end was decided and never written.
                let (begun, new): (Vec<_>, Vec<_>) =
                    open.iter().partition(|run| run.attempt > Attempt(0));
                for run in begun.into_iter().chain(new) {
                    self.reopen(id, (epoch, generation), stay_of(ticket), run);
                }
                for run in &open {
                    self.reopen_along(id, run);
                }
                self.count_ahead(id);
                // What was at work is at work again before what waited for the load is taken in.
                if self.has_begun_head(id) {
                    self.advance(id);
                }
                self.take_up(id, waiting);
            }
            LoadReport::NotOwner => {
                self.drop_loading(id, waiting, Rejection::NotOwner);
            }
            LoadReport::Refused(_) => {
                if *must {
                    let wait = store_backoff(&self.config, *tries);
                    *tries = tries.saturating_add(1);
                    self.arm_in(Timer::LoadRetry(id), wait);
                    for input in &waiting {
                        self.refuse(input, Rejection::Storage);
                    }
                } else {
                    self.drop_loading(id, waiting, Rejection::Storage);
                }
            }
        }
    }

    fn drop_loading(&mut self, id: SessionId, waiting: VecDeque<Input>, why: Rejection) {
        for input in &waiting {
            self.refuse(input, why);
        }
        self.sessions.remove(&id);
        self.out(Output::Forget {
            subject: Subject::Session(id),
        });
    }

    pub(crate) fn retry_load(&mut self, id: SessionId) {
        self.order_load(id);
    }

    /// Takes up a run that an earlier life accepted and did not end (P23). It goes on as the
    /// same run; its next claim is a new attempt.
    fn reopen(
        &mut self,
        id: SessionId,
        (epoch, generation): (Epoch, Generation),
        stay: u16,
        open: &OpenRun,
    ) {
        if self.runs.contains_key(&open.run) {
            return;
        }
        let full = full_budget(&self.config, open.budget);
        let left_ms = full.map(|full| open.left_ms.unwrap_or(full));
        let run = Run {
            id: open.run,
            session: id,
            generation,
            epoch,
            body: open.body,
            callers: Vec::new(),
            budget: open.budget,
            turn: open.turn,
            lane: open.lane,
            priority: open.priority,
            place: Place::Next,
            steer: None,
            along: Vec::new(),
            waits_since: self.now.time,
            ahead: (0, 0),
            left_ms,
            accepted_at: open.accepted_at,
            started_at: None,
            attempt: open.attempt,
            has_content: false,
            stream: Stream::default(),
            seen: false,
            recovery: Recovery::default(),
            candidate: 0,
            round: Round::default(),
            rounds: 0,
            paused: false,
            seq: 0,
            stay,
            detached: false,
            stop: None,
            state: State::Waiting,
        };
        self.runs.insert(open.run, Box::new(run));
        if let Some(session) = self.sessions.get_mut(&id) {
            session.waiting.push_back(open.run);
        }
    }

    /// A message that an earlier claim took along belongs to that turn, which goes on.
    fn reopen_along(&mut self, id: SessionId, open: &OpenRun) {
        let Some(turn) = open.along else { return };
        let holds = |run: &RunId| {
            self.runs
                .get(run)
                .is_some_and(|run| run.session == id && run.state == State::Waiting)
        };
        if turn == open.run || !holds(&turn) || !holds(&open.run) {
            return;
        }
        if let Some(head) = self.runs.get_mut(&turn) {
            head.along.push(open.run);
        }
        if let Some(run) = self.runs.get_mut(&open.run) {
            run.state = State::Along { turn, bound: true };
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.waiting.retain(|&run| run != open.run);
        }
    }

    /// Whether an earlier life had the head of a reopened session's line at work.
    fn has_begun_head(&self, id: SessionId) -> bool {
        let session = self.sessions.get(&id);
        let head = session.and_then(|session| session.waiting.front());
        head.and_then(|head| self.runs.get(head))
            .is_some_and(|run| run.attempt > Attempt(0))
    }

    /// Notes who stands before each that waits, for the notice of a long wait (B-005).
    fn count_ahead(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else {
            return;
        };
        let active = u32::from(self.has_begun_head(id));
        for (before, run) in (0u32..).zip(&session.waiting) {
            if let Some(run) = self.runs.get_mut(run) {
                let active = active.min(before);
                run.ahead = (active, before - active);
            }
        }
    }

    /// The lease is gone: another process owns the session. What runs here is dropped without
    /// an end, since the end is not ours to tell; then the session is asked for again.
    pub(crate) fn lose(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let hold = session.hold.take();
        let mut lost = Vec::new();
        for run in session.runs().chain(session.detached.iter().copied()) {
            lost.push(run);
            let along = self.runs.get(&run).into_iter().flat_map(|run| &run.along);
            lost.extend(along.copied());
        }
        if let Some(hold) = hold {
            self.reject(hold.request, Rejection::NotOwner);
            for input in &hold.parked {
                self.refuse(input, Rejection::NotOwner);
            }
        }
        let Some(name) = lost.first().copied() else {
            return self.advance(id);
        };
        for run in lost {
            self.abandon(run);
        }
        self.timers.disarm(Timer::Debounce(id));
        let phase = Phase::Loading {
            name: fold(name.0).at(self.now.time),
            ordered: false,
            tries: 0,
            parked: VecDeque::new(),
            must: true,
            again: false,
        };
        self.sessions.insert(id, Session::new(phase));
        self.arm_in(Timer::LoadRetry(id), self.config.store_retry_ms);
        self.advance(id);
    }

    /// Drops a run that is not ours any more.
    fn abandon(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        if let State::Attempting { call } | State::Stopping { call, .. } = run.state {
            self.out(Output::CancelModel { ticket: call });
        }
        self.abandon_round(id);
        self.waits.is_known(id);
        self.drop_run(id, Rejection::NotOwner);
    }
}

/// A short name of the stay that a load begins, never that of a message that came by itself.
const fn stay_of(load: Ticket) -> u16 {
    let Attempt(name) = load.attempt;
    (((name >> 16) ^ name) as u16).wrapping_add(load.ordinal) | 1
}

const fn load_ticket(session: SessionId, name: Attempt, ordinal: u16) -> Ticket {
    Ticket {
        subject: Subject::Session(session),
        order: OrderKind::Load,
        attempt: name,
        ordinal,
    }
}

impl Attempt {
    /// This name, told from the same one at another time.
    const fn at(self, time: Time) -> Self {
        Self(self.0 ^ (time.0 as u32).rotate_left(16))
    }
}

/// A short name from a long one, to tell an order from an earlier one of the same subject.
pub(crate) fn fold(id: [u8; 16]) -> Attempt {
    let (words, _) = id.as_chunks::<4>();
    Attempt(words.iter().fold(0, |fold: u32, word| {
        fold.rotate_left(5) ^ u32::from_be_bytes(*word)
    }))
}
