//! What the driver asks of durable truth: transactions named by intent, in batches.
//!
//! Nothing here knows of SQL. A [`Store`] carries out a batch in order, as one durable
//! group commit, and says for each operation what came of it. It blocks; the driver calls
//! it on a thread of its own and gathers what arrives meanwhile into the next batch.

use tidegate_core::{
    Accept, AcceptReport, ClaimOrder, ClaimReport, Epoch, Fence, LoadReport, LookupReport, RunId,
    SessionId, SettleReport, StoreError, Terminal, Wall,
};

/// Text that the store keeps about a finished run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredText {
    /// The assistant's text, if the terminal names any.
    pub reply: Option<String>,
    /// The provider's words about its failure, if the terminal names any.
    pub detail: Option<String>,
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
}

/// How complete a transcript row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMark {
    /// A whole message.
    Whole,
    /// What had arrived when the run was stopped, timed out or failed.
    Partial,
    /// What a crash left of an attempt; never an answer (design section 5).
    Interrupted,
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
    /// The run that wrote it.
    pub run: RunId,
    /// The run's idempotency key.
    pub run_key: String,
    /// When it was written.
    pub at: Wall,
    /// The text.
    pub text: String,
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
