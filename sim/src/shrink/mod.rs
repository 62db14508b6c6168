//! Shrinking: from a failed run to the least that fails alike.
//!
//! The log of the run is cut down first, entry by entry; where the failure does not show in
//! the log alone, the choices are. A cut counts only if the same code is found: never another
//! failure, however small. Nothing is drawn and no clock is looked at, so that one failure
//! shrinks to one case everywhere.

mod emit;
pub(crate) mod log;
mod reduce;
mod replay;
mod words;

use tidegate_core::Config;

use crate::choices::{Choices, Recorded, Recorder, Span};
use crate::fault::Fault;
use crate::recording::{Cut, Recording, Source};
use crate::run::Step;
use crate::scenario::Scenario;
use crate::violation::{Code, Violation};
use crate::world::World;
use log::{Entry, Frame, What};

/// Longest gaps between two entries that are tried, in milliseconds.
const GAPS_MS: [u64; 12] = [
    0, 1, 10, 100, 1_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
];
/// Runs of the world that shrinking choices may take.
const MOST_RUNS: u32 = 3_000;

/// A failure, as small as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// What is found in it: the same code as in the whole.
    pub violation: Violation,
    /// What reproduces it.
    pub recording: Recording,
    /// Entries of its log that are left; if there is no log, choices that are not 0.
    pub size: usize,
    /// Inputs until it is found.
    pub inputs: u64,
    /// How many replays it took.
    pub tries: u32,
}

/// A run of the world with its log.
struct Logged {
    frame: Frame,
    entries: Vec<Entry>,
    violation: Option<Violation>,
    inputs: u64,
}

fn run_logged(source: &mut dyn Choices, fault: Option<Fault>) -> Logged {
    let mut world = World::new(source, fault, None);
    world.log = Some(Vec::new());
    world.run();
    let mut entries = world.log.take().unwrap_or_default();
    entries.push(Entry {
        at: world.now,
        what: What::Pass,
    });
    Logged {
        frame: Frame {
            config: world.swarm.config.clone(),
            power: world.swarm.power,
            slack_ms: world.swarm.jitter_ms,
            store_ms: world.swarm.store_ms(),
        },
        entries,
        violation: world.violations.first().copied(),
        inputs: world.inputs,
    }
}

/// What a cut has at a place of the log, in the order in which it comes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Calm,
    Served,
    Kept,
}

/// The entries of a cut, with the times that it gives them.
fn cut_of(logged: &Logged, cut: &Cut) -> (Frame, Vec<Entry>) {
    let mut frame = logged.frame.clone();
    if cut.plain {
        frame.config = Config::default();
    }
    let mut items: Vec<(u32, Item)> = Vec::new();
    for (list, item) in [
        (&cut.calms, Item::Calm),
        (&cut.served, Item::Served),
        (&cut.kept, Item::Kept),
    ] {
        items.extend(list.iter().map(|&at| (at, item)));
    }
    items.sort_unstable();
    let (mut last, mut now) = (0, 0);
    let entries = items.into_iter().filter_map(|(at, item)| {
        let entry = logged.entries.get(usize::try_from(at).ok()?)?;
        now += entry.at.saturating_sub(last).min(cut.gap_ms);
        last = last.max(entry.at);
        let what = match item {
            Item::Calm => What::Calm,
            Item::Served => What::Served,
            Item::Kept => entry.what.clone(),
        };
        Some(Entry { at: now, what })
    });
    let entries = entries.collect();
    (frame, entries)
}

struct Search<'a> {
    logged: &'a Logged,
    fault: Option<Fault>,
    code: Code,
    tries: u32,
}

