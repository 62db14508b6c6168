//! The chat's own words: where a message stands, how a run ended, what can be typed.
//!
//! Pure. What happened is the gateway's to say; here it only gets its sentence.

use tidegate_wire::{
    ChatSendAck, ChatState, ContentPart, HistoryMessage, InputState, InputStep, MessageContent,
    RunStatus, WaitResult,
};

use crate::exit::Exit;
use crate::problem::{Origin, Problem};
use crate::shown;
use crate::tool_lines;

/// The most characters of a message that are repeated in a note.
const QUOTE_CHARS: usize = 40;

/// What `/help` says.
pub const HELP: &str = "\
A line is a message. It is sent at once, also while a run is at work: the session's queue mode
decides what becomes of it.
  /queue                  how this session queues, and what waits
  /queue MODE             steer, followup, collect or interrupt; default: as configured
  /queue MODE cap:N drop:old|new|summarize debounce:500ms
  /queue MODE MESSAGE     the mode for this one message
  /stop                   stop the run at work and what waits
  /approve [ID]           let the command run that waits to be allowed; in a terminal also y
  /deny [ID]              do not let it run; in a terminal also n
  /new [MESSAGE]          begin a new conversation in this session
  /reset [MESSAGE]        the same, by its other name
  /help                   this
  /quit                   leave; what is at work goes on
Ctrl-C stops the run at work; pressed again, or when nothing is at work, it leaves.";

/// How a message ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With an answer.
    Answered {
        /// The answer; absent where it stands with another run, or came before.
        text: Option<String>,
        /// The run in whose turn it was answered.
        turn: Option<String>,
    },
    /// It was stopped, or gave way.
    Stopped {
        /// What had come.
        text: Option<String>,
        /// Why, as a note.
        why: String,
    },
    /// It failed, or a limit ended it.
    Failed {
        /// What had come.
        text: Option<String>,
        /// Why, as a sentence.
        why: String,
    },
}

impl End {
    /// The end that a `chat` event tells, if it tells one.
    #[must_use]
    pub fn of_chat(state: ChatState) -> Option<Self> {
        let text = |message: Option<tidegate_wire::ChatMessage>| message.map(|it| it.text());
        Some(match state {
            ChatState::Status(_) | ChatState::Delta { .. } => return None,
            ChatState::Final {
                message,
                answered_in,
                ..
            } => Self::Answered {
                text: text(message),
                turn: answered_in,
            },
            ChatState::Aborted {
                message,
                stop_reason,
                input_state,
                ..
            } => Self::Stopped {
                text: text(message),
                why: stopped(stop_reason.as_deref(), input_state.as_deref()),
            },
            ChatState::Error {
                message,
                error_message,
                ..
            } => Self::Failed {
                text: text(message),
                why: error_message.unwrap_or_else(|| "the run failed".to_owned()),
            },
        })
    }

    /// The end that a wait tells; `None`: the run has not ended.
    #[must_use]
    pub fn of_wait(wait: WaitResult) -> Option<Self> {
        wait.ended_at?;
        let reply = wait.terminal_reply.and_then(|reply| reply.text);
        Some(match (wait.status, wait.stop_reason.as_deref()) {
            (RunStatus::Ok, _) => Self::Answered {
                text: reply.filter(|_| wait.answered_in.is_none()),
                turn: wait.answered_in,
            },
            (_, Some(reason)) => Self::Stopped {
                text: None,
                why: stopped(Some(reason), None),
            },
            (_, None) => Self::Failed {
                text: None,
                why: wait.error.unwrap_or_else(|| "the run failed".to_owned()),
            },
        })
    }

    /// What a script should read from it. `asked`: this chat's Ctrl-C had asked for a stop.
    #[must_use]
    pub const fn exit(&self, asked: bool) -> Exit {
        match self {
            Self::Answered { .. } => Exit::Ok,
            Self::Stopped { .. } if asked => Exit::Interrupted,
            Self::Stopped { .. } | Self::Failed { .. } => Exit::Failed,
        }
    }
}

fn stopped(reason: Option<&str>, input: Option<&str>) -> String {
    match (reason, input) {
        (Some("dropped"), _) | (_, Some("dropped")) => "dropped: the queue is full".into(),
        (_, Some("given_back")) => "stopped before its turn came".into(),
        (Some("interrupt"), _) => "stopped: a later message interrupts it".into(),
        (Some("reset"), _) => "stopped: the conversation begins anew".into(),
        (Some("superseded"), _) => "stopped: another gateway took the session over".into(),
        _ => "stopped".into(),
    }
}

/// Where a message stands that was just accepted; `None` if it begins at once.
#[must_use]
pub fn placed(ack: &ChatSendAck) -> Option<String> {
    Some(match ack.input_state? {
        InputState::Started => return None,
        InputState::Queued => match ack.queued_ahead {
            Some(ahead) => format!("queued behind {ahead}"),
            None => "queued".into(),
        },
        InputState::Steered => {
            "goes to the run at work before its next model call, if one follows; else follows it"
                .into()
        }
        InputState::Interrupting => "interrupts the run at work".into(),
    })
}

