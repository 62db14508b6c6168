//! The scenarios of the project: each holds as written, in every order of one instant, and
//! with a kill after every single step.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_sim::scenario::{Outcome, RunOptions, Scenario, parse, run};

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the scenarios stand in the repository");
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "scenario") {
            found.push(path);
        }
    }
}

fn scenarios() -> Vec<Scenario> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
    let mut files = Vec::new();
    walk(Path::new(folder), &mut files);
    files.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("a readable scenario");
        let name = path.strip_prefix(folder).unwrap_or(path).display();
        parse(&text, &name.to_string()).unwrap_or_else(|error| panic!("{error}"))
    };
    files.iter().map(read).collect()
}

/// Runs all of them; panics with everything that is wrong, and with the first run of each
/// scenario that went wrong, in words.
fn all(options: &RunOptions) -> Vec<Outcome> {
    let mut told = Vec::new();
    let mut outcomes = Vec::new();
    for scenario in scenarios() {
        let outcome = run(&scenario, options);
        let name = &scenario.name;
        let failures = outcome.failures.iter();
        told.extend(failures.map(|failure| format!("{name}: {failure}")));
        if !outcome.failed_trace.is_empty() {
            told.push(outcome.failed_trace.join("\n"));
        }
        outcomes.push(outcome);
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
    outcomes
}

#[test]
fn every_scenario_holds_as_written_and_says_what_it_proves() {
    let outcomes = all(&RunOptions::default());
    assert!(outcomes.len() >= 20, "only {} scenarios", outcomes.len());
    for scenario in scenarios() {
        assert!(
            !scenario.proves.is_empty(),
            "{} proves nothing",
            scenario.name
        );
        assert!(!scenario.about.is_empty(), "{} says nothing", scenario.name);
    }
}

#[test]
fn every_scenario_holds_in_every_order_of_one_instant() {
    let options = RunOptions {
        orders: true,
        most_orders: 200,
        ..RunOptions::default()
    };
    let orders: u64 = all(&options).iter().map(|outcome| outcome.orders).sum();
    assert!(orders > 1_000, "only {orders} orders");
}

/// P05, P23, P42
#[test]
fn a_kill_after_every_single_step_of_a_scenario_breaks_no_promise() {
    let options = RunOptions {
        crash_at_every_step: true,
        ..RunOptions::default()
    };
    let points: u64 = all(&options)
        .iter()
        .map(|outcome| outcome.crash_points)
        .sum();
    assert!(points > 3_000, "only {points} points");
}

#[test]
fn a_scenario_reads_back_as_it_is_written() {
    for scenario in scenarios() {
        let text = scenario.to_string();
        let again = parse(&text, &scenario.name).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.to_string(), text, "{}", scenario.name);
        let (one, other) = (
            run(&scenario, &RunOptions::default()),
            run(&again, &RunOptions::default()),
        );
        assert_eq!(one.trace, other.trace, "{}", scenario.name);
    }
}
