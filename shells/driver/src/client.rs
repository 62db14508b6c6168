//! How servers and embedders talk to a running driver: ask, listen, leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::{
    Attempt, Budget, Outcome, Rejection, RequestId, StoreError, Terminal, Time, Wall,
};
use tokio::sync::{mpsc, oneshot};

use crate::store::{SessionRow, TranscriptRow};

/// A message that asks for a run, in outside names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The session key.
    pub session_key: String,
    /// The idempotency key; it is the run's name.
    pub run_key: String,
    /// The text.
    pub message: String,
    /// The run's own limit, if the request names one.
    pub budget: Option<Budget>,
}

/// A run that has ended, with its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The run's name.
    pub run_key: Arc<str>,
    /// The session's name.
    pub session_key: Arc<str>,
    /// How it ended.
    pub terminal: Terminal,
    /// The assistant's text. The answer only if the run completed.
    pub reply: Option<Arc<str>>,
    /// The provider's own words about its failure.
    pub detail: Option<Arc<str>>,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The message is durable; a final reply follows.
    Accepted {
        /// The run's name.
        run_key: Arc<str>,
        /// The session's name.
        session_key: Arc<str>,
        /// When it was accepted.
        at: Wall,
    },
    /// Accepted earlier and not ended; a final reply follows.
    InFlight {
        /// The run's name.
        run_key: Arc<str>,
        /// The session's name.
        session_key: Arc<str>,
    },
    /// The run has ended.
    Final {
        /// How, with its texts.
        finished: Finished,
        /// Whether this end was told before.
        replay: bool,
    },
    /// The result of a wait: the run has ended.
    WaitEnded(Finished),
    /// The result of a wait: its deadline passed.
    WaitTimedOut {
        /// Whether there is such a run; `None` if the store could not tell in time.
        known: Option<bool>,
    },
    /// The result of a wait: the gateway ends; the next start can be asked.
    WaitDraining,
    /// The runs that an abort stopped.
    Aborted {
        /// Their names.
        run_keys: Vec<Arc<str>>,
    },
    /// Refused; nothing was accepted.
    Rejected(Rejection),
}

/// An event of a run, with its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The run's name.
    pub run_key: Arc<str>,
    /// The session's name.
    pub session_key: Arc<str>,
    /// Its number within the run: from 1, without gaps.
    pub seq: u64,
    /// Wall time of its publication.
    pub at: Wall,
    /// What happened.
    pub event: RunEvent,
}

/// What happened to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// An attempt began.
    Start {
        /// Which.
        attempt: Attempt,
        /// When.
        at: Wall,
    },
    /// The assistant's text grew.
    Text {
        /// By this.
        delta: String,
        /// To this.
        text: String,
    },
    /// The outcome is decided and being written.
    Finishing {
        /// The outcome to come.
        outcome: Outcome,
    },
    /// The run has ended. Its last event.
    End(Finished),
}

/// What the gateway is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Runs that have not ended.
    pub live_runs: u64,
    /// Runs that hold a slot of the global lane.
    pub active_runs: u64,
    /// The global lane's cap.
    pub lane_cap: u64,
    /// Open waits.
    pub waits: u64,
    /// Armed timers.
    pub timers: u64,
    /// Core inputs handled since the start.
    pub inputs: u64,
    /// Pieces of content held.
    pub contents: u64,
    /// Whether new work is refused because the gateway is about to end.
    pub draining: bool,
    /// Why the core halted, if it has.
    pub halted: Option<String>,
}

/// What the driver is told.
#[derive(Debug)]
pub(crate) enum Command {
    Submit {
        id: RequestId,
        submission: Submission,
        replies: mpsc::UnboundedSender<Reply>,
    },
    Wait {
        id: RequestId,
        run_key: String,
        timeout_ms: Option<u64>,
        replies: mpsc::UnboundedSender<Reply>,
    },
    Abort {
        id: RequestId,
        session_key: String,
        run_key: Option<String>,
        replies: mpsc::UnboundedSender<Reply>,
    },
    Leave {
        id: RequestId,
    },
    Subscribe {
        events: mpsc::Sender<Arc<Published>>,
    },
    Sessions {
        limit: u32,
        rows: oneshot::Sender<Result<Vec<SessionRow>, StoreError>>,
    },
    Transcript {
        session_key: String,
        rows: oneshot::Sender<Result<Vec<TranscriptRow>, StoreError>>,
    },
    Live {
        session_keys: Vec<String>,
        live: oneshot::Sender<Vec<Vec<Arc<str>>>>,
    },
    Status {
        status: oneshot::Sender<Status>,
    },
    Armed {
        armed: oneshot::Sender<Vec<(Time, String)>>,
    },
    Drain {
        budget_ms: Option<u64>,
        done: oneshot::Sender<()>,
    },
    Stop {
        done: oneshot::Sender<()>,
    },
}

/// The driver has ended; it answers nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway's driver has stopped")]
pub struct Stopped;

