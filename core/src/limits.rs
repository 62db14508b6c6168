//! How long a model may be silent: the table of first-event and idle limits (spec 5.1).
//!
//! Owns the arithmetic only. It arms nothing; the attempt asks once, when its call goes out.

use crate::config::{Budget, Config, ProviderConfig};
use crate::provider::ProviderClass;

/// First-event limit of a public service (R156).
const FIRST_EVENT_CLOUD_MS: u64 = 120_000;
/// First-event limit of any other provider (spec 5.1).
const FIRST_EVENT_OTHER_MS: u64 = 300_000;
/// Idle ceiling of a public service (R156).
const IDLE_CLOUD_MS: u64 = 120_000;
/// Idle ceiling of a server of one's own (R156).
const IDLE_SELF_HOSTED_MS: u64 = 300_000;

/// The silence limits of one model call, in milliseconds. `None` is no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    /// From the request to the first event.
    pub(crate) first_event_ms: u64,
    /// Between two pieces of progress.
    pub(crate) idle_ms: Option<u64>,
}

/// The limits for a run of a user's message. `run` is the run's own limit, if it names one.
/// An explicit limit of zero milliseconds does not occur: zero is unlimited at the edge.
pub(crate) fn silence(config: &Config, provider: ProviderConfig, run: Option<Budget>) -> Silence {
    let class = provider.class;
    let agent = match config.agent_budget {
        Some(Budget::Limited(ms)) => Some(ms),
        Some(Budget::Unlimited) | None => None,
    };
    // The limit above the model call: the run's own, else the agent's. A run that is
    // explicitly unlimited hides the agent's limit from the first event.
    let outer = match run {
        Some(Budget::Limited(ms)) => Some(ms),
        Some(Budget::Unlimited) => None,
        None => agent,
    };
    let base = match class {
        ProviderClass::Cloud => FIRST_EVENT_CLOUD_MS,
        ProviderClass::SelfHosted | ProviderClass::Local => FIRST_EVENT_OTHER_MS,
    };
    let first_event_ms = least(provider.timeout_ms.unwrap_or(base), outer);

    let ceiling = match class {
        ProviderClass::Cloud => Some(IDLE_CLOUD_MS),
        ProviderClass::SelfHosted => Some(IDLE_SELF_HOSTED_MS),
        ProviderClass::Local => None,
    };
    let idle_ms = match (provider.timeout_ms, run, agent) {
        (Some(own), _, _) => Some(least(own, outer)),
        (None, Some(Budget::Limited(ms)), _) => Some(least(ms, ceiling)),
        (None, _, Some(ms)) => Some(least(ms, ceiling)),
        (None, _, None) => ceiling,
    };
    Silence {
        first_event_ms,
        idle_ms,
    }
}

fn least(ms: u64, other: Option<u64>) -> u64 {
    other.map_or(ms, |o| ms.min(o))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProviderClass::{Cloud, Local, SelfHosted};

    const S: u64 = 1_000;

    fn limits(
        class: ProviderClass,
        provider: Option<u64>,
        run: Option<Budget>,
        agent: Option<u64>,
    ) -> (u64, u64) {
        let config = Config {
            provider: ProviderConfig {
                class,
                timeout_ms: provider,
            },
            agent_budget: agent.map(Budget::Limited),
            ..Config::default()
        };
        let silence = silence(&config, config.provider, run);
        (silence.idle_ms.unwrap_or(0), silence.first_event_ms)
    }

    /// R156, R157, R158, P14: vectors 16.1, user trigger; (idle, first event), 0 is off.
    #[test]
    fn the_measured_table_holds() {
        let columns = [
            (None, None),
            (None, Some(90 * S)),
            (None, Some(3_600 * S)),
            (Some(Budget::Limited(30 * S)), None),
            (Some(Budget::Limited(30 * S)), Some(90 * S)),
            (Some(Budget::Limited(600 * S)), None),
            (Some(Budget::Limited(600 * S)), Some(90 * S)),
            (Some(Budget::Unlimited), None),
            (Some(Budget::Unlimited), Some(90 * S)),
        ];
        let rows = [
            (
                Cloud,
                [
                    (120, 120),
                    (90, 90),
                    (120, 120),
                    (30, 30),
                    (30, 30),
                    (120, 120),
                    (120, 120),
                    (120, 120),
                    (90, 120),
                ],
            ),
            (
                SelfHosted,
                [
                    (300, 300),
                    (90, 90),
                    (300, 300),
                    (30, 30),
                    (30, 30),
                    (300, 300),
                    (300, 300),
                    (300, 300),
                    (90, 300),
                ],
            ),
            (
                Local,
                [
                    (0, 300),
                    (90, 90),
                    (3_600, 300),
                    (30, 30),
                    (30, 30),
                    (600, 300),
                    (600, 300),
                    (0, 300),
                    (90, 300),
                ],
            ),
        ];
        for (class, cells) in rows {
            for ((run, agent), (idle, first)) in columns.into_iter().zip(cells) {
                assert_eq!(
                    limits(class, None, run, agent),
                    (idle * S, first * S),
                    "{class:?}, run {run:?}, agent {agent:?}"
                );
            }
        }
    }

    /// R157, B-044: a provider timeout raises the window above the class ceiling, bounded by
    /// the lower outer limit.
    #[test]
    fn a_provider_timeout_counts_and_a_lower_outer_limit_bounds_it() {
        let provider = Some(900 * S);
        for class in [Cloud, SelfHosted, Local] {
            assert_eq!(limits(class, provider, None, None), (900 * S, 900 * S));
            assert_eq!(
                limits(class, provider, Some(Budget::Limited(600 * S)), None),
                (600 * S, 600 * S)
            );
            assert_eq!(
                limits(class, provider, None, Some(90 * S)),
                (90 * S, 90 * S)
            );
            assert_eq!(
                limits(class, provider, Some(Budget::Unlimited), None),
                (900 * S, 900 * S)
            );
        }
    }
}
