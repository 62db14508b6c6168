//! What a chat line is: a command, or plain text for the agent.
//!
//! It owns how commands are written (spec 3; surface 2.1, 2.4). What one does, and to which
//! run, is decided in the core; text that is no command is never changed here.

use thiserror::Error;
use tidegate_core::{QueueChange, QueueMode, QueueOverride};

use crate::queue_words::{
    DEBOUNCE_MAX_MS, DROP_POLICIES, QUEUE_CAP_MAX, QUEUE_MODES, drop_policy, drop_policy_name,
    duration_ms, queue_mode, queue_mode_name,
};

/// A command that a chat line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// `/stop`, or the bare word: stop what is at work. What follows `/stop` counts for nothing,
    /// since a stop must not fail on a word too many.
    Stop,
    /// `/new`: begin the session anew; the text after it, if any, is its first message.
    New {
        /// The first message.
        message: Option<&'a str>,
    },
    /// `/reset`: empty the session; the text after it, if any, is its first message.
    Reset {
        /// The first message.
        message: Option<&'a str>,
    },
    /// `/queue` without a message: see, set or clear how this session queues.
    Queue(QueueChange),
    /// `/queue` with a message, `/steer` or `/tell`: how this one message queues.
    Once {
        /// What holds for the message alone.
        queue: QueueOverride,
        /// The message; never empty.
        message: &'a str,
    },
}

/// A line that begins as a command and can't be understood as one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadCommand {
    /// What follows `/queue` is no mode, no option and no way to clear them.
    #[error(
        "/queue: \"{word}\" is no queue mode; expected {}, or default to go back to what is configured",
        modes()
    )]
    Mode {
        /// The word, shortened.
        word: String,
    },
    /// A message stands below `/queue`, and nothing that would hold for it.
    #[error(
        "/queue with a message needs a mode or an option before it; expected {}",
        modes()
    )]
    NoMode,
    /// A word of the form `name:value` whose name is none.
    #[error(
        "/queue: \"{word}\" is no option; expected debounce:, cap: or drop:. A message that begins so can stand on the next line"
    )]
    Option {
        /// The word, shortened.
        word: String,
    },
    /// An option that was given before.
    #[error("/queue: {name} is given twice; expected it once")]
    Twice {
        /// The option.
        name: &'static str,
    },
    /// A quiet time that is none, or too long.
    #[error("/queue: debounce:{word} is no length of time; expected a whole number with ms, s, m, h or d, at most {} d", DEBOUNCE_MAX_MS / 86_400_000)]
    Debounce {
        /// The value, shortened.
        word: String,
    },
    /// A cap that is no number, or too large.
    #[error("/queue: cap:{word} is no cap; expected a whole number from 1 to {QUEUE_CAP_MAX}")]
    Cap {
        /// The value, shortened.
        word: String,
    },
    /// A drop policy that is none.
    #[error("/queue: drop:{word} is no drop policy; expected {}", policies())]
    Drop {
        /// The value, shortened.
        word: String,
    },
    /// Something follows `/queue default`.
    #[error("/queue {word} takes nothing after it; send the message by itself")]
    AfterClear {
        /// `default` or `reset`, as it was written.
        word: String,
    },
    /// `/steer` or `/tell` alone.
    #[error("{name} needs a message after it")]
    NoMessage {
        /// The command.
        name: &'static str,
    },
}

/// Says what a chat line is. `None`: plain text for the agent, as is every line that begins
/// with a slash and no known command.
///
/// # Errors
/// A known command that can't be understood: what was wrong and what was expected.
pub fn read_command(text: &str) -> Result<Option<Command<'_>>, BadCommand> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("stop") {
        return Ok(Some(Command::Stop));
    }
    let (name, rest) = first_word(text);
    let message = (!rest.is_empty()).then_some(rest);
    match name.to_ascii_lowercase().as_str() {
        "/stop" => Ok(Some(Command::Stop)),
        "/new" => Ok(Some(Command::New { message })),
        "/reset" => Ok(Some(Command::Reset { message })),
        "/queue" => queue(after(text, name)).map(Some),
        "/steer" => steer("/steer", message).map(Some),
        "/tell" => steer("/tell", message).map(Some),
        _ => Ok(None),
    }
}

/// Spec 3.1: an explicit steer is one message in mode steer, whatever the session's mode.
fn steer<'a>(name: &'static str, message: Option<&'a str>) -> Result<Command<'a>, BadCommand> {
    let message = message.ok_or(BadCommand::NoMessage { name })?;
    let queue = QueueOverride {
        mode: Some(QueueMode::Steer),
        ..QueueOverride::default()
    };
    Ok(Command::Once { queue, message })
}

