//! How the core's values lie in columns, and how they are read back.
//!
//! Owns the encodings: whole numbers, marks, and the terminal of a receipt with its schema
//! number. It knows no statement and no table.

use serde::Deserialize;
use tidegate_core::{
    Attempt, Budget, DropPolicy, ErrorClass, Failure, Limit, Outcome, Reply, RunId, SessionId,
    StopReason, Terminal, Wall,
};
use tidegate_driver::{Role, RowMark};

use crate::fault::{Fault, Step};

/// The encoding of terminals that this build writes: postcard of [`Terminal`]. A change of
/// that type takes the next number and keeps a reader for this one; a variant that is added
/// behind the others of its enum changes no byte that was written.
pub(crate) const TERMINAL_ENCODING: i64 = 2;

/// A terminal as encoding 1 has it: no message was taken along in another run's turn.
#[derive(Deserialize)]
struct Terminal1 {
    run: RunId,
    session: SessionId,
    outcome: Outcome,
    accepted_at: Wall,
    started_at: Option<Wall>,
    ended_at: Wall,
    attempt: Attempt,
    reply: Reply,
    detail: bool,
}

impl From<Terminal1> for Terminal {
    fn from(old: Terminal1) -> Self {
        Self {
            run: old.run,
            session: old.session,
            outcome: old.outcome,
            accepted_at: old.accepted_at,
            started_at: old.started_at,
            ended_at: old.ended_at,
            attempt: old.attempt,
            reply: old.reply,
            detail: old.detail,
            turn: None,
        }
    }
}

/// A number as SQLite keeps it. Beyond its 63 bits it stops at the largest: a time or limit
/// of 292 million years.
pub(crate) fn to_sql(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A number that a CHECK holds at 0 or above.
pub(crate) fn from_sql(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// The two columns of a run's own limit.
pub(crate) fn budget_to_sql(budget: Option<Budget>) -> (&'static str, Option<i64>) {
    match budget {
        None => ("default", None),
        Some(Budget::Limited(ms)) => ("limited", Some(to_sql(ms))),
        Some(Budget::Unlimited) => ("unlimited", None),
    }
}

/// Reads what [`budget_to_sql`] wrote.
pub(crate) fn budget_from_sql(kind: &str, ms: Option<i64>) -> Step<Option<Budget>> {
    match (kind, ms) {
        ("default", None) => Ok(None),
        ("limited", Some(ms)) => Ok(Some(Budget::Limited(from_sql(ms)))),
        ("unlimited", None) => Ok(Some(Budget::Unlimited)),
        _ => Err(Fault::Record {
            what: "budget",
            expected: "default, limited or unlimited",
        }),
    }
}

/// The name of a role in the transcript.
pub(crate) fn role_to_sql(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Reads what [`role_to_sql`] wrote.
pub(crate) fn role_from_sql(role: &str) -> Step<Role> {
    match role {
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        _ => Err(Fault::Record {
            what: "role",
            expected: "user, assistant or tool",
        }),
    }
}

/// The name of a mark in the transcript.
pub(crate) fn mark_to_sql(mark: RowMark) -> &'static str {
    match mark {
        RowMark::Whole => "whole",
        RowMark::Calls => "calls",
        RowMark::Partial => "partial",
        RowMark::Interrupted => "interrupted",
        RowMark::Dropped { told: false } => "dropped",
        RowMark::Dropped { told: true } => "summarized",
    }
}

/// Reads what [`mark_to_sql`] wrote.
pub(crate) fn mark_from_sql(mark: &str) -> Step<RowMark> {
    match mark {
        "whole" => Ok(RowMark::Whole),
        "calls" => Ok(RowMark::Calls),
        "partial" => Ok(RowMark::Partial),
        "interrupted" => Ok(RowMark::Interrupted),
        "dropped" => Ok(RowMark::Dropped { told: false }),
        "summarized" => Ok(RowMark::Dropped { told: true }),
        _ => Err(Fault::Record {
            what: "mark",
            expected: "whole, calls, partial, interrupted, dropped or summarized",
        }),
    }
}

/// The bytes of a terminal in the encoding [`TERMINAL_ENCODING`].
pub(crate) fn terminal_to_sql(terminal: &Terminal) -> Step<Vec<u8>> {
    postcard::to_allocvec(terminal).map_err(|_| Fault::Record {
        what: "terminal",
        expected: "a value that postcard can encode",
    })
}

/// Reads a terminal of a known encoding. Any other is refused, never guessed at.
pub(crate) fn terminal_from_sql(encoding: i64, bytes: &[u8]) -> Step<Terminal> {
    let read = match encoding {
        1 => whole::<Terminal1>(bytes).map(Terminal::from),
        TERMINAL_ENCODING => whole(bytes),
        _ => None,
    };
    read.ok_or(Fault::Record {
        what: "terminal",
        expected: "encoding 1 or 2",
    })
}

/// A value that takes up all of the bytes.
fn whole<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        Ok(_) | Err(_) => None,
    }
}

