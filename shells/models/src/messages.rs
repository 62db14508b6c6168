//! A transcript as the messages of a chat request.
//!
//! Owns what the model is told about replies that are not whole: a cut reply says so, and a
//! message that never got a reply is followed by a note (B-028). All that one turn answers is
//! one message: its own text and those that it took along, in their order, and before them
//! the first words of what gave way in a full queue (spec 3.3). So user and assistant always
//! alternate, which the templates of many local models demand.

use serde::Serialize;
use tidegate_core::{QueueMode, RunId};
use tidegate_driver::{Role, RowMark, TranscriptRow};

/// Stands below what had arrived of a reply.
const CUT_OFF: &str = "[This reply was cut off before it was complete.]";

/// Stands in place of a reply.
const NO_REPLY: &str = "[This message got no reply: its run ended before there was any.]";

/// Stands above messages that are answered together in collect mode (spec 3.3).
const COLLECTED: &str = "[Queued messages while agent was busy]";

/// Characters of a dropped message that the model is told (spec 3.3).
const TOLD_CHARS: usize = 160;

/// Dropped messages of one turn that the model is told of, the latest ones; the others are
/// counted. As many as a queue holds by default (spec 3).
const TOLD_MESSAGES: usize = 20;

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

/// What the model is told on the user's side in one turn.
struct Turn<'a> {
    run: RunId,
    /// The mode of its first message.
    queue: Option<QueueMode>,
    texts: Vec<&'a str>,
    /// Messages that gave way before it and are told.
    dropped: Vec<&'a str>,
    /// What the last of its broken attempts had said.
    left: Option<&'a str>,
}

/// The messages of a transcript, oldest first. What a broken attempt left is no message if the
/// run was, or is now, done again; of a run that never got further it is all there was.
pub(crate) fn messages(transcript: &[TranscriptRow]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let mut turn: Option<Turn<'_>> = None;
    let mut left = None;
    for row in transcript {
        match (row.mark, row.role) {
            (RowMark::Interrupted, _) => {
                if let Some(turn) = turn.as_mut().filter(|_| !row.text.is_empty()) {
                    turn.left = Some(&row.text);
                }
            }
            (_, Role::User) => {
                if let Some(before) = turn.take_if(|turn| turn.run != row.turn) {
                    left = before.end(left, &mut messages);
                }
                turn.get_or_insert_with(|| Turn::new(row.turn)).add(row);
            }
            (_, Role::Assistant) => {
                let mut own = None;
                if let Some(before) = turn.take() {
                    own = before.end(left.take(), &mut messages);
                }
                messages.push(Message::assistant(reply(row, own)));
            }
        }
    }
    if let Some(last) = turn {
        last.end(left, &mut messages);
    }
    messages
}

impl<'a> Turn<'a> {
    const fn new(run: RunId) -> Self {
        Self {
            run,
            queue: None,
            texts: Vec::new(),
            dropped: Vec::new(),
            left: None,
        }
    }

    fn add(&mut self, row: &'a TranscriptRow) {
        match row.mark {
            RowMark::Dropped { told: true } => self.dropped.push(&row.text),
            RowMark::Dropped { told: false } => {}
            RowMark::Whole | RowMark::Partial | RowMark::Interrupted => {
                if self.texts.is_empty() {
                    self.queue = row.queue;
                }
                self.texts.push(&row.text);
            }
        }
    }

    /// Puts the turn's message behind the others; if nobody answered the last one, what was
    /// left of its reply before it, or a note. A turn of which nothing is told is no message.
    /// Gives what is left of the reply to the last message.
    fn end(self, left: Option<&'a str>, messages: &mut Vec<Message>) -> Option<&'a str> {
        if self.texts.is_empty() && self.dropped.is_empty() {
            return left;
        }
        if messages.last().is_some_and(|last| last.role == "user") {
            messages.push(Message::assistant(unanswered(left)));
        }
        let mut parts = Vec::new();
        if !self.dropped.is_empty() {
            parts.push(overflow(&self.dropped));
        }
        if self.queue == Some(QueueMode::Collect) && self.texts.len() > 1 {
            parts.push(COLLECTED.to_owned());
            let numbered = self.texts.iter().zip(1..);
            parts.extend(numbered.map(|(text, n)| format!("---\nQueued #{n}\n{text}")));
        } else {
            parts.extend(self.texts.iter().map(|&text| text.to_owned()));
        }
        messages.push(Message {
            role: "user",
            content: parts.join("\n\n"),
        });
        self.left
    }
}

/// What gave way in a full queue: how many, and the first words of the latest.
fn overflow(dropped: &[&str]) -> String {
    let n = dropped.len();
    let messages = if n == 1 { "message" } else { "messages" };
    let mut told = format!("[Queue overflow] Dropped {n} {messages} due to cap");
    let omitted = n.saturating_sub(TOLD_MESSAGES);
    if omitted > 0 {
        told.push_str(&format!("\n- ({omitted} earlier, omitted)"));
    }
    for text in dropped.iter().skip(omitted) {
        told.push_str("\n- ");
        told.push_str(&first_words(text));
    }
    told
}

/// The beginning of a text on one line, with every run of whitespace as one space.
fn first_words(text: &str) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        let space = usize::from(chars > 0);
        for c in std::iter::repeat_n(' ', space).chain(word.chars()) {
            if chars == TOLD_CHARS {
                line.pop();
                line.push('…');
                return line;
            }
            line.push(c);
            chars += 1;
        }
    }
    line
}

