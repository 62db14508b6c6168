use tidegate_core::{
    Accept, Attempt, ClaimOrder, Fence, Fingerprint, Generation, LaneName, LaunchOrder, Priority,
    RequestId, RunId, SessionId, Turn, Wall,
};
use tidegate_driver::{CallText, RunNames};

use super::*;

fn open() -> (tempfile::TempDir, SqliteStore) {
    let temp = tempfile::tempdir().expect("a test directory");
    let dir = StateDir::acquire(temp.path()).expect("a new directory is free");
    let store = SqliteStore::open(&dir).expect("a new database opens");
    (temp, store)
}

fn accept(store: &SqliteStore, run: u8, message: &str) -> StoreOp {
    StoreOp::Accept {
        accept: Accept {
            session: SessionId([1; 16]),
            generation: Generation(1),
            epoch: store.epoch(),
            run: RunId([run; 16]),
            body: Fingerprint([run; 16]),
            request: RequestId([1; 16]),
            budget: None,
            turn: Turn::Agent,
            lane: LaneName::Main,
            priority: Priority::Foreground,
            at: Wall(100),
            claim: Some(ClaimOrder {
                attempt: Attempt(1),
                left_ms: None,
                at: Wall(100),
                along: Vec::new(),
                results: Vec::new(),
            }),
        },
        names: RunNames {
            session_key: "s".into(),
            run_key: format!("r{run}"),
        },
        message: message.into(),
    }
}

fn save(store: &SqliteStore, run: u8) -> StoreOp {
    let fence = Fence {
        session: SessionId([1; 16]),
        generation: Generation(1),
        run: RunId([run; 16]),
        attempt: Attempt(1),
    };
    StoreOp::Save {
        fence,
        epoch: store.epoch(),
        from: 0,
        text: "text".into(),
        at: Wall(200),
    }
}

fn runs(store: &SqliteStore) -> i64 {
    store
        .sql
        .query_row("SELECT count(*) FROM inbox", [], |row| row.get(0))
        .expect("a table")
}

fn is_refused(done: &StoreDone, kind: StoreError) -> bool {
    match done {
        StoreDone::Accepted { report, .. } => *report == AcceptReport::Refused(kind),
        StoreDone::Loaded { report, .. } => *report == LoadReport::Refused(kind),
        StoreDone::LookedUp { report, .. } => *report == LookupReport::Refused(kind),
        StoreDone::Launched(report) => *report == LaunchReport::Refused(kind),
        StoreDone::Claimed(report) => *report == ClaimReport::Refused(kind),
        StoreDone::Settled(report) => *report == SettleReport::Refused(kind),
        StoreDone::WasReset(report) => *report == ResetReport::Refused(kind),
        StoreDone::Configured(report) => *report == ConfigureReport::Refused(kind),
        StoreDone::History(history) => history.as_ref().is_err_and(|e| *e == kind),
        StoreDone::Transcript(rows) => rows.as_ref().is_err_and(|e| *e == kind),
        StoreDone::OpenSessions(list) => list.as_ref().is_err_and(|e| *e == kind),
        StoreDone::Sessions(rows) => rows.as_ref().is_err_and(|e| *e == kind),
        StoreDone::Saved { kept } => kept.is_none(),
    }
}

/// P42, law 10: a full disk refuses the batch as a whole, and says that it is full.
#[test]
fn a_full_disk_refuses_the_whole_batch_and_nothing_of_it_is_written() {
    let (_temp, mut store) = open();
    let pages: i64 = store
        .sql
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .expect("a pragma");
    store
        .sql
        .pragma_update(None, "max_page_count", pages + 2)
        .expect("a pragma");
    let large = "x".repeat(1 << 20);
    let batch = vec![
        StoreOp::OpenSessions,
        accept(&store, 1, "small"),
        accept(&store, 2, &large),
        StoreOp::Lookup {
            run: RunId([1; 16]),
        },
    ];
    let done = store.run(batch);
    assert!(
        done.iter().all(|done| is_refused(done, StoreError::Full)),
        "{done:?}"
    );
    assert_eq!(runs(&store), 0);
    let op = accept(&store, 1, "small");
    let done = store.run(vec![op]);
    assert!(matches!(
        done[0],
        StoreDone::Accepted {
            report: AcceptReport::Committed { .. },
            ..
        }
    ));
}

