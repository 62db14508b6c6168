//! A transcript as the messages of a chat request.
//!
//! Owns what the model is told about replies that are not whole: a cut reply says so, and a
//! message that never got a reply is followed by a note (B-028). All that one turn answers is
//! one message: its own text and those that it took along, in their order, and before them
//! the first words of what gave way in a full queue (spec 3.3); what steered into it behind a
//! round of tools is another one there. So user and assistant always alternate, which the
//! templates of many local models demand. How a round of tools is told stands in `rounds`.

mod rounds;

use serde::Serialize;
use tidegate_core::{QueueMode, RunId};
use tidegate_driver::{Role, RowMark, TranscriptRow};

use rounds::{CallIds, Round};

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

/// Ends a request whose last message would be an answer, when no tools are offered any more.
const GO_ON: &str = "[The tools are not offered any more. Go on without them.]";

/// A message of a chat request.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(crate) enum Message {
    /// What the user says.
    User { content: String },
    /// What the model said. Either there is content, or there are calls.
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<AskedCall>,
    },
    /// What came of a call of the assistant's message before.
    Tool {
        tool_call_id: String,
        content: String,
    },
}

/// A call as a request repeats it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AskedCall {
    id: String,
    r#type: &'static str,
    function: AskedFunction,
}

/// Its tool and the arguments, which are a JSON object.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AskedFunction {
    name: String,
    arguments: String,
}

/// What the model is told on the user's side in one turn.
struct Turn<'a> {
    run: RunId,
    /// The mode of its first message.
    queue: Option<QueueMode>,
    /// Messages that are not told yet.
    texts: Vec<&'a str>,
    /// Messages that gave way before it and are told.
    dropped: Vec<&'a str>,
    /// What the last of its broken attempts had said, since its last round of tools.
    left: Option<&'a str>,
    /// Something of it is told.
    begun: bool,
}

/// The messages so far.
struct Telling<'a> {
    /// Whether the model may ask for tools.
    offered: bool,
    messages: Vec<Message>,
    ids: CallIds,
    /// The turn that is open.
    turn: Option<Turn<'a>>,
    /// What was left of the reply to the last message.
    left: Option<&'a str>,
    /// The last message is the user's, or that of a round of tools.
    owed: bool,
}

/// The messages of a transcript, oldest first. What a broken attempt left is no message if the
/// run was, or is now, done again; of a run that never got further it is all there was. Tool
/// calls are told as such only where tools are `offered`: many providers refuse them otherwise.
pub(crate) fn messages(transcript: &[TranscriptRow], offered: bool) -> Vec<Message> {
    let mut told = Telling {
        offered,
        messages: Vec::new(),
        ids: CallIds::default(),
        turn: None,
        left: None,
        owed: false,
    };
    for (at, row) in transcript.iter().enumerate() {
        match (row.mark, row.role) {
            (_, Role::Tool) => {} // told with the calls, if there is such a call
            (RowMark::Interrupted, _) => {
                if let Some(turn) = told.turn.as_mut().filter(|_| !row.text.is_empty()) {
                    turn.left = Some(&row.text);
                }
            }
            (_, Role::User) => told.user(row),
            (RowMark::Calls, Role::Assistant) if !row.calls.is_empty() => {
                told.round(&Round::gather(row, &transcript[at + 1..]));
            }
            (_, Role::Assistant) => told.reply(row),
        }
    }
    told.end()
}

impl<'a> Telling<'a> {
    fn user(&mut self, row: &'a TranscriptRow) {
        if let Some(before) = self.turn.take_if(|turn| turn.run != row.turn) {
            self.close(before);
        }
        let turn = self.turn.get_or_insert_with(|| Turn::new(row.turn));
        turn.add(row);
    }

    fn round(&mut self, round: &Round<'_>) {
        if let Some(mut turn) = self.turn.take() {
            self.say(&mut turn);
            turn.left = None;
            self.turn = Some(turn);
        }
        if self.offered {
            self.messages.extend(round.messages(&mut self.ids));
        } else {
            self.assistant(round.words());
        }
        self.owed = true;
    }

    fn reply(&mut self, row: &TranscriptRow) {
        let mut own = None;
        if let Some(before) = self.turn.take() {
            self.close(before);
            own = self.left.take();
        }
        self.assistant(reply(row, own));
        self.owed = false;
    }

    /// Ends a turn that is left, or answered next. One of which nothing is told leaves no trace.
    fn close(&mut self, mut turn: Turn<'a>) {
        self.say(&mut turn);
        if turn.begun {
            self.left = turn.left;
        }
    }

    /// Puts what a turn says on the user's side behind the others; if nobody answered the turn
    /// before it, what was left of that reply, or a note, before it.
    fn say(&mut self, turn: &mut Turn<'a>) {
        let Some(content) = turn.words() else {
            return;
        };
        if self.owed && !turn.begun {
            let note = unanswered(self.left.take());
            self.assistant(note);
        }
        self.messages.push(Message::User { content });
        turn.begun = true;
        self.owed = true;
    }

    /// Adds a text of the assistant. What it says in one go is one message.
    fn assistant(&mut self, text: String) {
        if let Some(Message::Assistant {
            content: Some(before),
            tool_calls,
        }) = self.messages.last_mut()
            && tool_calls.is_empty()
        {
            before.push_str("\n\n");
            before.push_str(&text);
            return;
        }
        self.messages.push(Message::Assistant {
            content: Some(text),
            tool_calls: Vec::new(),
        });
    }

    fn end(mut self) -> Vec<Message> {
        if let Some(last) = self.turn.take() {
            self.close(last);
        }
        if self.owed && matches!(self.messages.last(), Some(Message::Assistant { .. })) {
            let content = GO_ON.to_owned();
            self.messages.push(Message::User { content });
        }
        self.messages
    }
}

impl<'a> Turn<'a> {
    const fn new(run: RunId) -> Self {
        Self {
            run,
            queue: None,
            texts: Vec::new(),
            dropped: Vec::new(),
            left: None,
            begun: false,
        }
    }

    fn add(&mut self, row: &'a TranscriptRow) {
        match row.mark {
            RowMark::Dropped { told: true } => self.dropped.push(&row.text),
            RowMark::Dropped { told: false } => {}
            RowMark::Whole | RowMark::Calls | RowMark::Partial | RowMark::Interrupted => {
                if self.texts.is_empty() {
                    self.queue = row.queue;
                }
                self.texts.push(&row.text);
            }
        }
    }

    /// What is not told yet, as one message; `None` if that is nothing.
    fn words(&mut self) -> Option<String> {
        let dropped = core::mem::take(&mut self.dropped);
        let texts = core::mem::take(&mut self.texts);
        if texts.is_empty() && dropped.is_empty() {
            return None;
        }
        let mut parts = Vec::new();
        if !dropped.is_empty() {
            parts.push(overflow(&dropped));
        }
        if self.queue == Some(QueueMode::Collect) && texts.len() > 1 {
            parts.push(COLLECTED.to_owned());
            let numbered = texts.iter().zip(1..);
            parts.extend(numbered.map(|(text, n)| format!("---\nQueued #{n}\n{text}")));
        } else {
            parts.extend(texts.iter().map(|&text| text.to_owned()));
        }
        Some(parts.join("\n\n"))
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
        RowMark::Whole | RowMark::Calls | RowMark::Interrupted | RowMark::Dropped { .. } => {
            row.text.clone()
        }
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
mod tests;
