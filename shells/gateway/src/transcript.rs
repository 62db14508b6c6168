//! Prints a reply while it grows.
//!
//! The gateway's events carry the whole text so far; some may be missing (a slow reader loses
//! text events) and an attempt may begin again. So what is printed is always brought up to the
//! text: by its rest where it continues, from its beginning where it does not, and marked so. An
//! attempt that says once more what is printed already prints nothing until it says more.

/// What has been printed of a reply.
#[derive(Debug, Default)]
pub struct Transcript {
    shown: String,
    plain: bool,
    /// Somebody else has ended the line that it was in.
    is_cut: bool,
}

/// What to print of a reply now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The text begins anew: what was printed does not count. This ends the line in which it
    /// ended.
    pub anew: Option<&'static str>,
    /// The text.
    pub text: String,
}

impl Transcript {
    /// Nothing printed yet. For a terminal, control characters are left out: a model must not
    /// steer the reader's screen.
    #[must_use]
    pub const fn new(terminal: bool) -> Self {
        Self {
            shown: String::new(),
            plain: terminal,
            is_cut: false,
        }
    }

    /// Takes the whole text so far; gives what to print now.
    pub fn grow(&mut self, text: &str) -> Piece {
        if self.shown.starts_with(text) {
            return Piece::default();
        }
        self.settle(text)
    }

    /// Takes the text as it is at its end; gives what to print now. A text that is shorter
    /// than what was printed is printed again: it is the true one.
    pub fn settle(&mut self, text: &str) -> Piece {
        let (anew, piece) = match text.strip_prefix(self.shown.as_str()) {
            Some(rest) => (None, rest),
            None => (Some(self.end()), text),
        };
        let text_now = match self.plain {
            true => harmless(piece),
            false => piece.to_owned(),
        };
        self.is_cut &= text_now.is_empty() && anew.is_none();
        text.clone_into(&mut self.shown);
        Piece {
            anew,
            text: text_now,
        }
    }

    /// Ends the line for somebody else's; gives what to print for that.
    pub fn cut(&mut self) -> &'static str {
        let end = self.end();
        self.is_cut = true;
        end
    }

    /// What to print so that the next line begins at its start.
    #[must_use]
    pub fn end(&self) -> &'static str {
        if self.is_cut || self.shown.is_empty() || self.shown.ends_with('\n') {
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

/// A text without what steers a terminal: all control characters but line ends and tabs.
#[must_use]
pub fn harmless(text: &str) -> String {
    let visible = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
    text.chars().filter(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn more(text: &str) -> Piece {
        Piece {
            anew: None,
            text: text.to_owned(),
        }
    }

    fn anew(end: &'static str, text: &str) -> Piece {
        Piece {
            anew: Some(end),
            ..more(text)
        }
    }

    #[test]
    fn a_text_is_printed_once_even_if_events_are_missing() {
        let mut reply = Transcript::new(false);
        assert_eq!(reply.grow("Hel"), more("Hel"));
        assert_eq!(reply.grow("Hello wor"), more("lo wor"));
        assert_eq!(reply.grow("Hello wor"), more(""));
        assert_eq!(reply.settle("Hello world."), more("ld."));
        assert_eq!(reply.end(), "\n");
    }

    /// B-058: what no longer counts is marked, and the new text stands on its own line.
    #[test]
    fn a_text_that_began_again_stands_on_its_own_line() {
        let mut reply = Transcript::new(false);
        reply.grow("Once upon");
        assert_eq!(reply.grow("There was"), anew("\n", "There was"));
        assert_eq!(reply.grow("There was a\n"), more(" a\n"));
        assert_eq!(reply.grow("No"), anew("", "No"));
    }

    #[test]
    fn a_line_that_somebody_else_ended_is_not_ended_again() {
        let mut reply = Transcript::new(false);
        assert_eq!(reply.cut(), "");
        reply.grow("Once upon");
        assert_eq!((reply.cut(), reply.cut(), reply.end()), ("\n", "", ""));
        assert_eq!(reply.grow("There"), anew("", "There"));
        assert_eq!((reply.cut(), reply.end()), ("\n", ""));
        assert_eq!((reply.grow("There was"), reply.end()), (more(" was"), "\n"));
    }

    /// P33: an attempt that says the same again is not printed twice.
    #[test]
    fn a_text_that_begins_again_alike_goes_on_where_it_was() {
        let mut reply = Transcript::new(false);
        reply.grow("Once upon");
        assert_eq!(reply.grow(""), more(""));
        assert_eq!(reply.grow("Once up"), more(""));
        assert_eq!(reply.grow("Once upon a"), more(" a"));
    }

    /// Law 10: what was corrected to less is told as it is.
    #[test]
    fn a_text_that_ends_shorter_is_printed_again() {
        let mut reply = Transcript::new(false);
        reply.grow("Done. And more");
        assert_eq!(reply.settle("Done."), anew("\n", "Done."));
    }

    #[test]
    fn a_reply_does_not_steer_the_terminal() {
        let mut reply = Transcript::new(true);
        assert_eq!(reply.grow("a\x1b[2Jb\r\u{9b}c\td\n"), more("a[2Jbc\td\n"));
        assert_eq!(reply.end(), "");
    }
}
