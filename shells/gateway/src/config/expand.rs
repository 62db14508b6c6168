//! `${NAME}` in texts of the file.
//!
//! It owns the notation. Where a variable comes from is its caller's; no value of a variable
//! is put into an error.

use std::env::VarError;

/// Looks a variable up, as [`std::env::var`] does.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<String, VarError>;

/// A text whose references are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// Whether it holds what a variable held.
    pub is_referring: bool,
}

/// Fills in `${NAME}`; `$${NAME}` stands for the text `${NAME}`. What a variable holds is
/// not looked at again.
///
/// # Errors
/// What is wrong, to be read after the key.
pub fn expand(raw: &str, lookup: Lookup<'_>) -> Result<Expanded, String> {
    let mut expanded = Expanded {
        text: String::with_capacity(raw.len()),
        is_referring: false,
    };
    let mut rest = raw;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            expanded.text.push_str(before);
            expanded.text.push_str("${");
            rest = &reference[2..];
            continue;
        }
        let (name, after) = reference[2..]
            .split_once('}')
            .filter(|(name, _)| is_name(name))
            .ok_or("has a ${ that begins no reference: expected ${NAME}, or $${ for a plain ${")?;
        expanded.text.push_str(before);
        expanded.text.push_str(&value(name, lookup)?);
        expanded.is_referring = true;
        rest = after;
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

fn value(name: &str, lookup: Lookup<'_>) -> Result<String, String> {
    lookup(name).map_err(|error| match error {
        VarError::NotPresent => format!(
            "takes its value from the variable {name}, which is not set: set it, or write \
             $${{{name}}} for the plain text"
        ),
        VarError::NotUnicode(_) => {
            format!("takes its value from the variable {name}, which holds no text")
        }
    })
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next();
    first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(raw: &str) -> Result<(String, bool), String> {
        let lookup = |name: &str| match name {
            "A" => Ok("one".into()),
            "_b2" => Ok("${A}".into()),
            _ => Err(VarError::NotPresent),
        };
        expand(raw, &lookup).map(|e| (e.text, e.is_referring))
    }

    #[test]
    fn references_are_filled_in_once() {
        for (raw, text, is_referring) in [
            ("plain $5 {A} $", "plain $5 {A} $", false),
            ("<${A}${A}>", "<oneone>", true),
            ("${_b2}", "${A}", true),
            ("$${A}", "${A}", false),
            ("$${A} ${A}", "${A} one", true),
            ("$$${A}", "$${A}", false),
            ("$${", "${", false),
        ] {
            assert_eq!(expanded(raw), Ok((text.into(), is_referring)), "{raw}");
        }
    }

    #[test]
    fn a_missing_variable_is_named_and_a_wrong_reference_refused() {
        let why = expanded("${NOT_SET}").expect_err("it is not set");
        assert!(
            why.contains("variable NOT_SET") && why.contains("$${NOT_SET}"),
            "{why}"
        );
        for wrong in ["${", "${}", "${A", "${1A}", "${A B}", "${${A}}"] {
            let why = expanded(wrong).expect_err(wrong);
            assert!(why.contains("expected ${NAME}"), "{wrong}: {why}");
        }
    }
}
