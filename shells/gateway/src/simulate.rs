//! `tidegate sim run` and `tidegate sim replay`: seeds in, findings and figures out.
//!
//! What a run is and what breaks a promise is the simulator's; here it gets its words, its
//! exit code, and the clock that figures need.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tidegate_core::{Output, Subject};
use tidegate_sim::{
    Campaign, Code, Failure, Fate, Fault, Options, Report, Seeded, Step, Summary, Violation,
    run_choices, run_seed,
};

use crate::called;
use crate::cli::{SimReplayArgs, SimRunArgs};
use crate::exit::Exit;
use crate::out;

/// Failing seeds that are printed; all are counted.
const PRINTED_FAILURES: usize = 10;

/// Steps that are printed of what led to a violation, and the most characters of a line.
const TIMELINE_STEPS: usize = 12;
const TIMELINE_CHARS: usize = 200;

/// The most characters of a line of a seed's drawn character.
const HEADER_CHARS: usize = 96;

/// Runs `sim run`.
pub fn run(args: &SimRunArgs) -> Exit {
    let threads = args.threads.map_or_else(
        || available_parallelism().map_or(1, NonZero::get),
        usize::from,
    );
    let campaign = Campaign {
        seeds: args.seeds.first..args.seeds.end,
        threads,
        options: Options { fault: args.fault },
    };
    let begun = now();
    let bar = progress(args.seeds.end - args.seeds.first);
    let summary = campaign.run(|so_far| {
        bar.set_position(so_far.seeds);
        if so_far.seeds.is_multiple_of(64) {
            let inputs = rate(so_far.inputs as f64, begun.elapsed());
            bar.set_message(format!(
                "{inputs:.0} inputs a second, {} failed",
                so_far.failed
            ));
        }
    });
    bar.finish_and_clear();
    let elapsed = begun.elapsed();
    for failure in summary.failures.iter().take(PRINTED_FAILURES) {
        out::err(&told(failure, args.fault));
    }
    if args.json {
        out::line(&json_line(&summary, elapsed));
    } else {
        out::line(&summary_text(&summary, elapsed));
    }
    summary
        .failures
        .first()
        .map_or(Exit::Ok, |failure| exit_of(failure.violation.code))
}

/// Runs `sim replay`.
pub fn replay(args: &SimReplayArgs) -> Exit {
    let options = Options { fault: args.fault };
    let report = run_seed(args.seed, &options);
    let again = run_seed(args.seed, &options);
    out::line(&report_text(args.seed, &report));
    if report.digest != again.digest {
        out::err(&format!(
            "tidegate: seed {} gave two histories: digest {:016x}, then {:016x}.",
            args.seed, report.digest, again.digest
        ));
        return Exit::Divergence;
    }
    let Some(violation) = report.violations.first() else {
        return Exit::Ok;
    };
    out::line(&timeline(args.seed, &options, violation));
    out::err(&told(
        &Failure {
            seed: args.seed,
            violation: *violation,
        },
        args.fault,
    ));
    exit_of(violation.code)
}

/// What a script may conclude from a finding: a promise was broken by what was done, by what
/// was never done, or the core said so itself.
pub const fn exit_of(code: Code) -> Exit {
    match code {
        Code::Halt => Exit::Halt,
        Code::NoOutcome
        | Code::Unanswered
        | Code::WaitLate
        | Code::IdleLane
        | Code::Spin
        | Code::Silent => Exit::Liveness,
        _ => Exit::Violation,
    }
}

fn told(failure: &Failure, fault: Option<Fault>) -> String {
    let plant = fault
        .map(|fault| format!(" --fault {}", fault.name()))
        .unwrap_or_default();
    format!(
        "seed {seed}: {violation}\n  again: {program} sim replay --seed {seed}{plant}",
        seed = failure.seed,
        violation = failure.violation,
        program = called::program(),
    )
}

