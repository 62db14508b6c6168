//! A store on a directory of its own, and orders in few words.
//!
//! Runs and sessions are numbers; run 7 has key `run-7`, message `message 7` and body 7.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use tidegate_core::{
    Accept, AcceptReport, Attempt, CallEnd, CallResult, Claim, ClaimOrder, ClaimReport,
    ConfigureReport, DropPolicy, Epoch, Failure, Fence, Fingerprint, Generation, LaneName,
    LaunchOrder, LaunchReport, LoadReport, LookupReport, OpenRun, Outcome, Priority, QueueMode,
    QueueOverride, Reply, RequestId, ResetReport, RunId, SessionId, SettleReport, Speaker,
    Terminal, Turn, Wall,
};
use tidegate_driver::{
    CallText, History, HistoryQuery, Role, RowMark, RunNames, SessionRow, Store, StoreDone,
    StoreOp, StoredText, TranscriptRow,
};
use tidegate_store::{SqliteStore, StateDir};

pub(crate) fn session(n: u8) -> SessionId {
    SessionId::from_u128(0x5e55_0000 + u128::from(n))
}

pub(crate) fn run(n: u8) -> RunId {
    RunId::from_u128(0x4000 + u128::from(n))
}

pub(crate) fn names(session: u8, run: u8) -> RunNames {
    RunNames {
        session_key: format!("session-{session}"),
        run_key: format!("run-{run}"),
    }
}

pub(crate) fn fence(session_n: u8, run_n: u8, attempt: u32) -> Fence {
    Fence {
        session: session(session_n),
        generation: Generation(1),
        run: run(run_n),
        attempt: Attempt(attempt),
    }
}

pub(crate) fn order(attempt: u32, left_ms: Option<u64>, at: u64) -> ClaimOrder {
    ClaimOrder {
        attempt: Attempt(attempt),
        left_ms,
        at: Wall(at),
        along: Vec::new(),
        results: Vec::new(),
    }
}

/// A claim that takes these runs along.
pub(crate) fn order_along(attempt: u32, at: u64, along: &[u8]) -> ClaimOrder {
    ClaimOrder {
        along: along.iter().map(|&n| run(n)).collect(),
        ..order(attempt, Some(10_000), at)
    }
}

/// A chat message of a user, with its mode.
pub(crate) fn chat(queue: QueueMode) -> Turn {
    Turn::Chat {
        queue: Some(queue),
        route: Fingerprint::from_u128(0x40),
        speaker: Speaker::User,
    }
}

/// The end of a run that was accepted at 100 and began at 200.
pub(crate) fn terminal(session_n: u8, run_n: u8, attempt: u32, outcome: Outcome) -> Terminal {
    Terminal {
        run: run(run_n),
        session: session(session_n),
        outcome,
        accepted_at: Wall(100),
        started_at: (attempt > 0).then_some(Wall(200)),
        ended_at: Wall(900),
        attempt: Attempt(attempt),
        reply: Reply::Empty,
        detail: false,
        turn: None,
    }
}

pub(crate) fn reply(text: &str) -> StoredText {
    StoredText {
        reply: Some(text.into()),
        ..StoredText::default()
    }
}

pub(crate) const FAILED: Outcome = Outcome::Failed(Failure::Incomplete);

/// Calls `c0`, `c1` and so on of `exec`, each with its number as the arguments.
pub(crate) fn calls(n: u16) -> Vec<CallText> {
    let call = |call| CallText {
        id: format!("c{call}"),
        name: "exec".into(),
        arguments: format!("{{\"n\":{call}}}"),
    };
    (0..n).map(call).collect()
}

/// Results with these ends, and outputs `out 0`, `out 1` and so on.
pub(crate) fn results(ends: &[(u16, CallEnd)]) -> (Vec<CallResult>, Vec<String>) {
    let result = |&(call, end): &(u16, CallEnd)| (CallResult { call, end }, format!("out {call}"));
    ends.iter().map(result).unzip()
}

