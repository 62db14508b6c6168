//! P15, P16, I36, I41, R119, R121, B-050, B-051, B-056, B-057, B-058: a call that failed for a
//! while is made again, as often and as soon as it may be; one that its provider can't answer goes
//! to the next of the chain; and nothing of it passes under the next.
//!
//! Keeps its own book of each run's calls in this life of the process. Whether a run must ask
//! again, must not, or may, is read from `rules`, whether it must ask another provider, from
//! `chain`; a wait that is told is kept to the millisecond, and without one nothing is waited for. What a campaign has seen of all this is marked here, since only this book knows.

mod chain;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Attempt, ClaimOrder, Event, Fence, Input, Limit, ModelFact, Outcome, Output, RunId, StopReason,
    Subject, Ticket, Time,
};

use self::rules::{Past, Place, Span, Trouble, Why, failure, is_silence};
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
    /// Which provider it asks, and whether that one is still to be claimed for and called.
    candidate: u16,
    led: Led,
    /// Bytes of the reply that came, were shown and were saved, of this attempt.
    came: u64,
    shown: u64,
    saved: u64,
    past: Past,
    /// What its last claim left of its budget, and when that is over.
    left_ms: Option<u64>,
    budget: Option<Time>,
    wait: Option<Wait>,
    /// A silent call was stopped although it had to be made again, or the next provider asked.
    owed: Option<Code>,
    /// Why its last call is not made again.
    why: Option<Why>,
}

/// How far a run is on its way to the next provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Led {
    /// It is with its provider.
    #[default]
    Not,
    /// It was told that another one is asked, and must claim in the same step.
    Told,
    /// It claims.
    Claims,
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

