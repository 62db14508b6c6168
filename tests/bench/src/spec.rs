//! The figures: their names, what they mean, and what they must keep to.
//!
//! Owns every limit, each with its source. It measures nothing and judges only numbers that
//! it is given.

use clap::ValueEnum;

/// A family of figures that one measurement gives. `--only` takes these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Group {
    /// The core and the world: instructions an input.
    Instructions,
    /// Live runs in the core: instructions of a text boundary, memory.
    Live,
    /// The world: inputs and standard runs a second.
    World,
    /// The program's size.
    Size,
    /// From the start to the first answer, and memory then.
    Start,
    /// One turn after another: own processor time, memory afterwards.
    Turn,
    /// Syncs a turn.
    Syncs,
    /// From a provider's chunk to the client's event.
    Delta,
    /// Turns a second.
    Load,
}

/// What a value must keep to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// At most the committed value and this many per cent more.
    Regression(f64),
    /// Nothing; it is shown beside its committed value.
    None,
}

/// What a value is made of, which says how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counts, bytes, instructions: the same on a busy machine. A missed limit is an error.
    Exact,
    /// Processor time: a busy machine adds some. A missed limit is an error.
    Processor,
    /// Elapsed time: a busy machine may multiply it. A missed limit is a warning.
    Elapsed,
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name, in the table, in JSON and in figures.toml.
    pub name: &'static str,
    /// Its measurement.
    pub group: Group,
    /// Its unit.
    pub unit: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// What it must keep to.
    pub bound: Bound,
    /// What it says, in a few words.
    pub what: &'static str,
}

/// Beyond this many per cent more instructions than committed, the core has become slower.
const SLOWER_PERCENT: f64 = 30.0;

const fn spec(
    name: &'static str,
    group: Group,
    unit: &'static str,
    kind: Kind,
    bound: Bound,
    what: &'static str,
) -> Spec {
    Spec {
        name,
        group,
        unit,
        kind,
        bound,
        what,
    }
}

/// All figures, in the order of the table: a row is a line.
#[rustfmt::skip]
pub const FIGURES: &[Spec] = {
    use Bound::{AtLeast, AtMost, None, Regression};
    use Group::{Delta, Instructions, Live, Load, Size, Start, Syncs, Turn, World};
    use Kind::{Elapsed, Exact, Processor};
    const SLOWER: Bound = Regression(SLOWER_PERCENT);
    &[
        spec("core-instructions", Instructions, "an input", Exact, SLOWER, "inside the core alone"),
        spec("world-instructions", Instructions, "an input", Exact, SLOWER, "core, world, checkers"),
        spec("text-instructions", Live, "a boundary", Exact, AtMost(5_000.0), "streamed text at 1,000 live runs"),
        spec("text-growth", Live, "times", Exact, AtMost(1.5), "10,000 live runs against 100"),
        spec("live-run-bytes", Live, "bytes", Exact, AtMost(2_048.0), "the core's memory of a live run"),
        spec("world-inputs-1", World, "a second", Processor, AtLeast(150_000.0), "inputs, one core"),
        spec("world-inputs-2", World, "a second", Elapsed, AtLeast(300_000.0), "inputs, two cores"),
        spec("world-runs-1", World, "a second", Processor, None, "standard runs, one core"),
        spec("world-runs-2", World, "a second", Elapsed, None, "standard runs, two cores"),
        spec("size", Size, "MB", Exact, AtMost(14.0), "the stripped program"),
        spec("start", Start, "ms", Elapsed, AtMost(25.0), "to first health, fresh directory"),
        spec("start-again", Start, "ms", Elapsed, AtMost(25.0), "to first health, known directory"),
        spec("version", Start, "ms", Elapsed, None, "`tidegate --version`, for comparison"),
        spec("idle-rss", Start, "MiB", Exact, AtMost(14.0), "memory after the start"),
        spec("idle-anonymous", Start, "MiB", Exact, None, "the part of it that is not files"),
        spec("turn-cpu", Turn, "ms", Processor, AtMost(1.5), "own processor time of a turn"),
        spec("turn-cpu-long", Turn, "ms", Processor, None, "the same, late in a long session"),
        spec("used-rss", Turn, "MiB", Exact, None, "memory after the turns of turn-cpu"),
        spec("turn-syncs", Syncs, "a turn", Exact, AtMost(3.0), "serial syncs, one idle session"),
        spec("turn-syncs-64", Syncs, "a turn", Exact, None, "syncs, 64 busy sessions"),
        spec("delta-p50", Delta, "ms", Elapsed, None, "chunk written to event received"),
        spec("delta-p95", Delta, "ms", Elapsed, None, ""),
        spec("delta-p99", Delta, "ms", Elapsed, None, ""),
        spec("turns-1", Load, "a second", Elapsed, None, "turns, 1 session"),
        spec("turns-16", Load, "a second", Elapsed, None, "turns, 16 sessions"),
        spec("turns-64", Load, "a second", Elapsed, AtLeast(300.0), "turns, 64 sessions"),
    ]
};

