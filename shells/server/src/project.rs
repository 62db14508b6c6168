//! The one place where a run's end gets its words on the wire, so that one run tells one
//! truth in all of them (law 10, P40).
//!
//! | outcome | `agent` final | `agent.wait` | `agent` lifecycle | `chat` |
//! | --- | --- | --- | --- | --- |
//! | completed | ok, `ok`, summary `completed` | `ok`, `stop` | `end`, `stop` | `final`, `stop` |
//! | timed out, model asked | ok, `timeout`, `timed out`, phase `provider` | `timeout`, phase `provider`, error | `error`, same | `error`, kind `timeout` |
//! | timed out in its turn, model not asked | same, phase `preflight` | same | same | same |
//! | timed out before its turn | same, phase `queue` | same | same | same |
//! | stopped by a client | ok, `timeout`, `aborted`, `rpc` | `error`, `aborted`, `rpc` | `end`, `cancelled`, `rpc` | `aborted`, `rpc` |
//! | stopped by a later message, by a reset | as by a client, with `interrupt`, `reset` | same | same | same |
//! | dropped from a full queue | ok, `timeout`, `dropped`, `dropped` | `error`, the sentence, `dropped` | `end`, `cancelled`, `dropped` | `aborted`, `dropped` |
//! | superseded | ok, `timeout`, `aborted`, `superseded` | `error`, `superseded` | `end`, `cancelled`, `superseded` | `aborted`, `superseded` |
//! | failed | not ok, `error`, the sentence; `UNAVAILABLE` | `error`, the sentence | `error`, the sentence | `error`, the sentence |
//!
//! That a stopped run is `timeout` in the `agent` final and `error` in `agent.wait` is how
//! clients of the protocol know it (surface 2.1, 2.2); `stopReason` says what it was. Unlike
//! the source project there is exactly one terminal of each kind, and the first word on a
//! timeout is never `aborted`. A partial text goes with the `chat` terminal, never with a
//! final response.

use serde_json::{Value, json};
use tidegate_core::{ErrorClass, Failure, Outcome, StopReason, Terminal};
use tidegate_driver::Finished;
use tidegate_wire::{
    AgentFinal, ChatMessage, ChatSendAck, ChatState, Disposition, ErrorCode, Lifecycle, Payload,
    Phase, Response, RunMeta, RunResult, RunStatus, SendStatus, SessionRunStatus, TerminalReply,
    TimeoutPhase, WaitResult, WireError,
};

use crate::limits::TERMINAL_REPLY_CHARS;
use crate::sentences::{class_word, sentence};

/// The words of an outcome that all places share.
struct Words {
    /// What went wrong, for people; `None` for an answer.
    error: Option<String>,
    stop_reason: Option<&'static str>,
    timeout_phase: Option<TimeoutPhase>,
    provider_started: Option<bool>,
    aborted: bool,
}

fn words(terminal: &Terminal, detail: Option<&str>) -> Words {
    let mut words = Words {
        error: sentence(terminal.outcome, detail),
        stop_reason: None,
        timeout_phase: None,
        provider_started: None,
        aborted: false,
    };
    match terminal.outcome {
        Outcome::Completed => words.stop_reason = Some("stop"),
        Outcome::Failed(_) => {}
        Outcome::TimedOut {
            provider_started, ..
        } => {
            words.timeout_phase = Some(phase(provider_started, terminal.attempt.0));
            words.provider_started = Some(provider_started);
        }
        Outcome::Cancelled { by, .. } => {
            words.stop_reason = Some(stop_word(by));
            words.aborted = true;
        }
        Outcome::Superseded => {
            words.stop_reason = Some("superseded");
            words.aborted = true;
        }
        Outcome::Dropped { .. } => {
            words.stop_reason = Some("dropped");
            words.aborted = true;
        }
    }
    words
}

const fn stop_word(by: StopReason) -> &'static str {
    match by {
        StopReason::Rpc => "rpc",
        StopReason::Interrupt => "interrupt",
        StopReason::Reset => "reset",
    }
}

const fn phase(provider_started: bool, attempt: u32) -> TimeoutPhase {
    match (provider_started, attempt) {
        (true, _) => TimeoutPhase::Provider,
        (false, 0) => TimeoutPhase::Queue,
        (false, _) => TimeoutPhase::Preflight,
    }
}

fn duration_ms(terminal: &Terminal) -> u64 {
    let from = terminal.started_at.unwrap_or(terminal.accepted_at);
    terminal.ended_at.0.saturating_sub(from.0)
}

