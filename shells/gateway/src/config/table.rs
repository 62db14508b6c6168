//! Every key of the configuration: one table, from which reading, `config check`, `config
//! show`, `config schema` and the book are made, so that they cannot drift.
//!
//! It owns names, kinds, defaults and their words. It reads nothing.

use std::num::NonZero;

use tidegate_core::{Config, DEFAULT_BUDGET_MS, LaneCaps, QueueSettings, RecoveryConfig};
use tidegate_text as text;

pub use super::kind::Kind;
use crate::cli::DEFAULT_PORT;

/// The longest limit of time that the file may set, in seconds: a year.
pub const LONGEST_SECONDS: u64 = 31_536_000;

/// Runs at work at once: at least this many, and so many for each core (spec 2.1, R15).
const LEAST_LANE: u64 = 8;
const LANE_A_CORE: u64 = 4;

/// How often a run may ask its model again at most (spec 5.2).
pub const MOST_RETRIES: u64 = 9;

/// The models that are asked after the first choice.
pub const FALLBACKS: &str = "agents.defaults.model.fallbacks[]";

/// How many of them there may be.
pub const MOST_FALLBACKS: usize = 8;

/// What holds where nothing sets a key.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// Nothing.
    Unset,
    /// This word.
    Word(&'static str),
    /// This choice.
    Choice(fn() -> &'static str),
    /// This number.
    Whole(fn() -> u64),
    /// This number, which depends on the machine; the words tell how.
    Machine(fn() -> u64, &'static str),
}

/// Puts a value into the core's configuration.
pub type Slot = fn(&mut Config, u64);

/// A key that can be set.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it stands: names joined by dots; `*` is any name, `[]` any item of a list.
    pub path: &'static str,
    /// What it must be.
    pub kind: Kind,
    /// What holds without it.
    pub default: Default,
    /// Whether the object that may hold it must hold it.
    pub is_needed: bool,
    /// The flag that wins over the file and the variable.
    pub flag: Option<&'static str>,
    /// The variable that wins over the file.
    pub variable: Option<&'static str>,
    /// Where its value goes, for a limit of the core.
    pub slot: Option<Slot>,
    /// What it means.
    pub says: &'static str,
}

/// A key of older configurations: accepted, without effect, with a warning.
#[derive(Clone, Copy, Debug)]
pub struct Retired {
    /// Where it stood; what stood beneath it is retired with it.
    pub path: &'static str,
    /// What there is instead.
    pub instead: &'static str,
}

/// An object that may be written as the value of one of its keys.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// The object.
    pub path: &'static str,
    /// The key.
    pub name: &'static str,
}

const fn key(path: &'static str, kind: Kind, default: Default, says: &'static str) -> Key {
    Key {
        path,
        kind,
        default,
        is_needed: false,
        flag: None,
        variable: None,
        slot: None,
        says,
    }
}

const fn whole(min: u64, max: u64, unit: &'static str) -> Kind {
    Kind::Whole { min, max, unit }
}

/// A limit of the core: its default is the core's own.
macro_rules! limit {
    ($name:literal, $field:ident, $min:literal..=$max:literal, $unit:literal, $says:literal) => {
        Key {
            slot: Some(|config, value| config.$field = fitted(value)),
            ..key(
                concat!("tidegate.limits.", $name),
                whole($min, $max, $unit),
                Default::Whole(|| Config::default().$field.into()),
                $says,
            )
        }
    };
}

/// A checked value in the type of its slot.
fn fitted<T: TryFrom<u64>>(value: u64) -> T {
    let fits = T::try_from(value).ok();
    fits.expect("the range of a limit lies within the type of its slot")
}

