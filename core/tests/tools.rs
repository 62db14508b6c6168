//! Rounds of tools: what starts, when, what each call ends as, and who is told (spec 7).

mod bench;

use std::collections::{BTreeMap, BTreeSet};

use bench::*;
use proptest::prelude::*;
use tidegate_core::*;

const S: u64 = 1_000;

/// As what a stopped run ends that has asked its model.
const STOPPED: Outcome = Outcome::Cancelled {
    by: StopReason::Rpc,
    provider_started: true,
};

const UNKNOWN_TOOL: CallFacts = CallFacts {
    kind: CallKind::NoSuchTool,
    ..READY
};
const CUT: CallFacts = CallFacts {
    kind: CallKind::BadArguments,
    ..READY
};

/// Two tools at work.
fn two_at_work() -> (Bench, Ticket, Ticket) {
    let mut b = Bench::new(Config::default());
    let out = b.at_tools(1, 10, &[READY, READY]);
    let tools = started(&out);
    assert_eq!(tools.len(), 2);
    (b, tools[0], tools[1])
}

fn outcome_of(out: &[Output]) -> Outcome {
    settle(out).1.outcome
}

fn tool_events(out: &[Output]) -> Vec<(&'static str, u16)> {
    let events = out.iter().filter_map(|o| match o {
        Output::Publish { event, .. } => match event {
            Event::ToolStart { call } => Some(("start", call.call)),
            Event::ToolOutput { call, .. } => Some(("output", call.call)),
            Event::ToolEnd { call, .. } => Some(("end", call.call)),
            _ => None,
        },
        _ => None,
    });
    events.collect()
}

/// R96, R124, P08, I24: two calls run side by side; when both have ended the model is asked again, as
/// the next attempt, whose claim writes the results in the order of the calls.
#[test]
fn calls_run_side_by_side_and_their_results_go_to_the_model() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 4);
    let out = b.asks_for(call, &[READY, READY]);
    let (ticket, order) = launch(&out);
    assert_eq!((order.bytes, order.calls), (4, 2));
    assert_eq!((order.start, order.ask), (vec![0, 1], vec![]));
    assert_eq!(started(&out), [], "nothing starts before it is durable");
    let out = b.hand(Input::Launched {
        ticket,
        report: LaunchReport::Committed,
    });
    assert_eq!(tool_events(&out), [("start", 0), ("start", 1)]);
    let tools = started(&out);
    let out = b.tool_ends(tools[1], ToolEnd::Ok);
    assert_eq!(call_ends(&out), [(1, CallEnd::Ok)]);
    let out = b.tool_ends(tools[0], ToolEnd::Failed);
    assert_eq!(results(&out), [(0, CallEnd::Failed), (1, CallEnd::Ok)]);
    assert_eq!(claim_ticket(&out).attempt, Attempt(2));
    let out = b.claim(&out);
    let next = model_ticket(&out);
    b.text(next, 7);
    let out = b.complete(next);
    let (_, terminal) = settle(&out);
    assert_eq!(terminal.outcome, Outcome::Completed);
    assert_eq!(terminal.reply, Reply::Text { bytes: 7 });
    assert_eq!(results(&out), [], "they were written with the claim");
}

/// I33, P38, B-118: of an answer that broke off, no call is carried out, not even one that was whole.
#[test]
fn calls_of_a_broken_answer_never_start() {
    for end in [ModelEnd::Incomplete, ModelEnd::Cancelled] {
        let mut b = Bench::new(Config::default());
        let call = b.start(1, 10);
        b.model(call, ModelFact::Call(READY));
        let out = b.model(call, ModelFact::Ended(end));
        let out = [b.store(out), b.pass(2 * S)].concat();
        assert_eq!(started(&out), []);
        assert!(!has(&out, |o| matches!(o, Output::Launch { .. })));
        let again = out.iter().any(|o| matches!(o, Output::Claim { .. }));
        if again {
            let out = b.claim(&out);
            let out = b.asks_for(model_ticket(&out), &[READY]);
            assert_eq!(launch(&out).1.calls, 1, "the old one is forgotten");
        }
    }
}

