//! Reads closed parameter objects and says what is wrong by place and expectation.
//!
//! Written by hand rather than derived, so that the words are ours to keep: clients show
//! them to people, and they follow the form that clients of the protocol know
//! (`at /timeout: must be integer >= 0`).

use serde_json::{Map, Value};

/// The most bytes of a foreign name that an error repeats.
const NAME_ECHO_BYTES: usize = 64;

/// What is wrong with a parameter object. The text names the place and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParams(pub String);

impl std::fmt::Display for BadParams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadParams {}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Text that is not empty.
    Name,
    /// Text of 1 to this many bytes.
    Short(usize),
    /// A truth value.
    Bool,
    /// An integer of at least this.
    Whole(u64),
    /// A list of anything.
    List,
    /// An object of anything.
    Object,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A truth value or this word.
    BoolOr(&'static str),
    /// Nothing in it: an empty list or empty text. What it would carry is not there yet, and
    /// taking it in silence would lose it.
    NotYet,
    /// Anything.
    Any,
}

impl Kind {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Name => value.as_str().is_some_and(|s| !s.is_empty()),
            Self::Short(max) => value
                .as_str()
                .is_some_and(|s| !s.is_empty() && s.len() <= max),
            Self::Bool => value.is_boolean(),
            Self::Whole(min) => value.as_u64().is_some_and(|n| n >= min),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::OneOf(words) => value.as_str().is_some_and(|s| words.contains(&s)),
            Self::BoolOr(word) => value.is_boolean() || value.as_str() == Some(word),
            Self::NotYet => {
                value.as_array().is_some_and(Vec::is_empty) || value.as_str() == Some("")
            }
            Self::Any => true,
        }
    }

    fn expectation(self) -> String {
        match self {
            Self::Text => "must be string".into(),
            Self::Name => "must be string that is not empty".into(),
            Self::Short(max) => format!("must be string of 1 to {max} bytes"),
            Self::Bool => "must be boolean".into(),
            Self::Whole(min) => format!("must be integer >= {min}"),
            Self::List => "must be array".into(),
            Self::Object => "must be object".into(),
            Self::OneOf(words) => {
                format!(
                    "must be equal to one of the allowed values: {}",
                    words.join(", ")
                )
            }
            Self::BoolOr(word) => format!("must be boolean or \"{word}\""),
            Self::NotYet => "is not supported yet and would be lost: leave it out".into(),
            Self::Any => "must be present".into(),
        }
    }
}

/// A parameter object that is being read. Take what is known, then [`Fields::end`].
#[derive(Debug)]
pub struct Fields {
    at: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The fields of a method's `params`. Absent and `null` are the empty object.
    ///
    /// # Errors
    /// Anything else that is not an object.
    pub fn of(params: Option<Value>) -> Result<Self, BadParams> {
        Self::at(String::new(), params.unwrap_or(Value::Null))
    }

    fn at(at: String, value: Value) -> Result<Self, BadParams> {
        match value {
            Value::Null if at.is_empty() => Ok(Self {
                at,
                map: Map::new(),
            }),
            Value::Object(map) => Ok(Self { at, map }),
            _ if at.is_empty() => Err(BadParams("at root: must be object".into())),
            _ => Err(BadParams(format!("at {at}: must be object"))),
        }
    }

