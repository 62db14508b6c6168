//! Promises against citations: what does not fit together.
//!
//! Owns the rules between the two; each problem is one line that says what to do.

use crate::citations::Citations;
use crate::promises::{PROMISES, Promise, State};

/// Places that a problem names; the others are counted.
const SHOWN_PLACES: usize = 3;

/// What does not fit together, sorted.
pub fn problems(promises: &[Promise], citations: &Citations) -> Vec<String> {
    let mut problems = Vec::new();
    for promise in promises.iter().filter(|p| p.state == State::Kept) {
        let id = promise.id;
        if !citations.proofs.contains_key(&id) {
            problems.push(format!(
                "{id} is kept and no test or scenario names it: name it above one that proves it, or make it later in {PROMISES}"
            ));
        }
    }
    for (id, places) in &citations.places {
        if promises.iter().any(|promise| promise.id == *id) {
            continue;
        }
        let shown: Vec<String> = places
            .iter()
            .take(SHOWN_PLACES)
            .map(|(path, line)| format!("{path}:{line}"))
            .collect();
        let more = match places.len().saturating_sub(SHOWN_PLACES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        problems.push(format!(
            "{}{more}: {id} does not exist in {PROMISES}",
            shown.join(", ")
        ));
    }
    for ((path, line), why) in &citations.wrong {
        problems.push(format!("{path}:{line}: {why}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;

    fn id(text: &str) -> Id {
        Id::parse(text).expect("the test writes ids well")
    }

    fn kept(text: &str) -> Promise {
        Promise {
            id: id(text),
            text: "t".into(),
            state: State::Kept,
            part: None,
            by: None,
        }
    }

    #[test]
    fn a_kept_promise_without_a_test_is_a_problem() {
        let mut citations = Citations::default();
        let found = problems(&[kept("P07")], &citations);
        assert!(found[0].starts_with("P07 is kept and no test"), "{found:?}");
        citations.proofs.insert(id("P07"), ["a.rs:a".into()].into());
        assert_eq!(problems(&[kept("P07")], &citations), Vec::<String>::new());
    }

    #[test]
    fn a_later_promise_needs_no_test() {
        let later = Promise {
            state: State::Later,
            ..kept("P07")
        };
        assert_eq!(
            problems(&[later], &Citations::default()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_id_that_nobody_promised_is_a_problem_with_its_places() {
        let mut citations = Citations::default();
        let places = [1, 2, 3, 4].map(|line| ("a.rs".to_owned(), line));
        citations.places.insert(id("P99"), places.into());
        let expected =
            "a.rs:1, a.rs:2, a.rs:3 and 1 more: P99 does not exist in docs/promises.toml";
        assert_eq!(problems(&[], &citations), [expected]);
    }

    #[test]
    fn a_wrong_spelling_is_a_problem() {
        let mut citations = Citations::default();
        let wrong = (("a.rs".to_owned(), 7), "P7 is no id, write P07".to_owned());
        citations.wrong.insert(wrong);
        assert_eq!(
            problems(&[], &citations),
            ["a.rs:7: P7 is no id, write P07"]
        );
    }
}