/// A store, its directory, and the orders.
pub(crate) struct Kit {
    store: Option<SqliteStore>,
    dir: StateDir,
    _temp: TempDir,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().expect("a test directory");
        let dir = StateDir::acquire(temp.path()).expect("a new directory is free");
        let store = SqliteStore::open(&dir).expect("a new database opens");
        Self {
            store: Some(store),
            dir,
            _temp: temp,
        }
    }

    /// A kit on a copy of this one's files, as a crash at this instant would leave them.
    pub(crate) fn crashed(&self) -> Self {
        let temp = tempfile::tempdir().expect("a test directory");
        for name in ["tidegate.sqlite3", "tidegate.sqlite3-wal"] {
            std::fs::copy(self.dir.path().join(name), temp.path().join(name))
                .expect("an open database has both files");
        }
        Self::on(temp)
    }

    pub(crate) fn on(temp: TempDir) -> Self {
        let dir = StateDir::acquire(temp.path()).expect("a copied directory is free");
        let store = SqliteStore::open(&dir).expect("a copied database opens");
        Self {
            store: Some(store),
            dir,
            _temp: temp,
        }
    }

    /// Closes the database and opens it again, as a restart does.
    pub(crate) fn reopen(&mut self) {
        self.store = None;
        self.store = Some(SqliteStore::open(&self.dir).expect("a closed database opens"));
    }

    pub(crate) fn dir(&self) -> &StateDir {
        &self.dir
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn store(&mut self) -> &mut SqliteStore {
        self.store.as_mut().expect("open but while it reopens")
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.store
            .as_ref()
            .expect("open but while it reopens")
            .epoch()
    }

    /// A second connection, as a person with a database tool has one.
    pub(crate) fn raw(&self) -> Connection {
        raw(self.dir.path())
    }

    pub(crate) fn run(&mut self, batch: Vec<StoreOp>) -> Vec<StoreDone> {
        let len = batch.len();
        let done = self.store().run(batch);
        assert_eq!(done.len(), len, "one result for each operation");
        done
    }

    pub(crate) fn one(&mut self, op: StoreOp) -> StoreDone {
        self.run(vec![op]).remove(0)
    }

    pub(crate) fn accept_op(&self, session_n: u8, run_n: u8, claim: Option<ClaimOrder>) -> StoreOp {
        StoreOp::Accept {
            accept: Accept {
                session: session(session_n),
                generation: Generation(1),
                epoch: self.epoch(),
                run: run(run_n),
                body: Fingerprint::from_u128(run_n.into()),
                request: RequestId::from_u128(1),
                budget: None,
                turn: Turn::Agent,
                lane: LaneName::Main,
                priority: Priority::Foreground,
                at: Wall(100),
                claim,
            },
            names: names(session_n, run_n),
            message: format!("message {run_n}"),
        }
    }

    /// Accepts a chat message that waits.
    pub(crate) fn say(&mut self, session_n: u8, run_n: u8, queue: QueueMode) -> AcceptReport {
        let mut op = self.accept_op(session_n, run_n, None);
        if let StoreOp::Accept { accept, .. } = &mut op {
            accept.turn = chat(queue);
        }
        accepted(self.one(op)).0
    }

    /// A claim of a run that takes others along, at 300.
    pub(crate) fn claim_along(
        &mut self,
        (session_n, run_n, attempt): (u8, u8, u32),
        along: &[u8],
    ) -> ClaimReport {
        let epoch = self.epoch();
        claimed(&self.one(StoreOp::Claim {
            fence: fence(session_n, run_n, attempt),
            epoch,
            claim: order_along(attempt, 300, along),
            outputs: Vec::new(),
        }))
    }

    /// Ends a waiting message that gave way.
    pub(crate) fn drop_waiting(
        &mut self,
        session_n: u8,
        run_n: u8,
        by: DropPolicy,
    ) -> SettleReport {
        let outcome = Outcome::Dropped { by };
        self.settle((session_n, run_n, 0), outcome, StoredText::default())
    }

    /// Begins the generation after this one, at 500.
    pub(crate) fn reset(&mut self, session_n: u8, generation: u64) -> ResetReport {
        let op = StoreOp::Reset {
            session: session(session_n),
            session_key: names(session_n, 0).session_key,
            generation: Generation(generation),
            epoch: self.epoch(),
            at: Wall(500),
        };
        match self.one(op) {
            StoreDone::WasReset(report) => report,
            other => panic!("a reset gives no {other:?}"),
        }
    }

    pub(crate) fn configure(
        &mut self,
        session_n: u8,
        generation: u64,
        queue: QueueOverride,
    ) -> ConfigureReport {
        let op = StoreOp::Configure {
            session: session(session_n),
            session_key: names(session_n, 0).session_key,
            generation: Generation(generation),
            epoch: self.epoch(),
            queue,
            at: Wall(500),
        };
        match self.one(op) {
            StoreDone::Configured(report) => report,
            other => panic!("settings give no {other:?}"),
        }
    }

    pub(crate) fn history(&mut self, session_n: u8, after_seq: Option<u64>, limit: u32) -> History {
        match self.one(StoreOp::History {
            session: session(session_n),
            query: HistoryQuery { after_seq, limit },
        }) {
            StoreDone::History(history) => history.expect("the disk works"),
            other => panic!("a history is no {other:?}"),
        }
    }

    pub(crate) fn accept(&mut self, session_n: u8, run_n: u8) -> AcceptReport {
        let op = self.accept_op(session_n, run_n, None);
        accepted(self.one(op)).0
    }

    /// Accepts with attempt 1's claim, at 200.
    pub(crate) fn start(&mut self, session_n: u8, run_n: u8) -> AcceptReport {
        let op = self.accept_op(session_n, run_n, Some(order(1, Some(10_000), 200)));
        accepted(self.one(op)).0
    }

    pub(crate) fn claim_at(&mut self, fence: Fence, at: u64) -> ClaimReport {
        let claim = order(fence.attempt.0, Some(10_000), at);
        let epoch = self.epoch();
        claimed(&self.one(StoreOp::Claim {
            fence,
            epoch,
            claim,
            outputs: Vec::new(),
        }))
    }

    pub(crate) fn claim(&mut self, session_n: u8, run_n: u8, attempt: u32) -> ClaimReport {
        self.claim_at(fence(session_n, run_n, attempt), 300)
    }

    pub(crate) fn save_op(&self, fence: Fence, from: u64, text: &str, at: u64) -> StoreOp {
        StoreOp::Save {
            fence,
            epoch: self.epoch(),
            from,
            text: text.into(),
            at: Wall(at),
        }
    }

    /// Saves a piece, and says how much of the reply is kept after it.
    pub(crate) fn save(&mut self, fence: Fence, from: u64, text: &str) -> Option<u64> {
        let op = self.save_op(fence, from, text, 400);
        match self.one(op) {
            StoreDone::Saved { kept } => kept,
            other => panic!("not saved: {other:?}"),
        }
    }

    pub(crate) fn settle_as(
        &mut self,
        fence: Fence,
        terminal: Terminal,
        text: StoredText,
    ) -> SettleReport {
        let epoch = self.epoch();
        settled(&self.one(StoreOp::Settle {
            fence,
            epoch,
            terminal,
            text,
            results: Vec::new(),
            outputs: Vec::new(),
        }))
    }

    pub(crate) fn settle(
        &mut self,
        (session_n, run_n, attempt): (u8, u8, u32),
        outcome: Outcome,
        text: StoredText,
    ) -> SettleReport {
        let terminal = terminal(session_n, run_n, attempt, outcome);
        self.settle_as(fence(session_n, run_n, attempt), terminal, text)
    }

    /// A checkpoint of an answer `asks`, at 400.
    pub(crate) fn launch_op(&self, fence: Fence, n: u16, start: &[u16], ask: &[u16]) -> StoreOp {
        StoreOp::Launch {
            fence,
            epoch: self.epoch(),
            launch: LaunchOrder {
                bytes: 4,
                calls: n,
                start: start.to_vec(),
                ask: ask.to_vec(),
                at: Wall(400),
            },
            text: "asks".into(),
            calls: calls(n),
        }
    }

    pub(crate) fn launch(
        &mut self,
        fence: Fence,
        n: u16,
        start: &[u16],
        ask: &[u16],
    ) -> LaunchReport {
        let op = self.launch_op(fence, n, start, ask);
        launched(&self.one(op))
    }

    /// A claim with the results of calls, at 500.
    pub(crate) fn claim_with(&mut self, fence: Fence, ends: &[(u16, CallEnd)]) -> ClaimReport {
        let (results, outputs) = results(ends);
        let claim = ClaimOrder {
            results,
            ..order(fence.attempt.0, Some(10_000), 500)
        };
        let epoch = self.epoch();
        claimed(&self.one(StoreOp::Claim {
            fence,
            epoch,
            claim,
            outputs,
        }))
    }

    /// An end with the results of calls, at 900.
    pub(crate) fn settle_with(
        &mut self,
        (session_n, run_n, attempt): (u8, u8, u32),
        outcome: Outcome,
        text: StoredText,
        ends: &[(u16, CallEnd)],
    ) -> SettleReport {
        let (results, outputs) = results(ends);
        let epoch = self.epoch();
        settled(&self.one(StoreOp::Settle {
            fence: fence(session_n, run_n, attempt),
            epoch,
            terminal: terminal(session_n, run_n, attempt, outcome),
            text,
            results,
            outputs,
        }))
    }

    pub(crate) fn complete(&mut self, session_n: u8, run_n: u8, text: &str) -> SettleReport {
        self.settle((session_n, run_n, 1), Outcome::Completed, reply(text))
    }

    pub(crate) fn load(&mut self, session_n: u8) -> (LoadReport, Vec<RunNames>) {
        match self.one(StoreOp::Load {
            session: session(session_n),
        }) {
            StoreDone::Loaded { report, names } => (report, names),
            other => panic!("a load gives no {other:?}"),
        }
    }

    pub(crate) fn open_runs(&mut self, session_n: u8) -> Vec<OpenRun> {
        match self.load(session_n).0 {
            LoadReport::Loaded { open, .. } => open,
            other => panic!("not loaded: {other:?}"),
        }
    }

    pub(crate) fn lookup(&mut self, run_n: u8) -> (LookupReport, StoredText) {
        match self.one(StoreOp::Lookup { run: run(run_n) }) {
            StoreDone::LookedUp { report, text, .. } => (report, text),
            other => panic!("a lookup gives no {other:?}"),
        }
    }

    pub(crate) fn transcript(&mut self, session_n: u8) -> Vec<TranscriptRow> {
        match self.one(StoreOp::Transcript {
            session: session(session_n),
        }) {
            StoreDone::Transcript(rows) => rows.expect("the disk works"),
            other => panic!("a transcript is no {other:?}"),
        }
    }

    /// The transcript as lines: `1 user whole run-7: text`, and `4 tool c0 Ok run-7: output`.
    pub(crate) fn lines(&mut self, session_n: u8) -> Vec<String> {
        let row = |row: TranscriptRow| {
            let role = match row.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
            };
            let mark = match row.mark {
                RowMark::Whole => "whole",
                RowMark::Calls => "calls",
                RowMark::Partial => "partial",
                RowMark::Interrupted => "interrupted",
                RowMark::Dropped { told: false } => "dropped",
                RowMark::Dropped { told: true } => "summarized",
            };
            let mark = match &row.answers {
                Some(answer) => format!("{} {:?}", answer.id, answer.end),
                None => mark.to_owned(),
            };
            format!("{} {role} {mark} {}: {}", row.seq, row.run_key, row.text)
        };
        self.transcript(session_n).into_iter().map(row).collect()
    }

    pub(crate) fn sessions(&mut self, limit: u32) -> Vec<SessionRow> {
        match self.one(StoreOp::Sessions { limit }) {
            StoreDone::Sessions(rows) => rows.expect("the disk works"),
            other => panic!("sessions are no {other:?}"),
        }
    }

    pub(crate) fn open_sessions(&mut self) -> Vec<SessionId> {
        match self.one(StoreOp::OpenSessions) {
            StoreDone::OpenSessions(list) => list.expect("the disk works"),
            other => panic!("open sessions are no {other:?}"),
        }
    }
}

