//! P02, P03, P38, P40, I6, I7, I8, I9, I40, I47: the events of a run and what it may still do.
//!
//! Keeps for each run the number of its last event, the text that was shown, and whether it
//! was stopped or has ended. Numbers begin anew in each life of the process, text with each
//! attempt; an end does not.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Answer, ClaimReport, Event, Failure, Input, ModelEnd, ModelFact, Outcome, Output, Reply, RunId,
    StopReason, Subject, Ticket, WaitResult,
};

use super::{Check, Moment};
use crate::violation::Code;

#[derive(Debug, Default)]
struct Told {
    seq: u64,
    /// Whether an attempt began in this life.
    started: bool,
    text_to: u64,
    /// The call that counts.
    call: Option<Ticket>,
    /// The claim that was ordered last and has not been made.
    claiming: Option<Ticket>,
    /// Whether it waits to ask its model again, or is to ask the next one.
    waits: bool,
    stopped: bool,
    /// How it will end, as the event or the answer to a wait said.
    decided: Option<Outcome>,
    /// How its model call ended by itself.
    end: Option<ModelEnd>,
    /// Whether the provider said that the model finished, and no output came after it.
    finished: bool,
    /// Whether arguments of tool calls came on its call.
    calling: bool,
    /// Whether its answer is a row of its own, since it asked for tools.
    recorded: bool,
    /// Whether the call was cancelled: what it says from then on counts for nothing.
    cancelled: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    told: BTreeMap<RunId, Told>,
    ended: BTreeSet<RunId>,
    /// Calls of all lives (I60).
    called: BTreeSet<Ticket>,
}

impl Told {
    /// Whether a run may end so, after what its model said and what was shown of it.
    fn bears_out(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Completed => {
                self.end == Some(ModelEnd::Completed)
                    || self.cancelled && self.finished && !self.calling
            }
            Outcome::Failed(Failure::Provider { .. }) => {
                matches!(self.end, Some(ModelEnd::Failed(_)))
            }
            Outcome::Failed(Failure::Incomplete) => {
                matches!(self.end, Some(ModelEnd::Incomplete | ModelEnd::Cancelled))
                    || self.cancelled && self.finished && self.calling
            }
            Outcome::TimedOut {
                provider_started, ..
            }
            | Outcome::Cancelled {
                provider_started, ..
            } => provider_started || !self.started,
            _ => true,
        }
    }
}

impl Runs {
    fn event(&mut self, at: &mut Moment<'_>, run: RunId, seq: u64, event: &Event) {
        if self.ended.contains(&run) {
            let code = match event {
                Event::End { .. } => Code::EndTwice,
                _ => Code::AfterEnd,
            };
            return at.run(code, run);
        }
        let told = self.told.entry(run).or_default();
        if seq != told.seq + 1 {
            at.run(Code::EventGap, run);
        }
        told.seq = seq;
        match event {
            Event::Start { .. } => {
                told.started = true;
                if told.stopped {
                    at.run(Code::AfterStop, run);
                }
            }
            Event::Text { from, to, .. } => {
                if *from != told.text_to || to <= from {
                    at.run(Code::TextGap, run);
                }
                told.text_to = *to;
            }
            Event::ToolStart { .. } => told.recorded = true,
            Event::Waited { .. }
            | Event::Bound { .. }
            | Event::ToolAsked { .. }
            | Event::ToolDecided { .. }
            | Event::ToolOutput { .. }
            | Event::ToolEnd { .. }
            | Event::Seen => {}
            // How the call ended is no end of the run.
            Event::Retrying { .. } | Event::Fallback { .. } => {
                (told.waits, told.end) = (true, None);
            }
            Event::Finishing { outcome } => {
                told.stopped = true;
                if told
                    .decided
                    .replace(*outcome)
                    .is_some_and(|said| said != *outcome)
                {
                    at.run(Code::EndUntrue, run);
                }
                if !told.bears_out(*outcome) {
                    at.run(Code::EndUntrue, run);
                }
            }
            Event::End { terminal, .. } => {
                let kept = match terminal.reply {
                    Reply::Empty => 0,
                    Reply::Text { bytes } => bytes,
                };
                // The receipt of a run that another transaction ended holds what was saved, which may be less; or
                // what an earlier life saved and showed.
                let all = match terminal.outcome {
                    _ if terminal.turn.is_some() => true, // the text is the turn's
                    Outcome::Superseded
                    | Outcome::Cancelled {
                        by: StopReason::Reset,
                        ..
                    } => kept <= told.text_to || !told.started,
                    _ if told.recorded => kept == 0,
                    _ => kept == told.text_to,
                };
                if !all {
                    at.run(Code::TextGap, run);
                }
                self.ended.insert(run);
            }
        }
    }

