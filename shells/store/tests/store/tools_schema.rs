//! States of tool calls that no row may hold, whatever the code above believes.

use rusqlite::Connection;
use tidegate_core::CallEnd;

use crate::kit::*;

/// The row that asks is 2, its calls are 0 and 1; row 3 is the end of the transcript.
const ASKING: &[(&str, &str)] = &[
    (
        "an ended call without a result",
        "UPDATE calls SET state = 'ended', ended_as = 'ok' WHERE call = 0",
    ),
    (
        "an ended call without an end",
        "UPDATE calls SET state = 'ended' WHERE call = 0",
    ),
    (
        "an end of an open call",
        "UPDATE calls SET ended_as = 'ok' WHERE call = 0",
    ),
    (
        "a state that no build knows",
        "UPDATE calls SET state = 'running'",
    ),
    (
        "an end that no build knows",
        "UPDATE calls SET state = 'ended', ended_as = 'fine'",
    ),
    (
        "a result of an open call",
        "INSERT INTO transcript (session, generation, seq, role, mark, run, turn, at, text, asks,
                                 call)
         SELECT session, generation, 3, 'tool', 'whole', run, run, 1, 'x', 2, 0 FROM calls
         WHERE call = 0",
    ),
    (
        "a call twice",
        "INSERT INTO calls SELECT session, generation, seq, call, run, attempt, 'x', name,
                                  arguments, state, ended_as FROM calls WHERE call = 0",
    ),
    (
        "a second answer of an attempt that asks",
        "INSERT INTO calls SELECT session, generation, 1, call, run, attempt, id, name,
                                  arguments, state, ended_as FROM calls WHERE call = 0",
    ),
    (
        "a call of no row",
        "INSERT INTO calls SELECT session, generation, 9, call, run, 9, id, name, arguments,
                                  state, ended_as FROM calls WHERE call = 0",
    ),
    (
        "an answer that asks for nothing",
        "INSERT INTO transcript (session, generation, seq, role, mark, run, turn, at, text)
         SELECT session, generation, 3, 'assistant', 'calls', run, run, 1, 'x' FROM calls
         WHERE call = 0",
    ),
    ("an answer without its calls", "DELETE FROM calls"),
    (
        "a call of nobody's run",
        "UPDATE calls SET run = zeroblob(16) WHERE call = 0",
    ),
    (
        "a user's row that asks",
        "UPDATE transcript SET mark = 'calls' WHERE seq = 1",
    ),
];

/// Row 3 is the result of call 0, row 4 that of call 1.
const ANSWERED: &[(&str, &str)] = &[
    (
        "a second result",
        "INSERT INTO transcript (session, generation, seq, role, mark, run, turn, at, text, asks,
                                 call)
         SELECT session, generation, 5, role, mark, run, turn, at, text, asks, call
         FROM transcript WHERE seq = 3",
    ),
    (
        "a result of another place",
        "UPDATE transcript SET seq = 5 WHERE seq = 4",
    ),
    (
        "an ended call that opens again",
        "UPDATE calls SET state = 'launched', ended_as = NULL WHERE call = 0",
    ),
    (
        "a result that is taken away",
        "DELETE FROM transcript WHERE seq = 3",
    ),
    (
        "a result of nothing",
        "UPDATE transcript SET asks = NULL, call = NULL WHERE seq = 3",
    ),
    (
        "a result of another run",
        "UPDATE transcript SET run = other.run, turn = other.run
         FROM (SELECT run FROM inbox WHERE run_key = 'run-8') AS other WHERE seq = 3",
    ),
    (
        "a partial result",
        "UPDATE transcript SET mark = 'partial' WHERE seq = 3",
    ),
    (
        "an assistant's row that answers a call",
        "UPDATE transcript SET role = 'assistant' WHERE seq = 3",
    ),
];

fn none_is_written(sql: &Connection, illegal: &[(&str, &str)]) {
    for (what, statement) in illegal {
        let written = sql.execute(statement, []);
        assert!(written.is_err(), "{what} was written: {written:?}");
        let why = written.expect_err("just seen").to_string();
        assert!(why.contains("constraint failed"), "{what}: {why}");
    }
}

/// P08, I24, I34, law 3: one end and one result for each call, in its place, and no other.
#[test]
fn illegal_states_of_calls_do_not_fit_the_schema() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.accept(1, 8);
    kit.launch(fence(1, 7, 1), 2, &[0], &[1]);
    none_is_written(&kit.raw(), ASKING);
    let ends = [(0, CallEnd::Ok), (1, CallEnd::Denied)];
    assert_eq!(kit.claim_with(fence(1, 7, 2), &ends), CLAIMED);
    none_is_written(&kit.raw(), ANSWERED);
    assert_eq!(kit.lines(1).len(), 4);
}

/// R54: a run has one reply, and an answer that asks for calls is none.
#[test]
fn answers_that_ask_are_not_the_reply_of_their_run() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    for attempt in 1..=3 {
        kit.launch(fence(1, 7, attempt), 1, &[0], &[]);
        let next = fence(1, 7, attempt + 1);
        assert_eq!(kit.claim_with(next, &[(0, CallEnd::Ok)]), CLAIMED);
    }
    kit.settle(
        (1, 7, 4),
        tidegate_core::Outcome::Completed,
        reply("the reply"),
    );
    assert_eq!(kit.lookup(7).1, reply("the reply"));
    let second = kit.raw().execute(
        "INSERT INTO transcript (session, generation, seq, role, mark, run, turn, at, text)
         SELECT session, generation, 99, role, mark, run, turn, at, text
         FROM transcript WHERE mark = 'whole' AND role = 'assistant'",
        [],
    );
    second.expect_err("a second reply");
}

/// I24: the results of an answer stand in the order of its calls.
#[test]
fn results_in_another_order_do_not_fit_the_schema() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    kit.launch(fence(1, 7, 1), 2, &[0, 1], &[]);
    let sql = kit.raw();
    let write = |seq: &str| {
        sql.execute_batch(&format!(
            "BEGIN;
             INSERT INTO transcript (session, generation, seq, role, mark, run, turn, at, text,
                                     asks, call)
                 SELECT session, generation, {seq}, 'tool', 'whole', run, run, 1, 'x', 2, call
                 FROM calls;
             UPDATE calls SET state = 'ended', ended_as = 'ok';
             COMMIT;"
        ))
    };
    let why = write("4 - call").expect_err("swapped").to_string();
    assert!(why.contains("seq = asks + 1 + call"), "{why}");
    sql.execute_batch("ROLLBACK").expect("it is open");
    write("3 + call").expect("in their order they fit");
}
