//! Several providers in a row: a call goes to the one that it names, with that one's key.

#![allow(
    clippy::disallowed_methods,
    reason = "a test plays both sides of a connection"
)]

mod support;

use support::{Call, STREAM, Server, chat, user};
use tidegate_core::ModelEnd;
use tidegate_driver::{ModelEvent, Models};
use tidegate_models::{Candidate, Chain};

/// A chain of two servers, each with a key of its own.
fn chain(first: &Server, second: &Server) -> Chain {
    let candidate = |name: &str, server: &Server, key| Candidate {
        name: name.into(),
        chat: chat(&server.url(), key),
    };
    Chain::new(vec![
        candidate("first/m", first, "key-of-the-first"),
        candidate("second/m", second, "key-of-the-second"),
    ])
}

/// P15: each candidate is asked at its own address with its own key, and the others hear
/// nothing of the call.
#[tokio::test]
async fn a_call_goes_to_its_candidate_with_that_ones_key_alone() {
    for (number, own) in [(0, "key-of-the-first"), (1, "key-of-the-second")] {
        let (first, second) = (Server::start().await, Server::start().await);
        let chain = chain(&first, &second);
        let call = Call::ask(&chain, number, vec![user("hello")]);
        let (asked, other) = if number == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let mut connection = asked.accept().await;
        assert_eq!(connection.request.matches("key-of-the").count(), 1);
        assert!(
            connection.request.contains(own),
            "{number}: {}",
            connection.request
        );
        connection.write(STREAM).await;
        connection.chunk("data: [DONE]\n\n").await;
        connection.write("0\r\n\r\n").await;
        call.rest().await;
        assert!(!other.somebody_waits(), "{number}");
    }
}

/// Law 10: a candidate that does not exist is a defect, told as one; nobody is asked.
#[tokio::test]
async fn a_candidate_beyond_the_chain_fails_and_asks_nobody() {
    let (first, second) = (Server::start().await, Server::start().await);
    let chain = chain(&first, &second);
    let call = Call::ask(&chain, 2, vec![user("hello")]);
    let (events, end) = call.rest().await;
    assert!(matches!(end, ModelEnd::Failed(_)), "{end:?}");
    let [ModelEvent::Detail(words)] = events.as_slice() else {
        panic!("its words, and nothing else: {events:?}")
    };
    assert!(
        words.contains("number 2 in its chain of 2 providers") && words.contains("defect"),
        "{words}"
    );
    assert!(!first.somebody_waits() && !second.somebody_waits());
    assert_eq!(&*chain.name(1), "second/m");
    assert_eq!(&*chain.name(2), "number 2 of the chain");
}
