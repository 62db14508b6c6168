//! What is typed: the lines of standard input.
//!
//! They are read aside, by a thread of their own, so that nothing waits for a terminal; its
//! end needs no goodbye. It knows no commands and no messages, only lines and their bound.

use std::io::{self, BufRead};
use std::thread;

use tokio::sync::mpsc;

use crate::problem::Problem;

/// The most bytes of a line. A longer one is told and not sent.
pub const LINE_BYTES: usize = 1024 * 1024;

/// Lines that were read and not looked at. Beyond, reading waits.
const WAITING_LINES: usize = 16;

/// A line of standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Its text, without its end. What is no UTF-8 is replaced by U+FFFD.
    Text(String),
    /// It has more than [`LINE_BYTES`]; its text is gone.
    TooLong,
    /// Standard input broke, for this reason. The last line.
    Broken(String),
}

/// The lines of standard input.
#[derive(Debug)]
pub struct Lines(mpsc::Receiver<Line>);

impl Lines {
    /// Reads from now on.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn of_stdin() -> Result<Self, Problem> {
        let (to, lines) = mpsc::channel(WAITING_LINES);
        let reading = move || {
            read(&mut io::stdin().lock(), |line| {
                to.blocking_send(line).is_ok()
            })
        };
        thread::Builder::new()
            .name("lines".into())
            .spawn(reading)
            .map_err(|error| {
                Problem::configuration(format!("standard input can't be read: {error}"))
            })?;
        Ok(Self(lines))
    }

    /// The next line; `None` at the end of input. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Line> {
        self.0.recv().await
    }
}

/// Gives each line to `take`, until that says no.
fn read(input: &mut impl BufRead, mut take: impl FnMut(Line) -> bool) {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                take(Line::Broken(error.to_string()));
                return;
            }
        };
        let is_end = bytes.is_empty();
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        too_long |= line.len() + piece.len() > LINE_BYTES;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(piece);
        }
        let used = piece.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_none() && !is_end {
            continue;
        }
        let is_line = end.is_some() || too_long || !line.is_empty();
        if is_line && !take(whole(&mut line, &mut too_long)) || is_end {
            return;
        }
    }
}

fn whole(line: &mut Vec<u8>, too_long: &mut bool) -> Line {
    if std::mem::take(too_long) {
        return Line::TooLong;
    }
    let bytes = std::mem::take(line);
    let text = String::from_utf8_lossy(bytes.strip_suffix(b"\r").unwrap_or(&bytes));
    Line::Text(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        // Small pieces: a line, and a character, is cut anywhere.
        let mut input = io::BufReader::with_capacity(3, input);
        read(&mut input, |line| {
            lines.push(line);
            true
        });
        lines
    }

    #[test]
    fn input_is_cut_into_lines_wherever_its_pieces_end() {
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(lines(b""), []);
        assert_eq!(
            lines("größe 漢字\r\n\nno end".as_bytes()),
            [text("größe 漢字"), text(""), text("no end")]
        );
        assert_eq!(
            lines(b"a\xff\nb\n"),
            [text("a\u{fffd}"), text("b")],
            "what is no text is replaced"
        );
    }

    /// Law 9
    #[test]
    fn a_line_without_end_is_bounded_and_the_next_one_is_read() {
        let mut input = vec![b'x'; LINE_BYTES];
        input.extend(b"\nshort\n");
        input.extend(vec![b'y'; LINE_BYTES + 1]);
        input.extend(b"\nlast");
        let read = lines(&input);
        assert_eq!(read[0], Line::Text("x".repeat(LINE_BYTES)));
        assert_eq!(
            read[1..],
            [
                Line::Text("short".into()),
                Line::TooLong,
                Line::Text("last".into())
            ]
        );
    }
}
