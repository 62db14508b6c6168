//! Reads the answer of an OpenAI-compatible chat model: a stream of events, or one document.
//!
//! Owns the dialect: which event is text, thought, a piece of a tool call, structure, an end or
//! an error. It never waits and decides no limit. Two things are kept apart: *the model finished* is said by a
//! finish reason or `[DONE]`; *the transport ended* is known only to the caller, who then
//! asks [`ChatStream::end`] what that means (P38).

use serde_json::Value;
use tidegate_core::Marker;

use crate::provider_error::Said;
use crate::sse::{Oversized, SseItem, SseParser};
use crate::tool_calls::{BadCalls, ChatCall, ToolCalls};

/// Tokens that a call used, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer, thoughts included where the provider counts them.
    pub completion_tokens: u64,
}

/// Why the model says that it finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It had said all.
    Stop,
    /// It reached the limit of its output.
    Length,
    /// It wants tools to be called.
    ToolCalls,
    /// A filter of the provider stopped it.
    ContentFilter,
    /// A reason of the provider's own.
    Other,
}

/// An error that came in place of, or within, an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatError {
    /// The status that stands in the error itself, if any.
    pub status: Option<u16>,
    /// The hint that was recognised.
    pub marker: Marker,
    /// The provider's words as they came: clean them with
    /// [`for_people`](crate::for_people) before anyone sees them.
    pub message: String,
}

/// What the provider said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatFact {
    /// A sign of life without data: a comment, a ping, an event of an unknown kind (S-05, S-06).
    Alive,
    /// Data without output: a role, empty choices (S-12).
    Structure,
    /// Tokens used (S-13). Data without output.
    Usage(Usage),
    /// The model thinks. The thought itself is not kept.
    Reasoning,
    /// The reply grew by this. Never empty.
    Text(String),
    /// A tool call grew. The calls are told as a whole: see [`ChatStream::take_calls`].
    Calling,
    /// The tool calls can't be taken, so the caller ends the call.
    BadCalls(BadCalls),
    /// The model says that it finished. More may still follow and counts (S-09, S-10).
    Finish(Finish),
    /// The provider says that nothing follows.
    Done,
    /// The provider failed.
    Error(ChatError),
    /// An event that is no JSON object, or content of an unknown kind. To skip it could leave
    /// a hole in the reply that nobody sees, so the caller ends the call.
    Unreadable,
}

/// What the end of the transport means for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatEnd {
    /// The model had finished: a finish reason or `[DONE]` was there; either is enough (S-08).
    Completed,
    /// It had not (S-07).
    Incomplete {
        /// Bytes of an event that never ended, discarded as the standard says.
        unfinished_bytes: usize,
    },
}

/// Reads a streamed answer.
#[derive(Clone, Debug)]
pub struct ChatStream {
    sse: SseParser,
    items: Vec<SseItem>,
    answer: Answer,
    done: bool,
}

/// What is known of an answer as a whole.
#[derive(Clone, Debug, Default)]
struct Answer {
    calls: ToolCalls,
    /// The last finish reason.
    finish: Option<Finish>,
    /// Calls grew since then.
    grew: bool,
    /// Its calls are void: a filter stopped it, or it failed.
    void: bool,
}

impl ChatStream {
    /// A reader at the beginning of an answer. `event_limit_bytes` bounds one event.
    #[must_use]
    pub fn new(event_limit_bytes: usize) -> Self {
        Self {
            sse: SseParser::new(event_limit_bytes),
            items: Vec::new(),
            answer: Answer::default(),
            done: false,
        }
    }

    /// Takes the next bytes and appends to `facts` what they say. After [`ChatFact::Done`]
    /// nothing more is said.
    ///
    /// # Errors
    /// [`Oversized`], now and ever after. What was said before it is in `facts`.
    pub fn push(&mut self, bytes: &[u8], facts: &mut Vec<ChatFact>) -> Result<(), Oversized> {
        if self.done {
            return Ok(());
        }
        let pushed = self.sse.push(bytes, &mut self.items);
        for item in self.items.drain(..) {
            let from = facts.len();
            read_item(&item, &mut self.answer.calls, facts);
            self.answer.note(&facts[from..]);
            self.done = matches!(facts.last(), Some(ChatFact::Done));
            if self.done {
                return Ok(());
            }
        }
        pushed
    }

