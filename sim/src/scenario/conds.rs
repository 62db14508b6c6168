//! The sentences of expectations: what can be expected of whom.
//!
//! One row for each sentence; the book lists the same. How each is judged stands in `judge`.

use tidegate_core::Decision;

use super::ast::{Cond, Happens, Row, Stand, When};
use super::error::Trouble;
use super::form::{Form, choose};
use super::token::Cursor;
use super::words::{ENDED, RESULTS, say, say_queue, say_told};

const fn form(text: &'static str, make: fn(super::form::Taken) -> Cond) -> Form<Cond> {
    Form { text, make }
}

/// All of them.
pub(super) const CONDS: &[Form<Cond>] = &[
    form("{message} is accepted", |mut t| Cond::Accepted(t.word())),
    form("{message} starts", |mut t| Cond::Starts(t.word())),
    form("{message} ends", |mut t| Cond::Ends(t.word(), None)),
    form("{message} ends as {end}", |mut t| {
        Cond::Ends(t.word(), Some(t.ended()))
    }),
    form("{message} ended once", |mut t| {
        Cond::EndedOnce(t.word(), None)
    }),
    form("{message} ended once as {end}", |mut t| {
        Cond::EndedOnce(t.word(), Some(t.ended()))
    }),
    form("{messages} started in this order", |mut t| {
        Cond::StartedInOrder(t.words())
    }),
    form("{messages} ended in this order", |mut t| {
        Cond::EndedInOrder(t.words())
    }),
    form("{message} waits", |mut t| Cond::Waits(t.word())),
    form("{message} waits behind {message}", |mut t| {
        Cond::WaitsBehind(t.word(), t.word())
    }),
    form("the model is called for {message}", |mut t| {
        Cond::Called(t.word())
    }),
    form("the model is stopped for {message}", |mut t| {
        Cond::Stopped(t.word())
    }),
    form("the model was never called for {message}", |mut t| {
        Cond::CalledTimes(t.word(), 0)
    }),
    form("the model was called once for {message}", |mut t| {
        Cond::CalledTimes(t.word(), 1)
    }),
    form(
        "the model was called {number} times for {message}",
        |mut t| {
            let number = t.number();
            Cond::CalledTimes(t.word(), number)
        },
    ),
    form("text of {message} is shown", |mut t| Cond::Shown(t.word())),
    form("{message} begins at once", |mut t| {
        Cond::Stands(t.word(), Stand::Next)
    }),
    form("{message} stands behind {number}", |mut t| {
        Cond::Stands(t.word(), Stand::Behind(t.number()))
    }),
    form("{message} is to steer {message}", |mut t| {
        Cond::Stands(t.word(), Stand::Steers(t.word()))
    }),
    form("{message} is to interrupt {message}", |mut t| {
        Cond::Stands(t.word(), Stand::Interrupts(t.word()))
    }),
    form(
        "{message} waited behind {number} at work and {number} waiting",
        |mut t| Cond::Waited(t.word(), t.number(), t.number()),
    ),
    form("{message} is taken along by {message}", |mut t| {
        Cond::TakenAlong(t.word(), t.word())
    }),
    form("{message} is seen by the model", |mut t| {
        Cond::Seen(t.word())
    }),
    form("{message} is to ask its model again", |mut t| {
        Cond::Retries(t.word())
    }),
    form("{message} is to ask fallback {number}", |mut t| {
        Cond::FallsBack(t.word(), t.number())
    }),
    form("{message} ends in the turn of {message}", |mut t| {
        Cond::EndsInTurn(t.word(), t.word())
    }),
    form("{call} is asked for", |mut t| {
        Cond::Call(t.word(), Happens::AskedFor)
    }),
    form("{call} waits for a person", |mut t| {
        Cond::Call(t.word(), Happens::Asked)
    }),
    form("{call} is allowed", |mut t| {
        Cond::Call(t.word(), Happens::Decided(Decision::AllowOnce))
    }),
    form("{call} is denied", |mut t| {
        Cond::Call(t.word(), Happens::Decided(Decision::Deny))
    }),
    form("{call} runs", |mut t| Cond::Call(t.word(), Happens::Runs)),
    form("{call} is stopped", |mut t| {
        Cond::Call(t.word(), Happens::Stopped)
    }),
    form("output of {call} is shown", |mut t| {
        Cond::Call(t.word(), Happens::Shown)
    }),
    form("{call} comes to {result}", |mut t| {
        Cond::Call(t.word(), Happens::Ends(t.result()))
    }),
    form("{call} came once to {result}", |mut t| {
        Cond::CameOnce(t.word(), t.result())
    }),
    form("{call} never ran", |mut t| Cond::RanTimes(t.word(), 0)),
    form("{call} ran once", |mut t| Cond::RanTimes(t.word(), 1)),
    form("{call} ran {number} times", |mut t| {
        Cond::RanTimes(t.word(), t.number())
    }),
    form("{session} begins anew", |mut t| Cond::BeginsAnew(t.word())),
    form("{client} is told {message}: {told}", |mut t| Cond::Told {
        client: t.word(),
        message: t.word(),
        told: t.told(),
    }),
    form("{client} is told that it queues {queue}", |mut t| {
        Cond::Queues(t.word(), t.queue())
    }),
    form("{client} is told that nothing was stopped", |mut t| {
        Cond::NothingStopped(t.word())
    }),
    form("anything of {message} after its end", |mut t| {
        Cond::AfterEnd(t.word())
    }),
    form("the process ends", |_| Cond::ProcessEnds),
    form("more than {number} runs at work", |mut t| {
        Cond::MoreAtWork(t.number())
    }),
    form("transcript of {session} is: {rows}", |mut t| {
        Cond::Transcript(t.word(), t.rows())
    }),
];

