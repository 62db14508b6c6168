//! The sentences of the timeline: what clients, model, store, process and clock can do.
//!
//! One row for each sentence; the book lists the same. Reading and writing stand side by
//! side, and a test holds them together.

use tidegate_core::{Decision, Generation, QueueChange, StoreError};

use super::ast::{Part, Refused, Step};
use super::beats::{self, say_beats};
use super::error::Trouble;
use super::form::{Form, Hole, Value, choose, fill};
use super::token::Cursor;
use super::units::show_time;
use super::words::{STORE_ERRORS, say, say_queue, say_said, say_terms};
use super::works::{self, say_works};

const fn form<T>(text: &'static str, make: fn(super::form::Taken) -> T) -> Form<T> {
    Form { text, make }
}

/// All sentences but those of the model and of tools.
pub(super) const STEPS: &[Form<Step>] = &[
    form("{client} sends {messages} to {session} {terms}", |mut t| {
        Step::Send {
            client: t.word(),
            messages: t.words(),
            session: t.word(),
            said: None,
            terms: t.terms(),
        }
    }),
    form(
        "{client} says {messages} to {session} {how} {terms}",
        |mut t| Step::Send {
            client: t.word(),
            messages: t.words(),
            session: t.word(),
            said: Some(t.said()),
            terms: t.terms(),
        },
    ),
    form("{client} resets {session}", |mut t| {
        reset(t.word(), t.word(), None)
    }),
    form(
        "{client} resets {session} at generation {number}",
        |mut t| reset(t.word(), t.word(), Some(Generation(t.number()))),
    ),
    form("{client} lets {session} queue {queue}", |mut t| {
        queue(t.word(), t.word(), QueueChange::Set(t.queue()))
    }),
    form("{client} lets {session} queue as configured", |mut t| {
        queue(t.word(), t.word(), QueueChange::Clear)
    }),
    form("{client} asks how {session} queues", |mut t| {
        queue(t.word(), t.word(), QueueChange::Show)
    }),
    form("{client} repeats {message}", |mut t| {
        repeat(t.word(), t.word(), false)
    }),
    form("{client} repeats {message} with another body", |mut t| {
        repeat(t.word(), t.word(), true)
    }),
    form("{client} waits for {message}", |mut t| {
        wait(t.word(), t.word(), None)
    }),
    form("{client} waits for {message} up to {time}", |mut t| {
        wait(t.word(), t.word(), Some(t.number()))
    }),
    form("{client} peeks at {message}", |mut t| {
        wait(t.word(), t.word(), Some(0))
    }),
    form("{client} aborts {message}", |mut t| Step::Abort {
        client: t.word(),
        message: Some(t.word()),
        session: None,
        part: Part::All,
    }),
    form("{client} aborts {message} in {session}", |mut t| {
        Step::Abort {
            client: t.word(),
            message: Some(t.word()),
            session: Some(t.word()),
            part: Part::All,
        }
    }),
    form("{client} aborts everything of {session}", |mut t| {
        aborts(t.word(), t.word(), Part::All)
    }),
    form("{client} aborts everything queued of {session}", |mut t| {
        aborts(t.word(), t.word(), Part::Queued)
    }),
    form("{client} aborts the run at work of {session}", |mut t| {
        aborts(t.word(), t.word(), Part::AtWork)
    }),
    form("{client} allows {call}", |mut t| {
        decide(t.word(), t.word(), Decision::AllowOnce)
    }),
    form("{client} denies {call}", |mut t| {
        decide(t.word(), t.word(), Decision::Deny)
    }),
    form("{client} leaves", |mut t| Step::Leave { client: t.word() }),
    form("store takes {time}", |mut t| Step::StoreTakes(t.number())),
    form("store is {refusal} for {time}", |mut t| {
        refuses(t.store_error(), Refused::All, t.number())
    }),
    form("store is {refusal} for ends, for {time}", |mut t| {
        refuses(t.store_error(), Refused::Ends, t.number())
    }),
    form("store is {refusal} for launches, for {time}", |mut t| {
        refuses(t.store_error(), Refused::Launches, t.number())
    }),
    form("store reports after {time}", |mut t| {
        Step::StoreReports(t.number())
    }),
    form("store reports twice for {time}", |mut t| {
        Step::StoreTwice(t.number())
    }),
    form("another process takes {session} for {time}", |mut t| {
        Step::TakenAway {
            session: t.word(),
            for_ms: t.number(),
        }
    }),
    form("another process writes in {session} for {time}", |mut t| {
        Step::Intruder {
            session: t.word(),
            for_ms: t.number(),
        }
    }),
    form("process crashes, starts again after {time}", |mut t| {
        Step::Crash {
            power: false,
            down_ms: t.number(),
        }
    }),
    form("process loses power, starts again after {time}", |mut t| {
        Step::Crash {
            power: true,
            down_ms: t.number(),
        }
    }),
    form("process ends, starts again after {time}", |mut t| {
        Step::Drain {
            budget_ms: None,
            down_ms: t.number(),
        }
    }),
    form(
        "process ends within {time}, starts again after {time}",
        |mut t| Step::Drain {
            budget_ms: Some(t.number()),
            down_ms: t.number(),
        },
    ),
    form("clock freezes for {time}", |mut t| Step::Freeze(t.number())),
    form("clock jumps {jump}", |mut t| Step::WallJump(t.jump())),
];

