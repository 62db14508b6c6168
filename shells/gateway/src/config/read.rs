//! Reads the tree of the file against the table, and collects all that is wrong with it.
//!
//! It takes what is known and never stops at a mistake. What values mean together is not
//! judged here. No secret, and nothing that came from a variable, is repeated in a finding.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tidegate_text::Named;
use tidegate_wire::Secret;

use super::expand::{Lookup, expand};
use super::nearest::nearest;
use super::node::{Entry, Node};
use super::shape::{Group, Shape};
use super::source::{At, Finding, Findings, Place, Source};
use super::table::{KEYS, Key, Kind, Retired};

/// The provider of the command line: no file may take its name.
pub const COMMAND_LINE: &str = "command-line";
/// The longest name of a provider, in bytes.
const PROVIDER_NAME_BYTES: usize = 64;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Whole(u64),
    /// Text.
    Text(String),
    /// Text that is never shown.
    Secret(Secret),
}

/// A value that somebody set.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its row of the table.
    pub key: &'static Key,
    /// The value.
    pub value: Value,
    /// Who set it.
    pub source: Source,
}

/// The values that are set, by their places.
pub type Values = BTreeMap<Place, Setting>;

/// What a file says.
#[derive(Debug, Default)]
pub struct Reading {
    /// What is right.
    pub values: Values,
    /// What is wrong.
    pub problems: Findings,
    /// What has no effect.
    pub warnings: Findings,
    /// The first secret that stands in the file itself and not in a variable.
    pub bare_secret: Option<(Place, At)>,
    /// The models that name no provider, and who set them. Which are meant is judged where the
    /// providers are known.
    pub bare_models: Vec<(Source, Place, String)>,
}

impl Reading {
    /// Adds a mistake.
    pub fn problem(&mut self, source: Source, place: Place, says: String, nearest: Option<String>) {
        self.problems.push(Finding {
            source,
            place,
            says,
            nearest,
        });
    }

    /// Adds a warning.
    pub fn warning(&mut self, source: Source, place: Place, says: String) {
        self.warnings.push(Finding {
            source,
            place,
            says,
            nearest: None,
        });
    }
}

/// Reads the tree of `file`.
pub fn read(file: &Arc<Path>, root: &Node, lookup: Lookup<'_>) -> Reading {
    let mut reader = Reader {
        file,
        lookup,
        reading: Reading::default(),
    };
    let start = At { line: 1, column: 1 };
    let root_shape = Shape::Group(Group::root());
    reader.shape(root, start, &root_shape, &Place::default());
    reader.reading
}

struct Reader<'a> {
    file: &'a Arc<Path>,
    lookup: Lookup<'a>,
    reading: Reading,
}

