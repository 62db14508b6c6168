//! From text to a scenario, line by line.
//!
//! Owns sections and names: what may stand where, and that every name in use was introduced.
//! Sentences have tables of their own.

use std::collections::BTreeSet;

use super::ast::{Block, Expect, Planted, Scenario, Step, UNKNOWN, When};
use super::cast::called;
use super::error::{ScenarioError, Trouble};
use super::form::{Hole, Value, fill};
use super::token::{Cursor, tokens};
use super::units::{TIME, parse_time};
use super::{conds, knobs, steps};
use crate::fault::Fault;

const SECTIONS: [&str; 6] = ["config", "fault", "at", "expect", "never", "trace"];

/// Most orders of the steps of one instant.
const MOST_IN_ANY_ORDER: usize = 6;

/// What indented lines belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Head,
    Config,
    Timeline,
    Other,
}

/// Reads a scenario. `name` is for messages, mostly the path of the file.
///
/// # Errors
/// [`ScenarioError`] for the first thing that is not understood: an unknown step, name, unit
/// or setting, or a wrong value, with its place and the nearest valid name.
pub fn parse(text: &str, name: &str) -> Result<Scenario, ScenarioError> {
    let mut reader = Reader {
        scenario: Scenario::new(name),
        section: Section::Head,
        step_lines: Vec::new(),
    };
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let fail = |trouble: Trouble| ScenarioError {
            file: name.into(),
            line: at + 1,
            column: trouble.column,
            problem: trouble.problem,
            nearest: trouble.nearest,
        };
        if tokens(line).first().map(|t| (t.text, t.column)) == Some(("trace", 1)) {
            let rest = lines.get(at + 1..).unwrap_or_default();
            reader.scenario.trace = Some(trace(rest));
            break;
        }
        reader.line(line, at + 1).map_err(fail)?;
    }
    reader.check_names()?;
    Ok(reader.scenario)
}

/// The lines of a trace section, without blank ones around them.
fn trace(lines: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.is_empty()).count();
    lines.split_off(blank)
}

struct Reader {
    scenario: Scenario,
    section: Section,
    /// The line and column of each step, in order.
    step_lines: Vec<(usize, usize)>,
}

impl Reader {
    fn line(&mut self, line: &str, number: usize) -> Result<(), Trouble> {
        let words = tokens(line);
        let Some(first) = words.first() else {
            self.comment(line);
            return Ok(());
        };
        let mut cursor = Cursor::new(&words);
        if first.column > 1 {
            return match self.section {
                Section::Config => self.setting(&mut cursor),
                Section::Timeline => self.step(&mut cursor, number),
                Section::Head | Section::Other => Err(Trouble::new(
                    first.column,
                    "an indented line belongs to `config` or `at`; here it belongs to nothing",
                )),
            };
        }
        cursor.next();
        match first.text {
            "config" => {
                self.section = Section::Config;
                end(&cursor)
            }
            "at" => self.at(&mut cursor, number),
            "fault" => self.fault(&mut cursor),
            "expect" => self.expect(&mut cursor, number),
            "never" => {
                self.section = Section::Other;
                let when = match cursor.take("at") {
                    true => {
                        let (from, to) = times(&mut cursor)?;
                        When::NotBetween(from, to)
                    }
                    false => When::Never,
                };
                self.condition(when, &mut cursor, number)
            }
            found => Err(Trouble::new(
                1,
                format!("expected `{}`, found `{found}`", SECTIONS.join("`, `")),
            )
            .near(found, SECTIONS)),
        }
    }

    /// Comments at the head say what it is about and what it proves.
    fn comment(&mut self, line: &str) {
        let Some(text) = line.trim().strip_prefix('#') else {
            return;
        };
        if let Some(ids) = text.trim().strip_prefix("proves:") {
            let ids = ids.split([' ', ',']).filter(|id| !id.is_empty());
            self.scenario.proves.extend(ids.map(str::to_owned));
        } else if self.section == Section::Head {
            self.scenario.about.push(text.trim().to_owned());
        }
    }