const fn reset(client: String, session: String, expected: Option<Generation>) -> Step {
    Step::Reset {
        client,
        session,
        expected,
    }
}

const fn queue(client: String, session: String, change: QueueChange) -> Step {
    Step::Queue {
        client,
        session,
        change,
    }
}

const fn aborts(client: String, session: String, part: Part) -> Step {
    Step::Abort {
        client,
        message: None,
        session: Some(session),
        part,
    }
}

fn repeat(client: String, message: String, other_body: bool) -> Step {
    Step::Repeat {
        client,
        message,
        other_body,
    }
}

fn wait(client: String, message: String, limit_ms: Option<u64>) -> Step {
    Step::Wait {
        client,
        message,
        limit_ms,
    }
}

const fn decide(client: String, call: String, decision: Decision) -> Step {
    Step::Decide {
        client,
        call,
        decision,
    }
}

const fn refuses(error: StoreError, what: Refused, for_ms: u64) -> Step {
    Step::StoreRefuses {
        error,
        what,
        for_ms,
    }
}

/// Reads one step.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Step, Trouble> {
    match cursor.peek() {
        Some("model") => {}
        Some("fallback") => return fallback_answers(cursor),
        Some("tool") => return tool(cursor),
        _ => return choose(STEPS, "step", false, cursor),
    }
    let (message, on_cancel) = model(cursor)?;
    if on_cancel && cursor.take_all("goes on") {
        return match cursor.peek() {
            Some(_) => Err(cursor.trouble("the end of the line")),
            None => Ok(Step::OnCancel {
                message,
                beats: Vec::new(),
            }),
        };
    }
    let beats = beats::read(cursor)?;
    Ok(if on_cancel {
        Step::OnCancel { message, beats }
    } else {
        let fallback = None;
        Step::Answer {
            message,
            fallback,
            beats,
        }
    })
}

/// Reads how a fallback answers.
fn fallback_answers(cursor: &mut Cursor<'_>) -> Result<Step, Trouble> {
    cursor.next();
    let here = cursor.clone();
    let number = match fill(Hole::Number, cursor) {
        Ok(Value::Number(n)) => u16::try_from(n).ok().filter(|&n| n > 0),
        _ => None,
    };
    let which = || here.trouble(&format!("which fallback, from 1 to {}", u16::MAX));
    let number = number.ok_or_else(which)?;
    if !cursor.take("answers") {
        let word = cursor.peek().unwrap_or_default();
        return Err(cursor.trouble("`answers`").near(word, ["answers"]));
    }
    let message = answered(cursor)?;
    let beats = beats::read(cursor)?;
    let fallback = Some(number);
    Ok(Step::Answer {
        message,
        fallback,
        beats,
    })
}

/// Reads what a tool does, and what it does once it is told to stop.
fn tool(cursor: &mut Cursor<'_>) -> Result<Step, Trouble> {
    let on_stop = cursor.take_all("tool on cancel of");
    if !on_stop && !cursor.take_all("tool runs") {
        cursor.next();
        let word = cursor.peek().unwrap_or_default();
        return Err(cursor
            .trouble("`runs` or `on cancel of`")
            .near(word, ["runs", "on"]));
    }
    let Value::Word(call) = fill(Hole::Call, cursor)? else {
        return Err(cursor.trouble("a call's name"));
    };
    if !cursor.take(":") {
        return Err(cursor.trouble("`:` and what the tool does"));
    }
    if !on_stop {
        let works = works::read(cursor)?;
        return Ok(Step::Runs { call, works });
    }
    let works = match cursor.take_all("goes on") {
        true => Vec::new(),
        false => works::read(cursor)?,
    };
    match cursor.peek() {
        Some(_) => Err(cursor.trouble("the end of the line")),
        None => Ok(Step::OnStop { call, works }),
    }
}

