//! A round of tools as the model is told it again: the calls, and what came of each.
//!
//! Owns that every call has exactly one result, right behind the message that asks for it,
//! whatever the rows say (P08, B-025, B-026, B-027), and that ids, names and arguments are such
//! as providers take: what one model wrote may be told to another. It changes no row.

use std::collections::BTreeSet;

use tidegate_core::CallEnd;
use tidegate_driver::{CallText, Role, RowMark, TranscriptRow};
use tidegate_text::{call_end_words, is_json_object};

use super::{AskedCall, AskedFunction, Message};

/// Characters of one result that the model is told (spec 7.1): the beginning and the end.
const RESULT_HEAD_CHARS: usize = 8_000;
const RESULT_TAIL_CHARS: usize = 7_900;

/// Characters of a call's arguments that are told in plain words.
const ARGUMENTS_HEAD_CHARS: usize = 1_500;
const ARGUMENTS_TAIL_CHARS: usize = 400;

/// Characters of arguments that are no JSON object up to which they are repeated.
const ODD_ARGUMENTS_CHARS: usize = 200;

/// Characters of a call's id: some providers refuse longer ones.
const ID_MAX_CHARS: usize = 40;

/// Characters of a tool's name, which all providers take.
const NAME_MAX_CHARS: usize = 64;

/// The ids of the calls of a request.
#[derive(Debug, Default)]
pub(super) struct CallIds(BTreeSet<String>);

/// An answer that asks for calls, with their results as far as there are rows of them.
#[derive(Debug)]
pub(super) struct Round<'a> {
    row: &'a TranscriptRow,
    results: Vec<Option<&'a TranscriptRow>>,
}

impl CallIds {
    /// The id of the next call: its own, if providers take it and no call before has it; else
    /// one of nine letters and digits, which all of them take. It depends on what stands before
    /// it alone, so that the beginning of a request stays as it was.
    fn next(&mut self, id: &str) -> String {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        let good = (1..=ID_MAX_CHARS).contains(&id.len()) && id.bytes().all(fits);
        if good && self.0.insert(id.to_owned()) {
            return id.to_owned();
        }
        let mut n = self.0.len();
        loop {
            let id = format!("call{n:05}");
            if self.0.insert(id.clone()) {
                return id;
            }
            n += 1;
        }
    }
}

impl<'a> Round<'a> {
    /// The round of a row that asks for calls. Its results are rows of the same run between
    /// it and the next answer; a row that answers none of its calls is left out.
    pub(super) fn gather(row: &'a TranscriptRow, behind: &'a [TranscriptRow]) -> Self {
        let mut results = vec![None; row.calls.len()];
        let answer =
            |row: &TranscriptRow| row.role == Role::Assistant && row.mark != RowMark::Interrupted;
        for result in behind.iter().take_while(|row| !answer(row)) {
            let Some(answers) = &result.answers else {
                continue;
            };
            if result.role != Role::Tool || result.run != row.run {
                continue;
            }
            let mut calls = row.calls.iter().zip(&mut results);
            if let Some((_, place)) =
                calls.find(|(call, place)| place.is_none() && call.id == answers.id)
            {
                *place = Some(result);
            }
        }
        Self { row, results }
    }

    /// The round as calls and results.
    pub(super) fn messages(&self, ids: &mut CallIds) -> Vec<Message> {
        let named: Vec<String> = self.row.calls.iter().map(|c| ids.next(&c.id)).collect();
        let calls = self.row.calls.iter().zip(&named);
        let asked = calls.map(|(call, id)| AskedCall {
            id: id.clone(),
            r#type: "function",
            function: AskedFunction {
                name: name(&call.name),
                arguments: arguments(&call.arguments).to_owned(),
            },
        });
        let text = &self.row.text;
        let mut messages = vec![Message::Assistant {
            content: (!text.is_empty()).then(|| text.clone()),
            tool_calls: asked.collect(),
        }];
        let results = self.calls().zip(named);
        messages.extend(results.map(|((call, result), id)| Message::Tool {
            tool_call_id: id,
            content: told(call, result),
        }));
        messages
    }

