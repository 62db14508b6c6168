//! Tool calls over a real connection: asked for, told once and whole, or not at all.

#![allow(
    clippy::disallowed_methods,
    reason = "a test plays both sides of a connection"
)]

mod support;

use serde_json::{Value, json};
use support::{Call, STREAM, Server, call_text, calls, delta, provider, result, row, user};
use tidegate_core::{CallEnd, Marker, ModelEnd};
use tidegate_driver::{CallText, ModelEvent, Role, RowMark};
use tidegate_models::DemoModel;
use tidegate_text::CALLS_MAX;

const DONE: &str = "data: [DONE]\n\n";

/// An event of pieces of calls.
fn calling(pieces: Value) -> String {
    let choice = json!({"index": 0, "delta": {"tool_calls": pieces}});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

/// A piece that begins a call.
fn begins(index: u8, id: &str, arguments: &str) -> Value {
    json!({"index": index, "id": id, "type": "function", "function": {"name": "exec", "arguments": arguments}})
}

fn finish(reason: &str) -> String {
    let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

fn told(id: &str, arguments: &str) -> ModelEvent {
    ModelEvent::Call(call_text(id, "exec", arguments))
}

fn only_calls(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let calls = events
        .into_iter()
        .filter(|event| matches!(event, ModelEvent::Call(_)));
    calls.collect()
}

/// A call that was answered with this stream, ended well or broken.
async fn answered(stream: String, breaks: bool) -> Call {
    let server = Server::start().await;
    let mut call = Call::offer(&provider(&server.url()), vec![user("hello")]);
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(delta("first") + &stream).await;
    // The bytes have to be read before the connection may break, or they are lost with it.
    assert_eq!(call.next().await, ModelEvent::Text("first".into()));
    if breaks {
        connection.reset();
    } else {
        connection.end().await;
    }
    call
}

/// P08: the tools as they are offered, and a round of them as it was.
#[tokio::test]
async fn a_request_offers_the_tools_and_repeats_the_rounds() {
    let server = Server::start().await;
    let transcript = vec![
        user("look"),
        calls("", vec![call_text("a", "exec", "{\"command\":\"ls\"}")]),
        result("a", CallEnd::Ok, "tide.txt"),
    ];
    let call = Call::offer(&provider(&server.url()), transcript);
    let mut connection = server.accept().await;
    connection
        .answer(200, "content-type: text/event-stream\r\n", DONE)
        .await;
    assert_eq!(call.reply().await.1, ModelEnd::Completed);
    let (_, body) = connection.request.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let function = json!({"name": "exec", "arguments": "{\"command\":\"ls\"}"});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": function},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "tide.txt"},
        ])
    );
    let parameters = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    let function =
        json!({"name": "exec", "description": "Runs a command.", "parameters": parameters});
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "function": function}])
    );
    assert_eq!(body.get("tool_choice"), None);
}

/// S-11, S-14, S-15: pieces are progress; each call is told once, in its order, right before
/// the end.
#[tokio::test]
async fn calls_are_told_once_at_the_end_of_their_answer() {
    let server = Server::start().await;
    let mut call = Call::offer(&provider(&server.url()), vec![user("hello")]);
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(delta("I look.")).await;
    assert_eq!(call.next().await, ModelEvent::Text("I look.".into()));
    for piece in [
        json!([begins(0, "ca", "{\"x\":")]),
        json!([begins(1, "cb", "{\"y\":")]),
        json!([{"index": 0, "function": {"arguments": "1}"}}]),
        json!([{"index": 1, "function": {"arguments": "2}"}}]),
        json!([begins(0, "cc", "{}"), begins(0, "cd", "{\"z\":3}")]),
    ] {
        connection.chunk(calling(piece)).await;
        assert_eq!(call.next().await, ModelEvent::Calling);
    }
    connection.chunk(finish("tool_calls")).await;
    assert_eq!(call.next().await, ModelEvent::Finished);
    connection.chunk(finish("tool_calls")).await;
    assert_eq!(call.next().await, ModelEvent::Finished);
    connection.chunk(DONE).await;
    let expected = vec![
        told("ca", "{\"x\":1}"),
        told("cb", "{\"y\":2}"),
        told("cc", "{}"),
        told("cd", "{\"z\":3}"),
    ];
    assert_eq!(call.rest().await, (expected, ModelEnd::Completed));
}

/// P38, S-08: a finish reason makes an answer whole, whether its stream then ends well or breaks.
#[tokio::test]
async fn calls_of_a_finished_answer_survive_the_connection() {
    for breaks in [false, true] {
        let stream = calling(json!([begins(0, "a", "{}")])) + &finish("tool_calls");
        let (events, end) = answered(stream, breaks).await.rest().await;
        assert_eq!(end, ModelEnd::Completed);
        assert_eq!(only_calls(events), [told("a", "{}")]);
    }
}

