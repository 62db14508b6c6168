//! Limits, aborts, supersession: every way to end early, each with its true reason.

mod bench;

use bench::*;
use tidegate_core::*;

const S: u64 = 1_000;

fn timed_out(limit: Limit) -> Outcome {
    Outcome::TimedOut {
        limit,
        provider_started: true,
    }
}

/// P12: a provider that sends nothing is bounded by the first-event limit.
#[test]
fn a_silent_provider_is_ended_by_the_first_event_limit() {
    let mut b = Bench::new(asks_once());
    let call = b.start(1, 10);
    b.model(call, ModelFact::Alive);
    let out = b.pass(120 * S);
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    assert_eq!(outcome_of(&out), timed_out(Limit::FirstEvent));
}

/// P11, P12, B-012, B-043, B-048: reasoning is progress; keep-alives are not.
#[test]
fn progress_moves_the_idle_limit_and_liveness_does_not() {
    let mut b = Bench::new(asks_once());
    let call = b.start(1, 10);
    for _ in 0..40 {
        b.pass(10 * S);
        b.model(call, ModelFact::Reasoning);
    }
    for _ in 0..11 {
        let out = b.pass(10 * S);
        assert!(!has(&out, |o| matches!(o, Output::CancelModel { .. })));
        b.model(call, ModelFact::Alive);
        b.model(call, ModelFact::Structure);
    }
    b.pass(10 * S);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    assert_eq!(outcome_of(&out), timed_out(Limit::Idle));
}

/// P13, B-120, R21, R150, R198: the budget is executed time; progress does not move it.
#[test]
fn the_budget_ends_a_run_that_makes_progress() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Limited(100 * S)));
    let out = b.load(&out);
    b.now += 50 * S;
    let out = b.commit(&out);
    let call = model_ticket(&out);
    for _ in 0..9 {
        b.pass(10 * S);
        b.text(call, b.now);
    }
    b.pass(10 * S);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    assert_eq!(outcome_of(&out), timed_out(Limit::Budget));
}

/// B-053, P14, R151: no limit is no timer, and the largest one does not wrap.
#[test]
fn an_unlimited_budget_arms_nothing_and_a_huge_one_does_not_wrap() {
    for budget in [
        Budget::Unlimited,
        Budget::Limited(u64::MAX),
        Budget::Limited(1 << 31),
    ] {
        let mut b = Bench::new(Config::default());
        let request = b.request();
        let out = b.submit_as(request, 1, 10, 1, Some(budget));
        let out = b.load(&out);
        let call = model_ticket(&b.commit(&out));
        let armed = b
            .core
            .armed()
            .find(|armed| matches!(armed.timer, Timer::Budget(_)));
        match budget {
            Budget::Unlimited => assert_eq!(armed, None),
            Budget::Limited(ms) => assert_eq!(armed.map(|a| a.at), Some(Time(ms))),
        }
        assert!(!has(&b.pass(60 * S), |o| matches!(
            o,
            Output::CancelModel { .. }
        )));
        b.text(call, 1);
    }
}

/// P37, R149: time in which the process could not act is no silence of the provider; the
/// budget of 48 hours stands.
#[test]
fn a_late_wake_shifts_activity_limits_and_keeps_the_budget() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 1);
    b.pass(250);
    // Frozen for an hour: the report that waited in the socket comes first.
    b.now += 3_600 * S;
    let out = b.text(call, 2);
    assert!(!has(&out, |o| matches!(o, Output::CancelModel { .. })));
    let out = b.hand(Input::Tick);
    assert!(!has(&out, |o| matches!(o, Output::CancelModel { .. })));
    assert_eq!(b.core.counts().late_wakes, 1);
    let budget = b
        .core
        .armed()
        .find(|armed| matches!(armed.timer, Timer::Budget(_)));
    assert_eq!(budget.map(|armed| armed.at), Some(Time(DEFAULT_BUDGET_MS)));
}

/// Whether a drain answers an abort with these runs.
fn aborted(out: &[Output], runs: &[u128]) -> bool {
    let runs: Vec<RunId> = runs.iter().map(|&n| run(n)).collect();
    answers(out)
        .iter()
        .any(|(_, answer)| *answer == Answer::Aborted { runs: runs.clone() })
}

/// B-103, P37: after a sleep the provider has time to be heard before its silence counts.
#[test]
fn a_silent_stream_is_not_ended_by_the_wake_itself() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 1);
    b.pass(50 * S);
    b.now += 3_600 * S;
    assert!(!has(&b.hand(Input::Tick), |o| matches!(
        o,
        Output::CancelModel { .. }
    )));
    assert!(!has(&b.pass(10 * S - 1), |o| matches!(
        o,
        Output::CancelModel { .. }
    )));
    assert!(has(&b.pass(1), |o| matches!(o, Output::CancelModel { .. })));
}

