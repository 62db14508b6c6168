//! The parts of a model's answer: what it says, and how its call ends.
//!
//! One row for each sentence; the book lists the same. When an answer is given stands with the
//! steps.

use tidegate_core::{CallFacts, CallKind, RetryAfter};

use super::ast::{Beat, Ending};
use super::error::Trouble;
use super::form::{Form, choose};
use super::token::Cursor;
use super::units::show_time;
use super::words::{ENDINGS, phrase, say_ending};

/// Bytes of a chunk where nothing is said.
pub(super) const CHUNK_BYTES: u64 = 20;
/// Time before a chunk where nothing is said, in milliseconds.
pub(super) const CHUNK_MS: u64 = 10;

const fn form(text: &'static str, make: fn(super::form::Taken) -> Beat) -> Form<Beat> {
    Form { text, make }
}

/// The parts of an answer that do not end it.
pub(super) const BEATS: &[Form<Beat>] = &[
    form("accepts", |_| Beat::Accepts),
    form("begins", |_| Beat::Begins(0)),
    form("begins after {time}", |mut t| Beat::Begins(t.number())),
    form("{number} chunk", |mut t| {
        chunks(t.number(), CHUNK_MS, CHUNK_BYTES)
    }),
    form("{number} chunks", |mut t| {
        chunks(t.number(), CHUNK_MS, CHUNK_BYTES)
    }),
    form("{number} chunks {time} apart", |mut t| {
        chunks(t.number(), t.number(), CHUNK_BYTES)
    }),
    form("{number} chunks of {number} bytes", |mut t| {
        chunks(t.number(), CHUNK_MS, t.number())
    }),
    form("{number} chunks of {number} bytes {time} apart", |mut t| {
        let (count, bytes, apart_ms) = (t.number(), t.number(), t.number());
        chunks(count, apart_ms, bytes)
    }),
    form("reasoning", |_| Beat::Reasoning {
        every_ms: 0,
        for_ms: 0,
    }),
    form("arguments", |_| Beat::Arguments {
        every_ms: 0,
        for_ms: 0,
    }),
    form("arguments every {time} for {time}", |mut t| {
        Beat::Arguments {
            every_ms: t.number(),
            for_ms: t.number(),
        }
    }),
    form("calls {call}", |mut t| calls(t.word(), CALL)),
    form("calls {call} up to {time}", |mut t| {
        let call = t.word();
        let timeout_ms = Some(t.number());
        calls(call, CallFacts { timeout_ms, ..CALL })
    }),
    form("calls guarded {call}", |mut t| calls(t.word(), GUARDED)),
    form("calls guarded {call} up to {time}", |mut t| {
        let call = t.word();
        let timeout_ms = Some(t.number());
        calls(
            call,
            CallFacts {
                timeout_ms,
                ..GUARDED
            },
        )
    }),
    form("calls {call} of no tool", |mut t| {
        calls(t.word(), of_kind(CallKind::NoSuchTool))
    }),
    form("calls {call} with bad arguments", |mut t| {
        calls(t.word(), of_kind(CallKind::BadArguments))
    }),
    form("keep-alive", |_| Beat::KeepAlives {
        every_ms: 0,
        for_ms: 0,
    }),
    form("reasoning every {time} for {time}", |mut t| {
        Beat::Reasoning {
            every_ms: t.number(),
            for_ms: t.number(),
        }
    }),
    form("keep-alives every {time} for {time}", |mut t| {
        Beat::KeepAlives {
            every_ms: t.number(),
            for_ms: t.number(),
        }
    }),
    form("pause {time}", |mut t| Beat::Pause(t.number())),
    form("finishes", |_| Beat::Finishes),
    form("asks to wait {time}", |mut t| {
        Beat::Asks(RetryAfter::Ms(t.number()))
    }),
    form("asks to wait for ever", |_| {
        Beat::Asks(RetryAfter::Unrepresentable)
    }),
    form("silence", |_| Beat::Silence),
    form("fails with status {status}", |mut t| {
        Beat::Ends(Ending::Status(
            u16::try_from(t.number()).unwrap_or(u16::MAX),
        ))
    }),
];

/// A call that can be carried out, and may start at once.
const CALL: CallFacts = CallFacts {
    kind: CallKind::Ready,
    guarded: false,
    timeout_ms: None,
};

/// One that a person may have to allow.
const GUARDED: CallFacts = CallFacts {
    guarded: true,
    ..CALL
};

const fn of_kind(kind: CallKind) -> CallFacts {
    CallFacts { kind, ..CALL }
}

const fn calls(call: String, facts: CallFacts) -> Beat {
    Beat::Calls { call, facts }
}

const fn chunks(count: u64, apart_ms: u64, bytes: u64) -> Beat {
    Beat::Chunks {
        count,
        apart_ms,
        bytes,
    }
}

/// Most facts of one answer: a script is no flood.
const MOST_FACTS: u64 = 100_000;

