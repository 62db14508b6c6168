//! Lays flags and variables over what the file says.
//!
//! It owns the order: a flag wins over a variable, both win over the file. The key of a
//! configured provider is never sent to the address of a flag, and a provider of the flags has
//! no fallbacks. What the values mean together
//! is judged afterwards.

use std::env::VarError;

use tidegate_wire::Secret;

use super::expand::Lookup;
use super::given::{Given, KEY_VARIABLE};
use super::read::{COMMAND_LINE, Reading, Setting, Value};
use super::settings::{primary, row};
use super::source::{Place, Source};
use super::table::FALLBACKS;

/// Lays what was given over what was read.
pub fn lay_over(reading: &mut Reading, given: &Given, lookup: Lookup<'_>) {
    let flags = &given.flags;
    if let Some(port) = flags.port {
        let (place, value) = (Place::of("gateway.port"), Value::Whole(port.into()));
        put(reading, "gateway.port", place, value, given.source("port"));
    }
    if let Some(token) = &flags.token {
        let place = Place::of("gateway.auth.token");
        let value = Value::Secret(token.clone());
        put(
            reading,
            "gateway.auth.token",
            place,
            value,
            given.source("token"),
        );
    }
    if let Some(times) = flags.provider_retries {
        let path = "retry.provider.maxRetries";
        let (value, source) = (Value::Whole(times), Source::Flag("--provider-retries"));
        put(reading, path, Place::of(path), value, source);
    }
    let Some(id) = provider(reading, given) else {
        return;
    };
    if let Some(model) = &flags.model {
        let (path, source) = ("agents.defaults.model.primary", Source::Flag("--model"));
        let value = Value::Text(format!("{id}/{model}"));
        put(reading, path, Place::of(path), value, source);
    }
    if let Some(seconds) = flags.provider_timeout {
        let place = Place::provider(&id, "timeoutSeconds");
        let (value, source) = (Value::Whole(seconds), Source::Flag("--provider-timeout"));
        put(
            reading,
            "models.providers.*.timeoutSeconds",
            place,
            value,
            source,
        );
    }
    lay_key_over(reading, &id, lookup);
}

/// The provider in use: that of the flags, else that of the file.
fn provider(reading: &mut Reading, given: &Given) -> Option<String> {
    let flags = &given.flags;
    if let Some(url) = &flags.provider_url {
        let place = Place::provider(COMMAND_LINE, "baseUrl");
        let (value, source) = (Value::Text(url.clone()), Source::Flag("--provider-url"));
        put(reading, "models.providers.*.baseUrl", place, value, source);
        // Whoever names one server on the line means that one.
        let fallbacks = |setting: &Setting| setting.key.path == FALLBACKS;
        reading.values.retain(|_, setting| !fallbacks(setting));
        return Some(COMMAND_LINE.to_owned());
    }
    if let Some((id, _)) = primary(&reading.values) {
        return Some(id.to_owned());
    }
    let idle = [
        ("--model", flags.model.is_some()),
        ("--provider-timeout", flags.provider_timeout.is_some()),
    ];
    for (flag, _) in idle.into_iter().filter(|(_, is_given)| *is_given) {
        let says = "is about a provider, and none is in use: name one with --provider-url, or in \
                    agents.defaults.model.primary of the configuration";
        reading.problem(Source::Flag(flag), Place::default(), says.into(), None);
    }
    None
}

/// The variable's key counts for the provider in use.
fn lay_key_over(reading: &mut Reading, id: &str, lookup: Lookup<'_>) {
    let place = Place::provider(id, "apiKey");
    let source = Source::Variable(KEY_VARIABLE);
    match lookup(KEY_VARIABLE) {
        Ok(key) if !key.trim().is_empty() => {
            let value = Value::Secret(Secret::new(key.trim()));
            put(reading, "models.providers.*.apiKey", place, value, source);
        }
        Ok(_) | Err(VarError::NotPresent) => {}
        Err(VarError::NotUnicode(_)) => {
            let says = "holds no text: copy the key into the variable again";
            reading.problem(source, place, says.into(), None);
        }
    }
}

fn put(reading: &mut Reading, path: &str, place: Place, value: Value, source: Source) {
    let setting = Setting {
        key: row(path),
        value,
        source,
    };
    reading.values.insert(place, setting);
}
