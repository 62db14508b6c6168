//! Joins the pieces of an answer's tool calls.
//!
//! Owns which piece belongs to which call, and the bounds of what is kept. It never says that a
//! call may run: whether the answer is whole is known to [`ChatStream`](crate::ChatStream), and
//! whether the arguments fit a tool to that tool. Nothing is repaired: arguments that were cut
//! off stay as they came (B-118).

use serde_json::Value;

/// Tool calls that an answer may ask for. Models ask for a handful at once; an answer with more
/// is refused as a whole, since part of it would be another answer (law 9).
pub const CALLS_MAX: usize = 128;

/// Bytes of all ids, names and arguments of an answer (law 9): as much as one event may have.
pub const CALLS_MAX_BYTES: usize = 1 << 20;

/// A tool call as an answer asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatCall {
    /// The provider's id of it. May be empty, or that of another call.
    pub id: String,
    /// The tool's name. May be any text.
    pub name: String,
    /// The arguments: a JSON object, unless the model failed at it or was cut off.
    pub arguments: String,
}

/// Why the tool calls of an answer are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCalls {
    /// There are more than [`CALLS_MAX`].
    #[error("the answer asks for more than {CALLS_MAX} tool calls, the most that is taken")]
    TooMany,
    /// They are larger than [`CALLS_MAX_BYTES`].
    #[error(
        "the tool calls of the answer are larger than {CALLS_MAX_BYTES} bytes, the most that is taken"
    )]
    TooLarge,
    /// A piece of a call is of an unknown kind. To skip it would change what is asked for.
    #[error("a tool call of the answer can't be read")]
    Unreadable,
}

/// Whether a text is a whole JSON object, as the arguments of a call must be.
#[must_use]
pub fn is_json_object(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok()
}

/// The calls of an answer as far as they have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolCalls {
    parts: Vec<Part>,
    bytes: usize,
}

/// A call as far as it has come.
#[derive(Clone, Debug)]
struct Part {
    /// What later pieces call it, where the provider numbers its calls.
    index: Option<u64>,
    call: ChatCall,
    brackets: Brackets,
}

/// One piece of a call, as it stands in an event.
struct Piece<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: String,
}

/// Where a piece goes.
enum Place {
    /// It begins a call.
    New,
    /// It continues that one.
    Of(usize),
    /// It says again what is there already.
    Again,
}

impl ToolCalls {
    /// Takes in a list of pieces, or of whole calls. Gives whether there was one.
    pub(crate) fn add(&mut self, list: &Value, whole: bool) -> Result<bool, BadCalls> {
        let pieces = match list {
            Value::Null => return Ok(false),
            Value::Array(pieces) => pieces,
            _ => return Err(BadCalls::Unreadable),
        };
        for piece in pieces {
            self.add_piece(&Piece::read(piece)?, whole)?;
        }
        Ok(!pieces.is_empty())
    }

    /// The calls, in their order. Arguments of which there is nothing are none, unless the
    /// answer was `cut_off`.
    pub(crate) fn take(&mut self, cut_off: bool) -> Vec<ChatCall> {
        let whole = |mut part: Part| {
            if !cut_off && part.call.arguments.trim().is_empty() {
                part.call.arguments = "{}".to_owned();
            }
            part.call
        };
        self.bytes = 0;
        self.parts.drain(..).map(whole).collect()
    }

    fn add_piece(&mut self, piece: &Piece<'_>, whole: bool) -> Result<(), BadCalls> {
        let place = if whole {
            self.place_of_whole(piece)
        } else {
            self.place(piece)
        };
        let at = match place {
            Place::Again => return Ok(()),
            Place::Of(at) => at,
            Place::New if self.parts.len() == CALLS_MAX => return Err(BadCalls::TooMany),
            Place::New => {
                self.parts.push(Part {
                    index: piece.index,
                    call: ChatCall::default(),
                    brackets: Brackets::default(),
                });
                self.parts.len() - 1
            }
        };
        let Part { call, brackets, .. } = &mut self.parts[at];
        let id = if call.id.is_empty() { piece.id } else { "" };
        // Some providers say the name with every piece.
        let name = if call.name == piece.name {
            ""
        } else {
            piece.name
        };
        self.bytes += id.len() + name.len() + piece.arguments.len();
        if self.bytes > CALLS_MAX_BYTES {
            return Err(BadCalls::TooLarge);
        }
        call.id.push_str(id);
        call.name.push_str(name);
        call.arguments.push_str(&piece.arguments);
        brackets.read(&piece.arguments);
        Ok(())
    }

