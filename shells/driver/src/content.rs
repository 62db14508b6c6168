//! Text that the core refers to and never sees (law 2), and the outside names of runs.
//!
//! Text lives under its owner from the moment it arrives until the core releases it. What
//! arrives for an owner that was released goes nowhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Attempt, CallId, CallResult, ContentOwner, RunId, Terminal};

use crate::store::{RunNames, StoredText};
use crate::tools::CallText;

/// The outside names of a run, shared by all that is told about it.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) run_key: Arc<str>,
    pub(crate) session_key: Arc<str>,
}

impl From<RunNames> for Names {
    fn from(names: RunNames) -> Self {
        Self {
            run_key: names.run_key.into(),
            session_key: names.session_key.into(),
        }
    }
}

impl Names {
    pub(crate) fn to_store(&self) -> RunNames {
        RunNames {
            session_key: self.session_key.to_string(),
            run_key: self.run_key.to_string(),
        }
    }
}

/// What one owner holds.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The names of the run that a request is about.
    pub(crate) names: Option<Names>,
    pub(crate) message: String,
    pub(crate) reply: String,
    pub(crate) detail: Option<String>,
    /// The name of the turn that took the run along, where the store told it.
    pub(crate) turn: Option<Arc<str>>,
    /// How much of the reply the store was told.
    pub(crate) saved: usize,
    /// The calls that the answer asks for, in their order.
    pub(crate) calls: Vec<HeldCall>,
}

/// A call with what it has put out.
#[derive(Debug, Default)]
pub(crate) struct HeldCall {
    pub(crate) text: CallText,
    pub(crate) output: String,
}

impl Content {
    /// Adds a call of an attempt's answer and gives it an id that is unique there: its own, or
    /// one made of its place. `None` beyond the calls that the core counts; nothing is added then.
    pub(crate) fn add_call(
        &mut self,
        attempt: Attempt,
        mut text: CallText,
    ) -> Option<&mut HeldCall> {
        let place = u16::try_from(self.calls.len()).ok()?;
        if place == u16::MAX {
            return None;
        }
        let taken = |id: &str| self.calls.iter().any(|call| call.text.id == id);
        if text.id.is_empty() || taken(&text.id) {
            text.id = format!("call_{}_{place}", attempt.0);
            while taken(&text.id) {
                text.id.push('_');
            }
        }
        self.calls.push(HeldCall {
            text,
            output: String::new(),
        });
        self.calls.last_mut()
    }
}

/// All text, by owner.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    by_owner: BTreeMap<ContentOwner, Content>,
}

impl Contents {
    pub(crate) fn len(&self) -> usize {
        self.by_owner.len()
    }

    pub(crate) fn open(&mut self, owner: ContentOwner, content: Content) {
        self.by_owner.insert(owner, content);
    }

    pub(crate) fn get(&self, owner: ContentOwner) -> Option<&Content> {
        self.by_owner.get(&owner)
    }

    pub(crate) fn get_mut(&mut self, owner: ContentOwner) -> Option<&mut Content> {
        self.by_owner.get_mut(&owner)
    }

    /// A call that an attempt asked for.
    pub(crate) fn call(&self, id: CallId) -> Option<&HeldCall> {
        let content = self.get(ContentOwner::Attempt(id.run, id.attempt))?;
        content.calls.get(usize::from(id.call))
    }

    pub(crate) fn call_mut(&mut self, id: CallId) -> Option<&mut HeldCall> {
        let content = self.get_mut(ContentOwner::Attempt(id.run, id.attempt))?;
        content.calls.get_mut(usize::from(id.call))
    }

    /// What the calls of an attempt have put out, for each of the results.
    pub(crate) fn outputs(&self, owner: ContentOwner, results: &[CallResult]) -> Vec<String> {
        let calls = self.get(owner).map_or(&[][..], |content| &content.calls);
        let call = |result: &CallResult| calls.get(usize::from(result.call));
        let outputs = results.iter().map(|result| match call(result) {
            Some(call) => call.output.clone(),
            None => String::new(),
        });
        outputs.collect()
    }

    pub(crate) fn release(&mut self, owner: ContentOwner) {
        self.by_owner.remove(&owner);
    }

    /// Lays the stored texts of an ended run under a request's content.
    pub(crate) fn lay(&mut self, owner: ContentOwner, names: Option<Names>, text: StoredText) {
        let content = self.by_owner.entry(owner).or_default();
        if names.is_some() {
            content.names = names;
        }
        content.reply = text.reply.unwrap_or_default();
        content.detail = text.detail;
        content.turn = text.turn_key.map(Into::into);
    }

    /// The texts that a terminal names: as much of the reply as it says, and the detail.
    pub(crate) fn texts(&self, owner: ContentOwner, terminal: &Terminal) -> StoredText {
        let content = self.by_owner.get(&owner);
        let reply = match terminal.reply {
            tidegate_core::Reply::Empty => None,
            tidegate_core::Reply::Text { bytes } => content.map(|content| {
                prefix(&content.reply, usize::try_from(bytes).unwrap_or(usize::MAX)).to_owned()
            }),
        };
        let detail = if terminal.detail {
            content.and_then(|content| content.detail.clone())
        } else {
            None
        };
        StoredText {
            reply,
            detail,
            turn_key: None,
        }
    }
}

/// The first `bytes` of a text, or all of it; never half a character.
pub(crate) fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The names of all runs that the core holds.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    names: BTreeMap<RunId, Names>,
}

impl Runs {
    pub(crate) fn insert(&mut self, run: RunId, names: Names) {
        self.names.insert(run, names);
    }

    pub(crate) fn forget(&mut self, run: RunId) -> Option<Names> {
        self.names.remove(&run)
    }

    pub(crate) fn get(&self, run: RunId) -> Option<&Names> {
        self.names.get(&run)
    }

    /// The names of a run; its id in hexadecimal where nobody told them.
    pub(crate) fn of(&self, run: RunId) -> Names {
        self.names.get(&run).cloned().unwrap_or_else(|| Names {
            run_key: run.to_string().into(),
            session_key: "".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P08: each call of an answer has an id of its own, also against the made ones.
    #[test]
    fn no_two_calls_of_an_answer_have_one_id() {
        let mut content = Content::default();
        for id in ["a", "a", "call_3_3", "", "call_3_1", "a"] {
            let text = CallText {
                id: id.to_owned(),
                ..CallText::default()
            };
            content.add_call(Attempt(3), text).expect("it has a place");
        }
        let ids: Vec<_> = content.calls.iter().map(|call| &*call.text.id).collect();
        let expected = [
            "a",
            "call_3_1",
            "call_3_3",
            "call_3_3_",
            "call_3_4",
            "call_3_5",
        ];
        assert_eq!(ids, expected);
    }
}
