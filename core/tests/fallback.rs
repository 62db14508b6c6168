//! The fallback chain: which failures lead to another provider, and within which time.

mod bench;

use bench::*;
use tidegate_core::*;

const S: u64 = 1_000;

fn provider() -> ProviderConfig {
    Config::default().provider
}

/// A first choice with so many fallbacks; nothing is asked twice.
fn chain(fallbacks: usize) -> Config {
    Config {
        fallbacks: vec![provider(); fallbacks],
        ..asks_once()
    }
}

fn error(status: u16, retry_after: RetryAfter) -> ModelEnd {
    ModelEnd::Failed(ProviderError {
        status: Some(status),
        marker: Marker::None,
        retry_after,
        detail: false,
    })
}

/// Which provider is asked now, and why the one before it is not any more.
fn told(out: &[Output]) -> Option<(u16, Outcome)> {
    out.iter().find_map(|output| match output {
        Output::Publish {
            event: Event::Fallback { candidate, because },
            ..
        } => Some((*candidate, *because)),
        _ => None,
    })
}

fn asked(out: &[Output]) -> Option<(Ticket, u16)> {
    out.iter().find_map(|output| match output {
        Output::StartModel {
            ticket, candidate, ..
        } => Some((*ticket, *candidate)),
        _ => None,
    })
}

fn is_retrying(out: &[Output]) -> bool {
    let retrying = |o: &Output| {
        matches!(
            o,
            Output::Publish {
                event: Event::Retrying { .. },
                ..
            }
        )
    };
    has(out, retrying)
}

fn begin(b: &mut Bench, budget: Option<Budget>) -> Ticket {
    let request = b.request();
    let out = b.submit_as(request, 1, 10, 1, budget);
    let out = b.store(out);
    let (call, candidate) = asked(&out).expect("the first choice is asked");
    assert_eq!(candidate, 0);
    call
}

/// P15, B-058: a provider that can't answer gives way to the next at once; the reply begins
/// anew, and the last one's failure is the run's.
#[test]
fn the_next_provider_is_asked_at_once() {
    let mut b = Bench::new(chain(2));
    let mut call = begin(&mut b, None);
    for candidate in [1, 2] {
        b.text(call, 4);
        b.text(call, 7);
        let out = b.model(call, ModelFact::Ended(error(401, RetryAfter::Unsaid)));
        let shown = |o: &Output| {
            matches!(
                o,
                Output::Publish {
                    event: Event::Text { from: 4, to: 7, .. },
                    ..
                }
            )
        };
        assert!(has(&out, shown));
        assert!(has(&out, |o| matches!(o, Output::Save { to: 7, .. })));
        let only_the_lane = b
            .core
            .armed()
            .all(|armed| armed.timer == Timer::LaneLimit(run(10)));
        assert!(only_the_lane, "a slow claim does not shorten the run");
        let class = ErrorClass::Auth;
        let status = Some(401);
        let because = Outcome::Failed(Failure::Provider { class, status });
        assert_eq!(told(&out), Some((candidate, because)));
        let out = b.claim(&out);
        let (next, of) = asked(&out).expect("the next one is asked");
        assert_eq!(of, candidate);
        assert!(b.text(call, 9).is_empty(), "the old call is stale");
        call = next;
    }
    b.text(call, 2);
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Unsaid)));
    assert_eq!(told(&out), None);
    let (_, terminal) = settle(&out);
    let class = ErrorClass::ServerError;
    let status = Some(503);
    let outcome = Outcome::Failed(Failure::Provider { class, status });
    assert_eq!(terminal.outcome, outcome);
    assert_eq!(terminal.reply, Reply::Text { bytes: 2 });
    assert_eq!(terminal.attempt, Attempt(3));
}

/// P15, I41, R168: a request that is wrong everywhere, a stop and a used up budget lead nowhere.
#[test]
fn what_another_provider_could_not_mend_ends_the_run() {
    let overflow = ModelEnd::Failed(ProviderError {
        status: Some(400),
        marker: Marker::ContextOverflow,
        retry_after: RetryAfter::Unsaid,
        detail: false,
    });
    for end in [error(400, RetryAfter::Unsaid), overflow] {
        let mut b = Bench::new(chain(1));
        let call = begin(&mut b, None);
        let out = b.model(call, ModelFact::Ended(end));
        assert_eq!(told(&out), None, "{end:?}");
        settle(&out);
    }
    let mut b = Bench::new(chain(1));
    let call = begin(&mut b, None);
    b.abort(1, Some(10));
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Unsaid)));
    assert!(matches!(settle(&out).1.outcome, Outcome::Cancelled { .. }));
    let mut b = Bench::new(chain(1));
    let call = begin(&mut b, None);
    let out = b.text(call, 1 << 40);
    assert_eq!(told(&out), None);
    let mut b = Bench::new(chain(1));
    let call = begin(&mut b, Some(Budget::Limited(S)));
    b.now += S;
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Unsaid)));
    assert_eq!(told(&out), None, "no time is left");
}

/// P15, B-050, B-051, B-052: a provider that hangs is cut within its share of the run's
/// budget, and the next one is asked at once, with what is left.
#[test]
fn a_provider_that_hangs_leaves_time_for_the_next() {
    for fallbacks in [1u64, 3] {
        let mut b = Bench::new(Config {
            recovery: RecoveryConfig::default(),
            ..chain(fallbacks as usize)
        });
        let mut call = begin(&mut b, Some(Budget::Limited(60 * S)));
        for candidate in 1..=fallbacks {
            let left = 60 * S - b.now;
            let out = b.pass(left / (fallbacks + 2 - candidate));
            assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
            assert_eq!(told(&out).map(|(n, _)| u64::from(n)), Some(candidate));
            let out = b.claim(&out);
            call = asked(&out).expect("the next one is asked").0;
        }
        assert!(b.now <= 45 * S, "{}", b.now);
        let out = b.complete(call);
        assert_eq!(settle(&out).1.outcome, Outcome::Completed);
    }
}