/// P17, B-075: a stop before the run's row is durable.
#[test]
fn an_abort_ends_a_run_that_is_being_accepted() {
    let mut b = Bench::new(Config::default());
    let out = b.submit(1, 10);
    let accepting = b.load(&out);
    assert!(answers(&b.abort(1, Some(10))).is_empty());
    let out = b.commit(&accepting);
    assert!(!has(&out, |o| matches!(o, Output::StartModel { .. })));
    let out = b.settle(&out);
    assert!(matches!(
        ends(&out)[0].outcome,
        Outcome::Cancelled {
            provider_started: false,
            ..
        }
    ));
    assert!(aborted(&out, &[10]));
}

/// Spec 2.3: a run that was stopped while it was being accepted holds its lane for the grace
/// only, even if its end can't be written.
#[test]
fn a_stop_before_the_commit_shortens_the_lane_limit() {
    let mut b = Bench::new(Config::default());
    let out = b.submit(1, 10);
    let accepting = b.load(&out);
    b.abort(1, Some(10));
    b.commit(&accepting);
    assert_eq!(b.core.active_runs(), 1);
    b.pass(30 * S);
    assert_eq!(b.core.active_runs(), 0);
}

/// P17, B-075, L7, R199, law 5: a stop at the model and behind it; the answer waits for the ends.
#[test]
fn an_abort_ends_a_session_and_is_answered_by_the_ends() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 20);
    b.text(call, 3);
    for r in [21, 22] {
        let out = b.submit(1, r);
        b.commit(&out);
    }
    let out = b.abort(1, Some(21));
    assert!(answers(&out).is_empty());
    let out = b.settle(&out);
    assert_eq!(ends(&out)[0].attempt, Attempt(0));
    assert!(aborted(&out, &[21]));

    let all = b.abort(1, None);
    assert!(has(&all, |o| *o == Output::CancelModel { ticket: call }));
    let joined = b.abort(1, Some(20));
    assert!(
        answers(&joined).is_empty(),
        "it is being stopped already: this one waits as well"
    );
    let out = b.settle(&all);
    assert!(
        answers(&out)
            .iter()
            .all(|(_, a)| !matches!(a, Answer::Aborted { .. }))
    );
    let out = b.model(call, ModelFact::Ended(ModelEnd::Completed));
    assert!(
        matches!(
            outcome_of(&out),
            Outcome::Cancelled {
                provider_started: true,
                ..
            }
        ),
        "the first cause stays"
    );
    assert_eq!(
        settle(&out).1.reply,
        Reply::Text { bytes: 3 },
        "what had arrived is kept"
    );
    let out = b.settle(&out);
    assert!(aborted(&out, &[22, 20]) && aborted(&out, &[20]));
    assert!(
        aborted(&b.abort(1, None), &[]),
        "nothing to stop is no error"
    );
}

/// P17, B-075: a stop while the run waits for a global slot.
#[test]
fn an_abort_ends_a_run_that_waits_for_a_slot() {
    let mut b = Bench::new(Config {
        global_lane_cap: 1,
        ..Config::default()
    });
    let call = b.start(1, 10);
    let out = b.submit(2, 20);
    let out = b.load(&out);
    b.commit(&out);
    let out = b.abort(2, None);
    assert!(aborted(&b.settle(&out), &[20]));
    let out = b.complete(call);
    assert!(!has(&b.settle(&out), |o| matches!(o, Output::Claim { .. })));
}

/// P17, B-075: a stop while the claim is written; what claimed settles under its fence.
#[test]
fn an_abort_ends_a_run_that_is_claiming() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 30);
    let out = b.submit(1, 31);
    b.commit(&out);
    let out = b.complete(call);
    let claiming = b.settle(&out);
    b.abort(1, Some(31));
    let out = b.claim(&claiming);
    assert!(!has(&out, |o| matches!(o, Output::StartModel { .. })));
    assert_eq!(settle(&out).1.attempt, Attempt(1));
    assert!(aborted(&b.settle(&out), &[31]));
}

/// P40, law 10: an abort that came too late names nothing.
#[test]
fn an_abort_of_a_decided_run_names_nothing() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.complete(call);
    assert!(aborted(&b.abort(1, Some(10)), &[]));
}

