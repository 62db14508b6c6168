//! P15, P16, I36, I41, R119, R121, B-050, B-051, B-056, B-057, B-058: a call that failed for a
//! while is made again, as often and as soon as it may be; one that its provider can't answer goes
//! to the next of the chain; and nothing of it passes under the next.
//!
//! Keeps its own book of each run's calls in this life of the process. Whether a run must ask
//! again, must not, or may, is read from `rules`, whether it must ask another provider, from
//! `chain`; a wait that is told is kept to the millisecond, and without one nothing is waited
//! for. While a person is asked about a tool call a budget stands still (P27, I39). What a
//! campaign has seen of all this is marked here, since only this book knows.

mod chain;
mod rules;
mod run;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    ClaimOrder, Event, Fence, Input, Limit, ModelEnd, ModelFact, Outcome, Output, RunId,
    StopReason, Subject, Ticket, Time, ToolFact,
};

use self::rules::{Trouble, Why, failure, is_silence};
use self::run::{Led, Run, Told};
use super::{Check, Moment};
use crate::marks::{Mark, Marks};
use crate::violation::Code;

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
        run.tools = None;
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
        (run.calling, run.asks, run.finished) = (false, false, false);
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
            Event::ToolAsked { call, .. } => run.pauses(at.now, *call),
            Event::ToolDecided { call, .. } | Event::ToolEnd { call, .. } => {
                run.resumes(at.now, *call);
            }
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
        let silent = run.call.is_some() && (is_silence(because) || run.hangs(because));
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
        if run.tools.is_some()
            && let Outcome::TimedOut {
                limit: Limit::Budget,
                ..
            } = outcome
        {
            // One that had passed when the last tool ended counts too.
            if !run.asked.is_empty() || run.budget.is_none_or(|end| at.now < end) {
                at.run(Code::LimitEarly, id);
            }
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
        if run.hangs(outcome) {
            self.reached.hit(Mark::CallsHung);
        }
        if matches!(outcome, Outcome::Failed(_)) && behind > 0 && !chain::leads_on(outcome) {
            self.reached.hit(Mark::WrongEverywhere);
        }
        if outcome == Outcome::Completed && run.past.retries > 0 {
            self.reached.hit(Mark::OutagePassed);
        }
        if is_silence(outcome) || run.hangs(outcome) {
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
            let silent = open && (is_silence(told.because) || run.hangs(told.because));
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
        if let Input::Tool {
            ticket,
            fact: ToolFact::Ended(_),
        } = input
        {
            for run in self.runs.values_mut() {
                run.running.remove(ticket);
            }
        }
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
            ModelFact::Text { to } => {
                run.finished = false;
                run.came = run.came.max(*to);
            }
            ModelFact::Calling => (run.calling, run.finished) = (true, false),
            ModelFact::Call(_) => (run.asks, run.finished) = (true, false),
            ModelFact::Finished => run.finished = true,
            ModelFact::Reasoning => run.finished = false,
            ModelFact::Ended(end) => {
                if run.asks && *end == ModelEnd::Completed {
                    // An answer: whatever was out of order is over.
                    run.past.answered();
                    run.tools = Some(0);
                }
                if run.calling && *end != ModelEnd::Completed {
                    self.reached.hit(Mark::CallsBroken);
                }
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
            Output::StartTool { ticket, call } => {
                let run = self.runs.entry(call.run).or_default();
                run.running.insert(*ticket);
            }
            Output::CancelTool { ticket } => {
                for run in self.runs.values_mut() {
                    run.running.remove(ticket);
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
            let still_ms = run.wait.map(|wait| wait.still_ms).or(run.tools);
            let Some(still_ms) = still_ms else { continue };
            let late = |end: Time| at.now > end.plus(still_ms + at.slack_ms);
            if !run.running.is_empty() && run.budget.is_some_and(late) {
                return at.run(Code::OverBudget, id);
            }
            let Some(wait) = run.wait else { continue };
            if late(wait.until) {
                return at.run(Code::RetryLate, id);
            }
            if run.budget.is_some_and(late) {
                return at.run(Code::OverBudget, id);
            }
        }
    }

    fn froze(&mut self, ms: u64) {
        for run in self.runs.values_mut() {
            if let Some(wait) = &mut run.wait {
                wait.still_ms += ms;
            }
            if let Some(still_ms) = &mut run.tools {
                *still_ms += ms;
            }
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