/// Reads one, to the end of the line.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Cond, Trouble> {
    choose(CONDS, "expectation", false, cursor)
}

/// Writes one.
pub(super) fn write(cond: &Cond) -> String {
    match cond {
        Cond::Accepted(m) => format!("{m} is accepted"),
        Cond::Starts(m) => format!("{m} starts"),
        Cond::Ends(m, None) => format!("{m} ends"),
        Cond::Ends(m, Some(ended)) => format!("{m} ends as {}", say(ENDED, ended)),
        Cond::EndedOnce(m, None) => format!("{m} ended once"),
        Cond::EndedOnce(m, Some(ended)) => format!("{m} ended once as {}", say(ENDED, ended)),
        Cond::StartedInOrder(all) => format!("{} started in this order", all.join(", ")),
        Cond::EndedInOrder(all) => format!("{} ended in this order", all.join(", ")),
        Cond::Waits(m) => format!("{m} waits"),
        Cond::WaitsBehind(m, first) => format!("{m} waits behind {first}"),
        Cond::Called(m) => format!("the model is called for {m}"),
        Cond::Stopped(m) => format!("the model is stopped for {m}"),
        Cond::CalledTimes(m, 0) => format!("the model was never called for {m}"),
        Cond::CalledTimes(m, 1) => format!("the model was called once for {m}"),
        Cond::CalledTimes(m, n) => format!("the model was called {n} times for {m}"),
        Cond::Shown(m) => format!("text of {m} is shown"),
        Cond::Stands(m, Stand::Next) => format!("{m} begins at once"),
        Cond::Stands(m, Stand::Behind(n)) => format!("{m} stands behind {n}"),
        Cond::Stands(m, Stand::Steers(into)) => format!("{m} is to steer {into}"),
        Cond::Stands(m, Stand::Interrupts(run)) => format!("{m} is to interrupt {run}"),
        Cond::Waited(m, active, queued) => {
            format!("{m} waited behind {active} at work and {queued} waiting")
        }
        Cond::EndsInTurn(m, turn) => format!("{m} ends in the turn of {turn}"),
        Cond::TakenAlong(m, turn) => format!("{m} is taken along by {turn}"),
        Cond::Retries(m) => format!("{m} is to ask its model again"),
        Cond::FallsBack(m, n) => format!("{m} is to ask fallback {n}"),
        Cond::Call(call, happens) => say_happens(call, *happens),
        Cond::CameOnce(call, end) => format!("{call} came once to {}", say(RESULTS, end)),
        Cond::RanTimes(call, 0) => format!("{call} never ran"),
        Cond::RanTimes(call, 1) => format!("{call} ran once"),
        Cond::RanTimes(call, n) => format!("{call} ran {n} times"),
        Cond::Seen(m) => format!("{m} is seen by the model"),
        Cond::BeginsAnew(session) => format!("{session} begins anew"),
        Cond::Told {
            client,
            message,
            told,
        } => format!("{client} is told {message}: {}", say_told(*told)),
        Cond::Queues(client, queue) => {
            format!("{client} is told that it queues {}", say_queue(*queue))
        }
        Cond::ProcessEnds => "the process ends".into(),
        Cond::NothingStopped(client) => format!("{client} is told that nothing was stopped"),
        Cond::AfterEnd(m) => format!("anything of {m} after its end"),
        Cond::MoreAtWork(n) => format!("more than {n} runs at work"),
        Cond::Transcript(session, rows) => {
            format!("transcript of {session} is: {}", say_rows(rows))
        }
    }
}

