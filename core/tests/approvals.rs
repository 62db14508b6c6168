//! Approvals: what waits for a person, what the first word does, what waiting costs (spec 7.3).

mod bench;

use bench::*;
use tidegate_core::*;

const S: u64 = 1_000;
const ALLOW: Decision = Decision::AllowOnce;
const DENY: Decision = Decision::Deny;

/// A run one of whose calls waits for a person, with a budget.
fn waiting(budget: Option<Budget>, calls: &[CallFacts]) -> (Bench, Vec<Output>) {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, budget);
    let out = b.store(out);
    let out = b.asks_for(model_ticket(&out), calls);
    let out = b.store(out);
    (b, out)
}

fn answer_to(out: &[Output], request: RequestId) -> Option<Answer> {
    let answers = answers(out);
    let own = answers.into_iter().find(|(to, _)| *to == request);
    own.map(|(_, answer)| answer)
}

fn rejected(why: Rejection) -> Option<Answer> {
    Some(Answer::Rejected(why))
}

/// P27: a guarded call waits for a person; the others do not wait for it.
#[test]
fn a_guarded_call_waits_and_the_others_do_not() {
    let (mut b, out) = waiting(None, &[READY, GUARDED]);
    assert_eq!(started(&out).len(), 1);
    let (call, until) = out
        .iter()
        .find_map(|o| match o {
            Output::Publish {
                event: Event::ToolAsked { call, until },
                ..
            } => Some((*call, *until)),
            _ => None,
        })
        .expect("asked");
    assert_eq!((call.call, call.attempt), (1, Attempt(1)));
    assert_eq!(until, Wall(WALL + 1_800 * S));
    let out = b.tool_ends(started(&out)[0], ToolEnd::Ok);
    assert!(!has(&out, |o| matches!(o, Output::Claim { .. })));
}

/// P27: without the rule nobody is asked.
#[test]
fn nobody_is_asked_where_the_rule_is_off() {
    let tools = ToolsConfig {
        ask: Ask::Off,
        ..ToolsConfig::default()
    };
    let mut b = Bench::new(Config {
        tools,
        ..Config::default()
    });
    let out = b.at_tools(1, 10, &[GUARDED]);
    assert_eq!(started(&out).len(), 1);
}

/// Law 5, I34: an allowed call starts, and the person is told so, when its checkpoint is durable.
#[test]
fn an_allowed_call_starts_when_that_is_durable() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    let call = asked(&out)[0];
    let (request, out) = b.decide(call, ALLOW);
    let (ticket, order) = launch(&out);
    assert_eq!((order.start, order.ask, order.calls), (vec![0], vec![], 1));
    assert_eq!((started(&out), answers(&out)), (vec![], vec![]));
    let report = LaunchReport::Refused(StoreError::Busy);
    let out = b.hand(Input::Launched { ticket, report });
    assert_eq!(out, []);
    let out = b.pass(S);
    let out = b.store(out);
    assert_eq!(started(&out).len(), 1);
    let decided = Answer::Decided {
        call,
        decision: ALLOW,
    };
    assert_eq!(answer_to(&out, request), Some(decided));
    assert_eq!(asked(&out), [], "asked once");
}

/// P27: a denied call never starts, its result says so, and the model goes on.
#[test]
fn a_denied_call_never_starts() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    let call = asked(&out)[0];
    let (request, out) = b.decide(call, DENY);
    let decided = Answer::Decided {
        call,
        decision: DENY,
    };
    assert_eq!(answer_to(&out, request), Some(decided));
    assert_eq!(started(&out), []);
    assert_eq!(results(&out), [(0, CallEnd::Denied)]);
}

/// L15, P27, B-080: nobody decides: the call expires at its time, which is not a denial.
#[test]
fn an_undecided_call_expires() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    let call = asked(&out)[0];
    assert_eq!(b.pass(1_800 * S - 1), []);
    let out = b.pass(1);
    assert_eq!(results(&out), [(0, CallEnd::Expired)]);
    let (request, out) = b.decide(call, ALLOW);
    assert_eq!(answer_to(&out, request), rejected(Rejection::NotAsked));
    assert_eq!(started(&out), []);
}

/// P27: a decision that comes at the instant of the limit is taken before it.
#[test]
fn a_decision_at_the_last_instant_counts() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    b.now += 1_800 * S;
    let (_, out) = b.decide(asked(&out)[0], ALLOW);
    let out = b.store(out);
    assert_eq!(started(&out).len(), 1);
    assert_eq!(b.hand(Input::Tick), []);
}

