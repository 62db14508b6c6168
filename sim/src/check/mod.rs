//! The checkers: each guards promises, and sees inputs, outputs and the modelled store only.
//!
//! Owns the list of checkers and how they are told what happens. They know nothing of the
//! core's state; what only the core can see is in its own `check()`. Each keeps its own book,
//! so that a mistake in one is not repeated by the others.

mod content;
mod deadlines;
mod drains;
mod durability;
mod ends;
mod generations;
mod lanes;
mod ledger;
mod line;
mod receipts;
mod requests;
mod retry;
mod runs;
pub(crate) mod silence;
mod slots;
mod states;
mod tools;
mod writers;

use tidegate_core::{Config, Input, Output, RequestId, RunId, SessionId, Subject, Time};

use crate::violation::{Code, Violation};
use crate::world::store::{Store, Wrote};

pub use ledger::{Fate, Ledger};
pub(crate) use states::LOST;
pub use states::{Stage, TRANSITIONS, Transitions};

/// What a checker sees of the moment, and where it reports to.
pub(crate) struct Moment<'a> {
    pub(crate) now: Time,
    /// Index of the input, from 1.
    pub(crate) input: u64,
    pub(crate) config: &'a Config,
    pub(crate) store: &'a Store,
    /// How late a tick may be by the world's own doing.
    pub(crate) slack_ms: u64,
    /// What an order to the store takes at most, with its report, while the store works.
    pub(crate) store_ms: u64,
    pub(crate) found: &'a mut Vec<Violation>,
}

impl Moment<'_> {
    pub(crate) fn report(&mut self, code: Code, entity: Subject) {
        self.found.push(Violation {
            code,
            entity,
            at: self.now,
            input: self.input,
        });
    }

    pub(crate) fn run(&mut self, code: Code, run: RunId) {
        self.report(code, Subject::Run(run));
    }

    pub(crate) fn request(&mut self, code: Code, request: RequestId) {
        self.report(code, Subject::Request(request));
    }
}

/// How a run of the world came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest<'a> {
    /// Nothing will happen any more. Otherwise the time allowed for liveness is over.
    pub(crate) quiet: bool,
    /// Sessions whose provider stays silent for ever.
    pub(crate) victims: &'a [SessionId],
}

/// A checker. What it does not look at, it does not implement.
pub(crate) trait Check {
    /// The core is about to take this in.
    fn input(&mut self, _at: &mut Moment<'_>, _input: &Input) {}
    /// The world is about to carry this out.
    fn output(&mut self, _at: &mut Moment<'_>, _output: &Output) {}
    /// All outputs of an input were carried out.
    fn stepped(&mut self, _at: &mut Moment<'_>, _input: &Input) {}
    /// A transaction wrote this.
    fn wrote(&mut self, _at: &mut Moment<'_>, _wrote: &Wrote) {}
    /// A transaction is over: what it wrote, and what it will report.
    fn carried(&mut self, _at: &mut Moment<'_>, _report: Option<&Input>, _wrote: &[Wrote]) {}
    /// The loop stood still for so long.
    fn froze(&mut self, _ms: u64) {}
    /// The process died; nothing that it held is left.
    fn died(&mut self) {}
    /// The run is over.
    fn rest(&mut self, _at: &mut Moment<'_>, _rest: Rest<'_>) {}
}

macro_rules! checks {
    ($($field:ident: $check:ty,)*) => {
        /// All checkers.
        #[derive(Debug, Default)]
        pub(crate) struct Checks {
            $(pub(crate) $field: $check,)*
        }

        impl Check for Checks {
            fn input(&mut self, at: &mut Moment<'_>, input: &Input) {
                $(self.$field.input(at, input);)*
            }
            fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
                $(self.$field.output(at, output);)*
            }
            fn stepped(&mut self, at: &mut Moment<'_>, input: &Input) {
                $(self.$field.stepped(at, input);)*
            }
            fn wrote(&mut self, at: &mut Moment<'_>, wrote: &Wrote) {
                $(self.$field.wrote(at, wrote);)*
            }
            fn carried(&mut self, at: &mut Moment<'_>, report: Option<&Input>, wrote: &[Wrote]) {
                $(self.$field.carried(at, report, wrote);)*
            }
            fn froze(&mut self, ms: u64) {
                $(self.$field.froze(ms);)*
            }
            fn died(&mut self) {
                $(self.$field.died();)*
            }
            fn rest(&mut self, at: &mut Moment<'_>, rest: Rest<'_>) {
                $(self.$field.rest(at, rest);)*
            }
        }
    };
}

checks! {
    drains: drains::Drains,
    writers: writers::Writers,
    lanes: lanes::Lanes,
    ends: ends::Ends,
    lines: line::Lines,
    receipts: receipts::Receipts,
    generations: generations::Generations,
    retries: retry::Retries,
    deadlines: deadlines::Deadlines,
    runs: runs::Runs,
    requests: requests::Requests,
    durability: durability::Durability,
    silence: silence::Silence,
    content: content::Contents,
    ledger: Ledger,
    states: states::States,
    tools: tools::Tools,
}
