//! Tool calls in streams as providers really send them, each cut in every way (P39).

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_text::{
    BadCalls, CALLS_MAX, ChatCall, ChatEnd, ChatFact, ChatStream, Finish, read_whole_answer,
};

fn call(id: &str, name: &str, arguments: &str) -> ChatCall {
    ChatCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

/// An event of pieces of calls.
fn calling(pieces: &Value) -> String {
    event(&json!({"tool_calls": pieces}), &Value::Null)
}

fn event(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

fn finish(reason: &str) -> String {
    event(&json!({}), &json!(reason))
}

const DONE: &str = "data: [DONE]\n\n";

/// What a stream says in these pieces, what its end means, and the calls of it.
fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<ChatFact>, ChatEnd, Vec<ChatCall>) {
    let (mut reader, mut facts) = (ChatStream::new(1 << 20), Vec::new());
    for piece in pieces {
        reader.push(piece, &mut facts).expect("events are small");
    }
    (facts, reader.end(), reader.take_calls())
}

fn calls(stream: &str) -> Vec<ChatCall> {
    let whole = read([stream.as_bytes()]);
    assert_eq!(read(stream.as_bytes().chunks(1)), whole, "byte by byte");
    whole.2
}

/// S-11: two finish reasons, the second with usage, ask for nothing twice.
#[test]
fn a_second_finish_reason_repeats_no_call() {
    let piece = json!([{"index": 0, "id": "ca", "function": {"name": "read", "arguments": "{}"}}]);
    let last = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"total_tokens\":9}}\n\n";
    let stream = calling(&piece) + &finish("tool_calls") + last;
    let (mut reader, mut facts) = (ChatStream::new(4096), Vec::new());
    reader.push(stream.as_bytes(), &mut facts).unwrap();
    assert_eq!(facts[0], ChatFact::Calling);
    assert_eq!(
        facts[1..3],
        [
            ChatFact::Finish(Finish::ToolCalls),
            ChatFact::Finish(Finish::ToolCalls)
        ]
    );
    assert_eq!(reader.end(), ChatEnd::Completed);
    assert_eq!(reader.take_calls(), [call("ca", "read", "{}")]);
    assert_eq!(reader.take_calls(), [], "told once");
}

/// S-14
#[test]
fn parallel_calls_of_one_number_are_told_apart_by_their_ids() {
    let piece = |id: &str, n: u8| {
        calling(
            &json!([{"index": 0, "id": id, "function": {"name": "read", "arguments": format!("{{\"p\":{n}}}")}}]),
        )
    };
    let stream = piece("ca", 1) + &piece("cb", 2) + &finish("tool_calls");
    assert_eq!(
        calls(&stream),
        [
            call("ca", "read", "{\"p\":1}"),
            call("cb", "read", "{\"p\":2}")
        ]
    );
}

/// S-15
#[test]
fn interleaved_pieces_find_their_call_by_number() {
    let first = |index: u8, id: &str, arguments: &str| {
        calling(
            &json!([{"index": index, "id": id, "function": {"name": "read", "arguments": arguments}}]),
        )
    };
    let more = |index: u8, arguments: &str| {
        calling(&json!([{"index": index, "function": {"arguments": arguments}}]))
    };
    let stream = [
        first(0, "ca", "{\"x\":"),
        first(1, "cb", "{\"y\":"),
        more(0, "1}"),
        more(1, "2}"),
        finish("tool_calls"),
    ];
    assert_eq!(
        calls(&stream.concat()),
        [
            call("ca", "read", "{\"x\":1}"),
            call("cb", "read", "{\"y\":2}")
        ]
    );
}

/// S-09: a finish reason with every piece, and the wrong one.
#[test]
fn calls_count_whatever_the_finish_reason_says() {
    let piece = |delta: Value| event(&delta, &json!("stop"));
    let stream = piece(
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"n\":"}}]}),
    ) + &piece(json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}))
        + DONE;
    assert_eq!(calls(&stream), [call("a", "f", "{\"n\":1}")]);
}

