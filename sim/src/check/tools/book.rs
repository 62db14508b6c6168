//! A round of tools, as its surroundings see it: an answer, its checkpoints, its calls, its end.
//!
//! Owns what a whole round must come to: which calls a checkpoint names, in which order calls are
//! told, what is written of them, and that none of it stands still.

use tidegate_core::{
    Attempt, CallEnd, CallKind, CallResult, Decision, Event, Failure, Fence, LaunchOrder,
    LaunchReport, Limit, Outcome, RunId, StopReason, Ticket, Time,
};

use super::super::Moment;
use super::call::{Call, Clock, Launch, Question};
use crate::marks::Mark;
use crate::violation::Code;

/// How a run ends whose answers ask too often.
pub(super) const TOO_MANY: Outcome = Outcome::Failed(Failure::TooManyRounds);

/// See the module.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) attempt: Attempt,
    bytes: u64,
    pub(super) calls: Vec<Call>,
    /// The checkpoint under way, and whether the last one was refused.
    launch: Option<(Ticket, LaunchOrder)>,
    refused: bool,
    /// Durable checkpoints.
    pub(super) checkpoints: u16,
    pub(super) durable: bool,
    /// Whether something was done that says that the run goes no further.
    pub(super) stopped: bool,
    /// The claim that writes its results.
    pub(super) claim: Option<Ticket>,
    /// Whether the run's end is decided.
    pub(super) ending: bool,
}

impl Round {
    pub(super) const fn new(attempt: Attempt, bytes: u64, calls: Vec<Call>) -> Self {
        Self {
            attempt,
            bytes,
            calls,
            launch: None,
            refused: false,
            checkpoints: 0,
            durable: false,
            stopped: false,
            claim: None,
            ending: false,
        }
    }

    /// Whether its tools are at work, or may be.
    pub(super) const fn is_open(&self) -> bool {
        self.claim.is_none() && !self.ending
    }

    /// How many questions are open.
    pub(super) fn questions(&self) -> usize {
        let open =
            |call: &&Call| call.ended.is_none() && matches!(call.question, Question::Open(_));
        self.calls.iter().filter(open).count()
    }

    /// A checkpoint is ordered.
    pub(super) fn orders(
        &mut self,
        at: &mut Moment<'_>,
        ticket: Ticket,
        fence: &Fence,
        launch: &LaunchOrder,
    ) {
        let of_answer = fence.attempt == self.attempt
            && launch.bytes == self.bytes
            && usize::from(launch.calls) == self.calls.len();
        if !of_answer || !self.is_open() || self.launch.is_some() {
            return at.run(Code::RoundWrong, fence.run);
        }
        if self.stopped {
            at.run(Code::AfterStop, fence.run);
        }
        for (place, call) in (0u16..).zip(&mut self.calls) {
            let (starts, asks) = (launch.start.contains(&place), launch.ask.contains(&place));
            let open = call.may_start() && call.launch != Launch::Durable && call.ended.is_none();
            let asked = matches!(call.question, Question::Open(_) | Question::Word(_));
            let code = match (starts, asks) {
                (true, _) if !call.may_start() || !call.is_allowed() => Code::ToolUncalled,
                (true, true) => Code::RoundWrong,
                (true, _) if !open => Code::ToolTwice,
                (_, true) if !open || !call.asks || asked => Code::ApprovalUntrue,
                (false, _) if open && call.is_allowed() => Code::RoundWrong,
                (_, false) if open && call.asks && !asked => Code::RoundWrong,
                _ => {
                    if starts {
                        call.launch = Launch::Ordered;
                    }
                    continue;
                }
            };
            at.run(code, fence.run);
        }
        self.refused = false;
        self.launch = Some((ticket, launch.clone()));
    }

    /// The report of a checkpoint.
    pub(super) fn launched(&mut self, now: Time, ticket: Ticket, report: LaunchReport) {
        let Some((_, launch)) = self.launch.take_if(|(expected, _)| *expected == ticket) else {
            return;
        };
        let committed = report == LaunchReport::Committed;
        self.refused = !committed;
        self.durable |= committed;
        self.checkpoints += u16::from(committed);
        for (place, call) in (0u16..).zip(&mut self.calls) {
            if launch.start.contains(&place) {
                call.launch = match committed {
                    true => Launch::Durable,
                    false => Launch::None,
                };
            }
            if committed && launch.ask.contains(&place) {
                call.question = Question::Open(Clock::new(now));
            }
        }
    }

