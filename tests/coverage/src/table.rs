//! docs/coverage.md: the promises, their states, and who holds them.
//!
//! Owns the page's form. It is a function of promises and citations alone, so the same
//! repository gives the same page everywhere.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::citations::Citations;
use crate::id::Family;
use crate::promises::{Promise, State};

/// Where the page stands, from the root of the repository.
pub const TABLE: &str = "docs/coverage.md";

/// Proofs that a line shows; the others are counted.
const SHOWN_PROOFS: usize = 2;

const HEAD: &str = "\
# Coverage

What Tidegate promises, and which tests and scenarios hold it. Made from `docs/promises.toml` \
and the tests by `make coverage-table`; not to be edited.

*kept*: code and tests hold it. *later*: to come, or only a part is there. *replaced*: the \
design departs from it, on purpose. A test that is named beside a later promise holds a part of it.
";

/// The whole page.
pub fn page(promises: &[Promise], citations: &Citations) -> String {
    let mut page = String::from(HEAD);
    page.push('\n');
    summary(&mut page, promises);
    for family in Family::ALL {
        let of_family = || promises.iter().filter(|p| p.id.family == family);
        if of_family().next().is_none() {
            continue;
        }
        line(&mut page, format_args!("\n## {}\n", family.title()));
        line(
            &mut page,
            format_args!("| id | state | promise | held by |"),
        );
        line(&mut page, format_args!("| --- | --- | --- | --- |"));
        for promise in of_family() {
            let Promise { id, state, .. } = promise;
            let proofs = citations.proofs.get(id);
            line(
                &mut page,
                format_args!(
                    "| {id} | {state} | {} | {} |",
                    text(promise),
                    held_by(proofs)
                ),
            );
        }
    }
    page
}

/// How many promises are in a state.
pub fn count(promises: &[Promise], state: State) -> usize {
    promises.iter().filter(|p| p.state == state).count()
}

fn summary(page: &mut String, promises: &[Promise]) {
    line(page, format_args!("| | kept | later | replaced | all |"));
    line(page, format_args!("| --- | ---: | ---: | ---: | ---: |"));
    for family in Family::ALL {
        let of_family: Vec<Promise> = promises
            .iter()
            .filter(|p| p.id.family == family)
            .cloned()
            .collect();
        row(page, family.title(), &of_family);
    }
    row(page, "all", promises);
}

fn row(page: &mut String, title: &str, promises: &[Promise]) {
    let [kept, later, replaced] = State::ALL.map(|state| count(promises, state));
    let all = promises.len();
    line(
        page,
        format_args!("| {title} | {kept} | {later} | {replaced} | {all} |"),
    );
}

fn text(promise: &Promise) -> String {
    let mut text = promise.text.clone();
    if let Some(part) = &promise.part {
        let _ = write!(text, " *So far: {part}*");
    }
    if let Some(by) = &promise.by {
        let _ = write!(text, " *Replaced: {by}*");
    }
    text.replace('|', "\\|")
}

fn held_by(proofs: Option<&BTreeSet<String>>) -> String {
    let Some(proofs) = proofs else {
        return String::new();
    };
    let shown: Vec<String> = proofs
        .iter()
        .take(SHOWN_PROOFS)
        .map(|proof| format!("`{proof}`"))
        .collect();
    let mut text = shown.join(", ");
    if proofs.len() > SHOWN_PROOFS {
        let _ = write!(text, " +{} more", proofs.len() - SHOWN_PROOFS);
    }
    text
}

fn line(page: &mut String, args: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{args}"); // writing to a string can't fail
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Id;

    fn promise(id: &str, state: State) -> Promise {
        Promise {
            id: Id::parse(id).expect("the test writes ids well"),
            text: "Holds a | b.".into(),
            state,
            part: None,
            by: None,
        }
    }

    #[test]
    fn a_promise_is_one_line_and_long_lists_are_counted() {
        let promises = [promise("I2", State::Kept)];
        let mut citations = Citations::default();
        let names = ["d.rs:d", "a.rs:a", "c.rs:c", "b.rs:b"].map(String::from);
        citations.proofs.insert(promises[0].id, names.into());
        let page = page(&promises, &citations);
        let expected = "| I2 | kept | Holds a \\| b. | `a.rs:a`, `b.rs:b` +2 more |";
        assert!(page.lines().any(|line| line == expected), "{page}");
        assert!(page.contains("| Invariants | 1 | 0 | 0 | 1 |"), "{page}");
    }

    #[test]
    fn a_part_and_a_replacement_are_told() {
        let part = Promise {
            part: Some("half of it.".into()),
            ..promise("R1", State::Later)
        };
        let by = Promise {
            by: Some("claims.".into()),
            ..promise("R2", State::Replaced)
        };
        let page = page(&[part, by], &Citations::default());
        assert!(page.contains("*So far: half of it.*"), "{page}");
        assert!(page.contains("*Replaced: claims.*"), "{page}");
    }
}
