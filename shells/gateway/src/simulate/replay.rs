//! `tidegate sim replay`: a seed or a recording once more, with what led to its end.
//!
//! Everything runs twice here: what differs the second time is a finding of its own.

use std::fs;
use std::path::Path;

use tidegate_sim::{
    Choices, Fault, Options, Recorded, Recording, Report, Seeded, Source, Step, Violation,
    divergence, run_choices, step_words,
};

use super::finding::seed_again;
use super::{exit_of, fates};
use crate::called::quoted;
use crate::cli::{Planted, SimReplayArgs, faults};
use crate::exit::Exit;
use crate::out;
use crate::problem::{Origin, Problem};

/// The most characters of a line of a seed's drawn character.
const HEADER_CHARS: usize = 96;

/// Runs `sim replay`.
pub fn replay(args: &SimReplayArgs) -> Exit {
    if args.fault == Some(Planted::List) {
        out::line(&faults(""));
        return Exit::Ok;
    }
    let recording = match recording(args) {
        Ok(recording) => recording,
        Err(problem) => return problem.tell(false),
    };
    let name = name(&recording);
    let differs = divergence(|watch| {
        recording.watched(watch);
    });
    if let Some(differs) = differs {
        let over = |words: String| match words.as_str() {
            "" => "it was over".to_owned(),
            _ => words,
        };
        out::err(&format!(
            "{name} gave two histories, from step {} on:\n  first:  {}\n  second: {}",
            differs.step,
            over(differs.first),
            over(differs.second)
        ));
        return Exit::Divergence;
    }
    if args.trace {
        recording.watched(&mut |step: &Step<'_>| {
            out::line(&format!("{} {}", step.index, step_words(step)));
        });
    }
    let replayed = recording.replay();
    match &recording.cut {
        None => out::line(&report_text(&name, &whole(&recording))),
        Some(cut) => out::line(&format!(
            "{name}, {} entries of its log: {} inputs",
            cut.kept.len() + cut.calms.len() + cut.served.len(),
            replayed.inputs
        )),
    }
    let Some(violation) = replayed.violation else {
        out::line("no promise was broken");
        return Exit::Ok;
    };
    out::line(&format!(
        "what led to it:\n  {}",
        replayed.timeline.join("\n  ")
    ));
    out::err(&told(&recording, &name, &violation));
    exit_of(violation.code)
}

fn fault(planted: Option<Planted>) -> Option<Fault> {
    match planted {
        Some(Planted::Fault(fault)) => Some(fault),
        Some(Planted::List) | None => None,
    }
}

fn recording(args: &SimReplayArgs) -> Result<Recording, Problem> {
    match (args.seed, &args.recording, &args.file) {
        (_, Some(recording), _) => Ok(recording.clone()),
        (_, _, Some(file)) => from_file(file),
        (Some(seed), None, None) => Ok(of_seed(seed, fault(args.fault))),
        (None, None, None) => Err(Problem::new(
            Exit::Usage,
            Origin::Cli,
            "a fault needs a seed to be replayed with",
        )
        .remedy("Give it --seed N; --fault list names the faults.")),
    }
}

fn of_seed(seed: u64, fault: Option<Fault>) -> Recording {
    Recording {
        source: Source::Seed(seed),
        fault,
        cut: None,
    }
}

fn from_file(file: &Path) -> Result<Recording, Problem> {
    let wrong = |why: String| {
        let message = format!("{}: {why}", quoted(file));
        Problem::new(Exit::Usage, Origin::Cli, message)
    };
    let text = fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    text.parse()
        .map_err(|error: tidegate_sim::RecordingError| wrong(error.to_string()))
}

/// What is replayed, in words.
fn name(recording: &Recording) -> String {
    let mut name = match (&recording.source, &recording.cut) {
        (Source::Seed(seed), None) => format!("seed {seed}"),
        (Source::Seed(seed), Some(_)) => format!("recording of seed {seed}"),
        (Source::Choices(_), _) => "recording of choices".into(),
    };
    // A seed's finding is worded as `sim run` does; what it was run with stands in its command.
    if let (Some(fault), Some(_)) = (recording.fault, &recording.cut) {
        name.push_str(&format!(" with {}", fault.name()));
    }
    name
}

/// The whole run that a recording without a cut is.
fn whole(recording: &Recording) -> Report {
    let options = Options {
        fault: recording.fault,
    };
    let mut choices: Box<dyn Choices> = match &recording.source {
        Source::Seed(seed) => Box::new(Seeded::new(*seed)),
        Source::Choices(list) => Box::new(Recorded::new(list.clone())),
    };
    run_choices(&mut *choices, &options, None)
}

fn told(recording: &Recording, name: &str, violation: &Violation) -> String {
    let mut text = format!("{name}: {violation}");
    if let (Source::Seed(seed), None) = (&recording.source, &recording.cut)
        && let Some(end) = seed.checked_add(1)
    {
        let smaller = seed_again(&format!("run --seeds {seed}..{end}"), recording.fault);
        text.push_str(&format!("\n  shrunk: {smaller}"));
    }
    text
}

fn report_text(name: &str, report: &Report) -> String {
    format!(
        "{name}, drawn:\n{}\n\
         {:.1} simulated minutes, {} inputs, {} messages sent; accepted ones: {}\n\
         digest: {:016x}",
        header(&report.header),
        report.simulated_ms as f64 / 60_000.0,
        report.inputs,
        report.messages,
        fates(&report.ledger.counts()),
        report.digest,
    )
}

/// The drawn character of a run, several to a line.
fn header(drawn: &[(&'static str, u64)]) -> String {
    let mut lines = String::new();
    let mut width = HEADER_CHARS;
    for (name, value) in drawn {
        let item = format!("{name} {value}");
        width += item.len() + 2;
        if width > HEADER_CHARS {
            lines.push_str(if lines.is_empty() { "  " } else { ",\n  " });
            width = item.len() + 2;
        } else {
            lines.push_str(", ");
        }
        lines.push_str(&item);
    }
    lines
}
