//! The table and the JSON object that a run gives.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::committed::Book;
use crate::measured::{Measured, Why};
use crate::spec::{Bound, FIGURES, Spec, Verdict};

/// What a run was like.
#[derive(Clone, Debug)]
pub struct Run {
    /// The program that was measured; `None` if no figure needed it.
    pub program: Option<String>,
    /// The machine's load before and after.
    pub load: (f64, f64),
    /// What was measured.
    pub figures: Vec<Measured>,
}

impl Run {
    /// The figures in the order of the table, each with its verdict.
    fn judged<'a>(
        &'a self,
        book: &'a Book,
    ) -> impl Iterator<Item = (&'static Spec, &'a Measured, Option<f64>, Verdict)> {
        FIGURES.iter().filter_map(move |spec| {
            let measured = self
                .figures
                .iter()
                .find(|figure| figure.name == spec.name)?;
            let committed = book.get(spec.name).map(|committed| committed.value);
            let verdict = match &measured.value {
                Ok(value) => spec.judge(*value, committed),
                Err(Why::NotHere(_)) => Verdict::LeftOut,
                Err(Why::Failed(_)) => Verdict::Failed,
            };
            Some((spec, measured, committed, verdict))
        })
    }

    /// The names of figures that missed their limit and can be trusted, or could not be had.
    #[must_use]
    pub fn missed(&self, book: &Book) -> Vec<&'static str> {
        self.judged(book)
            .filter(|(.., verdict)| matches!(verdict, Verdict::Missed | Verdict::Failed))
            .map(|(spec, ..)| spec.name)
            .collect()
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self, book: &Book) -> String {
        let mut text = format!(
            "{:<19}{:>12}  {:<9}{:>13}{:>13}  {:<8}\n",
            "figure", "value", "unit", "limit", "committed", "verdict"
        );
        for (spec, measured, committed, verdict) in self.judged(book) {
            let value = match &measured.value {
                Ok(value) => number(*value),
                Err(_) => "-".into(),
            };
            let verdict = verdict.word();
            let _ = writeln!(
                text,
                "{:<19}{value:>12}  {:<9}{:>13}{:>13}  {verdict:<8} {}",
                spec.name,
                spec.unit,
                limit(spec, committed),
                committed.map_or("-".into(), number),
                about(spec, measured),
            );
        }
        let (before, after) = self.load;
        let _ = write!(
            text,
            "\nload of the machine: {before:.1} before, {after:.1} after"
        );
        if let Some(program) = &self.program {
            let _ = write!(text, "\nprogram: {program}");
        }
        text
    }

    /// One JSON object, for comparison of two builds.
    #[must_use]
    pub fn json(&self, book: &Book) -> Value {
        let figures: Vec<Value> = self
            .judged(book)
            .map(|(spec, measured, committed, verdict)| {
                json!({
                    "name": spec.name,
                    "value": measured.value.as_ref().ok(),
                    "leftOut": measured.value.as_ref().err().map(Why::words),
                    "unit": spec.unit,
                    "limit": spec.limit(committed),
                    "limitIs": match spec.bound {
                        Bound::AtMost(_) | Bound::Regression(_) => Some("most"),
                        Bound::AtLeast(_) => Some("least"),
                        Bound::None => None,
                    },
                    "committed": committed,
                    "verdict": verdict.word(),
                    "note": measured.note,
                })
            })
            .collect();
        json!({
            "program": self.program,
            "load": { "before": self.load.0, "after": self.load.1 },
            "missed": self.missed(book),
            "figures": figures,
        })
    }
}

/// What stands behind a figure.
fn about(spec: &Spec, measured: &Measured) -> String {
    let note = match &measured.value {
        Ok(_) => measured.note.as_str(),
        Err(why) => why.words(),
    };
    match (spec.what, note) {
        (what, "") => what.to_owned(),
        ("", note) => note.to_owned(),
        (what, note) => format!("{what} ({note})"),
    }
}

fn limit(spec: &Spec, committed: Option<f64>) -> String {
    let Some(limit) = spec.limit(committed) else {
        return "-".into();
    };
    match spec.bound {
        Bound::AtLeast(_) => format!(">= {}", number(limit)),
        _ => format!("<= {}", number(limit)),
    }
}

/// Three digits that matter, thousands with a comma.
fn number(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(figures: Vec<Measured>) -> Run {
        Run {
            program: None,
            load: (0.1, 0.2),
            figures,
        }
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(number(0.456), "0.46");
        assert_eq!(number(100.4), "100");
        assert_eq!(number(1_234_567.0), "1,234,567");
    }

    #[test]
    fn a_figure_that_was_left_out_says_why_and_misses_nothing() {
        let run = run(vec![Measured::left_out(
            "turn-syncs",
            Why::NotHere("strace not installed".into()),
        )]);
        let book = Book::default();
        assert!(run.table(&book).contains("strace not installed"));
        assert!(run.missed(&book).is_empty());
        let json = run.json(&book);
        assert_eq!(json["figures"][0]["value"], Value::Null);
        assert_eq!(json["figures"][0]["leftOut"], "strace not installed");
    }

    /// A gateway that hangs must not pass for lack of a figure.
    #[test]
    fn a_measurement_that_failed_is_as_bad_as_a_missed_limit() {
        let why = Why::Failed("stuck".into());
        let run = run(vec![Measured::left_out("delta-p50", why)]);
        assert_eq!(run.missed(&Book::default()), ["delta-p50"]);
    }

    #[test]
    fn a_count_beyond_its_limit_is_named_as_missed() {
        let run = run(vec![
            Measured::value("turn-syncs", 4.0, ""),
            Measured::value("start", 99.0, ""),
        ]);
        let book = Book::default();
        assert_eq!(run.missed(&book), ["turn-syncs"]);
        assert_eq!(run.json(&book)["missed"], json!(["turn-syncs"]));
        assert!(run.table(&book).contains("warning"));
    }
}
