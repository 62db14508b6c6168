//! The tool calls of a conversation: what runs, and what waits for whoever sits here.
//!
//! It shows and asks. Which answer counts is the gateway's word.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Which call it is about.
    about: About,
}

/// Which call a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    /// The one that was asked about by `y/n`.
    Asked,
    /// The only one that waits.
    Only,
    /// The one of this name.
    Named(String),
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
        let named = |id: Option<String>| id.map_or(About::Only, About::Named);
        let lower = word.to_ascii_lowercase();
        let (decision, about) = match lower.as_str() {
            "/approve" => (ApprovalDecision::AllowOnce, named(id)),
            "/deny" => (ApprovalDecision::Deny, named(id)),
            "y" | "yes" if is_asked && id.is_none() => (ApprovalDecision::AllowOnce, About::Asked),
            "n" | "no" if is_asked && id.is_none() => (ApprovalDecision::Deny, About::Asked),
            _ => return None,
        };
        Some(Self { decision, about })
    }
}

/// What a chat knows of tool calls.
#[derive(Debug, Default)]
pub struct Tools {
    /// The calls of the answers at hand, by run.
    calls: BTreeMap<String, Calls>,
    /// What waits, oldest first, and the run of each.
    asked: Vec<(String, ApprovalStep)>,
    /// The call that a `y` or `n` is about: one that was asked about alone. So a word never
    /// reaches a call that came up while it was typed.
    prompted: Option<String>,
    /// That call was decided elsewhere, or has ended, and nothing was typed since.
    lost: bool,
    /// Calls that were decided here.
    own: BTreeSet<String>,
}

impl Tools {
    /// A call waits no longer.
    fn over(&mut self, id: &str) -> Option<ApprovalStep> {
        if self.prompted.take_if(|prompted| prompted == id).is_some() {
            self.lost = !self.own.contains(id);
        }
        let at = self.asked.iter().position(|(_, it)| it.approval_id == id)?;
        Some(self.asked.remove(at).1)
    }
}

impl Talk {
    /// Whether a `y` or `n` is meant as an answer: a call waits, or did when the line was begun.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        !self.tools.asked.is_empty() || self.tools.lost
    }

    /// Something else was typed.
    pub fn typed_on(&mut self) {
        self.tools.lost = false;
    }

    /// An answer was typed.
    pub fn decide(&mut self, screen: &mut Screen, word: &Word) {
        let tools = &mut self.tools;
        let id = match (&word.about, &tools.asked[..]) {
            (About::Named(id), _) => Some(id.clone()),
            (About::Asked, _) => tools.prompted.clone(),
            (About::Only, [(_, step)]) => Some(step.approval_id.clone()),
            (About::Only, _) => None,
        };
        tools.lost = false;
        let Some(id) = id else {
            screen.note(match (&word.about, tools.asked.is_empty()) {
                (About::Asked, true) => {
                    "what you were asked was decided elsewhere, or has ended; nothing was decided by this, and nothing sent"
                }
                (_, true) => "nothing waits to be allowed",
                (_, false) => "several calls wait; say which: /approve ID or /deny ID",
            });
            return;
        };
        tools.own.insert(id.clone());
        self.to_ask.push_back(Ask::Decide(id, word.decision));
    }

    /// An answer counts, or does not. That it does is told by an event, too.
    pub(super) fn decided(&mut self, screen: &mut Screen, id: &str, response: Response) {
        self.tools.over(id);
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
            AgentData::Approval(step) => self.was_decided(screen, &step),
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

    /// A call waits no longer: by whose word, if it was one.
    fn was_decided(&mut self, screen: &mut Screen, step: &ApprovalStep) {
        let id = &step.approval_id;
        self.tools.over(id);
        let here = self.tools.own.remove(id);
        if matches!(step.status.as_str(), "allowed" | "denied") {
            let command = shown::short(&step.command);
            let elsewhere = if here { "" } else { " elsewhere" };
            screen.note(&format!("{}{elsewhere}: {command}", step.status));
        }
        // The next one is asked about by whoever has just answered, and sees it.
        if let ([_], true, None) = (&self.tools.asked[..], here, &self.tools.prompted)
            && let Some((run, step)) = self.tools.asked.pop()
        {
            self.asked_for(screen, run, step);
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
        let alone = asked.is_empty() && !self.tools.lost && screen.is_typed();
        if alone {
            self.tools.prompted = Some(step.approval_id.clone());
        }
        let how = match alone {
            true => format!("Allow? y/n (or /approve {id}, /deny {id})"),
            false => format!("Allow? /approve {id} or /deny {id}"),
        };
        screen.note(&format!("{}\n{how}", tool_lines::asks(&step)));
        asked.push((run, step));
    }

    /// A run asks its model again, or has ended.
    pub(super) fn forget_calls(&mut self, run: &str) {
        let tools = &mut self.tools;
        tools.calls.remove(run);
        let of_run = tools.asked.iter().filter(|(of, _)| of == run);
        let gone: Vec<String> = of_run.map(|(_, step)| step.approval_id.clone()).collect();
        for id in gone {
            tools.over(&id);
            tools.own.remove(&id);
        }
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
            word.map(|word| (word.decision, word.about))
        };
        let (allow, deny) = (ApprovalDecision::AllowOnce, ApprovalDecision::Deny);
        assert_eq!(read(" Y ", true), Some((allow, About::Asked)));
        assert_eq!(read("no", true), Some((deny, About::Asked)));
        assert_eq!((read("y", false), read("yes, do", true)), (None, None));
        assert_eq!(read("y it", true), None);
        assert_eq!(read("/approve", false), Some((allow, About::Only)));
        let named = About::Named("k3".into());
        assert_eq!(read("/deny k3", false), Some((deny, named)));
        assert_eq!(read("/deny k3 now", false), None);
    }
}
