//! P01, I13, I14, I15, L8, P05 (order): who may be at work, and who must.
//!
//! A run is at work from the order of its claim to the publication of its end. Another run of
//! its session may claim before that end only once the lane grace after its stop, or its
//! whole allowance, has passed: that is a supersession. Counting to the published end is
//! lenient for L8 and strict for P01. A message that a claim takes along leaves the line with
//! it, and stands in its place again if that claim comes to nothing.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Accept, AcceptReport, Answer, Budget, CallId, ClaimOrder, Config, DEFAULT_BUDGET_MS, Event,
    Fence, Input, LaneName, LoadReport, Output, Place, RequestId, ResetReport, RunId, Scope,
    SessionId, Subject, Ticket, Time,
};

use super::slots::{Member, Slots};
use super::{Check, Moment};
use crate::violation::Code;

#[derive(Clone, Debug)]
struct Holder {
    run: RunId,
    /// The lane is kept until then at least.
    until: Time,
    /// What its claim took along and has not bound.
    along: Vec<RunId>,
    /// While a person is asked the lane is kept: for how long beyond that, at least.
    paused_ms: Option<u64>,
}

#[derive(Debug, Default)]
struct Lane {
    holders: Vec<Holder>,
    /// Accepted runs that have not claimed, in the order of acceptance.
    waiting: Vec<RunId>,
    /// Submitted and neither ordered nor answered, in the order of submission.
    submitted: Vec<(RequestId, RunId)>,
    /// Resets and changes of settings under way: nothing begins meanwhile.
    held: BTreeSet<Ticket>,
}

impl Lane {
    /// Takes a run out of the line, wherever it stands there.
    fn leave(&mut self, run: RunId) {
        self.waiting.retain(|&r| r != run);
        for holder in &mut self.holders {
            holder.along.retain(|&r| r != run);
        }
    }

