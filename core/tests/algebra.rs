//! The algebra of ends: its tables as the sources have them, and the laws that hold beyond them.

use proptest::prelude::*;
use tidegate_core::*;

/// The lines of a table, each cut into its cells.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.split('|').map(str::trim).collect())
}

fn reason(name: &str) -> Reason {
    Reason::ALL
        .into_iter()
        .find(|reason| reason.name() == name)
        .unwrap_or_else(|| panic!("no reason is called `{name}`"))
}

/// A terminal event from its words, such as `error stop=rpc settled`.
fn event(words: &str) -> Observation {
    let mut event = Observation::new(EndPhase::End, Wall(50));
    for word in words.split_whitespace() {
        match word {
            "end" => {}
            "error" => event.phase = EndPhase::Error,
            "aborted" => event.aborted = true,
            "status=ok" => event.status = Some(EventStatus::Ok),
            "status=timeout" => event.status = Some(EventStatus::Timeout),
            "status=cancelled" => event.status = Some(EventStatus::Cancelled),
            "status=superseded" => event.status = Some(EventStatus::Superseded),
            "stop=end_turn" => event.stop = Some(StopWord::EndTurn),
            "stop=timeout" => event.stop = Some(StopWord::Timeout),
            "stop=error" => event.stop = Some(StopWord::Error),
            "stop=rpc" => event.stop = Some(StopWord::Rpc),
            "stop=stop" => event.stop = Some(StopWord::Stop),
            "stop=restart" => event.stop = Some(StopWord::Restart),
            "stop=aborted" => event.stop = Some(StopWord::Aborted),
            "stop=superseded" => event.stop = Some(StopWord::Superseded),
            "stop=other" => event.stop = Some(StopWord::Other),
            "phase=queue" => event.timeout_phase = Some(TimeoutPhase::Queue),
            "phase=preflight" => event.timeout_phase = Some(TimeoutPhase::Preflight),
            "phase=provider" => event.timeout_phase = Some(TimeoutPhase::Provider),
            "phase=post_turn" => event.timeout_phase = Some(TimeoutPhase::PostTurn),
            "phase=gateway_draining" => {
                event.timeout_phase = Some(TimeoutPhase::GatewayDraining);
            }
            "provider_started" => event.provider_started = true,
            "blocked" => event.liveness = Some(Liveness::Blocked),
            "abandoned" => event.liveness = Some(Liveness::Abandoned),
            "working" => event.liveness = Some(Liveness::Working),
            "settled" => event.execution_settled = true,
            "fallback_exhausted" => event.fallback_exhausted = true,
            other => panic!("no such fact: `{other}`"),
        }
    }
    event
}

fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Error => "error",
        Status::Timeout => "timeout",
    }
}

fn class_word(class: RunClass) -> &'static str {
    match class {
        RunClass::Success => "success",
        RunClass::Timeout => "timeout",
        RunClass::Cancellation => "cancellation",
        RunClass::Failure => "failure",
    }
}

/// Facts, reason, status, class, and whether a conversation believes it at once.
const LIFECYCLE: &str = "
    end                               | completed    | ok      | success      | yes
    end stop=end_turn                 | completed    | ok      | success      | yes
    end aborted                       | aborted      | error   | cancellation | yes
    end stop=timeout                  | timed_out    | timeout | timeout      | yes
    end phase=queue                   | timed_out    | timeout | timeout      | yes
    end phase=gateway_draining        | timed_out    | timeout | timeout      | yes
    end phase=provider                | hard_timeout | timeout | timeout      | yes
    end status=timeout provider_started | hard_timeout | timeout | timeout    | yes
    end status=superseded             | superseded   | error   | cancellation | yes
    end aborted stop=rpc              | cancelled    | error   | cancellation | yes
    end aborted stop=restart          | cancelled    | error   | cancellation | yes
    end status=cancelled              | cancelled    | error   | cancellation | yes
    end blocked                       | blocked      | error   | failure      | yes
    end abandoned                     | abandoned    | error   | failure      | yes
    end stop=error                    | failed       | error   | failure      | yes
    error                             | failed       | error   | failure      | no
    error aborted                     | aborted      | error   | cancellation | yes
    error stop=timeout provider_started | hard_timeout | timeout | timeout    | yes
    error stop=stop                   | cancelled    | error   | cancellation | yes
    error settled                     | failed       | error   | failure      | yes
    error fallback_exhausted          | failed       | error   | failure      | yes
";