/// S-08, S-09: a provider that says "finished" and keeps the call open is not waited for; one
/// that says it with every piece is.
#[test]
fn a_finished_call_that_stays_open_completes_after_its_tail() {
    let mut b = Bench::new(Config {
        provider: ProviderConfig {
            class: ProviderClass::Local,
            timeout_ms: None,
        },
        ..Config::default()
    });
    let call = b.start(1, 10);
    for to in 1..4 {
        b.text(call, to);
        b.model(call, ModelFact::Finished);
        assert!(!has(&b.pass(59 * S), |o| matches!(
            o,
            Output::CancelModel { .. }
        )));
    }
    b.text(call, 9);
    assert!(
        !has(&b.pass(600 * S), |o| matches!(
            o,
            Output::CancelModel { .. }
        )),
        "output takes the word back"
    );
    b.model(call, ModelFact::Finished);
    b.model(call, ModelFact::Structure);
    let out = b.pass(60 * S);
    assert!(has(&out, |o| matches!(o, Output::CancelModel { .. })));
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    assert_eq!(outcome_of(&out), Outcome::Completed);
    assert_eq!(settle(&out).1.reply, Reply::Text { bytes: 9 });
}

/// P18: an abort that names a run of another session stops nothing.
#[test]
fn an_abort_with_the_wrong_session_is_refused() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let out = b.abort(2, Some(10));
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Rejected(Rejection::WrongSession))]
    ));
}

/// R54, I12, I14, P04, spec 2.3: a provider that ignores the cancel holds its slot for the
/// grace only; the next run supersedes, and the late report changes nothing.
#[test]
fn a_run_that_will_not_stop_is_superseded() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 3);
    let out = b.submit(1, 11);
    b.commit(&out);
    b.abort(1, Some(10));
    let out = b.pass(29 * S);
    assert!(!has(&out, |o| matches!(o, Output::Claim { .. })));
    let out = b.pass(S);
    let (old_settle, terminal) = settle(&out);
    assert!(matches!(terminal.outcome, Outcome::Cancelled { .. }));
    assert_eq!(claim_ticket(&out).subject, Subject::Run(run(11)));
    // The claim overtook the terminal rows: the store recorded the old run as superseded.
    let receipt = Terminal {
        outcome: Outcome::Superseded,
        ..terminal
    };
    let out = b.claim_over(&out, Some(receipt));
    assert_eq!(
        ends(&out),
        [receipt],
        "the recorded end is the one that is told"
    );
    let out = b.hand(Input::Settled {
        ticket: old_settle,
        report: SettleReport::Fenced,
    });
    assert!(out.is_empty());
    let out = b.text(call, 9);
    assert!(out.is_empty());
    assert_eq!(b.core.counts().stale_model, 1);
}

/// I47, P36: the text of a superseded run that only an earlier life held is asked of the store
/// before its end is told, and released with it.
#[test]
fn a_superseded_run_of_an_earlier_life_is_told_with_its_text() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let claiming = b.load_with(&out, vec![open_run(10, 1), open_run(11, 0)]);
    b.abort(1, Some(10));
    let ticket = claim_ticket(&claiming);
    let out = b.hand(Input::Claimed {
        ticket,
        report: ClaimReport::Refused(StoreError::Full),
    });
    let (old_settle, terminal) = settle(&out);
    let out = b.pass(30 * S);
    let receipt = Terminal {
        outcome: Outcome::Superseded,
        reply: Reply::Text { bytes: 40 },
        ..terminal
    };
    let out = b.claim_over(&out, Some(receipt));
    assert!(ends(&out).is_empty(), "this life does not hold the text");
    let ticket = lookup_ticket(&out);
    b.hand(Input::Settled {
        ticket: old_settle,
        report: SettleReport::Fenced,
    });
    let out = b.hand(Input::LookedUp {
        ticket,
        report: LookupReport::Ended(receipt),
    });
    assert_eq!(ends(&out), [receipt]);
    let laid = Output::Release {
        owner: ContentOwner::Attempt(run(10), Attempt(1)),
    };
    assert_eq!(out.iter().filter(|o| **o == laid).count(), 1);
    let out = b.hand(Input::LookedUp {
        ticket,
        report: LookupReport::Ended(receipt),
    });
    assert_eq!(out, [laid], "a report told twice lays its texts twice");
}

