//! How an answer is read, and the sentences that people get when it is none.
//!
//! Owns the bounds of reading and the way from the dialect's facts to the driver's events.
//! Each read is reported before the next one is waited for; nothing is delayed but tool calls,
//! which are told when the answer is whole: those of a stream that broke never are (P38, B-060).

use futures_util::StreamExt;
use tidegate_core::{Marker, ModelEnd, ProviderError, RetryAfter};
use tidegate_driver::{CallText, ModelEvent, ModelSink};
use tidegate_text::{
    BadCalls, ChatCall, ChatEnd, ChatFact, ChatStream, for_people, read_error_body,
    read_retry_after, read_whole_answer,
};

use crate::openai::Provider;
use crate::transport::{HttpAnswer, TransportError};

/// The most bytes that one event of a stream, or an answer in one document, may have (S-04).
/// Events are a few hundred bytes; a whole long answer is a few hundred thousand.
pub const EVENT_LIMIT_BYTES: usize = 1 << 20;

/// The most bytes of an error's body that are read. What matters stands at its beginning.
pub const ERROR_BODY_LIMIT_BYTES: usize = 16 << 10;

const CHECK_URL: &str =
    "Check the provider's URL: it goes up to and with /v1, without /chat/completions.";

impl Provider {
    pub(crate) async fn read_stream(&self, mut answer: HttpAnswer, sink: &ModelSink) -> ModelEnd {
        let mut stream = ChatStream::new(EVENT_LIMIT_BYTES);
        let mut facts = Vec::new();
        while let Some(read) = answer.body.next().await {
            let bytes = match (read, stream.broken()) {
                (Ok(bytes), _) => bytes,
                // The model had finished, so the answer is whole whatever the transport does.
                (Err(_), ChatEnd::Completed) => return complete(stream.take_calls(), sink).await,
                (Err(error), ChatEnd::Incomplete { .. }) => return self.broken(&error, sink).await,
            };
            let pushed = stream.push(&bytes, &mut facts);
            if facts.is_empty() && pushed.is_ok() && !bytes.is_empty() {
                facts.push(ChatFact::Alive); // a part of an event: the transport lives
            }
            match self.report(&mut facts, sink).await {
                Some(ModelEnd::Completed) => return complete(stream.take_calls(), sink).await,
                Some(end) => return end,
                None => {}
            }
            if let Err(oversized) = pushed {
                let words = format!("{}: {oversized}; the connection was closed.", self.place);
                return sink.fail(None, Marker::Oversized, words).await;
            }
        }
        match stream.end() {
            ChatEnd::Completed => complete(stream.take_calls(), sink).await,
            ChatEnd::Incomplete { unfinished_bytes } => {
                tracing::debug!(
                    place = self.place,
                    unfinished_bytes,
                    "the stream ended before the model did"
                );
                ModelEnd::Incomplete
            }
        }
    }

    /// Reports what one read brought. Gives the end, if there is one in it.
    async fn report(&self, facts: &mut Vec<ChatFact>, sink: &ModelSink) -> Option<ModelEnd> {
        let (events, end) = gather(facts);
        for event in events {
            sink.send(event).await;
        }
        match end? {
            ChatFact::Done => Some(ModelEnd::Completed),
            ChatFact::BadCalls(bad) => {
                let marker = match bad {
                    BadCalls::TooMany | BadCalls::TooLarge => Marker::Oversized,
                    BadCalls::Unreadable => Marker::NotAStream,
                };
                let words = format!("{}: {bad}; the rest was not read.", self.place);
                Some(sink.fail(None, marker, words).await)
            }
            ChatFact::Error(error) => {
                let said = for_people(&error.message, self.secret());
                let words = format!(
                    "{} sent an error in its answer: {}",
                    self.place,
                    or_nothing(&said)
                );
                Some(sink.fail(error.status, error.marker, words).await)
            }
            _ => {
                let words = format!(
                    "{} sent something that is no chat-completions answer (not a JSON object of that kind), so the rest was not read.",
                    self.place
                );
                Some(sink.fail(None, Marker::NotAStream, words).await)
            }
        }
    }