    /// The round in plain words.
    pub(super) fn words(&self) -> String {
        let mut parts = Vec::new();
        if !self.row.text.is_empty() {
            parts.push(self.row.text.clone());
        }
        for (call, result) in self.calls() {
            let name = name(&call.name);
            let arguments = ends(&call.arguments, ARGUMENTS_HEAD_CHARS, ARGUMENTS_TAIL_CHARS);
            let result = told(call, result);
            parts.push(format!(
                "[The tool {name} was asked for with {arguments}; this came of it:]\n{result}"
            ));
        }
        parts.join("\n\n")
    }

    fn calls(&self) -> impl Iterator<Item = (&CallText, Option<&TranscriptRow>)> {
        let results = self.results.iter().copied();
        self.row.calls.iter().zip(results)
    }
}

/// What came of a call: its output, then what its end means. A call without a row was never
/// heard of again.
fn told(call: &CallText, result: Option<&TranscriptRow>) -> String {
    let answers = result.and_then(|row| row.answers.as_ref());
    let end = answers.map_or(CallEnd::Unknown, |answers| answers.end);
    let output = result.map_or("", |row| row.text.trim_end_matches(['\r', '\n']));
    let mut parts = Vec::new();
    if !output.is_empty() {
        parts.push(ends(output, RESULT_HEAD_CHARS, RESULT_TAIL_CHARS));
    }
    match (call_end_words(end), end) {
        ("", CallEnd::Failed) if output.is_empty() => {
            parts.push("[This call failed and put out nothing.]".to_owned());
        }
        ("", _) if output.is_empty() => parts.push("[This call put out nothing.]".to_owned()),
        ("", _) => {}
        (words, _) => parts.push(format!("[{words}]")),
    }
    let written = call.arguments.trim();
    let short = written.chars().nth(ODD_ARGUMENTS_CHARS).is_none();
    if !written.is_empty() && short && !is_json_object(written) {
        parts.push(format!("[The arguments were: {written}]"));
    }
    parts.join("\n\n")
}

/// Arguments that a provider takes: others than JSON objects are refused by many.
fn arguments(written: &str) -> &str {
    if is_json_object(written) {
        written
    } else {
        "{}"
    }
}

/// A name that a provider takes, also of a tool that never was.
fn name(written: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let chars = written.chars().take(NAME_MAX_CHARS);
    let name: String = chars.map(|c| if fits(c) { c } else { '_' }).collect();
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

/// The first and the last characters of a text that has more than both together.
fn ends(text: &str, head: usize, tail: usize) -> String {
    let chars = text.chars().count();
    if chars <= head + tail {
        return text.to_owned();
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let left_out = chars - head - tail;
    let (first, last) = (&text[..at(head)], &text[at(chars - tail)..]);
    format!("{first}\n[… {left_out} characters are left out here …]\n{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are kept where all providers take them, and no two calls have one.
    #[test]
    fn an_id_that_a_provider_refuses_is_replaced() {
        let mut ids = CallIds::default();
        let long = "x".repeat(ID_MAX_CHARS);
        for id in ["call_1-a", &long, "call00005"] {
            assert_eq!(ids.next(id), id);
        }
        let longer = "x".repeat(ID_MAX_CHARS + 1);
        let odd = ["", "call_1-a", &longer, "functions.exec:0", "é"];
        let made: Vec<String> = odd.iter().map(|id| ids.next(id)).collect();
        let expected = [
            "call00003",
            "call00004",
            "call00006",
            "call00007",
            "call00008",
        ];
        assert_eq!(made, expected);
    }

    /// Spec 7.1: one result has at most 16,000 characters, and both of its ends.
    #[test]
    fn a_long_text_keeps_its_ends() {
        assert_eq!(ends("abcdef", 4, 2), "abcdef");
        assert_eq!(
            ends("äbcdéfg", 4, 2),
            "äbcd\n[… 1 characters are left out here …]\nfg"
        );
        let long = ends(&"é".repeat(1_000_000), RESULT_HEAD_CHARS, RESULT_TAIL_CHARS);
        assert!(long.chars().count() <= 16_000);
    }

    #[test]
    fn a_name_that_no_tool_has_is_one_that_providers_take() {
        assert_eq!(name("exec"), "exec");
        assert_eq!(name("run it!"), "run_it_");
        assert_eq!(name(""), "unnamed");
        assert_eq!(name(&"n".repeat(100)).len(), NAME_MAX_CHARS);
    }
}
