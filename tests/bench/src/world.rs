//! The simulator's figures: inputs and standard runs a second, and instructions an input.
//!
//! Speed is counted in inputs over a fixed block of seeds with all checkers on. Instructions
//! are counted by callgrind over this same program in its replay mode, a block of seeds and
//! twice that block: the difference holds no start-up.

use std::num::NonZero;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::Instant;

use tidegate_sim::{Campaign, Options, Summary, run_seed};

use crate::machine::processor_time;
use crate::measured::{Measured, Why};

/// Seeds whose runs are timed.
const TIMED_SEEDS: u64 = 1_000;
/// Seeds whose instructions are counted, and again as many for the difference.
const COUNTED_SEEDS: u64 = 24;
/// The core's front door, as callgrind sees it: everything that it calls is counted.
const FRONT_DOOR: &str = "tidegate_core::machine::Core::handle*";

/// Inputs and standard runs a second on one core, by processor time, and on two, by the clock.
#[must_use]
pub fn speed() -> Vec<Measured> {
    let mut figures = one_core();
    figures.extend(two_cores());
    figures
}

fn one_core() -> Vec<Measured> {
    let used = || processor_time(None).map_err(|error| error.to_string());
    let timed = || {
        let before = used()?;
        let summary = campaign(1);
        Ok((summary, (used()? - before).as_secs_f64()))
    };
    rates(
        ["world-inputs-1", "world-runs-1"],
        timed(),
        "by processor time",
    )
}

fn two_cores() -> Vec<Measured> {
    let timed = || {
        if available_parallelism().map_or(1, NonZero::get) < 2 {
            return Err(Why::NotHere("this machine has one core".to_owned()));
        }
        let begun = Instant::now();
        let summary = campaign(2);
        Ok((summary, begun.elapsed().as_secs_f64()))
    };
    rates(["world-inputs-2", "world-runs-2"], timed(), "by the clock")
}

fn campaign(threads: usize) -> Summary {
    let campaign = Campaign {
        seeds: 0..TIMED_SEEDS,
        threads,
        options: Options::default(),
    };
    campaign.run(|_| {})
}

fn rates(
    [inputs, runs]: [&'static str; 2],
    timed: Result<(Summary, f64), Why>,
    how: &str,
) -> Vec<Measured> {
    let (summary, seconds) = match timed {
        Ok(timed) => timed,
        Err(why) => {
            return [inputs, runs]
                .map(|name| Measured::left_out(name, why.clone()))
                .into();
        }
    };
    // A run that fails ends early: its rate would flatter.
    if summary.failed > 0 {
        let why = Why::Failed(format!(
            "{} of {} seeds fail: `tidegate sim run` says which",
            summary.failed, summary.seeds
        ));
        return [inputs, runs]
            .map(|name| Measured::left_out(name, why.clone()))
            .into();
    }
    let each = summary.inputs as f64 / summary.seeds as f64;
    vec![
        Measured::value(
            inputs,
            summary.inputs as f64 / seconds,
            format!("{how}; seeds 0..{TIMED_SEEDS}, all checkers on"),
        ),
        Measured::value(
            runs,
            summary.seeds as f64 / seconds,
            format!("{how}; {each:.0} inputs a run"),
        ),
    ]
}

/// Runs so many seeds and gives the number of inputs: the replay mode.
#[must_use]
pub fn replay(seeds: u64) -> u64 {
    (0..seeds)
        .map(|seed| run_seed(seed, &Options::default()).inputs)
        .sum()
}

/// Instructions an input, of the core alone and of the whole world.
#[must_use]
pub fn instructions() -> Vec<Measured> {
    let figure = |name, toggle| match an_input(toggle) {
        Ok((value, inputs)) => Measured::value(name, value, format!("callgrind, {inputs} inputs")),
        Err(why) => Measured::left_out(name, why),
    };
    vec![
        figure("core-instructions", Some(FRONT_DOOR)),
        figure("world-instructions", None),
    ]
}

/// Instructions an input and the number of inputs that they were counted over.
fn an_input(toggle: Option<&str>) -> Result<(f64, u64), Why> {
    let (once, inputs_once) = count(COUNTED_SEEDS, toggle)?;
    let (twice, inputs_twice) = count(2 * COUNTED_SEEDS, toggle)?;
    let inputs = inputs_twice.saturating_sub(inputs_once);
    let instructions = twice.saturating_sub(once);
    if inputs == 0 || instructions == 0 {
        return Err(format!(
            "callgrind saw {instructions} instructions over {inputs} inputs: is {FRONT_DOOR} still the core's front door?"
        )
        .into());
    }
    Ok((instructions as f64 / inputs as f64, inputs))
}

/// Instructions and inputs of a block of seeds.
fn count(seeds: u64, toggle: Option<&str>) -> Result<(u64, u64), Why> {
    let (instructions, said) = callgrind(&["--replay", &seeds.to_string()], toggle)?;
    match said.trim().parse() {
        Ok(inputs) => Ok((instructions, inputs)),
        Err(_) => Err(format!("the replay said {said:?} instead of a number").into()),
    }
}

/// Instructions inside the core's front door, of this program in one of its hidden modes.
pub fn counted(args: &[&str]) -> Result<u64, Why> {
    callgrind(args, Some(FRONT_DOOR)).map(|(instructions, _)| instructions)
}

/// Instructions of this program with these arguments, and what it printed.
fn callgrind(args: &[&str], toggle: Option<&str>) -> Result<(u64, String), Why> {
    let own = std::env::current_exe().map_err(|error| format!("this program is gone: {error}"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.args(toggle.map(|toggle| format!("--toggle-collect={toggle}")));
    command.arg(own).args(args);
    let output = command
        .output()
        .map_err(|error| Why::tool("valgrind", &error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match (output.status.success(), collected(&said)) {
        (true, Some(instructions)) => {
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok((instructions, printed))
        }
        _ => Err(format!(
            "callgrind failed: {}",
            said.lines().last().unwrap_or("no word")
        )
        .into()),
    }
}

fn collected(said: &str) -> Option<u64> {
    let (_, count) = said
        .lines()
        .find_map(|line| line.split_once("Collected :"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_instructions_is_what_callgrind_collected() {
        let said = "==7== Events    : Ir\n==7== Collected : 12345\n==7==\n";
        assert_eq!(collected(said), Some(12_345));
        assert_eq!(collected("==7== "), None);
    }

    /// The difference of a block and twice that block is one more block of inputs.
    #[test]
    fn twice_the_seeds_are_more_inputs() {
        assert!(replay(2) > replay(1));
    }
}