/// The last response to `agent`.
pub(crate) fn agent_final(id: &str, finished: &Finished) -> Response {
    let terminal = &finished.terminal;
    let words = words(terminal, finished.detail.as_deref());
    let error = words.error.unwrap_or_default();
    let (status, summary) = match terminal.outcome {
        Outcome::Completed => (RunStatus::Ok, "completed".to_owned()),
        Outcome::TimedOut { .. } => (RunStatus::Timeout, "timed out".to_owned()),
        Outcome::Cancelled { .. } | Outcome::Superseded => {
            (RunStatus::Timeout, "aborted".to_owned())
        }
        Outcome::Dropped { .. } => (RunStatus::Timeout, "dropped".to_owned()),
        Outcome::Failed(_) => (RunStatus::Error, error.clone()),
    };
    let said = match terminal.outcome {
        Outcome::Completed => Some((finished.reply.as_deref().unwrap_or_default(), false)),
        Outcome::TimedOut { .. } => Some((error.as_str(), true)),
        _ => None,
    };
    let payload = AgentFinal {
        run_id: finished.run_key.to_string(),
        status,
        summary,
        result: said.map(|(text, is_error)| RunResult {
            payloads: Vec::from_iter((!text.is_empty()).then(|| Payload {
                text: text.to_owned(),
                media_url: None,
                is_error,
            })),
            meta: RunMeta {
                duration_ms: duration_ms(terminal),
                aborted: words.aborted,
            },
        }),
        stop_reason: words.stop_reason.map(str::to_owned),
        timeout_phase: words.timeout_phase,
        provider_started: words.provider_started,
    };
    let mut response = Response::ok(id, to_value(&payload));
    if let Outcome::Failed(failure) = terminal.outcome {
        response.ok = false;
        response.error = Some(WireError::new(ErrorCode::Unavailable, error).with(json!({
            "runId": finished.run_key.as_ref(),
            "reason": class_word(failure),
        })));
    }
    response
}

/// The result of `agent.wait` for a run that has ended.
pub(crate) fn wait_result(finished: &Finished) -> WaitResult {
    let terminal = &finished.terminal;
    let words = words(terminal, finished.detail.as_deref());
    WaitResult {
        run_id: finished.run_key.to_string(),
        status: match terminal.outcome {
            Outcome::Completed => RunStatus::Ok,
            Outcome::TimedOut { .. } => RunStatus::Timeout,
            Outcome::Cancelled { .. }
            | Outcome::Superseded
            | Outcome::Dropped { .. }
            | Outcome::Failed(_) => RunStatus::Error,
        },
        started_at: terminal.started_at.map(|at| at.0),
        ended_at: Some(terminal.ended_at.0),
        error: words.error,
        stop_reason: words.stop_reason.map(str::to_owned),
        timeout_phase: words.timeout_phase,
        provider_started: words.provider_started,
        terminal_reply: terminal_reply(finished),
        pending_error: None,
        answered_in: turn(finished),
        known: None,
    }
}

/// What a run will fail with that is decided and not durable: a wait that ends before that
/// tells it as no end (spec 1.6). `None` for any other outcome.
pub(crate) fn pending_error(outcome: Outcome) -> Option<String> {
    match outcome {
        Outcome::Failed(_) | Outcome::TimedOut { .. } => sentence(outcome, None),
        _ => None,
    }
}

/// What a completed run left to be read. A text that is no answer is not offered as one.
fn terminal_reply(finished: &Finished) -> Option<TerminalReply> {
    if finished.terminal.outcome != Outcome::Completed {
        return None;
    }
    Some(
        match finished.reply.as_deref().filter(|text| !text.is_empty()) {
            Some(text) => TerminalReply {
                disposition: Disposition::Visible,
                text: Some(text.chars().take(TERMINAL_REPLY_CHARS).collect()),
            },
            None => TerminalReply {
                disposition: Disposition::Empty,
                text: None,
            },
        },
    )
}

/// The lifecycle event of a run's end. The only one with `executionSettled` (P03).
pub(crate) fn lifecycle_end(finished: &Finished) -> Lifecycle {
    let terminal = &finished.terminal;
    let words = words(terminal, finished.detail.as_deref());
    let phase = match terminal.outcome {
        Outcome::Completed
        | Outcome::Cancelled { .. }
        | Outcome::Superseded
        | Outcome::Dropped { .. } => Phase::End,
        Outcome::TimedOut { .. } | Outcome::Failed(_) => Phase::Error,
    };
    Lifecycle {
        status: words.aborted.then(|| "cancelled".to_owned()),
        started_at: terminal.started_at.map(|at| at.0),
        ended_at: Some(terminal.ended_at.0),
        aborted: Some(words.aborted),
        stop_reason: words.stop_reason.map(str::to_owned),
        error: words.error.filter(|_| phase == Phase::Error),
        timeout_phase: words.timeout_phase,
        provider_started: words.provider_started,
        execution_settled: Some(true),
        terminal_reply: terminal_reply(finished),
        answered_in: turn(finished),
        ..Lifecycle::step(phase)
    }
}