    /// What a claim took along and did not bind goes back to the head of the line.
    fn give_back(&mut self, run: RunId) {
        for holder in self.holders.iter_mut().filter(|h| h.run == run) {
            self.waiting.splice(0..0, holder.along.drain(..));
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: BTreeMap<SessionId, Lane>,
    session_of: BTreeMap<RunId, SessionId>,
    slots: Slots,
    /// Whether the process is about to end.
    draining: bool,
    accepting: BTreeMap<Ticket, (SessionId, RunId)>,
    /// Loads, resets and changes without a report: what a report that is told twice says is old.
    loads: BTreeSet<Ticket>,
    /// Aborts without an answer. What they stop may claim before it is seen to be stopped.
    aborts: BTreeMap<RequestId, (SessionId, Scope)>,
    /// How many messages stand before each that has not begun: at least, and at most; and
    /// since when it stands there.
    ahead: BTreeMap<RunId, (u32, u32, Time)>,
    /// The message and the run to whose turn it is bound.
    bound: BTreeMap<RunId, RunId>,
    /// Runs that wait to ask their model again: they keep their lanes.
    again: BTreeSet<RunId>,
    /// The same for those that were led to the next provider in this step.
    led: BTreeSet<RunId>,
    /// Calls on which a person is asked.
    asked: BTreeSet<CallId>,
}

impl Lanes {
    fn lane_of(&mut self, run: RunId) -> Option<&mut Lane> {
        self.lanes.get_mut(self.session_of.get(&run)?)
    }

    fn enter(&mut self, session: SessionId, run: RunId) {
        self.session_of.insert(run, session);
        let lane = self.lanes.entry(session).or_default();
        let along = |h: &Holder| h.run == run || h.along.contains(&run);
        if !lane.waiting.contains(&run) && !lane.holders.iter().any(along) {
            lane.waiting.push(run);
        }
    }

    fn claims(&mut self, at: &mut Moment<'_>, fence: &Fence, claim: &ClaimOrder) {
        let (session, run) = (fence.session, fence.run);
        self.session_of.insert(run, session);
        self.again.remove(&run);
        let holds = |lane: &Lane| lane.holders.iter().any(|h| h.run == run);
        if self.lanes.get(&session).is_some_and(holds) {
            // It asks its model again; or the store refused its claim.
            return self.joins(at, fence, claim);
        }
        let now = at.now;
        let at_work = self.at_work(now);
        if self.slots.is_full(at.config, run, &at_work) {
            at.run(Code::OverCap, run);
        }
        let heads = self.lanes.values().filter_map(|lane| lane.waiting.first());
        if self.slots.overtakes(run, heads.copied()) {
            at.run(Code::LaneOrder, run);
        }
        let lane = self.lanes.entry(session).or_default();
        if lane.holders.iter().any(|h| h.until > now) {
            at.run(Code::TwoActive, run);
        }
        if lane.waiting.first().is_some_and(|&first| first != run) {
            at.run(Code::Overtaken, run);
        }
        lane.waiting.retain(|&r| r != run);
        let new = |other: &&RunId| self.bound.get(other) != Some(&run);
        let along: Vec<RunId> = claim.along.iter().filter(new).copied().collect();
        if !lane.waiting.starts_with(&along) {
            at.run(Code::Overtaken, run);
        }
        lane.waiting.retain(|r| !along.contains(r));
        let aborted = self.aborts.values().any(|&(of, scope)| match scope {
            Scope::Run(one) => one == run,
            Scope::All | Scope::AtWork => of == session,
            Scope::Queued => false,
        });
        let allowed = match aborted {
            true => 0,
            false => claim.left_ms.unwrap_or(DEFAULT_BUDGET_MS),
        };
        let until = now.plus(allowed).plus(at.config.lane_grace_ms);
        lane.holders.push(Holder {
            run,
            until,
            along,
            paused_ms: None,
        });
    }

    /// A run at work claims again: what steers into it behind its tools leaves the line.
    fn joins(&mut self, at: &mut Moment<'_>, fence: &Fence, claim: &ClaimOrder) {
        let run = fence.run;
        let Some(lane) = self.lanes.get_mut(&fence.session) else {
            return;
        };
        let Some(holder) = lane.holders.iter_mut().find(|h| h.run == run) else {
            return;
        };
        let new =
            |other: &&RunId| self.bound.get(other) != Some(&run) && !holder.along.contains(other);
        let along: Vec<RunId> = claim.along.iter().filter(new).copied().collect();
        if !lane.waiting.starts_with(&along) {
            at.run(Code::Overtaken, run);
        }
        lane.waiting.retain(|r| !along.contains(r));
        holder.along.extend(along);
    }

    /// A person is asked: the run's time stands still, and with it that of its lane.
    fn pauses(&mut self, at: &Moment<'_>, call: CallId) {
        self.asked.insert(call);
        let Some(lane) = self.lane_of(call.run) else {
            return;
        };
        let holder = lane.holders.iter_mut().find(|h| h.run == call.run);
        if let Some(holder) = holder
            && holder.paused_ms.is_none()
        {
            holder.paused_ms = Some(holder.until.since(at.now));
            holder.until = Time(u64::MAX);
        }
    }

    /// A person is not asked about it any more.
    fn resumes(&mut self, at: &Moment<'_>, call: CallId) {
        self.asked.remove(&call);
        if self.asked.iter().any(|other| other.run == call.run) {
            return;
        }
        if let Some(lane) = self.lane_of(call.run) {
            for holder in lane.holders.iter_mut().filter(|h| h.run == call.run) {
                if let Some(ms) = holder.paused_ms.take() {
                    holder.until = holder.until.min(at.now.plus(ms));
                }
            }
        }
    }

    /// The runs at work whose lanes are kept.
    fn at_work(&self, now: Time) -> Vec<RunId> {
        let holders = self.lanes.values().flat_map(|lane| &lane.holders);
        holders.filter(|h| h.until > now).map(|h| h.run).collect()
    }

    fn accepts(&mut self, at: &mut Moment<'_>, ticket: Ticket, accept: &Accept) {
        self.accepting.insert(ticket, (accept.session, accept.run));
        let Accept {
            turn,
            lane,
            priority,
            ..
        } = *accept;
        self.slots.admit(accept.run, turn, lane, priority);
        let lane = self.lanes.entry(accept.session).or_default();
        let first = lane.submitted.first();
        if first.is_some_and(|&(first, _)| first != accept.request) {
            at.run(Code::Overtaken, accept.run);
        }
        lane.submitted.retain(|&(_, run)| run != accept.run);
        if let Some(claim) = &accept.claim {
            let fence = Fence {
                session: accept.session,
                generation: accept.generation,
                run: accept.run,
                attempt: claim.attempt,
            };
            self.claims(at, &fence, claim);
        } else {
            self.ahead(at.now, accept.session, accept.run);
            self.session_of.insert(accept.run, accept.session);
        }
    }

    /// Counts who stands before a newcomer: who waits, who is being accepted, who is at work.
    fn ahead(&mut self, now: Time, session: SessionId, run: RunId) {
        let lane = self.lanes.entry(session).or_default();
        let new = self.accepting.values().filter(|&&(of, other)| {
            let claims = lane.holders.iter().any(|h| h.run == other);
            of == session && other != run && !claims
        });
        let waiting = u32::try_from(lane.waiting.len() + new.count()).unwrap_or(u32::MAX);
        let kept = lane.holders.iter().any(|h| h.until > now);
        let least = waiting + u32::from(kept);
        let most = waiting + u32::from(!lane.holders.is_empty());
        self.ahead.insert(run, (least, most, now));
    }

    fn told_place(&mut self, at: &mut Moment<'_>, run: RunId, place: Place) {
        let known = self.ahead.get(&run);
        let untrue = match (place, known) {
            (Place::Next, known) => known.is_some(),
            (_, None) => true,
            (Place::Queued { ahead }, Some(&(least, most, _))) => !(least..=most).contains(&ahead),
            (Place::Steering { into: other } | Place::Interrupting { run: other }, _) => self
                .session_of
                .get(&other)
                .is_some_and(|of| self.session_of.get(&run) != Some(of)),
        };
        if untrue {
            at.run(Code::PlaceUntrue, run);
        }
    }

    /// What was told of a wait for the session's lane, counted from the acceptance.
    fn told_waited(&mut self, at: &mut Moment<'_>, run: RunId, event: &Event) {
        let &Event::Waited {
            ms,
            active_ahead,
            queued_ahead,
        } = event
        else {
            return;
        };
        let short = ms < at.config.lane_warn_ms;
        let of_line = self
            .ahead
            .get(&run)
            .filter(|&&(least, _, since)| least > 0 && at.now.since(since) == ms);
        let told = active_ahead.saturating_add(queued_ahead);
        // One that waited for a slot since the same instant may be told of that wait.
        let lies = !self.slots.waits(run)
            && of_line.is_some_and(|&(least, most, _)| !(least..=most).contains(&told));
        if short || lies {
            at.run(Code::WaitedUntrue, run);
        }
    }

    fn stopped(&mut self, until: Time, run: RunId) {
        if let Some(lane) = self.lane_of(run) {
            lane.waiting.retain(|&r| r != run);
            for holder in lane.holders.iter_mut().filter(|h| h.run == run) {
                holder.until = holder.until.min(until);
            }
        }
    }

    fn gone(&mut self, run: RunId) {
        if let Some(lane) = self.lane_of(run) {
            lane.leave(run);
            lane.give_back(run);
            lane.holders.retain(|h| h.run != run);
        }
        self.session_of.remove(&run);
        self.bound.remove(&run);
        self.again.remove(&run);
        self.ahead.remove(&run);
        self.slots.forget(run);
        self.asked.retain(|call| call.run != run);
    }

    /// An abort was taken in and waits for what it stopped.
    fn aborting(&mut self, config: &Config, now: Time, request: RequestId) {
        let Some(&(session, scope)) = self.aborts.get(&request) else {
            return;
        };
        let holders = self.lanes.get(&session).map(|lane| lane.holders.clone());
        for holder in holders.unwrap_or_default() {
            if matches!(scope, Scope::All | Scope::AtWork) || scope == Scope::Run(holder.run) {
                self.stopped(now.plus(config.lane_grace_ms), holder.run);
            }
        }
    }

    fn answered(&mut self, at: &mut Moment<'_>, request: RequestId, answer: &Answer) {
        self.aborts.remove(&request);
        for lane in self.lanes.values_mut() {
            lane.submitted.retain(|&(r, _)| r != request);
        }
        if let Answer::Accepted { run, place, .. } = answer {
            self.told_place(at, *run, *place);
            self.slots.stands(*run, *place);
            if let Place::Interrupting { run } = place {
                let ms = at.config.interrupt_settle_ms.min(at.config.lane_grace_ms);
                let until = at.now.plus(ms);
                if let Some(lane) = self.lane_of(*run) {
                    let holders = lane.holders.iter_mut().filter(|h| h.run == *run);
                    holders.for_each(|holder| holder.until = holder.until.min(until));
                }
            }
        }
    }

    fn event(&mut self, run: RunId, event: &Event) {
        match event {
            Event::End { .. } => self.gone(run),
            Event::Retrying { .. } => {
                self.again.insert(run);
            }
            Event::Fallback { .. } => {
                self.led.insert(run);
            }
            Event::Finishing { .. } => {
                self.again.remove(&run);
                if let Some(lane) = self.lane_of(run) {
                    lane.leave(run);
                    lane.give_back(run);
                }
            }
            Event::Bound { turn } => {
                self.bound.insert(run, *turn);
                if let Some(lane) = self.lane_of(run) {
                    lane.leave(run);
                }
            }
            _ => {}
        }
    }

    fn loaded(&mut self, now: Time, session: SessionId, report: &LoadReport) {
        let LoadReport::Loaded { open, queue, .. } = report else {
            return;
        };
        self.slots.set(session, *queue);
        // What was at work when an earlier life ended goes on first.
        let (begun, new): (Vec<_>, Vec<_>) = open.iter().partition(|run| run.attempt.0 > 0);
        for run in begun.into_iter().chain(new) {
            self.slots.admit(run.run, run.turn, run.lane, run.priority);
            match run.along {
                Some(turn) => {
                    self.session_of.insert(run.run, session);
                    self.bound.insert(run.run, turn);
                }
                None => {
                    let before = self
                        .lanes
                        .get(&session)
                        .map_or(0, |lane| lane.waiting.len());
                    let before = u32::try_from(before).unwrap_or(u32::MAX);
                    self.ahead.insert(run.run, (before, before, now));
                    self.enter(session, run.run);
                }
            }
        }
    }

    fn released(&mut self, ticket: Ticket) -> bool {
        let mut lanes = self.lanes.values_mut();
        lanes.any(|lane| lane.held.remove(&ticket))
    }
}

impl Check for Lanes {
    fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
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
                scope,
            } => {
                self.aborts.insert(*request, (*session, *scope));
            }
            Input::Accepted { ticket, report } => {
                let Some((session, run)) = self.accepting.remove(ticket) else {
                    return;
                };
                match report {
                    AcceptReport::Committed { claim: None } => {
                        self.slots.joined(session, at.now);
                        self.enter(session, run);
                    }
                    AcceptReport::Committed { claim: Some(_) } => {}
                    _ => self.gone(run),
                }
            }
            Input::Loaded { ticket, report } => {
                if let (true, Subject::Session(session)) =
                    (self.loads.remove(ticket), ticket.subject)
                {
                    self.loaded(at.now, session, report);
                    if let LoadReport::Loaded { open, .. } = report
                        && let Some(head) = open.iter().find(|run| run.attempt.0 > 0)
                    {
                        // It goes on before anything that waited for the load.
                        self.slots.begins(head.run, at.input);
                    }
                }
            }
            Input::WasReset { ticket, report } => {
                if let (true, ResetReport::Committed { .. }, Subject::Session(session)) =
                    (self.released(*ticket), report, ticket.subject)
                {
                    let of = self.session_of.iter().filter(|(_, of)| **of == session);
                    let old: Vec<RunId> = of.map(|(&run, _)| run).collect();
                    old.into_iter().for_each(|run| self.gone(run));
                }
            }
            Input::Configured { ticket, report } if self.released(*ticket) => {
                self.slots.configured(*ticket, report);
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, .. } => {
                self.loads.insert(*ticket);
            }
            Output::Reset {
                ticket, session, ..
            } => {
                let lane = self.lanes.entry(*session).or_default();
                lane.held.insert(*ticket);
            }
            Output::Configure {
                ticket,
                session,
                queue,
                ..
            } => {
                self.slots.configures(*ticket, *session, *queue);
                let lane = self.lanes.entry(*session).or_default();
                lane.held.insert(*ticket);
            }
            Output::Accept { ticket, accept } => self.accepts(at, *ticket, accept),
            Output::Claim { fence, claim, .. } => self.claims(at, fence, claim),
            Output::CancelModel { ticket } => {
                if let Subject::Run(run) = ticket.subject
                    && !(self.again.contains(&run) || self.led.contains(&run))
                {
                    self.stopped(at.now.plus(at.config.lane_grace_ms), run);
                }
            }
            Output::Publish { run, event, .. } => {
                self.told_waited(at, *run, event);
                match event {
                    Event::ToolAsked { call, .. } => self.pauses(at, *call),
                    Event::ToolDecided { call, .. } | Event::ToolEnd { call, .. } => {
                        self.resumes(at, *call);
                    }
                    _ => self.event(*run, event),
                }
            }
            Output::Respond { request, answer } => self.answered(at, *request, answer),
            // Not held any more: ended, refused, or taken by another process.
            Output::Forget {
                subject: Subject::Run(run),
            } => self.gone(*run),
            Output::Forget {
                subject: Subject::Session(session),
            } => {
                if let Some(lane) = self.lanes.get_mut(session) {
                    lane.held.clear();
                }
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, input: &Input) {
        self.led.clear();
        if self.draining {
            return; // nothing begins any more
        }
        if let Input::Abort { request, .. } = input {
            self.aborting(at.config, at.now, *request);
        }
        let busy: Vec<RunId> = self
            .lanes
            .values()
            .flat_map(|lane| lane.holders.iter().map(|h| h.run))
            .collect();
        let idle = self.lanes.iter().filter_map(|(&session, lane)| {
            let (free, held) = (lane.holders.is_empty(), !lane.held.is_empty());
            let freed = lane.holders.iter().all(|h| h.until <= at.now);
            let run = *lane.waiting.first().filter(|_| freed)?;
            Some(Member {
                session,
                run,
                held,
                behind: !free,
            })
        });
        let idle: Vec<Member> = idle.collect();
        for late in self.slots.idle(at, &idle, &busy) {
            at.run(Code::IdleLane, late);
        }
    }

    fn froze(&mut self, ms: u64) {
        self.slots.froze(ms);
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

/// The lane in which a run works that asks for this one (spec 2.1).
pub(super) const fn works_in(lane: LaneName) -> LaneName {
    match lane {
        LaneName::Cron => LaneName::CronNested,
        other => other,
    }
}
