//! The one source of choice: everything that a run draws comes through [`Choices`].
//!
//! Owns the trait and its backends: seeded, recorded, and a recorder around another one. It
//! never knows what is drawn for; a label and a span say that to whoever shrinks or steers.
//! There are no floats: a probability is an integer ratio.

/// Where a run's choices come from. Spans group the draws of one thing (a message, a model
/// call), so that a shrinker can take the thing away as a whole.
pub trait Choices {
    /// A number below `bound`; 0 if `bound` is 0 or 1. `label` says what it decides.
    fn pick(&mut self, bound: u64, label: &'static str) -> u64;

    /// A span of draws begins.
    fn begin(&mut self, label: &'static str) {
        let _ = label;
    }

    /// The span that began last ends.
    fn end(&mut self) {}
}

impl dyn Choices + '_ {
    /// True in `num` of `den` cases. A recorded 0 means false, so that shorter is calmer.
    pub fn chance(&mut self, num: u64, den: u64, label: &'static str) -> bool {
        num > 0 && self.pick(den, label) >= den.saturating_sub(num)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64, label: &'static str) -> u64 {
        low + self.pick(high.saturating_sub(low).saturating_add(1), label)
    }

    /// An index by weight; 0 if all weights are 0.
    pub fn weighted(&mut self, weights: &[u64], label: &'static str) -> usize {
        let mut at = self.pick(weights.iter().sum(), label);
        for (index, &weight) in weights.iter().enumerate() {
            if at < weight {
                return index;
            }
            at -= weight;
        }
        0
    }
}

impl<C: Choices + ?Sized> Choices for Box<C> {
    fn pick(&mut self, bound: u64, label: &'static str) -> u64 {
        (**self).pick(bound, label)
    }

    fn begin(&mut self, label: &'static str) {
        (**self).begin(label);
    }

    fn end(&mut self) {
        (**self).end();
    }
}

/// Choices from a seed: xoshiro256++, seeded through splitmix64. The same seed gives the same
/// choices on every machine.
#[derive(Clone, Debug)]
pub struct Seeded([u64; 4]);

impl Seeded {
    /// The choices of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| splitmix(&mut state)))
    }

    fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }
}

/// One step of splitmix64.
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Choices for Seeded {
    fn pick(&mut self, bound: u64, _label: &'static str) -> u64 {
        if bound < 2 {
            return 0;
        }
        // The high half of a 64 x 64 product: below the bound, and fair enough for a bound
        // far below 2^64.
        let wide = u128::from(self.next()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }
}

/// Choices from a list. A number that is too large for its bound is clamped, and beyond the
/// end every choice is 0: any list is a run.
#[derive(Clone, Debug)]
pub struct Recorded {
    list: Vec<u64>,
    at: usize,
}

impl Recorded {
    /// The choices of `list`, in order.
    #[must_use]
    pub fn new(list: Vec<u64>) -> Self {
        Self { list, at: 0 }
    }
}

impl Choices for Recorded {
    fn pick(&mut self, bound: u64, _label: &'static str) -> u64 {
        let value = self.list.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        value.min(bound.saturating_sub(1))
    }
}

/// A group of draws that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What was drawn.
    pub label: &'static str,
    /// Index of its first choice.
    pub from: usize,
    /// Index after its last choice.
    pub to: usize,
}

/// Writes down what another source gives.
#[derive(Debug)]
pub struct Recorder<C> {
    inner: C,
    list: Vec<u64>,
    spans: Vec<Span>,
    open: Vec<usize>,
}

impl<C: Choices> Recorder<C> {
    /// Records `inner`.
    pub fn new(inner: C) -> Self {
        Self {
            inner,
            list: Vec::new(),
            spans: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The choices so far, in order: what [`Recorded`] takes.
    #[must_use]
    pub fn choices(&self) -> &[u64] {
        &self.list
    }

    /// The spans so far, in the order of their beginning.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}

impl<C: Choices> Choices for Recorder<C> {
    fn pick(&mut self, bound: u64, label: &'static str) -> u64 {
        let value = self.inner.pick(bound, label);
        self.list.push(value);
        value
    }

    fn begin(&mut self, label: &'static str) {
        self.open.push(self.spans.len());
        let from = self.list.len();
        self.spans.push(Span {
            label,
            from,
            to: from,
        });
        self.inner.begin(label);
    }

    fn end(&mut self) {
        if let Some(span) = self.open.pop().and_then(|at| self.spans.get_mut(at)) {
            span.to = self.list.len();
        }
        self.inner.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_choices_for_ever() {
        let mut choices = Seeded::new(42);
        let drawn: Vec<u64> = (0..6).map(|_| choices.pick(1000, "x")).collect();
        let mut again = Seeded::new(42);
        let repeated: Vec<u64> = (0..6).map(|_| again.pick(1000, "x")).collect();
        assert_eq!(drawn, repeated);
        assert!(drawn.iter().any(|&n| n != drawn[0]), "{drawn:?}");
    }

    #[test]
    fn a_recorded_number_stays_below_its_bound_and_the_rest_is_zero() {
        let mut choices = Recorded::new(vec![7, 1]);
        assert_eq!(choices.pick(5, "x"), 4);
        assert_eq!(choices.pick(5, "x"), 1);
        assert_eq!(choices.pick(5, "x"), 0);
        assert_eq!(choices.pick(0, "x"), 0);
    }

    #[test]
    fn a_chance_keeps_its_ratio_and_a_zero_means_no() {
        let mut seeded = Seeded::new(1);
        let choices: &mut dyn Choices = &mut seeded;
        let hits = (0..10_000).filter(|_| choices.chance(1, 4, "x")).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        let mut calm = Recorded::new(Vec::new());
        let choices: &mut dyn Choices = &mut calm;
        assert!(!choices.chance(9, 10, "x"));
    }

    #[test]
    fn a_recorder_notes_choices_and_spans() {
        let mut recorder = Recorder::new(Seeded::new(3));
        recorder.begin("message");
        let first = recorder.pick(10, "a");
        recorder.begin("call");
        let second = recorder.pick(10, "b");
        recorder.end();
        recorder.end();
        assert_eq!(recorder.choices(), &[first, second]);
        assert_eq!((recorder.spans()[0].from, recorder.spans()[0].to), (0, 2));
        assert_eq!((recorder.spans()[1].from, recorder.spans()[1].to), (1, 2));
    }
}
