//! Tool calls: the checkpoint that starts them, and the one result that each gets.

use tidegate_core::{
    Attempt, CallEnd, Claim, ClaimReport, Fence, Generation, LaunchReport, LookupReport, Outcome,
    Reply, ResetReport, SettleReport, StopReason, StoreError, Wall,
};
use tidegate_driver::{HISTORY_MAX_BYTES, RowMark, StoreOp, StoredText, ToolAnswer};

use crate::kit::*;

const REFUSED_LAUNCH: LaunchReport = LaunchReport::Refused(StoreError::Io);
const REFUSED_CLAIM: ClaimReport = ClaimReport::Refused(StoreError::Io);
const REFUSED_SETTLE: SettleReport = SettleReport::Refused(StoreError::Io);
const OK: CallEnd = CallEnd::Ok;

/// Run 7 of session 1 at attempt 1, whose answer asks for three calls: the first may start,
/// the second waits for a person, the third is only asked for.
fn three_calls(kit: &mut Kit) {
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "as");
    assert_eq!(kit.launch(fence(1, 7, 1), 3, &[0], &[1]), LAUNCHED);
}

/// The states of all calls, in the order of their answers.
fn states(kit: &Kit) -> Vec<String> {
    let sql = kit.raw();
    let mut read = sql
        .prepare("SELECT state FROM calls ORDER BY attempt, call")
        .expect("a table");
    let rows = read.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("words")
}

const ASKED: [&str; 2] = [
    "1 user whole run-7: message 7",
    "2 assistant calls run-7: asks",
];

fn after_asking<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ASKED[..], more].concat()
}

/// I34, law 12: the answer and the states of its calls are one row and its calls, and replace
/// what was saved of the answer while it streamed.
#[test]
fn a_checkpoint_writes_the_answer_with_its_calls() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    assert_eq!(kit.lines(1), ASKED);
    assert_eq!(states(&kit), ["launched", "asked", "requested"]);
    let row = kit.transcript(1).remove(1);
    assert_eq!((row.mark, row.at), (RowMark::Calls, Wall(400)));
    assert_eq!(row.calls, calls(3));
    assert_eq!(row.answers, None);
    let pieces: i64 = kit
        .raw()
        .query_row("SELECT count(*) FROM partial", [], |row| row.get(0))
        .expect("a table");
    assert_eq!(pieces, 0, "one owner per fact");
    assert_eq!(kit.open_runs(1)[0].attempt, Attempt(1));
}

/// P08, I24: the next attempt's claim writes each result once, directly behind the answer and
/// before all others of that claim.
#[test]
fn the_results_stand_directly_behind_the_answer_that_asks() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    kit.accept(1, 8);
    kit.drop_waiting(1, 8, tidegate_core::DropPolicy::Old);
    let ends = [(0, OK), (1, CallEnd::Denied), (2, CallEnd::NoSuchTool)];
    assert_eq!(kit.claim_with(fence(1, 7, 2), &ends), CLAIMED);
    let mut lines = after_asking(&[
        "3 tool c0 Ok run-7: out 0",
        "4 tool c1 Denied run-7: out 1",
        "5 tool c2 NoSuchTool run-7: out 2",
        "6 user dropped run-8: message 8",
    ]);
    assert_eq!(kit.lines(1), lines);
    let answer = ToolAnswer {
        id: "c1".into(),
        name: "exec".into(),
        end: CallEnd::Denied,
    };
    let row = kit.transcript(1).remove(3);
    assert_eq!((row.answers, row.at), (Some(answer), Wall(500)));
    assert!(row.calls.is_empty());
    assert_eq!(kit.launch(fence(1, 7, 2), 1, &[0], &[]), LAUNCHED);
    assert_eq!(kit.claim_with(fence(1, 7, 3), &[(0, OK)]), CLAIMED);
    let end = kit.settle((1, 7, 3), Outcome::Completed, reply("done"));
    assert_eq!(end, SettleReport::Committed);
    lines.extend([
        "7 assistant calls run-7: asks",
        "8 tool c0 Ok run-7: out 0",
        "9 assistant whole run-7: done",
    ]);
    assert_eq!(kit.lines(1), lines);
    assert_eq!(kit.lookup(7).1, reply("done"));
}

