//! Sentences with holes: how a line is told from another, and what stands in it.
//!
//! Owns the matching of a line against a table of forms and the message when none fits. What
//! a sentence means stands with its table.

use tidegate_core::{Budget, CallEnd, QueueOverride, StoreError};

use super::ast::{Ended, Row, Said, Terms, Told};
use super::error::{Trouble, nearest};
use super::token::{Cursor, Token, tokens};
use super::units::{TIME, parse_time};
use super::words::{
    DROPS, ENDED, LANES, MODES, PRIORITIES, RESULTS, STORE_ERRORS, TOLD, Table, phrase,
};
use crate::violation::Code;

/// What may stand in a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hole {
    Client,
    Message,
    Call,
    Messages,
    Session,
    How,
    Terms,
    Queue,
    Time,
    Jump,
    Number,
    Status,
    Budget,
    Ended,
    Told,
    Result,
    StoreError,
    Code,
    Rows,
}

const HOLES: Table<Hole> = &[
    ("{client}", Hole::Client),
    ("{message}", Hole::Message),
    ("{call}", Hole::Call),
    ("{messages}", Hole::Messages),
    ("{session}", Hole::Session),
    ("{how}", Hole::How),
    ("{terms}", Hole::Terms),
    ("{queue}", Hole::Queue),
    ("{time}", Hole::Time),
    ("{jump}", Hole::Jump),
    ("{number}", Hole::Number),
    ("{status}", Hole::Status),
    ("{end}", Hole::Ended),
    ("{told}", Hole::Told),
    ("{result}", Hole::Result),
    ("{refusal}", Hole::StoreError),
    ("{code}", Hole::Code),
    ("{rows}", Hole::Rows),
];

/// What stood in a hole.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Word(String),
    Words(Vec<String>),
    Number(u64),
    Jump(i64),
    Budget(Budget),
    Said(Said),
    Terms(Terms),
    Queue(QueueOverride),
    Ended(Ended),
    Told(Told),
    Result(CallEnd),
    StoreError(StoreError),
    Code(Code),
    Rows(Vec<Row>),
}

/// Words that begin another sentence and are no names.
const RESERVED: &[&str] = &[
    "model",
    "fallback",
    "store",
    "tool",
    "guarded",
    "process",
    "clock",
    "another",
    "text",
    "output",
    "transcript",
    "the",
    "anything",
    "more",
    "expect",
    "never",
    "at",
    "by",
    "finally",
    "config",
    "fault",
    "trace",
    "everything",
    "that",
    "violation",
    "unless",
];

/// A sentence: words and holes, and what it makes of them.
pub(super) struct Form<T> {
    pub(super) text: &'static str,
    pub(super) make: fn(Taken) -> T,
}

/// What stood in the holes of a sentence, in order.
pub(super) struct Taken(std::vec::IntoIter<Value>);

macro_rules! taken {
    ($($name:ident: $variant:ident -> $type:ty,)*) => {
        impl Taken {
            $(pub(super) fn $name(&mut self) -> $type {
                match self.0.next() {
                    Some(Value::$variant(value)) => value,
                    other => unreachable!("a form takes what its holes give, got {other:?}"),
                }
            })*
        }
    };
}

taken! {
    word: Word -> String,
    words: Words -> Vec<String>,
    number: Number -> u64,
    jump: Jump -> i64,
    said: Said -> Said,
    terms: Terms -> Terms,
    queue: Queue -> QueueOverride,
    ended: Ended -> Ended,
    told: Told -> Told,
    result: Result -> CallEnd,
    store_error: StoreError -> StoreError,
    rows: Rows -> Vec<Row>,
}

/// How far a form came, and what it wanted there.
struct Missed {
    at: usize,
    literals: Vec<&'static str>,
    troubles: Vec<Trouble>,
}

/// Finds the form that fits the words from here to the end of the line, or to the next comma
/// if `part`, and what it makes. `what` names the kind of sentence for the message.
pub(super) fn choose<T>(
    forms: &[Form<T>],
    what: &str,
    part: bool,
    cursor: &mut Cursor<'_>,
) -> Result<T, Trouble> {
    let mut missed = Missed {
        at: cursor.at,
        literals: Vec::new(),
        troubles: Vec::new(),
    };
    for form in forms {
        let mut ahead = cursor.clone();
        if let Some(values) = fit(form, part, &mut ahead, &mut missed) {
            *cursor = ahead;
            return Ok((form.make)(Taken(values.into_iter())));
        }
    }
    Err(explain(missed, what, cursor))
}

