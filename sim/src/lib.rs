//! A deterministic world around the core of Tidegate: load, faults, checkers, replay.
//!
//! It imports the core alone and needs no runtime, no clock and no network: it jumps from
//! event to event, so that ten simulated minutes take a few milliseconds. Everything that a
//! run draws comes from one source of choice; a seed, or a recording, is the whole run. The
//! library prints nothing.
//!
//! ```
//! use tidegate_sim::{Options, run_seed};
//!
//! let report = run_seed(7, &Options::default());
//! assert!(report.violations.is_empty());
//! assert_eq!(report.digest, run_seed(7, &Options::default()).digest);
//! ```
//!
//! The way of a run: a seed draws its character (configuration, load, which faults are on);
//! ten minutes of load and faults follow; then faults stop for all but a drawn set of victims,
//! and everything else must come to rest within a bound derived from the configured limits.
//! Checkers see inputs, outputs and the modelled store, never the core's state.

mod adapter;
mod audit;
mod campaign;
mod check;
mod choices;
mod coverage;
mod fault;
mod marks;
mod recording;
mod run;
pub mod scenario;
mod shrink;
mod twice;
mod violation;
mod world;

pub use audit::{AuditRow, audit};
pub use campaign::{Campaign, FULL_CAMPAIGN, Failure, Goal, Missing, Summary, Verdict};
pub use check::{Fate, Ledger, Stage, TRANSITIONS, Transitions};
pub use choices::{Choices, Recorded, Recorder, Seeded, Span};
pub use coverage::Operations;
pub use fault::Fault;
pub use marks::{Mark, Marks};
pub use recording::{Cut, RECORDING_VERSION, Recording, RecordingError, Source};
pub use run::{Options, Report, Step, Watch, run_choices, run_seed};
pub use shrink::{Replay, Shrunk, shrink};
pub use twice::{Divergence, divergence, seed_twice, step_digest, step_words};
pub use violation::{Code, Kind, Violation};
