//! The chain: the providers of the configuration in the order in which they are asked.
//!
//! It gives each call to the provider that the call names. Which one that is, and whether
//! another is asked after it, is decided in the core (P15, law 1). Each provider has its own
//! address and its own key, and sees those of no other.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tidegate_core::{Marker, ModelEnd};
use tidegate_driver::{ModelCall, ModelSink, Models};

use crate::openai::OpenAiChat;

/// A provider's model under the name that people know it by.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What people call it: `provider/model` of the configuration. No address and no key.
    pub name: Arc<str>,
    /// Answers.
    pub chat: OpenAiChat,
}

/// The providers in their order. The first is the first choice.
#[derive(Clone, Debug)]
pub struct Chain(Vec<Candidate>);

impl Chain {
    /// A chain of these. Its length is that of the core's: one, and its fallbacks.
    #[must_use]
    pub fn new(candidates: Vec<Candidate>) -> Self {
        Self(candidates)
    }

    fn at(&self, candidate: u16) -> Option<&Candidate> {
        self.0.get(usize::from(candidate))
    }
}

impl Models for Chain {
    fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd> {
        if let Some(candidate) = self.at(call.candidate) {
            return candidate.chat.call(call, sink);
        }
        let number = call.candidate;
        let length = self.0.len();
        async move {
            let says = format!(
                "The gateway looked for number {number} in its chain of {length} providers, counted \
                 from 0; nobody was asked. This is a defect of the gateway."
            );
            sink.fail(None, Marker::None, says).await
        }
        .boxed()
    }

    fn name(&self, candidate: u16) -> Arc<str> {
        match self.at(candidate) {
            Some(candidate) => Arc::clone(&candidate.name),
            None => format!("number {candidate} of the chain").into(),
        }
    }
}
