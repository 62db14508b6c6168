//! How servers and embedders talk to a running driver: ask, listen, leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::{Decision, QueueChange, RequestId, StoreError, Time};
use tokio::sync::{mpsc, oneshot};

use crate::reply::{PendingApproval, Published, Reply, Status, Submission};
use crate::store::{History, HistoryQuery, SessionRow, TranscriptRow};

/// What an abort is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbortScope {
    /// One run, by its name.
    Run(String),
    /// The run at work in the session; what waits goes on.
    AtWork,
    /// The runs of the session that wait; the one at work goes on.
    Queued,
    /// All runs of the session.
    All,
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
    Session {
        id: RequestId,
        session_key: String,
        ask: SessionAsk,
        replies: mpsc::UnboundedSender<Reply>,
    },
    Decide {
        id: RequestId,
        approval: String,
        decision: Decision,
        replies: mpsc::UnboundedSender<Reply>,
    },
    Leave {
        id: RequestId,
    },
    Subscribe {
        events: mpsc::Sender<Arc<Published>>,
    },
    Look(Look),
    Drain {
        budget_ms: Option<u64>,
        done: oneshot::Sender<()>,
    },
    Stop {
        done: oneshot::Sender<()>,
    },
}

/// What is asked about a session as a whole.
#[derive(Debug)]
pub(crate) enum SessionAsk {
    Abort(AbortScope),
    Reset(Option<u64>),
    Queue(QueueChange),
}

/// A read: of the store, or of what is held.
#[derive(Debug)]
pub(crate) enum Look {
    Sessions {
        limit: u32,
        rows: oneshot::Sender<Result<Vec<SessionRow>, StoreError>>,
    },
    Transcript {
        session_key: String,
        rows: oneshot::Sender<Result<Vec<TranscriptRow>, StoreError>>,
    },
    History {
        session_key: String,
        query: HistoryQuery,
        history: oneshot::Sender<Result<History, StoreError>>,
    },
    Live {
        session_keys: Vec<String>,
        live: oneshot::Sender<Vec<Vec<Arc<str>>>>,
    },
    Approvals {
        approvals: oneshot::Sender<Vec<PendingApproval>>,
    },
    Status {
        status: oneshot::Sender<Status>,
    },
    Armed {
        armed: oneshot::Sender<Vec<(Time, String)>>,
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

    /// Waits for the end of a run. One reply: `WaitEnded`, `WaitTimedOut`, `WaitPending`,
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

    /// Stops runs of a session. One reply: `Aborted` or `Rejected`.
    #[must_use]
    pub fn abort(&self, session_key: String, scope: AbortScope) -> Replies {
        self.about(session_key, SessionAsk::Abort(scope))
    }

    /// Lets a session begin anew: its runs end and its next generation begins (P18); only if
    /// it is at `expected_generation`, where one is named. One reply: `Reset` or `Rejected`.
    #[must_use]
    pub fn reset(&self, session_key: String, expected_generation: Option<u64>) -> Replies {
        self.about(session_key, SessionAsk::Reset(expected_generation))
    }

    /// Shows or changes how a session queues. What is set is durable. One reply: `Queue` or
    /// `Rejected`.
    #[must_use]
    pub fn queue(&self, session_key: String, change: QueueChange) -> Replies {
        self.about(session_key, SessionAsk::Queue(change))
    }

    /// Decides on a tool call that waits for a person, by [`PendingApproval::approval`]. The
    /// first decision counts, and an allowed call is told so when that is durable (R205, I34).
    /// One reply: `Decided`, also to a repetition of the decision that counts; or `Rejected`
    /// with `NotAsked` or `AlreadyDecided`.
    #[must_use]
    pub fn decide(&self, approval: &str, decision: Decision) -> Replies {
        self.ask(|id, replies| Command::Decide {
            id,
            approval: approval.to_owned(),
            decision,
            replies,
        })
    }

    fn about(&self, session_key: String, ask: SessionAsk) -> Replies {
        self.ask(|id, replies| Command::Session {
            id,
            session_key,
            ask,
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

    async fn look<T>(&self, look: impl FnOnce(oneshot::Sender<T>) -> Look) -> Result<T, Stopped> {
        self.query(|tx| Command::Look(look(tx))).await
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
        self.look(|rows| Look::Sessions { limit, rows }).await
    }

    /// The transcript of a session, oldest first.
    ///
    /// # Errors
    /// [`Stopped`]; inside, what the store says.
    pub async fn transcript(
        &self,
        session_key: String,
    ) -> Result<Result<Vec<TranscriptRow>, StoreError>, Stopped> {
        self.look(|rows| Look::Transcript { session_key, rows })
            .await
    }

    /// A piece of a session's transcript, with what was accepted and is not in it yet.
    ///
    /// # Errors
    /// [`Stopped`]; inside, what the store says.
    pub async fn history(
        &self,
        session_key: String,
        query: HistoryQuery,
    ) -> Result<Result<History, StoreError>, Stopped> {
        self.look(|history| Look::History {
            session_key,
            query,
            history,
        })
        .await
    }

    /// For each session key: the names of its runs at work or waiting, in order.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn live(&self, session_keys: Vec<String>) -> Result<Vec<Vec<Arc<str>>>, Stopped> {
        self.look(|live| Look::Live { session_keys, live }).await
    }

    /// The tool calls that wait for a person, oldest first (R205).
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn approvals(&self) -> Result<Vec<PendingApproval>, Stopped> {
        self.look(|approvals| Look::Approvals { approvals }).await
    }

    /// What the gateway is doing.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn status(&self) -> Result<Status, Stopped> {
        self.look(|status| Look::Status { status }).await
    }

    /// The armed deadlines, soonest first, each with its name.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn armed(&self) -> Result<Vec<(Time, String)>, Stopped> {
        self.look(|armed| Look::Armed { armed }).await
    }

    /// Lets nothing new begin and returns when nothing is at work any more, or when the budget
    /// has passed; `None` is the configured one. Called again, it can only shorten the budget.
    /// Then [`Client::stop`].
    pub async fn drain(&self, budget_ms: Option<u64>) {
        let _ = self.query(|done| Command::Drain { budget_ms, done }).await;
    }

    /// Stops the driver: model and tool calls are dropped, what the store was told is finished.
    /// Accepted work stays durable and is resumed by the next start.
    pub async fn stop(&self) {
        let _ = self.query(|done| Command::Stop { done }).await;
    }
}
