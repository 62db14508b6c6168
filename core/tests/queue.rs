//! Queue modes: what a message does to a session that is busy, and what becomes of it.

mod bench;

use bench::*;
use tidegate_core::QueueMode::*;
use tidegate_core::*;

fn queued(ahead: u32) -> Place {
    Place::Queued { ahead }
}

fn bench_with(queue: QueueSettings) -> Bench {
    Bench::new(Config {
        queue,
        ..Config::default()
    })
}

/// A bench whose session 1 has run 10 at its model.
fn busy(queue: QueueSettings) -> (Bench, Ticket) {
    let mut b = bench_with(queue);
    let out = b.chatted(1, 10, None);
    assert_eq!(places(&out), [Place::Next]);
    let call = model_ticket(&out);
    (b, call)
}

/// R44, P26, B-007: a steered message has its place behind the run at work; when no boundary
/// came, it follows at once and has an answer of its own.
#[test]
fn a_steered_message_follows_the_run_at_once_and_has_its_own_answer() {
    let (mut b, call) = busy(QueueSettings::default());
    let out = b.chatted(1, 11, None);
    assert_eq!(places(&out), [Place::Steering { into: run(10) }]);
    let out = b.chatted(1, 12, Some(Steer));
    assert_eq!(places(&out), [Place::Steering { into: run(10) }]);
    let out = b.completed(call);
    assert_eq!(claims(&out), [(run(11), vec![])]);
    let out = b.completed(model_ticket(&out));
    assert_eq!(ends(&out)[0].run, run(11));
    assert_eq!(ends(&out)[0].turn, None);
    assert_eq!(claims(&out), [(run(12), vec![])]);
}

/// B-007, B-006, P04: a run that is cut takes nobody with it; what was to steer into it goes on.
#[test]
fn a_message_that_was_to_steer_outlives_the_run_it_was_for() {
    let (mut b, call) = busy(QueueSettings::default());
    b.text(call, 3);
    b.chatted(1, 11, None);
    let error = ProviderError {
        status: Some(400),
        marker: Marker::None,
        retry_after: RetryAfter::Unsaid,
        detail: false,
    };
    let out = b.model(call, ModelFact::Ended(ModelEnd::Failed(error)));
    let out = b.store(out);
    assert_eq!(claims(&out), [(run(11), vec![])]);
}

/// P26, R44, I26: before its first model call a run takes along what is to steer into it; one
/// claim binds all, one answer answers all, each has its own end.
#[test]
fn a_run_takes_along_what_steers_into_it_before_its_first_call() {
    let mut b = Bench::new(Config {
        global_lane_cap: 1,
        ..Config::default()
    });
    let other = b.start(2, 90);
    let out = b.chatted(1, 10, None);
    assert_eq!(places(&out), [queued(0)]);
    let out = b.chatted(1, 11, None);
    assert_eq!(places(&out), [Place::Steering { into: run(10) }]);
    let out = b.completed(other);
    assert_eq!(claims(&out), [(run(10), vec![run(11)])]);
    let bound = Event::Bound { turn: run(10) };
    assert!(has(
        &out,
        |o| matches!(o, Output::Publish { run: r, event, .. } if *r == run(11) && *event == bound)
    ));
    let call = model_ticket(&out);
    let out = b.text(call, 5);
    let seen: Vec<RunId> = out
        .iter()
        .filter_map(|o| match o {
            Output::Publish {
                run,
                event: Event::Seen,
                ..
            } => Some(*run),
            _ => None,
        })
        .collect();
    assert_eq!(seen, [run(10), run(11)]);
    let out = b.completed(call);
    let told: Vec<_> = ends(&out)
        .into_iter()
        .map(|end| (end.run, end.turn, end.reply))
        .collect();
    let reply = Reply::Text { bytes: 5 };
    assert_eq!(
        told,
        [(run(10), None, reply), (run(11), Some(run(10)), reply)]
    );
}

/// R46, I31: in collect mode those that wait are answered in one turn, route by route.
#[test]
fn collected_messages_share_a_turn_with_their_own_route_only() {
    let (mut b, call) = busy(QueueSettings {
        mode: Collect,
        ..QueueSettings::default()
    });
    for (r, route) in [(11, 1), (12, 1), (13, 2), (14, 1)] {
        let out = b.chat_from(1, r, None, route);
        b.store(out);
    }
    let out = b.completed(call);
    assert_eq!(claims(&out), [], "the queue waits for quiet");
    let out = b.pass(500);
    let out = b.store(out);
    assert_eq!(claims(&out), [(run(11), vec![run(12)])]);
    let out = b.completed(model_ticket(&out));
    let out = b.store(out);
    assert_eq!(claims(&out), [(run(13), vec![])]);
    let out = b.completed(model_ticket(&out));
    assert_eq!(claims(&out), [(run(14), vec![])]);
}

