//! Every number that decides behaviour, with its unit, its default and its source.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::lane::LaneCaps;
use crate::provider::ProviderClass;
use crate::queue::QueueSettings;
use crate::recovery::RecoveryConfig;
use crate::round::ToolsConfig;

/// A limit of executed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Budget {
    /// This many milliseconds.
    Limited(u64),
    /// No limit; the idle and lane limits remain (R151).
    Unlimited,
}

/// What the core knows of the model provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProviderConfig {
    /// Where it runs.
    pub class: ProviderClass,
    /// `models.providers.<id>.timeoutSeconds`, in milliseconds (R157).
    pub timeout_ms: Option<u64>,
}

/// The configuration of a [`Core`](crate::Core). Part of its state and of every snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Config {
    /// The model provider that a run asks first.
    pub provider: ProviderConfig,
    /// Those that it asks when that one can't answer, in their order (P15). At most 65,535.
    pub fallbacks: Vec<ProviderConfig>,
    /// When a failed call is made again.
    pub recovery: RecoveryConfig,
    /// How tool calls are carried out.
    pub tools: ToolsConfig,
    /// `agents.defaults.timeoutSeconds` where it was set, in milliseconds (R149, R157).
    pub agent_budget: Option<Budget>,
    /// Runs at work at once over all sessions (R15; spec 2.1: at least 8, 4 for each core).
    pub global_lane_cap: u32,
    /// Runs at work at once in the other global lanes (spec 2.1).
    pub lanes: LaneCaps,
    /// How sessions queue that set nothing for themselves (spec 3).
    pub queue: QueueSettings,
    /// However closely messages follow each other, a quiet queue is waited for no longer than so
    /// many times its debounce (decisions: bounded debounce).
    pub queue_debounces_max: u32,
    /// A lane slot is freed this long after its run was interrupted by a later message (spec
    /// 3.1, row 10).
    pub interrupt_settle_ms: u64,
    /// Longer waits for a lane are told when they end; 0 tells none (spec 2.2, B-005).
    pub lane_warn_ms: u64,
    /// How long a call may stay open without data after the provider said that the model
    /// finished; then it is closed and the run completed (S-08, decisions: finish tail).
    pub finish_tail_ms: u64,
    /// A lane slot is freed this long after its run's limit or abort (spec 2.3).
    pub lane_grace_ms: u64,
    /// The limit of a wait that names none (R145).
    pub wait_default_ms: u64,
    /// How long a wait whose limit has passed still waits for the store's word on a run that
    /// the core does not hold (decisions: peek).
    pub wait_lookup_ms: u64,
    /// The least time between two text events of a run; the first goes at once (spec 10.2, L18).
    pub text_pace_ms: u64,
    /// The least time between two saves of streamed text (design section 5).
    pub save_pace_ms: u64,
    /// A wake later than this shifts the activity limits by the lateness (design section 3).
    pub lateness_ms: u64,
    /// How long a drain that names no budget waits for the runs at work (spec 2.5).
    pub drain_budget_ms: u64,
    /// After a late wake no silence of a provider counts sooner than this: a peer that slept with us,
    /// or waited for us, has time to be heard (B-103, decisions: resume grace).
    pub resume_grace_ms: u64,
    /// First wait before a refused store order is given again; doubles up to the next (decisions: store retry).
    pub store_retry_ms: u64,
    /// Longest wait before a refused store order is given again.
    pub store_retry_max_ms: u64,
    /// Runs that may wait behind the active one of a session. Beyond: refused (law 9).
    pub session_queue_cap: u32,
    /// Inputs that may wait for a session to be loaded. Beyond: refused (law 9).
    pub load_queue_cap: u32,
    /// Runs that may be held at once, over all sessions. Beyond: refused (law 9).
    pub live_runs_cap: u32,
    /// Waits that may be open at once. Beyond: refused (law 9).
    pub waits_cap: u32,
    /// Aborts that may wait for their runs' ends at once. Beyond: refused (law 9).
    pub aborts_cap: u32,
    /// Requests that may wait for one run's final answer. Beyond: refused (law 9).
    pub callers_cap: u32,
    /// The most bytes of reply that a run may produce (law 9).
    pub reply_cap_bytes: u64,
}

/// The run budget where nothing sets one: 48 hours (R149).
pub const DEFAULT_BUDGET_MS: u64 = 172_800_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            provider: ProviderConfig {
                class: ProviderClass::Cloud,
                timeout_ms: None,
            },
            fallbacks: Vec::new(),
            recovery: RecoveryConfig::default(),
            tools: ToolsConfig::default(),
            agent_budget: None,
            global_lane_cap: 8,
            lanes: LaneCaps::default(),
            queue: QueueSettings::default(),
            queue_debounces_max: 8,
            interrupt_settle_ms: 15_000,
            lane_warn_ms: 2_000,
            finish_tail_ms: 60_000,
            lane_grace_ms: 30_000,
            wait_default_ms: 30_000,
            wait_lookup_ms: 1_000,
            text_pace_ms: 75,
            save_pace_ms: 250,
            lateness_ms: 1_000,
            drain_budget_ms: 300_000,
            resume_grace_ms: 10_000,
            store_retry_ms: 1_000,
            store_retry_max_ms: 30_000,
            session_queue_cap: 256,
            load_queue_cap: 256,
            live_runs_cap: 16_384,
            waits_cap: 16_384,
            aborts_cap: 1_024,
            callers_cap: 64,
            reply_cap_bytes: 8 * 1024 * 1024,
        }
    }
}