/// Reads an answer, to the end of the line.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<Beat>, Trouble> {
    let mut beats = Vec::new();
    let mut facts = 0_u64;
    loop {
        cursor.take("then");
        let here = cursor.clone();
        let beat = read_beat(cursor)?;
        facts = facts.saturating_add(count(&beat));
        if facts > MOST_FACTS {
            return Err(here.trouble(&format!("an answer of at most {MOST_FACTS} facts")));
        }
        let over = matches!(beat, Beat::Silence | Beat::Ends(_));
        beats.push(beat);
        match (over, cursor.peek()) {
            (true, None) => return Ok(beats),
            (true, Some(_)) => return Err(cursor.trouble("the end of the answer")),
            (false, None) => {
                return Err(
                    cursor.trouble("`, then` and how it ends, such as completes or silence")
                );
            }
            (false, Some(_)) if cursor.take(",") => {}
            (false, Some(_)) => return Err(cursor.trouble("`,`")),
        }
    }
}

fn read_beat(cursor: &mut Cursor<'_>) -> Result<Beat, Trouble> {
    let mut end = cursor.clone();
    if let Ok(ending) = phrase(ENDINGS, "an ending", &mut end) {
        *cursor = end;
        return Ok(Beat::Ends(ending));
    }
    let here = cursor.clone();
    choose(BEATS, "part of an answer", true, cursor).map_err(|mut trouble| {
        if trouble.column == here.column() {
            let endings: Vec<&str> = ENDINGS.iter().map(|(words, _)| *words).collect();
            trouble.problem = format!("{}; an ending is {}", trouble.problem, endings.join(", "));
            if trouble.nearest.is_none() {
                trouble = trouble.near(here.peek().unwrap_or_default(), endings);
            }
        }
        trouble
    })
}

/// How many facts a part has.
const fn count(beat: &Beat) -> u64 {
    match beat {
        Beat::Chunks { count, .. } => *count,
        Beat::Reasoning { every_ms, for_ms }
        | Beat::Arguments { every_ms, for_ms }
        | Beat::KeepAlives { every_ms, for_ms } => match for_ms.checked_div(*every_ms) {
            Some(n) => n,
            None => 1,
        },
        _ => 1,
    }
}

/// An answer in words.
pub(super) fn say_beats(beats: &[Beat]) -> String {
    let last = beats.len().saturating_sub(1);
    let parts: Vec<String> = beats
        .iter()
        .enumerate()
        .map(|(at, beat)| {
            let then = if at == last && at > 0 { "then " } else { "" };
            format!("{then}{}", say_beat(beat))
        })
        .collect();
    parts.join(", ")
}

/// A part of an answer in words.
pub(super) fn say_beat(beat: &Beat) -> String {
    match beat {
        Beat::Accepts => "accepts".into(),
        Beat::Begins(0) => "begins".into(),
        Beat::Begins(ms) => format!("begins after {}", show_time(*ms)),
        Beat::Chunks {
            count,
            apart_ms,
            bytes,
        } => say_pieces("chunks", *count, *apart_ms, *bytes),
        Beat::Reasoning { every_ms, for_ms } => {
            say_signs("reasoning", "reasoning", *every_ms, *for_ms)
        }
        Beat::Arguments { every_ms, for_ms } => {
            say_signs("arguments", "arguments", *every_ms, *for_ms)
        }
        Beat::KeepAlives { every_ms, for_ms } => {
            say_signs("keep-alive", "keep-alives", *every_ms, *for_ms)
        }
        Beat::Calls { call, facts } => say_call(call, *facts),
        Beat::Pause(ms) => format!("pause {}", show_time(*ms)),
        Beat::Finishes => "finishes".into(),
        Beat::Asks(RetryAfter::Ms(ms)) => format!("asks to wait {}", show_time(*ms)),
        Beat::Asks(_) => "asks to wait for ever".into(),
        Beat::Silence => "silence".into(),
        Beat::Ends(ending) => say_ending(*ending),
    }
}

/// Pieces of text or output in words; what is not said is as usual.
pub(super) fn say_pieces(what: &str, count: u64, apart_ms: u64, bytes: u64) -> String {
    let of = match bytes {
        CHUNK_BYTES => String::new(),
        bytes => format!(" of {bytes} bytes"),
    };
    let apart = match apart_ms {
        CHUNK_MS => String::new(),
        ms => format!(" {} apart", show_time(ms)),
    };
    format!("{count} {what}{of}{apart}")
}

/// A single sign, or one again and again.
fn say_signs(one: &str, many: &str, every_ms: u64, for_ms: u64) -> String {
    match every_ms {
        0 => one.into(),
        _ => format!(
            "{many} every {} for {}",
            show_time(every_ms),
            show_time(for_ms)
        ),
    }
}

/// What an answer asks for, in words.
pub(super) fn say_call(call: &str, facts: CallFacts) -> String {
    let limit = |ms: u64| format!(" up to {}", show_time(ms));
    let limit = facts.timeout_ms.map_or(String::new(), limit);
    match (facts.kind, facts.guarded) {
        (CallKind::NoSuchTool, _) => format!("calls {call} of no tool"),
        (CallKind::BadArguments, _) => format!("calls {call} with bad arguments"),
        (CallKind::Ready, true) => format!("calls guarded {call}{limit}"),
        (CallKind::Ready, false) => format!("calls {call}{limit}"),
    }
}
