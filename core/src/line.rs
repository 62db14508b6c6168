//! A session's line: who waits behind the run at work, who gives way, who goes next (spec 3).
//!
//! Owns what the queue modes do. There is one queue for a session, in the order of arrival;
//! nobody overtakes in it (P05, I29). A message leaves it for a run of its own, along in
//! another one's turn, or with an end that says why.

use alloc::vec::Vec;

use crate::ids::{Attempt, Fingerprint, RunId, SessionId};
use crate::machine::Core;
use crate::outcome::{Outcome, StopReason};
use crate::output::{Event, Rejection, WaitResult};
use crate::queue::{DropPolicy, Place, QueueMode, QueueSettings, Speaker, Turn};
use crate::run::{Run, State};
use crate::session::Session;
use crate::timers::Timer;

impl Turn {
    /// The mode of a chat message, once it is resolved.
    pub(crate) const fn mode(self) -> Option<QueueMode> {
        match self {
            Self::Chat { queue, .. } => queue,
            Self::Agent => None,
        }
    }

    pub(crate) const fn is_chat(self) -> bool {
        matches!(self, Self::Chat { .. })
    }

    const fn is_heartbeat(self) -> bool {
        matches!(
            self,
            Self::Chat {
                speaker: Speaker::Heartbeat,
                ..
            }
        )
    }

    /// This turn with its mode resolved: what the message names, else what the session says.
    /// What happens in a room never cuts in.
    pub(crate) const fn resolved(self, settings: QueueSettings) -> Self {
        match self {
            Self::Agent => Self::Agent,
            Self::Chat {
                queue,
                route,
                speaker,
            } => {
                let queue = match (speaker, queue) {
                    (Speaker::Room, _) => QueueMode::Followup,
                    (_, Some(mode)) => mode,
                    (_, None) => settings.mode,
                };
                Self::Chat {
                    queue: Some(queue),
                    route,
                    speaker,
                }
            }
        }
    }
}

impl Core {
    /// How a session queues: its own settings over the configured ones.
    pub(crate) fn settings(&self, session: &Session) -> QueueSettings {
        session.queue.over(self.config.queue)
    }

    /// Why a newcomer can't be queued, if so.
    pub(crate) fn line_refusal(&self, session: &Session, turn: Turn) -> Option<Rejection> {
        let busy = session.active.is_some() || !session.waiting.is_empty();
        if busy && turn.is_heartbeat() {
            return Some(Rejection::SessionBusy);
        }
        if session.waiting.len() >= self.config.session_queue_cap as usize {
            return Some(Rejection::QueueFull);
        }
        let settings = self.settings(session);
        if !turn.is_chat() || !busy || self.chats(session).count() < settings.cap as usize {
            return None;
        }
        let gives_way = settings.drop != DropPolicy::New
            && session.waiting.iter().any(|&id| self.may_drop(session, id));
        (!gives_way).then_some(Rejection::QueueFull)
    }

    /// Where a newcomer stands that does not begin at once (spec 3.1, rows 2 and 6 to 10).
    pub(crate) fn place_of(&self, session: &Session, turn: Turn) -> Place {
        let queued = Place::Queued {
            ahead: u32::try_from(session.waiting.len())
                .unwrap_or(u32::MAX)
                .saturating_add(u32::from(session.active.is_some())),
        };
        let Some(active) = session.active else {
            return queued;
        };
        let heartbeat_at_work = self
            .runs
            .get(&active)
            .is_some_and(|run| run.turn.is_heartbeat());
        let only_steers = session.waiting.iter().all(|id| {
            self.runs
                .get(id)
                .is_some_and(|run| run.steer == Some(active))
        });
        match turn {
            Turn::Chat {
                speaker: Speaker::User,
                ..
            } if heartbeat_at_work && session.waiting.is_empty() => {
                Place::Interrupting { run: active }
            }
            Turn::Chat {
                queue: Some(QueueMode::Steer),
                ..
            } if only_steers => Place::Steering { into: active },
            Turn::Chat {
                queue: Some(QueueMode::Interrupt),
                ..
            } if session.waiting.is_empty() => Place::Interrupting { run: active },
            _ => queued,
        }
    }

    /// Where a message stands that is accepted now. The run that it was to steer into or to
    /// interrupt may have gone while its row was written: then it stands behind those that were
    /// ahead when it came (P26, P40).
    pub(crate) fn place_now(&mut self, id: RunId) -> Place {
        let Some(run) = self.runs.get_mut(&id) else {
            return Place::Next;
        };
        let session = self.sessions.get(&run.session);
        let active = session.and_then(|session| session.active);
        match run.place {
            Place::Steering { into: at_work } | Place::Interrupting { run: at_work }
                if active != Some(at_work) =>
            {
                let (active, queued) = run.ahead;
                run.steer = None;
                run.place = Place::Queued {
                    ahead: active.saturating_add(queued),
                };
            }
            _ => {}
        }
        run.place
    }

