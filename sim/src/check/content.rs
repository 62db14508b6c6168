//! P36: content and names are held as long as they are needed, and no longer.
//!
//! A small content model: which owners exist, and how long their replies are. Text that comes
//! for an owner that was released goes nowhere, as in the shell.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Answer, Attempt, ContentOwner, Event, Input, LoadReport, LookupReport, ModelFact, Output,
    Reply, RunId, Subject, Terminal, Ticket, WaitResult,
};

use super::{Check, Moment, Rest};
use crate::violation::Code;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// What is held, with the length of its reply.
    held: BTreeMap<ContentOwner, u64>,
    names: BTreeSet<Subject>,
    /// Loads without a report: what a report that is told twice says is old.
    loads: BTreeSet<Ticket>,
}

const fn subject(owner: ContentOwner) -> Subject {
    match owner {
        ContentOwner::Request(request) => Subject::Request(request),
        ContentOwner::Attempt(run, _) => Subject::Run(run),
    }
}

impl Contents {
    /// Content named by an end must be there as long as the end says it is.
    fn named(&self, at: &mut Moment<'_>, terminal: &Terminal, owner: ContentOwner) {
        let bytes = match terminal.reply {
            Reply::Empty if terminal.detail => 0,
            Reply::Empty => return,
            Reply::Text { bytes } => bytes,
        };
        let enough = match (self.held.get(&owner), owner) {
            (None, _) => false,
            (Some(_), ContentOwner::Request(_)) => true,
            (Some(&held), ContentOwner::Attempt(..)) => held >= bytes,
        };
        if !enough {
            at.report(Code::ContentGone, subject(owner));
        }
    }

    fn text(&self, at: &mut Moment<'_>, run: RunId, attempt: Attempt, to: u64) {
        let owner = ContentOwner::Attempt(run, attempt);
        if self.held.get(&owner).is_none_or(|&held| held < to) {
            at.run(Code::ContentGone, run);
        }
    }
}

impl Check for Contents {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        match input {
            Input::Submit(submit) => {
                self.held.insert(ContentOwner::Request(submit.request), 0);
            }
            Input::LookedUp {
                ticket,
                report: LookupReport::Ended(terminal),
            } => match ticket.subject {
                Subject::Request(request) => {
                    self.held.insert(ContentOwner::Request(request), 0);
                }
                // Laid in place of what is there.
                Subject::Run(run) => {
                    let bytes = match terminal.reply {
                        Reply::Text { bytes } => bytes,
                        Reply::Empty => 0,
                    };
                    let owner = ContentOwner::Attempt(run, terminal.attempt);
                    self.held.insert(owner, bytes);
                }
                Subject::Session(_) => {}
            },
            Input::Model {
                ticket,
                fact: ModelFact::Text { to },
            } => {
                if let Subject::Run(run) = ticket.subject
                    && let Some(held) = self
                        .held
                        .get_mut(&ContentOwner::Attempt(run, ticket.attempt))
                {
                    *held = (*held).max(*to);
                }
            }
            Input::Loaded { ticket, report } => {
                if let (true, LoadReport::Loaded { open, .. }) = (self.loads.remove(ticket), report)
                {
                    self.names
                        .extend(open.iter().map(|run| Subject::Run(run.run)));
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, session } => {
                self.loads.insert(*ticket);
                self.names.insert(Subject::Session(*session));
            }
            Output::Accept { accept, .. } => {
                self.names.insert(Subject::Run(accept.run));
                if !self
                    .held
                    .contains_key(&ContentOwner::Request(accept.request))
                {
                    at.request(Code::ContentGone, accept.request);
                }
            }
            Output::StartModel { fence, .. } => {
                self.held
                    .insert(ContentOwner::Attempt(fence.run, fence.attempt), 0);
            }
            Output::Save { fence, to, .. } => self.text(at, fence.run, fence.attempt, *to),
            Output::Launch { fence, launch, .. } => {
                self.text(at, fence.run, fence.attempt, launch.bytes);
            }
            // What the calls have put out lies with the attempt that asked.
            Output::Claim { fence, claim, .. } if !claim.results.is_empty() => {
                let asked = Attempt(fence.attempt.0.saturating_sub(1));
                self.text(at, fence.run, asked, 0);
            }
            Output::Settle { fence, results, .. } if !results.is_empty() => {
                self.text(at, fence.run, fence.attempt, 0);
            }
            Output::Publish { event, .. } => match event {
                Event::Text { handle, to, .. } => {
                    if let ContentOwner::Attempt(run, attempt) = handle.owner {
                        self.text(at, run, attempt, *to);
                    }
                }
                Event::End { terminal, content } => self.named(at, terminal, *content),
                Event::ToolOutput { call, .. } => {
                    self.text(at, call.run, call.attempt, 0);
                }
                Event::Start { .. }
                | Event::ToolStart { .. }
                | Event::ToolAsked { .. }
                | Event::ToolDecided { .. }
                | Event::ToolEnd { .. }
                | Event::Finishing { .. }
                | Event::Waited { .. }
                | Event::Bound { .. }
                | Event::Retrying { .. }
                | Event::Fallback { .. }
                | Event::Seen => {}
            },
            Output::Respond {
                answer:
                    Answer::Final {
                        terminal, content, ..
                    }
                    | Answer::Wait {
                        result: WaitResult::Ended { terminal, content },
                        ..
                    },
                ..
            } => self.named(at, terminal, *content),
            Output::Release { owner } if self.held.remove(owner).is_none() => {
                at.report(Code::ReleasedTwice, subject(*owner));
            }
            Output::Forget { subject } if !self.names.remove(subject) => {
                at.report(Code::ForgottenTwice, *subject);
            }
            _ => {}
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }

    fn rest(&mut self, at: &mut Moment<'_>, rest: Rest<'_>) {
        if !rest.quiet {
            return;
        }
        if let Some((&owner, _)) = self.held.first_key_value() {
            at.report(Code::ContentLeak, subject(owner));
        }
        if let Some(&name) = self.names.first() {
            at.report(Code::NameLeak, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::RequestId;

    use super::*;

    #[test]
    fn an_owner_is_known_by_its_request_or_run() {
        let (request, run) = (RequestId::from_u128(1), RunId::from_u128(2));
        assert_eq!(
            subject(ContentOwner::Request(request)),
            Subject::Request(request)
        );
        assert_eq!(
            subject(ContentOwner::Attempt(run, Attempt(1))),
            Subject::Run(run)
        );
    }
}
