//! A small model of the rules, kept in plain maps: what the store must say and hold.

mod reads;
mod tools;

use std::collections::BTreeMap;

use tidegate_core::{
    Accept, AcceptReport, Attempt, Budget, CallResult, Claim, ClaimOrder, ClaimReport,
    ConfigureReport, DropPolicy, Epoch, Fence, Fingerprint, Generation, LaneName, Outcome,
    Priority, QueueOverride, Reply, ResetReport, RunId, SessionId, SettleReport, StopReason,
    StoreError, Terminal, Turn, Wall,
};
use tidegate_driver::{Role, RowMark, RunNames, StoreDone, StoreOp, StoredText, TranscriptRow};

struct Run {
    ordinal: usize,
    session: SessionId,
    key: String,
    body: Fingerprint,
    budget: Option<Budget>,
    accepted_at: Wall,
    turn: Turn,
    lane: LaneName,
    priority: Priority,
    /// Until it is in the transcript.
    message: Option<String>,
    along: Option<RunId>,
    attempt: Attempt,
    left_ms: Option<u64>,
    claimed_at: Wall,
    saved_at: Wall,
    partial: String,
    /// The calls of its attempt that have no result.
    calls: Vec<tools::Call>,
    end: Option<(Terminal, StoredText)>,
}

struct Session {
    ordinal: usize,
    key: String,
    created_at: Wall,
    updated_at: Wall,
    writer: Option<(RunId, Attempt)>,
    generation: Generation,
    queue: QueueOverride,
    rows: BTreeMap<Generation, Vec<TranscriptRow>>,
}

