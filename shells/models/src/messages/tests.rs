//! Transcripts, and what a model is told of them.

use serde_json::{Value, json};
use tidegate_core::{CallEnd, Wall};
use tidegate_driver::{CallText, ToolAnswer};

use super::*;

fn of(run: u128, turn: u128, role: Role, mark: RowMark, text: &str) -> TranscriptRow {
    TranscriptRow {
        seq: 1,
        role,
        mark,
        run: RunId::from_u128(run),
        run_key: "r".into(),
        turn: RunId::from_u128(turn),
        queue: None,
        at: Wall(0),
        text: text.into(),
        calls: Vec::new(),
        answers: None,
    }
}

/// A chat message of a turn.
fn chat(run: u128, turn: u128, queue: QueueMode, text: &str) -> TranscriptRow {
    TranscriptRow {
        queue: Some(queue),
        ..of(run, turn, Role::User, RowMark::Whole, text)
    }
}

fn dropped(run: u128, turn: u128, told: bool, text: &str) -> TranscriptRow {
    of(run, turn, Role::User, RowMark::Dropped { told }, text)
}

/// Rows of turns of their own, one after the other.
fn turns(rows: &[(Role, RowMark, &str)]) -> Vec<TranscriptRow> {
    let mut turn = 0;
    rows.iter()
        .map(|&(role, mark, text)| {
            turn += u128::from(role == Role::User);
            of(turn, turn, role, mark, text)
        })
        .collect()
}

/// What the model is told where no calls are: who says what.
fn told(rows: &[TranscriptRow]) -> Vec<(&'static str, String)> {
    let said = messages(rows, false)
        .into_iter()
        .map(|message| match message {
            Message::User { content } => ("user", content),
            Message::Assistant {
                content: Some(content),
                tool_calls,
            } if tool_calls.is_empty() => ("assistant", content),
            other => panic!("{other:?}"),
        });
    said.collect()
}

fn user(text: &str) -> (&'static str, String) {
    ("user", text.to_owned())
}

/// B-028, P08
#[test]
fn a_reply_that_was_cut_off_says_so() {
    let rows = turns(&[
        (Role::User, RowMark::Whole, "open it"),
        (Role::Assistant, RowMark::Partial, "Opening"),
        (Role::User, RowMark::Whole, "and now?"),
    ]);
    let cut = format!("Opening\n\n{CUT_OFF}");
    assert_eq!(
        told(&rows),
        [user("open it"), ("assistant", cut), user("and now?")]
    );
}

/// B-028
#[test]
fn a_message_without_a_reply_is_followed_by_a_note() {
    let rows = turns(&[
        (Role::User, RowMark::Whole, "one"),
        (Role::User, RowMark::Whole, "two"),
        (Role::Assistant, RowMark::Partial, ""),
        (Role::User, RowMark::Whole, "three"),
    ]);
    let note = || ("assistant", NO_REPLY.to_owned());
    assert_eq!(
        told(&rows),
        [user("one"), note(), user("two"), note(), user("three")]
    );
}

#[test]
fn what_a_crash_left_is_no_message() {
    let rows = turns(&[
        (Role::User, RowMark::Whole, "one"),
        (Role::Assistant, RowMark::Interrupted, "half of"),
    ]);
    assert_eq!(told(&rows), [user("one")]);
}

/// Law 10: a run that ended while it was to be done again had said something.
#[test]
fn what_a_broken_attempt_left_is_all_that_its_run_said() {
    let rows = turns(&[
        (Role::User, RowMark::Whole, "one"),
        (Role::Assistant, RowMark::Interrupted, "a third"),
        (Role::Assistant, RowMark::Interrupted, "half of"),
        (Role::User, RowMark::Whole, "two"),
        (Role::User, RowMark::Whole, "three"),
        (Role::Assistant, RowMark::Interrupted, "not this"),
        (Role::Assistant, RowMark::Whole, "but this"),
        (Role::User, RowMark::Whole, "four"),
        (Role::Assistant, RowMark::Interrupted, "a beginning"),
        (Role::Assistant, RowMark::Partial, ""),
        (Role::User, RowMark::Whole, "five"),
        (Role::Assistant, RowMark::Interrupted, "so far"),
        (
            Role::User,
            RowMark::Dropped { told: false },
            "of this nothing is told",
        ),
        (Role::User, RowMark::Whole, "six"),
    ]);
    let said = |text: &str| ("assistant", text.to_owned());
    assert_eq!(
        told(&rows),
        [
            user("one"),
            said(&format!("half of\n\n{CUT_OFF}")),
            user("two"),
            said(NO_REPLY),
            user("three"),
            said("but this"),
            user("four"),
            said(&format!("a beginning\n\n{CUT_OFF}")),
            user("five"),
            said(&format!("so far\n\n{CUT_OFF}")),
            user("six"),
        ]
    );
}

