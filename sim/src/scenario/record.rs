//! What happened in a run, in the project's terms: what expectations are judged by.
//!
//! Owns the list of facts with their times. It sees inputs, outputs and what the store wrote,
//! never the core's state.

use tidegate_core::{
    Answer, CallId, Event, Output, Place, QueueSettings, Rejection, RunId, SessionId, Subject,
    WaitResult,
};

use super::ast::{Ended, Happens, Told};
use crate::world::store::{RowKind, Wrote};

/// A fact.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// The message's row is durable.
    Accepted(RunId),
    /// A transcript row.
    Row(SessionId, RowKind, RunId),
    /// A session is at its next generation.
    Renewed(SessionId),
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
    /// Where a message stands is told.
    Stands(RunId, Place),
    /// A long wait is told, with how many were at work and waited.
    Waited(RunId, u32, u32),
    /// A receipt says that the run ended in the turn of another one.
    InTurn(RunId, RunId),
    /// A client is told how its session queues.
    Queues(String, QueueSettings),
    /// The process ends in order.
    Drained,
    /// The message was bound to the turn of another run.
    Bound(RunId, RunId),
    /// The model has answered a request that contains the message.
    Seen(RunId),
    /// A call failed, and the run waits to ask again.
    Retrying(RunId),
    /// A provider could not answer, and this one of the chain is asked.
    FallsBack(RunId, u16),
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
    /// A client is told something of a call.
    ToldOfCall(String, CallId, Told),
    /// Something happened to a call.
    Call(CallId, Happens),
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
            Wrote::Generation { session, .. } => What::Renewed(*session),
            Wrote::Saved { fence } => What::Saved(fence.run),
            Wrote::Receipt { terminal, .. } => {
                if let Some(turn) = terminal.turn {
                    self.put(at, What::InTurn(terminal.run, turn));
                }
                What::Receipt(terminal.run, Ended::of(terminal.outcome))
            }
            Wrote::Claim { .. }
            | Wrote::Along { .. }
            | Wrote::Launched { .. }
            | Wrote::Foreign { .. } => return,
        };
        self.put(at, what);
    }

    /// An output is carried out. `asked` is whose request it answers, and about which run;
    /// `about_call` names the call, if that was a decision on one.
    pub(super) fn output(
        &mut self,
        at: u64,
        output: &Output,
        asked: Option<(&str, Option<RunId>)>,
        about_call: Option<CallId>,
    ) {
        let what = match output {
            Output::StartModel { fence, .. } => What::Called(fence.run),
            Output::CancelModel { ticket } => match ticket.subject {
                Subject::Run(run) => What::Stopped(run),
                _ => return,
            },
            Output::Claim { fence, .. }
            | Output::Save { fence, .. }
            | Output::Launch { fence, .. } => What::Ordered(fence.run),
            Output::StartTool { call, .. } => What::Call(*call, Happens::Runs),
            Output::CancelTool { ticket } => match ticket.subject {
                Subject::Run(run) => What::Call(
                    CallId {
                        run,
                        attempt: ticket.attempt,
                        call: ticket.ordinal,
                    },
                    Happens::Stopped,
                ),
                _ => return,
            },
            Output::Settle { terminal, .. } => What::Ordered(terminal.run),
            Output::Publish { run, event, .. } => shown(*run, event),
            Output::Drained => What::Drained,
            Output::Respond { answer, .. } => {
                if let Answer::Accepted { run, place, .. } = answer {
                    self.put(at, What::Stands(*run, *place));
                }
                match (asked, about_call) {
                    (Some((client, _)), Some(call)) => {
                        if let Some(told) = told(answer) {
                            self.put(at, What::ToldOfCall(client.into(), call, told));
                        }
                    }
                    (Some((client, about)), None) => self.answer(at, client, about, answer),
                    (None, _) => {}
                }
                return;
            }
            _ => return,
        };
        self.put(at, what);
    }

    fn answer(&mut self, at: u64, client: &str, about: Option<RunId>, answer: &Answer) {
        if let Answer::Queue { settings, .. } = answer {
            self.put(at, What::Queues(client.into(), *settings));
        } else if let Answer::Aborted { runs } = answer {
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

/// What is told to all.
fn shown(run: RunId, event: &Event) -> What {
    match event {
        Event::Start { .. } => What::Start(run),
        Event::Text { .. } => What::Text(run),
        Event::Finishing { .. } => What::Finishing(run),
        Event::Bound { turn } => What::Bound(run, *turn),
        Event::Seen => What::Seen(run),
        Event::Retrying { .. } => What::Retrying(run),
        Event::Fallback { candidate, .. } => What::FallsBack(run, *candidate),
        Event::Waited {
            active_ahead,
            queued_ahead,
            ..
        } => What::Waited(run, *active_ahead, *queued_ahead),
        Event::ToolStart { call } => What::Call(*call, Happens::AskedFor),
        Event::ToolAsked { call, .. } => What::Call(*call, Happens::Asked),
        Event::ToolDecided { call, decision } => What::Call(*call, Happens::Decided(*decision)),
        Event::ToolOutput { call, .. } => What::Call(*call, Happens::Shown),
        Event::ToolEnd { call, end } => What::Call(*call, Happens::Ends(*end)),
        Event::End { terminal, .. } => What::End(run, Ended::of(terminal.outcome)),
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
            WaitResult::TimedOut {
                known: Some(true), ..
            } => Told::StillOpen,
            WaitResult::TimedOut {
                known: Some(false), ..
            } => Told::NoSuchRun,
            WaitResult::TimedOut { known: None, .. } => Told::NoWord,
            WaitResult::Pending => Told::Pending,
            WaitResult::Draining => Told::Draining,
        },
        Answer::Rejected(why) => match why {
            Rejection::Conflict => Told::Conflict,
            Rejection::QueueFull => Told::QueueFull,
            Rejection::Busy => Told::Busy,
            Rejection::Storage => Told::Storage,
            Rejection::NotOwner => Told::NotOwner,
            Rejection::WrongSession => Told::WrongSession,
            Rejection::SessionChanged => Told::SessionChanged,
            Rejection::LaneClosed => Told::LaneClosed,
            Rejection::SessionBusy => Told::SessionBusy,
            Rejection::Draining => Told::Draining,
            Rejection::NotAsked => Told::NotAsked,
            Rejection::AlreadyDecided => Told::AlreadyDecided,
        },
        Answer::Decided { decision, .. } => Told::Decided(*decision),
        Answer::Aborted { .. } | Answer::Reset { .. } | Answer::Queue { .. } => return None,
    })
}
