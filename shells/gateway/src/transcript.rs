//! Prints a reply while it grows.
//!
//! The gateway's events carry the whole text so far; some may be missing (a slow reader loses
//! text events) and an attempt may begin again. So what is printed is always brought up to the
//! text: by its rest where it continues, on a new line where it does not.

/// What has been printed of a reply.
#[derive(Debug, Default)]
pub struct Transcript {
    shown: String,
    plain: bool,
}

impl Transcript {
    /// Nothing printed yet. For a terminal, control characters are left out: a model must not
    /// steer the reader's screen.
    #[must_use]
    pub const fn new(terminal: bool) -> Self {
        Self {
            shown: String::new(),
            plain: terminal,
        }
    }

    /// Takes the whole text so far; gives what to print now.
    pub fn grow(&mut self, text: &str) -> String {
        let piece = match text.strip_prefix(self.shown.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n{text}"),
        };
        text.clone_into(&mut self.shown);
        if self.plain {
            piece.chars().filter(|c| visible(*c)).collect()
        } else {
            piece
        }
    }

    /// What to print so that the next line begins at its start.
    #[must_use]
    pub fn end(&self) -> &'static str {
        if self.shown.is_empty() || self.shown.ends_with('\n') {
            ""
        } else {
            "\n"
        }
    }

    /// Whether nothing was printed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }
}

fn visible(c: char) -> bool {
    matches!(c, '\n' | '\t') || !c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_printed_once_even_if_events_are_missing() {
        let mut reply = Transcript::new(false);
        assert_eq!(reply.grow("Hel"), "Hel");
        assert_eq!(reply.grow("Hello wor"), "lo wor");
        assert_eq!(reply.grow("Hello wor"), "");
        assert_eq!(reply.grow("Hello world."), "ld.");
        assert_eq!(reply.end(), "\n");
    }

    #[test]
    fn a_text_that_began_again_stands_on_its_own_line() {
        let mut reply = Transcript::new(false);
        reply.grow("Once upon");
        assert_eq!(reply.grow("There was"), "\nThere was");
        assert_eq!(reply.grow("There was a"), " a");
    }

    #[test]
    fn a_reply_does_not_steer_the_terminal() {
        let mut reply = Transcript::new(true);
        assert_eq!(reply.grow("a\x1b[2Jb\r\u{9b}c\td\n"), "a[2Jbc\td\n");
        assert_eq!(reply.end(), "");
    }
}
