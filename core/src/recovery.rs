//! Same-model recovery: a call that failed for a while is made again (spec 5.2).
//!
//! Owns the decision whether and when, and the wait in between. Each call is an attempt of its
//! own with a claim of its own, so that nothing of the failed one passes under the next (law 4):
//! the claim keeps what had streamed as a row that is marked interrupted, and the reply begins
//! anew (P16, B-058). The wait pauses nothing else: the run's budget goes on.

use core::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::fallback::share;
use crate::ids::{RunId, Ticket};
use crate::input::ModelEnd;
use crate::machine::Core;
use crate::outcome::{Limit, Outcome};
use crate::output::{Event, Output};
use crate::provider::{ErrorClass, Marker, ProviderError, RetryAfter};
use crate::run::{Run, State};
use crate::time::Time;
use crate::timers::Timer;

/// When a call that failed is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecoveryConfig {
    /// How often a run asks again; 0 is never (spec 5.2).
    pub retries_max: u16,
    /// The same, once the provider has named a rate limit (spec 5.2).
    pub rate_limit_retries_max: u16,
    /// How long an outage may last, from its first failure to the next call; a rate limit is
    /// none (spec 5.2).
    pub window_ms: u64,
    /// The wait before the first repetition; doubles with each (spec 5.2).
    pub delay_ms: u64,
    /// The longest wait that the provider did not ask for (spec 5.2).
    pub delay_max_ms: u64,
    /// After so many silent calls in a row no other is made (spec 5.4).
    pub silences_max: u16,
    /// A rate limited provider that wants to be left alone for longer gives way to a fallback
    /// at once; 0 is no such limit (spec 5.2).
    pub retry_after_max_ms: u64,
}

impl RecoveryConfig {
    /// At most so many repetitions, of a rate limit too: `retry.provider.maxRetries`.
    #[must_use]
    pub fn at_most(retries: u16) -> Self {
        Self {
            retries_max: retries,
            rate_limit_retries_max: retries,
            ..Self::default()
        }
    }
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            retries_max: 8,
            rate_limit_retries_max: 9,
            window_ms: 90_000,
            delay_ms: 1_000,
            delay_max_ms: 30_000,
            silences_max: 5,
            retry_after_max_ms: 60_000,
        }
    }
}

/// What a run remembers of its failed calls. Of this life: a restart begins anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Recovery {
    /// How often it asked again, over all providers.
    retries: u16,
    /// Whether a rate limit was named.
    rate_limited: bool,
    /// When the outage began.
    outage_since: Option<Time>,
    /// Silent calls in a row.
    silences: u16,
}

/// A failure that may pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    RateLimit { wait_ms: u64 },
    Outage { wait_ms: u64 },
    Silence,
}

impl Trouble {
    /// What the end of a call says; `None`: to ask again is of no use, or not allowed.
    fn of_end(end: ModelEnd) -> Option<Self> {
        match end {
            ModelEnd::Failed(error) => Self::of_error(error),
            ModelEnd::Incomplete => Some(Self::Outage { wait_ms: 0 }),
            ModelEnd::Completed | ModelEnd::Cancelled => None,
        }
    }

    fn of_error(error: ProviderError) -> Option<Self> {
        let wait_ms = match error.retry_after {
            RetryAfter::Unsaid => 0,
            RetryAfter::Ms(ms) => ms,
            RetryAfter::Unrepresentable => return None,
        };
        match error.class() {
            // A day's or a month's allowance does not come back within a run.
            ErrorClass::RateLimit if error.marker == Marker::UsageWindow => None,
            ErrorClass::RateLimit => Some(Self::RateLimit { wait_ms }),
            ErrorClass::Overloaded
            | ErrorClass::ServerError
            | ErrorClass::Timeout
            | ErrorClass::Network => Some(Self::Outage { wait_ms }),
            ErrorClass::Auth
            | ErrorClass::Format
            | ErrorClass::Billing
            | ErrorClass::TlsCertificate
            | ErrorClass::ContextOverflow
            | ErrorClass::ModelNotFound
            | ErrorClass::Protocol
            | ErrorClass::Unknown => None,
        }
    }

    /// Whether another provider, if there is one, is asked instead of this one again: it hangs,
    /// or wants to be left alone for long (B-051, spec 5.2).
    const fn prefers_another(self, config: &RecoveryConfig) -> bool {
        match self {
            Self::Silence => true,
            Self::RateLimit { wait_ms } => {
                config.retry_after_max_ms > 0 && wait_ms > config.retry_after_max_ms
            }
            Self::Outage { .. } => false,
        }
    }
}

