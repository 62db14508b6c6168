//! Whoever starts and stops the process: systemd, a container runtime, or nobody.
//!
//! It owns what a supervisor's patience leaves of a drain (spec 2.5), and what a supervisor that
//! listens at `NOTIFY_SOCKET` is told. It decides nothing about runs; times are arguments.

use std::time::Duration;

use sd_notify::NotifyState;
use tidegate_driver::Clock;
use tokio::time::{MissedTickBehavior, interval};

/// Kept back from a supervisor's limit for the last writes and the closing of connections,
/// after the drain (spec 2.5).
const FINAL_WRITES_MS: u64 = 10_000;

/// Kept back from a supervisor's limit, so that it never has to kill (spec 2.5).
const MARGIN_MS: u64 = 5_000;

/// What a supervisor's limit needs beyond the drain itself.
pub const RESERVE_MS: u64 = FINAL_WRITES_MS + MARGIN_MS;

/// How much longer the supervisor is asked to wait each time.
const EXTENSION_MS: u64 = 30_000;

/// Between two such requests: two of them may come late before the supervisor loses patience.
const REPEAT_MS: u64 = 10_000;

/// How long a drain may wait for the runs at work, where whoever stops the process kills it
/// `limit_ms` after its signal. `None`: nobody does, or it can be asked to wait.
#[must_use]
pub fn drain_budget_ms(configured_ms: u64, limit_ms: Option<u64>) -> u64 {
    limit_ms.map_or(configured_ms, |limit_ms| {
        configured_ms.min(limit_ms.saturating_sub(RESERVE_MS))
    })
}

/// How much longer a supervisor is asked to wait, `since_ms` after the drain began: never past
/// the end of the drain and of what follows it. `None`: nothing more is asked for, so that a
/// process that is stuck is killed.
#[must_use]
pub fn extension_ms(since_ms: u64, budget_ms: u64) -> Option<u64> {
    let whole_ms = budget_ms.saturating_add(RESERVE_MS);
    let left_ms = whole_ms.saturating_sub(since_ms);
    (left_ms > 0).then(|| left_ms.min(EXTENSION_MS))
}

/// Tells the supervisor, if there is one that listens. One that can't be told is left alone: it
/// then has the patience that it was configured with.
pub async fn tell(states: Vec<NotifyState<'static>>) {
    // On a thread of its own: a supervisor that does not read must not hold the gateway.
    let told = tokio::task::spawn_blocking(move || sd_notify::notify(&states)).await;
    if let Ok(Err(error)) = told {
        tracing::warn!(%error, "the supervisor at NOTIFY_SOCKET can't be told");
    }
}

/// Tells the supervisor that the drain began, and asks it for patience until it is over, again
/// and again before the last request runs out. Returns when there is nothing more to ask for.
pub async fn ask_for_patience<T, F>(clock: &dyn Clock, budget_ms: u64, tell: T)
where
    T: Fn(Vec<NotifyState<'static>>) -> F,
    F: Future<Output = ()>,
{
    let begun = clock.now().time;
    let mut ticks = interval(Duration::from_millis(REPEAT_MS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut news = vec![NotifyState::Stopping];
    loop {
        ticks.tick().await;
        let since_ms = clock.now().time.since(begun);
        let Some(more_ms) = extension_ms(since_ms, budget_ms) else {
            return;
        };
        let more_us = u32::try_from(more_ms.saturating_mul(1_000)).unwrap_or(u32::MAX);
        news.push(NotifyState::ExtendTimeoutUsec(more_us));
        tell(std::mem::take(&mut news)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tidegate_driver::SystemClock;

    use super::*;

    /// P21: 10 s for the last writes and 5 s before the kill are kept back, and a limit
    /// never makes a drain longer.
    #[test]
    fn a_supervisors_limit_shortens_the_drain_and_never_lengthens_it() {
        for (configured, limit, budget) in [
            (300_000, None, 300_000),
            (300_000, Some(315_000), 300_000),
            (300_000, Some(90_000), 75_000),
            (300_000, Some(15_001), 1),
            (300_000, Some(15_000), 0),
            (300_000, Some(0), 0),
            (20_000, Some(90_000), 20_000),
            (0, Some(90_000), 0),
            (u64::MAX, Some(u64::MAX), u64::MAX - RESERVE_MS),
        ] {
            let composed = drain_budget_ms(configured, limit);
            assert_eq!(composed, budget, "{configured} {limit:?}");
        }
    }

    /// Law 9: what is asked for ends with the drain.
    #[test]
    fn no_patience_is_asked_for_beyond_the_end() {
        for (since, budget, more) in [
            (0, 300_000, Some(EXTENSION_MS)),
            (285_000, 300_000, Some(EXTENSION_MS)),
            (300_000, 300_000, Some(RESERVE_MS)),
            (314_999, 300_000, Some(1)),
            (315_000, 300_000, None),
            (u64::MAX, 300_000, None),
            (0, 0, Some(RESERVE_MS)),
            (0, u64::MAX, Some(EXTENSION_MS)),
        ] {
            assert_eq!(extension_ms(since, budget), more, "{since} of {budget}");
        }
    }

    /// P21: at no instant of the drain has the last request run out.
    #[tokio::test(start_paused = true)]
    async fn the_supervisor_is_asked_again_before_its_patience_ends() {
        let (budget_ms, clock) = (95_000, SystemClock::start());
        let begun = clock.now().time;
        let told = RefCell::new(Vec::new());
        ask_for_patience(&clock, budget_ms, |news| {
            let words: Vec<_> = news.iter().map(ToString::to_string).collect();
            told.borrow_mut()
                .push((clock.now().time.since(begun), words));
            std::future::ready(())
        })
        .await;
        let told = told.into_inner();
        let (_, first) = &told[0];
        assert_eq!(*first, ["STOPPING=1", "EXTEND_TIMEOUT_USEC=30000000"]);
        let mut patience_ms = 0;
        for (at, words) in &told {
            assert!(*at <= patience_ms, "asked too late: {told:?}");
            let last = words.last().expect("each message asks for something");
            let more = last.strip_prefix("EXTEND_TIMEOUT_USEC=").expect(last);
            let more_us: u64 = more.parse().expect("a number");
            patience_ms = patience_ms.max(at + more_us / 1_000);
        }
        assert_eq!(patience_ms, budget_ms + RESERVE_MS);
    }
}