    /// Some servers give one document although a stream was asked for.
    pub(crate) async fn read_document(&self, mut answer: HttpAnswer, sink: &ModelSink) -> ModelEnd {
        let mut document = Vec::new();
        while let Some(read) = answer.body.next().await {
            match read {
                Ok(bytes) if bytes.len() > EVENT_LIMIT_BYTES - document.len() => {
                    let words = format!(
                        "{}: the answer is larger than {EVENT_LIMIT_BYTES} bytes, the most that is read in one piece; the connection was closed.",
                        self.place
                    );
                    return sink.fail(None, Marker::Oversized, words).await;
                }
                Ok(bytes) => document.extend_from_slice(&bytes),
                Err(error) => return self.broken(&error, sink).await,
            }
            sink.send(ModelEvent::Alive).await;
        }
        let (mut facts, calls) = read_whole_answer(&document);
        match self.report(&mut facts, sink).await {
            Some(ModelEnd::Completed) => complete(calls, sink).await,
            Some(end) => end,
            None => ModelEnd::Incomplete,
        }
    }

    /// A good status with something that is no answer, such as a page.
    pub(crate) async fn read_other(&self, mut answer: HttpAnswer, sink: &ModelSink) -> ModelEnd {
        let body = beginning(&mut answer).await;
        let content_type = answer.content_type.as_deref();
        let said = read_error_body(answer.status, content_type, &body, self.secret());
        let words = format!(
            "{} answered with {}, not with a stream of a model: {}. {CHECK_URL}",
            self.place,
            for_people(content_type.unwrap_or("no type"), self.secret()),
            or_nothing(&said.words),
        );
        sink.fail(Some(answer.status), Marker::NotAStream, words)
            .await
    }

    pub(crate) async fn read_failure(&self, mut answer: HttpAnswer, sink: &ModelSink) -> ModelEnd {
        let status = answer.status;
        if (300..400).contains(&status) {
            let words = format!(
                "{} answered {status}, a redirect. It was not followed, so that the key goes nowhere else. {CHECK_URL}",
                self.place
            );
            return sink.fail(Some(status), Marker::NotAStream, words).await;
        }
        let body = beginning(&mut answer).await;
        let said = read_error_body(status, answer.content_type.as_deref(), &body, self.secret());
        let mut words = format!(
            "{} answered {status}: {}.",
            self.place,
            or_nothing(said.words.trim_end_matches('.'))
        );
        if let Some(wait) = asked_wait(&answer) {
            let wait = for_people(&wait, self.secret());
            words.push_str(&format!(" It asks to wait ({wait})."));
        }
        if let Some(advice) = self.advice(status, said.marker) {
            words.push(' ');
            words.push_str(advice);
        }
        let error = ProviderError {
            status: Some(status),
            marker: said.marker,
            retry_after: retry_after(&answer),
            detail: true,
        };
        sink.fail_with(error, words).await
    }

    fn advice(&self, status: u16, marker: Marker) -> Option<&'static str> {
        match (marker, status) {
            (Marker::NotAStream, _) => Some(CHECK_URL),
            (Marker::Auth, _) | (Marker::None, 401 | 403) => Some(match self.key {
                Some(_) => {
                    "Check the provider's apiKey in the configuration, or TIDEGATE_PROVIDER_KEY for the first choice."
                }
                None => {
                    "No key was sent: set the provider's apiKey in the configuration, or TIDEGATE_PROVIDER_KEY for the first choice."
                }
            }),
            (Marker::ModelNotFound, _) => Some("Check the model's name."),
            (Marker::None, 404) => Some("Check the model's name and the provider's URL."),
            _ => None,
        }
    }

    async fn broken(&self, error: &TransportError, sink: &ModelSink) -> ModelEnd {
        let words = format!(
            "The connection to {} broke while the answer was under way: {error}.",
            self.place
        );
        sink.fail(None, error.marker(), words).await
    }
}

