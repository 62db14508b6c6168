//! Resets: a session begins anew, and nothing of its old generation touches the new one.

mod bench;

use bench::*;
use tidegate_core::*;

fn reset(b: &mut Bench, expected: Option<u64>) -> (RequestId, Vec<Output>) {
    let request = b.request();
    let out = b.hand(Input::Reset {
        request,
        session: session(1),
        expected: expected.map(Generation),
    });
    (request, out)
}

fn reset_ticket(out: &[Output]) -> Ticket {
    out.iter()
        .find_map(|o| match o {
            Output::Reset { ticket, .. } => Some(*ticket),
            _ => None,
        })
        .expect("a reset is ordered")
}

/// The end that the store's reset records of a run of session 1.
fn ended(r: u128, attempt: u32) -> Terminal {
    Terminal {
        run: run(r),
        session: session(1),
        outcome: Outcome::Cancelled {
            by: StopReason::Reset,
            provider_started: attempt > 0,
        },
        accepted_at: Wall(WALL),
        started_at: (attempt > 0).then_some(Wall(WALL)),
        ended_at: Wall(WALL + 5),
        attempt: Attempt(attempt),
        reply: Reply::Empty,
        detail: false,
        turn: None,
    }
}

fn committed(generation: u64, ended: Vec<Terminal>) -> ResetReport {
    ResetReport::Committed {
        generation: Generation(generation),
        ended,
    }
}

/// P18, B-023, B-024: one order ends what is open; late facts and reports of the old
/// generation change nothing, and the next message runs in the new one.
#[test]
fn a_reset_ends_the_old_generation_and_nothing_of_it_counts_any_more() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.chatted(1, 11, None);
    let (waiter, _) = b.wait(10, Some(60_000));
    let (request, out) = reset(&mut b, None);
    let ticket = reset_ticket(&out);
    let report = committed(2, vec![ended(10, 1), ended(11, 0)]);
    let out = b.hand(Input::WasReset { ticket, report });
    let both = vec![run(10), run(11)];
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
    assert_eq!(ends(&out), [ended(10, 1), ended(11, 0)]);
    assert!(answers(&out).iter().any(|(to, _)| *to == waiter));
    let answer = Answer::Reset {
        generation: Generation(2),
        runs: both,
    };
    assert_eq!(answers(&out).last(), Some(&(request, answer)));
    assert_eq!(b.core.live_runs(), 0);
    let stale = b.core.counts().stale_model;
    assert_eq!(b.text(call, 9), []);
    assert_eq!(b.complete(call), []);
    assert_eq!(b.core.counts().stale_model, stale + 2);
}

/// I12, P18: what comes while a reset is under way waits for it and belongs to the new generation.
#[test]
fn what_comes_during_a_reset_belongs_to_the_new_generation() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let (_, out) = reset(&mut b, Some(1));
    let ticket = reset_ticket(&out);
    assert_eq!(b.submit(1, 11), []);
    assert_eq!(b.abort(1, Some(11)), []);
    let report = committed(2, vec![ended(10, 1)]);
    let out = b.hand(Input::WasReset { ticket, report });
    let (_, order) = accept(&out);
    assert_eq!((order.run, order.generation), (run(11), Generation(2)));
}

/// R7: a reset that expects another generation changes nothing.
#[test]
fn a_reset_that_expects_another_generation_is_refused() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let (request, out) = reset(&mut b, Some(2));
    let refused = Answer::Rejected(Rejection::SessionChanged);
    assert_eq!(answers(&out), [(request, refused)]);
    assert_eq!(b.core.live_runs(), 1);
}

/// Law 9: a cold session is loaded for its reset and is cold again afterwards.
#[test]
fn a_reset_of_a_cold_session_leaves_nothing_behind() {
    let mut b = Bench::new(Config::default());
    let (request, out) = reset(&mut b, None);
    let out = b.store(out);
    assert!(
        answers(&out)
            .iter()
            .any(|(to, answer)| *to == request && matches!(answer, Answer::Reset { .. }))
    );
    assert!(has(&out, |o| *o
        == Output::Forget {
            subject: Subject::Session(session(1))
        }));
    assert_eq!(b.core.armed().count(), 0);
}

/// Law 5: a reset that the store refuses is refused, and the session goes on as it was.
#[test]
fn a_reset_that_is_not_written_changes_nothing() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let (request, out) = reset(&mut b, None);
    b.submit(1, 11);
    let ticket = reset_ticket(&out);
    let report = ResetReport::Refused(StoreError::Full);
    let out = b.hand(Input::WasReset { ticket, report });
    assert_eq!(
        answers(&out)[0],
        (request, Answer::Rejected(Rejection::Storage))
    );
    assert_eq!(accept(&out).1.generation, Generation(1));
    let out = b.completed(call);
    assert_eq!(ends(&out)[0].outcome, Outcome::Completed);
}

/// P07, R54: a lease that is lost during a reset ends nothing; all who wait are told.
#[test]
fn a_lease_lost_during_a_reset_ends_nothing() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let (request, out) = reset(&mut b, None);
    b.submit(1, 11);
    let ticket = reset_ticket(&out);
    let report = ResetReport::NotOwner;
    let out = b.hand(Input::WasReset { ticket, report });
    assert_eq!(
        answers(&out)[0],
        (request, Answer::Rejected(Rejection::NotOwner))
    );
    assert_eq!(ends(&out), []);
    assert_eq!(refusals(&out).len(), 3);
}

/// L11, P22: a drain waits for the store's word on a reset, and lets no new one in.
#[test]
fn a_drain_waits_for_a_reset_under_way() {
    let mut b = Bench::new(Config::default());
    let (request, out) = reset(&mut b, None);
    let loaded = report_of(&out[0]).expect("a load");
    let out = b.hand(loaded);
    let ticket = reset_ticket(&out);
    let drain = b.request();
    let out = b.hand(Input::Drain {
        request: drain,
        budget_ms: None,
    });
    assert!(!out.contains(&Output::Drained));
    let (late, out) = reset(&mut b, None);
    assert_eq!(
        answers(&out),
        [(late, Answer::Rejected(Rejection::Draining))]
    );
    let report = committed(2, vec![]);
    let out = b.hand(Input::WasReset { ticket, report });
    assert!(matches!(&answers(&out)[..], [(to, Answer::Reset { .. })] if *to == request));
    assert!(out.contains(&Output::Drained));
}
