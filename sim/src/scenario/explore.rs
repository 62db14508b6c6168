//! Running a scenario: once, in every order, and with a kill after every single step.
//!
//! Owns which runs there are and what is judged in each. A run that an extra kill hit is
//! judged by the checkers and by what holds over a crash.

use std::fmt;

use super::ast::{Scenario, Step};
use super::judge::Judge;
use super::picks::{Orders, Picks};
use super::stage::{Kill, Stage};
use crate::violation::Violation;

/// How long an extra kill keeps the process down, in milliseconds.
const DOWN_MS: u64 = 1_000;
/// Failures that are kept of one scenario; all runs are made.
const KEPT: usize = 16;

/// How to run a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// Kill the process before every input and after every single output of it.
    pub crash_at_every_step: bool,
    /// Run every order of what falls on one instant, reports and model included, and not only
    /// of the steps that are marked.
    pub orders: bool,
    /// The most orders that are run.
    pub most_orders: usize,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            crash_at_every_step: false,
            orders: false,
            most_orders: 1_000,
        }
    }
}

/// What came of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What is wrong, at most 16.
    pub failures: Vec<Failure>,
    /// Orders that were run; 1 where there is no choice.
    pub orders: u64,
    /// Whether there are more orders than were run.
    pub orders_cut: bool,
    /// Points at which the process was killed, each as a crash and as a loss of power.
    pub crash_points: u64,
    /// Inputs handed to cores, over all runs.
    pub inputs: u64,
    /// The order as written, in words.
    pub trace: Vec<String>,
    /// The first run that failed, in words, if it was another one.
    pub failed_trace: Vec<String>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What.
    pub found: Found,
    /// In which run: empty for the order as written.
    pub run: String,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A checker found a broken promise.
    Violation(Violation),
    /// The planted fault was not found, or as something else.
    NotFound(String),
    /// An expectation did not come.
    Unmet {
        /// The line that expects it.
        line: usize,
        /// What was expected and what came instead.
        why: String,
    },
    /// The trace is not the expected one.
    Trace {
        /// The first line that differs, from 1, within the section.
        line: usize,
        /// What was expected; `None` beyond the end.
        expected: Option<String>,
        /// What came; `None` beyond the end.
        came: Option<String>,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Found::Violation(violation) => write!(f, "{violation}")?,
            Found::NotFound(why) => f.write_str(why)?,
            Found::Unmet { line, why } => write!(f, "line {line}: {why}")?,
            Found::Trace {
                line,
                expected,
                came,
            } => {
                let end = || "(the end)".to_owned();
                write!(
                    f,
                    "trace line {line}:\n    expected {}\n    came     {}",
                    expected.clone().unwrap_or_else(end).trim_start(),
                    came.clone().unwrap_or_else(end).trim_start(),
                )?;
            }
        }
        match self.run.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", self.run),
        }
    }
}

/// Runs a scenario with all checkers on. Nothing is printed.
#[must_use]
pub fn run(scenario: &Scenario, options: &RunOptions) -> Outcome {
    let mut outcome = Outcome::default();
    let mut orders = Orders::new(options.orders, options.most_orders.max(1));
    let mut drains = Vec::new();
    while let Some(picks) = orders.next() {
        let mut stage = Stage::new(scenario, picks, None);
        let first = outcome.orders == 0;
        stage.trace.on = first;
        stage.run();
        outcome.orders += 1;
        outcome.inputs += stage.inputs;
        let run = match first {
            true => String::new(),
            false => format!("order {:?}", stage.picks.made()),
        };
        let fails = judge(scenario, &stage, false, &run, &mut outcome);
        if fails && !first && outcome.failed_trace.is_empty() {
            outcome.failed_trace = traced(scenario, stage.picks.again(), None);
        }
        orders.ran(&stage.picks);
        if first {
            outcome.trace = std::mem::take(&mut stage.trace.lines);
            drains = std::mem::take(&mut stage.drains);
            compare_trace(scenario, &mut outcome);
        }
    }
    outcome.orders_cut = orders.cut;
    if options.crash_at_every_step && scenario.violation.is_none() {
        crash_everywhere(scenario, &drains, &mut outcome);
    }
    outcome
}

