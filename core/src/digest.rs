//! A hasher whose result is the same on every machine and in every build (law 11).
//!
//! `usize` is hashed as `u64` and numbers in little-endian, so that a digest can be compared
//! between processes. It guards against accidents, not against an adversary.

use core::hash::Hasher;

/// A 64-bit hasher with a fixed result: equal values, equal digests, everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Digest {
    /// A fresh hasher.
    #[must_use]
    pub const fn new() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }

    const fn mix(&mut self, word: u64) {
        let x = (self.0 ^ word).wrapping_mul(MULTIPLIER);
        self.0 = (x ^ (x >> 32)).rotate_left(23);
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            for (to, from) in last.iter_mut().zip(rest) {
                *to = *from;
            }
            self.mix(u64::from_le_bytes(last));
        }
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.mix(u64::from(n));
    }
    fn write_u16(&mut self, n: u16) {
        self.mix(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.mix(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }
    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }
    fn write_isize(&mut self, n: isize) {
        self.mix(n as i64 as u64);
    }
}

#[cfg(test)]
mod tests {
    use core::hash::Hash;

    use super::*;

    fn digest(value: impl Hash) -> u64 {
        let mut digest = Digest::new();
        value.hash(&mut digest);
        digest.finish()
    }

    /// The numbers are frozen: a recorded digest must mean the same in the next build.
    #[test]
    fn a_digest_is_the_same_in_every_build() {
        assert_eq!(digest(0u64), digest(0usize));
        assert_eq!(digest((1u8, [2u8, 3])), 823_027_301_908_484_664);
        assert_ne!(digest([1u64, 2]), digest([2u64, 1]));
    }
}
