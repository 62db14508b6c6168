//! P18, I12, B-023, B-024: a session that began anew has nothing more to do with what it was.
//!
//! Once the core has heard of the next generation, nothing of an earlier one is claimed,
//! called, saved, written or shown any more, and every run of it is told its end in that step,
//! or as soon as the store has said where its text lies. Two books: what the store wrote, and
//! what the core has heard.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Answer, Event, Fence, Generation, Input, LoadReport, Output, ResetReport, RunId, SessionId,
    Subject, Ticket,
};

use super::{Check, Moment};
use crate::violation::Code;
use crate::world::store::Wrote;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Generations {
    /// What the store holds; over all lives.
    stored: BTreeMap<SessionId, Generation>,
    /// What the core has heard.
    heard: BTreeMap<SessionId, Generation>,
    /// Held runs with the generation that they belong to.
    runs: BTreeMap<RunId, (SessionId, Generation)>,
    loads: BTreeSet<Ticket>,
    resets: BTreeMap<Ticket, SessionId>,
    /// What the reset that is being taken in has ended.
    ended: Option<(SessionId, Vec<RunId>)>,
    /// Ends that the store is asked for.
    asked: BTreeSet<RunId>,
    /// The run in whose turn each message is: its end is that message's.
    along: BTreeMap<RunId, RunId>,
}

impl Generations {
    fn is_old(&self, session: SessionId, generation: Generation) -> bool {
        let heard = self.heard.get(&session);
        heard.is_some_and(|&heard| generation < heard)
    }

    fn writes(&self, at: &mut Moment<'_>, fence: &Fence) {
        if self.is_old(fence.session, fence.generation) {
            at.run(Code::OldGeneration, fence.run);
        }
    }

    fn shows(&mut self, at: &mut Moment<'_>, run: RunId, event: &Event) {
        let Some(&(session, generation)) = self.runs.get(&run) else {
            return;
        };
        let now = self.ended.as_ref().is_some_and(|(of, _)| *of == session);
        let rest = matches!(
            event,
            Event::Text { .. } | Event::ToolOutput { .. } | Event::ToolEnd { .. }
        );
        let last = matches!(event, Event::End { .. }) || now && rest;
        if self.is_old(session, generation) && !last {
            at.run(Code::OldGeneration, run);
        }
        match event {
            Event::Bound { turn } => {
                self.along.insert(run, *turn);
            }
            Event::End { .. } => {
                self.runs.remove(&run);
            }
            _ => {}
        }
    }

    fn answered(&self, at: &mut Moment<'_>, generation: Generation, runs: &[RunId]) {
        let Some((session, ended)) = &self.ended else {
            return;
        };
        let open = |run: &&RunId| {
            at.store
                .run(**run)
                .is_some_and(|row| row.terminal.is_none())
        };
        let lies = self.heard.get(session) != Some(&generation)
            || runs != ended
            || runs.iter().any(|run| open(&run));
        if lies {
            at.report(Code::ResetUntrue, Subject::Session(*session));
        }
    }

    fn is_stored(&self, at: &mut Moment<'_>, fence: &Fence) {
        let stored = self.stored.get(&fence.session).copied();
        if fence.generation != stored.unwrap_or(Generation(1)) {
            at.run(Code::OldGeneration, fence.run);
        }
    }
}

impl Check for Generations {
    fn input(&mut self, _at: &mut Moment<'_>, input: &Input) {
        self.ended = None;
        match input {
            Input::Loaded {
                ticket,
                report:
                    LoadReport::Loaded {
                        generation, open, ..
                    },
            } if self.loads.remove(ticket) => {
                if let Subject::Session(session) = ticket.subject {
                    self.heard.insert(session, *generation);
                    let runs = open.iter().map(|run| (run.run, (session, *generation)));
                    self.runs.extend(runs);
                    let along = open.iter().filter_map(|run| Some((run.run, run.along?)));
                    self.along.extend(along);
                }
            }
            Input::WasReset { ticket, report } => {
                if let (Some(session), ResetReport::Committed { generation, ended }) =
                    (self.resets.remove(ticket), report)
                {
                    self.heard.insert(session, *generation);
                    let ended = ended.iter().map(|end| end.run).collect();
                    self.ended = Some((session, ended));
                }
            }
            _ => {}
        }
    }

    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Load { ticket, .. } => {
                self.loads.insert(*ticket);
            }
            Output::Reset {
                ticket, session, ..
            } => {
                self.resets.insert(*ticket, *session);
            }
            Output::Accept { accept, .. } => {
                if self.is_old(accept.session, accept.generation) {
                    at.run(Code::OldGeneration, accept.run);
                }
                self.runs
                    .insert(accept.run, (accept.session, accept.generation));
            }
            Output::Claim { fence, .. }
            | Output::Save { fence, .. }
            | Output::Settle { fence, .. }
            | Output::Launch { fence, .. }
            | Output::StartModel { fence, .. } => self.writes(at, fence),
            Output::StartTool { call, .. } => {
                let of = self.runs.get(&call.run).copied();
                if of.is_some_and(|(session, generation)| self.is_old(session, generation)) {
                    at.run(Code::OldGeneration, call.run);
                }
            }
            Output::Lookup { ticket, run } if ticket.subject == Subject::Run(*run) => {
                self.asked.insert(*run);
            }
            Output::Publish { run, event, .. } => self.shows(at, *run, event),
            Output::Respond {
                answer: Answer::Reset { generation, runs },
                ..
            } => self.answered(at, *generation, runs),
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                self.runs.remove(run);
                self.asked.remove(run);
                self.along.remove(run);
            }
            _ => {}
        }
    }

    fn stepped(&mut self, at: &mut Moment<'_>, _input: &Input) {
        let Some((session, _)) = self.ended else {
            return;
        };
        let spared = self.runs.iter().find(|&(run, &(of, generation))| {
            let turn = self.along.get(run).unwrap_or(run);
            of == session && self.is_old(of, generation) && !self.asked.contains(turn)
        });
        if let Some((&run, _)) = spared {
            at.run(Code::ResetSpared, run);
        }
    }

    fn wrote(&mut self, at: &mut Moment<'_>, wrote: &Wrote) {
        match wrote {
            Wrote::Generation {
                session,
                generation,
            } => {
                self.stored.insert(*session, *generation);
            }
            Wrote::Claim { fence }
            | Wrote::Saved { fence }
            | Wrote::Launched { fence }
            | Wrote::Row { fence, .. } => {
                self.is_stored(at, fence);
            }
            Wrote::Receipt { by, .. } => self.is_stored(at, by),
            Wrote::Inbox { .. } | Wrote::Along { .. } | Wrote::Foreign { .. } => {}
        }
    }

    fn died(&mut self) {
        let stored = std::mem::take(&mut self.stored);
        *self = Self {
            stored,
            ..Self::default()
        };
    }
}
