//! What the driver asks of a model provider.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tidegate_core::{Attempt, Marker, ModelEnd, ProviderError, RetryAfter, RunId, SessionId};
use tokio::sync::mpsc;

use crate::store::TranscriptRow;
use crate::tools::{CallText, ToolSpec};

/// One model call.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// Its attempt.
    pub attempt: Attempt,
    /// Which provider of the chain is asked: 0 is the first choice, n the n-th fallback (P15).
    pub candidate: u16,
    /// The transcript, oldest first. The last user row is the run's message.
    pub transcript: Vec<TranscriptRow>,
    /// The tools that it may ask for.
    pub tools: Arc<[ToolSpec]>,
}

/// What a provider says while it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelEvent {
    /// Bytes without data.
    Alive,
    /// Data without output.
    Structure,
    /// The model thinks.
    Reasoning,
    /// The provider said that its model finished; the call's end is still to come.
    Finished,
    /// The arguments of a tool call grow.
    Calling,
    /// Text to append to the reply.
    Text(String),
    /// The answer asks for this call. In the order of the answer, after all text and right
    /// before the end; arguments that never became complete are told as they are. The name may
    /// be empty, or that of another call.
    Call(CallText),
    /// The provider's own words about its failure, for people. Before the end.
    Detail(String),
}

/// Where a call reports to. Bounded: a provider that is faster than the gateway waits.
#[derive(Clone, Debug)]
pub struct ModelSink(mpsc::Sender<ModelEvent>);

impl ModelSink {
    /// A sink and its other end, with room for `capacity` events.
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<ModelEvent>) {
        let (tx, rx) = mpsc::channel(capacity);
        (Self(tx), rx)
    }

    /// Reports an event. An event of a call that nobody waits for any more goes nowhere.
    pub async fn send(&self, event: ModelEvent) {
        let _ = self.0.send(event).await;
    }

    /// Reports a failure with the provider's words, and gives the end to return.
    pub async fn fail(
        &self,
        status: Option<u16>,
        marker: Marker,
        detail: impl Into<String>,
    ) -> ModelEnd {
        let error = ProviderError {
            status,
            marker,
            retry_after: RetryAfter::Unsaid,
            detail: false,
        };
        self.fail_with(error, detail).await
    }

    /// The same with all that the answer says, but for whether it has words: that is told by
    /// the words.
    pub async fn fail_with(&self, error: ProviderError, detail: impl Into<String>) -> ModelEnd {
        let detail = detail.into();
        let error = ProviderError {
            detail: !detail.is_empty(),
            ..error
        };
        if error.detail {
            self.send(ModelEvent::Detail(detail)).await;
        }
        ModelEnd::Failed(error)
    }
}

/// The model providers of the chain. Dropping the returned future cancels the call and closes
/// its connection. It keeps no clock of its own: limits are the core's (law 1).
pub trait Models: Send + Sync + 'static {
    /// Makes one call and reports to `sink`. Asks the call's candidate and no other, and
    /// repeats nothing by itself.
    fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd>;

    /// What people call a candidate. Everybody who follows a run may be told it: it holds no
    /// address and no key.
    fn name(&self, candidate: u16) -> Arc<str>;
}
