//! The environment of a command: a short list of names, all else is cleared.
//!
//! Owns which names may pass. It reads no environment of its own: the program hands its
//! variables in, and what is not on the list (keys, tokens, everything of Tidegate's) is
//! dropped here and kept nowhere.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The names that pass. The locale's are listed one by one, since a prefix would also let
/// through what people smuggle under it over remote logins.
const PASSED: [&str; 23] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
];

/// Where programs are looked for when the gateway has no `PATH` itself.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a command is told of the machine: paths, user, locale, time zone. No secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The part of `variables` that may pass, with `TERM=dumb` and a `PATH` in any case.
    #[must_use]
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let passes = |name: &OsStr| PASSED.iter().any(|passed| name == *passed);
        let mut kept: BTreeMap<_, _> = variables
            .into_iter()
            .filter(|(name, _)| passes(name))
            .collect();
        kept.entry("PATH".into())
            .or_insert_with(|| DEFAULT_PATH.into());
        kept.insert("TERM".into(), "dumb".into());
        Self(kept)
    }

    /// The variables, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Vec<String> {
        let owned = variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        Environment::of(owned)
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    }

    #[test]
    fn only_listed_names_pass() {
        let kept = of(&[
            ("HOME", "/home/a"),
            ("LC_ALL", "C"),
            ("LC_TOKEN", "secret"),
            ("OPENAI_API_KEY", "secret"),
            ("PATH", "/bin"),
            ("TERM", "xterm"),
            ("TIDEGATE_GATEWAY_TOKEN", "secret"),
            ("TIDEGATE_LOG", "debug"),
            ("LD_PRELOAD", "/x.so"),
        ]);
        assert_eq!(kept, ["HOME=/home/a", "LC_ALL=C", "PATH=/bin", "TERM=dumb"]);
    }

    #[test]
    fn there_is_always_a_path() {
        assert_eq!(
            of(&[]),
            [format!("PATH={DEFAULT_PATH}"), "TERM=dumb".into()]
        );
    }
}