    /// A piece goes to the last call of its number, or without one to the last of its id, or to
    /// the last of all; a new id opens a new call (S-14), and so does another call behind
    /// arguments that are complete, since nothing of the same call can follow these.
    fn place(&self, piece: &Piece<'_>) -> Place {
        let at = match (piece.index, piece.id) {
            (None, "") => self.parts.len().checked_sub(1),
            (None, id) => self.parts.iter().rposition(|part| part.call.id == id),
            (index, _) => self.parts.iter().rposition(|part| part.index == index),
        };
        let Some(at) = at else {
            return Place::New;
        };
        let Part { call, brackets, .. } = &self.parts[at];
        let another_id = !piece.id.is_empty() && !call.id.is_empty() && call.id != piece.id;
        let another_name = !piece.name.is_empty() && call.name != piece.name;
        let more = !piece.arguments.trim().is_empty();
        match brackets.closed {
            _ if another_id => Place::New,
            true if another_name => Place::New,
            true if more && piece.arguments == call.arguments => Place::Again,
            true if more && !piece.name.is_empty() => Place::New,
            _ => Place::Of(at),
        }
    }

    /// Each element of a list of whole calls is one, unless its id was there with all that it
    /// says.
    fn place_of_whole(&self, piece: &Piece<'_>) -> Place {
        let again = |part: &Part| {
            let call = &part.call;
            call.id == piece.id && call.name == piece.name && call.arguments == piece.arguments
        };
        if !piece.id.is_empty() && self.parts.iter().any(again) {
            Place::Again
        } else {
            Place::New
        }
    }
}

impl<'a> Piece<'a> {
    /// Members of another type than expected count as absent, except for the call itself and
    /// its arguments: some local servers give these as JSON.
    fn read(value: &'a Value) -> Result<Self, BadCalls> {
        let text = |value: &'a Value, key: &str| value.get(key).and_then(Value::as_str);
        if !value.is_object() {
            return Err(BadCalls::Unreadable);
        }
        let function = match value.get("function") {
            None | Some(Value::Null) => &Value::Null,
            Some(function) if function.is_object() => function,
            Some(_) => return Err(BadCalls::Unreadable),
        };
        let arguments = match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(arguments)) => arguments.clone(),
            Some(json) => json.to_string(),
        };
        Ok(Self {
            index: value.get("index").and_then(Value::as_u64),
            id: text(value, "id").unwrap_or_default(),
            name: text(function, "name").unwrap_or_default(),
            arguments,
        })
    }
}

/// Follows the brackets of a JSON object, in one pass over all pieces, so that its end is known
/// without reading it again with each.
#[derive(Clone, Copy, Debug, Default)]
struct Brackets {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The object that began has ended.
    closed: bool,
}

