//! The configuration by dotted names, in human units.
//!
//! One row for each number of the core's [`Config`]. A test holds the table complete, so that
//! a new number gets its name here.

use tidegate_core::{Budget, Config, ProviderConfig};

use super::error::Trouble;
use super::form::{Hole, Value, fill};
use super::token::Cursor;
use super::units::show_time;
use super::words::{ASKS, CLASSES, DROPS, MODES, phrase, say};

enum Kind {
    Time(fn(&mut Config) -> &mut u64),
    Count(fn(&mut Config) -> &mut u32),
    Few(fn(&mut Config) -> &mut u16),
    Bytes(fn(&mut Config) -> &mut u64),
    Class,
    Ask,
    Mode,
    Drop,
    ProviderTimeout,
    Fallbacks,
    AgentBudget,
}

struct Knob {
    name: &'static str,
    kind: Kind,
}

const fn knob(name: &'static str, kind: Kind) -> Knob {
    Knob { name, kind }
}

const KNOBS: &[Knob] = &[
    knob("provider.class", Kind::Class),
    knob("provider.timeout", Kind::ProviderTimeout),
    knob("fallbacks", Kind::Fallbacks),
    knob("agent.budget", Kind::AgentBudget),
    knob("lane.cap", Kind::Count(|c| &mut c.global_lane_cap)),
    knob("lane.grace", Kind::Time(|c| &mut c.lane_grace_ms)),
    knob("finish.tail", Kind::Time(|c| &mut c.finish_tail_ms)),
    knob("drain.budget", Kind::Time(|c| &mut c.drain_budget_ms)),
    knob("resume.grace", Kind::Time(|c| &mut c.resume_grace_ms)),
    knob("wait.default", Kind::Time(|c| &mut c.wait_default_ms)),
    knob("wait.lookup", Kind::Time(|c| &mut c.wait_lookup_ms)),
    knob("text.pace", Kind::Time(|c| &mut c.text_pace_ms)),
    knob("save.pace", Kind::Time(|c| &mut c.save_pace_ms)),
    knob("lateness", Kind::Time(|c| &mut c.lateness_ms)),
    knob("store.retry", Kind::Time(|c| &mut c.store_retry_ms)),
    knob("store.retry-max", Kind::Time(|c| &mut c.store_retry_max_ms)),
    knob("lane.warn", Kind::Time(|c| &mut c.lane_warn_ms)),
    knob("lanes.subagent", Kind::Count(|c| &mut c.lanes.subagent)),
    knob("lanes.cron", Kind::Count(|c| &mut c.lanes.cron)),
    knob("lanes.hooks", Kind::Count(|c| &mut c.lanes.hook_dispatch)),
    knob("lanes.nested", Kind::Count(|c| &mut c.lanes.nested)),
    knob("lanes.background", Kind::Count(|c| &mut c.lanes.background)),
    knob("queue.mode", Kind::Mode),
    knob("queue.debounce", Kind::Time(|c| &mut c.queue.debounce_ms)),
    knob(
        "queue.debounces",
        Kind::Count(|c| &mut c.queue_debounces_max),
    ),
    knob("queue.cap", Kind::Count(|c| &mut c.queue.cap)),
    knob("queue.drop", Kind::Drop),
    knob(
        "interrupt.settle",
        Kind::Time(|c| &mut c.interrupt_settle_ms),
    ),
    knob(
        "recovery.retries",
        Kind::Few(|c| &mut c.recovery.retries_max),
    ),
    knob(
        "recovery.rate-limit-retries",
        Kind::Few(|c| &mut c.recovery.rate_limit_retries_max),
    ),
    knob("recovery.window", Kind::Time(|c| &mut c.recovery.window_ms)),
    knob("recovery.delay", Kind::Time(|c| &mut c.recovery.delay_ms)),
    knob(
        "recovery.delay-max",
        Kind::Time(|c| &mut c.recovery.delay_max_ms),
    ),
    knob(
        "recovery.silences",
        Kind::Few(|c| &mut c.recovery.silences_max),
    ),
    knob(
        "recovery.retry-after-max",
        Kind::Time(|c| &mut c.recovery.retry_after_max_ms),
    ),
    knob("tools.ask", Kind::Ask),
    knob("tools.approval", Kind::Time(|c| &mut c.tools.approval_ms)),
    knob("tools.timeout", Kind::Time(|c| &mut c.tools.timeout_ms)),
    knob("tools.cancel", Kind::Time(|c| &mut c.tools.cancel_ms)),
    knob("tools.calls", Kind::Few(|c| &mut c.tools.calls_max)),
    knob("tools.rounds", Kind::Few(|c| &mut c.tools.rounds_max)),
    knob("queue.session", Kind::Count(|c| &mut c.session_queue_cap)),
    knob("queue.load", Kind::Count(|c| &mut c.load_queue_cap)),
    knob("cap.runs", Kind::Count(|c| &mut c.live_runs_cap)),
    knob("cap.waits", Kind::Count(|c| &mut c.waits_cap)),
    knob("cap.aborts", Kind::Count(|c| &mut c.aborts_cap)),
    knob("cap.callers", Kind::Count(|c| &mut c.callers_cap)),
    knob("cap.reply", Kind::Bytes(|c| &mut c.reply_cap_bytes)),
];