impl Recovery {
    /// How often the run may ask again in all.
    fn most(&self, config: &RecoveryConfig) -> u16 {
        match self.rate_limited {
            true => config.rate_limit_retries_max,
            false => config.retries_max,
        }
    }

    /// Whether so many calls were silent that no other is made.
    pub(crate) fn gave_up(&self, config: &RecoveryConfig) -> bool {
        self.silences >= config.silences_max.max(1)
    }

    /// A model answered: the outage is over.
    pub(crate) fn answered(&mut self) {
        self.outage_since = None;
        self.silences = 0;
    }

    /// Another provider is asked: its outage would be another one.
    pub(crate) fn begin_with_another(&mut self) {
        self.outage_since = None;
    }

    /// Takes note of a failure. The wait before the next call, or `None` if there is none.
    fn failed(
        &mut self,
        config: &RecoveryConfig,
        now: Time,
        jitter: u64,
        trouble: Trouble,
    ) -> Option<u64> {
        let (asked_ms, limited) = match trouble {
            Trouble::RateLimit { wait_ms } => (wait_ms, true),
            Trouble::Outage { wait_ms } => (wait_ms, false),
            Trouble::Silence => (0, false),
        };
        self.rate_limited |= limited;
        self.silences = match trouble {
            Trouble::Silence => self.silences.saturating_add(1),
            _ => 0,
        };
        if self.retries >= self.most(config) || self.gave_up(config) {
            return None;
        }
        let delay_ms = backoff(config, self.retries, jitter).max(asked_ms);
        if !limited {
            let since = *self.outage_since.get_or_insert(now);
            if now.plus(delay_ms) > since.plus(config.window_ms) {
                return None;
            }
        }
        Some(delay_ms)
    }
}

/// The wait before the repetition after `retries` others: doubles, and is drawn from its half
/// up to one and a half times.
fn backoff(config: &RecoveryConfig, retries: u16, jitter: u64) -> u64 {
    let doublings = u32::from(retries.min(32));
    let base = config
        .delay_ms
        .saturating_mul(1u64 << doublings)
        .min(config.delay_max_ms);
    let drawn = base / 2 + base.saturating_mul(jitter % 1_000) / 1_000;
    drawn.min(config.delay_max_ms)
}

/// Jitter without a generator that runs share: the id and the attempt are the seed. Ids are
/// fingerprints under a key, so neighbours do not ask again in step (B-056).
fn jitter(run: &Run) -> u64 {
    let mut digest = Digest::new();
    run.id.hash(&mut digest);
    run.attempt.hash(&mut digest);
    digest.finish()
}

impl Core {
    /// A call is over by itself without an answer: waits to ask again, or ends the run.
    pub(crate) fn call_failed(&mut self, id: RunId, end: ModelEnd, outcome: Outcome) {
        let again = Trouble::of_end(end).is_some_and(|it| self.asks_again(id, it, outcome));
        if !again && !self.falls_back(id, outcome) {
            self.finish(id, outcome);
        }
    }

    /// The provider is silent beyond a limit: waits to ask again, or stops the run.
    pub(crate) fn call_silent(&mut self, id: RunId, call: Ticket, outcome: Outcome) {
        if self.asks_again(id, Trouble::Silence, outcome) || self.falls_back(id, outcome) {
            self.out(Output::CancelModel { ticket: call });
        } else {
            self.stop(id, outcome);
        }
    }

    /// Whether the run asks again; then it waits for that now. What it had shown stays its
    /// reply until the next attempt has claimed.
    fn asks_again(&mut self, id: RunId, trouble: Trouble, outcome: Outcome) -> bool {
        let left_ms = self.budget_left(id);
        let now = self.now.time;
        let Some(run) = self.runs.get_mut(&id) else {
            return false;
        };
        let seed = jitter(run);
        let delay = run
            .recovery
            .failed(&self.config.recovery, now, seed, trouble);
        let share_ms = share(&self.config, run.candidate, left_ms).or(left_ms);
        let fits = |&ms: &u64| share_ms.is_none_or(|share| ms < share);
        let elsewhere =
            self.config.behind(run.candidate) > 0 && trouble.prefers_another(&self.config.recovery);
        let Some(delay_ms) = delay.filter(fits).filter(|_| !elsewhere) else {
            return false;
        };
        run.recovery.retries += 1;
        let retrying = Event::Retrying {
            call: run.recovery.retries.saturating_add(1),
            calls_max: run.recovery.most(&self.config.recovery).saturating_add(1),
            delay_ms,
            because: outcome,
        };
        run.state = State::Backoff;
        self.keep_what_was_shown(id);
        self.publish(id, retrying);
        self.arm_in(Timer::ProviderRetry(id), delay_ms);
        true
    }

