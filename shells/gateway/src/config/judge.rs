//! Judges what the values mean together: providers, models, and pauses that belong together.
//!
//! It only adds findings; the values stay as they are.

use std::collections::BTreeSet;

use tidegate_models::BadProvider;

use super::nearest::nearest;
use super::read::Reading;
use super::settings;
use super::source::{Place, Source, echo};
use super::table::{FALLBACKS, Kind, MOST_FALLBACKS};
use crate::supervisor::RESERVE_MS;

/// Judges everything that was read and laid over it.
pub fn judge(reading: &mut Reading) {
    providers(reading);
    chain(reading);
    pauses(reading);
    stop(reading);
}

fn providers(reading: &mut Reading) {
    for id in settings::provider_ids(&reading.values) {
        let base_url = Place::provider(&id, "baseUrl");
        let Some(provider) = settings::provider(&reading.values, &id, "any") else {
            continue;
        };
        let Err(bad) = provider.chat() else { continue };
        let (place, says) = match bad {
            BadProvider::Url(why) => (
                base_url,
                format!(
                    "is no http:// or https:// address ({why}); expected something like \
                     https://api.example.com/v1"
                ),
            ),
            BadProvider::UserInUrl => {
                let says = "holds a user name or password; put the key into apiKey";
                (base_url, says.to_owned())
            }
            BadProvider::Endpoint => (
                base_url,
                "goes too far; expected an address that ends before /chat/completions and has \
                 no ? or #, for example https://api.example.com/v1"
                    .to_owned(),
            ),
            BadProvider::Key => {
                let says = "holds a character that can't be sent in a header; copy the key again";
                (Place::provider(&id, "apiKey"), says.to_owned())
            }
            other @ BadProvider::NoModel => (base_url, format!("can't be used: {other}")),
        };
        let source = source_of(reading, &place);
        reading.problem(source, place, says, None);
    }
}

/// The models that are asked: the first choice and its fallbacks.
fn chain(reading: &mut Reading) {
    for (source, place, text) in std::mem::take(&mut reading.bare_models) {
        bare_model(reading, source, place, &text);
    }
    idle(reading);
    too_many(reading);
    let chain = settings::chain(&reading.values);
    let chain: Vec<_> = chain
        .into_iter()
        .map(|named| {
            let names = (named.id.to_owned(), named.model.to_owned());
            (named.place.clone(), names, named.is_repeated)
        })
        .collect();
    for (place, (id, model), is_repeated) in chain {
        if is_repeated {
            let says = format!(
                "names {} of {} once more: it is asked in its first place only",
                echo(&model),
                echo(&id)
            );
            reading.warning(source_of(reading, &place), place, says);
        } else {
            is_there(reading, place, &id, &model);
        }
    }
}

/// Without a first choice nobody is asked.
fn idle(reading: &mut Reading) {
    let place = Place::of("agents.defaults.model.primary");
    if reading.values.contains_key(&place) || reading.problems.before(&place).next().is_some() {
        return;
    }
    let fallback = settings::chain(&reading.values);
    let fallback = fallback.first().map(|named| named.place.clone());
    let (source, idle) = match fallback {
        Some(fallback) => (source_of(reading, &fallback), fallback),
        None => {
            let ids = settings::provider_ids(&reading.values);
            let Some(id) = ids.first() else { return };
            let Some(source) = settings::source_within(&reading.values, id) else {
                return;
            };
            (source, Place::of("models.providers").name(id))
        }
    };
    let says = "is not in use, and the demo model answers: set \
                agents.defaults.model.primary to \"provider/model\"";
    reading.warning(source, idle, says.into());
}

fn too_many(reading: &mut Reading) {
    let fallbacks = reading.values.iter();
    let mut fallbacks = fallbacks.filter(|(_, setting)| setting.key.path == FALLBACKS);
    if let Some((place, setting)) = fallbacks.nth(MOST_FALLBACKS) {
        let (source, place) = (setting.source.clone(), place.clone());
        let says = format!("is one too many; expected at most {MOST_FALLBACKS} fallbacks");
        reading.problem(source, place, says, None);
    }
}

