//! The shell around the core: it owns a [`Core`](tidegate_core), feeds it facts and carries
//! out its orders through small traits: [`Store`], [`Models`],
//! [`Tools`] and [`Clock`].

mod approvals;
mod asked;
mod calls;
mod carry;
mod client;
mod clock;
mod commands;
mod content;
mod driver;
mod events;
mod models;
mod reply;
mod report;
mod store;
mod tasks;
mod tools;
mod writer;

pub use client::{AbortScope, Client, Replies, Stopped};
pub use clock::{Clock, SystemClock};
pub use driver::{Driver, DriverError};
pub use models::{ModelCall, ModelEvent, ModelSink, Models};
pub use reply::{
    Finished, PendingApproval, Placed, Published, Reply, RunEvent, Status, Submission,
    SubmissionTurn,
};
pub use store::{
    HISTORY_MAX_BYTES, HISTORY_MAX_ROWS, History, HistoryQuery, PendingInput, Role, RowMark,
    RunNames, SessionRow, Store, StoreDone, StoreOp, StoredText, ToolAnswer, TranscriptRow,
};
pub use tidegate_core as core;
pub use tools::{CallText, NoTools, ToolCall, ToolSink, ToolSpec, Tools};
