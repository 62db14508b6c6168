//! What is wrong with a scenario's text, and where.
//!
//! Owns the refusal and the search for the nearest valid name. It judges no run.

use std::fmt;

/// A scenario that is not understood. Its text names the place, what was expected there, and
/// the nearest valid name where one is near.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The name under which the text was given, mostly a path.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong and what was expected.
    pub problem: String,
    /// The nearest valid name.
    pub nearest: Option<String>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            problem,
            nearest,
        } = self;
        write!(f, "{file}:{line}:{column}: {problem}")?;
        match nearest {
            Some(name) => write!(f, "; did you mean `{name}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// A problem at a column of a line whose number the reader knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) column: usize,
    pub(super) problem: String,
    pub(super) nearest: Option<String>,
}

impl Trouble {
    pub(super) fn new(column: usize, problem: impl Into<String>) -> Self {
        Self {
            column,
            problem: problem.into(),
            nearest: None,
        }
    }

    /// With the nearest of `names` to what was found, if one is near.
    pub(super) fn near<'a>(
        mut self,
        found: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        self.nearest = nearest(found, names).map(str::to_owned);
        self
    }
}

/// The name that is nearest to `found`, if it is near: a third of its letters may differ, and
/// at least one.
pub(super) fn nearest<'a>(
    found: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let most = (found.chars().count() / 3).clamp(1, 4);
    names
        .into_iter()
        .map(|name| (distance(found, name), name))
        .filter(|&(far, name)| far <= most && far < name.chars().count())
        .min()
        .map(|(_, name)| name)
}

/// How many letters must be put in, left out, changed, or swapped with their neighbour.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j - 1] + change)
                .min(rows[i - 1][j] + 1)
                .min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = ["sends", "repeats", "waits"];
        assert_eq!(nearest("snds", names), Some("sends"));
        assert_eq!(nearest("wiats", names), Some("waits"));
        assert_eq!(nearest("m9", ["m1", "bob"]), Some("m1"));
        assert_eq!(nearest("dances", names), None);
        assert_eq!(nearest("x", ["y"]), None, "nothing of it is left");
    }
}
