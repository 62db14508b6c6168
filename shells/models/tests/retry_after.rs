//! Providers that want to be asked again later, and those whose allowance is used up.

#![allow(
    clippy::disallowed_methods,
    reason = "a test plays both sides of a connection"
)]

mod support;

use futures_util::future::{self, BoxFuture};
use futures_util::{FutureExt, StreamExt, stream};
use support::{Call, Server, one};
use tidegate_core::{ErrorClass, Marker, RetryAfter, Wall};
use tidegate_models::{HttpAnswer, HttpRequest, OpenAiChat, Transport, TransportError};

/// B-057: through a real connection, the time of a date by the machine's clock.
#[tokio::test]
async fn the_wait_that_a_provider_asks_for_is_told() {
    use RetryAfter::{Ms, Unrepresentable, Unsaid};
    for (headers, expected, say) in [
        ("", Unsaid, "answered 429: Slow down."),
        (
            "Retry-After: 2\r\n",
            Ms(2_000),
            "It asks to wait (Retry-After: 2).",
        ),
        (
            "retry-after: 2\r\nretry-after-ms: 250\r\n",
            Ms(250),
            "It asks to wait (Retry-After-Ms: 250, Retry-After: 2).",
        ),
        (
            "retry-after-ms: ?\r\nretry-after: 0\r\n",
            Ms(0),
            "(Retry-After-Ms: ?, Retry-After: 0).",
        ),
        (
            "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            Ms(0),
            "(Retry-After: Sun, 06 Nov 1994 08:49:37 GMT).",
        ),
        ("retry-after: soon\r\n", Unsaid, "(Retry-After: soon)."),
        ("retry-after: -3\r\n", Unsaid, "(Retry-After: -3)."),
        (
            "retry-after: \u{E9}\r\n",
            Unsaid,
            "answered 429: Slow down.",
        ),
        (
            "retry-after: 99999999999999999999\r\n",
            Unrepresentable,
            "(Retry-After: 99999999999999999999).",
        ),
    ] {
        let server = Server::start().await;
        let call = server.call();
        let body = r#"{"error":{"message":"Slow down"}}"#;
        server.accept().await.answer(429, headers, body).await;
        let (error, words) = call.error().await;
        assert_eq!(error.retry_after, expected, "{headers}");
        assert_eq!(error.class(), ErrorClass::RateLimit);
        assert!(words.ends_with(say), "{words}");
    }
}

/// An answer that comes at an instant of the test's choice.
struct Fixed {
    came_at: Wall,
    retry_after: &'static str,
}

impl Transport for Fixed {
    fn post(&self, _: HttpRequest) -> BoxFuture<'static, Result<HttpAnswer, TransportError>> {
        let answer = HttpAnswer {
            status: 503,
            content_type: None,
            retry_after: Some(self.retry_after.to_owned()),
            retry_after_ms: None,
            came_at: self.came_at,
            body: stream::empty().boxed(),
        };
        future::ready(Ok(answer)).boxed()
    }
}

/// B-057: a date is a wait from when the answer came.
#[tokio::test]
async fn a_date_to_ask_again_is_counted_from_the_answer() {
    const DATE: u64 = 784_111_777_000;
    for (came_at, expected) in [(DATE - 4_200, 4_200), (DATE, 0), (DATE + 60_000, 0)] {
        let transport = Fixed {
            came_at: Wall(came_at),
            retry_after: "Sun, 06 Nov 1994 08:49:37 GMT",
        };
        let provider = OpenAiChat::new("http://127.0.0.1:1/v1", "m", None, transport)
            .expect("a good provider");
        let (error, _) = Call::start(&one(provider), vec![]).error().await;
        assert_eq!(error.retry_after, RetryAfter::Ms(expected));
        assert_eq!(error.class(), ErrorClass::ServerError);
    }
}

/// B-057, spec 5.2: whatever wait it names, an allowance of a month is no rate.
#[tokio::test]
async fn an_allowance_that_is_used_up_is_told_from_a_rate() {
    let server = Server::start().await;
    let call = server.call();
    let body = r#"{"error":{"code":"1310","message":"Weekly/Monthly Limit Exhausted"}}"#;
    let headers = "retry-after: 60\r\n";
    server.accept().await.answer(429, headers, body).await;
    let (error, _) = call.error().await;
    assert_eq!(error.marker, Marker::UsageWindow);
    assert_eq!(error.class(), ErrorClass::RateLimit);
}
