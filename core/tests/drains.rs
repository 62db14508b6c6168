//! Drain and shutdown: nothing begins, what is at work may end, nothing accepted is lost.

mod bench;

use bench::*;
use tidegate_core::*;

const S: u64 = 1_000;

fn drain(b: &mut Bench, budget_ms: Option<u64>) -> Vec<Output> {
    let request = b.request();
    b.hand(Input::Drain { request, budget_ms })
}

fn drained(out: &[Output]) -> bool {
    has(out, |o| *o == Output::Drained)
}

/// P21, L11, I18: with nothing at work a drain is over at once.
#[test]
fn an_idle_gateway_drains_at_once() {
    let mut b = Bench::new(Config::default());
    assert!(drained(&drain(&mut b, None)));
    assert_eq!(b.core.armed().count(), 0);
}

/// P21, P22, P23, B-031, B-033: a run at work ends and is told; what waits behind it does not
/// begin, stays accepted and costs nothing; new work is deferred.
#[test]
fn a_drain_lets_work_end_and_lets_nothing_begin() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let waiting = b.request();
    let out = b.submit_as(waiting, 1, 11, 1, None);
    b.commit(&out);
    let (open_wait, _) = b.wait(10, Some(600 * S));
    assert!(!drained(&drain(&mut b, None)));
    assert!(b.core.draining());
    let out = b.submit(1, 12);
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Rejected(Rejection::Draining))]
    ));
    let (_, out) = b.wait(10, None);
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Rejected(Rejection::Draining))]
    ));
    b.pass(8 * S);
    let out = b.complete(call);
    let out = b.settle(&out);
    assert_eq!(ends(&out)[0].outcome, Outcome::Completed);
    assert!(answers(&out).iter().any(|(to, a)| *to == open_wait
        && matches!(
            a,
            Answer::Wait {
                result: WaitResult::Ended { .. },
                ..
            }
        )));
    assert!(answers(&out).contains(&(waiting, Answer::Rejected(Rejection::Draining))));
    assert!(
        !has(&out, |o| matches!(o, Output::Claim { .. })),
        "the next run does not begin"
    );
    assert!(drained(&out));
}

/// P21, L11, R147, B-017: at the end of the budget all who listen are released with the true
/// reason, and no end is invented for what is still at work.
#[test]
fn the_budget_ends_a_drain_and_releases_all_who_listen() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let (wait, _) = b.wait(10, Some(600 * S));
    drain(&mut b, Some(20 * S));
    assert!(!drained(&b.pass(20 * S - 1)));
    let out = b.pass(1);
    assert!(drained(&out));
    assert!(answers(&out).contains(&(
        wait,
        Answer::Wait {
            run: run(10),
            result: WaitResult::Draining
        }
    )));
    assert!(
        answers(&out)
            .iter()
            .any(|(_, a)| *a == Answer::Rejected(Rejection::Draining))
    );
    assert!(ends(&out).is_empty());
}

/// B-031: a second signal shortens the drain and never lengthens it.
#[test]
fn a_second_drain_can_only_shorten_the_first() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    drain(&mut b, Some(20 * S));
    drain(&mut b, Some(100 * S));
    let end = b
        .core
        .armed()
        .find(|armed| matches!(armed.timer, Timer::Drain(_)));
    assert_eq!(end.map(|armed| armed.at), Some(Time(20 * S)));
    drain(&mut b, Some(0));
    assert!(drained(&b.pass(0)));
    assert!(!drained(&b.pass(60 * S)), "it is told once");
}

/// P42, P22: a message whose row was being written when the drain began is accepted, and kept
/// for the next start; one that waited for its session is deferred.
#[test]
fn what_was_being_accepted_is_accepted_and_kept() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let accepting = b.submit(1, 11);
    let loading = b.submit(2, 20);
    drain(&mut b, None);
    let out = b.commit(&accepting);
    assert!(matches!(answers(&out)[..], [(_, Answer::Accepted { .. })]));
    let out = b.load(&loading);
    assert!(matches!(
        answers(&out)[..],
        [(_, Answer::Rejected(Rejection::Draining))]
    ));
    let out = b.complete(call);
    assert!(drained(&b.settle(&out)));
}

/// P17: a stop works during a drain, also on what waits.
#[test]
fn an_abort_works_during_a_drain() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let out = b.submit(1, 11);
    b.commit(&out);
    drain(&mut b, None);
    let out = b.abort(1, Some(11));
    assert!(has(&b.settle(&out), |o| matches!(
        o,
        Output::Respond {
            answer: Answer::Aborted { .. },
            ..
        }
    )));
}
