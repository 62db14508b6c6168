//! What a seed's tools and people are like: whether there are any, how tools end, who decides.
//!
//! Owns the ranges of all that belongs to tool calls. A half of the seeds has none, and is as if
//! there were no tools at all.

use tidegate_core::{Ask, ToolsConfig};

use super::{few, one_of, weights};
use crate::choices::Choices;

/// How a tool does its work, in the order of [`ToolSwarm::ways`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Ok,
    /// With output on its way.
    Talks,
    Failed,
    /// It says that it was stopped though nobody told it to.
    Panics,
    Never,
    /// It talks and never ends.
    TalksForEver,
    JustUnder,
    JustAt,
    JustOver,
}

/// All ways, by index.
pub(crate) const WAYS: [Way; 9] = [
    Way::Ok,
    Way::Talks,
    Way::Failed,
    Way::Panics,
    Way::Never,
    Way::TalksForEver,
    Way::JustUnder,
    Way::JustAt,
    Way::JustOver,
];

/// How a tool takes a stop, in the order of [`ToolSwarm::stops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnStop {
    Prompt,
    /// In the same instant it ends by itself.
    EndsItself,
    /// Within twice the time that its stop is waited for.
    Late,
    /// Exactly when nobody waits any more.
    AtBound,
    Never,
}

/// All ways to take a stop, by index.
pub(crate) const STOPS: [OnStop; 5] = [
    OnStop::Prompt,
    OnStop::EndsItself,
    OnStop::Late,
    OnStop::AtBound,
    OnStop::Never,
];

/// What people say to a question, in the order of [`ToolSwarm::people`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Person {
    Allows,
    Denies,
    AllowsLate,
    Never,
    /// The same word twice.
    Repeats,
    /// One word, then the other.
    ChangesMind,
    AtExpiry,
}

/// All of them, by index.
pub(crate) const PEOPLE: [Person; 7] = [
    Person::Allows,
    Person::Denies,
    Person::AllowsLate,
    Person::Never,
    Person::Repeats,
    Person::ChangesMind,
    Person::AtExpiry,
];

/// The character of a seed's tools.
#[derive(Clone, Debug)]
pub(crate) struct ToolSwarm {
    /// So many of eight answers ask for calls; 0: there are no tools.
    pub(crate) asks: u64,
    /// Most calls of an answer.
    pub(crate) calls: u64,
    /// So many of four calls act outside.
    pub(crate) guarded: u64,
    /// Whether some calls name no tool, or have wrong arguments.
    pub(crate) odd: bool,
    pub(crate) ways: [u64; WAYS.len()],
    pub(crate) stops: [u64; STOPS.len()],
    pub(crate) people: [u64; PEOPLE.len()],
    /// Whether a tool outlives its process.
    pub(crate) orphans: bool,
}

/// How tool calls are carried out.
pub(super) fn config(choices: &mut dyn Choices) -> ToolsConfig {
    ToolsConfig {
        ask: match choices.chance(1, 3, "ask off") {
            true => Ask::Off,
            false => Ask::Always,
        },
        approval_ms: one_of(choices, &[120_000, 5_000, 30_000], "approval"),
        timeout_ms: one_of(choices, &[60_000, 3_000, 20_000], "tool limit"),
        cancel_ms: one_of(choices, &[10_000, 500, 40_000], "tool cancel"),
        calls_max: few(one_of(choices, &[32, 2, 1, 3], "calls max")),
        rounds_max: few(one_of(choices, &[256, 1, 3, 2], "rounds max")),
    }
}

impl ToolSwarm {
    pub(super) fn draw(choices: &mut dyn Choices) -> Self {
        let on = choices.chance(1, 2, "tools");
        Self {
            asks: match on {
                true => one_of(choices, &[4, 2, 7], "asks"),
                false => 0,
            },
            calls: choices.between(1, 4, "calls"),
            guarded: one_of(choices, &[1, 0, 3], "guarded"),
            odd: choices.chance(1, 2, "odd calls"),
            ways: weights(choices, 16, "tool ways"),
            stops: weights(choices, 8, "tool stops"),
            people: weights(choices, 8, "people"),
            orphans: choices.chance(1, 2, "orphans"),
        }
    }

    /// The drawn values, by name.
    pub(super) fn header(&self, config: &ToolsConfig) -> Vec<(&'static str, u64)> {
        let mut header = vec![
            ("answers that ask for tools, of eight", self.asks),
            ("most calls of an answer", self.calls),
            ("guarded calls of four", self.guarded),
            ("odd calls", u64::from(self.odd)),
            ("tools outlive the process", u64::from(self.orphans)),
            ("guarded calls ask", u64::from(config.ask == Ask::Always)),
            ("approval ms", config.approval_ms),
            ("tool limit ms", config.timeout_ms),
            ("tool cancel ms", config.cancel_ms),
            ("calls max", u64::from(config.calls_max)),
            ("rounds max", u64::from(config.rounds_max)),
        ];
        header.extend(WAY_NAMES.into_iter().zip(self.ways));
        header.extend(STOP_NAMES.into_iter().zip(self.stops));
        header.extend(PEOPLE_NAMES.into_iter().zip(self.people));
        header
    }
}

const WAY_NAMES: [&str; WAYS.len()] = [
    "tool succeeds",
    "tool talks and succeeds",
    "tool fails",
    "tool says that it was stopped",
    "tool never ends",
    "tool talks and never ends",
    "tool ends just under its limit",
    "tool ends exactly at its limit",
    "tool ends just over its limit",
];

const STOP_NAMES: [&str; STOPS.len()] = [
    "stop prompt",
    "stop meets an end",
    "stop late",
    "stop exactly at the bound",
    "stop never",
];

const PEOPLE_NAMES: [&str; PEOPLE.len()] = [
    "person allows",
    "person denies",
    "person allows late",
    "person says nothing",
    "person repeats",
    "person changes their mind",
    "person decides at the expiry",
];