/// R45, spec 3.3: follow-ups wait until the queue was quiet, but not for ever.
#[test]
fn a_queue_goes_on_after_quiet_and_never_waits_for_ever() {
    let (mut b, call) = busy(QueueSettings {
        mode: Followup,
        ..QueueSettings::default()
    });
    let out = b.chatted(1, 11, None);
    assert_eq!(places(&out), [queued(1)]);
    b.completed(call);
    let mut waited = 0u64;
    let out = loop {
        let out = b.pass(400);
        waited += 400;
        if !claims(&out).is_empty() {
            break out;
        }
        assert!(waited <= 8 * 500 + 400, "the debounce is bounded");
        b.chatted(1, 100 + u128::from(waited), None);
    };
    assert_eq!(claims(&out), [(run(11), vec![])]);
    assert!(waited > 500, "each newcomer moved it");
}

/// R47, P18, B-073: an interrupting message stops the run at work once it is durable, and only
/// that run; then it is answered.
#[test]
fn an_interrupting_message_stops_the_run_when_it_is_durable() {
    let (mut b, call) = busy(QueueSettings::default());
    b.text(call, 4);
    let out = b.chat(1, 11, Some(Interrupt));
    assert!(!has(&out, |o| matches!(o, Output::CancelModel { .. })));
    let out = b.commit(&out);
    assert_eq!(places(&out), [Place::Interrupting { run: run(10) }]);
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    let out = b.store(out);
    let end = ends(&out)[0];
    let by = StopReason::Interrupt;
    assert_eq!(
        (end.run, end.outcome, end.reply),
        (
            run(10),
            Outcome::Cancelled {
                by,
                provider_started: true
            },
            Reply::Text { bytes: 4 }
        )
    );
    let out = b.completed(model_ticket(&out));
    assert_eq!(
        (ends(&out)[0].run, ends(&out)[0].outcome),
        (run(11), Outcome::Completed)
    );
}

/// R47, law 5: an interrupting message that could not be accepted stops nothing.
#[test]
fn a_refused_message_interrupts_nothing() {
    let (mut b, _) = busy(QueueSettings::default());
    let out = b.chat(1, 11, Some(Interrupt));
    let (ticket, _) = accept(&out);
    let report = AcceptReport::Refused(StoreError::Full);
    let out = b.hand(Input::Accepted { ticket, report });
    assert_eq!(refusals(&out), [Rejection::Storage]);
    assert!(!has(&out, |o| matches!(o, Output::CancelModel { .. })));
}

/// Spec 3.1 row 10: an interrupted run that does not end gives its lane up after the settle time.
#[test]
fn an_interrupted_run_that_hangs_gives_its_lane_up() {
    let (mut b, _) = busy(QueueSettings::default());
    b.chatted(1, 11, Some(Interrupt));
    let out = b.pass(14_999);
    assert_eq!(claims(&out), []);
    let out = b.pass(1);
    assert_eq!(claims(&out), [(run(11), vec![])]);
}

/// I29, P05, B-068, spec 3.1 row 6: nobody overtakes what waits, in no mode.
#[test]
fn nobody_overtakes_what_waits() {
    let (mut b, _) = busy(QueueSettings::default());
    let out = b.chatted(1, 11, Some(Followup));
    assert_eq!(places(&out), [queued(1)]);
    for (r, mode) in [(12, Steer), (13, Interrupt), (14, Collect)] {
        let out = b.chatted(1, r, Some(mode));
        assert_eq!(
            places(&out),
            [queued(u32::try_from(r - 10).expect("small"))]
        );
        assert!(!has(&out, |o| matches!(o, Output::CancelModel { .. })));
    }
    let order: Vec<RunId> = b.core.session_runs(session(1)).collect();
    assert_eq!(order, [10, 11, 12, 13, 14].map(run));
}

/// Spec 3.1 rows 2, 4, 7: a heartbeat runs only where nothing else does and gives way; what
/// happens in a room never cuts in.
#[test]
fn heartbeats_give_way_and_rooms_wait() {
    let mut b = Bench::new(Config::default());
    let speak = |b: &mut Bench, r: u128, speaker, queue| {
        let request = b.request();
        let out = b.hand(Input::Submit(Submit {
            request,
            session: session(1),
            run: run(r),
            body: Fingerprint::from_u128(1),
            budget: None,
            turn: Turn::Chat {
                queue,
                route: Fingerprint::from_u128(1),
                speaker,
            },
            lane: LaneName::Main,
            priority: Priority::Foreground,
        }));
        b.store(out)
    };
    speak(&mut b, 10, Speaker::Heartbeat, None);
    let out = speak(&mut b, 11, Speaker::Heartbeat, None);
    assert_eq!(refusals(&out), [Rejection::SessionBusy]);
    let out = speak(&mut b, 12, Speaker::User, Some(Followup));
    assert_eq!(places(&out), [Place::Interrupting { run: run(10) }]);
    let out = speak(&mut b, 13, Speaker::Room, Some(Interrupt));
    assert_eq!(places(&out), [queued(2)]);
}

