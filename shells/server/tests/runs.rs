//! Runs over the real socket, with the real driver and store: one run, one truth.

mod support;

use serde_json::{Value, json};
use support::{Gateway, Ws, connect_params};
use tokio::io::{AsyncRead, AsyncWrite};

/// Reads on until the run's final response has come; everything that was seen.
async fn follow<S: AsyncRead + AsyncWrite + Unpin>(ws: &mut Ws<S>, id: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let frame = ws.next().await.unwrap();
        let last = frame["type"] == "res"
            && frame["id"] == id
            && frame["payload"]["status"] != "accepted"
            && frame["payload"]["status"] != "in_flight";
        seen.push(frame);
        if last {
            return seen;
        }
    }
}

/// Reads on until the terminals of the run's both event streams are there.
async fn terminals<S: AsyncRead + AsyncWrite + Unpin>(
    ws: &mut Ws<S>,
    mut seen: Vec<Value>,
) -> (Value, Value, Vec<Value>) {
    loop {
        let settled = seen
            .iter()
            .find(|f| f["payload"]["data"]["executionSettled"] == true);
        let chat = seen.iter().find(|f| {
            f["event"] == "chat"
                && ["final", "aborted", "error"].contains(&f["payload"]["state"].as_str().unwrap())
        });
        if let (Some(settled), Some(chat)) = (settled, chat) {
            return (
                settled["payload"]["data"].clone(),
                chat["payload"].clone(),
                seen,
            );
        }
        seen.push(ws.next().await.unwrap());
    }
}