/// The replies to one request. Dropping it tells the core that nobody listens any more; an
/// accepted run goes on (R200).
#[derive(Debug)]
pub struct Replies {
    id: RequestId,
    replies: mpsc::UnboundedReceiver<Reply>,
    commands: mpsc::UnboundedSender<Command>,
    open: bool,
}

impl Replies {
    /// The next reply. A request has one or two: see [`Reply`].
    ///
    /// # Errors
    /// [`Stopped`] if the driver ended before it answered.
    pub async fn next(&mut self) -> Result<Reply, Stopped> {
        let reply = self.replies.recv().await.ok_or(Stopped)?;
        self.open = matches!(reply, Reply::Accepted { .. } | Reply::InFlight { .. });
        Ok(reply)
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        if self.open {
            let _ = self.commands.send(Command::Leave { id: self.id });
        }
    }
}

/// Talks to a running driver. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::UnboundedSender<Command>,
    next: Arc<AtomicU64>,
}

impl Client {
    pub(crate) fn channel() -> (Self, mpsc::UnboundedReceiver<Command>) {
        let (commands, rx) = mpsc::unbounded_channel();
        (
            Self {
                commands,
                next: Arc::new(AtomicU64::new(1)),
            },
            rx,
        )
    }

    fn ask(
        &self,
        command: impl FnOnce(RequestId, mpsc::UnboundedSender<Reply>) -> Command,
    ) -> Replies {
        let id = RequestId::from_u128(u128::from(self.next.fetch_add(1, Ordering::Relaxed)));
        let (tx, replies) = mpsc::unbounded_channel();
        let _ = self.commands.send(command(id, tx));
        Replies {
            id,
            replies,
            commands: self.commands.clone(),
            open: true,
        }
    }

    /// Asks for a run. Replies: `Accepted` or `InFlight`, then `Final`; or one of `Final`
    /// (replayed) and `Rejected`.
    #[must_use]
    pub fn submit(&self, submission: Submission) -> Replies {
        self.ask(|id, replies| Command::Submit {
            id,
            submission,
            replies,
        })
    }

    /// Waits for the end of a run. One reply: `WaitEnded`, `WaitTimedOut`,
    /// `WaitDraining` or `Rejected`.
    #[must_use]
    pub fn wait(&self, run_key: String, timeout_ms: Option<u64>) -> Replies {
        self.ask(|id, replies| Command::Wait {
            id,
            run_key,
            timeout_ms,
            replies,
        })
    }

    /// Stops one run or all runs of a session. One reply: `Aborted` or `Rejected`.
    #[must_use]
    pub fn abort(&self, session_key: String, run_key: Option<String>) -> Replies {
        self.ask(|id, replies| Command::Abort {
            id,
            session_key,
            run_key,
            replies,
        })
    }

    /// Listens to the events of all runs. A listener that is `capacity` events behind loses
    /// text events; when an event that may not be lost does not fit, its channel is closed.
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> mpsc::Receiver<Arc<Published>> {
        let (events, rx) = mpsc::channel(capacity);
        let _ = self.commands.send(Command::Subscribe { events });
        rx
    }

    async fn query<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Stopped> {
        let (tx, rx) = oneshot::channel();
        let _ = self.commands.send(command(tx));
        rx.await.map_err(|_| Stopped)
    }

    /// Sessions, last written first.
    ///
    /// # Errors
    /// [`Stopped`]; inside, what the store says.
    pub async fn sessions(
        &self,
        limit: u32,
    ) -> Result<Result<Vec<SessionRow>, StoreError>, Stopped> {
        self.query(|rows| Command::Sessions { limit, rows }).await
    }

    /// The transcript of a session, oldest first.
    ///
    /// # Errors
    /// [`Stopped`]; inside, what the store says.
    pub async fn transcript(
        &self,
        session_key: String,
    ) -> Result<Result<Vec<TranscriptRow>, StoreError>, Stopped> {
        self.query(|rows| Command::Transcript { session_key, rows })
            .await
    }

    /// For each session key: the names of its runs at work or waiting, in order.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn live(&self, session_keys: Vec<String>) -> Result<Vec<Vec<Arc<str>>>, Stopped> {
        self.query(|live| Command::Live { session_keys, live })
            .await
    }

    /// What the gateway is doing.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn status(&self) -> Result<Status, Stopped> {
        self.query(|status| Command::Status { status }).await
    }

    /// The armed deadlines, soonest first, each with its name.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn armed(&self) -> Result<Vec<(Time, String)>, Stopped> {
        self.query(|armed| Command::Armed { armed }).await
    }

    /// Lets nothing new begin and returns when nothing is at work any more, or when the budget
    /// has passed; `None` is the configured one. Called again, it can only shorten the budget.
    /// Then [`Client::stop`].
    pub async fn drain(&self, budget_ms: Option<u64>) {
        let _ = self.query(|done| Command::Drain { budget_ms, done }).await;
    }

    /// Stops the driver: model calls are dropped, what the store was told is finished.
    /// Accepted work stays durable and is resumed by the next start.
    pub async fn stop(&self) {
        let _ = self.query(|done| Command::Stop { done }).await;
    }
}
