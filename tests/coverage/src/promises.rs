//! docs/promises.toml: what Tidegate promises, and how far it is.
//!
//! Owns the file's form and what can be wrong in it alone. It never looks at a test.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::id::{Family, Id};

/// Where the promises stand, from the root of the repository.
pub const PROMISES: &str = "docs/promises.toml";

/// How far a promise is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Code and tests hold it.
    Kept,
    /// It is to come, or a part of it is.
    Later,
    /// The design departs from it, on purpose.
    Replaced,
}

impl State {
    /// All states, in the order of the table.
    pub const ALL: [Self; 3] = [Self::Kept, Self::Later, Self::Replaced];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kept => "kept",
            Self::Later => "later",
            Self::Replaced => "replaced",
        })
    }
}

/// A promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Its id.
    pub id: Id,
    /// What is promised, in one sentence.
    pub text: String,
    /// How far it is.
    pub state: State,
    /// Of a later one: the part that is kept already.
    pub part: Option<String>,
    /// Of a replaced one: by what.
    pub by: Option<String>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    promise: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    text: String,
    state: State,
    part: Option<String>,
    by: Option<String>,
    /// Where the situation was reported, for readers of the file.
    source: Option<String>,
}

/// Why the promises can't be read at all.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file can't be opened: most often the wrong directory.
    #[error(
        "cannot read {path}: {error}; run this at the root of the repository or name it with --root"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The file is no list of promises.
    #[error("{PROMISES}: {0}")]
    Form(#[from] toml::de::Error),
}

/// The promises of the repository at `root`, in the order of the file, and what is wrong
/// with them in themselves.
///
/// # Errors
/// [`Unreadable`], if the file is missing or no list of promises.
pub fn read(root: &Path) -> Result<(Vec<Promise>, Vec<String>), Unreadable> {
    let path = root.join(PROMISES);
    let text = std::fs::read_to_string(&path).map_err(|error| Unreadable::File { path, error })?;
    parse(&text)
}

fn parse(text: &str) -> Result<(Vec<Promise>, Vec<String>), Unreadable> {
    let file: File = toml::from_str(text)?;
    let mut promises: Vec<Promise> = Vec::new();
    let mut problems = Vec::new();
    for entry in file.promise {
        let Some(id) = Id::parse(&entry.id) else {
            let form = "expected a form like R12, I4, L3, P07, B-011 or S-05";
            problems.push(format!("{PROMISES}: \"{}\" is no id, {form}", entry.id));
            continue;
        };
        problems.extend(faults_of(id, &entry).map(|fault| format!("{PROMISES}: {id} {fault}")));
        if promises.iter().any(|promise| promise.id == id) {
            problems.push(format!("{PROMISES}: {id} is listed twice"));
            continue;
        }
        if let Some(last) = promises.last().filter(|last| last.id > id) {
            problems.push(format!("{PROMISES}: {id} stands behind {}", last.id));
        }
        promises.push(Promise {
            id,
            text: entry.text,
            state: entry.state,
            part: entry.part,
            by: entry.by,
        });
    }
    problems.extend(gaps(&promises));
    Ok((promises, problems))
}

/// What is wrong with one entry.
fn faults_of(id: Id, entry: &Entry) -> impl Iterator<Item = &'static str> {
    let one_line = |text: &String| !text.trim().is_empty() && !text.contains('\n');
    let texts = [Some(&entry.text), entry.part.as_ref(), entry.by.as_ref()];
    let reported = matches!(id.family, Family::Bug | Family::Stream);
    [
        (
            !texts.into_iter().flatten().all(one_line),
            "has an empty text or one of several lines",
        ),
        (
            (entry.state == State::Replaced) != entry.by.is_some(),
            "needs `by` if it is replaced, and only then",
        ),
        (
            entry.part.is_some() && entry.state != State::Later,
            "has a `part`, which only a later one has",
        ),
        (
            entry.source.is_some() != reported,
            "needs a `source` if it is a B or S, and only then",
        ),
    ]
    .into_iter()
    .filter_map(|(wrong, fault)| wrong.then_some(fault))
}

/// The numbers that each family lacks.
fn gaps(promises: &[Promise]) -> Vec<String> {
    let mut gaps = Vec::new();
    for family in Family::ALL {
        let numbers = || {
            promises
                .iter()
                .map(|p| p.id)
                .filter(|id| id.family == family)
        };
        let last = numbers().map(|id| id.number).max().unwrap_or(0);
        let missing = (1..=last).map(|number| Id { family, number });
        gaps.extend(
            missing
                .filter(|id| !numbers().any(|other| other == *id))
                .map(|id| format!("{PROMISES}: {id} is missing")),
        );
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let (_, problems) = parse(text).expect("the test's file has the right form");
        problems
            .into_iter()
            .map(|problem| problem.replace("docs/promises.toml: ", ""))
            .collect()
    }

    fn entry(id: &str, rest: &str) -> String {
        format!("[[promise]]\nid = \"{id}\"\ntext = \"t\"\n{rest}\n")
    }

    const LATER: &str = "state = \"later\"";

    #[test]
    fn a_good_file_has_no_problems() {
        let text = entry("R1", "state = \"kept\"")
            + &entry("R2", "state = \"later\"\npart = \"half\"")
            + &entry("R3", "state = \"replaced\"\nby = \"claims\"")
            + &entry("B-001", "state = \"later\"\nsource = \"a/b#1\"");
        assert_eq!(problems(&text), Vec::<String>::new());
    }

    #[test]
    fn a_promise_that_is_listed_twice_is_named() {
        let text = entry("R1", LATER) + &entry("R1", LATER);
        assert_eq!(problems(&text), ["R1 is listed twice"]);
    }

    #[test]
    fn a_wrong_id_a_wrong_order_and_a_gap_are_named() {
        let text = entry("R3", LATER) + &entry("R1", LATER) + &entry("P7", LATER);
        let wrong = "\"P7\" is no id, expected a form like R12, I4, L3, P07, B-011 or S-05";
        assert_eq!(
            problems(&text),
            ["R1 stands behind R3", wrong, "R2 is missing"]
        );
    }

    #[test]
    fn each_state_has_its_own_keys() {
        let text = entry("R1", "state = \"replaced\"")
            + &entry("R2", "state = \"kept\"\npart = \"half\"")
            + &entry("R3", "state = \"later\"\nby = \"x\"")
            + &entry("S-01", LATER);
        assert_eq!(
            problems(&text),
            [
                "R1 needs `by` if it is replaced, and only then",
                "R2 has a `part`, which only a later one has",
                "R3 needs `by` if it is replaced, and only then",
                "S-01 needs a `source` if it is a B or S, and only then",
            ]
        );
    }

    #[test]
    fn an_unknown_key_or_state_is_refused_with_its_place() {
        let error = parse(&entry("R1", "state = \"done\"")).expect_err("no such state");
        assert!(error.to_string().contains("line 4"), "{error}");
        assert!(parse(&entry("R1", "state = \"kept\"\nnote = \"x\"")).is_err());
    }
}