/// How a run ends whose call said nothing for too long.
const SILENT: Outcome = Outcome::TimedOut {
    limit: Limit::Idle,
    provider_started: true,
};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    runs: BTreeMap<RunId, Run>,
    /// The call that failed in this step: what that means, and as what its run would end.
    failed: Option<(RunId, (Trouble, u64), Outcome)>,
    told: Vec<Told>,
    /// Runs that went on in this step to the next provider without all that came being kept.
    cut: BTreeSet<RunId>,
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
        if !self.is_kept() {
            at.run(Code::RetryText, run);
        }
        let span = self.past.failed(&config, at.now, trouble, self.place(at));
        let Span {
            least_ms,
            most_ms,
            room_ms,
            asked,
        } = match span {
            Ok(span) => span,
            Err(Why::Lasting | Why::TooLong) => return at.run(Code::RetryWrong, run),
            Err(Why::Elsewhere) => return at.run(Code::FallbackWrong, run),
            Err(_) => return at.run(Code::RetryOften, run),
        };
        self.past.retries += 1;
        let code = match told.delay_ms {
            ms if ms < least_ms => Code::RetryEarly,
            ms if ms > most_ms => Code::RetryLate,
            ms if ms > room_ms => Code::RetryOften,
            _ if told.call != self.past.retries + 1 => Code::RetryUntrue,
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

    /// Whether all that came of its call was shown and saved.
    const fn is_kept(&self) -> bool {
        self.shown == self.came && self.saved == self.came
    }

    fn place(&self, at: &Moment<'_>) -> Place {
        Place {
            behind: chain::behind(at.config, self.candidate),
            budget: self.budget,
        }
    }

    /// What must follow a failure: the same provider must be asked again, or the next one, or
    /// the run may end.
    fn owes(&mut self, at: &Moment<'_>, trouble: (Trouble, u64), because: Outcome) -> Option<Code> {
        if self.must(at, trouble) {
            return Some(Code::RetryWrong);
        }
        let left_ms = chain::left(at.now, self.budget);
        let next = chain::must(at.config, self.candidate, &self.past, because, left_ms);
        next.then_some(Code::FallbackWrong)
    }

    /// Judges that another provider is asked after a failure.
    fn leads(
        &mut self,
        at: &mut Moment<'_>,
        run: RunId,
        told: u16,
        (trouble, because): ((Trouble, u64), Outcome),
    ) {
        if self.owes(at, trouble, because) != Some(Code::FallbackWrong) {
            // Beyond the end of the chain is another matter than a failure that leads nowhere.
            let code = match chain::leads_on(because) && self.place(at).behind == 0 {
                true => Code::FallbackOrder,
                false => Code::FallbackWrong,
            };
            at.run(code, run);
        }
        if told != self.candidate.saturating_add(1) {
            at.run(Code::FallbackOrder, run);
        }
        self.candidate = told;
        self.past.with_another();
        self.led = Led::Told;
        self.call = None;
    }

    /// Whether a failed call must be made again: whatever is drawn, the wait fits.
    fn must(&mut self, at: &Moment<'_>, trouble: (Trouble, u64)) -> bool {
        let config = at.config.recovery;
        match self.past.failed(&config, at.now, trouble, self.place(at)) {
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
        if run.led == Led::Told {
            run.led = Led::Claims;
            self.reached.hit(Mark::FellBack);
            if run.past.retries > 0 {
                self.reached.hit(Mark::RetriedThenLed);
            }
        }
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

    fn starts(&mut self, at: &mut Moment<'_>, ticket: Ticket, fence: &Fence, candidate: u16) {
        self.too_soon(at, fence.run);
        let run = self.runs.entry(fence.run).or_default();
        if run.wait.is_some() {
            at.run(Code::RetryEarly, fence.run);
        }
        run.call = Some(ticket);
        run.attempt = fence.attempt;
        if run.candidate != candidate {
            at.run(Code::FallbackUntrue, fence.run);
        }
        run.led = Led::Not;
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
            &Event::Fallback { candidate, because } => self.led(at, id, candidate, because),
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

    /// It is told that another provider is asked.
    fn led(&mut self, at: &mut Moment<'_>, id: RunId, told: u16, because: Outcome) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let failed = self.failed.take_if(|(of, ..)| *of == id);
        let silent = run.call.is_some() && is_silence(because);
        let (trouble, happened) = match failed {
            Some((_, trouble, ends)) => (trouble, ends),
            // That a silent call is stopped is judged with its limit.
            None if silent => ((Trouble::Silence, 0), because),
            None => return at.run(Code::FallbackWrong, id),
        };
        run.leads(at, id, told, (trouble, happened));
        if happened != because {
            at.run(Code::FallbackUntrue, id);
        }
        if !run.is_kept() {
            self.cut.insert(id);
        }
        match (trouble.0, run.why) {
            (Trouble::Silence, _) => self.reached.hit(Mark::SilentLedOn),
            (_, Some(Why::Elsewhere)) => self.reached.hit(Mark::FarLedOn),
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
        if run.led == Led::Claims && matches!(outcome, Outcome::Cancelled { .. }) {
            self.reached.hit(Mark::AbortedLed);
        }
        if run.candidate > 0 && outcome == Outcome::Completed {
            self.reached.hit(Mark::FallbackCompleted);
        }
        let behind = chain::behind(at.config, run.candidate);
        if chain::leads_on(outcome) && run.candidate > 0 && behind == 0 {
            self.reached.hit(Mark::ChainSpent);
        }
        if matches!(outcome, Outcome::Failed(_)) && behind > 0 && !chain::leads_on(outcome) {
            self.reached.hit(Mark::WrongEverywhere);
        }
        if outcome == Outcome::Completed && run.past.retries > 0 {
            self.reached.hit(Mark::OutagePassed);
        }
        if is_silence(outcome) {
            if let Some(code) = run.owed {
                at.run(code, id);
            }
            self.reached.gave_up(run.why, run.past.retries);
        }
    }

    /// Judges what came of this step's failures.
    fn judge(&mut self, at: &mut Moment<'_>) {
        for id in std::mem::take(&mut self.cut) {
            at.run(Code::RetryText, id);
        }
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
        if let Some((id, trouble, ends)) = failed
            && let Some(run) = self.runs.get_mut(&id)
            && run.wait.is_none()
        {
            if let Some(code) = run.owes(at, trouble, ends) {
                at.run(code, id);
            }
            self.reached.gave_up(run.why, run.past.retries);
        }
        for id in stopped {
            if let Some(run) = self.runs.get_mut(&id)
                && run.wait.is_none()
            {
                run.owed = run.owes(at, (Trouble::Silence, 0), SILENT);
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
            Output::StartModel {
                ticket,
                fence,
                candidate,
            } => self.starts(at, *ticket, fence, *candidate),
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
            // Another writer has ended it: the store is asked how, and no model any more.
            Output::Lookup {
                ticket:
                    Ticket {
                        subject: Subject::Run(run),
                        ..
                    },
                ..
            } => {
                self.runs.remove(run);
            }
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
            if run.led == Led::Told {
                return at.run(Code::FallbackLate, id);
            }
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
        if !self.drained && self.runs.values().any(|run| run.led == Led::Claims) {
            reached.hit(Mark::DiedLed);
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
            Some(Why::Count | Why::Lasting | Why::Elsewhere) | None => {}
        }
    }
}
