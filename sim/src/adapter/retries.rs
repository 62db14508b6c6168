//! How faults of asking again strike: around a failed call, its wait and the next claim. All of
//! them strike always.

use tidegate_core::{
    Config, Event, Input, Marker, ModelEnd, ModelFact, Output, ProviderError, RecoveryConfig,
    RetryAfter, RunId, Subject,
};

use super::Plant;
use super::turns::claim;
use crate::fault::Fault;

/// The configuration that the core gets.
pub(super) fn told(fault: Option<Fault>, mut config: Config) -> Config {
    let recovery = config.recovery;
    config.recovery = match fault {
        Some(Fault::RetryForEver) => RecoveryConfig {
            window_ms: u64::MAX,
            silences_max: u16::MAX,
            ..recovery
        },
        Some(Fault::RetryUncalled) if recovery.retries_max == 0 => RecoveryConfig::default(),
        _ => recovery,
    };
    super::fallbacks::told(fault, &mut config);
    super::tools::told(fault, &mut config);
    config
}

/// Whether a failure passes by itself, as far as its marker says.
const fn passes(error: &ProviderError) -> bool {
    matches!(
        error.marker,
        Marker::RateLimit | Marker::Overloaded | Marker::Connect | Marker::Transport
    )
}

const fn lasts(error: &ProviderError) -> bool {
    matches!(
        error.marker,
        Marker::Auth | Marker::ContextOverflow | Marker::NotAStream | Marker::UsageWindow
    )
}

/// The run that an output tells to ask its model again.
pub(super) fn retrying(output: &Output) -> Option<RunId> {
    match output {
        Output::Publish {
            run,
            event: Event::Retrying { .. },
            ..
        } => Some(*run),
        _ => None,
    }
}

impl Plant {
    pub(super) fn before_retry(&mut self, input: &mut Input) {
        let Input::Model { ticket, fact } = input else {
            return;
        };
        match (self.fault, fact) {
            (Fault::RetryAfterIgnored, ModelFact::Ended(ModelEnd::Failed(error)))
                if matches!(error.retry_after, RetryAfter::Ms(_)) =>
            {
                error.retry_after = RetryAfter::Unsaid;
            }
            (Fault::FailureExcused, ModelFact::Ended(ModelEnd::Failed(error))) if lasts(error) => {
                (error.marker, error.retry_after) = (Marker::Transport, RetryAfter::Unsaid);
            }
            (Fault::RetryGivenUp, ModelFact::Ended(ModelEnd::Failed(error))) if passes(error) => {
                error.marker = Marker::Auth;
            }
            (Fault::TextCarriedOver, ModelFact::Text { to }) => {
                if let Subject::Run(run) = ticket.subject {
                    let (attempt, before, said) = self.texts.entry(run).or_default();
                    if *attempt != ticket.attempt {
                        (*attempt, *before) = (ticket.attempt, *before + *said);
                    }
                    *said = *to;
                    *to += *before;
                }
            }
            _ => {}
        }
    }

    pub(super) fn after_retry(&mut self, outputs: &mut Vec<Output>) {
        let again = outputs.iter().find_map(retrying);
        self.waiting.extend(again);
        match self.fault {
            Fault::RetryDropped => outputs.retain(|output| match output {
                Output::Claim { fence, .. } => !self.waiting.contains(&fence.run),
                _ => true,
            }),
            Fault::RetryAtOnce => {
                let fence = again.and_then(|run| self.fences.get(&run));
                if let Some(&(mut fence)) = fence {
                    fence.attempt = fence.attempt.next();
                    let last = outputs.len().saturating_sub(1);
                    outputs.insert(last, claim(fence));
                }
            }
            Fault::RetryingUntold => outputs.retain(|output| retrying(output).is_none()),
            Fault::FailedTextUnsaved if again.is_some() => {
                outputs.retain(|output| !matches!(output, Output::Save { .. }));
            }
            Fault::RetryMiscounted => outputs.iter_mut().for_each(|output| {
                if let Output::Publish {
                    event: Event::Retrying { call, .. },
                    ..
                } = output
                {
                    *call += 1;
                }
            }),
            _ => {}
        }
    }
}
