//! From a request to the driver, and from the driver's replies to responses.
//!
//! What a request asks of the driver is sent before the next frame is read, so that messages
//! of one connection are accepted in the order in which they were sent; what comes back is
//! waited for on the side.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tidegate_core::{Budget, LaneName, Priority, Rejection};
use tidegate_driver::{AbortScope, Placed, Replies, Reply, Stopped, Submission, SubmissionTurn};
use tidegate_wire::{
    AckStatus, AgentAck, AgentParams, ChatAbortParams, ChatAborted, ErrorCode, HealthParams,
    Request, Response, RunStatus, ServerFrame, SessionsListParams, StatusParams, TimeoutPhase,
    WaitParams, WaitResult, WireError, method,
};

use crate::chat::Sent;
use crate::events::Hold;
use crate::handshake::{Peer, Scope};
use crate::keys::agent_of;
use crate::outbox::Outbox;
use crate::project::{self, to_value};
use crate::queries;
use crate::refusals::{confused, read, rejected, session, stopped};
use crate::server::Shared;
use crate::words::About;

/// What became of a request.
pub(crate) enum Started {
    /// It is answered already.
    Answered(Response),
    /// This puts the answers into the outbox.
    UnderWay(BoxFuture<'static, ()>),
    /// As that; and the connection's next frame is read when it is done.
    InTurn(BoxFuture<'static, ()>),
}

/// Starts a request.
pub(crate) fn start(
    shared: &Arc<Shared>,
    peer: &Arc<Peer>,
    outbox: &Arc<Outbox>,
    listener: u64,
    request: Request,
) -> Started {
    let Request { id, method, params } = request;
    let scope = match method.as_str() {
        method::HEALTH
        | method::STATUS
        | method::CHAT_HISTORY
        | method::SESSIONS_LIST
        | method::SESSIONS_GET
        | method::SESSIONS_SUBSCRIBE
        | method::SESSIONS_UNSUBSCRIBE
        | method::MESSAGES_SUBSCRIBE
        | method::MESSAGES_UNSUBSCRIBE => Scope::Read,
        method::AGENT
        | method::AGENT_WAIT
        | method::CHAT_SEND
        | method::CHAT_ABORT
        | method::SESSIONS_ABORT
        | method::SESSIONS_RESET => Scope::Write,
        method::APPROVAL_LIST | method::APPROVAL_GET | method::APPROVAL_RESOLVE => Scope::Approvals,
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
        listener,
        id: id.clone(),
    };
    let started = match method.as_str() {
        method::AGENT => call.agent(params),
        method::AGENT_WAIT => call.wait(params, peer.known_run),
        method::CHAT_ABORT => call.abort(params),
        method::CHAT_SEND => {
            return match call.chat_send(params) {
                Ok(Sent::OnTheSide(rest)) => {
                    // What becomes of a message is told to all who listen, whoever sent it.
                    let done = shared.tasks.go_on(rest);
                    Started::UnderWay(Box::pin(async move {
                        let _ = done.await;
                    }))
                }
                Ok(Sent::InTurn(rest)) => Started::InTurn(rest),
                Err(error) => Started::Answered(Response::err(id, error)),
            };
        }
        method::CHAT_HISTORY => call.chat_history(params),
        method::SESSIONS_LIST => call.sessions(params),
        method::SESSIONS_GET => call.sessions_get(params),
        method::SESSIONS_SUBSCRIBE => call.subscribe(params),
        method::SESSIONS_UNSUBSCRIBE => call.unsubscribe(params),
        method::MESSAGES_SUBSCRIBE => {
            return match call.subscribe_messages(params) {
                // It reads before it listens; an end of it that is sent behind it comes behind it.
                Ok(rest) => Started::InTurn(rest),
                Err(error) => Started::Answered(Response::err(id, error)),
            };
        }
        method::MESSAGES_UNSUBSCRIBE => call.unsubscribe_messages(params),
        method::SESSIONS_ABORT => call.sessions_abort(params),
        method::SESSIONS_RESET => call.sessions_reset(params),
        method::APPROVAL_LIST => call.approvals(params),
        method::APPROVAL_GET => call.approval(params),
        method::APPROVAL_RESOLVE => call.resolve(params),
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
        Scope::Approvals => "operator.approvals",
    };
    WireError::new(
        ErrorCode::Forbidden,
        format!("missing scope: {name} (ask for it in connect.scopes)"),
    )
    .with(json!({"code": "MISSING_SCOPE", "missingScope": name, "requiredScopes": [name]}))
}

/// One request under way.
pub(crate) struct Call {
    pub shared: Arc<Shared>,
    pub outbox: Arc<Outbox>,
    /// The connection's place in the hub.
    pub listener: u64,
    pub id: String,
}

/// What is left to do of a request that was sent on its way.
pub(crate) type Rest = Result<BoxFuture<'static, ()>, WireError>;

/// The lane that a name means, and the priority of what comes there (spec 2.2).
fn lane(name: &str) -> (LaneName, Priority) {
    match name {
        "subagent" => (LaneName::Subagent, Priority::Normal),
        "cron" | "cron-nested" => (LaneName::CronNested, Priority::Background),
        "hook-dispatch" => (LaneName::HookDispatch, Priority::Normal),
        "nested" => (LaneName::Nested, Priority::Normal),
        "background" => (LaneName::Background, Priority::Background),
        _ => (LaneName::Main, Priority::Foreground),
    }
}

fn ack(run_key: &str, session_key: &str, status: AckStatus) -> AgentAck {
    AgentAck {
        run_id: run_key.to_owned(),
        session_key: Some(session_key.to_owned()),
        agent_id: Some(agent_of(session_key).to_owned()),
        status,
        accepted_at: None,
        timeout_ms: None,
    }
}

impl Call {
    /// Tells that a message was accepted, and where it stands.
    pub(crate) fn accepted(&self, run: &Arc<str>, session: &Arc<str>, at: u64, place: &Placed) {
        let about = About {
            session: Arc::clone(session),
            run: Arc::clone(run),
            seq: 0,
            at,
        };
        self.shared.hub.accepted(&about, place);
    }

    pub(crate) fn answer(&self, result: Result<Value, WireError>) {
        self.respond(match result {
            Ok(payload) => Response::ok(self.id.clone(), payload),
            Err(error) => Response::err(self.id.clone(), error),
        });
    }

    pub(crate) fn respond(&self, response: Response) {
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
        let run_key = params.idempotency_key;
        let hold = self.shared.hub.hold(&session_key, Some(&run_key));
        let (lane, priority) = lane(params.lane.as_deref().unwrap_or_default());
        let timeout_ms = params.timeout.map(|seconds| seconds.saturating_mul(1_000));
        let replies = self.shared.client.submit(Submission {
            session_key,
            run_key,
            message: params.message,
            budget: timeout_ms.map(budget),
            turn: SubmissionTurn::Agent,
            lane,
            priority,
        });
        Ok(Box::pin(async move {
            self.follow(replies, hold, timeout_ms).await;
        }))
    }

    /// Tells the replies to an `agent` request: an acceptance and a final, or one of them.
    async fn follow(self, mut replies: Replies, hold: Hold, timeout_ms: Option<u64>) {
        let mut acknowledged = false;
        let mut hold = Some(hold);
        loop {
            match replies.next().await {
                Ok(Reply::Accepted {
                    run_key,
                    session_key,
                    at,
                    place,
                }) => {
                    self.acknowledge(AgentAck {
                        accepted_at: Some(at.0),
                        timeout_ms,
                        ..ack(&run_key, &session_key, AckStatus::Accepted)
                    });
                    self.accepted(&run_key, &session_key, at.0, &place);
                }
                Ok(Reply::InFlight {
                    run_key,
                    session_key,
                }) => {
                    self.acknowledge(ack(&run_key, &session_key, AckStatus::InFlight));
                    self.remind(&session_key, &run_key);
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
            drop(hold.take());
        }
    }

    /// Tells who asked for a run in flight where that waits.
    pub(crate) fn remind(&self, session_key: &str, run_key: &str) {
        self.shared.hub.remind(self.listener, session_key, run_key);
    }

    fn acknowledge(&self, ack: AgentAck) {
        self.answer(Ok(to_value(&ack)));
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
                Ok(Reply::WaitTimedOut { known, decided }) => {
                    let known = known.filter(|known| known_run && !known);
                    let error = decided.and_then(project::pending_error);
                    Ok(to_value(&WaitResult {
                        pending_error: error.is_some().then_some(true),
                        error,
                        ..still_waiting(params.run_id, known)
                    }))
                }
                Ok(Reply::WaitPending) => Ok(to_value(&pending(params.run_id))),
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
        let scope = params.run_id.map_or(AbortScope::All, AbortScope::Run);
        let mut replies = self.shared.client.abort(session_key, scope);
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
        pending_error: None,
        answered_in: None,
        known,
    }
}

/// The run is a chat message that waits in its queue: it is not waited for (R148).
fn pending(run_id: String) -> WaitResult {
    WaitResult {
        status: RunStatus::Pending,
        timeout_phase: Some(TimeoutPhase::Queue),
        provider_started: Some(false),
        ..still_waiting(run_id, None)
    }
}

/// A run's own limit in milliseconds; 0 is none.
pub(crate) const fn budget(ms: u64) -> Budget {
    match ms {
        0 => Budget::Unlimited,
        ms => Budget::Limited(ms),
    }
}

/// The wait was cut short by the end of this process; says nothing about the run (R147).
fn drained(run_id: String) -> WaitResult {
    WaitResult {
        timeout_phase: Some(TimeoutPhase::GatewayDraining),
        ..still_waiting(run_id, None)
    }
}
