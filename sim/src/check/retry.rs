//! P16, I36, R119, R121, B-056, B-057, B-058: a call that failed for a while is made again, as often
//! and as soon as it may be, and nothing of it passes under the next.
//!
//! Keeps its own book of each run's calls in this life of the process. Whether a run must ask
//! again, must not, or may, is read from `rules`; a wait that is told is kept to the
//! millisecond. What a campaign has seen of all this is marked here, since only this book knows.

mod rules;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Attempt, ClaimOrder, Event, Fence, Input, Limit, ModelFact, Outcome, Output, RunId, StopReason,
    Subject, Ticket, Time,
};

use self::rules::{Past, Span, Trouble, Why, failure, is_silence};
use super::{Check, Moment};
use crate::marks::{Mark, Marks};
use crate::violation::Code;

/// A wait that was told.
#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Time,
    /// How long the loop stood still meanwhile.
    still_ms: u64,
    /// Whether the provider asked for it.
    asked: bool,
}

#[derive(Debug, Default)]
struct Run {
    /// The call that goes on.
    call: Option<Ticket>,
    attempt: Attempt,
    calls: u16,
    /// Bytes of the reply that came, were shown and were saved, of this attempt.
    came: u64,
    shown: u64,
    saved: u64,
    past: Past,
    /// What its last claim left of its budget, and when that is over.
    left_ms: Option<u64>,
    budget: Option<Time>,
    wait: Option<Wait>,
    /// A silent call was stopped although it had to be made again.
    owed: bool,
    /// Why its last call is not made again.
    why: Option<Why>,
}

/// What was told in this step.
#[derive(Clone, Copy, Debug)]
struct Told {
    run: RunId,
    call: u16,
    calls_max: u16,
    delay_ms: u64,
    because: Outcome,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    runs: BTreeMap<RunId, Run>,
    /// The call that failed in this step: what that means, and as what its run would end.
    failed: Option<(RunId, (Trouble, u64), Outcome)>,
    told: Vec<Told>,
    /// Runs whose call was stopped in this step.
    stopped: BTreeSet<RunId>,
    /// Whether the process ends in order.
    drained: bool,
    pub(crate) reached: Marks,
}

impl Run {
    /// Judges a wait that was told.
    fn waits(&mut self, at: &mut Moment<'_>, told: Told, trouble: (Trouble, u64)) {
        let run = told.run;
        let config = at.config.recovery;
        let whole = self.shown == self.came && self.saved == self.came;
        if !whole {
            at.run(Code::RetryText, run);
        }
        let span = self.past.failed(&config, at.now, trouble, self.budget);
        let Span {
            least_ms,
            most_ms,
            room_ms,
            asked,
        } = match span {
            Ok(span) => span,
            Err(Why::Lasting | Why::TooLong) => return at.run(Code::RetryWrong, run),
            Err(_) => return at.run(Code::RetryOften, run),
        };
        self.past.retries += 1;
        let code = match told.delay_ms {
            ms if ms < least_ms => Code::RetryEarly,
            ms if ms > most_ms => Code::RetryLate,
            ms if ms > room_ms => Code::RetryOften,
            _ if told.call != self.calls + 1 => Code::RetryUntrue,
            _ if told.calls_max != self.past.most(&config) + 1 => Code::RetryUntrue,
            _ => {
                self.wait = Some(Wait {
                    until: at.now.plus(told.delay_ms),
                    still_ms: 0,
                    asked,
                });
                return;
            }
        };
        at.run(code, run);
    }

    /// Whether a failed call must be made again: whatever is drawn, the wait fits.
    fn must(&mut self, at: &Moment<'_>, trouble: (Trouble, u64)) -> bool {
        let config = at.config.recovery;
        match self.past.failed(&config, at.now, trouble, self.budget) {
            Ok(span) => {
                self.why = match trouble.0 {
                    Trouble::RateLimit => Some(Why::Budget),
                    _ => Some(Why::Window),
                };
                span.most_ms <= span.room_ms
            }
            Err(why) => {
                self.why = Some(why);
                false
            }
        }
    }
}

impl Retries {
    /// Something is done in the step in which a wait for it was told.
    fn too_soon(&self, at: &mut Moment<'_>, run: RunId) {
        if self.told.iter().any(|told| told.run == run) {
            at.run(Code::RetryEarly, run);
        }
    }

