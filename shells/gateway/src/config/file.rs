//! Finds and reads the file, before anything is known of what it says.
//!
//! It owns the file's path, its bounds and its permissions. It writes nothing.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use super::expand::Lookup;
use super::node;
use super::read::{self, Reading};
use super::source::{At, Place, Source};

/// The name of the file in the state directory.
pub const NAME: &str = "tidegate.json5";
/// The most bytes of a file (law 9).
const FILE_BYTES: u64 = 256 * 1024;

/// Reads a file; `None` if there is none.
pub fn read_file(file: &Arc<Path>, lookup: Lookup<'_>) -> Option<Reading> {
    let mut reading = match contents(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => broken(
            file,
            At { line: 1, column: 1 },
            format!("can't be read: {error}"),
        ),
        Ok(text) => match node::parse(&text) {
            Ok(root) => read::read(file, &root, lookup),
            Err(bad) => broken(file, bad.at, format!("is not JSON5: {}", bad.why)),
        },
    };
    if let Some((place, at)) = reading.bare_secret.clone()
        && let Ok(mode) = mode(file)
        && mode & 0o077 != 0
    {
        let says = format!(
            "is a secret in a file that others may read (mode {mode:03o}): chmod 600 it, or take \
             the secret from a variable, as ${{NAME}}"
        );
        reading.warning(Source::File(Arc::clone(file), at), place, says);
    }
    Some(reading)
}

fn contents(file: &Path) -> io::Result<String> {
    let too_long = || io::Error::other(format!("it is longer than {FILE_BYTES} bytes"));
    // Looked at before it is opened: opening a pipe would wait for its writer.
    let found = std::fs::metadata(file)?;
    if !found.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    if found.len() > FILE_BYTES {
        return Err(too_long());
    }
    let mut text = String::new();
    let length = File::open(file)?
        .take(FILE_BYTES + 1)
        .read_to_string(&mut text)?;
    if u64::try_from(length).is_ok_and(|length| length <= FILE_BYTES) {
        Ok(text)
    } else {
        Err(too_long())
    }
}

fn mode(file: &Path) -> io::Result<u32> {
    Ok(std::fs::metadata(file)?.permissions().mode() & 0o777)
}

fn broken(file: &Arc<Path>, at: At, why: String) -> Reading {
    let mut reading = Reading::default();
    let source = Source::File(Arc::clone(file), at);
    reading.problem(source, Place::default(), format!("the file {why}"), None);
    reading
}
