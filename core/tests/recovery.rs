//! Same-model recovery: what is asked again, when, and what ends it (spec 5.2).

mod bench;

use bench::*;
use tidegate_core::*;

const S: u64 = 1_000;

fn error(status: u16, retry_after: RetryAfter) -> ModelEnd {
    ModelEnd::Failed(ProviderError {
        status: Some(status),
        marker: Marker::None,
        retry_after,
        detail: true,
    })
}

const OUTAGE: u16 = 503;

/// As what a stopped run ends that has asked its model.
const STOPPED: Outcome = Outcome::Cancelled {
    by: StopReason::Rpc,
    provider_started: true,
};

/// What was told of the next call: which, of how many, and after which wait.
fn retrying(out: &[Output]) -> Option<(u16, u16, u64)> {
    out.iter().find_map(|output| match output {
        Output::Publish {
            event:
                Event::Retrying {
                    call,
                    calls_max,
                    delay_ms,
                    ..
                },
            ..
        } => Some((*call, *calls_max, *delay_ms)),
        _ => None,
    })
}

/// A run whose first call failed and that waits to ask again.
fn waiting(config: Config) -> (Bench, Ticket, u64) {
    let mut b = Bench::new(config);
    let call = b.start(1, 10);
    b.text(call, 4);
    let out = b.model(call, ModelFact::Ended(error(OUTAGE, RetryAfter::Unsaid)));
    let (.., delay_ms) = retrying(&out).expect("it asks again");
    (b, call, delay_ms)
}

/// A run at its model that has ten seconds.
fn with_ten_seconds() -> (Bench, Ticket) {
    let mut b = Bench::new(Config::default());
    let request = b.request();
    let budget = Some(Budget::Limited(10 * S));
    let out = b.submit_as(request, 1, 10, 1, budget);
    let out = b.store(out);
    let call = model_ticket(&out);
    (b, call)
}

/// The next call, after the wait.
fn next_call(b: &mut Bench, delay_ms: u64) -> (Ticket, Vec<Output>) {
    let out = b.pass(delay_ms);
    let out = b.claim(&out);
    (model_ticket(&out), out)
}

/// P16, I36, B-058, R119, R121: a call that failed for a while is made again after a wait, as
/// an attempt of its own; its reply begins anew, and nothing of the failed call comes into it.
#[test]
fn a_failed_call_is_made_again() {
    let (mut b, old, delay_ms) = waiting(Config::default());
    assert!((500..1_500).contains(&delay_ms), "{delay_ms}");
    assert!(b.pass(delay_ms - 1).is_empty());
    let out = b.pass(1);
    assert_eq!(claim_ticket(&out).attempt, Attempt(2));
    let out = b.claim(&out);
    let failed = ContentOwner::Attempt(run(10), Attempt(1));
    assert!(has(&out, |o| *o == Output::Release { owner: failed }));
    let call = model_ticket(&out);
    assert_ne!(call, old);
    let stale = b.core.counts().stale_model;
    assert!(b.text(old, 9).is_empty());
    assert_eq!(b.core.counts().stale_model, stale + 1);
    let out = b.text(call, 3);
    assert!(has(&out, |o| matches!(
        o,
        Output::Publish { event: Event::Text { handle, from: 0, to: 3 }, .. }
            if handle.owner == ContentOwner::Attempt(run(10), Attempt(2))
    )));
    let out = b.complete(call);
    let (_, terminal) = settle(&out);
    assert_eq!(terminal.outcome, Outcome::Completed);
    assert_eq!(terminal.reply, Reply::Text { bytes: 3 });
    assert_eq!(terminal.attempt, Attempt(2));
}

/// P16, B-058, R121: all that was shown of a failed call is shown to its end and saved, so that
/// the next claim keeps it; only then the wait is told.
#[test]
fn what_a_failed_call_had_shown_is_kept() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 4);
    b.text(call, 7);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Incomplete));
    let kinds: Vec<&str> = out
        .iter()
        .map(|output| match output {
            Output::Publish {
                event: Event::Text { from: 4, to: 7, .. },
                ..
            } => "text",
            Output::Save { to: 7, .. } => "save",
            Output::Publish {
                event: Event::Retrying { because, .. },
                ..
            } if *because == Outcome::Failed(Failure::Incomplete) => "retrying",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["text", "save", "retrying"]);
}