/// P01, L8: a run that waited in its lane when another process ended it leaves the lane while
/// the store is asked for its text.
#[test]
fn a_waiting_run_that_was_superseded_elsewhere_leaves_its_lane() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let claiming = b.load_with(&out, vec![open_run(10, 1), open_run(11, 1)]);
    let receipt = Terminal {
        run: run(11),
        session: session(1),
        outcome: Outcome::Superseded,
        accepted_at: Wall(5),
        started_at: None,
        ended_at: Wall(9),
        attempt: Attempt(1),
        reply: Reply::Text { bytes: 4 },
        detail: false,
        turn: None,
    };
    let out = b.claim_over(&claiming, Some(receipt));
    let ticket = lookup_ticket(&out);
    assert_eq!(
        b.core.session_runs(session(1)).collect::<Vec<_>>(),
        [run(10)]
    );
    let out = b.hand(Input::LookedUp {
        ticket,
        report: LookupReport::Ended(receipt),
    });
    assert_eq!(ends(&out), [receipt]);
}

/// Law 10: the fence's refusal may come before the claim's report; the end is then asked for.
#[test]
fn a_fenced_run_tells_the_end_that_the_store_recorded() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.complete(call);
    let (ticket, terminal) = settle(&out);
    let out = b.hand(Input::Settled {
        ticket,
        report: SettleReport::Fenced,
    });
    assert!(ends(&out).is_empty());
    let ticket = lookup_ticket(&out);
    let receipt = Terminal {
        outcome: Outcome::Superseded,
        reply: Reply::Empty,
        ..terminal
    };
    let out = b.hand(Input::LookedUp {
        ticket,
        report: LookupReport::Ended(receipt),
    });
    assert_eq!(ends(&out), [receipt]);
    assert!(!has(&out, |o| *o
        == Output::Release {
            owner: ContentOwner::Request(RequestId::from_u128(10))
        }));
}

/// Spec 2.3: a claim that the store can't write does not hold the lane for ever.
#[test]
fn a_claim_that_is_never_written_frees_its_lane() {
    let config = Config {
        agent_budget: Some(Budget::Limited(60 * S)),
        ..Config::default()
    };
    let mut b = Bench::new(config);
    let call = b.start(1, 10);
    let out = b.submit(1, 11);
    b.commit(&out);
    let out = b.complete(call);
    let mut out = b.settle(&out);
    let end = b.now + 90 * S;
    while b.now < end {
        if has(&out, |o| matches!(o, Output::Claim { .. })) {
            let ticket = claim_ticket(&out);
            b.hand(Input::Claimed {
                ticket,
                report: ClaimReport::Refused(StoreError::Busy),
            });
        }
        out = b.pass(500);
        if has(&out, |o| matches!(o, Output::Settle { .. })) {
            break;
        }
    }
    assert_eq!(
        outcome_of(&out),
        Outcome::TimedOut {
            limit: Limit::Lane,
            provider_started: false
        }
    );
    assert_eq!(b.core.active_runs(), 0);
}

/// Law 9: a reply has a byte cap.
#[test]
fn a_reply_beyond_its_cap_is_cut() {
    let mut b = Bench::new(Config {
        reply_cap_bytes: 10,
        ..Config::default()
    });
    let call = b.start(1, 10);
    b.text(call, 11);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    assert_eq!(outcome_of(&out), Outcome::Failed(Failure::ReplyTooLarge));
}

/// P38, S-07: a transport that ends without the provider's terminal is no success.
#[test]
fn an_incomplete_stream_is_a_failure_with_its_text_kept() {
    let mut b = Bench::new(asks_once());
    let call = b.start(1, 10);
    b.text(call, 4);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Incomplete));
    let (_, terminal) = settle(&out);
    assert_eq!(terminal.outcome, Outcome::Failed(Failure::Incomplete));
    assert_eq!(terminal.reply, Reply::Text { bytes: 4 });
}

/// Spec 5.3, P40: a provider's failure is told by its class and status.
#[test]
fn a_provider_failure_keeps_its_class() {
    let classes = [
        (Some(429), Marker::None, ErrorClass::RateLimit),
        (Some(503), Marker::None, ErrorClass::ServerError),
        (
            Some(400),
            Marker::ContextOverflow,
            ErrorClass::ContextOverflow,
        ),
        (None, Marker::Connect, ErrorClass::Network),
        (Some(200), Marker::NotAStream, ErrorClass::Protocol),
        (Some(418), Marker::None, ErrorClass::Unknown),
    ];
    for (status, marker, class) in classes {
        let mut b = Bench::new(asks_once());
        let call = b.start(1, 10);
        let error = ProviderError {
            status,
            marker,
            detail: true,
            retry_after: RetryAfter::Unsaid,
        };
        let out = b.model(call, ModelFact::Ended(ModelEnd::Failed(error)));
        let (_, terminal) = settle(&out);
        assert_eq!(
            terminal.outcome,
            Outcome::Failed(Failure::Provider { class, status })
        );
        assert!(terminal.detail);
    }
}