/// R122, R128, R130, P40, vector 16.2: cell by cell.
#[test]
fn the_facts_of_an_event_are_read_as_one_reason() {
    for row in rows(LIFECYCLE) {
        let [facts, name, status, class, definitive] = row[..] else {
            panic!("five cells: {row:?}")
        };
        let event = event(facts);
        let read = event.reason();
        assert_eq!(read, reason(name), "{facts}");
        assert_eq!(status_word(read.status()), status, "{facts}");
        assert_eq!(class_word(read.class()), class, "{facts}");
        assert_eq!(event.is_definitive(), definitive == "yes", "{facts}");
    }
}

/// What stands where two facts meet: the first row of the table of reasons that fits.
const PRECEDENCE: &str = "
    end phase=post_turn stop=superseded               | hard_timeout
    end phase=preflight stop=restart                  | hard_timeout
    end status=timeout provider_started stop=rpc      | hard_timeout
    end status=timeout provider_started stop=restart  | cancelled
    end stop=superseded blocked                       | superseded
    end aborted blocked                               | blocked
    end stop=restart blocked                          | blocked
    end stop=aborted abandoned                        | aborted
    end stop=restart                                  | cancelled
    end stop=rpc                                      | completed
    end stop=stop                                     | completed
    end stop=stop status=ok                           | completed
    end status=timeout stop=stop                      | cancelled
    error stop=rpc abandoned                          | cancelled
    error abandoned phase=queue                       | abandoned
    error aborted phase=queue                         | timed_out
    error working                                     | failed
    error stop=other                                  | failed
    end status=superseded aborted stop=rpc            | cancelled
    end status=superseded aborted                     | superseded
    end status=cancelled aborted phase=queue          | cancelled
    end aborted stop=end_turn                         | aborted
    error aborted stop=error                          | aborted
";

/// P40, spec 1.4: the first reason that fits; a stop that is named beats one that is only flagged.
#[test]
fn where_facts_meet_the_stronger_one_is_the_reason() {
    for row in rows(PRECEDENCE) {
        let [facts, name] = row[..] else {
            panic!("two cells: {row:?}")
        };
        assert_eq!(event(facts).reason(), reason(name), "{facts}");
        let plain = facts.starts_with("error") && name == "failed";
        assert_eq!(event(facts).is_definitive(), !plain, "{facts}");
    }
}

/// Facts, the status that a wait is told, and whether it is held back for a retry.
const WAITS: &str = "
    error                             | error   | held
    error stop=rpc                    | error   | held
    error phase=provider              | timeout | held
    error settled                     | error   | now
    error fallback_exhausted          | error   | now
    end                               | ok      | now
    end stop=timeout                  | timeout | held
    end phase=provider                | timeout | held
    end phase=provider settled        | timeout | now
    end aborted                       | timeout | held
    error aborted                     | timeout | held
    end aborted settled               | error   | now
    end aborted stop=rpc              | error   | now
    end aborted stop=aborted          | error   | now
    end aborted status=ok             | error   | now
    end status=cancelled              | error   | now
    end blocked settled               | error   | now
";

/// R128, R129, R132, vector 16.4: a wait gives a retry its chance where a conversation does not.
#[test]
fn unmarked_timeouts_and_bare_aborts_are_held_for_waits_alone() {
    for row in rows(WAITS) {
        let [facts, status, when] = row[..] else {
            panic!("three cells: {row:?}")
        };
        let event = event(facts);
        assert_eq!(status_word(event.wait_status()), status, "{facts}");
        assert_eq!(event.is_held_for_waits(), when == "held", "{facts}");
        assert!(event.is_definitive() || when == "held", "{facts}");
    }
}

/// Row: what is known. Column: what comes in. The letters: it ended later, at the same time,
/// earlier; `c` the known one stands, `i` the incoming one.
const MATRIX: &str = "
    known        | completed | failed | hard_timeout | cancelled | superseded
    completed    | same      | iii    | cci          | iii       | iii
    failed       | iii       | iii    | iii          | iii       | iii
    hard_timeout | cii       | ccc    | same         | cci       | cci
    cancelled    | ccc       | ccc    | cii          | same      | iii
    superseded   | ccc       | ccc    | cii          | ccc       | same
";

/// The ends that the matrix has in one row and column.
fn alike(name: &str) -> Vec<Reason> {
    match name {
        "failed" => ["failed", "timed_out", "aborted", "blocked", "abandoned"]
            .map(reason)
            .to_vec(),
        one => vec![reason(one)],
    }
}

const fn ended(reason: Reason, at: u64) -> Ended {
    Ended {
        reason,
        at: Wall(at),
    }
}

fn stands(known: Ended, incoming: Ended) -> Ended {
    incoming.after(Some(known))
}