/// What stands after `/queue`: on its line a mode and options, then, on the same line or the
/// next, the message that they are for. Without a message they are the session's.
fn queue(rest: &str) -> Result<Command<'_>, BadCommand> {
    let (line, below) = match rest.find('\n') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (word, tail) = first_word(line);
    if ["default", "reset"]
        .iter()
        .any(|clear| word.eq_ignore_ascii_case(clear))
    {
        return match tail.is_empty() && below.trim().is_empty() {
            true => Ok(Command::Queue(QueueChange::Clear)),
            false => Err(BadCommand::AfterClear { word: echo(word) }),
        };
    }
    let mut set = QueueOverride::default();
    let mut left = line;
    if let Some(mode) = queue_mode(word) {
        set.mode = Some(mode.value);
        left = tail;
    } else if !word.is_empty() && !word.split_once(':').is_some_and(is_option) {
        return Err(BadCommand::Mode { word: echo(word) });
    }
    let left = options(left, &mut set)?;
    // The message is one piece of the text: it begins in this line or below, and ends with it.
    let message = after_line(rest, line, left);
    match (message, word) {
        ("", "") => Ok(Command::Queue(QueueChange::Show)),
        ("", _) => Ok(Command::Queue(QueueChange::Set(set))),
        (_, "") => Err(BadCommand::NoMode),
        (message, _) => Ok(Command::Once {
            queue: set,
            message,
        }),
    }
}

/// Takes options from the front of a line; gives what is left of it.
fn options<'a>(mut line: &'a str, set: &mut QueueOverride) -> Result<&'a str, BadCommand> {
    let mut seen: Vec<&'static str> = Vec::new();
    loop {
        let (word, rest) = first_word(line);
        let Some((name, value)) = word.split_once(':').filter(|pair| is_option(*pair)) else {
            return Ok(line.trim_start());
        };
        let bad = || echo(value);
        let name = match name.to_ascii_lowercase().as_str() {
            "debounce" => {
                let ms = duration_ms(value).ok_or_else(|| BadCommand::Debounce { word: bad() })?;
                set.debounce_ms = Some(ms);
                "debounce"
            }
            "cap" => {
                set.cap = cap(value).ok_or_else(|| BadCommand::Cap { word: bad() })?;
                "cap"
            }
            "drop" => {
                let policy = drop_policy(value).ok_or_else(|| BadCommand::Drop { word: bad() })?;
                set.drop = Some(policy);
                "drop"
            }
            _ => return Err(BadCommand::Option { word: echo(word) }),
        };
        if seen.contains(&name) {
            return Err(BadCommand::Twice { name });
        }
        seen.push(name);
        line = rest;
    }
}

/// Whether a word is written as an option: a name of letters, and a value that does not make
/// an address of it. `note:` and `http://host` are words of a message.
fn is_option((name, value): (&str, &str)) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphabetic());
    letters && !name.is_empty() && !value.is_empty() && !value.starts_with("//")
}

/// A cap; the inner `None` is one below 1, which is left out of account (spec 3).
fn cap(word: &str) -> Option<Option<u32>> {
    let (is_below, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if is_below || digits.bytes().all(|byte| byte == b'0') {
        return Some(None);
    }
    let cap = digits.parse().ok().filter(|cap| *cap <= QUEUE_CAP_MAX)?;
    Some(Some(cap))
}

/// The first word of a text, and what follows it, without the white space around.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.find(char::is_whitespace) {
        Some(at) => (&text[..at], text[at..].trim()),
        None => (text, ""),
    }
}

/// What follows the word that a text begins with, with its line breaks.
fn after<'a>(text: &'a str, word: &str) -> &'a str {
    text.strip_prefix(word).unwrap_or_default()
}

/// The message whose first line is `left`, the end of `line`, where `line` begins `rest`.
fn after_line<'a>(rest: &'a str, line: &str, left: &str) -> &'a str {
    let trimmed = line.trim_end();
    let begin = trimmed.len().saturating_sub(left.trim_end().len());
    rest.get(begin..).unwrap_or_default().trim()
}

/// The most bytes of a foreign word that an error repeats (law 9).
const ECHO_BYTES: usize = 64;

/// A foreign word, so that it can be shown: bounded, and without control characters.
fn echo(word: &str) -> String {
    let cut = word.floor_char_boundary(ECHO_BYTES);
    let more = if cut < word.len() { "…" } else { "" };
    format!("{}{more}", word[..cut].escape_debug())
}

fn modes() -> String {
    QUEUE_MODES.map(queue_mode_name).join(", ")
}

fn policies() -> String {
    DROP_POLICIES.map(drop_policy_name).join(", ")
}
