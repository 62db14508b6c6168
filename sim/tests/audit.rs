//! The oracle's audit: each planted fault is found, by the checker that guards its promise.

use std::collections::BTreeSet;

use tidegate_sim::{Code, Fault, Options, Violation, run_seed};

/// Seeds within which a fault must be found.
const WITHIN: u64 = 500;

/// Each fault and the codes that may tell of it first.
const TABLE: &[(Fault, &[Code])] = &[
    (
        Fault::LaneReleaseLost,
        &[
            Code::RunLate,
            Code::AbortLate,
            Code::Unanswered,
            Code::NoOutcome,
            Code::ContentLeak,
            Code::NameLeak,
        ],
    ),
    (Fault::LateAppend, &[Code::RowUnclaimed]),
    (Fault::WaiterForgotten, &[Code::WaitLate, Code::Unanswered]),
    (
        Fault::AckBeforeCommit,
        &[Code::AckEarly, Code::AcceptedTwice, Code::ConflictAccepted],
    ),
    (Fault::EndBeforeReceipt, &[Code::EndEarly]),
    (Fault::EndTwice, &[Code::EndTwice]),
    (Fault::EventSkipped, &[Code::EventGap]),
    (Fault::TextShort, &[Code::TextGap]),
    (Fault::ReleaseLost, &[Code::ContentLeak]),
    (Fault::ReleaseTwice, &[Code::ReleasedTwice]),
    (Fault::ForgetLost, &[Code::NameLeak, Code::Undeclared]),
    (Fault::ForgetTwice, &[Code::ForgottenTwice]),
    (Fault::ModelTwice, &[Code::CallTwice]),
    (
        Fault::IdleIgnored,
        &[Code::Silent, Code::NoOutcome, Code::SeenUntrue],
    ),
    // Text that was not seen is not kept when its call fails.
    (
        Fault::ProgressUnseen,
        &[Code::LimitEarly, Code::SeenUntrue, Code::RetryText],
    ),
    (
        Fault::CancelLost,
        &[
            Code::Silent,
            Code::OverBudget,
            Code::TwoActive,
            Code::OverCap,
            // A call that goes on speaks when nobody listens any more.
            Code::SeenUntrue,
        ],
    ),
    (Fault::OrderSwapped, &[Code::Overtaken]),
    (
        Fault::TwoWriters,
        &[Code::TwoActive, Code::OverCap, Code::Overtaken],
    ),
    // The third claim may be one of a run that asks its model again, or behind its tools.
    (
        Fault::ClaimLate,
        &[
            Code::IdleLane,
            Code::OverCap,
            Code::BudgetGrew,
            Code::ToolIdle,
        ],
    ),
    (Fault::FinalAltered, &[Code::EndUntrue]),
    (Fault::AcceptedLost, &[Code::AnswerTwice, Code::Unanswered]),
    // A message that is taken in again has a place of its own, and is told another.
    (
        Fault::ConflictAccepted,
        &[Code::ConflictAccepted, Code::PlaceUntrue],
    ),
    (Fault::WaitActs, &[Code::WaitActed]),
    (Fault::ResumeLost, &[Code::NoOutcome]),
    (Fault::StopIgnored, &[Code::AfterStop]),
    (Fault::CallBeforeClaim, &[Code::CallUnclaimed]),
    (Fault::EventAfterEnd, &[Code::AfterEnd]),
    (Fault::FinalTwice, &[Code::AnswerTwice]),
    (Fault::ReleaseEarly, &[Code::ContentGone]),
    (Fault::WaitShort, &[Code::WaitUntrue]),
    (Fault::AbortLies, &[Code::AbortUntrue]),
    (Fault::AbortForgotten, &[Code::AbortLate, Code::Unanswered]),
    // A death may come before its answer was out.
    (Fault::AbortUndone, &[Code::AbortUndone, Code::AfterEnd]),
    (Fault::FinishUnseen, &[Code::TailLong, Code::LimitEarly]),
    (Fault::SaveShort, &[Code::SaveShort]),
    (Fault::DeadlineStale, &[Code::DeadlineOrphan]),
    (Fault::AttemptReset, &[Code::AttemptBack]),
    (Fault::TimesAltered, &[Code::TimesUntrue]),
    (Fault::BudgetReset, &[Code::BudgetGrew]),
    (Fault::FailureHidden, &[Code::EndUntrue]),
    (Fault::Halted, &[Code::Halt]),
    (Fault::TickLost, &[Code::Spin]),
    (Fault::AlongLost, &[Code::BoundUntrue]),
    (Fault::AlongTwice, &[Code::Overtaken]),
    (Fault::AlongSwapped, &[Code::Overtaken]),
    (Fault::AlongUncalled, &[Code::AlongWrong, Code::Overtaken]),
    // What jumps its queue may jump the line of its lane too.
    (
        Fault::QueueJumped,
        &[Code::Overtaken, Code::OverCap, Code::LaneOrder],
    ),
    (Fault::BoundRuns, &[Code::BoundRan]),
    (Fault::BoundElsewhere, &[Code::BoundUntrue]),
    (Fault::AlongUnanswered, &[Code::Unanswered]),
    (Fault::AlongUnended, &[Code::Undeclared]),
    (Fault::AlongFinalTwice, &[Code::AnswerTwice]),
    (Fault::DroppedAnswered, &[Code::EndUntrue]),
    (Fault::DropBlamed, &[Code::DropWrong]),
    (
        Fault::QueueOpen,
        &[
            Code::OverQueue,
            Code::Overtaken,
            Code::LaneOrder,
            Code::PlaceUntrue,
        ],
    ),
    (Fault::RoomRefused, &[Code::RefusedWrongly]),
    (Fault::ModeOther, &[Code::ModeUntrue]),
    (Fault::PlaceWrong, &[Code::PlaceUntrue]),
    (Fault::WaitedAlone, &[Code::WaitedUntrue]),
    (Fault::PendingAtWork, &[Code::PendingUntrue]),
    (Fault::PendingLost, &[Code::PendingUntrue, Code::WaitLate]),
    (Fault::SeenEarly, &[Code::SeenUntrue]),
    (Fault::SeenLost, &[Code::SeenUntrue, Code::EventGap]),
    (Fault::InterruptOther, &[Code::InterruptUntrue]),
    (Fault::InterruptLost, &[Code::InterruptUntrue]),
    (Fault::InterruptUncalled, &[Code::InterruptUntrue]),
    // The lost deadline may hide a later one of a model call.
    (Fault::QuietForEver, &[Code::IdleLane, Code::Silent]),
    (Fault::DrainForEver, &[Code::DrainLate]),
    (Fault::DrainBegins, &[Code::BegunDraining]),
    (Fault::PriorityIgnored, &[Code::LaneOrder]),
    // A claim that is given again has the time again that was used up meanwhile.
    (
        Fault::OldWrites,
        &[Code::OldGeneration, Code::BudgetGrew, Code::AttemptBack],
    ),
    (Fault::ResetSpares, &[Code::ResetSpared]),
    (Fault::ResetForgotten, &[Code::ResetUntrue]),
    (Fault::ResetLies, &[Code::ResetUntrue]),
    (Fault::RetryDropped, &[Code::RetryLate]),
    (Fault::RetryAtOnce, &[Code::RetryEarly]),
    (Fault::RetryForEver, &[Code::RetryOften]),
    (Fault::RetryUncalled, &[Code::RetryOften]),
    (
        Fault::RetryAfterIgnored,
        &[Code::RetryEarly, Code::RetryOften],
    ),
    // Where it need not ask again, the deadline of its wait is nobody's.
    (
        Fault::RetryingUntold,
        &[Code::RetryWrong, Code::DeadlineOrphan],
    ),
    (Fault::RetryMiscounted, &[Code::RetryUntrue]),
    (Fault::FailureExcused, &[Code::RetryWrong]),
    (Fault::RetryGivenUp, &[Code::RetryWrong]),
    (Fault::TextCarriedOver, &[Code::RetryText]),
    (Fault::FailedTextUnsaved, &[Code::RetryText]),
    (Fault::FallbackSkipped, &[Code::FallbackOrder]),
    (Fault::FallbackUntold, &[Code::FallbackWrong]),
    (Fault::FallbackBack, &[Code::FallbackUntrue]),
    (Fault::FallbackUnclaimed, &[Code::FallbackLate]),
    (Fault::FallbackBlamed, &[Code::FallbackUntrue]),
    (Fault::WrongLedOn, &[Code::FallbackWrong]),
    (Fault::ChainUnheard, &[Code::FallbackWrong, Code::Silent]),
    (
        Fault::ChainUnending,
        &[
            Code::FallbackOrder,
            Code::LimitEarly,
            Code::RetryWrong,
            Code::FallbackWrong,
        ],
    ),
    (Fault::LimitsOfTheFirst, &[Code::Silent, Code::LimitEarly]),
    (Fault::LaunchLost, &[Code::ToolIdle, Code::DeadlineOrphan]),
    (Fault::LaunchTwice, &[Code::RoundWrong]),
    // What waits for an allowance of the refused checkpoint is told so.
    (
        Fault::LaunchBelieved,
        &[Code::ToolUnlaunched, Code::ToolUntold, Code::ApprovalEarly],
    ),
    (Fault::LaunchAll, &[Code::ToolUncalled]),
    (Fault::ToolTwice, &[Code::ToolTwice]),
    (
        Fault::ToolUnstarted,
        &[Code::ToolIdle, Code::DeadlineOrphan],
    ),
    (Fault::ToolBeforeLaunch, &[Code::ToolUnlaunched]),
    (
        Fault::ToolUnstopped,
        &[
            Code::ToolLong,
            Code::ToolLeft,
            Code::ToolEarly,
            Code::OverBudget,
            Code::InterruptUntrue,
        ],
    ),
    // It says at once that it was stopped, or its run goes on as if it had not been.
    (
        Fault::ToolStoppedAtOnce,
        &[
            Code::ResultUntrue,
            Code::AfterStop,
            Code::ToolLong,
            Code::ToolLeft,
        ],
    ),
    (Fault::ToolForEver, &[Code::ToolLong]),
    (
        Fault::ToolShort,
        &[Code::ResultUntrue, Code::AfterStop, Code::ToolLeft],
    ),
    (Fault::StopForEver, &[Code::ToolLong]),
    (
        Fault::ToolEndLost,
        &[Code::ToolUntold, Code::EventGap, Code::ResultMissing],
    ),
    (Fault::ToolEndTwice, &[Code::EventGap]),
    (Fault::ToolEndRetold, &[Code::ResultUntrue]),
    (Fault::ToolEndHeardWrong, &[Code::ResultUntrue]),
    (Fault::ToolOutputShort, &[Code::ToolUntold]),
    (Fault::CallUnheard, &[Code::RoundWrong]),
    (Fault::ResultAltered, &[Code::ResultMissing]),
    (Fault::ResultLost, &[Code::ResultMissing]),
    (Fault::ResultSwapped, &[Code::ResultMissing]),
    (Fault::LastResultLost, &[Code::ResultMissing]),
    (Fault::RoundsUnbounded, &[Code::RoundsMany]),
    (
        Fault::CallsUnbounded,
        &[Code::ToolUncalled, Code::ApprovalUntrue],
    ),
    (Fault::ApprovalUnasked, &[Code::ToolUncalled]),
    (Fault::ApprovalForEver, &[Code::ApprovalLate]),
    (Fault::ApprovalShort, &[Code::ResultUntrue]),
    (Fault::ApprovalCharged, &[Code::BudgetGrew]),
    (Fault::AllowedEarly, &[Code::ApprovalEarly]),
    (Fault::DenialUnheard, &[Code::ApprovalUntrue]),
    (Fault::WordRetold, &[Code::ApprovalUntrue]),
    (Fault::WordUnanswered, &[Code::Unanswered]),
    (
        Fault::Canary,
        &[
            Code::Unanswered,
            Code::WaitLate,
            Code::AbortLate,
            Code::Overtaken,
            Code::OverCap,
            Code::InterruptUntrue,
        ],
    ),
];

