//! The closed sets of words: each phrase once, for reading and for writing.
//!
//! Owns tables and how they are searched. A value without a phrase can't be written, so a
//! test walks through all values of each set.

use tidegate_core::{
    Ask, CallEnd, Decision, DropPolicy, ErrorClass, LaneName, Limit, Marker, Priority,
    ProviderClass, QueueMode, QueueOverride, QueueSettings, StopReason, StoreError, ToolEnd,
};

use super::ast::{Ended, Ending, Failed, Terms, Told};
use super::error::{Trouble, distance, nearest};
use super::knobs::show_budget;
use super::token::{Cursor, tokens};
use super::units::show_time;

/// Phrases and what they mean.
pub(super) type Table<T> = &'static [(&'static str, T)];

use ErrorClass as E;

/// How a run can end.
pub(super) const ENDED: Table<Ended> = &[
    ("completed", Ended::Completed),
    ("cancelled", Ended::Cancelled(None)),
    (
        "cancelled (stopped)",
        Ended::Cancelled(Some(StopReason::Rpc)),
    ),
    (
        "cancelled (interrupted)",
        Ended::Cancelled(Some(StopReason::Interrupt)),
    ),
    (
        "cancelled (reset)",
        Ended::Cancelled(Some(StopReason::Reset)),
    ),
    ("superseded", Ended::Superseded),
    ("dropped", Ended::Dropped(None)),
    ("dropped (old)", Ended::Dropped(Some(DropPolicy::Old))),
    ("dropped (new)", Ended::Dropped(Some(DropPolicy::New))),
    (
        "dropped (summarize)",
        Ended::Dropped(Some(DropPolicy::Summarize)),
    ),
    ("timed out", Ended::TimedOut(None)),
    ("timed out (budget)", Ended::TimedOut(Some(Limit::Budget))),
    (
        "timed out (first event)",
        Ended::TimedOut(Some(Limit::FirstEvent)),
    ),
    ("timed out (idle)", Ended::TimedOut(Some(Limit::Idle))),
    ("timed out (lane)", Ended::TimedOut(Some(Limit::Lane))),
    ("failed", Ended::Failed(None)),
    (
        "failed (incomplete)",
        Ended::Failed(Some(Failed::Incomplete)),
    ),
    (
        "failed (reply too large)",
        Ended::Failed(Some(Failed::TooLarge)),
    ),
    (
        "failed (too many rounds)",
        Ended::Failed(Some(Failed::TooManyRounds)),
    ),
    ("failed (auth)", failed(E::Auth)),
    ("failed (format)", failed(E::Format)),
    ("failed (rate limit)", failed(E::RateLimit)),
    ("failed (overloaded)", failed(E::Overloaded)),
    ("failed (billing)", failed(E::Billing)),
    ("failed (server error)", failed(E::ServerError)),
    ("failed (timeout)", failed(E::Timeout)),
    ("failed (tls certificate)", failed(E::TlsCertificate)),
    ("failed (context overflow)", failed(E::ContextOverflow)),
    ("failed (model not found)", failed(E::ModelNotFound)),
    ("failed (network)", failed(E::Network)),
    ("failed (protocol)", failed(E::Protocol)),
    ("failed (unknown)", failed(E::Unknown)),
];

const fn failed(class: ErrorClass) -> Ended {
    Ended::Failed(Some(Failed::Provider(class)))
}

/// What a client can be told, besides ends.
pub(super) const TOLD: Table<Told> = &[
    ("accepted", Told::Accepted),
    ("in flight", Told::InFlight),
    ("still open", Told::StillOpen),
    ("no such run", Told::NoSuchRun),
    ("no word of it", Told::NoWord),
    ("stopped", Told::Stopped),
    ("pending", Told::Pending),
    ("refused (conflict)", Told::Conflict),
    ("refused (queue full)", Told::QueueFull),
    ("refused (busy)", Told::Busy),
    ("refused (storage)", Told::Storage),
    ("refused (not owner)", Told::NotOwner),
    ("refused (wrong session)", Told::WrongSession),
    ("refused (session changed)", Told::SessionChanged),
    ("refused (lane closed)", Told::LaneClosed),
    ("refused (session busy)", Told::SessionBusy),
    ("deferred", Told::Draining),
    ("allowed", Told::Decided(Decision::AllowOnce)),
    ("denied", Told::Decided(Decision::Deny)),
    ("refused (not asked)", Told::NotAsked),
    ("refused (already decided)", Told::AlreadyDecided),
];