impl Brackets {
    fn read(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn joined(lists: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = ToolCalls::default();
        for list in lists {
            calls.add(list, false).expect("it is readable");
        }
        let calls = calls.take(false).into_iter();
        calls
            .map(|call| (call.id, call.name, call.arguments))
            .collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    /// S-15: pieces without a number or an id belong to the last call; a name may come in
    /// pieces, or again with each of them.
    #[test]
    fn pieces_without_a_number_continue_the_last_call() {
        let lists = [
            json!([{"id": "a", "function": {"name": "re"}}]),
            json!([{"function": {"name": "ad", "arguments": "{\"p\""}}]),
            json!([{"id": "a", "function": {"name": "read", "arguments": ":\"}\"}"}}]),
            json!([{"id": "b", "function": {"name": "exec", "arguments": null}}]),
            json!([{"id": "a", "function": {"arguments": " "}}]),
        ];
        let expected = [call("a", "read", "{\"p\":\"}\"} "), call("b", "exec", "{}")];
        assert_eq!(joined(&lists), expected);
    }

    /// S-14: of servers that give whole calls, all with one number and without an id.
    #[test]
    fn another_call_behind_complete_arguments_is_a_call_of_its_own() {
        let whole = |arguments: Value| json!([{"index": 0, "id": "", "function": {"name": "f", "arguments": arguments}}]);
        let lists = [
            whole(json!({"n": 1})),
            whole(json!("{\"n\":2}")),
            whole(json!("{\"n\":2}")),
            json!([{"index": 0, "function": {"name": "f", "arguments": ""}}]),
            json!([{"index": 0, "function": {"name": "g", "arguments": ""}}]),
        ];
        let expected = [
            call("", "f", "{\"n\":1}"),
            call("", "f", "{\"n\":2}"),
            call("", "g", "{}"),
        ];
        assert_eq!(joined(&lists), expected);
    }

    /// S-11: a call that is said again is one call.
    #[test]
    fn a_call_that_is_said_again_is_one_call() {
        let whole = || json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"n\":1}"}}]);
        assert_eq!(joined(&[whole(), whole()]), [call("a", "f", "{\"n\":1}")]);
    }

    #[test]
    fn an_id_that_comes_late_belongs_to_its_call() {
        let lists = [
            json!([{"index": 0, "function": {"name": "f", "arguments": "{"}}]),
            json!([{"index": 0, "id": "late", "function": {"arguments": "}"}}]),
        ];
        assert_eq!(joined(&lists), [call("late", "f", "{}")]);
    }

    /// B-118: nothing is made of arguments that never came.
    #[test]
    fn arguments_that_were_cut_off_stay_as_they_came() {
        for (arguments, cut_off, expected) in [
            ("{\"a\":", false, "{\"a\":"),
            ("{\"a\":", true, "{\"a\":"),
            (" ", false, "{}"),
            ("", true, ""),
        ] {
            let mut calls = ToolCalls::default();
            let list = json!([{"id": "a", "function": {"name": "f", "arguments": arguments}}]);
            calls.add(&list, false).unwrap();
            assert_eq!(calls.take(cut_off)[0].arguments, expected);
        }
    }

    /// Law 9
    #[test]
    fn an_answer_with_too_much_is_refused() {
        let mut calls = ToolCalls::default();
        let list = |n: usize| json!([{"index": n, "function": {"name": "f"}}]);
        for n in 0..CALLS_MAX {
            assert_eq!(calls.add(&list(n), false), Ok(true));
        }
        assert_eq!(calls.add(&list(0), false), Ok(true), "an old one may grow");
        assert_eq!(calls.add(&list(CALLS_MAX), false), Err(BadCalls::TooMany));

        let mut calls = ToolCalls::default();
        let half = "x".repeat(CALLS_MAX_BYTES / 2);
        let list = |arguments: &str| json!([{"function": {"arguments": arguments}}]);
        assert_eq!(calls.add(&list(&half), false), Ok(true));
        assert_eq!(calls.add(&list(&half), false), Ok(true));
        assert_eq!(calls.add(&list("x"), false), Err(BadCalls::TooLarge));
    }

    /// What is no list of calls can't be skipped: it may be a call.
    #[test]
    fn what_is_no_call_is_unreadable() {
        let mut calls = ToolCalls::default();
        assert_eq!(calls.add(&Value::Null, false), Ok(false));
        assert_eq!(calls.add(&json!([]), false), Ok(false));
        for list in [
            json!({}),
            json!("x"),
            json!(["x"]),
            json!([{"function": 1}]),
        ] {
            assert_eq!(calls.add(&list, false), Err(BadCalls::Unreadable), "{list}");
        }
    }

    #[test]
    fn only_a_whole_json_object_is_one() {
        for (text, is) in [
            ("{}", true),
            (" {\"a\":[1]} ", true),
            ("", false),
            ("[]", false),
            ("{\"a\":1", false),
            ("{}{}", false),
        ] {
            assert_eq!(is_json_object(text), is, "{text}");
        }
    }
}