fn say_happens(call: &str, happens: Happens) -> String {
    match happens {
        Happens::AskedFor => format!("{call} is asked for"),
        Happens::Asked => format!("{call} waits for a person"),
        Happens::Decided(Decision::AllowOnce) => format!("{call} is allowed"),
        Happens::Decided(Decision::Deny) => format!("{call} is denied"),
        Happens::Runs => format!("{call} runs"),
        Happens::Stopped => format!("{call} is stopped"),
        Happens::Shown => format!("output of {call} is shown"),
        Happens::Ends(end) => format!("{call} comes to {}", say(RESULTS, &end)),
    }
}

/// Rows in words.
pub(super) fn say_rows(rows: &[Row]) -> String {
    let words: Vec<String> = rows
        .iter()
        .map(|row| match row {
            Row::User(m) => format!("user {m}"),
            Row::Whole(m) => format!("assistant {m} whole"),
            Row::Partial(m) => format!("assistant {m} partial"),
            Row::Interrupted(m) => format!("assistant {m} interrupted"),
            Row::Calls(m) => format!("assistant {m} calls"),
            Row::Result(call, end) => format!("result {call} {}", say(RESULTS, end)),
            Row::Dropped(m) => format!("dropped {m}"),
        })
        .collect();
    if words.is_empty() {
        "empty".into()
    } else {
        words.join(", ")
    }
}

impl Cond {
    /// Whether it looks at the whole of a run, so that it has no time of its own.
    pub(super) const fn is_about_all(&self) -> bool {
        matches!(
            self,
            Self::EndedOnce(..)
                | Self::StartedInOrder(_)
                | Self::EndedInOrder(_)
                | Self::CalledTimes(..)
                | Self::CameOnce(..)
                | Self::RanTimes(..)
                | Self::Transcript(..)
        )
    }

