//! Global lanes: caps, priorities, and the budget that cron turns share with hooks.

mod bench;

use bench::*;
use tidegate_core::*;

fn submit(b: &mut Bench, n: u128, lane: LaneName, priority: Priority) -> Vec<Output> {
    let request = b.request();
    let out = b.hand(Input::Submit(Submit {
        request,
        session: session(n),
        run: run(n),
        body: Fingerprint::from_u128(1),
        budget: None,
        turn: Turn::Agent,
        lane,
        priority,
    }));
    b.store(out)
}

fn begun(out: &[Output]) -> Vec<RunId> {
    out.iter()
        .filter_map(|o| match o {
            Output::StartModel { fence, .. } => Some(fence.run),
            _ => None,
        })
        .collect()
}

/// R15, R42, I13: each lane has its own cap; a full one holds up no other.
#[test]
fn a_full_lane_holds_up_no_other() {
    let mut b = Bench::new(Config {
        global_lane_cap: 1,
        lanes: LaneCaps {
            subagent: 1,
            ..LaneCaps::default()
        },
        ..Config::default()
    });
    let foreground = Priority::Foreground;
    assert_eq!(
        begun(&submit(&mut b, 1, LaneName::Main, foreground)),
        [run(1)]
    );
    assert_eq!(begun(&submit(&mut b, 2, LaneName::Main, foreground)), []);
    assert_eq!(
        begun(&submit(&mut b, 3, LaneName::Subagent, foreground)),
        [run(3)]
    );
    assert_eq!(
        begun(&submit(&mut b, 4, LaneName::Subagent, foreground)),
        []
    );
    assert_eq!(b.core.active_runs(), 2);
}

/// I15, L12, spec 16.5: a free slot goes to the foreground first, then normal, then background,
/// and within one priority to who came first.
#[test]
fn a_free_slot_goes_by_priority_then_by_arrival() {
    let mut b = Bench::new(Config {
        global_lane_cap: 1,
        ..Config::default()
    });
    let lane = LaneName::Main;
    let out = submit(&mut b, 1, lane, Priority::Foreground);
    let mut call = model_ticket(&out);
    for (n, priority) in [
        (2, Priority::Background),
        (3, Priority::Normal),
        (4, Priority::Foreground),
        (5, Priority::Background),
        (6, Priority::Foreground),
    ] {
        submit(&mut b, n, lane, priority);
    }
    let mut order = Vec::new();
    for _ in 0..5 {
        let out = b.completed(call);
        order.extend(begun(&out));
        call = model_ticket(&out);
    }
    assert_eq!(order, [4, 6, 3, 2, 5].map(run));
}

/// I13, spec 2.1: cron turns and hooks share one budget, in which a slot is kept for hooks;
/// a run that asks for the lane of cron jobs gets that of their turns.
#[test]
fn cron_turns_leave_a_slot_for_hooks() {
    let mut b = Bench::new(Config {
        lanes: LaneCaps {
            cron: 2,
            hook_dispatch: 2,
            ..LaneCaps::default()
        },
        ..Config::default()
    });
    let background = Priority::Background;
    assert_eq!(
        begun(&submit(&mut b, 1, LaneName::Cron, background)),
        [run(1)]
    );
    assert_eq!(
        begun(&submit(&mut b, 2, LaneName::CronNested, background)),
        []
    );
    let out = submit(&mut b, 3, LaneName::HookDispatch, Priority::Normal);
    assert_eq!(begun(&out), [run(3)]);
    let hook = model_ticket(&out);
    assert_eq!(
        begun(&submit(&mut b, 4, LaneName::HookDispatch, Priority::Normal)),
        []
    );
    let out = b.completed(hook);
    assert_eq!(begun(&out), [run(4)], "the kept slot stays with hooks");
}

/// Law 9: a lane that is closed by configuration refuses, since nothing would ever begin there.
#[test]
fn a_closed_lane_refuses() {
    let mut b = Bench::new(Config::default());
    let out = submit(&mut b, 1, LaneName::HookDispatch, Priority::Normal);
    assert_eq!(refusals(&out), [Rejection::LaneClosed]);
    assert_eq!(b.core.live_runs(), 0);
}

/// I19, R2: a run that waits for a global lane holds its session's lane meanwhile.
#[test]
fn a_run_that_waits_for_its_lane_keeps_its_session() {
    let mut b = Bench::new(Config {
        global_lane_cap: 1,
        ..Config::default()
    });
    let call = b.start(9, 90);
    let out = b.submit(1, 10);
    b.store(out);
    let out = b.submit(1, 11);
    b.store(out);
    let out = b.completed(call);
    assert_eq!(begun(&out), [run(10)]);
    assert_eq!(
        b.core.session_runs(session(1)).collect::<Vec<_>>(),
        [run(10), run(11)]
    );
}

/// R163, P13: the lane waits for the attempt's own deadline: time that its claim took is not
/// taken from it.
#[test]
fn a_slow_claim_does_not_shorten_the_run() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 9);
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Limited(60_000)));
    b.store(out);
    let out = b.complete(call);
    let out = b.settle(&out);
    b.pass(80_000);
    let out = b.claim(&out);
    let call = model_ticket(&out);
    let out = b.pass(59_999);
    assert!(!has(&out, |o| *o == Output::CancelModel { ticket: call }));
    let out = b.pass(1);
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    let (limit, provider_started) = (Limit::Budget, true);
    let outcome = Outcome::TimedOut {
        limit,
        provider_started,
    };
    assert_eq!(settle(&out).1.outcome, outcome);
}

/// P17, P18: an abort of what is at work stops that one, with what it took along, and leaves
/// alone what waits and what comes later.
#[test]
fn an_abort_of_what_is_at_work_leaves_what_waits() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.submit(1, 11);
    b.store(out);
    let at_work = |b: &mut Bench| {
        let request = b.request();
        let out = b.hand(Input::Abort {
            request,
            session: session(1),
            scope: Scope::AtWork,
        });
        (request, out)
    };
    let (request, out) = at_work(&mut b);
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    let out = b.store(out);
    let stopped = Answer::Aborted {
        runs: vec![run(10)],
    };
    assert!(answers(&out).contains(&(request, stopped)));
    assert_eq!(begun(&out), [run(11)]);
    let call = model_ticket(&out);
    b.completed(call);
    let (request, out) = at_work(&mut b);
    assert_eq!(answers(&out), [(request, Answer::Aborted { runs: vec![] })]);
}