/// Every way in which a call can end is kept as it was.
#[test]
fn each_end_of_a_call_is_told_as_it_was_written() {
    let ends = [
        CallEnd::Ok,
        CallEnd::Failed,
        CallEnd::TimedOut,
        CallEnd::Cancelled,
        CallEnd::Unknown,
        CallEnd::Skipped,
        CallEnd::NoSuchTool,
        CallEnd::BadArguments,
        CallEnd::Denied,
        CallEnd::Expired,
        CallEnd::Stale,
    ];
    let mut kit = Kit::new();
    kit.start(1, 7);
    let all: Vec<u16> = (0..11).collect();
    kit.launch(fence(1, 7, 1), 11, &all, &[]);
    let named: Vec<_> = (0..).zip(ends).collect();
    assert_eq!(kit.claim_with(fence(1, 7, 2), &named), CLAIMED);
    let rows = kit.transcript(1);
    let told: Vec<_> = rows.iter().filter_map(|row| row.answers.as_ref()).collect();
    assert!(told.iter().map(|answer| answer.end).eq(ends), "{told:?}");
}

/// Spec 7.3: a person allows what waited; the second checkpoint of the answer only moves that
/// call on, and the same order again changes nothing.
#[test]
fn an_approval_moves_its_call_on() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    for _ in 0..2 {
        assert_eq!(kit.launch(fence(1, 7, 1), 3, &[1], &[]), LAUNCHED);
        assert_eq!(states(&kit), ["launched", "launched", "requested"]);
    }
    assert_eq!(kit.lines(1), ASKED);
    assert_eq!(kit.launch(fence(1, 7, 1), 3, &[], &[1]), REFUSED_LAUNCH);
    assert_eq!(kit.launch(fence(1, 7, 1), 2, &[1], &[]), REFUSED_LAUNCH);
    assert_eq!(states(&kit), ["launched", "launched", "requested"]);
}

/// I34: a checkpoint that was refused, or whose report was lost, is made again as it was.
#[test]
fn a_repeated_checkpoint_changes_nothing() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    assert_eq!(kit.launch(fence(1, 7, 1), 3, &[0], &[1]), LAUNCHED);
    assert_eq!(kit.lines(1), ASKED);
    assert_eq!(states(&kit), ["launched", "asked", "requested"]);
}

/// P07, R54: who is not the writer starts nothing.
#[test]
fn a_checkpoint_whose_fence_does_not_hold_writes_nothing() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.accept(1, 8);
    let other = Fence {
        generation: Generation(2),
        ..fence(1, 7, 1)
    };
    for fence in [fence(1, 7, 2), fence(1, 8, 0), fence(2, 7, 1), other] {
        let report = kit.launch(fence, 1, &[0], &[]);
        assert_eq!(report, LaunchReport::Fenced, "{fence:?}");
    }
    let mut passed = kit.launch_op(fence(1, 7, 1), 1, &[0], &[]);
    if let StoreOp::Launch { epoch, .. } = &mut passed {
        epoch.0 -= 1;
    }
    assert_eq!(launched(&kit.one(passed)), LaunchReport::NotOwner);
    kit.complete(1, 7, "done");
    let late = kit.launch(fence(1, 7, 1), 1, &[0], &[]);
    assert_eq!(late, LaunchReport::Fenced, "an end is an end");
    assert!(states(&kit).is_empty());
}

/// I34, law 10: an order that contradicts itself is refused, and writes nothing.
#[test]
fn a_checkpoint_that_contradicts_itself_is_refused() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.save(fence(1, 7, 1), 0, "as");
    let at = fence(1, 7, 1);
    assert_eq!(kit.launch(at, 0, &[], &[]), REFUSED_LAUNCH);
    assert_eq!(kit.launch(at, 2, &[1, 0], &[]), REFUSED_LAUNCH);
    assert_eq!(kit.launch(at, 2, &[1, 1], &[]), REFUSED_LAUNCH);
    assert_eq!(kit.launch(at, 2, &[2], &[]), REFUSED_LAUNCH);
    assert_eq!(kit.launch(at, 2, &[], &[2]), REFUSED_LAUNCH);
    assert_eq!(kit.launch(at, 2, &[0], &[0]), REFUSED_LAUNCH);
    let mut other_text = kit.launch_op(at, 1, &[0], &[]);
    if let StoreOp::Launch { text, .. } = &mut other_text {
        text.push('x');
    }
    assert_eq!(launched(&kit.one(other_text)), REFUSED_LAUNCH);
    let mut one_less = kit.launch_op(at, 2, &[0], &[]);
    if let StoreOp::Launch { calls, .. } = &mut one_less {
        calls.pop();
    }
    assert_eq!(launched(&kit.one(one_less)), REFUSED_LAUNCH);
    assert_eq!(kit.lines(1), ["1 user whole run-7: message 7"]);
    assert_eq!(kit.save(at, 2, "ks"), Some(4), "the pieces are there");
}