/// P15, B-050: a stream that stops in the middle is cut within its provider's share too.
#[test]
fn a_stream_that_stops_leaves_time_for_the_next() {
    for class in [ProviderClass::Cloud, ProviderClass::Local] {
        let provider = ProviderConfig {
            class,
            timeout_ms: None,
        };
        let mut b = Bench::new(Config {
            provider,
            ..chain(1)
        });
        let call = begin(&mut b, Some(Budget::Limited(60 * S)));
        b.pass(10 * S);
        b.text(call, 4);
        let out = b.pass(30 * S);
        assert_eq!(told(&out).map(|(n, _)| n), Some(1), "{class:?}");
    }
}

/// P15, B-050: a wait that leaves too little for the next provider is not begun.
#[test]
fn a_wait_leaves_time_for_the_next() {
    for (wait_ms, asks_again) in [(29 * S, true), (30 * S, false)] {
        let mut b = Bench::new(Config {
            recovery: RecoveryConfig::default(),
            ..chain(1)
        });
        let call = begin(&mut b, Some(Budget::Limited(60 * S)));
        let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Ms(wait_ms))));
        assert_eq!(is_retrying(&out), asks_again);
        assert_eq!(told(&out).is_some(), !asks_again);
    }
}

/// P15, P16: the outage of one provider does not use up the time that another may be out.
#[test]
fn the_outage_of_another_provider_is_another_one() {
    let mut b = Bench::new(Config {
        recovery: RecoveryConfig::default(),
        ..chain(1)
    });
    let call = begin(&mut b, None);
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Ms(80 * S))));
    assert!(is_retrying(&out));
    let out = b.pass(80 * S);
    let out = b.claim(&out);
    let call = model_ticket(&out);
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Ms(80 * S))));
    assert!(told(&out).is_some());
    let out = b.claim(&out);
    let call = model_ticket(&out);
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Ms(80 * S))));
    assert!(is_retrying(&out));
}

/// P15, P16, B-056: what may pass is asked again before the next provider is; then that one's
/// outage is another one, while the number of repetitions counts for the whole run.
#[test]
fn the_same_provider_is_asked_again_first() {
    let mut b = Bench::new(Config {
        recovery: RecoveryConfig::at_most(3),
        ..chain(1)
    });
    let mut call = begin(&mut b, None);
    let mut asked_of = Vec::new();
    for _ in 0..4 {
        let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Unsaid)));
        let out = match is_retrying(&out) {
            true => b.pass(30 * S),
            false => out,
        };
        let out = b.claim(&out);
        let (next, candidate) = asked(&out).expect("somebody is asked");
        asked_of.push(candidate);
        call = next;
    }
    assert_eq!(asked_of, [0, 0, 0, 1]);
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Unsaid)));
    assert!(!is_retrying(&out), "three repetitions were used up");
    settle(&out);
}

/// P15, B-057: a provider that wants to be left alone for more than a minute gives way at once
/// if there is another; else its wait is kept.
#[test]
fn a_long_wait_leads_to_the_next_provider() {
    for (wait_ms, fallbacks, most_ms, falls_back) in [
        (60 * S, 1, 60 * S, false),
        (61 * S, 1, 60 * S, true),
        (61 * S, 1, 0, false),
        (61 * S, 0, 60 * S, false),
    ] {
        let mut b = Bench::new(Config {
            recovery: RecoveryConfig {
                retry_after_max_ms: most_ms,
                ..RecoveryConfig::default()
            },
            ..chain(fallbacks)
        });
        let call = begin(&mut b, None);
        let out = b.model(call, ModelFact::Ended(error(429, RetryAfter::Ms(wait_ms))));
        assert_eq!(told(&out).is_some(), falls_back, "{wait_ms} {fallbacks}");
        assert_eq!(is_retrying(&out), !falls_back, "{wait_ms} {fallbacks}");
        if falls_back {
            let out = b.claim(&out);
            let call = model_ticket(&out);
            let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Unsaid)));
            let second = |o: &Output| {
                matches!(
                    o,
                    Output::Publish {
                        event: Event::Retrying { call: 2, .. },
                        ..
                    }
                )
            };
            assert!(has(&out, second), "nobody was asked again so far");
        }
    }
}

/// P16, spec 5.4: after five silent calls in a row the run ends, however long the chain.
#[test]
fn five_silent_providers_end_the_run() {
    let mut b = Bench::new(chain(8));
    let mut call = begin(&mut b, None);
    for _ in 0..4 {
        let out = b.pass(120 * S);
        let out = b.claim(&out);
        call = asked(&out).expect("the next one is asked").0;
    }
    let out = b.pass(120 * S);
    assert_eq!(told(&out), None);
    let out = b.model(call, ModelFact::Ended(ModelEnd::Cancelled));
    settle(&out);
}

/// R156: each provider of the chain has the limits of its own class.
#[test]
fn each_provider_has_limits_of_its_own() {
    let local = ProviderConfig {
        class: ProviderClass::Local,
        timeout_ms: Some(7 * S),
    };
    let mut b = Bench::new(Config {
        fallbacks: vec![local],
        ..asks_once()
    });
    let call = begin(&mut b, None);
    let out = b.model(call, ModelFact::Ended(error(503, RetryAfter::Unsaid)));
    let out = b.claim(&out);
    let call = asked(&out).expect("the local one is asked").0;
    assert!(b.pass(7 * S - 1).is_empty());
    let out = b.pass(1);
    assert!(has(&out, |o| *o == Output::CancelModel { ticket: call }));
}
