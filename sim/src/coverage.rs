//! What runs have been through: which kinds of inputs and outputs, and which output after
//! which input.
//!
//! Owns the list of operations. A campaign in which one of them never occurs has not tried
//! the front door; one in which no new pair turns up any more has reached its plateau.

use tidegate_core::{
    AcceptReport, Answer, ClaimReport, ConfigureReport, Event, Input, LaunchReport, LoadReport,
    LookupReport, ModelEnd, ModelFact, Output, ResetReport, SettleReport, ToolFact, WaitResult,
};

/// Names of the inputs and reports, in the order of [`input_at`].
const INPUTS: [&str; 51] = [
    "submit",
    "wait",
    "abort",
    "leave",
    "resume",
    "tick",
    "loaded",
    "loaded: not owner",
    "loaded: refused",
    "accepted: committed",
    "accepted: committed with claim",
    "accepted: duplicate",
    "accepted: conflict",
    "accepted: not owner",
    "accepted: refused",
    "claimed: committed",
    "claimed: fenced",
    "claimed: not owner",
    "claimed: refused",
    "settled: committed",
    "settled: fenced",
    "settled: not owner",
    "settled: refused",
    "looked up: ended",
    "looked up: open",
    "looked up: unknown",
    "looked up: refused",
    "model: alive",
    "model: structure",
    "model: reasoning",
    "model: text",
    "model: finished",
    "model: ended",
    "drain",
    "reset",
    "configure",
    "was reset: committed",
    "was reset: not owner",
    "was reset: refused",
    "configured: committed",
    "configured: not owner",
    "configured: refused",
    "model: calling",
    "model: call",
    "launched: committed",
    "launched: fenced",
    "launched: not owner",
    "launched: refused",
    "tool: output",
    "tool: ended",
    "decide",
];

/// Names of the outputs, answers and events, in the order of [`output_at`].
const OUTPUTS: [&str; 44] = [
    "load",
    "accept",
    "claim",
    "save",
    "settle",
    "lookup",
    "start model",
    "cancel model",
    "answer: accepted",
    "answer: in flight",
    "answer: final",
    "answer: wait ended",
    "answer: wait timed out",
    "answer: aborted",
    "answer: rejected",
    "event: start",
    "event: text",
    "event: finishing",
    "event: end",
    "release",
    "forget",
    "sleep",
    "sleep for ever",
    "answer: wait draining",
    "drained",
    "reset",
    "configure",
    "answer: reset",
    "answer: queue",
    "answer: wait pending",
    "event: waited",
    "event: bound",
    "event: seen",
    "event: retrying",
    "event: fallback",
    "launch",
    "start tool",
    "cancel tool",
    "answer: decided",
    "event: tool start",
    "event: tool asked",
    "event: tool decided",
    "event: tool output",
    "event: tool end",
];

/// How the ends of model calls are told apart.
const ENDS: usize = 4;

/// What runs have been through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    inputs: [u64; INPUTS.len()],
    outputs: [u64; OUTPUTS.len()],
    ends: [u64; ENDS],
    /// For each input, which outputs came of it.
    pairs: [u64; INPUTS.len()],
}

impl Default for Operations {
    fn default() -> Self {
        Self {
            inputs: [0; INPUTS.len()],
            outputs: [0; OUTPUTS.len()],
            ends: [0; ENDS],
            pairs: [0; INPUTS.len()],
        }
    }
}

impl Operations {
    /// Operations that never occurred, by name.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let inputs = INPUTS.into_iter().zip(self.inputs);
        let outputs = OUTPUTS.into_iter().zip(self.outputs);
        let ends = [
            "model: completed",
            "model: incomplete",
            "model: failed",
            "model: cancelled",
        ];
        inputs
            .chain(outputs)
            .chain(ends.into_iter().zip(self.ends))
            .filter(|&(_, count)| count == 0)
            .map(|(name, _)| name)
            .collect()
    }

    /// How often each operation occurred, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let inputs = INPUTS.into_iter().zip(self.inputs);
        inputs.chain(OUTPUTS.into_iter().zip(self.outputs))
    }

    /// How many pairs of an input and an output that came of it were seen.
    #[must_use]
    pub fn pairs(&self) -> u32 {
        self.pairs.iter().map(|outputs| outputs.count_ones()).sum()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let sums = |mine: &mut [u64], theirs: &[u64]| {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        };
        sums(&mut self.inputs, &other.inputs);
        sums(&mut self.outputs, &other.outputs);
        sums(&mut self.ends, &other.ends);
        for (mine, theirs) in self.pairs.iter_mut().zip(other.pairs) {
            *mine |= theirs;
        }
    }

    pub(crate) fn step(&mut self, input: &Input, outputs: &[Output]) {
        let from = input_at(input);
        self.inputs[from] += 1;
        if let Input::Model {
            fact: ModelFact::Ended(end),
            ..
        } = input
        {
            self.ends[match end {
                ModelEnd::Completed => 0,
                ModelEnd::Incomplete => 1,
                ModelEnd::Failed(_) => 2,
                ModelEnd::Cancelled => 3,
            }] += 1;
        }
        for output in outputs {
            if let Some(to) = output_at(output) {
                self.outputs[to] += 1;
                self.pairs[from] |= 1 << to;
            }
        }
    }
}

