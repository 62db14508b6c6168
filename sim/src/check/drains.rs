//! L11, P22: a drain ends within its budget, and nothing begins in it.
//!
//! What had claimed may go on and claim again; what waited stays in the store. That everybody
//! who waits is answered when the drain is over is for the checker of requests.

use std::collections::BTreeSet;

use tidegate_core::{Input, Output, RunId, Subject, Time};

use super::{Check, Moment};
use crate::violation::Code;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Drains {
    /// When it must be over, and how long the loop stood still meanwhile.
    end: Option<(Time, u64)>,
    subject: Option<Subject>,
    over: bool,
    /// Runs that have claimed in this life.
    begun: BTreeSet<RunId>,
}

impl Drains {
    fn begins(&mut self, at: &mut Moment<'_>, run: RunId) {
        if self.begun.insert(run) && self.end.is_some() {
            at.run(Code::BegunDraining, run);
        }
    }
}

impl Check for Drains {
    fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
        if let Input::Drain { request, budget_ms } = input {
            let end = at.now.plus(budget_ms.unwrap_or(at.config.drain_budget_ms));
            let (known, still) = self.end.unwrap_or((end, 0));
            self.end = Some((known.min(end), still));
            self.subject.get_or_insert(Subject::Request(*request));
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Claim { fence, .. } => self.begins(at, fence.run),
            Output::Accept { accept, .. } => {
                if self.end.is_some() {
                    at.run(Code::BegunDraining, accept.run);
                }
                if accept.claim.is_some() {
                    self.begun.insert(accept.run);
                }
            }
            Output::Reset { session, .. } | Output::Configure { session, .. }
                if self.end.is_some() =>
            {
                at.report(Code::BegunDraining, Subject::Session(*session));
            }
            Output::Drained => self.over = true,
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        let late = self
            .end
            .is_some_and(|(end, still)| at.now > end.plus(still + at.slack_ms));
        if let (true, false, Some(subject)) = (late, self.over, self.subject) {
            at.report(Code::DrainLate, subject);
        }
    }

    fn froze(&mut self, ms: u64) {
        if let Some((_, still)) = &mut self.end {
            *still += ms;
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }
}
