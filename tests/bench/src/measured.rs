//! What a measurement gives: values, or why there is none.

/// Why a figure has no value. Nothing is ever guessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// This machine lacks what the measurement needs. No fault of the gateway.
    NotHere(String),
    /// The measurement was tried and failed. As bad as a missed limit.
    Failed(String),
}

impl Why {
    /// Why a tool did not start.
    #[must_use]
    pub fn tool(name: &str, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::NotHere(format!("{name} not installed")),
            _ => Self::Failed(format!("{name} does not start: {error}")),
        }
    }

    /// The reason in words.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::NotHere(words) | Self::Failed(words) => words,
        }
    }
}

impl From<String> for Why {
    fn from(words: String) -> Self {
        Self::Failed(words)
    }
}

/// One figure as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Its name in [`FIGURES`](crate::spec::FIGURES).
    pub name: &'static str,
    /// Its value in the figure's unit, or why there is none.
    pub value: Result<f64, Why>,
    /// How it was measured; may be empty.
    pub note: String,
}

impl Measured {
    /// A value.
    #[must_use]
    pub fn value(name: &'static str, value: f64, note: impl Into<String>) -> Self {
        Self {
            name,
            value: Ok(value),
            note: note.into(),
        }
    }

    /// No value.
    #[must_use]
    pub fn left_out(name: &'static str, why: Why) -> Self {
        Self {
            name,
            value: Err(why),
            note: String::new(),
        }
    }
}

/// The value below which `percent` of the values lie; 0 of none.
#[must_use]
pub fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(at).copied().unwrap_or_default()
}

/// The middle value; 0 of none.
#[must_use]
pub fn median(values: &mut [f64]) -> f64 {
    percentile(values, 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(median(&mut values), 100.0);
        assert_eq!(percentile(&mut values, 95), 190.0);
        assert_eq!(percentile(&mut values, 99), 198.0);
        assert_eq!(median(&mut [7.0]), 7.0);
        assert_eq!(median(&mut []), 0.0);
    }
}