/// The first order once more for each point at which the process can die. What an input's
/// last order, the deadline, leaves undone is the same as with it.
fn crash_everywhere(scenario: &Scenario, drains: &[usize], outcome: &mut Outcome) {
    for (input, &outputs) in (1..).zip(drains) {
        for after in 0..outputs.max(1) {
            outcome.crash_points += 1;
            for power in [false, true] {
                let kill = Kill {
                    input,
                    after,
                    power,
                    down_ms: DOWN_MS,
                };
                let mut stage = Stage::new(scenario, Picks::default(), Some(kill));
                stage.run();
                outcome.inputs += stage.inputs;
                let how = if power { "loss of power" } else { "crash" };
                let run = match after {
                    0 => format!("{how} before input {input}"),
                    n => format!("{how} at input {input}, after output {n}"),
                };
                let fails = judge(scenario, &stage, true, &run, outcome);
                if fails && outcome.failed_trace.is_empty() {
                    outcome.failed_trace = traced(scenario, Picks::default(), Some(kill));
                }
            }
        }
    }
}

/// The same run once more, in words.
fn traced(scenario: &Scenario, picks: Picks, kill: Option<Kill>) -> Vec<String> {
    let mut stage = Stage::new(scenario, picks, kill);
    stage.trace.on = true;
    stage.run();
    stage.trace.lines
}

/// Puts what is wrong with a run into the outcome. True if anything is.
fn judge(
    scenario: &Scenario,
    stage: &Stage<'_>,
    killed: bool,
    run: &str,
    outcome: &mut Outcome,
) -> bool {
    let mut wrong = false;
    let mut put = |found| {
        wrong = true;
        if outcome.failures.len() < KEPT {
            outcome.failures.push(Failure {
                found,
                run: run.into(),
            });
        }
    };
    if let Some(wanted) = scenario.violation {
        let found = stage.violations.first().map(|violation| violation.code);
        if found != Some(wanted) {
            let came = found.map_or("none", |code| code.name());
            put(Found::NotFound(format!(
                "expected violation {wanted}, found {came}"
            )));
        }
        return wrong;
    }
    if let Some(&violation) = stage.violations.first() {
        put(Found::Violation(violation));
        return wrong;
    }
    let judge = Judge {
        cast: &stage.cast,
        record: &stage.record,
    };
    for expect in &scenario.expects {
        let void = killed && (expect.unless_crashed || !expect.when.is_timeless());
        if !void && let Some(why) = judge.judge(expect) {
            let line = expect.line;
            put(Found::Unmet { line, why });
        }
    }
    wrong
}

fn compare_trace(scenario: &Scenario, outcome: &mut Outcome) {
    let Some(expected) = &scenario.trace else {
        return;
    };
    let came: Vec<String> = outcome
        .trace
        .iter()
        .map(|line| line.trim_end().into())
        .collect();
    let longer = expected.len().max(came.len());
    let differs = (0..longer).find(|&at| expected.get(at) != came.get(at));
    if let Some(at) = differs {
        outcome.failures.push(Failure {
            found: Found::Trace {
                line: at + 1,
                expected: expected.get(at).cloned(),
                came: came.get(at).cloned(),
            },
            run: String::new(),
        });
    }
}

/// The text of a scenario file with the trace that `outcome` has, if the file holds a `trace`
/// section. Nothing else of the text changes.
#[must_use]
pub fn bless(text: &str, outcome: &Outcome) -> Option<String> {
    let mut kept = String::new();
    for line in text.lines() {
        kept.push_str(line);
        kept.push('\n');
        if line.split_whitespace().next() == Some("trace") && line.starts_with("trace") {
            for line in &outcome.trace {
                kept.push_str(line.trim_end());
                kept.push('\n');
            }
            return Some(kept);
        }
    }
    None
}

impl Scenario {
    /// Whether the script itself kills the process.
    #[must_use]
    pub fn crashes(&self) -> bool {
        let mut steps = self.timeline.iter().flat_map(|block| &block.steps);
        steps.any(|step| matches!(step, Step::Crash { .. }))
    }
}