/// All names.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KNOBS.iter().map(|knob| knob.name)
}

/// Reads one line of the `config` block.
pub(super) fn read(cursor: &mut Cursor<'_>, config: &mut Config) -> Result<(), Trouble> {
    let here = cursor.clone();
    let name = cursor.next().unwrap_or_default();
    let Some(knob) = KNOBS.iter().find(|knob| knob.name == name) else {
        let names: Vec<&str> = KNOBS.iter().map(|knob| knob.name).collect();
        return Err(here
            .trouble(&format!("a setting: {}", names.join(", ")))
            .near(name, names));
    };
    match knob.kind {
        Kind::Time(field) => *field(config) = time(cursor)?,
        Kind::Bytes(field) => *field(config) = number(cursor, "a number of bytes")?,
        Kind::Count(field) => {
            let here = cursor.clone();
            let count = number(cursor, "a number")?;
            *field(config) = u32::try_from(count)
                .map_err(|_| here.trouble(&format!("a number up to {}", u32::MAX)))?;
        }
        Kind::Few(field) => {
            let here = cursor.clone();
            let count = number(cursor, "a number")?;
            *field(config) = u16::try_from(count)
                .map_err(|_| here.trouble(&format!("a number up to {}", u16::MAX)))?;
        }
        Kind::Class => config.provider.class = phrase(CLASSES, "a provider's place", cursor)?,
        Kind::Ask => config.tools.ask = phrase(ASKS, "when a person is asked", cursor)?,
        Kind::Mode => config.queue.mode = phrase(MODES, "a queue mode", cursor)?,
        Kind::Drop => config.queue.drop = phrase(DROPS, "a drop policy", cursor)?,
        Kind::ProviderTimeout => config.provider.timeout_ms = Some(time(cursor)?),
        Kind::Fallbacks => config.fallbacks = fallbacks(cursor)?,
        Kind::AgentBudget => {
            if let Value::Budget(budget) = fill(Hole::Budget, cursor)? {
                config.agent_budget = Some(budget);
            }
        }
    }
    Ok(())
}

/// The providers behind the first one: the place of each, and its own silence limit.
fn fallbacks(cursor: &mut Cursor<'_>) -> Result<Vec<ProviderConfig>, Trouble> {
    let mut found = Vec::new();
    loop {
        let class = phrase(CLASSES, "a provider's place", cursor)?;
        let timeout_ms = match cursor.peek() {
            None | Some(",") => None,
            Some(_) => Some(time(cursor)?),
        };
        found.push(ProviderConfig { class, timeout_ms });
        if !cursor.take(",") {
            return Ok(found);
        }
    }
}

fn show_fallback(fallback: &ProviderConfig) -> String {
    let timeout = fallback.timeout_ms.map(show_time);
    let timeout = timeout.map_or(String::new(), |time| format!(" {time}"));
    format!("{}{timeout}", say(CLASSES, &fallback.class))
}

fn time(cursor: &mut Cursor<'_>) -> Result<u64, Trouble> {
    match fill(Hole::Time, cursor)? {
        Value::Number(ms) => Ok(ms),
        _ => Err(cursor.trouble("a time")),
    }
}

fn number(cursor: &mut Cursor<'_>, what: &str) -> Result<u64, Trouble> {
    match fill(Hole::Number, cursor) {
        Ok(Value::Number(n)) => Ok(n),
        _ => Err(cursor.trouble(what)),
    }
}