/// R44, I29, P26: one message to the model, each text whole and in its place; what a crash
/// left between them does not part them.
#[test]
fn what_was_taken_along_is_told_in_the_same_message() {
    let rows = [
        chat(1, 1, QueueMode::Steer, "write a poem"),
        of(1, 1, Role::Assistant, RowMark::Interrupted, "half of"),
        chat(2, 1, QueueMode::Steer, "about the sea"),
        chat(3, 1, QueueMode::Collect, "short"),
    ];
    assert_eq!(
        told(&rows),
        [user("write a poem\n\nabout the sea\n\nshort")]
    );
}

/// R46: the frame of spec 3.3; a message that is alone has none.
#[test]
fn collected_messages_are_framed_and_numbered() {
    let rows = [
        chat(1, 1, QueueMode::Collect, "alone"),
        of(1, 1, Role::Assistant, RowMark::Whole, "yes"),
        chat(2, 2, QueueMode::Collect, "first\nof two"),
        chat(3, 2, QueueMode::Collect, "second"),
    ];
    let framed = format!("{COLLECTED}\n\n---\nQueued #1\nfirst\nof two\n\n---\nQueued #2\nsecond");
    assert_eq!(
        told(&rows),
        [
            user("alone"),
            ("assistant", "yes".to_owned()),
            user(&framed)
        ]
    );
}

/// Spec 3.3: told ones are summed up before their turn's message, the others are not told.
#[test]
fn dropped_messages_are_summed_up_before_their_turn() {
    let long = format!("{} end", "ab  \n c".repeat(100));
    let rows = [
        chat(1, 1, QueueMode::Steer, "one"),
        dropped(2, 5, true, "  two\n\tlines "),
        dropped(3, 5, false, "never told"),
        dropped(4, 5, true, &long),
        chat(5, 5, QueueMode::Steer, "five"),
    ];
    let messages = told(&rows);
    assert_eq!(messages[0], user("one"));
    assert_eq!(messages[1].0, "assistant");
    let (title, rest) = messages[2].1.split_once('\n').expect("lines");
    assert_eq!(title, "[Queue overflow] Dropped 2 messages due to cap");
    let lines: Vec<&str> = rest.lines().collect();
    assert_eq!(lines[0], "- two lines");
    let shown = lines[1].strip_prefix("- ").expect("a bullet");
    assert_eq!(shown.chars().count(), TOLD_CHARS);
    assert!(
        shown.starts_with("ab cab c") && shown.ends_with('…'),
        "{shown}"
    );
    assert_eq!(lines[2..], ["", "five"]);
}

/// A turn of which nothing is told is no message, and asks for no note.
#[test]
fn what_gave_way_untold_leaves_no_trace() {
    let rows = [
        chat(1, 1, QueueMode::Steer, "one"),
        of(1, 1, Role::Assistant, RowMark::Whole, "yes"),
        dropped(2, 2, false, "never told"),
    ];
    assert_eq!(told(&rows), [user("one"), ("assistant", "yes".to_owned())]);
    assert_eq!(first_words(&"x".repeat(TOLD_CHARS)), "x".repeat(TOLD_CHARS));
}

/// Law 9: however many gave way, the model is told of a bounded number.
#[test]
fn many_dropped_messages_are_counted_and_the_latest_told() {
    let texts: Vec<String> = (0..TOLD_MESSAGES + 5).map(|n| format!("m{n}")).collect();
    let told = overflow(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), TOLD_MESSAGES + 2);
    assert_eq!(
        lines[..3],
        [
            "[Queue overflow] Dropped 25 messages due to cap",
            "- (5 earlier, omitted)",
            "- m5",
        ]
    );
}

