//! The bearer token: one secret in one file, readable by its user alone.
//!
//! A token is made once and never changed here; whoever wants another one writes it or
//! deletes the file. The text of a token reaches no log and no error.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The token's file in the state directory.
const TOKEN: &str = "token";
/// Where a token is written before it gets its name: no half token is ever read.
const TOKEN_NEW: &str = "token.new";
/// Randomness in a token that we make.
const TOKEN_BYTES: usize = 32;
/// The longest token that is read (law 9).
const TOKEN_MAX_BYTES: u64 = 4_096;
/// Permission bits of everybody but the file's user.
const OTHERS: u32 = 0o077;

/// A bearer token. Shows itself only when asked to by [`Token::reveal`]; it has no `==`, whose
/// time would tell how much of a guess is right.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The secret itself, for a comparison in constant time or a request's header.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// There is no token to be had.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// No gateway has made one yet.
    #[error("there is no token {}: start a gateway on this state directory, or name the right one", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// Others can read it.
    #[error(
        "the token {} has mode {mode:03o}, others may read it: expected 600; run `chmod 600` on \
         it, and delete it for a new one if others may have seen it",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds no token.
    #[error(
        "the token {} holds {found}: expected one line of text; delete it, and the next start of \
         the gateway makes a new one",
        path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// The file can't be read or written.
    #[error("the token {} can't be read or made: {source}; check its permissions", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Reads the token of a state directory.
pub(crate) fn read(dir: &Path) -> Result<Token, TokenError> {
    let path = dir.join(TOKEN);
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => TokenError::Missing { path: path.clone() },
        _ => TokenError::Io {
            path: path.clone(),
            source,
        },
    };
    let file = File::open(&path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(TokenError::Exposed { path, mode });
    }
    let mut bytes = Vec::new();
    file.take(TOKEN_MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let unusable = |found| {
        Err(TokenError::Unusable {
            path: path.clone(),
            found,
        })
    };
    if bytes.len() as u64 > TOKEN_MAX_BYTES {
        return unusable("more than 4096 bytes");
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return unusable("bytes that are no text");
    };
    match text.trim() {
        "" => unusable("nothing"),
        token if token.chars().any(char::is_whitespace) => unusable("more than one word"),
        token => Ok(Token(token.into())),
    }
}

/// Reads the token, or makes one where there is none. Only the directory's owner may.
pub(crate) fn read_or_make(dir: &Path) -> Result<Token, TokenError> {
    match read(dir) {
        Err(TokenError::Missing { path }) => {
            make(dir).map_err(|source| TokenError::Io { path, source })?;
            read(dir)
        }
        other => other,
    }
}

fn make(dir: &Path) -> io::Result<()> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let line: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let new = dir.join(TOKEN_NEW);
    // What a crash left under this name may have any mode: begin anew. If it can't go, the
    // next line says why.
    let _ = fs::remove_file(&new);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(line.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&new, dir.join(TOKEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, bytes: &[u8], mode: u32) {
        let path = dir.join(TOKEN);
        fs::write(&path, bytes).expect("a test directory is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our own file");
    }

    fn dir() -> tempfile::TempDir {
        tempfile::tempdir().expect("a test directory")
    }

    /// Made once, kept, mode 0600, 32 random bytes in hexadecimal.
    #[test]
    fn a_token_is_made_once_and_for_its_user_alone() {
        let (dir, other) = (dir(), dir());
        let token = read_or_make(dir.path()).expect("made");
        assert_eq!(token.reveal().len(), 2 * TOKEN_BYTES);
        assert!(token.reveal().bytes().all(|b| b.is_ascii_hexdigit()));
        assert_eq!(
            read_or_make(dir.path()).expect("kept").reveal(),
            token.reveal()
        );
        assert_eq!(
            read(dir.path()).expect("read by a client").reveal(),
            token.reveal()
        );
        assert_ne!(
            read_or_make(other.path()).expect("made").reveal(),
            token.reveal()
        );
        let mode = fs::metadata(dir.path().join(TOKEN))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!dir.path().join(TOKEN_NEW).exists());
    }

    /// Secrets never reach a log or an error.
    #[test]
    fn a_token_does_not_show_itself() {
        let dir = dir();
        let token = read_or_make(dir.path()).expect("made");
        assert_eq!(format!("{token:?}"), "Token");
        put(dir.path(), b"hunter2 hunter3", 0o600);
        let error = read(dir.path()).expect_err("two words");
        assert!(!format!("{error} {error:?}").contains("hunter"));
    }

    /// A secret that others can read is none.
    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let dir = dir();
        for mode in [0o640, 0o604, 0o620, 0o602, 0o777] {
            put(dir.path(), b"secret\n", mode);
            let error = read_or_make(dir.path()).expect_err("exposed");
            let said = error.to_string();
            assert!(
                said.contains(&format!("{mode:03o}")) && said.contains("chmod 600"),
                "{said}"
            );
        }
        put(dir.path(), b"secret\n", 0o400);
        assert_eq!(read(dir.path()).expect("its user alone").reveal(), "secret");
    }

    /// Law 10: an unusable token is said to be one, and not replaced behind one's back.
    #[test]
    fn a_file_without_a_token_is_refused_and_left_alone() {
        let dir = dir();
        let long = vec![b'x'; 4_097];
        for bytes in [&b""[..], b" \n", b"two words\n", b"\xff\xfe", &long] {
            put(dir.path(), bytes, 0o600);
            let error = read_or_make(dir.path()).expect_err("unusable");
            assert!(matches!(error, TokenError::Unusable { .. }), "{error}");
            assert_eq!(
                fs::read(dir.path().join(TOKEN)).expect("still there"),
                bytes
            );
        }
    }

    /// A client of a gateway that never ran is told so.
    #[test]
    fn a_missing_token_is_not_made_by_a_reader() {
        let dir = dir();
        let error = read(dir.path()).expect_err("missing");
        assert!(matches!(error, TokenError::Missing { .. }), "{error}");
        assert!(!dir.path().join(TOKEN).exists());
    }

    /// A crash between write and rename leaves no half token.
    #[test]
    fn a_half_made_token_is_made_anew() {
        let dir = dir();
        fs::write(dir.path().join(TOKEN_NEW), b"abc").expect("a test directory is writable");
        let token = read_or_make(dir.path()).expect("made");
        assert_eq!(token.reveal().len(), 2 * TOKEN_BYTES);
    }
}
