//! A log of inputs becomes a scenario that shows the same violation.

use tidegate_sim::scenario::{Found, Logged, Planted, RunOptions, Scenario, parse, run};
use tidegate_sim::{Code, Fault, Options, Seeded, Step, run_choices};

/// The scenario of a seed's run, and the violation that the run ended with.
fn emitted(seed: u64, fault: Fault) -> Option<(Scenario, Code)> {
    let options = Options { fault: Some(fault) };
    let mut log = Vec::new();
    let mut watch = |step: &Step<'_>| {
        log.push(Logged {
            now: step.now,
            life: step.life,
            input: step.input.clone(),
        });
    };
    let report = run_choices(&mut Seeded::new(seed), &options, Some(&mut watch));
    let violation = report.violations.first()?;
    let planted = Planted { fault, occasion: 3 };
    let scenario = Scenario::from_log("emitted", &report.config, Some(planted), &log);
    Some((scenario, violation.code))
}

/// A log says less than a world did: a lost report, another owner and a few delays have no
/// step. Most logs show the same violation all the same, unshrunk and with all their noise.
#[test]
fn most_logs_become_scenarios_that_show_the_same_violation() {
    let (mut logs, mut same) = (0, 0);
    for &fault in Fault::ALL {
        for seed in 0..8 {
            let Some((scenario, code)) = emitted(seed, fault) else {
                continue;
            };
            let text = scenario.to_string();
            let again = parse(&text, "emitted").unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(text, again.to_string(), "{} {seed}", fault.name());
            let outcome = run(&again, &RunOptions::default());
            let shows = |found: &Found| matches!(found, Found::Violation(v) if v.code == code);
            let first = outcome.failures.first();
            same += usize::from(first.is_some_and(|failure| shows(&failure.found)));
            logs += 1;
        }
    }
    assert!(logs > 100, "only {logs} logs");
    assert!(same * 10 >= logs * 8, "only {same} of {logs} show the same");
}

/// How a message stands in its conversation, how a session queues, what is stopped or begins
/// anew, how a process ends, what tools do and what people say to that: what a log knows of it,
/// the script says.
#[test]
fn the_words_of_conversations_are_emitted() {
    let mut missing = vec![
        " says ",
        " by collect",
        " by interrupt",
        " on r1",
        "room says ",
        "heartbeat says ",
        " lane ",
        " priority ",
        " resets ",
        " at generation ",
        " aborts everything queued of ",
        " queue by ",
        " debounce ",
        " queue as configured",
        " asks how ",
        "process ends",
        ", arguments, ",
        ", calls c1",
        ", calls guarded c",
        " up to ",
        " of no tool",
        " with bad arguments",
        "tool runs c",
        " outputs",
        "tool on cancel of c",
        " allows c",
        " denies c",
        " for launches,",
        "    tools.rounds ",
    ];
    for seed in 0..100 {
        let mut log = Vec::new();
        let mut watch = |step: &Step<'_>| {
            log.push(Logged {
                now: step.now,
                life: step.life,
                input: step.input.clone(),
            });
        };
        let options = Options::default();
        let report = run_choices(&mut Seeded::new(seed), &options, Some(&mut watch));
        let scenario = Scenario::from_log("emitted", &report.config, None, &log);
        let text = scenario.to_string();
        let again = parse(&text, "emitted").unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(text, again.to_string(), "seed {seed}");
        missing.retain(|words| !text.contains(words));
        if missing.is_empty() {
            return;
        }
    }
    panic!("never emitted: {missing:?}");
}
