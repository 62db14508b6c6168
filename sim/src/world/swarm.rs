//! What a seed is like: its configuration, its load and the faults that are on.
//!
//! Owns the ranges. Every seed draws all of it first, switches a part of the faults and of
//! the clients' acts off altogether, and gives the rest wildly different weights, so that
//! seeds differ in character and not only in detail.

pub(crate) mod tools;

use tidegate_core::{
    Budget, Config, LaneCaps, ProviderClass, ProviderConfig, QueueSettings, RecoveryConfig,
};

use self::tools::ToolSwarm;
use super::clients::{DROPS, LANES, MODES};
use crate::choices::Choices;

/// Clients' acts, in the order of [`Swarm::acts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Submit,
    Burst,
    Repeat,
    RepeatOther,
    Wait,
    WaitUnknown,
    AbortRun,
    AbortSession,
    AbortWrong,
    Leave,
    AbortQueued,
    AbortAtWork,
    Reset,
    Configure,
    /// A person decides on a call that may not wait for that any more.
    Decide,
}

/// All acts, by index.
pub(crate) const ACTS: [Act; 15] = [
    Act::Submit,
    Act::Burst,
    Act::Repeat,
    Act::RepeatOther,
    Act::Wait,
    Act::WaitUnknown,
    Act::AbortRun,
    Act::AbortSession,
    Act::AbortWrong,
    Act::Leave,
    Act::AbortQueued,
    Act::AbortAtWork,
    Act::Reset,
    Act::Configure,
    Act::Decide,
];

/// How a provider may answer, in the order of [`Swarm::scripts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Answer,
    Reasoning,
    Drip,
    StallUnder,
    StallExact,
    StallOver,
    SilentFirst,
    SilentLater,
    AliveOnly,
    Reset,
    Incomplete,
    Error,
    Refused,
    Flood,
    FinishedOpen,
    /// Too many requests.
    Limited,
    /// Refused credentials.
    Denied,
}

/// All scripts, by index.
pub(crate) const SCRIPTS: [Script; 17] = [
    Script::Answer,
    Script::Reasoning,
    Script::Drip,
    Script::StallUnder,
    Script::StallExact,
    Script::StallOver,
    Script::SilentFirst,
    Script::SilentLater,
    Script::AliveOnly,
    Script::Reset,
    Script::Incomplete,
    Script::Error,
    Script::Refused,
    Script::Flood,
    Script::FinishedOpen,
    Script::Limited,
    Script::Denied,
];

/// How a provider may answer for all its life; the first is as drawn for each call.
const TEMPERS: [Option<Script>; 7] = [
    None,
    Some(Script::SilentFirst),
    Some(Script::Denied),
    Some(Script::Refused),
    Some(Script::Limited),
    Some(Script::SilentLater),
    Some(Script::Error),
];

/// The most providers behind the first one.
const FALLBACKS: u64 = 3;

/// How a provider takes a cancel, in the order of [`Swarm::cancels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCancel {
    Prompt,
    LateEnd,
    LateText,
    Never,
}

/// All ways, by index.
pub(crate) const CANCELS: [OnCancel; 4] = [
    OnCancel::Prompt,
    OnCancel::LateEnd,
    OnCancel::LateText,
    OnCancel::Never,
];

