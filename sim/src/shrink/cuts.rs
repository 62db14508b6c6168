//! Cutting a log down: which cuts are tried, and in which order.
//!
//! Whole kinds of entries first, then entries, then calm moments in the place of what goes by
//! itself, then the configuration and the time between entries. A cut is taken if it fails
//! with the same code.

use super::log::What;
use super::{Logged, cut_of, reduce, replay, size};
use crate::fault::Fault;
use crate::recording::Cut;
use crate::violation::Code;

/// Longest gaps between two entries that are tried, in milliseconds.
const GAPS_MS: [u64; 12] = [
    0, 1, 10, 100, 1_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
];

pub(super) struct Search<'a> {
    pub(super) logged: &'a Logged,
    pub(super) fault: Option<Fault>,
    pub(super) code: Code,
    pub(super) tries: u32,
}

impl Search<'_> {
    fn fails(&mut self, cut: &Cut) -> bool {
        self.tries += 1;
        let (frame, entries) = cut_of(self.logged, cut);
        let found = replay::replay(&frame, self.fault, entries.iter(), None).violation;
        found.is_some_and(|violation| violation.code == self.code)
    }

    /// Cuts the log down; `None` if the failure does not show in it.
    pub(super) fn cut(&mut self) -> Option<Cut> {
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
        let kinds: [fn(&What) -> bool; 6] = [
            |what| matches!(what, What::Commit(..) | What::Report(_)),
            |what| matches!(what, What::Fact(..)),
            |what| matches!(what, What::Tool(..)),
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
        entry.is_some_and(|entry| {
            matches!(
                entry.what,
                What::Client(_) | What::Fact(..) | What::Tool(..)
            )
        })
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
            // A tool is the model's arm here.
            Some(What::Fact(..) | What::Tool(..)) => Owed::ByModel,
            _ => Owed::Nothing,
        }
    }
}

/// Who brings an entry about when all goes as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    Nothing,
    ByModel,
    ByStore,
}
