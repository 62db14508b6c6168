//! Why a request is not carried out, in words that are true and say what to do.

use serde_json::json;
use tidegate_core::{Rejection, StoreError};
use tidegate_wire::{BadParams, ErrorCode, WireError};

use crate::keys::resolve;
use crate::limits::RETRY_AFTER_MS;

/// Parameters as they were read, or the error that names the method.
pub(crate) fn read<T>(method: &str, read: Result<T, BadParams>) -> Result<T, WireError> {
    read.map_err(|bad| invalid(method, &bad.0))
}

/// Parameters that are wrong.
pub(crate) fn invalid(method: &str, why: &str) -> WireError {
    WireError::invalid(format!("invalid {method} params: {why}"))
}

/// The session that the parameters mean; see [`resolve`].
pub(crate) fn session(
    method: &str,
    key: Option<&str>,
    id: Option<&str>,
    agent: Option<&str>,
) -> Result<String, WireError> {
    resolve(key, id, agent).map_err(|error| match error.details {
        None => invalid(method, &error.message),
        Some(_) => error,
    })
}

/// The store can't tell something now.
pub(crate) fn unreadable(what: &str, error: StoreError) -> WireError {
    let why = match error {
        StoreError::Busy => "it is busy",
        StoreError::Full => "its disk is full",
        StoreError::Io => "its disk failed, see the gateway's log",
    };
    WireError::try_later(
        format!("the store can't tell {what} now: {why}"),
        RETRY_AFTER_MS,
    )
    .with(json!({"reason": "storage"}))
}

/// The error of a decision that does not count (surface 2.9).
fn undecided(rejection: Rejection) -> WireError {
    let (error, reason) = match rejection {
        Rejection::AlreadyDecided => (
            WireError::invalid(
                "approval already resolved: the other decision came first, and it stands; to end what runs, stop its run",
            ),
            "APPROVAL_ALREADY_RESOLVED",
        ),
        _ => (
            WireError::new(
                ErrorCode::ApprovalNotFound,
                "no tool call waits under this id: its run has gone on since, or it never was; see exec.approval.list",
            ),
            "APPROVAL_NOT_FOUND",
        ),
    };
    error.with(json!({ "reason": reason }))
}

/// The error of a refusal of the core.
pub(crate) fn rejected(rejection: Rejection) -> WireError {
    let (error, reason) = match rejection {
        Rejection::Conflict => (
            WireError::invalid(
                "the idempotency key was used for another request; use a fresh key for a new message",
            ),
            "idempotency-conflict",
        ),
        Rejection::WrongSession => (
            WireError::invalid("runId does not match sessionKey"),
            "run-of-another-session",
        ),
        Rejection::QueueFull => (
            WireError::try_later(
                "the session's queue is full; wait until one of its runs has ended",
                RETRY_AFTER_MS,
            ),
            "session-queue-full",
        ),
        Rejection::Busy => (
            WireError::try_later(
                "the gateway holds as many runs or waits as it may; try again in a moment",
                RETRY_AFTER_MS,
            ),
            "gateway-busy",
        ),
        Rejection::Storage => (
            WireError::try_later(
                "the store can't keep anything now, so nothing was accepted; see the gateway's log",
                RETRY_AFTER_MS,
            ),
            "storage",
        ),
        Rejection::SessionChanged => (
            WireError::invalid(
                "the session is another conversation now than the request expects; look at it again",
            ),
            "session-changed",
        ),
        Rejection::LaneClosed => (
            WireError::invalid("the lane that the request asks for is closed by configuration"),
            "lane-closed",
        ),
        Rejection::NotAsked | Rejection::AlreadyDecided => return undecided(rejection),
        Rejection::SessionBusy => (
            WireError::try_later(
                "the session is busy, and a heartbeat does not wait",
                RETRY_AFTER_MS,
            ),
            "session-busy",
        ),
        Rejection::Draining => (
            WireError::try_later(
                "the gateway is about to stop and takes nothing new; send it again after the restart",
                RETRY_AFTER_MS,
            ),
            "gateway-restarting",
        ),
        Rejection::NotOwner => (
            WireError::try_later(
                "another gateway owns the session; ask that one",
                RETRY_AFTER_MS,
            ),
            "not-owner",
        ),
    };
    error.with(json!({ "reason": reason }))
}

/// The driver ended before it answered.
pub(crate) fn stopped(accepted: bool) -> WireError {
    let why = if accepted {
        "the gateway stops; the accepted message is kept and runs after the restart"
    } else {
        "the gateway stops; the request was not answered, repeat it after the restart"
    };
    WireError::try_later(why, RETRY_AFTER_MS).with(json!({"reason": "gateway-restarting"}))
}

/// The driver gave an answer that is not one to this request.
pub(crate) fn confused() -> WireError {
    WireError::new(
        ErrorCode::Unavailable,
        "the gateway's driver answered another question; this is a defect, please report it",
    )
}

/// The session that `key` means, for methods that name it so.
pub(crate) fn session_by_key(
    method: &str,
    key: &str,
    agent: Option<&str>,
) -> Result<String, WireError> {
    session(method, Some(key), None, agent).map_err(|mut error| {
        error.message = error.message.replace("at /sessionKey:", "at /key:");
        error
    })
}
