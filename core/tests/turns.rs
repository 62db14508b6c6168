//! The way of a message: accepted once, in order, ended through one door.

mod bench;

use bench::*;
use tidegate_core::*;

/// R1, R3, R8, R9, R27, R28, R31, R61, R122, P42, law 5: nothing is promised before its row,
/// nothing ended before its receipt.
#[test]
fn each_promise_waits_for_its_row() {
    let mut b = Bench::new(Config::default());
    let out = b.submit(1, 10);
    assert!(answers(&out).is_empty());
    let out = b.load(&out);
    assert!(
        accept(&out).1.claim.is_some(),
        "an idle session claims with the acceptance"
    );
    assert!(answers(&out).is_empty());
    let out = b.commit(&out);
    assert!(matches!(answers(&out)[..], [(_, Answer::Accepted { .. })]));
    let call = model_ticket(&out);
    b.text(call, 5);
    let out = b.complete(call);
    assert!(answers(&out).is_empty() && ends(&out).is_empty());
    assert!(has(&out, |o| matches!(
        o,
        Output::Publish {
            event: Event::Finishing { .. },
            ..
        }
    )));
    let out = b.settle(&out);
    let [terminal] = ends(&out)[..] else {
        panic!("one end")
    };
    assert_eq!(terminal.outcome, Outcome::Completed);
    assert_eq!(terminal.reply, Reply::Text { bytes: 5 });
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Final { replay: false, .. })]
    ));
    assert_eq!(b.core.armed().count(), 0);
    assert_eq!(b.core.live_runs(), 0);
}

/// R2, R14, R41, R43, P01: messages to a busy session wait in the order of their acceptance.
#[test]
fn a_busy_session_takes_its_messages_in_order() {
    let mut b = Bench::new(Config::default());
    let mut call = b.start(1, 10);
    for r in [11, 12] {
        let out = b.submit(1, r);
        assert_eq!(
            accept(&out).1.claim,
            None,
            "a waiting run does not claim yet"
        );
        let out = b.commit(&out);
        assert!(!has(&out, |o| matches!(o, Output::Claim { .. })));
    }
    for r in [11, 12] {
        let out = b.complete(call);
        let out = b.settle(&out);
        let Some(Output::Claim { fence, .. }) =
            out.iter().find(|o| matches!(o, Output::Claim { .. }))
        else {
            panic!("the next run claims in the same step")
        };
        assert_eq!(fence.run, run(r));
        let out = b.claim(&out);
        call = model_ticket(&out);
    }
}

/// R15, I13, L8: the global lane bounds the runs at work, and a free slot is used at once.
#[test]
fn the_global_lane_bounds_the_runs_at_work() {
    let mut b = Bench::new(Config {
        global_lane_cap: 1,
        ..Config::default()
    });
    let call = b.start(1, 10);
    let out = b.submit(2, 20);
    let out = b.load(&out);
    assert_eq!(accept(&out).1.claim, None);
    let out = b.commit(&out);
    assert!(!has(&out, |o| matches!(o, Output::Claim { .. })));
    let out = b.complete(call);
    let out = b.settle(&out);
    assert_eq!(claim_ticket(&out).subject, Subject::Run(run(20)));
    assert_eq!(b.core.active_runs(), 1);
}

/// P06, I1, I2, B-039: a repeated key never starts a second run.
#[test]
fn a_repeated_key_joins_replays_or_conflicts() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.submit(1, 10);
    assert!(matches!(answers(&out)[..], [(_, Answer::InFlight { .. })]));
    let other = b.request();
    let out = b.submit_as(other, 1, 10, 2, None);
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Rejected(Rejection::Conflict))]
    ));
    let out = b.complete(call);
    let out = b.settle(&out);
    assert_eq!(answers(&out).len(), 2, "both callers are told the end");
    let terminal = ends(&out)[0];

    let out = b.submit(1, 10);
    let out = b.load(&out);
    let (ticket, _) = accept(&out);
    let report = AcceptReport::Duplicate {
        terminal: Some(terminal),
    };
    let out = b.hand(Input::Accepted { ticket, report });
    let [
        (
            _,
            Answer::Final {
                terminal: told,
                replay: true,
                ..
            },
        ),
    ] = answers(&out)[..]
    else {
        panic!("the stored end is told again")
    };
    assert_eq!(told, terminal);
    assert!(!has(&out, |o| matches!(
        o,
        Output::StartModel { .. } | Output::Publish { .. }
    )));
    assert_eq!(b.core.live_runs(), 0);
}

