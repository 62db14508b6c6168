//! How this program was called, so that a printed command can be typed as it stands.

use std::path::{Path, PathBuf};

use crate::cli::TargetArgs;

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

/// The flags that lead another command to the same gateway, with a space before each. The
/// token is never among them.
#[must_use]
pub fn flags(target: &TargetArgs) -> String {
    let mut flags = String::new();
    let mut flag = |name: &str, value: &Path| {
        flags.push_str(&format!(" {name} {}", quoted(value)));
    };
    if let Some(dir) = &target.state.state_dir {
        flag("--state-dir", dir);
    }
    if let Some(file) = &target.state.config {
        flag("--config", file);
    }
    if let Some(port) = target.port {
        flag("--port", Path::new(&port.to_string()));
    }
    if let Some(url) = &target.url {
        flag("--url", Path::new(url));
    }
    flags
}
