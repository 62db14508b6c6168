//! What the core holds does not grow with what it has done.

use std::collections::VecDeque;

use tidegate_core::{
    AcceptReport, Claim, ClaimReport, Config, Core, Epoch, Fingerprint, Generation, Input,
    LaneName, LoadReport, ModelEnd, ModelFact, Now, Output, Priority, QueueOverride, RequestId,
    RunId, SessionId, SettleReport, Submit, Time, Turn, Wall,
};

const SESSIONS: u128 = 1_000;
const RUNS: u128 = 60_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Runs that are handed in at one instant: those at work and those behind them.
const AT_ONCE: u128 = 20;
/// Encoded bytes of a run at work with its session, order and deadlines, with room to spare.
const BYTES_A_RUN: usize = 600;

fn submit(n: u128) -> Input {
    Input::Submit(Submit {
        request: RequestId::from_u128(n),
        session: SessionId::from_u128(n % SESSIONS),
        run: RunId::from_u128(n),
        body: Fingerprint::from_u128(n),
        budget: None,
        turn: Turn::Agent,
        lane: LaneName::Main,
        priority: Priority::Foreground,
    })
}

/// What a store and a model that never fail report of an order.
fn reports(output: &Output) -> Vec<Input> {
    match *output {
        Output::Load { ticket, .. } => vec![Input::Loaded {
            ticket,
            report: LoadReport::Loaded {
                epoch: Epoch(1),
                generation: Generation(1),
                queue: QueueOverride::default(),
                open: Vec::new(),
            },
        }],
        Output::Accept { ticket, ref accept } => vec![Input::Accepted {
            ticket,
            report: AcceptReport::Committed {
                claim: accept.claim.as_ref().map(|_| Claim { superseded: None }),
            },
        }],
        Output::Claim { ticket, .. } => vec![Input::Claimed {
            ticket,
            report: ClaimReport::Committed(Claim { superseded: None }),
        }],
        Output::Settle { ticket, .. } => vec![Input::Settled {
            ticket,
            report: SettleReport::Committed,
        }],
        Output::StartModel { ticket, .. } => {
            let fact = |fact| Input::Model { ticket, fact };
            vec![
                fact(ModelFact::Text { to: 40 }),
                fact(ModelFact::Ended(ModelEnd::Completed)),
            ]
        }
        _ => Vec::new(),
    }
}

fn size(core: &Core) -> usize {
    postcard::to_allocvec(&core.snapshot()).map_or(usize::MAX, |bytes| bytes.len())
}

/// B-101, P36: a thousand sessions and many thousand runs over simulated weeks; the state is
/// that of the runs at work, at every day.
#[test]
fn the_core_holds_what_is_at_work_and_nothing_of_what_was() {
    let mut core = Core::new(Config::default());
    let empty = size(&core);
    let (mut now, mut ended, mut days) = (0, 0, 0);
    for first in (0..RUNS).step_by(usize::try_from(AT_ONCE).unwrap_or(1)) {
        now += DAY_MS / 40;
        let mut inputs: VecDeque<Input> = (first..first + AT_ONCE).map(submit).collect();
        while let Some(input) = inputs.pop_front() {
            let at = Now {
                time: Time(now),
                wall: Wall(now),
            };
            for output in core.handle(at, input) {
                ended += u128::from(matches!(output, Output::Settle { .. }));
                inputs.extend(reports(&output));
            }
            let most = empty + 200 + core.live_runs() * BYTES_A_RUN;
            if inputs.len().is_multiple_of(16) {
                assert!(size(&core) <= most, "{} runs held", core.live_runs());
            }
        }
        if now / DAY_MS > days {
            days = now / DAY_MS;
            // Only what was counted may have grown by a byte or two.
            assert!(size(&core) <= empty + 60, "day {days}: {}", size(&core));
            assert_eq!(core.check(), Ok(()));
            assert_eq!(core.armed().count(), 0);
        }
    }
    assert_eq!(ended, RUNS);
    assert!(days >= 20);
}
