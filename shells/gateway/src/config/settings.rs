//! The typed result: what the gateway runs with.
//!
//! It takes values that were read, laid over and judged. It finds no fault with them.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;

use tidegate_core::{Ask, Budget, Config};
use tidegate_models::{BadProvider, OpenAiChat, ReqwestTransport, Secret as ProviderKey};
use tidegate_text::{drop_policy, queue_mode};
use tidegate_wire::Secret;

use super::read::{Setting, Value, Values};
use super::source::{Place, Source, Step};
use super::table::{Default as Otherwise, FALLBACKS, KEYS, Key, MOST_FALLBACKS};
use crate::supervisor::drain_budget_ms;

/// What the gateway runs with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port to listen on; 0 is any free one.
    pub port: u16,
    /// The token of the operator's own, and who set it.
    pub token: Option<(Secret, Source)>,
    /// Whose models answer: the first choice and its fallbacks (P15). Empty is the demo model.
    pub chain: Vec<Provider>,
    /// The tool `exec`, if the model is offered it.
    pub exec: Option<ExecSettings>,
    /// The core's configuration but for its providers. A supervisor's limit is in its drain.
    pub core: Config,
}

/// How commands run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecSettings {
    /// Where; `None`: in the state directory.
    pub workspace: Option<PathBuf>,
    /// The longest that one may take, in seconds.
    pub timeout_sec: NonZeroU32,
    /// Whether a person must allow each.
    pub asks: bool,
}

/// A provider and the model to ask it for.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Its name in the configuration.
    pub id: String,
    /// Where it is, up to and with `/v1`.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// Its key.
    pub key: Option<ProviderKey>,
    /// The limit of a call without progress, in milliseconds.
    pub timeout_ms: Option<u64>,
}

impl Provider {
    /// A client of it.
    ///
    /// # Errors
    /// If it can't be used as it is named.
    pub fn chat(&self) -> Result<OpenAiChat, BadProvider> {
        let transport = ReqwestTransport::new(&self.base_url);
        OpenAiChat::new(&self.base_url, &self.model, self.key.clone(), transport)
    }
}

impl Settings {
    /// The settings that these values are.
    #[must_use]
    pub fn of(values: &Values) -> Self {
        let port = whole(values, "gateway.port").and_then(|port| u16::try_from(port).ok());
        let token = values.get(&Place::of("gateway.auth.token"));
        let budget = values.get(&Place::of("agents.defaults.timeoutSeconds"));
        let mut core = Config {
            agent_budget: budget
                .and_then(Setting::whole)
                .map(|seconds| match seconds {
                    0 => Budget::Unlimited,
                    seconds => Budget::Limited(seconds.saturating_mul(1_000)),
                }),
            ..Config::default()
        };
        if let Some(mode) = word(values, "messages.queue.mode").and_then(queue_mode) {
            core.queue.mode = mode.value;
        }
        if let Some(policy) = word(values, "messages.queue.drop").and_then(drop_policy) {
            core.queue.drop = policy;
        }
        for key in KEYS {
            if let (Some(slot), Some(value)) = (key.slot, whole(values, key.path)) {
                slot(&mut core, value);
            }
        }
        let exec = exec(values);
        core.tools.ask = match word(values, "tools.exec.ask") {
            Some("off") => Ask::Off,
            _ => Ask::Always,
        };
        let stop_ms = values.get(&Place::of("tidegate.limits.supervisorStopMs"));
        let stop_ms = stop_ms.and_then(Setting::whole);
        core.drain_budget_ms = drain_budget_ms(core.drain_budget_ms, stop_ms);
        Self {
            port: port.unwrap_or_default(),
            token: token.and_then(|set| Some((set.secret()?.clone(), set.source.clone()))),
            chain: providers(values),
            exec,
            core,
        }
    }
}

impl Setting {
    /// Its number, if it is one.
    #[must_use]
    pub fn whole(&self) -> Option<u64> {
        match self.value {
            Value::Whole(number) => Some(number),
            Value::Text(_) | Value::Secret(_) => None,
        }
    }

    /// Its secret, if it is one.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        match &self.value {
            Value::Secret(secret) => Some(secret),
            Value::Text(_) | Value::Whole(_) => None,
        }
    }

    /// Its text, if it is one that may be shown.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Secret(_) | Value::Whole(_) => None,
        }
    }
}

/// The row of the table with this path.
///
/// # Panics
/// If there is none: the paths in the code are those of the table.
#[must_use]
pub fn row(path: &str) -> &'static Key {
    let found = KEYS.iter().find(|key| key.path == path);
    found.unwrap_or_else(|| panic!("the table has a row {path}"))
}

/// The text that is set at a path without `*`.
fn word<'a>(values: &'a Values, path: &str) -> Option<&'a str> {
    values.get(&Place::of(path)).and_then(Setting::text)
}