fn json_line(summary: &Summary, elapsed: Duration) -> String {
    let hours = hours(summary.simulated_ms);
    json!({
        "seeds": summary.seeds,
        "violations": summary.failed,
        "simulatedHours": hours,
        "simulatedHoursPerSecond": rate(hours, elapsed),
        "inputsPerSecond": rate(summary.inputs as f64, elapsed).round(),
        "digest": format!("{:016x}", summary.digest),
    })
    .to_string()
}

fn summary_text(summary: &Summary, elapsed: Duration) -> String {
    let hours = hours(summary.simulated_ms);
    let mut text = format!(
        "{} seeds, {} failed, in {:.1} s\n\
         {:.1} simulated hours ({:.1} a second), {} inputs ({:.0} a second)\n\
         {} messages sent; accepted ones: {}",
        summary.seeds,
        summary.failed,
        elapsed.as_secs_f64(),
        hours,
        rate(hours, elapsed),
        summary.inputs,
        rate(summary.inputs as f64, elapsed),
        summary.messages,
        fates(&summary.fates),
    );
    let missing: Vec<_> = summary
        .marks
        .missing()
        .iter()
        .map(|mark| mark.name())
        .collect();
    if !missing.is_empty() {
        text.push_str(&format!(
            "\nnever happened in these seeds: {}",
            missing.join("; ")
        ));
    }
    text.push_str(&format!("\ndigest: {:016x}", summary.digest));
    text
}

fn report_text(seed: u64, report: &Report) -> String {
    format!(
        "seed {seed}, drawn:\n{}\n\
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

fn fates(counts: &[u64; Fate::ALL.len()]) -> String {
    let counted = Fate::ALL
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0);
    let words: Vec<_> = counted
        .map(|(fate, count)| format!("{count} {}", fate.name()))
        .collect();
    if words.is_empty() {
        "none".into()
    } else {
        words.join(", ")
    }
}

/// The last steps that name the one that the violation is about.
fn timeline(seed: u64, options: &Options, violation: &Violation) -> String {
    let name = match violation.entity {
        Subject::Session(id) => format!("{id:?}"),
        Subject::Run(id) => format!("{id:?}"),
        Subject::Request(id) => format!("{id:?}"),
    };
    let mut steps = VecDeque::with_capacity(TIMELINE_STEPS);
    let last = violation.input;
    let mut watch = |step: &Step<'_>| {
        let input = format!("{:?}", step.input);
        let outputs = step
            .outputs
            .iter()
            .filter(|output| !matches!(output, Output::Sleep { .. }));
        let outputs: Vec<_> = outputs.map(|output| format!("{output:?}")).collect();
        let named = input.contains(&name) || outputs.iter().any(|output| output.contains(&name));
        if step.index > last || !named {
            return;
        }
        if steps.len() == TIMELINE_STEPS {
            steps.pop_front();
        }
        let mut lines = cut(&format!("{:>9} ms  {input}", step.now.time.0));
        for output in outputs {
            lines.push_str(&cut(&format!("\n             -> {output}")));
        }
        steps.push_back(lines);
    };
    run_choices(&mut Seeded::new(seed), options, Some(&mut watch));
    format!("what led to it:\n{}", steps.make_contiguous().join("\n"))
}

fn cut(line: &str) -> String {
    line.chars().take(TIMELINE_CHARS).collect()
}

fn progress(seeds: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(seeds);
    let style =
        ProgressStyle::with_template("{bar:32} {pos}/{len} seeds, {per_sec}, {msg} (eta {eta})");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

fn hours(ms: u64) -> f64 {
    ms as f64 / 3_600_000.0
}

fn rate(amount: f64, elapsed: Duration) -> f64 {
    amount / elapsed.as_secs_f64().max(1e-9)
}

#[expect(
    clippy::disallowed_methods,
    reason = "figures only; nothing is decided by it"
)]
fn now() -> Instant {
    Instant::now()
}
