//! Shrinking: each planted fault gets small, stays the same failure, and can be handed on.

use std::fmt::Write;

use tidegate_sim::{
    AuditRow, Code, Fault, Options, Recorder, Recording, Seeded, Shrunk, Source, audit,
    run_choices, run_seed, scenario, shrink,
};

/// Seeds within which a fault must be found.
const WITHIN: u64 = 2_000;

fn failing(fault: Fault) -> (u64, Code) {
    let options = Options { fault: Some(fault) };
    (0..WITHIN)
        .find_map(|seed| Some((seed, run_seed(seed, &options).violations.first()?.code)))
        .unwrap_or_else(|| panic!("{} is found", fault.name()))
}

fn shrunk(fault: Fault) -> Shrunk {
    let (seed, code) = failing(fault);
    let shrunk = shrink(&Source::Seed(seed), Some(fault)).expect("it fails");
    assert_eq!(shrunk.violation.code, code, "{}", fault.name());
    shrunk
}

/// The table for people: fault, seeds to detection, code, sizes. Every fault of the adapter
/// shrinks to at most one and a half times what a person would write, and never onto another
/// code; the canary is found at once.
#[test]
fn every_fault_is_found_and_gets_as_small_as_by_hand() {
    let mut table = format!("{}\n", AuditRow::head());
    let mut wrong = Vec::new();
    for &fault in Fault::ALL {
        let Some(row) = audit(fault, WITHIN) else {
            wrong.push(format!("{}: not found in {WITHIN} seeds", fault.name()));
            continue;
        };
        if row.percent() > 150 || row.shrunk.violation.code != row.code {
            wrong.push(row.to_string());
        }
        if fault == Fault::Canary {
            assert_eq!(row.seeds, 1);
        }
        writeln!(table, "{row}").expect("a string takes all");
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{table}\nwrong:\n{}", wrong.join("\n"));
}

/// A case travels as a short string and as a file, and is the same failure at its goal.
#[test]
fn a_shrunk_case_reproduces_from_its_string_and_from_its_file() {
    for &fault in Fault::ALL {
        let case = shrunk(fault);
        let string = case.recording.to_string();
        // Choices are longer than what is left of a log.
        let most = match case.recording.cut {
            Some(_) => 200,
            None => 2_000,
        };
        assert!(string.len() < most, "{}: {string}", fault.name());
        for text in [string.clone(), case.recording.to_file()] {
            let recording: Recording = text.parse().expect("its own text");
            let replay = recording.replay();
            assert_eq!(replay.violation, Some(case.violation), "{string}");
            assert_eq!(replay.inputs, case.inputs, "{string}");
        }
    }
}

#[test]
fn a_failure_reproduces_from_its_seed_and_from_its_choices() {
    let fault = Some(Fault::EndTwice);
    let options = Options { fault };
    let (seed, _) = failing(Fault::EndTwice);
    let mut recorder = Recorder::new(Seeded::new(seed));
    let report = run_choices(&mut recorder, &options, None);
    let sources = [
        Source::Seed(seed),
        Source::Choices(recorder.choices().to_vec()),
    ];
    for source in sources {
        let recording = Recording {
            source,
            fault,
            cut: None,
        };
        let again: Recording = recording.to_string().parse().expect("its own string");
        assert_eq!(again.replay().violation, report.violations.first().copied());
    }
}

/// A failure explains itself: at most twenty lines, and the last one says what broke.
#[test]
fn the_timeline_of_a_case_is_short_and_ends_with_what_broke() {
    for &fault in Fault::ALL {
        let case = shrunk(fault);
        let timeline = case.recording.replay().timeline;
        assert!(timeline.len() <= 20, "{}", timeline.join("\n"));
        assert!(timeline.len() > 1, "{}", timeline.join("\n"));
        let last = timeline.last().map_or("", String::as_str);
        assert!(last.contains(case.violation.code.name()), "{last}");
    }
    let case = shrunk(Fault::AbortUndone);
    let told = case.recording.replay().timeline.join("\n");
    for words in ["stops", "tell request", "claim for"] {
        assert!(told.contains(words), "{words}:\n{told}");
    }
}

/// A run that does not fail is not shrunk, and its recording finds nothing.
#[test]
fn a_green_run_has_nothing_to_shrink() {
    assert_eq!(shrink(&Source::Seed(1), None), None);
    let recording = Recording {
        source: Source::Seed(1),
        fault: None,
        cut: None,
    };
    let replay = recording.replay();
    assert_eq!(replay.violation, None);
    assert!(replay.timeline.is_empty());
}

/// What is emitted fails alike as it is written, and passes without the fault.
#[test]
fn an_emitted_scenario_fails_before_the_defect_is_mended_and_passes_after() {
    let (mut emitted, mut with_calls) = (0, 0);
    for &fault in Fault::ALL {
        let case = shrunk(fault);
        let Some(mut script) = case.scenario() else {
            continue;
        };
        emitted += 1;
        let text = script.to_string();
        with_calls += usize::from(text.contains("calls "));
        let read = scenario::parse(&text, "emitted.scenario")
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let options = scenario::RunOptions::default();
        let found = scenario::run(&read, &options).failures;
        let alike = found.iter().any(|failure| {
            matches!(&failure.found, scenario::Found::Violation(v) if v.code == case.violation.code)
        });
        assert!(alike, "{}: {found:?}\n{text}", fault.name());
        script.fault = None;
        let mended = scenario::run(&script, &options).failures;
        assert!(mended.is_empty(), "{}: {mended:?}\n{text}", fault.name());
    }
    assert!(
        emitted * 4 >= Fault::ALL.len() * 3,
        "{emitted} of {}",
        Fault::ALL.len()
    );
    assert!(with_calls >= 10, "only {with_calls} ask for tool calls");
}
