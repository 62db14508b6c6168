//! Twice the same: one history in one process, and in another one with another locale, time
//! zone and number of threads. What depends on an address or on the order of threads is found,
//! and the step at which it shows is named.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_sim::{
    Campaign, Choices, Options, Seeded, Step, divergence, run_choices, seed_twice, step_digest,
    step_words,
};

/// Seeds of the block that runs in two processes.
const BLOCK: u64 = 40;

/// law 11
#[test]
fn a_seed_twice_in_one_process_is_the_same_history() {
    for seed in 0..100 {
        assert_eq!(seed_twice(seed, &Options::default()), None, "seed {seed}");
    }
}

/// What a block of seeds is like: a line for each step, and one for the whole.
fn history(threads: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let options = Options::default();
    for seed in 0..BLOCK {
        let mut watch = |step: &Step<'_>| {
            lines.push(format!("{seed} {} {:016x}", step.index, step_digest(step)));
        };
        run_choices(&mut Seeded::new(seed), &options, Some(&mut watch));
    }
    let seeds = 0..BLOCK;
    let campaign = Campaign {
        seeds,
        threads,
        options,
    };
    lines.push(format!("all {:016x}", campaign.run(|_| {}).digest));
    lines
}

/// Not a test of its own: the other process of the one below.
#[test]
#[ignore = "runs in the other process of the determinism gate"]
fn the_other_process() {
    for line in history(5) {
        println!("= {line}");
    }
}

/// law 11
#[test]
fn another_process_with_another_locale_time_zone_and_threads_has_the_same_history() {
    let other = std::env::current_exe().expect("this test knows where it lies");
    let output = Command::new(other)
        .args(["--ignored", "--exact", "the_other_process", "--nocapture"])
        .env("LC_ALL", "tr_TR.UTF-8")
        .env("TZ", "Pacific/Chatham")
        .output()
        .expect("the other process runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let theirs: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("= "))
        .map(|l| l.1)
        .collect();
    let ours = history(1);
    assert!(theirs.len() > 1_000, "{text}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "the first step that differs; {}", told(ours));
    }
    assert_eq!(ours.len(), theirs.len());
}

/// The step of a line of a history, in full.
fn told(line: &str) -> String {
    let mut parts = line.split(' ').map(str::parse::<u64>);
    let (Some(Ok(seed)), Some(Ok(index))) = (parts.next(), parts.next()) else {
        return line.to_owned();
    };
    let mut words = String::new();
    let mut watch = |step: &Step<'_>| {
        if step.index == index {
            words = step_words(step);
        }
    };
    run_choices(
        &mut Seeded::new(seed),
        &Options::default(),
        Some(&mut watch),
    );
    format!("seed {seed}, step {index}: {words}")
}

/// A world in which one choice depends on something else than its source.
struct Unsteady<F> {
    inner: Seeded,
    picks: u64,
    other: F,
}

impl<F: FnMut() -> u64> Choices for Unsteady<F> {
    fn pick(&mut self, bound: u64, label: &'static str) -> u64 {
        let steady = self.inner.pick(bound, label);
        self.picks += 1;
        if label == "gap" && self.picks > 300 {
            return (self.other)() % bound.max(1);
        }
        steady
    }
}

fn planted(mut other: impl FnMut() -> u64) -> Option<tidegate_sim::Divergence> {
    divergence(|watch| {
        let mut see = |step: &Step<'_>| watch(step);
        let mut choices = Unsteady {
            inner: Seeded::new(3),
            picks: 0,
            other: &mut other,
        };
        run_choices(&mut choices, &Options::default(), Some(&mut see));
    })
}

#[test]
fn a_dependence_on_an_address_is_found_and_its_step_named() {
    // All stay alive, so that no address comes twice.
    let mut boxes: Vec<Box<u64>> = Vec::new();
    let found = planted(|| {
        let new = Box::new(boxes.len() as u64);
        let address = std::ptr::from_ref(&*new).addr() as u64;
        boxes.push(new);
        address / 16
    });
    let found = found.expect("it is found");
    assert!(found.step > 1 && found.first != found.second, "{found:?}");
    assert!(found.second.contains(" ms: "), "{found:?}");
}

#[test]
fn a_dependence_on_the_order_of_threads_is_found_and_its_step_named() {
    let place = AtomicU64::new(0);
    // Who comes first gets the lower number, as threads do that race for one.
    let found = planted(|| place.fetch_add(1, Ordering::Relaxed));
    let found = found.expect("it is found");
    assert!(found.step > 1 && found.first != found.second, "{found:?}");
}

#[test]
fn a_choice_that_depends_on_nothing_else_is_not_blamed() {
    assert_eq!(planted(|| 7), None);
}
