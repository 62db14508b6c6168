//! The simulator as a user runs it: one seed is one history, and a finding can be replayed.

use tidegate_tests::tidegate;

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

/// Three planted faults are each found within 500 seeds, and the printed
/// line finds them again.
#[tokio::test]
async fn a_planted_fault_is_found_and_its_line_reproduces_it() {
    for fault in ["lane-release-lost", "late-append", "waiter-forgotten"] {
        let found = tidegate(&["sim", "run", "--seeds", "0..500", "--fault", fault]).await;
        assert!(matches!(found.code, Some(5 | 6)), "{fault}: {found:#?}");
        let mut lines = found.stderr.lines();
        let finding = lines.next().expect("a finding is printed");
        let again = lines
            .next()
            .and_then(|line| line.trim().strip_prefix("again: "));
        let (_, again) = again
            .expect("the line that repeats it")
            .split_once(" sim ")
            .expect("a command");
        let mut line = vec!["sim"];
        line.extend(again.split(' '));
        let replayed = tidegate(&line).await;
        assert_eq!(replayed.code, found.code, "{replayed:#?}");
        assert_eq!(
            replayed.stderr.lines().next(),
            Some(finding),
            "{replayed:#?}"
        );
        assert!(replayed.stdout.contains("what led to it:"), "{replayed:#?}");
    }
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