/// Spec 7.3: the first word counts; the same again is no error, another one is.
#[test]
fn the_first_decision_counts() {
    let (mut b, out) = waiting(None, &[GUARDED, READY]);
    let call = asked(&out)[0];
    let (first, out) = b.decide(call, ALLOW);
    let (other, late) = b.decide(call, DENY);
    assert_eq!(answer_to(&late, other), rejected(Rejection::AlreadyDecided));
    let (same, none) = b.decide(call, ALLOW);
    assert_eq!(none, [], "it waits for the same row");
    let out = b.store(out);
    let decided = Some(Answer::Decided {
        call,
        decision: ALLOW,
    });
    assert_eq!(answer_to(&out, first), decided);
    assert_eq!(answer_to(&out, same), decided);
    let tool = started(&out);
    assert_eq!(tool.len(), 1);
    b.tool_ends(tool[0], ToolEnd::Ok);
    let (again, out) = b.decide(call, ALLOW);
    assert_eq!(answer_to(&out, again), decided);
    assert_eq!(started(&out), []);
}

/// Spec 7.3: a decision on a call that nobody asked about changes nothing.
#[test]
fn a_decision_on_what_was_not_asked_is_refused() {
    let (mut b, out) = waiting(None, &[READY, GUARDED]);
    let call = asked(&out)[0];
    let others = [
        CallId { call: 0, ..call },
        CallId { call: 2, ..call },
        CallId {
            attempt: Attempt(2),
            ..call
        },
        CallId {
            run: run(11),
            ..call
        },
    ];
    for other in others {
        let (request, out) = b.decide(other, ALLOW);
        let answer = rejected(Rejection::NotAsked);
        assert_eq!((answer_to(&out, request), out.len()), (answer, 1));
    }
}

/// P13, P27, I39, B-079: overlapping approvals stop the run's clock from the first question to the
/// last word, and exactly the rest goes on.
#[test]
fn overlapping_approvals_pause_exactly_the_unused_budget() {
    let (mut b, out) = waiting(Some(Budget::Limited(300 * S)), &[GUARDED, GUARDED]);
    let calls = asked(&out);
    b.pass(500 * S);
    let (_, out) = b.decide(calls[0], ALLOW);
    let out = b.store(out);
    let first = started(&out)[0];
    b.pass(200 * S);
    assert_eq!(stopped(&b.pass(0)), [], "one still waits");
    let (_, out) = b.decide(calls[1], DENY);
    assert_eq!(call_ends(&out), [(1, CallEnd::Denied)]);
    assert_eq!(b.pass(300 * S - 1), []);
    let out = b.pass(1);
    assert_eq!(stopped(&out), [first], "the whole budget was left");
}

/// P27: what ran before the question is not given back.
#[test]
fn the_time_before_the_question_is_used() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Limited(300 * S)));
    let out = b.store(out);
    b.pass(100 * S);
    let out = b.asks_for(model_ticket(&out), &[GUARDED]);
    let out = b.store(out);
    b.pass(1_000 * S);
    let (_, out) = b.decide(asked(&out)[0], ALLOW);
    let out = b.store(out);
    let tool = started(&out)[0];
    assert_eq!(b.pass(200 * S - 1), []);
    assert_eq!(stopped(&b.pass(1)), [tool]);
}

/// P27, B-082: an unlimited run whose person takes days keeps its lane, and goes on.
#[test]
fn a_run_that_waits_for_a_person_keeps_its_lane() {
    let mut b = Bench::new(Config {
        tools: ToolsConfig {
            approval_ms: 10 * DEFAULT_BUDGET_MS,
            ..ToolsConfig::default()
        },
        ..Config::default()
    });
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Unlimited));
    let out = b.store(out);
    let out = b.asks_for(model_ticket(&out), &[GUARDED]);
    let out = b.store(out);
    assert_eq!(b.pass(5 * DEFAULT_BUDGET_MS), []);
    let (_, out) = b.decide(asked(&out)[0], ALLOW);
    let out = b.store(out);
    let out = b.tool_ends(started(&out)[0], ToolEnd::Ok);
    claim_ticket(&out);
}

/// P27, L15: when the last question has expired the run's time goes on, beside what runs.
#[test]
fn the_time_goes_on_after_an_expired_question() {
    let (mut b, out) = waiting(Some(Budget::Limited(300 * S)), &[READY, GUARDED]);
    let tool = started(&out)[0];
    let out = b.pass(1_800 * S - 1);
    assert_eq!(stopped(&out), []);
    b.pass(1);
    let limits: Vec<Timer> = b.core.armed().map(|armed| armed.timer).collect();
    assert!(limits.contains(&Timer::Budget(run(10))), "{limits:?}");
    assert!(limits.contains(&Timer::LaneLimit(run(10))), "{limits:?}");
    b.tool_ends(tool, ToolEnd::Ok);
}

/// Law 7: a question that was answered has no deadline any more.
#[test]
fn an_answered_question_has_no_deadline() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    let call = asked(&out)[0];
    let approval = Timer::Approval(run(10), 0);
    assert!(b.core.armed().any(|armed| armed.timer == approval));
    b.decide(call, ALLOW);
    assert!(b.core.armed().all(|armed| armed.timer != approval));
}

