//! State directories that a gateway can't use: named, with what to do, and left as they were;
//! once they are mended, it starts. The rows of `docs/errors.md` that no other test holds.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tidegate_tests::{Ended, Gateway, tidegate};

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the state")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the directory's name is text")
}

async fn start(dir: &Path) -> Ended {
    tidegate(&["gateway", "run", "--port", "0", "--state-dir", text(dir)]).await
}

fn refused(said: &Ended, needed: &[&str]) {
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(4), ""),
        "{said:#?}"
    );
    for needed in needed {
        assert!(said.stderr.contains(needed), "{needed}: {said:#?}");
    }
}

/// Law 10: a directory that can't be written to is named, with what the system says.
#[tokio::test]
async fn a_state_directory_that_can_not_be_written_is_named() {
    let dir = state();
    let lock = dir.path().join("owner.lock");
    std::fs::create_dir(&lock).expect("a test directory is writable");
    let must = "must be writable by the user who runs the gateway";
    refused(
        &start(dir.path()).await,
        &[text(&lock), "can't be written", must],
    );
    std::fs::remove_dir(&lock).expect("it is empty");

    let mode = |mode| std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(mode));
    mode(0o500).expect("it is ours");
    // The superuser writes wherever it likes: then there is nothing to refuse.
    if std::fs::write(dir.path().join("probe"), "").is_err() {
        refused(
            &start(dir.path()).await,
            &[text(&lock), "can't be written", must],
        );
    }
    mode(0o700).expect("it is ours");
    let gateway = Gateway::start(dir.path(), &[]).await;
    assert_eq!(gateway.stop().await.0, Some(0));
}

/// Where SQLite keeps the number of a database's schema, in its header (file format 1.3).
const SCHEMA_AT: usize = 60;

/// A newer build's database is left alone, by an older one that says so.
#[tokio::test]
async fn a_state_directory_of_a_newer_schema_is_refused_and_left_as_it_was() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    assert_eq!(gateway.stop().await.0, Some(0));
    let file = dir.path().join("tidegate.sqlite3");
    let ours = std::fs::read(&file).expect("the gateway made it");
    let mut newer = ours.clone();
    newer[SCHEMA_AT..SCHEMA_AT + 4].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&file, &newer).expect("it is ours");
    let said = start(dir.path()).await;
    refused(
        &said,
        &[text(&file), "has schema 99", "start the newer build"],
    );
    assert_eq!(std::fs::read(&file).expect("it is there"), newer);
    std::fs::write(&file, &ours).expect("it is ours");
    let gateway = Gateway::start(dir.path(), &[]).await;
    assert_eq!(gateway.stop().await.0, Some(0));
}

/// Law 10: what is no database is not taken for an empty one.
#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_was() {
    let dir = state();
    let file = dir.path().join("tidegate.sqlite3");
    let rubbish = "somebody's notes, in the wrong place";
    std::fs::write(&file, rubbish).expect("a test directory is writable");
    let said = start(dir.path()).await;
    refused(
        &said,
        &[text(&file), "can't be used", "is a Tidegate database"],
    );
    assert_eq!(
        std::fs::read_to_string(&file).expect("it is there"),
        rubbish
    );
    std::fs::remove_file(&file).expect("it is ours");
    let gateway = Gateway::start(dir.path(), &[]).await;
    assert_eq!(gateway.stop().await.0, Some(0));
}

/// A token that others can read opens nothing, until its file is closed.
#[tokio::test]
async fn a_token_that_others_can_read_is_refused_by_gateway_and_client() {
    let dir = state();
    let file = dir.path().join("token");
    std::fs::write(&file, "of-my-own\n").expect("a test directory is writable");
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode));
    mode(0o644).expect("it is ours");
    let needed = [text(&file), "has mode 644", "chmod 600"];
    let said = start(dir.path()).await;
    refused(&said, &needed);
    assert!(!said.stderr.contains("of-my-own"), "{said:#?}");
    refused(
        &tidegate(&["gateway", "health", "--state-dir", text(dir.path())]).await,
        &needed,
    );
    mode(0o600).expect("it is ours");
    let gateway = Gateway::start(dir.path(), &[]).await;
    assert_eq!(gateway.run(&["gateway", "health"]).await.code, Some(0));
}
