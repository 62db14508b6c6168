//! Accepting: one key is one run, whatever repeats.

use tidegate_core::{
    AcceptReport, Attempt, Budget, Fingerprint, Generation, LookupReport, Outcome, Wall,
};
use tidegate_driver::{StoreDone, StoreOp, StoredText};

use crate::kit::*;

fn with(op: StoreOp, change: impl FnOnce(&mut tidegate_core::Accept)) -> StoreOp {
    match op {
        StoreOp::Accept {
            mut accept,
            names,
            message,
        } => {
            change(&mut accept);
            StoreOp::Accept {
                accept,
                names,
                message,
            }
        }
        other => other,
    }
}

/// P06, R3
#[test]
fn a_repeated_message_is_a_duplicate_of_the_run_that_is_open() {
    let mut kit = Kit::new();
    assert_eq!(kit.accept(1, 7), ACCEPTED);
    assert_eq!(kit.accept(1, 7), AcceptReport::Duplicate { terminal: None });
    assert_eq!(kit.start(1, 7), AcceptReport::Duplicate { terminal: None });
    assert_eq!(kit.open_runs(1).len(), 1);
    assert_eq!(
        kit.open_runs(1)[0].attempt,
        Attempt(0),
        "a duplicate claims nothing"
    );
    assert!(kit.lines(1).is_empty());
}

/// P06, P10: repeats replay the result, also after a restart.
#[test]
fn a_repeated_message_of_an_ended_run_gets_its_end_with_the_texts() {
    let mut kit = Kit::new();
    kit.start(1, 7);
    let end = terminal(1, 7, 1, FAILED);
    let text = StoredText {
        reply: Some("half".into()),
        detail: Some("no more".into()),
        turn_key: None,
    };
    kit.settle_as(fence(1, 7, 1), end, text.clone());
    for _ in 0..2 {
        let op = kit.accept_op(1, 7, Some(order(1, None, 200)));
        let (report, texts) = accepted(kit.one(op));
        assert_eq!(
            report,
            AcceptReport::Duplicate {
                terminal: Some(end)
            }
        );
        assert_eq!(texts, text);
        kit.reopen();
    }
}

/// P06: one key, one request.
#[test]
fn a_known_run_with_another_body_or_session_is_a_conflict() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    let op = with(kit.accept_op(1, 7, None), |a| {
        a.body = Fingerprint::from_u128(8)
    });
    assert_eq!(accepted(kit.one(op)).0, AcceptReport::Conflict);
    let op = kit.accept_op(2, 7, Some(order(1, None, 200)));
    assert_eq!(accepted(kit.one(op)).0, AcceptReport::Conflict);
    assert!(
        kit.sessions(9).len() == 1,
        "a refused message makes no session"
    );
}

/// P06, decided inside the transaction: both lie in one batch.
#[test]
fn a_message_twice_in_one_batch_is_one_run() {
    let mut kit = Kit::new();
    let batch = vec![kit.accept_op(1, 7, None), kit.accept_op(1, 7, None)];
    let reports: Vec<_> = kit
        .run(batch)
        .into_iter()
        .map(|done| accepted(done).0)
        .collect();
    assert_eq!(
        reports,
        [ACCEPTED, AcceptReport::Duplicate { terminal: None }]
    );
}

/// P05: admission order kept, also over a restart.
#[test]
fn open_runs_come_in_the_order_of_their_acceptance() {
    let mut kit = Kit::new();
    for n in [9, 3, 7, 1] {
        kit.accept(1, n);
    }
    kit.accept(2, 5);
    kit.reopen();
    let (_, names_of) = kit.load(1);
    assert_eq!(names_of, [9, 3, 7, 1].map(|n| names(1, n)));
    let runs: Vec<_> = kit.open_runs(1).iter().map(|open| open.run).collect();
    assert_eq!(runs, [9, 3, 7, 1].map(run));
}