/// P07, P40: the checkpoint of an allowed call was fenced: what runs beside it is stopped, and
/// the ends of all calls are told before that of the run.
#[test]
fn a_fenced_checkpoint_stops_what_runs() {
    let (mut b, out) = waiting(None, &[READY, GUARDED]);
    let tool = started(&out)[0];
    let (request, out) = b.decide(asked(&out)[0], ALLOW);
    let (ticket, _) = launch(&out);
    let report = LaunchReport::Fenced;
    let out = b.hand(Input::Launched { ticket, report });
    assert_eq!(stopped(&out), [tool]);
    let ends = [(0, CallEnd::Unknown), (1, CallEnd::Skipped)];
    assert_eq!(call_ends(&out), ends);
    assert_eq!(answer_to(&out, request), rejected(Rejection::NotAsked));
    lookup_ticket(&out);
}

/// P17, spec 7.3: a stop makes the question void, wherever its answer is.
#[test]
fn a_stop_makes_the_question_void() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    let call = asked(&out)[0];
    let out = b.abort(1, Some(10));
    assert_eq!(results(&out), [(0, CallEnd::Skipped)]);
    let (request, out) = b.decide(call, ALLOW);
    assert_eq!(answer_to(&out, request), rejected(Rejection::NotAsked));

    let (mut b, out) = waiting(None, &[GUARDED]);
    let call = asked(&out)[0];
    let (request, out) = b.decide(call, ALLOW);
    let (ticket, _) = launch(&out);
    b.abort(1, Some(10));
    let report = LaunchReport::Committed;
    let out = b.hand(Input::Launched { ticket, report });
    assert_eq!(started(&out), [], "allowed, durable, and stopped before");
    assert_eq!(answer_to(&out, request), rejected(Rejection::NotAsked));
    assert_eq!(results(&out), [(0, CallEnd::Skipped)]);
}

/// Law 5: an allowance that came too late is told so also to whoever repeats it, while another
/// tool is still waited for.
#[test]
fn an_allowance_that_never_counted_is_not_confirmed() {
    let (mut b, out) = waiting(None, &[READY, GUARDED]);
    let call = asked(&out)[0];
    let (_, out) = b.decide(call, ALLOW);
    let (ticket, _) = launch(&out);
    b.abort(1, Some(10));
    let report = LaunchReport::Committed;
    let out = b.hand(Input::Launched { ticket, report });
    assert_eq!(call_ends(&out), [(1, CallEnd::Skipped)]);
    let (again, out) = b.decide(call, ALLOW);
    assert_eq!(answer_to(&out, again), rejected(Rejection::NotAsked));
}

/// I40: the same where the store refused the checkpoint.
#[test]
fn a_stop_does_not_wait_for_a_refused_checkpoint() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    let (request, out) = b.decide(asked(&out)[0], ALLOW);
    let (ticket, _) = launch(&out);
    let report = LaunchReport::Refused(StoreError::Busy);
    b.hand(Input::Launched { ticket, report });
    let out = b.abort(1, Some(10));
    assert_eq!(answer_to(&out, request), rejected(Rejection::NotAsked));
    assert_eq!(results(&out), [(0, CallEnd::Skipped)]);
    assert_eq!(b.pass(60 * S), []);
}

/// I40: the same while another tool is waited for: no checkpoint follows.
#[test]
fn a_refused_checkpoint_is_not_ordered_again_after_a_stop() {
    let (mut b, out) = waiting(None, &[READY, GUARDED]);
    let tool = started(&out)[0];
    let (_, out) = b.decide(asked(&out)[0], ALLOW);
    let (ticket, _) = launch(&out);
    let report = LaunchReport::Refused(StoreError::Busy);
    b.hand(Input::Launched { ticket, report });
    let out = b.abort(1, Some(10));
    assert_eq!(call_ends(&out), [(1, CallEnd::Skipped)]);
    assert_eq!(b.pass(5 * S), []);
    let out = b.tool_ends(tool, ToolEnd::Cancelled);
    let ends = [(0, CallEnd::Cancelled), (1, CallEnd::Skipped)];
    assert_eq!(results(&out), ends);
}

/// P10, L11: a drain that ends while a person is waited for says so to whoever decided; the
/// next start makes the question void.
#[test]
fn a_drain_answers_who_decided() {
    let (mut b, out) = waiting(None, &[GUARDED]);
    let call = asked(&out)[0];
    let request = b.request();
    let budget_ms = Some(5 * S);
    b.hand(Input::Drain { request, budget_ms });
    let (decider, _) = b.decide(call, ALLOW);
    let out = b.pass(5 * S);
    assert_eq!(answer_to(&out, decider), rejected(Rejection::Draining));
    assert!(has(&out, |o| *o == Output::Drained));
}

/// Law 9: those who wait for one word are bounded.
#[test]
fn who_waits_for_a_word_is_bounded() {
    let mut b = Bench::new(Config {
        callers_cap: 1,
        ..Config::default()
    });
    let out = b.at_tools(1, 10, &[GUARDED]);
    let call = asked(&out)[0];
    b.decide(call, ALLOW);
    let (second, out) = b.decide(call, ALLOW);
    assert_eq!(answer_to(&out, second), rejected(Rejection::Busy));
}
