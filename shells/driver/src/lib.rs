//! The shell around the core: it owns a [`Core`](tidegate_core), feeds it facts and carries
//! out its orders through three small traits: [`Store`], [`Models`] and [`Clock`].

mod asked;
mod calls;
mod carry;
mod client;
mod clock;
mod commands;
mod content;
mod driver;
mod models;
mod reply;
mod report;
mod store;
mod writer;

pub use client::{AbortScope, Client, Replies, Stopped};
pub use clock::{Clock, SystemClock};
pub use driver::{Driver, DriverError};
pub use models::{ModelCall, ModelEvent, ModelSink, Models};
pub use reply::{Finished, Placed, Published, Reply, RunEvent, Status, Submission, SubmissionTurn};
pub use store::{
    HISTORY_MAX_BYTES, HISTORY_MAX_ROWS, History, HistoryQuery, PendingInput, Role, RowMark,
    RunNames, SessionRow, Store, StoreDone, StoreOp, StoredText, TranscriptRow,
};
pub use tidegate_core as core;