/// What a value is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within its limit.
    Kept,
    /// Beyond its limit, and the value can be trusted.
    Missed,
    /// Beyond its limit, but a busy machine could be the reason.
    Doubtful,
    /// There is nothing to keep to.
    Shown,
    /// It was to be measured, and that failed.
    Failed,
    /// It cannot be measured on this machine.
    LeftOut,
}

impl Verdict {
    /// Its word in the table and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kept => "ok",
            Self::Missed => "MISSED",
            Self::Doubtful => "warning",
            Self::Shown => "-",
            Self::Failed => "FAILED",
            Self::LeftOut => "left out",
        }
    }
}

impl Spec {
    /// The figure of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        FIGURES.iter().find(|spec| spec.name == name)
    }

    /// The limit in the figure's unit, where there is one.
    #[must_use]
    pub fn limit(&self, committed: Option<f64>) -> Option<f64> {
        match self.bound {
            Bound::AtMost(limit) | Bound::AtLeast(limit) => Some(limit),
            Bound::Regression(percent) => committed.map(|value| value * (1.0 + percent / 100.0)),
            Bound::None => None,
        }
    }

    /// Judges a value.
    #[must_use]
    pub fn judge(&self, value: f64, committed: Option<f64>) -> Verdict {
        let Some(limit) = self.limit(committed) else {
            return Verdict::Shown;
        };
        let kept = match self.bound {
            Bound::AtLeast(_) => value >= limit,
            _ => value <= limit,
        };
        match (kept, self.kind) {
            (true, _) => Verdict::Kept,
            (false, Kind::Elapsed) => Verdict::Doubtful,
            (false, Kind::Exact | Kind::Processor) => Verdict::Missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str) -> &'static Spec {
        Spec::named(name).expect("the figure is in the table")
    }

    #[test]
    fn thirty_per_cent_more_instructions_than_committed_are_missed() {
        let core = figure("core-instructions");
        assert_eq!(core.judge(1_300.0, Some(1_000.0)), Verdict::Kept);
        assert_eq!(core.judge(1_301.0, Some(1_000.0)), Verdict::Missed);
        assert_eq!(core.judge(1.0, None), Verdict::Shown);
    }

    #[test]
    fn a_limit_that_is_met_exactly_is_kept() {
        assert_eq!(figure("turn-syncs").judge(3.0, None), Verdict::Kept);
        assert_eq!(figure("turn-syncs").judge(3.01, None), Verdict::Missed);
        assert_eq!(
            figure("world-inputs-1").judge(150_000.0, None),
            Verdict::Kept
        );
        assert_eq!(
            figure("world-inputs-1").judge(149_999.0, None),
            Verdict::Missed
        );
    }

    #[test]
    fn elapsed_time_only_warns() {
        assert_eq!(figure("start").judge(26.0, None), Verdict::Doubtful);
        assert_eq!(figure("turns-64").judge(299.0, None), Verdict::Doubtful);
    }

    #[test]
    fn every_figure_has_a_name_of_its_own() {
        let mut names: Vec<_> = FIGURES.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len());
    }
}