impl Session {
    fn current(&self) -> &[TranscriptRow] {
        self.rows.get(&self.generation).map_or(&[], Vec::as_slice)
    }
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
                outputs,
            } => StoreDone::Claimed(if *epoch != self.epoch {
                ClaimReport::NotOwner
            } else if !self.may_claim(fence, claim) {
                ClaimReport::Fenced
            } else if !self.may_bind(fence, claim)
                || !self.may_close(fence.run, &claim.results, outputs)
            {
                ClaimReport::Refused(StoreError::Io)
            } else {
                ClaimReport::Committed(self.claim(fence, claim, outputs))
            }),
            StoreOp::Launch {
                fence,
                epoch,
                launch,
                text,
                calls,
            } => StoreDone::Launched(self.launch(fence, *epoch, launch, text, calls)),
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
                results,
                outputs,
            } => {
                let calls = (&results[..], &outputs[..]);
                StoreDone::Settled(self.settle(fence, *epoch, terminal, text, calls))
            }
            StoreOp::Lookup { run } => self.lookup(*run),
            StoreOp::Reset { .. } | StoreOp::Configure { .. } => self.change(op),
            StoreOp::Transcript { session } => StoreDone::Transcript(Ok(self
                .sessions
                .get(session)
                .map(|session| session.current().to_vec())
                .unwrap_or_default())),
            StoreOp::History { session, query } => {
                StoreDone::History(Ok(self.history(*session, query)))
            }
            StoreOp::OpenSessions => StoreDone::OpenSessions(Ok(self.open_sessions())),
            StoreOp::Sessions { limit } => StoreDone::Sessions(Ok(self.list(*limit))),
        }
    }

    /// What comes of an order on a session as a whole.
    fn change(&mut self, op: &StoreOp) -> StoreDone {
        match op {
            StoreOp::Reset {
                session,
                session_key,
                generation,
                epoch,
                at,
            } => StoreDone::WasReset(if self.may_change(*session, *generation, *epoch) {
                self.reset(*session, session_key, *at)
            } else {
                ResetReport::NotOwner
            }),
            StoreOp::Configure {
                session,
                session_key,
                generation,
                epoch,
                queue,
                at,
            } => StoreDone::Configured(if self.may_change(*session, *generation, *epoch) {
                self.touch_or_insert(*session, session_key, *at).queue = *queue;
                ConfigureReport::Committed
            } else {
                ConfigureReport::NotOwner
            }),
            other => unreachable!("no order on a session: {other:?}"),
        }
    }

    /// The generation that a session is at.
    pub(crate) fn generation(&self, session: SessionId) -> Generation {
        self.sessions
            .get(&session)
            .map_or(Generation(1), |session| session.generation)
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
        } else if accept.generation != self.generation(accept.session) {
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
                self.may_claim(&fence, order)
                    .then(|| self.claim(&fence, order, &[]))
            });
            AcceptReport::Committed { claim }
        };
        StoreDone::Accepted { report, text }
    }

    fn touch_or_insert(&mut self, session: SessionId, key: &str, at: Wall) -> &mut Session {
        let ordinal = self.sessions.len();
        let session = self.sessions.entry(session).or_insert_with(|| Session {
            ordinal,
            key: key.into(),
            created_at: at,
            updated_at: at,
            writer: None,
            generation: Generation(1),
            queue: QueueOverride::default(),
            rows: BTreeMap::new(),
        });
        session.updated_at = session.updated_at.max(at);
        session
    }

    fn insert(&mut self, accept: &Accept, names: &RunNames, message: &str) {
        self.touch_or_insert(accept.session, &names.session_key, accept.at);
        let run = Run {
            ordinal: self.runs.len(),
            session: accept.session,
            key: names.run_key.clone(),
            body: accept.body,
            budget: accept.budget,
            accepted_at: accept.at,
            turn: accept.turn,
            lane: accept.lane,
            priority: accept.priority,
            message: Some(message.into()),
            along: None,
            attempt: Attempt(0),
            left_ms: None,
            claimed_at: Wall(0),
            saved_at: Wall(0),
            partial: String::new(),
            calls: Vec::new(),
            end: None,
        };
        self.runs.insert(accept.run, run);
    }

    fn push(&mut self, id: RunId, turn: RunId, kind: (Role, RowMark), at: Wall, text: String) {
        let run = &self.runs[&id];
        let queue = match run.turn {
            Turn::Chat { queue, .. } => queue,
            Turn::Agent => None,
        };
        let session = self
            .sessions
            .get_mut(&run.session)
            .expect("a run has a session");
        let rows = session.rows.entry(session.generation).or_default();
        rows.push(TranscriptRow {
            seq: rows.len() as u64 + 1,
            role: kind.0,
            mark: kind.1,
            run: id,
            run_key: run.key.clone(),
            turn,
            queue,
            at,
            text,
            calls: Vec::new(),
            answers: None,
        });
    }

    /// The row that was pushed last to the transcript of a run's session.
    fn last_row(&mut self, id: RunId) -> &mut TranscriptRow {
        let session = self.runs[&id].session;
        let session = self.sessions.get_mut(&session).expect("known");
        let rows = session.rows.get_mut(&session.generation);
        rows.and_then(|rows| rows.last_mut()).expect("just pushed")
    }

    fn take_partial(&mut self, id: RunId) -> String {
        std::mem::take(&mut self.runs.get_mut(&id).expect("known").partial)
    }

    fn may_claim(&self, fence: &Fence, order: &ClaimOrder) -> bool {
        self.runs.get(&fence.run).is_some_and(|run| {
            run.session == fence.session
                && fence.generation == self.generation(fence.session)
                && run.end.is_none()
                && run.attempt < order.attempt
        })
    }

    /// Whether all that the turn is to take along waits, or is bound to it already.
    fn may_bind(&self, fence: &Fence, order: &ClaimOrder) -> bool {
        order.along.iter().all(|id| {
            self.runs.get(id).is_some_and(|run| {
                run.session == fence.session
                    && run.end.is_none()
                    && (run.along == Some(fence.run) || run.message.is_some())
                    && *id != fence.run
            })
        })
    }

    fn claim(&mut self, fence: &Fence, order: &ClaimOrder, outputs: &[String]) -> Claim {
        let (id, at) = (fence.run, order.at);
        let writer = self.sessions[&fence.session].writer;
        let superseded = match writer {
            Some((previous, _)) if previous != id && self.runs[&previous].end.is_none() => {
                let outcome = Outcome::Superseded;
                self.close(previous, &[], &[], at);
                Some(self.end_in_passing(previous, outcome, at).0)
            }
            _ => None,
        };
        self.close(id, &order.results, outputs, at);
        self.move_dropped(fence.session, Some(id), at);
        if self.runs[&id].message.is_none() {
            self.interrupt(id, at);
        }
        for bound in std::iter::once(&id).chain(&order.along) {
            let run = self.runs.get_mut(bound).expect("known");
            if let Some(message) = run.message.take() {
                run.along = (*bound != id).then_some(id);
                self.push(*bound, id, (Role::User, RowMark::Whole), at, message);
            }
        }
        let run = self.runs.get_mut(&id).expect("known");
        run.attempt = order.attempt;
        run.left_ms = order.left_ms;
        (run.claimed_at, run.saved_at) = (at, at);
        let session = self.sessions.get_mut(&fence.session).expect("known");
        session.writer = Some((id, order.attempt));
        session.updated_at = session.updated_at.max(at);
        Claim { superseded }
    }

    fn move_dropped(&mut self, session: SessionId, turn: Option<RunId>, at: Wall) {
        let dropped = |run: &Run| match run.end {
            Some((
                Terminal {
                    outcome: Outcome::Dropped { by },
                    ..
                },
                _,
            )) => Some(by == DropPolicy::Summarize),
            _ => None,
        };
        let mut moved: Vec<_> = self
            .runs
            .iter()
            .filter(|(_, run)| run.session == session && run.message.is_some())
            .filter_map(|(id, run)| Some((run.ordinal, *id, dropped(run)?)))
            .collect();
        moved.sort_unstable();
        for (_, id, told) in moved {
            let message = self.runs.get_mut(&id).expect("known").message.take();
            let mark = RowMark::Dropped { told };
            let text = message.expect("it is there");
            self.push(id, turn.unwrap_or(id), (Role::User, mark), at, text);
        }
    }

    fn interrupt(&mut self, id: RunId, at: Wall) {
        let left = self.take_partial(id);
        if !left.is_empty() {
            let kind = (Role::Assistant, RowMark::Interrupted);
            self.push(id, id, kind, at, left);
        }
    }

    /// Ends a run that had no word in it: what it had streamed is kept. Gives all the ends.
    fn end_in_passing(
        &mut self,
        id: RunId,
        outcome: Outcome,
        at: Wall,
    ) -> (Terminal, Vec<Terminal>) {
        let text = self.take_partial(id);
        let run = &self.runs[&id];
        let started_at = (run.attempt > Attempt(0)).then(|| run.claimed_at.max(run.accepted_at));
        let terminal = Terminal {
            run: id,
            session: run.session,
            outcome,
            accepted_at: run.accepted_at,
            started_at,
            ended_at: at.max(started_at.unwrap_or(run.accepted_at)),
            attempt: run.attempt,
            reply: match text.len() as u64 {
                0 => Reply::Empty,
                bytes => Reply::Text { bytes },
            },
            detail: false,
            turn: None,
        };
        let mut texts = StoredText::default();
        if !text.is_empty() {
            texts.reply = Some(text.clone());
            let kind = (Role::Assistant, RowMark::Partial);
            self.push(id, id, kind, at, text);
        }
        let along = self.end(terminal, texts);
        (terminal, along)
    }

    /// Ends a run and all that was taken along in its turn; gives the ends of the latter.
    fn end(&mut self, terminal: Terminal, text: StoredText) -> Vec<Terminal> {
        let head = self.runs.get_mut(&terminal.run).expect("known");
        head.end = Some((terminal, text.clone()));
        let turn_key = Some(head.key.clone());
        let session = head.session;
        let along: Vec<_> = self
            .open_of(session)
            .into_iter()
            .filter(|(_, run)| run.along == Some(terminal.run))
            .map(|(id, run)| terminal.along(*id, run.accepted_at))
            .collect();
        for end in &along {
            let text = StoredText {
                turn_key: turn_key.clone(),
                ..text.clone()
            };
            self.runs.get_mut(&end.run).expect("known").end = Some((*end, text));
        }
        along
    }

    fn may_change(&self, session: SessionId, generation: Generation, epoch: Epoch) -> bool {
        epoch == self.epoch && generation == self.generation(session)
    }

    fn reset(&mut self, session: SessionId, key: &str, at: Wall) -> ResetReport {
        if let Some((writer, _)) = self.touch_or_insert(session, key, at).writer {
            self.close(writer, &[], &[], at);
        }
        self.move_dropped(session, None, at);
        let open: Vec<_> = self
            .open_of(session)
            .into_iter()
            .map(|(id, run)| (*id, run.attempt, run.along))
            .collect();
        let mut ended = Vec::new();
        for (id, attempt, along) in open {
            if along.is_none() {
                let outcome = Outcome::Cancelled {
                    by: StopReason::Reset,
                    provider_started: attempt > Attempt(0),
                };
                let (terminal, along) = self.end_in_passing(id, outcome, at);
                ended.push(terminal);
                ended.extend(along);
            }
        }
        ended.sort_by_key(|end| self.runs[&end.run].ordinal);
        let session = self.sessions.get_mut(&session).expect("inserted");
        session.generation.0 += 1;
        session.writer = None;
        ResetReport::Committed {
            generation: session.generation,
            ended,
        }
    }

    fn is_writer(&self, fence: &Fence) -> bool {
        fence.generation == self.generation(fence.session)
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
        (results, outputs): (&[CallResult], &[String]),
    ) -> SettleReport {
        if epoch != self.epoch {
            return SettleReport::NotOwner;
        }
        let waits = fence.attempt == Attempt(0)
            && fence.generation == self.generation(fence.session)
            && text.reply.is_none()
            && self.runs.get(&fence.run).is_some_and(|run| {
                run.session == fence.session
                    && run.end.is_none()
                    && run.attempt == Attempt(0)
                    && run.along.is_none()
            });
        if !waits && !self.is_writer(fence) {
            return SettleReport::Fenced;
        }
        if !self.may_close(fence.run, results, outputs) {
            return SettleReport::Refused(StoreError::Io);
        }
        self.close(fence.run, results, outputs, terminal.ended_at);
        match &text.reply {
            Some(reply) => {
                let mark = match terminal.outcome {
                    Outcome::Completed => RowMark::Whole,
                    _ => RowMark::Partial,
                };
                self.take_partial(fence.run);
                let kind = (Role::Assistant, mark);
                self.push(fence.run, fence.run, kind, terminal.ended_at, reply.clone());
            }
            None => self.interrupt(fence.run, terminal.ended_at),
        }
        self.end(*terminal, text.clone());
        let session = self.sessions.get_mut(&fence.session).expect("known");
        session.updated_at = session.updated_at.max(terminal.ended_at);
        SettleReport::Committed
    }
}