/// Every end there is, three instants wide.
fn all_ends() -> impl Iterator<Item = Ended> + Clone {
    Reason::ALL
        .into_iter()
        .flat_map(|reason| (4..7).map(move |at| ended(reason, at)))
}

/// I11, I12, vector 16.3: cell by cell. Where both say the same, a sticky end keeps its time
/// and any other takes the newer word.
#[test]
fn of_two_ends_the_matrix_says_which_one_stands() {
    let mut table = rows(MATRIX);
    let columns = table.next().unwrap().split_off(1);
    let mut cells = 0;
    for mut row in table {
        let verdicts = row.split_off(1);
        for (column, verdict) in columns.iter().zip(verdicts) {
            for (known, new) in alike(row[0])
                .into_iter()
                .flat_map(|known| alike(column).into_iter().map(move |new| (known, new)))
            {
                let said: String = [6, 5, 4]
                    .map(|at| match ended(known, 5).merge(ended(new, at)) {
                        Verdict::Current => 'c',
                        Verdict::Incoming => 'i',
                    })
                    .iter()
                    .collect();
                let wanted = match verdict {
                    "same" if known.is_sticky() => "ccc",
                    "same" => "iii",
                    letters => letters,
                };
                assert_eq!(said, wanted, "{} then {}", known.name(), new.name());
                cells += 3;
            }
        }
    }
    assert_eq!(cells, 243, "nine reasons meet nine at three times");
}

/// I11: over all pairs.
#[test]
fn a_sticky_end_never_yields_to_a_later_answer() {
    for known in all_ends().filter(|end| end.reason.is_sticky()) {
        for incoming in all_ends() {
            let left = stands(known, incoming);
            if left.reason == Reason::Completed {
                assert!(left.at <= known.at, "{known:?} yielded to {incoming:?}");
            }
            if !incoming.reason.is_sticky() && incoming.reason != Reason::Completed {
                assert_eq!(left, known, "a weaker end changes nothing");
            }
        }
    }
    let sticky: Vec<_> = Reason::ALL.into_iter().filter(|r| r.is_sticky()).collect();
    assert_eq!(
        sticky,
        ["hard_timeout", "superseded", "cancelled"].map(reason)
    );
}

/// I11, P40: an end that is heard of twice is one end, and the first one heard of stands alone.
#[test]
fn an_end_merged_with_itself_is_the_same_end() {
    for end in all_ends() {
        assert_eq!(stands(end, end), end);
        assert_eq!(end.after(None), end);
        for known in all_ends() {
            let once = stands(known, end);
            assert_eq!(stands(once, once), once);
            assert!(once == known || once == end, "nothing is made up");
        }
    }
}

/// I11, I12: where a sticky end takes part, two places that hear of the same two ends in
/// another order agree.
#[test]
fn a_sticky_end_and_another_have_one_winner_in_any_order() {
    for (a, b) in all_ends().flat_map(|a| all_ends().map(move |b| (a, b))) {
        if (a.reason.is_sticky() || b.reason.is_sticky()) && a.reason != b.reason {
            assert_eq!(stands(a, b), stands(b, a), "{a:?} and {b:?}");
        }
    }
}

/// I11, spec 1.4: three ends have one winner in any order exactly where one beats both others.
#[test]
fn three_ends_that_beat_each_other_in_a_circle_are_decided_by_arrival() {
    let ordered = ["completed", "hard_timeout", "cancelled", "superseded"].map(reason);
    let ends = || all_ends().filter(|end| ordered.contains(&end.reason));
    let mut circles = 0;
    for (a, b, c) in ends().flat_map(|a| ends().flat_map(move |b| ends().map(move |c| (a, b, c)))) {
        if a.reason == b.reason || b.reason == c.reason || a.reason == c.reason {
            continue;
        }
        let best = [(a, b, c), (b, a, c), (c, a, b)]
            .into_iter()
            .find(|&(one, other, third)| stands(one, other) == one && stands(one, third) == one);
        let folds = [(a, b, c), (b, c, a), (c, a, b)].map(|(x, y, z)| stands(stands(x, y), z));
        if let Some((winner, ..)) = best {
            assert_eq!(folds, [winner; 3]);
        } else {
            assert_eq!(folds, [c, a, b], "the last one heard of decides");
            circles += 1;
        }
    }
    assert!(circles > 0);
    let circle = [
        ended(Reason::Completed, 5),
        ended(Reason::HardTimeout, 5),
        ended(Reason::Cancelled, 5),
    ];
    let [answer, limit, stop] = circle;
    assert_eq!(stands(answer, limit), answer);
    assert_eq!(stands(limit, stop), limit);
    assert_eq!(stands(stop, answer), stop);
}

