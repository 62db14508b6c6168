//! `tidegate-bench` measures the built gateway and the simulator, and prints one table:
//! each figure, its limit, its committed value, and whether it kept to them.
//!
//! Counts, sizes, instructions and processor time are judged; elapsed time only warns, since
//! it may double on a busy machine. What cannot be measured here is left out and says why.

mod committed;
mod delta;
mod live;
mod load;
mod machine;
mod measured;
mod model;
mod report;
mod spec;
mod start;
mod syncs;
mod world;

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Parser, ValueEnum};

use committed::Book;
use measured::{Measured, Why};
use report::Run;
use spec::{FIGURES, Group, Spec};

/// The variable by which the test helpers find the program.
const PROGRAM_VARIABLE: &str = "TIDEGATE_BIN";
/// No group takes a tenth of this, unless something hangs.
const STUCK: Duration = Duration::from_secs(300);
/// A load that makes elapsed times worthless.
const BUSY_LOAD: f64 = 1.0;

/// Measures the built gateway and prints each figure with its limit.
///
/// Build the program first: `cargo build --profile dist -p tidegate`.
#[derive(Debug, Parser)]
#[command(
    after_help = "Exit codes: 0 all judged figures kept their limits; 1 at least one \
    missed it or could not be had; 2 nothing could be measured."
)]
struct Args {
    /// Measure only these figures; may be given several times
    #[arg(long, value_name = "NAME", value_enum)]
    only: Vec<Group>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Write what was measured to figures.toml as the committed figures
    #[arg(long)]
    update: bool,
    /// The built program [default: TIDEGATE_BIN, else target/dist/tidegate]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Run so many seeds and print the number of inputs: what callgrind looks at
    #[arg(long, hide = true, value_name = "SEEDS")]
    replay: Option<u64>,
    /// Hold so many runs, hand in so much text, print the resident bytes
    #[arg(long, hide = true, value_name = "RUNS:BOUNDARIES")]
    live: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(seeds) = args.replay {
        say(io::stdout(), &world::replay(seeds).to_string());
        return ExitCode::SUCCESS;
    }
    if let Some(asked) = &args.live {
        let Some(resident) = live::hold(asked) else {
            say(io::stderr(), "tidegate-bench: --live wants RUNS:BOUNDARIES");
            return ExitCode::from(2);
        };
        say(io::stdout(), &resident.to_string());
        return ExitCode::SUCCESS;
    }
    match bench(&args) {
        Ok(code) => code,
        Err(why) => {
            say(io::stderr(), &format!("tidegate-bench: {why}"));
            ExitCode::from(2)
        }
    }
}

