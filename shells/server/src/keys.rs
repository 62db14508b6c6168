//! Session keys: what a client may write, and the one name that it means.
//!
//! The whole form is `agent:<agent>:<name>`. A bare name belongs to the default agent; no
//! name at all is that agent's main session. Letters are taken as they are written: two keys
//! that differ in case are two sessions.

use serde_json::json;
use tidegate_wire::{DEFAULT_AGENT, MAIN_SESSION_KEY, WireError};

/// The session that a request means.
///
/// # Errors
/// `INVALID_REQUEST`, naming the field: the key is malformed, its agent unknown, or another
/// one than `agentId` says.
pub(crate) fn resolve(
    session_key: Option<&str>,
    session_id: Option<&str>,
    agent_id: Option<&str>,
) -> Result<String, WireError> {
    if let Some(agent) = agent_id {
        known(agent)?;
    }
    match (session_key, session_id) {
        (Some(key), _) => whole(key),
        (None, Some(id)) => {
            printable("sessionId", id)?;
            Ok(format!("agent:{DEFAULT_AGENT}:explicit:{id}"))
        }
        (None, None) => Ok(MAIN_SESSION_KEY.to_owned()),
    }
}

/// The agent of a whole key.
pub(crate) fn agent_of(session_key: &str) -> &str {
    session_key
        .strip_prefix("agent:")
        .and_then(|rest| rest.split_once(':'))
        .map_or(DEFAULT_AGENT, |(agent, _)| agent)
}

fn whole(key: &str) -> Result<String, WireError> {
    printable("sessionKey", key)?;
    let Some(rest) = key.strip_prefix("agent:") else {
        return Ok(format!("agent:{DEFAULT_AGENT}:{key}"));
    };
    match rest.split_once(':') {
        Some((agent, name)) if !agent.is_empty() && !name.is_empty() => {
            known(agent)?;
            Ok(key.to_owned())
        }
        _ => Err(WireError::invalid(format!(
            "at /sessionKey: must be agent:<agent>:<name> or a bare name, such as {MAIN_SESSION_KEY} or main"
        ))),
    }
}

fn known(agent: &str) -> Result<(), WireError> {
    if agent == DEFAULT_AGENT {
        return Ok(());
    }
    let shown: String = agent.chars().filter(|c| !c.is_control()).take(64).collect();
    Err(WireError::invalid(format!(
        "unknown agent \"{shown}\": this gateway has one agent, \"{DEFAULT_AGENT}\""
    ))
    .with(json!({"code": "UNKNOWN_AGENT_ID", "agentId": shown})))
}

fn printable(field: &str, text: &str) -> Result<(), WireError> {
    if text.trim().is_empty() || text.trim() != text || text.chars().any(char::is_control) {
        return Err(WireError::invalid(format!(
            "at /{field}: must be text without control characters and without space at its ends"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(k: &str) -> String {
        resolve(Some(k), None, None).unwrap()
    }

    /// surface 2.5: one session has one name
    #[test]
    fn short_names_and_whole_keys_meet() {
        assert_eq!(resolve(None, None, None).unwrap(), "agent:main:main");
        assert_eq!(key("main"), "agent:main:main");
        assert_eq!(key("agent:main:main"), "agent:main:main");
        assert_eq!(key("Work"), "agent:main:Work");
        assert_eq!(key("agent:main:thread:a:b"), "agent:main:thread:a:b");
        assert_eq!(
            resolve(None, Some("x"), Some("main")).unwrap(),
            "agent:main:explicit:x"
        );
        assert_eq!(resolve(Some("a"), Some("x"), None).unwrap(), "agent:main:a");
    }

    /// A malformed key is refused by name, and no internal text leaks
    #[test]
    fn malformed_keys_and_unknown_agents_are_refused() {
        for bad in [
            "agent:",
            "agent:main",
            "agent:main:",
            "agent::x",
            " ",
            "a\n",
            " a",
        ] {
            let error = resolve(Some(bad), None, None).unwrap_err();
            assert!(
                error.message.starts_with("at /sessionKey: "),
                "{bad:?}: {}",
                error.message
            );
        }
        for (k, agent) in [
            (Some("agent:ghost:x"), None),
            (Some("x"), Some("ghost")),
            (None, Some("ghost")),
        ] {
            let error = resolve(k, None, agent).unwrap_err();
            assert_eq!(error.details_code(), Some("UNKNOWN_AGENT_ID"));
            assert!(error.message.contains("ghost"), "{}", error.message);
        }
    }

    /// A key names its agent.
    #[test]
    fn a_key_names_its_agent() {
        assert_eq!(agent_of("agent:main:x"), "main");
        assert_eq!(agent_of("agent:ops:x:y"), "ops");
    }
}
