//! The log of a run: what its surroundings did, in order, with the time of each.
//!
//! A run of the world notes it as it goes. Ticks are not in it, nor are the first words of a
//! new life: both follow from the rest. So an entry can be left out and what remains is still
//! something that could happen.

use tidegate_core::{
    Config, Fence, Input, ModelFact, Output, RunId, SessionId, StoreError, Ticket, ToolFact,
};

use crate::adapter::Trick;

/// Names an order to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderName {
    /// One that reports back.
    Ticket(Ticket),
    /// A save of so much text.
    Save(Fence, u64),
}

impl OrderName {
    /// The name of an order; `None` if it is none of the store's.
    pub(crate) const fn of(order: &Output) -> Option<Self> {
        match order {
            Output::Load { ticket, .. }
            | Output::Accept { ticket, .. }
            | Output::Claim { ticket, .. }
            | Output::Settle { ticket, .. }
            | Output::Launch { ticket, .. }
            | Output::Reset { ticket, .. }
            | Output::Configure { ticket, .. }
            | Output::Lookup { ticket, .. } => Some(Self::Ticket(*ticket)),
            Output::Save { fence, to, .. } => Some(Self::Save(*fence, *to)),
            _ => None,
        }
    }
}

/// Something that the surroundings of the core did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A client asked.
    Client(Input),
    /// The model said something on a call.
    Fact(Ticket, ModelFact),
    /// A tool did something that was asked for.
    Tool(Ticket, ToolFact),
    /// The store carried an order out, or refused it.
    Commit(OrderName, Option<StoreError>),
    /// A report of the store came in.
    Report(Ticket),
    /// The process dies at the next input, after so many of its outputs.
    Dies(usize),
    /// It is started again.
    Start,
    /// The loop stands still for so long, in milliseconds.
    Freeze(u64),
    /// The wall clock is set by so many milliseconds.
    WallJump(i64),
    /// Another process takes a session's lease; it may work there.
    LeaseTaken { session: SessionId, works: bool },
    /// It gives the lease back.
    LeaseGiven { session: SessionId },
    /// Another process writes under the lease that is ours.
    Intrudes { session: SessionId, run: RunId },
    /// It ends what it wrote.
    IntruderEnds { run: RunId },
    /// The next input is handed in in an odd way.
    Trick(Trick),
    /// Nothing, until then: all that is due fires.
    Pass,
    /// All that the store, the model and the tools owe is done. No run notes it; a shrinker puts it in the
    /// place of what it stands for.
    Calm,
    /// All that the store owes is done.
    Served,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// When, in simulated milliseconds.
    pub(crate) at: u64,
    pub(crate) what: What,
}

/// What a replay needs besides the entries.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) config: Config,
    /// Whether a death is a loss of power.
    pub(crate) power: bool,
    pub(crate) slack_ms: u64,
    pub(crate) store_ms: u64,
}

/// What the log notes of an input: ticks and the resumes of a new life follow from the rest.
pub(crate) fn noted(input: &Input) -> Option<What> {
    Some(match input {
        Input::Submit(_)
        | Input::Wait { .. }
        | Input::Abort { .. }
        | Input::Reset { .. }
        | Input::Configure { .. }
        | Input::Decide { .. }
        | Input::Drain { .. }
        | Input::Leave { .. } => What::Client(input.clone()),
        Input::Model { ticket, fact } => What::Fact(*ticket, fact.clone()),
        Input::Tool { ticket, fact } => What::Tool(*ticket, *fact),
        Input::Loaded { ticket, .. }
        | Input::Accepted { ticket, .. }
        | Input::Claimed { ticket, .. }
        | Input::Settled { ticket, .. }
        | Input::Launched { ticket, .. }
        | Input::WasReset { ticket, .. }
        | Input::Configured { ticket, .. }
        | Input::LookedUp { ticket, .. } => What::Report(*ticket),
        Input::Resume { .. } | Input::Tick => return None,
    })
}