    /// Takes a value if it is there. `null` counts as absent, as clients write it for "none".
    ///
    /// # Errors
    /// It is there and is not of `kind`.
    pub fn take(&mut self, name: &str, kind: Kind) -> Result<Option<Value>, BadParams> {
        match self.map.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) if kind.accepts(&value) => Ok(Some(value)),
            Some(_) => Err(self.bad(name, &kind.expectation())),
        }
    }

    /// Takes text if it is there.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn text(&mut self, name: &str, kind: Kind) -> Result<Option<String>, BadParams> {
        Ok(match self.take(name, kind)? {
            Some(Value::String(text)) => Some(text),
            _ => None,
        })
    }

    /// Takes text that must be there.
    ///
    /// # Errors
    /// It is absent, or not of `kind`.
    pub fn need(&mut self, name: &str, kind: Kind) -> Result<String, BadParams> {
        self.text(name, kind)?.ok_or_else(|| self.missing(name))
    }

    /// Takes a truth value; absent is false.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn flag(&mut self, name: &str) -> Result<bool, BadParams> {
        Ok(self.take(name, Kind::Bool)? == Some(Value::Bool(true)))
    }

    /// Takes an integer of at least `min` if it is there.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn whole(&mut self, name: &str, min: u64) -> Result<Option<u64>, BadParams> {
        Ok(self
            .take(name, Kind::Whole(min))?
            .and_then(|value| value.as_u64()))
    }

    /// Takes a whole number of at most `most` if it is there.
    ///
    /// # Errors
    /// It is no whole number, or larger.
    pub fn whole_to(&mut self, name: &str, most: u64) -> Result<Option<u64>, BadParams> {
        match self.whole(name, 0)? {
            Some(number) if number > most => Err(BadParams(format!(
                "at /{name}: must be <= {most}, got {number}"
            ))),
            number => Ok(number),
        }
    }

    /// Takes a number if it is there and drops its fraction.
    ///
    /// # Errors
    /// It is not a number, or negative.
    pub fn floored(&mut self, name: &str) -> Result<Option<u64>, BadParams> {
        let Some(value) = self.take(name, Kind::Any)? else {
            return Ok(None);
        };
        // A float beyond the range saturates: for a limit in milliseconds that is "never".
        let floor = value.as_u64().or_else(|| {
            value
                .as_f64()
                .filter(|n| *n >= 0.0)
                .map(|n| n.floor() as u64)
        });
        floor
            .map(Some)
            .ok_or_else(|| self.bad(name, "must be number >= 0"))
    }

    /// Takes a list of non-empty texts; absent is the empty list.
    ///
    /// # Errors
    /// It is not such a list.
    pub fn names(&mut self, name: &str) -> Result<Vec<String>, BadParams> {
        let Some(Value::Array(items)) = self.take(name, Kind::List)? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::with_capacity(items.len().min(64));
        for (i, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) if !text.is_empty() => names.push(text),
                _ => return Err(self.bad(&format!("{name}/{i}"), &Kind::Name.expectation())),
            }
        }
        Ok(names)
    }

    /// Takes an object to be read on, if it is there.
    ///
    /// # Errors
    /// It is not an object.
    pub fn object(&mut self, name: &str) -> Result<Option<Self>, BadParams> {
        match self.take(name, Kind::Object)? {
            Some(value) => Ok(Some(Self::at(format!("{}/{name}", self.at), value)?)),
            None => Ok(None),
        }
    }

    /// Takes and checks fields that are known and not acted upon.
    ///
    /// # Errors
    /// As [`Fields::take`].
    pub fn ignore(&mut self, known: &[(&str, Kind)]) -> Result<(), BadParams> {
        for (name, kind) in known {
            self.take(name, *kind)?;
        }
        Ok(())
    }

    /// Ends the reading: the object is closed.
    ///
    /// # Errors
    /// A name is left that nobody took.
    pub fn end(self) -> Result<(), BadParams> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(name) => {
                let place = if self.at.is_empty() { "root" } else { &self.at };
                Err(BadParams(format!(
                    "at {place}: unexpected property '{}'",
                    echo(name)
                )))
            }
        }
    }

    /// The error of a required field that is absent.
    #[must_use]
    pub fn missing(&self, name: &str) -> BadParams {
        if self.at.is_empty() {
            BadParams(format!("must have required property '{name}'"))
        } else {
            BadParams(format!(
                "at {}: must have required property '{name}'",
                self.at
            ))
        }
    }

    fn bad(&self, name: &str, expectation: &str) -> BadParams {
        BadParams(format!("at {}/{name}: {expectation}", self.at))
    }
}

fn echo(name: &str) -> &str {
    let mut end = name.len().min(NAME_ECHO_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(result: Result<impl Sized, BadParams>) -> String {
        result.err().map(|e| e.0).unwrap_or_default()
    }

    /// An error names the place and what was expected
    #[test]
    fn a_wrong_field_is_named_with_what_was_expected() {
        let mut fields = Fields::of(Some(json!({"a": 5, "o": {"x": 1}, "l": ["y", 2]}))).unwrap();
        assert_eq!(
            said(fields.need("b", Kind::Text)),
            "must have required property 'b'"
        );
        assert_eq!(said(fields.text("a", Kind::Text)), "at /a: must be string");
        assert_eq!(
            said(fields.names("l")),
            "at /l/1: must be string that is not empty"
        );
        let inner = fields.object("o").unwrap().unwrap();
        assert_eq!(said(inner.end()), "at /o: unexpected property 'x'");
        assert_eq!(said(Fields::of(Some(json!([])))), "at root: must be object");
    }

    /// Law 9: a foreign name is repeated up to a bound, and never cut within a character.
    #[test]
    fn a_long_foreign_name_is_cut() {
        let fields = Fields::of(Some(json!({ "é".repeat(100): 1 }))).unwrap();
        assert_eq!(
            said(fields.end()),
            format!("at root: unexpected property '{}'", "é".repeat(32))
        );
    }

    /// R145: fractional limits are floored, negative ones refused
    #[test]
    fn a_fractional_limit_is_floored() {
        let read = |v: Value| Fields::of(Some(json!({ "t": v }))).unwrap().floored("t");
        assert_eq!(read(json!(1.9)), Ok(Some(1)));
        assert_eq!(read(json!(0)), Ok(Some(0)));
        assert_eq!(read(json!(1e30)), Ok(Some(u64::MAX)));
        assert_eq!(read(Value::Null), Ok(None));
        assert_eq!(said(read(json!(-1))), "at /t: must be number >= 0");
        assert_eq!(said(read(json!("1"))), "at /t: must be number >= 0");
    }
}
