//! The arguments of `exec`, read from what a model wrote.
//!
//! Owns their reading and nothing else: pure, from text to values, the same for recognising a
//! call and for carrying it out. What is not wholly understood is refused (I33), so that what
//! a person allowed is what runs.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::Number;

use crate::limits::COMMAND_LIMIT_BYTES;

/// A call of `exec` as understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// What `/bin/sh -c` is given. Neither blank nor over [`COMMAND_LIMIT_BYTES`].
    pub(crate) command: String,
    /// Where it runs, below the workspace and without `..`.
    pub(crate) workdir: PathBuf,
    /// The limit that the call asks for, in seconds, from 1.
    pub(crate) timeout_sec: Option<u64>,
}

/// Exactly these members: an unknown or repeated one could mean something that is not done.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    command: String,
    workdir: Option<String>,
    timeout: Option<Number>,
}

impl Arguments {
    /// Reads `text`, for a workspace at `root`. The error is the reason, as a sentence.
    pub(crate) fn read(text: &str, root: &Path) -> Result<Self, String> {
        // A list in the order of the members would pass for an object otherwise.
        if !text.trim_start().starts_with('{') {
            return Err("The arguments are not a JSON object.".into());
        }
        let raw: Raw = serde_json::from_str(text)
            .map_err(|error| format!("The arguments do not fit: {error}."))?;
        Ok(Self {
            command: command(raw.command)?,
            workdir: workdir(raw.workdir.as_deref().unwrap_or_default(), root)?,
            timeout_sec: raw.timeout.map(|number| seconds(&number)).transpose()?,
        })
    }
}

fn command(command: String) -> Result<String, String> {
    let bytes = command.len();
    if command.trim().is_empty() {
        Err("The command is empty.".into())
    } else if bytes > COMMAND_LIMIT_BYTES {
        Err(format!(
            "The command has {bytes} bytes; at most {COMMAND_LIMIT_BYTES} are possible. Write \
             long data to a file in several calls."
        ))
    } else if command.contains('\0') {
        Err("The command has a NUL character; no program can be given one.".into())
    } else {
        Ok(command)
    }
}

/// `named` relative to the workspace at `root`, `..` resolved by the letter: a first look, the
/// file system has the last word when the call runs.
fn workdir(named: &str, root: &Path) -> Result<PathBuf, String> {
    let outside = || format!("The working directory {named:?} is outside the workspace.");
    if named.contains('\0') {
        return Err("The working directory has a NUL character.".into());
    }
    let mut whole = PathBuf::new();
    for part in root.join(named).components() {
        match part {
            Component::ParentDir => {
                // Also on the way: what leaves and comes back depends on what is outside.
                if whole == root || !whole.pop() {
                    return Err(outside());
                }
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
        .strip_prefix(root)
        .map(Path::to_path_buf)
        .map_err(|_| outside())
}

fn seconds(number: &Number) -> Result<u64, String> {
    let whole = number.as_u64().or_else(|| {
        // 30.0 is an integer by JSON Schema. What is too large for u64 ends at its largest.
        number
            .as_f64()
            .filter(|float| float.fract() == 0.0 && *float >= 1.0)
            .map(|float| float as u64)
    });
    match whole {
        Some(seconds) if seconds >= 1 => Ok(seconds),
        _ => Err(format!(
            "The timeout {number} is not a whole number of seconds from 1."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arguments, String> {
        Arguments::read(text, Path::new("/srv/work"))
    }

    fn workdir_of(named: &str) -> Result<String, String> {
        let text = serde_json::json!({"command": "ls", "workdir": named}).to_string();
        read(&text).map(|read| read.workdir.to_str().unwrap().into())
    }

    #[test]
    fn a_command_alone_is_enough_and_null_is_absence() {
        let alone = Arguments {
            command: "ls -l".into(),
            workdir: PathBuf::new(),
            timeout_sec: None,
        };
        assert_eq!(read(r#" {"command":"ls -l"} "#), Ok(alone.clone()));
        let nulls = r#"{"command":"ls -l","workdir":null,"timeout":null}"#;
        assert_eq!(read(nulls), Ok(alone));
    }

    /// I33, P38
    #[test]
    fn what_is_not_wholly_understood_is_refused() {
        for text in [
            "",
            "null",
            "7",
            r#""ls""#,
            r#"["ls",null,null]"#,
            "{}",
            r#"{"command":"ls""#,
            r#"{"command":"ls"} x"#,
            r#"{"command":7}"#,
            r#"{"command":["ls"]}"#,
            r#"{"command":""}"#,
            r#"{"command":" \n"}"#,
            r#"{"command":"a\u0000b"}"#,
            r#"{"command":"ls","command":"rm -r ."}"#,
            r#"{"command":"ls","dryRun":true}"#,
            r#"{"command":"ls","workdir":7}"#,
            r#"{"command":"ls","workdir":"a\u0000b"}"#,
            r#"{"command":"ls","timeout":0}"#,
            r#"{"command":"ls","timeout":-1}"#,
            r#"{"command":"ls","timeout":1.5}"#,
            r#"{"command":"ls","timeout":"30"}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_command_may_be_as_long_as_one_argument() {
        let text = |bytes| serde_json::json!({"command": "x".repeat(bytes)}).to_string();
        assert!(read(&text(COMMAND_LIMIT_BYTES)).is_ok());
        assert!(read(&text(COMMAND_LIMIT_BYTES + 1)).is_err());
    }

    #[test]
    fn a_timeout_is_a_whole_number_of_seconds() {
        let timeout = |text: &str| {
            read(&format!(r#"{{"command":"ls","timeout":{text}}}"#)).map(|read| read.timeout_sec)
        };
        assert_eq!(timeout("30"), Ok(Some(30)));
        assert_eq!(timeout("30.0"), Ok(Some(30)));
        assert_eq!(timeout("1e300"), Ok(Some(u64::MAX)));
    }

    #[test]
    fn a_working_directory_stays_in_the_workspace_by_the_letter() {
        assert_eq!(workdir_of(""), Ok("".into()));
        assert_eq!(workdir_of("./a//b/"), Ok("a/b".into()));
        assert_eq!(workdir_of("a/../b"), Ok("b".into()));
        assert_eq!(workdir_of("/srv/work"), Ok("".into()));
        assert_eq!(workdir_of("/srv/work/a"), Ok("a".into()));
        for out in [
            "..",
            "a/../..",
            "../work",
            "/",
            "/srv",
            "/srv/work2",
            "/srv/work/../x",
        ] {
            assert!(workdir_of(out).is_err(), "{out}");
        }
    }
}
