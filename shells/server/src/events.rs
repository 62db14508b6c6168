//! Fans events out to the connections, and lets one that was away catch up.
//!
//! One subscription to the driver serves them all: an event is put into its words once, and
//! each connection numbers it for itself. Owns who listens to what, and the logs of the
//! sessions that are at work or listened to; it decides nothing about runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_driver::{Client, Placed, Published, RunEvent};
use tidegate_wire::{ChatState, InFlightRun, MissedEvent, event_name};
use tokio::sync::{Notify, mpsc};

use crate::changes;
use crate::limits::{EVENTS_CAPACITY, SUBSCRIPTIONS_PER_CONNECTION};
use crate::log::{SessionLog, Told, brings_rows};
use crate::outbox::{Outbox, close};
use crate::project;
use crate::tools;
use crate::words::{self, About};

/// The connections that events go to, and what was told lately.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    state: Mutex<State>,
    /// Rows of some session are to be read and told.
    pub(crate) rows: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    next: u64,
    pub(crate) listeners: BTreeMap<u64, Listener>,
    pub(crate) logs: BTreeMap<Arc<str>, SessionLog>,
    /// The highest number of a log that is gone: no later event of its session is below.
    floor: u64,
    /// The bytes of all logs.
    bytes: usize,
    /// Sessions whose rows are to be read and told.
    pub(crate) dirty: BTreeSet<Arc<str>>,
}

/// A connection that events go to.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) outbox: Arc<Outbox>,
    asked_for: Hears,
    /// Whether it hears how all sessions change.
    pub(crate) roster: bool,
    /// The sessions that it hears all of, and how far their rows were told to it.
    pub(crate) keys: BTreeMap<Arc<str>, (u64, u64)>,
    /// The step of a run that it was told of last because it asked: the run and the number.
    reminded: Option<(Arc<str>, u64)>,
}

/// What a connection hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hears {
    /// Of which runs.
    pub runs: Interest,
    /// Whether it asked for what tools do.
    pub tools: bool,
    /// Whether it may decide on tool calls.
    pub approvals: bool,
}

impl From<Interest> for Hears {
    fn from(runs: Interest) -> Self {
        Self {
            runs,
            tools: false,
            approvals: false,
        }
    }
}

/// Of which runs a connection hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// None: it may not.
    Nothing,
    /// All of them.
    Everything,
    /// Those of the sessions that it subscribed to.
    Subscribed,
}

/// A connection's place in the hub. Dropping it ends its events.
#[derive(Debug)]
pub(crate) struct Listening {
    hub: Arc<Hub>,
    /// Names the connection in the hub.
    pub id: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        let listener = state.listeners.remove(&self.id);
        for key in listener.iter().flat_map(|listener| listener.keys.keys()) {
            state.leave(key);
        }
        if listener.is_some_and(|listener| listener.roster) {
            state.leave_roster();
        }
    }
}

/// Keeps a session's log while somebody reads or asks. Dropping it lets go.
#[derive(Debug)]
pub(crate) struct Hold {
    hub: Arc<Hub>,
    key: Arc<str>,
    run: Option<Arc<str>>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        if let Some(log) = state.logs.get_mut(&self.key) {
            log.holds -= 1;
            if let Some(run) = &self.run {
                log.unexpect(run);
            }
        }
        state.let_go(&self.key);
    }
}

/// Where a client that catches up stands.
#[derive(Debug)]
pub(crate) struct Caught {
    /// The number of the last event that was told.
    pub last: u64,
    /// The events that it missed; or, where they are not remembered, the runs at work from
    /// their beginning.
    pub events: Vec<MissedEvent>,
    /// Whether it is the latter.
    pub reset: bool,
}

impl Hub {
    /// Lets a connection hear of everything from now on; of runs as `hears` says.
    pub fn listen(self: &Arc<Self>, outbox: &Arc<Outbox>, hears: impl Into<Hears>) -> Listening {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        let listener = Listener {
            outbox: Arc::clone(outbox),
            asked_for: hears.into(),
            roster: false,
            keys: BTreeMap::new(),
            reminded: None,
        };
        state.listeners.insert(id, listener);
        Listening {
            hub: Arc::clone(self),
            id,
        }
    }