    /// The chat messages in a line whose end is not decided.
    fn chats<'a>(&'a self, session: &'a Session) -> impl Iterator<Item = RunId> + 'a {
        session.waiting.iter().copied().filter(|id| {
            self.runs
                .get(id)
                .is_some_and(|run| run.turn.is_chat() && run.stop.is_none())
        })
    }

    /// Whether a waiting message may give way: a chat message that is to steer nobody at work.
    fn may_drop(&self, session: &Session, id: RunId) -> bool {
        self.runs.get(&id).is_some_and(|run| {
            run.is_queued()
                && run.stop.is_none()
                && (run.steer.is_none() || run.steer != session.active)
        })
    }

    /// A message is durable and stands in its session's line: it interrupts whom it was to
    /// interrupt, and whoever has no room any more gives way.
    pub(crate) fn joined_line(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let (session_id, chat, place) = (run.session, run.turn.is_chat(), run.place);
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.last_joined = self.now.time;
        }
        // It is at work still: the place was looked at when the row was durable.
        if let Place::Interrupting { run } = place {
            self.stop_run(run, StopReason::Interrupt);
            self.shorten_lane_limit(run, self.config.interrupt_settle_ms);
        }
        if chat {
            self.wake_pending(id);
            self.make_room(session_id, id);
        }
    }

    /// Lets the oldest give way until the line is within its cap (spec 16.6).
    fn make_room(&mut self, session_id: SessionId, newcomer: RunId) {
        while let Some(session) = self.sessions.get(&session_id) {
            let settings = self.settings(session);
            // What is not durable yet has no claim to a place, and pushes nobody out.
            let durable = |id: &RunId| {
                self.runs
                    .get(id)
                    .is_some_and(|run| run.state == State::Waiting)
            };
            let chats = self.chats(session).filter(durable).count();
            if chats <= settings.cap as usize {
                return;
            }
            let by = settings.drop;
            let oldest = session
                .waiting
                .iter()
                .copied()
                .find(|id| *id != newcomer && durable(id) && self.may_drop(session, *id));
            let outcome = Outcome::Dropped { by };
            // The policy may have changed since the newcomer was let in.
            let victim = match by {
                DropPolicy::New => newcomer,
                _ => oldest.unwrap_or(newcomer),
            };
            self.end_waiting(victim, outcome);
            if victim == newcomer {
                return; // all others may stay, even if the cap was lowered meanwhile
            }
        }
    }

    /// Ends a durable message that waits.
    pub(crate) fn end_waiting(&mut self, id: RunId, outcome: Outcome) {
        self.detach(id);
        self.finish(id, outcome);
    }

    /// A chat message waits in its queue: whoever waits for its end is told so (R148).
    fn wake_pending(&mut self, id: RunId) {
        if self.is_queued_chat(id) {
            for request in self.waits.of_run(id) {
                self.end_wait(request, WaitResult::Pending);
            }
        }
    }

    /// Whether a run is a chat message that waits behind others.
    pub(crate) fn is_queued_chat(&self, id: RunId) -> bool {
        self.runs.get(&id).is_some_and(|run| {
            run.is_queued()
                && run.stop.is_none()
                && !run.detached
                && matches!(
                    run.state,
                    State::Waiting | State::Accepting { claims: false }
                )
        })
    }

    /// Whether the head of a line must still wait for quiet; then the deadline is armed.
    pub(crate) fn must_debounce(&mut self, session_id: SessionId, head: RunId) -> bool {
        let Some(session) = self.sessions.get(&session_id) else {
            return false;
        };
        let waits = self.runs.get(&head).is_some_and(|run| run.is_debounced());
        let settings = self.settings(session);
        let timer = Timer::Debounce(session_id);
        let now = self.now.time;
        if !waits || settings.debounce_ms == 0 {
            return false;
        }
        let most = u64::from(self.config.queue_debounces_max);
        let limit = session
            .quiet_limit
            .unwrap_or_else(|| now.plus(settings.debounce_ms.saturating_mul(most)));
        let due = session.last_joined.plus(settings.debounce_ms).min(limit);
        if due <= now {
            return false;
        }
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.quiet_limit = Some(limit);
        }
        self.arm(timer, due);
        true
    }

    /// The messages that a run takes along in its turn, bound by its claim: those that were to
    /// steer into it before its first model call, and in collect mode those that wait behind
    /// it. Only neighbours of one route, so that the order stays (I29, I31).
    pub(crate) fn take_along(&mut self, head: RunId) {
        let Some(run) = self.runs.get(&head) else {
            return;
        };
        let Turn::Chat { queue, route, .. } = run.turn else {
            return;
        };
        // What an earlier life began goes on with what it had taken along.
        if run.attempt > Attempt(0) {
            return;
        }
        self.join_turn(head, queue, route);
    }

    /// The messages that steer into a run at a boundary between its tools and the next model
    /// call: the next claim binds them behind the results (I30).
    pub(crate) fn steer_in(&mut self, head: RunId) {
        if let Some(Turn::Chat { route, .. }) = self.runs.get(&head).map(|run| run.turn) {
            self.join_turn(head, None, route);
        }
    }

    /// Takes along the neighbours at the front of the line that steer into the run, and in
    /// collect mode those that are collected too.
    fn join_turn(&mut self, head: RunId, queue: Option<QueueMode>, route: Fingerprint) {
        let Some(run) = self.runs.get(&head) else {
            return;
        };
        let session_id = run.session;
        let Some(session) = self.sessions.get(&session_id) else {
            return;
        };
        let most = self.settings(session).cap as usize;
        let joins = |id: &RunId| {
            self.runs.get(id).is_some_and(|other| {
                let same_route = matches!(other.turn, Turn::Chat { route: r, .. } if r == route);
                let collected = queue == Some(QueueMode::Collect) && other.turn.mode() == queue;
                other.state == State::Waiting
                    && other.stop.is_none()
                    && same_route
                    && (collected || other.steer == Some(head))
            })
        };
        let along: Vec<RunId> = session
            .waiting
            .iter()
            .take_while(|id| joins(id))
            .take(most)
            .copied()
            .collect();
        for &id in &along {
            if let Some(run) = self.runs.get_mut(&id) {
                run.state = State::Along {
                    turn: head,
                    bound: false,
                };
            }
        }
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.waiting.drain(..along.len());
        }
        if let Some(run) = self.runs.get_mut(&head) {
            run.along.extend(along);
        }
    }

    /// The claim of a run is durable: what it took along is bound to its turn.
    pub(crate) fn bind_along(&mut self, head: RunId) {
        let Some(run) = self.runs.get(&head) else {
            return;
        };
        let goes_on = run.stop.is_none();
        for id in run.along.clone() {
            if let Some(other) = self.runs.get_mut(&id)
                && let State::Along { bound, .. } = &mut other.state
                && !core::mem::replace(bound, true)
            {
                let withdrawn = other.stop.take().is_some();
                self.publish(id, Event::Bound { turn: head });
                if withdrawn && goes_on {
                    self.abort_ended(id, false); // too late: it ends with its turn
                }
            }
        }
    }

    /// The claim that was to bind them was not written: they go back to where they stood.
    pub(crate) fn give_back_along(&mut self, head: RunId) {
        let Some(run) = self.runs.get_mut(&head) else {
            return;
        };
        let session_id = run.session;
        let along = core::mem::take(&mut run.along);
        let (bound, back): (Vec<RunId>, Vec<RunId>) = along.into_iter().partition(|id| {
            matches!(
                self.runs.get(id).map(|run| &run.state),
                Some(State::Along { bound: true, .. })
            )
        });
        if let Some(run) = self.runs.get_mut(&head) {
            run.along = bound;
        }
        for &id in back.iter().rev() {
            if let Some(run) = self.runs.get_mut(&id) {
                run.state = State::Waiting;
            }
            if let Some(session) = self.sessions.get_mut(&session_id) {
                session.waiting.push_front(id);
            }
        }
        for id in back {
            if let Some(outcome) = self.runs.get(&id).and_then(|run| run.stop) {
                self.end_waiting(id, outcome);
            }
        }
    }

    /// A run left a lane in which it waited: says so if it took longer than is normal.
    pub(crate) fn waited(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            return;
        };
        let ms = self.now.time.since(run.waits_since);
        let (active_ahead, queued_ahead) = run.ahead;
        if ms >= self.config.lane_warn_ms && self.config.lane_warn_ms > 0 {
            self.publish(
                id,
                Event::Waited {
                    ms,
                    active_ahead,
                    queued_ahead,
                },
            );
        }
    }
}

impl Run {
    /// Whether it is a message of a queue: one that an earlier life had at work is none, its
    /// text is in the transcript already.
    fn is_queued(&self) -> bool {
        self.turn.is_chat() && self.attempt == Attempt(0)
    }

    /// Whether it waits for quiet: a chat message that stood behind others and goes on after
    /// them. One that was to steer has waited for its boundary already.
    fn is_debounced(&self) -> bool {
        matches!(self.place, Place::Queued { ahead } if ahead > 0)
            && matches!(
                self.turn.mode(),
                Some(QueueMode::Followup | QueueMode::Collect)
            )
    }
}