/// How a model call can end by itself, besides an HTTP status.
pub(super) const ENDINGS: Table<Ending> = &[
    ("completes", Ending::Completes),
    ("resets", Ending::Resets),
    ("ends incomplete", Ending::Incomplete),
    ("ends cancelled", Ending::Cancelled),
    ("refuses", Ending::Refuses),
    ("fails (unrecognised)", Ending::Fails(Marker::None)),
    ("fails (rate limit)", Ending::Fails(Marker::RateLimit)),
    ("fails (usage window)", Ending::Fails(Marker::UsageWindow)),
    ("fails (overloaded)", Ending::Fails(Marker::Overloaded)),
    ("fails (billing)", Ending::Fails(Marker::Billing)),
    (
        "fails (context overflow)",
        Ending::Fails(Marker::ContextOverflow),
    ),
    (
        "fails (model not found)",
        Ending::Fails(Marker::ModelNotFound),
    ),
    ("fails (auth)", Ending::Fails(Marker::Auth)),
    ("fails (format)", Ending::Fails(Marker::Format)),
    ("fails (tls)", Ending::Fails(Marker::Tls)),
    ("fails (oversized)", Ending::Fails(Marker::Oversized)),
    ("fails (not a stream)", Ending::Fails(Marker::NotAStream)),
];

/// How a tool can end by itself.
pub(super) const TOOL_ENDS: Table<ToolEnd> = &[
    ("succeeds", ToolEnd::Ok),
    ("fails", ToolEnd::Failed),
    ("stops", ToolEnd::Cancelled),
];

/// What can come of a tool call.
pub(super) const RESULTS: Table<CallEnd> = &[
    ("ok", CallEnd::Ok),
    ("failed", CallEnd::Failed),
    ("timed out", CallEnd::TimedOut),
    ("cancelled", CallEnd::Cancelled),
    ("unknown", CallEnd::Unknown),
    ("skipped", CallEnd::Skipped),
    ("no such tool", CallEnd::NoSuchTool),
    ("bad arguments", CallEnd::BadArguments),
    ("denied", CallEnd::Denied),
    ("expired", CallEnd::Expired),
    ("stale", CallEnd::Stale),
];

/// When a person is asked before a guarded call starts.
pub(super) const ASKS: Table<Ask> = &[("always", Ask::Always), ("off", Ask::Off)];

/// Why the store refuses.
pub(super) const STORE_ERRORS: Table<StoreError> = &[
    ("busy", StoreError::Busy),
    ("full", StoreError::Full),
    ("broken", StoreError::Io),
];

/// Where a provider runs.
pub(super) const CLASSES: Table<ProviderClass> = &[
    ("cloud", ProviderClass::Cloud),
    ("self-hosted", ProviderClass::SelfHosted),
    ("local", ProviderClass::Local),
];

/// What a message does whose session is busy.
pub(super) const MODES: Table<QueueMode> = &[
    ("steer", QueueMode::Steer),
    ("followup", QueueMode::Followup),
    ("collect", QueueMode::Collect),
    ("interrupt", QueueMode::Interrupt),
];

/// What gives way in a full queue.
pub(super) const DROPS: Table<DropPolicy> = &[
    ("old", DropPolicy::Old),
    ("new", DropPolicy::New),
    ("summarize", DropPolicy::Summarize),
];

/// The global lanes, by the names under which people meet them.
pub(super) const LANES: Table<LaneName> = &[
    ("main", LaneName::Main),
    ("subagent", LaneName::Subagent),
    ("cron", LaneName::Cron),
    ("cron-nested", LaneName::CronNested),
    ("hook-dispatch", LaneName::HookDispatch),
    ("nested", LaneName::Nested),
    ("background", LaneName::Background),
];

/// Who goes first in a lane.
pub(super) const PRIORITIES: Table<Priority> = &[
    ("foreground", Priority::Foreground),
    ("normal", Priority::Normal),
    ("background", Priority::Background),
];

/// The longest phrase that stands here.
pub(super) fn phrase<T: Copy>(
    table: Table<T>,
    what: &str,
    cursor: &mut Cursor<'_>,
) -> Result<T, Trouble> {
    let mut best: Option<(Cursor<'_>, T)> = None;
    for &(words, value) in table {
        let mut ahead = cursor.clone();
        if ahead.take_all(words) && best.as_ref().is_none_or(|(b, _)| ahead.at > b.at) {
            best = Some((ahead, value));
        }
    }
    let Some((after, value)) = best else {
        return Err(no_phrase(table, what, cursor, cursor));
    };
    // `timed out (idel)` is no `timed out` with something behind it.
    if after.peek() == Some("(") {
        return Err(no_phrase(table, what, cursor, &after));
    }
    *cursor = after;
    Ok(value)
}

fn no_phrase<T>(table: Table<T>, what: &str, from: &Cursor<'_>, at: &Cursor<'_>) -> Trouble {
    let mut trouble = at.trouble(&format!("{what}: {}", list(table)));
    // Each phrase is compared with as many words as it has.
    let near = table.iter().filter_map(|&(words, _)| {
        let found = here(from, tokens(words).len());
        nearest(&found, [words]).map(|_| (distance(&found, words), words))
    });
    let near = near.filter(|&(far, _)| far > 0).min();
    trouble.nearest = near.map(|(_, words)| words.to_owned());
    trouble
}

/// The next few words, spaced as phrases are.
fn here(cursor: &Cursor<'_>, count: usize) -> String {
    let mut text = String::new();
    for word in (0..count).map_while(|ahead| cursor.ahead(ahead)) {
        let tight = text.is_empty() || text.ends_with('(') || word == ")";
        text.push_str(if tight { "" } else { " " });
        text.push_str(word);
    }
    text
}

fn list<T>(table: Table<T>) -> String {
    let words: Vec<String> = table
        .iter()
        .map(|(words, _)| format!("`{words}`"))
        .collect();
    words.join(", ")
}

/// The phrase of a value.
pub(super) fn say<T: PartialEq>(table: Table<T>, value: &T) -> &'static str {
    table
        .iter()
        .find(|(_, known)| known == value)
        .map_or("(no word for it)", |(words, _)| words)
}