/// P38, B-118: what was cut off is told as it is, also behind a call that is whole.
#[test]
fn a_call_that_was_cut_off_is_not_completed() {
    let stream = calling(&json!([
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"n\":1}"}},
        {"index": 1, "id": "b", "function": {"name": "f", "arguments": "{\"n\":"}},
    ]));
    for reason in ["length", "tool_calls"] {
        assert_eq!(
            calls(&(stream.clone() + &finish(reason))),
            [call("a", "f", "{\"n\":1}"), call("b", "f", "{\"n\":")]
        );
    }
}

/// P38, B-060: a filter or an error makes the calls of an answer void.
#[test]
fn an_answer_that_was_stopped_or_failed_asks_for_nothing() {
    let begun =
        || calling(&json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]));
    assert_eq!(calls(&(begun() + &finish("content_filter") + DONE)), []);
    let error = "data: {\"error\":{\"message\":\"gone\",\"code\":502}}\n\n";
    assert_eq!(calls(&(begun() + &finish("stop") + error)), []);
    assert_eq!(calls(&(begun() + "data: {no json\n\n" + DONE)), []);
    let odd = calling(&json!(["exec"]));
    let (facts, _, calls) = read([(begun() + &odd + DONE).as_bytes()]);
    assert_eq!(facts[1], ChatFact::BadCalls(BadCalls::Unreadable));
    assert_eq!(calls, []);
}

/// P38: a broken connection behind a finish reason leaves the answer whole, unless its calls
/// grew since.
#[test]
fn calls_that_grew_behind_the_finish_reason_need_an_end() {
    let piece = calling(&json!([{"index": 0, "id": "a", "function": {"name": "f"}}]));
    let broken = |stream: String| {
        let (mut reader, mut facts) = (ChatStream::new(4096), Vec::new());
        reader.push(stream.as_bytes(), &mut facts).unwrap();
        (reader.end(), reader.broken())
    };
    let incomplete = ChatEnd::Incomplete {
        unfinished_bytes: 0,
    };
    let whole = (ChatEnd::Completed, ChatEnd::Completed);
    assert_eq!(broken(piece.clone()), (incomplete, incomplete));
    assert_eq!(broken(piece.clone() + &finish("tool_calls")), whole);
    let late = finish("stop") + &piece;
    assert_eq!(broken(late.clone()), (ChatEnd::Completed, incomplete));
    assert_eq!(broken(late.clone() + &finish("tool_calls")), whole);
    assert_eq!(broken(late + DONE), whole);
}

/// Law 9
#[test]
fn an_answer_with_too_many_calls_is_refused() {
    let pieces: Vec<Value> = (0..=CALLS_MAX)
        .map(|n| json!({"index": n, "function": {"name": "f"}}))
        .collect();
    let (facts, _, calls) = read([(calling(&json!(pieces)) + DONE).as_bytes()]);
    assert_eq!(
        facts,
        [ChatFact::BadCalls(BadCalls::TooMany), ChatFact::Done]
    );
    assert_eq!(calls, []);
}

#[test]
fn a_whole_document_asks_for_each_call_of_its_list() {
    let function = |n: u8| json!({"name": "f", "arguments": {"n": n}});
    let body = |calls: Value, finish: &str| {
        let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
        json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}).to_string()
    };
    let list = json!([
        {"id": "a", "type": "function", "function": function(1)},
        {"id": "", "function": function(1)},
        {"function": function(1)},
        {"id": "a", "type": "function", "function": function(1)},
        {"id": "a", "type": "function", "function": function(2)},
    ]);
    let (facts, calls) = read_whole_answer(body(list.clone(), "tool_calls").as_bytes());
    let expected = [
        ChatFact::Calling,
        ChatFact::Finish(Finish::ToolCalls),
        ChatFact::Done,
    ];
    assert_eq!(facts, expected);
    let f = |id: &str, n: u8| call(id, "f", &format!("{{\"n\":{n}}}"));
    assert_eq!(calls, [f("a", 1), f("", 1), f("", 1), f("a", 2)]);
    let (_, calls) = read_whole_answer(body(list, "content_filter").as_bytes());
    assert_eq!(calls, []);
}