/// The character of one seed.
#[derive(Clone, Debug)]
pub(crate) struct Swarm {
    pub(crate) config: Config,
    /// Sessions that clients write to.
    pub(crate) sessions: u64,
    /// Longest pause between two acts of the clients.
    pub(crate) act_gap_ms: u64,
    pub(crate) acts: [u64; ACTS.len()],
    pub(crate) scripts: [u64; SCRIPTS.len()],
    /// How each provider of the chain answers for all its life, where that is one way.
    tempers: Vec<Option<Script>>,
    pub(crate) cancels: [u64; CANCELS.len()],
    /// Most chunks of an answer.
    pub(crate) chunks: u64,
    /// Longest pause between two chunks.
    pub(crate) chunk_gap_ms: u64,
    /// Longest time of one group commit.
    pub(crate) commit_ms: u64,
    /// Longest way of a report.
    pub(crate) report_ms: u64,
    /// Windows in which the store refuses.
    pub(crate) refusals: u64,
    /// Longest such window.
    pub(crate) refusal_ms: u64,
    /// How often the model is out of order: every call fails alike.
    pub(crate) outages: u64,
    /// Longest such time.
    pub(crate) outage_ms: u64,
    /// How often the process is killed.
    pub(crate) kills: u64,
    /// Whether a kill is a loss of power: unsynced saves go with it.
    pub(crate) power: bool,
    /// Longest time until it is started again.
    pub(crate) down_ms: u64,
    /// How often the process is told to end in order.
    pub(crate) drains: u64,
    /// How often the loop stands still.
    pub(crate) freezes: u64,
    /// Longest such time.
    pub(crate) freeze_ms: u64,
    /// How often the wall clock is set.
    pub(crate) wall_jumps: u64,
    /// Latest that a tick comes after its time.
    pub(crate) jitter_ms: u64,
    /// Whether reports of the store may come twice.
    pub(crate) repeats: bool,
    /// How often another process takes a session's lease.
    pub(crate) leases: u64,
    /// Longest time that it keeps it.
    pub(crate) lease_ms: u64,
    /// How often another process writes under the lease that is ours.
    pub(crate) intruders: u64,
    /// Whether the core is driven in odd but legal ways: restored from a snapshot, drained in
    /// two parts, told a time that goes back.
    pub(crate) odd_driver: bool,
    /// Sessions whose provider stays silent for ever, from the heal on.
    pub(crate) victims: u64,
    /// One in so many messages names its own limit; 0 for none.
    pub(crate) own_budget: u64,
    /// So many of four messages are of a conversation.
    pub(crate) chats: u64,
    /// Weights of a conversation's messages: none named, then the modes in their order.
    pub(crate) modes: [u64; MODES.len() + 1],
    /// Routes that messages come by.
    pub(crate) routes: u64,
    /// Whether rooms and heartbeats speak.
    pub(crate) speakers: bool,
    /// Weights of the global lanes.
    pub(crate) lanes: [u64; LANES.len()],
    /// What tools and the people who are asked are like.
    pub(crate) tools: ToolSwarm,
}

/// Reports of one session keep their order, a millisecond apart.
const REPORTS_AHEAD_MS: u64 = 300;

/// One of a few values.
fn one_of(choices: &mut dyn Choices, values: &[u64], label: &'static str) -> u64 {
    let at = choices.pick(values.len() as u64, label);
    usize::try_from(at)
        .ok()
        .and_then(|at| values.get(at))
        .copied()
        .unwrap_or_default()
}

/// Weights of which about a half are 0 and the others differ by up to 16 times. The first is
/// never 0: it is the plain case.
fn weights<const N: usize>(choices: &mut dyn Choices, plain: u64, label: &'static str) -> [u64; N] {
    let mut weights = [0; N];
    for (index, weight) in weights.iter_mut().enumerate() {
        if index == 0 {
            *weight = plain;
        } else if choices.chance(1, 2, label) {
            *weight = 1 << choices.pick(5, label);
        }
    }
    weights
}

/// All messages are for the main lane.
fn plain_lanes() -> [u64; LANES.len()] {
    let mut lanes = [0; LANES.len()];
    lanes[0] = 1;
    lanes
}

impl Swarm {
    /// Draws a seed's character.
    pub(crate) fn draw(choices: &mut dyn Choices) -> Self {
        choices.begin("swarm");
        let config = config(choices);
        let tempers = tempers(choices, config.fallbacks.len());
        let swarm = Self {
            sessions: choices.between(3, 6, "sessions"),
            act_gap_ms: one_of(choices, &[15_000, 25_000, 8_000], "act gap"),
            acts: weights(choices, 24, "acts"),
            scripts: weights(choices, 24, "scripts"),
            tempers,
            cancels: weights(choices, 8, "cancels"),
            chunks: one_of(choices, &[12, 4, 24], "chunks"),
            chunk_gap_ms: one_of(choices, &[60, 400, 5, 2_000], "chunk gap"),
            commit_ms: one_of(choices, &[5, 1, 60, 1_500], "commit"),
            report_ms: one_of(choices, &[0, 2, 40], "report"),
            refusals: one_of(choices, &[0, 0, 1, 3], "refusals"),
            refusal_ms: one_of(choices, &[5_000, 500, 40_000, 200_000], "refusal"),
            outages: one_of(choices, &[0, 1, 0, 3], "outages"),
            outage_ms: one_of(choices, &[20_000, 200_000, 3_000], "outage"),
            kills: one_of(choices, &[0, 0, 1, 2, 4], "kills"),
            power: choices.chance(1, 2, "power"),
            down_ms: one_of(choices, &[200, 5_000, 60_000], "down"),
            drains: one_of(choices, &[0, 0, 1, 2], "drains"),
            freezes: one_of(choices, &[0, 0, 1, 3], "freezes"),
            freeze_ms: one_of(choices, &[900, 5_000, 120_000], "freeze"),
            wall_jumps: one_of(choices, &[0, 0, 2], "wall jumps"),
            jitter_ms: one_of(choices, &[0, 0, 15], "jitter"),
            repeats: choices.chance(1, 3, "repeats"),
            leases: one_of(choices, &[0, 0, 1, 3], "leases"),
            lease_ms: one_of(choices, &[3_000, 30_000, 200_000], "lease"),
            intruders: one_of(choices, &[0, 0, 0, 2], "intruders"),
            odd_driver: choices.chance(1, 4, "odd driver"),
            victims: one_of(choices, &[0, 1, 1, 2], "victims"),
            own_budget: one_of(choices, &[0, 5, 2], "own budget"),
            chats: one_of(choices, &[0, 4, 3, 2], "chats"),
            modes: weights(choices, 4, "modes"),
            routes: one_of(choices, &[1, 1, 2], "routes"),
            speakers: choices.chance(1, 2, "speakers"),
            lanes: match choices.chance(1, 2, "lanes") {
                true => weights(choices, 16, "lanes"),
                false => plain_lanes(),
            },
            tools: ToolSwarm::draw(choices),
            config,
        };
        choices.end();
        swarm
    }