/// The end of an answer that is whole, with the tool calls that it asks for.
async fn complete(calls: Vec<ChatCall>, sink: &ModelSink) -> ModelEnd {
    for call in calls {
        let call = CallText {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
        };
        sink.send(ModelEvent::Call(call)).await;
    }
    ModelEnd::Completed
}

/// When the provider wants to be asked again (B-057).
fn retry_after(answer: &HttpAnswer) -> RetryAfter {
    let millis = answer.retry_after_ms.as_deref().map(str::as_bytes);
    let value = answer.retry_after.as_deref().map(str::as_bytes);
    read_retry_after(millis, value, answer.came_at)
}

/// The same in the provider's own words, whether or not they can be read.
fn asked_wait(answer: &HttpAnswer) -> Option<String> {
    let headers = [
        ("Retry-After-Ms", &answer.retry_after_ms),
        ("Retry-After", &answer.retry_after),
    ];
    let said = headers.into_iter().filter_map(|(name, value)| {
        let value = value.as_deref()?;
        Some(format!("{name}: {value}"))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// The first bytes of a body, or what came of them before the connection broke.
async fn beginning(answer: &mut HttpAnswer) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < ERROR_BODY_LIMIT_BYTES {
        let Some(Ok(bytes)) = answer.body.next().await else {
            break;
        };
        let room = ERROR_BODY_LIMIT_BYTES - body.len();
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
    body
}

fn or_nothing(words: &str) -> &str {
    if words.is_empty() {
        "nothing more was said"
    } else {
        words
    }
}

/// The events of what one read brought, up to an end, and that end. Adjacent text becomes
/// one event, since it came at once (R92); a sign said twice at once is said once.
fn gather(facts: &mut Vec<ChatFact>) -> (Vec<ModelEvent>, Option<ChatFact>) {
    let mut events = Vec::new();
    for fact in facts.drain(..) {
        let event = match fact {
            ChatFact::Text(more) => {
                if let Some(ModelEvent::Text(text)) = events.last_mut() {
                    text.push_str(&more);
                    continue;
                }
                ModelEvent::Text(more)
            }
            ChatFact::Alive => ModelEvent::Alive,
            ChatFact::Reasoning => ModelEvent::Reasoning,
            ChatFact::Calling => ModelEvent::Calling,
            ChatFact::Structure => ModelEvent::Structure,
            ChatFact::Finish(_) => ModelEvent::Finished,
            ChatFact::Usage(usage) => {
                tracing::debug!(?usage, "the provider counted the tokens of a call");
                ModelEvent::Structure
            }
            end @ (ChatFact::Done
            | ChatFact::Error(_)
            | ChatFact::BadCalls(_)
            | ChatFact::Unreadable) => {
                return (events, Some(end));
            }
        };
        if events.last() != Some(&event) {
            events.push(event);
        }
    }
    (events, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R92
    #[test]
    fn what_came_at_once_is_said_at_once_and_in_order() {
        let text = |text: &str| ChatFact::Text(text.to_owned());
        let mut facts = vec![
            ChatFact::Alive,
            ChatFact::Alive,
            ChatFact::Reasoning,
            text("a"),
            text("b"),
            ChatFact::Structure,
            text("c"),
            ChatFact::Done,
            text("ghost"),
        ];
        let (events, end) = gather(&mut facts);
        let text = |text: &str| ModelEvent::Text(text.to_owned());
        let expected = [
            ModelEvent::Alive,
            ModelEvent::Reasoning,
            text("ab"),
            ModelEvent::Structure,
            text("c"),
        ];
        assert_eq!(
            (events.as_slice(), end),
            (expected.as_slice(), Some(ChatFact::Done))
        );
        assert!(facts.is_empty());
    }
}
