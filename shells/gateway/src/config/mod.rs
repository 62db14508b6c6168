//! The configuration: one JSON5 file, variables, flags, and what they come to.
//!
//! It owns the names of settings and the words for what is wrong with them; all mistakes are
//! told at once, each with its place. It touches nothing but the file that it reads, and
//! decides nothing about messages or time: limits are handed to the core.

mod command;
mod expand;
mod file;
mod given;
mod judge;
mod kind;
mod nearest;
mod node;
mod overlay;
mod read;
mod schema;
mod settings;
mod shape;
mod show;
mod source;
mod table;

#[cfg(test)]
mod book;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use tidegate_wire::Secret;

pub use command::{check, schema, show};
pub use given::Given;
pub use settings::{ExecSettings, Provider, Settings};
#[cfg(test)]
pub use source::At;
pub use source::Source;

use crate::cli::StateArgs;
use crate::out;
use crate::problem::Problem;
use crate::target;
use read::{Reading, Setting};
use source::{Finding, Findings, Place};

/// Everything that is known of the configuration.
#[derive(Debug)]
pub struct Configuration {
    /// The file that was looked for.
    file: Arc<Path>,
    /// Whether it was there.
    is_there: bool,
    reading: Reading,
}

impl Configuration {
    /// Reads the file, the variables and the flags. What is wrong with them is kept for
    /// [`Configuration::settings`].
    ///
    /// # Errors
    /// If there is no place where the file could be.
    pub fn load(given: &Given) -> Result<Self, Problem> {
        let lookup = |name: &str| std::env::var(name);
        let (file, read) = read_file(&given.flags.state)?;
        let is_there = read.is_some();
        let mut reading = read.unwrap_or_default();
        overlay::lay_over(&mut reading, given, &lookup);
        judge::judge(&mut reading);
        Ok(Self {
            file,
            is_there,
            reading,
        })
    }

    /// The settings.
    ///
    /// # Errors
    /// If anything is wrong: all of it.
    pub fn settings(&self) -> Result<Settings, Problem> {
        match self.reading.problems.count() {
            0 => Ok(Settings::of(&self.reading.values)),
            _ => Err(refusal(&self.reading.problems)),
        }
    }

    /// Tells what has no effect, on stderr.
    pub fn tell_warnings(&self) {
        for line in self.reading.warnings.lines() {
            out::err(&format!("tidegate: warning: {line}"));
        }
    }
}

/// What a client command takes from the file: where the gateway is, and its token. Whatever
/// else is wrong with the file is not the client's matter.
#[derive(Debug)]
pub struct ClientFile(Reading);

impl ClientFile {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// If there is no place where it could be.
    pub fn read(state: &StateArgs) -> Result<Self, Problem> {
        let (_, reading) = read_file(state)?;
        Ok(Self(reading.unwrap_or_default()))
    }

    /// The gateway's port.
    ///
    /// # Errors
    /// If the file sets it and it can't be read.
    pub fn port(&self) -> Result<Option<u16>, Problem> {
        let port = self.setting("gateway.port")?.and_then(Setting::whole);
        Ok(port.and_then(|port| u16::try_from(port).ok()))
    }

    /// The gateway's token.
    ///
    /// # Errors
    /// If the file sets it and it can't be read.
    pub fn token(&self) -> Result<Option<Secret>, Problem> {
        let token = self.setting("gateway.auth.token")?;
        Ok(token.and_then(Setting::secret).cloned())
    }

    fn setting(&self, path: &str) -> Result<Option<&Setting>, Problem> {
        let place = Place::of(path);
        let mut before = Findings::default();
        for finding in self.0.problems.before(&place) {
            before.push(finding.clone());
        }
        match before.count() {
            0 => Ok(self.0.values.get(&place)),
            _ => Err(refusal(&before)),
        }
    }
}

/// The file's path and what it says; `None` if there is none and none was named.
fn read_file(state: &StateArgs) -> Result<(Arc<Path>, Option<Reading>), Problem> {
    let lookup = |name: &str| std::env::var(name);
    let path = match &state.config {
        Some(named) => named.clone(),
        None => target::state_dir(state)?.join(file::NAME),
    };
    let path: Arc<Path> = path.into();
    let mut reading = file::read_file(&path, &lookup);
    if reading.is_none() && state.config.is_some() {
        let mut missing = Reading::default();
        missing.problems.push(Finding {
            source: Source::Default,
            place: Place::default(),
            says: format!(
                "there is no file {}, which --config or TIDEGATE_CONFIG names",
                path.display()
            ),
            nearest: None,
        });
        reading = Some(missing);
    }
    Ok((path, reading))
}

fn refusal(problems: &Findings) -> Problem {
    let count = match problems.count() {
        1 => "a mistake".to_owned(),
        more => format!("{more} mistakes"),
    };
    Problem::configuration(format!("the configuration has {count}"))
        .remedy(problems.lines().join("\n  "))
}
