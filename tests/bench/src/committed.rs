//! The committed figures: what this machine's runs are compared to, in figures.toml.
//!
//! The file is written by `--update` only, figure by figure, each with its day.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use crate::spec::{FIGURES, Spec};

const HEAD: &str = "\
# Figures that a run of the bench is compared to, each with the day on which it was measured.
# Made by the bench; to measure again and write what was measured:
#   cargo build --profile dist -p tidegate
#   cargo run --release -p tidegate-bench -- --update              (all figures)
#   cargo run --release -p tidegate-bench -- --update --only instructions
# Update on a machine that is otherwise idle, and say in the commit why a figure has changed.
# Only the instruction figures are limits (30 % more is an error); the others are shown.
";

/// One committed figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Committed {
    /// Its value, in the unit.
    pub value: f64,
    /// Its unit, for the reader.
    pub unit: String,
    /// When it was measured, as a date.
    pub date: String,
}

/// All committed figures, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Book(BTreeMap<String, Committed>);

/// The file can't be used.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable(String);

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where the committed figures lie.
#[must_use]
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("figures.toml")
}

impl Book {
    /// Reads the file; one that is not there holds nothing.
    ///
    /// # Errors
    /// If it can't be read or says something that is not a figure.
    pub fn read(path: &Path) -> Result<Self, Unusable> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                Self::parse(&text).map_err(|why| Unusable(format!("{}: {why}", path.display())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Unusable(format!(
                "{} can't be read: {error}",
                path.display()
            ))),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let figures: BTreeMap<String, Committed> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, committed) in &figures {
            let spec = Spec::named(name)
                .ok_or_else(|| format!("there is no figure {name}: remove it or mend its name"))?;
            if spec.unit != committed.unit {
                return Err(format!(
                    "{name} is in {:?}, and was committed in {:?}: measure it again with --update",
                    spec.unit, committed.unit
                ));
            }
        }
        Ok(Self(figures))
    }

    /// The committed figure of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Committed> {
        self.0.get(name)
    }

    /// Takes a value in, as of a date.
    pub fn set(&mut self, spec: &Spec, value: f64, date: &str) {
        let committed = Committed {
            value,
            unit: spec.unit.to_owned(),
            date: date.to_owned(),
        };
        self.0.insert(spec.name.to_owned(), committed);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write(&self, path: &Path) -> Result<(), Unusable> {
        std::fs::write(path, self.text())
            .map_err(|error| Unusable(format!("{} can't be written: {error}", path.display())))
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for spec in FIGURES {
            let Some(Committed { value, unit, date }) = self.get(spec.name) else {
                continue;
            };
            let name = spec.name;
            let _ = write!(
                text,
                "\n[{name}]\nvalue = {value:.2}\nunit = \"{unit}\"\ndate = \"{date}\"\n"
            );
        }
        text
    }
}

/// Today's date, by universal time.
#[must_use]
pub fn today() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    date(now.as_secs() / 86_400)
}

/// The date so many days after 1970-01-01. Years are counted from March, in cycles of 400.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let of_cycle = days % 146_097;
    let year_of_cycle =
        (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = days / 146_097 * 400 + year_of_cycle + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut book = Book::default();
        for (at, spec) in FIGURES.iter().enumerate() {
            book.set(spec, at as f64 + 0.25, "2026-11-30");
        }
        assert_eq!(Book::parse(&book.text()), Ok(book));
    }

    #[test]
    fn a_figure_that_does_not_exist_is_named() {
        let text = "[strat]\nvalue = 1.0\nunit = \"ms\"\ndate = \"2026-11-30\"\n";
        let why = Book::parse(text).expect_err("there is no such figure");
        assert!(why.contains("strat"), "{why}");
        let text = "[start]\nvalue = 1.0\nunit = \"s\"\ndate = \"2026-11-30\"\n";
        let why = Book::parse(text).expect_err("another unit");
        assert!(why.contains("\"ms\"") && why.contains("--update"), "{why}");
    }

    #[test]
    fn the_committed_file_is_sound() {
        Book::read(&path()).expect("figures.toml can be read");
    }

    #[test]
    fn dates_know_leap_years() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(11_017), "2000-03-01");
        assert_eq!(date(20_787), "2026-11-30");
        assert_eq!(date(47_540), "2100-02-28");
        assert_eq!(date(47_541), "2100-03-01");
    }
}
