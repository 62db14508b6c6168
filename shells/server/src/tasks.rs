//! Requests that go on without their connection.
//!
//! What was begun for a client is done also if its socket is lost, and is told to all who
//! listen. Each ends with the driver's answer, so the set is bounded by what the driver holds.

use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The owner of such requests. Dropping it ends them.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    set: Mutex<JoinSet<()>>,
}

/// Comes when the request is done; an error if its task broke.
pub(crate) type Done = oneshot::Receiver<()>;

impl Tasks {
    /// Lets a request go on.
    pub fn go_on(&self, rest: BoxFuture<'static, ()>) -> Done {
        let (done, told) = oneshot::channel();
        // A set is whole after every statement, so a panic elsewhere left nothing half done.
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = set.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "a request's task broke; the gateway goes on");
            }
        }
        set.spawn(async move {
            rest.await;
            let _ = done.send(());
        });
        told
    }
}
