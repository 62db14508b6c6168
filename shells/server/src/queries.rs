//! What the gateway says about itself: hello, `health`, `status`, `sessions.list`, readiness.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_driver::SessionRow as StoredRow;
use tidegate_wire::{
    AgentHealth, AgentSessions, CAP_KNOWN_RUN, CAP_SESSION_EVENTS, DEFAULT_AGENT, Features, Health,
    HelloAuth, HelloOk, MAIN_SESSION_KEY, ModelRuntime, PROTOCOL, Policy, RecentSession, Runs,
    ServerInfo, SessionDefaults, SessionRow, SessionRunStatus, SessionsBrief, SessionsList,
    SessionsListParams, Snapshot, StateVersion, Status, WireError, event_name, method,
};

use crate::cursor::session_id;
use crate::handshake::Peer;
use crate::keys::agent_of;
use crate::limits::{
    MAX_BUFFERED_BYTES, MAX_PAYLOAD_BYTES, READY_MS, SESSIONS_CAP, SESSIONS_DEFAULT, STATUS_RECENT,
    TICK_MS,
};
use crate::project::{session_status, to_value, was_aborted};
use crate::refusals::{stopped, unreadable};
use crate::server::Shared;

/// The payload that answers a good handshake.
pub(crate) fn hello(shared: &Shared, peer: &Peer, conn_id: &str) -> Value {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
    to_value(&HelloOk {
        kind: "hello-ok".to_owned(),
        protocol: PROTOCOL,
        server: ServerInfo {
            version: shared.config.version.clone(),
            conn_id: conn_id.to_owned(),
            boot_id: shared.config.boot_id.clone(),
        },
        features: Features {
            methods: names(&method::ALL),
            events: names(&event_name::ALL),
            capabilities: names(&[CAP_KNOWN_RUN, CAP_SESSION_EVENTS]),
        },
        snapshot: Snapshot {
            presence: Vec::new(),
            health: json!({}),
            state_version: StateVersion::default(),
            uptime_ms: shared.uptime_ms(),
            session_defaults: SessionDefaults {
                default_agent_id: DEFAULT_AGENT.to_owned(),
                main_key: "main".to_owned(),
                main_session_key: MAIN_SESSION_KEY.to_owned(),
            },
        },
        auth: HelloAuth {
            method: "token".to_owned(),
            role: "operator".to_owned(),
            scopes: peer.scopes.clone(),
        },
        policy: Policy {
            max_payload: MAX_PAYLOAD_BYTES as u64,
            max_buffered_bytes: MAX_BUFFERED_BYTES as u64,
            tick_interval_ms: TICK_MS,
        },
    })
}

/// Why the gateway is not ready; empty if it is.
pub(crate) async fn failing(shared: &Shared) -> Vec<&'static str> {
    let mut failing = Vec::new();
    if shared.is_stopping() {
        failing.push("gateway-draining");
    }
    match tokio::time::timeout(Duration::from_millis(READY_MS), shared.client.status()).await {
        Ok(Ok(status)) => {
            if status.draining && !shared.is_stopping() {
                failing.push("gateway-draining");
            }
            if status.halted.is_some() {
                failing.push("core-halted");
            }
        }
        Ok(Err(_)) => failing.push("driver-stopped"),
        Err(_) => failing.push("driver-slow"),
    }
    failing
}

/// The result of `health`.
///
/// # Errors
/// The driver has stopped, or the core has halted: then nothing would be carried out.
pub(crate) async fn health(shared: &Shared) -> Result<Health, WireError> {
    let before = shared.clock.now();
    let status = shared.client.status().await.map_err(|_| stopped(false))?;
    if let Some(why) = status.halted {
        return Err(halted(&why));
    }
    let now = shared.clock.now();
    Ok(Health {
        ok: true,
        draining: status.draining || shared.is_stopping(),
        ts: now.wall.0,
        duration_ms: now.time.since(before.time),
        channels: serde_json::Map::new(),
        channel_order: Vec::new(),
        channel_labels: serde_json::Map::new(),
        default_agent_id: DEFAULT_AGENT.to_owned(),
        agents: vec![AgentHealth {
            agent_id: DEFAULT_AGENT.to_owned(),
            is_default: true,
        }],
    })
}

fn halted(why: &str) -> WireError {
    WireError::new(
        tidegate_wire::ErrorCode::Unavailable,
        format!(
            "the gateway's core has halted: {why}; restart the gateway, accepted messages are kept"
        ),
    )
    .with(json!({"reason": "core-halted"}))
}