/// The keys, in the order of the book.
pub const KEYS: &[Key] = &[
    key(
        "$schema",
        Kind::Text,
        Default::Unset,
        "Where an editor finds the schema that `tidegate config schema` prints. Not read.",
    ),
    key(
        "gateway.mode",
        Kind::Word {
            only: "local",
            known: &["remote"],
            missing: "a client finds a gateway elsewhere by --url, not by the configuration",
        },
        Default::Word("local"),
        "Where the gateway runs: on this machine.",
    ),
    Key {
        flag: Some("--port"),
        variable: Some("TIDEGATE_GATEWAY_PORT"),
        ..key(
            "gateway.port",
            whole(1, 65_535, ""),
            Default::Whole(|| u64::from(DEFAULT_PORT)),
            "The port of WebSocket and HTTP. Client commands look for the gateway there too.",
        )
    },
    key(
        "gateway.bind",
        Kind::Word {
            only: "loopback",
            known: &["lan", "tailnet", "auto", "custom"],
            missing: "this version listens on 127.0.0.1 only, because it speaks no TLS and knows \
                      no devices; reach it from elsewhere through a tunnel, for example ssh -L",
        },
        Default::Word("loopback"),
        "The addresses to listen on: 127.0.0.1.",
    ),
    key(
        "gateway.auth.mode",
        Kind::Word {
            only: "token",
            known: &["password", "none", "trusted-proxy"],
            missing: "this version lets clients in by a token only",
        },
        Default::Word("token"),
        "How clients prove themselves: by the token.",
    ),
    Key {
        flag: Some("--token"),
        variable: Some("TIDEGATE_GATEWAY_TOKEN"),
        ..key(
            "gateway.auth.token",
            Kind::Secret,
            Default::Unset,
            "The token that clients must show. Without it: the one in the state directory, made \
             at the first start.",
        )
    },
    Key {
        is_needed: true,
        flag: Some("--provider-url"),
        ..key(
            "models.providers.*.baseUrl",
            Kind::Text,
            Default::Unset,
            "The provider's address, up to and with /v1. Every provider needs one.",
        )
    },
    Key {
        variable: Some("TIDEGATE_PROVIDER_KEY"),
        ..key(
            "models.providers.*.apiKey",
            Kind::Secret,
            Default::Unset,
            "The key that is sent to the provider. The variable counts for the provider of the \
             first choice.",
        )
    },
    key(
        "models.providers.*.api",
        Kind::Word {
            only: "openai-completions",
            known: &[
                "openai-responses",
                "openai-chatgpt-responses",
                "anthropic-messages",
                "google-generative-ai",
                "google-vertex",
                "github-copilot",
                "bedrock-converse-stream",
                "ollama",
                "azure-openai-responses",
            ],
            missing: "this version speaks chat completions only; many providers have an address \
                      for that",
        },
        Default::Word("openai-completions"),
        "The dialect that the provider speaks.",
    ),
    Key {
        flag: Some("--provider-timeout"),
        ..key(
            "models.providers.*.timeoutSeconds",
            whole(1, LONGEST_SECONDS, "s"),
            Default::Unset,
            "A model call without progress for so long is given up. Without it: 120 for a server \
             in the cloud, 300 for a self-hosted one; a local one has 300 to begin and no limit \
             after that.",
        )
    },
    Key {
        is_needed: true,
        ..key(
            "models.providers.*.models[].id",
            Kind::Text,
            Default::Unset,
            "A model of the provider. Where models are listed, only they can be used.",
        )
    },
    Key {
        flag: Some("--provider-retries"),
        slot: Some(|config, value| config.recovery = RecoveryConfig::at_most(fitted(value))),
        ..key(
            "retry.provider.maxRetries",
            whole(0, MOST_RETRIES, "times"),
            Default::Unset,
            "How often a run asks its model again after a call that failed for a while; 0 is \
             never. Without it: 8 times, and 9 where the provider limits the rate.",
        )
    },
    Key {
        flag: Some("--model"),
        ..key(
            "agents.defaults.model.primary",
            Kind::ModelName,
            Default::Unset,
            "The model that answers. Without it: the built-in demo model.",
        )
    },
    key(
        FALLBACKS,
        Kind::ModelName,
        Default::Unset,
        "The models that are asked when the one before can't answer, in their order; at most 8. \
         With --provider-url none of them is.",
    ),
    key(
        "agents.defaults.timeoutSeconds",
        whole(0, LONGEST_SECONDS, "s"),
        Default::Whole(|| DEFAULT_BUDGET_MS / 1_000),
        "The time of work after which a run is ended; 0 is no limit.",
    ),
    Key {
        slot: Some(|config, value| config.global_lane_cap = fitted(value)),
        ..key(
            "agents.defaults.maxConcurrent",
            whole(1, 1_024, "runs"),
            Default::Machine(lane, "4 for each processor core, at least 8"),
            "Runs at work at once over all sessions; further ones wait.",
        )
    },
    Key {
        slot: Some(|config, value| config.lanes.subagent = fitted(value)),
        ..key(
            "agents.defaults.subagents.maxConcurrent",
            whole(1, 1_024, "runs"),
            Default::Whole(|| u64::from(LaneCaps::default().subagent)),
            "Runs at work at once in the lane `subagent`, over all sessions.",
        )
    },
    key(
        "agents.defaults.workspace",
        Kind::Directory,
        Default::Unset,
        "The directory in which tools work. Without it: `workspace` in the state directory, made \
         when it is needed.",
    ),
    key(
        "tools.exec.security",
        Kind::OneOf {
            words: &["deny", "full"],
            known: &["allowlist"],
            missing: "this version keeps no list of allowed commands; with \"full\" and \
                      tools.exec.ask \"always\" you decide on each",
        },
        Default::Word("deny"),
        "Whether the model is offered the tool `exec`, which runs shell commands as the user who \
         runs the gateway: not at all (deny), or any command (full). See [tools](tools.md).",
    ),
    key(
        "tools.exec.ask",
        Kind::OneOf {
            words: &["always", "off"],
            known: &["on-miss"],
            missing: "this version keeps no list of allowed commands that one could miss",
        },
        Default::Word("always"),
        "Whether a person must allow each command before it runs. Without an answer within 30 \
         minutes it does not run.",
    ),
    Key {
        slot: Some(|config, seconds| config.tools.timeout_ms = seconds.saturating_mul(1_000)),
        ..key(
            "tools.exec.timeoutSec",
            whole(1, 86_400, "s"),
            Default::Whole(|| Config::default().tools.timeout_ms / 1_000),
            "The time after which a command is stopped; a call may ask for less.",
        )
    },
    key(
        "messages.queue.mode",
        Kind::QueueMode,
        Default::Choice(|| text::queue_mode_name(queue().mode)),
        "What a message does whose session is busy: it steers the run at work, gets a run of its \
         own afterwards, is collected with the others that wait, or interrupts. `/queue` in a \
         chat sets it for one session or message.",
    ),
    Key {
        slot: Some(|config, value| config.queue.debounce_ms = fitted(value)),
        ..key(
            "messages.queue.debounceMs",
            whole(0, text::DEBOUNCE_MAX_MS, "ms"),
            Default::Whole(|| queue().debounce_ms),
            "How long a session must have been quiet before what waits there goes on.",
        )
    },
    Key {
        slot: Some(|config, value| config.queue.cap = fitted(value)),
        ..key(
            "messages.queue.cap",
            whole(1, text::QUEUE_CAP_MAX as u64, "messages"),
            Default::Whole(|| queue().cap.into()),
            "The most messages that may wait in a session.",
        )
    },
    key(
        "messages.queue.drop",
        Kind::DropPolicy,
        Default::Choice(|| text::drop_policy_name(queue().drop)),
        "What gives way beyond that: the oldest message, with a line of it for the model \
         (summarize) or without (old), or the newcomer (new). Whoever sent it is told.",
    ),
    limit!(
        "sessionQueueCap",
        session_queue_cap,
        1..=65_536,
        "runs",
        "Runs that may wait behind the active one of a session. Beyond: refused."
    ),
    limit!(
        "loadQueueCap",
        load_queue_cap,
        1..=65_536,
        "requests",
        "Requests that may wait for a session to be read from the store. Beyond: refused."
    ),
    limit!(
        "liveRunsCap",
        live_runs_cap,
        1..=1_048_576,
        "runs",
        "Runs that may be waiting or at work, over all sessions. Beyond: refused."
    ),
    limit!(
        "waitsCap",
        waits_cap,
        1..=1_048_576,
        "waits",
        "Calls of agent.wait that may be open. Beyond: refused."
    ),
    limit!(
        "abortsCap",
        aborts_cap,
        1..=65_536,
        "aborts",
        "Aborts that may wait for the ends of their runs. Beyond: refused."
    ),
    limit!(
        "callersCap",
        callers_cap,
        1..=4_096,
        "requests",
        "Requests that may wait for the final answer of one run. Beyond: refused."
    ),
    limit!(
        "drainBudgetMs",
        drain_budget_ms,
        0..=86_400_000,
        "ms",
        "How long a stop waits for the runs at work; what is still open then goes on after the \
         next start."
    ),
    key(
        "tidegate.limits.supervisorStopMs",
        whole(1, 86_400_000, "ms"),
        Default::Unset,
        "When whoever stops the gateway kills it, counted from the stop signal (systemd: \
         TimeoutStopSec). A stop then waits for the runs at work until 15 s before that at most. \
         Without it: drainBudgetMs alone; a systemd that is told of the stop waits for it.",
    ),
    limit!(
        "replyCapBytes",
        reply_cap_bytes,
        1_024..=16_777_216,
        "bytes",
        "The longest reply of a run. A longer one ends the run as failed."
    ),
    limit!(
        "textPaceMs",
        text_pace_ms,
        0..=10_000,
        "ms",
        "The least time between two text events of a run; the first goes at once."
    ),
    limit!(
        "savePaceMs",
        save_pace_ms,
        1..=60_000,
        "ms",
        "The least time between two saves of a reply that is still growing."
    ),
    limit!(
        "finishTailMs",
        finish_tail_ms,
        1..=3_600_000,
        "ms",
        "A call that the provider keeps open after its model finished is closed after this."
    ),
    limit!(
        "laneGraceMs",
        lane_grace_ms,
        1..=3_600_000,
        "ms",
        "The slot of a run that was stopped and does not end is freed after this."
    ),
    limit!(
        "waitDefaultMs",
        wait_default_ms,
        0..=86_400_000,
        "ms",
        "The limit of a call of agent.wait that names none."
    ),
    limit!(
        "storeRetryMs",
        store_retry_ms,
        1..=3_600_000,
        "ms",
        "The first pause before a write that the store refused is tried again. It doubles."
    ),
    limit!(
        "storeRetryMaxMs",
        store_retry_max_ms,
        1..=3_600_000,
        "ms",
        "The longest such pause. Not below storeRetryMs."
    ),
];

