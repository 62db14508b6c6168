//! The chain of providers, read from the spec and not from the core (spec 5.4).
//!
//! Owns which failures lead to the next provider, and whether there is one. What a provider may
//! use of the time that is left stands with the limits of silence.

use tidegate_core::{Config, ErrorClass, Failure, Limit, Outcome, Time};

use super::rules::Past;

/// How many providers come behind one.
pub(super) fn behind(config: &Config, candidate: u16) -> usize {
    config
        .fallbacks
        .len()
        .saturating_sub(usize::from(candidate))
}

/// Whether a failure is one of the provider, so that another may do better. A request that is
/// wrong, a reply that is too large and an end of the run's own are the same everywhere.
pub(super) fn leads_on(because: Outcome) -> bool {
    match because {
        Outcome::Failed(Failure::Provider { class, .. }) => {
            !matches!(class, ErrorClass::Format | ErrorClass::ContextOverflow)
        }
        Outcome::Failed(why) => why == Failure::Incomplete,
        Outcome::TimedOut { limit, .. } => matches!(limit, Limit::FirstEvent | Limit::Idle),
        _ => false,
    }
}

/// Whether the next provider must be asked, once the same one is not asked again.
pub(super) fn must(
    config: &Config,
    candidate: u16,
    past: &Past,
    because: Outcome,
    left_ms: Option<u64>,
) -> bool {
    let somebody = behind(config, candidate) > 0 && !past.is_tired(&config.recovery);
    somebody && left_ms != Some(0) && leads_on(because)
}

/// What is left of a budget.
pub(super) fn left(now: Time, budget: Option<Time>) -> Option<u64> {
    budget.map(|end| end.since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P15, I41: what leads on, by kind.
    #[test]
    fn only_what_a_provider_did_leads_on() {
        let failed = |class| {
            let status = None;
            leads_on(Outcome::Failed(Failure::Provider { class, status }))
        };
        assert!(failed(ErrorClass::Auth) && failed(ErrorClass::Unknown));
        assert!(!failed(ErrorClass::Format) && !failed(ErrorClass::ContextOverflow));
        let late = |limit| {
            leads_on(Outcome::TimedOut {
                limit,
                provider_started: true,
            })
        };
        assert!(late(Limit::Idle) && late(Limit::FirstEvent));
        assert!(!late(Limit::Budget) && !late(Limit::Lane));
        assert!(leads_on(Outcome::Failed(Failure::Incomplete)));
        assert!(!leads_on(Outcome::Failed(Failure::ReplyTooLarge)));
        assert!(!leads_on(Outcome::Superseded));
    }

    /// P15, B-050: with nobody left, no time left or too many silent calls there is no next one.
    #[test]
    fn somebody_and_some_time_must_be_left() {
        let config = Config {
            fallbacks: vec![Config::default().provider; 2],
            ..Config::default()
        };
        let because = Outcome::Failed(Failure::Incomplete);
        let must = |candidate, past: &Past, left| must(&config, candidate, past, because, left);
        let mut past = Past::default();
        assert!(must(1, &past, None) && must(0, &past, Some(1)));
        assert!(!must(2, &past, None) && !must(1, &past, Some(0)));
        past.silences = config.recovery.silences_max;
        assert!(!must(1, &past, None));
    }
}