const fn input_at(input: &Input) -> usize {
    match input {
        Input::Submit(_) => 0,
        Input::Wait { .. } => 1,
        Input::Abort { .. } => 2,
        Input::Leave { .. } => 3,
        Input::Resume { .. } => 4,
        Input::Tick => 5,
        Input::Loaded { report, .. } => match report {
            LoadReport::Loaded { .. } => 6,
            LoadReport::NotOwner => 7,
            LoadReport::Refused(_) => 8,
        },
        Input::Accepted { report, .. } => match report {
            AcceptReport::Committed { claim: None } => 9,
            AcceptReport::Committed { claim: Some(_) } => 10,
            AcceptReport::Duplicate { .. } => 11,
            AcceptReport::Conflict => 12,
            AcceptReport::NotOwner => 13,
            AcceptReport::Refused(_) => 14,
        },
        Input::Claimed { report, .. } => match report {
            ClaimReport::Committed(_) => 15,
            ClaimReport::Fenced => 16,
            ClaimReport::NotOwner => 17,
            ClaimReport::Refused(_) => 18,
        },
        Input::Settled { report, .. } => match report {
            SettleReport::Committed => 19,
            SettleReport::Fenced => 20,
            SettleReport::NotOwner => 21,
            SettleReport::Refused(_) => 22,
        },
        Input::LookedUp { report, .. } => match report {
            LookupReport::Ended(_) => 23,
            LookupReport::Open => 24,
            LookupReport::Unknown => 25,
            LookupReport::Refused(_) => 26,
        },
        Input::Model { fact, .. } => match fact {
            ModelFact::Alive => 27,
            ModelFact::Structure => 28,
            ModelFact::Reasoning => 29,
            ModelFact::Text { .. } => 30,
            ModelFact::Finished => 31,
            ModelFact::Ended(_) => 32,
            ModelFact::Calling => 42,
            ModelFact::Call(_) => 43,
        },
        Input::Drain { .. } => 33,
        Input::Reset { .. } => 34,
        Input::Configure { .. } => 35,
        Input::WasReset { report, .. } => match report {
            ResetReport::Committed { .. } => 36,
            ResetReport::NotOwner => 37,
            ResetReport::Refused(_) => 38,
        },
        Input::Configured { report, .. } => match report {
            ConfigureReport::Committed => 39,
            ConfigureReport::NotOwner => 40,
            ConfigureReport::Refused(_) => 41,
        },
        Input::Launched { report, .. } => match report {
            LaunchReport::Committed => 44,
            LaunchReport::Fenced => 45,
            LaunchReport::NotOwner => 46,
            LaunchReport::Refused(_) => 47,
        },
        Input::Tool { fact, .. } => match fact {
            ToolFact::Output { .. } => 48,
            ToolFact::Ended(_) => 49,
        },
        Input::Decide { .. } => 50,
    }
}

/// `None` for what no run of a sound core has.
const fn output_at(output: &Output) -> Option<usize> {
    Some(match output {
        Output::Load { .. } => 0,
        Output::Accept { .. } => 1,
        Output::Claim { .. } => 2,
        Output::Save { .. } => 3,
        Output::Settle { .. } => 4,
        Output::Lookup { .. } => 5,
        Output::StartModel { .. } => 6,
        Output::CancelModel { .. } => 7,
        Output::Respond { answer, .. } => match answer {
            Answer::Accepted { .. } => 8,
            Answer::InFlight { .. } => 9,
            Answer::Final { .. } => 10,
            Answer::Wait { result, .. } => match result {
                WaitResult::Ended { .. } => 11,
                WaitResult::TimedOut { .. } => 12,
                WaitResult::Draining => 23,
                WaitResult::Pending => 29,
            },
            Answer::Aborted { .. } => 13,
            Answer::Rejected(_) => 14,
            Answer::Reset { .. } => 27,
            Answer::Queue { .. } => 28,
            Answer::Decided { .. } => 38,
        },
        Output::Publish { event, .. } => match event {
            Event::Start { .. } => 15,
            Event::Text { .. } => 16,
            Event::Finishing { .. } => 17,
            Event::End { .. } => 18,
            Event::Waited { .. } => 30,
            Event::Bound { .. } => 31,
            Event::Seen => 32,
            Event::Retrying { .. } => 33,
            Event::Fallback { .. } => 34,
            Event::ToolStart { .. } => 39,
            Event::ToolAsked { .. } => 40,
            Event::ToolDecided { .. } => 41,
            Event::ToolOutput { .. } => 42,
            Event::ToolEnd { .. } => 43,
        },
        Output::Release { .. } => 19,
        Output::Forget { .. } => 20,
        Output::Sleep { until: Some(_), .. } => 21,
        Output::Sleep { until: None, .. } => 22,
        Output::Drained => 24,
        Output::Reset { .. } => 25,
        Output::Configure { .. } => 26,
        Output::Launch { .. } => 35,
        Output::StartTool { .. } => 36,
        Output::CancelTool { .. } => 37,
        Output::Halt(_) => return None,
    })
}
