//! P01, I13, I14, I15, L8, P05 (order): who may be at work, and who must.
//!
//! A run is at work from the order of its claim to the publication of its end. Another run of
//! its session may claim before that end only once the lane grace after its stop, or its
//! whole allowance, has passed: that is a supersession. Counting to the published end is
//! lenient for L8 and strict for P01.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    AcceptReport, Budget, Config, DEFAULT_BUDGET_MS, Event, Input, LoadReport, Output, RequestId,
    RunId, SessionId, Subject, Ticket, Time,
};

use super::{Check, Moment};
use crate::violation::Code;

#[derive(Clone, Copy, Debug)]
struct Holder {
    run: RunId,
    /// The lane is kept until then at least.
    until: Time,
}

#[derive(Debug, Default)]
struct Lane {
    holders: Vec<Holder>,
    /// Accepted runs that have not claimed, in the order of acceptance.
    waiting: Vec<RunId>,
    /// Submitted and neither ordered nor answered, in the order of submission.
    submitted: Vec<(RequestId, RunId)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<SessionId, Lane>,
    session_of: BTreeMap<RunId, SessionId>,
    /// Whether the process is about to end.
    draining: bool,
    accepting: BTreeMap<Ticket, (SessionId, RunId)>,
    /// Loads without a report: what a report that is told twice says is old.
    loads: BTreeSet<Ticket>,
    /// Aborts without an answer. What they stop may claim before it is seen to be stopped.
    aborts: BTreeMap<RequestId, (SessionId, Option<RunId>)>,
}

impl Lanes {
    fn lane_of(&mut self, run: RunId) -> Option<&mut Lane> {
        self.lanes.get_mut(self.session_of.get(&run)?)
    }

    fn enter(&mut self, session: SessionId, run: RunId) {
        self.session_of.insert(run, session);
        let lane = self.lanes.entry(session).or_default();
        if !lane.waiting.contains(&run) && !lane.holders.iter().any(|h| h.run == run) {
            lane.waiting.push(run);
        }
    }

    fn claims(
        &mut self,
        at: &mut Moment<'_>,
        session: SessionId,
        run: RunId,
        left_ms: Option<u64>,
    ) {
        self.session_of.insert(run, session);
        let holds = |lane: &Lane| lane.holders.iter().any(|h| h.run == run);
        if self.lanes.get(&session).is_some_and(holds) {
            return; // the order of a claim that the store refused, given again
        }
        let now = at.now;
        let at_work = |lane: &Lane| lane.holders.iter().filter(|h| h.until > now).count();
        if self.lanes.values().map(at_work).sum::<usize>() >= at.config.global_lane_cap as usize {
            at.run(Code::OverCap, run);
        }
        let lane = self.lanes.entry(session).or_default();
        if at_work(lane) > 0 {
            at.run(Code::TwoActive, run);
        }
        if lane.waiting.first().is_some_and(|&first| first != run) {
            at.run(Code::Overtaken, run);
        }
        lane.waiting.retain(|&r| r != run);
        let aborted = self
            .aborts
            .values()
            .any(|&(of, one)| of == session && one.is_none_or(|one| one == run));
        let allowed = match aborted {
            true => 0,
            false => left_ms.unwrap_or(DEFAULT_BUDGET_MS),
        };
        let until = now.plus(allowed).plus(at.config.lane_grace_ms);
        lane.holders.push(Holder { run, until });
    }

    fn stopped(&mut self, config: &Config, now: Time, run: RunId) {
        let until = now.plus(config.lane_grace_ms);
        if let Some(lane) = self.lane_of(run) {
            lane.waiting.retain(|&r| r != run);
            for holder in lane.holders.iter_mut().filter(|h| h.run == run) {
                holder.until = holder.until.min(until);
            }
        }
    }

    fn gone(&mut self, run: RunId) {
        if let Some(lane) = self.lane_of(run) {
            lane.waiting.retain(|&r| r != run);
            lane.holders.retain(|h| h.run != run);
        }
        self.session_of.remove(&run);
    }

