//! What the operating system says of a process and of the machine, read from /proc.

use std::fs;
use std::io;
use std::time::Duration;

/// Units of processor time in a second, in /proc. Fixed for programs on Linux, whatever the
/// kernel counts in.
const TICKS_A_SECOND: u64 = 100;

const KIB: f64 = 1024.0;

/// Memory of a process, in MiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// All that is resident.
    pub resident: f64,
    /// What of it is not backed by files.
    pub anonymous: f64,
}

/// The processor time of a process with all its threads, those that ended too; in steps of
/// 10 ms. `None` is this process.
///
/// # Errors
/// If there is no such process, or /proc has another form.
pub fn processor_time(pid: Option<u32>) -> io::Result<Duration> {
    let text = fs::read_to_string(of(pid, "stat"))?;
    ticks(&text)
        .map(|ticks| Duration::from_millis(ticks * 1_000 / TICKS_A_SECOND))
        .ok_or_else(|| io::Error::other(format!("stat has an unknown form: {text}")))
}

/// The memory of a process.
///
/// # Errors
/// As [`processor_time`].
pub fn memory(pid: u32) -> io::Result<Memory> {
    let text = fs::read_to_string(of(Some(pid), "status"))?;
    let line = |name: &str| {
        kib(&text, name).ok_or_else(|| io::Error::other(format!("status has no {name}")))
    };
    Ok(Memory {
        resident: line("VmRSS:")? / KIB,
        anonymous: line("RssAnon:")? / KIB,
    })
}

/// How many processes wanted to run, on average over the last minute.
///
/// # Errors
/// If /proc has another form.
pub fn load() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| io::Error::other(format!("loadavg has an unknown form: {text}")))
}

fn of(pid: Option<u32>, file: &str) -> String {
    match pid {
        Some(pid) => format!("/proc/{pid}/{file}"),
        None => format!("/proc/self/{file}"),
    }
}

/// User and system time. The name of the program, in parentheses, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(") ")?;
    let mut fields = after.split(' ').skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn kib(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_user_and_system_time_whatever_the_program_is_called() {
        let stat = "7 (a) 1 (b)) S 1 7 7 0 -1 4194304 90 0 0 0 41 9 0 0 20 0 3 0 11 22 33";
        assert_eq!(ticks(stat), Some(50));
        assert_eq!(ticks("nonsense"), None);
    }

    #[test]
    fn memory_is_read_by_name() {
        let status = "Name:\tx\nVmRSS:\t    9216 kB\nRssAnon:\t    1024 kB\n";
        assert_eq!(kib(status, "VmRSS:"), Some(9216.0));
        assert_eq!(kib(status, "RssAnon:"), Some(1024.0));
        assert_eq!(kib(status, "VmSwap:"), None);
    }

    #[test]
    fn this_process_can_be_asked() {
        assert!(processor_time(None).is_ok());
        assert!(memory(std::process::id()).expect("it lives").resident > 0.0);
    }
}
