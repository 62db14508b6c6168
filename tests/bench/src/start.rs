//! Figures of the program that needs no work to do: its size, its start, its memory at rest.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use tempfile::TempDir;
use tidegate_tests::{Gateway, tidegate};

use crate::machine::{Memory, memory};
use crate::measured::{Measured, Why, median};

/// Starts of which the middle one counts.
const STARTS: usize = 15;
const MB: f64 = 1e6;

/// The size of the stripped program.
///
/// # Errors
/// If it cannot be stripped.
pub fn size(program: &Path) -> Result<Vec<Measured>, Why> {
    let bytes = stripped(program)? as f64;
    Ok(vec![Measured::value("size", bytes / MB, "after `strip`")])
}

fn stripped(program: &Path) -> Result<u64, Why> {
    let dir = scratch()?;
    let copy = dir.path().join("stripped");
    let status = Command::new("strip")
        .arg("-o")
        .arg(&copy)
        .arg(program)
        .status()
        .map_err(|error| Why::tool("strip", &error))?;
    if !status.success() {
        return Err(Why::Failed(format!("strip failed: {status}")));
    }
    let data = copy.metadata().map_err(|error| error.to_string())?;
    Ok(data.len())
}

/// A directory for the state of a gateway.
///
/// # Errors
/// If there can be none.
pub fn scratch() -> Result<TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))
}

/// Start to first health over fresh and over known directories, and memory then.
///
/// # Errors
/// If there is no directory for the state, or the gateway is gone.
pub async fn start() -> Result<Vec<Measured>, String> {
    let mut figures = starts().await?.figures();
    figures.push(version().await);
    Ok(figures)
}

/// What the starts were like.
#[derive(Default)]
struct Starts {
    fresh: Vec<f64>,
    known: Vec<f64>,
    memory: Vec<Memory>,
}

impl Starts {
    fn figures(mut self) -> Vec<Measured> {
        let all = |part: fn(&Memory) -> f64| -> Vec<f64> { self.memory.iter().map(part).collect() };
        let mut resident = all(|memory| memory.resident);
        let mut anonymous = all(|memory| memory.anonymous);
        let note = format!("middle of {STARTS}");
        vec![
            Measured::value("start", median(&mut self.fresh), spread(&self.fresh)),
            Measured::value("start-again", median(&mut self.known), spread(&self.known)),
            Measured::value("idle-rss", median(&mut resident), &note),
            Measured::value("idle-anonymous", median(&mut anonymous), &note),
        ]
    }
}

/// How the sorted values lie.
fn spread(sorted: &[f64]) -> String {
    match sorted {
        [least, .., most] => format!("middle of {}; {least:.1} to {most:.1}", sorted.len()),
        _ => String::new(),
    }
}

async fn starts() -> Result<Starts, String> {
    let mut starts = Starts::default();
    for _ in 0..STARTS {
        let dir = scratch()?;
        let (ms, gateway) = first_health(dir.path()).await;
        starts.fresh.push(ms);
        let used = memory(gateway.pid()).map_err(|error| error.to_string())?;
        starts.memory.push(used);
        gateway.stop().await;
        let (ms, gateway) = first_health(dir.path()).await;
        starts.known.push(ms);
        gateway.stop().await;
    }
    Ok(starts)
}

/// Milliseconds from the start of the process to its first answer.
async fn first_health(dir: &Path) -> (f64, Gateway) {
    let begun = Instant::now();
    let gateway = Gateway::start(dir, &[]).await;
    let (status, _) = gateway.get("/healthz").await;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    assert_eq!(status, 200, "a gateway that listens is healthy");
    (ms, gateway)
}

async fn version() -> Measured {
    let mut all = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let begun = Instant::now();
        tidegate(&["--version"]).await;
        all.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Measured::value("version", median(&mut all), spread(&all))
}