    /// The call is over: all that came of it is shown and saved, for the next claim to keep.
    pub(crate) fn keep_what_was_shown(&mut self, id: RunId) {
        self.flush_text(id);
        self.save_pace_due(id);
        self.disarm_call(id);
        if let Some(run) = self.runs.get_mut(&id) {
            run.round.calls.clear(); // of an answer that broke off none counts (I33)
        }
    }

    /// The wait is over: the next attempt claims.
    pub(crate) fn provider_retry_due(&mut self, id: RunId) {
        let left_ms = self.budget_left(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        if run.state != State::Backoff {
            return;
        }
        run.left_ms = left_ms;
        if left_ms == Some(0) {
            // A late wake: its own deadline has passed too.
            let limit = Limit::Budget;
            let provider_started = run.has_asked();
            return self.finish(
                id,
                Outcome::TimedOut {
                    limit,
                    provider_started,
                },
            );
        }
        self.timers.disarm(Timer::Budget(id));
        self.order_claim(id, 0);
    }

    /// What is left of a run's executed time; `None` is no limit.
    pub(crate) fn budget_left(&self, id: RunId) -> Option<u64> {
        let end = self.timers.at(Timer::Budget(id))?;
        Some(end.since(self.now.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MIDDLE: u64 = 500;

    fn waits(trouble: Trouble, config: &RecoveryConfig) -> Vec<u64> {
        let mut recovery = Recovery::default();
        let mut now = Time(0);
        let mut waits = Vec::new();
        while let Some(ms) = recovery.failed(config, now, MIDDLE, trouble) {
            waits.push(ms);
            recovery.retries += 1;
            now = now.plus(ms);
        }
        waits
    }

    /// P16, I36: the measured waits of an outage and of a rate limit.
    #[test]
    fn the_measured_waits_hold() {
        let config = RecoveryConfig::default();
        let outage = Trouble::Outage { wait_ms: 0 };
        let expected = [1, 2, 4, 8, 16, 30].map(|s| s * 1_000);
        assert_eq!(waits(outage, &config), expected);
        let limited = waits(Trouble::RateLimit { wait_ms: 0 }, &config);
        assert_eq!(limited.len(), 9);
        assert_eq!(limited.iter().sum::<u64>(), 151_000);
    }

    /// P16, B-057: a provider's own wait is kept, and one that does not fit ends it.
    #[test]
    fn a_providers_wait_is_kept() {
        let config = RecoveryConfig::default();
        let limited = |wait_ms| waits(Trouble::RateLimit { wait_ms }, &config);
        assert_eq!(limited(2_000)[..3], [2_000, 2_000, 4_000]);
        assert_eq!(limited(86_400_000).len(), 9);
        let outage = |wait_ms| waits(Trouble::Outage { wait_ms }, &config);
        assert_eq!(outage(90_000), [90_000]);
        assert!(outage(90_001).is_empty());
    }

    /// P16: silent calls are bounded by their number, whatever the window.
    #[test]
    fn silent_calls_in_a_row_are_bounded() {
        let config = RecoveryConfig {
            window_ms: u64::MAX,
            ..RecoveryConfig::default()
        };
        assert_eq!(waits(Trouble::Silence, &config).len(), 4);
        let mut recovery = Recovery::default();
        let troubles = [Trouble::Outage { wait_ms: 0 }, Trouble::Silence].repeat(4);
        for trouble in troubles {
            let wait = recovery.failed(&config, Time(0), MIDDLE, trouble);
            assert!(wait.is_some(), "no two of them in a row");
        }
    }

    /// P16: a wait is drawn between half and one and a half times its middle, below the cap.
    #[test]
    fn waits_are_spread() {
        let config = RecoveryConfig::default();
        for (retries, middle) in [(0, 1_000), (3, 8_000), (9, 30_000), (u16::MAX, 30_000)] {
            for jitter in 0..1_000 {
                let ms = backoff(&config, retries, jitter);
                assert!(
                    ms >= middle / 2 && ms < (middle / 2 * 3).min(30_001),
                    "{ms}"
                );
            }
            assert_eq!(backoff(&config, retries, 0), middle / 2);
        }
    }
}
