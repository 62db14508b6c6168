//! Wrong requests, wrong places, wrong secrets: a true sentence, what to do, an exit code;
//! and the next good request works.

use tidegate_tests::{Client, Gateway, Running, signal, tidegate};
use tokio::net::TcpListener;

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the state")
}

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("the directory's name is text")
}

async fn is_well(gateway: &Gateway) {
    let health = gateway.run(&["gateway", "health"]).await;
    assert_eq!(health.code, Some(0), "{health:#?}");
}

#[tokio::test]
async fn a_wrong_token_is_refused_at_once_and_not_repeated() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let said = gateway
        .run(&["gateway", "health", "--token", "guess-17", "--json"])
        .await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    let error = &said.json()["error"];
    assert_eq!(error["code"], "INVALID_REQUEST", "{error}");
    assert!(
        said.stderr.contains("token") && said.stderr.contains("--state-dir"),
        "{said:#?}"
    );
    assert!(
        !format!("{}{}", said.stdout, said.stderr).contains("guess-17"),
        "{said:#?}"
    );
    let refused = Client::connect(&gateway.url(), "guess-17")
        .await
        .expect_err("a wrong token");
    assert_eq!(refused.error["details"]["code"], "AUTH_TOKEN_MISMATCH");
    assert_eq!(refused.close.map(|close| close.0), Some(1008));
    is_well(&gateway).await;
}

/// A flag wins over its variable, and `gateway run` takes a token of one's own.
#[tokio::test]
async fn a_token_of_ones_own_is_the_one_that_counts() {
    let dir = state();
    let variable = [("TIDEGATE_GATEWAY_TOKEN", "from-the-variable")];
    let gateway = Gateway::start_in(dir.path(), &["--token", "of-my-own"], &variable).await;
    assert!(Client::connect(&gateway.url(), "of-my-own").await.is_ok());
    assert!(
        Client::connect(&gateway.url(), "from-the-variable")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn without_a_token_one_is_told_where_it_could_be() {
    let (dir, other) = (state(), state());
    let gateway = Gateway::start(dir.path(), &[]).await;
    let port = gateway.port.to_string();
    let said = tidegate(&[
        "gateway",
        "health",
        "--port",
        &port,
        "--state-dir",
        text(other.path()),
    ])
    .await;
    assert_eq!(said.code, Some(4), "{said:#?}");
    assert!(
        said.stderr.contains(text(other.path())) && said.stderr.contains("--token"),
        "{said:#?}"
    );
}

#[tokio::test]
async fn where_no_gateway_answers_one_is_told_how_to_start_one() {
    let dir = state();
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = free.local_addr().expect("it is bound").port().to_string();
    drop(free);
    for command in [
        &["agent", "-m", "hi"][..],
        &["gateway", "health"],
        &["gateway", "call", "status"],
    ] {
        let mut line = command.to_vec();
        line.extend(["--port", &port, "--state-dir", text(dir.path())]);
        let said = tidegate(&line).await;
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(3), ""),
            "{said:#?}"
        );
        for needed in [format!("127.0.0.1:{port}").as_str(), "tidegate gateway run"] {
            assert!(said.stderr.contains(needed), "{said:#?}");
        }
    }
}

#[tokio::test]
async fn what_listens_and_is_no_gateway_is_said_to_be_none() {
    let dir = state();
    let other = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = other.local_addr().expect("it is bound").port().to_string();
    let closing = tokio::spawn(async move {
        let (socket, _) = other.accept().await.expect("the command connects");
        drop(socket);
    });
    let said = tidegate(&[
        "gateway",
        "health",
        "--port",
        &port,
        "--state-dir",
        text(dir.path()),
    ])
    .await;
    assert_eq!(said.code, Some(3), "{said:#?}");
    assert!(said.stderr.contains("not a gateway"), "{said:#?}");
    closing.await.expect("the other program does not panic");
}

/// The port is named, and how to choose another.
#[tokio::test]
async fn a_port_in_use_is_named() {
    let dir = state();
    let taken = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let said = tidegate(&[
        "gateway",
        "run",
        "--port",
        &port,
        "--state-dir",
        text(dir.path()),
    ])
    .await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(4), ""),
        "{said:#?}"
    );
    assert!(
        said.stderr.contains(&port) && said.stderr.contains("--port"),
        "{said:#?}"
    );
}

