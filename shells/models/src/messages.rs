//! A transcript as the messages of a chat request.
//!
//! Owns what the model is told about replies that are not whole: a cut reply says so, and a
//! message that never got a reply is followed by a note (B-028). So the model does not take
//! half an answer for its whole one, and user and assistant always alternate, which the
//! templates of many local models demand.

use serde::Serialize;
use tidegate_driver::{Role, RowMark, TranscriptRow};

/// Stands below what had arrived of a reply.
const CUT_OFF: &str = "[This reply was cut off before it was complete.]";

/// Stands in place of a reply.
const NO_REPLY: &str = "[This message got no reply: its run ended before there was any.]";

/// A message of a chat request.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Message {
    role: &'static str,
    content: String,
}

impl Message {
    fn assistant(content: impl Into<String>) -> Self {
        Self {
            role: "assistant",
            content: content.into(),
        }
    }
}

/// The messages of a transcript, oldest first. What a crash left of an attempt is no
/// message: the run was, or is now, done again.
pub(crate) fn messages(transcript: &[TranscriptRow]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for row in transcript
        .iter()
        .filter(|row| row.mark != RowMark::Interrupted)
    {
        let message = match row.role {
            Role::User => Message {
                role: "user",
                content: row.text.clone(),
            },
            Role::Assistant => Message::assistant(reply(row)),
        };
        if message.role == "user" && messages.last().is_some_and(|last| last.role == "user") {
            messages.push(Message::assistant(NO_REPLY));
        }
        messages.push(message);
    }
    messages
}

fn reply(row: &TranscriptRow) -> String {
    match row.mark {
        RowMark::Whole | RowMark::Interrupted => row.text.clone(),
        RowMark::Partial if row.text.is_empty() => NO_REPLY.to_owned(),
        RowMark::Partial => format!("{}\n\n{CUT_OFF}", row.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{RunId, Wall};

    fn row(role: Role, mark: RowMark, text: &str) -> TranscriptRow {
        let run = RunId::from_u128(1);
        TranscriptRow {
            seq: 1,
            role,
            mark,
            run,
            run_key: "r".into(),
            at: Wall(0),
            text: text.into(),
        }
    }

    fn told(rows: &[TranscriptRow]) -> Vec<(&'static str, String)> {
        messages(rows)
            .into_iter()
            .map(|message| (message.role, message.content))
            .collect()
    }

    /// B-028, P08
    #[test]
    fn a_reply_that_was_cut_off_says_so() {
        let rows = [
            row(Role::User, RowMark::Whole, "open it"),
            row(Role::Assistant, RowMark::Partial, "Opening"),
            row(Role::User, RowMark::Whole, "and now?"),
        ];
        let cut = format!("Opening\n\n{CUT_OFF}");
        assert_eq!(
            told(&rows),
            [
                ("user", "open it".into()),
                ("assistant", cut),
                ("user", "and now?".into())
            ]
        );
    }

    /// B-028
    #[test]
    fn a_message_without_a_reply_is_followed_by_a_note() {
        let rows = [
            row(Role::User, RowMark::Whole, "one"),
            row(Role::Assistant, RowMark::Interrupted, "half of"),
            row(Role::User, RowMark::Whole, "two"),
            row(Role::Assistant, RowMark::Partial, ""),
            row(Role::User, RowMark::Whole, "three"),
        ];
        let note = || ("assistant", NO_REPLY.to_owned());
        let user = |text: &str| ("user", text.to_owned());
        assert_eq!(
            told(&rows),
            [user("one"), note(), user("two"), note(), user("three")]
        );
    }

    #[test]
    fn what_a_crash_left_is_no_message() {
        let rows = [
            row(Role::User, RowMark::Whole, "one"),
            row(Role::Assistant, RowMark::Interrupted, "half of"),
        ];
        assert_eq!(told(&rows), [("user", "one".into())]);
    }
}
