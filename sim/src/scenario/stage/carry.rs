//! What follows from the core's orders: the store, the models, the tools, other processes.
//!
//! Owns how each is carried out on the stage. Nothing is decided here but by the script.

use tidegate_core::{Input, Output, SessionId, Time};

use super::super::ast::Refused;
use super::{Event, Lane, NOBODYS, Stage, moment};
use crate::check::{Check, Moment};
use crate::violation::Code;
use crate::world::commit::report_lane;

impl Stage<'_> {
    pub(super) fn carry_out(&mut self, output: &Output) {
        let asked = match output {
            Output::Respond { request, .. } => self.asked.get_mut(request),
            _ => None,
        };
        let call = asked.as_ref().and_then(|asked| match asked.input {
            Input::Decide { call, .. } => Some(call),
            _ => None,
        });
        let asked = asked.map(|asked| {
            asked.done = true;
            asked.who()
        });
        self.record.output(self.now, output, asked, call);
        match output {
            Output::Load { .. }
            | Output::Accept { .. }
            | Output::Claim { .. }
            | Output::Save { .. }
            | Output::Settle { .. }
            | Output::Launch { .. }
            | Output::Reset { .. }
            | Output::Configure { .. }
            | Output::Lookup { .. } => self.order(output),
            Output::StartModel {
                ticket,
                fence,
                candidate,
            } => {
                let whose = (fence.run, *candidate);
                let call = self.calls.start(*ticket, whose, self.now, &mut self.cast);
                self.next_fact(call);
            }
            Output::CancelModel { ticket } => {
                if let Some(call) = self.calls.cancel(*ticket, self.now) {
                    self.next_fact(call);
                }
            }
            Output::StartTool { ticket, call } => {
                let job = self.jobs.start(*ticket, *call, self.now, &self.cast);
                self.next_tool_fact(job);
            }
            Output::CancelTool { ticket } => {
                if let Some(job) = self.jobs.stop(*ticket, self.now) {
                    self.next_tool_fact(job);
                }
            }
            Output::Sleep { until, .. } => self.wake = until.map(|at| at.0),
            Output::Drained => self.drained = true,
            Output::Halt(halt) => moment!(self).report(Code::Halt, halt.entity),
            Output::Respond { .. }
            | Output::Publish { .. }
            | Output::Release { .. }
            | Output::Forget { .. } => {}
        }
    }

    /// An order for the store. One that takes no time is durable at once.
    pub(super) fn order(&mut self, order: &Output) {
        self.store.queue.push_back(order.clone());
        let at = self.now.saturating_add(self.takes_ms).max(self.applied_at);
        if at <= self.now && self.store.queue.len() == 1 {
            return self.apply();
        }
        self.applied_at = at;
        self.put(at, Lane::Store, Event::Apply(self.life));
    }

    pub(super) fn apply(&mut self) {
        let Some(order) = self.store.queue.pop_front() else {
            return;
        };
        let refusal = self.refusing.and_then(|(error, what, until)| {
            let may = match what {
                Refused::All => true,
                Refused::Ends => matches!(order, Output::Settle { .. }),
                Refused::Launches => matches!(order, Output::Launch { .. }),
            };
            (may && self.now < until).then_some(error)
        });
        let report = self.store.carry_out(&order, refusal);
        self.tell(report.as_ref());
        let Some(report) = report else { return };
        let lane = Lane::Reports(report_lane(&order).unwrap_or(NOBODYS));
        let at = self.now.saturating_add(self.reports_ms);
        let at = at.max(self.reported_at);
        self.reported_at = at;
        if self.now < self.twice_until {
            self.put(at, lane, Event::Report(self.life, report.clone()));
        }
        self.put(at, lane, Event::Report(self.life, report));
    }

    pub(super) fn next_fact(&mut self, call: usize) {
        let Some((at, version)) = self
            .calls
            .calls
            .get(call)
            .and_then(|c| Some((c.next_at()?, c.version)))
        else {
            return;
        };
        self.put(at, Lane::Call(call), Event::Fact(call, version));
    }

    pub(super) fn fact(&mut self, index: usize, version: u32) {
        let Some(call) = self.calls.calls.get_mut(index) else {
            return;
        };
        let ticket = call.ticket;
        let Some(fact) = call.take(version) else {
            return;
        };
        self.feed(Input::Model { ticket, fact });
        // A cancel that came of it has put the first fact of the new script.
        if self
            .calls
            .calls
            .get(index)
            .is_some_and(|call| call.version == version)
        {
            self.next_fact(index);
        }
    }

    pub(super) fn next_tool_fact(&mut self, index: usize) {
        let job = self.jobs.jobs.get(index);
        if let Some((at, version)) = job.and_then(|job| Some((job.next_at()?, job.version))) {
            self.put(at, Lane::Job(index), Event::Tool(index, version));
        }
    }

    pub(super) fn tool_fact(&mut self, index: usize, version: u32) {
        let Some(job) = self.jobs.jobs.get_mut(index) else {
            return;
        };
        let ticket = job.ticket;
        let Some(fact) = job.take(version) else {
            return;
        };
        self.feed(Input::Tool { ticket, fact });
        // A stop that came of it has put the first fact of the new script.
        let job = self.jobs.jobs.get(index);
        if job.is_some_and(|job| job.version == version) {
            self.next_tool_fact(index);
        }
    }

    /// Notes what a transaction wrote, and tells the checkers.
    pub(super) fn tell(&mut self, carried: Option<&Input>) {
        let wrote = std::mem::take(&mut self.store.wrote);
        for fact in &wrote {
            self.record.wrote(self.now, fact);
            self.checks.wrote(&mut moment!(self), fact);
        }
        self.checks.carried(&mut moment!(self), carried, &wrote);
    }

    /// Another process gives a lease back.
    pub(super) fn lease_given(&mut self, session: SessionId) {
        let (at, time) = (self.wall(), self.now);
        let resume = self.store.lease_given(session, at, time);
        self.tell(None);
        if let Some(resume) = resume {
            self.feed(resume);
        }
    }
}