/// P40: a completed run says the same in its response, its events and its wait
#[tokio::test]
async fn a_completed_run_tells_one_truth() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.request("a", "agent", json!({"message": "hello", "sessionKey": "one", "deliver": false, "timeout": 600, "idempotencyKey": "run-1"})).await;
    let seen = follow(&mut ws, "a").await;
    let accepted = seen
        .iter()
        .find(|f| f["payload"]["status"] == "accepted")
        .unwrap();
    assert_eq!(accepted["payload"]["sessionKey"], "agent:main:one");
    assert_eq!(accepted["payload"]["agentId"], "main");
    assert!(accepted["payload"]["acceptedAt"].is_u64());
    let last = seen.last().unwrap().clone();
    assert_eq!(
        (
            &last["ok"],
            &last["payload"]["status"],
            &last["payload"]["summary"]
        ),
        (&json!(true), &json!("ok"), &json!("completed"))
    );
    assert_eq!(
        last["payload"]["result"]["payloads"],
        json!([{"text": "you said hello", "mediaUrl": null}])
    );

    let (settled, chat, seen) = terminals(&mut ws, seen).await;
    assert_eq!(
        (&settled["phase"], &settled["stopReason"]),
        (&json!("end"), &json!("stop"))
    );
    assert_eq!(
        settled["terminalReply"],
        json!({"disposition": "visible", "text": "you said hello"})
    );
    assert_eq!(
        (&chat["state"], &chat["message"]["content"][0]["text"]),
        (&json!("final"), &json!("you said hello"))
    );

    let events: Vec<&Value> = seen.iter().filter(|f| f["type"] == "event").collect();
    let numbers: Vec<u64> = events.iter().map(|f| f["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let streamed: String = events
        .iter()
        .filter(|f| f["payload"]["state"] == "delta")
        .map(|f| f["payload"]["deltaText"].as_str().unwrap())
        .collect();
    assert_eq!(streamed, "you said hello");
    let run_seqs: Vec<u64> = events
        .iter()
        .filter(|f| f["event"] == "agent")
        .map(|f| f["payload"]["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(run_seqs, (1..=run_seqs.len() as u64).collect::<Vec<_>>());

    let wait = ws.call("agent.wait", json!({"runId": "run-1"})).await["payload"].clone();
    assert_eq!(
        (&wait["status"], &wait["stopReason"], &wait["endedAt"]),
        (&json!("ok"), &json!("stop"), &settled["endedAt"])
    );
    assert_eq!(wait["terminalReply"], settled["terminalReply"]);
}

/// P06: the same key is the same run, its final is replayed, another body is a conflict
#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_again() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let params = json!({"message": "hello", "idempotencyKey": "same"});
    ws.request("a", "agent", params.clone()).await;
    let first = follow(&mut ws, "a").await.pop().unwrap();
    ws.request("b", "agent", params).await;
    let again = ws.response("b").await;
    assert_eq!(again["payload"], first["payload"]);
    let other = ws
        .call(
            "agent",
            json!({"message": "other", "idempotencyKey": "same"}),
        )
        .await;
    assert_eq!(
        (
            &other["error"]["code"],
            &other["error"]["details"]["reason"]
        ),
        (&json!("INVALID_REQUEST"), &json!("idempotency-conflict"))
    );
}

/// P40, surface 2.1, 2.2: a stopped run is `timeout/aborted/rpc` here and `error/rpc` there
#[tokio::test]
async fn a_stopped_run_says_who_stopped_it() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.request(
        "a",
        "agent",
        json!({"message": "hang", "sessionKey": "s", "idempotencyKey": "run-1"}),
    )
    .await;
    let mut seen = Vec::new();
    while !seen
        .iter()
        .any(|f: &Value| f["payload"]["state"] == "delta")
    {
        seen.push(ws.next().await.unwrap());
    }
    let mut other = gateway.connect().await;
    let wrong = other
        .call("chat.abort", json!({"sessionKey": "t", "runId": "run-1"}))
        .await;
    assert_eq!(wrong["error"]["message"], "runId does not match sessionKey");
    let aborted = other
        .call("chat.abort", json!({"sessionKey": "s", "runId": "run-1"}))
        .await;
    assert_eq!(
        aborted["payload"],
        json!({"ok": true, "aborted": true, "runIds": ["run-1"]})
    );
    seen.extend(follow(&mut ws, "a").await);
    assert_eq!(
        seen.last().unwrap()["payload"],
        json!({"runId": "run-1", "status": "timeout", "summary": "aborted", "stopReason": "rpc"})
    );
    let (settled, chat, _) = terminals(&mut ws, seen).await;
    assert_eq!(
        (
            &settled["phase"],
            &settled["status"],
            &settled["stopReason"]
        ),
        (&json!("end"), &json!("cancelled"), &json!("rpc"))
    );
    assert_eq!(
        (&chat["state"], &chat["stopReason"]),
        (&json!("aborted"), &json!("rpc"))
    );
    assert_eq!(chat["message"]["content"][0]["text"], "so far");
    let wait = other.call("agent.wait", json!({"runId": "run-1"})).await["payload"].clone();
    assert_eq!(
        (&wait["status"], &wait["error"], &wait["stopReason"]),
        (&json!("error"), &json!("aborted"), &json!("rpc"))
    );
}

/// P40, law 10: a failed run names the class and repeats the provider's own words
#[tokio::test]
async fn a_failed_run_says_what_the_provider_said() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.request(
        "a",
        "agent",
        json!({"message": "refuse", "idempotencyKey": "run-1"}),
    )
    .await;
    let seen = follow(&mut ws, "a").await;
    let sentence = "the model provider refused the credentials (HTTP 401): no such key";
    let last = seen.last().unwrap().clone();
    assert_eq!(
        last["payload"],
        json!({"runId": "run-1", "status": "error", "summary": sentence})
    );
    assert_eq!(
        (
            &last["ok"],
            &last["error"]["code"],
            &last["error"]["message"]
        ),
        (&json!(false), &json!("UNAVAILABLE"), &json!(sentence))
    );
    let (settled, chat, _) = terminals(&mut ws, seen).await;
    assert_eq!(
        (&settled["phase"], &settled["error"]),
        (&json!("error"), &json!(sentence))
    );
    assert_eq!(
        (&chat["state"], &chat["errorMessage"]),
        (&json!("error"), &json!(sentence))
    );
    let wait = ws.call("agent.wait", json!({"runId": "run-1"})).await["payload"].clone();
    assert_eq!(
        (&wait["status"], &wait["error"]),
        (&json!("error"), &json!(sentence))
    );
}