    /// The messages, sessions and clients that it names.
    pub(super) fn names(&self) -> Names<'_> {
        let mut names = Names::default();
        match self {
            Self::Accepted(m)
            | Self::Starts(m)
            | Self::Ends(m, _)
            | Self::EndedOnce(m, _)
            | Self::Waits(m)
            | Self::Called(m)
            | Self::Stopped(m)
            | Self::CalledTimes(m, _)
            | Self::Shown(m)
            | Self::Seen(m)
            | Self::Retries(m)
            | Self::FallsBack(m, _)
            | Self::Waited(m, ..)
            | Self::Stands(m, Stand::Next | Stand::Behind(_))
            | Self::AfterEnd(m) => names.messages.push(m),
            Self::StartedInOrder(all) | Self::EndedInOrder(all) => {
                names.messages.extend(all.iter().map(String::as_str));
            }
            Self::Call(call, _) | Self::CameOnce(call, _) | Self::RanTimes(call, _) => {
                names.calls.push(call);
            }
            Self::BeginsAnew(session) => names.sessions.push(session),
            Self::WaitsBehind(m, other)
            | Self::TakenAlong(m, other)
            | Self::EndsInTurn(m, other)
            | Self::Stands(m, Stand::Steers(other) | Stand::Interrupts(other)) => {
                names.messages.extend([m.as_str(), other]);
            }
            Self::Told {
                client, message, ..
            } => {
                names.clients.push(client);
                names.either.push(message);
            }
            Self::NothingStopped(client) | Self::Queues(client, _) => names.clients.push(client),
            Self::MoreAtWork(_) | Self::ProcessEnds => {}
            Self::Transcript(session, rows) => {
                names.sessions.push(session);
                for row in rows {
                    match row {
                        Row::User(m)
                        | Row::Whole(m)
                        | Row::Partial(m)
                        | Row::Interrupted(m)
                        | Row::Calls(m)
                        | Row::Dropped(m) => names.messages.push(m),
                        Row::Result(call, _) => names.calls.push(call),
                    }
                }
            }
        }
        names
    }
}

/// Names in a sentence.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    pub(super) messages: Vec<&'a str>,
    pub(super) sessions: Vec<&'a str>,
    pub(super) clients: Vec<&'a str>,
    pub(super) calls: Vec<&'a str>,
    /// Messages or calls.
    pub(super) either: Vec<&'a str>,
}

impl When {
    /// Whether it is about the whole run and not about a time.
    pub(super) const fn is_timeless(self) -> bool {
        matches!(self, Self::Finally | Self::Never)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::token::tokens;

    #[test]
    fn what_is_read_is_written_again() {
        for line in [
            "m1 is accepted",
            "m1 starts",
            "m1 ends",
            "m1 ends as timed out (idle)",
            "m1 ended once",
            "m1 ended once as failed (rate limit)",
            "m1, m2, m3 started in this order",
            "m1, m2 ended in this order",
            "m2 waits",
            "m2 waits behind m1",
            "the model is called for m1",
            "the model is stopped for m1",
            "the model was never called for m1",
            "the model was called once for m1",
            "the model was called 2 times for m1",
            "text of m1 is shown",
            "m1 begins at once",
            "m2 stands behind 1",
            "m2 is to steer m1",
            "m2 is to interrupt m1",
            "m2 waited behind 1 at work and 0 waiting",
            "m2 is taken along by m1",
            "m2 is seen by the model",
            "m2 is to ask its model again",
            "m2 is to ask fallback 1",
            "m2 ends in the turn of m1",
            "c1 is asked for",
            "c1 waits for a person",
            "c1 is allowed",
            "c1 is denied",
            "c1 runs",
            "c1 is stopped",
            "output of c1 is shown",
            "c1 comes to timed out",
            "c1 came once to no such tool",
            "c1 never ran",
            "c1 ran once",
            "c1 ran 2 times",
            "alice is told c1: allowed",
            "alice is told c1: refused (already decided)",
            "transcript of A is: user m1, assistant m1 calls, result c1 ok, result c2 timed out",
            "m2 ended once as cancelled (interrupted)",
            "m2 ended once as dropped (summarize)",
            "A begins anew",
            "alice is told that it queues by collect, debounce 2s, cap 3, drop old",
            "alice is told m2: pending",
            "the process ends",
            "alice is told m1: accepted",
            "alice is told m1: completed, as before",
            "alice is told m1: timed out (first event)",
            "bob is told unknown: no such run",
            "alice is told that nothing was stopped",
            "anything of m1 after its end",
            "more than 2 runs at work",
            "transcript of A is: user m1, assistant m1 whole, user m2, assistant m2 partial",
            "transcript of A is: user m1, dropped m2",
            "transcript of A is: empty",
        ] {
            let words = tokens(line);
            let cond = read(&mut Cursor::new(&words)).unwrap_or_else(|t| panic!("{line}: {t:?}"));
            assert_eq!(write(&cond), line);
        }
    }
}
