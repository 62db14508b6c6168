//! What a run left to be read, and the proof that it was delivered (R38, R39).
//!
//! Owns the choice between two such words and the rule that a receipt counts for its own run
//! only. No text is here: how long it is suffices (law 2).

use serde::{Deserialize, Serialize};

use crate::ids::{RunId, SessionId};

/// What a waiter is told of the reply (R38).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TerminalReply {
    /// There is a text for people.
    Visible {
        /// Its length.
        bytes: u64,
    },
    /// The run chose to say nothing.
    Silent,
    /// There is nothing.
    Empty {
        /// The reply had to go through the message tool, and the model never called it.
        message_tool_not_called: bool,
    },
}

impl TerminalReply {
    /// What stands after `incoming` was heard beside this. That the message tool was not called
    /// is never forgotten; else something beats nothing, and the newer word the older.
    #[must_use]
    pub const fn merge(self, incoming: Self) -> Self {
        match (self, incoming) {
            (
                Self::Empty {
                    message_tool_not_called: true,
                },
                _,
            )
            | (
                Self::Visible { .. } | Self::Silent,
                Self::Empty {
                    message_tool_not_called: false,
                },
            ) => self,
            _ => incoming,
        }
    }
}

/// What a run reports of its own delivery (R39).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TerminalReceipt {
    /// The run that it is about.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// Whether the conversation that asked is known to have got the reply.
    pub source_reply_delivered: bool,
}

impl TerminalReceipt {
    /// The receipt, if it is about the run that is waited for. Another run's proves nothing.
    #[must_use]
    pub fn accepted_for(self, waited: RunId) -> Option<Self> {
        (self.run == waited).then_some(self)
    }

    /// Whether it proves that the reply of `waited` was delivered. Nothing else does (I43).
    #[must_use]
    pub fn proves_delivery(self, waited: RunId) -> bool {
        self.accepted_for(waited)
            .is_some_and(|receipt| receipt.source_reply_delivered)
    }
}
