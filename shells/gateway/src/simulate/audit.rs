//! `tidegate sim audit`: every fault planted in turn, as a table.
//!
//! The table is the simulator's; what of it is not good enough is said here.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use tidegate_sim::{AuditRow, Fault, audit as audited};

use super::{cores, progress};
use crate::cli::SimAuditArgs;
use crate::exit::Exit;
use crate::out;

/// The most that a shrunk case may have, in percent of what a person would write.
const MOST_PERCENT: usize = 150;

/// Runs `sim audit`.
pub fn audit(args: &SimAuditArgs) -> Exit {
    let rows = rows(args.within);
    out::line(&AuditRow::head());
    for row in rows.iter().flatten() {
        out::line(&row.to_string());
    }
    let mut exit = Exit::Ok;
    for (&fault, row) in Fault::ALL.iter().zip(&rows) {
        if let Some(why) = wrong(fault, row.as_ref(), args.within) {
            out::err(&format!("tidegate: {}: {why}.", fault.name()));
            exit = Exit::Violation;
        }
    }
    exit
}

/// A row for each fault, in their order.
fn rows(within: u64) -> Vec<Option<AuditRow>> {
    let bar = progress(Some(Fault::ALL.len() as u64), "faults");
    let next = AtomicUsize::new(0);
    let mut rows = vec![None; Fault::ALL.len()];
    let (sender, done) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((at, &fault)) = take(next)
                    && sender.send((at, audited(fault, within))).is_ok()
                {}
            });
        }
        drop(sender);
        for (at, row) in done {
            bar.inc(1);
            rows[at] = row;
        }
    });
    bar.finish_and_clear();
    rows
}

fn take(next: &AtomicUsize) -> Option<(usize, &'static Fault)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Fault::ALL.get(at).map(|fault| (at, fault))
}

/// What is not good enough about a fault.
fn wrong(fault: Fault, row: Option<&AuditRow>, within: u64) -> Option<String> {
    let Some(row) = row else {
        return Some(format!("not found in {within} seeds"));
    };
    let came = row.shrunk.violation.code;
    if fault == Fault::Canary && row.seeds > 1 {
        Some(format!("{} seeds passed with it", row.seeds - 1))
    } else if came != row.code {
        Some(format!("found as {}, but shrunk onto {came}", row.code))
    } else if row.percent() > MOST_PERCENT {
        Some(format!(
            "shrunk to {} entries, more than one and a half times the {} by hand",
            row.shrunk.size, row.minimum
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::Code;

    use super::*;

    /// The audit itself can fail.
    #[test]
    fn a_fault_that_is_missed_or_stays_large_and_a_canary_that_passes_are_wrong() {
        let good = audited(Fault::Canary, 8).expect("the canary is found at once");
        let said = |row: Option<&AuditRow>| wrong(Fault::Canary, row, 8).unwrap_or_default();
        assert_eq!(said(Some(&good)), "");
        assert!(said(None).contains("not found in 8 seeds"));
        let mut row = good.clone();
        row.seeds = 3;
        assert!(said(Some(&row)).contains("2 seeds passed"));
        let mut row = good.clone();
        row.code = Code::Halt;
        assert!(said(Some(&row)).contains("shrunk onto"));
        let mut row = good;
        row.minimum = row.shrunk.size;
        assert_eq!(said(Some(&row)), "");
        row.shrunk.size = row.minimum * 3 / 2 + 1;
        assert!(said(Some(&row)).contains("more than one and a half"));
    }
}
