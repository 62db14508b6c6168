//! The loop: owns the core, hands in what happened, carries out what it orders.
//!
//! It takes no decision. Per wake it hands in every report that has come, then what clients
//! asked, and only then says that time passed, so that a deadline never beats a report that
//! was already here (law 7). A drain is copied out before anything is awaited.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    AcceptReport, Budget, Config, ContentOwner, Core, Halt, Input, LoadReport, LookupReport,
    ModelEnd, ModelFact, Output, RequestId, StoreError, Subject, Submit, Ticket, Time,
};
use tidegate_text::Fingerprinter;
use tokio::sync::{mpsc, oneshot};

use crate::calls::{CallEvent, Calls, Said};
use crate::carry::Listeners;
use crate::client::{Client, Command, Status};
use crate::clock::Clock;
use crate::content::{Content, Contents, Names, Runs};
use crate::models::{ModelCall, ModelEvent, Models};
use crate::store::{Store, StoreDone, StoreOp};
use crate::writer::{self, Done, Job, Origin};

/// Inputs handed in per wake before deadlines get their turn. A wake costs microseconds an
/// input, so this bounds a deadline's delay by a few tens of milliseconds under any load.
const INPUTS_PER_WAKE: usize = 4_096;
/// Requests that the driver itself makes are numbered from here, far from clients' numbers.
const OWN_REQUESTS: u128 = 1 << 100;

/// Why a driver ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// An invariant of the core broke. Accepted work is durable; a restart resumes it.
    #[error("the core halted: {0}")]
    Halted(Halt),
    /// The store could not say at the start which sessions hold open work. Nothing was
    /// admitted: recovery comes before admission (P23).
    #[error("the store could not list the open work ({0:?}); nothing was admitted")]
    OpenWorkUnknown(StoreError),
    /// The store's thread died. Accepted work is durable; a restart resumes it.
    #[error("the store's thread died")]
    StoreLost,
}

/// The loop around the core. [`Driver::run`] it; talk to it through its [`Client`].
pub struct Driver {
    pub(crate) core: Core,
    clock: Arc<dyn Clock>,
    fingerprints: Fingerprinter,
    pub(crate) contents: Contents,
    pub(crate) runs: Runs,
    pub(crate) listeners: Listeners,
    pub(crate) calls: Calls,
    pub(crate) jobs: mpsc::UnboundedSender<Job>,
    /// Inputs that carrying out an order brought about at once.
    pub(crate) follow: Vec<Input>,
    own_requests: u128,
    commands: mpsc::UnboundedReceiver<Command>,
    reports: mpsc::UnboundedReceiver<Done>,
    said: mpsc::Receiver<CallEvent>,
    writer: Option<futures_util::future::BoxFuture<'static, ()>>,
    failed: Option<DriverError>,
    /// Who waits for the end of the drain; `None` once it is over.
    drains: Option<Vec<oneshot::Sender<()>>>,
    wake: Option<Time>,
}

impl Driver {
    /// A driver over a store, models and a clock. `key` is the state directory's fingerprint
    /// key; with another one, the store's rows can't be found again.
    #[must_use]
    pub fn new<S: Store>(
        config: Config,
        store: S,
        models: Arc<dyn Models>,
        clock: Arc<dyn Clock>,
        key: [u8; 32],
    ) -> (Self, Client) {
        let (client, commands) = Client::channel();
        let (jobs, queue) = mpsc::unbounded_channel();
        let (done, reports) = mpsc::unbounded_channel();
        let (calls, said) = Calls::new(models);
        let driver = Self {
            core: Core::new(config),
            clock,
            fingerprints: Fingerprinter::new(key),
            contents: Contents::default(),
            runs: Runs::default(),
            listeners: Listeners::default(),
            calls,
            jobs,
            follow: Vec::new(),
            own_requests: OWN_REQUESTS,
            commands,
            reports,
            said,
            writer: Some(Box::pin(writer::run(store, queue, done))),
            failed: None,
            drains: Some(Vec::new()),
            wake: None,
        };
        (driver, client)
    }

