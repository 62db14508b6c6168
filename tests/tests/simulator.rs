//! The simulator as a user runs it: one seed is one history, and a finding is small, can be
//! replayed and can be kept.

use tidegate_tests::{Ended, tidegate};

/// Exactly one line, and a digest that the threads do not change.
#[tokio::test]
async fn a_block_of_seeds_ends_with_one_line_of_json() {
    let mut digests = Vec::new();
    for threads in ["1", "3"] {
        let said = tidegate(&[
            "sim",
            "run",
            "--seeds",
            "0..40",
            "--threads",
            threads,
            "--json",
        ])
        .await;
        assert_eq!(
            (said.code, said.stdout.lines().count()),
            (Some(0), 1),
            "{said:#?}"
        );
        let json = said.json();
        assert_eq!(
            (&json["seeds"], &json["violations"]),
            (&40.into(), &0.into()),
            "{json}"
        );
        for figure in [
            "simulatedHours",
            "simulatedHoursPerSecond",
            "inputsPerSecond",
        ] {
            assert!(
                json[figure].as_f64().is_some_and(|figure| figure > 0.0),
                "{figure}: {json}"
            );
        }
        digests.push(
            json["digest"]
                .as_str()
                .expect("a digest is text")
                .to_owned(),
        );
    }
    assert_eq!(digests[0], digests[1]);
}

#[tokio::test]
async fn a_seed_has_one_digest() {
    let digest = |said: &str| {
        let line = said.lines().find(|line| line.starts_with("digest: "));
        line.expect("the digest is printed").to_owned()
    };
    let first = tidegate(&["sim", "replay", "--seed", "4711"]).await;
    assert_eq!(first.code, Some(0), "{first:#?}");
    let second = tidegate(&["sim", "replay", "--seed", "4711"]).await;
    assert_eq!(digest(&first.stdout), digest(&second.stdout));
    let other = tidegate(&["sim", "replay", "--seed", "4712"]).await;
    assert_ne!(digest(&first.stdout), digest(&other.stdout));
}

/// The command that a line of a finding names, without its program.
fn command<'a>(finding: &'a Ended, word: &str) -> Vec<&'a str> {
    let mut lines = finding.stderr.lines().map(str::trim);
    let line = lines.find_map(|line| line.strip_prefix(word));
    let line = line.unwrap_or_else(|| panic!("a line {word:?} in {finding:#?}"));
    let words = line.split_whitespace().skip(1); // the program
    words.collect()
}

/// The code of the first finding.
fn code(finding: &Ended) -> &str {
    let line = finding.stderr.lines().next().unwrap_or_default();
    let mut parts = line.split(": ").skip(1);
    parts
        .next()
        .unwrap_or_else(|| panic!("a code in {finding:#?}"))
}

/// Three planted faults are each found within 500 seeds and printed shrunk: a short timeline
/// that ends with the code, and two lines that find it again, in the whole and in the small.
#[tokio::test]
async fn a_planted_fault_is_printed_shrunk_and_its_lines_reproduce_it() {
    for fault in ["lane-release-lost", "late-append", "waiter-forgotten"] {
        let found = tidegate(&["sim", "run", "--seeds", "0..500", "--fault", fault]).await;
        assert!(matches!(found.code, Some(5 | 6)), "{fault}: {found:#?}");
        let finding = found.stderr.lines().next().expect("a finding is printed");
        let mut lines = found.stderr.lines();
        lines.find(|line| line.trim().starts_with("shrunk from "));
        let timeline: Vec<_> = lines.take_while(|line| line.starts_with("    ")).collect();
        assert!((2..=20).contains(&timeline.len()), "{found:#?}");
        let broken = format!("BROKEN: {}", code(&found));
        assert!(timeline[timeline.len() - 1].contains(&broken), "{found:#?}");

        let whole = tidegate(&command(&found, "whole: ")).await;
        assert_eq!(whole.code, found.code, "{whole:#?}");
        assert_eq!(whole.stderr.lines().next(), Some(finding), "{whole:#?}");
        assert!(whole.stdout.contains("what led to it:"), "{whole:#?}");

        let again = command(&found, "again: ");
        assert!(again.contains(&"--recording"), "{again:?}");
        let small = tidegate(&again).await;
        assert_eq!(
            (small.code, code(&small)),
            (found.code, code(&found)),
            "{small:#?}"
        );
        assert!(small.stdout.contains(timeline[0].trim()), "{small:#?}");
    }
}

