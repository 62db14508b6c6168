//! The model of a gateway that has no provider: it answers by rule, and says so.
//!
//! The same transcript gives the same reply. It shows that a message gets through, how a tool
//! is called and allowed, and how to set a real provider up; it never pretends to understand.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tidegate_core::ModelEnd;
use tidegate_driver::{
    CallText, ModelCall, ModelEvent, ModelSink, Models, Role, RowMark, TranscriptRow,
};
use tidegate_text::call_end_words;

/// The tool that a message can ask for, by beginning with [`ASKS`]; the rest is its command.
const TOOL: &str = "exec";
const ASKS: char = '!';

/// How much of a call's output is quoted: so many lines, of so many characters each.
const QUOTED_LINES: usize = 5;
const QUOTED_LINE_CHARS: usize = 120;

/// The built-in demo model.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemoModel;

impl Models for DemoModel {
    fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd> {
        async move {
            let (sentences, asked) = answer(&call);
            for sentence in sentences {
                sink.send(ModelEvent::Text(sentence)).await;
                tokio::task::yield_now().await;
            }
            if let Some(asked) = asked {
                sink.send(ModelEvent::Calling).await;
                sink.send(ModelEvent::Call(asked)).await;
            }
            ModelEnd::Completed
        }
        .boxed()
    }

    /// It is the only one: nothing comes before or after it.
    fn name(&self, _candidate: u16) -> Arc<str> {
        "demo".into()
    }
}

/// The answer, in the pieces in which it is streamed, and the tool call that it asks for.
fn answer(call: &ModelCall) -> (Vec<String>, Option<CallText>) {
    let mut rows = call
        .transcript
        .iter()
        .rev()
        .filter(|row| row.mark != RowMark::Interrupted);
    match rows.next() {
        Some(row) if row.role == Role::Tool => (vec![quoted(row)], None),
        Some(row) if row.role == Role::User && offers(call) => match command(&row.text) {
            Some(command) => asked(command),
            None => (reply(&call.transcript), None),
        },
        _ => (reply(&call.transcript), None),
    }
}

fn offers(call: &ModelCall) -> bool {
    call.tools.iter().any(|tool| tool.name == TOOL)
}

/// The command that a message asks for.
fn command(message: &str) -> Option<&str> {
    let command = message.trim().strip_prefix(ASKS)?.trim();
    (!command.is_empty()).then_some(command)
}

fn asked(command: &str) -> (Vec<String>, Option<CallText>) {
    let call = CallText {
        id: String::new(),
        name: TOOL.to_owned(),
        arguments: serde_json::json!({ "command": command }).to_string(),
    };
    let says = format!("[demo model] Your message begins with {ASKS}, so I ask for {TOOL}.");
    (vec![says], Some(call))
}

/// The first lines of what a call put out, and what its end means.
fn quoted(row: &TranscriptRow) -> String {
    let mut says = "[demo model] The result of the call".to_owned();
    let mut lines = row.text.lines();
    for (n, line) in lines.by_ref().take(QUOTED_LINES).enumerate() {
        says.push_str(if n == 0 { ":\n" } else { "\n" });
        says.push_str("> ");
        says.extend(line.chars().take(QUOTED_LINE_CHARS));
        if line.chars().nth(QUOTED_LINE_CHARS).is_some() {
            says.push('…');
        }
    }
    match lines.count() {
        _ if row.text.is_empty() => says.push_str(" is empty."),
        0 => {}
        more => says.push_str(&format!("\n({more} more lines)")),
    }
    let end = row.answers.as_ref().map(|answers| answers.end);
    let words = end.map_or("", call_end_words);
    if !words.is_empty() {
        says.push_str("\n\n");
        says.push_str(words);
    }
    says
}

/// The reply, in the pieces in which it is streamed.
fn reply(transcript: &[TranscriptRow]) -> Vec<String> {
    let messages = || {
        transcript
            .iter()
            .filter(|row| row.role == Role::User && row.mark != RowMark::Interrupted)
    };
    let turn = messages().count();
    let length = messages()
        .next_back()
        .map_or(0, |row| row.text.chars().count());
    let characters = if length == 1 {
        "character"
    } else {
        "characters"
    };
    vec![
        format!(
            "[demo model] Your message arrived: {length} {characters}, turn {turn} of this session. "
        ),
        "It is stored durably, and so is this reply once it is complete. ".to_owned(),
        "No model reads it: this text is made by a fixed rule. ".to_owned(),
        "For real answers start the gateway with --provider-url URL --model NAME, ".to_owned(),
        "where URL is an OpenAI-compatible service up to and with /v1, ".to_owned(),
        "and put its key, if it needs one, into TIDEGATE_PROVIDER_KEY.".to_owned(),
    ]
}
