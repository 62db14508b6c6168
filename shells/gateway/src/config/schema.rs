//! The table as a JSON Schema, for editors.
//!
//! It says no more and no less than the reader accepts, but for what values mean together.

use serde_json::{Map, Value, json};

use super::shape::{Group, Shape};
use super::table::{Default as Otherwise, FALLBACKS, Key, Kind, MOST_FALLBACKS};

/// The schema of the file.
#[must_use]
pub fn schema() -> Value {
    let mut root = of_group(&Group::root());
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["title"] = "The configuration of Tidegate (JSON5)".into();
    root
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Leaf(key) => of_key(key),
        Shape::Group(group) => of_group(group),
        Shape::Map(of) => json!({
            "type": "object",
            "propertyNames": { "minLength": 1, "pattern": "^[^/]+$" },
            "additionalProperties": of_shape(of),
        }),
        Shape::List(of) => {
            let mut list = json!({ "type": "array", "items": of_shape(of) });
            if matches!(&**of, Shape::Leaf(key) if key.path == FALLBACKS) {
                list["maxItems"] = MOST_FALLBACKS.into();
            }
            list
        }
        Shape::Retired(retired) => json!({
            "deprecated": true,
            "description": format!("Without effect: {}.", retired.instead),
        }),
    }
}

fn of_group(group: &Group) -> Value {
    let holds: Map<_, _> = group
        .holds
        .iter()
        .map(|(name, shape)| ((*name).to_owned(), of_shape(shape)))
        .collect();
    let needed: Vec<_> = group
        .holds
        .iter()
        .filter(|(_, shape)| matches!(shape, Shape::Leaf(key) if key.is_needed))
        .map(|(name, _)| *name)
        .collect();
    let mut object = json!({
        "type": "object",
        "properties": holds,
        "additionalProperties": false,
    });
    if !needed.is_empty() {
        object["required"] = needed.into();
    }
    match group.short.and_then(|name| group.get(name)) {
        Some(short) => json!({ "anyOf": [object, of_shape(short)] }),
        None => object,
    }
}

fn of_key(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Secret => json!({ "type": "string", "minLength": 1, "writeOnly": true }),
        Kind::ModelName => json!({ "type": "string", "pattern": "^[^/]+/.|\\$\\{" }),
        Kind::Whole { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Kind::Word { only, .. } => json!({
            "anyOf": [{ "const": only }, { "type": "string", "pattern": "\\$\\{" }]
        }),
        Kind::OneOf { words, .. } => json!({
            "anyOf": [{ "enum": words }, { "type": "string", "pattern": "\\$\\{" }]
        }),
        Kind::Directory => json!({ "type": "string", "pattern": "^(/|~/)|\\$\\{" }),
        // Other spellings are accepted too: an editor proposes these.
        Kind::QueueMode | Kind::DropPolicy => json!({
            "anyOf": [{ "enum": key.kind.choices() }, { "type": "string", "minLength": 1 }]
        }),
    };
    schema["description"] = says(key).into();
    match key.default {
        Otherwise::Unset => {}
        Otherwise::Word(word) => schema["default"] = word.into(),
        Otherwise::Choice(name) => schema["default"] = name().into(),
        Otherwise::Whole(number) => schema["default"] = number().into(),
        // The schema is the same on every machine.
        Otherwise::Machine(_, words) => {
            schema["description"] = format!("{} Default: {words}.", says(key)).into();
        }
    }
    schema
}

fn says(key: &Key) -> String {
    let over = match (key.flag, key.variable) {
        (None, None) => return key.says.to_owned(),
        (Some(flag), Some(variable)) => format!("{flag} and {variable} win"),
        (Some(one), None) | (None, Some(one)) => format!("{one} wins"),
    };
    format!("{} {over} over the file.", key.says)
}