    pub(super) fn event(&mut self, at: &mut Moment<'_>, run: RunId, event: &Event) {
        let place = match event {
            Event::ToolStart { call }
            | Event::ToolAsked { call, .. }
            | Event::ToolDecided { call, .. }
            | Event::ToolOutput { call, .. }
            | Event::ToolEnd { call, .. } => usize::from(call.call),
            _ => return,
        };
        let next = self.calls.iter().position(|call| !call.told);
        let (durable, stopped) = (self.durable, self.stopped);
        let Some(call) = self.calls.get_mut(place) else {
            return at.run(Code::ToolUntold, run);
        };
        let open = call.told && call.ended.is_none();
        let code = match *event {
            Event::ToolStart { .. } => {
                call.told = true;
                (!durable || next != Some(place)).then_some(Code::ToolUntold)
            }
            Event::ToolAsked { .. } => {
                let first = !std::mem::replace(&mut call.asked, true);
                let asks = matches!(call.question, Question::Open(_));
                (!open || !first || !asks || stopped).then_some(Code::ApprovalUntrue)
            }
            Event::ToolDecided { decision, .. } => {
                let said = matches!(call.question, Question::Word(first) if first == decision);
                (!open || !said).then_some(Code::ApprovalUntrue)
            }
            Event::ToolOutput { from, to, .. } => {
                let grows = from == call.shown && from < to && to <= call.output;
                call.shown = to;
                (!open || !grows || call.started.is_none()).then_some(Code::ToolUntold)
            }
            Event::ToolEnd { end, .. } if open => {
                let is_so = call.bears_out(end, at.now, at.config);
                let all = call.shown == call.output;
                call.ended = Some(end);
                match (is_so, all) {
                    (false, _) => Some(Code::ResultUntrue),
                    (_, false) => Some(Code::ToolUntold),
                    _ => None,
                }
            }
            _ => Some(Code::ToolUntold),
        };
        // One that could have started and never will: its run goes no further.
        let skips = matches!(event, Event::ToolEnd { end, .. } if matches!(end, CallEnd::Skipped))
            && call.room;
        let cancelled =
            matches!(event, Event::ToolEnd { end, .. } if matches!(end, CallEnd::Cancelled));
        self.stopped |= skips || cancelled;
        if let Some(code) = code {
            at.run(code, run);
        }
    }

    /// The next attempt claims, with these results.
    pub(super) fn claims(
        &mut self,
        at: &mut Moment<'_>,
        fence: &Fence,
        ticket: Ticket,
        results: &[CallResult],
    ) {
        if self.stopped || self.ending {
            at.run(Code::AfterStop, fence.run);
        }
        if fence.attempt != self.attempt.next() || !self.durable || self.launch.is_some() {
            at.run(Code::RoundWrong, fence.run);
        }
        if !self.are(results) {
            at.run(Code::ResultMissing, fence.run);
        }
        self.claim = Some(ticket);
    }

    /// The run's end is written, with these results.
    pub(super) fn settles(&self, at: &mut Moment<'_>, run: RunId, results: &[CallResult]) {
        let is_so = match self.durable {
            true => self.are(results),
            false => results.is_empty(),
        };
        if !is_so {
            at.run(Code::ResultMissing, run);
        }
    }

    /// Whether these are the ends of all calls, as they were told, in order.
    fn are(&self, results: &[CallResult]) -> bool {
        let told = (0u16..).zip(&self.calls);
        let told = told.map(|(call, it)| it.ended.map(|end| CallResult { call, end }));
        told.eq(results.iter().copied().map(Some))
    }

    /// The run has ended, or will: all is told, and nothing goes on behind it.
    pub(super) fn left(&self, at: &mut Moment<'_>, run: RunId) {
        let untold = |call: &Call| call.told && call.ended.is_none();
        if self.calls.iter().any(untold) {
            at.run(Code::ToolUntold, run);
        }
        self.left_running(at, run);
    }

