//! Tool calls in the words of the wire: what is called, how it ended, what waits for a person.
//!
//! Pure. It knows one argument of one tool, the command of `exec`, because a person who is to
//! allow it must read it as it will run; of any other tool all arguments are shown.

use std::borrow::Cow;

use serde_json::Value;
use tidegate_core::{CallEnd, Decision};
use tidegate_driver::{PendingApproval, RunEvent};
use tidegate_text::call_end_words;
use tidegate_wire::{
    AgentData, ApprovalDecision, ApprovalOver, ApprovalPending, ApprovalRequest, ApprovalShown,
    ApprovalStep, ToolContent, ToolStep,
};

use crate::keys::agent_of;
use crate::limits::{TOOL_ARGS_CHARS, TOOL_META_CHARS, TOOL_RESULT_CHARS};

/// Where all tools run.
const HOST: &str = "gateway";

/// How a call ended, for programs.
pub(crate) const fn status(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Ok => "completed",
        CallEnd::Failed => "failed",
        CallEnd::TimedOut => "timed_out",
        CallEnd::Cancelled => "cancelled",
        CallEnd::Unknown => "unknown",
        CallEnd::Skipped => "skipped",
        CallEnd::NoSuchTool => "no_such_tool",
        CallEnd::BadArguments => "bad_arguments",
        CallEnd::Denied => "denied",
        CallEnd::Expired => "expired",
        CallEnd::Stale => "stale",
    }
}

/// What a call put out, and what its end means where the output does not say it.
pub(crate) fn result_text(output: &str, end: CallEnd) -> String {
    let output = bounded(output, TOOL_RESULT_CHARS);
    match call_end_words(end) {
        "" => output.into_owned(),
        words if output.is_empty() => format!("[{words}]"),
        words => format!("{output}\n\n[{words}]"),
    }
}

/// A text of at most so many characters: of a longer one its beginning and its end, and
/// between them how much is left out.
pub(crate) fn bounded(text: &str, most: usize) -> Cow<'_, str> {
    // Every character has a byte: most texts are not counted.
    let count = if text.len() <= most {
        return text.into();
    } else {
        text.chars().count()
    };
    if count <= most {
        return text.into();
    }
    let (head, tail) = (most / 2, most - most / 2);
    let at = |chars| {
        text.char_indices()
            .nth(chars)
            .map_or(text.len(), |(at, _)| at)
    };
    format!(
        "{}\n[… {} characters are left out here …]\n{}",
        &text[..at(head)],
        count - most,
        &text[at(count - tail)..]
    )
    .into()
}

/// The last characters of a text.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    match text.char_indices().rev().nth(most.saturating_sub(1)) {
        Some((at, _)) if most > 0 => &text[at..],
        _ => text,
    }
}

/// Arguments as an object; as text where they are none, or longer than `most` characters.
pub(crate) fn args(arguments: &str, most: usize) -> Value {
    let shown = bounded(arguments, most);
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) if matches!(shown, Cow::Borrowed(_)) => object,
        _ => Value::String(shown.into_owned()),
    }
}

/// What a call would run, whole: the command of `exec`, of any other its name and arguments.
fn command(name: &str, arguments: &str) -> String {
    match member(arguments, "command").filter(|_| name == "exec") {
        Some(command) => command,
        None => format!("{name} {arguments}"),
    }
}

/// A text in the arguments.
fn member(arguments: &str, name: &str) -> Option<String> {
    let value: Value = serde_json::from_str(arguments).ok()?;
    value.get(name)?.as_str().map(ToOwned::to_owned)
}

/// The first line of a text, in short.
fn preview(text: &str) -> String {
    let mut lines = text.trim_start().lines();
    let line = lines.next().unwrap_or_default();
    let short: String = line.chars().take(TOOL_META_CHARS).collect();
    if short.len() < line.len() || lines.next().is_some() {
        format!("{short}…")
    } else {
        short
    }
}

/// What an event of a call says to those who hear of tools; `None` for other events, and for
/// output, which grows: see [`update`].
pub(crate) fn step(event: &RunEvent) -> Option<ToolStep> {
    Some(match event {
        RunEvent::ToolStart {
            id,
            name,
            arguments,
        } => ToolStep::Start {
            name: name.to_string(),
            tool_call_id: id.to_string(),
            args: args(arguments, TOOL_ARGS_CHARS),
        },
        RunEvent::ToolEnd {
            id,
            name,
            end,
            output,
            ..
        } => ToolStep::Result {
            name: name.to_string(),
            tool_call_id: id.to_string(),
            is_error: *end != CallEnd::Ok,
            result: ToolContent::text(result_text(output, *end), status(*end)),
            meta: None,
        },
        _ => return None,
    })
}

/// A call's output so far, as far as it is told.
pub(crate) fn update(id: &str, name: &str, output: &str) -> ToolStep {
    ToolStep::Update {
        name: name.to_owned(),
        tool_call_id: id.to_owned(),
        partial_result: ToolContent::text(output, "running"),
    }
}