/// How a run ended, for people who look into the database.
pub(crate) fn reason(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed".into(),
        Outcome::Superseded => "superseded".into(),
        Outcome::Cancelled {
            by,
            provider_started,
        } => {
            let by = match by {
                StopReason::Rpc => "request",
                StopReason::Interrupt => "a later message",
                StopReason::Reset => "a reset of its session",
            };
            format!("cancelled by {by}, {}", phase(*provider_started))
        }
        Outcome::Dropped { by } => match by {
            DropPolicy::Old | DropPolicy::Summarize => "dropped: the queue was full".into(),
            DropPolicy::New => "dropped: no room in the queue".into(),
        },
        Outcome::TimedOut {
            limit,
            provider_started,
        } => {
            let limit = match limit {
                Limit::Budget => "budget",
                Limit::FirstEvent => "first event",
                Limit::Idle => "idle",
                Limit::Lane => "lane",
            };
            format!("timed out: {limit} limit, {}", phase(*provider_started))
        }
        Outcome::Failed(Failure::Incomplete) => "failed: stream ended early".into(),
        Outcome::Failed(Failure::ReplyTooLarge) => "failed: reply too large".into(),
        Outcome::Failed(Failure::TooManyRounds) => "failed: too many rounds of tools".into(),
        Outcome::Failed(Failure::Provider { class, status }) => match status {
            Some(status) => format!("failed: provider, {}, status {status}", class_name(*class)),
            None => format!("failed: provider, {}", class_name(*class)),
        },
    }
}

fn phase(provider_started: bool) -> &'static str {
    if provider_started {
        "model asked"
    } else {
        "model not asked"
    }
}

fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Auth => "auth",
        ErrorClass::Format => "format",
        ErrorClass::RateLimit => "rate limit",
        ErrorClass::Overloaded => "overloaded",
        ErrorClass::Billing => "billing",
        ErrorClass::ServerError => "server error",
        ErrorClass::Timeout => "timeout",
        ErrorClass::TlsCertificate => "TLS certificate",
        ErrorClass::ContextOverflow => "context overflow",
        ErrorClass::ModelNotFound => "model not found",
        ErrorClass::Network => "network",
        ErrorClass::Protocol => "protocol",
        ErrorClass::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Terminal {
        Terminal {
            run: RunId([1; 16]),
            session: SessionId([2; 16]),
            outcome: Outcome::Failed(Failure::Provider {
                class: ErrorClass::RateLimit,
                status: Some(429),
            }),
            accepted_at: Wall(1_000),
            started_at: Some(Wall(1_001)),
            ended_at: Wall(u64::MAX),
            attempt: Attempt(2),
            reply: Reply::Text { bytes: 300 },
            detail: true,
            turn: None,
        }
    }

    /// P10: receipts of earlier builds stay readable.
    #[test]
    fn the_bytes_of_encoding_1_are_read() {
        let mut bytes = [[1; 16], [2; 16]].concat();
        bytes.extend([1, 0, 2, 1, 0xad, 3, 0xe8, 7, 1, 0xe9, 7]);
        bytes.extend([255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        bytes.extend([2, 1, 0xac, 2, 1]);
        let read = terminal_from_sql(1, &bytes).expect("bytes that schema 1 wrote");
        assert_eq!(read, sample());
        assert!(terminal_from_sql(2, &bytes).is_err());
    }

    /// P10: red here means: take the next encoding number and keep a reader for this one.
    #[test]
    fn the_bytes_of_encoding_2_do_not_change() {
        let along = Terminal {
            turn: Some(RunId([3; 16])),
            outcome: Outcome::Dropped {
                by: DropPolicy::Summarize,
            },
            ..sample()
        };
        let bytes = terminal_to_sql(&along).expect("a terminal has an encoding");
        let mut expected = [[1; 16], [2; 16]].concat();
        expected.extend([5, 2, 0xe8, 7, 1, 0xe9, 7]);
        expected.extend([255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
        expected.extend([2, 1, 0xac, 2, 1, 1]);
        expected.extend([3; 16]);
        assert_eq!(bytes, expected);
        assert_eq!(terminal_from_sql(2, &bytes).expect("its own bytes"), along);
    }

    /// Law 10: what can't be read is not guessed at.
    #[test]
    fn a_terminal_of_another_encoding_or_with_a_tail_is_refused() {
        let mut bytes = terminal_to_sql(&sample()).expect("a terminal has an encoding");
        assert!(terminal_from_sql(1, &bytes).is_err());
        assert!(terminal_from_sql(3, &bytes).is_err());
        bytes.push(0);
        assert!(terminal_from_sql(2, &bytes).is_err());
        assert!(terminal_from_sql(2, &bytes[..20]).is_err());
    }

    /// No overflow and no wrap, which would turn a far limit into none.
    #[test]
    fn a_number_beyond_sqlites_range_stops_at_its_end() {
        assert_eq!(from_sql(to_sql(u64::MAX)), i64::MAX.unsigned_abs());
        assert_eq!(from_sql(to_sql(7)), 7);
    }
}
