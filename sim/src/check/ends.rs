//! P17, I32, I40, I60, L1, L3, L7: what must come to an end, by when, and what stays stopped.
//!
//! An abort is answered within the lane grace and the bounds of the store, and names only runs
//! whose cancelled end is durable; such a run does nothing any more, in no later life. A run
//! that claimed ends within its budget, the grace and the bounds of the store. While the store
//! refuses, or keeps an order waiting for longer than its bounds, nobody is late.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    AcceptReport, Answer, Attempt, CallId, ClaimOrder, ClaimReport, Config, ConfigureReport, Event,
    Input, LaunchReport, LoadReport, LookupReport, Outcome, Output, RequestId, ResetReport, RunId,
    Scope, SessionId, SettleReport, Subject, Terminal, Ticket, Time,
};

use super::{Check, Moment};
use crate::violation::Code;
use crate::world::store::Wrote;

/// Round trips to the store that an end may need: the one that was under way, the receipt,
/// and the lookup of one whose fence did not hold.
const TRIPS: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct Due {
    since: Time,
    /// What it may take, without the store.
    span_ms: u64,
    /// How long the loop stood still meanwhile.
    still_ms: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Runs that the core holds as accepted, in the order in which it learnt of them, with their
    /// sessions.
    held: Vec<(RunId, SessionId)>,
    /// Runs that have claimed, were taken along by a claim, or are ending.
    claimed: BTreeSet<RunId>,
    /// Resets and changes of settings under way: aborts of their sessions wait for them.
    holds: BTreeMap<Ticket, SessionId>,
    aborts: BTreeMap<RequestId, (SessionId, Due)>,
    /// Held runs that an abort found, by the abort.
    marked: BTreeMap<RunId, RequestId>,
    /// Runs that have claimed, by their last attempt: each call has what is left.
    begun: BTreeMap<RunId, (Attempt, Due)>,
    /// Calls on which a person is asked: their runs' time stands still, from then on.
    asked: BTreeSet<CallId>,
    paused: BTreeMap<RunId, Time>,
    /// Runs that the answer to an abort named; over all lives.
    named: BTreeSet<RunId>,
    /// Orders to the store without a report, and since when.
    outstanding: BTreeMap<Ticket, Time>,
    /// Until when the store had not done its part.
    excused: Time,
}

const fn is_cancelled(terminal: &Terminal) -> bool {
    matches!(terminal.outcome, Outcome::Cancelled { .. })
}

impl Ends {
    fn ordered(&mut self, at: &Moment<'_>, ticket: Ticket) {
        self.outstanding.insert(ticket, at.now);
    }

    fn reported(&mut self, at: &Moment<'_>, ticket: Ticket, refused: bool) {
        if let Some(since) = self.outstanding.remove(&ticket)
            && at.now.since(since) > at.store_ms
        {
            self.excused = self.excused.max(at.now);
        }
        if refused {
            let again = at.now.plus(at.config.store_retry_max_ms);
            self.excused = self.excused.max(again);
        }
    }

    fn late(&self, at: &Moment<'_>, due: Due) -> bool {
        let store = TRIPS * (at.store_ms + at.slack_ms) + at.config.store_retry_ms;
        let span = due.span_ms.saturating_add(due.still_ms + store);
        let waits = |&since: &Time| at.now.since(since) > at.store_ms;
        at.now > due.since.max(self.excused).plus(span) && !self.outstanding.values().any(waits)
    }

    fn begins(&mut self, at: &Moment<'_>, run: RunId, claim: &ClaimOrder) {
        let known = self.begun.get(&run).map(|(attempt, _)| *attempt);
        if let Some(left_ms) = claim.left_ms
            && known != Some(claim.attempt)
        {
            let due = Due {
                since: at.now,
                span_ms: left_ms.saturating_add(2 * at.config.lane_grace_ms),
                still_ms: 0,
            };
            self.begun.insert(run, (claim.attempt, due));
        }
    }

    /// A person is asked about a call.
    fn pauses(&mut self, at: &Moment<'_>, call: CallId) {
        self.asked.insert(call);
        self.paused.entry(call.run).or_insert(at.now);
    }

