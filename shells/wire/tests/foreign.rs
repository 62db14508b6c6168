//! Frames that other programs of the protocol wrote: what a client of release 2026.9.6 sends
//! is a good request, what its server sends can be read.

use serde_json::Value;
use tidegate_wire::{
    AgentEvent, AgentParams, AgentPayload, Challenge, ChatEvent, ConnectParams, Health, HelloOk,
    Request, ServerFrame, WaitResult, event_name, method,
};

/// Frames of one message with the command line client, recorded and trimmed.
const RECORDED: &str = include_str!("fixtures/release-2026.9.6.jsonl");

fn frames(direction: &str) -> Vec<Value> {
    RECORDED
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["dir"] == direction)
        .map(|line| line["data"].clone())
        .collect()
}

/// The client's own frames are understood
#[test]
fn what_the_foreign_client_sends_is_a_good_request() {
    let mut methods = Vec::new();
    for frame in frames("c>s") {
        let request = Request::read(frame.to_string().as_bytes()).unwrap();
        match request.method.as_str() {
            method::CONNECT => {
                let connect = ConnectParams::read(request.params).unwrap();
                assert_eq!(
                    (connect.client.id.as_str(), connect.max_protocol),
                    ("cli", 4)
                );
                assert!(connect.auth.token.is_some());
            }
            method::AGENT => {
                let agent = AgentParams::read(request.params).unwrap();
                assert_eq!(
                    (agent.message.as_str(), agent.timeout),
                    ("hello-there", Some(600))
                );
            }
            other => panic!("{other} is not expected here"),
        }
        methods.push(request.method);
    }
    assert_eq!(methods, [method::CONNECT, method::AGENT]);
}

/// Our own clients can talk to another server of the protocol
#[test]
fn what_the_foreign_server_sends_can_be_read() {
    let mut read = Vec::new();
    for frame in frames("s>c") {
        let what = match ServerFrame::read(&frame.to_string()).unwrap() {
            ServerFrame::Event(event) => event_kind(&event.event, event.payload.unwrap()),
            ServerFrame::Response(response) if !response.ok => {
                assert_eq!(
                    response.error.unwrap().details_code(),
                    Some("AUTH_TOKEN_MISMATCH")
                );
                "refused"
            }
            ServerFrame::Response(response) => payload_kind(response.payload.unwrap()),
        };
        read.push(what);
    }
    assert_eq!(
        read,
        [
            "challenge",
            "hello",
            "ack",
            "agent",
            "agent",
            "chat",
            "agent",
            "agent",
            "chat",
            "final",
            "health",
            "wait",
            "wait",
            "wait",
            "refused",
        ]
    );
}

fn event_kind(name: &str, payload: Value) -> &'static str {
    match name {
        event_name::CHALLENGE => {
            serde_json::from_value::<Challenge>(payload).unwrap();
            "challenge"
        }
        event_name::AGENT => {
            serde_json::from_value::<AgentEvent>(payload).unwrap();
            "agent"
        }
        event_name::CHAT => {
            serde_json::from_value::<ChatEvent>(payload).unwrap();
            "chat"
        }
        other => panic!("{other} is not expected here"),
    }
}

fn payload_kind(payload: Value) -> &'static str {
    if payload["type"] == "hello-ok" {
        let hello: HelloOk = serde_json::from_value(payload).unwrap();
        assert_eq!(hello.policy.tick_interval_ms, 30_000);
        return "hello";
    }
    if payload["ok"] == true {
        assert!(serde_json::from_value::<Health>(payload).unwrap().ok);
        return "health";
    }
    if payload.get("acceptedAt").is_some() || payload.get("summary").is_some() {
        return match serde_json::from_value::<AgentPayload>(payload).unwrap() {
            AgentPayload::Ack(_) => "ack",
            AgentPayload::Final(_) => "final",
        };
    }
    serde_json::from_value::<WaitResult>(payload).unwrap();
    "wait"
}
