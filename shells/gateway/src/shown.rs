//! A command as a person must see it before it runs: in one line, with nothing hidden.
//!
//! Pure. Unlike [`harmless`](crate::transcript::harmless), which leaves out what steers a
//! terminal, it leaves nothing out: what is not seen is written as an escape.

/// The most characters of a command where it is named and not asked about.
const SHORT_CHARS: usize = 120;

/// The whole text, with control characters, and characters that are not seen or change the
/// order of others, as escapes.
#[must_use]
pub fn whole(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_unseen(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Its beginning.
#[must_use]
pub fn short(text: &str) -> String {
    let mut shown = whole(text.trim());
    if let Some((at, _)) = shown.char_indices().nth(SHORT_CHARS) {
        shown.truncate(at);
        shown.push('…');
    }
    shown
}

/// Characters that print nothing, or turn the order of what is printed.
const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R205: what a person allows is what runs, however it is written
    #[test]
    fn nothing_of_a_command_is_hidden() {
        assert_eq!(whole("echo größe 漢"), "echo größe 漢");
        assert_eq!(
            whole("ls\r\x1b[2K\nrm -rf x\t\u{202e}y\u{200b}"),
            "ls\\r\\u{1b}[2K\\nrm -rf x\\t\\u{202e}y\\u{200b}"
        );
        let long = "é".repeat(SHORT_CHARS + 1);
        assert_eq!(short(&long).chars().count(), SHORT_CHARS + 1);
        assert_eq!(short(" a\nb\n"), "a\\nb");
    }
}
