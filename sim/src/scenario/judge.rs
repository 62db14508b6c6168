//! Whether what was expected came.
//!
//! Owns the meaning of each expectation over the record of a run. A thing that happens has
//! times; a thing that lasts has spans; a thing about the whole run has an answer.

use tidegate_core::{CallEnd, CallId, Place, RunId, SessionId};

use super::ast::{Cond, Ended, Expect, Happens, Row, Stand, Told, When};
use super::cast::Cast;
use super::conds;
use super::record::{Fact, Record, What};
use super::units::{show_span, show_time};
use super::words::{ENDED, RESULTS, all_of, say, say_queue, say_told};
use crate::world::store::RowKind;

/// A run's record, with the names to read it by.
pub(super) struct Judge<'a> {
    pub(super) cast: &'a Cast,
    pub(super) record: &'a Record,
}

impl Judge<'_> {
    /// What is wrong with an expectation, if anything.
    pub(super) fn judge(&self, expect: &Expect) -> Option<String> {
        let (holds, instead) = if expect.what.is_about_all() {
            let (holds, instead) = self.about_all(&expect.what);
            (holds != (expect.when == When::Never), instead)
        } else if let Some(spans) = self.spans(&expect.what) {
            (in_spans(expect.when, &spans), show_spans(&spans))
        } else {
            let times = self.times(&expect.what);
            (
                in_times(expect.when, &times),
                self.show_times(&expect.what, &times),
            )
        };
        if holds {
            return None;
        }
        let wanted = conds::write(&expect.what);
        let (not, when) = match expect.when {
            When::Between(from, to) => ("expected", format!(" at {}", show_span(from, to))),
            When::By(to) => ("expected", format!(" by {}", show_time(to))),
            When::Finally => ("expected", String::new()),
            When::Never => ("not expected", String::new()),
            When::NotBetween(from, to) => ("not expected", format!(" at {}", show_span(from, to))),
        };
        Some(format!("{not}{when}: {wanted}; {instead}"))
    }

    /// When a thing happened.
    fn times(&self, cond: &Cond) -> Vec<u64> {
        let ended = |run: RunId| {
            let end = |what: &What| matches!(what, What::End(ended, _) if *ended == run);
            self.record.facts.iter().position(|fact| end(&fact.what))
        };
        let after = match cond {
            Cond::AfterEnd(m) => ended(self.cast.run(m)).map_or(usize::MAX, |at| at + 1),
            _ => 0,
        };
        let facts = self.record.facts.iter().skip(after);
        facts
            .filter(|fact| self.is(cond, &fact.what))
            .map(|fact| fact.at)
            .collect()
    }

    fn is(&self, cond: &Cond, what: &What) -> bool {
        let run = |m: &String| self.cast.run(m);
        match cond {
            Cond::Accepted(m) => *what == What::Accepted(run(m)),
            Cond::Starts(m) => *what == What::Start(run(m)),
            Cond::Called(m) => *what == What::Called(run(m)),
            Cond::Stopped(m) => *what == What::Stopped(run(m)),
            Cond::Seen(m) => *what == What::Seen(run(m)),
            Cond::Retries(m) => *what == What::Retrying(run(m)),
            Cond::FallsBack(m, n) => {
                matches!(what, What::FallsBack(of, to) if *of == run(m) && u64::from(*to) == *n)
            }
            Cond::Stands(m, stand) => matches!(what, What::Stands(of, place)
                if *of == run(m) && self.stands(stand, *place)),
            Cond::Waited(m, active, queued) => {
                matches!(what, What::Waited(of, a, q) if *of == run(m)
                    && u64::from(*a) == *active && u64::from(*q) == *queued)
            }
            Cond::EndsInTurn(m, turn) => *what == What::InTurn(run(m), run(turn)),
            Cond::Queues(client, wanted) => matches!(what, What::Queues(who, settings)
                if who == client && wanted.over(*settings) == *settings),
            Cond::ProcessEnds => *what == What::Drained,
            Cond::TakenAlong(m, turn) => *what == What::Bound(run(m), run(turn)),
            Cond::BeginsAnew(session) => *what == What::Renewed(self.cast.session(session)),
            Cond::Shown(m) => *what == What::Text(run(m)),
            Cond::Ends(m, wanted) => {
                matches!(what, What::End(of, end) if *of == run(m) && fits(*wanted, *end))
            }
            Cond::Told {
                client,
                message,
                told,
            } => self.is_told(what, client, message, *told),
            Cond::Call(call, happens) => {
                matches!(what, What::Call(of, came) if self.named(call, *of) && came == happens)
            }
            Cond::NothingStopped(client) => {
                matches!(what, What::NothingStopped(who) if who == client)
            }
            Cond::AfterEnd(m) => {
                let id = run(m);
                match what {
                    What::Start(of)
                    | What::Text(of)
                    | What::Bound(of, _)
                    | What::Seen(of)
                    | What::Retrying(of)
                    | What::FallsBack(of, _)
                    | What::Finishing(of)
                    | What::End(of, _)
                    | What::Called(of)
                    | What::Stopped(of)
                    | What::Ordered(of)
                    | What::Saved(of)
                    | What::Row(_, _, of)
                    | What::Receipt(of, _) => *of == id,
                    What::Call(call, _) => call.run == id,
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Whether a client is told this of a message or a call.
    fn is_told(&self, what: &What, client: &str, name: &str, told: Told) -> bool {
        match what {
            What::Told(who, of, said) => {
                let is_message = !self.cast.is_call(name) && *of == self.cast.run(name);
                who == client && is_message && told_fits(told, *said)
            }
            What::ToldOfCall(who, call, said) => {
                who == client && self.named(name, *call) && told == *said
            }
            _ => false,
        }
    }

    /// Whether a call is the one of a name, which is `unknown` for one that nobody asked for.
    fn named(&self, name: &str, call: CallId) -> bool {
        match self.cast.is_call(name) {
            true => self.cast.call_name(call) == name,
            false => self.cast.call(name) == call,
        }
    }

    fn stands(&self, stand: &Stand, place: Place) -> bool {
        match (stand, place) {
            (Stand::Next, Place::Next) => true,
            (Stand::Behind(n), Place::Queued { ahead }) => u64::from(ahead) == *n,
            (Stand::Steers(m), Place::Steering { into }) => into == self.cast.run(m),
            (Stand::Interrupts(m), Place::Interrupting { run }) => run == self.cast.run(m),
            _ => false,
        }
    }

    /// What happened instead.
    fn show_times(&self, cond: &Cond, times: &[u64]) -> String {
        let other: Vec<String> =
            self.record
                .facts
                .iter()
                .filter_map(|fact| match (cond, &fact.what) {
                    (Cond::Ends(m, _), What::End(of, end)) if *of == self.cast.run(m) => Some(
                        format!("it ended as {} at {}", say(ENDED, end), show_time(fact.at)),
                    ),
                    (
                        Cond::Told {
                            client, message, ..
                        },
                        What::Told(who, of, said),
                    ) if who == client && *of == self.cast.run(message) => Some(format!(
                        "told {} at {}",
                        say_told(*said),
                        show_time(fact.at)
                    )),
                    (
                        Cond::Told {
                            client, message, ..
                        },
                        What::ToldOfCall(who, of, said),
                    ) if who == client && self.named(message, *of) => Some(format!(
                        "told {} at {}",
                        say_told(*said),
                        show_time(fact.at)
                    )),
                    (Cond::Call(call, Happens::Ends(_)), What::Call(of, Happens::Ends(end)))
                        if self.named(call, *of) =>
                    {
                        Some(format!(
                            "it came to {} at {}",
                            say(RESULTS, end),
                            show_time(fact.at)
                        ))
                    }
                    (Cond::Stands(m, _), What::Stands(of, place)) if *of == self.cast.run(m) => {
                        Some(format!(
                            "it {} at {}",
                            super::trace::say_place(*place, self.cast),
                            show_time(fact.at)
                        ))
                    }
                    (Cond::Waited(m, ..), What::Waited(of, active, queued))
                        if *of == self.cast.run(m) =>
                    {
                        let at = show_time(fact.at);
                        Some(format!(
                            "behind {active} at work and {queued} waiting at {at}"
                        ))
                    }
                    (Cond::Queues(client, _), What::Queues(who, settings)) if who == client => {
                        let queue = say_queue(all_of(*settings));
                        Some(format!("{queue} at {}", show_time(fact.at)))
                    }
                    _ => None,
                })
                .collect();
        match (other.is_empty(), times) {
            (false, _) => other.join(", "),
            (true, []) => "it never happened".into(),
            (true, times) => {
                let shown: Vec<String> = times.iter().take(6).map(|&ms| show_time(ms)).collect();
                format!("it happened at {}", shown.join(", "))
            }
        }
    }

    /// From when to when a thing lasted; `None` for one that does not last.
    fn spans(&self, cond: &Cond) -> Option<Vec<(u64, u64)>> {
        let mut state = Lasting::default();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        let mut since = None;
        let holds = |state: &Lasting| match cond {
            Cond::Waits(m) => Some(state.waits(self.cast.run(m))),
            Cond::WaitsBehind(m, first) => {
                let (run, first) = (self.cast.run(m), self.cast.run(first));
                Some(state.waits(run) && state.at_work.contains(&first))
            }
            Cond::MoreAtWork(n) => Some(state.at_work.len() as u64 > *n),
            _ => None,
        };
        holds(&state)?;
        for fact in &self.record.facts {
            state.take(&fact.what);
            match (holds(&state), since) {
                (Some(true), None) => since = Some(fact.at),
                (Some(false), Some(from)) => {
                    // What waits for no time does not wait; a cap holds at every moment.
                    if from < fact.at || matches!(cond, Cond::MoreAtWork(_)) {
                        spans.push((from, fact.at));
                    }
                    since = None;
                }
                _ => {}
            }
        }
        spans.extend(since.map(|from| (from, u64::MAX)));
        Some(spans)
    }

    /// Whether a thing about the whole run is so, and what is so instead.
    fn about_all(&self, cond: &Cond) -> (bool, String) {
        match cond {
            Cond::EndedOnce(m, wanted) => self.ended_once(self.cast.run(m), *wanted),
            Cond::StartedInOrder(all) => self.in_order(all, |what| match what {
                What::Start(run) => Some(*run),
                _ => None,
            }),
            Cond::EndedInOrder(all) => self.in_order(all, |what| match what {
                What::Receipt(run, _) => Some(*run),
                _ => None,
            }),
            Cond::CalledTimes(m, wanted) => {
                let called = What::Called(self.cast.run(m));
                let times = self
                    .record
                    .facts
                    .iter()
                    .filter(|fact| fact.what == called)
                    .count();
                (
                    times as u64 == *wanted,
                    format!("it was called {times} times"),
                )
            }
            Cond::RanTimes(call, wanted) => {
                let ran = |what: &What| matches!(what, What::Call(of, Happens::Runs) if self.named(call, *of));
                let facts = self.record.facts.iter();
                let times = facts.filter(|fact| ran(&fact.what)).count();
                (times as u64 == *wanted, format!("it ran {times} times"))
            }
            Cond::CameOnce(call, wanted) => self.came_once(call, *wanted),
            Cond::Transcript(session, wanted) => {
                let rows = self.transcript(self.cast.session(session));
                let shown = conds::say_rows(&rows);
                (rows == *wanted, format!("it is: {shown}"))
            }
            _ => (false, "it has a time".into()),
        }
    }

    /// One receipt, and one end told unless a crash came between.
    fn ended_once(&self, run: RunId, wanted: Option<Ended>) -> (bool, String) {
        let facts = &self.record.facts;
        let of = |what: &What| match what {
            What::Receipt(of, end) if *of == run => Some(*end),
            _ => None,
        };
        let receipts: Vec<Ended> = facts.iter().filter_map(|fact| of(&fact.what)).collect();
        let told = facts
            .iter()
            .filter(|fact| matches!(fact.what, What::End(of, _) if of == run))
            .count();
        let crashed = facts.iter().any(|fact| fact.what == What::Died);
        match receipts[..] {
            [] => (false, "it has not ended".into()),
            [end] => {
                let once = told == 1 || told == 0 && crashed;
                let shown = format!("it ended as {}, told {told} times", say(ENDED, &end));
                (once && fits(wanted, end), shown)
            }
            _ => (false, format!("it has {} receipts", receipts.len())),
        }
    }

    /// One durable result for each call of the name, and all of them this one.
    fn came_once(&self, call: &str, wanted: CallEnd) -> (bool, String) {
        let results = self.record.facts.iter().filter_map(|fact| match fact.what {
            What::Row(_, RowKind::Result(of, end), _) if self.named(call, of) => Some((of, end)),
            _ => None,
        });
        let results: Vec<(CallId, CallEnd)> = results.collect();
        let twice = |&(of, _): &(CallId, CallEnd)| {
            results.iter().filter(|&&(other, _)| other == of).count() > 1
        };
        let fits = results.iter().all(|&(_, end)| end == wanted);
        let words: Vec<&str> = results.iter().map(|(_, end)| say(RESULTS, end)).collect();
        let instead = match words[..] {
            [] => "it has no result".into(),
            _ => format!("it came to {}", words.join(", ")),
        };
        (
            !results.is_empty() && fits && !results.iter().any(twice),
            instead,
        )
    }

    fn in_order(&self, all: &[String], of: impl Fn(&What) -> Option<RunId>) -> (bool, String) {
        let wanted: Vec<RunId> = all.iter().map(|m| self.cast.run(m)).collect();
        let mut found: Vec<RunId> = Vec::new();
        for run in self.record.facts.iter().filter_map(|fact| of(&fact.what)) {
            if wanted.contains(&run) && !found.contains(&run) {
                found.push(run);
            }
        }
        let names: Vec<&str> = found.iter().map(|&run| self.cast.run_name(run)).collect();
        (
            found == wanted,
            format!("the order was {}", names.join(", ")),
        )
    }

    fn transcript(&self, session: SessionId) -> Vec<Row> {
        let completed = |run: RunId| {
            self.record
                .facts
                .iter()
                .any(|fact| fact.what == What::Receipt(run, Ended::Completed))
        };
        let facts = &self.record.facts;
        let renewed = |fact: &Fact| fact.what == What::Renewed(session);
        let begin = facts.iter().rposition(renewed).unwrap_or(0);
        let rows = facts.iter().skip(begin).filter_map(|fact| match fact.what {
            What::Row(of, kind, run) if of == session => Some((kind, run)),
            _ => None,
        });
        rows.map(|(kind, run)| {
            let name = self.cast.run_name(run).to_owned();
            match kind {
                RowKind::Message => Row::User(name),
                RowKind::Reply if completed(run) => Row::Whole(name),
                RowKind::Reply => Row::Partial(name),
                RowKind::Interrupted => Row::Interrupted(name),
                RowKind::Calls => Row::Calls(name),
                RowKind::Result(call, end) => {
                    Row::Result(self.cast.call_name(call).to_owned(), end)
                }
                RowKind::Dropped => Row::Dropped(name),
            }
        })
        .collect()
    }
}

/// Who waits and who is at work.
#[derive(Debug, Default)]
struct Lasting {
    accepted: Vec<RunId>,
    at_work: Vec<RunId>,
}

impl Lasting {
    fn waits(&self, run: RunId) -> bool {
        self.accepted.contains(&run) && !self.at_work.contains(&run)
    }

    fn take(&mut self, what: &What) {
        match what {
            What::Accepted(run) => self.accepted.push(*run),
            What::Start(run) if !self.at_work.contains(run) => self.at_work.push(*run),
            What::End(run, _) | What::Receipt(run, _) => {
                self.accepted.retain(|r| r != run);
                if matches!(what, What::End(..)) {
                    self.at_work.retain(|r| r != run);
                }
            }
            What::Died => self.at_work.clear(),
            _ => {}
        }
    }
}

fn fits(wanted: Option<Ended>, end: Ended) -> bool {
    wanted.is_none_or(|wanted| wanted.fits(end))
}

fn told_fits(wanted: Told, said: Told) -> bool {
    match (wanted, said) {
        (Told::End(wanted), Told::End(end)) | (Told::EndAgain(wanted), Told::EndAgain(end)) => {
            wanted.fits(end)
        }
        _ => wanted == said,
    }
}

fn in_times(when: When, times: &[u64]) -> bool {
    match when {
        When::Between(from, to) => times.iter().any(|at| (from..=to).contains(at)),
        When::By(to) => times.iter().any(|&at| at <= to),
        When::Finally => !times.is_empty(),
        When::Never => times.is_empty(),
        When::NotBetween(from, to) => !in_times(When::Between(from, to), times),
    }
}

/// A span counts from its first instant up to, and without, its last.
fn in_spans(when: When, spans: &[(u64, u64)]) -> bool {
    match when {
        When::Between(from, to) => spans
            .iter()
            .any(|&(a, b)| a <= to && (b > from || a == b && a == from)),
        When::By(to) => spans.iter().any(|&(from, _)| from <= to),
        When::Finally => spans.last().is_some_and(|&(_, to)| to == u64::MAX),
        When::Never => spans.is_empty(),
        When::NotBetween(from, to) => !in_spans(When::Between(from, to), spans),
    }
}

fn show_spans(spans: &[(u64, u64)]) -> String {
    let shown: Vec<String> = spans
        .iter()
        .take(6)
        .map(|&(from, to)| match to {
            u64::MAX => format!("from {} on", show_time(from)),
            to => format!("from {} to {}", show_time(from), show_time(to)),
        })
        .collect();
    if shown.is_empty() {
        "it was never so".into()
    } else {
        format!("it was so {}", shown.join(", "))
    }
}