/// Spec 4.3, R56: one owner a state directory; the second is told who, after trying.
#[tokio::test]
async fn a_second_gateway_on_the_same_directory_is_told_whose_it_is() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let said = tidegate(&[
        "gateway",
        "run",
        "--port",
        "0",
        "--state-dir",
        text(dir.path()),
    ])
    .await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(4), ""),
        "{said:#?}"
    );
    for needed in [text(dir.path()), &gateway.pid().to_string()] {
        assert!(said.stderr.contains(needed), "{said:#?}");
    }
    is_well(&gateway).await;
}

#[tokio::test]
async fn a_state_directory_that_is_a_file_is_refused() {
    let dir = state();
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").expect("a test directory is writable");
    let said = tidegate(&["gateway", "run", "--port", "0", "--state-dir", text(&file)]).await;
    assert_eq!(said.code, Some(4), "{said:#?}");
    assert!(said.stderr.contains(text(&file)), "{said:#?}");
}

/// Surface 5.4
#[tokio::test]
async fn an_unknown_method_is_the_gateways_own_error() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let said = gateway
        .run(&["gateway", "call", "no.such.method", "--json"])
        .await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    let json = said.json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["error"]["type"], "gateway_request_error");
    assert_eq!(json["error"]["code"], "INVALID_REQUEST");
    assert_eq!(json["error"]["message"], "unknown method: no.such.method");
    assert_eq!(json["error"]["retryable"], false);
    is_well(&gateway).await;
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    let dir = state();
    let gateway = Gateway::start(dir.path(), &[]).await;
    let said = gateway
        .run(&[
            "gateway",
            "call",
            "agent.wait",
            "--params",
            r#"{"runid":"x"}"#,
        ])
        .await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert!(
        said.stderr.contains("invalid agent.wait params") && said.stderr.contains("runId"),
        "{said:#?}"
    );
    is_well(&gateway).await;
}

#[tokio::test]
async fn a_wrong_command_line_exits_2_and_says_what_was_expected() {
    for (line, expected) in [
        (&["agent"][..], "--message"),
        (&["sim", "run", "--seeds", "5..2"], "0..2000"),
        (&["gateway", "call", "x", "--params", "[1]"], "JSON object"),
        (
            &["gateway", "run", "--provider-url", "http://h/v1"],
            "--model",
        ),
        (&["gateway", "health", "--port", "99999"], "65535"),
    ] {
        let said = tidegate(line).await;
        assert_eq!(said.code, Some(2), "{said:#?}");
        assert!(said.stderr.contains(expected), "{said:#?}");
    }
    let said = Running::start_in(&["gateway", "health"], &[("TIDEGATE_LOG", "=?=")])
        .ended()
        .await;
    assert_eq!(said.code, Some(4), "{said:#?}");
    assert!(said.stderr.contains("TIDEGATE_LOG"), "{said:#?}");
    for url in ["wss://127.0.0.1:1", "127.0.0.1:1", "ws://127.0.0.1:1/path"] {
        let said = tidegate(&["gateway", "health", "--url", url]).await;
        assert_eq!(said.code, Some(4), "{said:#?}");
        assert!(said.stderr.contains("ws://HOST:PORT"), "{said:#?}");
    }
}

/// A provider that cannot be reached ends the run, not the gateway.
#[tokio::test]
async fn an_unreachable_provider_fails_the_run_and_says_so() {
    let dir = state();
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = free.local_addr().expect("it is bound").port();
    drop(free);
    let url = format!("http://127.0.0.1:{port}/v1");
    let flags = [
        "--provider-url",
        &url,
        "--model",
        "m",
        "--provider-retries",
        "0",
    ];
    let gateway = Gateway::start(dir.path(), &flags).await;
    let said = gateway.run(&["agent", "-m", "hi", "--json"]).await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert_ne!(said.json()["status"], "ok", "{said:#?}");
    is_well(&gateway).await;
    signal(gateway.pid(), "TERM").await;
    assert_eq!(gateway.ended().await.0, Some(0));
}
