//! Outside names become the core's ids by a keyed fingerprint.
//!
//! The key belongs to the state directory, so ids mean nothing elsewhere and a journal
//! tells no names. Same name and key: same id, in every process.

use tidegate_core::{Fingerprint, RunId, SessionId};

/// Makes ids from names, under one key.
#[derive(Clone)]
pub struct Fingerprinter {
    key: [u8; 32],
}

impl core::fmt::Debug for Fingerprinter {
    /// Without the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Fingerprinter")
    }
}

impl Fingerprinter {
    /// A fingerprinter with the key of the state directory.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The id of a session key.
    #[must_use]
    pub fn session(&self, key: &str) -> SessionId {
        SessionId(self.digest(b"session", &[key.as_bytes()]))
    }

    /// The id of an idempotency key.
    #[must_use]
    pub fn run(&self, key: &str) -> RunId {
        RunId(self.digest(b"run", &[key.as_bytes()]))
    }

    /// The fingerprint of a request's body, given as its fields in a fixed order.
    #[must_use]
    pub fn body(&self, fields: &[&[u8]]) -> Fingerprint {
        Fingerprint(self.digest(b"body", fields))
    }

    /// Each field is preceded by its length, so that no two lists of fields read alike.
    fn digest(&self, domain: &[u8], fields: &[&[u8]]) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for field in core::iter::once(&domain).chain(fields) {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_id_under_a_key_and_another_under_another() {
        let (a, b) = (Fingerprinter::new([1; 32]), Fingerprinter::new([2; 32]));
        assert_eq!(a.run("k"), a.clone().run("k"));
        assert_ne!(a.run("k"), b.run("k"));
        assert_ne!(a.run("k").0, a.session("k").0);
    }

    #[test]
    fn fields_do_not_run_together() {
        let f = Fingerprinter::new([7; 32]);
        assert_ne!(f.body(&[b"ab", b"c"]), f.body(&[b"a", b"bc"]));
    }
}
