//! The system under judgement: the core, and around it an adapter that can break a promise.
//!
//! Without a fault it only copies drains into a buffer. With one it drops, repeats, delays or
//! alters inputs or outputs of one kind. It draws nothing, so that a fault changes no choice
//! before it strikes.

mod fallbacks;
mod retries;
mod strikes;
mod tools;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Accept, AcceptReport, Answer, Attempt, Config, Core, Event, Fence, Halt, Input, LoadReport,
    ModelEnd, ModelFact, Now, OpenRun, Output, Priority, RequestId, RunId, SessionId, SettleReport,
    Subject, Ticket, Time, Timer,
};

use crate::fault::Fault;

/// The occasion at which a fault strikes where nothing says another.
pub(crate) const STRIKES_AT: u32 = 3;

/// For how many inputs the original of a restored core runs along.
const TWIN_INPUTS: u32 = 40;
/// A request that nobody ever made.
pub(crate) const NOBODY: RequestId = RequestId::from_u128(u128::MAX);

/// An odd but legal way to drive the core for one input. It changes nothing of what the core
/// orders, and the system compares that it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trick {
    /// The core goes on from a snapshot of itself; the original runs along for a while.
    Restore,
    /// The drain is dropped after so many outputs; the rest leads the next drain.
    Halves(u64),
    /// The time lies so many milliseconds before that of the last input.
    Back(u64),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct System {
    core: Core,
    /// The original of a restored core, and for how many inputs it still runs along.
    twin: Option<(Core, u32)>,
    plant: Option<Plant>,
}

impl System {
    pub(crate) fn new(config: Config, fault: Option<Fault>) -> Self {
        Self {
            core: Core::new(retries::told(fault, config)),
            twin: None,
            plant: fault.map(Plant::new),
        }
    }

    /// With a fault that strikes at its how-manyth occasion, from 1.
    pub(crate) fn planted(config: Config, planted: Option<(Fault, u32)>) -> Self {
        let mut system = Self::new(config, planted.map(|(fault, _)| fault));
        if let (Some(plant), Some((_, occasion))) = (&mut system.plant, planted) {
            plant.strikes_at = occasion;
        }
        system
    }

    /// A new life: nothing of the core is left. A fault that has struck stays so.
    pub(crate) fn restart(&mut self, config: Config) {
        let fault = self.plant.as_ref().map(|plant| plant.fault);
        self.core = Core::new(retries::told(fault, config));
        self.twin = None;
        if let Some(plant) = &mut self.plant {
            plant.forget();
        }
    }

    pub(crate) fn check(&self) -> Result<(), Halt> {
        self.core.check()
    }

    /// Hands an input in and puts what follows into `outputs`. False if what follows is not
    /// what it must be: a twin differs, or a dropped drain did not come back whole.
    pub(crate) fn handle(
        &mut self,
        now: Now,
        input: &Input,
        trick: Option<Trick>,
        outputs: &mut Vec<Output>,
    ) -> bool {
        if self.plant.is_some() {
            self.handle_planted(now, input, outputs);
            return true;
        }
        let same = match trick {
            None => {
                outputs.extend(self.core.handle(now, input.clone()));
                true
            }
            Some(Trick::Restore) => self.handle_restored(now, input, outputs),
            Some(Trick::Halves(taken)) => self.handle_halves(now, input, taken, outputs),
            Some(Trick::Back(ms)) => {
                let counted = self.core.counts().clock_back;
                let time = Time(now.time.0.saturating_sub(ms));
                let back = Now { time, ..now };
                outputs.extend(self.core.handle(back, input.clone()));
                time == now.time || self.core.counts().clock_back == counted + 1
            }
        };
        same && self.twin_agrees(now, input, outputs)
    }

    /// A core of another schema is refused, our own goes on where the original is.
    fn handle_restored(&mut self, now: Now, input: &Input, outputs: &mut Vec<Output>) -> bool {
        let Ok(restored) = Core::restore(self.core.snapshot()) else {
            return false;
        };
        let same = restored.digest() == self.core.digest();
        let original = std::mem::replace(&mut self.core, restored);
        self.twin = Some((original, TWIN_INPUTS));
        outputs.extend(self.core.handle(now, input.clone()));
        same
    }

