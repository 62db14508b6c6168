//! The table of ends and words, one row a test line: what each place says about each end.

use super::*;
use tidegate_core::{Attempt, Reply, RunId, SessionId, Wall};
use tidegate_core::{DropPolicy, Limit};

fn finished(outcome: Outcome, attempt: u32) -> Finished {
    Finished {
        run_key: "r".into(),
        session_key: "agent:main:main".into(),
        terminal: Terminal {
            run: RunId::from_u128(1),
            session: SessionId::from_u128(2),
            outcome,
            accepted_at: Wall(10),
            started_at: (attempt > 0).then_some(Wall(20)),
            ended_at: Wall(50),
            attempt: Attempt(attempt),
            reply: Reply::Text { bytes: 4 },
            detail: true,
            turn: None,
        },
        turn: None,
        reply: Some("text".into()),
        detail: Some("own words".into()),
    }
}

/// What all places say, without texts: one line a place.
fn said(outcome: Outcome, attempt: u32) -> [String; 4] {
    let finished = finished(outcome, attempt);
    let response = agent_final("1", &finished);
    let mut last = response.payload.unwrap();
    last.as_object_mut()
        .unwrap()
        .retain(|name, _| name != "runId");
    let mut wait = to_value(&wait_result(&finished));
    let mut end = to_value(&lifecycle_end(&finished));
    let mut chat = to_value(&chat_end(&finished));
    for value in [&mut wait, &mut end, &mut chat] {
        let object = value.as_object_mut().unwrap();
        object.retain(|name, _| {
            ![
                "runId",
                "startedAt",
                "endedAt",
                "message",
                "executionSettled",
                "terminalReply",
            ]
            .contains(&name.as_str())
        });
    }
    let code = response
        .error
        .map(|error| format!(" {:?} {}", error.code, error.message));
    [
        format!("{}{} {last}", response.ok, code.unwrap_or_default()),
        wait.to_string(),
        end.to_string(),
        chat.to_string(),
    ]
}

/// P40, surface 2.1, 2.2, 3: completed
#[test]
fn an_answer() {
    assert_eq!(
        said(Outcome::Completed, 1),
        [
            r#"true {"result":{"meta":{"aborted":false,"durationMs":30},"payloads":[{"mediaUrl":null,"text":"text"}]},"status":"ok","stopReason":"stop","summary":"completed"}"#,
            r#"{"status":"ok","stopReason":"stop"}"#,
            r#"{"aborted":false,"phase":"end","stopReason":"stop"}"#,
            r#"{"state":"final","stopReason":"stop"}"#,
        ]
    );
}

