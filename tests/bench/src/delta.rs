//! How long a piece of an answer takes from the provider's socket to the client's.
//!
//! One run at a time, and of each run the first piece: later ones are paced by the core.

use std::time::Instant;

use serde_json::json;
use tidegate_tests::{Client, Frame, Gateway, Provider};

use crate::measured::{Measured, percentile};
use crate::start::scratch;

/// Runs that are measured, after a few that are not.
const RUNS: usize = 300;
const WARM_UP: usize = 20;
/// Stands in the measured piece and nowhere else.
const PIECE: &str = "the first piece";

/// The delay of the first piece.
///
/// # Errors
/// If there is no directory for the state, or a run fails.
pub async fn delta() -> Result<Vec<Measured>, String> {
    let mut delays = delays().await?;
    let figures = [("delta-p50", 50), ("delta-p95", 95), ("delta-p99", 99)];
    let measured = figures.map(|(name, percent)| {
        let value = percentile(&mut delays, percent);
        Measured::value(name, value, format!("first piece of {RUNS} runs"))
    });
    Ok(measured.into())
}

async fn delays() -> Result<Vec<f64>, String> {
    let dir = scratch()?;
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    let mut delays = Vec::with_capacity(RUNS);
    for run in 0..WARM_UP + RUNS {
        let delay = one(&mut provider, &mut client, run).await?;
        if run >= WARM_UP {
            delays.push(delay);
        }
    }
    Ok(delays)
}

/// One run; the delay of its first piece in milliseconds.
async fn one(provider: &mut Provider, client: &mut Client, run: usize) -> Result<f64, String> {
    let params = json!({
        "sessionKey": format!("agent:main:delta-{run}"),
        "idempotencyKey": format!("delta-{run}"),
        "message": "Say something.",
    });
    let id = client.send("agent", params).await;
    let mut call = provider.call().await;
    call.begin().await;
    let written = Instant::now();
    call.text(PIECE).await;
    until(client, |frame| {
        frame["type"] == "event" && frame["payload"].to_string().contains(PIECE)
    })
    .await?;
    let delay = written.elapsed().as_secs_f64() * 1e3;
    call.done().await;
    until(client, |frame| {
        frame["id"] == id.as_str() && frame["payload"]["status"] == "ok"
    })
    .await?;
    Ok(delay)
}

/// Reads frames until one that is wanted.
async fn until(
    client: &mut Client,
    wanted: impl Fn(&serde_json::Value) -> bool,
) -> Result<(), String> {
    loop {
        match client.frame().await {
            Frame::Json(frame) if wanted(&frame) => return Ok(()),
            Frame::Json(frame) if frame["ok"] == false => return Err(format!("refused: {frame}")),
            Frame::Json(_) => {}
            Frame::Closed(close) => return Err(format!("the connection was closed: {close:?}")),
        }
    }
}