/// A script that fails with the code while its fault line stands, and passes without it; and
/// what stands there with other content is not written over.
#[tokio::test]
async fn an_emitted_scenario_fails_before_the_defect_is_mended_and_passes_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let emit = format!("scenario={}", folder.path().display());
    let run = [
        "sim",
        "run",
        "--seeds",
        "0..4",
        "--fault",
        "end-twice",
        "--emit",
        &emit,
    ];
    let found = tidegate(&run).await;
    let script = command(&found, "scenario: ");
    let file = folder.path().join("end-twice-0.scenario");
    let named = file.display().to_string();
    assert_eq!(script, ["scenario", "run", &named], "{found:#?}");
    let failed = tidegate(&script).await;
    assert_eq!(failed.code, found.code, "{failed:#?}");
    assert!(failed.stdout.contains(code(&found)), "{failed:#?}");

    let same = tidegate(&run).await;
    assert_eq!(command(&same, "scenario: "), script, "the same is no clash");

    let text = std::fs::read_to_string(&file).expect("the script is there");
    let (fault, rest): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("fault "));
    assert_eq!(fault.len(), 1, "{text}");
    let mended = rest.join("\n") + "\n";
    std::fs::write(&file, &mended).expect("the script can be written");
    let passed = tidegate(&script).await;
    assert_eq!(passed.code, Some(0), "{passed:#?}");

    let clash = tidegate(&run).await;
    assert!(clash.stderr.contains("was not written"), "{clash:#?}");
    let kept = std::fs::read_to_string(&file).expect("the script is there");
    assert_eq!(kept, mended);
}

/// A failure travels as a file, and one of another format is refused with both versions.
#[tokio::test]
async fn a_recording_replays_from_its_file_and_another_format_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.recording").display().to_string();
    let emit = format!("recording={path}");
    let found = tidegate(&[
        "sim",
        "run",
        "--seeds",
        "0..4",
        "--fault",
        "text-short",
        "--emit",
        &emit,
    ])
    .await;
    let line = command(&found, "recording: ");
    assert_eq!(line, ["sim", "replay", "--file", &path], "{found:#?}");
    let replayed = tidegate(&line).await;
    assert_eq!(
        (replayed.code, code(&replayed)),
        (found.code, code(&found)),
        "{replayed:#?}"
    );

    let text = std::fs::read_to_string(&path).expect("the file is there");
    let line = text.lines().find(|line| line.starts_with("tg"));
    let (version, digits) = line
        .and_then(|line| line.strip_prefix("tg")?.split_once('-'))
        .expect("a recording names its format");
    let other = format!("tg99-{digits}");
    std::fs::write(&path, &other).expect("the file can be written");
    for given in [["--recording", &other], ["--file", &path]] {
        let refused = tidegate(&[&["sim", "replay"][..], &given].concat()).await;
        assert_eq!(refused.code, Some(2), "{refused:#?}");
        for format in ["format 99", &format!("format {version}")] {
            assert!(refused.stderr.contains(format), "{refused:#?}");
        }
    }
}

/// Where a campaign with a goal stops does not depend on the threads either.
#[tokio::test]
async fn a_campaign_stops_when_enough_inputs_were_made() {
    let mut ends = Vec::new();
    for threads in ["1", "3"] {
        let said = tidegate(&[
            "sim",
            "run",
            "--inputs",
            "20000",
            "--threads",
            threads,
            "--json",
        ])
        .await;
        assert_eq!(said.code, Some(0), "{said:#?}");
        let json = said.json();
        ends.push((json["seeds"].clone(), json["digest"].clone()));
    }
    assert_eq!(ends[0], ends[1]);
}

/// A checker that no fault can turn red guards nothing.
#[tokio::test]
async fn the_audit_is_a_table_of_every_fault_and_can_fail() {
    let said = tidegate(&["sim", "audit"]).await;
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (Some(0), ""),
        "{said:#?}"
    );
    let mut lines = said.stdout.lines();
    let head: Vec<_> = lines.next().unwrap_or_default().split("  ").collect();
    assert!(head[0].starts_with("fault"), "{said:#?}");
    let rows: Vec<_> = lines.collect();
    assert!(rows.len() >= 12, "{said:#?}");
    assert!(rows[rows.len() - 1].starts_with("canary "), "{said:#?}");

    let short = tidegate(&["sim", "audit", "--within", "1"]).await;
    assert_eq!(short.code, Some(5), "{short:#?}");
    assert!(short.stderr.contains("not found in 1 seeds"), "{short:#?}");
}

/// A gate that cannot fail judges nothing.
#[tokio::test]
async fn the_canary_fails() {
    let said = tidegate(&[
        "sim", "run", "--seeds", "0..8", "--fault", "canary", "--json",
    ])
    .await;
    assert!(matches!(said.code, Some(5..=8)), "{said:#?}");
    assert_eq!(said.json()["violations"], 8, "{said:#?}");
}