/// P16, L6, B-052: a silent call is cancelled and made again at once, whenever its end comes;
/// after five in a row, or when the outage has lasted too long, the run ends by that limit.
#[test]
fn a_silent_call_is_made_again() {
    let config = Config {
        provider: ProviderConfig {
            class: ProviderClass::Cloud,
            timeout_ms: Some(2 * S),
        },
        ..Config::default()
    };
    let mut b = Bench::new(config);
    let mut call = b.start(1, 10);
    for next in 2..6 {
        let out = b.pass(2 * S);
        assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
        let (told, _, delay_ms) = retrying(&out).expect("it asks again");
        assert_eq!(told, next);
        call = next_call(&mut b, delay_ms).0;
    }
    let out = b.pass(2 * S);
    assert_eq!(retrying(&out), None);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    let limit = Limit::FirstEvent;
    let outcome = Outcome::TimedOut {
        limit,
        provider_started: true,
    };
    assert_eq!(settle(&out).1.outcome, outcome);

    let mut b = Bench::new(Config::default());
    b.start(1, 10);
    let out = b.pass(120 * S);
    let (.., delay_ms) = retrying(&out).expect("it asks again");
    next_call(&mut b, delay_ms);
    assert_eq!(retrying(&b.pass(120 * S)), None, "the window has passed");
}

/// P16, B-057, S-04, R119: what does not pass by itself is not asked again.
#[test]
fn what_does_not_pass_by_itself_ends_the_run() {
    let marked = |marker, retry_after| {
        ModelEnd::Failed(ProviderError {
            status: Some(429),
            marker,
            retry_after,
            detail: false,
        })
    };
    let mut ends = vec![
        marked(Marker::UsageWindow, RetryAfter::Unsaid),
        marked(Marker::None, RetryAfter::Unrepresentable),
        marked(Marker::None, RetryAfter::Ms(DEFAULT_BUDGET_MS)),
        marked(Marker::Oversized, RetryAfter::Unsaid),
        marked(Marker::NotAStream, RetryAfter::Unsaid),
        marked(Marker::Tls, RetryAfter::Unsaid),
        error(OUTAGE, RetryAfter::Ms(91 * S)),
        ModelEnd::Cancelled,
    ];
    ends.extend([400, 401, 402, 404, 418].map(|status| error(status, RetryAfter::Unsaid)));
    for end in ends {
        let mut b = Bench::new(Config::default());
        let call = b.start(1, 10);
        let out = b.model(call, ModelFact::Ended(end));
        assert_eq!(retrying(&out), None, "{end:?}");
        settle(&out);
    }
}

/// P16, B-057: a provider is asked again no sooner than it wants to be.
#[test]
fn the_providers_own_wait_is_kept() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    let out = b.model(
        call,
        ModelFact::Ended(error(429, RetryAfter::Ms(3_600 * S))),
    );
    assert_eq!(retrying(&out), Some((2, 10, 3_600 * S)));
    assert!(claims(&b.pass(3_600 * S - 1)).is_empty());
    assert_eq!(claims(&b.pass(1)).len(), 1);
}

/// P13, P14, R149, I39: the wait uses up the run's budget, and the next claim knows what is
/// left of it.
#[test]
fn the_budget_goes_on_while_it_waits() {
    let (mut b, call) = with_ten_seconds();
    b.pass(2 * S);
    let out = b.model(call, ModelFact::Ended(error(OUTAGE, RetryAfter::Ms(3 * S))));
    assert!(retrying(&out).is_some());
    let out = b.pass(3 * S);
    let left = out.iter().find_map(|output| match output {
        Output::Claim { claim, .. } => claim.left_ms,
        _ => None,
    });
    assert_eq!(left, Some(5 * S));
    let budget_runs = b
        .core
        .armed()
        .any(|armed| armed.timer == Timer::Budget(run(10)));
    assert!(!budget_runs, "a slow claim does not shorten the run");
    let out = b.claim(&out);
    let call = model_ticket(&out);
    let out = b.model(call, ModelFact::Ended(error(OUTAGE, RetryAfter::Ms(5 * S))));
    assert_eq!(retrying(&out), None, "it would not begin within the budget");
}