/// P08, I24, I34, law 12: after a crash each call has one result that says how far it came; a
/// call that may have run is not known, and a question that was open is void.
#[test]
fn a_crash_in_a_round_of_tools_leaves_no_call_without_a_result() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    let mut after = kit.crashed();
    assert_eq!(after.open_runs(1)[0].attempt, Attempt(1), "as any open run");
    assert_eq!(states(&after), ["launched", "asked", "requested"]);
    assert_eq!(after.claim(1, 7, 2), CLAIMED);
    let lines = after_asking(&[
        "3 tool c0 Unknown run-7: ",
        "4 tool c1 Stale run-7: ",
        "5 tool c2 Skipped run-7: ",
    ]);
    assert_eq!(after.lines(1), lines);
    assert_eq!(states(&after), ["ended"; 3]);
    let mut second = after.crashed();
    assert_eq!(second.claim(1, 7, 3), CLAIMED);
    assert_eq!(second.lines(1), lines, "a second crash adds nothing");
    let void = second.launch(fence(1, 7, 1), 3, &[1], &[]);
    assert_eq!(void, LaunchReport::Fenced, "nobody allows it any more");
}

/// P08: a claim that knows the ends of some calls only lets the store say what is left.
#[test]
fn calls_that_an_order_does_not_name_are_closed_by_how_far_they_came() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    assert_eq!(
        kit.claim_with(fence(1, 7, 2), &[(1, CallEnd::Expired)]),
        CLAIMED
    );
    let lines = after_asking(&[
        "3 tool c0 Unknown run-7: ",
        "4 tool c1 Expired run-7: out 1",
        "5 tool c2 Skipped run-7: ",
    ]);
    assert_eq!(kit.lines(1), lines);
}

/// P08, R54, P40: whoever takes the session away closes the writer's calls, and the receipt
/// knows of no reply: the answer that asked is none.
#[test]
fn a_superseded_writer_leaves_no_open_call() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    kit.accept(1, 8);
    let ClaimReport::Committed(Claim {
        superseded: Some(end),
    }) = kit.claim(1, 8, 1)
    else {
        panic!("run 7 was open");
    };
    assert_eq!(end.reply, Reply::Empty);
    assert_eq!(
        kit.lookup(7),
        (LookupReport::Ended(end), StoredText::default())
    );
    let lines = after_asking(&[
        "3 tool c0 Unknown run-7: ",
        "4 tool c1 Stale run-7: ",
        "5 tool c2 Skipped run-7: ",
        "6 user whole run-8: message 8",
    ]);
    assert_eq!(kit.lines(1), lines);
    let late = kit.launch(fence(1, 7, 1), 3, &[1], &[]);
    assert_eq!(late, LaunchReport::Fenced);
}

/// P08, P18, I12: a reset closes what is open in the generation that ends, before its other
/// rows.
#[test]
fn a_reset_closes_open_calls_in_the_generation_that_ends() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    kit.accept(1, 8);
    kit.drop_waiting(1, 8, tidegate_core::DropPolicy::Summarize);
    let ResetReport::Committed { ended, .. } = kit.reset(1, 1) else {
        panic!("the lease holds");
    };
    assert_eq!(ended.len(), 1);
    assert!(kit.lines(1).is_empty());
    let sql = kit.raw();
    let mut read = sql
        .prepare(
            "SELECT t.seq || ' ' || t.role || ' ' || coalesce(c.ended_as, t.mark)
             FROM transcript t LEFT JOIN calls c ON c.result = t.seq
             WHERE t.generation = 1 ORDER BY t.seq",
        )
        .expect("tables");
    let rows = read.query_map([], |row| row.get(0)).expect("rows");
    let rows: Vec<String> = rows.collect::<Result<_, _>>().expect("words");
    let expected = [
        "1 user whole",
        "2 assistant calls",
        "3 tool unknown",
        "4 tool stale",
        "5 tool skipped",
        "6 user summarized",
    ];
    assert_eq!(rows, expected);
}

/// P08, R96: a run that is stopped in a round of tools ends with the results that it knows.
#[test]
fn an_end_brings_the_results_of_its_calls() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    let stopped = Outcome::Cancelled {
        by: StopReason::Rpc,
        provider_started: true,
    };
    let ends = [
        (0, CallEnd::Cancelled),
        (1, CallEnd::Skipped),
        (2, CallEnd::Skipped),
    ];
    let end = kit.settle_with((1, 7, 1), stopped, StoredText::default(), &ends);
    assert_eq!(end, SettleReport::Committed);
    let lines = after_asking(&[
        "3 tool c0 Cancelled run-7: out 0",
        "4 tool c1 Skipped run-7: out 1",
        "5 tool c2 Skipped run-7: out 2",
    ]);
    assert_eq!(kit.lines(1), lines);
    assert_eq!(kit.lookup(7).1, StoredText::default());
}

