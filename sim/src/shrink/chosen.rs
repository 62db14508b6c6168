//! Shrinking choices, where the log of a run says nothing: whole things are left out, stretches
//! made zero, numbers lowered.
//!
//! Each try is a run of the world, so there are a few thousand at most.

use super::{Shrunk, reduce, run_logged};
use crate::choices::{Recorded, Recorder, Span};
use crate::fault::Fault;
use crate::recording::{Recording, Source};
use crate::violation::{Code, Violation};

/// Runs of the world that shrinking choices may take.
const MOST_RUNS: u32 = 3_000;

/// A run from choices, as far as shrinking looks at it.
struct Drawn {
    choices: Vec<u64>,
    spans: Vec<Span>,
    violation: Option<Violation>,
    inputs: u64,
}

fn draw(list: Vec<u64>, fault: Option<Fault>) -> Drawn {
    let mut recorder = Recorder::new(Recorded::new(list));
    let logged = run_logged(&mut recorder, fault);
    Drawn {
        choices: recorder.choices().to_vec(),
        spans: recorder.spans().to_vec(),
        violation: logged.violation,
        inputs: logged.inputs,
    }
}

struct Choosing {
    fault: Option<Fault>,
    code: Code,
    tries: u32,
    best: Drawn,
}

impl Choosing {
    /// Takes a list if it fails alike and is shorter, or as long and smaller.
    fn accepts(&mut self, list: Vec<u64>) -> bool {
        if self.tries >= MOST_RUNS {
            return false;
        }
        self.tries += 1;
        let drawn = draw(list, self.fault);
        let alike = drawn.violation.is_some_and(|v| v.code == self.code);
        let size = |choices: &[u64]| {
            let zeros = choices.iter().rev().take_while(|&&n| n == 0).count();
            choices.len() - zeros
        };
        let smaller =
            (size(&drawn.choices), &drawn.choices) < (size(&self.best.choices), &self.best.choices);
        if alike && smaller {
            self.best = drawn;
        }
        alike && smaller
    }

    /// Takes whole things away: an act, a call, a fault.
    fn without_spans(&mut self) {
        let mut at = self.best.spans.len();
        while at > 0 {
            at -= 1;
            let Some(span) = self.best.spans.get(at).copied() else {
                continue;
            };
            let list = &self.best.choices;
            if let (Some(before), Some(after)) = (list.get(..span.from), list.get(span.to..)) {
                self.accepts([before, after].concat());
            }
        }
    }

    /// Makes stretches of the list zero: nothing is done, and at the calmest.
    fn zero(&mut self) {
        let mut size = self.best.choices.len().div_ceil(2);
        while size > 0 {
            let mut begin = 0;
            while begin < self.best.choices.len() {
                let mut list = self.best.choices.clone();
                let end = (begin + size).min(list.len());
                if list[begin..end].iter().any(|&n| n > 0) {
                    list[begin..end].fill(0);
                    self.accepts(list);
                }
                begin = end;
            }
            size /= 2;
        }
    }

    fn lower(&mut self) {
        for at in 0..self.best.choices.len() {
            let Some(&value) = self.best.choices.get(at).filter(|&&n| n > 0) else {
                continue;
            };
            reduce::least(value, |lower| {
                let mut list = self.best.choices.clone();
                match list.get_mut(at) {
                    Some(number) if lower < *number => *number = lower,
                    _ => return lower >= value,
                }
                self.accepts(list)
            });
        }
    }
}

pub(super) fn shrink_choices(source: &Source, fault: Option<Fault>, code: Code) -> Option<Shrunk> {
    let mut recorder = Recorder::new(source.choices());
    let logged = run_logged(&mut recorder, fault);
    let mut choosing = Choosing {
        fault,
        code,
        tries: 0,
        best: Drawn {
            choices: recorder.choices().to_vec(),
            spans: recorder.spans().to_vec(),
            violation: logged.violation,
            inputs: logged.inputs,
        },
    };
    choosing.without_spans();
    choosing.zero();
    choosing.lower();
    let Choosing { best, tries, .. } = choosing;
    Some(Shrunk {
        violation: best.violation?,
        size: best.choices.iter().filter(|&&n| n > 0).count(),
        recording: Recording {
            source: Source::Choices(best.choices),
            fault,
            cut: None,
        },
        inputs: best.inputs,
        tries,
    })
}