impl Search<'_> {
    fn fails(&mut self, cut: &Cut) -> bool {
        self.tries += 1;
        let (frame, entries) = cut_of(self.logged, cut);
        let found = replay::replay(&frame, self.fault, entries.iter(), None).violation;
        found.is_some_and(|violation| violation.code == self.code)
    }

    /// Cuts the log down; `None` if the failure does not show in it.
    fn cut(&mut self) -> Option<Cut> {
        let all = u32::try_from(self.logged.entries.len()).ok()?;
        let mut cut = Cut {
            kept: (0..all).collect(),
            calms: Vec::new(),
            served: Vec::new(),
            gap_ms: u64::MAX,
            plain: false,
        };
        if !self.fails(&cut) {
            return None;
        }
        self.without_kinds(&mut cut);
        self.without_entries(&mut cut);
        self.with_calms(&mut cut);
        self.prompt(&mut cut);
        let plain = Cut {
            plain: true,
            ..cut.clone()
        };
        if self.fails(&plain) {
            cut = plain;
        }
        let gap = GAPS_MS.into_iter().find(|&gap_ms| {
            self.fails(&Cut {
                gap_ms,
                ..cut.clone()
            })
        });
        if let Some(gap_ms) = gap {
            cut.gap_ms = gap_ms;
            self.without_entries(&mut cut);
        }
        Some(cut)
    }

    /// Leaves out all entries of a kind at once: what the calm end does by itself.
    fn without_kinds(&mut self, cut: &mut Cut) {
        let kinds: [fn(&What) -> bool; 5] = [
            |what| matches!(what, What::Commit(..) | What::Report(_)),
            |what| matches!(what, What::Fact(..)),
            |what| matches!(what, What::Trick(_)),
            |what| matches!(what, What::Dies(_) | What::Start),
            |what| matches!(what, What::Freeze(_) | What::WallJump(_)),
        ];
        for kind in kinds {
            let entries = &self.logged.entries;
            let other = |at: &u32| usize::try_from(*at).is_ok_and(|at| !kind(&entries[at].what));
            let kept = cut.kept.iter().copied().filter(other).collect();
            let without = Cut {
                kept,
                ..cut.clone()
            };
            if self.fails(&without) {
                *cut = without;
            }
        }
    }

    fn without_entries(&mut self, cut: &mut Cut) {
        let now = cut.clone();
        let (kept, calms) = (now.kept.len(), now.calms.len());
        let part = |part: &[usize]| {
            let of = |list: &[u32], from: usize| -> Vec<u32> {
                let inside = part.iter().filter_map(|&at| at.checked_sub(from));
                inside.filter_map(|at| list.get(at).copied()).collect()
            };
            Cut {
                kept: of(&now.kept, 0),
                calms: of(&now.calms, kept),
                served: of(&now.served, kept + calms),
                ..now.clone()
            }
        };
        let all = kept + calms + now.served.len();
        let left = reduce::reduce(all, |indexes| self.fails(&part(indexes)));
        *cut = part(&left);
    }

    /// Puts a calm moment in the place of what the store and the model did one by one, or a
    /// moment of the store in the place of what the store did between two facts.
    fn with_calms(&mut self, cut: &mut Cut) {
        let mut end = cut.kept.len();
        while end > 0 {
            let owed = cut.kept[..end].iter().rev();
            let run = owed
                .take_while(|&&at| self.owed(at) > Owed::Nothing)
                .count();
            let begin = end - run;
            if run > 0 && !self.with_calm(cut, begin, end) {
                self.with_served(cut, begin, end);
            }
            end = begin.saturating_sub(1);
        }
        self.without_entries(cut);
    }

    /// Tries surroundings that never keep anybody waiting: the store does its part before each
    /// thing that a client or the model does; or the model too, before each thing that a client
    /// does. What stood there only to let time pass can go then.
    fn prompt(&mut self, cut: &mut Cut) {
        for model in [false, true] {
            let mut prompt = cut.clone();
            let stays = |at: &u32| match self.owed(*at) {
                Owed::ByStore => false,
                Owed::ByModel => !model,
                Owed::Nothing => true,
            };
            prompt.kept.retain(stays);
            let before = prompt.kept.iter().copied().filter(|&at| self.acts(at));
            match model {
                true => prompt.calms = before.collect(),
                false => prompt.served = before.collect(),
            }
            if self.fails(&prompt) {
                self.without_entries(&mut prompt);
                if size(&prompt) < size(cut) {
                    *cut = prompt;
                }
            }
        }
    }

    /// Whether an entry is something that a client or the model does.
    fn acts(&self, at: u32) -> bool {
        let entry = usize::try_from(at)
            .ok()
            .and_then(|at| self.logged.entries.get(at));
        entry.is_some_and(|entry| matches!(entry.what, What::Client(_) | What::Fact(..)))
    }

    /// In the place of all entries from `begin` to `end`, or of the last ones of them.
    fn with_calm(&mut self, cut: &mut Cut, begin: usize, end: usize) -> bool {
        (begin..end).any(|from| {
            let mut calm = cut.clone();
            calm.calms.insert(0, cut.kept[end - 1]);
            calm.kept.drain(from..end);
            self.takes(cut, calm)
        })
    }

    fn with_served(&mut self, cut: &mut Cut, begin: usize, end: usize) {
        let mut at = end;
        while at > begin {
            let owed = cut.kept[begin..at].iter().rev();
            let run = owed
                .take_while(|&&at| self.owed(at) == Owed::ByStore)
                .count();
            if run > 1 {
                let mut served = cut.clone();
                served.served.insert(0, cut.kept[at - 1]);
                served.kept.drain(at - run..at);
                self.takes(cut, served);
            }
            at -= run.max(1);
        }
    }

    fn takes(&mut self, cut: &mut Cut, other: Cut) -> bool {
        let fails = self.fails(&other);
        if fails {
            *cut = other;
        }
        fails
    }

    fn owed(&self, at: u32) -> Owed {
        let entry = usize::try_from(at)
            .ok()
            .and_then(|at| self.logged.entries.get(at));
        match entry.map(|entry| &entry.what) {
            Some(What::Commit(..) | What::Report(_)) => Owed::ByStore,
            Some(What::Fact(..)) => Owed::ByModel,
            _ => Owed::Nothing,
        }
    }
}

