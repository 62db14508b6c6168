//! What a scenario's text may say, and how a wrong one is refused.

use tidegate_sim::Code;
use tidegate_sim::scenario::{Found, Outcome, RunOptions, bless, parse, run};

fn outcome(text: &str) -> Outcome {
    let scenario = parse(text, "test").unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, &RunOptions::default())
}

/// The head of each message, from its line on: `line:column: …`.
fn refused(text: &str) -> String {
    let error = parse(text, "a.scenario").expect_err(text);
    assert_eq!(error.file, "a.scenario");
    let told = error.to_string();
    told.strip_prefix("a.scenario:")
        .expect("the file comes first")
        .to_owned()
}

const SENT: &str = "at 0s alice sends m1 to A\n";

/// A wrong text, how its message begins, and what it also says.
const WRONG: &[(&str, &str, &str)] = &[
    ("cofnig", "1:1: ", "did you mean `config`?"),
    (
        "config\n  lane.cpa 3",
        "2:3: expected a setting: ",
        "did you mean `lane.cap`?",
    ),
    (
        "config\n  lane.cap many",
        "2:12: expected a number, found `many`",
        "",
    ),
    (
        "config\n  lane.cap",
        "2:11: expected a number, found the end of the line",
        "",
    ),
    (
        "config\n  lane.grace 30",
        "2:14: expected a time with its unit",
        "found `30`",
    ),
    (
        "config\n  provider.class clod",
        "2:18: ",
        "did you mean `cloud`?",
    ),
    (
        "config\n  agent.budget 0s",
        "2:16: expected a time above 0, or `unlimited`",
        "",
    ),
    (
        "config\n  lane.cap 2 3",
        "2:14: expected the end of the line, found `3`",
        "",
    ),
    ("  alice leaves", "1:3: an indented line belongs to", ""),
    (
        "at 5 alice leaves",
        "1:4: expected a time with its unit",
        "found `5`",
    ),
    (
        "at 5s alice leaves\nat 4s bob leaves",
        "2:4: expected a time that is not before",
        "",
    ),
    (
        "at 0s alice snds m1 to A",
        "1:13: expected step, here `sends`",
        "did you mean `sends`?",
    ),
    ("at 0s alice sends m1 too A", "1:22: ", "did you mean `to`?"),
    (
        "at 0s alice sends m1 to A with budget 5",
        "1:39: expected a time with its unit",
        "",
    ),
    (
        "at 0s alice sends m1 to A\n  alice waits for m2",
        "2:3: no message is called `m2`",
        "did you mean `m1`?",
    ),
    (
        "at 0s alice sends m1 to A\n  model answers m1: calls c1, then completes\n  bob allows c2",
        "3:3: no call is called `c2`",
        "did you mean `c1`?",
    ),
    (
        "at 0s alice sends m1 to A\n  model answers m1: calls c1, calls c1, then completes",
        "2:3: `c1` is asked for twice",
        "",
    ),
    (
        "at 0s alice sends m1 to A\n  model answers m1: calls unknown, then completes",
        "2:3: `unknown` is the name of a call that nobody asks for",
        "",
    ),
    (
        "at 0s alice sends m1 to A\n  model on cancel of m1: calls c1, then completes",
        "2:3: a call that is stopped asks for nothing",
        "",
    ),
    (
        "at 0s alice sends m1 to A\n  tool rnus c1: succeeds",
        "2:8: expected `runs` or `on cancel of`",
        "did you mean `runs`?",
    ),
    (
        "at 0s alice sends m1 to A\n  tool runs c1: 2 outputs",
        "2:26: expected `, then` and how it ends",
        "",
    ),
    (
        "at 0s alice sends m1 to A\n  tool runs c1: suceeds",
        "2:17: ",
        "did you mean `succeeds`?",
    ),
    (
        "at 0s alice sends m1 to A\n  bob sends m1 to A",
        "2:3: `m1` is sent twice",
        "",
    ),
    (
        "at 0s modle answers m1: refuses",
        "1:7: ",
        "did you mean `model`?",
    ),
    (
        "at 0s model answer m1: refuses",
        "1:13: expected `answers`",
        "did you mean `answers`?",
    ),
    (
        "at 0s model answers m1: 2 chunks",
        "1:33: expected `, then` and how it ends",
        "",
    ),
    (
        "at 0s model answers m1: begins, then complets",
        "1:38: ",
        "did you mean `completes`?",
    ),
    (
        "at 0s model answers m1: completes, 2 chunks",
        "1:34: expected the end of the answer",
        "",
    ),
    (
        "at 0s model answers m1: fails with status 42",
        "1:43: expected an HTTP status",
        "",
    ),
    (
        "config\n  fallbacks cloud, clod",
        "2:20: ",
        "did you mean `cloud`?",
    ),
    (
        "config\n  fallbacks cloud fast",
        "2:19: expected a time with its unit",
        "",
    ),
    (
        "at 0s fallback 0 answers m1: refuses",
        "1:16: expected which fallback, from 1",
        "",
    ),
    (
        "at 0s fallback 1 answer m1: refuses",
        "1:18: expected `answers`",
        "did you mean `answers`?",
    ),
    (
        "at 0s alice sends m1 to A\n  fallback 1 answers m1: refuses",
        "2:3: there is no fallback 1: the setting `fallbacks` names 0",
        "",
    ),
    (
        "at 0s store is ful for 5s",
        "1:16: ",
        "did you mean `full`?",
    ),
    (
        "at 0s process crashs, starts again after 5s",
        "1:15: ",
        "did you mean `crashes`?",
    ),
    (
        "at 0s clock jumps 1h",
        "1:19: expected a sign and a time",
        "",
    ),
    (
        "at 0s alice says m1 to A by stear",
        "1:29: expected a queue mode",
        "did you mean `steer`?",
    ),
    (
        "at 0s alice says m1 to A with lane crom",
        "1:36: expected a lane",
        "did you mean `cron`?",
    ),
    (
        "at 0s alice says m1 to A with bugdet 5s",
        "1:31: expected `budget`, `lane` or `priority`",
        "did you mean `budget`?",
    ),
    ("at 0s alice sends m1 to A by steer", "1:27: ", "found `by`"),
    (
        "at 0s alice says m1 to A\n  alice lets A queue by collect, debounc 2s",
        "2:34: ",
        "did you mean `debounce`?",
    ),
    (
        "at 0s alice says m1 to A\n  alice resets B",
        "2:3: no session is called `B`; there are: A",
        "",
    ),
    (
        "config\n  queue.drop oldest",
        "2:14: expected a drop policy",
        "",
    ),
    (
        "fault lane-release-los",
        "1:7: ",
        "did you mean `lane-release-lost`?",
    ),
    (
        "fault end-twice, at occasion 0",
        "1:30: expected a number from 1",
        "",
    ),
];

