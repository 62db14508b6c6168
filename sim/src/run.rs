//! One run of the world, from a seed or from recorded choices, and what it reports.

use std::hash::Hasher;

use tidegate_core::{Config, Input, Now, Output};

use crate::check::{Ledger, Transitions};
use crate::choices::{Choices, Seeded};
use crate::coverage::Operations;
use crate::fault::Fault;
use crate::marks::Marks;
use crate::violation::Violation;
use crate::world::World;

/// How to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A fault to plant around the core.
    pub fault: Option<Fault>,
}

/// One input and what followed from it, as a watcher sees it. Outputs stand here as they were
/// ordered; a process that died among them carried out only the first ones.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The input's index, from 1.
    pub index: u64,
    /// When.
    pub now: Now,
    /// Which life of the process, from 0.
    pub life: u32,
    /// The input.
    pub input: &'a Input,
    /// The outputs, in order.
    pub outputs: &'a [Output],
}

/// Somebody who looks on.
pub type Watch<'a> = dyn FnMut(&Step<'_>) + 'a;

/// What a run was like and what it found.
#[derive(Clone, Debug)]
pub struct Report {
    /// A digest of all inputs and outputs with their times: the same choices, the same digest.
    pub digest: u64,
    /// Inputs handed to the core.
    pub inputs: u64,
    /// Messages that clients sent.
    pub messages: u64,
    /// Simulated time in milliseconds.
    pub simulated_ms: u64,
    /// What the checkers found, in order; a run ends with the first step that finds anything.
    pub violations: Vec<Violation>,
    /// The drawn configuration of the core.
    pub config: Config,
    /// The drawn character of the run, by name.
    pub header: Vec<(&'static str, u64)>,
    /// What was reached.
    pub marks: Marks,
    /// Which inputs and outputs there were.
    pub operations: Operations,
    /// Which steps runs took.
    pub transitions: Transitions,
    /// What became of each accepted message.
    pub ledger: Ledger,
}

/// Runs the standard run of a seed.
#[must_use]
pub fn run_seed(seed: u64, options: &Options) -> Report {
    run_choices(&mut Seeded::new(seed), options, None)
}

/// Runs with any source of choices. `watch` sees every step.
pub fn run_choices<'a>(
    choices: &'a mut dyn Choices,
    options: &Options,
    watch: Option<&'a mut Watch<'a>>,
) -> Report {
    let mut world = World::new(choices, options.fault, watch);
    world.run();
    world.marks.add(&world.checks.retries.reached);
    world.marks.add(&world.checks.tools.reached);
    Report {
        digest: world.digest.finish(),
        inputs: world.inputs,
        messages: world.clients.messages() as u64,
        simulated_ms: world.now,
        config: world.swarm.config.clone(),
        header: world.swarm.header(),
        violations: std::mem::take(&mut world.violations),
        marks: std::mem::take(&mut world.marks),
        operations: std::mem::take(&mut world.operations),
        transitions: std::mem::take(&mut world.checks.states.transitions),
        ledger: std::mem::take(&mut world.checks.ledger),
    }
}
