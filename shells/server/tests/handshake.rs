//! Coming in: HTTP, the upgrade, the first request, and everything that is turned away.

mod support;

use futures_util::SinkExt;
use serde_json::{Value, json};
use support::{Closed, Gateway, TOKEN, Ws, connect_params};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::{Error, Message};

async fn http(gateway: &Gateway, request: &str) -> (u16, String, Value) {
    let mut socket = gateway.socket().await;
    socket
        .write_all(format!("{request}\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (
        status,
        head.to_lowercase(),
        serde_json::from_str(body).unwrap_or(Value::Null),
    )
}

/// R1, surface 4: probes need no token
#[tokio::test]
async fn probes_answer_without_a_token() {
    let gateway = Gateway::start().await;
    for path in ["/health", "/healthz"] {
        let (status, head, body) = http(&gateway, &format!("GET {path} HTTP/1.1")).await;
        assert_eq!((status, body), (200, json!({"ok": true, "status": "live"})));
        assert!(head.contains("cache-control: no-store"), "{head}");
    }
    for path in ["/ready", "/readyz"] {
        let (status, _, body) = http(&gateway, &format!("GET {path} HTTP/1.1")).await;
        assert_eq!(
            (status, &body["ready"], &body["failing"]),
            (200, &json!(true), &json!([]))
        );
    }
    let (status, _, body) = http(&gateway, "GET /startupz HTTP/1.1").await;
    assert_eq!((status, &body["status"]), (200, &json!("started")));
    let (status, head, _) = http(&gateway, "HEAD /healthz HTTP/1.1").await;
    assert_eq!(status, 200, "{head}");
    let (status, head, _) = http(&gateway, "POST /healthz HTTP/1.1").await;
    assert_eq!(status, 405);
    assert!(head.contains("allow: get,head"), "{head}");
    assert_eq!(http(&gateway, "GET /nothing HTTP/1.1").await.0, 404);
    assert_eq!(http(&gateway, "GET / HTTP/1.1").await.0, 426);
}

/// Law 10: a gateway whose driver has stopped lives and is not ready
#[tokio::test]
async fn readiness_says_what_is_missing() {
    let gateway = Gateway::start().await;
    gateway.client.stop().await;
    let (status, _, body) = http(&gateway, "GET /readyz HTTP/1.1").await;
    assert_eq!(
        (status, &body["ready"], &body["failing"]),
        (503, &json!(false), &json!(["driver-stopped"]))
    );
    assert_eq!(http(&gateway, "GET /healthz HTTP/1.1").await.0, 200);
}

/// Surface 1.4: the handshake as the command line client of release 2026.9.6 does it
#[tokio::test]
async fn a_client_with_the_token_comes_in() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.open().await;
    let hello = ws.hello(connect_params()).await;
    assert_eq!(hello["type"], "hello-ok");
    assert_eq!(hello["protocol"], 4);
    assert_eq!(
        hello["policy"],
        json!({"maxPayload": 26_214_400, "maxBufferedBytes": 52_428_800, "tickIntervalMs": 30_000})
    );
    assert_eq!(
        hello["auth"],
        json!({"method": "token", "role": "operator", "scopes": ["operator.admin"]})
    );
    assert_eq!(
        hello["snapshot"]["sessionDefaults"]["mainSessionKey"],
        "agent:main:main"
    );
    let methods = hello["features"]["methods"].as_array().unwrap();
    for method in methods {
        let answer = ws.call(method.as_str().unwrap(), json!({"bogus": 1})).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            !message.starts_with("unknown method"),
            "advertised and missing: {method}"
        );
    }
}

/// The token is good in the password field as well
#[tokio::test]
async fn the_token_may_come_as_a_password() {
    let gateway = Gateway::start().await;
    let mut params = connect_params();
    params["auth"] = json!({"password": TOKEN});
    gateway.open().await.hello(params).await;
}

