//! What the driver asks of durable truth: transactions named by intent, in batches.
//!
//! Nothing here knows of SQL. A [`Store`] carries out a batch in order, as one durable
//! group commit, and says for each operation what came of it. It blocks; the driver calls
//! it on a thread of its own and gathers what arrives meanwhile into the next batch.

use tidegate_core::{
    Accept, AcceptReport, CallEnd, CallResult, ClaimOrder, ClaimReport, ConfigureReport, Epoch,
    Fence, Generation, LaunchOrder, LaunchReport, LoadReport, LookupReport, QueueMode,
    QueueOverride, ResetReport, RunId, SessionId, SettleReport, StoreError, Terminal, Wall,
};

use crate::tools::CallText;

/// The most rows that one [`History`] holds, and the most pending messages beside them (law 9).
pub const HISTORY_MAX_ROWS: u32 = 1_000;
/// The most bytes of text in the rows of one [`History`], and in its pending messages. A
/// single text that is larger comes alone.
pub const HISTORY_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Text that the store keeps about a finished run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredText {
    /// The assistant's text, if the terminal names any.
    pub reply: Option<String>,
    /// The provider's words about its failure, if the terminal names any.
    pub detail: Option<String>,
    /// The idempotency key of the turn that took the run along, if one did. Told by the
    /// store; of no use in an order to it.
    pub turn_key: Option<String>,
}

/// The outside names of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunNames {
    /// The session key.
    pub session_key: String,
    /// The idempotency key.
    pub run_key: String,
}

/// Who speaks in a transcript row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The assistant.
    Assistant,
    /// A tool that the assistant called.
    Tool,
}

/// How complete a transcript row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMark {
    /// A whole message.
    Whole,
    /// An answer of the assistant that asks for tool calls; its turn goes on behind their
    /// results, and its text, which may be empty, is not the turn's reply.
    Calls,
    /// What had arrived when the run was stopped, timed out or failed.
    Partial,
    /// What an attempt left that another followed, after a crash or a failed call; never an
    /// answer (P16, B-058).
    Interrupted,
    /// A user's message that gave way in a full queue and was never answered (spec 3.3).
    Dropped {
        /// Whether the model is told its first words.
        told: bool,
    },
}

/// A transcript row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptRow {
    /// Its number within the transcript, from 1, without gaps.
    pub seq: u64,
    /// Who speaks.
    pub role: Role,
    /// How complete it is.
    pub mark: RowMark,
    /// The run that it belongs to.
    pub run: RunId,
    /// The run's idempotency key.
    pub run_key: String,
    /// The run whose claim or end wrote it: for a message that was taken along, the run in
    /// whose turn; else mostly the row's own.
    pub turn: RunId,
    /// The queue mode of a chat message's run.
    pub queue: Option<QueueMode>,
    /// When it was written.
    pub at: Wall,
    /// The text; of a tool's row what the call put out.
    pub text: String,
    /// The calls that a row marked [`RowMark::Calls`] asks for, in their order.
    pub calls: Vec<CallText>,
    /// Which call a tool's row is the result of.
    pub answers: Option<ToolAnswer>,
}

/// Which call a row is the result of, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The call's id, as in the row that asks for it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// How it ended.
    pub end: CallEnd,
}

/// Which piece of a transcript is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    /// The rows after this number, oldest first; `None`: the newest rows.
    pub after_seq: Option<u64>,
    /// At most this many; more than [`HISTORY_MAX_ROWS`] counts as that.
    pub limit: u32,
}

/// A piece of a session's current transcript, all of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The transcript's generation; 1 for a session that has no row yet.
    pub generation: u64,
    /// The rows, oldest first. Within [`HISTORY_MAX_BYTES`]: what is cut off is the far end,
    /// so it can be asked for from here.
    pub rows: Vec<TranscriptRow>,
    /// The number of the transcript's last row, which is how many it has; 0 without one.
    pub last_seq: u64,
    /// Accepted messages that have not ended and are not in the transcript yet, oldest first;
    /// at most [`HISTORY_MAX_ROWS`] and [`HISTORY_MAX_BYTES`] of them.
    pub pending: Vec<PendingInput>,
    /// How many of them there are, with those that `pending` has no room for.
    pub pending_total: u64,
}

/// An accepted message that is not in the transcript yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingInput {
    /// The run's idempotency key.
    pub run_key: String,
    /// The message.
    pub text: String,
    /// When it was accepted.
    pub accepted_at: Wall,
}

/// A row of the list of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// Its key.
    pub session_key: String,
    /// The generation of its transcript.
    pub generation: u64,
    /// When it was first written.
    pub created_at: Wall,
    /// When it was last written.
    pub updated_at: Wall,
    /// The run that last claimed the writer, by its idempotency key.
    pub last_run_key: Option<String>,
    /// How that run ended, if it has.
    pub last_terminal: Option<Terminal>,
    /// Accepted runs that have not ended.
    pub open_runs: u64,
}

