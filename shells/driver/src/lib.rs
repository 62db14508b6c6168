//! The shell around the core: it owns a [`Core`](tidegate_core), feeds it facts and carries
//! out its orders through three small traits: [`Store`], [`Models`] and [`Clock`].

mod calls;
mod carry;
mod client;
mod clock;
mod content;
mod driver;
mod models;
mod store;
mod writer;

pub use client::{
    Client, Finished, Published, Replies, Reply, RunEvent, Status, Stopped, Submission,
};
pub use clock::{Clock, SystemClock};
pub use driver::{Driver, DriverError};
pub use models::{ModelCall, ModelEvent, ModelSink, Models};
pub use store::{
    Role, RowMark, RunNames, SessionRow, Store, StoreDone, StoreOp, StoredText, TranscriptRow,
};
pub use tidegate_core as core;
