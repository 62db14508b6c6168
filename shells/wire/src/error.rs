//! The closed set of error codes and the one shape of an error on the wire.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The code of an error. Anything finer is in [`WireError::details`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The request is wrong; the same request will be refused again.
    InvalidRequest,
    /// The gateway can't do it now, or the run failed.
    Unavailable,
    /// The connection may not do this.
    Forbidden,
    /// The device is not paired.
    NotPaired,
    /// A linked account is missing.
    NotLinked,
    /// An agent took too long.
    AgentTimeout,
    /// No such approval.
    ApprovalNotFound,
}

/// An error as it is answered to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireError {
    /// Its code.
    pub code: ErrorCode,
    /// What was wrong, what was expected and what to do, for people.
    pub message: String,
    /// What a program may want to know.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Value>,
    /// Whether the same request may succeed later.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retryable: Option<bool>,
    /// When to try again, in milliseconds from now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_after_ms: Option<u64>,
}

impl WireError {
    /// An error of this code.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: None,
            retryable: None,
            retry_after_ms: None,
        }
    }

    /// The request is wrong.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// The gateway can't do it now; the same request may succeed after this many milliseconds.
    #[must_use]
    pub fn try_later(message: impl Into<String>, retry_after_ms: u64) -> Self {
        Self {
            retryable: Some(true),
            retry_after_ms: Some(retry_after_ms),
            ..Self::new(ErrorCode::Unavailable, message)
        }
    }

    /// The same error with details.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// `details.code`, if there is one.
    #[must_use]
    pub fn details_code(&self) -> Option<&str> {
        self.details.as_ref()?.get("code")?.as_str()
    }

    /// `details.reason`, if there is one.
    #[must_use]
    pub fn details_reason(&self) -> Option<&str> {
        self.details.as_ref()?.get("reason")?.as_str()
    }
}

/// Why a handshake's secret was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthProblem {
    /// There was none.
    Missing,
    /// It is another one.
    Mismatch,
}

impl AuthProblem {
    /// The error that the handshake answers. It never holds the secret.
    #[must_use]
    pub fn error(self) -> WireError {
        let (message, code, reason) = match self {
            Self::Missing => (
                "unauthorized: gateway token missing (send it as auth.token; it lies in the gateway's state directory)",
                "AUTH_TOKEN_MISSING",
                "token_missing",
            ),
            Self::Mismatch => (
                "unauthorized: gateway token mismatch (use the token in this gateway's state directory)",
                "AUTH_TOKEN_MISMATCH",
                "token_mismatch",
            ),
        };
        WireError::invalid(message).with(json!({
            "code": code,
            "authReason": reason,
            "canRetryWithDeviceToken": false,
            "recommendedNextStep": "update_auth_credentials",
        }))
    }
}
