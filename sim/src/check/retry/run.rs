//! A run and its calls, as far as asking again is concerned: what its failures were, what it
//! waits for, and what is left of its time.
//!
//! Owns the run's own book; which failures lead where is read from `rules` and `chain`.

use std::collections::BTreeSet;

use tidegate_core::{Attempt, CallId, Failure, Outcome, RunId, Ticket, Time};

use super::chain;
use super::rules::{Past, Place, Span, Trouble, Why};
use crate::check::Moment;
use crate::violation::Code;

/// A wait that was told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) until: Time,
    /// How long the loop stood still meanwhile.
    pub(super) still_ms: u64,
    /// Whether the provider asked for it.
    pub(super) asked: bool,
}

#[derive(Debug, Default)]
pub(super) struct Run {
    /// The call that goes on.
    pub(super) call: Option<Ticket>,
    pub(super) attempt: Attempt,
    /// Which provider it asks, and whether that one is still to be claimed for and called.
    pub(super) candidate: u16,
    pub(super) led: Led,
    /// Bytes of the reply that came, were shown and were saved, of this attempt.
    pub(super) came: u64,
    pub(super) shown: u64,
    pub(super) saved: u64,
    pub(super) past: Past,
    /// What its last claim left of its budget, and when that is over.
    pub(super) left_ms: Option<u64>,
    pub(super) budget: Option<Time>,
    /// Calls on which a person is asked, and what was left of the budget when the first was.
    pub(super) asked: BTreeSet<CallId>,
    pub(super) paused_ms: Option<u64>,
    /// Whether its call told arguments of tool calls, whole calls, and that it was finished.
    pub(super) calling: bool,
    pub(super) asks: bool,
    pub(super) finished: bool,
    /// Whether its answer asked for tools that have no results yet, and how long the loop stood
    /// still meanwhile; and those that run and were not told to stop.
    pub(super) tools: Option<u64>,
    pub(super) running: BTreeSet<Ticket>,
    pub(super) wait: Option<Wait>,
    /// A silent call was stopped although it had to be made again, or the next provider asked.
    pub(super) owed: Option<Code>,
    /// Why its last call is not made again.
    pub(super) why: Option<Why>,
}

/// How far a run is on its way to the next provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Led {
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
pub(super) struct Told {
    pub(super) run: RunId,
    pub(super) call: u16,
    pub(super) calls_max: u16,
    pub(super) delay_ms: u64,
    pub(super) because: Outcome,
}

impl Run {
    /// Judges a wait that was told.
    pub(super) fn waits(&mut self, at: &mut Moment<'_>, told: Told, trouble: (Trouble, u64)) {
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

    /// Whether a run may end so whose call hangs although the provider said that the model
    /// finished: it asked for tools and told no call whole.
    pub(super) fn hangs(&self, because: Outcome) -> bool {
        because == Outcome::Failed(Failure::Incomplete) && self.finished && self.calling
    }

    /// A person is asked about a call: the time stands still.
    pub(super) fn pauses(&mut self, now: Time, call: CallId) {
        if self.asked.is_empty() {
            self.paused_ms = self.budget.take().map(|end| end.since(now));
        }
        self.asked.insert(call);
    }

    /// A person is not asked about it any more: exactly the rest goes on, behind the last one.
    /// Of a rest of nothing a millisecond is left.
    pub(super) fn resumes(&mut self, now: Time, call: CallId) {
        if self.asked.remove(&call) && self.asked.is_empty() {
            let rest = self.paused_ms.take();
            self.budget = rest.map(|ms| now.plus(ms.max(1)));
        }
    }

    /// Whether all that came of its call was shown and saved.
    pub(super) const fn is_kept(&self) -> bool {
        self.shown == self.came && self.saved == self.came
    }

    pub(super) fn place(&self, at: &Moment<'_>) -> Place {
        Place {
            behind: chain::behind(at.config, self.candidate),
            budget: self.budget,
        }
    }

    /// What must follow a failure: the same provider must be asked again, or the next one, or
    /// the run may end.
    pub(super) fn owes(
        &mut self,
        at: &Moment<'_>,
        trouble: (Trouble, u64),
        because: Outcome,
    ) -> Option<Code> {
        if self.must(at, trouble) {
            return Some(Code::RetryWrong);
        }
        let left_ms = chain::left(at.now, self.budget);
        let next = chain::must(at.config, self.candidate, &self.past, because, left_ms);
        next.then_some(Code::FallbackWrong)
    }

    /// Judges that another provider is asked after a failure.
    pub(super) fn leads(
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
    pub(super) fn must(&mut self, at: &Moment<'_>, trouble: (Trouble, u64)) -> bool {
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
