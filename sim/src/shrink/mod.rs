//! Shrinking: from a failed run to the least that fails alike.
//!
//! The log of the run is cut down first, entry by entry; where the failure does not show in
//! the log alone, the choices are. A cut counts only if the same code is found: never another
//! failure, however small. Nothing is drawn and no clock is looked at, so that one failure
//! shrinks to one case everywhere.

mod chosen;
mod cuts;
mod emit;
pub(crate) mod log;
mod reduce;
mod replay;
mod words;

use tidegate_core::Config;

use crate::choices::Choices;
use crate::fault::Fault;
use crate::recording::{Cut, Recording, Source};
use crate::run::Step;
use crate::scenario::Scenario;
use crate::violation::Violation;
use crate::world::World;
use chosen::shrink_choices;
use cuts::Search;
use log::{Entry, Frame, What};

/// A failure, as small as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// What is found in it: the same code as in the whole.
    pub violation: Violation,
    /// What reproduces it.
    pub recording: Recording,
    /// Entries of its log that are left; if there is no log, choices that are not 0.
    pub size: usize,
    /// Inputs until it is found.
    pub inputs: u64,
    /// How many replays it took.
    pub tries: u32,
}

/// A run of the world with its log.
struct Logged {
    frame: Frame,
    entries: Vec<Entry>,
    violation: Option<Violation>,
    inputs: u64,
}

fn run_logged(source: &mut dyn Choices, fault: Option<Fault>) -> Logged {
    let mut world = World::new(source, fault, None);
    world.log = Some(Vec::new());
    world.run();
    let mut entries = world.log.take().unwrap_or_default();
    entries.push(Entry {
        at: world.now,
        what: What::Pass,
    });
    Logged {
        frame: Frame {
            config: world.swarm.config.clone(),
            power: world.swarm.power,
            slack_ms: world.swarm.jitter_ms,
            store_ms: world.swarm.store_ms(),
        },
        entries,
        violation: world.violations.first().copied(),
        inputs: world.inputs,
    }
}

/// What a cut has at a place of the log, in the order in which it comes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Calm,
    Served,
    Kept,
}

/// The entries of a cut, with the times that it gives them.
fn cut_of(logged: &Logged, cut: &Cut) -> (Frame, Vec<Entry>) {
    let mut frame = logged.frame.clone();
    if cut.plain {
        frame.config = Config::default();
    }
    let mut items: Vec<(u32, Item)> = Vec::new();
    for (list, item) in [
        (&cut.calms, Item::Calm),
        (&cut.served, Item::Served),
        (&cut.kept, Item::Kept),
    ] {
        items.extend(list.iter().map(|&at| (at, item)));
    }
    items.sort_unstable();
    let (mut last, mut now) = (0, 0);
    let entries = items.into_iter().filter_map(|(at, item)| {
        let entry = logged.entries.get(usize::try_from(at).ok()?)?;
        now += entry.at.saturating_sub(last).min(cut.gap_ms);
        last = last.max(entry.at);
        let what = match item {
            Item::Calm => What::Calm,
            Item::Served => What::Served,
            Item::Kept => entry.what.clone(),
        };
        Some(Entry { at: now, what })
    });
    let entries = entries.collect();
    (frame, entries)
}

/// How many entries a cut has.
fn size(cut: &Cut) -> usize {
    cut.kept.len() + cut.calms.len() + cut.served.len()
}

/// Shrinks a run. `None` if it does not fail.
#[must_use]
pub fn shrink(source: &Source, fault: Option<Fault>) -> Option<Shrunk> {
    let logged = run_logged(&mut *source.choices(), fault);
    let code = logged.violation?.code;
    let mut search = Search {
        logged: &logged,
        fault,
        code,
        tries: 0,
    };
    let Some(cut) = search.cut() else {
        return shrink_choices(source, fault, code);
    };
    let tries = search.tries;
    let (frame, entries) = cut_of(&logged, &cut);
    let replayed = replay::replay(&frame, fault, entries.iter(), None);
    Some(Shrunk {
        violation: replayed.violation?,
        size: size(&cut),
        recording: Recording {
            source: source.clone(),
            fault,
            cut: Some(cut),
        },
        inputs: replayed.inputs,
        tries,
    })
}