#[test]
fn a_wrong_scenario_is_refused_with_its_place_and_the_nearest_name() {
    for &(text, head, tail) in WRONG {
        let told = refused(text);
        assert!(told.starts_with(head), "{text:?}: {told}");
        assert!(told.contains(tail), "{text:?}: {told}");
    }
}

/// A wrong second line, how its message begins, and what it also says.
const WRONG_EXPECTATIONS: &[(&str, &str, &str)] = &[
    (
        "expect sometimes m1 ends",
        "2:8: expected `at`, `by`, `finally` or `violation`",
        "",
    ),
    ("expect finaly m1 ends", "2:8: ", "did you mean `finally`?"),
    (
        "expect at 5 m1 ends",
        "2:11: expected a time with its unit",
        "",
    ),
    (
        "expect at 9s..5s m1 ends",
        "2:11: ",
        "two with `..` between them",
    ),
    (
        "expect finally m1 ended once as canceled",
        "2:33: ",
        "did you mean `cancelled`?",
    ),
    (
        "expect finally m1 ended once as timed out (idel)",
        "2:43: ",
        "did you mean `timed out (idle)`?",
    ),
    (
        "expect finally m7 ended once",
        "2:1: no message is called `m7`",
        "did you mean `m1`?",
    ),
    (
        "expect finally alcie is told m1: accepted",
        "2:1: no client is called `alcie`",
        "did you mean `alice`?",
    ),
    (
        "expect finally alice is told m1: acepted",
        "2:34: ",
        "did you mean `accepted`?",
    ),
    (
        "expect finally transcript of B is: empty",
        "2:1: no session is called `B`",
        "there are: A",
    ),
    (
        "expect finally transcript of A is: usr m1",
        "2:36: ",
        "did you mean `user`?",
    ),
    (
        "expect at 5s m1 ended once",
        "2:14: ",
        "this can only be expected `finally`",
    ),
    (
        "expect violation two-activ",
        "2:18: ",
        "did you mean `two-active`?",
    ),
    ("never, unless crshed m1 ends", "2:6: ", ""),
];

#[test]
fn a_wrong_expectation_is_refused_with_its_place_and_the_nearest_name() {
    for &(line, head, tail) in WRONG_EXPECTATIONS {
        let told = refused(&format!("{SENT}{line}"));
        assert!(told.starts_with(head), "{line:?}: {told}");
        assert!(told.contains(tail), "{line:?}: {told}");
    }
}

/// The words of the failures.
fn failures(text: &str) -> String {
    let failures = outcome(text).failures;
    let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
    told.join("\n")
}

