//! `tidegate sim`: seeds in, findings and figures out.
//!
//! What a run is, what breaks a promise and how it gets small is the simulator's; here it gets
//! its words, its exit code, and the clock that figures need.

mod audit;
mod finding;
mod replay;

use std::io::IsTerminal;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tidegate_sim::{
    Campaign, Code, FULL_CAMPAIGN, Fate, Goal, Kind, Missing, Options, Summary, Verdict,
};

pub use audit::audit;
pub use replay::replay;

use crate::cli::{Planted, Seeds, SimRunArgs, faults};
use crate::exit::Exit;
use crate::out;
use crate::problem::{Origin, Problem};

/// Runs `sim run`.
pub fn run(args: &SimRunArgs) -> Exit {
    let fault = match args.fault {
        Some(Planted::List) => {
            out::line(&faults(""));
            return Exit::Ok;
        }
        Some(Planted::Fault(fault)) => Some(fault),
        None => None,
    };
    if args.seeds.is_none() && args.inputs.is_none() && args.until_plateau.is_none() {
        let message = "a campaign needs an end";
        return Problem::new(Exit::Usage, Origin::Cli, message)
            .remedy("Give it --seeds A..B, --inputs N or --until-plateau.")
            .tell(args.json);
    }
    let seeds = args.seeds.unwrap_or(Seeds {
        first: 0,
        end: u64::MAX,
    });
    let campaign = Campaign {
        seeds: seeds.first..seeds.end,
        threads: args.threads.map_or_else(cores, usize::from),
        options: Options { fault },
    };
    let goal = Goal {
        inputs: args.inputs,
        plateau: args.until_plateau,
    };
    let begun = now();
    let bar = progress(args.seeds.map(|seeds| seeds.end - seeds.first), "seeds");
    let summary = campaign.run_until(&goal, |so_far| {
        bar.set_position(so_far.seeds);
        if so_far.seeds.is_multiple_of(64) {
            let inputs = rate(so_far.inputs as f64, begun.elapsed());
            bar.set_message(format!(
                ", {inputs:.0} inputs a second, {} failed",
                so_far.failed
            ));
        }
    });
    bar.finish_and_clear();
    let elapsed = begun.elapsed();
    let written = finding::tell(&summary.failures, fault, args.emit.as_ref());
    if args.json {
        out::line(&json_line(&summary, elapsed));
    } else {
        out::line(&summary_text(&summary, elapsed));
    }
    let verdict = summary.verdict();
    if verdict == Verdict::Unreached {
        out::err(&unreached(&summary.missing()));
    }
    match exit_of_verdict(verdict) {
        Exit::Ok if !written => Exit::Failed,
        exit => exit,
    }
}

const fn exit_of_verdict(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Green => Exit::Ok,
        Verdict::Failed(kind) => exit_of_kind(kind),
        Verdict::Unreached => Exit::Unreached,
    }
}

/// What a script may conclude from a finding.
pub const fn exit_of(code: Code) -> Exit {
    exit_of_kind(code.kind())
}

const fn exit_of_kind(kind: Kind) -> Exit {
    match kind {
        Kind::Violation => Exit::Violation,
        Kind::Liveness => Exit::Liveness,
        Kind::Divergence => Exit::Divergence,
        Kind::Halt => Exit::Halt,
        Kind::Budget => Exit::Endless,
    }
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
    let missing = summary.missing();
    if missing.is_empty() {
        text.push_str("\nevery mark, step of a run and operation was reached");
    } else if summary.verdict() != Verdict::Unreached {
        text.push_str(&format!(
            "\nnot reached: {} marks, {} steps of a run, {} operations (a finding from \
             {FULL_CAMPAIGN} seeds on)",
            missing.marks.len(),
            missing.transitions.len(),
            missing.operations.len(),
        ));
    }
    text.push_str(&format!("\ndigest: {:016x}", summary.digest));
    text
}

/// What a campaign never reached, by name.
fn unreached(missing: &Missing) -> String {
    let marks = missing.marks.iter().map(|mark| mark.name().to_owned());
    let steps = missing.transitions.iter();
    let steps = steps.map(|(from, to)| format!("from {} to {}", from.name(), to.name()));
    let operations = missing.operations.iter().map(|&name| name.to_owned());
    let mut text = "tidegate: no promise was broken, but not all was reached.".to_owned();
    for (what, names) in [
        ("marks", marks.collect::<Vec<_>>()),
        ("steps of a run", steps.collect()),
        ("operations", operations.collect()),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("\n  {what}: {}", names.join("; ")));
        }
    }
    text
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

/// How far something is, on a terminal only. Without a length it tells how much is done.
fn progress(length: Option<u64>, what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match length {
        Some(length) => (
            ProgressBar::new(length),
            format!("{{bar:32}} {{pos}}/{{len}} {what}, eta {{eta}}{{msg}}"),
        ),
        None => (
            ProgressBar::new_spinner(),
            format!("{{spinner}} {{pos}} {what}{{msg}}"),
        ),
    };
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A script sorts findings by their exit code.
    #[test]
    fn every_kind_of_finding_has_its_own_exit_code() {
        let kinds = [
            Kind::Violation,
            Kind::Liveness,
            Kind::Divergence,
            Kind::Halt,
            Kind::Budget,
        ];
        let mut verdicts = vec![Verdict::Green, Verdict::Unreached];
        verdicts.extend(kinds.map(Verdict::Failed));
        let mut exits: Vec<Exit> = verdicts.iter().copied().map(exit_of_verdict).collect();
        exits.sort_unstable();
        exits.dedup();
        assert_eq!(exits.len(), verdicts.len());
    }

    /// Ten seeds reach little and that is no finding; two thousand that reach nothing are.
    #[test]
    fn what_was_never_reached_makes_a_long_campaign_red_and_no_short_one() {
        let of = |seeds| Summary {
            seeds,
            ..Summary::default()
        };
        let long = of(FULL_CAMPAIGN);
        assert_eq!(exit_of_verdict(long.verdict()), Exit::Unreached);
        let short = of(10);
        assert_eq!(exit_of_verdict(short.verdict()), Exit::Ok);
        let told = summary_text(&short, Duration::from_secs(1));
        assert!(told.contains("not reached: "), "{told}");
    }

    #[test]
    fn what_was_never_reached_is_named() {
        let missing = Summary::default().missing();
        let told = unreached(&missing);
        for (what, name) in [
            ("marks", missing.marks[0].name()),
            ("steps of a run", missing.transitions[0].0.name()),
            ("operations", missing.operations[0]),
        ] {
            let line = told.lines().find(|line| line.trim().starts_with(what));
            assert!(line.is_some_and(|line| line.contains(name)), "{told}");
        }
    }
}
