//! What went wrong, for a person and for a script: one sentence, its cause, what to do.
//!
//! Every failing command ends in a [`Problem`]. It never holds a secret: tokens and keys are
//! not put into messages by anyone who makes one.

use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::out;

/// Who found the problem; the `type` of the JSON error (surface 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This command.
    Cli,
    /// The way to the gateway.
    Transport,
    /// The gateway, by an error answer.
    Gateway,
}

impl Origin {
    const fn kind(self) -> &'static str {
        match self {
            Self::Cli => "cli_error",
            Self::Transport => "gateway_transport_error",
            Self::Gateway => "gateway_request_error",
        }
    }
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The exit code to end with.
    pub exit: Exit,
    /// Who found it.
    pub origin: Origin,
    /// What went wrong and why, as one sentence without its full stop.
    pub message: String,
    /// What to do about it, as one sentence, where there is something to do.
    pub remedy: Option<String>,
    /// The gateway's error code.
    pub code: Option<String>,
    /// Whether the gateway says that the same request may succeed later.
    pub retryable: Option<bool>,
    /// What else the gateway says of it, for programs.
    pub details: Option<Box<Value>>,
    /// The run it is about.
    pub run_id: Option<String>,
}

impl Problem {
    /// A problem with an exit code and a sentence.
    #[must_use]
    pub fn new(exit: Exit, origin: Origin, message: impl Into<String>) -> Self {
        Self {
            exit,
            origin,
            message: message.into(),
            remedy: None,
            code: None,
            retryable: None,
            details: None,
            run_id: None,
        }
    }

    /// The configuration, the port or the state directory is not usable.
    #[must_use]
    pub fn configuration(message: impl Into<String>) -> Self {
        Self::new(Exit::Configuration, Origin::Cli, message)
    }

    /// No gateway could be reached.
    #[must_use]
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unreachable, Origin::Transport, message)
    }

    /// The connection broke after the handshake, or the gateway speaks nonsense.
    #[must_use]
    pub fn transport(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, Origin::Transport, message)
    }

    /// Says what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Says which run it is about.
    #[must_use]
    pub fn about(mut self, run_id: impl Into<String>) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// The text for a person.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("tidegate: {}.", self.message.trim_end_matches('.'));
        if let Some(remedy) = &self.remedy {
            text.push_str("\n  ");
            text.push_str(remedy);
        }
        text
    }

    /// The object for a script (surface 5, common).
    #[must_use]
    pub fn json(&self) -> Value {
        let mut error = Map::new();
        error.insert("type".into(), self.origin.kind().into());
        if let Some(code) = &self.code {
            error.insert("code".into(), code.clone().into());
        }
        error.insert("message".into(), self.message.clone().into());
        if let Some(remedy) = &self.remedy {
            error.insert("remedy".into(), remedy.clone().into());
        }
        if let Some(retryable) = self.retryable {
            error.insert("retryable".into(), retryable.into());
        }
        if let Some(details) = &self.details {
            error.insert("details".into(), (**details).clone());
        }
        let mut whole = json!({ "ok": false, "error": error });
        if let Some(run_id) = &self.run_id {
            whole["runId"] = run_id.clone().into();
            whole["origin"] = "gateway".into();
        }
        whole
    }

    /// Tells it: the text to stderr, and the object to stdout where JSON was asked for.
    pub fn tell(&self, json: bool) -> Exit {
        if json {
            out::json(&self.json());
        }
        out::told(&self.text());
        self.exit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Surface 5.4
    #[test]
    fn a_script_reads_type_code_and_message() {
        let mut problem = Problem::new(Exit::Failed, Origin::Gateway, "unknown method: x");
        problem.code = Some("INVALID_REQUEST".into());
        problem.retryable = Some(false);
        assert_eq!(
            problem.json(),
            json!({ "ok": false, "error": {
                "type": "gateway_request_error",
                "code": "INVALID_REQUEST",
                "message": "unknown method: x",
                "retryable": false,
            }})
        );
    }

    #[test]
    fn a_person_reads_one_sentence_and_what_to_do() {
        let problem =
            Problem::unreachable("no gateway answers at 127.0.0.1:1").remedy("Start one.");
        assert_eq!(
            problem.text(),
            "tidegate: no gateway answers at 127.0.0.1:1.\n  Start one."
        );
    }
}
