//! Rounds of tools: what starts, when, what each call ends as, and who is told (spec 7).

mod bench;

use std::collections::BTreeSet;

use bench::*;
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