/// The model that `place` names is one of a configured provider.
fn is_there(reading: &mut Reading, place: Place, id: &str, model: &str) {
    let there = Place::of("models.providers").name(id);
    let problems = &reading.problems;
    if problems.is_within(&there) || problems.before(&there).next().is_some() {
        // What is wrong there was said; what else would be is not known.
        return;
    }
    let ids = provider_names(reading);
    let source = source_of(reading, &place);
    if !ids.contains(id) {
        let near = nearest(id, ids.iter().map(String::as_str));
        let near = near.map(|near| format!("{near}/{model}"));
        let says = not_there(
            &format!("names the provider \"{}\"", echo(id)),
            near.as_deref(),
            &ids,
        );
        return reading.problem(source, place, says, near);
    }
    let models = settings::models(&reading.values, id);
    if !models.is_empty() && !models.contains(model) {
        let near = nearest(model, models.iter().map(String::as_str));
        let near = near.map(|near| format!("{id}/{near}"));
        let names = format!("names the model \"{}\" of {}", echo(model), echo(id));
        let says = not_there(&names, near.as_deref(), &models);
        reading.problem(source, place, says, near);
    }
}

/// The model is named without its provider. Its text may be a secret in the wrong place; what
/// is proposed is made of names that are configured.
fn bare_model(reading: &mut Reading, source: Source, place: Place, text: &str) {
    let ids = provider_names(reading);
    let listed = |id: &String| settings::models(&reading.values, id);
    let of_model = ids.iter().find(|id| listed(id).contains(text));
    let near = match of_model {
        Some(id) => Some(format!("{id}/{text}")),
        None => nearest(text, ids.iter().map(String::as_str)).map(|near| {
            let models = settings::models(&reading.values, near);
            let model = models.first().map_or("<model>", String::as_str);
            format!("{near}/{model}")
        }),
    };
    let meant = near.as_deref().map_or_else(String::new, |near| {
        format!("; did you mean \"{}\"?", echo(near))
    });
    let expected = Kind::ModelName.expectation();
    let says = format!("names no provider{meant}; expected {expected}");
    reading.problem(source, place, says, near);
}

/// The providers that stand in the file, also those with which something is wrong.
fn provider_names(reading: &Reading) -> BTreeSet<String> {
    let mut names = settings::provider_ids(&reading.values);
    names.extend(reading.problems.names_in(&Place::of("models.providers")));
    names
}

/// The most names that a finding lists (law 9).
const NAMES_CAP: usize = 10;

fn not_there<'a>(
    names: &str,
    near: Option<&str>,
    there: impl IntoIterator<Item = &'a String>,
) -> String {
    let near = near.map_or_else(String::new, |near| {
        format!("; did you mean \"{}\"?", echo(near))
    });
    let there: Vec<_> = there.into_iter().map(|name| echo(name)).collect();
    let expected = match there.len() {
        0 => "; there is none under models.providers".to_owned(),
        1..=NAMES_CAP => format!("; expected one of {}", there.join(", ")),
        more => format!("; expected one of the {more} that are configured"),
    };
    format!("{names}, which is not configured{near}{expected}")
}

/// The longest pause is not shorter than the first.
fn pauses(reading: &mut Reading) {
    let (first, longest) = (
        "tidegate.limits.storeRetryMs",
        "tidegate.limits.storeRetryMaxMs",
    );
    let number = |path| settings::whole(&reading.values, path).unwrap_or_default();
    let (first_ms, longest_ms) = (number(first), number(longest));
    if longest_ms < first_ms {
        let set = [longest, first].map(Place::of);
        let place = set
            .into_iter()
            .find(|place| reading.values.contains_key(place));
        let place = place.unwrap_or_default();
        let source = source_of(reading, &place);
        let says = format!(
            "makes the longest pause ({longest_ms} ms) shorter than the first ({first_ms} ms); \
             expected storeRetryMaxMs to be at least storeRetryMs"
        );
        reading.problem(source, place, says, None);
    }
}

/// A supervisor that kills before the reserve is over leaves a drain no time.
fn stop(reading: &mut Reading) {
    let path = "tidegate.limits.supervisorStopMs";
    if settings::whole(&reading.values, path).is_some_and(|ms| ms <= RESERVE_MS) {
        let says = format!(
            "leaves a stop no time for the runs at work: {RESERVE_MS} ms of it are kept back \
             for the last writes; they go on after the next start"
        );
        let place = Place::of(path);
        reading.warning(source_of(reading, &place), place, says);
    }
}

fn source_of(reading: &Reading, place: &Place) -> Source {
    let setting = reading.values.get(place);
    setting.map_or(Source::Default, |setting| setting.source.clone())
}
