//! The words for how a session queues: names of modes and drop policies, and lengths of time.
//!
//! It owns every spelling that is understood, in commands and in the configuration (spec 3).
//! What a mode does is the core's.

use tidegate_core::{DropPolicy, QueueMode};

/// The modes, in the order in which they are listed for people.
pub const QUEUE_MODES: [QueueMode; 4] = [
    QueueMode::Steer,
    QueueMode::Followup,
    QueueMode::Collect,
    QueueMode::Interrupt,
];

/// The drop policies, in the order in which they are listed for people.
pub const DROP_POLICIES: [DropPolicy; 3] =
    [DropPolicy::Summarize, DropPolicy::Old, DropPolicy::New];

/// The longest quiet time that can be asked for: a week (law 9).
pub const DEBOUNCE_MAX_MS: u64 = 604_800_000;

/// The most messages that can be asked to wait in a session's queue (law 9).
pub const QUEUE_CAP_MAX: u32 = 65_536;

/// A word that names something, and whether it is a name of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<T> {
    /// What it names.
    pub value: T,
    /// Whether only older versions wrote it so: still understood, no longer recommended.
    pub is_past: bool,
}

/// The mode that a word names, in any letter case.
#[must_use]
pub fn queue_mode(word: &str) -> Option<Named<QueueMode>> {
    let (value, is_past) = match word.to_ascii_lowercase().as_str() {
        "steer" | "steering" => (QueueMode::Steer, false),
        "followup" | "followups" | "follow-up" | "follow-ups" => (QueueMode::Followup, false),
        "collect" | "coalesce" => (QueueMode::Collect, false),
        "interrupt" | "interrupts" | "abort" => (QueueMode::Interrupt, false),
        "queue" | "queued" => (QueueMode::Steer, true),
        "steer+backlog" | "steer-backlog" | "steer_backlog" => (QueueMode::Followup, true),
        _ => return None,
    };
    Some(Named { value, is_past })
}

/// The one name under which a mode is shown.
#[must_use]
pub const fn queue_mode_name(mode: QueueMode) -> &'static str {
    match mode {
        QueueMode::Steer => "steer",
        QueueMode::Followup => "followup",
        QueueMode::Collect => "collect",
        QueueMode::Interrupt => "interrupt",
    }
}

/// The drop policy that a word names, in any letter case.
#[must_use]
pub fn drop_policy(word: &str) -> Option<DropPolicy> {
    match word.to_ascii_lowercase().as_str() {
        "old" | "oldest" => Some(DropPolicy::Old),
        "new" | "newest" => Some(DropPolicy::New),
        "summarize" | "summary" => Some(DropPolicy::Summarize),
        _ => None,
    }
}

/// The one name under which a drop policy is shown.
#[must_use]
pub const fn drop_policy_name(policy: DropPolicy) -> &'static str {
    match policy {
        DropPolicy::Old => "old",
        DropPolicy::New => "new",
        DropPolicy::Summarize => "summarize",
    }
}

/// Reads a length of time: a whole number with `ms`, `s`, `m`, `h` or `d`, or without a unit
/// for milliseconds. `None` if it is none, or longer than [`DEBOUNCE_MAX_MS`].
#[must_use]
pub fn duration_ms(word: &str) -> Option<u64> {
    let word = word.to_ascii_lowercase();
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = word.split_at(digits);
    let unit_ms = match unit {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    (ms <= DEBOUNCE_MAX_MS).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R44, R45, R46, R47: every spelling of spec 3.
    #[test]
    fn a_mode_has_one_name_and_many_spellings() {
        for (word, mode, is_past) in [
            ("steer", QueueMode::Steer, false),
            ("Steering", QueueMode::Steer, false),
            ("followup", QueueMode::Followup, false),
            ("follow-ups", QueueMode::Followup, false),
            ("followups", QueueMode::Followup, false),
            ("COLLECT", QueueMode::Collect, false),
            ("coalesce", QueueMode::Collect, false),
            ("interrupt", QueueMode::Interrupt, false),
            ("interrupts", QueueMode::Interrupt, false),
            ("abort", QueueMode::Interrupt, false),
            ("queue", QueueMode::Steer, true),
            ("queued", QueueMode::Steer, true),
            ("steer+backlog", QueueMode::Followup, true),
            ("steer-backlog", QueueMode::Followup, true),
            ("steer_backlog", QueueMode::Followup, true),
        ] {
            let named = Named {
                value: mode,
                is_past,
            };
            assert_eq!(queue_mode(word), Some(named), "{word}");
        }
        for wrong in ["", "steer ", "stear", "new", "steer+"] {
            assert_eq!(queue_mode(wrong), None, "{wrong}");
        }
        for mode in QUEUE_MODES {
            let named = queue_mode(queue_mode_name(mode)).expect("its own name is understood");
            assert_eq!((named.value, named.is_past), (mode, false));
        }
    }

    #[test]
    fn a_drop_policy_has_one_name_and_its_spellings() {
        for policy in DROP_POLICIES {
            assert_eq!(drop_policy(drop_policy_name(policy)), Some(policy));
        }
        for (word, policy) in [
            ("oldest", DropPolicy::Old),
            ("Newest", DropPolicy::New),
            ("summary", DropPolicy::Summarize),
        ] {
            assert_eq!(drop_policy(word), Some(policy), "{word}");
        }
        assert_eq!(drop_policy("all"), None);
    }

    #[test]
    fn a_time_is_a_whole_number_with_a_unit_or_milliseconds() {
        for (word, ms) in [
            ("0", Some(0)),
            ("750", Some(750)),
            ("750ms", Some(750)),
            ("2s", Some(2_000)),
            ("3M", Some(180_000)),
            ("1h", Some(3_600_000)),
            ("7d", Some(DEBOUNCE_MAX_MS)),
            ("8d", None),
            ("604800001", None),
            ("18446744073709551615d", None),
            ("99999999999999999999999", None),
            ("", None),
            ("s", None),
            ("-1", None),
            ("+1", None),
            ("1.5s", None),
            ("1 s", None),
            ("1w", None),
        ] {
            assert_eq!(duration_ms(word), ms, "{word}");
        }
    }
}
