//! The command line, where it is nearly right: hints, lists, and nothing made in vain.

use tidegate_tests::tidegate;
use tokio::net::TcpListener;

#[tokio::test]
async fn a_message_without_its_flag_is_told_where_it_belongs() {
    let said = tidegate(&["agent", "hello", "there"]).await;
    assert_eq!(said.code, Some(2), "{said:#?}");
    assert!(said.stderr.contains("agent -m 'hello there'"), "{said:#?}");
}

#[tokio::test]
async fn the_faults_are_listed_on_request_and_a_campaign_needs_an_end() {
    let said = tidegate(&["sim", "run", "--fault", "list"]).await;
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (Some(0), ""),
        "{said:#?}"
    );
    let replay = tidegate(&["sim", "replay", "--fault", "list"]).await;
    assert_eq!((replay.code, &replay.stdout), (Some(0), &said.stdout));
    let names = said.stdout.lines().map(|line| line.split(' ').next());
    let names: Vec<_> = names.map(Option::unwrap_or_default).collect();
    assert!(names.contains(&"canary"), "{said:#?}");
    for name in names {
        let line = [
            "sim",
            "run",
            "--seeds",
            "0..1",
            "--threads",
            "1",
            "--fault",
            name,
        ];
        let said = tidegate(&line).await;
        assert_ne!(said.code, Some(2), "{name}: {said:#?}");
    }
    for (command, flag) in [("run", "--seeds"), ("replay", "--seed")] {
        let said = tidegate(&["sim", command, "--fault", "canary"]).await;
        assert_eq!(said.code, Some(2), "{said:#?}");
        assert!(said.stderr.contains(flag), "{said:#?}");
    }
}

/// A start that is refused for its port leaves no state behind.
#[tokio::test]
async fn a_port_in_use_is_noticed_before_anything_is_made() {
    let root = tempfile::tempdir().expect("a directory for the state");
    let taken = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let missing = root.path().join("state");
    for dir in [root.path(), &missing] {
        let text = dir.to_str().expect("the directory's name is text");
        let line = ["gateway", "run", "--port", &port, "--state-dir", text];
        let said = tidegate(&line).await;
        assert_eq!(said.code, Some(4), "{said:#?}");
        assert!(said.stderr.contains("is in use"), "{said:#?}");
        let left = root.path().read_dir().expect("it is there").count();
        assert_eq!(left, 0, "{text} was made or filled");
    }
}