/// The keys of older configurations (spec 18.1, D1, D2, D13; surface 6).
pub const RETIRED: &[Retired] = &[
    Retired {
        path: "session.writeLock",
        instead: "a run claims its session when it starts, and every write checks the claim; \
                  there is no lock to wait for",
    },
    Retired {
        path: "session.store",
        instead: "sessions are kept in the database of the state directory (--state-dir)",
    },
    Retired {
        path: "session.mainKey",
        instead: "the main session's key is always \"main\"",
    },
    Retired {
        path: "diagnostics.stuckSessionWarnMs",
        instead: "the limits of a silent run are built in; see models.providers.*.timeoutSeconds \
                  and agents.defaults.timeoutSeconds",
    },
    Retired {
        path: "diagnostics.stuckSessionAbortMs",
        instead: "the limits of a silent run are built in; see models.providers.*.timeoutSeconds \
                  and agents.defaults.timeoutSeconds",
    },
];

/// The objects with a short form (surface 6).
pub const SHORTS: &[Short] = &[Short {
    path: "agents.defaults.model",
    name: "primary",
}];

/// How a session queues where nothing says otherwise.
fn queue() -> QueueSettings {
    Config::default().queue
}

/// Spec 2.1: four runs for each core, and never fewer than eight.
fn lane() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let cores = u64::try_from(cores).unwrap_or(1);
    LEAST_LANE.max(cores.saturating_mul(LANE_A_CORE)).min(1_024)
}