fn reply(row: &TranscriptRow, left: Option<&str>) -> String {
    match row.mark {
        RowMark::Whole | RowMark::Interrupted | RowMark::Dropped { .. } => row.text.clone(),
        RowMark::Partial if row.text.is_empty() => unanswered(left),
        RowMark::Partial => cut_off(&row.text),
    }
}

/// What stands for the reply of a run that ended without one.
fn unanswered(left: Option<&str>) -> String {
    left.map_or_else(|| NO_REPLY.to_owned(), cut_off)
}

fn cut_off(text: &str) -> String {
    format!("{text}\n\n{CUT_OFF}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Wall;

    fn of(run: u128, turn: u128, role: Role, mark: RowMark, text: &str) -> TranscriptRow {
        TranscriptRow {
            seq: 1,
            role,
            mark,
            run: RunId::from_u128(run),
            run_key: "r".into(),
            turn: RunId::from_u128(turn),
            queue: None,
            at: Wall(0),
            text: text.into(),
        }
    }

    /// A chat message of a turn.
    fn chat(run: u128, turn: u128, queue: QueueMode, text: &str) -> TranscriptRow {
        TranscriptRow {
            queue: Some(queue),
            ..of(run, turn, Role::User, RowMark::Whole, text)
        }
    }

    fn dropped(run: u128, turn: u128, told: bool, text: &str) -> TranscriptRow {
        of(run, turn, Role::User, RowMark::Dropped { told }, text)
    }

    /// Rows of turns of their own, one after the other.
    fn turns(rows: &[(Role, RowMark, &str)]) -> Vec<TranscriptRow> {
        let mut turn = 0;
        rows.iter()
            .map(|&(role, mark, text)| {
                turn += u128::from(role == Role::User);
                of(turn, turn, role, mark, text)
            })
            .collect()
    }

    fn told(rows: &[TranscriptRow]) -> Vec<(&'static str, String)> {
        messages(rows)
            .into_iter()
            .map(|message| (message.role, message.content))
            .collect()
    }

    fn user(text: &str) -> (&'static str, String) {
        ("user", text.to_owned())
    }

    /// B-028, P08
    #[test]
    fn a_reply_that_was_cut_off_says_so() {
        let rows = turns(&[
            (Role::User, RowMark::Whole, "open it"),
            (Role::Assistant, RowMark::Partial, "Opening"),
            (Role::User, RowMark::Whole, "and now?"),
        ]);
        let cut = format!("Opening\n\n{CUT_OFF}");
        assert_eq!(
            told(&rows),
            [user("open it"), ("assistant", cut), user("and now?")]
        );
    }

    /// B-028
    #[test]
    fn a_message_without_a_reply_is_followed_by_a_note() {
        let rows = turns(&[
            (Role::User, RowMark::Whole, "one"),
            (Role::User, RowMark::Whole, "two"),
            (Role::Assistant, RowMark::Partial, ""),
            (Role::User, RowMark::Whole, "three"),
        ]);
        let note = || ("assistant", NO_REPLY.to_owned());
        assert_eq!(
            told(&rows),
            [user("one"), note(), user("two"), note(), user("three")]
        );
    }

    #[test]
    fn what_a_crash_left_is_no_message() {
        let rows = turns(&[
            (Role::User, RowMark::Whole, "one"),
            (Role::Assistant, RowMark::Interrupted, "half of"),
        ]);
        assert_eq!(told(&rows), [user("one")]);
    }

    /// Law 10: a run that ended while it was to be done again had said something.
    #[test]
    fn what_a_broken_attempt_left_is_all_that_its_run_said() {
        let rows = turns(&[
            (Role::User, RowMark::Whole, "one"),
            (Role::Assistant, RowMark::Interrupted, "a third"),
            (Role::Assistant, RowMark::Interrupted, "half of"),
            (Role::User, RowMark::Whole, "two"),
            (Role::User, RowMark::Whole, "three"),
            (Role::Assistant, RowMark::Interrupted, "not this"),
            (Role::Assistant, RowMark::Whole, "but this"),
            (Role::User, RowMark::Whole, "four"),
            (Role::Assistant, RowMark::Interrupted, "a beginning"),
            (Role::Assistant, RowMark::Partial, ""),
            (Role::User, RowMark::Whole, "five"),
            (Role::Assistant, RowMark::Interrupted, "so far"),
            (
                Role::User,
                RowMark::Dropped { told: false },
                "of this nothing is told",
            ),
            (Role::User, RowMark::Whole, "six"),
        ]);
        let said = |text: &str| ("assistant", text.to_owned());
        assert_eq!(
            told(&rows),
            [
                user("one"),
                said(&format!("half of\n\n{CUT_OFF}")),
                user("two"),
                said(NO_REPLY),
                user("three"),
                said("but this"),
                user("four"),
                said(&format!("a beginning\n\n{CUT_OFF}")),
                user("five"),
                said(&format!("so far\n\n{CUT_OFF}")),
                user("six"),
            ]
        );
    }

    /// R44, I29, P26: one message to the model, each text whole and in its place; what a crash
    /// left between them does not part them.
    #[test]
    fn what_was_taken_along_is_told_in_the_same_message() {
        let rows = [
            chat(1, 1, QueueMode::Steer, "write a poem"),
            of(1, 1, Role::Assistant, RowMark::Interrupted, "half of"),
            chat(2, 1, QueueMode::Steer, "about the sea"),
            chat(3, 1, QueueMode::Collect, "short"),
        ];
        assert_eq!(
            told(&rows),
            [user("write a poem\n\nabout the sea\n\nshort")]
        );
    }

    /// R46: the frame of spec 3.3; a message that is alone has none.
    #[test]
    fn collected_messages_are_framed_and_numbered() {
        let rows = [
            chat(1, 1, QueueMode::Collect, "alone"),
            of(1, 1, Role::Assistant, RowMark::Whole, "yes"),
            chat(2, 2, QueueMode::Collect, "first\nof two"),
            chat(3, 2, QueueMode::Collect, "second"),
        ];
        let framed =
            format!("{COLLECTED}\n\n---\nQueued #1\nfirst\nof two\n\n---\nQueued #2\nsecond");
        assert_eq!(
            told(&rows),
            [
                user("alone"),
                ("assistant", "yes".to_owned()),
                user(&framed)
            ]
        );
    }

    /// Spec 3.3: told ones are summed up before their turn's message, the others are not told.
    #[test]
    fn dropped_messages_are_summed_up_before_their_turn() {
        let long = format!("{} end", "ab  \n c".repeat(100));
        let rows = [
            chat(1, 1, QueueMode::Steer, "one"),
            dropped(2, 5, true, "  two\n\tlines "),
            dropped(3, 5, false, "never told"),
            dropped(4, 5, true, &long),
            chat(5, 5, QueueMode::Steer, "five"),
        ];
        let messages = told(&rows);
        assert_eq!(messages[0], user("one"));
        assert_eq!(messages[1].0, "assistant");
        let (title, rest) = messages[2].1.split_once('\n').expect("lines");
        assert_eq!(title, "[Queue overflow] Dropped 2 messages due to cap");
        let lines: Vec<&str> = rest.lines().collect();
        assert_eq!(lines[0], "- two lines");
        let shown = lines[1].strip_prefix("- ").expect("a bullet");
        assert_eq!(shown.chars().count(), TOLD_CHARS);
        assert!(
            shown.starts_with("ab cab c") && shown.ends_with('…'),
            "{shown}"
        );
        assert_eq!(lines[2..], ["", "five"]);
    }

    /// A turn of which nothing is told is no message, and asks for no note.
    #[test]
    fn what_gave_way_untold_leaves_no_trace() {
        let rows = [
            chat(1, 1, QueueMode::Steer, "one"),
            of(1, 1, Role::Assistant, RowMark::Whole, "yes"),
            dropped(2, 2, false, "never told"),
        ];
        assert_eq!(told(&rows), [user("one"), ("assistant", "yes".to_owned())]);
        assert_eq!(first_words(&"x".repeat(TOLD_CHARS)), "x".repeat(TOLD_CHARS));
    }

    /// Law 9: however many gave way, the model is told of a bounded number.
    #[test]
    fn many_dropped_messages_are_counted_and_the_latest_told() {
        let texts: Vec<String> = (0..TOLD_MESSAGES + 5).map(|n| format!("m{n}")).collect();
        let told = overflow(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), TOLD_MESSAGES + 2);
        assert_eq!(
            lines[..3],
            [
                "[Queue overflow] Dropped 25 messages due to cap",
                "- (5 earlier, omitted)",
                "- m5",
            ]
        );
    }
}
