//! The declared transitions of a run, as its surroundings see them (P02, I7).
//!
//! A run is where the last order or event about it has put it. The table says which steps
//! there are; a step that is not in it is a violation, and a campaign in which one of them
//! never happens has not looked everywhere.

use std::collections::BTreeMap;

use tidegate_core::{
    AcceptReport, ClaimReport, ConfigureReport, Event, Input, LaunchReport, LoadReport, Output,
    ResetReport, RunId, SettleReport, Subject, Ticket,
};

use super::{Check, Moment};
use crate::violation::Code;

/// Where a run is, from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Not held: never heard of, forgotten, or of an earlier life.
    Unheld,
    /// Its message is being committed.
    Ordered,
    /// Its message is durable; it waits.
    Queued,
    /// It is bound to the turn of another run.
    Bound,
    /// Its claim is being committed.
    Claiming,
    /// The model is called.
    Calling,
    /// The call failed; it waits to ask again.
    Retrying,
    /// Its answer asks for tools; their checkpoint is being committed.
    Launching,
    /// Its tools are at work, or a person is asked.
    Tools,
    /// The call is cancelled.
    Stopping,
    /// Its end is being committed.
    Ending,
    /// Its end was published.
    Ended,
}

impl Stage {
    /// All stages.
    pub const ALL: [Self; 12] = [
        Self::Unheld,
        Self::Ordered,
        Self::Queued,
        Self::Bound,
        Self::Claiming,
        Self::Calling,
        Self::Retrying,
        Self::Launching,
        Self::Tools,
        Self::Stopping,
        Self::Ending,
        Self::Ended,
    ];

    /// The name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unheld => "not held",
            Self::Ordered => "ordered",
            Self::Queued => "queued",
            Self::Bound => "bound to a turn",
            Self::Claiming => "claiming",
            Self::Calling => "at the model",
            Self::Retrying => "waiting to ask again",
            Self::Launching => "launching its tools",
            Self::Tools => "waiting for its tools",
            Self::Stopping => "stopping",
            Self::Ending => "ending",
            Self::Ended => "ended",
        }
    }
}

/// Every step that there is.
pub const TRANSITIONS: &[(Stage, Stage)] = &[
    // A message comes, is durable, or is refused or known already.
    (Stage::Unheld, Stage::Ordered),
    (Stage::Ordered, Stage::Queued),
    (Stage::Ordered, Stage::Unheld),
    // A load brings it back.
    (Stage::Unheld, Stage::Queued),
    // Another run's claim takes it along in its turn; or one did before a restart.
    (Stage::Queued, Stage::Bound),
    (Stage::Unheld, Stage::Bound),
    (Stage::Bound, Stage::Ended),
    // It claims, again if the store refuses; or its claim was made with the acceptance.
    (Stage::Queued, Stage::Claiming),
    (Stage::Claiming, Stage::Claiming),
    (Stage::Claiming, Stage::Calling),
    (Stage::Queued, Stage::Calling),
    (Stage::Calling, Stage::Stopping),
    // Its call failed for a while: it waits, claims again and calls again.
    (Stage::Calling, Stage::Retrying),
    (Stage::Retrying, Stage::Claiming),
    // Its provider can't answer: it claims at once and calls the next one.
    (Stage::Calling, Stage::Claiming),
    (Stage::Retrying, Stage::Ending),
    (Stage::Retrying, Stage::Ended),
    // Its answer asks for tools: a checkpoint, again if the store refuses; they run, or none can;
    // an allowed one has a checkpoint of its own; the next attempt claims.
    (Stage::Calling, Stage::Launching),
    (Stage::Launching, Stage::Launching),
    (Stage::Launching, Stage::Tools),
    (Stage::Launching, Stage::Claiming),
    (Stage::Tools, Stage::Launching),
    (Stage::Tools, Stage::Claiming),
    (Stage::Launching, Stage::Ending),
    (Stage::Tools, Stage::Ending),
    (Stage::Launching, Stage::Ended),
    (Stage::Tools, Stage::Ended),
    // An end is decided, from everywhere.
    (Stage::Queued, Stage::Ending),
    (Stage::Claiming, Stage::Ending),
    (Stage::Calling, Stage::Ending),
    (Stage::Stopping, Stage::Ending),
    (Stage::Ending, Stage::Ended),
    // Another writer or a reset ended it: told by what did, or looked up.
    (Stage::Queued, Stage::Ended),
    (Stage::Claiming, Stage::Ended),
    (Stage::Stopping, Stage::Ended),
    (Stage::Ended, Stage::Unheld),
];

/// Steps that only a lease in other hands brings about: what is at work is let go, and its
/// call cancelled, again if it was before.
pub const LOST: &[(Stage, Stage)] = &[
    (Stage::Stopping, Stage::Stopping),
    (Stage::Queued, Stage::Unheld),
    (Stage::Bound, Stage::Unheld),
    (Stage::Claiming, Stage::Unheld),
    (Stage::Stopping, Stage::Unheld),
    (Stage::Retrying, Stage::Unheld),
    (Stage::Launching, Stage::Unheld),
    (Stage::Tools, Stage::Unheld),
    (Stage::Ending, Stage::Unheld),
];

/// Steps that may be, but that a run of the world is too short or too kind to bring about.
pub const RARE: &[(Stage, Stage)] = &[(Stage::Calling, Stage::Ended)];

const STAGES: usize = Stage::ALL.len();

/// How often each step was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transitions([[u64; STAGES]; STAGES]);

impl Transitions {
    /// How often a step was taken.
    #[must_use]
    pub fn count(&self, from: Stage, to: Stage) -> u64 {
        self.0[from as usize][to as usize]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *mine += theirs;
        }
    }
}

