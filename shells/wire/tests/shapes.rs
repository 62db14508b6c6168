//! The shape of everything that goes over the wire, as text: a change of a name, an order or
//! an omission is seen here before a client sees it.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tidegate_wire::{
    AGENT_IGNORED, AckStatus, AgentAck, AgentData, AgentEvent, AgentFinal, AgentParams,
    AuthProblem, BadFrame, Challenge, ChatAbortParams, ChatAborted, ChatEvent, ChatMessage,
    ChatState, ClientInfo, ConnectParams, Disposition, ErrorCode, Event, InputStep, Kind,
    Lifecycle, Payload, Phase, Request, Response, RunMeta, RunResult, RunStatus,
    SESSIONS_LIST_IGNORED, Secret, ServerFrame, SessionsListParams, Shutdown, TerminalReply, Tick,
    TimeoutPhase, WaitParams, WaitResult, WireError, event_text,
};

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// surface 1.2
#[test]
fn frames() {
    let request = Request {
        id: "1".into(),
        method: "health".into(),
        params: None,
    };
    assert_snapshot!(request.to_text(), @r#"{"id":"1","method":"health","type":"req"}"#);
    let ok = ServerFrame::Response(Response::ok("1", json!({"a": 1})));
    assert_snapshot!(ok.to_text(), @r#"{"type":"res","id":"1","ok":true,"payload":{"a":1}}"#);
    let error = WireError::try_later("busy", 1_000).with(json!({"reason": "gateway-busy"}));
    let err = ServerFrame::Response(Response::err("1", error));
    assert_snapshot!(err.to_text(), @r#"{"type":"res","id":"1","ok":false,"error":{"code":"UNAVAILABLE","message":"busy","details":{"reason":"gateway-busy"},"retryable":true,"retryAfterMs":1000}}"#);
    let challenge = ServerFrame::Event(Event {
        event: "connect.challenge".into(),
        payload: Some(
            serde_json::to_value(Challenge {
                nonce: "n".into(),
                ts: 1,
                capabilities: vec![],
            })
            .unwrap(),
        ),
        seq: None,
        state_version: None,
    });
    assert_snapshot!(challenge.to_text(), @r#"{"type":"event","event":"connect.challenge","payload":{"capabilities":[],"nonce":"n","ts":1}}"#);
    let tick = event_text("tick", &text(&Tick { ts: 5 }), 7);
    assert_snapshot!(tick, @r#"{"type":"event","event":"tick","payload":{"ts":5},"seq":7}"#);
    assert!(matches!(
        ServerFrame::read(&tick),
        Ok(ServerFrame::Event(Event { seq: Some(7), .. }))
    ));
}

/// surface 1.3: the closed set of codes
#[test]
fn error_codes() {
    use ErrorCode::*;
    let all = [
        InvalidRequest,
        Unavailable,
        Forbidden,
        NotPaired,
        NotLinked,
        AgentTimeout,
        ApprovalNotFound,
    ];
    assert_snapshot!(text(&all), @r#"["INVALID_REQUEST","UNAVAILABLE","FORBIDDEN","NOT_PAIRED","NOT_LINKED","AGENT_TIMEOUT","APPROVAL_NOT_FOUND"]"#);
    assert_snapshot!(text(&AuthProblem::Missing.error()), @r#"{"code":"INVALID_REQUEST","message":"unauthorized: gateway token missing (send it as auth.token; it lies in the gateway's state directory)","details":{"authReason":"token_missing","canRetryWithDeviceToken":false,"code":"AUTH_TOKEN_MISSING","recommendedNextStep":"update_auth_credentials"}}"#);
    assert_snapshot!(text(&AuthProblem::Mismatch.error()), @r#"{"code":"INVALID_REQUEST","message":"unauthorized: gateway token mismatch (use the token in this gateway's state directory)","details":{"authReason":"token_mismatch","canRetryWithDeviceToken":false,"code":"AUTH_TOKEN_MISMATCH","recommendedNextStep":"update_auth_credentials"}}"#);
}

/// A frame that is no request is answered under its own id where it has one
#[test]
fn frames_that_are_no_requests() {
    let said = |frame: &str| {
        let BadFrame { id, error } = Request::read(frame.as_bytes()).unwrap_err();
        format!("{id}: {}", error.message)
    };
    assert_snapshot!(said("{"), @"invalid: invalid request frame: must be one JSON object: EOF while parsing an object at line 1 column 1");
    assert_snapshot!(said("[]"), @"invalid: invalid request frame: at root: must be object");
    assert_snapshot!(said(r#"{"type":"req","method":"m"}"#), @"invalid: invalid request frame: must have required property 'id'");
    assert_snapshot!(said(r#"{"type":"req","id":"1"}"#), @"1: invalid request frame: must have required property 'method'");
    assert_snapshot!(said(r#"{"type":"event","id":"1","method":"m"}"#), @"1: invalid request frame: at /type: must be equal to one of the allowed values: req");
    assert_snapshot!(said(r#"{"type":"req","id":"1","method":"m","x":1}"#), @"1: invalid request frame: at root: unexpected property 'x'");
}

/// surface 1.4: what our own clients send is what we read
#[test]
fn connect_params() {
    let client = ClientInfo {
        id: "cli".into(),
        version: "1".into(),
        platform: "linux".into(),
        mode: "cli".into(),
        ..ClientInfo::default()
    };
    let params = ConnectParams::operator(client, Secret::new("s"), &["operator.write"]);
    assert_snapshot!(text(&params), @r#"{"minProtocol":4,"maxProtocol":4,"client":{"id":"cli","version":"1","platform":"linux","mode":"cli"},"caps":["tidegate-known-run"],"role":"operator","scopes":["operator.write"],"auth":{"token":"s"}}"#);
    assert_eq!(
        ConnectParams::read(Some(serde_json::to_value(&params).unwrap())),
        Ok(params)
    );
}

/// R1, surface 2.1: all 48 names of `agent` are known, each with its type
#[test]
fn all_names_of_agent_are_accepted() {
    let acted = [
        "message",
        "idempotencyKey",
        "agentId",
        "sessionKey",
        "sessionId",
        "timeout",
        "lane",
    ];
    let mut names: Vec<&str> = acted
        .into_iter()
        .chain(AGENT_IGNORED.iter().map(|(name, _)| *name))
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 48);
    let mut all = json!({"message": "m", "idempotencyKey": "k", "agentId": "main", "sessionKey": "s", "sessionId": "i", "timeout": 31_536_000, "lane": "subagent"});
    for (name, kind) in AGENT_IGNORED {
        all[*name] = example(*kind);
    }
    let read = AgentParams::read(Some(all.clone())).unwrap();
    assert_eq!(read.timeout, Some(31_536_000));
    assert_snapshot!(text(&read), @r#"{"message":"m","idempotencyKey":"k","agentId":"main","sessionKey":"s","sessionId":"i","timeout":31536000,"lane":"subagent"}"#);
    for (name, kind) in AGENT_IGNORED {
        let mut wrong = all.clone();
        wrong[*name] = wrong_example(*kind);
        assert!(
            AgentParams::read(Some(wrong))
                .unwrap_err()
                .0
                .starts_with(&format!("at /{name}: "))
        );
    }
}

fn example(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Name | Kind::Short(_) => json!("x"),
        Kind::Bool | Kind::BoolOr(_) => json!(true),
        Kind::Whole(min) => json!(min),
        Kind::List | Kind::NotYet => json!([]),
        Kind::Object => json!({}),
        Kind::OneOf(words) => json!(words[0]),
        Kind::Any => json!(null),
    }
}

fn wrong_example(kind: Kind) -> Value {
    match kind {
        Kind::Text | Kind::Name | Kind::Short(_) | Kind::OneOf(_) => json!(1),
        _ => json!("wrong"),
    }
}

/// surface 2.2, 2.4, 2.5: parameters as our clients write them and as we read them
#[test]
fn other_params() {
    let wait = WaitParams {
        run_id: "r".into(),
        timeout_ms: Some(5),
    };
    assert_snapshot!(text(&wait), @r#"{"runId":"r","timeoutMs":5}"#);
    assert_eq!(
        WaitParams::read(Some(json!({"runId": "r", "timeoutMs": 5.7}))),
        Ok(wait)
    );
    let abort = ChatAbortParams {
        session_key: "s".into(),
        agent_id: None,
        run_id: Some("r".into()),
    };
    assert_snapshot!(text(&abort), @r#"{"sessionKey":"s","runId":"r"}"#);
    assert_eq!(
        ChatAbortParams::read(Some(
            json!({"sessionKey": "s", "runId": "r", "preserveSideRuns": true})
        )),
        Ok(abort)
    );
    let mut all =
        json!({"limit": 1, "offset": 0, "activeOnly": true, "agentId": "main", "search": "x"});
    for (name, kind) in SESSIONS_LIST_IGNORED {
        all[*name] = example(*kind);
    }
    let list = SessionsListParams::read(Some(all)).unwrap();
    assert_snapshot!(text(&list), @r#"{"limit":1,"offset":0,"activeOnly":true,"agentId":"main","search":"x"}"#);
    assert_eq!(
        SessionsListParams::read(Some(Value::Null)),
        Ok(SessionsListParams::default())
    );
}

/// surface 2.1, 2.2, 2.4
#[test]
fn results_of_runs() {
    let ack = AgentAck {
        run_id: "r".into(),
        session_key: Some("agent:main:main".into()),
        agent_id: Some("main".into()),
        status: AckStatus::Accepted,
        accepted_at: Some(1),
        timeout_ms: Some(2_000),
    };
    assert_snapshot!(text(&ack), @r#"{"runId":"r","sessionKey":"agent:main:main","agentId":"main","status":"accepted","acceptedAt":1,"timeoutMs":2000}"#);
    assert_snapshot!(text(&AckStatus::InFlight), @r#""in_flight""#);
    let done = AgentFinal {
        run_id: "r".into(),
        status: RunStatus::Ok,
        summary: "completed".into(),
        result: Some(RunResult {
            payloads: vec![
                Payload {
                    text: "hi".into(),
                    media_url: None,
                    is_error: false,
                },
                Payload {
                    text: "no".into(),
                    media_url: None,
                    is_error: true,
                },
            ],
            meta: RunMeta {
                duration_ms: 3,
                aborted: false,
            },
        }),
        stop_reason: Some("stop".into()),
        timeout_phase: None,
        provider_started: None,
    };
    assert_snapshot!(text(&done), @r#"{"runId":"r","status":"ok","summary":"completed","result":{"payloads":[{"text":"hi","mediaUrl":null},{"text":"no","mediaUrl":null,"isError":true}],"meta":{"durationMs":3,"aborted":false}},"stopReason":"stop"}"#);
    let wait = WaitResult {
        run_id: "r".into(),
        status: RunStatus::Timeout,
        started_at: Some(1),
        ended_at: Some(2),
        error: Some("e".into()),
        stop_reason: None,
        timeout_phase: Some(TimeoutPhase::PostTurn),
        provider_started: Some(true),
        terminal_reply: Some(TerminalReply {
            disposition: Disposition::Empty,
            text: None,
        }),
        pending_error: Some(true),
        answered_in: Some("q".into()),
        known: Some(false),
    };
    assert_snapshot!(text(&wait), @r#"{"runId":"r","status":"timeout","startedAt":1,"endedAt":2,"error":"e","timeoutPhase":"post_turn","providerStarted":true,"terminalReply":{"disposition":"empty"},"pendingError":true,"answeredIn":"q","known":false}"#);
    let aborted = ChatAborted {
        ok: true,
        aborted: true,
        run_ids: vec!["r".into()],
    };
    assert_snapshot!(text(&aborted), @r#"{"ok":true,"aborted":true,"runIds":["r"]}"#);
}

/// surface 3.1, 3.2, 1.5
#[test]
fn events_of_runs() {
    let agent = |data| AgentEvent {
        run_id: "r".into(),
        session_key: "agent:main:main".into(),
        agent_id: "main".into(),
        data,
        seq: 1,
        ts: 2,
        session_seq: None,
    };
    let end = Lifecycle {
        status: Some("cancelled".into()),
        ended_at: Some(9),
        aborted: Some(true),
        stop_reason: Some("rpc".into()),
        execution_settled: Some(true),
        ..Lifecycle::step(Phase::End)
    };
    assert_snapshot!(text(&agent(AgentData::Lifecycle(end))), @r#"{"runId":"r","sessionKey":"agent:main:main","agentId":"main","stream":"lifecycle","data":{"phase":"end","status":"cancelled","endedAt":9,"aborted":true,"stopReason":"rpc","executionSettled":true},"seq":1,"ts":2}"#);
    let grown = AgentData::Assistant {
        text: "ab".into(),
        delta: "b".into(),
        replace: None,
    };
    assert_snapshot!(text(&agent(grown)), @r#"{"runId":"r","sessionKey":"agent:main:main","agentId":"main","stream":"assistant","data":{"text":"ab","delta":"b"},"seq":1,"ts":2}"#);
    let chat = |state| {
        text(&ChatEvent {
            run_id: "r".into(),
            session_key: "k".into(),
            agent_id: "main".into(),
            seq: 1,
            session_seq: Some(7),
            state,
        })
    };
    let message = || Some(ChatMessage::assistant("ab", 2));
    assert_snapshot!(chat(ChatState::Delta { delta_text: "b".into(), message: message(), replace: Some(true) }), @r#"{"runId":"r","sessionKey":"k","agentId":"main","seq":1,"sessionSeq":7,"state":"delta","deltaText":"b","message":{"role":"assistant","content":[{"type":"text","text":"ab"}],"timestamp":2},"replace":true}"#);
    assert_snapshot!(chat(ChatState::Final { message: None, stop_reason: Some("stop".into()), answered_in: Some("q".into()) }), @r#"{"runId":"r","sessionKey":"k","agentId":"main","seq":1,"sessionSeq":7,"state":"final","stopReason":"stop","answeredIn":"q"}"#);
    assert_snapshot!(chat(ChatState::Aborted { message: message(), stop_reason: Some("rpc".into()), input_state: Some("given_back".into()), answered_in: None }), @r#"{"runId":"r","sessionKey":"k","agentId":"main","seq":1,"sessionSeq":7,"state":"aborted","message":{"role":"assistant","content":[{"type":"text","text":"ab"}],"timestamp":2},"stopReason":"rpc","inputState":"given_back"}"#);
    assert_snapshot!(chat(ChatState::Error { message: None, error_message: Some("e".into()), error_kind: Some("timeout".into()), answered_in: None }), @r#"{"runId":"r","sessionKey":"k","agentId":"main","seq":1,"sessionSeq":7,"state":"error","errorMessage":"e","errorKind":"timeout"}"#);
    let step = || InputStep::Waited {
        ms: 3,
        active_ahead: 1,
        queued_ahead: 2,
    };
    let again = || InputStep::Retrying {
        attempt: 2,
        max_attempts: 9,
        delay_ms: 1_000,
        reason: "network".to_owned(),
        message: "it broke".to_owned(),
    };
    assert_snapshot!(chat(ChatState::Status(again())), @r#"{"runId":"r","sessionKey":"k","agentId":"main","seq":1,"sessionSeq":7,"state":"status","phase":"retrying","attempt":2,"maxAttempts":9,"delayMs":1000,"reason":"network","message":"it broke"}"#);
    assert_snapshot!(text(&agent(AgentData::RunStatus(again()))), @r#"{"runId":"r","sessionKey":"agent:main:main","agentId":"main","stream":"run_status","data":{"phase":"retrying","attempt":2,"maxAttempts":9,"delayMs":1000,"reason":"network","message":"it broke"},"seq":1,"ts":2}"#);
    let another = || InputStep::Fallback {
        from: "p/m".to_owned(),
        to: "q/n".to_owned(),
        reason: "auth".to_owned(),
        message: "it refused".to_owned(),
    };
    assert_snapshot!(chat(ChatState::Status(another())), @r#"{"runId":"r","sessionKey":"k","agentId":"main","seq":1,"sessionSeq":7,"state":"status","phase":"fallback","from":"p/m","to":"q/n","reason":"auth","message":"it refused"}"#);
    assert_snapshot!(text(&agent(AgentData::RunStatus(another()))), @r#"{"runId":"r","sessionKey":"agent:main:main","agentId":"main","stream":"run_status","data":{"phase":"fallback","from":"p/m","to":"q/n","reason":"auth","message":"it refused"},"seq":1,"ts":2}"#);
    assert_snapshot!(chat(ChatState::Status(step())), @r#"{"runId":"r","sessionKey":"k","agentId":"main","seq":1,"sessionSeq":7,"state":"status","phase":"waited","ms":3,"activeAhead":1,"queuedAhead":2}"#);
    assert_snapshot!(text(&agent(AgentData::RunStatus(step()))), @r#"{"runId":"r","sessionKey":"agent:main:main","agentId":"main","stream":"run_status","data":{"phase":"waited","ms":3,"activeAhead":1,"queuedAhead":2},"seq":1,"ts":2}"#);
    let shutdown = Shutdown {
        reason: "gateway stopping".into(),
        restart_expected_ms: Some(5),
    };
    assert_snapshot!(text(&shutdown), @r#"{"reason":"gateway stopping","restartExpectedMs":5}"#);
}
