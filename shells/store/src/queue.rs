//! How the words of the queue lie in columns: turns, modes, drop rules, lanes, priorities.
//!
//! Owns these encodings only; a word that no build wrote is refused, never guessed at.

use rusqlite::Row;
use tidegate_core::{
    DropPolicy, Fingerprint, LaneName, Priority, QueueMode, QueueOverride, Speaker, Turn,
};

use crate::codec;
use crate::fault::{Fault, Step};

/// The four columns of a turn.
pub(crate) struct TurnColumns {
    /// Agent or chat.
    pub(crate) kind: &'static str,
    /// Its queue mode, if it is resolved.
    pub(crate) queue: Option<&'static str>,
    /// Where a chat message came from.
    pub(crate) route: Option<[u8; 16]>,
    /// Who speaks in a chat.
    pub(crate) speaker: Option<&'static str>,
}

/// The columns of a turn.
pub(crate) fn turn_to_sql(turn: &Turn) -> TurnColumns {
    match *turn {
        Turn::Agent => TurnColumns {
            kind: "agent",
            queue: None,
            route: None,
            speaker: None,
        },
        Turn::Chat {
            queue,
            route,
            speaker,
        } => TurnColumns {
            kind: "chat",
            queue: queue.map(mode_to_sql),
            route: Some(route.0),
            speaker: Some(match speaker {
                Speaker::User => "user",
                Speaker::Room => "room",
                Speaker::Heartbeat => "heartbeat",
            }),
        },
    }
}

/// Reads a turn from four columns that begin at `first`: kind, queue, route, speaker.
pub(crate) fn turn_from_row(row: &Row<'_>, first: usize) -> Step<Turn> {
    let kind: String = row.get(first)?;
    let queue = mode_from_row(row, first + 1)?;
    let route: Option<[u8; 16]> = row.get(first + 2)?;
    let speaker: Option<String> = row.get(first + 3)?;
    match (kind.as_str(), route, speaker.as_deref()) {
        ("agent", None, None) => Ok(Turn::Agent),
        ("chat", Some(route), Some(speaker)) => Ok(Turn::Chat {
            queue,
            route: Fingerprint(route),
            speaker: match speaker {
                "user" => Speaker::User,
                "room" => Speaker::Room,
                "heartbeat" => Speaker::Heartbeat,
                _ => return Err(unreadable("speaker", "user, room or heartbeat")),
            },
        }),
        _ => Err(unreadable(
            "turn",
            "agent, or chat with its route and speaker",
        )),
    }
}

/// The name of a queue mode.
pub(crate) fn mode_to_sql(mode: QueueMode) -> &'static str {
    match mode {
        QueueMode::Steer => "steer",
        QueueMode::Followup => "followup",
        QueueMode::Collect => "collect",
        QueueMode::Interrupt => "interrupt",
    }
}

/// Reads a queue mode, if the column has one.
pub(crate) fn mode_from_row(row: &Row<'_>, column: usize) -> Step<Option<QueueMode>> {
    let mode: Option<String> = row.get(column)?;
    match mode.as_deref() {
        None => Ok(None),
        Some("steer") => Ok(Some(QueueMode::Steer)),
        Some("followup") => Ok(Some(QueueMode::Followup)),
        Some("collect") => Ok(Some(QueueMode::Collect)),
        Some("interrupt") => Ok(Some(QueueMode::Interrupt)),
        Some(_) => Err(unreadable(
            "queue mode",
            "steer, followup, collect or interrupt",
        )),
    }
}

/// The name of a drop rule.
pub(crate) fn drop_to_sql(drop: DropPolicy) -> &'static str {
    match drop {
        DropPolicy::Old => "old",
        DropPolicy::New => "new",
        DropPolicy::Summarize => "summarize",
    }
}

fn drop_from_sql(drop: &str) -> Step<DropPolicy> {
    match drop {
        "old" => Ok(DropPolicy::Old),
        "new" => Ok(DropPolicy::New),
        "summarize" => Ok(DropPolicy::Summarize),
        _ => Err(unreadable("drop rule", "old, new or summarize")),
    }
}

/// Whether the model is told of messages that gave way by this rule.
pub(crate) fn is_told(drop: &str) -> Step<bool> {
    Ok(drop_from_sql(drop)? == DropPolicy::Summarize)
}

/// Reads what a session sets for itself from four columns that begin at `first`: mode,
/// debounce, cap, drop.
pub(crate) fn override_from_row(row: &Row<'_>, first: usize) -> Step<QueueOverride> {
    let debounce: Option<i64> = row.get(first + 1)?;
    let drop: Option<String> = row.get(first + 3)?;
    Ok(QueueOverride {
        mode: mode_from_row(row, first)?,
        debounce_ms: debounce.map(codec::from_sql),
        cap: row.get(first + 2)?,
        drop: drop.as_deref().map(drop_from_sql).transpose()?,
    })
}

/// The name of a priority.
pub(crate) fn priority_to_sql(priority: Priority) -> &'static str {
    match priority {
        Priority::Foreground => "foreground",
        Priority::Normal => "normal",
        Priority::Background => "background",
    }
}

/// Reads what [`priority_to_sql`] wrote.
pub(crate) fn priority_from_sql(priority: &str) -> Step<Priority> {
    match priority {
        "foreground" => Ok(Priority::Foreground),
        "normal" => Ok(Priority::Normal),
        "background" => Ok(Priority::Background),
        _ => Err(unreadable("priority", "foreground, normal or background")),
    }
}

/// Reads a lane by the name under which people meet it.
pub(crate) fn lane_from_sql(lane: &str) -> Step<LaneName> {
    [
        LaneName::Main,
        LaneName::Subagent,
        LaneName::Cron,
        LaneName::CronNested,
        LaneName::HookDispatch,
        LaneName::Nested,
        LaneName::Background,
    ]
    .into_iter()
    .find(|known| known.name() == lane)
    .ok_or(unreadable("lane", "a lane that this build knows"))
}

const fn unreadable(what: &'static str, expected: &'static str) -> Fault {
    Fault::Record { what, expected }
}