/// The settings that are not the default, by name.
pub(super) fn written(config: &Config) -> Vec<(&'static str, String)> {
    let plain = Config::default();
    KNOBS
        .iter()
        .filter_map(|knob| {
            let (text, default) = (show(knob, config), show(knob, &plain));
            (text != default).then_some((knob.name, text))
        })
        .collect()
}

fn show(knob: &Knob, config: &Config) -> String {
    let mut config = config.clone();
    match knob.kind {
        Kind::Time(field) => show_time(*field(&mut config)),
        Kind::Bytes(field) => field(&mut config).to_string(),
        Kind::Count(field) => field(&mut config).to_string(),
        Kind::Few(field) => field(&mut config).to_string(),
        Kind::Class => say(CLASSES, &config.provider.class).into(),
        Kind::Ask => say(ASKS, &config.tools.ask).into(),
        Kind::Mode => say(MODES, &config.queue.mode).into(),
        Kind::Drop => say(DROPS, &config.queue.drop).into(),
        Kind::ProviderTimeout => config
            .provider
            .timeout_ms
            .map(show_time)
            .unwrap_or_default(),
        Kind::Fallbacks => {
            let all: Vec<String> = config.fallbacks.iter().map(show_fallback).collect();
            all.join(", ")
        }
        Kind::AgentBudget => config.agent_budget.map(show_budget).unwrap_or_default(),
    }
}

/// A budget in words.
pub(super) fn show_budget(budget: Budget) -> String {
    match budget {
        Budget::Limited(ms) => show_time(ms),
        Budget::Unlimited => "unlimited".into(),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{
        Ask, DropPolicy, LaneCaps, ProviderClass, ProviderConfig, QueueMode, QueueSettings,
        RecoveryConfig, ToolsConfig,
    };

    use super::*;
    use crate::scenario::token::tokens;

    /// Each number differs from its default, so each must be written; and what is written
    /// reads back. A new number must be added here, or this does not compile.
    #[test]
    fn every_number_of_the_configuration_has_a_name_here() {
        let odd = Config {
            provider: ProviderConfig {
                class: ProviderClass::Local,
                timeout_ms: Some(1),
            },
            fallbacks: vec![
                ProviderConfig {
                    class: ProviderClass::SelfHosted,
                    timeout_ms: Some(2),
                },
                ProviderConfig {
                    class: ProviderClass::Cloud,
                    timeout_ms: None,
                },
            ],
            agent_budget: Some(Budget::Unlimited),
            global_lane_cap: 3,
            finish_tail_ms: 4,
            lane_grace_ms: 5,
            wait_default_ms: 6,
            wait_lookup_ms: 7,
            text_pace_ms: 8,
            save_pace_ms: 9,
            lateness_ms: 10,
            store_retry_ms: 11,
            store_retry_max_ms: 12,
            session_queue_cap: 13,
            load_queue_cap: 14,
            live_runs_cap: 15,
            waits_cap: 16,
            aborts_cap: 17,
            callers_cap: 18,
            reply_cap_bytes: 19,
            drain_budget_ms: 20,
            resume_grace_ms: 21,
            lanes: LaneCaps {
                subagent: 22,
                cron: 23,
                hook_dispatch: 24,
                nested: 25,
                background: 26,
            },
            queue: QueueSettings {
                mode: QueueMode::Collect,
                debounce_ms: 27,
                cap: 28,
                drop: DropPolicy::Old,
            },
            queue_debounces_max: 31,
            interrupt_settle_ms: 29,
            lane_warn_ms: 30,
            recovery: RecoveryConfig {
                retries_max: 32,
                rate_limit_retries_max: 33,
                window_ms: 34,
                delay_ms: 35,
                delay_max_ms: 36,
                silences_max: 37,
                retry_after_max_ms: 38,
            },
            tools: ToolsConfig {
                ask: Ask::Off,
                approval_ms: 39,
                timeout_ms: 40,
                cancel_ms: 41,
                calls_max: 42,
                rounds_max: 43,
            },
        };
        let lines = written(&odd);
        assert_eq!(lines.len(), KNOBS.len());
        let mut read_back = Config::default();
        for (name, value) in lines {
            let line = format!("{name} {value}");
            let words = tokens(&line);
            read(&mut Cursor::new(&words), &mut read_back).unwrap();
        }
        assert_eq!(read_back, odd);
    }
}