/// The result of `status`.
///
/// # Errors
/// The driver has stopped, or the store can't tell.
pub(crate) async fn status(shared: &Shared) -> Result<Status, WireError> {
    let status = shared.client.status().await.map_err(|_| stopped(false))?;
    let rows = stored_rows(shared).await?;
    Ok(Status {
        runtime_version: shared.config.version.clone(),
        pid: std::process::id(),
        uptime_ms: shared.uptime_ms(),
        channel_summary: Vec::new(),
        queued_system_events: Vec::new(),
        sessions: brief(&rows, shared.wall_ms()),
        model_runtime: ModelRuntime { degraded: false },
        runs: Runs {
            live: status.live_runs,
            active: status.active_runs,
            cap: status.lane_cap,
            waits: status.waits,
            timers: status.timers,
            inputs: status.inputs,
            contents: status.contents,
        },
        connections: shared.seats.authenticated(),
        halted: status.halted,
    })
}

/// The sessions in short. One agent exists, so all of them are its own.
fn brief(rows: &[StoredRow], now_ms: u64) -> SessionsBrief {
    let recent = rows.iter().take(STATUS_RECENT).map(|row| RecentSession {
        key: row.session_key.clone(),
        updated_at: row.updated_at.0,
        age: now_ms.saturating_sub(row.updated_at.0),
    });
    SessionsBrief {
        count: rows.len() as u64,
        by_agent: vec![AgentSessions {
            agent_id: DEFAULT_AGENT.to_owned(),
            count: rows.len() as u64,
            recent: recent.collect(),
        }],
    }
}

async fn stored_rows(shared: &Shared) -> Result<Vec<StoredRow>, WireError> {
    let rows = shared
        .client
        .sessions(SESSIONS_CAP)
        .await
        .map_err(|_| stopped(false))?;
    rows.map_err(|error| unreadable("the sessions", error))
}

/// The result of `sessions.list`: what the store keeps, joined with what is live.
///
/// # Errors
/// The driver has stopped, or the store can't tell.
pub(crate) async fn sessions(
    shared: &Shared,
    params: SessionsListParams,
) -> Result<SessionsList, WireError> {
    let mut rows = stored_rows(shared).await?;
    let search = params.search.as_deref().unwrap_or_default().to_lowercase();
    rows.retain(|row| {
        row.session_key.to_lowercase().contains(&search)
            && params
                .agent_id
                .as_deref()
                .is_none_or(|agent| agent_of(&row.session_key) == agent)
            && (params.active_only != Some(true) || row.open_runs > 0)
    });
    let total = rows.len() as u64;
    let limit = params
        .limit
        .unwrap_or(SESSIONS_DEFAULT)
        .min(u64::from(SESSIONS_CAP));
    let offset = params.offset.unwrap_or(0).min(total);
    let end = (offset + limit).min(total);
    let page: Vec<StoredRow> = rows.drain(index(offset)..index(end)).collect();
    let keys = page.iter().map(|row| row.session_key.clone()).collect();
    let live = shared.client.live(keys).await.map_err(|_| stopped(false))?;
    let sessions: Vec<SessionRow> = page
        .iter()
        .zip(live)
        .map(|(stored, live)| row(stored, live.iter().map(ToString::to_string).collect()))
        .collect();
    Ok(SessionsList {
        ts: shared.wall_ms(),
        count: sessions.len() as u64,
        total_count: total,
        limit_applied: limit,
        next_offset: (end < total).then_some(end),
        has_more: end < total,
        sessions,
    })
}

fn index(n: u64) -> usize {
    usize::try_from(n).expect("an offset is at most the number of rows in memory")
}

fn row(stored: &StoredRow, live: Vec<String>) -> SessionRow {
    let last = stored.last_terminal.as_ref();
    let ended = last.map(session_status);
    let at_work = last.is_none() && stored.last_run_key.is_some();
    let status = match (&ended, stored.open_runs > 0) {
        (_, true) if at_work => Some(SessionRunStatus::Running),
        (_, true) => Some(SessionRunStatus::Queued),
        (Some((status, _)), false) => Some(*status),
        (None, false) => None,
    };
    SessionRow {
        key: stored.session_key.clone(),
        kind: "direct".to_owned(),
        agent_id: agent_of(&stored.session_key).to_owned(),
        session_id: Some(session_id(&stored.session_key, stored.generation)),
        created_at: stored.created_at.0,
        updated_at: stored.updated_at.0,
        status,
        has_active_run: stored.open_runs > 0,
        active_run_ids: live,
        last_run_id: stored.last_run_key.clone(),
        aborted_last_run: last.is_some_and(was_aborted),
        last_run_error: ended.and_then(|(_, error)| error),
        started_at: last.and_then(|terminal| terminal.started_at).map(|at| at.0),
        ended_at: last.map(|terminal| terminal.ended_at.0),
        runtime_ms: last
            .and_then(|terminal| Some(terminal.ended_at.0.saturating_sub(terminal.started_at?.0))),
    }
}