fn bench(args: &Args) -> Result<ExitCode, String> {
    let path = committed::path();
    let mut book = Book::read(&path).map_err(|why| why.to_string())?;
    let groups = groups(&args.only);
    let program = match groups.iter().any(|group| needs_program(*group)) {
        true => Some(program(args.program.as_deref())?),
        false => None,
    };
    let run = run(&groups, program.as_deref())?;
    say(
        io::stdout(),
        &if args.json {
            run.json(&book).to_string()
        } else {
            run.table(&book)
        },
    );
    if args.update {
        update(&mut book, &run);
        book.write(&path).map_err(|why| why.to_string())?;
        say(io::stderr(), &format!("written: {}", path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let missed = run.missed(&book);
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    say(
        io::stderr(),
        &format!("tidegate-bench: missed or failed: {}", missed.join(", ")),
    );
    Ok(ExitCode::FAILURE)
}

/// The groups that were asked for, each once; all if none was named.
fn groups(only: &[Group]) -> Vec<Group> {
    let all = Group::value_variants().iter().copied();
    all.filter(|group| only.is_empty() || only.contains(group))
        .collect()
}

const fn needs_program(group: Group) -> bool {
    !matches!(group, Group::Instructions | Group::Live | Group::World)
}

/// The program to measure. The test helpers find it by a variable, and a process may not
/// change its own variables: where the variable says something else, this one starts anew.
fn program(asked: Option<&Path>) -> Result<PathBuf, String> {
    let named = std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let wanted = asked
        .map(Path::to_owned)
        .or_else(|| named.clone())
        .unwrap_or_else(|| target.join("dist/tidegate"));
    let found = wanted.canonicalize().map_err(|error| {
        format!(
            "no program at {}: {error}\nbuild it with `cargo build --profile dist -p tidegate`, \
             or name one with --program",
            wanted.display()
        )
    })?;
    if named.as_ref() == Some(&found) {
        return Ok(found);
    }
    let own = std::env::current_exe().map_err(|error| format!("this program is gone: {error}"))?;
    let error = Command::new(own)
        .args(std::env::args_os().skip(1))
        .env(PROGRAM_VARIABLE, &found)
        .exec();
    Err(format!("this program does not start again: {error}"))
}

fn run(groups: &[Group], program: Option<&Path>) -> Result<Run, String> {
    let load = || machine::load().map_err(|error| error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("the operating system refuses: {error}"))?;
    let before = load()?;
    if before > BUSY_LOAD {
        say(
            io::stderr(),
            &format!("the machine is busy (load {before:.1}): elapsed times will be too long"),
        );
    }
    let mut figures = Vec::new();
    for (at, &group) in groups.iter().enumerate() {
        let name = group
            .to_possible_value()
            .map(|value| value.get_name().to_owned());
        let name = name.unwrap_or_default();
        say(
            io::stderr(),
            &format!("[{}/{}] {name}", at + 1, groups.len()),
        );
        figures.extend(measure(group, program, &runtime));
    }
    Ok(Run {
        program: program.map(|program| program.display().to_string()),
        load: (before, load()?),
        figures,
    })
}

/// The figures of a group; where the measurement failed, each of them says so.
fn measure(
    group: Group,
    program: Option<&Path>,
    runtime: &tokio::runtime::Runtime,
) -> Vec<Measured> {
    let measured = match group {
        Group::Instructions => Ok(world::instructions()),
        Group::Live => Ok(live::live()),
        Group::World => Ok(world::speed()),
        Group::Size => program.map_or_else(|| Err("no program".to_owned().into()), start::size),
        Group::Start => runtime.block_on(bounded(start::start())),
        Group::Turn => runtime.block_on(bounded(load::turn())),
        Group::Syncs => runtime.block_on(bounded(syncs::syncs())),
        Group::Delta => runtime.block_on(bounded(delta::delta())),
        Group::Load => runtime.block_on(bounded(load::load())),
    };
    let left_out = |why: Why| {
        let figures = FIGURES.iter().filter(|spec| spec.group == group);
        figures
            .map(|spec| Measured::left_out(spec.name, why.clone()))
            .collect()
    };
    measured.unwrap_or_else(left_out)
}

/// A measurement that has an end: a gateway that hangs fails it.
async fn bounded<E: Into<Why>>(
    measurement: impl Future<Output = Result<Vec<Measured>, E>>,
) -> Result<Vec<Measured>, Why> {
    match tokio::time::timeout(STUCK, measurement).await {
        Ok(measured) => measured.map_err(Into::into),
        Err(_) => Err(Why::Failed(format!(
            "stuck for {} s: the gateway did not answer",
            STUCK.as_secs()
        ))),
    }
}

fn update(book: &mut Book, run: &Run) {
    let today = committed::today();
    for measured in &run.figures {
        if let (Some(spec), Ok(value)) = (Spec::named(measured.name), &measured.value) {
            book.set(spec, *value, &today);
        }
    }
}

fn say(mut to: impl Write, text: &str) {
    // Nobody listening is no reason for another exit code.
    let _ = writeln!(to, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn groups_are_measured_once_and_in_their_order() {
        assert_eq!(
            groups(&[Group::Load, Group::Size, Group::Load]),
            [Group::Size, Group::Load]
        );
        assert_eq!(groups(&[]).len(), Group::value_variants().len());
    }
}
