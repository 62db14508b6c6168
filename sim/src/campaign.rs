//! A range of seeds on several threads, with a result that depends on the range alone.
//!
//! Threads take seeds in blocks from a shared counter and report to the calling thread, which
//! adds up. Sums do not depend on the order; failures are kept by seed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use crate::check::Fate;
use crate::choices::splitmix;
use crate::marks::Marks;
use crate::run::{Options, Report, run_seed};
use crate::violation::Violation;

/// Seeds that a thread takes at once.
const BLOCK: u64 = 8;
/// Most failing seeds that are kept in full, the lowest ones. All are counted.
const KEPT: usize = 64;

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

impl Campaign {
    /// Runs all seeds. `progress` is called on this thread after each seed, with what has been
    /// added up so far; `failures` is filled in at the end.
    pub fn run(&self, mut progress: impl FnMut(&Summary)) -> Summary {
        let next = AtomicU64::new(self.seeds.start);
        let (sender, reports) = mpsc::sync_channel::<(u64, Report)>(1024);
        let mut summary = Summary::default();
        let mut failures = BTreeMap::new();
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                let sender = sender.clone();
                let next = &next;
                scope.spawn(move || self.work(next, &sender));
            }
            drop(sender);
            for (seed, report) in reports {
                summary.add(seed, &report, &mut failures);
                progress(&summary);
            }
        });
        summary.failures = failures
            .into_iter()
            .map(|(seed, violation)| Failure { seed, violation })
            .collect();
        summary
    }

    fn work(&self, next: &AtomicU64, sender: &mpsc::SyncSender<(u64, Report)>) {
        loop {
            let from = next.fetch_add(BLOCK, Ordering::Relaxed);
            if from >= self.seeds.end {
                return;
            }
            for seed in from..from.saturating_add(BLOCK).min(self.seeds.end) {
                if sender.send((seed, run_seed(seed, &self.options))).is_err() {
                    return;
                }
            }
        }
    }
}