/// How many entries a cut has.
fn size(cut: &Cut) -> usize {
    cut.kept.len() + cut.calms.len() + cut.served.len()
}

/// Who brings an entry about when all goes as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    Nothing,
    ByModel,
    ByStore,
}

/// Shrinks a run. `None` if it does not fail.
#[must_use]
pub fn shrink(source: &Source, fault: Option<Fault>) -> Option<Shrunk> {
    let logged = run_logged(&mut *source.choices(), fault);
    let code = logged.violation?.code;
    let mut search = Search {
        logged: &logged,
        fault,
        code,
        tries: 0,
    };
    let Some(cut) = search.cut() else {
        return shrink_choices(source, fault, code);
    };
    let tries = search.tries;
    let (frame, entries) = cut_of(&logged, &cut);
    let replayed = replay::replay(&frame, fault, entries.iter(), None);
    Some(Shrunk {
        violation: replayed.violation?,
        size: size(&cut),
        recording: Recording {
            source: source.clone(),
            fault,
            cut: Some(cut),
        },
        inputs: replayed.inputs,
        tries,
    })
}

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

fn shrink_choices(source: &Source, fault: Option<Fault>, code: Code) -> Option<Shrunk> {
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

/// What replaying a recording gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// What is found, if anything is.
    pub violation: Option<Violation>,
    /// Inputs handed to the core.
    pub inputs: u64,
    /// What led to it, in words: at most 20 lines, the last one says what broke. Empty if
    /// nothing is found.
    pub timeline: Vec<String>,
}

impl Recording {
    /// Runs it again, and tells it in words if it fails.
    #[must_use]
    pub fn replay(&self) -> Replay {
        let (violation, inputs) = self.watched(&mut |_| {});
        let mut timeline = Vec::new();
        if let Some(violation) = violation {
            let mut words = words::Timeline::default();
            self.watched(&mut |step| words.step(step, &violation));
            timeline = words.finish(&violation);
        }
        Replay {
            violation,
            inputs,
            timeline,
        }
    }

    /// Runs it again. `watch` sees every step.
    pub fn watched(&self, watch: &mut dyn FnMut(&Step<'_>)) -> (Option<Violation>, u64) {
        let mut source = self.source.choices();
        let Some(cut) = &self.cut else {
            let mut world = World::new(&mut *source, self.fault, Some(watch));
            world.run();
            return (world.violations.first().copied(), world.inputs);
        };
        let logged = run_logged(&mut *source, self.fault);
        let (frame, entries) = cut_of(&logged, cut);
        let replayed = replay::replay(&frame, self.fault, entries.iter(), Some(watch));
        (replayed.violation, replayed.inputs)
    }
}

impl Shrunk {
    /// The case as a scenario, which fails with the same code as it is written and passes when
    /// the defect is mended (a planted fault: when its line is taken out). `None` if scenarios
    /// have no word for something in it, or if it does not fail there alike.
    #[must_use]
    pub fn scenario(&self) -> Option<Scenario> {
        emit::scenario(self)
    }
}