/// What replaying a recording gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// What is found, if anything is.
    pub violation: Option<Violation>,
    /// Inputs handed to the core.
    pub inputs: u64,
    /// What led to it, in words: at most 20 lines, the last one says what broke. Empty if
    /// nothing is found.
    pub timeline: Vec<String>,
}

impl Recording {
    /// Runs it again, and tells it in words if it fails.
    #[must_use]
    pub fn replay(&self) -> Replay {
        let (violation, inputs) = self.watched(&mut |_| {});
        let mut timeline = Vec::new();
        if let Some(violation) = violation {
            let mut words = words::Timeline::default();
            self.watched(&mut |step| words.step(step, &violation));
            timeline = words.finish(&violation);
        }
        Replay {
            violation,
            inputs,
            timeline,
        }
    }

    /// Runs it again. `watch` sees every step.
    pub fn watched(&self, watch: &mut dyn FnMut(&Step<'_>)) -> (Option<Violation>, u64) {
        let mut source = self.source.choices();
        let Some(cut) = &self.cut else {
            let mut world = World::new(&mut *source, self.fault, Some(watch));
            world.run();
            return (world.violations.first().copied(), world.inputs);
        };
        let logged = run_logged(&mut *source, self.fault);
        let (frame, entries) = cut_of(&logged, cut);
        let replayed = replay::replay(&frame, self.fault, entries.iter(), Some(watch));
        (replayed.violation, replayed.inputs)
    }
}

impl Shrunk {
    /// The case as a scenario, which fails with the same code as it is written and passes when
    /// the defect is mended (a planted fault: when its line is taken out). `None` if scenarios
    /// have no word for something in it, or if it does not fail there alike.
    #[must_use]
    pub fn scenario(&self) -> Option<Scenario> {
        emit::scenario(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Options, run_seed};

    /// Where a log says nothing the choices are shrunk: the same code, and far fewer of them.
    #[test]
    fn choices_shrink_to_the_same_code() {
        for fault in [Fault::EndTwice, Fault::CancelLost, Fault::AbortLies] {
            let options = Options { fault: Some(fault) };
            let failing = (0..100).find_map(|seed| {
                let code = run_seed(seed, &options).violations.first()?.code;
                Some((seed, code))
            });
            let (seed, code) = failing.expect("it is found");
            let case = shrink_choices(&Source::Seed(seed), Some(fault), code).expect("it fails");
            assert_eq!(case.violation.code, code);
            assert!(
                case.recording.cut.is_none() && case.size < 200,
                "{}",
                case.size
            );
            let again = case.recording.replay();
            assert_eq!(again.violation, Some(case.violation));
        }
    }

    /// A whole log is the run that it was taken from, as far as what is found goes.
    #[test]
    fn the_whole_log_of_a_green_run_is_green() {
        for seed in 0..200 {
            let logged = run_logged(&mut *Source::Seed(seed).choices(), None);
            let entries = logged.entries.iter();
            let replayed = replay::replay(&logged.frame, None, entries, None);
            assert_eq!(replayed.violation, None, "seed {seed}");
        }
    }

    /// Every part of a log is something that could happen: a sound core stays green on it, so
    /// that what a cut finds is the core's doing and not the cut's.
    #[test]
    fn any_part_of_a_log_is_green_on_a_sound_core() {
        let mut rng = crate::choices::Seeded::new(1);
        for seed in 0..40 {
            let logged = run_logged(&mut *Source::Seed(seed).choices(), None);
            for round in 0..20u64 {
                // From nearly all entries to nearly none.
                let mut keeps = || rng.pick(20, "keep") > round;
                let part = logged.entries.iter().filter(|_| keeps());
                let found = replay::replay(&logged.frame, None, part, None).violation;
                assert_eq!(found.map(|v| v.code), None, "seed {seed}, round {round}");
            }
        }
    }
}