    fn acts(&self, at: &mut Moment<'_>, run: RunId) {
        if self.ended.contains(&run) {
            at.run(Code::AfterEnd, run);
        }
    }
}

impl Check for Runs {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        if let Input::Claimed {
            ticket,
            report: ClaimReport::Committed(_),
        } = input
            && let Subject::Run(run) = ticket.subject
            && let Some(told) = self.told.get_mut(&run)
            && told.claiming.take_if(|claim| claim == ticket).is_some()
        {
            (told.text_to, told.recorded) = (0, false);
        }
        if let Input::Model { ticket, fact } = input
            && let Subject::Run(run) = ticket.subject
            && let Some(told) = self.told.get_mut(&run)
            && told.call == Some(*ticket)
            && !told.cancelled
        {
            match fact {
                ModelFact::Ended(end) => told.end = Some(*end),
                ModelFact::Finished => told.finished = true,
                ModelFact::Calling => (told.finished, told.calling) = (false, true),
                ModelFact::Text { .. } | ModelFact::Reasoning | ModelFact::Call(_) => {
                    told.finished = false;
                }
                ModelFact::Alive | ModelFact::Structure => {}
            }
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Publish {
                run, seq, event, ..
            } => self.event(at, *run, *seq, event),
            Output::StartModel { ticket, fence, .. } => {
                self.acts(at, fence.run);
                if !self.called.insert(*ticket) {
                    at.run(Code::CallTwice, fence.run);
                }
                let told = self.told.entry(fence.run).or_default();
                if told.stopped || told.cancelled {
                    at.run(Code::AfterStop, fence.run);
                }
                told.call = Some(*ticket);
                (told.end, told.finished, told.waits) = (None, false, false);
                told.calling = false;
            }
            Output::Save { fence, .. } | Output::Launch { fence, .. } => self.acts(at, fence.run),
            Output::StartTool { call, .. } => self.acts(at, call.run),
            // A wait that is over may say how the run will end.
            Output::Respond {
                answer:
                    Answer::Wait {
                        run,
                        result:
                            WaitResult::TimedOut {
                                decided: Some(decided),
                                ..
                            },
                    },
                ..
            } => {
                let told = self.told.entry(*run).or_default();
                let said = *told.decided.get_or_insert(*decided);
                if said != *decided {
                    at.run(Code::EndUntrue, *run);
                }
            }
            Output::Claim {
                ticket,
                fence,
                claim,
                ..
            } => {
                if let Some(told) = self.told.get_mut(&fence.run) {
                    told.claiming = Some(*ticket);
                }
                self.acts(at, fence.run);
                claim.along.iter().for_each(|&run| self.acts(at, run));
            }
            Output::Settle { terminal, .. } => self.acts(at, terminal.run),
            Output::CancelModel { ticket } => {
                if let Subject::Run(run) = ticket.subject {
                    self.acts(at, run);
                    let told = self.told.entry(run).or_default();
                    told.cancelled |= !told.waits;
                }
            }
            // Not held any more. If its acceptance was refused, the same key may come again.
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                self.told.remove(run);
            }
            _ => {}
        }
    }

    fn died(&mut self) {
        self.told.clear();
    }
}
