//! The settings as they are, each with who set it. Secrets are never among them.

use serde_json::{Map, Value as Json, json};

use super::read::{Setting, Value, Values};
use super::settings::provider_ids;
use super::source::{Place, Source, Step};
use super::table::{Default as Otherwise, KEYS, Key};

/// What stands for a secret.
const HIDDEN: &str = "***";

/// A setting as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub place: String,
    /// The value; `null` if there is none.
    pub value: Json,
    /// Who set it.
    pub source: String,
}

/// All settings: every key of the table, and every one of each provider.
#[must_use]
pub fn rows(values: &Values) -> Vec<Row> {
    let (of_providers, plain): (Vec<&Key>, Vec<&Key>) =
        KEYS.iter().partition(|key| key.path.contains('*'));
    let mut rows = Vec::new();
    for key in plain {
        match key.path.strip_suffix("[]") {
            Some(path) => rows.extend(list(key, path, values)),
            None => rows.push(row(key, &Place::of(key.path), values)),
        }
    }
    for id in provider_ids(values) {
        for key in &of_providers {
            match key.path.strip_prefix("models.providers.*.") {
                Some(name) if !name.contains("[]") => {
                    rows.push(row(key, &Place::provider(&id, name), values));
                }
                _ => rows.extend(items(key, &id, values)),
            }
        }
    }
    rows
}

/// The items of a list of values; one that is empty is shown as such.
fn list(key: &Key, path: &str, values: &Values) -> Vec<Row> {
    let set = values.iter();
    let set = set.filter(|(_, setting)| setting.key.path == key.path);
    let rows: Vec<_> = set.map(|(place, _)| row(key, place, values)).collect();
    if !rows.is_empty() {
        return rows;
    }
    vec![Row {
        place: path.to_owned(),
        value: Json::Array(Vec::new()),
        source: Source::Default.to_string(),
    }]
}

/// The settings of a list of the provider `id`.
fn items(key: &Key, id: &str, values: &Values) -> Vec<Row> {
    let of_id = |place: &Place| matches!(place.steps(), [_, _, Step::Name(of), ..] if of == id);
    let set = values.iter();
    let set = set.filter(|(place, setting)| setting.key.path == key.path && of_id(place));
    set.map(|(place, _)| row(key, place, values)).collect()
}

fn row(key: &Key, place: &Place, values: &Values) -> Row {
    let (value, source) = match values.get(place) {
        Some(Setting { value, source, .. }) => (shown(value), source.clone()),
        None => (otherwise(key), Source::Default),
    };
    Row {
        place: place.to_string(),
        value,
        source: source.to_string(),
    }
}

fn shown(value: &Value) -> Json {
    match value {
        Value::Whole(number) => (*number).into(),
        Value::Text(text) => text.clone().into(),
        Value::Secret(_) => HIDDEN.into(),
    }
}

fn otherwise(key: &Key) -> Json {
    match key.default {
        Otherwise::Unset => Json::Null,
        Otherwise::Word(word) => word.into(),
        Otherwise::Choice(name) => name().into(),
        Otherwise::Whole(number) | Otherwise::Machine(number, _) => number().into(),
    }
}

/// The rows for a person: key, value, source.
#[must_use]
pub fn text(rows: &[Row]) -> String {
    let values: Vec<_> = rows
        .iter()
        .map(|row| match &row.value {
            Json::Null => "-".to_owned(),
            // Without quotes: it is not the value.
            value if *value == HIDDEN => HIDDEN.to_owned(),
            value => value.to_string(),
        })
        .collect();
    let width = |texts: &mut dyn Iterator<Item = &str>| {
        texts
            .map(|text| text.chars().count())
            .max()
            .unwrap_or_default()
    };
    let places = width(&mut rows.iter().map(|row| row.place.as_str()));
    let wide = width(&mut values.iter().map(String::as_str));
    let lines = rows.iter().zip(&values).map(|(row, value)| {
        let Row { place, source, .. } = row;
        format!("{place:places$}  {value:wide$}  {source}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The rows for a script.
#[must_use]
pub fn json(rows: Vec<Row>) -> Json {
    let settings = rows.into_iter().map(|row| {
        let shown = json!({ "value": row.value, "source": row.source });
        (row.place, shown)
    });
    settings.collect::<Map<_, _>>().into()
}
