//! Syncs a turn, as strace sees the gateway make them.

use std::path::Path;
use std::process::Stdio;

use tidegate_tests::{signal, within};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::load::Bench;
use crate::measured::{Measured, Why};
use crate::start::scratch;

/// Turns of one idle session, one after the other.
const SERIAL_TURNS: usize = 200;
/// Busy sessions, and the turns of each.
const BUSY: (usize, usize) = (64, 10);

/// Syncs a turn of one idle session and of many busy ones.
///
/// # Errors
/// If there is no strace, it may not look, or a turn fails.
pub async fn syncs() -> Result<Vec<Measured>, Why> {
    let idle = count(1, SERIAL_TURNS).await?;
    let (sessions, each) = BUSY;
    let busy = count(sessions, each).await?;
    Ok(vec![
        idle.figure("turn-syncs", SERIAL_TURNS),
        busy.figure("turn-syncs-64", sessions * each),
    ])
}

/// Syncs by what they were made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// Of the write-ahead log.
    log: usize,
    /// Of the database: one for each checkpoint.
    database: usize,
    /// Of anything else.
    other: usize,
}

impl Count {
    fn of(trace: &str) -> Self {
        let mut count = Self::default();
        for line in trace.lines() {
            let Some((_, call)) = line.split_once("sync(") else {
                continue;
            };
            let path = call.split([')', ' ']).next().unwrap_or_default();
            if path.ends_with("-wal>") {
                count.log += 1;
            } else if path.ends_with(".sqlite3>") {
                count.database += 1;
            } else {
                count.other += 1;
            }
        }
        count
    }

    fn figure(self, name: &'static str, turns: usize) -> Measured {
        let all = self.log + self.database + self.other;
        let note = format!(
            "strace, {turns} turns: {} of the log, {} of the database, {} others",
            self.log, self.database, self.other
        );
        Measured::value(name, all as f64 / turns as f64, note)
    }
}

async fn count(sessions: usize, each: usize) -> Result<Count, Why> {
    let mut bench = Bench::start().await?;
    let dir = scratch()?;
    let trace = dir.path().join("trace");
    let strace = attach(bench.gateway.pid(), &trace).await?;
    let ran = bench.turns(sessions, each).await;
    detach(strace).await?;
    ran?;
    let trace =
        std::fs::read_to_string(&trace).map_err(|error| format!("strace's file: {error}"))?;
    Ok(Count::of(&trace))
}

/// Attaches strace and waits until it says that it sees the process.
async fn attach(pid: u32, trace: &Path) -> Result<Child, Why> {
    let mut child = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(trace)
        .args(["-p", &pid.to_string()])
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Why::tool("strace", &error))?;
    let stderr = child.stderr.take().expect("stderr is piped");
    let mut lines = BufReader::new(stderr).lines();
    let line = within("strace attaches", lines.next_line()).await;
    let line = line.map_err(|error| error.to_string())?.unwrap_or_default();
    if !line.contains("attached") {
        return Err(Why::NotHere(format!("strace may not attach: {line}")));
    }
    // Its later words must have somewhere to go.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(child)
}

async fn detach(mut strace: Child) -> Result<(), String> {
    let pid = strace.id().ok_or("strace ended before the turns did")?;
    signal(pid, "INT").await;
    let ended = within("strace detaches", strace.wait()).await;
    ended.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_counted_once_and_by_its_file() {
        let trace = "\
            7 fdatasync(9</s/tidegate.sqlite3-wal>) = 0\n\
            7 fdatasync(9</s/tidegate.sqlite3-wal> <unfinished ...>\n\
            8 fsync(8</s/tidegate.sqlite3>) = 0\n\
            7 <... fdatasync resumed>) = 0\n\
            7 fsync(5</s>) = 0\n\
            7 +++ exited with 0 +++\n";
        let count = Count {
            log: 2,
            database: 1,
            other: 1,
        };
        assert_eq!(Count::of(trace), count);
    }
}
