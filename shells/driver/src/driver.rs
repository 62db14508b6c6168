//! The loop: owns the core, hands in what happened, carries out what it orders.
//!
//! It takes no decision. Per wake it hands in every report that has come, then what clients
//! asked, and only then says that time passed, so that a deadline never beats a report that
//! was already here (law 7). A drain is copied out before anything is awaited.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{Config, Core, Halt, Input, Output, RequestId, StoreError, Time};
use tidegate_text::Fingerprinter;
use tokio::sync::{mpsc, oneshot};

use crate::approvals::Approvals;
use crate::asked::Asked;
use crate::calls::{CallEvent, Calls};
use crate::client::{Client, Command};
use crate::clock::Clock;
use crate::content::{Contents, Runs};
use crate::events::Listeners;
use crate::models::Models;
use crate::reply::Status;
use crate::store::{Store, StoreOp};
use crate::tasks::{TaskEvent, Tasks};
use crate::tools::Tools;
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
    pub(crate) fingerprints: Fingerprinter,
    pub(crate) contents: Contents,
    pub(crate) runs: Runs,
    pub(crate) asked: Asked,
    pub(crate) listeners: Listeners,
    pub(crate) calls: Calls,
    pub(crate) tasks: Tasks,
    pub(crate) approvals: Approvals,
    pub(crate) jobs: mpsc::UnboundedSender<Job>,
    /// Inputs that carrying out an order brought about at once.
    pub(crate) follow: Vec<Input>,
    own_requests: u128,
    commands: mpsc::UnboundedReceiver<Command>,
    reports: mpsc::UnboundedReceiver<Done>,
    said: mpsc::Receiver<CallEvent>,
    worked: mpsc::Receiver<TaskEvent>,
    writer: Option<futures_util::future::BoxFuture<'static, ()>>,
    pub(crate) failed: Option<DriverError>,
    /// Who waits for the end of the drain; `None` once it is over.
    pub(crate) drains: Option<Vec<oneshot::Sender<()>>>,
    wake: Option<Time>,
}

impl Driver {
    /// A driver over a store, models, tools ([`NoTools`](crate::NoTools) for none) and a clock.
    /// `key` is the state directory's fingerprint key; with another one, the store's rows can't
    /// be found again.
    #[must_use]
    pub fn new<S: Store>(
        config: Config,
        store: S,
        models: Arc<dyn Models>,
        tools: Arc<dyn Tools>,
        clock: Arc<dyn Clock>,
        key: [u8; 32],
    ) -> (Self, Client) {
        let (client, commands) = Client::channel();
        let (jobs, queue) = mpsc::unbounded_channel();
        let (done, reports) = mpsc::unbounded_channel();
        let (calls, said) = Calls::new(models);
        let (tasks, worked) = Tasks::new(tools);
        let driver = Self {
            core: Core::new(config),
            clock,
            fingerprints: Fingerprinter::new(key),
            contents: Contents::default(),
            runs: Runs::default(),
            asked: Asked::default(),
            listeners: Listeners::default(),
            calls,
            tasks,
            approvals: Approvals::default(),
            jobs,
            follow: Vec::new(),
            own_requests: OWN_REQUESTS,
            commands,
            reports,
            said,
            worked,
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
        self.drop_calls().await;
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
                // Behind the commands: a stop gets through however much a tool puts out.
                Some(worked) = self.worked.recv() => self.task_said(worked),
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
            } else if let Ok(worked) = self.worked.try_recv() {
                self.task_said(worked);
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
    pub(crate) fn hand_in(&mut self, input: Input) {
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
    pub(crate) fn own_request(&mut self) -> RequestId {
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

    /// Drops all that is under way outside, and returns when no tool runs any more.
    async fn drop_calls(&mut self) {
        self.calls.cancel_all();
        self.tasks.drop_all().await;
    }

    /// Drops the calls and waits until the store has done what it was told.
    pub(crate) async fn stop(&mut self) {
        self.drop_calls().await;
        let (flushed, done) = oneshot::channel();
        let _ = self.jobs.send(Job {
            origin: Origin::Flush(flushed),
            op: None,
        });
        let _ = done.await;
    }

    pub(crate) fn status(&self) -> Status {
        Status {
            live_runs: self.core.live_runs() as u64,
            active_runs: self.core.active_runs() as u64,
            lane_cap: u64::from(self.core.config().global_lane_cap),
            waits: self.core.open_waits() as u64,
            timers: self.core.armed().count() as u64,
            inputs: self.core.counts().inputs,
            contents: (self.contents.len() + self.asked.len()) as u64,
            draining: self.core.draining(),
            halted: self.core.halted().map(|halt| halt.to_string()),
        }
    }
}