/// The lifecycle event of a run whose outcome is decided and not yet written.
pub(crate) fn lifecycle_finishing(outcome: Outcome) -> Lifecycle {
    Lifecycle {
        stop_reason: match outcome {
            Outcome::Completed => Some("stop".to_owned()),
            Outcome::Cancelled { by, .. } => Some(stop_word(by).to_owned()),
            Outcome::Superseded => Some("superseded".to_owned()),
            Outcome::Dropped { .. } => Some("dropped".to_owned()),
            Outcome::TimedOut { .. } | Outcome::Failed(_) => None,
        },
        error: match outcome {
            Outcome::TimedOut { .. } | Outcome::Failed(_) => sentence(outcome, None),
            _ => None,
        },
        ..Lifecycle::step(Phase::Finishing)
    }
}

/// The terminal of a run as its conversation sees it. One a run.
pub(crate) fn chat_end(finished: &Finished) -> ChatState {
    let terminal = &finished.terminal;
    let words = words(terminal, finished.detail.as_deref());
    // What was answered in another run's turn stands there, and is not told twice.
    let message = finished
        .reply
        .as_deref()
        .filter(|text| !text.is_empty() && finished.turn.is_none())
        .map(|text| ChatMessage::assistant(text, terminal.ended_at.0));
    let stop_reason = words.stop_reason.map(str::to_owned);
    let answered_in = turn(finished);
    match terminal.outcome {
        Outcome::Completed => ChatState::Final {
            message,
            stop_reason,
            answered_in,
        },
        Outcome::Cancelled { .. } | Outcome::Superseded | Outcome::Dropped { .. } => {
            ChatState::Aborted {
                message,
                stop_reason,
                input_state: input_state(finished).map(str::to_owned),
                answered_in,
            }
        }
        Outcome::TimedOut { .. } => ChatState::Error {
            message,
            error_message: words.error,
            error_kind: Some("timeout".to_owned()),
            answered_in,
        },
        Outcome::Failed(failure) => ChatState::Error {
            message,
            error_message: words.error,
            error_kind: error_kind(failure).map(str::to_owned),
            answered_in,
        },
    }
}

/// The run in whose turn a message was taken along.
fn turn(finished: &Finished) -> Option<String> {
    finished.turn.as_ref().map(ToString::to_string)
}

/// What became of a message that no model saw.
fn input_state(finished: &Finished) -> Option<&'static str> {
    let terminal = &finished.terminal;
    match terminal.outcome {
        Outcome::Dropped { .. } => Some("dropped"),
        Outcome::Cancelled { .. } if terminal.attempt.0 == 0 && terminal.turn.is_none() => {
            Some("given_back")
        }
        _ => None,
    }
}

/// The answer to a `chat.send` whose run has ended (surface 2.3): a completed one is `ok`, any
/// other end is told as in the last response to `agent`, without the reply.
pub(crate) fn send_replay(id: &str, finished: &Finished) -> Response {
    if finished.terminal.outcome == Outcome::Completed {
        let ack = ChatSendAck::of(finished.run_key.as_ref(), SendStatus::Ok);
        return Response::ok(id, to_value(&ack));
    }
    let mut response = agent_final(id, finished);
    if let Some(Value::Object(payload)) = &mut response.payload {
        payload.remove("result");
    }
    response
}

/// The few kinds that the chat stream knows (surface 3.2).
const fn error_kind(failure: Failure) -> Option<&'static str> {
    match failure {
        Failure::Provider {
            class: ErrorClass::RateLimit | ErrorClass::Overloaded,
            ..
        } => Some("rate_limit"),
        Failure::Provider {
            class: ErrorClass::ContextOverflow,
            ..
        } => Some("context_length"),
        Failure::Provider {
            class: ErrorClass::Timeout,
            ..
        } => Some("timeout"),
        _ => None,
    }
}

/// How a session's last run ended, and what went wrong with it.
pub(crate) fn session_status(terminal: &Terminal) -> (SessionRunStatus, Option<String>) {
    let status = match terminal.outcome {
        Outcome::Completed => SessionRunStatus::Done,
        Outcome::Failed(_) => SessionRunStatus::Failed,
        Outcome::TimedOut { .. } => SessionRunStatus::Timeout,
        Outcome::Cancelled { .. } | Outcome::Superseded | Outcome::Dropped { .. } => {
            SessionRunStatus::Killed
        }
    };
    let error = match terminal.outcome {
        Outcome::Failed(_) | Outcome::TimedOut { .. } => sentence(terminal.outcome, None),
        _ => None,
    };
    (status, error)
}

/// Whether a run was ended from outside.
pub(crate) const fn was_aborted(terminal: &Terminal) -> bool {
    matches!(
        terminal.outcome,
        Outcome::Cancelled { .. } | Outcome::Superseded | Outcome::Dropped { .. }
    )
}

/// A payload as JSON.
pub(crate) fn to_value(payload: &impl serde::Serialize) -> Value {
    serde_json::to_value(payload).expect("wire types have string keys and finite numbers only")
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
