//! The two output streams. A reader that has gone is not an error of the command: what
//! cannot be written is dropped, and the exit code still tells how the command ended.

use std::io::{IsTerminal, Write, stderr};

use serde_json::Value;

use crate::transcript::harmless;

/// Writes a line to stdout.
pub fn line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}");
    let _ = stdout.flush();
}

/// Writes a piece of text to stdout, at once.
pub fn piece(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

/// Writes a JSON value to stdout, over several lines.
pub fn json(value: &Value) {
    line(&format!("{value:#}"));
}

/// Writes a line to stderr.
pub fn err(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes a line that may hold another's words to stderr: they do not steer a terminal.
pub fn told(text: &str) {
    if stderr().is_terminal() {
        err(&harmless(text));
    } else {
        err(text);
    }
}
