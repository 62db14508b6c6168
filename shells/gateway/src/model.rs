//! Which model answers: a provider of the operator's choice, or the built-in demo.

use std::sync::Arc;

use tidegate_core::{Config, ProviderClass, ProviderConfig};
use tidegate_driver::Models;
use tidegate_models::DemoModel;

use crate::config::Settings;
use crate::problem::Problem;

/// The model, and what the core must know of it.
pub struct Model {
    /// Answers.
    pub models: Arc<dyn Models>,
    /// Its class and limits.
    pub provider: ProviderConfig,
    /// What the start says about it.
    pub words: String,
}

impl Model {
    /// The model that the settings name.
    ///
    /// # Errors
    /// If the provider cannot be used as it is named.
    pub fn choose(settings: &Settings) -> Result<Self, Problem> {
        let Some(named) = &settings.provider else {
            return Ok(Self::demo());
        };
        let chat = named
            .chat()
            .map_err(|error| Problem::configuration(error.to_string()))?;
        let provider = ProviderConfig {
            class: chat.class(),
            timeout_ms: named.timeout_ms,
        };
        let class = match provider.class {
            ProviderClass::Cloud => "cloud",
            ProviderClass::SelfHosted => "self-hosted",
            ProviderClass::Local => "local",
        };
        Ok(Self {
            models: Arc::new(chat),
            provider,
            // Some services take a key in the query: that part is not for the screen.
            words: format!(
                "{} at {} ({class})",
                named.model,
                named.base_url.split('?').next().unwrap_or_default()
            ),
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
            words: "demo, built in; for a real one: --provider-url URL --model NAME".into(),
        }
    }

    /// The core's configuration with this model.
    #[must_use]
    pub fn config(&self, settings: &Settings) -> Config {
        Config {
            provider: self.provider,
            ..settings.core.clone()
        }
    }
}