impl Reader<'_> {
    fn shape(&mut self, node: &Node, at: At, shape: &Shape, place: &Place) {
        match (shape, node) {
            (Shape::Leaf(key), _) => self.leaf(node, at, key, place),
            (Shape::Group(group), Node::Object(entries)) => self.group(entries, at, group, place),
            (Shape::Group(group), _) => self.no_object(node, at, group, place),
            (Shape::Map(of), Node::Object(entries)) => self.map(entries, of, place),
            (Shape::Map(_), _) => self.wrong(at, place, node, "an object of names"),
            (Shape::List(of), Node::List(items)) => {
                for (i, item) in items.iter().enumerate() {
                    self.shape(item, at, of, &place.item(i));
                }
            }
            (Shape::List(_), _) => self.wrong(at, place, node, "a list"),
            (Shape::Retired(retired), _) => self.retired(node, at, retired, place),
        }
    }

    fn group(&mut self, entries: &[Entry], at: At, group: &Group, place: &Place) {
        for entry in self.once(entries, place) {
            let inner = place.name(&entry.name);
            match group.get(&entry.name) {
                Some(shape) => self.shape(&entry.value, entry.at, shape, &inner),
                None => self.unknown(entry, group, place),
            }
        }
        for (name, shape) in &group.holds {
            if let Shape::Leaf(key) = shape
                && key.is_needed
                && entries.iter().all(|entry| !means(entry, group, name))
            {
                let says = format!("has no {name}; expected {}", key.kind.expectation());
                self.problem(at, place, says, None);
            }
        }
    }

    fn map(&mut self, entries: &[Entry], of: &Shape, place: &Place) {
        for entry in self.once(entries, place) {
            let inner = place.name(&entry.name);
            let name = &entry.name;
            if name.is_empty() || name.len() > PROVIDER_NAME_BYTES || name.contains('/') {
                let says = format!(
                    "is no name for a provider: expected 1 to {PROVIDER_NAME_BYTES} bytes \
                     without a /"
                );
                self.problem(entry.at, &inner, says, None);
            } else if name == COMMAND_LINE {
                let says = "has the name of the provider that --provider-url makes: choose another";
                self.problem(entry.at, &inner, says.into(), None);
            } else {
                self.shape(&entry.value, entry.at, of, &inner);
            }
        }
    }

    /// The entries, without those whose name came before.
    fn once<'e>(&mut self, entries: &'e [Entry], place: &Place) -> Vec<&'e Entry> {
        let mut seen: BTreeMap<&str, At> = BTreeMap::new();
        let mut first = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Some(before) = seen.get(entry.name.as_str()) {
                let says = format!("is set twice, first in line {}", before.line);
                self.problem(entry.at, &place.name(&entry.name), says, None);
            } else {
                seen.insert(&entry.name, entry.at);
                first.push(entry);
            }
        }
        first
    }

    fn unknown(&mut self, entry: &Entry, group: &Group, place: &Place) {
        let sibling = nearest(&entry.name, group.names()).map(|name| place.name(name).to_string());
        let nearest = sibling.or_else(|| elsewhere(&entry.name));
        let mut says = "is not a known key".to_owned();
        if let Some(name) = &nearest {
            says.push_str(&format!("; did you mean {name}?"));
        }
        let names: Vec<_> = group.names().collect();
        says.push_str(&match names.as_slice() {
            [] => "; expected no key here".to_owned(),
            [name] => format!("; expected {name}"),
            names => format!("; expected one of {}", names.join(", ")),
        });
        self.problem(entry.at, &place.name(&entry.name), says, nearest);
    }

    fn no_object(&mut self, node: &Node, at: At, group: &Group, place: &Place) {
        let short = group.short.and_then(|name| Some((name, group.get(name)?)));
        match (node, short) {
            (Node::Text(_), Some((name, shape))) => {
                self.shape(node, at, shape, &place.name(name));
            }
            _ => {
                let names: Vec<_> = group.names().collect();
                let expected = match names.as_slice() {
                    [] => "an object".to_owned(),
                    names => format!("an object with {}", names.join(", ")),
                };
                self.wrong(at, place, node, &expected);
            }
        }
    }

    fn retired(&mut self, node: &Node, at: At, retired: &Retired, place: &Place) {
        match node {
            Node::Object(entries) if !entries.is_empty() => {
                for entry in entries {
                    let inner = place.name(&entry.name);
                    self.retired(&entry.value, entry.at, retired, &inner);
                }
            }
            _ => {
                let says = format!(
                    "is a setting of the past without effect: {}",
                    retired.instead
                );
                let source = Source::File(Arc::clone(self.file), at);
                self.reading.warning(source, place.clone(), says);
            }
        }
    }

    fn leaf(&mut self, node: &Node, at: At, key: &'static Key, place: &Place) {
        let value = match (key.kind, node) {
            (Kind::Whole { min, max, .. }, Node::Whole(n)) if (min..=max).contains(n) => {
                Value::Whole(*n)
            }
            (Kind::Whole { .. }, _) => {
                return self.wrong(at, place, node, &key.kind.expectation());
            }
            (kind, Node::Text(raw)) => match expand(raw, self.lookup) {
                Ok(text) => match self.text(kind, &text.text, text.is_referring, at, place) {
                    Some(value) => value,
                    None => return,
                },
                Err(says) => return self.problem(at, place, says, None),
            },
            (Kind::Secret, _) => {
                let says = format!("is not text; expected {}", key.kind.expectation());
                return self.problem(at, place, says, None);
            }
            (kind, _) => return self.wrong(at, place, node, &kind.expectation()),
        };
        let source = Source::File(Arc::clone(self.file), at);
        let setting = Setting { key, value, source };
        self.reading.values.insert(place.clone(), setting);
    }

    fn text(
        &mut self,
        kind: Kind,
        text: &str,
        is_referring: bool,
        at: At,
        place: &Place,
    ) -> Option<Value> {
        // The text itself is not repeated: it may be a secret in the wrong place.
        let says = match kind {
            Kind::Word { only, .. } if text == only => return Some(Value::Text(text.into())),
            Kind::Word {
                only,
                known,
                missing,
            } if known.contains(&text) => {
                format!("can't be \"{text}\": {missing}; expected \"{only}\"")
            }
            Kind::OneOf { words, .. } if words.contains(&text) => {
                return Some(Value::Text(text.into()));
            }
            Kind::OneOf { known, missing, .. } if known.contains(&text) => {
                let expected = kind.expectation();
                format!("can't be \"{text}\": {missing}; expected {expected}")
            }
            Kind::Directory if text.starts_with('/') || text.starts_with("~/") => {
                return Some(Value::Text(text.into()));
            }
            Kind::ModelName if !is_model(text) => {
                let source = Source::File(Arc::clone(self.file), at);
                let bare = (source, place.clone(), text.trim().to_owned());
                self.reading.bare_models.push(bare);
                return None;
            }
            Kind::QueueMode | Kind::DropPolicy => match kind.choice(text.trim()) {
                Some(choice) => return Some(self.chosen(choice, at, place)),
                None => return self.not_chosen(kind, text.trim(), at, place),
            },
            Kind::Word { .. } | Kind::OneOf { .. } | Kind::Directory | Kind::Whole { .. } => {
                format!("is another text; expected {}", kind.expectation())
            }
            Kind::Text | Kind::Secret if text.trim().is_empty() => {
                format!("is empty; expected {}", kind.expectation())
            }
            Kind::Secret => {
                if !is_referring && self.reading.bare_secret.is_none() {
                    self.reading.bare_secret = Some((place.clone(), at));
                }
                return Some(Value::Secret(Secret::new(text.trim())));
            }
            Kind::Text | Kind::ModelName => return Some(Value::Text(text.trim().into())),
        };
        self.problem(at, place, says, None);
        None
    }

    fn chosen(&mut self, choice: Named<&'static str>, at: At, place: &Place) -> Value {
        if choice.is_past {
            let says = format!(
                "is a name of the past; it is taken for \"{}\"",
                choice.value
            );
            let source = Source::File(Arc::clone(self.file), at);
            self.reading.warning(source, place.clone(), says);
        }
        Value::Text(choice.value.into())
    }

    fn not_chosen(&mut self, kind: Kind, text: &str, at: At, place: &Place) -> Option<Value> {
        let near = nearest(text, kind.choices());
        let near_says = near.map(|near| format!("; did you mean \"{near}\"?"));
        let says = format!(
            "is another text{}; expected {}",
            near_says.unwrap_or_default(),
            kind.expectation()
        );
        self.problem(at, place, says, near.map(ToOwned::to_owned));
        None
    }

    fn wrong(&mut self, at: At, place: &Place, node: &Node, expected: &str) {
        let found = match node {
            Node::Null => "null".into(),
            Node::Bool => "a truth value".into(),
            Node::Whole(n) => n.to_string(),
            Node::Number => "another number".into(),
            // It may be a secret in the wrong place.
            Node::Text(_) => "text".into(),
            Node::List(_) => "a list".into(),
            Node::Object(_) => "an object".into(),
        };
        let default = match node {
            Node::Null => "; leave the key out for its default",
            _ => "",
        };
        let is = if place.steps().is_empty() {
            "the file is"
        } else {
            "is"
        };
        let says = format!("{is} {found}; expected {expected}{default}");
        self.problem(at, place, says, None);
    }

    fn problem(&mut self, at: At, place: &Place, says: String, nearest: Option<String>) {
        let source = Source::File(Arc::clone(self.file), at);
        self.reading.problem(source, place.clone(), says, nearest);
    }
}

/// Whether an entry is the key `name`, or a slip for it, which is told by itself.
fn means(entry: &Entry, group: &Group, name: &str) -> bool {
    entry.name == name
        || group.get(&entry.name).is_none() && nearest(&entry.name, group.names()) == Some(name)
}

/// A key of this very name that stands somewhere else.
fn elsewhere(name: &str) -> Option<String> {
    let last = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
    let found = KEYS
        .iter()
        .find(|key| last(key.path).eq_ignore_ascii_case(name));
    found.map(|key| key.path.replace('*', "<id>"))
}

/// Whether it is `provider/model`; the model's own name may have a `/` too.
fn is_model(text: &str) -> bool {
    let parts = text.trim().split_once('/');
    parts.is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty())
}