    fn claims(&mut self, at: &mut Moment<'_>, fence: &Fence, claim: &ClaimOrder) {
        self.too_soon(at, fence.run);
        let run = self.runs.entry(fence.run).or_default();
        if let Some(wait) = run.wait.take() {
            if at.now < wait.until {
                at.run(Code::RetryEarly, fence.run);
            }
            if run.budget.is_some_and(|end| end <= at.now) {
                at.run(Code::OverBudget, fence.run);
            }
            self.reached.hit(Mark::Retried);
            if wait.asked {
                self.reached.hit(Mark::AskedWait);
            }
        }
        if let Some(end) = run.budget.take()
            && claim.left_ms != Some(end.since(at.now))
        {
            at.run(Code::BudgetGrew, fence.run);
        }
        run.left_ms = claim.left_ms;
    }

    fn starts(&mut self, at: &mut Moment<'_>, ticket: Ticket, fence: &Fence) {
        self.too_soon(at, fence.run);
        let run = self.runs.entry(fence.run).or_default();
        if run.wait.is_some() {
            at.run(Code::RetryEarly, fence.run);
        }
        run.call = Some(ticket);
        run.attempt = fence.attempt;
        run.calls = run.calls.saturating_add(1);
        (run.came, run.shown, run.saved) = (0, 0, 0);
        run.budget = run.left_ms.map(|ms| at.now.plus(ms));
    }

    fn event(&mut self, at: &mut Moment<'_>, id: RunId, event: &Event) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        match event {
            Event::Text { to, handle, .. } => {
                let own = tidegate_core::ContentOwner::Attempt(id, run.attempt);
                if handle.owner != own || *to > run.came {
                    at.run(Code::RetryText, id);
                }
                run.shown = *to;
            }
            &Event::Retrying {
                call,
                calls_max,
                delay_ms,
                because,
            } => self.told.push(Told {
                run: id,
                call,
                calls_max,
                delay_ms,
                because,
            }),
            Event::Finishing { outcome } => self.ends(at, id, *outcome),
            Event::End { terminal, .. } => {
                let reset = matches!(
                    terminal.outcome,
                    Outcome::Cancelled {
                        by: StopReason::Reset,
                        ..
                    }
                );
                if reset && run.wait.is_some() {
                    self.reached.hit(Mark::ResetWaiting);
                }
                self.runs.remove(&id);
            }
            _ => {}
        }
    }

    /// A run's end is decided.
    fn ends(&mut self, at: &mut Moment<'_>, id: RunId, outcome: Outcome) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if let Some(wait) = run.wait.take() {
            let mark = match outcome {
                // Both were due when a loop that stood still went on.
                Outcome::TimedOut {
                    limit: Limit::Budget,
                    ..
                } => {
                    if run.budget.is_none_or(|end| at.now < end) {
                        at.run(Code::LimitEarly, id);
                    }
                    return;
                }
                Outcome::TimedOut {
                    limit: Limit::Lane, ..
                } => Mark::LaneWaiting,
                Outcome::Cancelled {
                    by: StopReason::Interrupt,
                    ..
                } => Mark::InterruptedWaiting,
                Outcome::Cancelled { .. } => Mark::AbortedWaiting,
                _ => {
                    run.wait = Some(wait);
                    return at.run(Code::RetryWrong, id);
                }
            };
            return self.reached.hit(mark);
        }
        if outcome == Outcome::Completed && run.past.retries > 0 {
            self.reached.hit(Mark::OutagePassed);
        }
        if is_silence(outcome) {
            if run.owed {
                at.run(Code::RetryWrong, id);
            }
            self.reached.gave_up(run.why, run.past.retries);
        }
    }

    /// Judges what came of this step's failures.
    fn judge(&mut self, at: &mut Moment<'_>) {
        let failed = self.failed.take();
        let stopped = std::mem::take(&mut self.stopped);
        let mut told = std::mem::take(&mut self.told);
        for told in told.drain(..) {
            let Some(run) = self.runs.get_mut(&told.run) else {
                continue;
            };
            let of_end = failed.filter(|(of, ..)| *of == told.run);
            // That a silent call is stopped is judged with its limit.
            let open = run.call.is_some() || stopped.contains(&told.run);
            let silent = open && is_silence(told.because);
            match of_end {
                Some((_, trouble, ends)) => {
                    run.waits(at, told, trouble);
                    if ends != told.because {
                        at.run(Code::RetryUntrue, told.run);
                    }
                }
                None if silent => run.waits(at, told, (Trouble::Silence, 0)),
                None => at.run(Code::RetryWrong, told.run),
            }
            run.call = None;
        }
        if let Some((id, trouble, _)) = failed
            && let Some(run) = self.runs.get_mut(&id)
            && run.wait.is_none()
        {
            if run.must(at, trouble) {
                at.run(Code::RetryWrong, id);
            }
            self.reached.gave_up(run.why, run.past.retries);
        }
        for id in stopped {
            if let Some(run) = self.runs.get_mut(&id)
                && run.wait.is_none()
            {
                run.owed = run.must(at, (Trouble::Silence, 0));
            }
        }
    }
}

