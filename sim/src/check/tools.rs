//! P08, P12, P27, P38, I24, I33, I34, I40, R96, L1, L15, law 9, law 12: rounds of tools.
//!
//! Keeps its own book of each run's round in this life, and of every call that ever started:
//! that one outlives the process, as what a tool did does. A tool that is stopped before its
//! limit, or a call that is skipped, says that its run goes no further; so whatever the run does
//! then is judged. What a campaign has seen of all this is marked here.

mod book;
mod call;
mod people;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    CallEnd, CallFacts, CallId, ClaimReport, Decision, Event, Input, LaunchReport, ModelEnd,
    ModelFact, OrderKind, Outcome, Output, RequestId, RunId, StopReason, Subject, Ticket, Time,
    ToolFact,
};

use self::book::Round;
use self::call::{Call, Clock, Launch, Question};
use self::people::Expected;
use self::rows::Rows;
use super::{Check, Moment};
use crate::marks::{Mark, Marks};
use crate::violation::Code;
use crate::world::store::{RowKind, Wrote};

/// A model call that goes on.
#[derive(Debug, Default)]
struct Asking {
    bytes: u64,
    calls: Vec<CallFacts>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    models: BTreeMap<Ticket, Asking>,
    rounds: BTreeMap<RunId, Round>,
    /// Answers of a run in this life that asked.
    answers: BTreeMap<RunId, u16>,
    words: BTreeMap<RequestId, (CallId, Decision, Expected)>,
    /// Calls that were called unknown in this step before their bound.
    given_up: BTreeSet<RunId>,
    /// Runs that ended or were let go in this step.
    gone: BTreeSet<RunId>,
    /// Words that came too late after all, in this step: their calls never start.
    undone: Vec<(RequestId, CallId)>,
    /// Messages that the last claim of a run took along.
    along: BTreeMap<RunId, usize>,
    promised: Option<Time>,
    drained: bool,
    /// Every call that was ever started.
    started: BTreeSet<CallId>,
    rows: Rows,
    pub(crate) reached: Marks,
}

/// The call that a ticket names.
fn named(ticket: Ticket) -> Option<CallId> {
    match ticket.subject {
        Subject::Run(run) if ticket.order == OrderKind::Tool => Some(CallId {
            run,
            attempt: ticket.attempt,
            call: ticket.ordinal,
        }),
        _ => None,
    }
}

impl Tools {
    fn call(&mut self, id: CallId) -> Option<&mut Call> {
        let round = self.rounds.get_mut(&id.run)?;
        let of = round.attempt == id.attempt;
        let calls = of.then_some(&mut round.calls)?;
        calls.get_mut(usize::from(id.call))
    }