    /// Tells all connections.
    pub fn tell(&self, name: &'static str, payload: &impl serde::Serialize) {
        let payload: Arc<str> = project::to_value(payload).to_string().into();
        for listener in self.lock().listeners.values() {
            listener.outbox.event(name, &payload, false);
        }
    }

    /// Closes all connections.
    pub fn close(&self, code: u16, reason: &str) {
        for listener in self.lock().listeners.values() {
            listener.outbox.close(code, reason);
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // The maps are whole after every statement, so a panic elsewhere left nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries the driver's events to the connections, until the driver ends.
    pub async fn carry(&self, client: Client, mut events: mpsc::Receiver<Arc<Published>>) {
        loop {
            while let Some(event) = events.recv().await {
                self.publish(&event);
            }
            if client.status().await.is_err() {
                return;
            }
            // We fell behind by more than text. Whoever listens must begin anew.
            tracing::warn!(
                "events of runs were lost; connections are closed so that they look again"
            );
            self.close(close::INTERNAL, "events were lost, connect again");
            events = client.subscribe(EVENTS_CAPACITY);
            self.lock().forget();
        }
    }

    /// Tells an event of a run.
    pub fn publish(&self, event: &Arc<Published>) {
        let droppable = matches!(
            event.event,
            RunEvent::Text { .. } | RunEvent::ToolOutput { .. }
        );
        let key = &event.session_key;
        let mut state = self.lock();
        let newcomers = state.next;
        let told = state.with_log(key, |log, total| log.take(event, newcomers, total));
        state.tell_run(key, &told, droppable);
        state.tell_approval(event);
        if let Some(change) = changes::of(event, &state) {
            state.tell_change(&change);
        }
        let appends = matches!(
            event.event,
            RunEvent::Start { .. } | RunEvent::Bound { .. } | RunEvent::End(_)
        ) || brings_rows(&event.event);
        if appends && state.wants_rows(key) {
            state.mark(key, &event.run_key);
            self.rows.notify_one();
        }
        state.let_go(key);
    }

    /// Keeps a session's log until the hold is dropped. With a run: a request is under way
    /// that may be accepted as that run.
    pub fn hold(self: &Arc<Self>, key: &str, run: Option<&str>) -> Hold {
        let (key, run): (Arc<str>, Option<Arc<str>>) = (key.into(), run.map(Into::into));
        self.lock().with_log(&key, |log, _| {
            log.holds += 1;
            if let Some(run) = &run {
                log.expect(run);
            }
        });
        Hold {
            hub: Arc::clone(self),
            key,
            run,
        }
    }

    /// A message was accepted: tells where it stands, unless its run has been heard of already.
    pub fn accepted(&self, about: &About, place: &Placed) {
        let mut state = self.lock();
        let key = &about.session;
        let told = state.with_log(key, |log, total| {
            let is_first = log.accepted(&about.run);
            let said = words::placed(place).filter(|_| is_first);
            said.map(|said| log.tell(about, said, total))
        });
        state.tell_run(key, &told.unwrap_or_default(), false);
        let change = changes::sent(about, &state);
        state.tell_change(&change);
        state.let_go(key);
    }

    /// A connection asked for a run that is in flight: where the run waits for its next
    /// attempt or for its tool calls, it is told so, unless it was told before. Who subscribed
    /// to the session was.
    pub fn remind(&self, listener: u64, key: &str, run: &str) {
        let mut state = self.lock();
        let State {
            logs, listeners, ..
        } = &mut *state;
        let step = logs.get(key).and_then(|log| log.stand_for(run, listener));
        let (Some((number, told)), Some(hearer)) = (step, listeners.get_mut(&listener)) else {
            return;
        };
        let now = Some((Arc::from(run), number));
        if hearer.asked_for.runs != Interest::Everything
            || hearer.keys.contains_key(key)
            || hearer.reminded == now
        {
            return;
        }
        hearer.reminded = now;
        for (name, payload) in &told {
            if let Some(name) = hearer.name_for(name, key) {
                hearer.outbox.event(name, payload, false);
            }
        }
    }

    /// Tells a conversation something that belongs to no run.
    pub fn tell_chat(&self, about: &About, said: ChatState) {
        let mut state = self.lock();
        let told = state.with_log(&about.session, |log, total| {
            log.tell_chat(about, said, total)
        });
        state.tell_run(&about.session, &[told], false);
        state.let_go(&about.session);
    }

    /// How often rows may have come to a session's transcript. Needs a hold.
    pub fn appended(&self, key: &str) -> u64 {
        self.lock().logs.get(key).map_or(0, |log| log.appended)
    }

    /// The run at work and the number of the last event that it tells, if no rows came since
    /// `appended`.
    pub fn look(&self, key: &str, appended: u64) -> Option<(Option<InFlightRun>, u64)> {
        let state = self.lock();
        let log = state.logs.get(key)?;
        (log.appended == appended).then(|| (log.in_flight(), log.shown()))
    }

    /// Lets a connection hear all of a session from here on, and answers its request in the
    /// same instant: nothing is told between. `None`: rows came since `appended`, look again.
    /// `Some(false)`: it listens to too many.
    pub fn subscribe(
        &self,
        listener: u64,
        key: &str,
        rows: (u64, u64),
        (appended, after): (u64, Option<u64>),
        answer: impl FnOnce(Caught) -> String,
    ) -> Option<bool> {
        let mut state = self.lock();
        let State {
            logs, listeners, ..
        } = &mut *state;
        let log = logs.get_mut(key)?;
        if log.appended != appended {
            return None;
        }
        let Some(listener) = listeners.get_mut(&listener) else {
            return Some(true);
        };
        let is_new = !listener.keys.contains_key(key);
        if is_new && listener.keys.len() >= SUBSCRIPTIONS_PER_CONNECTION {
            return Some(false);
        }
        listener.keys.insert(key.into(), rows);
        log.subscribers += usize::from(is_new);
        let missed = after.and_then(|after| log.missed(after));
        let reset = missed.is_none();
        let mut events = missed.unwrap_or_else(|| log.whole());
        events.retain_mut(|event| match listener.name_for(&event.event, key) {
            Some(name) => {
                name.clone_into(&mut event.event);
                true
            }
            None => false,
        });
        let caught = Caught {
            last: log.last(),
            reset,
            events,
        };
        listener.outbox.respond(answer(caught));
        Some(true)
    }

    /// Lets a connection hear no more of a session than before it subscribed.
    pub fn unsubscribe(&self, listener: u64, key: &str) {
        let mut state = self.lock();
        let listener = state.listeners.get_mut(&listener);
        if listener.is_some_and(|listener| listener.keys.remove(key).is_some()) {
            state.leave(key);
        }
    }

    /// Whether a connection hears how all sessions change.
    pub fn set_roster(&self, listener: u64, roster: bool) {
        let mut state = self.lock();
        if let Some(listener) = state.listeners.get_mut(&listener) {
            listener.roster = roster;
        }
        if !roster {
            state.leave_roster();
        }
    }
}

impl State {
    fn with_log<T>(
        &mut self,
        key: &Arc<str>,
        work: impl FnOnce(&mut SessionLog, &mut usize) -> T,
    ) -> T {
        let floor = self.floor;
        let log = self
            .logs
            .entry(Arc::clone(key))
            .or_insert_with(|| SessionLog::new(floor));
        work(log, &mut self.bytes)
    }

    /// Frees a log that nobody needs.
    pub(crate) fn let_go(&mut self, key: &str) {
        let put_off = |log: &SessionLog| !log.dirty.is_empty() && !self.dirty.contains(key);
        if self.logs.get(key).is_some_and(put_off)
            && !self.wants_rows(key)
            && let Some(log) = self.logs.get_mut(key)
        {
            log.dirty.clear();
        }
        if self.logs.get(key).is_some_and(SessionLog::is_idle)
            && let Some(mut log) = self.logs.remove(key)
        {
            self.floor = self.floor.max(log.last());
            log.forget(&mut self.bytes);
        }
    }

    fn leave(&mut self, key: &str) {
        if let Some(log) = self.logs.get_mut(key) {
            log.subscribers -= 1;
        }
        self.let_go(key);
    }

    /// Somebody hears no more of all sessions: rows that were put off for them are let go.
    fn leave_roster(&mut self) {
        let dirty = self.logs.iter().filter(|(_, log)| !log.dirty.is_empty());
        let keys: Vec<Arc<str>> = dirty.map(|(key, _)| Arc::clone(key)).collect();
        for key in keys {
            self.let_go(&key);
        }
    }

    /// Events were lost: nothing that is held is sure any more.
    fn forget(&mut self) {
        let keys: Vec<Arc<str>> = self.logs.keys().cloned().collect();
        for key in keys {
            if let Some(log) = self.logs.get_mut(&key) {
                log.forget(&mut self.bytes);
            }
            self.let_go(&key);
        }
    }

    fn tell_run(&self, key: &str, told: &[Told], droppable: bool) {
        for listener in self.listeners.values() {
            for (name, payload) in told {
                if let Some(name) = listener.name_for(name, key) {
                    listener.outbox.event(name, payload, droppable);
                }
            }
        }
    }

    /// Tells those who may decide that a call waits for a person, or waits no more.
    fn tell_approval(&self, event: &Published) {
        let (name, payload) = match &event.event {
            RunEvent::ToolAsked(asked) => (
                event_name::APPROVAL_REQUESTED,
                words::written(&tools::pending(asked)),
            ),
            other => match tools::over(other, event.at.0) {
                Some(over) => (event_name::APPROVAL_RESOLVED, words::written(&over)),
                None => return,
            },
        };
        let may_decide = |listener: &&Listener| listener.asked_for.approvals;
        for listener in self.listeners.values().filter(may_decide) {
            listener.outbox.event(name, &payload, false);
        }
    }

    /// Tells how a session changed to those who subscribed to that.
    pub(crate) fn tell_change(&self, change: &tidegate_wire::SessionsChanged) {
        let key = change.session_key.as_str();
        let mut hears = self
            .listeners
            .values()
            .filter(|listener| listener.hears(key))
            .peekable();
        if hears.peek().is_none() {
            return;
        }
        let payload = words::written(change);
        for listener in hears {
            listener
                .outbox
                .event(event_name::SESSIONS_CHANGED, &payload, false);
        }
    }

    pub(crate) fn wants_rows(&self, key: &str) -> bool {
        self.listeners.values().any(|listener| listener.hears(key))
    }

    /// Rows of a run may have come to a transcript.
    pub(crate) fn mark(&mut self, key: &Arc<str>, run: &Arc<str>) {
        if let Some(log) = self.logs.get_mut(key) {
            log.dirty.insert(Arc::clone(run));
            self.dirty.insert(Arc::clone(key));
        }
    }
}

impl Listener {
    /// The name under which it hears an event of a run; `None`: it does not. What tools do is
    /// told as `agent` to who asked for it, and as `session.tool` to who only subscribed.
    pub(crate) fn name_for(&self, name: &str, key: &str) -> Option<&'static str> {
        let hears_run = match self.asked_for.runs {
            Interest::Nothing => return None,
            Interest::Everything => true,
            Interest::Subscribed => self.keys.contains_key(key),
        };
        match name {
            event_name::SESSION_TOOL if hears_run && self.asked_for.tools => {
                Some(event_name::AGENT)
            }
            event_name::SESSION_TOOL => self.hears(key).then_some(event_name::SESSION_TOOL),
            event_name::CHAT => hears_run.then_some(event_name::CHAT),
            _ => hears_run.then_some(event_name::AGENT),
        }
    }

    /// Whether it hears of a session's rows and changes.
    pub(crate) fn hears(&self, key: &str) -> bool {
        self.roster || self.keys.contains_key(key)
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