/// P40, spec 1.4: the phase says where the limit hit
#[test]
fn a_timeout_says_where_it_hit() {
    for (provider_started, attempt, phase) in [
        (true, 1, "provider"),
        (false, 1, "preflight"),
        (false, 0, "queue"),
    ] {
        let [last, wait, end, chat] = said(
            Outcome::TimedOut {
                limit: Limit::Idle,
                provider_started,
            },
            attempt,
        );
        let error = "the run timed out: the model's stream made no progress within the idle limit";
        let both = format!(r#""providerStarted":{provider_started}"#);
        let ms = if attempt == 0 { 40 } else { 30 };
        assert_eq!(
            last,
            format!(
                r#"true {{{both},"result":{{"meta":{{"aborted":false,"durationMs":{ms}}},"payloads":[{{"isError":true,"mediaUrl":null,"text":"{error}"}}]}},"status":"timeout","summary":"timed out","timeoutPhase":"{phase}"}}"#
            )
        );
        assert_eq!(
            wait,
            format!(r#"{{"error":"{error}",{both},"status":"timeout","timeoutPhase":"{phase}"}}"#)
        );
        assert_eq!(
            end,
            format!(
                r#"{{"aborted":false,"error":"{error}","phase":"error",{both},"timeoutPhase":"{phase}"}}"#
            )
        );
        assert_eq!(
            chat,
            format!(r#"{{"errorKind":"timeout","errorMessage":"{error}","state":"error"}}"#)
        );
    }
}

/// P40, surface 2.1, 2.2: stopped and superseded differ by the reason alone, asked or not
#[test]
fn an_end_from_outside_says_from_where() {
    let stopped = |provider_started| Outcome::Cancelled {
        by: StopReason::Rpc,
        provider_started,
    };
    let superseded = "superseded by a newer writer of the session";
    let by = |by| Outcome::Cancelled {
        by,
        provider_started: true,
    };
    for (outcome, reason, error) in [
        (by(StopReason::Interrupt), "interrupt", "aborted"),
        (by(StopReason::Reset), "reset", "aborted"),
        (stopped(true), "rpc", "aborted"),
        (stopped(false), "rpc", "aborted"),
        (Outcome::Superseded, "superseded", superseded),
    ] {
        assert_eq!(
            said(outcome, 1),
            [
                format!(
                    r#"true {{"status":"timeout","stopReason":"{reason}","summary":"aborted"}}"#
                ),
                format!(r#"{{"error":"{error}","status":"error","stopReason":"{reason}"}}"#),
                format!(
                    r#"{{"aborted":true,"phase":"end","status":"cancelled","stopReason":"{reason}"}}"#
                ),
                format!(r#"{{"state":"aborted","stopReason":"{reason}"}}"#),
            ]
        );
    }
}

/// P40, law 10: a failure names its class and status, and repeats the provider's own words
#[test]
fn a_failure_names_its_class() {
    let provider = |class, status| Failure::Provider { class, status };
    let cases = [
        (
            provider(ErrorClass::RateLimit, Some(429)),
            "the model provider limits the rate of requests (HTTP 429): own words",
            r#""errorKind":"rate_limit","#,
        ),
        (
            provider(ErrorClass::ContextOverflow, None),
            "the prompt does not fit the model's window: own words",
            r#""errorKind":"context_length","#,
        ),
        (
            provider(ErrorClass::Network, None),
            "the model provider can't be reached, or the connection to it broke: own words",
            "",
        ),
        (
            Failure::Incomplete,
            "the model's stream ended before the model had finished: own words",
            "",
        ),
        (
            Failure::ReplyTooLarge,
            "the reply grew beyond the byte limit of a run: own words",
            "",
        ),
    ];
    for (failure, error, kind) in cases {
        assert_eq!(
            said(Outcome::Failed(failure), 1),
            [
                format!(r#"false Unavailable {error} {{"status":"error","summary":"{error}"}}"#),
                format!(r#"{{"error":"{error}","status":"error"}}"#),
                format!(r#"{{"aborted":false,"error":"{error}","phase":"error"}}"#),
                format!(r#"{{{kind}"errorMessage":"{error}","state":"error"}}"#),
            ]
        );
    }
}

/// P40, law 10: what is no answer is not offered as one; the conversation keeps what had come
#[test]
fn a_partial_text_is_no_answer() {
    let stopped = finished(
        Outcome::Cancelled {
            by: StopReason::Rpc,
            provider_started: true,
        },
        1,
    );
    assert_eq!(wait_result(&stopped).terminal_reply, None);
    assert_eq!(lifecycle_end(&stopped).terminal_reply, None);
    assert!(
        !agent_final("1", &stopped)
            .payload
            .unwrap()
            .to_string()
            .contains("text")
    );
    let ChatState::Aborted {
        message: Some(message),
        ..
    } = chat_end(&stopped)
    else {
        panic!("no message")
    };
    assert_eq!(message.text(), "text");
}

/// spec 1.4: a long answer is cut in `agent.wait`, by characters; an empty one is `empty`
#[test]
fn a_terminal_reply_is_bounded() {
    let mut long = finished(Outcome::Completed, 1);
    long.reply = Some("é".repeat(5_000).into());
    let text = wait_result(&long).terminal_reply.unwrap().text.unwrap();
    assert_eq!(text.chars().count(), 4_096);
    long.reply = None;
    assert_eq!(
        wait_result(&long).terminal_reply,
        Some(TerminalReply {
            disposition: Disposition::Empty,
            text: None
        })
    );
    assert_eq!(
        agent_final("1", &long).payload.unwrap()["result"]["payloads"],
        json!([])
    );
}

/// P10, P40: a message that gave way says by which rule, the same in all places
#[test]
fn a_dropped_message_says_by_which_rule() {
    for (by, error) in [
        (
            DropPolicy::Old,
            "dropped: the session's queue was full and this message was the oldest",
        ),
        (
            DropPolicy::New,
            "dropped: the session's queue was full when this message came",
        ),
    ] {
        assert_eq!(
            said(Outcome::Dropped { by }, 0),
            [
                r#"true {"status":"timeout","stopReason":"dropped","summary":"dropped"}"#
                    .to_owned(),
                format!(r#"{{"error":"{error}","status":"error","stopReason":"dropped"}}"#),
                r#"{"aborted":true,"phase":"end","status":"cancelled","stopReason":"dropped"}"#
                    .to_owned(),
                r#"{"inputState":"dropped","state":"aborted","stopReason":"dropped"}"#.to_owned(),
            ]
        );
    }
}

/// P26: what was answered in another run's turn points there and repeats nothing
#[test]
fn an_end_in_anothers_turn_points_there() {
    let mut along = finished(Outcome::Completed, 1);
    along.turn = Some("q".into());
    along.terminal.turn = Some(RunId::from_u128(3));
    assert_eq!(
        to_value(&chat_end(&along)),
        json!({"state": "final", "stopReason": "stop", "answeredIn": "q"})
    );
    assert_eq!(wait_result(&along).answered_in.as_deref(), Some("q"));
    assert_eq!(lifecycle_end(&along).answered_in.as_deref(), Some("q"));
}

/// P17: a message that was stopped before its turn was given back, a run was not
#[test]
fn what_no_model_saw_was_given_back() {
    let stopped = |attempt| {
        let outcome = Outcome::Cancelled {
            by: StopReason::Rpc,
            provider_started: false,
        };
        to_value(&chat_end(&finished(outcome, attempt)))["inputState"].clone()
    };
    assert_eq!((stopped(0), stopped(1)), (json!("given_back"), Value::Null));
}

/// surface 2.3: a repeated `chat.send` is told the end without the reply
#[test]
fn a_repeated_message_is_told_its_end() {
    let done = send_replay("1", &finished(Outcome::Completed, 1));
    assert_eq!(done.payload, Some(json!({"runId": "r", "status": "ok"})));
    let limit = Outcome::TimedOut {
        limit: Limit::Idle,
        provider_started: true,
    };
    let late = send_replay("1", &finished(limit, 1)).payload.unwrap();
    assert_eq!(
        late,
        json!({"runId": "r", "status": "timeout", "summary": "timed out", "timeoutPhase": "provider", "providerStarted": true})
    );
}

/// spec 1.6: what is decided and not durable is told as an error to come, never as an end
#[test]
fn an_error_to_come_is_no_end() {
    let failed = Outcome::Failed(Failure::Incomplete);
    assert_eq!(
        pending_error(failed).as_deref(),
        Some("the model's stream ended before the model had finished")
    );
    assert_eq!(pending_error(Outcome::Completed), None);
    assert_eq!(pending_error(Outcome::Superseded), None);
}

/// I10, R130: a decided outcome claims no settlement; its durable end does
#[test]
fn finishing_claims_no_settlement() {
    let outcome = Outcome::Completed;
    let finishing = to_value(&lifecycle_finishing(outcome));
    let end = to_value(&lifecycle_end(&finished(outcome, 1)));
    assert_eq!(finishing.get("executionSettled"), None, "{finishing}");
    assert_eq!(end["executionSettled"], true, "{end}");
}