/// P40, R149: a run that used up its own seconds says so, and that the model had been asked
#[tokio::test]
async fn a_run_that_used_up_its_time_says_so() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.request(
        "a",
        "agent",
        json!({"message": "hang", "timeout": 1, "idempotencyKey": "run-1"}),
    )
    .await;
    let seen = follow(&mut ws, "a").await;
    let sentence = "the run timed out: it used up its own time limit";
    let payload = seen.last().unwrap()["payload"].clone();
    assert_eq!(
        (&payload["status"], &payload["summary"]),
        (&json!("timeout"), &json!("timed out"))
    );
    assert_eq!(
        (&payload["timeoutPhase"], &payload["providerStarted"]),
        (&json!("provider"), &json!(true))
    );
    assert_eq!(
        payload["result"]["payloads"],
        json!([{"text": sentence, "mediaUrl": null, "isError": true}])
    );
    let (settled, chat, _) = terminals(&mut ws, seen).await;
    assert_eq!(
        (&settled["phase"], &settled["timeoutPhase"]),
        (&json!("error"), &json!("provider"))
    );
    assert_eq!(
        (&chat["state"], &chat["errorKind"], &chat["errorMessage"]),
        (&json!("error"), &json!("timeout"), &json!(sentence))
    );
    let wait = ws.call("agent.wait", json!({"runId": "run-1"})).await["payload"].clone();
    assert_eq!(
        (&wait["status"], &wait["error"], &wait["timeoutPhase"]),
        (&json!("timeout"), &json!(sentence), &json!("provider"))
    );
}

/// P03: every connection hears each terminal once, whoever asked for the run
#[tokio::test]
async fn every_reader_hears_each_terminal_once() {
    let gateway = Gateway::start().await;
    let mut asker = gateway.connect().await;
    let mut reader = gateway.open().await;
    let mut params = connect_params();
    params["scopes"] = json!(["operator.read"]);
    reader.hello(params).await;
    for n in 0..3 {
        asker
            .request(
                "a",
                "agent",
                json!({"message": "hello", "idempotencyKey": format!("run-{n}")}),
            )
            .await;
        follow(&mut asker, "a").await;
    }
    let mut ends = Vec::new();
    let mut finals = Vec::new();
    while finals.len() < 3 || ends.len() < 3 {
        let frame = reader.next().await.unwrap();
        let run = frame["payload"]["runId"].clone();
        if frame["payload"]["data"]["executionSettled"] == true {
            ends.push(run);
        } else if frame["payload"]["state"] == "final" {
            finals.push(run);
        }
    }
    assert_eq!(ends, ["run-0", "run-1", "run-2"]);
    assert_eq!(finals, ends);
}

/// Messages of one connection to one session are answered in the order of sending
#[tokio::test]
async fn messages_of_one_connection_keep_their_order() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    for n in 0..20 {
        ws.request(
            &n.to_string(),
            "agent",
            json!({"message": format!("m{n}"), "idempotencyKey": format!("run-{n}")}),
        )
        .await;
    }
    let mut order = Vec::new();
    while order.len() < 20 {
        let frame = ws.next().await.unwrap();
        if frame["payload"]["status"] == "ok" {
            order.push(frame["id"].as_str().unwrap().parse::<u32>().unwrap());
        }
    }
    assert_eq!(order, (0..20).collect::<Vec<_>>());
}

/// A session whose run has ended, and one with a run at work and one behind it.
async fn one_done_and_one_busy<S: AsyncRead + AsyncWrite + Unpin>(ws: &mut Ws<S>) {
    let params = |message: &str, key: &str, run: &str| json!({"message": message, "sessionKey": key, "idempotencyKey": run});
    ws.request("a", "agent", params("hello", "done", "run-1"))
        .await;
    follow(ws, "a").await;
    ws.request("b", "agent", params("hang", "busy", "run-2"))
        .await;
    while ws.next().await.unwrap()["payload"]["state"] != "delta" {}
    ws.request("c", "agent", params("hello", "busy", "run-3"))
        .await;
    ws.response("c").await;
}

/// Surface 2.5: the list joins what is kept with what is live
#[tokio::test]
async fn the_list_of_sessions_shows_what_is_live() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    one_done_and_one_busy(&mut ws).await;
    let list = ws
        .call("sessions.list", json!({"includeGlobal": true}))
        .await["payload"]
        .clone();
    assert_eq!(
        (&list["count"], &list["totalCount"], &list["hasMore"]),
        (&json!(2), &json!(2), &json!(false))
    );
    let row = |key: &str| {
        let rows = list["sessions"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).unwrap().clone()
    };
    let (done, busy) = (row("agent:main:done"), row("agent:main:busy"));
    assert_eq!(
        (&done["status"], &done["hasActiveRun"], &done["lastRunId"]),
        (&json!("done"), &json!(false), &json!("run-1"))
    );
    assert_eq!(
        (&busy["status"], &busy["hasActiveRun"]),
        (&json!("running"), &json!(true))
    );
    assert_eq!(busy["activeRunIds"], json!(["run-2", "run-3"]));

    let active = ws.call("sessions.list", json!({"activeOnly": true})).await["payload"].clone();
    assert_eq!(active["sessions"][0]["key"], "agent:main:busy");
    let page = ws
        .call(
            "sessions.list",
            json!({"limit": 1, "offset": 1, "search": "MAIN"}),
        )
        .await["payload"]
        .clone();
    assert_eq!(
        (&page["count"], &page["totalCount"], &page["nextOffset"]),
        (&json!(1), &json!(2), &Value::Null)
    );
}