    /// How a provider answers, if it does so for all its life.
    pub(crate) fn temper(&self, candidate: u16) -> Option<Script> {
        let temper = self.tempers.get(usize::from(candidate));
        temper.copied().flatten()
    }

    /// What an order to the store takes at most, with its report, while the store works: the
    /// batch under way, its own, and the way back behind other reports of its session.
    pub(crate) const fn store_ms(&self) -> u64 {
        2 * self.commit_ms + self.report_ms + REPORTS_AHEAD_MS
    }

    /// The drawn values, by name, for people.
    pub(crate) fn header(&self) -> Vec<(&'static str, u64)> {
        let config = &self.config;
        let out = self.tempers.iter().flatten().count() as u64;
        let mut header = vec![
            ("provider class", config.provider.class as u64),
            (
                "provider timeout ms",
                config.provider.timeout_ms.unwrap_or(0),
            ),
            ("agent budget ms", limited(config.agent_budget)),
            ("global lane cap", u64::from(config.global_lane_cap)),
            ("lane grace ms", config.lane_grace_ms),
            ("session queue cap", u64::from(config.session_queue_cap)),
            ("load queue cap", u64::from(config.load_queue_cap)),
            ("live runs cap", u64::from(config.live_runs_cap)),
            ("waits cap", u64::from(config.waits_cap)),
            ("aborts cap", u64::from(config.aborts_cap)),
            ("finish tail ms", config.finish_tail_ms),
            ("drain budget ms", config.drain_budget_ms),
            ("resume grace ms", config.resume_grace_ms),
            ("callers cap", u64::from(config.callers_cap)),
            ("reply cap bytes", config.reply_cap_bytes),
            ("sessions", self.sessions),
            ("act gap ms", self.act_gap_ms),
            ("chunks", self.chunks),
            ("chunk gap ms", self.chunk_gap_ms),
            ("commit ms", self.commit_ms),
            ("report ms", self.report_ms),
            ("refusals", self.refusals),
            ("refusal ms", self.refusal_ms),
            ("outages", self.outages),
            ("outage ms", self.outage_ms),
            ("kills", self.kills),
            ("power loss", u64::from(self.power)),
            ("down ms", self.down_ms),
            ("drains", self.drains),
            ("freezes", self.freezes),
            ("freeze ms", self.freeze_ms),
            ("wall jumps", self.wall_jumps),
            ("jitter ms", self.jitter_ms),
            ("reports twice", u64::from(self.repeats)),
            ("leases taken", self.leases),
            ("lease taken ms", self.lease_ms),
            ("intruders", self.intruders),
            ("odd driver", u64::from(self.odd_driver)),
            ("victims", self.victims),
            ("own budget, one in", self.own_budget),
            ("queue mode", config.queue.mode as u64),
            ("queue debounce ms", config.queue.debounce_ms),
            ("queue cap", u64::from(config.queue.cap)),
            ("queue drop", config.queue.drop as u64),
            ("interrupt settle ms", config.interrupt_settle_ms),
            ("lane warn ms", config.lane_warn_ms),
            ("subagent lane cap", u64::from(config.lanes.subagent)),
            ("cron lane cap", u64::from(config.lanes.cron)),
            ("hook lane cap", u64::from(config.lanes.hook_dispatch)),
            ("nested lane cap", u64::from(config.lanes.nested)),
            ("background lane cap", u64::from(config.lanes.background)),
            ("retries", u64::from(config.recovery.retries_max)),
            (
                "rate-limit retries",
                u64::from(config.recovery.rate_limit_retries_max),
            ),
            ("retry window ms", config.recovery.window_ms),
            ("retry delay ms", config.recovery.delay_ms),
            ("retry delay max ms", config.recovery.delay_max_ms),
            ("silent calls", u64::from(config.recovery.silences_max)),
            ("retry-after max ms", config.recovery.retry_after_max_ms),
            ("fallbacks", config.fallbacks.len() as u64),
            ("out for all their life", out),
            ("chats of four", self.chats),
            ("routes", self.routes),
            ("rooms and heartbeats", u64::from(self.speakers)),
        ];
        header.extend(MODE_NAMES.into_iter().zip(self.modes));
        header.extend(LANE_NAMES.into_iter().zip(self.lanes));
        header.extend(ACT_NAMES.into_iter().zip(self.acts));
        header.extend(SCRIPT_NAMES.into_iter().zip(self.scripts));
        header.extend(CANCEL_NAMES.into_iter().zip(self.cancels));
        header.extend(self.tools.header(&config.tools));
        header
    }
}