fn fit<T>(
    form: &Form<T>,
    part: bool,
    cursor: &mut Cursor<'_>,
    missed: &mut Missed,
) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for word in tokens(form.text) {
        let hole = HOLES.iter().find(|(name, _)| *name == word.text);
        match hole {
            Some(&(_, hole)) => match fill(hole, cursor) {
                Ok(value) => values.push(value),
                Err(trouble) => {
                    missed.note(cursor.at, None, Some(trouble));
                    return None;
                }
            },
            None if cursor.take(word.text) => {}
            None => {
                missed.note(cursor.at, Some(literal(form.text, word)), None);
                return None;
            }
        }
    }
    let ends = cursor.peek().is_none() || part && cursor.peek() == Some(",");
    if !ends {
        missed.note(cursor.at, None, None);
        return None;
    }
    Some(values)
}

/// The word of a form's text, which lives as long as the form.
fn literal(text: &'static str, word: Token<'_>) -> &'static str {
    text.split(|c: char| c.is_whitespace() || c == ':' || c == ',')
        .find(|part| *part == word.text)
        .unwrap_or(match word.text {
            ":" => ":",
            "," => ",",
            _ => text,
        })
}

impl Missed {
    fn note(&mut self, at: usize, literal: Option<&'static str>, trouble: Option<Trouble>) {
        if at > self.at {
            self.at = at;
            self.literals.clear();
            self.troubles.clear();
        }
        if at == self.at {
            if let Some(literal) = literal.filter(|l| !self.literals.contains(l)) {
                self.literals.push(literal);
            }
            if let Some(trouble) = trouble.filter(|t| !self.troubles.contains(t)) {
                self.troubles.push(trouble);
            }
        }
    }
}

fn explain(missed: Missed, what: &str, cursor: &Cursor<'_>) -> Trouble {
    let mut there = cursor.clone();
    there.at = missed.at;
    let found = there.peek().unwrap_or_default();
    if missed.literals.is_empty() && missed.troubles.is_empty() {
        return there.trouble(&format!("the end of {what}"));
    }
    // One hole and no word: its own message is the best.
    if let ([], [trouble]) = (&missed.literals[..], &missed.troubles[..]) {
        return trouble.clone();
    }
    // The first word may be the wrong one: `modle answers` is a client to the reader.
    let first = cursor.peek().unwrap_or_default();
    if missed.at > cursor.at && !RESERVED.contains(&first) {
        let actors = [
            "model",
            "store",
            "tool",
            "process",
            "clock",
            "another",
            "transcript",
            "text",
            "output",
            "the",
        ];
        let near = nearest(found, missed.literals.iter().copied());
        if near.is_none() && nearest(first, actors).is_some() {
            return Trouble::new(cursor.column(), format!("`{first}` begins no {what}"))
                .near(first, actors);
        }
    }
    let mut wanted: Vec<String> = missed.literals.iter().map(|l| format!("`{l}`")).collect();
    let mut names: Vec<String> = missed.literals.iter().map(|&l| l.to_owned()).collect();
    for trouble in &missed.troubles {
        let hole = trouble.problem.split(", found ").next().unwrap_or_default();
        let hole = hole.strip_prefix("expected ").unwrap_or(hole).to_owned();
        if !wanted.contains(&hole) {
            wanted.push(hole);
        }
        names.extend(trouble.nearest.clone());
    }
    there
        .trouble(&format!("{what}, here {}", wanted.join(" or ")))
        .near(found, names.iter().map(String::as_str))
}

