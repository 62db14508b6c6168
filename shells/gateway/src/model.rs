//! Which models answer: the providers of the operator's choice, or the built-in demo.

use std::sync::Arc;

use tidegate_core::{Config, ProviderClass, ProviderConfig};
use tidegate_driver::Models;
use tidegate_models::{Candidate, Chain, DemoModel};

use crate::config::{Provider, Settings};
use crate::problem::Problem;

/// The models, and what the core must know of them.
pub struct Model {
    /// Answers.
    pub models: Arc<dyn Models>,
    /// The class and limits of the first choice.
    pub provider: ProviderConfig,
    /// Those of its fallbacks, in their order (P15).
    pub fallbacks: Vec<ProviderConfig>,
    /// What the start says about them.
    pub words: String,
}

impl Model {
    /// The models that the settings name.
    ///
    /// # Errors
    /// If a provider cannot be used as it is named.
    pub fn choose(settings: &Settings) -> Result<Self, Problem> {
        let mut chain = Vec::with_capacity(settings.chain.len());
        let mut limits = Vec::with_capacity(settings.chain.len());
        for named in &settings.chain {
            let (candidate, provider) = candidate(named)?;
            chain.push(candidate);
            limits.push(provider);
        }
        let mut limits = limits.into_iter();
        let (Some(first), Some(provider)) = (settings.chain.first(), limits.next()) else {
            return Ok(Self::demo());
        };
        let mut words = format!(
            "{} at {} ({})",
            first.model,
            // Some services take a key in the query: that part is not for the screen.
            first.base_url.split('?').next().unwrap_or_default(),
            class_word(provider.class)
        );
        for (i, fallback) in chain.iter().skip(1).enumerate() {
            words.push_str(if i == 0 { "; else " } else { ", " });
            words.push_str(&fallback.name);
        }
        Ok(Self {
            models: Arc::new(Chain::new(chain)),
            provider,
            fallbacks: limits.collect(),
            words,
        })
    }

    fn demo() -> Self {
        let provider = ProviderConfig {
            class: ProviderClass::Local,
            timeout_ms: None,
        };
        Self {
            models: Arc::new(DemoModel),
            provider,
            fallbacks: Vec::new(),
            words: "demo, built in; for a real one: --provider-url URL --model NAME".into(),
        }
    }

    /// The core's configuration with these models.
    #[must_use]
    pub fn config(&self, settings: &Settings) -> Config {
        Config {
            provider: self.provider,
            fallbacks: self.fallbacks.clone(),
            ..settings.core.clone()
        }
    }
}

/// A provider as one of the chain, and what the core must know of it.
fn candidate(named: &Provider) -> Result<(Candidate, ProviderConfig), Problem> {
    let chat = named
        .chat()
        .map_err(|error| Problem::configuration(error.to_string()))?;
    let provider = ProviderConfig {
        class: chat.class(),
        timeout_ms: named.timeout_ms,
    };
    let name = format!("{}/{}", named.id, named.model).into();
    Ok((Candidate { name, chat }, provider))
}

const fn class_word(class: ProviderClass) -> &'static str {
    match class {
        ProviderClass::Cloud => "cloud",
        ProviderClass::SelfHosted => "self-hosted",
        ProviderClass::Local => "local",
    }
}
