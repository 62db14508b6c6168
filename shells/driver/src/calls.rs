//! Model calls under way: started, listened to, cancelled.
//!
//! A call is a task. Its events come to the driver in order, with its end as the last;
//! a cancelled call ends at once for the core, and what its task still says goes nowhere.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use tidegate_core::{Fence, Marker, ModelEnd, ProviderError, RetryAfter, Ticket};
use tokio::sync::mpsc;

use crate::models::{ModelCall, ModelEvent, ModelSink, Models};
use crate::store::TranscriptRow;
use crate::tasks::Held;
use crate::tools::ToolSpec;

/// Events that a call may be ahead of its forwarder.
const SINK_CAPACITY: usize = 64;
/// Events of all calls that may wait for the driver. A fast provider waits for its turn.
pub(crate) const CALL_CAPACITY: usize = 1024;

/// What a call's task says.
#[derive(Debug)]
pub(crate) struct CallEvent {
    pub(crate) ticket: Ticket,
    pub(crate) said: Said,
}

/// An event of the call, or its end.
#[derive(Debug)]
pub(crate) enum Said {
    Event(ModelEvent),
    End(ModelEnd),
}

struct Call {
    fence: Fence,
    /// Which provider of the chain it asks.
    candidate: u16,
    /// None while its transcript is being read.
    task: Option<Held>,
}

/// All calls under way, by ticket.
pub(crate) struct Calls {
    models: Arc<dyn Models>,
    events: mpsc::Sender<CallEvent>,
    by_ticket: BTreeMap<Ticket, Call>,
}

impl Calls {
    pub(crate) fn new(models: Arc<dyn Models>) -> (Self, mpsc::Receiver<CallEvent>) {
        let (events, rx) = mpsc::channel(CALL_CAPACITY);
        (
            Self {
                models,
                events,
                by_ticket: BTreeMap::new(),
            },
            rx,
        )
    }

    /// Notes a call whose transcript is being read.
    pub(crate) fn prepare(&mut self, ticket: Ticket, fence: Fence, candidate: u16) {
        let call = Call {
            fence,
            candidate,
            task: None,
        };
        self.by_ticket.insert(ticket, call);
    }

    /// Whose call it is, if it is under way.
    pub(crate) fn fence(&self, ticket: Ticket) -> Option<Fence> {
        self.by_ticket.get(&ticket).map(|call| call.fence)
    }

    /// What people call a provider of the chain.
    pub(crate) fn name(&self, candidate: u16) -> Arc<str> {
        self.models.name(candidate)
    }

    /// Starts a prepared call about `transcript`, with the tools that it may ask for. One that
    /// was cancelled meanwhile is not started.
    pub(crate) fn start(
        &mut self,
        ticket: Ticket,
        transcript: Vec<TranscriptRow>,
        tools: Arc<[ToolSpec]>,
    ) {
        let Some(entry) = self.by_ticket.get_mut(&ticket) else {
            return;
        };
        if entry.task.is_some() {
            return;
        }
        let fence = entry.fence;
        let call = ModelCall {
            session: fence.session,
            run: fence.run,
            attempt: fence.attempt,
            candidate: entry.candidate,
            transcript,
            tools,
        };
        entry.task = Some(Held::spawn(listen(
            ticket,
            self.models.clone(),
            call,
            self.events.clone(),
        )));
    }

    /// Drops a call; its connection closes with it. Whether it was under way.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> bool {
        self.by_ticket.remove(&ticket).is_some()
    }

    /// Notes that a call has ended.
    pub(crate) fn ended(&mut self, ticket: Ticket) {
        self.by_ticket.remove(&ticket);
    }

    pub(crate) fn cancel_all(&mut self) {
        self.by_ticket.clear();
    }
}

/// Makes the call and forwards what it says, adjacent text that is already here as one (R92).
async fn listen(
    ticket: Ticket,
    models: Arc<dyn Models>,
    call: ModelCall,
    events: mpsc::Sender<CallEvent>,
) {
    let (sink, mut said) = ModelSink::channel(SINK_CAPACITY);
    let words = sink.clone();
    let making = async move { models.call(call, sink).await };
    let mut running = pin!(AssertUnwindSafe(making).catch_unwind());
    let forward = |event| {
        let events = &events;
        async move {
            events
                .send(CallEvent {
                    ticket,
                    said: event,
                })
                .await
                .is_ok()
        }
    };
    let end = loop {
        tokio::select! {
            biased;
            Some(event) = said.recv() => {
                for event in gather(event, &mut said) {
                    if !forward(Said::Event(event)).await {
                        return;
                    }
                }
            }
            end = &mut running => break end,
        }
    };
    // A panic in a provider is its failure, not the gateway's.
    let end = match end {
        Ok(end) => end,
        Err(_) => {
            let lost = "the provider client failed inside; this is a defect".to_owned();
            let _ = said_now(&words, lost);
            ModelEnd::Failed(ProviderError {
                status: None,
                marker: Marker::None,
                retry_after: RetryAfter::Unsaid,
                detail: true,
            })
        }
    };
    while let Ok(event) = said.try_recv() {
        if !forward(Said::Event(event)).await {
            return;
        }
    }
    let _ = forward(Said::End(end)).await;
}

fn said_now(words: &ModelSink, text: String) -> bool {
    words
        .send(ModelEvent::Detail(text))
        .now_or_never()
        .is_some()
}

/// The event and what is already here behind it, with adjacent text merged.
fn gather(first: ModelEvent, more: &mut mpsc::Receiver<ModelEvent>) -> Vec<ModelEvent> {
    let mut events = vec![first];
    while events.len() < SINK_CAPACITY {
        let Ok(event) = more.try_recv() else { break };
        match (events.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(next)) => text.push_str(&next),
            (_, event) => events.push(event),
        }
    }
    events
}
