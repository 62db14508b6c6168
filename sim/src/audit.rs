//! The audit of the oracle: for each planted fault, how soon it is found, as what, and how
//! small it gets.
//!
//! Owns the hand-written minima: what a person would write down to show the fault, counted in
//! the entries that a shrunk log has. The canary is in the table like all others; a campaign
//! that stays green with it judges nothing.

use std::fmt;

use crate::fault::Fault;
use crate::recording::Source;
use crate::run::{Options, run_seed};
use crate::shrink::{Shrunk, shrink};
use crate::violation::Code;

/// Most failing seeds that are shrunk, until one is within a quarter of the hand-written
/// minimum; the smallest case is shown.
const SHRUNK: usize = 40;

/// What the audit says of one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// The fault.
    pub fault: Fault,
    /// How many seeds it took, from seed 0 on.
    pub seeds: u64,
    /// As what it was found.
    pub code: Code,
    /// Inputs of the first failing run, until it was found.
    pub inputs: u64,
    /// The smallest case of the first failing seeds.
    pub shrunk: Shrunk,
    /// Entries that a person would write.
    pub minimum: usize,
}

impl AuditRow {
    /// The shrunk size in percent of the hand-written minimum.
    #[must_use]
    pub fn percent(&self) -> usize {
        (self.shrunk.size * 100).div_ceil(self.minimum.max(1))
    }

    /// The line above all rows.
    #[must_use]
    pub fn head() -> String {
        format!(
            "{:<20} {:>5}  {:<18} {:>6} {:>6} {:>7} {:>5}",
            "fault", "seeds", "found as", "inputs", "shrunk", "by hand", "ratio"
        )
    }
}

impl fmt::Display for AuditRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.percent();
        write!(
            f,
            "{:<20} {:>5}  {:<18} {:>6} {:>6} {:>7} {:>2}.{:02}",
            self.fault.name(),
            self.seeds,
            self.code.name(),
            self.inputs,
            self.shrunk.size,
            self.minimum,
            percent / 100,
            percent % 100,
        )
    }
}

/// Audits one fault over the first seeds; `None` if it is not found in them.
#[must_use]
pub fn audit(fault: Fault, within: u64) -> Option<AuditRow> {
    let options = Options { fault: Some(fault) };
    let failing = |seed| {
        let violation = *run_seed(seed, &options).violations.first()?;
        Some((seed, violation))
    };
    let mut failures = (0..within).filter_map(failing);
    let (seed, violation) = failures.next()?;
    let alike = failures.filter(|(_, other)| other.code == violation.code);
    let seeds = [seed].into_iter().chain(alike.map(|(seed, _)| seed));
    let cases = seeds
        .take(SHRUNK)
        .filter_map(|seed| shrink(&Source::Seed(seed), Some(fault)));
    let mut smallest: Option<Shrunk> = None;
    for case in cases {
        // A case without a log is counted in choices, which is no measure for the others.
        let rank = |case: &Shrunk| (case.recording.cut.is_none(), case.size);
        if smallest
            .as_ref()
            .is_none_or(|best| rank(&case) < rank(best))
        {
            smallest = Some(case);
        }
        if smallest
            .as_ref()
            .is_some_and(|best| rank(best) <= (false, minimum(fault) * 5 / 4))
        {
            break;
        }
    }
    let shrunk = smallest?;
    Some(AuditRow {
        fault,
        seeds: seed + 1,
        code: violation.code,
        inputs: violation.input,
        shrunk,
        minimum: minimum(fault),
    })
}

/// What a person would write down for a fault that strikes at the third occasion: client's
/// acts, what the store or the model does out of its turn, a pause in which they do their part,
/// a death, and time that has to pass.
fn minimum(fault: Fault) -> usize {
    match fault {
        // It strikes always: one message, one abort, one restart.
        Fault::Canary => 2,
        Fault::ResumeLost | Fault::AttemptReset | Fault::StopIgnored | Fault::ReleaseEarly => 3,
        Fault::AbortLies | Fault::LateAppend => 3,
        Fault::FinishUnseen | Fault::OrderSwapped | Fault::AbortUndone | Fault::BudgetReset => 4,
        // Two messages: each releases and forgets twice, and its end leaves a name behind.
        Fault::ReleaseLost | Fault::ReleaseTwice | Fault::ForgetTwice | Fault::DeadlineStale => 2,
        // Three messages.
        Fault::AckBeforeCommit
        | Fault::EndTwice
        | Fault::ModelTwice
        | Fault::AcceptedLost
        | Fault::EventAfterEnd
        | Fault::FinalTwice
        | Fault::TimesAltered
        | Fault::Halted => 3,
        // Three waits; where nothing is answered, time must pass.
        Fault::WaitShort | Fault::TickLost => 3,
        Fault::WaiterForgotten => 4,
        // Two messages to their end, and the second one again.
        Fault::ForgetLost => 4,
        // One message behind another, three times; two claims more.
        Fault::TwoWriters | Fault::ClaimLate | Fault::CallBeforeClaim => 4,
        // A message, its call, three waits for it.
        Fault::WaitActs => 5,
        // A message, its call, three pieces of text.
        Fault::EventSkipped | Fault::TextShort => 5,
        // Three aborts, and time.
        Fault::AbortForgotten => 4,
        // A message, its call, three pieces of text, time to save or to be silent.
        Fault::SaveShort | Fault::ProgressUnseen => 6,
        // Three messages to their end, the last one stopped, and time.
        Fault::LaneReleaseLost => 6,
        // A message to its end, then three repeats.
        Fault::FinalAltered => 5,
        // Three messages to their end, and each again with another body.
        Fault::ConflictAccepted => 7,
        // Three calls, one after the other, each silent to its limit, and time.
        Fault::IdleIgnored => 7,
        // Three calls, each cancelled, and time.
        Fault::CancelLost => 8,
        // A message to its end, three refusals with their reports.
        Fault::EndBeforeReceipt => 8,
        // Three messages, each with its call and the call's failure.
        Fault::FailureHidden => 7,
        _ if fault.is_of_retries() => retries(fault),
        // A message, its call and the call's failure, and those of the next one; or time.
        Fault::ChainUnending | Fault::LimitsOfTheFirst => 5,
        _ if fault.is_of_fallbacks() => 3,
        _ if fault.is_of_tools() => tools(fault),
        _ => turns(fault),
    }
}

