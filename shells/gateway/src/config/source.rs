//! Where a value or a mistake stands: which place of the file, which variable, which flag.
//!
//! It owns places and their words, and never a value.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The most bytes of a foreign name or word that is repeated (law 9).
const ECHO_BYTES: usize = 64;

/// A place in a text. Lines and columns begin with 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Who set a value. Each wins over those above it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nobody.
    Default,
    /// The file.
    File(Arc<Path>, At),
    /// A variable of the environment.
    Variable(&'static str),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(file, at) => write!(f, "{}:{}", file.display(), at.line),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One step from an object or a list to what it holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A key of an object.
    Name(String),
    /// An item of a list, the first is 0.
    Item(usize),
}

/// The place of a value within the configuration: `models.providers.local.models[0].id`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(Vec<Step>);

impl Place {
    /// The place of a key without `*` and `[]` in its path.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let names = path.split('.').map(|name| Step::Name(name.into()));
        Self(names.collect())
    }

    /// The place of a key of the provider `id`.
    #[must_use]
    pub fn provider(id: &str, name: &str) -> Self {
        Self::of("models.providers").name(id).name(name)
    }

    /// What is called `name` in here.
    #[must_use]
    pub fn name(&self, name: &str) -> Self {
        self.then(Step::Name(name.into()))
    }

    /// The item `index` in here.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.then(Step::Item(index))
    }

    /// The steps that lead here.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Item(index) => write!(f, "[{index}]")?,
                Step::Name(name) if !is_plain(name) => write!(f, "[\"{}\"]", echo(name))?,
                Step::Name(name) if i == 0 => f.write_str(name)?,
                Step::Name(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-$".contains(c);
    !name.is_empty() && name.len() <= ECHO_BYTES && name.chars().all(plain)
}

/// A foreign word, so that it can be shown: bounded, and without control characters.
#[must_use]
pub fn echo(word: &str) -> String {
    let cut = word.floor_char_boundary(ECHO_BYTES);
    let more = if cut < word.len() { "…" } else { "" };
    format!("{}{more}", word[..cut].escape_debug())
}

/// A mistake, or what deserves a warning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Who wrote it; a place in the file for all but flags and variables.
    pub source: Source,
    /// The key, as far as there is one.
    pub place: Place,
    /// What is wrong and what was expected, to be read after the key.
    pub says: String,
    /// The nearest right key.
    pub nearest: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::File(file, at) => {
                write!(f, "{}:{}:{}: ", file.display(), at.line, at.column)?;
            }
            Source::Default => {}
            other => write!(f, "{other}: ")?,
        }
        match self.place.steps() {
            [] => f.write_str(&self.says),
            _ => write!(f, "{} {}", self.place, self.says),
        }
    }
}

/// The most findings that are told one by one (law 9).
const FINDINGS_CAP: usize = 100;

/// All that was found, bounded.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    told: Vec<Finding>,
    more: usize,
}

impl Findings {
    /// Adds one; beyond the bound it is only counted.
    pub fn push(&mut self, finding: Finding) {
        if self.told.len() < FINDINGS_CAP {
            self.told.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.told.len() + self.more
    }

    /// Those that are told, by their places.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Finding> {
        let mut sorted: Vec<_> = self.told.iter().collect();
        sorted.sort();
        sorted
    }

    /// Those that keep the value at `place` from being read.
    pub fn before<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = &'a Finding> {
        let above = |found: &&Finding| place.0.starts_with(&found.place.0);
        self.told.iter().filter(above)
    }

    /// Whether anything is wrong with what stands at `place` or within it.
    #[must_use]
    pub fn is_within(&self, place: &Place) -> bool {
        self.told
            .iter()
            .any(|found| found.place.0.starts_with(&place.0))
    }

    /// The names in the object at `place` with which, or within which, something is wrong.
    pub fn names_in<'a>(&'a self, place: &'a Place) -> impl Iterator<Item = String> + 'a {
        let below = |found: &'a Finding| found.place.0.strip_prefix(place.0.as_slice());
        let names = self.told.iter().filter_map(below);
        names.filter_map(|steps| match steps.first() {
            Some(Step::Name(name)) => Some(name.clone()),
            _ => None,
        })
    }

    /// A line for each, and one for those that are only counted.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let told = self.sorted().into_iter().map(ToString::to_string);
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        told.chain(more).collect()
    }
}