/// P08: a run that ends after a restart, before its next claim, leaves no call open; and the
/// results stand before the reply.
#[test]
fn an_end_without_results_closes_what_is_open() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    kit.reopen();
    let end = kit.settle((1, 7, 1), FAILED, reply("why"));
    assert_eq!(end, SettleReport::Committed);
    let lines = after_asking(&[
        "3 tool c0 Unknown run-7: ",
        "4 tool c1 Stale run-7: ",
        "5 tool c2 Skipped run-7: ",
        "6 assistant partial run-7: why",
    ]);
    assert_eq!(kit.lines(1), lines);
    assert_eq!(kit.lookup(7).1, reply("why"));
}

/// I24, I34, law 10: results that contradict what is stored refuse their order as a whole.
#[test]
fn results_that_contradict_what_is_stored_are_refused() {
    let mut kit = Kit::new();
    three_calls(&mut kit);
    let skipped = CallEnd::Skipped;
    let wrong: [&[(u16, CallEnd)]; 5] = [
        &[(3, skipped)],
        &[(1, skipped), (0, OK)],
        &[(0, OK), (0, OK)],
        &[(1, OK)],
        &[(2, CallEnd::Unknown)],
    ];
    let none = StoredText::default;
    for ends in wrong {
        let claim = kit.claim_with(fence(1, 7, 2), ends);
        assert_eq!(claim, REFUSED_CLAIM, "{ends:?}");
        let end = kit.settle_with((1, 7, 1), FAILED, none(), ends);
        assert_eq!(end, REFUSED_SETTLE, "{ends:?}");
    }
    let epoch = kit.epoch();
    let (results, _) = results(&[(0, OK)]);
    let no_output = StoreOp::Claim {
        fence: fence(1, 7, 2),
        epoch,
        claim: tidegate_core::ClaimOrder {
            results,
            ..order(2, None, 500)
        },
        outputs: Vec::new(),
    };
    assert_eq!(claimed(&kit.one(no_output)), REFUSED_CLAIM);
    assert_eq!(kit.lines(1), ASKED);
    assert_eq!(states(&kit), ["launched", "asked", "requested"]);
    assert_eq!(kit.claim_with(fence(1, 7, 2), &[(0, OK)]), CLAIMED);
    let again = kit.claim_with(fence(1, 7, 3), &[(0, OK)]);
    assert_eq!(again, REFUSED_CLAIM, "a call has one result");
    kit.accept(1, 8);
    assert_eq!(kit.claim_with(fence(1, 8, 1), &[(0, OK)]), REFUSED_CLAIM);
    let end = kit.settle_with((1, 8, 0), FAILED, none(), &[(0, OK)]);
    assert_eq!(end, REFUSED_SETTLE, "it never claimed");
}

/// B-082, R164: the first checkpoint proves the run to have been at work until then; a later
/// one does not charge the wait for a person.
#[test]
fn the_wait_for_a_person_is_not_charged_to_the_budget() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    assert_eq!(kit.launch(fence(1, 7, 1), 3, &[0], &[1]), LAUNCHED);
    assert_eq!(kit.open_runs(1)[0].left_ms, Some(9_800));
    let mut later = kit.launch_op(fence(1, 7, 1), 3, &[1], &[]);
    if let StoreOp::Launch { launch, .. } = &mut later {
        launch.at = Wall(5_000);
    }
    assert_eq!(launched(&kit.one(later)), LAUNCHED);
    assert_eq!(kit.open_runs(1)[0].left_ms, Some(9_800));
    assert_eq!(kit.sessions(1)[0].updated_at, Wall(5_000));
}

/// Law 9: arguments and outputs count among the bytes of a history.
#[test]
fn a_history_counts_arguments_and_outputs() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    let half = "x".repeat(usize::try_from(HISTORY_MAX_BYTES).expect("it fits") / 2);
    let mut large = kit.launch_op(fence(1, 7, 1), 1, &[0], &[]);
    if let StoreOp::Launch { calls, .. } = &mut large {
        calls[0].arguments = half.clone();
    }
    kit.one(large);
    let (results, _) = results(&[(0, OK)]);
    let epoch = kit.epoch();
    kit.one(StoreOp::Claim {
        fence: fence(1, 7, 2),
        epoch,
        claim: tidegate_core::ClaimOrder {
            results,
            ..order(2, None, 500)
        },
        outputs: vec![half],
    });
    let seqs = |kit: &mut Kit, after| -> Vec<u64> {
        let history = kit.history(1, after, u32::MAX);
        history.rows.iter().map(|row| row.seq).collect()
    };
    assert_eq!(seqs(&mut kit, None), [3]);
    assert_eq!(seqs(&mut kit, Some(0)), [1, 2]);
    let answers = kit.history(1, None, 1).rows.remove(0).answers;
    assert_eq!(answers.map(|answer| answer.end), Some(OK));
    let asks = kit.history(1, Some(1), 1).rows.remove(0);
    assert_eq!(asks.calls.len(), 1);
}