/// P17, I32, spec 3.2: what still waits can be withdrawn; the run at work goes on.
#[test]
fn a_waiting_message_is_withdrawn_and_the_run_goes_on() {
    let (mut b, call) = busy(QueueSettings::default());
    b.chatted(1, 11, None);
    let out = b.abort(1, Some(11));
    let out = b.store(out);
    let by = StopReason::Rpc;
    let given_back = Outcome::Cancelled {
        by,
        provider_started: false,
    };
    assert_eq!(
        (ends(&out)[0].run, ends(&out)[0].outcome),
        (run(11), given_back)
    );
    assert!(!has(&out, |o| matches!(o, Output::CancelModel { .. })));
    b.chatted(1, 12, None);
    let request = b.request();
    let out = b.hand(Input::Abort {
        request,
        session: session(1),
        scope: Scope::Queued,
    });
    let out = b.store(out);
    assert_eq!(
        answers(&out).last(),
        Some(&(
            request,
            Answer::Aborted {
                runs: vec![run(12)]
            }
        ))
    );
    let out = b.completed(call);
    assert_eq!(
        (ends(&out)[0].outcome, claims(&out)),
        (Outcome::Completed, vec![])
    );
}

/// P26, I27: what a claim was to take along goes back to its place when the claim is not written.
#[test]
fn a_claim_that_is_not_written_gives_back_what_it_was_to_take_along() {
    let (mut b, call) = busy(QueueSettings {
        mode: Collect,
        debounce_ms: 0,
        ..QueueSettings::default()
    });
    for r in [11, 12, 13] {
        b.chatted(1, r, None);
    }
    let out = b.complete(call);
    let out = b.settle(&out);
    assert_eq!(claims(&out), [(run(11), vec![run(12), run(13)])]);
    let ticket = claim_ticket(&out);
    let out = b.abort(1, Some(12));
    assert_eq!(answers(&out), [], "whether it was bound is not known yet");
    let report = ClaimReport::Refused(StoreError::Busy);
    let out = b.hand(Input::Claimed { ticket, report });
    let out = b.store(out);
    assert_eq!(
        ends(&out)[0].run,
        run(12),
        "it was not bound, and is stopped"
    );
    let out = b.abort(1, Some(11));
    let out = b.store(out);
    assert_eq!(ends(&out)[0].run, run(11));
    assert_eq!(claims(&out), [(run(13), vec![])]);
}

/// P26: what is bound to a turn ends with it, also when the turn is stopped; alone it can't be
/// taken back.
#[test]
fn what_is_bound_to_a_turn_ends_with_it() {
    let (mut b, call) = busy(QueueSettings {
        mode: Collect,
        debounce_ms: 0,
        ..QueueSettings::default()
    });
    b.chatted(1, 11, None);
    b.chatted(1, 12, None);
    let out = b.completed(call);
    let call = model_ticket(&out);
    let out = b.abort(1, Some(12));
    assert!(matches!(&answers(&out)[..], [(_, Answer::Aborted { runs })] if runs.is_empty()));
    let request = b.request();
    b.hand(Input::Abort {
        request,
        session: session(1),
        scope: Scope::All,
    });
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    let out = b.store(out);
    let both = vec![run(11), run(12)];
    assert_eq!(
        answers(&out).last(),
        Some(&(request, Answer::Aborted { runs: both }))
    );
    assert_eq!(b.core.live_runs(), 0);
}

/// R148, B-017: a wait on a chat message that waits is answered at once; on an agent run it
/// waits, and so does it on one that is at work.
#[test]
fn a_wait_on_a_queued_chat_message_is_pending() {
    let (mut b, _) = busy(QueueSettings::default());
    let (early, out) = b.wait(11, Some(60_000));
    b.store(out);
    let out = b.chatted(1, 11, Some(Followup));
    let pending = Answer::Wait {
        run: run(11),
        result: WaitResult::Pending,
    };
    assert!(answers(&out).contains(&(early, pending.clone())));
    let (late, out) = b.wait(11, None);
    assert_eq!(answers(&out), [(late, pending)]);
    let out = b.submit(1, 12);
    b.store(out);
    assert_eq!(answers(&b.wait(12, None).1), []);
    assert_eq!(answers(&b.wait(10, None).1), []);
}

