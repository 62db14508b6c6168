//! `agent.wait`: passive, bounded, honest (spec 1.6, vectors 16.4).

mod bench;

use bench::*;
use tidegate_core::*;

fn timed_out(known: Option<bool>, out: &[Output], request: RequestId) -> bool {
    answers(out).iter().any(|(to, answer)| {
        *to == request
            && matches!(answer, Answer::Wait { result: WaitResult::TimedOut { known: k, .. }, .. } if *k == known)
    })
}

/// R145, R146, R201, I58, L4: the wait ends at its deadline and the run goes on.
#[test]
fn a_wait_ends_at_its_deadline_and_changes_nothing() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let (first, _) = b.wait(10, None);
    let (second, _) = b.wait(10, Some(5_000));
    assert!(timed_out(Some(true), &b.pass(5_000), second));
    assert!(timed_out(Some(true), &b.pass(25_000), first));
    let (third, _) = b.wait(10, Some(60_000));
    let out = b.complete(call);
    let out = b.settle(&out);
    assert!(answers(&out).iter().any(|(to, a)| *to == third
        && matches!(
            a,
            Answer::Wait {
                result: WaitResult::Ended { .. },
                ..
            }
        )));
}

/// Vectors 16.4: a peek at a run at work is answered at once.
#[test]
fn a_peek_is_answered_at_once() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let (request, out) = b.wait(10, Some(0));
    assert!(timed_out(Some(true), &out, request));
    assert_eq!(b.core.open_waits(), 0);
}

/// Vectors 16.4, B-017: an unknown run answers as a slow one does, at the deadline, and says
/// what is known.
#[test]
fn an_unknown_run_times_out_as_unknown() {
    for timeout in [0, 1_000] {
        let mut b = Bench::new(Config::default());
        let (request, out) = b.wait(99, Some(timeout));
        let ticket = lookup_ticket(&out);
        let out = b.hand(Input::LookedUp {
            ticket,
            report: LookupReport::Unknown,
        });
        let out = if timeout == 0 { out } else { b.pass(timeout) };
        assert!(timed_out(Some(false), &out, request), "timeout {timeout}");
    }
}

/// Decisions: peek; L4: a store that does not answer can't hold a wait.
#[test]
fn a_wait_does_not_hang_on_the_store() {
    let mut b = Bench::new(Config::default());
    let (request, out) = b.wait(99, Some(0));
    let ticket = lookup_ticket(&out);
    assert!(timed_out(None, &b.pass(1_000), request));
    let terminal = Terminal {
        run: run(99),
        session: session(1),
        outcome: Outcome::Completed,
        accepted_at: Wall(1),
        started_at: None,
        ended_at: Wall(2),
        attempt: Attempt(1),
        reply: Reply::Empty,
        detail: false,
        turn: None,
    };
    let out = b.hand(Input::LookedUp {
        ticket,
        report: LookupReport::Ended(terminal),
    });
    assert_eq!(
        out,
        [Output::Release {
            owner: ContentOwner::Request(request)
        }]
    );
}

/// P10: the end of a finished run is told, also after a restart.
#[test]
fn a_finished_run_is_told_from_the_store() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.complete(call);
    let terminal = ends(&b.settle(&out))[0];
    let (request, out) = b.wait(10, None);
    let ticket = lookup_ticket(&out);
    let out = b.hand(Input::LookedUp {
        ticket,
        report: LookupReport::Ended(terminal),
    });
    let [
        (
            to,
            Answer::Wait {
                result: WaitResult::Ended { terminal: told, .. },
                ..
            },
        ),
    ] = answers(&out)[..]
    else {
        panic!("told")
    };
    assert_eq!((to, told), (request, terminal));
}

/// P10: a wait that began before its run was submitted sees its end.
#[test]
fn a_wait_may_begin_before_its_run() {
    let mut b = Bench::new(Config::default());
    let (request, out) = b.wait(10, None);
    let ticket = lookup_ticket(&out);
    b.hand(Input::LookedUp {
        ticket,
        report: LookupReport::Unknown,
    });
    let call = b.start(1, 10);
    let out = b.complete(call);
    let out = b.settle(&out);
    assert!(
        answers(&out)
            .iter()
            .any(|(to, a)| *to == request && matches!(a, Answer::Wait { .. }))
    );
}

/// R200, P36: a caller that left is forgotten; its run is not.
#[test]
fn leaving_ends_the_wait_and_not_the_run() {
    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let (request, _) = b.wait(10, None);
    b.hand(Input::Leave { request });
    assert_eq!((b.core.open_waits(), b.core.live_runs()), (0, 1));
    assert!(answers(&b.pass(30_000)).is_empty());
}

/// P40, law 5, spec 1.6: an end that is decided and not durable is no end, and a wait that runs
/// out meanwhile says so.
#[test]
fn a_wait_that_runs_out_before_the_rows_tells_what_was_decided() {
    let mut b = Bench::new(asks_once());
    let call = b.start(1, 10);
    let (waiter, _) = b.wait(10, Some(5_000));
    let out = b.model(call, ModelFact::Ended(ModelEnd::Incomplete));
    let (ticket, terminal) = settle(&out);
    let report = SettleReport::Refused(StoreError::Full);
    b.hand(Input::Settled { ticket, report });
    let out = b.pass(5_000);
    let result = WaitResult::TimedOut {
        known: Some(true),
        decided: Some(terminal.outcome),
    };
    let run = terminal.run;
    assert!(answers(&out).contains(&(waiter, Answer::Wait { run, result })));
}