/// P06: a repetition that comes before the commit waits for it as well.
#[test]
fn a_repetition_before_the_commit_is_answered_after_it() {
    let mut b = Bench::new(Config::default());
    let out = b.submit(1, 10);
    let accept = b.load(&out);
    let out = b.submit(1, 10);
    assert!(answers(&out).is_empty());
    let out = b.commit(&accept);
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Accepted { .. }), (_, Answer::InFlight { .. })]
    ));
}

/// P05, P42: what the store refuses was never accepted, and the lane moves on.
#[test]
fn a_refused_acceptance_is_told_and_leaves_nothing() {
    let mut b = Bench::new(Config::default());
    let out = b.submit(1, 10);
    let out = b.load(&out);
    let (ticket, _) = accept(&out);
    let out = b.hand(Input::Accepted {
        ticket,
        report: AcceptReport::Refused(StoreError::Full),
    });
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Rejected(Rejection::Storage))]
    ));
    assert_eq!((b.core.live_runs(), b.core.active_runs()), (0, 0));
    b.start(1, 11);
}

/// I8, I47, L18, R20, R91, R123, R126, R141, R142: the first text at once, then paced, all of it before the end.
#[test]
fn text_is_paced_and_flushed_before_the_end() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let shown = |out: &[Output]| -> Vec<(u64, u64, u64)> {
        out.iter()
            .filter_map(|o| match o {
                Output::Publish {
                    seq,
                    event: Event::Text { from, to, .. },
                    ..
                } => Some((*seq, *from, *to)),
                _ => None,
            })
            .collect()
    };
    let first = b.text(call, 1);
    assert_eq!(shown(&first), [(2, 0, 1)]);
    let more = b.text(call, 2);
    assert_eq!(shown(&more), []);
    b.text(call, 3);
    let paced = b.tick(75);
    assert_eq!(shown(&paced), [(3, 1, 3)]);
    b.text(call, 9);
    let out = b.complete(call);
    assert_eq!(shown(&out), [(4, 3, 9)]);
    let finishing = out.iter().position(|o| {
        matches!(
            o,
            Output::Publish {
                event: Event::Finishing { .. },
                ..
            }
        )
    });
    let flushed = out.iter().position(|o| {
        matches!(
            o,
            Output::Publish {
                event: Event::Text { .. },
                ..
            }
        )
    });
    assert!(flushed < finishing);
}

/// Design section 5: streamed text is saved at most every 250 ms, under the fence.
#[test]
fn streamed_text_is_saved_at_its_own_pace() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 4);
    b.text(call, 8);
    let out = b.pass(250);
    let saves: Vec<u64> = out
        .iter()
        .filter_map(|o| match o {
            Output::Save { to, fence, .. } if fence.attempt == Attempt(1) => Some(*to),
            _ => None,
        })
        .collect();
    assert_eq!(saves, [8]);
    assert!(!has(&b.pass(1_000), |o| matches!(o, Output::Save { .. })));
}

/// P23, I60, B-037: what an earlier life accepted runs again as the next attempt, in order.
#[test]
fn a_restart_resumes_what_was_accepted() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let open = |r, attempt, left_ms| OpenRun {
        left_ms,
        ..open_run(r, attempt)
    };
    let out = b.load_with(&out, vec![open(10, 1, Some(1_000)), open(11, 0, None)]);
    let Some(Output::Claim { fence, claim, .. }) =
        out.iter().find(|o| matches!(o, Output::Claim { .. }))
    else {
        panic!("the first one claims")
    };
    assert_eq!((fence.run, fence.attempt), (run(10), Attempt(2)));
    assert_eq!(
        claim.left_ms,
        Some(1_000),
        "executed time is not given back"
    );
    let out = b.claim(&out);
    let call = model_ticket(&out);
    let out = b.submit(1, 10);
    assert!(
        matches!(answers(&out)[..], [(_, Answer::InFlight { .. })]),
        "its key joins it"
    );
    let out = b.complete(call);
    let out = b.settle(&out);
    assert_eq!(claim_ticket(&out).subject, Subject::Run(run(11)));
}

/// P05: a store that refuses the terminal rows is asked again; no end is told before.
#[test]
fn refused_terminal_rows_are_written_again() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.complete(call);
    let (ticket, _) = settle(&out);
    let out = b.hand(Input::Settled {
        ticket,
        report: SettleReport::Refused(StoreError::Full),
    });
    assert!(ends(&out).is_empty() && answers(&out).is_empty());
    let out = b.pass(1_000);
    assert_eq!(settle(&out).0.ordinal, 1);
    let out = b.settle(&out);
    assert_eq!(ends(&out).len(), 1);
}

