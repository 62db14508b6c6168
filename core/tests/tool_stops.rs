//! What ends the tools of a run: their limits, a stop, the budget, the lane, a drain.

mod bench;

use bench::*;
use tidegate_core::*;

const S: u64 = 1_000;

/// As what a stopped run ends that has asked its model.
const STOPPED: Outcome = Outcome::Cancelled {
    by: StopReason::Rpc,
    provider_started: true,
};

/// P12, B-115: a tool that never ends is stopped at its limit; one that does not even stop is
/// waited for no longer than the bound, and what it did is called unknown.
#[test]
fn a_tool_that_never_ends_is_stopped_at_its_limit() {
    for (stops, end) in [(true, CallEnd::TimedOut), (false, CallEnd::Unknown)] {
        let mut b = Bench::new(Config::default());
        let limited = CallFacts {
            timeout_ms: Some(300 * S),
            ..READY
        };
        let out = b.at_tools(1, 10, &[limited]);
        let tool = started(&out)[0];
        assert_eq!(b.pass(300 * S - 1), []);
        let out = b.pass(1);
        assert_eq!(stopped(&out), [tool]);
        let out = match stops {
            true => b.tool_ends(tool, ToolEnd::Cancelled),
            false => b.pass(10 * S),
        };
        assert_eq!(call_ends(&out), [(0, end)]);
        assert_eq!(results(&out), [(0, end)]);
        let late = b.tool_ends(tool, ToolEnd::Ok);
        assert_eq!(late, [], "what it says later changes nothing");
    }
}

/// Law 10: a tool that had ended by itself when it was told to stop says so.
#[test]
fn what_a_tool_did_before_its_stop_counts() {
    let (mut b, first, second) = two_at_work();
    b.pass(1_800 * S);
    let out = b.tool_ends(first, ToolEnd::Ok);
    assert_eq!(call_ends(&out), [(0, CallEnd::Ok)]);
    let out = b.tool_ends(second, ToolEnd::Cancelled);
    assert_eq!(results(&out), [(0, CallEnd::Ok), (1, CallEnd::TimedOut)]);
}

/// P17, I40, B-074, B-075, B-026: a stop ends the tools at work and asks no model; the end follows the tools
/// and writes their results.
#[test]
fn a_stop_ends_the_tools_and_asks_no_model() {
    let (mut b, first, second) = two_at_work();
    b.tool_ends(first, ToolEnd::Ok);
    let out = b.abort(1, Some(10));
    assert_eq!(stopped(&out), [second]);
    assert!(!has(&out, |o| matches!(o, Output::Settle { .. })));
    b.pass(3 * S);
    let out = b.tool_ends(second, ToolEnd::Cancelled);
    assert_eq!(outcome_of(&out), STOPPED);
    assert_eq!(settle(&out).1.ended_at, Wall(WALL), "when it was decided");
    assert_eq!(results(&out), [(0, CallEnd::Ok), (1, CallEnd::Cancelled)]);
    let out = b.store(out);
    assert!(!has(&out, |o| matches!(o, Output::StartModel { .. })));
    assert_eq!(ends(&out).len(), 1);
}

/// P17, P12, L2, B-076: a tool that ignores its stop holds up the end for the bound, and no longer.
#[test]
fn a_tool_that_ignores_its_stop_does_not_hold_up_the_end() {
    let (mut b, first, second) = two_at_work();
    let out = b.abort(1, Some(10));
    assert_eq!(stopped(&out), [first, second]);
    let out = b.pass(10 * S);
    assert_eq!(outcome_of(&out), STOPPED);
    let expected = [(0, CallEnd::Unknown), (1, CallEnd::Unknown)];
    assert_eq!(results(&out), expected);
}

/// I40: a stop while the checkpoint is being written waits for that word, and nothing starts.
#[test]
fn a_stop_before_the_checkpoint_is_durable_starts_nothing() {
    for (report, written) in [
        (LaunchReport::Committed, true),
        (LaunchReport::Refused(StoreError::Busy), false),
    ] {
        let mut b = Bench::new(Config::default());
        let call = b.start(1, 10);
        b.text(call, 4);
        let out = b.asks_for(call, &[READY]);
        let (ticket, _) = launch(&out);
        let out = b.abort(1, Some(10));
        assert_eq!(out, []);
        let out = b.hand(Input::Launched { ticket, report });
        assert_eq!(started(&out), []);
        assert_eq!(outcome_of(&out), STOPPED);
        let skipped = vec![(0, CallEnd::Skipped)];
        let (expected, reply) = match written {
            true => (skipped, Reply::Empty),
            false => (vec![], Reply::Text { bytes: 4 }),
        };
        assert_eq!(results(&out), expected);
        assert_eq!(call_ends(&out), expected);
        assert_eq!(settle(&out).1.reply, reply);
    }
}