    fn setting(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Trouble> {
        knobs::read(cursor, &mut self.scenario.config)?;
        end(cursor)
    }

    fn fault(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Trouble> {
        self.section = Section::Other;
        let here = cursor.clone();
        let word = cursor.next().unwrap_or_default();
        let fault = Fault::from_name(word).ok_or_else(|| {
            let names = Fault::ALL.iter().map(|fault| fault.name());
            here.trouble("the name of a fault; `tidegate sim run --fault list` lists them")
                .near(word, names)
        })?;
        let mut occasion = 1;
        if cursor.take(",") {
            if !cursor.take_all("at occasion") {
                return Err(cursor.trouble("`at occasion` and a number"));
            }
            let here = cursor.clone();
            occasion = match fill(Hole::Number, cursor)? {
                Value::Number(n @ 1..=1_000_000) => u32::try_from(n).unwrap_or(u32::MAX),
                _ => return Err(here.trouble("a number from 1 to 1000000")),
            };
        }
        self.scenario.fault = Some(Planted { fault, occasion });
        end(cursor)
    }

    fn at(&mut self, cursor: &mut Cursor<'_>, number: usize) -> Result<(), Trouble> {
        self.section = Section::Timeline;
        let here = cursor.clone();
        let at_ms = match fill(Hole::Time, cursor)? {
            Value::Number(ms) => ms,
            _ => return Err(here.trouble(TIME)),
        };
        let before = self.scenario.timeline.last().map_or(0, |block| block.at_ms);
        if at_ms < before {
            return Err(here.trouble("a time that is not before the one above"));
        }
        let any_order = cursor.take_all("in any order");
        cursor.take(":");
        self.scenario.timeline.push(Block {
            at_ms,
            any_order,
            steps: Vec::new(),
        });
        match cursor.peek() {
            Some(_) => self.step(cursor, number),
            None => Ok(()),
        }
    }

    fn step(&mut self, cursor: &mut Cursor<'_>, number: usize) -> Result<(), Trouble> {
        let here = cursor.clone();
        let step = steps::read(cursor)?;
        let Some(block) = self.scenario.timeline.last_mut() else {
            return Err(here.trouble("`at` and a time before the first step"));
        };
        block.steps.push(step);
        if block.any_order && block.steps.len() > MOST_IN_ANY_ORDER {
            let most = format!("at most {MOST_IN_ANY_ORDER} steps in any order");
            return Err(here.trouble(&most));
        }
        self.step_lines.push((number, here.column()));
        Ok(())
    }

    fn expect(&mut self, cursor: &mut Cursor<'_>, number: usize) -> Result<(), Trouble> {
        self.section = Section::Other;
        let when = match cursor.peek() {
            Some("at") => {
                cursor.next();
                let (from, to) = times(cursor)?;
                When::Between(from, to)
            }
            Some("by") => {
                cursor.next();
                let (_, to) = times(cursor)?;
                When::By(to)
            }
            Some("finally") => {
                cursor.next();
                When::Finally
            }
            Some("violation") => {
                cursor.next();
                if let Value::Code(code) = fill(Hole::Code, cursor)? {
                    self.scenario.violation = Some(code);
                }
                return end(cursor);
            }
            found => {
                let words = ["at", "by", "finally", "violation"];
                return Err(cursor
                    .trouble("`at`, `by`, `finally` or `violation`")
                    .near(found.unwrap_or_default(), words));
            }
        };
        self.condition(when, cursor, number)
    }

    fn condition(
        &mut self,
        when: When,
        cursor: &mut Cursor<'_>,
        number: usize,
    ) -> Result<(), Trouble> {
        let unless_crashed = cursor.take_all(", unless crashed");
        let here = cursor.clone();
        let what = conds::read(cursor)?;
        if what.is_about_all() && !when.is_timeless() {
            return Err(
                here.trouble("something that has a time; this can only be expected `finally`")
            );
        }
        self.scenario.expects.push(Expect {
            when,
            unless_crashed,
            what,
            line: number,
        });
        Ok(())
    }

    /// Every name in use was introduced: a message is sent once, a session has messages, and
    /// who is told something has asked.
    fn check_names(&self) -> Result<(), ScenarioError> {
        let mut known = Known::default();
        let steps = self.scenario.timeline.iter().flat_map(|block| &block.steps);
        let placed: Vec<_> = steps.zip(&self.step_lines).collect();
        for &(step, &(line, column)) in &placed {
            known
                .introduce(step)
                .map_err(|trouble| self.fail(line, column, trouble))?;
        }
        for &(step, &(line, column)) in &placed {
            known
                .check_step(step)
                .map_err(|trouble| self.fail(line, column, trouble))?;
            self.check_chain(step)
                .map_err(|trouble| self.fail(line, column, trouble))?;
        }
        for expect in &self.scenario.expects {
            let names = expect.what.names();
            let checks = [
                ("message", &names.messages, &known.messages),
                ("session", &names.sessions, &known.sessions),
                ("client", &names.clients, &known.clients),
                ("call", &names.calls, &known.calls),
            ];
            for (kind, used, known) in checks {
                for name in used {
                    known_as(kind, name, known).map_err(|t| self.fail(expect.line, 1, t))?;
                }
            }
            for name in names.either {
                let all = match known.calls.contains(name) {
                    true => &known.calls,
                    false => &known.messages,
                };
                known_as("message", name, all).map_err(|t| self.fail(expect.line, 1, t))?;
            }
        }
        Ok(())
    }

    /// A fallback that answers is one of the chain; a planted fault may make that longer.
    fn check_chain(&self, step: &Step) -> Result<(), Trouble> {
        let there_are = self.scenario.config.fallbacks.len();
        match step {
            Step::Answer {
                fallback: Some(n), ..
            } if usize::from(*n) > there_are && self.scenario.fault.is_none() => {
                let says =
                    format!("there is no fallback {n}: the setting `fallbacks` names {there_are}");
                Err(Trouble::new(1, says))
            }
            _ => Ok(()),
        }
    }

    fn fail(&self, line: usize, column: usize, trouble: Trouble) -> ScenarioError {
        ScenarioError {
            file: self.scenario.name.clone(),
            line,
            column,
            problem: trouble.problem,
            nearest: trouble.nearest,
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    messages: BTreeSet<String>,
    sessions: BTreeSet<String>,
    clients: BTreeSet<String>,
    calls: BTreeSet<String>,
}

impl Known {
    fn introduce(&mut self, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::Send {
                client,
                messages,
                session,
                ..
            } => {
                self.clients.insert(client.clone());
                self.sessions.insert(session.clone());
                for message in messages {
                    if message == UNKNOWN {
                        let problem = "`unknown` is the name of a run that nobody sends";
                        return Err(Trouble::new(1, problem));
                    }
                    if !self.messages.insert(message.clone()) {
                        let problem = format!("`{message}` is sent twice; say `repeats {message}`");
                        return Err(Trouble::new(1, problem));
                    }
                }
            }
            Step::Repeat { client, .. }
            | Step::Wait { client, .. }
            | Step::Reset { client, .. }
            | Step::Queue { client, .. }
            | Step::Decide { client, .. }
            | Step::Abort { client, .. } => {
                self.clients.insert(client.clone());
            }
            Step::Answer { beats, .. } => {
                for call in called(beats) {
                    if call == UNKNOWN {
                        let problem = "`unknown` is the name of a call that nobody asks for";
                        return Err(Trouble::new(1, problem));
                    }
                    if !self.calls.insert(call.to_owned()) {
                        let problem = format!("`{call}` is asked for twice; give one another name");
                        return Err(Trouble::new(1, problem));
                    }
                }
            }
            Step::OnCancel { beats, .. } => {
                if let Some(call) = called(beats).next() {
                    let problem =
                        format!("a call that is stopped asks for nothing, so not for `{call}`");
                    return Err(Trouble::new(1, problem));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_step(&self, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::Repeat { message, .. }
            | Step::Wait { message, .. }
            | Step::Answer { message, .. }
            | Step::OnCancel { message, .. } => known_as("message", message, &self.messages),
            Step::Abort {
                message, session, ..
            } => {
                if let Some(message) = message {
                    known_as("message", message, &self.messages)?;
                }
                match (message, session) {
                    // A wrong session may be one that nobody writes to.
                    (Some(_), _) | (None, None) => Ok(()),
                    (None, Some(session)) => known_as("session", session, &self.sessions),
                }
            }
            Step::Reset { session, .. }
            | Step::Queue { session, .. }
            | Step::TakenAway { session, .. }
            | Step::Intruder { session, .. } => known_as("session", session, &self.sessions),
            Step::Runs { call, .. } | Step::OnStop { call, .. } | Step::Decide { call, .. } => {
                known_as("call", call, &self.calls)
            }
            Step::Leave { client } => known_as("client", client, &self.clients),
            _ => Ok(()),
        }
    }
}

fn known_as(kind: &str, name: &str, known: &BTreeSet<String>) -> Result<(), Trouble> {
    if known.contains(name) || matches!(kind, "message" | "call") && name == UNKNOWN {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let problem = format!(
        "no {kind} is called `{name}`; there are: {}",
        names.join(", ")
    );
    Err(Trouble::new(1, problem).near(name, names))
}

fn end(cursor: &Cursor<'_>) -> Result<(), Trouble> {
    match cursor.peek() {
        None => Ok(()),
        Some(_) => Err(cursor.trouble("the end of the line")),
    }
}

/// A time, or two with `..` between them.
fn times(cursor: &mut Cursor<'_>) -> Result<(u64, u64), Trouble> {
    let word = cursor.peek().unwrap_or_default();
    let (from, to) = word.split_once("..").unwrap_or((word, word));
    match (parse_time(from), parse_time(to)) {
        (Some(from), Some(to)) if from <= to => {
            cursor.next();
            Ok((from, to))
        }
        _ => Err(cursor.trouble(&format!(
            "{TIME}, or two with `..` between them, such as 120s..121s"
        ))),
    }
}
