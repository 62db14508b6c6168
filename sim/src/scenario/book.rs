//! The book's page lists what can be written, and its example runs.

use super::beats::BEATS;
use super::conds::CONDS;
use super::steps::STEPS;
use super::words::{CLASSES, ENDED, ENDINGS, RESULTS, STORE_ERRORS, TOLD, TOOL_ENDS};
use super::works::WORKS;
use super::{RunOptions, knobs, parse, run};

const PAGE: &str = include_str!("../../../docs/scenarios.md");

#[test]
fn every_sentence_of_the_grammar_stands_in_the_book() {
    let sentences = STEPS.iter().map(|form| form.text);
    for text in sentences.chain(CONDS.iter().map(|form| form.text)) {
        assert!(PAGE.contains(&format!("`{text}`")), "{text}");
    }
    for name in knobs::names() {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
    // Of a part or an end the book names each word once, not each sentence.
    let works = WORKS.iter().map(|form| form.text);
    let parts = BEATS.iter().map(|form| form.text).chain(works);
    let parts = parts.map(|text| text.split(" {call} up to").next().unwrap_or(text));
    let parts = parts.map(|text| text.split(" guarded").next().unwrap_or(text));
    let words = parts.map(|text| text.split(" of {").next().unwrap_or(text));
    let words = words.map(|text| text.split(" {time} apart").next().unwrap_or(text));
    let phrases = CLASSES
        .iter()
        .map(|(words, _)| *words)
        .chain(ENDED.iter().map(|(words, _)| *words))
        .chain(ENDINGS.iter().map(|(words, _)| *words))
        .chain(TOOL_ENDS.iter().map(|(words, _)| *words))
        .chain(RESULTS.iter().map(|(words, _)| *words))
        .chain(STORE_ERRORS.iter().map(|(words, _)| *words))
        .chain(TOLD.iter().map(|(words, _)| *words));
    for phrase in words.chain(phrases) {
        let inner = phrase.split('(').next_back().unwrap_or(phrase);
        let inner = inner.trim_end_matches(')');
        assert!(PAGE.contains(inner), "{phrase}");
    }
}

#[test]
fn the_example_of_the_book_runs() {
    let example = PAGE.split("```scenario\n").nth(1);
    let example = example.and_then(|rest| rest.split("```").next());
    let text = example.expect("the book has an example");
    let scenario = parse(text, "docs/scenarios.md").unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions {
        crash_at_every_step: true,
        orders: true,
        ..RunOptions::default()
    };
    let mut outcome = run(&scenario, &options);
    let told = outcome.failures.pop();
    assert_eq!(told.map(|failure| failure.to_string()), None);
    let trace = PAGE
        .split("## Trace")
        .nth(1)
        .and_then(|rest| rest.split("```").nth(1));
    let shown: Vec<&str> = trace.unwrap_or_default().lines().skip(1).collect();
    assert_eq!(
        shown,
        outcome.trace[..shown.len()],
        "the trace of the book is its example's"
    );
}
