//! Providers that refuse, fail or are something else: what the core and people are told.

#![allow(
    clippy::disallowed_methods,
    reason = "a test plays both sides of a connection"
)]

mod support;

use support::{KEY, STREAM, Server, delta};
use tidegate_core::{ErrorClass, Marker, ProviderClass, ProviderError, RetryAfter};
use tidegate_driver::ModelEvent;
use tidegate_models::{BadProvider, EVENT_LIMIT_BYTES, OpenAiChat, ReqwestTransport, Secret};

const JSON: &str = "content-type: application/json\r\n";

fn class(status: Option<u16>, marker: Marker) -> ErrorClass {
    ProviderError {
        status,
        marker,
        retry_after: RetryAfter::Unsaid,
        detail: true,
    }
    .class()
}

/// Spec 5.3
#[tokio::test]
async fn an_error_status_is_told_with_its_class_and_words() {
    let echo = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","code":"invalid_api_key"}}}}"#
    );
    for (status, headers, body, expected, say) in [
        (
            401,
            JSON,
            echo.as_str(),
            ErrorClass::Auth,
            "Incorrect API key provided: [redacted]. Check the provider's apiKey in the configuration, or TIDEGATE_PROVIDER_KEY for the first choice.",
        ),
        (
            404,
            JSON,
            r#"{"error":{"message":"The model `tide-1` does not exist"}}"#,
            ErrorClass::ModelNotFound,
            "does not exist. Check the model's name.",
        ),
        (
            429,
            "content-type: application/json\r\nretry-after: 30\r\n",
            r#"{"error":{"message":"Slow down"}}"#,
            ErrorClass::RateLimit,
            "Slow down. It asks to wait (Retry-After: 30).",
        ),
        (
            500,
            JSON,
            r#"{"error":{"message":"boom"}}"#,
            ErrorClass::ServerError,
            "answered 500: boom.",
        ),
        (
            503,
            "",
            "",
            ErrorClass::ServerError,
            "answered 503: nothing more was said.",
        ),
        (
            502,
            "content-type: text/html\r\n",
            "<html><title>Bad Gateway</title></html>",
            ErrorClass::ServerError,
            "a web page: Bad Gateway.",
        ),
        (
            404,
            "content-type: text/html\r\n",
            "<html><title>Nope</title></html>",
            ErrorClass::Protocol,
            "Check the provider's URL",
        ),
        (
            302,
            "location: http://127.0.0.1:1/\r\n",
            "",
            ErrorClass::Protocol,
            "a redirect. It was not followed",
        ),
    ] {
        let server = Server::start().await;
        let call = server.call();
        server.accept().await.answer(status, headers, body).await;
        let (told, marker, words) = call.failure().await;
        assert_eq!(told, Some(status));
        assert_eq!(class(told, marker), expected, "{status} {body}");
        assert!(words.contains(say), "{words}");
        assert!(words.contains(&server.place()), "{words}");
    }
}

#[tokio::test]
async fn the_body_of_an_error_is_read_to_a_bound_only() {
    let server = Server::start().await;
    let call = server.call();
    let mut connection = server.accept().await;
    let endless = tokio::spawn(async move {
        connection
            .write("HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        for _ in 0..32 {
            connection.chunk([b'e'; 1024]).await; // and no end of the body
        }
        connection.hung_up().await;
    });
    let (status, _, words) = call.failure().await;
    assert_eq!(status, Some(500));
    assert!(words.chars().count() < 700, "{words}");
    endless.await.unwrap();
}

#[tokio::test]
async fn a_page_in_place_of_a_stream_is_named() {
    let server = Server::start().await;
    let call = server.call();
    let page = "<!doctype html><html><head><title>Welcome</title></head></html>";
    server
        .accept()
        .await
        .answer(200, "content-type: text/html; charset=utf-8\r\n", page)
        .await;
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (Some(200), Marker::NotAStream));
    assert!(
        words.contains("a web page: Welcome") && words.contains("Check the provider's URL"),
        "{words}"
    );
}

/// S-16, S-17: an error within a good answer is an error, never text.
#[tokio::test]
async fn an_error_within_a_stream_is_told_as_one() {
    let server = Server::start().await;
    let call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk(delta("so far")).await;
    let error = format!(
        r#"{{"error":{{"message":"key {KEY} is used up","type":"overloaded_error","code":529}}}}"#
    );
    connection.chunk(format!("data: {error}\n\n")).await;
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (Some(529), Marker::Overloaded));
    assert!(
        words.ends_with("sent an error in its answer: key [redacted] is used up"),
        "{words}"
    );
}

/// S-16, S-19: in a good answer too an error keeps the class by which it is tried again.
#[tokio::test]
async fn an_error_within_a_stream_keeps_its_class() {
    for (event, class, say) in [
        (
            r#"event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
            ErrorClass::Overloaded,
            "busy",
        ),
        (
            r#"event: response.failed
data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_is_overloaded","message":"later"}}}"#,
            ErrorClass::Overloaded,
            "later",
        ),
        (
            r#"data: {"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
            ErrorClass::RateLimit,
            "Rate limit reached",
        ),
        (
            r#"data: {"error":{"message":"bad gateway","code":502}}"#,
            ErrorClass::ServerError,
            "bad gateway",
        ),
        (
            r#"data: {"error":{"message":"bad request field","type":"invalid_request_error"}}"#,
            ErrorClass::Format,
            "bad request field",
        ),
    ] {
        let server = Server::start().await;
        let call = server.call();
        let mut connection = server.accept().await;
        connection.write(STREAM).await;
        connection.chunk(format!("{event}\n\n")).await;
        let (error, words) = call.error().await;
        assert_eq!(error.class(), class, "{event}");
        assert_eq!(error.retry_after, RetryAfter::Unsaid);
        assert!(words.ends_with(say), "{words}");
    }
}

