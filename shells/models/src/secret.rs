//! A key that no log, error or debug output can show.

use core::fmt;

/// A provider's key. It has no `Display`, and its `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A key without the white space around it, such as the line end of a file. `None` if
    /// nothing is left.
    #[must_use]
    pub fn new(key: &str) -> Option<Self> {
        let key = key.trim();
        (!key.is_empty()).then(|| Self(key.to_owned()))
    }

    /// The key itself, for a request header or to cut it out of foreign words.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_show_itself() {
        let secret = Secret::new(" open-sesame\n").unwrap();
        assert_eq!(secret.expose(), "open-sesame");
        assert_eq!(format!("{:?}", Some(secret)), "Some(Secret(…))");
        assert_eq!(Secret::new(" \n"), None);
    }
}
