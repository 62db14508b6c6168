//! A gateway under a supervisor, and one whose operator loses patience: what the supervisor is
//! told, what its limit leaves of a drain, and what a third signal does.

use std::path::Path;

use serde_json::json;
use tidegate_tests::{Gateway, Provider, signal, within};
use tokio::net::UnixDatagram;

fn state() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the state")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the directory's name is text")
}

async fn supervised(dir: &Path, provider: &Provider, socket: &Path) -> Gateway {
    let url = provider.url();
    let args = ["--provider-url", &url, "--model", "scripted"];
    Gateway::start_in(dir, &args, &[("NOTIFY_SOCKET", text(socket))]).await
}

async fn heard(supervisor: &UnixDatagram) -> String {
    let mut bytes = [0; 512];
    let length = within("the supervisor is told", supervisor.recv(&mut bytes)).await;
    let length = length.expect("the supervisor's socket is open");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// P21: the start is told once clients can come, and the stop asks for the patience that the
/// run at work needs.
#[tokio::test]
async fn a_supervisor_is_told_of_the_start_and_asked_to_wait_for_the_stop() {
    let dir = state();
    let socket = dir.path().join("notify");
    let supervisor = UnixDatagram::bind(&socket).expect("a test directory is writable");
    let mut provider = Provider::start().await;
    let gateway = supervised(&dir.path().join("state"), &provider, &socket).await;
    assert_eq!(heard(&supervisor).await, "READY=1\n");
    let mut client = gateway.client().await;
    let run = client.submit("agent:main:main", "run", "one").await;
    let mut call = provider.call().await;
    assert!(call.begin().await);
    signal(gateway.pid(), "TERM").await;
    let stop = "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\n";
    assert_eq!(heard(&supervisor).await, stop);
    assert!(call.text("an answer").await && call.done().await);
    let answer = client.response(&run).await.expect("the run ended well");
    assert_eq!(answer["status"], "ok", "{answer}");
    assert_eq!(gateway.ended().await.0, Some(0));
}

#[tokio::test]
async fn a_supervisor_that_does_not_listen_holds_nothing_up() {
    let dir = state();
    let provider = Provider::start().await;
    let nobody = dir.path().join("nobody");
    let gateway = supervised(&dir.path().join("state"), &provider, &nobody).await;
    assert_eq!(gateway.run(&["gateway", "health"]).await.code, Some(0));
    assert_eq!(gateway.stop().await.0, Some(0));
}

/// P21, P23: a supervisor that kills within the reserve for the last writes leaves a drain no
/// time; the run at work goes on after the next start.
#[tokio::test]
async fn a_drain_ends_before_the_supervisors_limit() {
    let dir = state();
    let mut provider = Provider::start().await;
    let file = dir.path().join("tidegate.json5");
    let limit = "{ tidegate: { limits: { supervisorStopMs: 15000 } } }";
    std::fs::write(&file, limit).expect("a test directory is writable");
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    client.submit("agent:main:main", "cut", "go on").await;
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("half").await);
    let wait = json!({ "runId": "cut", "timeoutMs": 500_000 });
    let wait = client.send("agent.wait", wait).await;
    signal(gateway.pid(), "TERM").await;
    let cut = client.response(&wait).await.expect("an answer");
    assert_eq!(cut["timeoutPhase"], "gateway_draining", "{cut}");
    assert_eq!(gateway.ended().await.0, Some(0));

    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut call = provider.call().await;
    assert_eq!(call.message(), "go on");
    assert!(call.begin().await && call.text("whole").await && call.done().await);
    let again = ["agent", "-m", "go on", "--idempotency-key", "cut"];
    let said = gateway.run(&again).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "whole\n"),
        "{said:#?}"
    );
}

/// P23: a third signal ends the process at once, with its own exit code, and what was accepted
/// is answered after the next start.
#[tokio::test]
async fn a_third_signal_ends_the_process_and_loses_nothing() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut client = gateway.client().await;
    client.submit("agent:main:main", "kept", "go on").await;
    let mut call = provider.call().await;
    assert!(call.begin().await);
    signal(gateway.pid(), "TERM").await;
    client.until_it_drains().await;
    // The second and the third come while the process sleeps: it wakes up with both.
    for name in ["STOP", "TERM", "INT", "CONT"] {
        signal(gateway.pid(), name).await;
    }
    assert_eq!(gateway.ended().await.0, Some(1));

    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let mut call = provider.call().await;
    assert_eq!(call.message(), "go on");
    assert!(call.begin().await && call.text("kept").await && call.done().await);
    let again = ["agent", "-m", "go on", "--idempotency-key", "kept"];
    let said = gateway.run(&again).await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "kept\n"),
        "{said:#?}"
    );
}

/// Law 10: a gateway that lets nothing new begin does not call itself ok.
#[tokio::test]
async fn health_tells_a_drain() {
    let dir = state();
    let mut provider = Provider::start().await;
    let gateway = Gateway::with_provider(dir.path(), &provider.url()).await;
    let asked = ["gateway", "health", "--json"];
    assert_eq!(gateway.run(&asked).await.json()["draining"], false);
    let mut client = gateway.client().await;
    client.submit("agent:main:main", "run", "one").await;
    let mut call = provider.call().await;
    assert!(call.begin().await);
    signal(gateway.pid(), "TERM").await;
    client.until_it_drains().await;
    let said = gateway.run(&["gateway", "health"]).await;
    assert!(
        said.code == Some(0) && said.stdout.starts_with("draining: gateway "),
        "{said:#?}"
    );
    let said = gateway.run(&asked).await.json();
    assert_eq!(
        (&said["ok"], &said["draining"]),
        (&json!(true), &json!(true))
    );
    assert!(call.text("an answer").await && call.done().await);
    assert_eq!(gateway.ended().await.0, Some(0));
}
