//! Names of things: fixed 16-byte values that come from outside, and what is derived from them.
//!
//! The shell makes an id as a keyed fingerprint of an outside name (session key,
//! idempotency key) and maps it back for people. The core counts nothing up that two
//! entities share, so that leaving an input out of a log leaves all other ids as they
//! were: shrinking depends on it (design section 3).

use core::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub struct $name(pub [u8; 16]);

        // The order of the bytes, as one comparison of numbers: tables of runs and timers
        // are searched for every piece of text.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl $name {
            /// An id from a number, for tests, simulations and embedders with ids of their own.
            #[must_use]
            pub const fn from_u128(n: u128) -> Self {
                Self(n.to_be_bytes())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl fmt::Display for $name {
            /// Hexadecimal without leading zero bytes.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let n = u128::from_be_bytes(self.0);
                write!(f, "{n:x}")
            }
        }
    };
}

id! {
    /// A session: the fingerprint of its session key. It names the conversation, not its
    /// transcript; that is (session, [`Generation`]).
    SessionId
}
id! {
    /// A run: the fingerprint of its idempotency key. One key is one run, for ever (P06).
    RunId
}
id! {
    /// One request of a caller, to which answers are addressed. Fresh for each request.
    RequestId
}
id! {
    /// A keyed fingerprint of content that the core compares and never sees (law 2).
    Fingerprint
}

/// The transcript's generation under its session key. A reset begins the next one (P18).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Generation(pub u64);

/// The lease under which this process owns a session, as the store granted it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

/// Which try of a run writes. 0: none has begun. A restart begins the next one (B-121).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The attempt after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Identity of a writer: what every write carries, and what the store compares with the
/// durable claim inside the writing transaction (law 4; R51 to R54, I20, P07).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// The session written to.
    pub session: SessionId,
    /// The generation of its transcript.
    pub generation: Generation,
    /// The run that writes.
    pub run: RunId,
    /// The run's attempt that writes. 0 only for a run that never claimed.
    pub attempt: Attempt,
}

/// Whom an order is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// A session.
    Session(SessionId),
    /// A run.
    Run(RunId),
    /// A caller's request.
    Request(RequestId),
}

/// What was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OrderKind {
    /// Load a session.
    Load,
    /// Commit an accepted message.
    Accept,
    /// Commit a writer claim.
    Claim,
    /// Call the model.
    Model,
    /// Commit the terminal rows.
    Settle,
    /// Look a finished run up.
    Lookup,
    /// Begin the next generation of a session.
    Reset,
    /// Keep a session's queue settings.
    Configure,
    /// Commit a launch checkpoint.
    Launch,
    /// Carry out a tool call; the ticket's ordinal is its place in the answer.
    Tool,
}

/// The name of one order that will report back. The report brings it along; a report whose
/// ticket is not the expected one changes nothing and is counted (law 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket {
    /// Whom the order is about.
    pub subject: Subject,
    /// What was ordered.
    pub order: OrderKind,
    /// The attempt that the order belongs to; 0 where there is none. For a load, which has
    /// none, a name that tells it from earlier loads of the session.
    pub attempt: Attempt,
    /// The how-manyth try of this order, from 0.
    pub ordinal: u16,
}

/// Who owns a piece of content in the shell's content store. Releasing an owner frees all
/// its parts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ContentOwner {
    /// What came with a request, or was fetched to answer it.
    Request(RequestId),
    /// What an attempt produced.
    Attempt(RunId, Attempt),
}

/// Which content of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Part {
    /// The user's message.
    Message,
    /// The assistant's reply, appended as it streams.
    Reply,
    /// What the provider said about its failure.
    Detail,
    /// What the call of this place has put out.
    Output(u16),
}

/// Names text that the shell keeps (law 2). Offsets into it are bytes on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle {
    /// Whose content.
    pub owner: ContentOwner,
    /// Which of it.
    pub part: Part,
}
