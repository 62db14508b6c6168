//! The tool calls of a conversation: what runs, and what waits for whoever sits here.
//!
//! It shows and asks. Which answer counts is the gateway's word.

use std::collections::BTreeMap;

use tidegate_wire::{
    AgentData, AgentEvent, ApprovalDecision, ApprovalStep, Phase, Response, ToolStep,
};

use super::{Ask, Talk};
use crate::chat::screen::Screen;
use crate::rpc::payload;
use crate::shown;
use crate::tool_lines::{self, Calls};

/// A line that answers the question whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    decision: ApprovalDecision,
    /// Which call; the oldest one if absent.
    id: Option<String>,
}

impl Word {
    /// What a line answers; `None`: it is something else. `y` and `n` answer only where
    /// somebody was asked and sees it.
    #[must_use]
    pub fn read(line: &str, is_asked: bool) -> Option<Self> {
        let mut words = line.split_whitespace();
        let word = words.next()?;
        let id = words.next().map(ToOwned::to_owned);
        if words.next().is_some() {
            return None;
        }
        let lower = word.to_ascii_lowercase();
        let decision = match lower.as_str() {
            "/approve" => ApprovalDecision::AllowOnce,
            "/deny" => ApprovalDecision::Deny,
            "y" | "yes" if is_asked && id.is_none() => ApprovalDecision::AllowOnce,
            "n" | "no" if is_asked && id.is_none() => ApprovalDecision::Deny,
            _ => return None,
        };
        Some(Self { decision, id })
    }
}

/// What a chat knows of tool calls.
#[derive(Debug, Default)]
pub struct Tools {
    /// The calls of the answers at hand, by run.
    calls: BTreeMap<String, Calls>,
    /// What waits, oldest first, and the run of each.
    asked: Vec<(String, ApprovalStep)>,
}

impl Talk {
    /// Whether a call waits that nobody has answered.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        !self.tools.asked.is_empty()
    }

    /// An answer was typed.
    pub fn decide(&mut self, screen: &mut Screen, word: &Word) {
        let id = word.id.clone();
        let oldest = self.tools.asked.first();
        let Some(id) = id.or_else(|| oldest.map(|(_, step)| step.approval_id.clone())) else {
            screen.note("nothing waits to be allowed");
            return;
        };
        self.to_ask.push_back(Ask::Decide(id, word.decision));
    }

    /// An answer counts, or does not. That it does is told by an event, too.
    pub(super) fn decided(&mut self, screen: &mut Screen, id: &str, response: Response) {
        self.tools.asked.retain(|(_, step)| step.approval_id != id);
        if let Err(problem) = payload(response) {
            screen.problem(&problem);
        }
    }

    /// Something happened in a run of the session, beside its text.
    pub(super) fn worked(&mut self, screen: &mut Screen, event: AgentEvent) {
        let run = event.run_id;
        if self.ended.contains(&run) {
            return;
        }
        match event.data {
            AgentData::Tool(step) => self.called(screen, run, &step),
            AgentData::Approval(step) if step.phase == "requested" => {
                self.asked_for(screen, run, step);
            }
            AgentData::Approval(step) => {
                let id = &step.approval_id;
                self.tools
                    .asked
                    .retain(|(_, asked)| asked.approval_id != *id);
            }
            // The calls of the answer before are over, and what waited with them.
            AgentData::Lifecycle(step) if step.phase == Phase::Start => self.forget_calls(&run),
            _ => {}
        }
    }

    /// A call went on. With the first, what was said before is whole; what follows the calls is
    /// said anew, and both stay on the screen.
    fn called(&mut self, screen: &mut Screen, run: String, step: &ToolStep) {
        let calls = self.tools.calls.entry(run.clone()).or_default();
        let is_first = calls.is_empty() && matches!(step, ToolStep::Start { .. });
        let line = calls.line(step);
        if is_first {
            let said = self.replies.insert(run.clone(), screen.reply());
            if let Some(mut said) = said {
                screen.answer(&run, &mut said, None);
            }
        }
        if let Some(line) = line {
            screen.note(&line);
        }
    }

    /// A call waits for a person.
    fn asked_for(&mut self, screen: &mut Screen, run: String, step: ApprovalStep) {
        let asked = &mut self.tools.asked;
        if asked
            .iter()
            .any(|(_, asked)| asked.approval_id == step.approval_id)
        {
            return;
        }
        let id = shown::whole(&step.approval_id);
        let how = match screen.is_typed() {
            true => format!("Allow? y/n (or /approve {id}, /deny {id})"),
            false => format!("Allow? /approve {id} or /deny {id}"),
        };
        screen.note(&format!("{}\n{how}", tool_lines::asks(&step)));
        asked.push((run, step));
    }

    /// A run asks its model again, or has ended.
    pub(super) fn forget_calls(&mut self, run: &str) {
        self.tools.calls.remove(run);
        self.tools.asked.retain(|(of, _)| of != run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R205: a line answers a question only where one was asked
    #[test]
    fn a_line_answers_only_what_was_asked() {
        let read = |line, is_asked| {
            let word = Word::read(line, is_asked);
            word.map(|word| (word.decision, word.id.unwrap_or_default()))
        };
        let (allow, deny) = (ApprovalDecision::AllowOnce, ApprovalDecision::Deny);
        assert_eq!(read(" Y ", true), Some((allow, String::new())));
        assert_eq!(read("no", true), Some((deny, String::new())));
        assert_eq!((read("y", false), read("yes, do", true)), (None, None));
        assert_eq!(read("y it", true), None);
        assert_eq!(read("/approve", false), Some((allow, String::new())));
        assert_eq!(read("/deny k3", false), Some((deny, "k3".into())));
        assert_eq!(read("/deny k3 now", false), None);
    }
}