/// R96: a call that can't be carried out is told to start and to end all the same, in the order
/// of the answer, and the model reads why.
#[test]
fn calls_that_cannot_be_carried_out_have_their_results() {
    let mut b = Bench::new(Config::default());
    let out = b.at_tools(1, 10, &[UNKNOWN_TOOL, READY, CUT]);
    assert_eq!(
        tool_events(&out),
        [
            ("start", 0),
            ("end", 0),
            ("start", 1),
            ("start", 2),
            ("end", 2)
        ]
    );
    let tools = started(&out);
    assert_eq!(tools.len(), 1);
    let out = b.tool_ends(tools[0], ToolEnd::Ok);
    let expected = [
        (0, CallEnd::NoSuchTool),
        (1, CallEnd::Ok),
        (2, CallEnd::BadArguments),
    ];
    assert_eq!(results(&out), expected);

    let mut b = Bench::new(Config::default());
    let out = b.at_tools(1, 10, &[UNKNOWN_TOOL]);
    model_ticket(&out);
}

/// Law 9: an answer that asks for too many calls has the rest skipped; a run whose model asks
/// for ever is ended, and says so.
#[test]
fn calls_and_rounds_are_bounded() {
    let tools = ToolsConfig {
        calls_max: 2,
        rounds_max: 2,
        ..ToolsConfig::default()
    };
    let mut b = Bench::new(Config {
        tools,
        ..Config::default()
    });
    let call = b.start(1, 10);
    let out = b.asks_for(call, &[READY, READY, READY]);
    let mut out = b.store(out);
    assert_eq!(started(&out).len(), 2);
    assert_eq!(call_ends(&out), [(2, CallEnd::Skipped)]);
    for _ in 0..2 {
        let mut last = Vec::new();
        for tool in started(&out) {
            last = b.tool_ends(tool, ToolEnd::Ok);
        }
        let all = b.store(last);
        let call = model_ticket(&all);
        out = b.asks_for(call, &[READY]);
        out = b.store(out);
    }
    assert_eq!(outcome_of(&out), Outcome::Failed(Failure::TooManyRounds));
    assert_eq!(started(&out), []);
}

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

/// I34: a checkpoint that the store refused is written again before anything starts, and one
/// that its fence stopped starts nothing.
#[test]
fn a_refused_checkpoint_is_written_again() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.asks_for(call, &[READY, READY]);
    let (first, order) = launch(&out);
    let report = LaunchReport::Refused(StoreError::Full);
    let out = b.hand(Input::Launched {
        ticket: first,
        report,
    });
    assert_eq!(out, []);
    let out = b.pass(S);
    let (second, again) = launch(&out);
    assert_ne!(first, second);
    assert_eq!((again.start, again.calls), (order.start, order.calls));
    let report = LaunchReport::Committed;
    let out = b.hand(Input::Launched {
        ticket: first,
        report,
    });
    assert_eq!(started(&out), [], "of an earlier order nothing is heard");
    let report = LaunchReport::Fenced;
    let out = b.hand(Input::Launched {
        ticket: second,
        report,
    });
    assert_eq!(started(&out), []);
    lookup_ticket(&out);
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

