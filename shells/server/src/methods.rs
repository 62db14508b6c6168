//! From a request to the driver, and from the driver's replies to responses.
//!
//! What a request asks of the driver is sent before the next frame is read, so that messages
//! of one connection are accepted in the order in which they were sent; what comes back is
//! waited for on the side.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tidegate_core::{Budget, Rejection};
use tidegate_driver::{Replies, Reply, Stopped, Submission};
use tidegate_wire::{
    AckStatus, AgentAck, AgentParams, BadParams, ChatAbortParams, ChatAborted, ErrorCode,
    HealthParams, Request, Response, RunStatus, ServerFrame, SessionsListParams, StatusParams,
    TimeoutPhase, WaitParams, WaitResult, WireError, method,
};

use crate::handshake::{Peer, Scope};
use crate::keys::{agent_of, resolve};
use crate::limits::RETRY_AFTER_MS;
use crate::outbox::Outbox;
use crate::project::{self, to_value};
use crate::queries;
use crate::server::Shared;

/// What became of a request.
pub(crate) enum Started {
    /// It is answered already.
    Answered(Response),
    /// This puts the answers into the outbox.
    UnderWay(BoxFuture<'static, ()>),
}

/// Starts a request.
pub(crate) fn start(
    shared: &Arc<Shared>,
    peer: &Arc<Peer>,
    outbox: &Arc<Outbox>,
    request: Request,
) -> Started {
    let Request { id, method, params } = request;
    let scope = match method.as_str() {
        method::HEALTH | method::STATUS | method::SESSIONS_LIST => Scope::Read,
        method::AGENT | method::AGENT_WAIT | method::CHAT_ABORT => Scope::Write,
        method::CONNECT => {
            let error = WireError::invalid("connect is only valid as the first request");
            return Started::Answered(Response::err(id, error));
        }
        _ => {
            let shown: String = method.chars().take(64).collect();
            return Started::Answered(Response::err(
                id,
                WireError::invalid(format!("unknown method: {shown}")),
            ));
        }
    };
    if !peer.holds(scope) {
        return Started::Answered(Response::err(id, missing(scope)));
    }
    let call = Call {
        shared: Arc::clone(shared),
        outbox: Arc::clone(outbox),
        id: id.clone(),
    };
    let started = match method.as_str() {
        method::AGENT => call.agent(params),
        method::AGENT_WAIT => call.wait(params, peer.known_run),
        method::CHAT_ABORT => call.abort(params),
        method::SESSIONS_LIST => call.sessions(params),
        method::STATUS => call.status(params),
        _ => call.health(params),
    };
    match started {
        Ok(rest) => Started::UnderWay(rest),
        Err(error) => Started::Answered(Response::err(id, error)),
    }
}

fn missing(scope: Scope) -> WireError {
    let name = match scope {
        Scope::Read => "operator.read",
        Scope::Write => "operator.write",
    };
    WireError::new(
        ErrorCode::Forbidden,
        format!("missing scope: {name} (ask for it in connect.scopes)"),
    )
    .with(json!({"code": "MISSING_SCOPE", "missingScope": name, "requiredScopes": [name]}))
}

fn read<T>(method: &str, read: Result<T, BadParams>) -> Result<T, WireError> {
    read.map_err(|bad| invalid(method, &bad.0))
}

fn invalid(method: &str, why: &str) -> WireError {
    WireError::invalid(format!("invalid {method} params: {why}"))
}

/// The session that the parameters mean; see [`resolve`].
fn session(
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

/// One request under way.
struct Call {
    shared: Arc<Shared>,
    outbox: Arc<Outbox>,
    id: String,
}

type Rest = Result<BoxFuture<'static, ()>, WireError>;

impl Call {
    fn answer(&self, result: Result<Value, WireError>) {
        self.respond(match result {
            Ok(payload) => Response::ok(self.id.clone(), payload),
            Err(error) => Response::err(self.id.clone(), error),
        });
    }

    fn respond(&self, response: Response) {
        self.outbox
            .respond(ServerFrame::Response(response).to_text());
    }

    fn agent(self, params: Option<Value>) -> Rest {
        let params = read(method::AGENT, AgentParams::read(params))?;
        let (key, id, agent) = (&params.session_key, &params.session_id, &params.agent_id);
        let session_key = session(
            method::AGENT,
            key.as_deref(),
            id.as_deref(),
            agent.as_deref(),
        )?;
        let replies = self.shared.client.submit(Submission {
            session_key,
            run_key: params.idempotency_key,
            message: params.message,
            budget: params.timeout.map(|seconds| match seconds {
                0 => Budget::Unlimited,
                seconds => Budget::Limited(seconds.saturating_mul(1_000)),
            }),
        });
        Ok(Box::pin(async move { self.follow(replies).await }))
    }

    /// Tells the replies to an `agent` request: an acceptance and a final, or one of them.
    async fn follow(self, mut replies: Replies) {
        let mut acknowledged = false;
        loop {
            match replies.next().await {
                Ok(Reply::Accepted {
                    run_key,
                    session_key,
                    at,
                }) => {
                    self.acknowledge(&run_key, &session_key, AckStatus::Accepted, Some(at.0));
                }
                Ok(Reply::InFlight {
                    run_key,
                    session_key,
                }) => {
                    self.acknowledge(&run_key, &session_key, AckStatus::InFlight, None);
                }
                Ok(Reply::Final { finished, .. }) => {
                    return self.respond(project::agent_final(&self.id, &finished));
                }
                // An accepted message is not refused: its end is told after the restart.
                Ok(Reply::Rejected(Rejection::Draining)) if acknowledged => {
                    return self.answer(Err(stopped(true)));
                }
                Ok(Reply::Rejected(rejection)) => return self.answer(Err(rejected(rejection))),
                Ok(_) => return self.answer(Err(confused())),
                Err(Stopped) => return self.answer(Err(stopped(acknowledged))),
            }
            acknowledged = true;
        }
    }

    fn acknowledge(&self, run_key: &str, session_key: &str, status: AckStatus, at: Option<u64>) {
        self.answer(Ok(to_value(&AgentAck {
            run_id: run_key.to_owned(),
            session_key: Some(session_key.to_owned()),
            agent_id: Some(agent_of(session_key).to_owned()),
            status,
            accepted_at: at,
        })));
    }

    fn wait(self, params: Option<Value>, known_run: bool) -> Rest {
        let params = read(method::AGENT_WAIT, WaitParams::read(params))?;
        let mut replies = self
            .shared
            .client
            .wait(params.run_id.clone(), params.timeout_ms);
        Ok(Box::pin(async move {
            self.answer(match replies.next().await {
                Ok(Reply::WaitEnded(finished)) => Ok(to_value(&project::wait_result(&finished))),
                Ok(Reply::WaitTimedOut { known }) => {
                    let known = known.filter(|known| known_run && !known);
                    Ok(to_value(&still_waiting(params.run_id, known)))
                }
                Ok(Reply::WaitDraining) => Ok(to_value(&drained(params.run_id))),
                Ok(Reply::Rejected(rejection)) => Err(rejected(rejection)),
                Ok(_) => Err(confused()),
                Err(Stopped) => Err(stopped(false)),
            });
        }))
    }

    fn abort(self, params: Option<Value>) -> Rest {
        let params = read(method::CHAT_ABORT, ChatAbortParams::read(params))?;
        let agent = params.agent_id.as_deref();
        let session_key = session(method::CHAT_ABORT, Some(&params.session_key), None, agent)?;
        let mut replies = self.shared.client.abort(session_key, params.run_id);
        Ok(Box::pin(async move {
            self.answer(match replies.next().await {
                Ok(Reply::Aborted { run_keys }) => Ok(to_value(&ChatAborted {
                    ok: true,
                    aborted: !run_keys.is_empty(),
                    run_ids: run_keys.iter().map(ToString::to_string).collect(),
                })),
                Ok(Reply::Rejected(rejection)) => Err(rejected(rejection)),
                Ok(_) => Err(confused()),
                Err(Stopped) => Err(stopped(false)),
            });
        }))
    }

    fn sessions(self, params: Option<Value>) -> Rest {
        let params = read(method::SESSIONS_LIST, SessionsListParams::read(params))?;
        Ok(Box::pin(async move {
            self.answer(
                queries::sessions(&self.shared, params)
                    .await
                    .map(|list| to_value(&list)),
            );
        }))
    }

    fn status(self, params: Option<Value>) -> Rest {
        read(method::STATUS, StatusParams::read(params))?;
        Ok(Box::pin(async move {
            self.answer(
                queries::status(&self.shared)
                    .await
                    .map(|status| to_value(&status)),
            );
        }))
    }

    fn health(self, params: Option<Value>) -> Rest {
        read(method::HEALTH, HealthParams::read(params))?;
        Ok(Box::pin(async move {
            self.answer(
                queries::health(&self.shared)
                    .await
                    .map(|health| to_value(&health)),
            );
        }))
    }
}

fn still_waiting(run_id: String, known: Option<bool>) -> WaitResult {
    WaitResult {
        run_id,
        status: RunStatus::Timeout,
        started_at: None,
        ended_at: None,
        error: None,
        stop_reason: None,
        timeout_phase: None,
        provider_started: None,
        terminal_reply: None,
        known,
    }
}

/// The wait was cut short by the end of this process; says nothing about the run (R147).
fn drained(run_id: String) -> WaitResult {
    WaitResult {
        timeout_phase: Some(TimeoutPhase::GatewayDraining),
        ..still_waiting(run_id, None)
    }
}

/// The error of a refusal of the core.
fn rejected(rejection: Rejection) -> WireError {
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
fn confused() -> WireError {
    WireError::new(
        ErrorCode::Unavailable,
        "the gateway's driver answered another question; this is a defect, please report it",
    )
}