fn is_declared(step: (Stage, Stage)) -> bool {
    TRANSITIONS.contains(&step) || LOST.contains(&step) || RARE.contains(&step)
}

/// Whether a report says that another process owns the session.
const fn tells_of_loss(input: &Input) -> bool {
    matches!(
        input,
        Input::Accepted {
            report: AcceptReport::NotOwner,
            ..
        } | Input::Claimed {
            report: ClaimReport::NotOwner,
            ..
        } | Input::Settled {
            report: SettleReport::NotOwner,
            ..
        } | Input::Launched {
            report: LaunchReport::NotOwner,
            ..
        } | Input::WasReset {
            report: ResetReport::NotOwner,
            ..
        } | Input::Configured {
            report: ConfigureReport::NotOwner,
            ..
        }
    )
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct States {
    stages: BTreeMap<RunId, Stage>,
    accepting: BTreeMap<Ticket, RunId>,
    /// Loads without a report: what a report that is told twice says is old.
    loads: Vec<Ticket>,
    /// Whether the input tells that another process owns a session.
    lost: bool,
    pub(crate) transitions: Transitions,
}

impl States {
    fn moves(&mut self, at: &mut Moment<'_>, run: RunId, to: Stage) {
        let from = match to {
            Stage::Unheld => self.stages.remove(&run),
            _ => self.stages.insert(run, to),
        };
        let from = from.unwrap_or(Stage::Unheld);
        self.transitions.0[from as usize][to as usize] += 1;
        let let_go = LOST.contains(&(from, to)) && to == Stage::Unheld;
        if !is_declared((from, to)) || let_go && !self.lost {
            at.run(Code::Undeclared, run);
        }
    }
}

impl States {
    /// One more of its calls is at work, or asked about.
    fn at_tools(&mut self, at: &mut Moment<'_>, run: RunId) {
        if self.stages.get(&run) != Some(&Stage::Tools) {
            self.moves(at, run, Stage::Tools);
        }
    }
}

impl Check for States {
    fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
        self.lost = tells_of_loss(input);
        match input {
            Input::Accepted {
                ticket,
                report: AcceptReport::Committed { .. },
            } => {
                if let Some(run) = self.accepting.remove(ticket) {
                    self.moves(at, run, Stage::Queued);
                }
            }
            Input::Loaded { ticket, report } => {
                let expected = self.loads.iter().position(|load| load == ticket);
                if let (Some(index), LoadReport::Loaded { open, .. }) = (expected, report) {
                    self.loads.swap_remove(index);
                    for run in open {
                        let stage = match run.along {
                            Some(_) => Stage::Bound,
                            None => Stage::Queued,
                        };
                        self.moves(at, run.run, stage);
                    }
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, .. } => self.loads.push(*ticket),
            Output::Accept { ticket, accept } => {
                self.accepting.insert(*ticket, accept.run);
                self.moves(at, accept.run, Stage::Ordered);
            }
            Output::Claim { fence, .. } => self.moves(at, fence.run, Stage::Claiming),
            Output::StartModel { fence, .. } => self.moves(at, fence.run, Stage::Calling),
            Output::Launch { fence, .. } => self.moves(at, fence.run, Stage::Launching),
            Output::StartTool { call, .. } => self.at_tools(at, call.run),
            Output::CancelModel { ticket } => {
                if let Subject::Run(run) = ticket.subject {
                    // A call whose run has ended by another writer's claim is let go; a silent one
                    // whose run asks again, or another provider, was told so before.
                    let stage = self.stages.get(&run);
                    let goes_on = |stage| matches!(stage, Stage::Retrying | Stage::Claiming);
                    if stage.is_some_and(|&stage| !goes_on(stage)) {
                        self.moves(at, run, Stage::Stopping);
                    }
                }
            }
            Output::Publish { run, event, .. } => match event {
                Event::Finishing { .. } => self.moves(at, *run, Stage::Ending),
                Event::End { .. } => self.moves(at, *run, Stage::Ended),
                Event::Bound { .. } => self.moves(at, *run, Stage::Bound),
                Event::Retrying { .. } => self.moves(at, *run, Stage::Retrying),
                // It claims at once.
                Event::Fallback { .. } => {}
                Event::ToolAsked { call, .. } => self.at_tools(at, call.run),
                Event::Start { .. }
                | Event::Text { .. }
                | Event::Waited { .. }
                | Event::ToolStart { .. }
                | Event::ToolDecided { .. }
                | Event::ToolOutput { .. }
                | Event::ToolEnd { .. }
                | Event::Seen => {}
            },
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                // What comes of its commit is nobody's business any more.
                self.accepting.retain(|_, accepted| accepted != run);
                self.moves(at, *run, Stage::Unheld);
            }
            _ => {}
        }
    }

    fn died(&mut self) {
        self.stages.clear();
        self.accepting.clear();
        self.loads.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_is_declared_twice() {
        let mut all: Vec<_> = [TRANSITIONS, LOST, RARE].concat();
        all.sort_unstable();
        let length = all.len();
        all.dedup();
        assert_eq!(all.len(), length);
    }

    #[test]
    fn a_run_never_goes_back_to_the_model_nor_comes_back_from_its_end() {
        for from in [Stage::Stopping, Stage::Ending, Stage::Ended, Stage::Tools] {
            assert!(!is_declared((from, Stage::Calling)), "{from:?}");
        }
        for to in Stage::ALL {
            assert_eq!(is_declared((Stage::Ended, to)), to == Stage::Unheld);
        }
    }
}