/// The number at a path without `*`, set or by default.
#[must_use]
pub fn whole(values: &Values, path: &str) -> Option<u64> {
    let set = values.get(&Place::of(path)).and_then(Setting::whole);
    set.or_else(|| match row(path).default {
        Otherwise::Whole(number) | Otherwise::Machine(number, _) => Some(number()),
        Otherwise::Unset | Otherwise::Word(_) | Otherwise::Choice(_) => None,
    })
}

/// How commands run, if the model may run any.
fn exec(values: &Values) -> Option<ExecSettings> {
    if word(values, "tools.exec.security") != Some("full") {
        return None;
    }
    let workspace = word(values, "agents.defaults.workspace");
    Some(ExecSettings {
        workspace: workspace.map(within_home),
        timeout_sec: whole(values, "tools.exec.timeoutSec")
            .and_then(|seconds| u32::try_from(seconds).ok())
            .and_then(NonZeroU32::new)
            .expect("the table's range lies within the type, and has no 0"),
        asks: word(values, "tools.exec.ask") != Some("off"),
    })
}

/// A path of the file; `~/` is the home directory, where there is one.
fn within_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// Provider and model that answer; the model's name may hold a `/`.
#[must_use]
pub fn primary(values: &Values) -> Option<(&str, &str)> {
    let set = values.get(&Place::of("agents.defaults.model.primary"))?;
    set.text()?.split_once('/')
}

/// A model of the chain, as it is named.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    /// Where.
    pub place: &'a Place,
    /// The provider.
    pub id: &'a str,
    /// The model.
    pub model: &'a str,
    /// Whether it is named before. Nobody is asked twice for the same.
    pub is_repeated: bool,
}

/// The first choice and its fallbacks in their order, no more than may be asked. Without a
/// first choice none of them is.
#[must_use]
pub fn chain(values: &Values) -> Vec<Named<'_>> {
    let primary = Place::of("agents.defaults.model.primary");
    let first = values.get_key_value(&primary);
    let rest = values.iter();
    let rest = rest.filter(|(_, setting)| setting.key.path == FALLBACKS);
    let rest = rest.take(MOST_FALLBACKS);
    let mut chain: Vec<Named<'_>> = Vec::new();
    for (place, setting) in first.into_iter().chain(rest) {
        let Some((id, model)) = setting.text().and_then(|text| text.split_once('/')) else {
            continue;
        };
        let same = |named: &Named<'_>| (named.id, named.model) == (id, model);
        let is_repeated = chain.iter().any(same);
        chain.push(Named {
            place,
            id,
            model,
            is_repeated,
        });
    }
    chain
}

/// Whom the chain asks.
fn providers(values: &Values) -> Vec<Provider> {
    if primary(values).is_none() {
        return Vec::new();
    }
    let asked = chain(values).into_iter().filter(|named| !named.is_repeated);
    asked
        .filter_map(|named| provider(values, named.id, named.model))
        .collect()
}

/// The provider `id` with `model`; `None` without an address.
#[must_use]
pub fn provider(values: &Values, id: &str, model: &str) -> Option<Provider> {
    let at = |name| values.get(&Place::provider(id, name));
    Some(Provider {
        id: id.to_owned(),
        base_url: at("baseUrl")?.text()?.to_owned(),
        model: model.to_owned(),
        key: at("apiKey")
            .and_then(Setting::secret)
            .and_then(|secret| ProviderKey::new(secret.reveal())),
        timeout_ms: at("timeoutSeconds")
            .and_then(Setting::whole)
            .map(|seconds| seconds.saturating_mul(1_000)),
    })
}

/// The models that are listed for a provider.
#[must_use]
pub fn models(values: &Values, id: &str) -> BTreeSet<String> {
    let listed = values
        .iter()
        .filter_map(|(place, setting)| match place.steps() {
            [_, _, Step::Name(of), Step::Name(name), Step::Item(_), _]
                if of == id && name == "models" && setting.key.path.starts_with("models.") =>
            {
                setting.text().map(ToOwned::to_owned)
            }
            _ => None,
        });
    listed.collect()
}

/// The providers of which anything is set.
#[must_use]
pub fn provider_ids(values: &Values) -> BTreeSet<String> {
    let ids = values
        .iter()
        .filter_map(|(place, setting)| match place.steps() {
            [_, _, Step::Name(id), ..] if setting.key.path.starts_with("models.providers.*") => {
                Some(id.clone())
            }
            _ => None,
        });
    ids.collect()
}

/// Where the first key of a provider is set.
#[must_use]
pub fn source_within(values: &Values, id: &str) -> Option<Source> {
    let within = values.iter().filter(|(place, setting)| {
        setting.key.path.starts_with("models.providers.*")
            && matches!(place.steps(), [_, _, Step::Name(of), ..] if of == id)
    });
    within.map(|(_, setting)| setting.source.clone()).min()
}