    fn handle_halves(
        &mut self,
        now: Now,
        input: &Input,
        taken: u64,
        outputs: &mut Vec<Output>,
    ) -> bool {
        let mut whole = self.core.clone();
        let whole: Vec<Output> = whole.handle(now, input.clone()).collect();
        let orders = whole.len().saturating_sub(1); // the last word is no order
        let taken = usize::try_from(taken).unwrap_or(0).min(orders);
        let counted = self.core.counts().undrained;
        let begin = outputs.len();
        outputs.extend(self.core.handle(now, input.clone()).take(taken));
        // An input that changes nothing: the rest comes with its drain.
        let nothing = Input::Leave { request: NOBODY };
        outputs.extend(self.core.handle(now, nothing));
        let left = (orders - taken) as u64;
        outputs.get(begin..) == Some(&whole[..]) && self.core.counts().undrained == counted + left
    }

    fn twin_agrees(&mut self, now: Now, input: &Input, outputs: &[Output]) -> bool {
        let Some((twin, left)) = &mut self.twin else {
            return true;
        };
        let same = twin.handle(now, input.clone()).eq(outputs.iter().cloned());
        *left -= 1;
        if *left == 0 {
            self.twin = None;
        }
        same
    }

    fn handle_planted(&mut self, now: Now, input: &Input, outputs: &mut Vec<Output>) {
        let Some(plant) = &mut self.plant else {
            return;
        };
        let mut input = input.clone();
        let held = plant.held.take();
        match plant.before(&mut input) {
            Before::Pass => outputs.extend(self.core.handle(now, input.clone())),
            Before::First(first) => {
                outputs.extend(self.core.handle(now, first));
                outputs.pop();
                outputs.extend(self.core.handle(now, input.clone()));
            }
            Before::Drop => outputs.push(Output::Sleep {
                until: plant.slept,
                why: None,
            }),
        }
        if let Some(held) = held {
            outputs.insert(0, held);
        }
        plant.after(&input, outputs);
    }
}

enum Before {
    Pass,
    First(Input),
    Drop,
}

#[derive(Debug)]
struct Plant {
    fault: Fault,
    occasions: u32,
    /// The occasion at which it strikes, from 1.
    strikes_at: u32,
    /// What was ordered in this life, to be told again wrongly.
    accepts: BTreeMap<Ticket, Accept>,
    fences: BTreeMap<RunId, Fence>,
    calls: BTreeMap<RunId, Ticket>,
    why: Option<Timer>,
    slept: Option<Time>,
    /// The run that a lasting fault has chosen.
    chosen: Option<RunId>,
    /// An output held back until the next input.
    held: Option<Output>,
    /// A run that was stopped, to be brought back.
    stopped: Option<(SessionId, OpenRun)>,
    /// The run that ended last.
    ended: Option<RunId>,
    /// Runs that claimed, were taken along or have ended.
    claimed: BTreeSet<RunId>,
    /// The priorities that messages were sent with.
    priorities: BTreeMap<RunId, Priority>,
    /// Runs that were told to ask their model again, or of which a person was asked.
    waiting: BTreeSet<RunId>,
    /// The last attempt of a run, the bytes of its calls before, and of that one.
    texts: BTreeMap<RunId, (Attempt, u64, u64)>,
}

impl Plant {
    const fn new(fault: Fault) -> Self {
        Self {
            fault,
            occasions: 0,
            strikes_at: STRIKES_AT,
            accepts: BTreeMap::new(),
            fences: BTreeMap::new(),
            calls: BTreeMap::new(),
            why: None,
            slept: None,
            chosen: None,
            held: None,
            stopped: None,
            ended: None,
            claimed: BTreeSet::new(),
            priorities: BTreeMap::new(),
            waiting: BTreeSet::new(),
            texts: BTreeMap::new(),
        }
    }

    fn forget(&mut self) {
        let (fault, occasions, stopped) = (self.fault, self.occasions, self.stopped.take());
        *self = Self {
            occasions,
            strikes_at: self.strikes_at,
            stopped,
            ..Self::new(fault)
        };
    }

    /// Counts an occasion; true at the one at which the fault strikes.
    fn strikes(&mut self) -> bool {
        self.occasions += 1;
        self.occasions == self.strikes_at
    }