impl Check for Retries {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        let Input::Model { ticket, fact } = input else {
            return;
        };
        let Subject::Run(id) = ticket.subject else {
            return;
        };
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if run.call != Some(*ticket) {
            return;
        }
        match fact {
            ModelFact::Text { to } => run.came = run.came.max(*to),
            ModelFact::Ended(end) => {
                run.call = None;
                let failure = failure(*end);
                self.failed = failure.map(|(trouble, ms, ends)| (id, (trouble, ms), ends));
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Accept { accept, .. } => {
                if let Some(claim) = &accept.claim {
                    self.runs.entry(accept.run).or_default().left_ms = claim.left_ms;
                }
            }
            Output::Claim { fence, claim, .. } => self.claims(at, fence, claim),
            Output::StartModel { ticket, fence } => self.starts(at, *ticket, fence),
            Output::CancelModel { ticket } => {
                if let Subject::Run(id) = ticket.subject
                    && let Some(run) = self.runs.get_mut(&id)
                    && run.call.take_if(|call| call == ticket).is_some()
                {
                    self.stopped.insert(id);
                }
            }
            Output::Save { fence, to, .. } => {
                if let Some(run) = self.runs.get_mut(&fence.run) {
                    run.saved = *to;
                }
            }
            Output::Publish { run, event, .. } => self.event(at, *run, event),
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                self.runs.remove(run);
            }
            // The last word of a drain: what failed in this step is told by now.
            Output::Sleep { .. } => self.judge(at),
            Output::Drained => {
                self.drained = true;
                if self.runs.values().any(|run| run.wait.is_some()) {
                    self.reached.hit(Mark::DrainedWaiting);
                }
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        self.judge(at);
        for (&id, run) in &self.runs {
            let Some(wait) = run.wait else { continue };
            let late = |end: Time| at.now > end.plus(wait.still_ms + at.slack_ms);
            if late(wait.until) {
                return at.run(Code::RetryLate, id);
            }
            if run.budget.is_some_and(late) {
                return at.run(Code::OverBudget, id);
            }
        }
    }

    fn froze(&mut self, ms: u64) {
        for wait in self.runs.values_mut().filter_map(|run| run.wait.as_mut()) {
            wait.still_ms += ms;
        }
    }

    fn died(&mut self) {
        let mut reached = std::mem::take(&mut self.reached);
        if !self.drained && self.runs.values().any(|run| run.wait.is_some()) {
            reached.hit(Mark::DiedWaiting);
        }
        *self = Self {
            reached,
            ..Self::default()
        };
    }
}

impl Marks {
    /// A run ends since its call is not made again.
    fn gave_up(&mut self, why: Option<Why>, retries: u16) {
        match why {
            Some(Why::TooLong) => self.hit(Mark::AskedTooLong),
            Some(Why::Count) if retries > 0 => self.hit(Mark::RetriesSpent),
            Some(Why::Silences) => self.hit(Mark::SilencesSpent),
            Some(Why::Window) => self.hit(Mark::WindowOver),
            Some(Why::Budget) => self.hit(Mark::BudgetShort),
            Some(Why::Count | Why::Lasting) | None => {}
        }
    }
}