/// Codes that no fault of the adapter reaches first; unit tests of their checker do.
const ELSEWHERE: &[Code] = &[
    Code::ReceiptTwice,
    Code::MessageBound,
    Code::RefusedWrote,
    Code::RowNumber,
    Code::DroppedText,
    Code::Diverged,
    Code::Endless,
];

fn violations(fault: Fault, seed: u64) -> Vec<Violation> {
    run_seed(seed, &Options { fault: Some(fault) }).violations
}

#[test]
fn each_fault_is_found_within_five_hundred_seeds_by_its_own_checker() {
    for &(fault, codes) in TABLE {
        let found = (0..WITHIN).find_map(|seed| Some((seed, *violations(fault, seed).first()?)));
        let Some((seed, violation)) = found else {
            panic!("{} was not found in {WITHIN} seeds", fault.name());
        };
        let name = fault.name();
        assert!(
            codes.contains(&violation.code),
            "{name} at seed {seed}: {violation}"
        );
        assert_eq!(
            violations(fault, seed).first(),
            Some(&violation),
            "{name}: seed {seed} reproduces"
        );
    }
}

/// A green campaign with the canary would judge nothing.
#[test]
fn the_canary_fails_on_every_seed() {
    for seed in 0..50 {
        assert!(!violations(Fault::Canary, seed).is_empty(), "seed {seed}");
    }
}

#[test]
fn every_fault_has_a_row_and_every_code_is_seen_red_somewhere() {
    let rows: BTreeSet<Fault> = TABLE.iter().map(|&(fault, _)| fault).collect();
    for &fault in Fault::ALL {
        assert!(rows.contains(&fault), "{} has no row", fault.name());
        assert_eq!(Fault::from_name(fault.name()), Some(fault));
        assert!(!fault.says().is_empty());
    }
    assert_eq!(Fault::from_name("no-such-fault"), None);
    let mut red: BTreeSet<Code> = ELSEWHERE.iter().copied().collect();
    red.extend(TABLE.iter().flat_map(|&(_, codes)| codes));
    for &code in Code::ALL {
        assert!(red.contains(&code), "{code} is not seen red anywhere");
    }
}

/// The code is the identity of a failure: names are unique and never empty.
#[test]
fn codes_have_names_of_their_own_and_name_a_promise() {
    let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(names.len(), Code::ALL.len());
    for code in Code::ALL {
        assert!(
            !code.promises().is_empty() && !code.sentence().is_empty(),
            "{code}"
        );
    }
}