/// S-16: a server that does not stream says it in its document.
#[tokio::test]
async fn an_error_in_a_good_document_keeps_its_class() {
    let server = Server::start().await;
    let call = server.call();
    let body = r#"{"error":{"type":"overloaded_error","message":"busy"}}"#;
    server.accept().await.answer(200, JSON, body).await;
    let (error, _) = call.error().await;
    assert_eq!(error.class(), ErrorClass::Overloaded);
}

#[tokio::test]
async fn a_stream_that_is_no_json_is_told_as_such() {
    let server = Server::start().await;
    let call = server.call();
    let mut connection = server.accept().await;
    connection.write(STREAM).await;
    connection.chunk("data: {\"choices\":[{\"del\n\n").await;
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (None, Marker::NotAStream));
    assert!(words.contains("no chat-completions answer"), "{words}");
}

/// S-04, for servers that do not stream.
#[tokio::test]
async fn an_oversized_document_ends_the_call_and_the_connection() {
    let server = Server::start().await;
    let call = server.call();
    let mut connection = server.accept().await;
    let endless = tokio::spawn(async move {
        connection
            .write(format!(
                "HTTP/1.1 200 X\r\n{JSON}transfer-encoding: chunked\r\n\r\n"
            ))
            .await;
        connection.chunk(vec![b' '; EVENT_LIMIT_BYTES]).await;
        connection.chunk(" ").await;
        connection.hung_up().await;
    });
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (None, Marker::Oversized));
    assert_eq!(class(status, marker), ErrorClass::Protocol, "not retried");
    assert!(words.contains("larger than 1048576 bytes"), "{words}");
    endless.await.expect("the server saw the end");
}

#[tokio::test]
async fn a_document_that_breaks_off_is_a_failure_of_the_transport() {
    let server = Server::start().await;
    let mut call = server.call();
    let mut connection = server.accept().await;
    connection
        .write(format!(
            "HTTP/1.1 200 X\r\n{JSON}content-length: 90\r\n\r\n{{"
        ))
        .await;
    assert_eq!(call.next().await, ModelEvent::Alive);
    drop(connection);
    assert_eq!(call.failure().await.1, Marker::Transport);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_its_port() {
    let server = Server::start().await;
    let (place, call) = (server.place(), support::provider(&server.url()));
    drop(server);
    let (status, marker, words) = support::Call::start(&call, vec![]).failure().await;
    assert_eq!((status, marker), (None, Marker::Connect));
    let expected = format!("Nothing listens at {place} (connection refused).");
    assert!(
        words.starts_with(&expected) && words.contains("the provider's URL"),
        "{words}"
    );
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_a_failure_of_tls() {
    let server = Server::start().await;
    let url = format!("https://{}/v1", server.place());
    let call = support::Call::start(&support::provider(&url), vec![]);
    let mut connection = server.accept_raw().await;
    connection.write("HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let (status, marker, words) = call.failure().await;
    assert_eq!((status, marker), (None, Marker::Tls));
    assert!(
        words.starts_with(&format!("TLS with {} failed", server.place())),
        "{words}"
    );
}

#[test]
fn a_provider_that_can_not_work_is_refused_before_anything_is_sent() {
    let make = |url: &str, model: &str, key: &str| {
        OpenAiChat::new(url, model, Secret::new(key), ReqwestTransport::new(url))
            .map(|made| made.class())
    };
    assert_eq!(
        make("http://127.0.0.1:8080/v1/", "m", ""),
        Ok(ProviderClass::Local)
    );
    assert_eq!(
        make("https://api.example.com/v1", "m", "k"),
        Ok(ProviderClass::Cloud)
    );
    for url in [
        "",
        "api.example.com/v1",
        "ftp://example.com/v1",
        "http://",
        "data:text/plain,x",
    ] {
        assert!(
            matches!(make(url, "m", ""), Err(BadProvider::Url(_))),
            "{url:?}"
        );
    }
    assert_eq!(
        make("http://me:pw@example.com/v1", "m", ""),
        Err(BadProvider::UserInUrl)
    );
    assert_eq!(
        make("http://h/v1/chat/completions", "m", ""),
        Err(BadProvider::Endpoint)
    );
    for url in [
        "http://h/v1?k=v",
        "http://h/v1#x",
        "http://h/v1/completions/",
    ] {
        assert_eq!(make(url, "m", ""), Err(BadProvider::Endpoint), "{url}");
    }
    let shown = make("http://me:pass word@[", "m", "")
        .expect_err("no URL")
        .to_string();
    assert!(!shown.contains("pass"), "{shown}");
    assert_eq!(make("http://h/v1", " ", ""), Err(BadProvider::NoModel));
    assert_eq!(make("http://h/v1", "m", "two words"), Err(BadProvider::Key));
}