/// What an event says of an approval to those who hear of its run.
pub(crate) fn approval(event: &RunEvent) -> Option<AgentData> {
    let (asked, status) = match event {
        RunEvent::ToolAsked(asked) => (asked, "pending"),
        RunEvent::ToolDecided { asked, decision } => (
            asked,
            match decision {
                Decision::AllowOnce => "allowed",
                Decision::Deny => "denied",
            },
        ),
        RunEvent::ToolEnd {
            unanswered: Some(asked),
            end,
            ..
        } => (asked, terminal_reason(*end)),
        _ => return None,
    };
    let phase = match status {
        "pending" => "requested",
        _ => "resolved",
    };
    Some(AgentData::Approval(ApprovalStep {
        phase: phase.to_owned(),
        kind: "exec".to_owned(),
        status: status.to_owned(),
        approval_id: asked.approval.to_string(),
        tool_call_id: asked.id.to_string(),
        command: command(&asked.name, &asked.arguments),
        cwd: member(&asked.arguments, "workdir"),
        expires_at_ms: asked.until.0,
    }))
}

/// Why nobody decided.
const fn terminal_reason(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Expired => "expired",
        _ => "cancelled",
    }
}

/// What would run.
fn request(asked: &PendingApproval) -> ApprovalRequest {
    ApprovalRequest {
        command: command(&asked.name, &asked.arguments),
        cwd: member(&asked.arguments, "workdir"),
        host: HOST.to_owned(),
        agent_id: agent_of(&asked.session_key).to_owned(),
        session_key: asked.session_key.to_string(),
        run_id: asked.run_key.to_string(),
        tool_call_id: asked.id.to_string(),
        tool_name: asked.name.to_string(),
    }
}

/// A call that waits for a person, for those who may decide.
pub(crate) fn pending(asked: &PendingApproval) -> ApprovalPending {
    ApprovalPending {
        id: asked.approval.to_string(),
        request: request(asked),
        created_at_ms: asked.since.0,
        expires_at_ms: asked.until.0,
    }
}

/// The same, as it is asked for by its id.
pub(crate) fn shown(asked: &PendingApproval) -> ApprovalShown {
    let command_text = command(&asked.name, &asked.arguments);
    ApprovalShown {
        id: asked.approval.to_string(),
        command_preview: preview(&command_text),
        command_text,
        allowed_decisions: vec![ApprovalDecision::AllowOnce, ApprovalDecision::Deny],
        host: HOST.to_owned(),
        node_id: None,
        agent_id: agent_of(&asked.session_key).to_owned(),
        expires_at_ms: asked.until.0,
    }
}

/// The end of an approval that an event tells, for those who may decide.
pub(crate) fn over(event: &RunEvent, ts: u64) -> Option<ApprovalOver> {
    let (asked, decision, terminal_reason) = match event {
        RunEvent::ToolDecided { asked, decision } => (asked, Some(decided(*decision)), None),
        RunEvent::ToolEnd {
            unanswered: Some(asked),
            end,
            ..
        } => (asked, None, Some(terminal_reason(*end).to_owned())),
        _ => return None,
    };
    Some(ApprovalOver {
        id: asked.approval.to_string(),
        decision,
        resolved_by: decision.map(|_| "operator".to_owned()),
        terminal_reason,
        ts,
        request: request(asked),
    })
}

const fn decided(decision: Decision) -> ApprovalDecision {
    match decision {
        Decision::AllowOnce => ApprovalDecision::AllowOnce,
        Decision::Deny => ApprovalDecision::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R97, spec 7.1, law 9: a long result keeps its beginning and its end, and says what it lacks
    #[test]
    fn a_long_result_says_how_much_is_left_out() {
        let long = format!("{}{}", "ä".repeat(TOOL_RESULT_CHARS), "end");
        let told = result_text(&long, CallEnd::Ok);
        assert!(told.starts_with("ää") && told.ends_with("end"), "{told}");
        assert!(told.contains("[… 3 characters are left out here …]"));
        assert_eq!(result_text("short", CallEnd::Ok), "short");
        let fits = "ä".repeat(TOOL_RESULT_CHARS);
        assert_eq!(result_text(&fits, CallEnd::Ok), fits);
        assert_eq!(
            (tail("äöü", 2), tail("äöü", 9), tail("", 2)),
            ("öü", "äöü", "")
        );
    }

    /// Law 10: what an end means is told behind the output, and a plain end needs no words
    #[test]
    fn an_end_is_told_behind_the_output() {
        let words = call_end_words(CallEnd::Unknown);
        assert!(!words.is_empty());
        let told = result_text("half", CallEnd::Unknown);
        assert_eq!(told, format!("half\n\n[{words}]"));
        assert_eq!(result_text("", CallEnd::Unknown), format!("[{words}]"));
    }

    /// R205: who decides reads the whole command, and of other tools all arguments
    #[test]
    fn what_would_run_is_shown_whole() {
        let arguments = r#"{"command":"echo a\necho b","workdir":"sub"}"#;
        assert_eq!(command("exec", arguments), "echo a\necho b");
        assert_eq!(preview("echo a\necho b"), "echo a…");
        assert_eq!(member(arguments, "workdir").as_deref(), Some("sub"));
        assert_eq!(command("exec", "{\"comm"), "exec {\"comm");
        assert_eq!(command("other", arguments), format!("other {arguments}"));
    }

    /// Law 9: arguments are an object as long as they are told whole
    #[test]
    fn arguments_that_are_none_or_too_long_are_text() {
        assert_eq!(args(r#"{"a":1}"#, 100), serde_json::json!({"a": 1}));
        assert_eq!(args("{\"a\":", 100), serde_json::json!("{\"a\":"));
        assert!(args(r#"{"a":"0123456789"}"#, 8).is_string());
    }
}
