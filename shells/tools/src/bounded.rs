//! An output of which the first and the last is kept.
//!
//! Owns the bound: the first [`HEAD_BYTES`] go through, of the rest the last [`TAIL_BYTES`] are
//! held, and what is between is counted, never kept. It knows nothing of where the text goes.

use crate::limits::{HEAD_BYTES, TAIL_BYTES};

/// The bound of one output. See the module.
#[derive(Debug, Default)]
pub(crate) struct Bounded {
    /// How much went through.
    head_bytes: usize,
    /// Whether something has come after the head.
    beyond: bool,
    /// The last of what came after, at most twice [`TAIL_BYTES`].
    tail: String,
    /// How much was dropped between the two, in bytes.
    left_out: u64,
    /// The last character that went through.
    head_last: Option<char>,
    /// The last character of all.
    last: Option<char>,
}

impl Bounded {
    /// Takes `text` in and gives back the part of it that goes through now.
    pub(crate) fn push<'t>(&mut self, text: &'t str) -> &'t str {
        self.last = text.chars().next_back().or(self.last);
        let room = if self.beyond {
            0
        } else {
            HEAD_BYTES - self.head_bytes
        };
        let (now, later) = text.split_at(text.floor_char_boundary(room));
        self.head_bytes += now.len();
        self.head_last = now.chars().next_back().or(self.head_last);
        if !later.is_empty() {
            self.beyond = true;
            self.tail.push_str(later);
            if self.tail.len() > 2 * TAIL_BYTES {
                self.cut_tail();
            }
        }
        now
    }

    /// What is left to say at the end: the held text, behind a line that says how much is
    /// missing before it, and then `lines`, each in brackets.
    pub(crate) fn finish(mut self, lines: &[String]) -> String {
        self.cut_tail();
        let mut out = String::new();
        if self.left_out > 0 {
            if self.head_last != Some('\n') {
                out.push('\n');
            }
            out.push_str(&format!("[{} bytes left out]\n", self.left_out));
        }
        out.push_str(&self.tail);
        let mut needs_line_end = self.last.is_some_and(|last| last != '\n');
        for line in lines {
            if needs_line_end {
                out.push('\n');
            }
            out.push_str(&format!("[{line}]"));
            needs_line_end = true;
        }
        out
    }

    /// Drops all but the last [`TAIL_BYTES`] of what is held.
    fn cut_tail(&mut self) {
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        let at = self.tail.ceil_char_boundary(surplus);
        self.left_out += at as u64;
        self.tail.drain(..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes `pieces` and gives back what went through and what was said at the end.
    fn bound(pieces: &[&str], lines: &[&str]) -> (String, String) {
        let mut bounded = Bounded::default();
        let through = pieces.iter().map(|piece| bounded.push(piece)).collect();
        let lines: Vec<String> = lines.iter().map(|&line| line.into()).collect();
        (through, bounded.finish(&lines))
    }

    #[test]
    fn a_short_output_goes_through_and_lines_stand_alone() {
        assert_eq!(bound(&["a", "b\n"], &[]), ("ab\n".into(), String::new()));
        assert_eq!(bound(&["ab\n"], &["x"]), ("ab\n".into(), "[x]".into()));
        assert_eq!(
            bound(&["ab"], &["x", "y"]),
            ("ab".into(), "\n[x]\n[y]".into())
        );
        assert_eq!(bound(&[], &["x"]), (String::new(), "[x]".into()));
    }

    #[test]
    fn what_fits_the_tail_is_whole() {
        let head = "h".repeat(HEAD_BYTES);
        let tail = "t".repeat(TAIL_BYTES);
        let text = format!("{head}{tail}");
        assert_eq!(bound(&[&text], &["x"]), (head, format!("{tail}\n[x]")));
    }

    /// Law 9: the bound is stated where it cuts.
    #[test]
    fn the_middle_of_a_long_output_is_counted_and_left_out() {
        let head = "h".repeat(HEAD_BYTES);
        let middle = "m".repeat(5 * TAIL_BYTES);
        let tail = "t".repeat(TAIL_BYTES);
        let said = format!("\n[{} bytes left out]\n{tail}\n[x]", middle.len());
        let whole = format!("{head}{middle}{tail}");
        assert_eq!(bound(&[&whole], &["x"]), (head.clone(), said.clone()));
        let pieces: Vec<&str> = whole
            .as_bytes()
            .chunks(1000)
            .map(|piece| std::str::from_utf8(piece).unwrap())
            .collect();
        assert_eq!(bound(&pieces, &["x"]), (head, said));
    }

    #[test]
    fn a_cut_never_halves_a_character() {
        let text = format!("a{}", "€".repeat(HEAD_BYTES));
        let (through, said) = bound(&[&text], &[]);
        assert!(through.len() <= HEAD_BYTES && through.ends_with('€'));
        let (line, tail) = said.split_once("]\n").unwrap();
        assert!(tail.len() <= TAIL_BYTES && tail.starts_with('€'));
        let left_out = text.len() - through.len() - tail.len();
        assert_eq!(line, format!("\n[{left_out} bytes left out"));
    }
}