/// I39, P13: tools use up the run's time, and their progress gives none back.
#[test]
fn the_budget_goes_on_while_tools_run() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let budget = Some(Budget::Limited(20 * S));
    let out = b.submit_as(request, 1, 10, 1, budget);
    let out = b.store(out);
    b.pass(5 * S);
    let out = b.asks_for(model_ticket(&out), &[READY]);
    let out = b.store(out);
    let tool = started(&out)[0];
    b.pass(14 * S);
    b.tool(tool, ToolFact::Output { to: 9 });
    let out = b.pass(S);
    assert_eq!(stopped(&out), [tool]);
    let out = b.tool_ends(tool, ToolEnd::Cancelled);
    let expected = Outcome::TimedOut {
        limit: Limit::Budget,
        provider_started: true,
    };
    assert_eq!(outcome_of(&out), expected);
    assert_eq!(results(&out), [(0, CallEnd::Cancelled)]);
}

/// I39: what the tools used is not given back to the next model call.
#[test]
fn the_next_model_call_has_what_is_left() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Limited(20 * S)));
    let out = b.store(out);
    let out = b.asks_for(model_ticket(&out), &[READY]);
    let out = b.store(out);
    b.pass(15 * S);
    let out = b.tool_ends(started(&out)[0], ToolEnd::Ok);
    let left = out.iter().find_map(|o| match o {
        Output::Claim { claim, .. } => claim.left_ms,
        _ => None,
    });
    assert_eq!(left, Some(5 * S));
    let out = b.store(out);
    let call = model_ticket(&out);
    let out = b.pass(5 * S);
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
}

/// I40: a budget that passed while the process stood still starts no tool, wherever its run is.
#[test]
fn a_budget_that_passed_unseen_starts_no_tool() {
    let expected = Outcome::TimedOut {
        limit: Limit::Budget,
        provider_started: true,
    };
    for late in [1, 2] {
        let mut b = Bench::new(Config::default());
        let request = b.request();
        let out = b.submit_as(request, 1, 10, 1, Some(Budget::Limited(20 * S)));
        let out = b.store(out);
        let call = model_ticket(&out);
        b.model(call, ModelFact::Call(READY));
        b.now += if late == 1 { 20 * S } else { 0 };
        let out = b.complete(call);
        b.now += if late == 2 { 20 * S } else { 0 };
        let out = b.store(out);
        assert_eq!(started(&out), []);
        assert_eq!(outcome_of(&out), expected);
        let skipped = vec![(0, CallEnd::Skipped)];
        assert_eq!(call_ends(&out), if late == 2 { skipped } else { vec![] });
    }
}

/// I40: results that come at the instant at which the budget passes start no model call.
#[test]
fn results_at_the_last_instant_start_no_model_call() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Limited(20 * S)));
    let out = b.store(out);
    let out = b.asks_for(model_ticket(&out), &[READY]);
    let out = b.store(out);
    b.now += 20 * S;
    let out = b.tool_ends(started(&out)[0], ToolEnd::Ok);
    assert!(!has(&out, |o| matches!(o, Output::Claim { .. })));
    assert_eq!(results(&out), [(0, CallEnd::Ok)]);
}

/// P01, law 8: the lane is freed at the run's limit whatever its tools do, and the end says what
/// is known of them.
#[test]
fn the_lane_limit_frees_the_lane_of_a_run_with_tools() {
    let mut b = Bench::new(Config {
        tools: ToolsConfig {
            cancel_ms: 900 * S,
            ..ToolsConfig::default()
        },
        ..Config::default()
    });
    let out = b.at_tools(1, 10, &[READY]);
    let tool = started(&out)[0];
    b.submit(1, 11);
    let out = b.abort(1, Some(10));
    assert_eq!(stopped(&out), [tool]);
    let out = b.pass(30 * S);
    assert_eq!(results(&out), [(0, CallEnd::Unknown)]);
    assert_eq!(outcome_of(&out), STOPPED);
}

/// The same, where the limit stood still since a person was waited for.
#[test]
fn the_lane_limit_goes_on_when_a_waiting_run_is_stopped() {
    let mut b = Bench::new(Config {
        tools: ToolsConfig {
            cancel_ms: 900 * S,
            ..ToolsConfig::default()
        },
        ..Config::default()
    });
    let out = b.at_tools(1, 10, &[READY, GUARDED]);
    assert_eq!(started(&out).len(), 1);
    b.abort(1, Some(10));
    let out = b.pass(30 * S);
    assert_eq!(outcome_of(&out), STOPPED);
}

/// P21: a drain waits for tools at work, and the next start takes up what it could not wait for.
#[test]
fn a_drain_waits_for_tools() {
    let (mut b, first, second) = two_at_work();
    let request = b.request();
    let budget_ms = None;
    let out = b.hand(Input::Drain { request, budget_ms });
    assert_eq!(out, []);
    b.tool_ends(first, ToolEnd::Ok);
    let out = b.tool_ends(second, ToolEnd::Ok);
    let out = b.store(out);
    let out = b.completed(model_ticket(&out));
    assert!(has(&out, |o| *o == Output::Drained));
}

