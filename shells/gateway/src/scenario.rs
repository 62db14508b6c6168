//! `tidegate scenario run`: scenario files in, what is wrong with them out.
//!
//! What a scenario means is the simulator's; here are files, words and exit codes.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use tidegate_sim::scenario::{Found, Outcome, RunOptions, bless, parse, run as run_scenario};

use crate::cli::ScenarioRunArgs;
use crate::exit::Exit;
use crate::out;
use crate::problem::{Origin, Problem};
use crate::simulate::exit_of;

/// The ending of a scenario file's name.
const ENDING: &str = "scenario";
/// Where scenarios stand if no path is given.
const FOLDER: &str = "scenarios";
/// Lines that are printed of a failed run's end.
const PRINTED_LINES: usize = 60;

/// What was done, over all files.
#[derive(Debug, Default)]
struct Sum {
    scenarios: u64,
    failed: u64,
    orders: u64,
    cut: u64,
    crash_points: u64,
    inputs: u64,
    blessed: u64,
    exit: Option<Exit>,
}

/// Runs `scenario run`.
pub fn run(args: &ScenarioRunArgs) -> Exit {
    let files = match files(&args.paths) {
        Ok(files) => files,
        Err(problem) => return problem.tell(false),
    };
    let options = RunOptions {
        crash_at_every_step: args.crash_at_every_step,
        orders: args.orders,
        ..RunOptions::default()
    };
    let bar = progress(files.len() as u64);
    let mut sum = Sum::default();
    for file in &files {
        bar.set_message(file.display().to_string());
        let (lines, exit) = one(file, &options, args, &mut sum);
        sum.scenarios += 1;
        if exit != Exit::Ok {
            sum.failed += 1;
            sum.exit.get_or_insert(exit);
        }
        bar.suspend(|| out::line(&lines));
        bar.inc(1);
    }
    bar.finish_and_clear();
    out::line(&summary(&sum, args));
    sum.exit.unwrap_or(Exit::Ok)
}

/// Runs one file. Gives what to print, and how it ended.
fn one(file: &Path, options: &RunOptions, args: &ScenarioRunArgs, sum: &mut Sum) -> (String, Exit) {
    let name = file.display().to_string();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            return (
                format!("FAILED  {name}\n  it can't be read: {error}"),
                Exit::Failed,
            );
        }
    };
    let scenario = match parse(&text, &name) {
        Ok(scenario) => scenario,
        Err(error) => return (format!("FAILED  {name}\n  {error}"), Exit::Failed),
    };
    let mut outcome = run_scenario(&scenario, options);
    sum.orders += outcome.orders;
    sum.cut += u64::from(outcome.orders_cut);
    sum.crash_points += outcome.crash_points;
    sum.inputs += outcome.inputs;
    if args.bless
        && let Some(blessed) = bless(&text, &outcome)
    {
        outcome
            .failures
            .retain(|failure| !matches!(failure.found, Found::Trace { .. }));
        if blessed != text {
            if let Err(error) = fs::write(file, blessed) {
                return (
                    format!("FAILED  {name}\n  it can't be written: {error}"),
                    Exit::Failed,
                );
            }
            sum.blessed += 1;
        }
    }
    let mut lines = head(&name, &outcome);
    if args.trace {
        lines.push_str(&indented(&outcome.trace));
    }
    let Some(first) = outcome.failures.first() else {
        return (lines, Exit::Ok);
    };
    for failure in &outcome.failures {
        lines.push_str(&format!("\n  {failure}"));
    }
    if !outcome.failed_trace.is_empty() {
        let from = outcome.failed_trace.len().saturating_sub(PRINTED_LINES);
        lines.push_str("\n  the first run that failed otherwise than as written ended so:");
        lines.push_str(&indented(&outcome.failed_trace[from..]));
    }
    let exit = match first.found {
        Found::Violation(violation) => exit_of(violation.code),
        Found::NotFound(_) | Found::Unmet { .. } => Exit::Violation,
        Found::Trace { .. } => Exit::Failed,
    };
    (lines, exit)
}

