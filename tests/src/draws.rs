//! A seeded source of small numbers for tests that draw their moments.

/// Draws that depend on a seed alone (SplitMix64).
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// From the variable `TIDEGATE_TEST_SEED`, else from the operating system. Gives the seed
    /// too, to be printed.
    ///
    /// # Panics
    /// If the variable is not a number.
    #[must_use]
    pub fn seeded() -> (Self, u64) {
        let seed = match std::env::var("TIDEGATE_TEST_SEED") {
            Ok(text) => text.parse().expect("TIDEGATE_TEST_SEED is a number"),
            Err(_) => fresh_seed(),
        };
        (Self(seed), seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// A standard hasher is keyed by the operating system: its hash of nothing is a fresh number.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() % 1_000_000
}
