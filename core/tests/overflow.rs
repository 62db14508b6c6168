//! A full queue: who gives way, and when that is decided.

mod bench;

use bench::*;
use tidegate_core::QueueMode::*;
use tidegate_core::*;

/// A bench whose session 1 has run 10 at its model.
fn busy(queue: QueueSettings) -> Bench {
    let mut b = Bench::new(Config {
        queue,
        ..Config::default()
    });
    b.chatted(1, 10, None);
    b
}

/// I28, spec 16.6: the table of overflow, with a, b and c waiting and one more arriving.
#[test]
fn an_overflow_drops_what_its_policy_says() {
    use DropPolicy::{New, Old, Summarize};
    // Policy, how many of the three are to steer, accepted, dropped, left.
    type Row = (DropPolicy, usize, bool, &'static [u128], &'static [u128]);
    let rows: [Row; 7] = [
        (New, 0, false, &[], &[11, 12, 13]),
        (Old, 0, true, &[11], &[12, 13, 14]),
        (Summarize, 0, true, &[11], &[12, 13, 14]),
        (Old, 1, true, &[12], &[11, 13, 14]),
        (Summarize, 1, true, &[12], &[11, 13, 14]),
        (Old, 3, false, &[], &[11, 12, 13]),
        (Summarize, 3, false, &[], &[11, 12, 13]),
    ];
    for (drop, steers, accepted, dropped, left) in rows {
        let mut b = busy(QueueSettings {
            cap: 3,
            drop,
            ..QueueSettings::default()
        });
        for n in 0..3 {
            let mode = if n < steers { Steer } else { Followup };
            b.chatted(1, 11 + n as u128, Some(mode));
        }
        let out = b.chatted(1, 14, Some(Followup));
        let case = (drop, steers);
        assert_eq!(places(&out).len() == 1, accepted, "{case:?}");
        assert_eq!(
            refusals(&out).first() == Some(&Rejection::QueueFull),
            !accepted,
            "{case:?}"
        );
        let gone: Vec<_> = ends(&out)
            .into_iter()
            .map(|end| (end.run, end.outcome))
            .collect();
        let expected: Vec<_> = dropped
            .iter()
            .map(|&r| (run(r), Outcome::Dropped { by: drop }))
            .collect();
        assert_eq!(gone, expected, "{case:?}");
        let waiting: Vec<RunId> = b.core.session_runs(session(1)).skip(1).collect();
        let left: Vec<RunId> = left.iter().map(|&r| run(r)).collect();
        assert_eq!(waiting, left, "{case:?}");
    }
}

/// I28, P05, P40: messages that come closely give way in the order of their arrival, each when
/// a newer one is durable.
#[test]
fn the_oldest_gives_way_also_when_all_come_at_once() {
    let mut b = busy(QueueSettings {
        mode: Followup,
        cap: 2,
        drop: DropPolicy::Old,
        ..QueueSettings::default()
    });
    let orders: Vec<Vec<Output>> = (11..16).map(|r| b.chat(1, r, None)).collect();
    let mut dropped = Vec::new();
    for order in orders {
        let out = b.commit(&order);
        let out = b.store(out);
        dropped.extend(ends(&out).into_iter().map(|end| end.run));
    }
    assert_eq!(dropped, [11, 12, 13].map(run));
    let left: Vec<RunId> = b.core.session_runs(session(1)).skip(1).collect();
    assert_eq!(left, [14, 15].map(run));
}

/// Law 5: a newcomer whose row is refused pushes nobody out.
#[test]
fn a_refused_newcomer_pushes_nobody_out() {
    let mut b = busy(QueueSettings {
        mode: Followup,
        cap: 1,
        drop: DropPolicy::Old,
        ..QueueSettings::default()
    });
    b.chatted(1, 11, None);
    let out = b.chat(1, 12, None);
    let (ticket, _) = accept(&out);
    let report = AcceptReport::Refused(StoreError::Full);
    let out = b.hand(Input::Accepted { ticket, report });
    assert_eq!(
        (ends(&out), refusals(&out)),
        (vec![], vec![Rejection::Storage])
    );
}
