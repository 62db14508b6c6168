//! Tool calls under way: started, listened to, asked to stop, dropped.
//!
//! A call is a task. Its output comes to the driver in order, with its end as the last. One that
//! is asked to stop still ends by itself; one that is dropped is gone with all that it started,
//! and what it said last goes nowhere. When either is due is not decided here.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use tidegate_core::{Attempt, CallFacts, CallId, CallKind, RunId, Ticket, ToolEnd};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::tools::{CallText, ToolCall, ToolSink, ToolSpec, Tools};

/// The most output of one call that is kept, in bytes, with the line that says that it was cut
/// (law 9). What comes behind is read and dropped, so that the tool can go on.
pub(crate) const OUTPUT_MAX_BYTES: usize = 1024 * 1024;
/// Stands behind output that was cut.
const CUT: &str = "\n[The output is cut here: at most 1 MiB of a call is kept.]\n";
/// Stands behind the output of a tool that panicked.
const BROKE: &str = "[The tool failed inside; this is a defect of the gateway.]\n";
/// Pieces of output that a call may be ahead of its forwarder.
const SINK_CAPACITY: usize = 64;
/// Pieces of output of all calls that may wait for the driver. A fast tool waits for its turn.
const TASK_CAPACITY: usize = 256;

/// A task that is dropped when nobody holds it any more.
#[derive(Debug)]
pub(crate) struct Held(JoinHandle<()>);

impl Held {
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::task::spawn(task))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a call's task says.
#[derive(Debug)]
pub(crate) struct TaskEvent {
    pub(crate) ticket: Ticket,
    pub(crate) said: ToolSaid,
}

/// Output of a call, or its end.
#[derive(Debug)]
pub(crate) enum ToolSaid {
    Output(String),
    End(ToolEnd),
}

struct Task {
    call: CallId,
    stop: watch::Sender<bool>,
    held: Held,
}

/// All calls under way, by ticket.
pub(crate) struct Tasks {
    tools: Arc<dyn Tools>,
    events: mpsc::Sender<TaskEvent>,
    by_ticket: BTreeMap<Ticket, Task>,
}

impl Tasks {
    pub(crate) fn new(tools: Arc<dyn Tools>) -> (Self, mpsc::Receiver<TaskEvent>) {
        let (events, rx) = mpsc::channel(TASK_CAPACITY);
        let tasks = Self {
            tools,
            events,
            by_ticket: BTreeMap::new(),
        };
        (tasks, rx)
    }

    /// The tools that a model may ask for.
    pub(crate) fn offered(&self) -> Arc<[ToolSpec]> {
        self.tools.offered()
    }

    /// What a call is. One that its tool can't even read is not carried out (P40).
    pub(crate) fn recognise(&self, call: &CallText) -> CallFacts {
        let read = AssertUnwindSafe(|| self.tools.recognise(call));
        std::panic::catch_unwind(read).unwrap_or_else(|_| {
            tracing::error!(tool = call.name, "a tool panicked over a call's arguments");
            CallFacts {
                kind: CallKind::BadArguments,
                guarded: false,
                timeout_ms: None,
            }
        })
    }

    /// Why a call's arguments are bad, if its tool can say it.
    pub(crate) fn complaint(&self, call: &CallText) -> Option<String> {
        let read = AssertUnwindSafe(|| self.tools.complaint(call));
        std::panic::catch_unwind(read).ok().flatten()
    }

    /// Starts a call. A ticket starts once (I34).
    pub(crate) fn start(&mut self, ticket: Ticket, call: ToolCall) {
        if self.by_ticket.contains_key(&ticket) {
            tracing::error!(?ticket, "a tool call was ordered twice");
            return;
        }
        let id = call.id;
        let (sink, output, stop) = ToolSink::channel(SINK_CAPACITY);
        let (tools, events) = (self.tools.clone(), self.events.clone());
        let run = async move { tools.run(call, sink).await };
        let held = Held::spawn(listen(ticket, run, output, events));
        let call = id;
        self.by_ticket.insert(ticket, Task { call, stop, held });
    }

    /// Which call a ticket is, if it is under way.
    pub(crate) fn call(&self, ticket: Ticket) -> Option<CallId> {
        self.by_ticket.get(&ticket).map(|task| task.call)
    }

    /// Asks a call to stop, if it is under way.
    pub(crate) fn cancel(&self, ticket: Ticket) {
        if let Some(task) = self.by_ticket.get(&ticket) {
            let _ = task.stop.send(true);
        }
    }

