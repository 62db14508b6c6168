//! The model of a gateway that has no provider: it answers by rule, and says so.
//!
//! The same transcript gives the same reply. It shows that a message gets through and how
//! to set a real provider up; it never pretends to understand.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tidegate_core::ModelEnd;
use tidegate_driver::{ModelCall, ModelEvent, ModelSink, Models, Role, RowMark, TranscriptRow};

/// The built-in demo model.
#[derive(Clone, Copy, Debug, Default)]
pub struct DemoModel;

impl Models for DemoModel {
    fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd> {
        async move {
            for sentence in reply(&call.transcript) {
                sink.send(ModelEvent::Text(sentence)).await;
                tokio::task::yield_now().await;
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