const ACT_NAMES: [&str; ACTS.len()] = [
    "act submit",
    "act burst",
    "act repeat",
    "act repeat with another body",
    "act wait",
    "act wait for an unknown run",
    "act abort run",
    "act abort session",
    "act abort of a wrong session",
    "act leave",
    "act abort of what waits",
    "act abort of what is at work",
    "act reset",
    "act queue settings",
    "act decide",
];

const SCRIPT_NAMES: [&str; SCRIPTS.len()] = [
    "provider answers",
    "provider reasons first",
    "provider drips",
    "provider stalls just under the limit",
    "provider stalls exactly to the limit",
    "provider stalls just over the limit",
    "provider silent from the first",
    "provider silent later",
    "provider keep-alives only",
    "provider resets",
    "provider ends incomplete",
    "provider answers an error",
    "provider refuses",
    "provider floods",
    "provider finishes and keeps the call open",
    "provider limits the rate",
    "provider refuses the key",
];

const MODE_NAMES: [&str; MODES.len() + 1] = [
    "chat names no mode",
    "chat steers",
    "chat follows up",
    "chat collects",
    "chat interrupts",
];

const LANE_NAMES: [&str; LANES.len()] = [
    "lane main",
    "lane subagent",
    "lane cron",
    "lane cron-nested",
    "lane hook-dispatch",
    "lane nested",
    "lane background",
];

const CANCEL_NAMES: [&str; CANCELS.len()] = [
    "cancel prompt",
    "cancel ends late",
    "cancel text and end late",
    "cancel never reported",
];

fn limited(budget: Option<Budget>) -> u64 {
    match budget {
        Some(Budget::Limited(ms)) => ms,
        Some(Budget::Unlimited) | None => 0,
    }
}

fn provider(choices: &mut dyn Choices) -> ProviderConfig {
    let class = match choices.pick(4, "class") {
        0 | 1 => ProviderClass::Cloud,
        2 => ProviderClass::SelfHosted,
        _ => ProviderClass::Local,
    };
    let timeout_ms = match one_of(choices, &[20_000, 5_000, 0, 60_000], "provider timeout") {
        0 => None,
        ms => Some(ms),
    };
    ProviderConfig { class, timeout_ms }
}

/// Who is asked when the first provider can't answer: nobody in about a half of the seeds.
fn fallbacks(choices: &mut dyn Choices) -> Vec<ProviderConfig> {
    let many = match choices.chance(1, 2, "fallbacks") {
        true => choices.between(1, FALLBACKS, "fallbacks"),
        false => 0,
    };
    (0..many).map(|_| provider(choices)).collect()
}

/// How the providers of a chain are: one of three is out for all its life, most of all the first.
fn tempers(choices: &mut dyn Choices, fallbacks: usize) -> Vec<Option<Script>> {
    if fallbacks == 0 {
        return Vec::new();
    }
    let mut temper = |at: usize| match choices.chance(1, if at == 0 { 2 } else { 4 }, "temper") {
        true => TEMPERS[index(choices.pick(TEMPERS.len() as u64, "temper"))],
        false => None,
    };
    (0..=fallbacks).map(&mut temper).collect()
}