/// An answer of a turn's run that asks for calls, given as ids and arguments.
fn asks(run: u128, text: &str, calls: &[(&str, &str)]) -> TranscriptRow {
    let call = |&(id, arguments): &(&str, &str)| CallText {
        id: id.into(),
        name: "exec".into(),
        arguments: arguments.into(),
    };
    TranscriptRow {
        calls: calls.iter().map(call).collect(),
        ..of(run, run, Role::Assistant, RowMark::Calls, text)
    }
}

fn result(run: u128, id: &str, end: CallEnd, output: &str) -> TranscriptRow {
    TranscriptRow {
        answers: Some(ToolAnswer {
            id: id.into(),
            name: "exec".into(),
            end,
        }),
        ..of(run, run, Role::Tool, RowMark::Whole, output)
    }
}

/// The messages of a request that offers tools.
fn offered(rows: &[TranscriptRow]) -> Value {
    serde_json::to_value(messages(rows, true)).expect("messages are JSON")
}

fn asked(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "exec", "arguments": arguments}})
}

fn tool(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

fn says(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

const LS: &str = "{\"command\":\"ls\"}";

/// P08: calls, then their results in the order of the calls; what steered into the turn behind
/// them; the reply.
#[test]
fn a_round_of_tools_is_told_as_calls_and_results() {
    let rows = [
        of(1, 1, Role::User, RowMark::Whole, "look"),
        of(1, 1, Role::Assistant, RowMark::Interrupted, "a try"),
        asks(1, "I look.", &[("a", LS), ("b", LS)]),
        result(1, "b", CallEnd::TimedOut, "half\n"),
        result(1, "a", CallEnd::Ok, "tide.txt\n"),
        of(1, 1, Role::Assistant, RowMark::Interrupted, "not this"),
        of(2, 1, Role::User, RowMark::Whole, "and here"),
        asks(1, "", &[("c", LS)]),
        result(1, "c", CallEnd::Failed, "no such file"),
        of(1, 1, Role::Assistant, RowMark::Whole, "one file"),
        of(3, 3, Role::User, RowMark::Whole, "thanks"),
    ];
    let stopped = "half\n\n[This call reached its time limit and was stopped.]";
    assert_eq!(
        offered(&rows),
        json!([
            says("user", "look"),
            {"role": "assistant", "content": "I look.", "tool_calls": [asked("a", LS), asked("b", LS)]},
            tool("a", "tide.txt"),
            tool("b", stopped),
            says("user", "and here"),
            {"role": "assistant", "content": null, "tool_calls": [asked("c", LS)]},
            tool("c", "no such file"),
            says("assistant", "one file"),
            says("user", "thanks"),
        ])
    );
}

/// P08, B-025, B-026, B-027: whatever the rows say, each call has one result right behind it,
/// and no result is without its call.
#[test]
fn each_call_has_exactly_one_result() {
    let rows = [
        result(1, "x", CallEnd::Ok, "an orphan at the beginning"),
        of(1, 1, Role::User, RowMark::Whole, "look"),
        asks(1, "", &[("a", LS), ("b", LS), ("a", LS)]),
        of(2, 1, Role::User, RowMark::Whole, "and here"),
        of(1, 1, Role::Assistant, RowMark::Interrupted, "a try"),
        result(1, "a", CallEnd::Ok, "first"),
        result(2, "b", CallEnd::Ok, "of another run"),
        result(1, "a", CallEnd::Ok, "second"),
        result(1, "a", CallEnd::Ok, "one too many"),
        of(1, 1, Role::Assistant, RowMark::Whole, "done"),
        result(1, "b", CallEnd::Ok, "too late"),
        of(3, 3, Role::User, RowMark::Whole, "thanks"),
    ];
    let unknown = format!("[{}]", tidegate_text::call_end_words(CallEnd::Unknown));
    assert_eq!(
        offered(&rows),
        json!([
            says("user", "look"),
            {"role": "assistant", "content": null, "tool_calls": [asked("a", LS), asked("b", LS), asked("call00002", LS)]},
            tool("a", "first"),
            tool("b", &unknown),
            tool("call00002", "second"),
            says("user", "and here"),
            says("assistant", "done"),
            says("user", "thanks"),
        ])
    );
}

/// I33, B-118: what no provider takes is replaced, and the model is told what it had written.
#[test]
fn arguments_that_are_no_object_are_replaced_and_told() {
    let long = "x".repeat(1_000);
    let rows = [
        of(1, 1, Role::User, RowMark::Whole, "look"),
        asks(1, "", &[("a", "{\"command\":"), ("b", &long), ("c", LS)]),
        result(1, "a", CallEnd::BadArguments, ""),
        result(1, "b", CallEnd::BadArguments, ""),
        result(1, "c", CallEnd::Ok, ""),
    ];
    let words = tidegate_text::call_end_words(CallEnd::BadArguments);
    let told = offered(&rows);
    assert_eq!(
        told[1]["tool_calls"],
        json!([asked("a", "{}"), asked("b", "{}"), asked("c", LS)])
    );
    let short = format!("[{words}]\n\n[The arguments were: {{\"command\":]");
    assert_eq!(told[2], tool("a", &short));
    assert_eq!(told[3], tool("b", &format!("[{words}]")));
    assert_eq!(told[4], tool("c", "[This call put out nothing.]"));
}

/// B-028: a run that ended behind its calls says so, with what it had begun to say since.
#[test]
fn a_run_that_ended_behind_its_calls_is_followed_by_a_note() {
    let rows = |last: &[TranscriptRow]| {
        let mut rows = vec![
            of(1, 1, Role::User, RowMark::Whole, "look"),
            of(1, 1, Role::Assistant, RowMark::Interrupted, "before"),
            asks(1, "I look.", &[("a", LS)]),
            result(1, "a", CallEnd::Ok, "tide.txt"),
        ];
        rows.extend_from_slice(last);
        rows.push(of(2, 2, Role::User, RowMark::Whole, "and?"));
        rows
    };
    let begun = of(1, 1, Role::Assistant, RowMark::Interrupted, "There");
    let ended = of(1, 1, Role::Assistant, RowMark::Partial, "");
    let cut = format!("There\n\n{CUT_OFF}");
    for (last, note) in [
        (vec![], NO_REPLY),
        (vec![ended.clone()], NO_REPLY),
        (vec![begun.clone()], &cut),
        (vec![begun, ended], &cut),
    ] {
        let told = offered(&rows(&last));
        assert_eq!(told[3], says("assistant", note), "{last:?}");
        assert_eq!(told[4], says("user", "and?"));
    }
}

/// B-028: also where the rows begin behind the message that the calls were made for.
#[test]
fn a_round_alone_is_followed_by_a_note() {
    let rows = [
        asks(1, "", &[("a", LS)]),
        result(1, "a", CallEnd::Ok, "tide.txt"),
        of(2, 2, Role::User, RowMark::Whole, "and?"),
    ];
    let told = offered(&rows);
    assert_eq!(
        (&told[1], &told[2]),
        (&tool("a", "tide.txt"), &says("assistant", NO_REPLY))
    );
}

/// Where no tools are offered, no message speaks of calls: one side's words stay one message,
/// and the other side has the last word.
#[test]
fn without_tools_a_round_is_told_in_words() {
    let rows = [
        of(1, 1, Role::User, RowMark::Whole, "look"),
        asks(1, "I look.", &[("a", LS)]),
        result(1, "a", CallEnd::Denied, ""),
        asks(1, "", &[("b", LS)]),
        result(1, "b", CallEnd::Ok, "tide.txt"),
    ];
    let denied = tidegate_text::call_end_words(CallEnd::Denied);
    let words = format!(
        "I look.\n\n[The tool exec was asked for with {LS}; this came of it:]\n[{denied}]\n\n\
         [The tool exec was asked for with {LS}; this came of it:]\ntide.txt"
    );
    assert_eq!(
        told(&rows),
        [user("look"), ("assistant", words.clone()), user(GO_ON)]
    );
    let answered = of(1, 1, Role::Assistant, RowMark::Whole, "one file");
    let rows = [
        &rows[..],
        &[answered, of(2, 2, Role::User, RowMark::Whole, "thanks")],
    ]
    .concat();
    let answer = format!("{words}\n\none file");
    assert_eq!(
        told(&rows),
        [user("look"), ("assistant", answer), user("thanks")]
    );
}
