//! The core of Tidegate: every decision of an agent gateway, as one pure state machine.
//!
//! It has no IO, no clock, no randomness and no content: time comes with each input, text
//! stays in the shell under a handle, and the same inputs give the same outputs on every
//! machine. So a run of it replays from a log of its inputs. `tidegate-driver` is the shell
//! that runs it over a real store and real model providers.
//!
//! # Driving it
//!
//! 1. Make a [`Core`] with a [`Config`].
//! 2. Hand in a fact with [`Core::handle`] and the time at which it happened.
//! 3. Take all orders out of the [`Drain`]. Carry them out in their order, after the drain
//!    is gone; never wait for one before taking the next.
//! 4. An order with a [`Ticket`] reports back: hand the report in as an input that brings the
//!    ticket along. What must wait for durability is ordered when that report comes in.
//! 5. The last order is [`Output::Sleep`]. When its time comes, hand in the reports that have
//!    come meanwhile, then [`Input::Tick`]: a deadline never beats a report that was there.
//! 6. After [`Output::Halt`] the core answers nothing else. Save what you know and stop.
//!
//! After a restart, make a new core and hand in [`Input::Resume`] for each session in which
//! the store holds accepted runs that have not ended, before any other input.
//!
//! ```
//! use tidegate_core::*;
//!
//! let mut core = Core::new(Config::default());
//! let now = Now { time: Time(0), wall: Wall(1_790_000_000_000) };
//! let submit = Submit {
//!     request: RequestId::from_u128(1),
//!     session: SessionId::from_u128(2),
//!     run: RunId::from_u128(3),
//!     body: Fingerprint::from_u128(4),
//!     budget: None,
//!     turn: Turn::Agent,
//!     lane: LaneName::Main,
//!     priority: Priority::Foreground,
//! };
//! let orders: Vec<Output> = core.handle(now, Input::Submit(submit)).collect();
//! // The session is cold: it is loaded first, and nothing was promised yet.
//! assert!(matches!(orders[..], [Output::Load { .. }, Output::Sleep { until: None, .. }]));
//! ```
//!
//! # Where to read on
//!
//! [`Input`] and [`Output`] are the whole surface. Behind it, one file for each subject:
//! `admit` (a message becomes a durable run), `session` (cold, loading, owned, lost), `line`
//! (who waits behind the run at work: the queue modes), `lane` (who works at once), `claim`
//! (who may write), `attempt` (the model call and its limits), `pace` (when text is shown and
//! saved), `settle` (the one door of all ends), `algebra` (which of two ends stands), `reset`
//! (the next generation), `wait`, `abort`, `drain`, `timers`, `check` (what must always hold).

#![no_std]
#![forbid(unsafe_code)]
// A broken invariant is a `Halt`, never a panic; floats and indexing have no place here.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_arithmetic,
    clippy::unreachable,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod abort;
mod admit;
mod algebra;
mod attempt;
mod call;
mod check;
mod claim;
mod config;
mod digest;
mod drain;
mod fallback;
mod halt;
mod ids;
mod input;
mod lane;
mod limits;
mod line;
mod machine;
mod outcome;
mod output;
mod pace;
mod provider;
mod queue;
mod recovery;
mod reset;
mod round;
mod run;
mod session;
mod settle;
mod time;
mod timers;
mod tool;
mod wait;

pub use algebra::{
    AbortSource, AttemptEnd, AttemptKind, AttemptPhase, AttemptTimeout, EndPhase, Ended,
    EventStatus, Liveness, Observation, Reason, RunClass, Status, StopWord, TerminalReceipt,
    TerminalReply, TimeoutPhase, TimeoutSource, Verdict,
};
pub use config::{Budget, Config, DEFAULT_BUDGET_MS, ProviderConfig};
pub use digest::Digest;
pub use halt::{Halt, HaltCode};
pub use ids::{
    Attempt, ContentOwner, Epoch, Fence, Fingerprint, Generation, Handle, OrderKind, Part,
    RequestId, RunId, SessionId, Subject, Ticket,
};
pub use input::{
    AcceptReport, Claim, ClaimReport, ConfigureReport, Input, LoadReport, LookupReport, ModelEnd,
    ModelFact, OpenRun, ResetReport, Scope, SettleReport, StoreError, Submit,
};
pub use lane::{LaneCaps, LaneName, Priority};
pub use machine::{Core, Counts, Drain, SNAPSHOT_SCHEMA, Snapshot, WrongSchema};
pub use outcome::{Failure, Limit, Outcome, Reply, StopReason, Terminal};
pub use output::{Accept, Answer, ClaimOrder, Event, Output, Rejection, WaitResult};
pub use provider::{ErrorClass, Marker, ProviderClass, ProviderError, RetryAfter};
pub use queue::{
    DropPolicy, Place, QueueChange, QueueMode, QueueOverride, QueueSettings, Speaker, Turn,
};
pub use recovery::RecoveryConfig;
pub use round::{Ask, ToolsConfig};
pub use time::{Now, Time, Wall};
pub use timers::{Armed, Timer};
pub use tool::{
    CallEnd, CallFacts, CallId, CallKind, CallResult, Decision, LaunchOrder, LaunchReport, ToolEnd,
    ToolFact,
};