/// B-005, P40: a long wait for a lane is told with what was ahead when it began.
#[test]
fn a_long_wait_is_told_with_what_was_ahead_of_it() {
    let (mut b, call) = busy(QueueSettings::default());
    b.chatted(1, 11, None);
    b.chatted(1, 12, None);
    b.pass(15_000);
    let out = b.completed(call);
    let told: Vec<_> = out
        .iter()
        .filter_map(|o| match o {
            Output::Publish {
                run,
                event:
                    Event::Waited {
                        ms,
                        active_ahead,
                        queued_ahead,
                    },
                ..
            } => Some((*run, *ms, *active_ahead, *queued_ahead)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(run(11), 15_000, 1, 0)]);
}

/// Spec 3: a session keeps its own settings; what a message names wins over them.
#[test]
fn a_sessions_own_settings_hold_over_the_configured_ones() {
    let (mut b, call) = busy(QueueSettings::default());
    let set = QueueOverride {
        mode: Some(Collect),
        cap: Some(0),
        ..QueueOverride::default()
    };
    let configure = |b: &mut Bench, change| {
        let request = b.request();
        let out = b.hand(Input::Configure {
            request,
            session: session(1),
            change,
        });
        let out = b.store(out);
        let answer = answers(&out).into_iter().find(|(to, _)| *to == request);
        match answer {
            Some((_, Answer::Queue { settings, own, .. })) => (settings, own),
            other => panic!("{other:?}"),
        }
    };
    let (settings, own) = configure(&mut b, QueueChange::Set(set));
    assert_eq!((settings.mode, settings.cap, own), (Collect, 1, set));
    assert_eq!(places(&b.chatted(1, 11, None)), [queued(1)]);
    let out = b.completed(call);
    assert_eq!(claims(&out), []);
    let (settings, own) = configure(&mut b, QueueChange::Clear);
    assert_eq!(
        (settings, own),
        (QueueSettings::default(), QueueOverride::default())
    );
    assert_eq!(configure(&mut b, QueueChange::Show), (settings, own));
}

/// P23, I26, I30: after a restart a turn goes on with all that it had taken along.
#[test]
fn a_restarted_turn_keeps_what_it_took_along() {
    let mut b = Bench::new(Config::default());
    let open = |r, attempt, along| OpenRun {
        turn: Turn::Chat {
            queue: Some(Collect),
            route: Fingerprint::from_u128(1),
            speaker: Speaker::User,
        },
        along,
        ..open_run(r, attempt)
    };
    let request = b.request();
    let out = b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let runs = vec![
        open(10, 1, None),
        open(11, 0, Some(run(10))),
        open(12, 0, None),
    ];
    let out = b.load_with(&out, runs);
    assert_eq!(claims(&out), [(run(10), vec![run(11)])]);
    let out = b.store(out);
    let out = b.completed(model_ticket(&out));
    let told: Vec<_> = ends(&out)
        .into_iter()
        .map(|end| (end.run, end.turn))
        .collect();
    let turn = Some(run(10));
    assert_eq!(told, [(run(10), None), (run(11), turn)]);
}

/// P17, B-075: a message that a refused claim was to take along is stopped at once.
#[test]
fn a_message_of_a_refused_claim_is_stopped_at_once() {
    let (mut b, call) = busy(QueueSettings {
        mode: Collect,
        debounce_ms: 0,
        ..QueueSettings::default()
    });
    for r in [11, 12, 13] {
        b.chatted(1, r, None);
    }
    let out = b.complete(call);
    let out = b.settle(&out);
    let ticket = claim_ticket(&out);
    let report = ClaimReport::Refused(StoreError::Busy);
    b.hand(Input::Claimed { ticket, report });
    let out = b.abort(1, Some(12));
    let out = b.store(out);
    assert_eq!(ends(&out)[0].run, run(12));
    assert!(
        matches!(&answers(&out).last(), Some((_, Answer::Aborted { runs })) if *runs == [run(12)])
    );
    let out = b.pass(1_000);
    assert_eq!(claims(&out), [(run(11), vec![run(13)])]);
}

/// P23, P18: what an earlier life had at work is at work again before what came during the load
/// is taken in: withdrawing what waits leaves it alone.
#[test]
fn what_was_at_work_is_not_withdrawn_with_what_waits() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let load = b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let abort = b.request();
    b.hand(Input::Abort {
        request: abort,
        session: session(1),
        scope: Scope::Queued,
    });
    let out = b.load_with(&load, vec![open_run(10, 1), open_run(11, 0)]);
    let out = b.store(out);
    let stopped: Vec<RunId> = ends(&out).into_iter().map(|end| end.run).collect();
    assert_eq!(stopped, [run(11)]);
    assert_eq!(model_ticket(&out).subject, Subject::Run(run(10)));
}