fn config(choices: &mut dyn Choices) -> Config {
    let first = provider(choices);
    let agent_budget = match one_of(choices, &[0, 0, 40_000, 200_000], "agent budget") {
        0 => None,
        ms => Some(Budget::Limited(ms)),
    };
    Config {
        provider: first,
        fallbacks: fallbacks(choices),
        agent_budget,
        global_lane_cap: small(one_of(choices, &[8, 1, 2, 3], "lane cap")),
        lane_grace_ms: one_of(choices, &[30_000, 3_000, 8_000], "lane grace"),
        wait_default_ms: one_of(choices, &[30_000, 4_000], "wait default"),
        wait_lookup_ms: one_of(choices, &[1_000, 50], "wait lookup"),
        text_pace_ms: one_of(choices, &[75, 400], "text pace"),
        save_pace_ms: one_of(choices, &[250, 50, 2_000], "save pace"),
        lateness_ms: one_of(choices, &[1_000, 200], "lateness"),
        store_retry_ms: one_of(choices, &[1_000, 100], "store retry"),
        store_retry_max_ms: one_of(choices, &[30_000, 4_000], "store retry max"),
        session_queue_cap: small(one_of(choices, &[256, 2, 4], "queue cap")),
        load_queue_cap: small(one_of(choices, &[256, 2], "load cap")),
        live_runs_cap: small(one_of(choices, &[16_384, 16_384, 6], "runs cap")),
        waits_cap: small(one_of(choices, &[16_384, 16_384, 2], "waits cap")),
        aborts_cap: small(one_of(choices, &[1_024, 1_024, 1], "aborts cap")),
        drain_budget_ms: one_of(choices, &[300_000, 20_000], "drain budget"),
        resume_grace_ms: one_of(choices, &[10_000, 500], "resume grace"),
        finish_tail_ms: one_of(choices, &[60_000, 5_000], "finish tail"),
        callers_cap: small(one_of(choices, &[64, 2], "callers cap")),
        reply_cap_bytes: one_of(choices, &[8 * 1024 * 1024, 2_000], "reply cap"),
        queue: QueueSettings {
            mode: MODES[index(choices.pick(4, "queue mode"))],
            debounce_ms: one_of(choices, &[500, 0, 3_000, 20_000], "debounce"),
            cap: small(one_of(choices, &[20, 1, 2, 4], "queue of chats")),
            drop: DROPS[index(choices.pick(3, "drop"))],
        },
        lanes: LaneCaps {
            subagent: small(one_of(choices, &[8, 1], "subagent cap")),
            cron: small(one_of(choices, &[8, 1, 2, 3], "cron cap")),
            hook_dispatch: small(one_of(choices, &[2, 0, 1], "hook cap")),
            nested: small(one_of(choices, &[1, 2], "nested cap")),
            background: small(one_of(choices, &[3, 1, 0], "background cap")),
        },
        queue_debounces_max: Config::default().queue_debounces_max,
        interrupt_settle_ms: one_of(choices, &[15_000, 1_000, 60_000], "interrupt settle"),
        lane_warn_ms: one_of(choices, &[2_000, 0, 200], "lane warn"),
        recovery: recovery(choices),
        tools: tools::config(choices),
    }
}

/// When a failed call is made again: never, as it is by default, or often and soon.
fn recovery(choices: &mut dyn Choices) -> RecoveryConfig {
    match choices.pick(3, "recovery") {
        0 => RecoveryConfig::at_most(0),
        1 => RecoveryConfig::default(),
        _ => RecoveryConfig {
            retries_max: few(one_of(choices, &[2, 1, 8, 4], "retries")),
            rate_limit_retries_max: few(one_of(choices, &[3, 1, 9, 5], "rate-limit retries")),
            window_ms: one_of(choices, &[20_000, 3_000, 90_000, 500], "retry window"),
            delay_ms: one_of(choices, &[200, 20, 1_000, 5_000], "retry delay"),
            delay_max_ms: one_of(choices, &[2_000, 300, 30_000], "retry delay max"),
            silences_max: few(one_of(choices, &[2, 1, 5, 3], "silent calls")),
            retry_after_max_ms: one_of(choices, &[60_000, 1_000, 0], "retry-after max"),
        },
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// A number that is small anyhow.
pub(crate) fn few<N>(n: N) -> u16
where
    u16: TryFrom<N>,
{
    u16::try_from(n).unwrap_or(u16::MAX)
}

fn small(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
