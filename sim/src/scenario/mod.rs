//! Scenarios: timelines as readable text, run over the core with all checkers on.
//!
//! A scenario says what clients, the model, the store, the process and the clock do, and what
//! must come of it. It is the durable form of a case: one that a person wrote, or one that a
//! shrinker emitted. [`parse`] reads it, [`run`] runs it in one order, in every order of what
//! falls on one instant, and with a kill after every single step; its `Display` writes it.
//!
//! ```
//! use tidegate_sim::scenario::{RunOptions, parse, run};
//!
//! let text = "
//! ## proves: R156
//! config
//!     recovery.retries 0
//! at 0s    alice sends m1 to A
//!          model answers m1: begins, 2 chunks, then silence
//! expect   at 120.02s  m1 ends as timed out (idle)
//! never    anything of m1 after its end
//! ";
//! let scenario = parse(text, "idle.scenario")?;
//! let outcome = run(&scenario, &RunOptions::default());
//! assert!(outcome.failures.is_empty());
//! # Ok::<(), tidegate_sim::scenario::ScenarioError>(())
//! ```

mod asks;
mod ast;
mod beats;
#[cfg(test)]
mod book;
mod calls;
mod cast;
mod conds;
mod emit;
mod error;
mod expect;
mod explore;
mod form;
mod jobs;
mod judge;
mod knobs;
mod names;
mod parse;
mod picks;
mod record;
mod stage;
mod steps;
mod token;
mod trace;
mod units;
mod words;
mod works;
mod write;

pub use ast::{
    Beat, Block, Cond, Ended, Ending, Expect, Failed, Happens, Planted, Refused, Row, Scenario,
    Step, Told, UNKNOWN, When, Work,
};
pub use emit::Logged;
pub use error::ScenarioError;
pub use explore::{Failure, Found, Outcome, RunOptions, bless, run};
pub use parse::parse;