    fn before(&mut self, input: &mut Input) -> Before {
        if self.fault.is_of_turns() {
            return self.before_turn(input);
        }
        if self.fault.is_of_retries() {
            self.before_retry(input);
            return Before::Pass;
        }
        if self.fault.is_of_fallbacks() {
            self.before_fallback(input);
            return Before::Pass;
        }
        if self.fault.is_of_tools() {
            return self.before_tool(input);
        }
        match (self.fault, input) {
            (
                Fault::LaneReleaseLost,
                Input::Settled {
                    report: SettleReport::Committed,
                    ..
                },
            ) if self.strikes() => {
                return Before::Drop;
            }
            (Fault::ResumeLost, Input::Resume { .. }) => return Before::Drop,
            (
                Fault::WaitShort,
                Input::Wait {
                    timeout_ms: Some(ms),
                    ..
                },
            ) if *ms > 1_000 && self.strikes() => {
                *ms /= 2;
            }
            (Fault::EndBeforeReceipt, Input::Settled { report, .. })
                if matches!(report, SettleReport::Refused(_)) && self.strikes() =>
            {
                *report = SettleReport::Committed;
            }
            (Fault::ConflictAccepted, Input::Accepted { report, .. })
                if *report == AcceptReport::Conflict && self.strikes() =>
            {
                *report = AcceptReport::Committed { claim: None };
            }
            (
                Fault::OrderSwapped,
                Input::Loaded {
                    report: LoadReport::Loaded { open, .. },
                    ..
                },
            ) if open.len() > 1 => {
                open.swap(0, 1);
            }
            (
                Fault::BudgetReset,
                Input::Loaded {
                    report: LoadReport::Loaded { open, .. },
                    ..
                },
            ) => {
                open.iter_mut().for_each(|run| run.left_ms = None);
            }
            (
                Fault::FailureHidden,
                Input::Model {
                    fact: ModelFact::Ended(end),
                    ..
                },
            ) if matches!(end, ModelEnd::Failed(_) | ModelEnd::Incomplete) && self.strikes() => {
                *end = ModelEnd::Completed;
            }
            (
                Fault::FinishUnseen,
                Input::Model {
                    fact: ModelFact::Finished,
                    ..
                },
            ) => return Before::Drop,
            (
                Fault::AttemptReset,
                Input::Loaded {
                    report: LoadReport::Loaded { open, .. },
                    ..
                },
            ) => {
                open.iter_mut().for_each(|run| run.attempt = Attempt(0));
            }
            (
                Fault::AbortUndone,
                Input::Loaded {
                    ticket,
                    report: LoadReport::Loaded { open, .. },
                },
            ) => {
                let back = self
                    .stopped
                    .take_if(|(session, _)| ticket.subject == Subject::Session(*session));
                open.extend(back.map(|(_, run)| run));
            }
            (Fault::IdleIgnored, Input::Tick) => return self.pretend_progress(),
            (Fault::TickLost, Input::Tick)
            | (
                Fault::ProgressUnseen,
                Input::Model {
                    fact: ModelFact::Reasoning | ModelFact::Text { .. },
                    ..
                },
            ) => {
                self.occasions += 1;
                if self.occasions >= self.strikes_at {
                    return Before::Drop;
                }
            }
            _ => {}
        }
        Before::Pass
    }

    /// Before a tick at which a run's silence would be noticed, that run makes progress.
    fn pretend_progress(&mut self) -> Before {
        let Some(Timer::Idle(run) | Timer::FirstEvent(run)) = self.why else {
            return Before::Pass;
        };
        if self.chosen.is_none() && self.strikes() {
            self.chosen = Some(run);
        }
        match self.calls.get(&run) {
            Some(&ticket) if self.chosen == Some(run) => Before::First(Input::Model {
                ticket,
                fact: ModelFact::Reasoning,
            }),
            _ => Before::Pass,
        }
    }

    fn after(&mut self, input: &Input, outputs: &mut Vec<Output>) {
        self.note(outputs);
        if self.fault.is_of_turns() {
            return self.after_turn(input, outputs);
        }
        if self.fault.is_of_retries() {
            return self.after_retry(outputs);
        }
        if self.fault.is_of_fallbacks() {
            return self.after_fallback(outputs);
        }
        if self.fault.is_of_tools() {
            return self.after_tool(input, outputs);
        }
        match self.fault {
            Fault::LateAppend => self.late_append(input, outputs),
            Fault::AckBeforeCommit => self.ack_early(outputs),
            Fault::TwoWriters => self.second_writer(input, outputs),
            Fault::WaitActs => self.wait_acts(input, outputs),
            Fault::StopIgnored => self.call_again(outputs),
            Fault::TextShort
            | Fault::FinalAltered
            | Fault::EventAfterEnd
            | Fault::TimesAltered
            | Fault::SaveShort
            | Fault::Halted => self.alter(outputs),
            Fault::Canary => outputs.retain(|o| !matches!(o, Output::Respond { .. })),
            Fault::ClaimLate => {
                if let Some(at) = self.occasion(outputs) {
                    self.held = Some(outputs.remove(at));
                }
            }
            Fault::CallBeforeClaim => self.call_early(outputs),
            Fault::ReleaseEarly => strikes::release_early(outputs),
            Fault::AbortLies => self.abort_lies(outputs),
            Fault::AbortUndone => self.note_stopped(outputs),
            Fault::DeadlineStale => self.stale_deadline(outputs),
            Fault::EndTwice
            | Fault::FinalTwice
            | Fault::ReleaseTwice
            | Fault::ForgetTwice
            | Fault::ModelTwice => {
                if let Some(at) = self.occasion(outputs) {
                    outputs.insert(at, outputs[at].clone());
                }
            }
            _ => {
                if let Some(at) = self.occasion(outputs) {
                    outputs.remove(at);
                }
            }
        }
    }

