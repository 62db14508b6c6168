use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use super::*;

const OWNED_BY_CHILD: &str = "TIDEGATE_TEST_OWNED_BY_CHILD";

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().expect("a test directory")
}

fn at_once(path: &Path) -> Result<StateDir, StateDirError> {
    StateDir::acquire_while(path, || false)
}

/// Spec 4.3, R56
#[test]
fn a_directory_is_made_for_its_user_alone_and_names_its_owner() {
    let temp = temp();
    let path = temp.path().join("a/b");
    let dir = StateDir::acquire(&path).expect("free");
    assert_eq!(dir.path(), path);
    let mode = fs::metadata(&path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let owner = Owner::read(&path.join(LOCK)).expect("named");
    assert_eq!(owner.pid, std::process::id());
    assert!(owner.since_ms > 0);
}

/// Spec 4.3, R56: one owner, whose name others are told.
#[test]
fn a_second_owner_is_refused_and_told_the_first() {
    let temp = temp();
    let first = at_once(temp.path()).expect("free");
    let owner = Owner::read(&temp.path().join(LOCK)).expect("named");
    let mut looks = 0;
    let error = StateDir::acquire_while(temp.path(), || {
        looks += 1;
        looks < 3
    })
    .expect_err("owned");
    assert_eq!(looks, 3);
    let said = error.to_string();
    assert!(said.contains(&owner.to_string()), "{said}");
    assert!(
        said.contains(&format!("process {}", std::process::id())),
        "{said}"
    );
    drop(first);
    at_once(temp.path()).expect("free again");
}

/// Spec 4.3: an owner that goes while another waits is replaced.
#[test]
fn an_owner_that_goes_meanwhile_is_replaced() {
    let temp = temp();
    let mut first = Some(at_once(temp.path()).expect("free"));
    StateDir::acquire_while(temp.path(), || {
        first = None;
        true
    })
    .expect("free at the second look");
}

/// Not a test of its own: the process that [`a_dead_owner_is_replaced_at_once`] kills.
#[test]
#[ignore = "run as a child by another test"]
fn child_that_owns_a_directory_until_it_is_killed() {
    let Some(path) = std::env::var_os(OWNED_BY_CHILD) else {
        return;
    };
    let _dir = at_once(Path::new(&path)).expect("free");
    println!("\nowned");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

fn child_that_owns(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("a test has a program"))
        .args(["--exact", "--ignored", "--nocapture"])
        .arg("state_dir::tests::child_that_owns_a_directory_until_it_is_killed")
        .env(OWNED_BY_CHILD, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child of the test's own program");
    let stdout = child.stdout.take().expect("piped");
    let owned = BufReader::new(stdout)
        .lines()
        .map_while(Result::ok)
        .any(|line| line == "owned");
    assert!(owned, "the child could not take the directory");
    child
}

/// Spec 4.3: the lock dies with its process, however it dies.
#[test]
fn a_dead_owner_is_replaced_at_once() {
    let temp = temp();
    let mut child = child_that_owns(temp.path());
    let said = at_once(temp.path())
        .expect_err("owned by the child")
        .to_string();
    assert!(said.contains(&format!("process {}", child.id())), "{said}");
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    at_once(temp.path()).expect("its owner is dead");
}

/// Law 10
#[test]
fn what_is_no_directory_is_refused_by_its_name() {
    let temp = temp();
    let file = temp.path().join("file");
    fs::write(&file, b"").expect("a test directory is writable");
    let error = at_once(&file).expect_err("a file");
    assert!(
        matches!(&error, StateDirError::NotADirectory { path } if *path == file),
        "{error}"
    );
    let error = at_once(&file.join("below")).expect_err("below a file");
    assert!(matches!(error, StateDirError::Create { .. }), "{error}");
    fs::create_dir_all(temp.path().join("dir").join(LOCK)).expect("a test directory");
    let error = at_once(&temp.path().join("dir")).expect_err("the lock file is a directory");
    assert!(matches!(error, StateDirError::Lock { .. }), "{error}");
    assert!(error.to_string().contains(LOCK), "{error}");
}

/// Law 10: an owner that has not written its name is not given one.
#[test]
fn an_owner_without_a_name_is_not_guessed_at() {
    let temp = temp();
    let _first = at_once(temp.path()).expect("free");
    fs::write(temp.path().join(LOCK), b"{\"pid\":").expect("its own file");
    let said = at_once(temp.path()).expect_err("owned").to_string();
    assert!(said.contains("has not written its name"), "{said}");
}
