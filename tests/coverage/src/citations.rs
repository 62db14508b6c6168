//! Who names which promise: tests, scenarios, and code.
//!
//! A test names the promises that it proves in the head of the doc comment right above it; a
//! scenario in its `# proves:` lines. Comments of code, and the lists of ids that the
//! simulator's checkers carry, name promises as well and prove none. Texts of the book are
//! never read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::id::{Cited, Id, cited, cited_in_head};
use crate::rust::{Piece, pieces, tests};

/// Who may write ids as a mere list in a string: the checkers.
const CHECKERS: &str = "sim/";

/// What begins a line of a scenario that names promises.
const PROVES: &str = "# proves:";

/// Everything that the repository says about promises.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Citations {
    /// The tests and scenarios that name a promise, and run without being asked for.
    pub proofs: BTreeMap<Id, BTreeSet<String>>,
    /// Every id that is named anywhere, with the places (`file:line`).
    pub places: BTreeMap<Id, BTreeSet<Place>>,
    /// Places where something looks like an id and is none, each with the reason.
    pub wrong: BTreeSet<(Place, String)>,
}

/// A line of a file, from the root of the repository.
pub type Place = (String, usize);

impl Citations {
    /// All citations of the repository at `root`.
    ///
    /// # Errors
    /// What the system says when a folder or file can't be read.
    pub fn of_repository(root: &Path) -> io::Result<Self> {
        let mut citations = Self::default();
        citations.walk(root, "")?;
        Ok(citations)
    }

    fn walk(&mut self, folder: &Path, path: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, entry.file_name());
            let name = name.to_string_lossy();
            let path = format!("{path}{name}");
            let hidden = name.starts_with('.') || name == "target" || name == "node_modules";
            if kind.is_dir() && !hidden {
                self.walk(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() && name.ends_with(".rs") {
                self.add_rust(&path, &std::fs::read_to_string(entry.path())?);
            } else if kind.is_file() && name.ends_with(".scenario") {
                self.add_scenario(&path, &std::fs::read_to_string(entry.path())?);
            }
        }
        Ok(())
    }

    fn add_rust(&mut self, path: &str, source: &str) {
        let pieces = pieces(source);
        for (line, piece) in &pieces {
            match piece {
                Piece::Doc(text) | Piece::Comment(text) => self.mention(path, *line, text),
                Piece::Text(text) if path.starts_with(CHECKERS) && is_list(text) => {
                    self.mention(path, *line, text);
                }
                _ => {}
            }
        }
        for test in tests(&pieces) {
            let ids = cited_in_head(&test.doc).ids;
            let name = format!("{path}:{}", test.name);
            if !test.ignored {
                self.prove(&ids, &name);
            }
            // A range may go over the end of a line, where no single comment shows it.
            self.place(path, test.line, &ids);
        }
    }

    fn add_scenario(&mut self, path: &str, source: &str) {
        for (line, text) in (1..).zip(source.lines()) {
            if let Some(list) = text.trim_start().strip_prefix(PROVES) {
                self.mention(path, line, list);
                self.prove(&cited(list).ids, path);
            }
        }
    }

    fn mention(&mut self, path: &str, line: usize, text: &str) {
        let found = cited(text);
        self.place(path, line, &found.ids);
        let place = (path.to_owned(), line);
        let wrong = found.wrong.into_iter().map(|why| (place.clone(), why));
        self.wrong.extend(wrong);
    }

    fn place(&mut self, path: &str, line: usize, ids: &[Id]) {
        for id in ids {
            let place = (path.to_owned(), line);
            self.places.entry(*id).or_default().insert(place);
        }
    }

    fn prove(&mut self, ids: &[Id], name: &str) {
        for id in ids {
            self.proofs.entry(*id).or_default().insert(name.to_owned());
        }
    }
}

/// Whether a string is nothing but ids.
fn is_list(text: &str) -> bool {
    let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.all(|word| cited(word) != Cited::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(path: &str, source: &str) -> Citations {
        let mut citations = Citations::default();
        citations.add_rust(path, source);
        citations
    }

    fn id(text: &str) -> Id {
        Id::parse(text).expect("the test writes ids well")
    }

    fn proofs(citations: &Citations) -> Vec<String> {
        let proofs = citations.proofs.iter();
        proofs
            .map(|(id, names)| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("{id} {}", names.join(" "))
            })
            .collect()
    }

    #[test]
    fn a_test_proves_what_its_head_names() {
        let source = "/// Law 5; I1 to I2,\n/// P07: unlike P37 in prose.\n#[test]\nfn holds() {}";
        let citations = rust("core/a.rs", source);
        assert_eq!(
            proofs(&citations),
            [
                "I1 core/a.rs:holds",
                "I2 core/a.rs:holds",
                "P07 core/a.rs:holds"
            ]
        );
        assert!(citations.places.contains_key(&id("P37")));
    }

    #[test]
    fn code_names_promises_and_proves_none() {
        let source = "/// R3\nfn code() {} // L4\nconst C: &str = \"P01 I14\";";
        let citations = rust("sim/src/violation.rs", source);
        assert_eq!(proofs(&citations), Vec::<String>::new());
        let named: Vec<String> = citations.places.keys().map(Id::to_string).collect();
        assert_eq!(named, ["R3", "I14", "L4", "P01"]);
    }

    #[test]
    fn strings_elsewhere_and_sentences_are_no_lists() {
        assert!(
            rust("core/a.rs", "const C: &str = \"P01 I14\";")
                .places
                .is_empty()
        );
        assert!(
            rust("sim/a.rs", "const C: &str = \"P01 holds\";")
                .places
                .is_empty()
        );
        assert!(rust("sim/a.rs", "const C: &str = \"\";").places.is_empty());
    }

    #[test]
    fn an_ignored_test_proves_nothing() {
        let citations = rust("a.rs", "/// P07\n#[test]\n#[ignore]\nfn slow() {}");
        assert_eq!(proofs(&citations), Vec::<String>::new());
        assert!(citations.places.contains_key(&id("P07")));
    }

    #[test]
    fn a_wrong_spelling_in_a_comment_is_found() {
        let citations = rust("a.rs", "\n// see P7\nfn x() {}");
        let wrong = (("a.rs".to_owned(), 2), "P7 is no id, write P07".to_owned());
        assert_eq!(citations.wrong, BTreeSet::from([wrong]));
    }

    #[test]
    fn a_scenario_proves_what_it_says() {
        let mut citations = Citations::default();
        citations.add_scenario("scenarios/x.scenario", "# P37\n# proves: P07, B-039\nat 0");
        assert_eq!(
            proofs(&citations),
            ["P07 scenarios/x.scenario", "B-039 scenarios/x.scenario"]
        );
        assert!(!citations.places.contains_key(&id("P37")));
    }
}
