//! What the value of a key must be, and the words for it.
//!
//! It judges no value; that is the reader's.

use tidegate_text as text;

/// What a key's value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text that is not empty.
    Text,
    /// Text that is never shown.
    Secret,
    /// `provider/model`.
    ModelName,
    /// An integer of this range.
    Whole {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// What is counted; empty where there is no word for it.
        unit: &'static str,
    },
    /// One word. `known` ones are words of the protocol that mean something else, where
    /// `missing` says what this version lacks.
    Word {
        /// The word that is accepted.
        only: &'static str,
        /// The words that will be, perhaps.
        known: &'static [&'static str],
        /// Why they are not now.
        missing: &'static str,
    },
    /// One of these words. `known` ones are as in [`Kind::Word`].
    OneOf {
        /// The words that are accepted.
        words: &'static [&'static str],
        /// The words that will be, perhaps.
        known: &'static [&'static str],
        /// Why they are not now.
        missing: &'static str,
    },
    /// A directory: an absolute path, or one within the home directory.
    Directory,
    /// A queue mode, under any of its names.
    QueueMode,
    /// A drop policy, under any of its names.
    DropPolicy,
}

impl Kind {
    /// What was expected, for a person.
    #[must_use]
    pub fn expectation(self) -> String {
        match self {
            Self::Text | Self::Secret => "text that is not empty".into(),
            Self::ModelName => "text of the form \"provider/model\"".into(),
            Self::Whole { min, max, unit } => {
                let unit = match unit {
                    "" => String::new(),
                    unit => format!(" ({unit})"),
                };
                format!("a whole number from {min} to {max}{unit}")
            }
            Self::Word { only, .. } => format!("\"{only}\""),
            Self::OneOf { words, .. } => quoted(words),
            Self::Directory => "a path that begins with / or ~/".into(),
            Self::QueueMode | Self::DropPolicy => format!("one of {}", self.choices().join(", ")),
        }
    }

    /// The names of what can be chosen; empty where it is no choice.
    #[must_use]
    pub fn choices(self) -> Vec<&'static str> {
        match self {
            Self::OneOf { words, .. } => words.to_vec(),
            Self::QueueMode => text::QUEUE_MODES.map(text::queue_mode_name).into(),
            Self::DropPolicy => text::DROP_POLICIES.map(text::drop_policy_name).into(),
            _ => Vec::new(),
        }
    }

    /// What a word chooses, under its first name, and whether the word is one of the past.
    #[must_use]
    pub fn choice(self, word: &str) -> Option<text::Named<&'static str>> {
        let (value, is_past) = match self {
            Self::QueueMode => {
                let mode = text::queue_mode(word)?;
                (text::queue_mode_name(mode.value), mode.is_past)
            }
            Self::DropPolicy => (text::drop_policy_name(text::drop_policy(word)?), false),
            _ => return None,
        };
        Some(text::Named { value, is_past })
    }
}

/// Words as they are written in the file.
fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(" or ")
}
