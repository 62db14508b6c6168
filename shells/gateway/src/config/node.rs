//! Reads JSON5 into a tree that remembers where each key stands.
//!
//! It owns syntax only: no key is known here, and nothing of a value is put into an error.
//! Two keys of one name are kept both, so that the second can be refused.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::source::At;

/// Objects and lists within each other; deeper is refused before the stack is in danger.
const DEPTH_CAP: usize = 32;
/// How the refusal of a deeper one passes through the parser.
const TOO_DEEP: &str = "too deep";

/// A value of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true`, `false`
    Bool,
    /// An integer of at least 0.
    Whole(u64),
    /// Any other number.
    Number,
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object, in the order of the file.
    Object(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub name: String,
    /// Where the key stands.
    pub at: At,
    /// The value.
    pub value: Node,
}

/// Why a text is no JSON5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSyntax {
    /// Where.
    pub at: At,
    /// Why; holds nothing of the text.
    pub why: String,
}

/// Reads a text.
///
/// # Errors
/// If it is no JSON5, or nested too deeply.
pub fn parse(text: &str) -> Result<Node, BadSyntax> {
    let lines = Lines::of(text);
    let mut deserializer = json5::Deserializer::from_str(text);
    let root = Seed {
        lines: &lines,
        at: At { line: 1, column: 1 },
        depth: 0,
    };
    let read = root.deserialize(&mut deserializer);
    // What follows the value: the crate checks that only in `from_str`, which takes no seed.
    let read = read.and_then(|node| json5::from_str::<serde::de::IgnoredAny>(text).map(|_| node));
    read.map_err(|error| BadSyntax {
        at: error.position().map_or_else(
            || lines.at(text.len()),
            |position| At {
                line: position.line + 1,
                column: position.column + 1,
            },
        ),
        why: match error.code() {
            Some(code) if code.to_string().starts_with("EOF") => {
                "the file ends before what begins here is complete".into()
            }
            Some(code) => code.to_string(),
            None if error.to_string().starts_with(TOO_DEEP) => {
                format!("nested deeper than {DEPTH_CAP} levels")
            }
            None => "malformed number or escape".into(),
        },
    })
}

/// Finds lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let mut starts = vec![0];
        let mut chars = text.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            let pair = c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n');
            if !pair && json5::char::is_json5_line_terminator(c) {
                starts.push(i + c.len_utf8());
            }
        }
        Self { text, starts }
    }

    fn at(&self, offset: usize) -> At {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line.saturating_sub(1)];
        At {
            line,
            column: self.text[start..offset].chars().count() + 1,
        }
    }

    /// The place of a key that is a part of the text; a key with escapes is not.
    fn of_key(&self, key: &str) -> Option<At> {
        let offset = (key.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        let is_quoted = offset > 0 && matches!(self.text.as_bytes()[offset - 1], b'"' | b'\'');
        (offset + key.len() <= self.text.len()).then(|| self.at(offset - usize::from(is_quoted)))
    }
}

/// Reads one value; knows the place of the key above it.
#[derive(Clone, Copy)]
struct Seed<'a, 'b> {
    lines: &'b Lines<'a>,
    at: At,
    depth: usize,
}

impl Seed<'_, '_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= DEPTH_CAP {
            return Err(E::custom(TOO_DEEP));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Node;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Bool)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(u64::try_from(number).map_or(Node::Number, Node::Whole))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut inner = self.inner()?;
        let mut entries = Vec::new();
        while let Some((name, at)) = map.next_key_seed(KeySeed(self.lines))? {
            inner.at = at.unwrap_or(self.at);
            entries.push(Entry {
                name,
                at: inner.at,
                value: map.next_value_seed(inner)?,
            });
        }
        Ok(Node::Object(entries))
    }
}

/// Reads one key, with its place.
struct KeySeed<'a, 'b>(&'b Lines<'a>);

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = (String, Option<At>);

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_, '_> {
    type Value = (String, Option<At>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok((key.to_owned(), self.0.of_key(key)))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key.to_owned(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize) -> At {
        At { line, column }
    }

    fn object(text: &str) -> Vec<Entry> {
        match parse(text) {
            Ok(Node::Object(entries)) => entries,
            other => panic!("an object: {other:?}"),
        }
    }

    /// A key is found again by line and column, whatever stands before it.
    #[test]
    fn each_key_knows_its_place() {
        let entries = object(
            "// é\r\n{ a: 1, 'b': { \"c\" : [ {d: 2} ] },\n/* x\n */ é: 3, f: 4,\u{2028}g: 5 }\n",
        );
        let places: Vec<_> = entries.iter().map(|e| (e.name.as_str(), e.at)).collect();
        assert_eq!(
            places,
            [
                ("a", at(2, 3)),
                ("b", at(2, 9)),
                ("é", at(4, 5)),
                ("f", at(4, 11)),
                ("g", at(5, 1))
            ]
        );
        let Node::Object(b) = &entries[1].value else {
            panic!("{entries:?}")
        };
        assert_eq!((b[0].name.as_str(), b[0].at), ("c", at(2, 16)));
        let Node::List(list) = &b[0].value else {
            panic!("{b:?}")
        };
        let Node::Object(item) = &list[0] else {
            panic!("{list:?}")
        };
        assert_eq!((item[0].name.as_str(), item[0].at), ("d", at(2, 25)));
    }

    /// A key that is written with escapes has the place of what it stands in.
    #[test]
    fn a_key_with_escapes_is_read() {
        let entries = object("{\n a: { '\\u0062': 1 } }");
        let Node::Object(a) = &entries[0].value else {
            panic!("{entries:?}")
        };
        assert_eq!((a[0].name.as_str(), a[0].at), ("b", at(2, 2)));
    }

    #[test]
    fn two_keys_of_one_name_are_both_seen() {
        assert_eq!(object("{a: 1, a: 2}").len(), 2);
    }

    /// Law 9
    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(&nested(DEPTH_CAP)).is_ok());
        let why = parse(&nested(DEPTH_CAP + 1)).map_err(|bad| bad.why);
        assert_eq!(why, Err("nested deeper than 32 levels".into()));
        assert!(parse(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn bad_syntax_is_named_by_its_place_and_holds_nothing_of_the_text() {
        for (text, place) in [
            ("{a: 1\n b: 2}", at(2, 2)),
            ("{a: sk-secret}", at(1, 5)),
            ("{} sk-secret", at(1, 4)),
            ("{\n a: ['sk-secret", at(2, 5)),
            ("{a: 1e}", at(1, 5)),
            ("", at(1, 1)),
        ] {
            let bad = parse(text).expect_err(text);
            assert_eq!(bad.at, place, "{text}: {}", bad.why);
            assert!(!bad.why.contains("sk"), "{}", bad.why);
        }
    }
}
