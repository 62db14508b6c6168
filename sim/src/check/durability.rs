//! P06, P40, P42, I1, I2, I3, I4, I11: nothing is promised before it is durable, and all places tell
//! the truth of the receipt.
//!
//! Compares each answer and each end with the rows of the modelled store at that moment.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Answer, Event, Fingerprint, Input, Output, RequestId, RunId, Terminal, WaitResult,
};

use super::{Check, Moment};
use crate::violation::Code;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Durability {
    submits: BTreeMap<RequestId, (RunId, Fingerprint)>,
    acknowledged: BTreeSet<RunId>,
}

impl Durability {
    /// An answer that says that a message is durable.
    fn promised(&self, at: &mut Moment<'_>, request: RequestId, run: RunId) {
        let body = at.store.run(run).map(|row| row.body);
        match (body, self.submits.get(&request)) {
            (None, _) => at.run(Code::AckEarly, run),
            (Some(stored), Some(&(asked, body))) if asked != run || body != stored => {
                at.request(Code::ConflictAccepted, request);
            }
            _ => {}
        }
    }

    fn ended(at: &mut Moment<'_>, terminal: &Terminal) {
        let Some((row, receipt)) = at
            .store
            .run(terminal.run)
            .and_then(|row| Some((row, row.terminal?)))
        else {
            return at.run(Code::EndEarly, terminal.run);
        };
        let started = terminal.started_at.unwrap_or(terminal.accepted_at);
        let ordered = terminal.accepted_at <= started && started <= terminal.ended_at;
        let accepted_at = row.accepted_at;
        if receipt != *terminal {
            at.run(Code::EndUntrue, terminal.run);
        } else if terminal.accepted_at != accepted_at || !ordered {
            at.run(Code::TimesUntrue, terminal.run);
        }
    }
}

impl Check for Durability {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        if let Input::Submit(submit) = input {
            self.submits
                .insert(submit.request, (submit.run, submit.body));
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Respond { request, answer } => match answer {
                Answer::Accepted {
                    run, at: accepted, ..
                } => {
                    self.promised(at, *request, *run);
                    let row = at.store.run(*run).map(|row| row.accepted_at);
                    if row.is_some_and(|row| row != *accepted) {
                        at.run(Code::TimesUntrue, *run);
                    }
                    if !self.acknowledged.insert(*run) {
                        at.run(Code::AcceptedTwice, *run);
                    }
                }
                Answer::InFlight { run, .. } => self.promised(at, *request, *run),
                Answer::Final { terminal, .. } => {
                    Self::ended(at, terminal);
                    self.promised(at, *request, terminal.run);
                }
                Answer::Wait {
                    run,
                    result: WaitResult::Ended { terminal, .. },
                } => {
                    Self::ended(at, terminal);
                    if terminal.run != *run {
                        at.request(Code::EndUntrue, *request);
                    }
                }
                Answer::Wait { .. }
                | Answer::Aborted { .. }
                | Answer::Reset { .. }
                | Answer::Queue { .. }
                | Answer::Decided { .. }
                | Answer::Rejected(_) => {}
            },
            Output::Publish {
                event: Event::End { terminal, .. },
                ..
            } => Self::ended(at, terminal),
            _ => {}
        }
    }

    fn died(&mut self) {
        self.submits.clear();
    }
}