    /// Notes that a call has ended.
    pub(crate) fn ended(&mut self, ticket: Ticket) {
        self.by_ticket.remove(&ticket);
    }

    /// Drops a call that has not ended and that the core takes for ended.
    pub(crate) fn give_up(&mut self, call: CallId) {
        self.drop_where(|id| *id == call);
    }

    /// Drops what is left of the calls of an attempt.
    pub(crate) fn release(&mut self, run: RunId, attempt: Attempt) {
        self.drop_where(|call| (call.run, call.attempt) == (run, attempt));
    }

    fn drop_where(&mut self, gone: impl Fn(&CallId) -> bool) {
        self.by_ticket.retain(|_, task| {
            let goes = gone(&task.call);
            if goes {
                let CallId { run, attempt, call } = task.call;
                let attempt = attempt.0;
                tracing::warn!(%run, attempt, call, "a tool call that did not stop was dropped");
            }
            !goes
        });
    }

    /// Drops all calls and returns when they are gone, with all that they started.
    pub(crate) async fn drop_all(&mut self) {
        let tasks = core::mem::take(&mut self.by_ticket);
        for task in tasks.values() {
            task.held.0.abort();
        }
        for (_, mut task) in tasks {
            let _ = (&mut task.held.0).await;
        }
    }
}

/// Carries out a call and forwards its output, what is already here as one piece.
async fn listen(
    ticket: Ticket,
    run: impl Future<Output = ToolEnd>,
    mut output: mpsc::Receiver<String>,
    events: mpsc::Sender<TaskEvent>,
) {
    let mut running = pin!(AssertUnwindSafe(run).catch_unwind());
    let mut kept = Kept::default();
    let forward = |said| {
        let events = &events;
        async move { events.send(TaskEvent { ticket, said }).await.is_ok() }
    };
    // Neither goes first: a flood of output must not keep the tool from hearing its stop.
    let end = loop {
        tokio::select! {
            Some(piece) = output.recv() => {
                let text = kept.take(gather(piece, &mut output));
                if let Some(text) = text && !forward(ToolSaid::Output(text)).await {
                    return;
                }
            }
            end = &mut running => break end,
        }
    };
    while let Ok(piece) = output.try_recv() {
        let text = kept.take(gather(piece, &mut output));
        if let Some(text) = text
            && !forward(ToolSaid::Output(text)).await
        {
            return;
        }
    }
    // A panic in a tool is its failure, not the gateway's.
    let end = match end {
        Ok(end) => end,
        Err(_) => {
            tracing::error!(?ticket, "a tool panicked");
            if !forward(ToolSaid::Output(kept.broke())).await {
                return;
            }
            ToolEnd::Failed
        }
    };
    let _ = forward(ToolSaid::End(end)).await;
}

/// The piece and what is already here behind it.
fn gather(mut text: String, more: &mut mpsc::Receiver<String>) -> String {
    while text.len() < OUTPUT_MAX_BYTES {
        let Ok(next) = more.try_recv() else { break };
        text.push_str(&next);
    }
    text
}

/// How much of a call's output was kept.
#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    cut: bool,
    in_line: bool,
}

impl Kept {
    /// What of the next piece is kept, if anything.
    fn take(&mut self, mut text: String) -> Option<String> {
        if self.cut || text.is_empty() {
            return None;
        }
        let room = OUTPUT_MAX_BYTES - CUT.len() - BROKE.len() - 1;
        let room = room.saturating_sub(self.bytes);
        if text.len() > room {
            text.truncate(text.floor_char_boundary(room));
            text.push_str(CUT);
            self.cut = true;
        }
        self.bytes += text.len();
        self.in_line = !text.ends_with('\n');
        Some(text)
    }

    /// The line about a tool that panicked, on a line of its own.
    fn broke(&self) -> String {
        let open = if self.in_line { "\n" } else { "" };
        format!("{open}{BROKE}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law 9: whole characters, one marker, and room for what is said of a panic.
    #[test]
    fn output_is_cut_once_and_at_a_character() {
        let mut kept = Kept::default();
        let first = kept.take("é".repeat(400_000)).expect("it fits");
        assert_eq!(first.len(), 800_000);
        let second = kept.take("é".repeat(400_000)).expect("a part fits");
        assert!(second.ends_with(CUT));
        assert_eq!(kept.take("more".to_owned()), None);
        let all = first.len() + second.len() + kept.broke().len();
        assert!(
            all <= OUTPUT_MAX_BYTES && all > OUTPUT_MAX_BYTES - 4,
            "{all}"
        );
    }
}
