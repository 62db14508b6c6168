//! How faults of tool calls strike: around checkpoints, starts, stops, ends, results and people.
//! All of them strike always.

use tidegate_core::{
    Answer, Ask, CallEnd, CallId, Config, Decision, Event, Input, LaunchReport, ModelFact,
    OrderKind, Output, Subject, Ticket, ToolEnd, ToolFact,
};

use super::{Before, Plant};
use crate::fault::Fault;

/// How tools are carried out, as the core is told.
pub(super) fn told(fault: Option<Fault>, config: &mut Config) {
    let tools = &mut config.tools;
    match fault {
        Some(Fault::ApprovalUnasked) => tools.ask = Ask::Off,
        Some(Fault::ApprovalForEver) => tools.approval_ms *= 1_000,
        Some(Fault::ApprovalShort) => tools.approval_ms /= 2,
        Some(Fault::ToolForEver) => tools.timeout_ms *= 1_000,
        Some(Fault::ToolShort) => tools.timeout_ms /= 2,
        Some(Fault::StopForEver) => tools.cancel_ms *= 1_000,
        Some(Fault::RoundsUnbounded) => tools.rounds_max = u16::MAX,
        Some(Fault::CallsUnbounded) => tools.calls_max = u16::MAX,
        _ => {}
    }
}

/// The event of a tool call.
fn event(output: &mut Output) -> Option<&mut Event> {
    match output {
        Output::Publish { event, .. } => match event {
            Event::ToolStart { .. }
            | Event::ToolAsked { .. }
            | Event::ToolDecided { .. }
            | Event::ToolOutput { .. }
            | Event::ToolEnd { .. } => Some(event),
            _ => None,
        },
        _ => None,
    }
}

const fn is_end(output: &Output) -> bool {
    matches!(
        output,
        Output::Publish {
            event: Event::ToolEnd { .. },
            ..
        }
    )
}

const fn is_decided(output: &Output) -> bool {
    matches!(
        output,
        Output::Respond {
            answer: Answer::Decided { .. },
            ..
        }
    )
}

/// The other of two ends.
const fn other(end: CallEnd) -> CallEnd {
    match end {
        CallEnd::Ok => CallEnd::Failed,
        _ => CallEnd::Ok,
    }
}

impl Plant {
    pub(super) fn before_tool(&self, input: &mut Input) -> Before {
        match (self.fault, input) {
            (Fault::LaunchBelieved, Input::Launched { report, .. })
                if matches!(report, LaunchReport::Refused(_)) =>
            {
                *report = LaunchReport::Committed;
            }
            (
                Fault::CallUnheard,
                Input::Model {
                    fact: ModelFact::Call(_),
                    ..
                },
            ) => return Before::Drop,
            (
                Fault::ToolEndHeardWrong,
                Input::Tool {
                    fact: ToolFact::Ended(end @ ToolEnd::Ok),
                    ..
                },
            ) => *end = ToolEnd::Failed,
            (Fault::DenialUnheard, Input::Decide { decision, .. }) => {
                *decision = Decision::AllowOnce;
            }
            _ => {}
        }
        Before::Pass
    }

    pub(super) fn after_tool(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        match self.fault {
            Fault::LaunchLost => outputs.retain(|o| !matches!(o, Output::Launch { .. })),
            Fault::ToolUnstarted => outputs.retain(|o| !matches!(o, Output::StartTool { .. })),
            Fault::ToolUnstopped => outputs.retain(|o| !matches!(o, Output::CancelTool { .. })),
            Fault::ToolEndLost => outputs.retain(|o| !is_end(o)),
            Fault::WordUnanswered => outputs.retain(|o| !is_decided(o)),
            Fault::LaunchTwice => twice(outputs, |o| matches!(o, Output::Launch { .. })),
            Fault::ToolTwice => twice(outputs, |o| matches!(o, Output::StartTool { .. })),
            Fault::ToolEndTwice => twice(outputs, is_end),
            Fault::ToolStoppedAtOnce => stop_at_once(outputs),
            Fault::ToolBeforeLaunch => start_early(outputs),
            Fault::AllowedEarly => allow_early(input, outputs),
            Fault::ApprovalCharged => self.charge(outputs),
            _ => outputs
                .iter_mut()
                .for_each(|output| self.alter_tool(output)),
        }
    }

