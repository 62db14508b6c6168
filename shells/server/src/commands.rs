//! Commands in chats: what `/stop`, `/new`, `/reset` and `/queue` are answered, and the
//! memory of which ones were carried out already.
//!
//! How a command is written stands in `tidegate_text`, what it does is decided in the core.
//! The memory is for clients that send again after a lost socket: a second `/new` must not
//! end what began meanwhile. It lasts as long as the process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_core::{QueueOverride, QueueSettings};
use tidegate_text::{drop_policy_name, queue_mode_name};

use crate::limits::COMMANDS_REMEMBERED;

/// Commands that were taken lately, by their idempotency key.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    by_key: BTreeMap<String, Command>,
    order: VecDeque<String>,
}

#[derive(Debug)]
struct Command {
    session_key: String,
    text: String,
    done: bool,
}

/// What is known of a command that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is new, and taken from now on.
    No,
    /// It is being carried out.
    UnderWay,
    /// It was carried out.
    Done,
    /// The key belongs to another one.
    Other,
}

impl Recent {
    /// Takes a command, unless its key is known.
    pub fn take(&self, key: &str, session_key: &str, text: &str) -> Known {
        let mut taken = self.lock();
        if let Some(known) = taken.by_key.get(key) {
            return match known {
                known if known.session_key != session_key || known.text != text => Known::Other,
                Command { done: true, .. } => Known::Done,
                _ => Known::UnderWay,
            };
        }
        if taken.order.len() >= COMMANDS_REMEMBERED
            && let Some(oldest) = taken.order.pop_front()
        {
            taken.by_key.remove(&oldest);
        }
        let command = Command {
            session_key: session_key.to_owned(),
            text: text.to_owned(),
            done: false,
        };
        taken.by_key.insert(key.to_owned(), command);
        taken.order.push_back(key.to_owned());
        Known::No
    }

    /// Whether a command is known under this key.
    pub fn knows(&self, key: &str) -> bool {
        self.lock().by_key.contains_key(key)
    }

    /// A command was carried out.
    pub fn done(&self, key: &str) {
        if let Some(command) = self.lock().by_key.get_mut(key) {
            command.done = true;
        }
    }

    /// A command was refused: it may come again.
    pub fn refused(&self, key: &str) {
        let mut taken = self.lock();
        taken.by_key.remove(key);
        taken.order.retain(|known| known != key);
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Two statements apart the maps still only know too much, which is bounded.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `/stop` is answered.
pub(crate) fn stopped(runs: usize) -> String {
    match runs {
        0 => "Nothing was running.".to_owned(),
        1 => "Stopped.".to_owned(),
        n => format!("Stopped {n} messages."),
    }
}

/// What `/new` or `/reset` is answered.
pub(crate) fn begun(reason: &str, ended: usize) -> String {
    let done = match reason {
        "new" => "New session started.",
        _ => "Session reset.",
    };
    match ended {
        0 => done.to_owned(),
        1 => format!("{done} One message was stopped by it."),
        n => format!("{done} {n} messages were stopped by it."),
    }
}

/// What `/queue` is answered.
pub(crate) fn queue(settings: QueueSettings, own: QueueOverride, waiting: u32) -> String {
    let from = if own.is_empty() {
        "as configured"
    } else {
        "set for this session"
    };
    format!(
        "Queue: {} ({from}), debounce {} ms, cap {}, drop {}. {waiting} waiting.",
        queue_mode_name(settings.mode),
        settings.debounce_ms,
        settings.cap,
        drop_policy_name(settings.drop),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P06, law 9: a command that comes again is recognised, and the memory is bounded
    #[test]
    fn a_command_is_carried_out_once() {
        let recent = Recent::default();
        assert_eq!(recent.take("k", "s", "/new"), Known::No);
        assert_eq!(recent.take("k", "s", "/new"), Known::UnderWay);
        recent.done("k");
        assert_eq!(recent.take("k", "s", "/new"), Known::Done);
        assert_eq!(recent.take("k", "t", "/new"), Known::Other);
        assert_eq!(recent.take("k", "s", "/stop"), Known::Other);
        for n in 0..COMMANDS_REMEMBERED {
            assert_eq!(recent.take(&n.to_string(), "s", "/new"), Known::No);
        }
        assert_eq!(recent.lock().by_key.len(), COMMANDS_REMEMBERED);
        assert_eq!(recent.take("k", "s", "/new"), Known::No);
        recent.refused("k");
        assert_eq!(recent.take("k", "t", "/stop"), Known::No);
    }
}