/// P05: what a restart needs of an accepted message.
#[test]
fn an_accepted_run_is_loaded_as_it_was_accepted() {
    let mut kit = Kit::new();
    for (n, budget) in [
        (1, None),
        (2, Some(Budget::Limited(5_000))),
        (3, Some(Budget::Unlimited)),
    ] {
        let op = with(kit.accept_op(1, n, None), |a| {
            a.budget = budget;
            a.at = Wall(1_000 + u64::from(n));
        });
        kit.one(op);
        let open = kit.open_runs(1).pop().expect("just accepted");
        assert_eq!(open.budget, budget);
        assert_eq!(open.body, Fingerprint::from_u128(n.into()));
        assert_eq!(open.accepted_at, Wall(1_000 + u64::from(n)));
        assert_eq!((open.attempt, open.left_ms), (Attempt(0), None));
    }
}

/// Law 5: accept and claim are one commit when ordered together (R51).
#[test]
fn an_accept_with_a_claim_makes_its_run_the_writer() {
    let mut kit = Kit::new();
    assert_eq!(kit.start(1, 7), STARTED);
    assert_eq!(kit.lines(1), ["1 user whole run-7: message 7"]);
    assert_eq!(kit.open_runs(1)[0].attempt, Attempt(1));
}

/// R53: a claim that can't hold is not said to be made.
#[test]
fn a_claim_of_attempt_0_is_not_made() {
    let mut kit = Kit::new();
    let op = kit.accept_op(1, 7, Some(order(0, None, 200)));
    assert_eq!(accepted(kit.one(op)).0, ACCEPTED);
    assert!(kit.lines(1).is_empty());
}

/// P18: an order for a transcript that is not there any more writes nothing.
#[test]
fn an_accept_for_another_generation_is_refused() {
    let mut kit = Kit::new();
    let other = |kit: &Kit| with(kit.accept_op(1, 7, None), |a| a.generation = Generation(2));
    let op = other(&kit);
    assert_eq!(accepted(kit.one(op)).0, AcceptReport::NotOwner);
    assert!(kit.sessions(9).is_empty());
    kit.accept(1, 6);
    let op = other(&kit);
    assert_eq!(accepted(kit.one(op)).0, AcceptReport::NotOwner);
    assert_eq!(kit.lookup(7).0, LookupReport::Unknown);
}

/// Law 5: a message that ended in its queue stays readable, and out of the transcript.
#[test]
fn a_message_cancelled_in_its_queue_stays_in_the_inbox() {
    let mut kit = Kit::new();
    kit.accept(1, 7);
    kit.settle((1, 7, 0), Outcome::Superseded, StoredText::default());
    let message: String = kit
        .raw()
        .query_row(
            "SELECT message FROM inbox WHERE run_key = 'run-7'",
            [],
            |row| row.get(0),
        )
        .expect("its row is there");
    assert_eq!(message, "message 7");
    assert!(kit.lines(1).is_empty());
}

/// Law 10: text comes back as it was, whatever it holds.
#[test]
fn any_text_comes_back_as_it_was() {
    let mut kit = Kit::new();
    let odd = "\0a\u{0}b \u{1F30A} \u{feff}'; DROP TABLE inbox;--\r\n";
    let op = match kit.accept_op(1, 7, Some(order(1, None, 200))) {
        StoreOp::Accept { accept, names, .. } => StoreOp::Accept {
            accept,
            names,
            message: odd.into(),
        },
        other => other,
    };
    kit.one(op);
    kit.save(fence(1, 7, 1), 0, odd);
    kit.save(fence(1, 7, 1), odd.len() as u64, odd);
    kit.claim(1, 7, 2);
    kit.settle((1, 7, 2), Outcome::Completed, reply(odd));
    let texts: Vec<_> = kit.transcript(1).into_iter().map(|row| row.text).collect();
    assert_eq!(texts, [odd.into(), odd.repeat(2), odd.into()]);
    let done = kit.one(StoreOp::Lookup { run: run(7) });
    assert!(matches!(done, StoreDone::LookedUp { text, .. } if text == reply(odd)));
}