    fn alter_tool(&self, output: &mut Output) {
        match (self.fault, &mut *output) {
            (Fault::ResultAltered, Output::Claim { claim, .. }) => {
                if let Some(result) = claim.results.first_mut() {
                    result.end = other(result.end);
                }
            }
            (Fault::ResultLost, Output::Claim { claim, .. }) => {
                claim.results.pop();
            }
            (Fault::ResultSwapped, Output::Claim { claim, .. }) if claim.results.len() > 1 => {
                claim.results.swap(0, 1);
            }
            (Fault::LastResultLost, Output::Settle { results, .. }) => results.clear(),
            (Fault::LaunchAll, Output::Launch { launch, .. }) => {
                launch.start = (0..launch.calls).collect();
                launch.ask.clear();
            }
            _ => match (self.fault, event(output)) {
                (Fault::ToolEndRetold, Some(Event::ToolEnd { end, .. })) => *end = other(*end),
                (Fault::ToolOutputShort, Some(Event::ToolOutput { to, .. })) => *to -= 1,
                (Fault::WordRetold, Some(Event::ToolDecided { decision, .. })) => {
                    *decision = match decision {
                        Decision::AllowOnce => Decision::Deny,
                        Decision::Deny => Decision::AllowOnce,
                    };
                }
                _ => {}
            },
        }
    }

    /// A run of which a person was asked is charged for that time.
    fn charge(&mut self, outputs: &mut [Output]) {
        for output in outputs {
            match output {
                Output::Publish {
                    run,
                    event: Event::ToolAsked { .. },
                    ..
                } => {
                    self.waiting.insert(*run);
                }
                Output::Claim { fence, claim, .. } if self.waiting.contains(&fence.run) => {
                    claim.left_ms = claim.left_ms.map(|ms| ms / 2);
                }
                _ => {}
            }
        }
    }
}

/// Gives each of these twice.
fn twice(outputs: &mut Vec<Output>, fits: fn(&Output) -> bool) {
    let each = std::mem::take(outputs).into_iter();
    for output in each {
        if fits(&output) {
            outputs.push(output.clone());
        }
        outputs.push(output);
    }
}

/// Each call that starts is told to stop.
fn stop_at_once(outputs: &mut Vec<Output>) {
    let last = outputs.len().saturating_sub(1);
    let started = outputs.iter().filter_map(|output| match output {
        Output::StartTool { ticket, .. } => Some(Output::CancelTool { ticket: *ticket }),
        _ => None,
    });
    let started: Vec<Output> = started.collect();
    outputs.splice(last..last, started);
}

/// What a checkpoint is to let start starts when it is ordered.
fn start_early(outputs: &mut Vec<Output>) {
    let mut early = Vec::new();
    for output in outputs.iter() {
        let Output::Launch { fence, launch, .. } = output else {
            continue;
        };
        early.extend(launch.start.iter().map(|&place| Output::StartTool {
            ticket: Ticket {
                subject: Subject::Run(fence.run),
                order: OrderKind::Tool,
                attempt: fence.attempt,
                ordinal: place,
            },
            call: CallId {
                run: fence.run,
                attempt: fence.attempt,
                call: place,
            },
        }));
    }
    let last = outputs.len().saturating_sub(1);
    outputs.splice(last..last, early);
}

/// Who allows a call is told so when its checkpoint is ordered.
fn allow_early(input: &Input, outputs: &mut Vec<Output>) {
    let Input::Decide {
        request,
        call,
        decision: decision @ Decision::AllowOnce,
    } = *input
    else {
        return;
    };
    let launch = outputs
        .iter()
        .position(|output| matches!(output, Output::Launch { fence, .. } if fence.run == call.run));
    if let Some(at) = launch {
        let answer = Answer::Decided { call, decision };
        outputs.insert(at, Output::Respond { request, answer });
    }
}