    /// What it means if the transport ends now.
    #[must_use]
    pub const fn end(&self) -> ChatEnd {
        if self.answer.finish.is_some() || self.done {
            ChatEnd::Completed
        } else {
            ChatEnd::Incomplete {
                unfinished_bytes: self.sse.unfinished_bytes(),
            }
        }
    }

    /// What it means if the transport breaks now: the same, but calls that grew after the
    /// model said that it finished may lack what was lost.
    #[must_use]
    pub const fn broken(&self) -> ChatEnd {
        if self.answer.grew && !self.done {
            ChatEnd::Incomplete {
                unfinished_bytes: self.sse.unfinished_bytes(),
            }
        } else {
            self.end()
        }
    }

    /// The tool calls of the answer, in their order, once (S-11). To be asked when the answer is
    /// whole, whatever its finish reason says (S-09); an answer that a filter stopped, or that
    /// failed, has none.
    #[must_use]
    pub fn take_calls(&mut self) -> Vec<ChatCall> {
        self.answer.take_calls()
    }
}

impl Answer {
    fn note(&mut self, facts: &[ChatFact]) {
        for fact in facts {
            match fact {
                ChatFact::Finish(finish) => {
                    self.finish = Some(*finish);
                    self.grew = false;
                    self.void |= *finish == Finish::ContentFilter;
                }
                ChatFact::Calling => self.grew = self.finish.is_some(),
                ChatFact::Error(_) | ChatFact::Unreadable | ChatFact::BadCalls(_) => {
                    self.void = true;
                }
                _ => {}
            }
        }
    }

    fn take_calls(&mut self) -> Vec<ChatCall> {
        let calls = self.calls.take(self.finish == Some(Finish::Length));
        if self.void { Vec::new() } else { calls }
    }
}

/// Reads an answer that came as one JSON document, as some servers give even when a stream
/// was asked for, and the tool calls in it. A whole answer ends with [`ChatFact::Done`].
#[must_use]
pub fn read_whole_answer(body: &[u8]) -> (Vec<ChatFact>, Vec<ChatCall>) {
    let mut facts = Vec::new();
    let mut answer = Answer::default();
    match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.get("choices").is_some() || Said::in_event(&value).is_some() => {
            read_value(&value, &mut answer.calls, &mut facts);
            if !facts.iter().any(|fact| matches!(fact, ChatFact::Error(_))) {
                facts.push(ChatFact::Done);
            }
        }
        _ => facts.push(ChatFact::Unreadable),
    }
    answer.note(&facts);
    (facts, answer.take_calls())
}

fn read_item(item: &SseItem, calls: &mut ToolCalls, facts: &mut Vec<ChatFact>) {
    let SseItem::Event { name, data } = item else {
        facts.push(ChatFact::Alive);
        return;
    };
    let data = data.trim();
    if data.is_empty() || data == "[DONE]" {
        facts.push(if data.is_empty() {
            ChatFact::Alive
        } else {
            ChatFact::Done
        });
        return;
    }
    let value = serde_json::from_str(data).ok().filter(Value::is_object);
    match (name.as_str(), value) {
        ("error", value) => {
            let said = value.and_then(|value| Said::in_event(&value));
            facts.push(ChatFact::Error(error(
                said.unwrap_or_else(|| Said::words(data)),
            )));
        }
        (_, Some(value)) => read_value(&value, calls, facts),
        ("" | "message", None) => facts.push(ChatFact::Unreadable),
        (_, None) => facts.push(ChatFact::Alive), // an unknown kind of event may hold anything
    }
}