/// The same for faults of asking a model again, which strike always.
fn retries(fault: Fault) -> usize {
    match fault {
        // A message, its call, the call's failure.
        Fault::RetryAtOnce
        | Fault::RetryingUntold
        | Fault::RetryMiscounted
        | Fault::RetryUncalled
        | Fault::RetryAfterIgnored
        | Fault::FailureExcused
        | Fault::RetryGivenUp => 3,
        // The same, and text before it, or time that has to pass.
        Fault::RetryDropped | Fault::FailedTextUnsaved | Fault::RetryForEver => 4,
        // The same, and the next call with its text.
        _ => 6,
    }
}

/// The same for faults of tool calls, which strike always.
fn tools(fault: Fault) -> usize {
    match fault {
        // A message, what its answer asks for, and that it is whole.
        Fault::LaunchLost
        | Fault::LaunchTwice
        | Fault::LaunchAll
        | Fault::ToolTwice
        | Fault::ToolUnstarted
        | Fault::ToolBeforeLaunch
        | Fault::ToolStoppedAtOnce
        | Fault::ToolEndTwice
        | Fault::ToolEndRetold
        | Fault::ToolEndHeardWrong
        | Fault::ResultAltered
        | Fault::ResultLost
        | Fault::ApprovalShort => 3,
        // The same, and another call, or the pause in which the tool ends.
        Fault::ToolEndLost | Fault::CallUnheard | Fault::ResultSwapped | Fault::CallsUnbounded => 4,
        // The same, and a person's word, a refusal with its report, a stop, or time.
        Fault::LaunchBelieved
        | Fault::LastResultLost
        | Fault::ApprovalUnasked
        | Fault::ApprovalForEver
        | Fault::ApprovalCharged
        | Fault::AllowedEarly
        | Fault::WordRetold
        | Fault::WordUnanswered => 5,
        // Round after round, up to the bound and one more.
        Fault::RoundsUnbounded => 8,
        // The same as the first, and a pause, what the tool or a person does, and time.
        _ => 6,
    }
}

/// The same for faults of queues, turns, resets and drains, which strike always.
fn turns(fault: Fault) -> usize {
    match fault {
        // One message, or one reset.
        Fault::RoomRefused | Fault::ModeOther | Fault::SeenEarly | Fault::ResetLies => 1,
        // Two messages; one and what stops it; one and a reset.
        Fault::PlaceWrong
        | Fault::InterruptLost
        | Fault::InterruptUncalled
        | Fault::OldWrites
        | Fault::ResetSpares
        | Fault::ResetForgotten => 2,
        // A message and its call, with a wait or the first thing that it says.
        Fault::PendingAtWork | Fault::SeenLost => 3,
        // One at work, one to whose turn the other belongs; one at work and two in the queue.
        Fault::AlongLost
        | Fault::AlongTwice
        | Fault::AlongUncalled
        | Fault::QueueJumped
        | Fault::BoundRuns
        | Fault::BoundElsewhere
        | Fault::AlongUnanswered
        | Fault::DroppedAnswered
        | Fault::DropBlamed => 3,
        // The same, and what happens before the turn ends; one message more; a second call;
        // time that has to pass.
        Fault::AlongSwapped
        | Fault::AlongUnended
        | Fault::AlongFinalTwice
        | Fault::WaitedAlone
        | Fault::QueueOpen
        | Fault::PendingLost
        | Fault::InterruptOther
        | Fault::QuietForEver
        | Fault::DrainForEver
        | Fault::DrainBegins => 4,
        // Two sessions that wait for a lane with one slot, a third one at work in it, its call.
        _ => 4,
    }
}
