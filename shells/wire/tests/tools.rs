//! The shape of tool calls on the wire, as text, and as another server of the protocol sends
//! them.

use insta::assert_snapshot;
use serde_json::json;
use tidegate_wire::{
    AgentData, AgentEvent, ApprovalDecision, ApprovalOver, ApprovalPending, ApprovalRequest,
    ApprovalShown, ApprovalStep, ContentPart, HistoryMessage, ToolContent, ToolStep,
};

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// surface 3.1: the three phases of a call
#[test]
fn a_call_is_told_in_three_phases() {
    let (name, id) = ("exec".to_owned(), "call_2".to_owned());
    let start = AgentData::Tool(ToolStep::Start {
        name: name.clone(),
        tool_call_id: id.clone(),
        args: json!({"command": "echo hi"}),
    });
    assert_snapshot!(text(&start), @r#"{"stream":"tool","data":{"phase":"start","name":"exec","toolCallId":"call_2","args":{"command":"echo hi"}}}"#);
    let update = AgentData::Tool(ToolStep::Update {
        name: name.clone(),
        tool_call_id: id.clone(),
        partial_result: ToolContent::text("hi\n", "running"),
    });
    assert_snapshot!(text(&update), @r#"{"stream":"tool","data":{"phase":"update","name":"exec","toolCallId":"call_2","partialResult":{"content":[{"type":"text","text":"hi\n"}],"details":{"status":"running"}}}}"#);
    let result = AgentData::Tool(ToolStep::Result {
        name,
        tool_call_id: id,
        is_error: false,
        result: ToolContent::text("hi", "completed"),
        meta: None,
    });
    assert_snapshot!(text(&result), @r#"{"stream":"tool","data":{"phase":"result","name":"exec","toolCallId":"call_2","isError":false,"result":{"content":[{"type":"text","text":"hi"}],"details":{"status":"completed"}}}}"#);
    let back: AgentData = serde_json::from_str(&text(&result)).unwrap();
    assert_eq!(back, result);
}

/// surface 2.9, 3.4: what those who may decide are told
#[test]
fn approvals_on_the_wire() {
    let request = ApprovalRequest {
        command: "rm x".into(),
        cwd: None,
        host: "gateway".into(),
        agent_id: "main".into(),
        session_key: "agent:main:main".into(),
        run_id: "r".into(),
        tool_call_id: "call_2".into(),
        tool_name: "exec".into(),
    };
    let pending = ApprovalPending {
        id: "a1".into(),
        request: request.clone(),
        created_at_ms: 5,
        expires_at_ms: 9,
    };
    assert_snapshot!(text(&pending), @r#"{"id":"a1","request":{"command":"rm x","host":"gateway","agentId":"main","sessionKey":"agent:main:main","runId":"r","toolCallId":"call_2","toolName":"exec"},"createdAtMs":5,"expiresAtMs":9}"#);
    let over = ApprovalOver {
        id: "a1".into(),
        decision: None,
        resolved_by: None,
        terminal_reason: Some("expired".into()),
        ts: 9,
        request: ApprovalRequest::default(),
    };
    assert_snapshot!(text(&over), @r#"{"id":"a1","decision":null,"terminalReason":"expired","ts":9,"request":{"command":"","host":"","agentId":"","sessionKey":"","runId":"","toolCallId":"","toolName":""}}"#);
    let shown = ApprovalShown {
        id: "a1".into(),
        command_text: "rm x\nrm y".into(),
        command_preview: "rm x".into(),
        allowed_decisions: vec![ApprovalDecision::AllowOnce, ApprovalDecision::Deny],
        host: "gateway".into(),
        node_id: None,
        agent_id: "main".into(),
        expires_at_ms: 9,
    };
    assert_snapshot!(text(&shown), @r#"{"id":"a1","commandText":"rm x\nrm y","commandPreview":"rm x","allowedDecisions":["allow-once","deny"],"host":"gateway","nodeId":null,"agentId":"main","expiresAtMs":9}"#);
    let step = AgentData::Approval(ApprovalStep {
        phase: "requested".into(),
        kind: "exec".into(),
        status: "pending".into(),
        approval_id: "a1".into(),
        tool_call_id: "call_2".into(),
        cwd: None,
        command: "rm x".into(),
        expires_at_ms: 9,
    });
    assert_snapshot!(text(&step), @r#"{"stream":"approval","data":{"phase":"requested","kind":"exec","status":"pending","approvalId":"a1","toolCallId":"call_2","command":"rm x","expiresAtMs":9}}"#);
}

/// surface 3.1, observed 2: our clients understand the tool events and rows of release 2026.9.6
#[test]
fn what_the_foreign_server_says_of_tools_can_be_read() {
    let event = |data: serde_json::Value| {
        let event = json!({"runId": "r", "stream": "tool", "data": data, "sessionKey": "agent:main:tool1",
            "agentId": "main", "seq": 5, "ts": 1, "session": {"key": "agent:main:tool1"}, "updatedAt": 1});
        match serde_json::from_value::<AgentEvent>(event).unwrap().data {
            AgentData::Tool(step) => step,
            other => panic!("{other:?}"),
        }
    };
    let update = event(
        json!({"phase": "update", "name": "exec", "toolCallId": "call_2", "partialResult": {
        "content": [{"type": "text", "text": "tool-ran\n"}],
        "details": {"status": "running", "pid": 30807, "tail": "tool-ran\n"}}}),
    );
    assert!(matches!(update, ToolStep::Update { .. }));
    let result = event(
        json!({"phase": "result", "name": "exec", "toolCallId": "call_2", "meta": "print text",
        "isError": false, "commandBearing": true, "result": {
            "content": [{"type": "text", "text": "tool-ran"}, {"type": "image", "data": "…"}],
            "details": {"status": "completed", "exitCode": 0}}}),
    );
    let ToolStep::Result { result, .. } = result else {
        panic!("a result")
    };
    assert_eq!(result.status(), Some("completed"));
    let row = json!({"role": "assistant", "content": [{"type": "toolCall", "id": "call_2", "name": "exec",
            "arguments": {"command": "echo tool-ran"}}], "stopReason": "toolUse", "timestamp": 1,
        "__openclaw": {"runId": "r", "id": "72fb", "seq": 6}});
    let row: HistoryMessage = serde_json::from_value(row).unwrap();
    assert_eq!(
        (row.text().as_str(), row.stop_reason.as_deref()),
        ("", Some("toolUse"))
    );
    let part: ContentPart =
        serde_json::from_value(json!({"type": "thinking", "thinking": "…"})).unwrap();
    assert_eq!(part, ContentPart::Other);
}
