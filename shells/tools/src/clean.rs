//! Bytes of a terminal program, made into plain text as they come.
//!
//! Owns what may be cut across two reads: a character, an escape sequence, a line end. What
//! comes out is UTF-8 whose only control characters are `\n` and tab; it never waits for more
//! than a character or a sequence needs.

use crate::limits::ESCAPE_LIMIT_CHARS;

/// Where in an escape sequence the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In none.
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate, as in `ESC ( B`: one final character follows.
    Intermediate,
    /// In a control sequence: parameters until a final character.
    Control,
    /// In a title, a link or the like: until BEL or any escape, at most to the end of its line.
    Payload { left: u32 },
}

/// Makes plain text of bytes. See the module for the rules.
#[derive(Debug)]
pub(crate) struct Cleaner {
    /// The begin of a character whose rest has not come: at most three bytes.
    cut: Vec<u8>,
    place: Place,
    /// A `\r` was the last character: a line end, which a `\n` may complete.
    carriage: bool,
}

impl Cleaner {
    /// A cleaner at the begin of an output.
    pub(crate) const fn new() -> Self {
        Self {
            cut: Vec::new(),
            place: Place::Text,
            carriage: false,
        }
    }

    /// Appends to `out` what `bytes` add to the text.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = if self.cut.is_empty() {
            bytes
        } else {
            self.cut.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.cut);
            &joined
        };
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => return self.chars(text, out),
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            self.chars(
                std::str::from_utf8(valid).expect("it is valid up to there"),
                out,
            );
            let Some(bad) = error.error_len() else {
                self.cut = after.to_vec();
                return;
            };
            self.char(char::REPLACEMENT_CHARACTER, out);
            rest = &after[bad..];
        }
    }

    /// Appends what the end of the output makes clear: a cut character stands for itself.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.cut).is_empty() {
            self.char(char::REPLACEMENT_CHARACTER, out);
        }
        if std::mem::take(&mut self.carriage) {
            out.push('\n');
        }
        self.place = Place::Text;
    }

    fn chars(&mut self, text: &str, out: &mut String) {
        for char in text.chars() {
            self.char(char, out);
        }
    }

    fn char(&mut self, char: char, out: &mut String) {
        self.place = match (self.place, char) {
            // These end a sequence in every terminal, also one that lost its end.
            (_, '\u{18}' | '\u{1a}') => Place::Text,
            (_, '\u{1b}') => Place::Escape,
            (Place::Text, '\u{9b}') | (Place::Escape, '[') => Place::Control,
            (Place::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}')
            | (Place::Escape, 'P' | 'X' | ']' | '^' | '_') => Place::Payload {
                left: ESCAPE_LIMIT_CHARS,
            },
            (Place::Escape | Place::Intermediate, ' '..='/') => Place::Intermediate,
            (Place::Escape | Place::Intermediate, '0'..='~') => Place::Text,
            (Place::Control, ' '..='?') => Place::Control,
            (Place::Control, '@'..='~') => Place::Text,
            (Place::Payload { .. }, '\u{7}' | '\u{9c}') => Place::Text,
            (Place::Payload { left }, char) if char != '\n' && left > 0 => {
                Place::Payload { left: left - 1 }
            }
            _ => {
                self.plain(char, out);
                Place::Text
            }
        };
    }

    /// A character of no sequence. A `\r` is a line end of its own (a progress bar goes on in
    /// the next line), unless a `\n` follows.
    fn plain(&mut self, char: char, out: &mut String) {
        if std::mem::take(&mut self.carriage) {
            out.push('\n');
            if char == '\n' {
                return;
            }
        }
        match char {
            '\r' => self.carriage = true,
            '\n' | '\t' => out.push(char),
            char if char.is_control() => {}
            char => out.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(pieces: &[&[u8]]) -> String {
        let mut cleaner = Cleaner::new();
        let mut out = String::new();
        for piece in pieces {
            cleaner.push(piece, &mut out);
        }
        cleaner.finish(&mut out);
        out
    }

    /// Every way of cutting `bytes` in two, and one byte at a time.
    fn clean_every_way(bytes: &[u8]) -> String {
        let whole = clean(&[bytes]);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(clean(&[head, tail]), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(clean(&single), whole);
        whole
    }

    /// What two reads cut is one character.
    #[test]
    fn a_character_cut_across_reads_stays_whole() {
        assert_eq!(clean_every_way("a ß € 😀 z".as_bytes()), "a ß € 😀 z");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_the_rest_stays() {
        assert_eq!(
            clean_every_way(b"a\xffb\xc3(\xe2\x82"),
            "a\u{fffd}b\u{fffd}(\u{fffd}"
        );
    }

    #[test]
    fn colours_titles_links_and_character_sets_leave_no_trace() {
        let fancy = "\x1b[1;31mred\x1b[0m \x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \
                     \x1b(Bb\x1b7c\x1b[?25l\u{9b}2Kd\x1bP1$r\x1b\\e";
        assert_eq!(clean_every_way(fancy.as_bytes()), "red alink bcde");
    }

    #[test]
    fn control_characters_go_and_lines_and_tabs_stay() {
        let text = "a\0b\x07\x08c\td\ne\u{85}f\x7f\r\ng\r10%\r20%\r\r\nh\r";
        assert_eq!(
            clean_every_way(text.as_bytes()),
            "abc\td\nef\ng\n10%\n20%\n\nh\n"
        );
    }

    #[test]
    fn a_sequence_that_lost_its_end_costs_a_line_at_most() {
        assert_eq!(clean_every_way(b"a\x1b]0;lost\nb"), "a\nb");
        assert_eq!(clean_every_way("a\x1b[3\u{e4}b".as_bytes()), "a\u{e4}b");
        assert_eq!(clean_every_way(b"a\x1b[12\x18b\x1b"), "ab");
        let long = format!("\x1b]{}", "x".repeat(ESCAPE_LIMIT_CHARS as usize + 7));
        assert_eq!(clean(&[long.as_bytes()]), "x".repeat(7));
    }
}