    /// A person is not asked about it any more.
    fn resumes(&mut self, at: &Moment<'_>, call: CallId) {
        self.asked.remove(&call);
        if self.asked.iter().any(|other| other.run == call.run) {
            return;
        }
        if let Some(since) = self.paused.remove(&call.run)
            && let Some((_, due)) = self.begun.get_mut(&call.run)
        {
            due.still_ms += at.now.since(since);
        }
    }

    fn stopping(&mut self, config: &Config, now: Time, input: &Input) {
        let Input::Abort {
            request,
            session,
            scope,
        } = input
        else {
            return;
        };
        let due = Due {
            since: now,
            span_ms: config.lane_grace_ms,
            still_ms: 0,
        };
        self.aborts.insert(*request, (*session, due));
        if self.holds.values().any(|held| held == session) {
            return; // it waits, and what it finds then is not known here
        }
        let mut of_session: Vec<RunId> = self.of(*session).collect();
        match scope {
            Scope::Run(run) => of_session.retain(|held| held == run),
            Scope::All => {}
            // Which one that is can't be told from here.
            Scope::AtWork => return,
            // The first that has not claimed may hold its session's lane already.
            Scope::Queued => {
                of_session
                    .retain(|run| !self.claimed.contains(run) && !self.marked.contains_key(run));
                of_session = of_session.split_off(of_session.len().min(1));
            }
        }
        for run in of_session {
            self.marked.entry(run).or_insert(*request);
        }
    }

    fn of(&self, session: SessionId) -> impl Iterator<Item = RunId> + '_ {
        let of = self.held.iter().filter(move |(_, of)| *of == session);
        of.map(|&(run, _)| run)
    }

    fn holds(&mut self, run: RunId, session: SessionId) {
        if !self.held.iter().any(|&(held, _)| held == run) {
            self.held.push((run, session));
        }
    }

    /// A hold is over: the aborts that waited for it are taken in now.
    fn released(&mut self, now: Time, ticket: Ticket) {
        let Some(session) = self.holds.remove(&ticket) else {
            return;
        };
        for (of, due) in self.aborts.values_mut() {
            if *of == session {
                due.since = due.since.max(now);
            }
        }
    }

    fn answered(&mut self, at: &mut Moment<'_>, request: RequestId, answer: &Answer) {
        self.aborts.remove(&request);
        match answer {
            Answer::Aborted { runs } => {
                for &run in runs {
                    let receipt = at.store.run(run).and_then(|row| row.terminal);
                    if !receipt.as_ref().is_some_and(is_cancelled) {
                        at.run(Code::AbortUntrue, run);
                    }
                    self.named.insert(run);
                }
            }
            Answer::Rejected(_) => self.marked.retain(|_, by| *by != request),
            _ => {}
        }
    }

    fn acts(&self, at: &mut Moment<'_>, run: RunId) {
        if self.named.contains(&run) {
            at.run(Code::AbortUndone, run);
        }
    }
}

