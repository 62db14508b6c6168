//! The shape of conversations and sessions on the wire, as text.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tidegate_wire::{
    AbortStatus, CHAT_SEND_IGNORED, ChatHistory, ChatSendAck, ChatSendParams, ContentPart,
    HistoryKind, HistoryMessage, HistoryReset, InFlightRun, InputState, Kind, MessageContent,
    MessageRow, MessagesSubscribeParams, PendingInputs, SendStatus, SessionInfo, SessionsAborted,
    SessionsChanged, SessionsSubscribeParams,
};

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
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

/// surface 2.3: all 28 names of `chat.send` are known, each with its type
#[test]
fn all_names_of_chat_send_are_accepted() {
    let mut all = json!({"sessionKey": "s", "message": "m", "idempotencyKey": "k", "agentId": "main", "queueMode": "collect",
        "timeoutMs": 5, "suppressCommandInterpretation": true, "originatingChannel": "c", "originatingTo": "t",
        "originatingAccountId": "a", "originatingThreadId": "h"});
    let acted = all.as_object().unwrap().len();
    for (name, kind) in CHAT_SEND_IGNORED {
        all[*name] = example(*kind);
    }
    assert_eq!((acted, all.as_object().unwrap().len()), (11, 28));
    let read = ChatSendParams::read(Some(all.clone())).unwrap();
    assert_snapshot!(text(&read), @r#"{"sessionKey":"s","message":"m","idempotencyKey":"k","agentId":"main","queueMode":"collect","timeoutMs":5,"suppressCommandInterpretation":true,"originatingChannel":"c","originatingTo":"t","originatingAccountId":"a","originatingThreadId":"h"}"#);
    all["surprise"] = json!(1);
    let refused = ChatSendParams::read(Some(all)).unwrap_err().0;
    assert_eq!(refused, "at root: unexpected property 'surprise'");
}

/// surface 2.3, 2.4: what a conversation is told and keeps
#[test]
fn results_of_conversations() {
    let ack = ChatSendAck {
        input_state: Some(InputState::Queued),
        queued_ahead: Some(2),
        ..ChatSendAck::of("r", SendStatus::Started)
    };
    assert_snapshot!(text(&ack), @r#"{"runId":"r","status":"started","inputState":"queued","queuedAhead":2}"#);
    let ack = ChatSendAck {
        input_state: Some(InputState::Interrupting),
        interrupted_active_run: Some(true),
        ..ChatSendAck::of("r", SendStatus::InFlight)
    };
    assert_snapshot!(text(&ack), @r#"{"runId":"r","status":"in_flight","inputState":"interrupting","interruptedActiveRun":true}"#);
    let message = HistoryMessage {
        role: "assistant".into(),
        content: MessageContent::Parts(vec![ContentPart::text("hi")]),
        timestamp: 1,
        idempotency_key: None,
        stop_reason: None,
        tool_call_id: None,
        tool_name: None,
        is_error: None,
        details: None,
        mark: Some("partial".into()),
        truncated: true,
        row: MessageRow {
            id: "k#1:2".into(),
            seq: 2,
            run_id: "r".into(),
        },
    };
    assert_snapshot!(text(&message), @r#"{"role":"assistant","content":[{"type":"text","text":"hi"}],"timestamp":1,"mark":"partial","truncated":true,"__openclaw":{"id":"k#1:2","seq":2,"runId":"r"}}"#);
    assert_eq!(message.text(), "hi");
    let history = ChatHistory {
        kind: Some(HistoryKind::Delta),
        session_key: "k".into(),
        session_id: "k#1".into(),
        messages: vec![message],
        pending_inputs: PendingInputs::default(),
        in_flight_run: Some(InFlightRun {
            run_id: "q".into(),
            text: "so".into(),
            started_at: None,
        }),
        delta_cursor: "c".into(),
        offset: None,
        next_offset: Some(1),
        has_more: true,
        total_messages: 2,
        session_info: SessionInfo {
            key: "k".into(),
            agent_id: "main".into(),
            session_id: "k#1".into(),
            has_active_run: true,
            active_run_ids: vec!["q".into()],
        },
    };
    let read: ChatHistory = serde_json::from_str(&text(&history)).unwrap();
    assert_eq!(read, history);
    assert_snapshot!(text(&HistoryReset { kind: HistoryKind::Reset }), @r#"{"kind":"reset"}"#);
}

/// surface 2.5, 3.3: parameters, results and events of sessions
#[test]
fn sessions_and_their_changes() {
    assert_eq!(
        SessionsSubscribeParams::read(Some(json!({}))).unwrap().list,
        None
    );
    let list = SessionsSubscribeParams::read(Some(json!({"limit": 60, "ownerFirst": true})))
        .unwrap()
        .list;
    assert_eq!(list.unwrap().limit, Some(60));
    let subscribe = MessagesSubscribeParams {
        key: "k".into(),
        agent_id: None,
        cursor: Some("c".into()),
        session_seq: Some(4),
        message_seq: None,
    };
    assert_snapshot!(text(&subscribe), @r#"{"key":"k","cursor":"c","sessionSeq":4}"#);
    let mut params = serde_json::to_value(&subscribe).unwrap();
    params["includeApprovals"] = json!(true);
    assert_eq!(MessagesSubscribeParams::read(Some(params)), Ok(subscribe));
    let aborted = SessionsAborted {
        ok: true,
        aborted_run_id: None,
        run_ids: vec![],
        status: AbortStatus::NoActiveRun,
    };
    assert_snapshot!(text(&aborted), @r#"{"ok":true,"abortedRunId":null,"runIds":[],"status":"no-active-run"}"#);
    let changed = SessionsChanged {
        session_key: "k".into(),
        agent_id: "main".into(),
        reason: "send".into(),
        ts: 1,
        ..SessionsChanged::default()
    };
    assert_snapshot!(text(&changed), @r#"{"sessionKey":"k","agentId":"main","reason":"send","ts":1,"hasActiveRun":false,"activeRunIds":null}"#);
}
