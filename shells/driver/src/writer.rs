//! The store's one caller: gathers operations into batches while the last one syncs.
//!
//! Group commit falls out of it: what arrives during a sync goes into the next (law 5).
//! The queue has no bound of its own; the core's caps bound what can be ordered at once.

use tidegate_core::{ContentOwner, StoreError, Ticket};
use tokio::sync::{mpsc, oneshot};

use crate::store::{History, SessionRow, Store, StoreDone, StoreOp, TranscriptRow};

/// The most operations in one batch.
const BATCH: usize = 256;

/// Who wants to know what came of an operation.
#[derive(Debug)]
pub(crate) enum Origin {
    /// The core: an order's ticket.
    Order(Ticket),
    /// The attempt whose text was saved: where the piece began and where it ends.
    Save {
        owner: ContentOwner,
        from: usize,
        end: usize,
    },
    /// The model call that waits for its transcript.
    Call(Ticket),
    /// The start: sessions to resume.
    Boot,
    /// A client that lists sessions.
    Sessions(oneshot::Sender<Result<Vec<SessionRow>, StoreError>>),
    /// A client that reads a transcript.
    Transcript(oneshot::Sender<Result<Vec<TranscriptRow>, StoreError>>),
    /// A client that reads a piece of one.
    History(oneshot::Sender<Result<History, StoreError>>),
    /// A client that waits until all before it is done.
    Flush(oneshot::Sender<()>),
}

/// An operation, or only a place in the queue.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) origin: Origin,
    pub(crate) op: Option<StoreOp>,
}

/// What came of an operation of the core or the driver.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) origin: Origin,
    pub(crate) done: StoreDone,
}

/// Runs until all senders of jobs are gone. `Err` if the store died in a panic.
pub(crate) async fn run<S: Store>(
    mut store: S,
    mut jobs: mpsc::UnboundedReceiver<Job>,
    reports: mpsc::UnboundedSender<Done>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        let mut ops = Vec::with_capacity(batch.len());
        let mut origins = Vec::with_capacity(batch.len());
        for job in batch.drain(..) {
            match job.op {
                Some(op) => {
                    ops.push(op);
                    origins.push(job.origin);
                }
                None => origins.push(job.origin),
            }
        }
        let ran = tokio::task::spawn_blocking(move || {
            let done = if ops.is_empty() {
                Vec::new()
            } else {
                store.run(ops)
            };
            (store, done)
        })
        .await;
        // A store that panicked is gone with its thread. Ending here closes the reports,
        // which the driver takes as the loss of its store.
        let Ok((returned, done)) = ran else { return };
        store = returned;
        let mut done = done.into_iter();
        for origin in origins {
            if let Origin::Flush(flushed) = origin {
                let _ = flushed.send(());
                continue;
            }
            let Some(done) = done.next() else { return };
            if !tell(&reports, origin, done) {
                return;
            }
        }
    }
}

/// Hands one result to whom it concerns; `false` when the driver is gone.
fn tell(reports: &mpsc::UnboundedSender<Done>, origin: Origin, done: StoreDone) -> bool {
    match (origin, done) {
        (Origin::Sessions(rows), StoreDone::Sessions(result)) => {
            let _ = rows.send(result);
            true
        }
        (Origin::Transcript(rows), StoreDone::Transcript(result)) => {
            let _ = rows.send(result);
            true
        }
        (Origin::History(history), StoreDone::History(result)) => {
            let _ = history.send(result);
            true
        }
        (origin, done) => reports.send(Done { origin, done }).is_ok(),
    }
}