/// P38, B-060: whatever an answer had asked for before it failed is not told.
#[tokio::test]
async fn calls_of_an_answer_that_is_not_whole_are_never_told() {
    let begun = || calling(json!([begins(0, "a", "{}")]));
    let error = "data: {\"error\":{\"message\":\"gone\",\"code\":502}}\n\n";
    let incomplete = (None, false);
    let failed = |marker| (Some(marker), false);
    let broken = (Some(Marker::Transport), true);
    for (stream, (marker, breaks)) in [
        (begun(), incomplete),
        (begun(), broken),
        (finish("stop") + &begun(), broken),
        (
            begun() + &finish("tool_calls") + error,
            failed(Marker::None),
        ),
        (begun() + "data: 7\n\n" + DONE, failed(Marker::NotAStream)),
        (
            begun() + &calling(json!(["exec"])) + DONE,
            failed(Marker::NotAStream),
        ),
    ] {
        let (events, end) = answered(stream.clone(), breaks).await.rest().await;
        match (marker, end) {
            (None, ModelEnd::Incomplete) => {}
            (Some(marker), ModelEnd::Failed(error)) => assert_eq!(error.marker, marker, "{stream}"),
            other => panic!("{other:?} of {stream}"),
        }
        assert_eq!(only_calls(events), [], "{stream}");
    }
}

/// A filter's stop is a completed answer, as before; what it had asked for is void.
#[tokio::test]
async fn calls_of_a_filtered_answer_are_never_told() {
    let stream = calling(json!([begins(0, "a", "{}")])) + &finish("content_filter") + DONE;
    let (events, end) = answered(stream, false).await.rest().await;
    assert_eq!((only_calls(events), end), (Vec::new(), ModelEnd::Completed));
}

/// Law 9
#[tokio::test]
async fn an_answer_with_too_many_calls_is_refused() {
    let pieces: Vec<Value> = (0..=CALLS_MAX)
        .map(|n| json!({"index": n, "function": {"name": "exec"}}))
        .collect();
    let call = answered(calling(json!(pieces)) + DONE, false).await;
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (None, Marker::Oversized));
    assert!(
        words.ends_with(
            ": the answer asks for more than 128 tool calls, the most that is taken; the rest was not read."
        ),
        "{words}"
    );
}

#[tokio::test]
async fn a_whole_document_may_ask_for_calls() {
    let server = Server::start().await;
    let call = Call::offer(&provider(&server.url()), vec![user("hello")]);
    let mut connection = server.accept().await;
    let function = json!({"name": "exec", "arguments": "{}"});
    let message = json!({"role": "assistant", "content": "So.", "tool_calls": [{"id": "a", "type": "function", "function": function}]});
    let body = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    connection
        .answer(200, "content-type: application/json\r\n", &body.to_string())
        .await;
    let (mut events, end) = call.rest().await;
    assert_eq!(end, ModelEnd::Completed);
    events.retain(|event| *event != ModelEvent::Alive);
    let expected = [
        ModelEvent::Text("So.".into()),
        ModelEvent::Calling,
        ModelEvent::Finished,
        told("a", "{}"),
    ];
    assert_eq!(events, expected);
}

/// The calls that the demo model asks for, and its words.
async fn demo(call: Call) -> (Vec<CallText>, String) {
    let (events, end) = call.rest().await;
    assert_eq!(end, ModelEnd::Completed);
    let (mut asked, mut words) = (Vec::new(), String::new());
    for event in events {
        match event {
            ModelEvent::Call(call) => asked.push(call),
            ModelEvent::Text(text) => words.push_str(&text),
            _ => {}
        }
    }
    (asked, words)
}

#[tokio::test]
async fn the_demo_model_asks_for_a_command_and_quotes_what_came_of_it() {
    let message = user(" ! echo \"ti\\de\" ");
    let (asked, _) = demo(Call::offer(&DemoModel, vec![message.clone()])).await;
    let command = json!({"command": "echo \"ti\\de\""}).to_string();
    assert_eq!(asked, [call_text("", "exec", &command)]);

    let output = format!("{}\n{}", "x".repeat(200), "line\n".repeat(9));
    for (end, output, quoted) in [
        (CallEnd::Ok, "tide\n", vec!["result of the call:\n> tide"]),
        (CallEnd::Ok, "", vec!["is empty."]),
        (CallEnd::Denied, "", vec!["a person did not allow it"]),
        (CallEnd::Ok, &output, vec!["x…\n> line\n", "(5 more lines)"]),
    ] {
        let transcript = vec![
            message.clone(),
            calls("", vec![call_text("a", "exec", &command)]),
            result("a", end, output),
            row(Role::Assistant, RowMark::Interrupted, "a broken try"),
        ];
        let (asked, words) = demo(Call::offer(&DemoModel, transcript)).await;
        assert_eq!(asked, []);
        assert!(words.len() < 800, "{words}");
        for part in quoted {
            assert!(words.contains(part), "{words}");
        }
    }
}

#[tokio::test]
async fn the_demo_model_asks_for_nothing_that_is_not_offered() {
    let (asked, words) = demo(Call::start(&DemoModel, vec![user("!ls")])).await;
    assert_eq!(asked, []);
    assert!(words.contains("3 characters"), "{words}");
    for message in ["!", "say !ls", "hello"] {
        let (asked, words) = demo(Call::offer(&DemoModel, vec![user(message)])).await;
        assert_eq!(asked, []);
        assert!(words.contains("Your message arrived"), "{words}");
    }
}
