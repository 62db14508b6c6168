//! What is to happen, ordered by time; at one instant by a drawn number.
//!
//! Owns the order of events and nothing of their meaning. An event of a dead process is
//! still in here; it carries its life, and whoever takes it out compares.

use std::collections::BTreeMap;

use tidegate_core::{CallId, Decision, Input, RunId, SessionId};

use super::swarm::Script;

/// Which life of the process something belongs to, from 0.
pub(crate) type Life = u32;

/// What the store refuses, now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusing {
    /// Nothing.
    Nothing,
    /// Any order.
    Anything,
    /// Terminal rows only, so that a run ends late and a newer one claims meanwhile.
    Ends,
    /// Checkpoints only.
    Launches,
}

/// Something that will happen.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The clients do something.
    Client,
    /// A client repeats a message whose fate it does not know.
    Retry(RunId),
    /// The store's writer finishes its batch.
    Apply(Life),
    /// A report of the store comes in.
    Report(Life, Input),
    /// The next fact of a model call, by its index and the version of its script.
    Fact { call: usize, version: u32 },
    /// The next thing that a tool does, by its index and the version of its script.
    Tool { task: usize, version: u32 },
    /// A person decides on a call.
    Decide { call: CallId, decision: Decision },
    /// The store begins to refuse, or stops.
    Refusing(Refusing),
    /// From now on the model answers every call so, of all providers or of the first choice; or as it
    /// is drawn again.
    Outage(Option<(Script, bool)>),
    /// The process is told to end in order, within so many milliseconds.
    Drain(Option<u64>),
    /// The process is started again.
    Start,
    /// The loop stands still for so many milliseconds.
    Freeze(u64),
    /// The wall clock is set forward or back by so many milliseconds.
    WallJump(i64),
    /// Another process takes a session's lease; it may work there.
    LeaseTaken { session: SessionId, works: bool },
    /// It gives the lease back.
    LeaseGiven { session: SessionId },
    /// Another process writes under the lease that is ours.
    Intrudes { session: SessionId, run: RunId },
    /// It ends what it wrote.
    IntruderEnds { run: RunId },
    /// Faults stop for all but the victims.
    Heal,
}

/// Events in the order in which they will happen.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    events: BTreeMap<(u64, u64, u64), Event>,
    put: u64,
}

impl Queue {
    /// Puts an event at `at`. `tie` orders it among the events of the same instant.
    pub(crate) fn put(&mut self, at: u64, tie: u64, event: Event) {
        self.put += 1;
        self.events.insert((at, tie, self.put), event);
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.events.first_key_value().map(|(&(at, _, _), _)| at)
    }

    /// Takes the next event.
    pub(crate) fn pop(&mut self) -> Option<(u64, Event)> {
        self.events
            .pop_first()
            .map(|((at, _, _), event)| (at, event))
    }
}