/// `status` counts what is at work
#[tokio::test]
async fn status_counts_what_is_at_work() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    one_done_and_one_busy(&mut ws).await;
    let status = ws
        .call("status", json!({"includeChannelSummary": false}))
        .await["payload"]
        .clone();
    assert_eq!(
        (&status["runs"]["live"], &status["runs"]["active"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&status["connections"], &status["sessions"]["count"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(status["runtimeVersion"], "0.0.0-test");
}

/// surface 2.6: `status` counts the sessions of each agent, which a client's table is made of
#[tokio::test]
async fn status_counts_the_sessions_of_each_agent() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    one_done_and_one_busy(&mut ws).await;
    let listed = ws.call("sessions.list", json!({})).await["payload"].clone();
    let status = ws.call("status", json!({})).await["payload"].clone();
    let agents = status["sessions"]["byAgent"].as_array().unwrap();
    assert_eq!(agents.len(), 1);
    assert_eq!(
        (&agents[0]["agentId"], &agents[0]["count"]),
        (&json!("main"), &json!(2))
    );
    let keys = |rows: &Value| -> Vec<Value> {
        let rows = rows.as_array().unwrap();
        rows.iter().map(|row| row["key"].clone()).collect()
    };
    assert_eq!(keys(&agents[0]["recent"]), keys(&listed["sessions"]));
    let newest = &agents[0]["recent"][0];
    assert_eq!(newest["updatedAt"], listed["sessions"][0]["updatedAt"]);
    assert!(newest["age"].is_u64());
}

/// R200: a client that leaves does not end its run
#[tokio::test]
async fn a_run_goes_on_without_its_client() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    ws.request(
        "a",
        "agent",
        json!({"message": "hello", "idempotencyKey": "run-1"}),
    )
    .await;
    ws.response("a").await;
    drop(ws);
    let wait = gateway
        .connect()
        .await
        .call("agent.wait", json!({"runId": "run-1"}))
        .await;
    assert_eq!(wait["payload"]["status"], "ok");
}

/// B-055, P09: a limit is told back in milliseconds as it takes effect, and one that can only be
/// a mistake of units is refused
#[tokio::test]
async fn a_limit_is_told_as_it_takes_effect() {
    let gateway = Gateway::start().await;
    let mut ws = gateway.connect().await;
    let agent = |key: &str, timeout: u64| json!({"message": "hello", "sessionKey": "one", "idempotencyKey": key, "timeout": timeout});
    ws.request("a", "agent", agent("run-1", 120)).await;
    let seen = follow(&mut ws, "a").await;
    let accepted = seen.iter().find(|f| f["payload"]["status"] == "accepted");
    assert_eq!(accepted.unwrap()["payload"]["timeoutMs"], 120_000);
    let refused = ws.call("agent", agent("run-2", 120_000_000)).await;
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("/timeout") && said.contains("31536000"),
        "{refused}"
    );
}

/// B-097, P34: each connection numbers its events for itself, from 1 and without gaps
#[tokio::test]
async fn a_new_connection_begins_its_numbers_anew() {
    let gateway = Gateway::start().await;
    for key in ["run-1", "run-2"] {
        let mut ws = gateway.connect().await;
        ws.request(
            "a",
            "agent",
            json!({"message": "hello", "sessionKey": "one", "idempotencyKey": key}),
        )
        .await;
        let seen = follow(&mut ws, "a").await;
        let (_, _, seen) = terminals(&mut ws, seen).await;
        let numbers: Vec<u64> = seen
            .iter()
            .filter(|f| f["type"] == "event")
            .map(|f| f["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    }
}