/// P13, P37: a wake so late that the budget has passed too asks nobody.
#[test]
fn a_late_wake_does_not_begin_a_call_without_time() {
    let (mut b, call) = with_ten_seconds();
    let out = b.model(call, ModelFact::Ended(error(OUTAGE, RetryAfter::Unsaid)));
    assert!(retrying(&out).is_some());
    let out = b.tick(60 * S);
    assert!(claims(&out).is_empty());
    let outcome = Outcome::TimedOut {
        limit: Limit::Budget,
        provider_started: true,
    };
    assert_eq!(settle(&out).1.outcome, outcome);
}

/// P17, P18, P04, L17: whatever ends a run that waits ends it at once, with the text that it
/// had shown.
#[test]
fn a_run_that_waits_is_stopped_at_once() {
    let (mut b, ..) = waiting(Config::default());
    let out = b.abort(1, Some(10));
    let (_, terminal) = settle(&out);
    assert_eq!(terminal.outcome, STOPPED);
    assert_eq!(terminal.reply, Reply::Text { bytes: 4 });
    b.settle(&out);
    assert_eq!((b.core.live_runs(), b.core.armed().count()), (0, 0));
}

/// Law 10, P40: a run that is stopped while its next attempt claims has asked a model before.
#[test]
fn a_run_that_claims_again_has_asked() {
    let (mut b, _, delay_ms) = waiting(Config::default());
    let claim = b.pass(delay_ms);
    b.abort(1, Some(10));
    let out = b.claim(&claim);
    assert_eq!(settle(&out).1.outcome, STOPPED);
}

/// P18, P22, L11: a drain does not wait for a run that waits; it goes on after the restart.
#[test]
fn a_drain_does_not_wait_for_a_run_that_waits() {
    let (mut b, ..) = waiting(Config::default());
    let request = b.request();
    let out = b.hand(Input::Drain {
        request,
        budget_ms: None,
    });
    assert!(has(&out, |o| *o == Output::Drained));
}

/// B-121, I14, P01: a run whose claim came too late, and whose lane was freed, asks nobody.
#[test]
fn the_lane_limit_ends_a_run_that_claims_again() {
    let (mut b, call) = with_ten_seconds();
    let out = b.model(call, ModelFact::Ended(error(OUTAGE, RetryAfter::Unsaid)));
    let (.., delay_ms) = retrying(&out).expect("it asks again");
    let claim = b.pass(delay_ms);
    b.pass(60 * S);
    let out = b.claim(&claim);
    let outcome = Outcome::TimedOut {
        limit: Limit::Lane,
        provider_started: true,
    };
    assert_eq!(settle(&out).1.outcome, outcome);
}

/// B-070, I8: a message is told to be seen once, however often the model is asked.
#[test]
fn a_message_is_seen_once() {
    let mut b = Bench::new(Config::default());
    let out = b.chatted(1, 10, None);
    let call = model_ticket(&out);
    let seen = |o: &Output| {
        matches!(
            o,
            Output::Publish {
                event: Event::Seen,
                ..
            }
        )
    };
    assert!(has(&b.text(call, 1), seen));
    let out = b.model(call, ModelFact::Ended(ModelEnd::Incomplete));
    let (.., delay_ms) = retrying(&out).expect("it asks again");
    let (call, _) = next_call(&mut b, delay_ms);
    assert!(!has(&b.text(call, 1), seen));
}

/// B-056, B-105, P16: runs that fail together do not ask again together.
#[test]
fn runs_that_fail_together_spread_their_waits() {
    let mut waits = std::collections::BTreeSet::new();
    for r in 10..30 {
        let mut b = Bench::new(Config::default());
        let call = b.start(1, r);
        let out = b.model(call, ModelFact::Ended(error(429, RetryAfter::Unsaid)));
        waits.insert(retrying(&out).expect("it asks again").2);
    }
    assert!(waits.len() > 15, "{waits:?}");
    let (mut b, _, first) = waiting(Config::default());
    let (call, _) = next_call(&mut b, first);
    let out = b.model(call, ModelFact::Ended(error(OUTAGE, RetryAfter::Unsaid)));
    let (.., second) = retrying(&out).expect("it asks again");
    assert_ne!(second, 2 * first, "each wait is drawn anew");
}