/// Takes what stands in a hole.
pub(super) fn fill(hole: Hole, cursor: &mut Cursor<'_>) -> Result<Value, Trouble> {
    match hole {
        Hole::Client => name(cursor, "a client's name").map(Value::Word),
        Hole::Message => name(cursor, "a message's name").map(Value::Word),
        Hole::Call => name(cursor, "a call's name").map(Value::Word),
        Hole::Session => name(cursor, "a session's name").map(Value::Word),
        Hole::Messages => names(cursor).map(Value::Words),
        Hole::Time => time(cursor).map(Value::Number),
        Hole::Jump => jump(cursor).map(Value::Jump),
        Hole::Number => number(cursor, "a number").map(Value::Number),
        Hole::Status => {
            let here = cursor.clone();
            match number(cursor, "an HTTP status")? {
                status @ 100..=599 => Ok(Value::Number(status)),
                _ => Err(here.trouble("an HTTP status from 100 to 599")),
            }
        }
        Hole::How => said(cursor).map(Value::Said),
        Hole::Terms => terms(cursor).map(Value::Terms),
        Hole::Queue => queue(cursor).map(Value::Queue),
        Hole::Budget => budget(cursor).map(Value::Budget),
        Hole::Ended => phrase(ENDED, "an end", cursor).map(Value::Ended),
        Hole::Told => told(cursor).map(Value::Told),
        Hole::Result => phrase(RESULTS, "what comes of a call", cursor).map(Value::Result),
        Hole::StoreError => phrase(STORE_ERRORS, "a refusal", cursor).map(Value::StoreError),
        Hole::Code => code(cursor).map(Value::Code),
        Hole::Rows => rows(cursor).map(Value::Rows),
    }
}

fn name(cursor: &mut Cursor<'_>, what: &str) -> Result<String, Trouble> {
    let fits = cursor.peek().is_some_and(|word| {
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_alphabetic)
            && letters.all(|c| c.is_alphanumeric() || c == '-' || c == '_')
            && !RESERVED.contains(&word)
    });
    if fits && let Some(word) = cursor.next() {
        return Ok(word.to_owned());
    }
    Err(cursor.trouble(what))
}