/// One operation. See the orders of the core for what each means.
#[derive(Clone, Debug)]
pub enum StoreOp {
    /// [`Output::Load`](tidegate_core::Output::Load).
    Load {
        /// The session.
        session: SessionId,
    },
    /// [`Output::Accept`](tidegate_core::Output::Accept), with the names and the text.
    Accept {
        /// The order.
        accept: Accept,
        /// The outside names, kept so that people can be told them after a restart.
        names: RunNames,
        /// The message.
        message: String,
    },
    /// [`Output::Claim`](tidegate_core::Output::Claim).
    Claim {
        /// Who claims.
        fence: Fence,
        /// The lease.
        epoch: Epoch,
        /// The claim.
        claim: ClaimOrder,
        /// What the calls of its results put out, in their order.
        outputs: Vec<String>,
    },
    /// [`Output::Launch`](tidegate_core::Output::Launch), with the texts.
    Launch {
        /// Who writes.
        fence: Fence,
        /// The lease.
        epoch: Epoch,
        /// The checkpoint.
        launch: LaunchOrder,
        /// The text of the answer that asks for the calls.
        text: String,
        /// All calls that it asks for, in their order.
        calls: Vec<CallText>,
    },
    /// [`Output::Save`](tidegate_core::Output::Save). Needs no sync of its own: a batch of
    /// saves alone may be lost by a power failure, not by the end of the process.
    Save {
        /// Who writes.
        fence: Fence,
        /// The lease.
        epoch: Epoch,
        /// Offset of `text` within the reply, in bytes.
        from: u64,
        /// What the reply grew by since the last save.
        text: String,
        /// Wall time of the save.
        at: Wall,
    },
    /// [`Output::Settle`](tidegate_core::Output::Settle), with the texts.
    Settle {
        /// Who writes.
        fence: Fence,
        /// The lease.
        epoch: Epoch,
        /// The end.
        terminal: Terminal,
        /// The texts that the terminal names.
        text: StoredText,
        /// The results of the calls that have none yet.
        results: Vec<CallResult>,
        /// What these calls put out, in their order.
        outputs: Vec<String>,
    },
    /// [`Output::Reset`](tidegate_core::Output::Reset).
    Reset {
        /// The session.
        session: SessionId,
        /// Its key, for a session that has no row yet.
        session_key: String,
        /// The generation that ends.
        generation: Generation,
        /// The lease.
        epoch: Epoch,
        /// Wall time of the reset.
        at: Wall,
    },
    /// [`Output::Configure`](tidegate_core::Output::Configure).
    Configure {
        /// The session.
        session: SessionId,
        /// Its key, for a session that has no row yet.
        session_key: String,
        /// Its generation.
        generation: Generation,
        /// The lease.
        epoch: Epoch,
        /// What the session sets for itself.
        queue: QueueOverride,
        /// Wall time of the change.
        at: Wall,
    },
    /// [`Output::Lookup`](tidegate_core::Output::Lookup).
    Lookup {
        /// The run.
        run: RunId,
    },
    /// The transcript of a session's current generation, oldest first.
    Transcript {
        /// The session.
        session: SessionId,
    },
    /// A piece of that transcript, with what waits to come into it.
    History {
        /// The session.
        session: SessionId,
        /// Which piece.
        query: HistoryQuery,
    },
    /// The sessions that hold accepted runs without an end, oldest first.
    OpenSessions,
    /// Sessions, last written first.
    Sessions {
        /// At most this many.
        limit: u32,
    },
}

/// What came of one operation, in the order of the batch.
#[derive(Clone, Debug)]
pub enum StoreDone {
    /// Of [`StoreOp::Load`].
    Loaded {
        /// What the core is told.
        report: LoadReport,
        /// The names of the open runs, in the report's order.
        names: Vec<RunNames>,
    },
    /// Of [`StoreOp::Accept`].
    Accepted {
        /// What the core is told.
        report: AcceptReport,
        /// The texts of a duplicate that has ended.
        text: StoredText,
    },
    /// Of [`StoreOp::Claim`].
    Claimed(ClaimReport),
    /// Of [`StoreOp::Save`].
    Saved {
        /// How many bytes of the reply are kept now: the next save begins there. `None` if
        /// the fence stopped it, which is no error, or the store could not do it and keeps
        /// what it had.
        kept: Option<u64>,
    },
    /// Of [`StoreOp::Settle`].
    Settled(SettleReport),
    /// Of [`StoreOp::Launch`].
    Launched(LaunchReport),
    /// Of [`StoreOp::Reset`].
    WasReset(ResetReport),
    /// Of [`StoreOp::Configure`].
    Configured(ConfigureReport),
    /// Of [`StoreOp::Lookup`].
    LookedUp {
        /// What the core is told.
        report: LookupReport,
        /// The run's names, if it is known.
        names: Option<RunNames>,
        /// The texts of a run that has ended.
        text: StoredText,
    },
    /// Of [`StoreOp::Transcript`].
    Transcript(Result<Vec<TranscriptRow>, StoreError>),
    /// Of [`StoreOp::History`].
    History(Result<History, StoreError>),
    /// Of [`StoreOp::OpenSessions`].
    OpenSessions(Result<Vec<SessionId>, StoreError>),
    /// Of [`StoreOp::Sessions`].
    Sessions(Result<Vec<SessionRow>, StoreError>),
}

/// Durable truth. One owner calls it; it blocks.
pub trait Store: Send + 'static {
    /// Carries out a batch in order, durably as a whole before it returns, and gives one
    /// result for each operation. If the medium fails, nothing of the batch was written and
    /// each operation says so; an operation that its fence or condition stops leaves the
    /// others untouched.
    fn run(&mut self, batch: Vec<StoreOp>) -> Vec<StoreDone>;
}
