//! Delta debugging: the smallest part of a list that still fails alike.
//!
//! Knows nothing of what the items are. What is tried is decided by sizes alone, so that a
//! reduction is the same on every machine.

/// Leaves out what can be left out: chunks of half the list first, then smaller ones, single
/// items last, until none of them can go. Gives the indexes that stay.
pub(crate) fn reduce(len: usize, mut fails: impl FnMut(&[usize]) -> bool) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..len).collect();
    let mut size = len.div_ceil(2);
    while size > 0 {
        let mut shorter = false;
        let mut end = kept.len();
        // From the back: what came last is the most likely to matter, and the least to be needed
        // by what stays.
        while end > 0 {
            let begin = end.saturating_sub(size);
            let without: Vec<usize> = [&kept[..begin], &kept[end..]].concat();
            if fails(&without) {
                kept = without;
                shorter = true;
            }
            end = begin;
        }
        if size > 1 || !shorter {
            size /= 2;
        }
    }
    kept
}

/// The smallest number up to `high` that still fails, where all above it do as a rule.
pub(crate) fn least(high: u64, mut fails: impl FnMut(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if fails(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays_and_nothing_else() {
        for needed in [vec![], vec![0], vec![99], vec![3, 50, 51, 98]] {
            let mut tries = 0;
            let kept = reduce(100, |part| {
                tries += 1;
                needed.iter().all(|n| part.contains(n))
            });
            assert_eq!(kept, needed);
            assert!(tries < 200, "{tries}");
        }
    }

    #[test]
    fn a_list_of_which_everything_is_needed_stays_whole() {
        assert_eq!(reduce(9, |part| part.len() == 9).len(), 9);
        assert_eq!(reduce(0, |_| true), []);
    }

    #[test]
    fn the_least_number_is_found() {
        assert_eq!(least(1_000_000, |n| n >= 4_711), 4_711);
        assert_eq!(least(10, |_| true), 0);
        assert_eq!(least(10, |n| n == 10), 10);
    }
}
