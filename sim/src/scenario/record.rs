//! What happened in a run, in the project's terms: what expectations are judged by.
//!
//! Owns the list of facts with their times. It sees inputs, outputs and what the store wrote,
//! never the core's state.

use tidegate_core::{Answer, Event, Output, Rejection, RunId, SessionId, Subject, WaitResult};

use super::ast::{Ended, Told};
use crate::world::store::{RowKind, Wrote};

/// A fact.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// The message's row is durable.
    Accepted(RunId),
    /// A transcript row.
    Row(SessionId, RowKind, RunId),
    /// Streamed text was saved.
    Saved(RunId),
    /// A receipt.
    Receipt(RunId, Ended),
    /// An attempt begins.
    Start(RunId),
    /// Text is shown.
    Text(RunId),
    /// The end is decided.
    Finishing(RunId),
    /// The end is told to all.
    End(RunId, Ended),
    /// The model is called.
    Called(RunId),
    /// The call is told to stop.
    Stopped(RunId),
    /// A claim, a save or a settle is ordered.
    Ordered(RunId),
    /// A client is told something of a run.
    Told(String, RunId, Told),
    /// A client's abort found nothing.
    NothingStopped(String),
    /// The process died.
    Died,
}

/// A fact and its time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fact {
    pub(super) at: u64,
    pub(super) what: What,
}

/// All facts, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) facts: Vec<Fact>,
}

impl Record {
    pub(super) fn put(&mut self, at: u64, what: What) {
        self.facts.push(Fact { at, what });
    }

    pub(super) fn wrote(&mut self, at: u64, wrote: &Wrote) {
        let what = match wrote {
            Wrote::Inbox { run, .. } => What::Accepted(*run),
            Wrote::Row {
                run, kind, fence, ..
            } => What::Row(fence.session, *kind, *run),
            Wrote::Saved { fence } => What::Saved(fence.run),
            Wrote::Receipt { terminal, .. } => {
                What::Receipt(terminal.run, Ended::of(terminal.outcome))
            }
            Wrote::Claim { .. } | Wrote::Foreign { .. } => return,
        };
        self.put(at, what);
    }

    /// An output is carried out. `asked` is whose request it answers, and about which run.
    pub(super) fn output(
        &mut self,
        at: u64,
        output: &Output,
        asked: Option<(&str, Option<RunId>)>,
    ) {
        let what = match output {
            Output::StartModel { fence, .. } => What::Called(fence.run),
            Output::CancelModel { ticket } => match ticket.subject {
                Subject::Run(run) => What::Stopped(run),
                _ => return,
            },
            Output::Claim { fence, .. } | Output::Save { fence, .. } => What::Ordered(fence.run),
            Output::Settle { terminal, .. } => What::Ordered(terminal.run),
            Output::Publish { run, event, .. } => match event {
                Event::Start { .. } => What::Start(*run),
                Event::Text { .. } => What::Text(*run),
                Event::Finishing { .. } => What::Finishing(*run),
                Event::End { terminal, .. } => What::End(*run, Ended::of(terminal.outcome)),
            },
            Output::Respond { answer, .. } => {
                if let Some((client, about)) = asked {
                    self.answer(at, client, about, answer);
                }
                return;
            }
            _ => return,
        };
        self.put(at, what);
    }

    fn answer(&mut self, at: u64, client: &str, about: Option<RunId>, answer: &Answer) {
        if let Answer::Aborted { runs } = answer {
            if runs.is_empty() {
                self.put(at, What::NothingStopped(client.into()));
            }
            for &run in runs {
                self.put(at, What::Told(client.into(), run, Told::Stopped));
            }
        } else if let (Some(run), Some(told)) = (about, told(answer)) {
            self.put(at, What::Told(client.into(), run, told));
        }
    }
}

/// An answer about one run. `None` for one about several.
pub(super) const fn told(answer: &Answer) -> Option<Told> {
    Some(match answer {
        Answer::Accepted { .. } => Told::Accepted,
        Answer::InFlight { .. } => Told::InFlight,
        Answer::Final {
            terminal,
            replay: true,
            ..
        } => Told::EndAgain(Ended::of(terminal.outcome)),
        Answer::Final { terminal, .. } => Told::End(Ended::of(terminal.outcome)),
        Answer::Wait { result, .. } => match result {
            WaitResult::Ended { terminal, .. } => Told::End(Ended::of(terminal.outcome)),
            WaitResult::TimedOut { known: Some(true) } => Told::StillOpen,
            WaitResult::TimedOut { known: Some(false) } => Told::NoSuchRun,
            WaitResult::TimedOut { known: None } => Told::NoWord,
            WaitResult::Draining => Told::Draining,
        },
        Answer::Rejected(why) => match why {
            Rejection::Conflict => Told::Conflict,
            Rejection::QueueFull => Told::QueueFull,
            Rejection::Busy => Told::Busy,
            Rejection::Storage => Told::Storage,
            Rejection::NotOwner => Told::NotOwner,
            Rejection::WrongSession => Told::WrongSession,
            Rejection::Draining => Told::Draining,
        },
        Answer::Aborted { .. } => return None,
    })
}
