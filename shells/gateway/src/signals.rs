//! SIGTERM and Ctrl-C, counted: the first asks for an end in order, the second for one without
//! waiting for what is at work, the third for an end at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::problem::Problem;

/// The signals that came so far.
#[derive(Debug)]
pub struct Signals(watch::Receiver<u32>);

impl Signals {
    /// Listens from now on. Needs a runtime.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn listen() -> Result<Self, Problem> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Problem::configuration(format!("signals cannot be listened to: {error}"))
            })
        };
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let (count, counted) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    Some(()) = interrupt.recv() => {}
                    Some(()) = terminate.recv() => {}
                    else => return,
                }
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(Self(counted))
    }

    /// Returns once `n` signals have come.
    pub async fn nth(&self, n: u32) {
        if self.0.clone().wait_for(|count| *count >= n).await.is_err() {
            // No signal can come any more.
            std::future::pending::<()>().await;
        }
    }
}