fn head(name: &str, outcome: &Outcome) -> String {
    let word = match outcome.failures.is_empty() {
        true => "ok    ",
        false => "FAILED",
    };
    let mut done = Vec::new();
    if outcome.orders > 1 {
        let more = if outcome.orders_cut { ", of more" } else { "" };
        done.push(format!("{} orders{more}", outcome.orders));
    }
    if outcome.crash_points > 0 {
        done.push(format!("{} crash points", outcome.crash_points));
    }
    match done.is_empty() {
        true => format!("{word}  {name}"),
        false => format!("{word}  {name}  ({})", done.join(", ")),
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}

fn summary(sum: &Sum, args: &ScenarioRunArgs) -> String {
    let mut text = format!("{} scenarios, {} failed", sum.scenarios, sum.failed);
    if sum.orders > sum.scenarios {
        text.push_str(&format!(", {} orders", sum.orders));
    }
    if sum.cut > 0 {
        text.push_str(&format!(" ({} scenarios have more)", sum.cut));
    }
    if args.crash_at_every_step {
        text.push_str(&format!(
            ", {} crash points, each as a crash and as a loss of power",
            sum.crash_points
        ));
    }
    text.push_str(&format!(", {} inputs", sum.inputs));
    if args.bless {
        text.push_str(&format!(", {} traces rewritten", sum.blessed));
    }
    text
}

/// The scenario files below the given paths, in order; each once.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Problem> {
    let default = [PathBuf::from(FOLDER)];
    let paths = if paths.is_empty() { &default } else { paths };
    let mut found = Vec::new();
    for path in paths {
        walk(path, true, &mut found).map_err(|error| {
            let message = format!("{} can't be read: {error}", path.display());
            Problem::new(Exit::Usage, Origin::Cli, message)
                .remedy("Name a scenario file or a folder that holds some")
        })?;
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        let message = format!("there is no file with the ending .{ENDING} in these paths");
        return Err(Problem::new(Exit::Usage, Origin::Cli, message));
    }
    Ok(found)
}

/// A file that was named is taken whatever its ending.
fn walk(path: &Path, named: bool, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            walk(&entry?.path(), false, found)?;
        }
    } else if named || path.extension().is_some_and(|ending| ending == ENDING) {
        found.push(path.to_owned());
    }
    Ok(())
}

fn progress(files: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(files);
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} scenarios, {msg}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(text: &str, args: &ScenarioRunArgs) -> (String, Exit, String) {
        let folder = tempfile::tempdir().expect("a folder for one file");
        let file = folder.path().join("a.scenario");
        fs::write(&file, text).expect("a file in it");
        let options = RunOptions::default();
        let (lines, exit) = one(&file, &options, args, &mut Sum::default());
        let after = fs::read_to_string(&file).expect("the file is still there");
        (lines, exit, after)
    }

    fn args() -> ScenarioRunArgs {
        ScenarioRunArgs {
            paths: Vec::new(),
            crash_at_every_step: false,
            orders: false,
            trace: false,
            bless: false,
        }
    }

    #[test]
    fn an_exit_code_says_what_a_scenario_ended_with() {
        let table = [
            ("at 0s alice sends m1 to A", Exit::Ok),
            ("at 0s alice snds m1 to A", Exit::Failed),
            (
                "at 0s alice sends m1 to A\nnever m1 starts",
                Exit::Violation,
            ),
            ("at 0s alice sends m1 to A\ntrace\nnothing", Exit::Failed),
            (
                "fault end-twice\nat 0s alice sends m1 to A",
                Exit::Violation,
            ),
            (
                "fault claim-late\nat 0s alice sends m1, m2 to A",
                Exit::Liveness,
            ),
            ("fault halted\nat 0s alice sends m1 to A", Exit::Halt),
        ];
        for (text, exit) in table {
            let (lines, came, after) = ended(text, &args());
            assert_eq!(came, exit, "{text}: {lines}");
            assert_eq!(lines.starts_with("ok"), exit == Exit::Ok, "{lines}");
            assert_eq!(after, text, "nothing is written without being asked");
        }
    }

    #[test]
    fn a_blessed_trace_is_written_and_holds() {
        let blessing = ScenarioRunArgs {
            bless: true,
            ..args()
        };
        let text = "at 0s alice sends m1 to A\n\ntrace\n";
        let (_, exit, after) = ended(text, &blessing);
        assert_eq!(exit, Exit::Ok);
        assert!(
            after.contains("alice sends m1 to A\n             -> load A"),
            "{after}"
        );
        assert_eq!(ended(&after, &args()).1, Exit::Ok);
    }

    #[test]
    fn files_are_found_once_and_in_order_and_none_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).expect("a folder in it");
        for name in ["b.scenario", "sub/a.scenario", "notes.txt"] {
            fs::write(path(name), "").expect("a file");
        }
        let all = [folder.path().to_owned(), path("b.scenario")];
        let found = files(&all).expect("there are some");
        assert_eq!(found, [path("b.scenario"), path("sub/a.scenario")]);
        for wrong in [path("nowhere"), path("empty")] {
            let _ = fs::create_dir(path("empty"));
            let problem = files(&[wrong]).expect_err("there is none");
            assert_eq!(problem.exit, Exit::Usage);
        }
    }
}
