//! Turns: messages to sessions over one connection, answered by a model that answers at once.
//!
//! Client and model live in this process, on one thread. A session sends its next message
//! when it has its final answer, so that as many turns are under way as there are sessions.

use std::collections::BTreeMap;
use std::time::Duration;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_tests::{Client, Frame, Gateway};

use crate::machine::{memory, processor_time};
use crate::measured::{Measured, median};
use crate::model::Model;
use crate::start::scratch;

/// Turns before anything is measured: statements are prepared, buffers have grown.
const WARM_UP: usize = 50;
/// Turns whose processor time is measured, and how many of them a session has.
const TURNS: usize = 1_000;
const TURNS_A_SESSION: usize = 10;
/// A long session: its last turns are measured.
const LONG_SESSION: usize = 400;
const LONG_MEASURED: usize = 200;
/// Rounds of which the middle one counts.
const ROUNDS: usize = 3;
/// Sessions at once, and the turns of each in a round.
const LOADS: [(&str, usize, usize); 3] = [
    ("turns-1", 1, 200),
    ("turns-16", 16, 40),
    ("turns-64", 64, 20),
];

/// A gateway under a model that answers at once, and its one client.
pub struct Bench {
    /// The gateway.
    pub gateway: Gateway,
    client: Client,
    _model: Model,
    sessions: usize,
    _dir: TempDir,
}

impl Bench {
    /// Starts all of it and warms it up.
    ///
    /// # Errors
    /// If there is no directory, or a turn fails.
    pub async fn start() -> Result<Self, String> {
        let dir = scratch()?;
        let model = Model::start()
            .await
            .map_err(|error| format!("the model: {error}"))?;
        let gateway = Gateway::with_provider(dir.path(), &model.url()).await;
        let client = gateway.client().await;
        let mut bench = Self {
            gateway,
            client,
            _model: model,
            sessions: 0,
            _dir: dir,
        };
        bench.turns(1, WARM_UP).await?;
        Ok(bench)
    }

    /// Runs `each` turns in each of so many new sessions, and gives how long it took.
    ///
    /// # Errors
    /// The answer of a turn that failed.
    pub async fn turns(&mut self, sessions: usize, each: usize) -> Result<Duration, String> {
        let first = self.sessions;
        self.sessions += sessions;
        self.turns_of(first..first + sessions, 0..each).await
    }

    async fn turns_of(
        &mut self,
        sessions: std::ops::Range<usize>,
        each: std::ops::Range<usize>,
    ) -> Result<Duration, String> {
        let begun = Instant::now();
        let mut open = BTreeMap::new();
        for session in sessions {
            open.insert(self.send(session, each.start).await, (session, each.start));
        }
        while !open.is_empty() {
            let Some((id, end)) = self.end().await? else {
                continue;
            };
            let Some((session, turn)) = open.remove(&id) else {
                continue;
            };
            if end["status"] != "ok" {
                return Err(format!("a turn ended with {end}"));
            }
            if turn + 1 < each.end {
                open.insert(self.send(session, turn + 1).await, (session, turn + 1));
            }
        }
        Ok(begun.elapsed())
    }

    async fn send(&mut self, session: usize, turn: usize) -> String {
        let params = json!({
            "sessionKey": format!("agent:main:bench-{session}"),
            "idempotencyKey": format!("{session}-{turn}"),
            "message": format!("What is turn {turn} of session {session}?"),
        });
        self.client.send("agent", params).await
    }

    /// The next frame, if it ends a turn: its request and its payload.
    async fn end(&mut self) -> Result<Option<(String, Value)>, String> {
        let mut frame = match self.client.frame().await {
            Frame::Json(frame) => frame,
            Frame::Closed(close) => return Err(format!("the connection was closed: {close:?}")),
        };
        if frame["type"] != "res" {
            return Ok(None);
        }
        if frame["ok"] != true {
            return Err(format!("a message was refused: {}", frame["error"]));
        }
        let id = frame["id"].as_str().unwrap_or_default().to_owned();
        let payload = frame["payload"].take();
        Ok((payload["status"] != "accepted").then_some((id, payload)))
    }

    fn processor_time(&self) -> Result<Duration, String> {
        processor_time(Some(self.gateway.pid())).map_err(|error| error.to_string())
    }
}

/// Own processor time of a turn, in short sessions and late in a long one, and memory then.
///
/// # Errors
/// As [`Bench::turns`].
pub async fn turn() -> Result<Vec<Measured>, String> {
    let mut bench = Bench::start().await?;
    let before = bench.processor_time()?;
    for _ in 0..TURNS / TURNS_A_SESSION {
        bench.turns(1, TURNS_A_SESSION).await?;
    }
    let short = a_turn(bench.processor_time()? - before, TURNS);
    let used = memory(bench.gateway.pid()).map_err(|error| error.to_string())?;

    let session = bench.sessions;
    bench.sessions += 1;
    let measured = LONG_SESSION - LONG_MEASURED;
    bench.turns_of(session..session + 1, 0..measured).await?;
    let before = bench.processor_time()?;
    bench
        .turns_of(session..session + 1, measured..LONG_SESSION)
        .await?;
    let long = a_turn(bench.processor_time()? - before, LONG_MEASURED);
    Ok(vec![
        Measured::value(
            "turn-cpu",
            short,
            format!("{TURNS} turns, {TURNS_A_SESSION} a session"),
        ),
        Measured::value(
            "turn-cpu-long",
            long,
            format!("turns {measured} to {LONG_SESSION} of one session"),
        ),
        Measured::value(
            "used-rss",
            used.resident,
            format!("after {TURNS} turns; anonymous {:.1}", used.anonymous),
        ),
    ])
}

fn a_turn(used: Duration, turns: usize) -> f64 {
    used.as_secs_f64() * 1e3 / turns as f64
}

/// Turns a second at several numbers of sessions.
///
/// # Errors
/// As [`Bench::turns`].
pub async fn load() -> Result<Vec<Measured>, String> {
    let mut figures = Vec::with_capacity(LOADS.len());
    for (name, sessions, each) in LOADS {
        let (rate, note) = rate(sessions, each).await?;
        figures.push(Measured::value(name, rate, note));
    }
    Ok(figures)
}

async fn rate(sessions: usize, each: usize) -> Result<(f64, String), String> {
    let mut bench = Bench::start().await?;
    let mut rates = Vec::with_capacity(ROUNDS);
    let before = bench.processor_time()?;
    for _ in 0..ROUNDS {
        let took = bench.turns(sessions, each).await?;
        rates.push((sessions * each) as f64 / took.as_secs_f64());
    }
    let own = a_turn(bench.processor_time()? - before, ROUNDS * sessions * each);
    let note =
        format!("one connection, model and client on the same cores; own CPU {own:.2} ms a turn");
    Ok((median(&mut rates), note))
}
