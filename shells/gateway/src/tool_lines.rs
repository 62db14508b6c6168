//! What `agent` and `chat` say of tool calls: one line when one begins, one when it has ended,
//! and what waits for a person. What happens is the gateway's to say.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_wire::{ApprovalStep, ToolStep};

use crate::shown;

/// The calls of a run's answer at hand, by their ids: what each is called in its lines.
#[derive(Debug, Default)]
pub struct Calls(BTreeMap<String, String>);

impl Calls {
    /// Whether no call was told of since the run asked its model.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The line for a step of a call; output that grows has none.
    pub fn line(&mut self, step: &ToolStep) -> Option<String> {
        match step {
            ToolStep::Start {
                name,
                tool_call_id,
                args,
            } => {
                let line = named(name, args);
                self.0.insert(tool_call_id.clone(), line.clone());
                Some(line)
            }
            ToolStep::Update { .. } => None,
            ToolStep::Result {
                name,
                tool_call_id,
                is_error,
                result,
                ..
            } => {
                let line = self.0.get(tool_call_id);
                let line = line.cloned().unwrap_or_else(|| format!("[{name}]"));
                let status = match (result.status(), is_error) {
                    (Some(status), _) => status,
                    (None, true) => "failed",
                    (None, false) => "completed",
                };
                let output: String = result.content.iter().map(|part| part.as_text()).collect();
                Some(format!("{line}: {}", ended(status, &output)))
            }
        }
    }
}

/// A call, in its line.
#[must_use]
pub fn named(name: &str, args: &Value) -> String {
    let what = match (args.get("command").and_then(Value::as_str), args) {
        (Some(command), _) => command.to_owned(),
        (None, Value::String(text)) => text.clone(),
        (None, Value::Null) => String::new(),
        (None, args) => args.to_string(),
    };
    format!("[{}] {}", shown::short(name), shown::short(&what))
        .trim_end()
        .to_owned()
}

fn ended(status: &str, output: &str) -> String {
    let why = || match output.trim_end().lines().next_back() {
        None | Some("") => String::new(),
        Some(last) => format!(", {}", shown::short(last)),
    };
    match status {
        "completed" => "done".into(),
        "failed" => format!("failed{}", why()),
        "timed_out" => "stopped by its time limit".into(),
        "cancelled" => "stopped".into(),
        "unknown" => "started; what became of it is not known".into(),
        "skipped" => "not run".into(),
        "no_such_tool" => "not run, there is no such tool".into(),
        "bad_arguments" => "not run, its arguments can't be used".into(),
        "denied" => "denied, not run".into(),
        "expired" => "not run, nobody allowed it in time".into(),
        "stale" => "not run, the gateway ended while it waited to be allowed".into(),
        other => other.to_owned(),
    }
}

/// What is asked of a person.
#[must_use]
pub fn asks(step: &ApprovalStep) -> String {
    let directory = match &step.cwd {
        Some(directory) => format!(" (in {})", shown::whole(directory)),
        None => String::new(),
    };
    format!(
        "the model asks to run: {}{directory}",
        shown::whole(&step.command)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_wire::ToolContent;

    use super::*;

    fn result(id: &str, text: &str, status: &str) -> ToolStep {
        ToolStep::Result {
            name: "exec".into(),
            tool_call_id: id.into(),
            is_error: status != "completed",
            result: ToolContent::text(text, status),
            meta: None,
        }
    }

    /// R205: each call is one line when it begins and one when it has ended, which say what it is
    #[test]
    fn a_call_is_two_lines() {
        let mut calls = Calls::default();
        let start = ToolStep::Start {
            name: "exec".into(),
            tool_call_id: "c".into(),
            args: json!({"command": "make\ntest"}),
        };
        assert!(calls.is_empty());
        assert_eq!(calls.line(&start).as_deref(), Some("[exec] make\\ntest"));
        let said = |calls: &mut Calls, id: &str, text: &str, status: &str| {
            calls.line(&result(id, text, status)).unwrap_or_default()
        };
        assert_eq!(
            said(&mut calls, "c", "ok", "completed"),
            "[exec] make\\ntest: done"
        );
        assert_eq!(
            said(&mut calls, "c", "no\n[exit code 2]\n", "failed"),
            "[exec] make\\ntest: failed, [exit code 2]"
        );
        assert_eq!(
            said(&mut calls, "other", "", "denied"),
            "[exec]: denied, not run"
        );
    }

    /// A tool of another server of the protocol has its line too
    #[test]
    fn other_tools_show_their_arguments() {
        assert_eq!(
            named("read", &json!({"path": "a"})),
            "[read] {\"path\":\"a\"}"
        );
        assert_eq!(named("read", &Value::Null), "[read]");
    }
}