pub(crate) fn raw(dir: &Path) -> Connection {
    let sql = Connection::open(dir.join("tidegate.sqlite3")).expect("the database is there");
    sql.pragma_update(None, "foreign_keys", true)
        .expect("a pragma");
    sql
}

pub(crate) fn accepted(done: StoreDone) -> (AcceptReport, StoredText) {
    match done {
        StoreDone::Accepted { report, text } => (report, text),
        other => panic!("an accept gives no {other:?}"),
    }
}

pub(crate) fn claimed(done: &StoreDone) -> ClaimReport {
    match done {
        StoreDone::Claimed(report) => *report,
        other => panic!("a claim gives no {other:?}"),
    }
}

pub(crate) fn launched(done: &StoreDone) -> LaunchReport {
    match done {
        StoreDone::Launched(report) => *report,
        other => panic!("a launch gives no {other:?}"),
    }
}

pub(crate) fn settled(done: &StoreDone) -> SettleReport {
    match done {
        StoreDone::Settled(report) => *report,
        other => panic!("a settle gives no {other:?}"),
    }
}

pub(crate) const PLAIN: Claim = Claim { superseded: None };
pub(crate) const CLAIMED: ClaimReport = ClaimReport::Committed(PLAIN);
pub(crate) const LAUNCHED: LaunchReport = LaunchReport::Committed;
pub(crate) const ACCEPTED: AcceptReport = AcceptReport::Committed { claim: None };
pub(crate) const STARTED: AcceptReport = AcceptReport::Committed { claim: Some(PLAIN) };
