//! I27, I28, I31, R44 to R47, R148, spec 3.1 and 16.6: who waits in a session's queue, and what
//! becomes of whom.
//!
//! Keeps its own list of each session's queue and its own reading of how a message queues.
//! Where the core may know more than can be seen, only what is certain is judged.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Accept, AcceptReport, Answer, ClaimOrder, ConfigureReport, DropPolicy, Event, Fingerprint,
    Input, LoadReport, Outcome, Output, Place, QueueMode, QueueOverride, QueueSettings, Rejection,
    RequestId, RunId, SessionId, Speaker, Subject, Submit, Ticket, Turn, WaitResult,
};

use super::{Check, Moment};
use crate::violation::Code;

#[derive(Clone, Copy, Debug)]
struct Message {
    run: RunId,
    mode: Option<QueueMode>,
    route: Option<Fingerprint>,
    durable: bool,
    /// An abort or an overflow may have decided its end already.
    doubtful: bool,
    /// The run that it was told to steer into.
    into: Option<RunId>,
}

impl Message {
    fn new(run: RunId, turn: Turn) -> Self {
        let (mode, route) = match turn {
            Turn::Agent => (None, None),
            Turn::Chat { queue, route, .. } => (queue, Some(route)),
        };
        Self {
            run,
            mode,
            route,
            durable: false,
            doubtful: false,
            into: None,
        }
    }

    const fn is_chat(&self) -> bool {
        self.route.is_some()
    }
}

#[derive(Debug, Default)]
struct Line {
    waiting: Vec<Message>,
    /// Runs that have left the line by a claim, with what they took along and did not bind.
    work: Vec<(Message, Vec<Message>)>,
    /// Runs that an earlier life had at work and that have not claimed again.
    resumed: Vec<Message>,
    /// The run that is at the model and goes on: it certainly holds the session's lane.
    at_model: Option<RunId>,
    queue: QueueOverride,
}

impl Line {
    fn settings(&self, at: &Moment<'_>) -> QueueSettings {
        let of = self.queue;
        let configured = at.config.queue;
        QueueSettings {
            mode: of.mode.unwrap_or(configured.mode),
            debounce_ms: of.debounce_ms.unwrap_or(configured.debounce_ms),
            cap: of.cap.unwrap_or(configured.cap).max(1),
            drop: of.drop.unwrap_or(configured.drop),
        }
    }

    fn take(&mut self, run: RunId) -> Option<Message> {
        let at = self.waiting.iter().position(|m| m.run == run)?;
        Some(self.waiting.remove(at))
    }

    /// How many of the first may hold the session's lane, and wait for a global one.
    fn first_may_work(&self) -> usize {
        usize::from(self.at_model.is_none())
    }

    fn chats(&self) -> impl Iterator<Item = &Message> {
        self.waiting.iter().filter(|m| m.is_chat())
    }

    fn gone(&mut self, run: RunId) {
        self.take(run);
        self.resumed.retain(|m| m.run != run);
        self.at_model.take_if(|at_model| *at_model == run);
        for (_, along) in &mut self.work {
            along.retain(|m| m.run != run);
        }
        self.give_back(run);
        self.work.retain(|(m, _)| m.run != run);
    }

    /// A run at work claims again: what it takes along then was to steer into it.
    fn joins(&mut self, at: &mut Moment<'_>, run: RunId, claim: &ClaimOrder) {
        let Some(work) = self.work.iter().position(|(m, _)| m.run == run) else {
            return;
        };
        for &other in &claim.along {
            let Some(message) = self.take(other) else {
                continue; // bound, or on its way to that
            };
            let (head, along) = &mut self.work[work];
            if message.route != head.route || message.into != Some(run) || !message.durable {
                at.run(Code::AlongWrong, other);
            }
            along.push(message);
        }
    }

