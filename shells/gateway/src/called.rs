//! How this program was called, so that a printed command can be typed as it stands.

use std::path::{Path, PathBuf};

/// The program, as a shell takes it.
#[must_use]
pub fn program() -> String {
    let called = std::env::args_os().next().map(PathBuf::from);
    called.map_or_else(|| "tidegate".to_owned(), |path| quoted(&path))
}

/// A path, as a shell takes it.
#[must_use]
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