/// The message of an answer, up to and with the colon.
fn answered(cursor: &mut Cursor<'_>) -> Result<String, Trouble> {
    let Value::Word(message) = fill(Hole::Message, cursor)? else {
        return Err(cursor.trouble("a message's name"));
    };
    if !cursor.take(":") {
        return Err(cursor.trouble("`:` and the answer"));
    }
    Ok(message)
}

/// Reads a model's line up to and with its colon: the message, and whether it is about a
/// cancel.
fn model(cursor: &mut Cursor<'_>) -> Result<(String, bool), Trouble> {
    let on_cancel = cursor.take_all("model on cancel of");
    if !on_cancel && !cursor.take_all("model answers") {
        cursor.next();
        let word = cursor.peek().unwrap_or_default();
        return Err(cursor
            .trouble("`answers` or `on cancel of`")
            .near(word, ["answers", "on"]));
    }
    Ok((answered(cursor)?, on_cancel))
}

/// Writes one step.
pub(super) fn write(step: &Step) -> String {
    match step {
        Step::Send {
            client,
            messages,
            session,
            said,
            terms,
        } => {
            let (messages, terms) = (messages.join(", "), say_terms(*terms));
            match said {
                None => format!("{client} sends {messages} to {session}{terms}"),
                Some(said) => {
                    let how = say_said(said.mode, &said.route);
                    format!("{client} says {messages} to {session}{how}{terms}")
                }
            }
        }
        Step::Reset {
            client,
            session,
            expected,
        } => {
            let only = expected.map_or(String::new(), |g| format!(" at generation {}", g.0));
            format!("{client} resets {session}{only}")
        }
        Step::Queue {
            client,
            session,
            change,
        } => match change {
            QueueChange::Show => format!("{client} asks how {session} queues"),
            QueueChange::Set(queue) => {
                format!("{client} lets {session} queue {}", say_queue(*queue))
            }
            QueueChange::Clear => format!("{client} lets {session} queue as configured"),
        },
        Step::Repeat {
            client,
            message,
            other_body,
        } => {
            let other = match other_body {
                true => " with another body",
                false => "",
            };
            format!("{client} repeats {message}{other}")
        }
        Step::Wait {
            client,
            message,
            limit_ms,
        } => match limit_ms {
            None => format!("{client} waits for {message}"),
            Some(0) => format!("{client} peeks at {message}"),
            Some(ms) => format!("{client} waits for {message} up to {}", show_time(*ms)),
        },
        Step::Abort {
            client,
            message,
            session,
            part,
        } => {
            let all = match part {
                Part::All => "everything",
                Part::Queued => "everything queued",
                Part::AtWork => "the run at work",
            };
            let what = message.as_deref().unwrap_or(all);
            let of = if message.is_some() { " in " } else { " of " };
            let session = session
                .as_ref()
                .map_or(String::new(), |s| format!("{of}{s}"));
            format!("{client} aborts {what}{session}")
        }
        Step::Decide {
            client,
            call,
            decision,
        } => match decision {
            Decision::AllowOnce => format!("{client} allows {call}"),
            Decision::Deny => format!("{client} denies {call}"),
        },
        Step::Leave { client } => format!("{client} leaves"),
        Step::Runs { call, works } => format!("tool runs {call}: {}", say_works(works)),
        Step::OnStop { call, works } if works.is_empty() => {
            format!("tool on cancel of {call}: goes on")
        }
        Step::OnStop { call, works } => format!("tool on cancel of {call}: {}", say_works(works)),
        Step::Answer {
            message,
            fallback,
            beats,
        } => {
            let who = fallback.map_or("model".into(), |n| format!("fallback {n}"));
            format!("{who} answers {message}: {}", say_beats(beats))
        }
        Step::OnCancel { message, beats } if beats.is_empty() => {
            format!("model on cancel of {message}: goes on")
        }
        Step::OnCancel { message, beats } => {
            format!("model on cancel of {message}: {}", say_beats(beats))
        }
        Step::StoreTakes(ms) => format!("store takes {}", show_time(*ms)),
        Step::StoreRefuses {
            error,
            what,
            for_ms,
        } => {
            let only = match what {
                Refused::All => "",
                Refused::Ends => " for ends,",
                Refused::Launches => " for launches,",
            };
            let error = say(STORE_ERRORS, error);
            format!("store is {error}{only} for {}", show_time(*for_ms))
        }
        Step::StoreTwice(ms) => format!("store reports twice for {}", show_time(*ms)),
        Step::StoreReports(ms) => format!("store reports after {}", show_time(*ms)),
        Step::TakenAway { session, for_ms } => {
            format!("another process takes {session} for {}", show_time(*for_ms))
        }
        Step::Intruder { session, for_ms } => format!(
            "another process writes in {session} for {}",
            show_time(*for_ms)
        ),
        Step::Crash { power, down_ms } => {
            let how = if *power { "loses power" } else { "crashes" };
            format!("process {how}, starts again after {}", show_time(*down_ms))
        }
        Step::Drain { budget_ms, down_ms } => {
            let within = budget_ms.map_or(String::new(), |ms| format!(" within {}", show_time(ms)));
            format!(
                "process ends{within}, starts again after {}",
                show_time(*down_ms)
            )
        }
        Step::Freeze(ms) => format!("clock freezes for {}", show_time(*ms)),
        Step::WallJump(ms) => {
            let sign = if *ms < 0 { '-' } else { '+' };
            format!("clock jumps {sign}{}", show_time(ms.unsigned_abs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::token::tokens;

    fn round(line: &str) -> String {
        let words = tokens(line);
        let mut cursor = Cursor::new(&words);
        match read(&mut cursor) {
            Ok(step) => write(&step),
            Err(trouble) => panic!("{line}: {trouble:?}"),
        }
    }

    #[test]
    fn what_is_read_is_written_again() {
        for line in [
            "alice sends m1 to A",
            "alice sends m1, m2, m3 to A with budget 30s",
            "alice sends m1 to A with budget unlimited",
            "bob repeats m1",
            "bob repeats m1 with another body",
            "bob waits for m1",
            "bob waits for m1 up to 2.5s",
            "bob peeks at unknown",
            "alice aborts m1",
            "alice aborts m1 in B",
            "alice aborts everything of A",
            "alice aborts everything queued of A",
            "alice aborts the run at work of A",
            "alice says m1, m2 to A",
            "alice says m1 to A by steer",
            "alice says m1 to A on work",
            "room says m1 to A by collect on work",
            "heartbeat says m1 to A with budget 30s, lane cron, priority background",
            "alice sends m1 to A with lane hook-dispatch",
            "alice resets A",
            "alice resets A at generation 2",
            "alice lets A queue by interrupt",
            "alice lets A queue by collect, debounce 2s, cap 3, drop old",
            "alice lets A queue cap 3",
            "alice asks how A queues",
            "alice lets A queue as configured",
            "alice leaves",
            "model answers m1: accepts, 2 chunks, then silence",
            "model answers m1: begins, 3 chunks 10s apart, then completes",
            "model answers m1: 2 chunks of 900 bytes, then resets",
            "model answers m1: 2 chunks of 900 bytes 1s apart, then ends incomplete",
            "model answers m1: reasoning every 10s for 400s, 1 chunks, then completes",
            "model answers m1: keep-alives every 15s for 300s, then silence",
            "model answers m1: begins after 3s, pause 75s, finishes, then silence",
            "model answers m1: fails with status 429",
            "model answers m1: asks to wait 2s, then fails with status 429",
            "model answers m1: 1 chunks, asks to wait for ever, then fails (usage window)",
            "model answers m1: reasoning, pause 1s, keep-alive, then refuses",
            "fallback 2 answers m1: begins, 2 chunks, then completes",
            "model on cancel of m1: silence",
            "model on cancel of m1: goes on",
            "model on cancel of m1: pause 40s, then completes",
            "model answers m1: begins, arguments every 10ms for 1s, calls c1, then completes",
            "model answers m1: arguments, calls guarded c1 up to 30s, then completes",
            "model answers m1: calls c1 up to 30s, calls c2 of no tool, then completes",
            "model answers m1: calls guarded c1, calls c2 with bad arguments, then completes",
            "tool runs c1: 2 outputs, 3 outputs of 900 bytes 1s apart, then succeeds",
            "tool runs c1: pause 3s, then fails",
            "tool runs c1: silence",
            "tool on cancel of c1: goes on",
            "tool on cancel of c1: 1 outputs, pause 2s, then stops",
            "alice allows c1",
            "bob denies unknown",
            "another process takes A for 10s",
            "another process writes in A for 10s",
            "store is busy for launches, for 2s",
            "store reports after 2s",
            "store takes 2s",
            "store is full for 30s",
            "store is broken for ends, for 30s",
            "store reports twice for 5s",
            "process crashes, starts again after 5s",
            "process loses power, starts again after 5s",
            "process ends, starts again after 5s",
            "process ends within 30s, starts again after 5s",
            "clock freezes for 90s",
            "clock jumps -1h",
        ] {
            assert_eq!(round(line), line);
        }
    }
}
