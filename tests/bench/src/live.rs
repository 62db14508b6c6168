//! What live runs cost in the core: instructions of a text boundary, and memory.
//!
//! The core alone holds so many runs that stream; text comes for each in turn. Instructions
//! are counted by callgrind over this same program, a block of boundaries and twice that
//! block; memory is what the process has more of when it holds ten thousand runs.

use std::process::Command;

use tidegate_core::{
    AcceptReport, Claim, Config, Core, Epoch, Fingerprint, Generation, Input, LaneName, LoadReport,
    ModelFact, Now, Output, Priority, QueueOverride, RequestId, RunId, SessionId, Submit, Ticket,
    Time, Turn, Wall,
};

use crate::machine;
use crate::measured::{Measured, Why};
use crate::world::counted;

/// Text boundaries that are counted, and again as many for the difference.
const BOUNDARIES: u64 = 4_000;
/// Bytes that each boundary adds.
const BYTES: u64 = 40;
/// Runs that are held when memory is measured.
const HELD: u64 = 10_000;

/// Instructions of a text boundary at a thousand live runs, and how they grow with the runs.
#[must_use]
pub fn live() -> Vec<Measured> {
    let at = |runs| a_boundary(runs);
    let thousand = match at(1_000) {
        Ok(value) => Measured::value("text-instructions", value, "at 1,000 live runs".to_owned()),
        Err(why) => Measured::left_out("text-instructions", why),
    };
    let ratio = match (at(100), at(10_000)) {
        (Ok(few), Ok(many)) if few > 0.0 => Measured::value(
            "text-growth",
            many / few,
            format!("{few:.0} at 100, {many:.0} at 10,000"),
        ),
        (Err(why), _) | (_, Err(why)) => Measured::left_out("text-growth", why),
        _ => Measured::left_out("text-growth", "nothing was counted".to_owned().into()),
    };
    vec![thousand, ratio, memory()]
}

fn a_boundary(runs: u64) -> Result<f64, Why> {
    let count = |boundaries: u64| counted(&["--live", &format!("{runs}:{boundaries}")]);
    let (once, twice) = (count(BOUNDARIES)?, count(2 * BOUNDARIES)?);
    Ok(twice.saturating_sub(once) as f64 / BOUNDARIES as f64)
}

fn memory() -> Measured {
    let name = "live-run-bytes";
    let held = |runs: u64| -> Result<u64, Why> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let output = Command::new(own)
            .args(["--live", &format!("{runs}:0")])
            .output()
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let bytes = said.trim().parse();
        bytes.map_err(|_| Why::Failed(format!("said {said:?} instead of a number")))
    };
    match (held(0), held(HELD)) {
        (Ok(none), Ok(all)) => Measured::value(
            name,
            all.saturating_sub(none) as f64 / HELD as f64,
            format!("own memory of a process that holds {HELD} runs"),
        ),
        (Err(why), _) | (_, Err(why)) => Measured::left_out(name, why),
    }
}

/// Holds so many streaming runs and hands in so many text boundaries, round and round; gives
/// the process's own memory in bytes. `RUNS:BOUNDARIES` is the argument of the hidden mode.
#[must_use]
pub fn hold(asked: &str) -> Option<u64> {
    let (runs, boundaries) = asked.split_once(':')?;
    let (runs, boundaries): (u64, u64) = (runs.parse().ok()?, boundaries.parse().ok()?);
    let mut core = Core::new(Config {
        global_lane_cap: u32::MAX,
        ..Config::default()
    });
    let calls: Vec<Ticket> = (0..runs).filter_map(|n| begin(&mut core, n)).collect();
    for n in 0..boundaries {
        let call = calls[usize::try_from(n % runs.max(1)).ok()?];
        let fact = ModelFact::Text {
            to: (n / runs.max(1) + 1) * BYTES,
        };
        let at = now(n / runs.max(1));
        core.handle(at, Input::Model { ticket: call, fact })
            .for_each(drop);
    }
    let memory = machine::memory(std::process::id()).ok()?;
    let bytes = memory.anonymous * 1024.0 * 1024.0;
    drop((core, calls));
    Some(bytes as u64)
}

/// Every run is a session's, and streams.
fn begin(core: &mut Core, n: u64) -> Option<Ticket> {
    let (session, id) = (u128::from(n) + 1, u128::from(n) + 1);
    let submit = Submit {
        request: RequestId::from_u128(id),
        session: SessionId::from_u128(session),
        run: RunId::from_u128(id),
        body: Fingerprint::from_u128(1),
        budget: None,
        turn: Turn::Agent,
        lane: LaneName::Main,
        priority: Priority::Foreground,
    };
    let mut next = Input::Submit(submit);
    loop {
        let orders: Vec<Output> = core.handle(now(0), next).collect();
        next = match orders.into_iter().find_map(follow)? {
            Step::Report(report) => report,
            Step::Streams(call) => {
                let fact = ModelFact::Text { to: 1 };
                core.handle(now(0), Input::Model { ticket: call, fact })
                    .for_each(drop);
                return Some(call);
            }
        };
    }
}

/// What an order leads to on the way to a run that streams.
enum Step {
    Report(Input),
    Streams(Ticket),
}

fn follow(order: Output) -> Option<Step> {
    Some(match order {
        Output::Load { ticket, .. } => Step::Report(Input::Loaded {
            ticket,
            report: LoadReport::Loaded {
                epoch: Epoch(1),
                generation: Generation(1),
                queue: QueueOverride::default(),
                open: Vec::new(),
            },
        }),
        Output::Accept { ticket, .. } => Step::Report(Input::Accepted {
            ticket,
            report: AcceptReport::Committed {
                claim: Some(Claim { superseded: None }),
            },
        }),
        Output::StartModel { ticket, .. } => Step::Streams(ticket),
        _ => return None,
    })
}

fn now(ms: u64) -> Now {
    Now {
        time: Time(ms * 100),
        wall: Wall(1_790_000_000_000 + ms * 100),
    }
}