/// A step on the way of `message`. Where it stands is told by the answer to it.
#[must_use]
pub fn step(step: &InputStep, message: &str) -> Option<String> {
    match step {
        InputStep::Waited { ms, .. } => Some(format!(
            "{} has waited {} s for its turn, and begins",
            quote(message),
            ms / 1_000
        )),
        _ => None,
    }
}

/// That a message is answered by the answer of another run.
#[must_use]
pub fn together(message: &str, other: &str) -> String {
    format!("{} is answered together with {other}", quote(message))
}

/// The first characters of a message, in one line.
#[must_use]
pub fn quote(message: &str) -> String {
    let mut chars = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = chars.char_indices().nth(QUOTE_CHARS) {
        chars.truncate(at);
        chars.push('…');
    }
    format!("\"{chars}\"")
}

/// A message of the history, as it was said.
#[must_use]
pub fn of_history(message: &HistoryMessage) -> String {
    let mut text = message.text();
    if message.truncated {
        text.push('…');
    }
    if let Some(mark) = &message.mark {
        text.push_str(&format!(" ({mark})"));
    }
    match message.role.as_str() {
        "user" => format!("> {text}"),
        "toolResult" => {
            let name = message.tool_name.as_deref().unwrap_or("tool");
            format!("[{}] gave {}", shown::short(name), quote(&text))
        }
        _ => with_calls(text, message),
    }
}

/// An answer with the tool calls that it asks for, each in its line.
fn with_calls(mut text: String, message: &HistoryMessage) -> String {
    let MessageContent::Parts(parts) = &message.content else {
        return text;
    };
    for part in parts {
        if let ContentPart::ToolCall {
            name, arguments, ..
        } = part
        {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&tool_lines::named(name, arguments));
        }
    }
    text
}

/// The gateway never came back.
#[must_use]
pub fn gave_up(last: &Problem, attempts: u32, accepted: usize, unknown: usize) -> Problem {
    let mut fate = Vec::new();
    if accepted > 0 {
        fate.push(format!(
            "{accepted} of the messages were accepted: they are answered when the gateway runs again, and the session keeps the answers."
        ));
    }
    if unknown > 0 {
        fate.push(format!(
            "Whether {unknown} of the messages were accepted is not known; look at the session before you send them again."
        ));
    }
    let message = format!(
        "{}, and {attempts} attempts to connect again failed",
        last.message
    );
    let problem = Problem::new(Exit::Unreachable, Origin::Transport, message);
    match fate.is_empty() {
        true => problem,
        false => problem.remedy(fate.join("\n  ")),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_wire::SendStatus;

    use super::*;

    #[test]
    fn where_a_message_stands_is_one_line() {
        let ack = |state, ahead| ChatSendAck {
            input_state: Some(state),
            queued_ahead: ahead,
            ..ChatSendAck::of("r", SendStatus::Started)
        };
        let placed = |state, ahead| placed(&ack(state, ahead)).unwrap_or_default();
        assert_eq!(placed(InputState::Started, None), "");
        assert_eq!(placed(InputState::Queued, Some(2)), "queued behind 2");
        assert_eq!(
            placed(InputState::Steered, None),
            "goes to the run at work before its next model call, if one follows; else follows it"
        );
        assert_eq!(
            placed(InputState::Interrupting, None),
            "interrupts the run at work"
        );
    }

    /// Law 10: a message that nobody answered is not said to be stopped by somebody.
    #[test]
    fn a_dropped_message_is_said_to_be_dropped() {
        let aborted = ChatState::Aborted {
            message: None,
            stop_reason: Some("dropped".into()),
            input_state: Some("dropped".into()),
            answered_in: None,
        };
        let end = End::of_chat(aborted).expect("it is an end");
        let why = "dropped: the queue is full".to_owned();
        assert_eq!(end, End::Stopped { text: None, why });
        assert_eq!(end.exit(false), Exit::Failed);
    }

    /// Law 10: what is not known is not said to be lost.
    #[test]
    fn a_gateway_that_does_not_come_back_is_told_with_what_was_accepted() {
        let last = Problem::unreachable("no gateway answers at 127.0.0.1:1");
        let told = gave_up(&last, 64, 2, 1).text();
        for needed in [
            "no gateway answers at 127.0.0.1:1, and 64 attempts",
            "2 of the messages were accepted",
            "Whether 1 of the messages were accepted is not known",
        ] {
            assert!(told.contains(needed), "{told}");
        }
        assert_eq!(gave_up(&last, 64, 0, 0).remedy, None);
    }

    #[test]
    fn a_quote_is_short_and_one_line() {
        assert_eq!(quote(" a\n b"), "\"a b\"");
        let long = quote(&"größe ".repeat(20));
        assert_eq!(long.chars().count(), QUOTE_CHARS + 3);
    }
}
