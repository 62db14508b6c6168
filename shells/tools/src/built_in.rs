//! [`BuiltIn`]: which tools are offered, and which of them a call means.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tidegate_core::{CallFacts, CallKind, ToolEnd};
use tidegate_driver::{CallText, ToolCall, ToolSink, ToolSpec, Tools};

use crate::exec::Exec;

/// The tools of this gateway. Without [`Exec`] it offers none: nothing acts unless the
/// configuration says so.
#[derive(Clone, Debug, Default)]
pub struct BuiltIn {
    exec: Option<Arc<Exec>>,
    offered: Arc<[ToolSpec]>,
}

impl BuiltIn {
    /// The tools of a gateway that lets commands run, or of one that does not.
    #[must_use]
    pub fn new(exec: Option<Exec>) -> Self {
        let exec = exec.map(Arc::new);
        Self {
            offered: exec.iter().map(|exec| exec.spec()).collect(),
            exec,
        }
    }

    /// The tool that a call means, if it is offered.
    fn meant(&self, call: &CallText) -> Option<&Arc<Exec>> {
        self.exec.as_ref().filter(|_| call.name == Exec::NAME)
    }
}

impl Tools for BuiltIn {
    fn offered(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.offered)
    }

    fn recognise(&self, call: &CallText) -> CallFacts {
        match self.meant(call) {
            Some(exec) => exec.recognise(&call.arguments),
            None => CallFacts {
                kind: CallKind::NoSuchTool,
                guarded: false,
                timeout_ms: None,
            },
        }
    }

    fn complaint(&self, call: &CallText) -> Option<String> {
        self.meant(call)?.complaint(&call.arguments)
    }

    fn run(&self, call: ToolCall, sink: ToolSink) -> BoxFuture<'static, ToolEnd> {
        match self.meant(&call.text).cloned() {
            Some(exec) => Box::pin(async move { exec.run(&call.text.arguments, &sink).await }),
            None => Box::pin(async move {
                let name = &call.text.name;
                let words = format!("There is no tool {name:?} here; nothing was started.");
                sink.output(words).await;
                ToolEnd::Failed
            }),
        }
    }
}
