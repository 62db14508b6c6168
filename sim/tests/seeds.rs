//! The gate: a fixed block of seeds is green, and a run is a function of its choices.

use proptest::prelude::*;
use tidegate_sim::{
    Campaign, FULL_CAMPAIGN, Fate, Goal, Options, Recorded, Recorder, Seeded, Summary, Verdict,
    run_choices, run_seed,
};

fn campaign(seeds: std::ops::Range<u64>, threads: usize) -> Summary {
    let options = Options::default();
    Campaign {
        seeds,
        threads,
        options,
    }
    .run(|_| {})
}

/// P01 P02 P03 P05 P06 P07 P09 P12 P17 P36 P40 P42, I1 I2 I3 I4 I6 I8 I9 I13 I14 I20 I21 I22
/// I23 I26 I32 I40 I47 I58 I59 I60, L1 L3 L4 L5 L6 L7 L8
#[test]
fn a_fixed_block_of_seeds_is_green_and_reaches_every_mark() {
    let summary = campaign(0..2_000, 2);
    let told: Vec<String> = summary
        .failures
        .iter()
        .map(|f| format!("seed {}: {}", f.seed, f.violation))
        .collect();
    assert!(
        told.is_empty(),
        "{} failed:\n{}",
        summary.failed,
        told.join("\n")
    );
    let missing = summary.missing();
    let marks: Vec<&str> = missing.marks.iter().map(|mark| mark.name()).collect();
    assert!(missing.is_empty(), "never reached: {marks:?}, {missing:?}");
    assert_eq!(summary.verdict(), Verdict::Green);
    let open = Fate::ALL.iter().position(|&fate| fate == Fate::Open);
    assert_eq!(
        open.map(|at| summary.fates[at]),
        Some(0),
        "all messages have an outcome"
    );
}

/// What a campaign never reached is a finding, once it was long enough to mean anything.
#[test]
fn a_long_campaign_that_misses_something_is_not_green() {
    let few = campaign(0..3, 1);
    assert!(!few.missing().is_empty());
    assert_eq!(few.verdict(), Verdict::Green);
    let long = Summary {
        seeds: FULL_CAMPAIGN,
        ..few
    };
    assert_eq!(long.verdict(), Verdict::Unreached);
}

#[test]
fn a_goal_stops_a_campaign_at_the_same_seed_whatever_the_threads() {
    let until = |goal: Goal, threads| {
        let options = Options::default();
        Campaign {
            seeds: 0..4_000,
            threads,
            options,
        }
        .run_until(&goal, |_| {})
    };
    let inputs = Goal {
        inputs: Some(200_000),
        plateau: None,
    };
    let one = until(inputs, 1);
    assert!(one.inputs >= 200_000 && one.seeds < 2_000, "{}", one.seeds);
    assert_eq!(one, until(inputs, 3));
    let plateau = Goal {
        inputs: None,
        plateau: Some(256),
    };
    let flat = until(plateau, 2);
    assert!(flat.seeds < 4_000, "{}", flat.seeds);
    assert_eq!(flat, until(plateau, 1));
}

#[test]
fn every_seed_is_at_least_the_standard_run() {
    for seed in 0..100 {
        let report = run_seed(seed, &Options::default());
        assert!(
            report.simulated_ms >= 600_000,
            "seed {seed}: {} ms",
            report.simulated_ms
        );
        assert!(
            report.messages >= 20,
            "seed {seed}: {} messages",
            report.messages
        );
        assert!(
            report.inputs >= 300,
            "seed {seed}: {} inputs",
            report.inputs
        );
        let names: Vec<_> = report.header.iter().map(|(name, _)| name).collect();
        assert!(names.len() > 40, "the header names the swarm's values");
    }
}

#[test]
fn the_same_seed_gives_the_same_digest_and_another_seed_another() {
    for seed in [0, 7, 4711, u64::MAX] {
        let digest = run_seed(seed, &Options::default()).digest;
        assert_eq!(
            digest,
            run_seed(seed, &Options::default()).digest,
            "seed {seed}"
        );
        assert_ne!(
            digest,
            run_seed(seed ^ 1, &Options::default()).digest,
            "seed {seed}"
        );
    }
}

#[test]
fn recorded_choices_replay_to_the_same_digest() {
    for seed in 0..20 {
        let options = Options::default();
        let mut recorder = Recorder::new(Seeded::new(seed));
        let digest = run_choices(&mut recorder, &options, None).digest;
        assert_eq!(
            digest,
            run_seed(seed, &options).digest,
            "a recorder changes nothing"
        );
        let calls = recorder
            .spans()
            .iter()
            .filter(|span| span.label == "call")
            .count();
        assert!(calls > 0, "model calls are spans");
        assert!(recorder.spans().iter().all(|span| span.from <= span.to));
        let mut recorded = Recorded::new(recorder.choices().to_vec());
        assert_eq!(
            digest,
            run_choices(&mut recorded, &options, None).digest,
            "seed {seed}"
        );
    }
}

#[test]
fn the_number_of_threads_changes_nothing_of_the_result() {
    let one = campaign(100..200, 1);
    assert_eq!(one.seeds, 100);
    assert_eq!(one, campaign(100..200, 2));
    assert_eq!(one, campaign(100..200, 5));
}

#[test]
fn a_watcher_sees_every_step_and_changes_none() {
    let mut steps = 0;
    let mut watch = |step: &tidegate_sim::Step<'_>| {
        steps += 1;
        assert_eq!(step.index, steps);
    };
    let options = Options::default();
    let report = run_choices(&mut Seeded::new(3), &options, Some(&mut watch));
    assert_eq!(report.digest, run_seed(3, &options).digest);
    assert_eq!(report.inputs, steps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any list of numbers is a run, and a green one: what a shrinker makes of a recording
    /// can't break the world.
    #[test]
    fn any_recording_is_a_run(list in proptest::collection::vec(any::<u64>(), 0..600)) {
        let list = list.into_iter().map(|n| n % 64).collect();
        let report = run_choices(&mut Recorded::new(list), &Options::default(), None);
        prop_assert!(report.violations.is_empty(), "{}", report.violations[0]);
    }
}