impl Check for Ends {
    fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
        match input {
            Input::Loaded { ticket, report } => {
                let first = self.outstanding.contains_key(ticket);
                self.reported(at, *ticket, matches!(report, LoadReport::Refused(_)));
                if let (true, LoadReport::Loaded { open, .. }) = (first, report)
                    && let Subject::Session(session) = ticket.subject
                {
                    // What an earlier life had at work goes on first.
                    let (begun, new): (Vec<_>, Vec<_>) =
                        open.iter().partition(|run| run.attempt.0 > 0);
                    for run in begun.into_iter().chain(new) {
                        self.holds(run.run, session);
                    }
                }
            }
            Input::Accepted { ticket, report } => {
                self.reported(at, *ticket, matches!(report, AcceptReport::Refused(_)));
            }
            Input::Claimed { ticket, report } => {
                self.reported(at, *ticket, matches!(report, ClaimReport::Refused(_)));
            }
            Input::Settled { ticket, report } => {
                self.reported(at, *ticket, matches!(report, SettleReport::Refused(_)));
            }
            Input::LookedUp { ticket, report } => {
                self.reported(at, *ticket, matches!(report, LookupReport::Refused(_)));
            }
            Input::WasReset { ticket, report } => {
                self.released(at.now, *ticket);
                self.reported(at, *ticket, matches!(report, ResetReport::Refused(_)));
            }
            Input::Configured { ticket, report } => {
                self.released(at.now, *ticket);
                self.reported(at, *ticket, matches!(report, ConfigureReport::Refused(_)));
            }
            Input::Launched { ticket, report } => {
                self.reported(at, *ticket, matches!(report, LaunchReport::Refused(_)));
            }
            _ => self.stopping(at.config, at.now, input),
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, .. } | Output::Lookup { ticket, .. } => {
                self.ordered(at, *ticket);
            }
            Output::Reset {
                ticket, session, ..
            }
            | Output::Configure {
                ticket, session, ..
            } => {
                self.ordered(at, *ticket);
                self.holds.insert(*ticket, *session);
            }
            Output::Accept { ticket, accept } => {
                self.ordered(at, *ticket);
                if let Some(claim) = &accept.claim {
                    self.claimed.insert(accept.run);
                    self.begins(at, accept.run, claim);
                }
            }
            Output::Claim {
                ticket,
                fence,
                claim,
                ..
            } => {
                self.acts(at, fence.run);
                self.claimed.insert(fence.run);
                self.claimed.extend(&claim.along);
                self.ordered(at, *ticket);
                self.begins(at, fence.run, claim);
            }
            Output::Settle {
                ticket, terminal, ..
            } => {
                self.acts(at, terminal.run);
                self.ordered(at, *ticket);
            }
            Output::Launch { ticket, fence, .. } => {
                self.acts(at, fence.run);
                self.ordered(at, *ticket);
            }
            Output::StartTool { call, .. } => {
                self.acts(at, call.run);
                if self.marked.contains_key(&call.run) {
                    at.run(Code::AfterStop, call.run);
                }
            }
            Output::StartModel { fence, .. } => {
                self.acts(at, fence.run);
                if self.marked.contains_key(&fence.run) {
                    at.run(Code::AfterStop, fence.run);
                }
            }
            Output::Respond { request, answer } => {
                if let Answer::Accepted { run, session, .. } = answer {
                    self.holds(*run, *session);
                }
                self.answered(at, *request, answer);
            }
            Output::Publish {
                run,
                event: Event::Finishing { .. },
                ..
            } => {
                self.claimed.insert(*run);
            }
            Output::Publish {
                event: Event::ToolAsked { call, .. },
                ..
            } => self.pauses(at, *call),
            Output::Publish {
                event: Event::ToolDecided { call, .. } | Event::ToolEnd { call, .. },
                ..
            } => self.resumes(at, *call),
            Output::Publish {
                run,
                event: Event::End { terminal, .. },
                ..
            } => {
                self.begun.remove(run);
                if self.named.contains(run) && !is_cancelled(terminal) {
                    at.run(Code::AbortUntrue, *run);
                }
            }
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                self.held.retain(|(held, _)| held != run);
                self.claimed.remove(run);
                self.marked.remove(run);
                self.begun.remove(run);
                self.paused.remove(run);
                self.asked.retain(|call| call.run != *run);
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        let abort = self.aborts.iter().find(|(_, (_, due))| self.late(at, *due));
        if let Some((&request, _)) = abort {
            return at.request(Code::AbortLate, request);
        }
        let mut begun = self.begun.iter();
        let run =
            begun.find(|(run, (_, due))| !self.paused.contains_key(run) && self.late(at, *due));
        if let Some((&run, _)) = run {
            at.run(Code::RunLate, run);
        }
    }

    fn wrote(&mut self, at: &mut Moment<'_>, wrote: &Wrote) {
        match wrote {
            Wrote::Receipt { terminal, .. } if !is_cancelled(terminal) => {
                self.acts(at, terminal.run);
            }
            Wrote::Claim { fence } => self.acts(at, fence.run),
            _ => {}
        }
    }

    fn froze(&mut self, ms: u64) {
        let aborts = self.aborts.values_mut().map(|(_, due)| due);
        for due in aborts.chain(self.begun.values_mut().map(|(_, due)| due)) {
            due.still_ms += ms;
        }
    }

    fn died(&mut self) {
        let named = std::mem::take(&mut self.named);
        *self = Self {
            named,
            ..Self::default()
        };
    }
}