    fn says(&mut self, at: &Moment<'_>, ticket: Ticket, fact: &ModelFact) {
        let Some(asking) = self.models.get_mut(&ticket) else {
            return;
        };
        match fact {
            ModelFact::Text { to } => asking.bytes = asking.bytes.max(*to),
            ModelFact::Call(facts) => asking.calls.push(*facts),
            ModelFact::Ended(end) => {
                let asking = std::mem::take(asking);
                self.models.remove(&ticket);
                if let (ModelEnd::Completed, Subject::Run(run), false) =
                    (end, ticket.subject, asking.calls.is_empty())
                {
                    let places = asking.calls.into_iter().enumerate();
                    let calls: Vec<Call> = places
                        .map(|(place, facts)| Call::new(facts, at.config, place))
                        .collect();
                    if calls.iter().any(|call| !call.room) {
                        self.reached.hit(Mark::TooManyCalls);
                    }
                    let round = Round::new(ticket.attempt, asking.bytes, calls);
                    self.rounds.insert(run, round);
                    *self.answers.entry(run).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn does(&mut self, ticket: Ticket, fact: ToolFact) {
        let Some(id) = named(ticket) else { return };
        let known = self.started.contains(&id);
        match (self.call(id), fact) {
            (Some(call), _) if call.ended.is_none() && call.started.is_some() => match fact {
                ToolFact::Output { to } => call.output = call.output.max(to),
                ToolFact::Ended(end) => {
                    call.said.get_or_insert(end);
                }
            },
            (_, ToolFact::Ended(_)) if known => self.reached.hit(Mark::ToolLate),
            _ => {}
        }
    }

    fn starts(&mut self, at: &mut Moment<'_>, ticket: Ticket, id: CallId) {
        if !self.started.insert(id) {
            return at.run(Code::ToolTwice, id.run);
        }
        if named(ticket) != Some(id) || !self.rows.is_launched(id) {
            at.run(Code::ToolUnlaunched, id.run);
        }
        let Some(round) = self
            .rounds
            .get_mut(&id.run)
            .filter(|round| round.attempt == id.attempt)
        else {
            return at.run(Code::ToolUnlaunched, id.run);
        };
        let stopped = round.stopped || !round.is_open();
        let runs = round.calls.iter().any(Call::runs);
        let Some(call) = round.calls.get_mut(usize::from(id.call)) else {
            return at.run(Code::ToolUncalled, id.run);
        };
        if stopped {
            at.run(Code::AfterStop, id.run);
        }
        if call.launch != Launch::Durable {
            at.run(Code::ToolUnlaunched, id.run);
        }
        if !call.may_start() || !call.is_allowed() || call.ended.is_some() {
            at.run(Code::ToolUncalled, id.run);
        }
        call.started = Some(Clock::new(at.now));
        if runs {
            self.reached.hit(Mark::SideBySide);
        }
    }

    fn event(&mut self, at: &mut Moment<'_>, run: RunId, event: &Event) {
        match event {
            Event::ToolStart { call }
            | Event::ToolAsked { call, .. }
            | Event::ToolDecided { call, .. }
            | Event::ToolOutput { call, .. }
            | Event::ToolEnd { call, .. } => {
                let round = self.rounds.get_mut(&run);
                match round.filter(|round| call.run == run && round.attempt == call.attempt) {
                    Some(round) => round.event(at, run, event),
                    None => at.run(Code::ToolUntold, run),
                }
                if let Event::ToolAsked { .. } = event
                    && self
                        .rounds
                        .get(&run)
                        .is_some_and(|round| round.questions() > 1)
                {
                    self.reached.hit(Mark::TwoAsked);
                }
                if let Event::ToolEnd { call, end } = event
                    && *end == CallEnd::Unknown
                {
                    let config = at.config;
                    let now = at.now;
                    let bound = |call: &mut Call| call.is_given_up(now, config);
                    if !self.call(*call).is_some_and(bound) {
                        self.given_up.insert(run);
                    }
                }
            }
            Event::Finishing { outcome } => self.ends(at, run, *outcome),
            Event::End { terminal, .. } => {
                if let Some(round) = self.rounds.remove(&run) {
                    match terminal.outcome {
                        Outcome::Superseded => self.reached.hit(Mark::SupersededTools),
                        Outcome::Cancelled {
                            by: StopReason::Reset,
                            ..
                        } => self.reached.hit(Mark::ResetTools),
                        _ => {}
                    }
                    round.left(at, run);
                }
                self.gone.insert(run);
            }
            Event::Retrying { .. } if self.answers.contains_key(&run) => {
                self.reached.hit(Mark::RetriedBehind);
            }
            Event::Fallback { .. } if self.answers.contains_key(&run) => {
                self.reached.hit(Mark::LedBehind);
            }
            _ => {}
        }
    }

    /// A run's end is decided.
    fn ends(&mut self, at: &mut Moment<'_>, run: RunId, outcome: Outcome) {
        let rounds = self.answers.get(&run).copied().unwrap_or(0);
        if outcome == Outcome::Completed && rounds > 0 {
            self.reached.hit(Mark::ToolsThenDone);
        }
        self.gone.insert(run);
        let many = outcome == book::TOO_MANY;
        if many && rounds <= at.config.tools.rounds_max {
            at.run(Code::RoundsMany, run);
        }
        let Some(round) = self.rounds.get_mut(&run) else {
            return;
        };
        if outcome == Outcome::Completed || many && round.durable {
            at.run(Code::RoundWrong, run);
        }
        if self.given_up.contains(&run) && !round.waited(at, outcome) {
            at.run(Code::ToolLeft, run);
        }
        if let Some(mark) = round.mark(outcome) {
            self.reached.hit(mark);
        }
        round.ending = true;
        round.left(at, run);
    }

    fn claims(&mut self, at: &mut Moment<'_>, output: &Output) {
        let Output::Claim {
            ticket,
            fence,
            claim,
            ..
        } = output
        else {
            return;
        };
        let run = fence.run;
        let along = self.along.insert(run, claim.along.len()).unwrap_or(0);
        let Some(round) = self.rounds.get_mut(&run) else {
            if !claim.results.is_empty() {
                at.run(Code::ResultMissing, run);
            }
            return;
        };
        if claim.along.len() > along {
            self.reached.hit(Mark::SteeredIn);
        }
        round.claims(at, fence, *ticket, &claim.results);
    }

    /// Nothing of a round is known any more: another process has its session, or has ended it.
    fn lets_go(&mut self, at: &mut Moment<'_>, run: RunId) {
        self.gone.insert(run);
        self.answers.remove(&run);
        self.along.remove(&run);
        if let Some(round) = self.rounds.remove(&run) {
            round.left_running(at, run);
        }
    }
}

impl Check for Tools {
    fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
        let late = self.promised.map_or(0, |promised| at.now.since(promised));
        if late > at.config.lateness_ms {
            let calls = self.rounds.values_mut().flat_map(|round| &mut round.calls);
            calls
                .flat_map(Call::clocks)
                .for_each(|clock| clock.moved_ms += late);
        }
        match input {
            Input::Model { ticket, fact } => self.says(at, *ticket, fact),
            Input::Tool { ticket, fact } => self.does(*ticket, *fact),
            Input::Launched { ticket, report } => {
                if let Subject::Run(run) = ticket.subject
                    && let Some(round) = self.rounds.get_mut(&run)
                {
                    round.launched(at.now, *ticket, *report);
                    if *report == LaunchReport::Committed && round.checkpoints > 1 {
                        self.reached.hit(Mark::LaunchedLater);
                    }
                }
            }
            Input::Claimed {
                ticket,
                report: ClaimReport::Committed(_),
            } => {
                if let Subject::Run(run) = ticket.subject {
                    let over = |round: &mut Round| round.claim == Some(*ticket);
                    if self.rounds.get_mut(&run).is_some_and(over) {
                        self.rounds.remove(&run);
                    }
                }
            }
            Input::Decide {
                request,
                call,
                decision,
            } => {
                let of =
                    |word: &(CallId, Decision, Expected)| (word.0, word.1) == (*call, *decision);
                let again = self.call(*call).is_some_and(
                    |call| matches!(call.question, Question::Word(first) if first == *decision),
                );
                if again || self.words.values().any(of) {
                    self.reached.hit(Mark::DecidedAgain);
                }
                self.word(at, *request, *call, *decision);
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::StartModel { ticket, fence, .. } => {
                if self.rounds.contains_key(&fence.run) {
                    at.run(Code::RoundWrong, fence.run);
                }
                self.models.insert(*ticket, Asking::default());
            }
            Output::CancelModel { ticket } => {
                self.models.remove(ticket);
            }
            Output::Launch {
                ticket,
                fence,
                launch,
                ..
            } => {
                self.rows.ordered(*ticket, *fence, launch);
                let answers = self.answers.get(&fence.run).copied().unwrap_or(0);
                if answers > at.config.tools.rounds_max {
                    at.run(Code::RoundsMany, fence.run);
                }
                match self.rounds.get_mut(&fence.run) {
                    Some(round) => round.orders(at, *ticket, fence, launch),
                    None => at.run(Code::RoundWrong, fence.run),
                }
            }
            Output::StartTool { ticket, call } => self.starts(at, *ticket, *call),
            Output::CancelTool { ticket } => {
                if let Some(id) = named(*ticket)
                    && let Some(call) = self.call(id)
                    && call.runs()
                    && !call.stop(at.now)
                    && let Some(round) = self.rounds.get_mut(&id.run)
                {
                    round.stopped = true;
                }
            }
            Output::Claim { .. } => self.claims(at, output),
            Output::Settle {
                terminal, results, ..
            } => match self.rounds.get(&terminal.run) {
                Some(round) => round.settles(at, terminal.run, results),
                None if results.is_empty() => {}
                None => at.run(Code::ResultMissing, terminal.run),
            },
            Output::Publish { run, event, .. } => self.event(at, *run, event),
            Output::Respond { request, answer } => self.answered(at, *request, answer),
            Output::Lookup {
                ticket:
                    Ticket {
                        subject: Subject::Run(run),
                        ..
                    },
                ..
            }
            | Output::Forget {
                subject: Subject::Run(run),
            } => self.lets_go(at, *run),
            Output::Sleep { until, .. } => self.promised = *until,
            Output::Drained => {
                self.drained = true;
                if self.rounds.values().any(Round::is_open) {
                    self.reached.hit(Mark::DrainedTools);
                }
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        for run in std::mem::take(&mut self.given_up) {
            if !self.gone.contains(&run) {
                at.run(Code::ToolEarly, run);
            }
        }
        self.gone.clear();
        for (request, id) in std::mem::take(&mut self.undone) {
            let waits = |call: &mut Call| call.ended.is_none();
            if self.call(id).is_some_and(waits) {
                at.request(Code::ApprovalUntrue, request);
            }
        }
        if self.drained {
            return; // it ends
        }
        let found = self.rounds.iter().find_map(|(&run, round)| {
            let code = round.stands(at)?;
            Some((run, code))
        });
        if let Some((run, code)) = found {
            at.run(code, run);
        }
    }

    fn wrote(&mut self, at: &mut Moment<'_>, wrote: &Wrote) {
        if let Wrote::Row {
            run,
            kind: RowKind::Result(_, CallEnd::Unknown),
            ..
        } = wrote
            && !self.rounds.contains_key(run)
        {
            self.reached.hit(Mark::UnknownAfter);
        }
        self.rows.wrote(at, wrote, &self.started);
    }

    fn carried(&mut self, _at: &mut Moment<'_>, report: Option<&Input>, _wrote: &[Wrote]) {
        self.rows.carried(report);
    }

    fn froze(&mut self, ms: u64) {
        let calls = self.rounds.values_mut().flat_map(|round| &mut round.calls);
        calls
            .flat_map(Call::clocks)
            .for_each(|clock| clock.still_ms += ms);
    }

    fn died(&mut self) {
        if !self.drained && self.rounds.values().any(Round::is_open) {
            self.reached.hit(Mark::DiedTools);
        }
        *self = Self {
            started: std::mem::take(&mut self.started),
            rows: std::mem::take(&mut self.rows),
            reached: std::mem::take(&mut self.reached),
            ..Self::default()
        };
    }
}