/// A call, and how its answer sends it.
#[derive(Clone, Debug)]
struct Sent {
    call: ChatCall,
    /// Where name and arguments are cut, as parts of their length in 1/256.
    cuts: Vec<u8>,
    repeats_id: bool,
    repeats_name: bool,
}

fn sent() -> impl Strategy<Value = Sent> {
    let arguments = prop::sample::select(vec![
        json!({}),
        json!({"command": "ls -l | grep \"a}b{\" \\"}),
        json!({"a": {"b": [1, {"c": null}]}, "\u{6F6E}": "\u{6C50}"}),
    ]);
    let cuts = prop::collection::vec(any::<u8>(), 0..6);
    (arguments, cuts, any::<bool>(), any::<bool>()).prop_map(
        |(arguments, cuts, repeats_id, repeats_name)| Sent {
            call: call("", "exec", &arguments.to_string()),
            cuts,
            repeats_id,
            repeats_name,
        },
    )
}

/// A text in pieces; none but a sole one is empty.
fn pieces(text: &str, cuts: &[u8]) -> Vec<String> {
    let mut at: Vec<usize> = cuts
        .iter()
        .map(|&cut| text.floor_char_boundary((text.len() * usize::from(cut)) >> 8))
        .collect();
    at.push(text.len());
    at.sort_unstable();
    let mut from = 0;
    let pieces = at
        .into_iter()
        .map(|to| text[core::mem::replace(&mut from, to)..to].to_owned());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// The events of a call, in their order.
fn events(index: usize, sent: &Sent) -> Vec<String> {
    let piece = |first: bool, name: &str, arguments: &str| {
        let mut function = json!({"arguments": arguments});
        if !name.is_empty() {
            function["name"] = json!(name);
        }
        let mut piece = json!({"index": index, "function": function});
        if first || sent.repeats_id {
            piece["id"] = json!(sent.call.id);
        }
        calling(&json!([piece]))
    };
    let mut events = Vec::new();
    let name = if sent.repeats_name {
        vec![sent.call.name.clone()]
    } else {
        pieces(&sent.call.name, &sent.cuts)
    };
    for (n, name) in name.iter().enumerate() {
        events.push(piece(n == 0, name, ""));
    }
    let again = if sent.repeats_name { "exec" } else { "" };
    for arguments in pieces(&sent.call.arguments, &sent.cuts) {
        events.push(piece(false, again, &arguments));
    }
    events
}

proptest! {
    /// P39, S-14, S-15: however an answer is cut into pieces and these into bytes, whatever is
    /// said with each piece, and however the pieces of different calls interleave, it asks for
    /// the same calls.
    #[test]
    fn calls_are_the_same_however_they_are_cut(
        mut sent in prop::collection::vec(sent(), 1..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 64),
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        for (n, sent) in sent.iter_mut().enumerate() {
            sent.call.id = format!("call_{n}");
        }
        let mut queues: Vec<_> = sent
            .iter()
            .enumerate()
            .map(|(n, sent)| events(n, sent).into_iter().peekable())
            .collect();
        // Calls begin in their order; after that any may go on.
        let mut stream: String = queues.iter_mut().filter_map(Iterator::next).collect();
        for which in order {
            let queue = which.index(queues.len());
            stream.extend(queues[queue].next());
        }
        stream.extend(queues.into_iter().flatten());
        stream.push_str(&finish("tool_calls"));
        let mut at: Vec<usize> = at.iter().map(|at| at.index(stream.len())).collect();
        at.push(stream.len());
        at.sort_unstable();
        let mut from = 0;
        let cut = at.into_iter().map(|to| &stream.as_bytes()[core::mem::replace(&mut from, to)..to]);
        let expected: Vec<ChatCall> = sent.into_iter().map(|sent| sent.call).collect();
        prop_assert_eq!(read(cut).2, expected);
    }
}