/// I33, P08: calls of a broken answer that can't start anyway have no results either.
#[test]
fn calls_of_a_broken_answer_have_no_results() {
    for silent in [false, true] {
        let mut b = Bench::new(Config::default());
        let call = b.start(1, 10);
        b.model(call, ModelFact::Call(CUT));
        let end = ModelFact::Ended(ModelEnd::Incomplete);
        match silent {
            true => b.pass(120 * S),
            false => b.model(call, end),
        };
        let out = b.pass(2 * S);
        assert_eq!(results(&out), []);
        let out = b.store(out);
        let out = b.asks_for(model_ticket(&out), &[READY]);
        assert_eq!(launch(&out).1.calls, 1);
    }
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

/// R20, L18: output is shown at once, then paced, and all of it before the end of its call.
#[test]
fn output_is_paced_and_whole_before_the_end() {
    let (mut b, first, second) = two_at_work();
    let out = b.tool(first, ToolFact::Output { to: 3 });
    assert_eq!(tool_events(&out), [("output", 0)]);
    let out = b.tool(second, ToolFact::Output { to: 5 });
    assert_eq!(out, []);
    let out = b.pass(75);
    assert_eq!(tool_events(&out), [("output", 1)]);
    for no_growth in [2, 3] {
        let out = b.tool(first, ToolFact::Output { to: no_growth });
        assert_eq!(out, []);
    }
    assert_eq!(b.core.counts().stale_tool, 2);
    b.tool(first, ToolFact::Output { to: 8 });
    let out = b.tool_ends(first, ToolEnd::Ok);
    assert_eq!(tool_events(&out), [("output", 0), ("end", 0)]);
}

/// P08, I35, P26: what steers into a run whose tools are at work is bound behind their results,
/// seen by the next model call, and answered with its turn; what was stopped meanwhile is not.
#[test]
fn a_message_steers_in_behind_the_results() {
    let mut b = Bench::new(Config::default());
    let out = b.chatted(1, 10, None);
    let out = b.asks_for(model_ticket(&out), &[READY]);
    let out = b.store(out);
    let tool = started(&out)[0];
    let placed = b.chatted(1, 11, None);
    assert_eq!(places(&placed), [Place::Steering { into: run(10) }]);
    b.chatted(1, 12, None);
    b.abort(1, Some(11));
    let out = b.tool_ends(tool, ToolEnd::Ok);
    assert_eq!(claims(&out), [(run(10), vec![run(12)])]);
    assert_eq!(results(&out), [(0, CallEnd::Ok)]);
    let out = b.store(out);
    let bound = |o: &Output| matches!(o, Output::Publish { run: r, event: Event::Bound { .. }, .. } if *r == run(12));
    assert!(has(&out, bound));
    let call = model_ticket(&out);
    let out = b.model(call, ModelFact::Structure);
    let seen = |o: &Output| matches!(o, Output::Publish { run: r, event: Event::Seen, .. } if *r == run(12));
    assert!(has(&out, seen));
    let again = |o: &Output| matches!(o, Output::Publish { run: r, event: Event::Seen, .. } if *r == run(10));
    assert!(!has(&out, again), "it was seen in its first call");
    let out = b.completed(call);
    let ended: BTreeSet<RunId> = ends(&out).iter().map(|end| end.run).collect();
    assert_eq!(ended, BTreeSet::from([run(10), run(12)]));
}

/// P26: a claim that was not written gives back what was to steer in, and the results are
/// written with the end.
#[test]
fn a_round_whose_next_claim_is_refused_keeps_its_results() {
    let mut b = Bench::new(Config::default());
    let out = b.chatted(1, 10, None);
    let out = b.asks_for(model_ticket(&out), &[READY]);
    let out = b.store(out);
    b.chatted(1, 11, None);
    let out = b.tool_ends(started(&out)[0], ToolEnd::Ok);
    let ticket = claim_ticket(&out);
    let report = ClaimReport::Refused(StoreError::Busy);
    b.hand(Input::Claimed { ticket, report });
    let out = b.pass(S);
    assert_eq!(results(&out), [(0, CallEnd::Ok)], "with the next try");
    let ticket = claim_ticket(&out);
    b.hand(Input::Claimed { ticket, report });
    let out = b.abort(1, Some(10));
    assert_eq!(outcome_of(&out), STOPPED);
    assert_eq!(results(&out), [(0, CallEnd::Ok)]);
    let out = b.store(out);
    assert!(claims(&out).contains(&(run(11), vec![])));
}

/// P16, I34, I37, R109: a model call that fails after tools is made again; its tools are not.
#[test]
fn a_failed_call_after_tools_repeats_no_tool() {
    let mut b = Bench::new(Config::default());
    let out = b.at_tools(1, 10, &[READY]);
    let out = b.tool_ends(started(&out)[0], ToolEnd::Ok);
    let out = b.store(out);
    let end = ModelEnd::Failed(ProviderError {
        status: Some(503),
        marker: Marker::None,
        retry_after: RetryAfter::Unsaid,
        detail: false,
    });
    b.model(model_ticket(&out), ModelFact::Ended(end));
    let out = b.pass(2 * S);
    assert_eq!(results(&out), [], "they are written");
    let out = b.store(out);
    assert_eq!(started(&out), []);
    model_ticket(&out);
}

/// P16: an answer that came after failed calls ends their outage: the next one has its own
/// window.
#[test]
fn an_answer_ends_the_outage_before_it() {
    let mut b = Bench::new(Config::default());
    let fails = ModelFact::Ended(ModelEnd::Incomplete);
    let mut call = b.start(1, 10);
    for _ in 0..4 {
        b.model(call, fails.clone());
        let out = b.pass(40 * S);
        let out = b.claim(&out);
        call = model_ticket(&out);
        let out = b.asks_for(call, &[UNKNOWN_TOOL]);
        let out = b.store(out);
        call = model_ticket(&out);
    }
}

/// S-08, P38: a call that finished while it asked for tools, and was never closed, has told no
/// call whole: it is made again, not taken for an answer.
#[test]
fn an_answer_that_hangs_while_it_asks_for_tools_is_none() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.model(call, ModelFact::Calling);
    b.model(call, ModelFact::Finished);
    let out = b.pass(60 * S);
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
    assert!(!has(&out, |o| matches!(o, Output::Settle { .. })));
    let out = b.pass(2 * S);
    claim_ticket(&out);
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

/// P36: output at the last moment leaves no deadline behind.
#[test]
fn output_right_before_the_end_leaves_no_deadline() {
    let mut b = Bench::new(Config::default());
    let out = b.at_tools(1, 10, &[READY]);
    let tool = started(&out)[0];
    b.tool(tool, ToolFact::Output { to: 3 });
    let out = b.tool_ends(tool, ToolEnd::Ok);
    let paced = b
        .core
        .armed()
        .filter(|it| matches!(it.timer, Timer::OutputPace(_)));
    assert_eq!(paced.count(), 0);
    let out = b.store(out);
    b.completed(model_ticket(&out));
    assert_eq!(b.core.armed().count(), 0);
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

/// P23: a run that an earlier life left in a round goes on with a claim that names no results:
/// the store knows best what is not known.
#[test]
fn a_reopened_run_names_no_results() {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let out = b.hand(Input::Resume {
        request,
        session: session(1),
    });
    let out = b.load_with(&out, vec![open_run(10, 3)]);
    assert_eq!(results(&out), []);
    assert_eq!(claim_ticket(&out).attempt, Attempt(4));
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

/// P16: silent calls count as silent in a row only if no answer came between them.
#[test]
fn an_answer_ends_the_silence_before_it() {
    let mut b = Bench::new(Config::default());
    let mut call = b.start(1, 10);
    for _ in 0..6 {
        let mut out = b.pass(120 * S);
        while !has(&out, |o| matches!(o, Output::Claim { .. })) {
            out = b.pass(40 * S);
        }
        let out = b.store(out);
        let out = b.asks_for(model_ticket(&out), &[UNKNOWN_TOOL]);
        let out = b.store(out);
        call = model_ticket(&out);
    }
    b.completed(call);
}

/// S-08, P38: the same, where the limit on silence is shorter than the tail.
#[test]
fn a_silent_answer_that_asks_for_tools_is_none() {
    let mut b = Bench::new(Config {
        provider: ProviderConfig {
            class: ProviderClass::Cloud,
            timeout_ms: Some(30 * S),
        },
        recovery: RecoveryConfig::at_most(0),
        ..Config::default()
    });
    let call = b.start(1, 10);
    b.model(call, ModelFact::Calling);
    b.model(call, ModelFact::Finished);
    b.pass(30 * S);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    let expected = Outcome::TimedOut {
        limit: Limit::Idle,
        provider_started: true,
    };
    assert_eq!(outcome_of(&out), expected);
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

/// One step of a walk: which of the open orders is reported on, and how.
type Step = (u8, u8, u64);

/// What is open: every order that will report, and every call that waits for a person.
#[derive(Default)]
struct Open {
    orders: Vec<Output>,
    asked: Vec<CallId>,
    starts: BTreeMap<Ticket, u32>,
    told: BTreeMap<CallId, (u32, u32)>,
}

impl Open {
    fn take(&mut self, out: Vec<Output>) {
        for order in out {
            match &order {
                Output::StartTool { ticket, .. } => {
                    *self.starts.entry(*ticket).or_default() += 1;
                    self.orders.push(order);
                }
                Output::Launch { .. }
                | Output::Claim { .. }
                | Output::Settle { .. }
                | Output::Lookup { .. }
                | Output::StartModel { .. } => self.orders.push(order),
                Output::Publish { event, .. } => match event {
                    Event::ToolAsked { call, .. } => self.asked.push(*call),
                    Event::ToolStart { call } => self.told.entry(*call).or_default().0 += 1,
                    Event::ToolEnd { call, .. } => self.told.entry(*call).or_default().1 += 1,
                    _ => {}
                },
                _ => {}
            }
        }
    }

    /// Reports on one of the open orders.
    fn step(&mut self, b: &mut Bench, (which, how, ms): Step) -> Vec<Output> {
        b.now += ms;
        if how % 8 == 7 && !self.asked.is_empty() {
            let call = self.asked[usize::from(which) % self.asked.len()];
            let allow = how < 128;
            let decision = if allow {
                Decision::AllowOnce
            } else {
                Decision::Deny
            };
            return b.decide(call, decision).1;
        }
        if self.orders.is_empty() {
            return b.hand(Input::Tick);
        }
        let order = self.orders.remove(usize::from(which) % self.orders.len());
        match order {
            Output::StartModel { ticket, .. } => {
                for kind in 0..how % 4 {
                    let facts = match kind {
                        0 => GUARDED,
                        1 => READY,
                        _ => UNKNOWN_TOOL,
                    };
                    let out = b.model(ticket, ModelFact::Call(facts));
                    self.take(out);
                }
                let end = if how >= 240 {
                    ModelEnd::Incomplete
                } else {
                    ModelEnd::Completed
                };
                b.model(ticket, ModelFact::Ended(end))
            }
            Output::StartTool { ticket, .. } => {
                let out = b.tool(
                    ticket,
                    ToolFact::Output {
                        to: u64::from(which),
                    },
                );
                self.take(out);
                let end = [ToolEnd::Ok, ToolEnd::Failed, ToolEnd::Cancelled];
                b.tool_ends(ticket, end[usize::from(how) % 3])
            }
            Output::Launch { ticket, .. } if how >= 200 => {
                let report = LaunchReport::Refused(StoreError::Busy);
                b.hand(Input::Launched { ticket, report })
            }
            Output::Claim { ticket, .. } if how >= 220 => {
                let report = ClaimReport::Refused(StoreError::Busy);
                b.hand(Input::Claimed { ticket, report })
            }
            order => match report_of(&order) {
                Some(report) => b.hand(report),
                None => Vec::new(),
            },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// I34, P02, R96, L2: whatever the tools, the store and the people do, and whenever somebody
    /// stops the run: no call starts twice, each that was told to start is told to end, once,
    /// and the run ends within its bounds.
    #[test]
    fn whatever_happens_a_call_starts_once_and_the_run_ends(
        steps in proptest::collection::vec((any::<u8>(), any::<u8>(), 0u64..3_000), 1..60),
        stop in proptest::option::of(0usize..60),
    ) {
        let tools = ToolsConfig { rounds_max: 6, approval_ms: 20_000, timeout_ms: 9_000, ..ToolsConfig::default() };
        let mut b = Bench::new(Config { tools, ..Config::default() });
        let mut open = Open::default();
        let out = b.submit(1, 10);
        let out = b.load(&out);
        let out = b.commit(&out);
        open.take(out);
        for (n, step) in steps.into_iter().enumerate() {
            if stop == Some(n) {
                let out = b.abort(1, Some(10));
                open.take(out);
            }
            let out = open.step(&mut b, step);
            open.take(out);
            let out = b.hand(Input::Tick);
            open.take(out);
        }
        // From here on all is well: the store takes all, tools end, models answer, nobody decides.
        for _ in 0..400 {
            let out = if open.orders.is_empty() { b.pass(30_000) } else { open.step(&mut b, (0, 0, 0)) };
            open.take(out);
        }
        prop_assert_eq!(b.core.live_runs(), 0);
        prop_assert!(open.starts.values().all(|&n| n == 1), "{:?}", open.starts);
        prop_assert!(open.told.values().all(|&told| told == (1, 1)), "{:?}", open.told);
    }
}
