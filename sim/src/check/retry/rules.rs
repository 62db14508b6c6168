//! When a failed call is made again, read from the spec and not from the core (spec 5.2, 5.4).
//!
//! Owns the numbers: which failures pass by themselves, how often and how long they are waited
//! for. A wait is drawn, so what is certain here is its least and its longest.

use tidegate_core::{
    ErrorClass, Failure, Limit, Marker, ModelEnd, Outcome, ProviderError, RecoveryConfig,
    RetryAfter, Time,
};

/// A failure of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Too many requests.
    RateLimit,
    /// The service is out of order, or out of reach.
    Outage,
    /// It says nothing.
    Silence,
    /// It does not pass by waiting.
    Lasting,
    /// The provider names a wait that no run can keep, or an allowance that is used up.
    TooLong,
}

/// Why a call is not made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Lasting,
    TooLong,
    Count,
    Silences,
    Window,
    Budget,
    /// Another provider is asked instead.
    Elsewhere,
}

/// What may be waited, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) least_ms: u64,
    pub(super) most_ms: u64,
    /// The longest wait that fits in what is left of the window, and of the budget.
    pub(super) room_ms: u64,
    /// Whether the provider named the least.
    pub(super) asked: bool,
}

/// The place of a call: how many providers are behind the one that failed, and when the run's
/// budget is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) behind: usize,
    pub(super) budget: Option<Time>,
}

/// What a run has behind it, in this life of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past {
    /// How often it asked again.
    pub(super) retries: u16,
    /// Whether a rate limit was named.
    limited: bool,
    /// When the outage began.
    outage_since: Option<Time>,
    /// Silent calls in a row.
    pub(super) silences: u16,
}

/// The class of an error: what was recognised beats the status (spec 5.3).
fn class(error: &ProviderError) -> ErrorClass {
    let of_status = || match error.status.unwrap_or(0) {
        429 => ErrorClass::RateLimit,
        529 => ErrorClass::Overloaded,
        408 | 499 | 504 | 522 | 524 => ErrorClass::Timeout,
        402 => ErrorClass::Billing,
        401 | 403 => ErrorClass::Auth,
        404 => ErrorClass::ModelNotFound,
        400 | 405 | 413 | 415 | 422 => ErrorClass::Format,
        500..600 => ErrorClass::ServerError,
        _ => ErrorClass::Unknown,
    };
    match error.marker {
        Marker::None => of_status(),
        Marker::RateLimit | Marker::UsageWindow => ErrorClass::RateLimit,
        Marker::Overloaded => ErrorClass::Overloaded,
        Marker::Billing => ErrorClass::Billing,
        Marker::ContextOverflow => ErrorClass::ContextOverflow,
        Marker::ModelNotFound => ErrorClass::ModelNotFound,
        Marker::Auth => ErrorClass::Auth,
        Marker::Format => ErrorClass::Format,
        Marker::Connect | Marker::Transport => ErrorClass::Network,
        Marker::Tls => ErrorClass::TlsCertificate,
        Marker::Oversized | Marker::NotAStream => ErrorClass::Protocol,
    }
}

/// What the end of a call means, how long the provider wants to be left alone, and as what the
/// run would end. `None`: it did not fail.
pub(super) fn failure(end: ModelEnd) -> Option<(Trouble, u64, Outcome)> {
    let incomplete = Outcome::Failed(Failure::Incomplete);
    let error = match end {
        ModelEnd::Completed => return None,
        ModelEnd::Incomplete => return Some((Trouble::Outage, 0, incomplete)),
        ModelEnd::Cancelled => return Some((Trouble::Lasting, 0, incomplete)),
        ModelEnd::Failed(error) => error,
    };
    let class = class(&error);
    let ends = Outcome::Failed(Failure::Provider {
        class,
        status: error.status,
    });
    let passes = match class {
        ErrorClass::RateLimit => Trouble::RateLimit,
        ErrorClass::Overloaded
        | ErrorClass::ServerError
        | ErrorClass::Timeout
        | ErrorClass::Network => Trouble::Outage,
        _ => Trouble::Lasting,
    };
    let (trouble, asked_ms) = match (passes, error.retry_after) {
        (Trouble::Lasting, _) => (Trouble::Lasting, 0),
        _ if error.marker == Marker::UsageWindow => (Trouble::TooLong, 0),
        (_, RetryAfter::Unrepresentable) => (Trouble::TooLong, 0),
        (passes, RetryAfter::Ms(ms)) => (passes, ms),
        (passes, RetryAfter::Unsaid) => (passes, 0),
    };
    Some((trouble, asked_ms, ends))
}

/// Whether a run ends so whose call said nothing for too long.
pub(super) const fn is_silence(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::TimedOut {
            limit: Limit::FirstEvent | Limit::Idle,
            ..
        }
    )
}

impl Past {
    /// How often a run may ask again in all.
    pub(super) const fn most(&self, config: &RecoveryConfig) -> u16 {
        match self.limited {
            true => config.rate_limit_retries_max,
            false => config.retries_max,
        }
    }

    /// Whether so many calls were silent that no other is made.
    pub(super) fn is_tired(&self, config: &RecoveryConfig) -> bool {
        self.silences >= config.silences_max.max(1)
    }

    /// A model answered: what was out of order is over.
    pub(super) const fn answered(&mut self) {
        (self.outage_since, self.silences) = (None, 0);
    }

    /// Another provider is asked: what was waited for does not count with it.
    pub(super) const fn with_another(&mut self) {
        self.outage_since = None;
    }