fn any_end() -> impl Strategy<Value = Ended> {
    let at = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0u64..8];
    (proptest::sample::select(Reason::ALL.to_vec()), at).prop_map(|(reason, at)| ended(reason, at))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// I11, P40: over any sequence of ends, at any times. Each step keeps one of the two, a
    /// sticky end yields only backwards in time or to a newer writer, and repeating the last
    /// word changes nothing.
    #[test]
    fn a_sequence_of_ends_keeps_what_is_sticky(ends in proptest::collection::vec(any_end(), 1..40)) {
        let mut known = None;
        for incoming in ends {
            let left = incoming.after(known);
            prop_assert!(left == incoming || Some(left) == known);
            if let Some(known) = known.filter(|known: &Ended| known.reason.is_sticky() && *known != left) {
                prop_assert!(left.at <= known.at || (known.reason, left.reason) == (Reason::Cancelled, Reason::Superseded));
            }
            let again = left.after(Some(left));
            prop_assert_eq!(again, left);
            known = Some(left);
        }
    }
}

/// P40, R128: what our own runs come to.
#[test]
fn an_outcome_has_one_reason() {
    let timed_out = |provider_started| Outcome::TimedOut {
        limit: Limit::Budget,
        provider_started,
    };
    let cancelled = |provider_started| Outcome::Cancelled {
        by: StopReason::Rpc,
        provider_started,
    };
    for (outcome, name) in [
        (Outcome::Completed, "completed"),
        (Outcome::Failed(Failure::Incomplete), "failed"),
        (timed_out(true), "hard_timeout"),
        (timed_out(false), "timed_out"),
        (cancelled(true), "cancelled"),
        (cancelled(false), "cancelled"),
        (Outcome::Superseded, "superseded"),
        (
            Outcome::Dropped {
                by: DropPolicy::Old,
            },
            "cancelled",
        ),
    ] {
        assert_eq!(outcome.reason().name(), name);
    }
}

/// Every end that an attempt can have: all sets of facts.
fn attempt_ends() -> Vec<AttemptEnd> {
    let phases = [
        AttemptPhase::Prompt,
        AttemptPhase::ToolExecution,
        AttemptPhase::Compaction,
    ];
    let mut limits = vec![AttemptEnd::OK];
    for source in SOURCES {
        limits.extend(phases.map(|phase| AttemptEnd::timed_out(phase, source)));
    }
    let mut aborts = vec![AttemptEnd::OK];
    aborts.extend(ABORTS.map(AttemptEnd::aborted));
    let mut all = Vec::new();
    for failed in [AttemptEnd::OK, AttemptEnd::FAILED] {
        for abort in &aborts {
            all.extend(
                limits
                    .iter()
                    .map(|limit| failed.merge(*abort).merge(*limit)),
            );
        }
    }
    all
}

const SOURCES: [TimeoutSource; 5] = [
    TimeoutSource::Observation,
    TimeoutSource::Runtime,
    TimeoutSource::Idle,
    TimeoutSource::RunBudget,
    TimeoutSource::External,
];

const ABORTS: [AbortSource; 3] = [
    AbortSource::YieldCleanup,
    AbortSource::Runtime,
    AbortSource::External,
];

/// P40, spec 1.4: what is known of an attempt does not depend on the order in which it is heard.
#[test]
fn facts_of_an_attempt_may_come_in_any_order() {
    let all = attempt_ends();
    assert_eq!(all.len(), 2 * 4 * 16);
    for &a in &all {
        assert_eq!(a.merge(a), a);
        assert_eq!(a.merge(AttemptEnd::OK), a);
        for &b in &all {
            let both = a.merge(b);
            assert_eq!(both, b.merge(a));
            assert_eq!(both.kind(), a.kind().max(b.kind()), "the stronger kind");
            for &c in all.iter().step_by(5) {
                assert_eq!(both.merge(c), a.merge(b.merge(c)));
            }
        }
    }
}