/// P18, I12, P40: a reset ends a run whose tools are at work: they are stopped, and told as the
/// store has written them, unknown.
#[test]
fn a_reset_stops_the_tools() {
    let mut b = Bench::new(Config::default());
    let out = b.at_tools(1, 10, &[READY, GUARDED]);
    let tool = started(&out)[0];
    let request = b.request();
    let out = b.hand(Input::Reset {
        request,
        session: session(1),
        expected: None,
    });
    let ticket = out.iter().find_map(|o| match o {
        Output::Reset { ticket, .. } => Some(*ticket),
        _ => None,
    });
    let outcome = Outcome::Cancelled {
        by: StopReason::Reset,
        provider_started: true,
    };
    let ended = Terminal {
        run: run(10),
        session: session(1),
        outcome,
        accepted_at: Wall(WALL),
        started_at: Some(Wall(WALL)),
        ended_at: Wall(WALL + 9),
        attempt: Attempt(1),
        reply: Reply::Empty,
        detail: false,
        turn: None,
    };
    let report = ResetReport::Committed {
        generation: Generation(2),
        ended: vec![ended],
    };
    let ticket = ticket.expect("ordered");
    let out = b.hand(Input::WasReset { ticket, report });
    assert_eq!(stopped(&out), [tool]);
    assert_eq!(
        call_ends(&out),
        [(0, CallEnd::Unknown), (1, CallEnd::Stale)]
    );
    assert_eq!(ends(&out), [ended]);
    assert_eq!(b.tool_ends(tool, ToolEnd::Ok), []);
}

/// P07: a lost lease stops the tools, and nothing is told of a run that is not ours.
#[test]
fn a_lost_lease_stops_the_tools() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.asks_for(call, &[READY, GUARDED]);
    let (ticket, _) = launch(&out);
    let report = LaunchReport::Committed;
    let out = b.hand(Input::Launched { ticket, report });
    let tool = started(&out)[0];
    let (request, out) = b.decide(asked(&out)[0], Decision::AllowOnce);
    let (ticket, _) = launch(&out);
    let report = LaunchReport::NotOwner;
    let out = b.hand(Input::Launched { ticket, report });
    assert_eq!(stopped(&out), [tool]);
    assert_eq!(call_ends(&out), []);
    let answer = Answer::Rejected(Rejection::NotOwner);
    assert!(answers(&out).contains(&(request, answer)));
}

/// P40, R146: a peek at a run whose tools are being stopped tells the end to come; an abort
/// that comes behind another cause has stopped nothing.
#[test]
fn the_first_cause_of_a_stop_stays_while_its_tools_end() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Limited(5 * S)));
    let out = b.store(out);
    let out = b.asks_for(model_ticket(&out), &[READY]);
    b.store(out);
    b.pass(5 * S);
    let outcome = Outcome::TimedOut {
        limit: Limit::Budget,
        provider_started: true,
    };
    let (_, out) = b.wait(10, Some(0));
    let out = [out, b.pass(0)].concat();
    let told = |answer: &Answer| match answer {
        Answer::Wait {
            result: WaitResult::TimedOut { decided, .. },
            ..
        } => *decided,
        _ => None,
    };
    let told: Vec<Outcome> = answers(&out)
        .iter()
        .filter_map(|(_, it)| told(it))
        .collect();
    assert_eq!(told, [outcome]);
    let out = b.abort(1, Some(10));
    let nothing = Answer::Aborted { runs: Vec::new() };
    let answer = answers(&out).into_iter().map(|(_, answer)| answer);
    assert_eq!(answer.collect::<Vec<_>>(), [nothing]);
    assert_eq!(outcome_of(&b.pass(10 * S)), outcome);
}

/// Spec 2.3: an unlimited run keeps its lane for as long as its tools make progress.
#[test]
fn a_tool_that_makes_progress_keeps_the_lane_of_an_unlimited_run() {
    let mut b = Bench::new(Config {
        tools: ToolsConfig {
            timeout_ms: 9 * DEFAULT_BUDGET_MS,
            ..ToolsConfig::default()
        },
        ..Config::default()
    });
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, Some(Budget::Unlimited));
    let out = b.store(out);
    let out = b.asks_for(model_ticket(&out), &[READY]);
    let out = b.store(out);
    let tool = started(&out)[0];
    for to in 1..4 {
        b.pass(DEFAULT_BUDGET_MS);
        b.tool(tool, ToolFact::Output { to });
    }
    let out = b.pass(DEFAULT_BUDGET_MS);
    assert_eq!(stopped(&out), []);
    assert_eq!(stopped(&b.pass(30 * S)), [tool], "and no longer");
}