    fn give_back(&mut self, run: RunId) {
        for (_, along) in self.work.iter_mut().filter(|(m, _)| m.run == run) {
            self.waiting.splice(0..0, along.drain(..));
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: BTreeMap<SessionId, Line>,
    of: BTreeMap<RunId, SessionId>,
    submits: BTreeMap<RequestId, Submit>,
    loads: Vec<Ticket>,
    accepting: BTreeMap<Ticket, RunId>,
    changes: BTreeMap<Ticket, (SessionId, QueueOverride)>,
    /// Sessions of which somebody stopped something: it may have waited for the store's word.
    stopped: BTreeSet<SessionId>,
    /// A wait that must be told pending in this step, for this run.
    pending: Option<(RequestId, RunId)>,
    /// The chat message whose row this step made durable.
    joined: Option<RunId>,
}

impl Lines {
    fn line(&mut self, run: RunId) -> Option<&mut Line> {
        self.lines.get_mut(self.of.get(&run)?)
    }

    fn leaves_model(&mut self, run: RunId) {
        if let Some(line) = self.line(run) {
            line.at_model.take_if(|at_model| *at_model == run);
        }
    }

    /// Row 3.1: what the message names, else what the session does; a room never cuts in.
    fn resolved(&self, at: &Moment<'_>, accept: &Accept) -> Option<QueueMode> {
        let named = self.submits.get(&accept.request)?.turn;
        let Turn::Chat { queue, speaker, .. } = named else {
            return None;
        };
        let line = self.lines.get(&accept.session);
        let mode = line.map_or(at.config.queue.mode, |line| line.settings(at).mode);
        match speaker {
            Speaker::Room => Some(QueueMode::Followup),
            Speaker::User | Speaker::Heartbeat => queue.or(Some(mode)),
        }
    }

    fn accepts(&mut self, at: &mut Moment<'_>, ticket: Ticket, accept: &Accept) {
        self.accepting.insert(ticket, accept.run);
        let message = Message::new(accept.run, accept.turn);
        if message.mode != self.resolved(at, accept) {
            at.run(Code::ModeUntrue, accept.run);
        }
        self.of.insert(accept.run, accept.session);
        let line = self.lines.entry(accept.session).or_default();
        match accept.claim {
            Some(_) => line.work.push((message, Vec::new())),
            None => line.waiting.push(message),
        }
    }

    fn claims(&mut self, at: &mut Moment<'_>, run: RunId, claim: &ClaimOrder) {
        let Some(line) = self.line(run) else {
            return;
        };
        let resumed = line.resumed.iter().position(|m| m.run == run);
        let resumed = resumed.map(|at| line.resumed.remove(at));
        let Some(head) = resumed.or_else(|| line.take(run)) else {
            // Behind its tools; or a refused claim that is given again.
            return line.joins(at, run, claim);
        };
        let mut along = Vec::new();
        for &other in &claim.along {
            // What is not in the line was bound by an earlier claim.
            let Some(message) = line.take(other) else {
                continue;
            };
            let collected = head.mode == Some(QueueMode::Collect) && message.mode == head.mode;
            let called = collected || message.into == Some(run);
            if message.route != head.route || !called || !message.durable {
                at.run(Code::AlongWrong, other);
            }
            along.push(message);
        }
        line.work.push((head, along));
    }

    fn dropped(
        &mut self,
        at: &mut Moment<'_>,
        input_of: Option<RunId>,
        run: RunId,
        by: DropPolicy,
    ) {
        let newcomer = self.joined;
        let Some(line) = self.line(run) else {
            return;
        };
        let Some(place) = line.waiting.iter().position(|m| m.run == run) else {
            return at.run(Code::DropWrong, run);
        };
        let own = input_of == Some(run);
        let message = line.waiting[place];
        let work = line.work.iter().map(|(m, _)| m.run);
        let first = line.waiting.first().map(|m| m.run);
        // What an earlier life had at work is at work again, before its claim says so.
        let resumed = line.resumed.iter().map(|m| m.run);
        let at_work: Vec<RunId> = work.chain(first).chain(resumed).collect();
        let steers = |m: &Message| m.into.is_some_and(|into| at_work.contains(&into));
        let before = line.waiting.iter().take(place).skip(line.first_may_work());
        let mut droppable =
            before.filter(|m| m.is_chat() && m.durable && !m.doubtful && !steers(m));
        // One that was not durable when it had to give way ends when it is.
        let older = !own && by != DropPolicy::New && droppable.next().is_some();
        let newest = by == DropPolicy::New && newcomer != Some(run) && !own;
        if !message.is_chat() || older || newest {
            at.run(Code::DropWrong, run);
        }
    }

    fn refused(&mut self, at: &mut Moment<'_>, request: RequestId, why: Rejection) {
        let Some(submit) = self.submits.get(&request) else {
            return;
        };
        let line = self.lines.get(&submit.session);
        let empty = line.is_none_or(|line| {
            line.waiting.is_empty() && line.work.is_empty() && line.resumed.is_empty()
        });
        let heartbeat = matches!(
            submit.turn,
            Turn::Chat {
                speaker: Speaker::Heartbeat,
                ..
            }
        );
        let room = line.is_none_or(|line| {
            let chats = line.chats().count() < line.settings(at).cap as usize;
            line.waiting.len() + line.resumed.len() < at.config.session_queue_cap as usize
                && (chats || submit.turn == Turn::Agent)
        });
        let wrong = match why {
            Rejection::QueueFull => room,
            Rejection::SessionBusy => empty || !heartbeat,
            Rejection::LaneClosed => submit.lane.of_run().cap(at.config) > 0,
            _ => false,
        };
        if wrong {
            at.request(Code::RefusedWrongly, request);
        }
    }

    /// Whether a run waits as a chat message behind others: certainly, or certainly not.
    fn is_queued(&self, run: RunId) -> Option<bool> {
        let line = self.of.get(&run).and_then(|of| self.lines.get(of));
        let Some(line) = line else {
            return Some(false);
        };
        let Some(place) = line.waiting.iter().position(|m| m.run == run) else {
            return Some(false);
        };
        let message = line.waiting[place];
        if !message.is_chat() {
            return Some(false);
        }
        let behind = place >= line.first_may_work();
        (behind && !message.doubtful).then_some(true)
    }

    fn loaded(&mut self, session: SessionId, report: &LoadReport) {
        let LoadReport::Loaded { open, queue, .. } = report else {
            return;
        };
        let line = self.lines.entry(session).or_default();
        line.queue = *queue;
        for run in open {
            self.of.insert(run.run, session);
            // One that an earlier life had at work waits in no queue.
            let mut message = Message::new(run.run, run.turn);
            message.durable = true;
            if run.attempt.0 > 0 {
                line.resumed.push(message);
            } else if run.along.is_none() {
                line.waiting.push(message);
            }
        }
    }

    fn doubt(&mut self, session: SessionId) {
        if let Some(line) = self.lines.get_mut(&session) {
            line.waiting.iter_mut().for_each(|m| m.doubtful = true);
        }
    }
}

impl Check for Lines {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        self.joined = None;
        match input {
            Input::Submit(submit) => {
                self.submits.insert(submit.request, submit.clone());
            }
            Input::Wait { request, run, .. } => {
                let queued = self.is_queued(*run) == Some(true);
                self.pending = queued.then_some((*request, *run));
            }
            Input::Abort { session, .. } => {
                self.stopped.insert(*session);
                self.doubt(*session);
            }
            Input::Accepted { ticket, report } => {
                let Some(run) = self.accepting.remove(ticket) else {
                    return;
                };
                if let AcceptReport::Committed { .. } = report
                    && let Some(session) = self.of.get(&run)
                    && let Some(line) = self.lines.get_mut(session)
                    && let Some(message) = line.waiting.iter_mut().find(|m| m.run == run)
                {
                    message.durable = true;
                    self.joined = message.is_chat().then_some(run);
                    // One that is not durable yet may have to give way to this one.
                    let new = line.waiting.iter_mut().filter(|m| !m.durable);
                    new.for_each(|m| m.doubtful = true);
                }
            }
            Input::Loaded { ticket, report } => {
                let known = self.loads.iter().position(|load| load == ticket);
                if let (Some(at), Subject::Session(session)) = (known, ticket.subject) {
                    self.loads.swap_remove(at);
                    self.loaded(session, report);
                }
            }
            Input::Configured { ticket, report } => {
                if let (Some((session, queue)), ConfigureReport::Committed) =
                    (self.changes.remove(ticket), report)
                {
                    self.lines.entry(session).or_default().queue = queue;
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, .. } => self.loads.push(*ticket),
            Output::Configure {
                ticket,
                session,
                queue,
                ..
            } => {
                self.changes.insert(*ticket, (*session, *queue));
            }
            Output::Accept { ticket, accept } => self.accepts(at, *ticket, accept),
            Output::Claim { fence, claim, .. } => self.claims(at, fence.run, claim),
            Output::StartModel { fence, .. } => {
                if let Some(line) = self.line(fence.run) {
                    line.at_model = Some(fence.run);
                }
            }
            Output::CancelModel { ticket } => {
                if let Subject::Run(run) = ticket.subject {
                    self.leaves_model(run);
                }
            }
            Output::Publish { run, event, .. } => match event {
                Event::Finishing { outcome } => {
                    self.leaves_model(*run);
                    if let Outcome::Dropped { by } = outcome {
                        self.dropped(at, self.joined, *run, *by);
                    }
                    if let Some(line) = self.line(*run) {
                        line.take(*run);
                        for (_, along) in &mut line.work {
                            along.retain(|m| m.run != *run);
                        }
                        line.give_back(*run);
                    }
                }
                Event::Bound { .. } => {
                    if let Some(line) = self.line(*run) {
                        for (_, along) in &mut line.work {
                            along.retain(|m| m.run != *run);
                        }
                    }
                }
                Event::End { .. } => {
                    if let Some(line) = self.line(*run) {
                        line.gone(*run);
                    }
                    self.of.remove(run);
                }
                _ => {}
            },
            Output::Respond { request, answer } => self.answered(at, *request, answer),
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                if let Some(line) = self.line(*run) {
                    line.gone(*run);
                }
                self.of.remove(run);
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, input: &Input) {
        if let Input::Loaded { ticket, .. }
        | Input::WasReset { ticket, .. }
        | Input::Configured { ticket, .. } = input
            && let Subject::Session(session) = ticket.subject
            && self.stopped.remove(&session)
        {
            self.doubt(session);
        }
        if let Some((request, _)) = self.pending.take() {
            at.request(Code::PendingUntrue, request);
        }
        let Some(run) = self.joined else {
            return;
        };
        let Some(line) = self.of.get(&run).and_then(|of| self.lines.get(of)) else {
            return;
        };
        let most = line.settings(at).cap as usize + line.first_may_work();
        let durable = line.chats().filter(|m| m.durable && !m.doubtful).count();
        if durable > most && line.waiting.iter().any(|m| m.run == run) {
            at.run(Code::OverQueue, run);
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }
}

impl Lines {
    fn answered(&mut self, at: &mut Moment<'_>, request: RequestId, answer: &Answer) {
        if self.pending.is_some_and(|(id, _)| id == request) {
            let told = match answer {
                Answer::Wait { result, .. } => *result == WaitResult::Pending,
                answer => matches!(answer, Answer::Rejected(_)),
            };
            if told {
                self.pending = None;
            }
        }
        match answer {
            Answer::Accepted { run, place, .. } => {
                if let (Place::Steering { into }, Some(line)) = (place, self.line(*run)) {
                    let message = line.waiting.iter_mut().find(|m| m.run == *run);
                    let steers = |m: &mut Message| {
                        m.into = Some(*into);
                        m.mode == Some(QueueMode::Steer)
                    };
                    if !message.is_some_and(steers) {
                        at.run(Code::PlaceUntrue, *run);
                    }
                }
            }
            Answer::Wait {
                run,
                result: WaitResult::Pending,
            } if self.is_queued(*run) == Some(false) => {
                at.request(Code::PendingUntrue, request);
            }
            Answer::Rejected(why) => self.refused(at, request, *why),
            _ => {}
        }
    }
}