/// P40, spec 1.4: the ranks, and who is named where two sources meet.
#[test]
fn an_attempt_is_named_by_its_strongest_fact() {
    use AttemptPhase::{Compaction, Prompt, ToolExecution};
    use TimeoutSource::{External, Idle, RunBudget, Runtime};
    let limit = |phase, source| Some(AttemptTimeout { phase, source });
    let idle = AttemptEnd::timed_out(ToolExecution, Idle);
    assert_eq!(AttemptEnd::OK.kind(), AttemptKind::Ok);
    assert_eq!(AttemptEnd::FAILED.kind(), AttemptKind::Failed);
    assert_eq!(idle.kind(), AttemptKind::Timeout);
    for (other, wanted) in [
        (AttemptEnd::OK, limit(ToolExecution, Idle)),
        (AttemptEnd::FAILED, limit(ToolExecution, Idle)),
        (
            AttemptEnd::timed_out(Prompt, Runtime),
            limit(ToolExecution, Idle),
        ),
        (
            AttemptEnd::timed_out(Prompt, RunBudget),
            limit(ToolExecution, RunBudget),
        ),
        (
            AttemptEnd::timed_out(Compaction, Runtime),
            limit(Compaction, Idle),
        ),
        (
            AttemptEnd::aborted(AbortSource::YieldCleanup),
            limit(ToolExecution, Idle),
        ),
        (
            AttemptEnd::aborted(AbortSource::Runtime),
            limit(ToolExecution, Idle),
        ),
        (
            AttemptEnd::aborted(AbortSource::External),
            limit(ToolExecution, External),
        ),
    ] {
        assert_eq!(idle.merge(other).timeout(), wanted, "{other:?}");
    }
    assert!(AttemptEnd::FAILED.merge(idle).is_failed());
}

/// P40, spec 1.4: a limit that was noticed in passing is a note and no end.
#[test]
fn an_observed_timeout_never_makes_a_timeout() {
    let note = AttemptEnd::timed_out(AttemptPhase::Compaction, TimeoutSource::Observation);
    for end in attempt_ends() {
        let both = end.merge(note);
        assert_eq!(both.kind(), end.kind());
        assert_eq!(
            both.timeout().map(|t| t.source),
            end.timeout().map(|t| t.source)
        );
        assert_eq!(both.noticed().is_some(), end.timeout().is_none());
    }
    assert_eq!(note.kind(), AttemptKind::Ok);
    assert_eq!(note.noticed(), Some(AttemptPhase::Compaction));
}

/// P40, spec 1.4: a run that parked itself was not aborted.
#[test]
fn closing_a_call_behind_a_yield_is_no_abort() {
    for end in attempt_ends() {
        let both = end.merge(AttemptEnd::aborted(AbortSource::YieldCleanup));
        assert_eq!(both.kind(), end.kind());
        assert_eq!(both.is_aborted(), end.is_aborted());
    }
    for source in [AbortSource::Runtime, AbortSource::External] {
        assert_eq!(AttemptEnd::aborted(source).kind(), AttemptKind::Aborted);
    }
}

const REPLIES: [TerminalReply; 5] = [
    TerminalReply::Visible { bytes: 3 },
    TerminalReply::Visible { bytes: 9 },
    TerminalReply::Silent,
    NOTHING,
    NOT_CALLED,
];
const NOTHING: TerminalReply = TerminalReply::Empty {
    message_tool_not_called: false,
};
const NOT_CALLED: TerminalReply = TerminalReply::Empty {
    message_tool_not_called: true,
};

/// R38, spec 1.4: something beats nothing, and a message tool that was not called is not forgotten.
#[test]
fn of_two_replies_the_one_that_says_more_stands() {
    for a in REPLIES {
        assert_eq!(a.merge(a), a);
        assert_eq!(a.merge(NOTHING), a, "nothing takes nothing away");
        assert_eq!(NOTHING.merge(a), a);
        assert_eq!(a.merge(NOT_CALLED), NOT_CALLED);
        assert_eq!(NOT_CALLED.merge(a), NOT_CALLED);
        for b in REPLIES {
            if ![a, b].contains(&NOTHING) && ![a, b].contains(&NOT_CALLED) {
                assert_eq!(a.merge(b), b, "the newer word");
            }
            for c in REPLIES {
                assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
            }
        }
    }
}

/// R39, I43: a receipt counts for its own run, and only its word is proof.
#[test]
fn a_receipt_of_another_run_proves_nothing() {
    let (mine, other) = (RunId::from_u128(1), RunId::from_u128(2));
    let receipt = |source_reply_delivered| TerminalReceipt {
        run: mine,
        session: SessionId::from_u128(7),
        source_reply_delivered,
    };
    for delivered in [true, false] {
        let receipt = receipt(delivered);
        assert_eq!(receipt.accepted_for(mine), Some(receipt));
        assert_eq!(receipt.accepted_for(other), None);
        assert_eq!(receipt.proves_delivery(mine), delivered);
        assert!(!receipt.proves_delivery(other));
    }
}
