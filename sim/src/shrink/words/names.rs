//! How things are called in a timeline.
//!
//! Owns the names alone: a message after its session and its number in it, a call after its run.

use tidegate_core::{CallId, Limit, Outcome, RequestId, RunId, SessionId, Subject, Ticket};

use crate::adapter::NOBODY;

/// A session's name.
pub(crate) fn session(id: SessionId) -> String {
    let n = u128::from_be_bytes(id.0);
    match u8::try_from(n) {
        Ok(n @ 1..=26) => char::from(b'A' + n - 1).to_string(),
        _ => format!("session {id}"),
    }
}

/// A message's name, and that of its run.
pub(crate) fn run(id: RunId) -> String {
    let n = u128::from_be_bytes(id.0);
    match u8::try_from(n >> 32) {
        Ok(of @ 1..=26) => format!("{}{}", char::from(b'A' + of - 1), n & 0xffff_ffff),
        _ if n >> 97 == 1 => "a run that nobody sent".into(),
        _ if n >> 99 == 1 => "another process's run".into(),
        _ => format!("run {id}"),
    }
}

/// What a request is about, as its name tells.
pub(super) fn request(id: RequestId) -> String {
    let n = u128::from_be_bytes(id.0);
    match n >> 96 {
        0 => format!("the client of {}", run(RunId::from_u128(n >> 16))),
        1 => format!("request {}", n & 0xffff_ffff),
        _ if id == NOBODY => "nobody".into(),
        _ => format!("request {id}"),
    }
}

/// A tool call's name: its run, the attempt that asked for it, its place from 1.
pub(super) fn call(id: CallId) -> String {
    let place = u32::from(id.call) + 1;
    format!("call {}.{place} of {}", id.attempt.0, run(id.run))
}

pub(super) fn of_ticket(ticket: Ticket) -> String {
    match ticket.subject {
        Subject::Run(run) => call(CallId {
            run,
            attempt: ticket.attempt,
            call: ticket.ordinal,
        }),
        other => subject(other),
    }
}

pub(super) fn subject(subject: Subject) -> String {
    match subject {
        Subject::Session(id) => session(id),
        Subject::Run(id) => run(id),
        Subject::Request(id) => request(id),
    }
}

pub(super) fn time(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1_000, ms % 1_000)
}

pub(super) fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed".into(),
        Outcome::Failed(why) => format!("failed ({why:?})"),
        Outcome::TimedOut { limit, .. } => format!("timed out ({})", limit_name(limit)),
        Outcome::Cancelled { .. } => "cancelled".into(),
        Outcome::Superseded => "superseded".into(),
        Outcome::Dropped { .. } => "dropped".into(),
    }
}

pub(super) const fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::Budget => "run budget",
        Limit::FirstEvent => "first event",
        Limit::Idle => "idle",
        Limit::Lane => "lane task",
    }
}
