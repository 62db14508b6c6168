//! Answers of a model server over a real connection: good ones, and ones that end early.

#![allow(
    clippy::disallowed_methods,
    reason = "a test plays both sides of a connection"
)]

mod support;

use serde_json::{Value, json};
use support::{Call, KEY, STREAM, Server, delta, provider, row, user};
use tidegate_core::{Marker, ModelEnd};
use tidegate_driver::{ModelEvent, Role, RowMark};
use tidegate_models::{DemoModel, EVENT_LIMIT_BYTES};

const DONE: &str = "data: [DONE]\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

#[tokio::test]
async fn a_request_holds_the_transcript_and_the_key() {
    let server = Server::start().await;
    let transcript = vec![
        user("one"),
        row(Role::Assistant, RowMark::Whole, "1"),
        user("two"),
        row(Role::Assistant, RowMark::Interrupted, "2 of"),
        row(Role::Assistant, RowMark::Partial, "2"),
        user("three"),
    ];
    let call = Call::start(&provider(&server.url()), transcript);
    let mut connection = server.accept().await;
    connection
        .answer(200, "content-type: text/event-stream\r\n", DONE)
        .await;
    assert_eq!(call.reply().await, (String::new(), ModelEnd::Completed));

    let (head, body) = connection.request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("authorization: Bearer {KEY}")),
        "{head}"
    );
    assert!(head.contains("content-type: application/json"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    let cut = "2\n\n[This reply was cut off before it was complete.]";
    assert_eq!(
        body,
        json!({
            "model": "tide-1",
            "messages": [
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": "1"},
                {"role": "user", "content": "two"},
                {"role": "assistant", "content": cut},
                {"role": "user", "content": "three"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

/// R92: each read is told before the next one comes, and what came at once is told at once.
#[tokio::test]
async fn events_are_told_as_they_come() {
    let server = Server::start().await;
    let mut call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(": waiting\n\n").await;
    assert_eq!(call.next().await, ModelEvent::Alive);
    connection
        .chunk("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n")
        .await;
    assert_eq!(call.next().await, ModelEvent::Structure);
    connection
        .chunk("data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n")
        .await;
    assert_eq!(call.next().await, ModelEvent::Reasoning);
    connection.chunk(delta("a") + &delta("b")).await;
    assert_eq!(call.next().await, text("ab"));
    let cut = delta("c");
    let (head, tail) = cut.split_at(20);
    connection.chunk(head).await;
    assert_eq!(
        call.next().await,
        ModelEvent::Alive,
        "a part of an event shows a live transport"
    );
    connection.chunk(tail).await;
    assert_eq!(call.next().await, text("c"));
    connection
        .chunk("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n".to_owned() + DONE)
        .await;
    let (events, end) = call.rest().await;
    assert_eq!(
        (events, end),
        (vec![ModelEvent::Structure], ModelEnd::Completed)
    );
}

/// P39, S-02: through the whole path, in pieces of one byte.
#[tokio::test]
async fn an_answer_in_single_bytes_is_read_whole() {
    let server = Server::start().await;
    let call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    for byte in (delta("\u{6F6E}\u{6C50}") + STOP + DONE).bytes() {
        connection.chunk([byte]).await;
    }
    assert_eq!(
        call.reply().await,
        ("\u{6F6E}\u{6C50}".to_owned(), ModelEnd::Completed)
    );
}

/// P38, S-08: a finish reason is enough, whether the stream then ends well or breaks.
#[tokio::test]
async fn an_answer_is_whole_once_the_model_said_that_it_finished() {
    for breaks in [false, true] {
        let server = Server::start().await;
        let mut call = server.call();
        let mut connection = server.accept().await;
        connection.write(STREAM).await;
        connection.chunk(delta("whole") + STOP).await;
        assert_eq!(call.next().await, text("whole"));
        assert_eq!(call.next().await, ModelEvent::Finished);
        if breaks {
            connection.reset();
        } else {
            connection.end().await;
        }
        assert_eq!(call.rest().await, (vec![], ModelEnd::Completed));
    }
}

/// P38, S-07
#[tokio::test]
async fn a_stream_that_ends_well_before_the_model_finished_is_incomplete() {
    let server = Server::start().await;
    let call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(delta("half an ans")).await;
    connection.end().await;
    assert_eq!(
        call.reply().await,
        ("half an ans".to_owned(), ModelEnd::Incomplete)
    );
}

#[tokio::test]
async fn a_stream_that_breaks_is_a_failure_of_the_transport() {
    let server = Server::start().await;
    let mut call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(delta("half")).await;
    assert_eq!(call.next().await, text("half"));
    connection.reset();
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (None, Marker::Transport));
    assert!(
        words.contains("broke while the answer was under way"),
        "{words}"
    );
    assert!(words.contains(&server.place()), "{words}");
}

/// A chunked body without its end is no clean end.
#[tokio::test]
async fn a_body_that_is_cut_short_is_a_failure_of_the_transport() {
    let server = Server::start().await;
    let mut call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(delta("half")).await;
    assert_eq!(call.next().await, text("half"));
    drop(connection);
    assert_eq!(call.failure().await.1, Marker::Transport);
}

#[tokio::test]
async fn a_request_that_gets_no_answer_is_not_repeated() {
    let server = Server::start().await;
    let call = server.call();
    drop(server.accept().await);
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (None, Marker::Transport));
    assert!(words.contains("broke before the answer began"), "{words}");
    assert!(!server.somebody_waits(), "the request came twice");
}

/// S-04
#[tokio::test]
async fn an_oversized_event_ends_the_call_and_the_connection() {
    let server = Server::start().await;
    let call = server.call();
    let mut connection = server.accept().await;
    let huge = tokio::spawn(async move {
        connection.write(STREAM).await;
        connection.chunk(delta("a") + "data: ").await;
        connection.chunk(vec![b'z'; EVENT_LIMIT_BYTES]).await;
        connection.hung_up().await;
    });
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (None, Marker::Oversized));
    assert!(words.contains(&EVENT_LIMIT_BYTES.to_string()), "{words}");
    huge.await.unwrap();
}

/// B-048 is the core's to end; ours is that the end closes the connection.
#[tokio::test]
async fn a_call_that_is_dropped_hangs_up() {
    let server = Server::start().await;
    let mut call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(delta("then silence")).await;
    assert_eq!(call.next().await, text("then silence"));
    call.cancel().await;
    connection.hung_up().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_before_any_answer_hangs_up() {
    let server = Server::start().await;
    let call = server.call();
    let connection = server.accept().await;
    call.cancel().await;
    connection.hung_up().await;
}

/// P40: a provider that keeps connections and drops them when it likes fails nobody's run.
#[tokio::test]
async fn each_call_has_a_connection_of_its_own() {
    let server = Server::start().await;
    let provider = provider(&server.url());
    for said in ["1", "2"] {
        let call = Call::start(&provider, vec![user("go on")]);
        let mut connection = server.accept().await;
        let events = delta(said) + DONE;
        connection
            .write(format!(
                "{STREAM}{:x}\r\n{events}\r\n0\r\n\r\n",
                events.len()
            ))
            .await;
        assert_eq!(call.reply().await, (said.to_owned(), ModelEnd::Completed));
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_too() {
    let server = Server::start().await;
    let call = server.call();
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"all at once"},"finish_reason":"stop"}]}"#;
    server
        .accept()
        .await
        .answer(
            200,
            "content-type: application/json; charset=utf-8\r\n",
            body,
        )
        .await;
    assert_eq!(
        call.reply().await,
        ("all at once".to_owned(), ModelEnd::Completed)
    );
}

#[tokio::test]
async fn the_demo_model_says_what_it_is_and_how_to_get_a_real_one() {
    let transcript = vec![
        user("one"),
        row(Role::Assistant, RowMark::Whole, "1"),
        user("h\u{E9}llo"),
    ];
    let (events, end) = Call::start(&DemoModel, transcript.clone()).rest().await;
    assert!(
        events.len() > 3
            && events
                .iter()
                .all(|event| matches!(event, ModelEvent::Text(_)))
    );
    assert_eq!(end, ModelEnd::Completed);
    let (reply, _) = Call::start(&DemoModel, transcript).reply().await;
    assert!(
        reply.starts_with("[demo model] Your message arrived: 5 characters, turn 2"),
        "{reply}"
    );
    for hint in [
        "--provider-url URL",
        "--model NAME",
        "TIDEGATE_PROVIDER_KEY",
    ] {
        assert!(reply.contains(hint), "{reply}");
    }
    assert_eq!(
        Call::start(&DemoModel, vec![]).reply().await.1,
        ModelEnd::Completed
    );
}
