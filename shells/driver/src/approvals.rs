//! Tool calls that wait for a person: what they are called, and what people are asked.
//!
//! Owns the names and the words only. Whether a decision counts is the core's: the name of a
//! decided call is kept as long as the core holds its round, so that a second answer is judged
//! there too (spec 7.3).

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{Attempt, CallId, RunId};

use crate::reply::PendingApproval;

/// What names are made of: none of it is easily taken for another (no i, l, o, u).
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The shortest name. 40 bits: nobody guesses one that is pending.
const NAME_MIN: usize = 8;

/// All calls that were asked about and that the core still holds.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    by_name: BTreeMap<Arc<str>, CallId>,
    names: BTreeMap<CallId, Arc<str>>,
    /// Those without an answer, oldest first.
    pending: Vec<(CallId, PendingApproval)>,
}

impl Approvals {
    /// Names a call by its fingerprint. Two calls whose fingerprints begin alike differ in
    /// length, so that no name is another's.
    pub(crate) fn name(&mut self, call: CallId, fingerprint: [u8; 16]) -> Arc<str> {
        if let Some(name) = self.names.get(&call) {
            return name.clone();
        }
        let whole = spell(fingerprint);
        let name = (NAME_MIN..whole.len())
            .map(|length| &whole[..length])
            .find(|name| !self.by_name.contains_key(*name))
            .unwrap_or(&whole);
        let name: Arc<str> = name.into();
        self.by_name.insert(name.clone(), call);
        self.names.insert(call, name.clone());
        name
    }

    /// The call of a name.
    pub(crate) fn call(&self, name: &str) -> Option<CallId> {
        self.by_name.get(name).copied()
    }

    /// The name of a call that was asked about, also if it is not held any more.
    pub(crate) fn name_of(&self, call: CallId, fingerprint: [u8; 16]) -> Arc<str> {
        match self.names.get(&call) {
            Some(name) => name.clone(),
            None => spell(fingerprint)[..NAME_MIN].into(),
        }
    }

    /// Somebody is asked about a call.
    pub(crate) fn asked(&mut self, call: CallId, approval: PendingApproval) {
        self.pending.push((call, approval));
    }

    /// A call waits for nobody any more. What was asked, if it waited.
    pub(crate) fn over(&mut self, call: CallId) -> Option<PendingApproval> {
        let place = self.pending.iter().position(|(id, _)| *id == call)?;
        Some(self.pending.remove(place).1)
    }

    /// What waits, oldest first.
    pub(crate) fn pending(&self) -> Vec<PendingApproval> {
        let pending = self.pending.iter();
        pending.map(|(_, approval)| approval.clone()).collect()
    }

    /// The core holds the round of an attempt no longer.
    pub(crate) fn release(&mut self, run: RunId, attempt: Attempt) {
        let stays = |call: &CallId| (call.run, call.attempt) != (run, attempt);
        self.names.retain(|call, _| stays(call));
        self.by_name.retain(|_, call| stays(call));
        self.pending.retain(|(call, _)| stays(call));
    }
}

/// A fingerprint in characters that can be typed, five bits each.
fn spell(fingerprint: [u8; 16]) -> String {
    let mut bits = u128::from_be_bytes(fingerprint);
    let letters = (0..128 / 5).map(|_| {
        bits = bits.rotate_left(5);
        char::from(ALPHABET[(bits & 31) as usize])
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(run: u8, call: u16) -> CallId {
        CallId {
            run: RunId([run; 16]),
            attempt: Attempt(1),
            call,
        }
    }

    /// R205
    #[test]
    fn a_name_can_be_typed_and_is_nobody_elses() {
        let mut approvals = Approvals::default();
        let print = [0x5a; 16];
        let first = approvals.name(call(1, 0), print);
        let second = approvals.name(call(1, 1), print);
        assert_eq!((first.len(), second.len()), (8, 9));
        assert!(first.bytes().all(|letter| ALPHABET.contains(&letter)));
        assert_eq!(approvals.call(&first), Some(call(1, 0)));
        assert_eq!(approvals.call(&second), Some(call(1, 1)));
        assert_eq!(approvals.name(call(1, 0), print), first, "asked once more");
    }

    /// Law 9
    #[test]
    fn a_name_goes_with_its_round() {
        let mut approvals = Approvals::default();
        let one = approvals.name(call(1, 0), [1; 16]);
        let other = approvals.name(call(2, 0), [2; 16]);
        approvals.release(RunId([1; 16]), Attempt(2));
        assert!(approvals.call(&one).is_some(), "another attempt's");
        approvals.release(RunId([1; 16]), Attempt(1));
        assert_eq!(approvals.call(&one), None);
        assert!(approvals.call(&other).is_some());
        approvals.release(RunId([2; 16]), Attempt(1));
        assert!(approvals.by_name.is_empty() && approvals.names.is_empty());
    }
}