    /// An abort was taken in and waits for what it stopped.
    fn aborting(&mut self, config: &Config, now: Time, request: RequestId) {
        let Some(&(session, one)) = self.aborts.get(&request) else {
            return;
        };
        let holders = self.lanes.get(&session).map(|lane| lane.holders.clone());
        for holder in holders.unwrap_or_default() {
            if one.is_none_or(|one| one == holder.run) {
                self.stopped(config, now, holder.run);
            }
        }
    }

    fn answered(&mut self, request: RequestId) {
        self.aborts.remove(&request);
        for lane in self.lanes.values_mut() {
            lane.submitted.retain(|&(r, _)| r != request);
        }
    }
}

impl Check for Lanes {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        match input {
            Input::Drain { .. } => self.draining = true,
            Input::Submit(submit)
                // A run that is known already is joined, not admitted.
                if !self.session_of.contains_key(&submit.run) => {
                    let lane = self.lanes.entry(submit.session).or_default();
                    lane.submitted.push((submit.request, submit.run));
                }
            Input::Abort {
                request,
                session,
                run,
            } => {
                self.aborts.insert(*request, (*session, *run));
            }
            Input::Accepted { ticket, report } => {
                let Some((session, run)) = self.accepting.remove(ticket) else {
                    return;
                };
                match report {
                    AcceptReport::Committed { claim: None } => self.enter(session, run),
                    AcceptReport::Committed { claim: Some(_) } => {}
                    _ => self.gone(run),
                }
            }
            Input::Loaded { ticket, report } => {
                if let (true, LoadReport::Loaded { open, .. }) =
                    (self.loads.remove(ticket), report)
                    && let Subject::Session(session) = ticket.subject
                {
                    for run in open {
                        self.enter(session, run.run);
                    }
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, .. } => {
                self.loads.insert(*ticket);
            }
            Output::Accept { ticket, accept } => {
                self.accepting.insert(*ticket, (accept.session, accept.run));
                let lane = self.lanes.entry(accept.session).or_default();
                if lane
                    .submitted
                    .first()
                    .is_some_and(|&(first, _)| first != accept.request)
                {
                    at.run(Code::Overtaken, accept.run);
                }
                lane.submitted.retain(|&(_, run)| run != accept.run);
                if let Some(claim) = accept.claim {
                    self.claims(at, accept.session, accept.run, claim.left_ms);
                } else {
                    self.session_of.insert(accept.run, accept.session);
                }
            }
            Output::Claim { fence, claim, .. } => {
                self.claims(at, fence.session, fence.run, claim.left_ms);
            }
            Output::CancelModel { ticket } => {
                if let Subject::Run(run) = ticket.subject {
                    self.stopped(at.config, at.now, run);
                }
            }
            Output::Publish {
                run,
                event: Event::End { .. },
                ..
            } => self.gone(*run),
            Output::Publish {
                run,
                event: Event::Finishing { .. },
                ..
            } => {
                if let Some(lane) = self.lane_of(*run) {
                    lane.waiting.retain(|r| r != run);
                }
            }
            Output::Respond { request, .. } => self.answered(*request),
            // Not held any more: ended, refused, or taken by another process.
            Output::Forget {
                subject: Subject::Run(run),
            } => self.gone(*run),
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, input: &Input) {
        if self.draining {
            return; // nothing begins any more
        }
        if let Input::Abort { request, .. } = input {
            self.aborting(at.config, at.now, *request);
        }
        let busy: usize = self.lanes.values().map(|lane| lane.holders.len()).sum();
        if busy >= at.config.global_lane_cap as usize {
            return;
        }
        for lane in self.lanes.values() {
            if let (true, Some(&run)) = (lane.holders.is_empty(), lane.waiting.first()) {
                at.run(Code::IdleLane, run);
            }
        }
    }

    fn died(&mut self) {
        *self = Self::default();
    }
}

/// The budget that a run begins with, in milliseconds; `None` is unlimited.
pub(crate) fn full_budget(config: &Config, own: Option<Budget>) -> Option<u64> {
    match own.or(config.agent_budget) {
        Some(Budget::Limited(ms)) => Some(ms),
        Some(Budget::Unlimited) => None,
        None => Some(DEFAULT_BUDGET_MS),
    }
}
