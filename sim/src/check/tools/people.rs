//! P27, P40: what people say on calls that wait for them, and what they must be answered.
//!
//! Owns the reading of a word: the first one on an open question counts, all others do not, and
//! an allowance is told when it is durable.

use tidegate_core::{Answer, CallId, Decision, Rejection, RequestId};

use super::Tools;
use super::book::Round;
use super::call::{Launch, Question};
use crate::check::Moment;
use crate::marks::Mark;
use crate::violation::Code;

/// What a word on a call must be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    NotAsked,
    AlreadyDecided,
    /// At once.
    Decided,
    /// When its checkpoint is durable; not, if its run ends before.
    Durable,
}

impl Tools {
    /// A person says a word. What must come of it is known here.
    pub(super) fn word(&mut self, at: &Moment<'_>, request: RequestId, id: CallId, word: Decision) {
        let open = self.rounds.get(&id.run).is_some_and(Round::is_open);
        let expected = match self.call(id).filter(|_| open) {
            None => Expected::NotAsked,
            Some(call) => match call.question {
                Question::Word(first) if first != word => Expected::AlreadyDecided,
                Question::Word(Decision::Deny) => Expected::Decided,
                Question::Word(_) if call.launch == Launch::Durable => Expected::Decided,
                Question::Word(_) if call.ended.is_some() => Expected::NotAsked,
                Question::Word(_) => Expected::Durable,
                Question::Open(_) if call.ended.is_none() => {
                    call.question = Question::Word(word);
                    match word {
                        Decision::Deny => Expected::Decided,
                        Decision::AllowOnce => Expected::Durable,
                    }
                }
                Question::Open(_) | Question::None => Expected::NotAsked,
            },
        };
        let _ = at;
        self.words.insert(request, (id, word, expected));
    }

    pub(super) fn answered(&mut self, at: &mut Moment<'_>, request: RequestId, answer: &Answer) {
        let Some((id, word, expected)) = self.words.remove(&request) else {
            return;
        };
        let is_so = match (answer, expected) {
            (Answer::Decided { call, decision }, Expected::Decided | Expected::Durable) => {
                if word == Decision::AllowOnce {
                    self.reached.hit(Mark::Allowed);
                    if !self.rows.is_launched(id) {
                        at.request(Code::ApprovalEarly, request);
                    }
                }
                (*call, *decision) == (id, word)
            }
            (Answer::Rejected(why), expected) => match why {
                Rejection::NotOwner | Rejection::Draining => true,
                Rejection::NotAsked => match expected {
                    // Its run was stopped before that was durable; so the call never starts.
                    Expected::Durable => {
                        self.undone.push((request, id));
                        true
                    }
                    expected => expected == Expected::NotAsked,
                },
                Rejection::AlreadyDecided => expected == Expected::AlreadyDecided,
                Rejection::Busy => expected == Expected::Durable,
                _ => false,
            },
            _ => false,
        };
        if !is_so {
            at.request(Code::ApprovalUntrue, request);
        }
    }
}
