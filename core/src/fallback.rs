//! The fallback chain: another provider is asked when one can't answer (spec 5.4).
//!
//! Owns which failures lead on and what each candidate may use of the run's budget, so that
//! those behind it still have their turn (P15, B-050). Only what a provider did leads on; what
//! went wrong here never does (B-021). Each candidate's call is an attempt with a claim of its
//! own, as a repeated call is.

use crate::config::{Config, ProviderConfig};
use crate::ids::RunId;
use crate::limits::Silence;
use crate::machine::Core;
use crate::outcome::{Failure, Limit, Outcome};
use crate::output::Event;
use crate::provider::ErrorClass;
use crate::run::Run;
use crate::timers::Timer;

impl Config {
    /// A provider of the chain: 0 is the first choice.
    pub(crate) fn candidate(&self, candidate: u16) -> ProviderConfig {
        let fallback = candidate.checked_sub(1).map(usize::from);
        let fallback = fallback.and_then(|n| self.fallbacks.get(n));
        fallback.copied().unwrap_or(self.provider)
    }

    /// How many providers come behind this one.
    pub(crate) fn behind(&self, candidate: u16) -> u64 {
        (self.fallbacks.len() as u64).saturating_sub(u64::from(candidate))
    }
}

/// Whether another provider may do what this one could not. A request that is wrong, or a
/// reply that is too large, is so everywhere.
const fn leads_on(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Failed(Failure::Provider { class, .. }) => match class {
            ErrorClass::Auth
            | ErrorClass::RateLimit
            | ErrorClass::Overloaded
            | ErrorClass::Billing
            | ErrorClass::ServerError
            | ErrorClass::Timeout
            | ErrorClass::TlsCertificate
            | ErrorClass::ModelNotFound
            | ErrorClass::Network
            | ErrorClass::Protocol
            | ErrorClass::Unknown => true,
            ErrorClass::Format | ErrorClass::ContextOverflow => false,
        },
        Outcome::Failed(Failure::Incomplete)
        | Outcome::TimedOut {
            limit: Limit::FirstEvent | Limit::Idle,
            ..
        } => true,
        Outcome::Failed(Failure::ReplyTooLarge | Failure::TooManyRounds)
        | Outcome::TimedOut {
            limit: Limit::Budget | Limit::Lane,
            ..
        }
        | Outcome::Completed
        | Outcome::Cancelled { .. }
        | Outcome::Superseded
        | Outcome::Dropped { .. } => false,
    }
}

/// What a provider may use of the time that is left: an equal share, if others come behind it.
pub(crate) fn share(config: &Config, candidate: u16, left_ms: Option<u64>) -> Option<u64> {
    match config.behind(candidate) {
        0 => None,
        behind => left_ms.map(|left| left / behind.saturating_add(1)),
    }
}

impl Run {
    /// The silence limits of its call: those of its provider, within its share of the budget.
    pub(crate) fn silence(&self, config: &Config) -> Silence {
        let provider = config.candidate(self.candidate);
        let own = crate::limits::silence(config, provider, self.budget);
        match share(config, self.candidate, self.left_ms) {
            None => own,
            Some(share) => Silence {
                first_event_ms: own.first_event_ms.min(share),
                idle_ms: Some(own.idle_ms.map_or(share, |ms| ms.min(share))),
            },
        }
    }
}

impl Core {
    /// Asks the next provider, if there is one and it may help: its attempt claims at once.
    pub(crate) fn falls_back(&mut self, id: RunId, outcome: Outcome) -> bool {
        let left_ms = self.budget_left(id);
        let Some(run) = self.runs.get_mut(&id) else {
            return false;
        };
        let none_left = self.config.behind(run.candidate) == 0 || left_ms == Some(0);
        if none_left || !leads_on(outcome) || run.recovery.gave_up(&self.config.recovery) {
            return false;
        }
        run.candidate += 1;
        run.recovery.begin_with_another();
        run.left_ms = left_ms;
        let candidate = run.candidate;
        self.keep_what_was_shown(id);
        self.publish(
            id,
            Event::Fallback {
                candidate,
                because: outcome,
            },
        );
        self.timers.disarm(Timer::Budget(id));
        self.order_claim(id, 0);
        true
    }
}
