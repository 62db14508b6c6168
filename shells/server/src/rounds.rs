//! The tool calls of a run at work, as far as they were told: what runs, what it put out
//! lately, what waits for a person. For a client that comes in the middle of it.
//!
//! Kept until the run asks its model again. It decides nothing about calls.

use std::sync::Arc;

use tidegate_driver::{Published, RunEvent};
use tidegate_wire::{AgentData, ToolStep};

use crate::limits::TOOL_RESULT_CHARS;
use crate::tools;
use crate::words::About;

/// The calls of the answer at hand.
#[derive(Debug, Default)]
pub(crate) struct Round {
    calls: Vec<LiveCall>,
    /// The number of the last event before the first of them.
    pub behind: u64,
    /// Connections from this number on were not there when it was told.
    pub newcomers: u64,
}

#[derive(Debug)]
struct LiveCall {
    id: Arc<str>,
    start: Arc<Published>,
    /// It waits for a person.
    asked: Option<Arc<Published>>,
    end: Option<Arc<Published>>,
    /// The last of its output, and the event that it grew with.
    output: String,
    grew: Option<Arc<Published>>,
}

/// The id of the call that an event is about.
pub(crate) fn id_of(event: &RunEvent) -> Option<&Arc<str>> {
    match event {
        RunEvent::ToolStart { id, .. }
        | RunEvent::ToolOutput { id, .. }
        | RunEvent::ToolEnd { id, .. } => Some(id),
        RunEvent::ToolAsked(asked) | RunEvent::ToolDecided { asked, .. } => Some(&asked.id),
        _ => None,
    }
}

impl Round {
    /// Whether a call was told of.
    pub fn is_open(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether a call has not ended.
    pub fn is_at_work(&self) -> bool {
        self.calls.iter().any(|call| call.end.is_none())
    }

    /// Takes an event of a call in.
    pub fn take(&mut self, event: &Arc<Published>) {
        let Some(id) = id_of(&event.event) else {
            return;
        };
        if let RunEvent::ToolStart { .. } = &event.event {
            self.calls.push(LiveCall {
                id: Arc::clone(id),
                start: Arc::clone(event),
                asked: None,
                end: None,
                output: String::new(),
                grew: None,
            });
            return;
        }
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else {
            return;
        };
        match &event.event {
            RunEvent::ToolOutput { delta, .. } => {
                call.output.push_str(delta);
                if call.output.len() > TOOL_RESULT_CHARS {
                    call.output = tools::tail(&call.output, TOOL_RESULT_CHARS).to_owned();
                }
                call.grew = Some(Arc::clone(event));
            }
            RunEvent::ToolAsked(_) => call.asked = Some(Arc::clone(event)),
            RunEvent::ToolDecided { .. } => call.asked = None,
            RunEvent::ToolEnd { .. } => {
                call.end = Some(Arc::clone(event));
                call.asked = None;
                call.output = String::new();
            }
            _ => {}
        }
    }

    /// The last of a running call's output, and of what that tells. `None`: it put out
    /// nothing, or has ended, and its result has all.
    pub fn output(&self, id: &str) -> Option<(About, ToolStep)> {
        let call = self.calls.iter().find(|call| *call.id == *id)?;
        call.told_output()
    }

    /// The calls from their beginning, each step with what it tells of.
    pub fn whole(&self) -> Vec<(About, AgentData)> {
        let mut steps = Vec::new();
        for call in &self.calls {
            let about = |event: &Arc<Published>| About::published(event);
            let tool = |event: &Arc<Published>| {
                let step = tools::step(&event.event).map(AgentData::Tool);
                step.map(|step| (about(event), step))
            };
            steps.extend(tool(&call.start));
            steps.extend(call.asked.iter().filter_map(|event| {
                let step = tools::approval(&event.event);
                step.map(|step| (about(event), step))
            }));
            let output = call.told_output();
            steps.extend(output.map(|(about, step)| (about, AgentData::Tool(step))));
            steps.extend(call.end.iter().filter_map(tool));
        }
        steps
    }
}

impl LiveCall {
    fn told_output(&self) -> Option<(About, ToolStep)> {
        let grew = self.grew.as_ref().filter(|_| self.end.is_none())?;
        let RunEvent::ToolOutput { id, name, .. } = &grew.event else {
            return None;
        };
        let step = tools::update(id, name, &self.output);
        Some((About::published(grew), step))
    }
}