/// The phrase of anything that a client can be told.
pub(super) fn say_told(told: Told) -> String {
    match told {
        Told::End(ended) => say(ENDED, &ended).into(),
        Told::EndAgain(ended) => format!("{}, as before", say(ENDED, &ended)),
        other => say(TOLD, &other).into(),
    }
}

/// How a message takes part in a conversation, in words.
pub(super) fn say_said(mode: Option<QueueMode>, route: &str) -> String {
    let mode = mode.map_or(String::new(), |mode| format!(" by {}", say(MODES, &mode)));
    match route {
        "" => mode,
        route => format!("{mode} on {route}"),
    }
}

/// What a message asks for its run, in words.
pub(super) fn say_terms(terms: Terms) -> String {
    let plain = Terms::default();
    let lane = (terms.lane != plain.lane).then(|| format!("lane {}", say(LANES, &terms.lane)));
    let priority = (terms.priority != plain.priority)
        .then(|| format!("priority {}", say(PRIORITIES, &terms.priority)));
    let budget = terms
        .budget
        .map(|budget| format!("budget {}", show_budget(budget)));
    let parts: Vec<String> = [budget, lane, priority].into_iter().flatten().collect();
    match parts[..] {
        [] => String::new(),
        _ => format!(" with {}", parts.join(", ")),
    }
}

/// Queue settings in words, those that are set.
pub(super) fn say_queue(queue: QueueOverride) -> String {
    let parts = [
        queue.mode.map(|mode| format!("by {}", say(MODES, &mode))),
        queue
            .debounce_ms
            .map(|ms| format!("debounce {}", show_time(ms))),
        queue.cap.map(|cap| format!("cap {cap}")),
        queue.drop.map(|drop| format!("drop {}", say(DROPS, &drop))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Settings that hold, as an override that names all of them.
pub(super) const fn all_of(settings: QueueSettings) -> QueueOverride {
    QueueOverride {
        mode: Some(settings.mode),
        debounce_ms: Some(settings.debounce_ms),
        cap: Some(settings.cap),
        drop: Some(settings.drop),
    }
}

/// The phrase of an ending.
pub(super) fn say_ending(ending: Ending) -> String {
    match ending {
        Ending::Status(status) => format!("fails with status {status}"),
        other => say(ENDINGS, &other).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_phrase_is_taken() {
        let words = tokens("timed out (idle)");
        let mut cursor = Cursor::new(&words);
        let ended = phrase(ENDED, "an end", &mut cursor);
        assert_eq!(ended, Ok(Ended::TimedOut(Some(Limit::Idle))));
        assert_eq!(cursor.peek(), None);
    }

    #[test]
    fn a_phrase_that_is_nearly_one_names_it() {
        for (text, near) in [
            ("timed out (idel)", "timed out (idle)"),
            ("cancled", "cancelled"),
        ] {
            let words = tokens(text);
            let trouble = phrase(ENDED, "an end", &mut Cursor::new(&words)).unwrap_err();
            assert_eq!(trouble.nearest.as_deref(), Some(near), "{text}");
        }
    }

    #[test]
    fn no_phrase_stands_twice() {
        fn unique<T>(table: Table<T>) {
            for (at, (words, _)) in table.iter().enumerate() {
                assert!(
                    !table[..at].iter().any(|(other, _)| other == words),
                    "{words}"
                );
            }
        }
        unique(ENDED);
        unique(TOLD);
        unique(ENDINGS);
        unique(TOOL_ENDS);
        unique(RESULTS);
        unique(ASKS);
        unique(STORE_ERRORS);
        unique(CLASSES);
        unique(MODES);
        unique(DROPS);
        unique(LANES);
        unique(PRIORITIES);
    }
}