    /// Runs until [`Client::stop`]. What earlier lives left open is resumed first.
    ///
    /// # Errors
    /// [`DriverError`] when the core halted or the store is lost.
    pub async fn run(mut self) -> Result<(), DriverError> {
        if let Some(writer) = self.writer.take() {
            tokio::task::spawn(writer);
        }
        self.job(Origin::Boot, StoreOp::OpenSessions);
        // Recovery comes before admission: commands wait until the open sessions are known.
        let Some(done) = self.reports.recv().await else {
            return Err(DriverError::StoreLost);
        };
        self.report(done);
        let stopped = self.serve().await;
        self.calls.cancel_all();
        stopped
    }

    async fn serve(&mut self) -> Result<(), DriverError> {
        loop {
            if let Some(error) = self.failed {
                return Err(error);
            }
            let sleep = self.sleep();
            tokio::select! {
                biased;
                done = self.reports.recv() => match done {
                    Some(done) => self.report(done),
                    None => return Err(DriverError::StoreLost),
                },
                Some(said) = self.said.recv() => self.call_said(said),
                command = self.commands.recv() => {
                    if self.command(command).await { return Ok(()); }
                }
                () = sleep => {}
            }
            if self.take_waiting().await {
                return Ok(());
            }
            let now = self.clock.now();
            if self.wake.is_some_and(|wake| wake <= now.time) {
                self.hand_in(Input::Tick);
            }
        }
    }

    /// Takes what is already here, reports first. Whether to stop.
    async fn take_waiting(&mut self) -> bool {
        for _ in 0..INPUTS_PER_WAKE {
            if self.failed.is_some() {
                return false;
            }
            if let Ok(done) = self.reports.try_recv() {
                self.report(done);
            } else if let Ok(said) = self.said.try_recv() {
                self.call_said(said);
            } else if let Ok(command) = self.commands.try_recv() {
                if self.command(Some(command)).await {
                    return true;
                }
            } else {
                break;
            }
        }
        false
    }

