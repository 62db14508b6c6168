//! Words of a line, with their places, and a cursor over them.
//!
//! A word ends at a space or at one of `, : ( )`, which are words of their own. Nothing here
//! knows what a word means.

use super::error::Trouble;

/// A word and the column at which it begins, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

const MARKS: [char; 4] = [',', ':', '(', ')'];

/// The words of a line, up to a comment: a `#` with a space before it or at the beginning.
pub(super) fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut begun: Option<(usize, usize)> = None;
    let mut column = 0;
    for (at, c) in line.char_indices() {
        column += 1;
        let ends = c.is_whitespace() || MARKS.contains(&c);
        if ends && let Some((from, column)) = begun.take() {
            found.push(Token {
                text: &line[from..at],
                column,
            });
        }
        if MARKS.contains(&c) {
            found.push(Token {
                text: &line[at..at + c.len_utf8()],
                column,
            });
        } else if c == '#' && begun.is_none() {
            return found;
        } else if !ends && begun.is_none() {
            begun = Some((at, column));
        }
    }
    if let Some((from, column)) = begun {
        found.push(Token {
            text: &line[from..],
            column,
        });
    }
    found
}

/// A place in a line.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    tokens: &'a [Token<'a>],
    pub(super) at: usize,
    /// The column after the line.
    end: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(tokens: &'a [Token<'a>]) -> Self {
        let end = tokens
            .last()
            .map_or(1, |last| last.column + last.text.chars().count());
        Self { tokens, at: 0, end }
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.text)
    }

    /// The word `ahead` words after the next one.
    pub(super) fn ahead(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.at + ahead).map(|token| token.text)
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        let text = self.peek()?;
        self.at += 1;
        Some(text)
    }

    /// Takes the next word if it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is = self.peek() == Some(word);
        self.at += usize::from(is);
        is
    }

    /// Takes these words, written with spaces, if they are next.
    pub(super) fn take_all(&mut self, words: &str) -> bool {
        let wanted = tokens(words);
        let fits = wanted
            .iter()
            .enumerate()
            .all(|(ahead, word)| self.ahead(ahead) == Some(word.text));
        if fits {
            self.at += wanted.len();
        }
        fits
    }

    pub(super) fn column(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |t| t.column)
    }

    /// What stands here, for a message.
    pub(super) fn found(&self) -> String {
        match self.peek() {
            Some(word) => format!("`{word}`"),
            None => "the end of the line".into(),
        }
    }

    /// A refusal at this place.
    pub(super) fn trouble(&self, expected: &str) -> Trouble {
        Trouble::new(
            self.column(),
            format!("expected {expected}, found {}", self.found()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_places_and_a_comment_ends_the_line() {
        let line = "at 5s  äa sends m1, m2 to A # why";
        let found: Vec<(&str, usize)> = tokens(line).iter().map(|t| (t.text, t.column)).collect();
        let expected = [
            ("at", 1),
            ("5s", 4),
            ("äa", 8),
            ("sends", 11),
            ("m1", 17),
            (",", 19),
            ("m2", 21),
            ("to", 24),
            ("A", 27),
        ];
        assert_eq!(found, expected);
    }
}
