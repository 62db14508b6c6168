//! What a campaign found, shrunk before it is told, and written down if that is asked.
//!
//! Failures with one code are one finding; the lowest seed speaks for them.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tidegate_sim::{Code, Failure, Fault, Shrunk, Source, shrink};

use crate::called::{program, quoted};
use crate::cli::{Emit, Form};
use crate::out;

/// Findings that are shrunk and printed. All failing seeds are counted.
const PRINTED: usize = 10;
/// Other seeds of a finding that are named.
const NAMED: usize = 8;

/// Tells the findings of a campaign, and writes them down. False if one could not be written.
pub fn tell(failures: &[Failure], fault: Option<Fault>, emit: Option<&Emit>) -> bool {
    let mut written = true;
    for (place, (failure, others)) in by_code(failures).into_iter().take(PRINTED).enumerate() {
        let shrunk = shrink(&Source::Seed(failure.seed), fault);
        out::err(&told(&failure, &others, fault, shrunk.as_ref()));
        let (Some(emit), Some(shrunk)) = (emit, shrunk) else {
            continue;
        };
        let Some(path) = target(emit, failure.violation.code, failure.seed, place == 0) else {
            continue;
        };
        match write(emit.form, &path, &shrunk) {
            Ok(line) => out::err(&line),
            Err(line) => {
                out::err(&line);
                written = false;
            }
        }
    }
    written
}

/// The lowest failure of each code, with the other seeds that fail alike; in order of seeds.
fn by_code(failures: &[Failure]) -> Vec<(Failure, Vec<u64>)> {
    let mut findings: Vec<(Failure, Vec<u64>)> = Vec::new();
    for failure in failures {
        let code = failure.violation.code;
        match findings
            .iter_mut()
            .find(|(first, _)| first.violation.code == code)
        {
            Some((_, others)) => others.push(failure.seed),
            None => findings.push((failure.clone(), Vec::new())),
        }
    }
    findings
}

/// The command that runs a seed again.
pub fn seed_again(command: &str, fault: Option<Fault>) -> String {
    let plant = fault
        .map(|fault| format!(" --fault {}", fault.name()))
        .unwrap_or_default();
    format!("{} sim {command}{plant}", program())
}

fn told(
    failure: &Failure,
    others: &[u64],
    fault: Option<Fault>,
    shrunk: Option<&Shrunk>,
) -> String {
    let seed = failure.seed;
    let mut text = format!("seed {seed}: {}", failure.violation);
    if !others.is_empty() {
        let named: Vec<_> = others.iter().take(NAMED).map(u64::to_string).collect();
        let more = if others.len() > NAMED {
            ", and others"
        } else {
            ""
        };
        text.push_str(&format!("\n  also: seeds {}{more}", named.join(", ")));
    }
    match shrunk {
        Some(shrunk) => {
            let what = match shrunk.recording.cut {
                Some(_) => "entries of its log",
                None => "choices other than 0",
            };
            text.push_str(&format!(
                "\n  shrunk from {} inputs to {} ({} {what}):",
                failure.violation.input, shrunk.inputs, shrunk.size
            ));
            for line in shrunk.recording.replay().timeline {
                text.push_str(&format!("\n    {line}"));
            }
            text.push_str(&format!(
                "\n  again: {} sim replay --recording {}",
                program(),
                shrunk.recording
            ));
        }
        None => text.push_str("\n  it was not found again, so it was not shrunk"),
    }
    let whole = seed_again(&format!("replay --seed {seed}"), fault);
    text.push_str(&format!("\n  whole: {whole}"));
    text
}

/// Where a finding is written. A path that is no folder is one file, for the first finding.
fn target(emit: &Emit, code: Code, seed: u64, is_first: bool) -> Option<PathBuf> {
    let name = format!("{}-{seed}.{}", code.name(), emit.form.name());
    match &emit.path {
        None => Some(name.into()),
        Some(path) if path.is_dir() => Some(path.join(name)),
        Some(path) => is_first.then(|| path.clone()),
    }
}

fn write(form: Form, path: &Path, shrunk: &Shrunk) -> Result<String, String> {
    let shown = quoted(path);
    let (text, again) = match form {
        Form::Recording => (
            shrunk.recording.to_file(),
            format!("sim replay --file {shown}"),
        ),
        Form::Scenario => {
            let scenario = shrunk.scenario().ok_or(
                "  no scenario: written as a script, this case does not fail alike; \
                 --emit recording keeps it",
            )?;
            (scenario.to_string(), format!("scenario run {shown}"))
        }
    };
    put(path, &text).map_err(|why| format!("  {shown} was not written: {why}"))?;
    Ok(format!("  {}: {} {again}", form.name(), program()))
}

/// Writes a new file, or leaves one that holds the same.
fn put(path: &Path, text: &str) -> Result<(), String> {
    match fs::File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return match fs::read_to_string(path) {
                Ok(there) if there == text => Ok(()),
                _ => Err("it is there with other content; name another path".into()),
            };
        }
        Err(error) => Err(error),
    }
    .map_err(|error| error.to_string())
}
