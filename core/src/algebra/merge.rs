//! Two ends of one run were seen: which one stands (spec 1.4, vector 16.3).
//!
//! Owns the matrix and its tie rules. Ends are compared by when they happened, not by when
//! they were heard of. Hand them in as they come, and once each: the matrix is no order. Three
//! ends may beat each other in a circle (an answer the hard timeout after it, the timeout a
//! later cancellation, the cancellation the answer); then the last one to be heard decides.

use serde::{Deserialize, Serialize};

use super::Reason;
use crate::time::Wall;

/// An end that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ended {
    /// Why.
    pub reason: Reason,
    /// When it ended, by the word of who saw it.
    pub at: Wall,
}

/// Which of two ends stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// The one that was known.
    Current,
    /// The one that came in.
    Incoming,
}

impl Verdict {
    const fn incoming_if(yes: bool) -> Self {
        if yes { Self::Incoming } else { Self::Current }
    }

    /// The one of the two that stands.
    #[must_use]
    pub fn pick<T>(self, current: T, incoming: T) -> T {
        match self {
            Self::Current => current,
            Self::Incoming => incoming,
        }
    }
}

impl Ended {
    /// Decides between this end, which is known, and one that comes in.
    ///
    /// A sticky end yields only to what happened before it, or, if it is a cancellation, to the
    /// news that a newer writer was the cause; never to an answer that came later (I11). Of an
    /// answer and a hard timeout at one instant the answer stands, of a hard timeout and a
    /// cancellation the timeout. All other ends yield to any newer word.
    #[must_use]
    pub const fn merge(self, incoming: Self) -> Verdict {
        use Reason::{
            Abandoned, Aborted, Blocked, Cancelled, Completed, Failed, HardTimeout, Superseded,
            TimedOut,
        };
        let (known, new) = (self.at.0, incoming.at.0);
        match (self.reason, incoming.reason) {
            (Superseded | Cancelled, HardTimeout) => Verdict::incoming_if(new <= known),
            (Cancelled, Superseded) => Verdict::Incoming,
            (Superseded | Cancelled, _) => Verdict::Current,

            (HardTimeout, Completed) => Verdict::incoming_if(new <= known),
            (HardTimeout, Superseded | Cancelled) => Verdict::incoming_if(new < known),
            (HardTimeout, _) => Verdict::Current,

            (Completed, HardTimeout) => Verdict::incoming_if(new < known),
            (Completed | Failed | TimedOut | Aborted | Blocked | Abandoned, _) => Verdict::Incoming,
        }
    }

    /// The end that stands after this one came in beside what was known, if anything was.
    #[must_use]
    pub fn after(self, current: Option<Self>) -> Self {
        current.map_or(self, |known| known.merge(self).pick(known, self))
    }
}