    /// Sleeps until the promised wake; for ever without one.
    fn sleep(&self) -> impl Future<Output = ()> + use<> {
        let left = self.wake.map(|wake| wake.since(self.clock.now().time));
        async move {
            match left {
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Hands an input in and carries out what follows, and what follows from that.
    fn hand_in(&mut self, input: Input) {
        self.follow.push(input);
        while !self.follow.is_empty() {
            let inputs = std::mem::take(&mut self.follow);
            for input in inputs {
                let now = self.clock.now();
                let orders: Vec<Output> = self.core.handle(now, input).collect();
                for order in orders {
                    self.carry_out(order, now.wall);
                }
            }
        }
    }

    pub(crate) fn job(&self, origin: Origin, op: StoreOp) {
        // The writer ends only with its store; that is noticed where reports are received.
        let _ = self.jobs.send(Job {
            origin,
            op: Some(op),
        });
    }

    /// The drain is over: tells all who wait for it.
    pub(crate) fn drained(&mut self) {
        for done in self.drains.take().into_iter().flatten() {
            let _ = done.send(());
        }
    }

    /// The name of a request that the driver itself makes.
    fn own_request(&mut self) -> RequestId {
        self.own_requests += 1;
        RequestId::from_u128(self.own_requests)
    }

    pub(crate) fn slept(&mut self, until: Option<Time>) {
        self.wake = until;
    }

    pub(crate) fn halt(&mut self, halt: Halt) {
        tracing::error!(%halt, "the core halted");
        self.failed = Some(DriverError::Halted(halt));
    }

    /// A store operation is done.
    fn report(&mut self, Done { origin, done }: Done) {
        match (origin, done) {
            (Origin::Order(ticket), done) => {
                if let Some(input) = self.store_report(ticket, done) {
                    self.hand_in(input);
                }
            }
            (Origin::Call(ticket), StoreDone::Transcript(rows)) => {
                match (rows, self.calls.fence(ticket)) {
                    (Ok(transcript), Some(fence)) => {
                        let call = ModelCall {
                            session: fence.session,
                            run: fence.run,
                            attempt: fence.attempt,
                            transcript,
                        };
                        self.calls.start(ticket, call);
                    }
                    (Err(error), Some(_)) => self.transcript_unreadable(ticket, error),
                    (_, None) => {}
                }
            }
            (Origin::Save { owner, from, end }, StoreDone::Saved { kept }) => {
                // A piece that was not kept is sent again with the next save.
                if let Some(content) = self.contents.get_mut(owner)
                    && kept != Some(end as u64)
                {
                    content.saved = kept.and_then(|k| usize::try_from(k).ok()).unwrap_or(from);
                }
            }
            (Origin::Boot, StoreDone::OpenSessions(sessions)) => match sessions {
                Ok(sessions) => {
                    for session in sessions {
                        let request = self.own_request();
                        self.hand_in(Input::Resume { request, session });
                    }
                }
                Err(error) => self.failed = Some(DriverError::OpenWorkUnknown(error)),
            },
            (_, _) => {
                tracing::error!("the store answered something else than it was asked")
            }
        }
    }

    /// The core's report of a done operation. Texts and names are laid first.
    fn store_report(&mut self, ticket: Ticket, done: StoreDone) -> Option<Input> {
        let request = match ticket.subject {
            Subject::Request(request) => Some(ContentOwner::Request(request)),
            _ => None,
        };
        Some(match done {
            StoreDone::Loaded { report, names } => {
                if let LoadReport::Loaded { open, .. } = &report {
                    for (run, names) in open.iter().zip(names) {
                        self.runs.insert(run.run, names.into());
                    }
                }
                Input::Loaded { ticket, report }
            }
            StoreDone::Accepted { report, text } => {
                if let (AcceptReport::Duplicate { terminal: Some(_) }, Some(owner)) =
                    (&report, request)
                {
                    self.contents.lay(owner, None, text);
                }
                Input::Accepted { ticket, report }
            }
            StoreDone::Claimed(report) => Input::Claimed { ticket, report },
            StoreDone::Settled(report) => Input::Settled { ticket, report },
            StoreDone::LookedUp {
                report,
                names,
                text,
            } => {
                let owner = match (&report, ticket.subject) {
                    (LookupReport::Ended(terminal), Subject::Run(run)) => {
                        Some(ContentOwner::Attempt(run, terminal.attempt))
                    }
                    _ => request,
                };
                if let (LookupReport::Ended(_), Some(owner)) = (&report, owner) {
                    self.contents.lay(owner, names.map(Names::from), text);
                }
                Input::LookedUp { ticket, report }
            }
            StoreDone::Saved { .. }
            | StoreDone::Transcript(_)
            | StoreDone::OpenSessions(_)
            | StoreDone::Sessions(_) => {
                tracing::error!(?ticket, "the store answered something else");
                return None;
            }
        })
    }

    fn transcript_unreadable(&mut self, ticket: Ticket, error: StoreError) {
        tracing::error!(?error, "a transcript could not be read");
        let owner = self.owner(ticket);
        let detail = owner
            .and_then(|owner| self.contents.get_mut(owner))
            .map(|content| {
                content.detail =
                    Some("The conversation could not be read from the store.".to_owned());
            });
        self.calls.ended(ticket);
        let error = tidegate_core::ProviderError {
            status: None,
            marker: tidegate_core::Marker::None,
            detail: detail.is_some(),
        };
        let fact = ModelFact::Ended(ModelEnd::Failed(error));
        self.hand_in(Input::Model { ticket, fact });
    }

    fn owner(&self, ticket: Ticket) -> Option<ContentOwner> {
        self.calls
            .fence(ticket)
            .map(|fence| ContentOwner::Attempt(fence.run, fence.attempt))
    }

    /// A model call said something. Of a call that was cancelled, nothing is heard.
    fn call_said(&mut self, CallEvent { ticket, said }: CallEvent) {
        let Some(owner) = self.owner(ticket) else {
            return;
        };
        let fact = match said {
            Said::Event(ModelEvent::Alive) => ModelFact::Alive,
            Said::Event(ModelEvent::Structure) => ModelFact::Structure,
            Said::Event(ModelEvent::Reasoning) => ModelFact::Reasoning,
            Said::Event(ModelEvent::Finished) => ModelFact::Finished,
            Said::Event(ModelEvent::Text(text)) => {
                let Some(content) = self.contents.get_mut(owner) else {
                    return;
                };
                content.reply.push_str(&text);
                ModelFact::Text {
                    to: content.reply.len() as u64,
                }
            }
            Said::Event(ModelEvent::Detail(detail)) => {
                if let Some(content) = self.contents.get_mut(owner) {
                    content.detail = Some(detail);
                }
                return;
            }
            Said::End(end) => {
                self.calls.ended(ticket);
                ModelFact::Ended(end)
            }
        };
        self.hand_in(Input::Model { ticket, fact });
    }

    /// A client asked. Whether to stop.
    async fn command(&mut self, command: Option<Command>) -> bool {
        match command {
            Some(Command::Submit {
                id,
                submission,
                replies,
            }) => {
                self.listeners.ask(id, replies);
                let budget = budget_bytes(submission.budget);
                let submit = Submit {
                    request: id,
                    session: self.fingerprints.session(&submission.session_key),
                    run: self.fingerprints.run(&submission.run_key),
                    body: self.fingerprints.body(&[
                        submission.session_key.as_bytes(),
                        submission.message.as_bytes(),
                        &budget,
                    ]),
                    budget: submission.budget,
                };
                let names = Names {
                    run_key: submission.run_key.into(),
                    session_key: submission.session_key.into(),
                };
                self.contents.open(
                    ContentOwner::Request(id),
                    Content {
                        names: Some(names),
                        message: submission.message,
                        ..Content::default()
                    },
                );
                self.hand_in(Input::Submit(submit));
            }
            Some(Command::Wait {
                id,
                run_key,
                timeout_ms,
                replies,
            }) => {
                self.listeners.ask(id, replies);
                let run = self.fingerprints.run(&run_key);
                self.hand_in(Input::Wait {
                    request: id,
                    run,
                    timeout_ms,
                });
            }
            Some(Command::Abort {
                id,
                session_key,
                run_key,
                replies,
            }) => {
                self.listeners.ask(id, replies);
                let session = self.fingerprints.session(&session_key);
                let run = run_key.map(|key| self.fingerprints.run(&key));
                self.hand_in(Input::Abort {
                    request: id,
                    session,
                    run,
                });
            }
            Some(Command::Leave { id }) => {
                self.listeners.leave(id);
                self.hand_in(Input::Leave { request: id });
            }
            Some(Command::Subscribe { events }) => self.listeners.subscribe(events),
            Some(Command::Sessions { limit, rows }) => {
                self.job(Origin::Sessions(rows), StoreOp::Sessions { limit });
            }
            Some(Command::Transcript { session_key, rows }) => {
                let session = self.fingerprints.session(&session_key);
                self.job(Origin::Transcript(rows), StoreOp::Transcript { session });
            }
            Some(Command::Live { session_keys, live }) => {
                let keys = session_keys.iter().map(|key| {
                    let runs = self.core.session_runs(self.fingerprints.session(key));
                    runs.map(|run| self.runs.of(run).run_key).collect()
                });
                let _ = live.send(keys.collect());
            }
            Some(Command::Status { status }) => {
                let _ = status.send(self.status());
            }
            Some(Command::Armed { armed }) => {
                let _ = armed.send(
                    self.core
                        .armed()
                        .map(|armed| (armed.at, armed.timer.name().to_owned()))
                        .collect(),
                );
            }
            Some(Command::Drain { budget_ms, done }) => {
                if let Some(drains) = &mut self.drains {
                    drains.push(done);
                    let request = self.own_request();
                    self.hand_in(Input::Drain { request, budget_ms });
                } else {
                    let _ = done.send(());
                }
            }
            Some(Command::Stop { done }) => {
                self.stop().await;
                let _ = done.send(());
                return true;
            }
            None => {
                self.stop().await;
                return true;
            }
        }
        false
    }

    /// Drops the model calls and waits until the store has done what it was told.
    async fn stop(&mut self) {
        self.calls.cancel_all();
        let (flushed, done) = oneshot::channel();
        let _ = self.jobs.send(Job {
            origin: Origin::Flush(flushed),
            op: None,
        });
        let _ = done.await;
    }

    fn status(&self) -> Status {
        Status {
            live_runs: self.core.live_runs() as u64,
            active_runs: self.core.active_runs() as u64,
            lane_cap: u64::from(self.core.config().global_lane_cap),
            waits: self.core.open_waits() as u64,
            timers: self.core.armed().count() as u64,
            inputs: self.core.counts().inputs,
            contents: self.contents.len() as u64,
            draining: self.core.draining(),
            halted: self.core.halted().map(|halt| halt.to_string()),
        }
    }
}

/// A budget as it goes into a request's fingerprint, which outlives this build.
fn budget_bytes(budget: Option<Budget>) -> Vec<u8> {
    match budget {
        None => Vec::new(),
        Some(Budget::Unlimited) => vec![0],
        Some(Budget::Limited(ms)) => ms.to_le_bytes().to_vec(),
    }
}
