//! How a session changed, as `sessions.changed` tells it. Pure: from what was told of a run,
//! and from what a request did.

use tidegate_driver::{Published, RunEvent};
use tidegate_wire::{SessionRunStatus, SessionsChanged};

use crate::cursor::session_id;
use crate::events::State;
use crate::keys::agent_of;
use crate::project::session_status;
use crate::words::About;

/// What an event of a run changes. `None`: nothing that a list shows.
pub(crate) fn of(event: &Published, state: &State) -> Option<SessionsChanged> {
    let about = About::published(event);
    let change = match &event.event {
        RunEvent::Start { at, .. } => SessionsChanged {
            reason: "agent.run.started".to_owned(),
            status: Some(SessionRunStatus::Running),
            started_at: Some(at.0),
            ..plain(&about, state)
        },
        RunEvent::End(finished) => {
            let terminal = &finished.terminal;
            let started_at = terminal.started_at.map(|at| at.0);
            SessionsChanged {
                reason: "agent.input.settled".to_owned(),
                status: Some(session_status(terminal).0),
                started_at,
                ended_at: Some(terminal.ended_at.0),
                runtime_ms: started_at.map(|at| terminal.ended_at.0.saturating_sub(at)),
                ..plain(&about, state)
            }
        }
        _ => return None,
    };
    Some(change)
}

/// A message was accepted.
pub(crate) fn sent(about: &About, state: &State) -> SessionsChanged {
    SessionsChanged {
        reason: "send".to_owned(),
        ..plain(about, state)
    }
}

/// A request changed the session itself: `new`, `reset` or `patch`.
pub(crate) fn asked(
    session_key: &str,
    at: u64,
    reason: &str,
    generation: Option<u64>,
    state: &State,
) -> SessionsChanged {
    let live = state.logs.get(session_key).map(|log| log.live());
    let live = live.filter(|live| !live.is_empty());
    SessionsChanged {
        session_key: session_key.to_owned(),
        agent_id: agent_of(session_key).to_owned(),
        reason: reason.to_owned(),
        ts: at,
        session_id: generation.map(|generation| session_id(session_key, generation)),
        has_active_run: live.is_some(),
        active_run_ids: live,
        ..SessionsChanged::default()
    }
}

fn plain(about: &About, state: &State) -> SessionsChanged {
    SessionsChanged {
        run_id: Some(about.run.to_string()),
        ..asked(&about.session, about.at, "", None, state)
    }
}
