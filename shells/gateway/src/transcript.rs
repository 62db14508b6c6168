//! Prints a reply while it grows.
//!
//! The gateway's events carry the whole text so far; some may be missing (a slow reader loses
//! text events) and an attempt may begin again. So what is printed is always brought up to the
//! text: by its rest where it continues, on a new line where it does not. An attempt that says
//! once more what is printed already prints nothing until it says more.

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
        if self.shown.starts_with(text) {
            return String::new();
        }
        self.settle(text)
    }

    /// Takes the text as it is at its end; gives what to print now. A text that is shorter
    /// than what was printed is printed again: it is the true one.
    pub fn settle(&mut self, text: &str) -> String {
        let piece = match text.strip_prefix(self.shown.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n{text}"),
        };
        text.clone_into(&mut self.shown);
        if self.plain { harmless(&piece) } else { piece }
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

/// A text without what steers a terminal: all control characters but line ends and tabs.
#[must_use]
pub fn harmless(text: &str) -> String {
    let visible = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
    text.chars().filter(visible).collect()
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
        assert_eq!(reply.settle("Hello world."), "ld.");
        assert_eq!(reply.end(), "\n");
    }

    #[test]
    fn a_text_that_began_again_stands_on_its_own_line() {
        let mut reply = Transcript::new(false);
        reply.grow("Once upon");
        assert_eq!(reply.grow("There was"), "\nThere was");
        assert_eq!(reply.grow("There was a"), " a");
    }

    /// P33: an attempt that says the same again is not printed twice.
    #[test]
    fn a_text_that_begins_again_alike_goes_on_where_it_was() {
        let mut reply = Transcript::new(false);
        reply.grow("Once upon");
        assert_eq!(reply.grow("On"), "");
        assert_eq!(reply.grow("Once up"), "");
        assert_eq!(reply.grow("Once upon a"), " a");
    }

    /// Law 10: what was corrected to less is told as it is.
    #[test]
    fn a_text_that_ends_shorter_is_printed_again() {
        let mut reply = Transcript::new(false);
        reply.grow("Done. And more");
        assert_eq!(reply.settle("Done."), "\nDone.");
    }

    #[test]
    fn a_reply_does_not_steer_the_terminal() {
        let mut reply = Transcript::new(true);
        assert_eq!(reply.grow("a\x1b[2Jb\r\u{9b}c\td\n"), "a[2Jbc\td\n");
        assert_eq!(reply.end(), "");
    }
}
