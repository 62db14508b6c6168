//! The parts of what a tool does: what it puts out, and how it ends.
//!
//! One row for each sentence; the book lists the same. A tool's script is read and written
//! like a model's answer, with fewer words.

use super::ast::Work;
use super::beats::{CHUNK_BYTES, CHUNK_MS, say_pieces};
use super::error::Trouble;
use super::form::{Form, choose};
use super::token::Cursor;
use super::units::show_time;
use super::words::{TOOL_ENDS, phrase, say};

const fn form(text: &'static str, make: fn(super::form::Taken) -> Work) -> Form<Work> {
    Form { text, make }
}

/// The parts of a tool's script that do not end it, and the silence.
pub(super) const WORKS: &[Form<Work>] = &[
    form("{number} outputs", |mut t| {
        outputs(t.number(), CHUNK_MS, CHUNK_BYTES)
    }),
    form("{number} outputs {time} apart", |mut t| {
        outputs(t.number(), t.number(), CHUNK_BYTES)
    }),
    form("{number} outputs of {number} bytes", |mut t| {
        outputs(t.number(), CHUNK_MS, t.number())
    }),
    form(
        "{number} outputs of {number} bytes {time} apart",
        |mut t| {
            let (count, bytes, apart_ms) = (t.number(), t.number(), t.number());
            outputs(count, apart_ms, bytes)
        },
    ),
    form("pause {time}", |mut t| Work::Pause(t.number())),
    form("silence", |_| Work::Silence),
];

const fn outputs(count: u64, apart_ms: u64, bytes: u64) -> Work {
    Work::Outputs {
        count,
        apart_ms,
        bytes,
    }
}

/// Most facts of one script.
const MOST_FACTS: u64 = 100_000;

/// Reads a script, to the end of the line.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<Work>, Trouble> {
    let mut works = Vec::new();
    let mut facts = 0_u64;
    loop {
        cursor.take("then");
        let here = cursor.clone();
        let work = read_work(cursor)?;
        if let Work::Outputs { count, .. } = work {
            facts = facts.saturating_add(count);
        }
        if facts > MOST_FACTS {
            return Err(here.trouble(&format!("a tool of at most {MOST_FACTS} facts")));
        }
        works.push(work);
        let over = matches!(work, Work::Silence | Work::Ends(_));
        match (over, cursor.peek()) {
            (true, None) => return Ok(works),
            (true, Some(_)) => return Err(cursor.trouble("the end of the line")),
            (false, Some(_)) if cursor.take(",") => {}
            (false, None) => {
                let how = "`, then` and how it ends: succeeds, fails, stops or silence";
                return Err(cursor.trouble(how));
            }
            (false, Some(_)) => return Err(cursor.trouble("`,`")),
        }
    }
}

fn read_work(cursor: &mut Cursor<'_>) -> Result<Work, Trouble> {
    let mut end = cursor.clone();
    if let Ok(ended) = phrase(TOOL_ENDS, "how a tool ends", &mut end) {
        *cursor = end;
        return Ok(Work::Ends(ended));
    }
    let here = cursor.clone();
    choose(WORKS, "part of what a tool does", true, cursor).map_err(|mut trouble| {
        if trouble.column == here.column() {
            let ends: Vec<&str> = TOOL_ENDS.iter().map(|(words, _)| *words).collect();
            trouble.problem = format!("{}; an ending is {}", trouble.problem, ends.join(", "));
            if trouble.nearest.is_none() {
                trouble = trouble.near(here.peek().unwrap_or_default(), ends);
            }
        }
        trouble
    })
}

/// A script in words.
pub(super) fn say_works(works: &[Work]) -> String {
    let last = works.len().saturating_sub(1);
    let parts = works.iter().enumerate().map(|(at, work)| {
        let then = if at == last && at > 0 { "then " } else { "" };
        format!("{then}{}", say_work(*work))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn say_work(work: Work) -> String {
    match work {
        Work::Outputs {
            count,
            apart_ms,
            bytes,
        } => say_pieces("outputs", count, apart_ms, bytes),
        Work::Pause(ms) => format!("pause {}", show_time(ms)),
        Work::Silence => "silence".into(),
        Work::Ends(end) => say(TOOL_ENDS, &end).into(),
    }
}