/// P42, law 10: another writer beyond our patience is told as busy; reads go on.
#[test]
fn a_database_that_another_writes_refuses_writes_as_busy_and_reads_on() {
    let (temp, mut store) = open();
    let op = accept(&store, 1, "before");
    store.run(vec![op]);
    let other = Connection::open(temp.path().join(DATABASE)).expect("a second connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("free");
    store.sql.busy_timeout(Duration::ZERO).expect("a setting");
    let batch = vec![
        accept(&store, 2, "after"),
        save(&store, 1),
        StoreOp::OpenSessions,
    ];
    let done = store.run(batch);
    assert!(
        done.iter().all(|done| is_refused(done, StoreError::Busy)),
        "{done:?}"
    );
    let reads = vec![
        StoreOp::OpenSessions,
        StoreOp::Lookup {
            run: RunId([1; 16]),
        },
    ];
    let done = store.run(reads);
    assert!(matches!(&done[0], StoreDone::OpenSessions(Ok(list)) if list.len() == 1));
    assert!(matches!(
        &done[1],
        StoreDone::LookedUp {
            report: LookupReport::Open,
            ..
        }
    ));
    other.execute_batch("ROLLBACK").expect("it is open");
    assert_eq!(runs(&store), 1);
    let op = accept(&store, 2, "after");
    store.run(vec![op]);
    assert_eq!(runs(&store), 2);
}

/// Law 10: a message that no row can hold is refused, and takes no other with it.
#[test]
fn an_operation_that_can_not_be_done_takes_no_other_with_it() {
    let (_temp, mut store) = open();
    store
        .sql
        .execute_batch(
            "CREATE TRIGGER odd BEFORE INSERT ON inbox WHEN NEW.message = 'odd'
         BEGIN SELECT raise(ABORT, 'odd'); END",
        )
        .expect("a trigger");
    let batch = vec![
        accept(&store, 1, "even"),
        accept(&store, 2, "odd"),
        save(&store, 1),
        accept(&store, 3, "even"),
    ];
    let done = store.run(batch);
    assert!(matches!(
        done[0],
        StoreDone::Accepted {
            report: AcceptReport::Committed { .. },
            ..
        }
    ));
    assert!(is_refused(&done[1], StoreError::Io), "{:?}", done[1]);
    assert!(matches!(
        done[3],
        StoreDone::Accepted {
            report: AcceptReport::Committed { .. },
            ..
        }
    ));
    assert_eq!(runs(&store), 2);
}

/// P42: saves alone go without a sync, and nothing after them does.
#[test]
fn only_a_batch_of_saves_alone_commits_without_a_sync() {
    let (_temp, mut store) = open();
    let op = accept(&store, 1, "m");
    store.run(vec![op]);
    let full = |store: &SqliteStore| -> bool {
        let level: i64 = store
            .sql
            .query_row("PRAGMA synchronous", [], |row| row.get(0))
            .expect("a pragma");
        level == 2
    };
    assert!(full(&store));
    // A trigger sees the level that its transaction runs under.
    store
        .sql
        .execute_batch(
            "CREATE TABLE seen (level INTEGER);
         CREATE TRIGGER look AFTER INSERT ON partial BEGIN
             INSERT INTO seen SELECT synchronous FROM pragma_synchronous; END;",
        )
        .expect("a trigger");
    store
        .sql
        .set_db_config(
            rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
            true,
        )
        .expect("a setting");
    let op = save(&store, 1);
    store.run(vec![op]);
    assert!(full(&store));
    store
        .sql
        .execute("DELETE FROM partial", [])
        .expect("a table");
    let batch = vec![save(&store, 1), accept(&store, 2, "m")];
    store.run(batch);
    let mut levels = store
        .sql
        .prepare("SELECT level FROM seen ORDER BY rowid")
        .expect("a table");
    let levels: Vec<i64> = levels
        .query_map([], |row| row.get(0))
        .expect("rows")
        .map_while(Result::ok)
        .collect();
    assert_eq!(levels, [1, 2]);
}

/// I34, law 12: a tool starts on the word of this commit, so it survives a power failure, whatever
/// shares its batch.
#[test]
fn a_launch_checkpoint_is_committed_with_a_sync() {
    let (_temp, mut store) = open();
    let op = accept(&store, 1, "m");
    store.run(vec![op]);
    store
        .sql
        .execute_batch(
            "CREATE TABLE seen (level INTEGER);
             CREATE TRIGGER look AFTER INSERT ON calls BEGIN
                 INSERT INTO seen SELECT synchronous FROM pragma_synchronous; END;",
        )
        .expect("a trigger");
    store
        .sql
        .set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, true)
        .expect("a setting");
    let StoreOp::Save { fence, epoch, .. } = save(&store, 1) else {
        unreachable!("a save")
    };
    let launch = StoreOp::Launch {
        fence,
        epoch,
        launch: LaunchOrder {
            bytes: 0,
            calls: 1,
            start: vec![0],
            ask: Vec::new(),
            at: Wall(300),
        },
        text: String::new(),
        calls: vec![CallText::default()],
    };
    let batch = vec![save(&store, 1), launch, save(&store, 1)];
    let done = store.run(batch);
    assert!(matches!(
        done[1],
        StoreDone::Launched(LaunchReport::Committed)
    ));
    let level: i64 = store
        .sql
        .query_row("SELECT level FROM seen", [], |row| row.get(0))
        .expect("it looked");
    assert_eq!(level, 2);
}

/// Law 3: the migration turns foreign keys off for itself alone.
#[test]
fn an_open_store_holds_its_foreign_keys() {
    let (_temp, store) = open();
    let on: bool = store
        .sql
        .query_row("PRAGMA foreign_keys", [], |row| row.get(0))
        .expect("a pragma");
    assert!(on);
}

/// Spec 4.3: nobody takes the directory while its database is open.
#[test]
fn an_open_store_keeps_the_directory() {
    let temp = tempfile::tempdir().expect("a test directory");
    let dir = StateDir::acquire(temp.path()).expect("a new directory is free");
    let store = SqliteStore::open(&dir).expect("a new database opens");
    drop(dir);
    StateDir::acquire_while(temp.path(), || false).expect_err("the store has it");
    drop(store);
    StateDir::acquire_while(temp.path(), || false).expect("free");
}

/// Secrets never reach a log.
#[test]
fn a_store_does_not_show_its_key() {
    let (_temp, store) = open();
    let said = format!("{store:?}");
    assert_eq!(
        said,
        format!("SqliteStore {{ epoch: {:?}, .. }}", store.epoch())
    );
}