    /// Takes note of a failure, and says what may be waited before the next call.
    pub(super) fn failed(
        &mut self,
        config: &RecoveryConfig,
        now: Time,
        (trouble, asked_ms): (Trouble, u64),
        place: Place,
    ) -> Result<Span, Why> {
        match trouble {
            Trouble::Lasting => return Err(Why::Lasting),
            Trouble::TooLong => return Err(Why::TooLong),
            Trouble::Silence => self.silences += 1,
            Trouble::RateLimit => (self.limited, self.silences) = (true, 0),
            Trouble::Outage => self.silences = 0,
        }
        if self.retries >= self.most(config) {
            return Err(Why::Count);
        }
        if self.is_tired(config) {
            return Err(Why::Silences);
        }
        let far = |ms| config.retry_after_max_ms > 0 && ms > config.retry_after_max_ms;
        let elsewhere = match trouble {
            Trouble::Silence => true,
            Trouble::RateLimit => far(asked_ms),
            _ => false,
        };
        if elsewhere && place.behind > 0 {
            return Err(Why::Elsewhere);
        }
        let middle = (0..self.retries).fold(config.delay_ms, |ms, _| ms.saturating_mul(2));
        let middle = middle.min(config.delay_max_ms);
        let longest = middle.saturating_add(middle / 2).min(config.delay_max_ms);
        let least_ms = (middle / 2).max(asked_ms);
        let mut room_ms = u64::MAX;
        if trouble != Trouble::RateLimit {
            let since = *self.outage_since.get_or_insert(now);
            room_ms = since.plus(config.window_ms).since(now);
            if least_ms > room_ms {
                return Err(Why::Window);
            }
        }
        if let Some(left_ms) = place.budget.map(|end| end.since(now)) {
            let sharers = u64::try_from(place.behind)
                .unwrap_or(u64::MAX)
                .saturating_add(1);
            let left_ms = left_ms / sharers;
            if least_ms >= left_ms {
                return Err(Why::Budget);
            }
            room_ms = room_ms.min(left_ms - 1);
        }
        Ok(Span {
            least_ms,
            most_ms: longest.max(asked_ms),
            room_ms,
            asked: asked_ms > 0 && least_ms == asked_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The middles of the waits, with each call failing at once, and why there is no other.
    fn waits(trouble: Trouble, config: &RecoveryConfig) -> (Vec<u64>, Why) {
        let (mut past, mut now, mut waits) = (Past::default(), Time(0), Vec::new());
        loop {
            match past.failed(config, now, (trouble, 0), Place::default()) {
                Ok(span) => {
                    let middle = (span.least_ms * 2).min(config.delay_max_ms);
                    past.retries += 1;
                    waits.push(middle / 1_000);
                    now = now.plus(middle);
                }
                Err(why) => return (waits, why),
            }
        }
    }

    /// P16, R119: the measured numbers, so that this reading is one as well. A seventh wait for
    /// an outage fits only if it is drawn short.
    #[test]
    fn the_second_reading_of_the_waits_agrees_with_the_measured_ones() {
        let config = RecoveryConfig::default();
        let outage = (vec![1, 2, 4, 8, 16, 30, 30], Why::Window);
        assert_eq!(waits(Trouble::Outage, &config), outage);
        let (limited, why) = waits(Trouble::RateLimit, &config);
        assert_eq!(
            (limited.len(), limited.iter().sum(), why),
            (9, 151, Why::Count)
        );
        assert_eq!(waits(Trouble::Silence, &config).1, Why::Silences);
        assert_eq!(waits(Trouble::Lasting, &config), (vec![], Why::Lasting));
    }

    /// P16, B-057: what the provider asks for is the least, and must fit in what is left.
    #[test]
    fn a_wait_that_is_asked_for_is_the_least_and_must_fit() {
        let config = RecoveryConfig::default();
        let first = |trouble, budget| {
            let place = Place { behind: 0, budget };
            Past::default().failed(&config, Time(0), trouble, place)
        };
        let span = first((Trouble::RateLimit, 2_000), None).expect("it fits");
        assert_eq!((span.least_ms, span.most_ms), (2_000, 2_000));
        let end = Some(Time(2_000));
        let short = first((Trouble::RateLimit, 2_000), end);
        assert_eq!(short, Err(Why::Budget));
        let beyond = first((Trouble::Outage, 90_001), None);
        assert_eq!(beyond, Err(Why::Window));
    }

    /// P15, B-050, B-051: with others behind it a provider waits within its part of the time, and
    /// what hangs or is far away is not waited for at all.
    #[test]
    fn with_others_behind_it_a_provider_has_a_part_of_the_time() {
        let config = RecoveryConfig::default();
        let first = |trouble, behind| {
            let budget = Some(Time(180_000));
            let place = Place { behind, budget };
            let span = Past::default().failed(&config, Time(0), trouble, place);
            span.map(|span| span.room_ms)
        };
        assert_eq!(first((Trouble::RateLimit, 0), 2), Ok(59_999));
        assert_eq!(first((Trouble::RateLimit, 60_000), 2), Err(Why::Budget));
        assert_eq!(first((Trouble::RateLimit, 60_001), 1), Err(Why::Elsewhere));
        assert_eq!(first((Trouble::RateLimit, 60_001), 0), Ok(179_999));
        assert_eq!(first((Trouble::Silence, 0), 1), Err(Why::Elsewhere));
        assert_eq!(first((Trouble::Outage, 0), 1), Ok(89_999));
    }
}