#[test]
fn an_expectation_on_a_call_that_does_not_come_says_what_came_instead() {
    let script = "at 0s alice says m1 to A\n\
        \x20 model answers m1: begins, calls guarded c1, calls c2, then completes\n\
        \x20 model answers m1: begins, 1 chunks, then completes\n\
        at 10s alice denies c1\n";
    for (expected, instead) in [
        (
            "expect at 10s c1 comes to expired",
            "it came to denied at 10s",
        ),
        ("expect finally c2 came once to failed", "it came to ok"),
        ("expect finally c2 never ran", "it ran 1 times"),
        (
            "expect at 10s alice is told c1: allowed",
            "told denied at 10s",
        ),
        ("never c2 runs", "it happened at 0s"),
        (
            "expect finally transcript of A is: user m1",
            "assistant m1 calls, result c1 denied, result c2 ok, assistant m1 whole",
        ),
    ] {
        let told = failures(&format!("{script}{expected}\n"));
        assert!(told.contains(instead), "{expected}: {told}");
    }
}

#[test]
fn an_expectation_that_does_not_come_says_what_came_instead() {
    let table = [
        (
            "expect at 5s m1 ends",
            "line 2: expected at 5s: m1 ends; it ended as completed at 20ms",
        ),
        ("expect at 1s..2s m1 is accepted", "it happened at 0s"),
        (
            "never m1 starts",
            "not expected: m1 starts; it happened at 0s",
        ),
        (
            "expect by 10ms m1 ends",
            "expected by 10ms: m1 ends; it ended as completed at 20ms",
        ),
        (
            "expect finally m1 ended once as cancelled",
            "it ended as completed, told 1 times",
        ),
        ("expect finally m1 waits", "it was never so"),
        (
            "expect finally the model was called 2 times for m1",
            "it was called 1 times",
        ),
        (
            "expect finally transcript of A is: empty",
            "it is: user m1, assistant m1 whole",
        ),
        (
            "expect finally alice is told m1: refused (busy)",
            "told accepted at 0s, told completed",
        ),
        (
            "expect violation two-active",
            "expected violation two-active, found none",
        ),
        (
            "never at 0s..5ms m1 starts",
            "not expected at 0s..5ms: m1 starts; it happened at 0s",
        ),
        (
            "never more than 0 runs at work",
            "it was so from 0s to 20ms",
        ),
    ];
    for (line, why) in table {
        let told = failures(&format!("{SENT}{line}"));
        assert!(told.contains(why), "{line:?}: {told}");
    }
    assert_eq!(
        failures(&format!(
            "{SENT}expect at 0s..1s m1 ends\nnever m1 waits\nnever at 1ms..5s m1 starts"
        )),
        ""
    );
}

#[test]
fn a_planted_fault_is_found_where_it_is_expected_and_told_where_it_is_not() {
    let planted = format!("fault end-twice\n{SENT}");
    assert_eq!(
        failures(&format!("{planted}expect violation end-twice")),
        ""
    );
    let told = outcome(&planted).failures;
    let found = told.first().map(|failure| failure.found.clone());
    assert!(
        matches!(found, Some(Found::Violation(v)) if v.code == Code::EndTwice),
        "{told:?}"
    );
    let later = format!("fault end-twice, at occasion 2\n{SENT}");
    assert_eq!(failures(&later), "", "there is one occasion only");
}

#[test]
fn steps_in_any_order_are_run_in_every_order() {
    let text =
        "at 0s in any order\n  alice sends m1 to A\n  bob sends m2 to A\n  carol sends m3 to A\n";
    let all = outcome(text);
    assert_eq!((all.orders, all.orders_cut), (6, false));
    let one = failures(&format!(
        "{text}expect finally m1, m2, m3 ended in this order"
    ));
    assert_eq!(one.lines().count(), 5, "{one}");
    assert!(one.contains("(order ["), "{one}");
}

#[test]
fn a_trace_is_compared_and_blessed() {
    let text = format!("{SENT}\ntrace\n       0s  bob sends m1 to A\n");
    let first = outcome(&text);
    let told = first.failures.first().map(ToString::to_string);
    assert_eq!(
        told.as_deref(),
        Some(
            "trace line 1:\n    expected 0s  bob sends m1 to A\n    came     0s  alice sends m1 to A"
        )
    );
    let blessed = bless(&text, &first).expect("it holds a trace");
    assert!(blessed.starts_with(SENT), "the rest is kept");
    assert_eq!(outcome(&blessed).failures, []);
    assert_eq!(bless(SENT, &first), None, "a file without a trace stays so");
}

/// P23: a message that nobody answered is sent again when the process is back; one that was
/// accepted is not, since that is the gateway's promise.
#[test]
fn clients_send_again_what_was_never_answered() {
    let text = "at 0s process crashes, starts again after 5s\nat 1s alice sends m1 to A\n\
                expect at 5s m1 is accepted\nnever alice is told m1: in flight";
    assert_eq!(failures(text), "");
    let text = "at 0s alice sends m1 to A\n  model answers m1: begins, 9 chunks 1s apart, then completes\n\
                at 1s process crashes, starts again after 5s\n\
                expect finally m1 ended once as completed\nnever alice is told m1: in flight";
    assert_eq!(failures(text), "");
}
