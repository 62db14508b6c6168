//! Reads the command line; a message without its flag is told where it belongs.
//!
//! What is wrong is the parser's to say. Here it only gets a hint, and is never made right.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Error, Parser};

use super::Cli;
use crate::called::{program, quoted};

/// The command line of this process. A wrong one ends it.
#[must_use]
pub fn read() -> Cli {
    let args: Vec<OsString> = std::env::args_os().collect();
    Cli::try_parse_from(&args).unwrap_or_else(|error| hinted(&args, error).exit())
}

/// The error, with what was probably meant.
fn hinted(args: &[OsString], mut error: Error) -> Error {
    let is_agent = args.get(1).is_some_and(|command| command == "agent");
    let unknown = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => word.clone(),
        _ => return error,
    };
    if !is_agent || unknown.starts_with('-') {
        return error;
    }
    let words = args.iter().map(|word| word.to_string_lossy());
    let words = words.skip_while(|word| *word != unknown);
    let words: Vec<_> = words.take_while(|word| !word.starts_with('-')).collect();
    let message = quoted(Path::new(&words.join(" ")));
    let tip = format!(
        "a message stands after -m: {} agent -m {message}",
        program()
    );
    let tips = ContextValue::StyledStrs(vec![tip.into()]);
    error.insert(ContextKind::Suggested, tips);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &[&str]) -> String {
        let args: Vec<OsString> = line.iter().map(OsString::from).collect();
        let error = Cli::try_parse_from(&args).expect_err("the line is wrong");
        hinted(&args, error).to_string()
    }

    #[test]
    fn a_message_without_its_flag_is_told_where_it_belongs() {
        let said = refused(&["tidegate", "agent", "hello", "it's me", "--json"]);
        assert!(said.contains("agent -m 'hello it'\\''s me'"), "{said}");
        for line in [
            &["tidegate", "agent", "--mesage", "x"][..],
            &["tidegate", "sim", "run", "hello"],
            &["tidegate", "agent"],
        ] {
            let said = refused(line);
            assert!(!said.contains("stands after -m"), "{said}");
        }
    }
}