fn names(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Trouble> {
    let mut found = vec![name(cursor, "a message's name")?];
    while cursor.take(",") {
        found.push(name(cursor, "a message's name")?);
    }
    Ok(found)
}

fn time(cursor: &mut Cursor<'_>) -> Result<u64, Trouble> {
    let ms = cursor.peek().and_then(parse_time);
    let ms = ms.ok_or_else(|| cursor.trouble(TIME))?;
    cursor.next();
    Ok(ms)
}

fn jump(cursor: &mut Cursor<'_>) -> Result<i64, Trouble> {
    let parsed = cursor.peek().and_then(|word| {
        let (sign, rest) = match word.strip_prefix('+') {
            Some(rest) => (1, rest),
            None => (-1, word.strip_prefix('-')?),
        };
        i64::try_from(parse_time(rest)?).ok().map(|ms| sign * ms)
    });
    let ms = parsed.ok_or_else(|| cursor.trouble("a sign and a time, such as +1h or -30min"))?;
    cursor.next();
    Ok(ms)
}

fn number(cursor: &mut Cursor<'_>, what: &str) -> Result<u64, Trouble> {
    let number = cursor.peek().and_then(|word| word.parse().ok());
    let number = number.ok_or_else(|| cursor.trouble(what))?;
    cursor.next();
    Ok(number)
}

fn budget(cursor: &mut Cursor<'_>) -> Result<Budget, Trouble> {
    if cursor.take("unlimited") {
        return Ok(Budget::Unlimited);
    }
    let here = cursor.clone();
    match time(cursor) {
        Ok(0) => Err(here.trouble("a time above 0, or `unlimited`")),
        Ok(ms) => Ok(Budget::Limited(ms)),
        Err(_) => Err(here
            .trouble(&format!("{TIME}, or `unlimited`"))
            .near(here.peek().unwrap_or_default(), ["unlimited"])),
    }
}

/// How a message takes part in a conversation; nothing is the plain way.
fn said(cursor: &mut Cursor<'_>) -> Result<Said, Trouble> {
    let mut said = Said::default();
    if cursor.take("by") {
        said.mode = Some(phrase(MODES, "a queue mode", cursor)?);
    }
    if cursor.take("on") {
        said.route = name(cursor, "a route's name")?;
    }
    Ok(said)
}

/// What a message asks for its run; nothing is what is configured.
fn terms(cursor: &mut Cursor<'_>) -> Result<Terms, Trouble> {
    let mut terms = Terms::default();
    if !cursor.take("with") {
        return Ok(terms);
    }
    loop {
        let word = cursor.peek().unwrap_or_default();
        match word {
            "budget" | "lane" | "priority" => cursor.next(),
            _ => {
                return Err(cursor
                    .trouble("`budget`, `lane` or `priority`")
                    .near(word, ["budget", "lane", "priority"]));
            }
        };
        match word {
            "budget" => terms.budget = Some(budget(cursor)?),
            "lane" => terms.lane = phrase(LANES, "a lane", cursor)?,
            _ => terms.priority = phrase(PRIORITIES, "a priority", cursor)?,
        }
        if !cursor.take(",") {
            return Ok(terms);
        }
    }
}

/// Queue settings, at least one.
fn queue(cursor: &mut Cursor<'_>) -> Result<QueueOverride, Trouble> {
    let mut queue = QueueOverride::default();
    loop {
        let word = cursor.peek().unwrap_or_default();
        match word {
            "by" | "debounce" | "cap" | "drop" => cursor.next(),
            _ => {
                return Err(cursor
                    .trouble("`by`, `debounce`, `cap` or `drop`")
                    .near(word, ["by", "debounce", "cap", "drop"]));
            }
        };
        match word {
            "by" => queue.mode = Some(phrase(MODES, "a queue mode", cursor)?),
            "debounce" => queue.debounce_ms = Some(time(cursor)?),
            "cap" => queue.cap = Some(cap(cursor)?),
            _ => queue.drop = Some(phrase(DROPS, "a drop policy", cursor)?),
        }
        if !cursor.take(",") {
            return Ok(queue);
        }
    }
}

fn cap(cursor: &mut Cursor<'_>) -> Result<u32, Trouble> {
    let here = cursor.clone();
    u32::try_from(number(cursor, "a number")?)
        .map_err(|_| here.trouble(&format!("a number up to {}", u32::MAX)))
}

fn told(cursor: &mut Cursor<'_>) -> Result<Told, Trouble> {
    let mut end = cursor.clone();
    if let Ok(ended) = phrase(ENDED, "an end", &mut end) {
        let again = end.take_all(", as before");
        *cursor = end;
        return Ok(if again {
            Told::EndAgain(ended)
        } else {
            Told::End(ended)
        });
    }
    phrase(TOLD, "what is told, which may be an end or", cursor)
}

fn code(cursor: &mut Cursor<'_>) -> Result<Code, Trouble> {
    let word = cursor.peek().unwrap_or_default();
    let found = Code::ALL.iter().copied().find(|code| code.name() == word);
    let code = found.ok_or_else(|| {
        let names = Code::ALL.iter().map(|code| code.name());
        cursor.trouble("a violation's code").near(word, names)
    })?;
    cursor.next();
    Ok(code)
}

fn rows(cursor: &mut Cursor<'_>) -> Result<Vec<Row>, Trouble> {
    if cursor.take("empty") {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    loop {
        let make = match cursor.peek() {
            Some("user") => |message, _: &mut Cursor<'_>| Ok(Row::User(message)),
            Some("dropped") => |message, _: &mut Cursor<'_>| Ok(Row::Dropped(message)),
            Some("result") => |call, cursor: &mut Cursor<'_>| {
                let end = phrase(RESULTS, "what came of the call", cursor)?;
                Ok(Row::Result(call, end))
            },
            Some("assistant") => |message, cursor: &mut Cursor<'_>| {
                for (word, row) in [
                    ("whole", Row::Whole as fn(String) -> Row),
                    ("partial", Row::Partial),
                    ("interrupted", Row::Interrupted),
                    ("calls", Row::Calls),
                ] {
                    if cursor.take(word) {
                        return Ok(row(message));
                    }
                }
                let word = cursor.peek().unwrap_or_default();
                Err(cursor
                    .trouble("`whole`, `partial`, `interrupted` or `calls`")
                    .near(word, ["whole", "partial", "interrupted", "calls"]))
            },
            word => {
                return Err(cursor
                    .trouble("a row: `user`, `assistant`, `result` or `dropped`, or `empty`")
                    .near(
                        word.unwrap_or_default(),
                        ["user", "assistant", "result", "dropped", "empty"],
                    ));
            }
        };
        cursor.next();
        let message = name(cursor, "a message's name")?;
        found.push(make(message, cursor)?);
        if !cursor.take(",") {
            return Ok(found);
        }
    }
}
