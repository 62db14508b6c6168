//! P02 (answers), P09, P10, I42, I58, L4, L5, R200: every request and its answers.
//!
//! A submit gets a first answer and, if it was accepted, one final; a wait gets one answer
//! within its limit; an abort gets one. A caller that left is owed nothing.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{Answer, Event, Input, Output, Rejection, RequestId, RunId, Time, WaitResult};

use super::{Check, Moment, Rest};
use crate::violation::Code;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    /// A first answer to a submit.
    First,
    /// The final answer to an accepted submit.
    Final,
    /// The final answer of a run that was in flight: it may come (callers are capped).
    MayBeFinal,
    /// The answer to a wait: not as timed out before its limit, and at the latest then.
    Wait { limit: Time, due: Time },
    /// The answer to an abort.
    Abort,
    /// The answer to a reset.
    Reset,
    /// The answer to somebody who sees or changes queue settings.
    Queue,
    /// The answer to somebody who decided on a call.
    Decision,
    /// Nothing more.
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    owed: Owed,
    left: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    requests: BTreeMap<RequestId, Request>,
    /// Open waits by their limit, so that only the soonest needs a look.
    waits: BTreeSet<(Time, RequestId)>,
    /// The run of each open wait.
    waited: BTreeMap<RequestId, RunId>,
    /// Runs whose end was told in this step: nobody may go on waiting for them.
    told: Vec<RunId>,
    /// The wait or leave that is being handled.
    passive: Option<RequestId>,
    /// The drain is over.
    drained: bool,
}

impl Requests {
    fn ask(&mut self, request: RequestId, owed: Owed) {
        self.requests.insert(request, Request { owed, left: false });
        if let Owed::Wait { due, .. } = owed {
            self.waits.insert((due, request));
        }
    }

    fn answer(&mut self, at: &mut Moment<'_>, id: RequestId, answer: &Answer) {
        let Some(request) = self.requests.get_mut(&id) else {
            return at.request(Code::AnswerTwice, id);
        };
        if let Owed::Wait { limit, due } = request.owed {
            self.waits.remove(&(due, id));
            self.waited.remove(&id);
            if let Answer::Wait {
                run,
                result: WaitResult::TimedOut { known, .. },
            } = answer
            {
                let denied = *known == Some(false) && at.store.run(*run).is_some();
                if at.now < limit || denied {
                    return at.request(Code::WaitUntrue, id);
                }
            }
        }
        let next = match (request.owed, answer) {
            (Owed::First, Answer::Accepted { .. }) => Some(Owed::Final),
            (Owed::First, Answer::InFlight { .. }) => Some(Owed::MayBeFinal),
            (Owed::First, Answer::Final { replay: true, .. } | Answer::Rejected(_))
            | (Owed::Final | Owed::MayBeFinal, Answer::Final { .. })
            // Another process took the session, or will: the end is not ours to tell.
            | (
                Owed::Final | Owed::MayBeFinal,
                Answer::Rejected(Rejection::NotOwner | Rejection::Draining),
            )
            | (Owed::Wait { .. }, Answer::Wait { .. } | Answer::Rejected(_))
            | (Owed::Reset, Answer::Reset { .. } | Answer::Rejected(_))
            | (Owed::Queue, Answer::Queue { .. } | Answer::Rejected(_))
            | (Owed::Decision, Answer::Decided { .. } | Answer::Rejected(_))
            | (Owed::Abort, Answer::Aborted { .. } | Answer::Rejected(_)) => Some(Owed::Nothing),
            _ => None,
        };
        match next {
            Some(next) => request.owed = next,
            None => at.request(Code::AnswerTwice, id),
        }
    }
}

impl Requests {
    /// Nothing more will come: who is owed an answer never gets one.
    fn unanswered(&self, at: &mut Moment<'_>) {
        for (&id, request) in &self.requests {
            let owed = !matches!(request.owed, Owed::MayBeFinal | Owed::Nothing);
            if owed && !request.left {
                at.request(Code::Unanswered, id);
            }
        }
    }
}

impl Check for Requests {
    fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
        self.passive = match input {
            Input::Wait { request, .. } | Input::Leave { request } => Some(*request),
            _ => None,
        };
        match input {
            Input::Submit(submit) => self.ask(submit.request, Owed::First),
            Input::Wait {
                request,
                run,
                timeout_ms,
            } => {
                let limit = timeout_ms.unwrap_or(at.config.wait_default_ms);
                let limit = at.now.plus(limit);
                let due = limit.plus(at.config.wait_lookup_ms).plus(at.slack_ms);
                self.ask(*request, Owed::Wait { limit, due });
                self.waited.insert(*request, *run);
            }
            Input::Abort { request, .. } => self.ask(*request, Owed::Abort),
            Input::Reset { request, .. } => self.ask(*request, Owed::Reset),
            Input::Configure { request, .. } => self.ask(*request, Owed::Queue),
            Input::Decide { request, .. } => self.ask(*request, Owed::Decision),
            Input::Leave { request } => {
                if let Some(request) = self.requests.get_mut(request) {
                    request.left = true;
                    if let Owed::Wait { .. } = request.owed {
                        request.owed = Owed::Nothing;
                    }
                }
                self.waits.retain(|(_, r)| r != request);
                self.waited.remove(request);
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        if let Some(request) = self.passive
            && !is_passive(output)
        {
            at.request(Code::WaitActed, request);
        }
        match output {
            Output::Publish {
                run,
                event: Event::End { .. },
                ..
            } => self.told.push(*run),
            Output::Drained => self.drained = true,
            Output::Respond { request, answer } => {
                if let Answer::Final { terminal, .. } = answer {
                    self.told.push(terminal.run);
                }
                self.answer(at, *request, answer);
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        // A drain answers all who wait (L11).
        if std::mem::take(&mut self.drained) {
            self.unanswered(at);
        }
        for run in self.told.drain(..) {
            if let Some((&request, _)) = self.waited.iter().find(|&(_, &waited)| waited == run) {
                at.request(Code::WaitLate, request);
            }
        }
        while let Some(&(due, request)) = self.waits.first() {
            if due >= at.now {
                break;
            }
            self.waits.pop_first();
            at.request(Code::WaitLate, request);
        }
    }

    fn froze(&mut self, ms: u64) {
        // While the loop stands still nobody can answer; a wait may need it twice, for its own
        // limit and for the store's word, and a freeze can hit either.
        let waits = std::mem::take(&mut self.waits);
        for (due, id) in waits {
            let due = due.plus(ms);
            self.waits.insert((due, id));
            if let Some(request) = self.requests.get_mut(&id)
                && let Owed::Wait { due: latest, .. } = &mut request.owed
            {
                *latest = due;
            }
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }

    fn rest(&mut self, at: &mut Moment<'_>, rest: Rest<'_>) {
        if !rest.quiet {
            return;
        }
        self.unanswered(at);
    }
}

/// What a wait or a leave may cause.
fn is_passive(output: &Output) -> bool {
    matches!(
        output,
        Output::Respond { .. }
            | Output::Lookup { .. }
            | Output::Release { .. }
            | Output::Sleep { .. }
    )
}
