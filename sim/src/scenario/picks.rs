//! Which of the things that fall on one instant comes first.
//!
//! Owns the search over orders: it runs the first order, then all that differ from it in one
//! place, then in two, and so on, each once, up to a bound.

use std::collections::VecDeque;

/// The choices of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Picks {
    prefix: Vec<usize>,
    /// What was picked, and of how many.
    made: Vec<(usize, usize)>,
    /// Whether everything of an instant may change places, and not only marked steps.
    pub(super) free: bool,
}

impl Picks {
    /// Picks one of `of`; the first where nothing is said.
    pub(super) fn pick(&mut self, of: usize) -> usize {
        if of < 2 {
            return 0;
        }
        let picked = self
            .prefix
            .get(self.made.len())
            .copied()
            .unwrap_or(0)
            .min(of - 1);
        self.made.push((picked, of));
        picked
    }

    /// The same choices for another run.
    pub(super) fn again(&self) -> Self {
        Self {
            prefix: self.made(),
            made: Vec::new(),
            free: self.free,
        }
    }

    /// What was picked where there was a choice, in order.
    pub(super) fn made(&self) -> Vec<usize> {
        self.made.iter().map(|&(picked, _)| picked).collect()
    }
}

/// The orders that are left to run.
#[derive(Debug)]
pub(super) struct Orders {
    left: VecDeque<Picks>,
    given: usize,
    most: usize,
    /// Whether there are more orders than the bound.
    pub(super) cut: bool,
}

impl Orders {
    pub(super) fn new(free: bool, most: usize) -> Self {
        let first = Picks {
            free,
            ..Picks::default()
        };
        Self {
            left: VecDeque::from([first]),
            given: 0,
            most,
            cut: false,
        }
    }

    pub(super) fn next(&mut self) -> Option<Picks> {
        let picks = self.left.pop_front()?;
        self.given += 1;
        Some(picks)
    }

    /// A run is over: what differs from it in one later place comes later.
    pub(super) fn ran(&mut self, picks: &Picks) {
        for (at, &(_, of)) in picks.made.iter().enumerate().skip(picks.prefix.len()) {
            for other in 1..of {
                if self.given + self.left.len() >= self.most {
                    self.cut = true;
                    return;
                }
                let mut prefix: Vec<usize> = picks.made[..at].iter().map(|&(p, _)| p).collect();
                prefix.push(other);
                self.left.push_back(Picks {
                    prefix,
                    made: Vec::new(),
                    free: picks.free,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(most: usize) -> (BTreeSet<Vec<usize>>, usize, bool) {
        let mut orders = Orders::new(true, most);
        let (mut seen, mut runs) = (BTreeSet::new(), 0);
        while let Some(mut picks) = orders.next() {
            for of in [3, 2, 1] {
                picks.pick(of);
            }
            runs += 1;
            seen.insert(picks.made());
            orders.ran(&picks);
        }
        (seen, runs, orders.cut)
    }

    #[test]
    fn every_order_is_run_once_and_the_bound_is_kept() {
        let (seen, runs, cut) = all(100);
        assert_eq!((seen.len(), runs, cut), (6, 6, false));
        let (seen, runs, cut) = all(4);
        assert_eq!((seen.len(), runs, cut), (4, 4, true));
    }
}
