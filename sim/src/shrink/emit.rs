//! From a shrunk case to a scenario: the same case as a script that people read and keep.
//!
//! Replays the case for its inputs, has them written as a scenario, and runs the result: what
//! does not fail alike there is not handed out.

use super::{Shrunk, cut_of, run_logged};
use crate::adapter::STRIKES_AT;
use crate::recording::{Cut, Recording};
use crate::scenario::{Block, Found, Logged, Planted, RunOptions, Scenario, Step, run};
use crate::violation::Code;

/// Longest gaps between entries that are tried: a script needs time where a log needs order.
const GAPS_MS: [u64; 5] = [1, 1_000, 10_000, 60_000, u64::MAX];

pub(super) fn scenario(shrunk: &Shrunk) -> Option<Scenario> {
    let cut = shrunk.recording.cut.as_ref()?;
    let gaps = [cut.gap_ms].into_iter().chain(GAPS_MS);
    gaps.into_iter().find_map(|gap_ms| {
        let mut recording = shrunk.recording.clone();
        recording.cut = Some(Cut {
            gap_ms,
            ..cut.clone()
        });
        written(&recording, shrunk.violation.code)
    })
}

/// Moves the deaths of the process a moment on: in a log they come amid what happens at their
/// time, in a script before or after all of it.
fn a_moment_later(scenario: &Scenario) -> Scenario {
    let mut later = scenario.clone();
    let mut moved = Vec::new();
    for block in &mut later.timeline {
        let is_crash = |step: &Step| matches!(step, Step::Crash { .. });
        let steps: Vec<Step> = block.steps.extract_if(.., |step| is_crash(step)).collect();
        if !steps.is_empty() {
            moved.push(Block {
                at_ms: block.at_ms + 1,
                any_order: false,
                steps,
            });
        }
    }
    later.timeline.retain(|block| !block.steps.is_empty());
    later.timeline.extend(moved);
    later.timeline.sort_by_key(|block| block.at_ms);
    later
}

/// The scenario of a recording, if it fails alike.
fn written(recording: &Recording, code: Code) -> Option<Scenario> {
    let logged = run_logged(&mut *recording.source.choices(), recording.fault);
    let (frame, _) = cut_of(&logged, recording.cut.as_ref()?);
    let mut log = Vec::new();
    recording.watched(&mut |step| {
        log.push(Logged {
            now: step.now,
            life: step.life,
            input: step.input.clone(),
        });
    });
    let planted = recording.fault.map(|fault| Planted {
        fault,
        occasion: STRIKES_AT,
    });
    let name = format!("{code}.scenario");
    let mut scenario = Scenario::from_log(name, &frame.config, planted, &log);
    scenario.about = vec![
        format!("Found by the simulator: {}.", code.sentence()),
        format!("From {recording}"),
    ];
    scenario.proves = ids(code.promises());
    let later = a_moment_later(&scenario);
    [scenario, later].into_iter().find(|scenario| {
        let outcome = run(scenario, &RunOptions::default());
        let alike = |found: &Found| matches!(found, Found::Violation(v) if v.code == code);
        outcome.failures.iter().any(|f| alike(&f.found))
    })
}

/// The ids among the promises of a code.
fn ids(promises: &str) -> Vec<String> {
    let is_id = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase());
    let words = promises.split(' ').filter(is_id);
    words.map(str::to_owned).collect()
}