    /// Remembers what was ordered.
    fn note(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                Output::Accept { ticket, accept } => {
                    let attempt = accept
                        .claim
                        .as_ref()
                        .map_or(Attempt(0), |claim| claim.attempt);
                    let fence = Fence {
                        session: accept.session,
                        generation: accept.generation,
                        run: accept.run,
                        attempt,
                    };
                    self.fences.insert(accept.run, fence);
                    if accept.claim.is_some() {
                        self.claimed.insert(accept.run);
                    }
                    self.accepts.insert(*ticket, accept.clone());
                }
                Output::Claim { fence, claim, .. } => {
                    self.fences.insert(fence.run, *fence);
                    self.claimed.insert(fence.run);
                    self.claimed.extend(&claim.along);
                }
                Output::Publish {
                    run,
                    event: Event::Finishing { .. },
                    ..
                } => {
                    self.claimed.insert(*run);
                }
                Output::StartModel { ticket, fence, .. } => {
                    self.calls.insert(fence.run, *ticket);
                }
                Output::Publish {
                    run,
                    event: Event::End { .. },
                    ..
                } => {
                    self.calls.remove(run);
                    self.claimed.insert(*run);
                    self.ended = Some(*run);
                }
                Output::Sleep { until, why } => {
                    self.why = *why;
                    self.slept = *until;
                }
                _ => {}
            }
        }
    }

    /// Where in the drain the fault strikes, if it does.
    fn occasion(&mut self, outputs: &[Output]) -> Option<usize> {
        let fault = self.fault;
        let fits = |output: &Output| match fault {
            Fault::WaiterForgotten => matches!(
                output,
                Output::Respond {
                    answer: Answer::Wait { .. },
                    ..
                }
            ),
            Fault::AbortForgotten => matches!(
                output,
                Output::Respond {
                    answer: Answer::Aborted { .. },
                    ..
                }
            ),
            Fault::SaveShort => matches!(output, Output::Save { .. }),
            Fault::AcceptedLost => matches!(
                output,
                Output::Respond {
                    answer: Answer::Accepted { .. },
                    ..
                }
            ),
            Fault::EndTwice | Fault::EventAfterEnd => {
                matches!(
                    output,
                    Output::Publish {
                        event: Event::End { .. },
                        ..
                    }
                )
            }
            Fault::FinalTwice => matches!(
                output,
                Output::Respond {
                    answer: Answer::Final { .. },
                    ..
                }
            ),
            Fault::Halted | Fault::TimesAltered => matches!(output, Output::Accept { .. }),
            Fault::EventSkipped | Fault::TextShort => {
                matches!(
                    output,
                    Output::Publish {
                        event: Event::Text { .. },
                        ..
                    }
                )
            }
            Fault::FinalAltered => {
                matches!(
                    output,
                    Output::Respond {
                        answer: Answer::Final { replay: true, .. },
                        ..
                    }
                )
            }
            Fault::ReleaseLost | Fault::ReleaseTwice => matches!(output, Output::Release { .. }),
            Fault::ForgetLost | Fault::ForgetTwice => matches!(output, Output::Forget { .. }),
            Fault::ModelTwice => matches!(output, Output::StartModel { .. }),
            Fault::CancelLost => matches!(output, Output::CancelModel { .. }),
            Fault::ClaimLate | Fault::CallBeforeClaim => matches!(output, Output::Claim { .. }),
            _ => false,
        };
        (0..outputs.len()).find(|&at| fits(&outputs[at]) && self.strikes())
    }
}

#[cfg(test)]
mod tests;
