//! What a client that was away is told of a session: the same as those who were there, with
//! texts and outputs that grew in several steps in one.

use std::collections::BTreeMap;

use tidegate_wire::{AgentData, MissedEvent};

use super::{Entry, Grew, Kind, SessionLog, again, step, text_of};
use crate::words;

/// Which text a step belongs to: its stream, its run, and how many of the run's answers had
/// asked for tool calls before. A run has one text for each of its answers.
type Which<'a> = (&'a str, &'a str, usize);

/// What the entries behind a number come to.
#[derive(Debug, Default)]
struct Sum<'a> {
    /// Of each text: where it was before its first step here, and its last step.
    texts: BTreeMap<Which<'a>, (Option<usize>, u64)>,
    /// The last step of each call's output.
    outputs: BTreeMap<(&'a str, &'a str), u64>,
    /// The whole texts of a run's answers that asked for tool calls.
    whole: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Sum<'a> {
    fn of(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let mut sum = Self::default();
        for entry in entries {
            match &entry.kind {
                Kind::Grew(grew) => {
                    let answers = sum.whole.get(&*grew.about.run).map_or(0, Vec::len);
                    let one = sum
                        .texts
                        .entry((grew.name, &grew.about.run, answers))
                        .or_insert((grew.before, entry.seq));
                    one.0 = one.0.and(grew.before).and(one.0);
                    one.1 = entry.seq;
                }
                Kind::Called { run, text, .. } => {
                    let text = text.as_deref().map_or("", text_of);
                    sum.whole.entry(run).or_default().push(text);
                }
                Kind::Output { run, id } => {
                    sum.outputs.insert((run, id), entry.seq);
                }
                Kind::Said(_) | Kind::Ended { .. } => {}
            }
        }
        sum
    }
}

impl SessionLog {
    /// The events behind a number, in order. `None` if some are not remembered any more.
    pub fn missed(&self, after: u64) -> Option<Vec<MissedEvent>> {
        let first = self.ring.front().map_or(self.last + 1, |entry| entry.seq);
        if after > self.last || after + 1 < first {
            return None;
        }
        let missed = || self.ring.iter().filter(move |entry| entry.seq > after);
        let sum = Sum::of(missed());
        let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut events = Vec::new();
        for entry in missed() {
            match &entry.kind {
                Kind::Said(told) | Kind::Ended { told, .. } => events.push(again(told)),
                Kind::Called { told, run, .. } => {
                    *answers.entry(run).or_default() += 1;
                    events.push(again(told));
                }
                Kind::Grew(grew) => {
                    let answer = answers.get(&*grew.about.run).copied().unwrap_or(0);
                    events.extend(self.missed_text(&sum, grew, answer, entry.seq));
                }
                Kind::Output { run, id } => {
                    let is_last = sum.outputs.get(&(&**run, &**id)) == Some(&entry.seq);
                    let live = self.runs.get(run).filter(|_| is_last);
                    if let Some((about, step)) = live.and_then(|live| live.round.output(id)) {
                        let told =
                            words::payloads(&about, (AgentData::Tool(step), None), entry.seq);
                        events.extend(told.iter().map(again));
                    }
                }
            }
        }
        Some(events)
    }

    /// A text in one step, if this is its last one.
    fn missed_text(
        &self,
        sum: &Sum<'_>,
        grew: &Grew,
        answer: usize,
        seq: u64,
    ) -> Option<MissedEvent> {
        let run = &*grew.about.run;
        let (known, last) = sum.texts.get(&(grew.name, run, answer))?;
        let whole = sum.whole.get(run).and_then(|texts| texts.get(answer));
        let text = match whole {
            Some(text) => text.get(..grew.after)?,
            None => self.text(run, grew.after)?,
        };
        (*last == seq).then(|| step(grew.name, &grew.about, text, *known, seq))
    }

    /// The first `len` bytes of a run's text, if they are still here.
    fn text(&self, run: &str, len: usize) -> Option<&str> {
        if len == 0 {
            return Some("");
        }
        if let Some(live) = self.runs.get(run) {
            return text_of(live.text.as_deref()?).get(..len);
        }
        let ended = self.ring.iter().rev().find_map(|entry| match &entry.kind {
            Kind::Ended {
                run: ended, text, ..
            } if **ended == *run => Some(text.as_deref()),
            _ => None,
        });
        ended??.get(..len)
    }
}