/// Design section 3: a lease that is gone ends nothing here; the session is asked for again.
#[test]
fn a_lost_lease_drops_the_run_and_asks_again() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.complete(call);
    let (ticket, _) = settle(&out);
    let out = b.hand(Input::Settled {
        ticket,
        report: SettleReport::NotOwner,
    });
    assert!(ends(&out).is_empty());
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Rejected(Rejection::NotOwner))]
    ));
    assert_eq!((b.core.live_runs(), b.core.active_runs()), (0, 0));
    let out = b.pass(1_000);
    let ticket = load_ticket(&out);
    b.hand(Input::Loaded {
        ticket,
        report: LoadReport::NotOwner,
    });
    assert_eq!(b.core.armed().count(), 0);
}

/// P23, L13: a lease that comes back while its session is being asked for is not overlooked
/// because an older report denies it.
#[test]
fn a_lease_that_comes_back_during_a_load_is_asked_for_again() {
    let mut b = Bench::new(Config::default());
    let out = b.submit(1, 10);
    let first = load_ticket(&out);
    let request = b.request();
    b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let out = b.hand(Input::Loaded {
        ticket: first,
        report: LoadReport::NotOwner,
    });
    assert!(answers(&out).is_empty());
    let out = b.load(&out);
    assert_eq!(accept(&out).1.run, run(10));
}

/// Law 4: each load of a session has a name of its own, so that a report of the one before is
/// not taken for it.
#[test]
fn a_session_that_is_lost_twice_is_asked_for_under_two_names() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.complete(call);
    let (ticket, _) = settle(&out);
    b.hand(Input::Settled {
        ticket,
        report: SettleReport::NotOwner,
    });
    let out = b.pass(1_000);
    let first = load_ticket(&out);
    let open = open_run(10, 1);
    let out = b.load_with(&out, vec![open]);
    let ticket = claim_ticket(&out);
    b.hand(Input::Claimed {
        ticket,
        report: ClaimReport::NotOwner,
    });
    let second = load_ticket(&b.pass(1_000));
    assert_ne!(first, second);
}

/// Decisions: request ids are used once; a caller's id that comes again for another run does
/// not lose that run's order.
#[test]
fn a_reused_request_id_loses_no_order() {
    let mut b = Bench::new(Config::default());
    let out = b.submit(1, 10);
    let first = b.load(&out);
    let reused = b.request();
    b.submit_as(reused, 1, 10, 1, None);
    b.submit_as(reused, 1, 11, 1, None);
    let (ticket, _) = accept(&first);
    b.hand(Input::Accepted {
        ticket,
        report: AcceptReport::Refused(StoreError::Busy),
    });
    assert_eq!(b.core.live_runs(), 1);
}

/// Law 4, P18: a late report of an order of an earlier stay is not taken for that of the same
/// run's next order, though both name the same attempt.
#[test]
fn a_late_report_of_an_earlier_stay_is_not_taken() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let open = open_run(10, 0);
    let out = b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let out = b.load_with(&out, vec![open.clone()]);
    let earlier = claim_ticket(&out);
    let lost = Input::Claimed {
        ticket: earlier,
        report: ClaimReport::NotOwner,
    };
    b.hand(lost.clone());
    let out = b.pass(1_000);
    let out = b.load_with(&out, vec![open]);
    assert_ne!(claim_ticket(&out), earlier);
    let stale = b.core.counts().stale_store;
    assert_eq!(b.hand(lost), []);
    assert_eq!(b.core.counts().stale_store, stale + 1);
    assert_eq!(b.core.live_runs(), 1);
}

/// P26, P40: a message is told where it stands when its row is durable; the run that it was to
/// interrupt or to steer into may have gone by then.
#[test]
fn a_message_is_told_where_it_stands_when_it_is_durable() {
    for (mode, arrived) in [
        (QueueMode::Interrupt, Place::Interrupting { run: run(10) }),
        (QueueMode::Steer, Place::Steering { into: run(10) }),
    ] {
        for at_work_is_kept in [true, false] {
            let mut b = Bench::new(Config::default());
            let out = b.chat(1, 10, None);
            let first = b.load(&out);
            let second = b.chat(1, 11, Some(mode));
            if at_work_is_kept {
                b.commit(&first);
            } else {
                let (ticket, _) = accept(&first);
                let report = AcceptReport::Refused(StoreError::Full);
                b.hand(Input::Accepted { ticket, report });
            }
            let out = b.commit(&second);
            let now = match at_work_is_kept {
                true => arrived,
                false => Place::Queued { ahead: 1 },
            };
            assert_eq!(places(&out), [now], "{mode:?}");
        }
    }
}
