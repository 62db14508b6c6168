//! How faults of the chain of providers strike: around what leads on, what is told of it and
//! who is called. All of them strike always.

use tidegate_core::{
    Config, Event, Input, Marker, ModelEnd, ModelFact, Outcome, Output, ProviderError, RetryAfter,
    RunId, StopReason,
};

use super::Plant;
use crate::fault::Fault;

/// The chain that the core gets.
pub(super) fn told(fault: Option<Fault>, config: &mut Config) {
    let first = config.provider;
    match fault {
        Some(Fault::ChainUnheard) => config.fallbacks.clear(),
        Some(Fault::ChainUnending) if !config.fallbacks.is_empty() => config.fallbacks.push(first),
        Some(Fault::LimitsOfTheFirst) => config.fallbacks.iter_mut().for_each(|of| *of = first),
        _ => {}
    }
}

/// Whether a failure is the same at every provider, as far as its marker says.
const fn is_everywhere(error: &ProviderError) -> bool {
    matches!(error.marker, Marker::ContextOverflow | Marker::Format)
}

/// The run that an output leads to the next provider, and what it tells of that.
pub(super) fn led(output: &mut Output) -> Option<(RunId, &mut u16, &mut Outcome)> {
    match output {
        Output::Publish {
            run,
            event: Event::Fallback { candidate, because },
            ..
        } => Some((*run, candidate, because)),
        _ => None,
    }
}

impl Plant {
    pub(super) fn before_fallback(&self, input: &mut Input) {
        if let Input::Model {
            fact: ModelFact::Ended(ModelEnd::Failed(error)),
            ..
        } = input
            && self.fault == Fault::WrongLedOn
            && is_everywhere(error)
        {
            error.marker = Marker::Auth;
            error.retry_after = RetryAfter::Unsaid;
        }
    }

    pub(super) fn after_fallback(&self, outputs: &mut Vec<Output>) {
        match self.fault {
            Fault::FallbackUntold => outputs.retain_mut(|output| led(output).is_none()),
            Fault::FallbackUnclaimed => {
                let mut all = outputs.iter_mut();
                if let Some(run) = all.find_map(|output| led(output).map(|(run, ..)| run)) {
                    outputs.retain(
                        |output| !matches!(output, Output::Claim { fence, .. } if fence.run == run),
                    );
                }
            }
            _ => outputs
                .iter_mut()
                .for_each(|output| self.alter_chain(output)),
        }
    }

    fn alter_chain(&self, output: &mut Output) {
        if let Output::StartModel { candidate, .. } = output {
            match self.fault {
                Fault::FallbackBack => *candidate = 0,
                Fault::FallbackSkipped if *candidate > 0 => *candidate += 1,
                _ => {}
            }
        } else if let Some((_, candidate, because)) = led(output) {
            match self.fault {
                Fault::FallbackSkipped => *candidate += 1,
                Fault::FallbackBlamed => {
                    *because = Outcome::Cancelled {
                        by: StopReason::Rpc,
                        provider_started: true,
                    };
                }
                _ => {}
            }
        }
    }
}
