//! Twice the same: two runs of one history, compared step by step.
//!
//! Owns the comparison and what is said of the first step that differs. What is run is the
//! caller's: a seed twice in one process, or what another process said about it.

use std::hash::{Hash, Hasher};

use tidegate_core::Digest;

use crate::choices::Seeded;
use crate::run::{Options, Step, run_choices};

/// The first step at which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Its index, from 1.
    pub step: u64,
    /// The step as the first run had it; empty if it was over by then.
    pub first: String,
    /// As the second run had it.
    pub second: String,
}

/// A digest of one step: its time, its input, its outputs.
#[must_use]
pub fn step_digest(step: &Step<'_>) -> u64 {
    let mut digest = Digest::new();
    (step.now, step.life, step.input, step.outputs).hash(&mut digest);
    digest.finish()
}

/// A step in full, for whoever has to find out what it depends on.
#[must_use]
pub fn step_words(step: &Step<'_>) -> String {
    let outputs: Vec<String> = step.outputs.iter().map(|o| format!("{o:?}")).collect();
    format!(
        "{} ms: {:?} -> {}",
        step.now.time.0,
        step.input,
        outputs.join("; ")
    )
}

/// Runs something twice and gives the first step that differs. Each run is handed somebody who
/// looks on, and shows every step to them.
pub fn divergence(mut run: impl FnMut(&mut dyn FnMut(&Step<'_>))) -> Option<Divergence> {
    let mut steps: Vec<(u64, String)> = Vec::new();
    run(&mut |step| steps.push((step_digest(step), step_words(step))));
    let mut seen = 0;
    let mut found = None;
    run(&mut |step| {
        let first = steps.get(seen);
        seen += 1;
        if found.is_none() && first.is_none_or(|(digest, _)| *digest != step_digest(step)) {
            found = Some(Divergence {
                step: step.index,
                first: first.map(|(_, words)| words.clone()).unwrap_or_default(),
                second: step_words(step),
            });
        }
    });
    let over = steps.get(seen).map(|(_, words)| Divergence {
        step: seen as u64 + 1,
        first: words.clone(),
        second: String::new(),
    });
    found.or(over)
}

/// Runs a seed twice in this process.
#[must_use]
pub fn seed_twice(seed: u64, options: &Options) -> Option<Divergence> {
    divergence(|watch| {
        let mut see = |step: &Step<'_>| watch(step);
        run_choices(&mut Seeded::new(seed), options, Some(&mut see));
    })
}
