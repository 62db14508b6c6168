//! What the driver asks of tools, and a tool call as the model wrote it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tidegate_core::{CallFacts, CallId, CallKind, SessionId, ToolEnd};
use tokio::sync::{mpsc, watch};

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// Its parameters: a JSON Schema document of an object.
    pub parameters: String,
}

/// A call as the model wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallText {
    /// Its name among the calls of its answer: the provider's, where that is one.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments: a JSON document, if they are complete.
    pub arguments: String,
}

/// A call to carry out.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Which call.
    pub id: CallId,
    /// The session of its run.
    pub session: SessionId,
    /// That session's key.
    pub session_key: Arc<str>,
    /// The run's idempotency key.
    pub run_key: Arc<str>,
    /// The call.
    pub text: CallText,
}

/// Where a call reports to, and learns that it is to stop. Bounded: a tool that is faster than
/// the gateway waits.
#[derive(Clone, Debug)]
pub struct ToolSink {
    output: mpsc::Sender<String>,
    stop: watch::Receiver<bool>,
}

impl ToolSink {
    /// A sink, the other end of its output with room for `capacity` pieces, and its stop.
    #[must_use]
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<String>, watch::Sender<bool>) {
        let (output, rx) = mpsc::channel(capacity);
        let (stop_tx, stop) = watch::channel(false);
        (Self { output, stop }, rx, stop_tx)
    }

    /// Appends to the call's output. Output of a call that nobody waits for goes nowhere.
    pub async fn output(&self, text: String) {
        let _ = self.output.send(text).await;
    }

    /// Waits until the call is to stop. It should end soon then, as gently as it can.
    pub async fn stopped(&self) {
        let mut stop = self.stop.clone();
        // Whoever could say so is gone: that is a stop too.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

/// The tools that are offered. It keeps no clock of its own: limits are the core's (law 1).
pub trait Tools: Send + Sync + 'static {
    /// What the model is told, in a fixed order.
    fn offered(&self) -> Arc<[ToolSpec]>;

    /// What a call is, from its name and arguments alone. Starts nothing.
    fn recognise(&self, call: &CallText) -> CallFacts;

    /// Why a call's arguments are bad, for the model: a sentence that names what was expected.
    /// Asked only of a call that [`Tools::recognise`] calls so; it stands as its output.
    fn complaint(&self, _call: &CallText) -> Option<String> {
        None
    }

    /// Carries out one call and reports to `sink`. [`ToolSink::stopped`] asks it to end;
    /// dropping the returned future ends at once all that it started.
    fn run(&self, call: ToolCall, sink: ToolSink) -> BoxFuture<'static, ToolEnd>;
}

/// No tools at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoTools;

impl Tools for NoTools {
    fn offered(&self) -> Arc<[ToolSpec]> {
        Arc::from([])
    }

    fn recognise(&self, _: &CallText) -> CallFacts {
        CallFacts {
            kind: CallKind::NoSuchTool,
            guarded: false,
            timeout_ms: None,
        }
    }

    fn run(&self, _: ToolCall, _: ToolSink) -> BoxFuture<'static, ToolEnd> {
        Box::pin(async { ToolEnd::Failed })
    }
}