/// Surface 1.4: what is turned away is answered and closed, and the next comes in
#[tokio::test]
async fn a_stranger_is_told_why_and_the_next_client_comes_in() {
    let gateway = Gateway::start().await;
    let frame = |method: &str, params: Value| {
        json!({"type": "req", "id": "1", "method": method, "params": params}).to_string()
    };
    let mut wrong = connect_params();
    wrong["auth"] = json!({"token": "WRONG"});
    let mut none = connect_params();
    none["auth"] = json!({});
    let cases = [
        (frame("connect", wrong), 1008, json!("AUTH_TOKEN_MISMATCH")),
        (frame("connect", none), 1008, json!("AUTH_TOKEN_MISSING")),
        (frame("health", json!({})), 1008, Value::Null),
        ("{".to_owned(), 1008, Value::Null),
    ];
    for (frame, close, code) in cases {
        let mut ws = gateway.open().await;
        ws.next().await.unwrap();
        ws.0.send(Message::text(frame)).await.unwrap();
        let answer = ws.next().await.unwrap();
        assert_eq!(
            (&answer["ok"], &answer["error"]["code"]),
            (&json!(false), &json!("INVALID_REQUEST"))
        );
        assert_eq!(answer["error"]["details"]["code"], code);
        assert!(!answer.to_string().contains("WRONG"));
        if code != Value::Null {
            assert_eq!(
                answer["error"]["details"]["recommendedNextStep"],
                "update_auth_credentials"
            );
        }
        let Closed(said, _) = ws.next().await.unwrap_err();
        assert_eq!(said, close);
    }
    gateway.connect().await;
}

/// A page that the user visits does not reach the gateway.
#[tokio::test]
async fn a_page_of_a_foreign_origin_is_refused() {
    let gateway = Gateway::start().await;
    let refused = Ws::upgrade(
        gateway.socket().await,
        &[("origin", "https://evil.example")],
    )
    .await;
    let Err(Error::Http(response)) = refused else {
        panic!("came in")
    };
    assert_eq!(response.status(), 403);
    let own = [("origin", "http://127.0.0.1:1")];
    Ws::upgrade(gateway.socket().await, &own)
        .await
        .unwrap()
        .hello(connect_params())
        .await;
}

/// Law 9, surface 1.1: 64 KiB before the token, whatever the frame's header promises
#[tokio::test]
async fn a_stranger_may_not_send_much() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.open().await;
    ws.next().await.unwrap();
    ws.0.send(Message::text("x".repeat(8 * 1024 * 1024)))
        .await
        .unwrap();
    assert_eq!(
        ws.next().await.unwrap_err(),
        Closed(1009, "preauth payload too large".to_owned())
    );

    let mut params = connect_params();
    params["userAgent"] = json!("x".repeat(60 * 1024));
    gateway.open().await.hello(params).await;
}

/// surface 1.1: a client may send its requests right behind the handshake
#[tokio::test]
async fn requests_may_be_sent_ahead_of_hello() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.open().await;
    ws.request("1", "connect", connect_params()).await;
    ws.request("2", "nope", json!({"long": "x".repeat(100 * 1024)}))
        .await;
    assert_eq!(ws.response("1").await["ok"], true);
    assert_eq!(
        ws.response("2").await["error"]["message"],
        "unknown method: nope"
    );
}

/// Law 9, surface 1.1: silence before `connect` is bounded
#[tokio::test(start_paused = true)]
async fn a_silent_stranger_is_closed() {
    let gateway = Gateway::on_pipes();
    let mut ws = Ws::upgrade(gateway.pipe(4096).await, &[]).await.unwrap();
    ws.next().await.unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(ws.next().await.unwrap_err(), Closed(1000, String::new()));
    assert_eq!(before.elapsed().as_secs(), 15);
}

/// Law 9: silence within an HTTP header is bounded as well
#[tokio::test(start_paused = true)]
async fn a_slow_http_header_is_closed() {
    let gateway = Gateway::on_pipes();
    let mut pipe = gateway.pipe(4096).await;
    pipe.write_all(b"GET / HT").await.unwrap();
    let begun = tokio::time::Instant::now();
    let mut answer = Vec::new();
    pipe.read_to_end(&mut answer).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 15);
}

/// Law 9: strangers of one address are bounded; a client that leaves makes room
#[tokio::test]
async fn too_many_strangers_are_refused_with_a_reason() {
    let gateway = Gateway::start().await;
    let mut strangers = Vec::new();
    for _ in 0..32 {
        let mut ws = gateway.open().await;
        ws.next().await.unwrap();
        strangers.push(ws);
    }
    let Err(Error::Http(response)) = Ws::upgrade(gateway.socket().await, &[]).await else {
        panic!("came in")
    };
    assert_eq!(response.status(), 503);
    strangers[0].request("1", "connect", connect_params()).await;
    strangers[0].response("1").await;
    gateway.open().await;
}
