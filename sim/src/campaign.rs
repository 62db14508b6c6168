//! A range of seeds on several threads, with a result that depends on the range alone.
//!
//! Threads take seeds in blocks from a shared counter and report to the calling thread, which
//! adds up. Sums do not depend on the order; failures are kept by seed. A campaign with a goal
//! runs whole rounds of seeds and looks after each, so that where it stops does not depend on
//! the threads either.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use crate::check::{Fate, LOST, Stage, TRANSITIONS, Transitions};
use crate::choices::splitmix;
use crate::coverage::Operations;
use crate::marks::{Mark, Marks};
use crate::run::{Options, Report, run_seed};
use crate::violation::{Kind, Violation};

/// Seeds that a thread takes at once.
const BLOCK: u64 = 8;
/// Most failing seeds that are kept in full, the lowest ones. All are counted.
const KEPT: usize = 64;

/// Seeds of a round: a campaign with a goal looks after each whether it is reached.
const ROUND: u64 = 256;
/// From so many seeds on, what was never reached is a finding.
pub const FULL_CAMPAIGN: u64 = 2_000;

/// When a campaign stops before its last seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// After at least so many inputs.
    pub inputs: Option<u64>,
    /// When nothing new was reached in so many seeds: no mark, no step of a run, no output
    /// after an input.
    pub plateau: Option<u64>,
}

/// What came of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No promise was broken, and everything was reached.
    Green,
    /// The lowest failing seed found this.
    Failed(Kind),
    /// No promise was broken, but something was never reached: the campaign proves little.
    Unreached,
}

/// What a campaign never reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Marks.
    pub marks: Vec<Mark>,
    /// Declared steps of a run.
    pub transitions: Vec<(Stage, Stage)>,
    /// Operations of the front door, by name.
    pub operations: Vec<&'static str>,
}

impl Missing {
    /// Whether everything was reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.transitions.is_empty() && self.operations.is_empty()
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The seeds.
    pub seeds: Range<u64>,
    /// How many threads; 0 counts as 1. It changes nothing of the result.
    pub threads: usize,
    /// How to run each.
    pub options: Options,
}

/// A seed that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The first violation.
    pub violation: Violation,
}

/// What a campaign found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds that ran.
    pub seeds: u64,
    /// Seeds that failed.
    pub failed: u64,
    /// The lowest failing seeds, at most 64, in order.
    pub failures: Vec<Failure>,
    /// Inputs handed to cores.
    pub inputs: u64,
    /// Messages that clients sent.
    pub messages: u64,
    /// Simulated time in milliseconds.
    pub simulated_ms: u64,
    /// One digest of all runs.
    pub digest: u64,
    /// What was reached.
    pub marks: Marks,
    /// Which inputs and outputs there were.
    pub operations: Operations,
    /// Which steps runs took.
    pub transitions: Transitions,
    /// What became of accepted messages, in the order of [`Fate::ALL`].
    pub fates: [u64; Fate::ALL.len()],
}

impl Summary {
    fn add(&mut self, seed: u64, report: &Report, failures: &mut BTreeMap<u64, Violation>) {
        self.seeds += 1;
        self.inputs += report.inputs;
        self.messages += report.messages;
        self.simulated_ms += report.simulated_ms;
        self.marks.add(&report.marks);
        self.operations.add(&report.operations);
        self.transitions.add(&report.transitions);
        for (sum, n) in self.fates.iter_mut().zip(report.ledger.counts()) {
            *sum += n;
        }
        // A sum of mixed words, so that the order of the seeds does not matter.
        let mut state = seed ^ report.digest;
        self.digest = self.digest.wrapping_add(splitmix(&mut state));
        if let Some(&violation) = report.violations.first() {
            self.failed += 1;
            failures.insert(seed, violation);
            if failures.len() > KEPT {
                failures.pop_last();
            }
        }
    }
}

impl Summary {
    /// What was never reached. A campaign of few seeds misses a lot and proves little by it.
    #[must_use]
    pub fn missing(&self) -> Missing {
        let steps = TRANSITIONS.iter().chain(LOST).copied();
        Missing {
            marks: self.marks.missing(),
            transitions: steps
                .filter(|&(from, to)| self.transitions.count(from, to) == 0)
                .collect(),
            operations: self.operations.missing(),
        }
    }

    /// What came of it. What was never reached counts from [`FULL_CAMPAIGN`] seeds on.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.failures.first() {
            Some(failure) => Verdict::Failed(failure.violation.code.kind()),
            None if self.seeds >= FULL_CAMPAIGN && !self.missing().is_empty() => Verdict::Unreached,
            None => Verdict::Green,
        }
    }

    /// How much was reached, to tell whether a round brought anything new.
    fn reached(&self) -> usize {
        let marks = Mark::ALL.len() - self.marks.missing().len();
        let all = Stage::ALL.into_iter();
        let steps = all.flat_map(|from| Stage::ALL.map(|to| self.transitions.count(from, to)));
        let steps = steps.filter(|&count| count > 0).count();
        marks + steps + usize::try_from(self.operations.pairs()).unwrap_or(0)
    }
}

impl Campaign {
    /// Runs all seeds. `progress` is called on this thread after each seed, with what has been
    /// added up so far; `failures` is filled in at the end.
    pub fn run(&self, progress: impl FnMut(&Summary)) -> Summary {
        self.run_until(&Goal::default(), progress)
    }

    /// Runs seeds until a goal is reached, or all of them.
    pub fn run_until(&self, goal: &Goal, mut progress: impl FnMut(&Summary)) -> Summary {
        let mut summary = Summary::default();
        let mut failures = BTreeMap::new();
        let has_goal = *goal != Goal::default();
        let (mut from, mut reached, mut news_at) = (self.seeds.start, 0, self.seeds.start);
        while from < self.seeds.end {
            let to = match has_goal {
                true => from.saturating_add(ROUND).min(self.seeds.end),
                false => self.seeds.end,
            };
            self.round(from..to, &mut summary, &mut failures, &mut progress);
            from = to;
            let now = summary.reached();
            if now > reached {
                (reached, news_at) = (now, to);
            }
            let enough = goal.inputs.is_some_and(|inputs| summary.inputs >= inputs);
            let plateau = goal.plateau.is_some_and(|seeds| to - news_at >= seeds);
            if enough || plateau {
                break;
            }
        }
        summary.failures = failures
            .into_iter()
            .map(|(seed, violation)| Failure { seed, violation })
            .collect();
        summary
    }

    fn round(
        &self,
        seeds: Range<u64>,
        summary: &mut Summary,
        failures: &mut BTreeMap<u64, Violation>,
        progress: &mut impl FnMut(&Summary),
    ) {
        let next = AtomicU64::new(seeds.start);
        let (sender, reports) = mpsc::sync_channel::<(u64, Report)>(1024);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                let sender = sender.clone();
                let next = &next;
                scope.spawn(move || self.work(next, seeds.end, &sender));
            }
            drop(sender);
            for (seed, report) in reports {
                summary.add(seed, &report, failures);
                progress(summary);
            }
        });
    }

    fn work(&self, next: &AtomicU64, end: u64, sender: &mpsc::SyncSender<(u64, Report)>) {
        loop {
            let from = next.fetch_add(BLOCK, Ordering::Relaxed);
            if from >= end {
                return;
            }
            for seed in from..from.saturating_add(BLOCK).min(end) {
                if sender.send((seed, run_seed(seed, &self.options))).is_err() {
                    return;
                }
            }
        }
    }
}