    /// Nothing goes on that was not told to stop.
    pub(super) fn left_running(&self, at: &mut Moment<'_>, run: RunId) {
        let left =
            |call: &Call| call.started.is_some() && call.said.is_none() && call.stopped.is_none();
        if self.calls.iter().any(left) {
            at.run(Code::ToolLeft, run);
        }
    }

    /// Whether a run may end so although a tool has not said its end: its lane's time is over.
    pub(super) fn waited(&self, at: &Moment<'_>, outcome: Outcome) -> bool {
        let lane = matches!(
            outcome,
            Outcome::TimedOut {
                limit: Limit::Lane,
                ..
            }
        );
        // The lane's time is counted from the budget's end, which a wake that is not late enough
        // to count may have missed.
        let late = at.slack_ms.max(at.config.lateness_ms);
        let grace = at.config.lane_grace_ms.min(at.config.interrupt_settle_ms);
        let grace = grace.saturating_sub(late);
        let given_up = |call: &Call| call.ended == Some(CallEnd::Unknown);
        lane || self.calls.iter().filter(|call| given_up(call)).all(|call| {
            let grace = |stopped: Clock| at.now >= stopped.at.plus(grace);
            call.is_given_up(at.now, at.config) || call.stopped.is_some_and(grace)
        })
    }

    /// What the end of its run shows.
    pub(super) fn mark(&self, outcome: Outcome) -> Option<Mark> {
        if self.claim.is_some() {
            return None;
        }
        let asked = |call: &Call| call.asked && call.ended == Some(CallEnd::Skipped);
        Some(match outcome {
            Outcome::TimedOut {
                limit: Limit::Budget,
                ..
            } => Mark::BudgetTools,
            Outcome::Cancelled { by, .. } => match by {
                StopReason::Interrupt => Mark::InterruptedTools,
                _ if self.calls.iter().any(asked) => Mark::AbortedAsked,
                _ => Mark::AbortedTools,
            },
            _ => return None,
        })
    }

    /// Whether something stands still in it, or goes on for too long.
    pub(super) fn stands(&self, at: &Moment<'_>) -> Option<Code> {
        if !self.is_open() {
            return None;
        }
        if self
            .calls
            .iter()
            .any(|call| call.is_long(at.now, at.config, at.slack_ms))
        {
            return Some(Code::ToolLong);
        }
        let open = |call: &Call| match call.question {
            Question::Open(since) if call.ended.is_none() => {
                since.is_over(at.now, at.config.tools.approval_ms, at.slack_ms)
            }
            _ => false,
        };
        if self.calls.iter().any(open) {
            return Some(Code::ApprovalLate);
        }
        // A run that goes no further leaves nothing going, and nobody asked.
        let goes_on = |call: &Call| call.runs() && call.stopped.is_none();
        if self.stopped && self.calls.iter().any(goes_on) {
            return Some(Code::ToolLeft);
        }
        if self.stopped && self.questions() > 0 {
            return Some(Code::ToolUntold);
        }
        if !self.durable {
            let idle = self.launch.is_none() && !self.refused;
            return idle.then_some(Code::ToolIdle);
        }
        let untold = |call: &Call| {
            let dead = call.kind != CallKind::Ready || !call.room || call.said.is_some();
            let denied = matches!(call.question, Question::Word(Decision::Deny));
            let unasked = matches!(call.question, Question::Open(_)) && !call.asked;
            !call.told || call.ended.is_none() && (dead || denied || unasked)
        };
        if self.calls.iter().any(untold) {
            return Some(Code::ToolUntold);
        }
        let orders = self.launch.is_some() || self.refused;
        let idle = |call: &Call| {
            let unstarted = call.launch == Launch::Durable && call.started.is_none();
            let allowed = call.launch == Launch::None && call.is_allowed() && !orders;
            call.ended.is_none() && call.may_start() && (unstarted || allowed)
        };
        let all = self.calls.iter().all(|call| call.ended.is_some());
        let stands = self.calls.iter().any(idle) || all && !orders;
        stands.then_some(Code::ToolIdle)
    }
}
