//! Which model answers: a provider of the operator's choice, or the built-in demo.

use std::env::VarError;
use std::num::NonZero;
use std::sync::Arc;

use tidegate_core::{Config, ProviderClass, ProviderConfig};
use tidegate_driver::Models;
use tidegate_models::{DemoModel, OpenAiChat, ReqwestTransport, Secret};

use crate::cli::RunArgs;
use crate::problem::Problem;

/// The provider's key. Only a variable: a flag could be seen by other users of the machine.
const KEY_VARIABLE: &str = "TIDEGATE_PROVIDER_KEY";

/// Runs at work at once: at least this many, and so many for each core (spec 2.1, R15).
const LEAST_LANE: usize = 8;
const LANE_A_CORE: usize = 4;

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
    /// The model that the command line asks for.
    ///
    /// # Errors
    /// If the provider cannot be used as it is named.
    pub fn choose(args: &RunArgs) -> Result<Self, Problem> {
        let (Some(url), Some(name)) = (&args.provider_url, &args.model) else {
            return Ok(Self::demo());
        };
        let chat = OpenAiChat::new(url, name, key()?, ReqwestTransport::new(url))
            .map_err(|error| Problem::configuration(error.to_string()))?;
        let provider = ProviderConfig {
            class: chat.class(),
            timeout_ms: args.provider_timeout.map(|s| s.saturating_mul(1_000)),
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
                "{name} at {} ({class})",
                url.split('?').next().unwrap_or_default()
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
    pub fn config(&self) -> Config {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let lane = LEAST_LANE.max(cores.saturating_mul(LANE_A_CORE));
        Config {
            provider: self.provider,
            global_lane_cap: u32::try_from(lane).unwrap_or(u32::MAX),
            ..Config::default()
        }
    }
}

fn key() -> Result<Option<Secret>, Problem> {
    match std::env::var(KEY_VARIABLE) {
        Ok(key) => Ok(Secret::new(&key)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Problem::configuration(format!(
            "{KEY_VARIABLE} is not text"
        ))
        .remedy("Copy the provider's key into it again.")),
    }
}