fn error(said: Said) -> ChatError {
    ChatError {
        status: said.status,
        marker: said.marker(),
        message: said.message,
    }
}

/// What one object says, in this order: thought, text, calls, finish, usage. A member of another
/// type than expected counts as absent, except for content and calls.
fn read_value(value: &Value, calls: &mut ToolCalls, facts: &mut Vec<ChatFact>) {
    if let Some(said) = Said::in_event(value) {
        facts.push(ChatFact::Error(error(said)));
        return;
    }
    let from = facts.len();
    let choices = value.get("choices").and_then(Value::as_array);
    for choice in choices.into_iter().flatten() {
        read_choice(choice, calls, facts);
    }
    facts.extend(usage(value).map(ChatFact::Usage));
    if facts.len() == from {
        // An object that is no part of an answer shows only that the other side lives (S-06).
        facts.push(if choices.is_some() {
            ChatFact::Structure
        } else {
            ChatFact::Alive
        });
    }
}

/// One choice. We ask for one; others would be alternatives, not continuations.
fn read_choice(choice: &Value, calls: &mut ToolCalls, facts: &mut Vec<ChatFact>) {
    if choice.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
        return;
    }
    let delta = choice.get("delta").filter(|delta| delta.is_object());
    let whole = delta.is_none();
    if let Some(delta) = delta.or(choice.get("message")) {
        read_delta(delta, whole, calls, facts);
    }
    match choice.get("finish_reason").and_then(Value::as_str) {
        None | Some("") => {}
        Some("error") => facts.push(ChatFact::Error(ChatError {
            status: None,
            marker: Marker::None,
            message: "the answer ended with the finish reason \"error\"".to_owned(),
        })),
        Some(reason) => facts.push(ChatFact::Finish(finish(reason))),
    }
}

/// What a choice grows by, or a `whole` one has.
fn read_delta(delta: &Value, whole: bool, calls: &mut ToolCalls, facts: &mut Vec<ChatFact>) {
    let thinks = |key: &str| match delta.get(key) {
        Some(Value::String(thought)) => !thought.is_empty(),
        Some(Value::Array(thoughts)) => !thoughts.is_empty(),
        _ => false,
    };
    if ["reasoning_content", "reasoning", "reasoning_details"]
        .into_iter()
        .any(thinks)
    {
        facts.push(ChatFact::Reasoning);
    }
    // A refusal is what the model has to say to the user.
    for content in ["content", "refusal"]
        .into_iter()
        .filter_map(|key| delta.get(key))
    {
        read_content(content, facts);
    }
    match calls.add(delta.get("tool_calls").unwrap_or(&Value::Null), whole) {
        Ok(false) => {}
        Ok(true) => facts.push(ChatFact::Calling),
        Err(bad) => facts.push(ChatFact::BadCalls(bad)),
    }
}

/// Text, or a list of parts that are text or thoughts. Content of any other kind would be a
/// hole in the reply if it were skipped.
fn read_content(content: &Value, facts: &mut Vec<ChatFact>) {
    match content {
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => facts.push(ChatFact::Text(text.clone())),
        Value::Array(parts) => {
            for part in parts {
                match (part.get("text"), part.get("thinking")) {
                    (Some(text @ Value::String(_)), _) => read_content(text, facts),
                    (None, Some(_)) => facts.push(ChatFact::Reasoning),
                    _ => facts.push(ChatFact::Unreadable),
                }
            }
        }
        _ => facts.push(ChatFact::Unreadable),
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "stop" | "eos" | "end_turn" => Finish::Stop,
        "length" | "max_tokens" => Finish::Length,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        "content_filter" => Finish::ContentFilter,
        _ => Finish::Other,
    }
}

fn usage(value: &Value) -> Option<Usage> {
    let usage = value.get("usage").filter(|usage| usage.is_object())?;
    let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
    Some(Usage {
        prompt_tokens: count("prompt_tokens"),
        completion_tokens: count("completion_tokens"),
    })
}
