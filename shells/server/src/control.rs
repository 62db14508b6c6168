//! Stopping what a session does, and beginning it anew: `sessions.abort`, `sessions.reset`.

use std::sync::Arc;

use serde_json::Value;
use tidegate_core::Rejection;
use tidegate_driver::{AbortScope, Reply, Stopped};
use tidegate_wire::{
    AbortStatus, SessionEntry, SessionsAbortParams, SessionsAborted, SessionsResetDone,
    SessionsResetParams, WireError, method,
};

use crate::changes;
use crate::cursor::{generation_of, session_id};
use crate::methods::{Call, Rest};
use crate::project::to_value;
use crate::refusals::{confused, invalid, read, rejected, session_by_key, stopped};
use crate::server::Shared;

impl Call {
    pub(crate) fn sessions_abort(self, params: Option<Value>) -> Rest {
        let params = read(method::SESSIONS_ABORT, SessionsAbortParams::read(params))?;
        let agent = params.agent_id.as_deref();
        let key = session_by_key(method::SESSIONS_ABORT, &params.key, agent)?;
        let scope = match (params.run_id, params.clear_queued) {
            (Some(_), true) => {
                let why = "at /clearQueued: goes without runId, which names all that is stopped";
                return Err(invalid(method::SESSIONS_ABORT, why));
            }
            (Some(run), false) => AbortScope::Run(run),
            (None, true) => AbortScope::All,
            (None, false) => AbortScope::AtWork,
        };
        let mut replies = self.shared.client.abort(key, scope);
        Ok(Box::pin(async move {
            let stopped = aborted(replies.next().await);
            self.answer(stopped.map(|runs| {
                to_value(&SessionsAborted {
                    ok: true,
                    aborted_run_id: runs.first().cloned(),
                    status: if runs.is_empty() {
                        AbortStatus::NoActiveRun
                    } else {
                        AbortStatus::Aborted
                    },
                    run_ids: runs,
                })
            }));
        }))
    }

    pub(crate) fn sessions_reset(self, params: Option<Value>) -> Rest {
        let params = read(method::SESSIONS_RESET, SessionsResetParams::read(params))?;
        let agent = params.agent_id.as_deref();
        let key = session_by_key(method::SESSIONS_RESET, &params.key, agent)?;
        let expected = match params.expected_session_id.as_deref() {
            Some(id) => {
                Some(generation_of(id, &key).ok_or_else(|| rejected(Rejection::SessionChanged))?)
            }
            None => None,
        };
        let replies = self.shared.client.reset(key.clone(), expected);
        let reason = params.reason.unwrap_or_else(|| "reset".to_owned());
        Ok(Box::pin(async move {
            let done = was_reset(&self.shared, replies, &key, &reason).await;
            self.answer(done.map(|(generation, run_ids)| {
                to_value(&SessionsResetDone {
                    ok: true,
                    entry: SessionEntry {
                        session_id: session_id(&key, generation),
                        updated_at: self.shared.wall_ms(),
                    },
                    key,
                    run_ids,
                })
            }));
        }))
    }
}

/// The runs that an abort stopped.
///
/// # Errors
/// It was refused, or the driver has stopped.
pub(crate) fn aborted(reply: Result<Reply, Stopped>) -> Result<Vec<String>, WireError> {
    match reply {
        Ok(Reply::Aborted { run_keys }) => Ok(names(&run_keys)),
        Ok(Reply::Rejected(rejection)) => Err(rejected(rejection)),
        Ok(_) => Err(confused()),
        Err(Stopped) => Err(stopped(false)),
    }
}

/// The new generation of a session that was reset, and the runs that this ended. Told to
/// those who hear how it changes.
///
/// # Errors
/// It was refused, or the driver has stopped.
pub(crate) async fn was_reset(
    shared: &Shared,
    mut replies: tidegate_driver::Replies,
    key: &str,
    reason: &str,
) -> Result<(u64, Vec<String>), WireError> {
    match replies.next().await {
        Ok(Reply::Reset {
            generation,
            run_keys,
        }) => {
            let state = shared.hub.lock();
            let at = shared.wall_ms();
            let change = changes::asked(key, at, reason, Some(generation), &state);
            state.tell_change(&change);
            Ok((generation, names(&run_keys)))
        }
        Ok(Reply::Rejected(rejection)) => Err(rejected(rejection)),
        Ok(_) => Err(confused()),
        Err(Stopped) => Err(stopped(false)),
    }
}

fn names(runs: &[Arc<str>]) -> Vec<String> {
    runs.iter().map(ToString::to_string).collect()
}
