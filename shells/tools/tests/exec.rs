//! `exec` with real commands: what they are given, what they write, how they end.

mod support;

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use support::{Stage, call, is_over, until};
use tidegate_core::{CallFacts, CallKind, ToolEnd};
use tidegate_driver::{CallText, ToolSink, Tools};
use tidegate_tools::{Bounds, BuiltIn, HEAD_BYTES, TAIL_BYTES};

fn facts(tools: &BuiltIn, name: &str, arguments: &str) -> CallFacts {
    tools.recognise(&text(name, arguments))
}

fn text(name: &str, arguments: &str) -> CallText {
    CallText {
        id: String::new(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

/// I33, P38: exec may wait for a person; what can't be carried out is known before.
#[test]
fn a_call_is_recognised_from_its_name_and_arguments_alone() {
    let stage = Stage::new();
    let of = |arguments| facts(&stage.tools, "exec", arguments);
    let ready = |timeout_ms| CallFacts {
        kind: CallKind::Ready,
        guarded: true,
        timeout_ms: Some(timeout_ms),
    };
    assert_eq!(of(r#"{"command":"true"}"#), ready(1_800_000));
    assert_eq!(of(r#"{"command":"true","timeout":7}"#), ready(7_000));
    assert_eq!(of(r#"{"command":"true","timeout":9999}"#), ready(1_800_000));
    for bad in [
        r#"{"command":"tr"#,
        "{}",
        r#"{"command":"ls","workdir":".."}"#,
    ] {
        assert_eq!(of(bad).kind, CallKind::BadArguments, "{bad}");
        let why = stage.tools.complaint(&text("exec", bad));
        assert!(why.is_some_and(|why| why.ends_with('.')), "{bad}");
    }
    let unknown = facts(&stage.tools, "Exec", r#"{"command":"true"}"#);
    assert_eq!(unknown.kind, CallKind::NoSuchTool);
}

/// Without a word in the configuration nothing is offered and nothing acts.
#[tokio::test]
async fn without_exec_nothing_is_offered_and_nothing_runs() {
    let none = BuiltIn::new(None);
    assert!(none.offered().is_empty());
    let of = facts(&none, "exec", r#"{"command":"true"}"#);
    assert_eq!(of.kind, CallKind::NoSuchTool);
    let (sink, mut output, _stop) = ToolSink::channel(8);
    let end = none.run(call(r#"{"command":"true"}"#), sink).await;
    assert_eq!(end, ToolEnd::Failed);
    let said = output.recv().await.unwrap();
    assert_eq!(
        said,
        r#"There is no tool "exec" here; nothing was started."#
    );
}

#[test]
fn the_schema_offered_is_json_and_names_the_limit() {
    let offered = Stage::new().tools.offered();
    let [exec] = &*offered else {
        panic!("one tool is offered: {offered:?}")
    };
    assert_eq!(exec.name, "exec");
    assert!(exec.description.contains("1800 s"));
    let schema: serde_json::Value = serde_json::from_str(&exec.parameters).unwrap();
    assert_eq!(schema["required"], json!(["command"]));
    assert_eq!(schema["properties"]["timeout"]["maximum"], 1800);
}

#[tokio::test]
async fn both_streams_come_in_the_order_of_writing() {
    let stage = Stage::new();
    let command = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let (text, end) = stage.run(command).await;
    assert_eq!(text, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(end, ToolEnd::Ok);
}

/// Law 10
#[tokio::test]
async fn a_last_line_tells_how_a_command_failed() {
    let stage = Stage::new();
    let failed = |text: &str| (text.to_owned(), ToolEnd::Failed);
    assert_eq!(stage.run("exit 3").await, failed("[exit code 3]"));
    assert_eq!(
        stage.run("printf x; exit 1").await,
        failed("x\n[exit code 1]")
    );
    assert_eq!(
        stage.run("kill -9 $$").await,
        failed("[killed by signal 9]")
    );
    let (text, end) = stage.run("no-such-program-here").await;
    assert!(text.ends_with("\n[exit code 127]"), "{text}");
    assert_eq!(end, ToolEnd::Failed);
}

/// Output is seen while the command still runs.
#[tokio::test]
async fn output_comes_before_the_end() {
    let stage = Stage::new();
    let mut running = stage.start("mkfifo gate; echo ready; read word < gate; echo got $word");
    running.wait_for("ready").await;
    fs::write(stage.workspace().join("gate"), "it\n").unwrap();
    assert_eq!(running.end().await, ("ready\ngot it\n".into(), ToolEnd::Ok));
}

/// Law 9: the first and the last are kept, what is between is counted.
#[tokio::test]
async fn a_long_output_keeps_its_two_ends() {
    let stage = Stage::new();
    let (text, end) = stage.run("seq 1 100000").await;
    assert_eq!(end, ToolEnd::Ok);
    let whole: String = (1..=100_000).map(|i| format!("{i}\n")).collect();
    let left_out = whole.len() - HEAD_BYTES - TAIL_BYTES;
    let (head, tail) = (&whole[..HEAD_BYTES], &whole[whole.len() - TAIL_BYTES..]);
    assert!(head.ends_with('\n'), "no line is cut here");
    let expected = format!("{head}[{left_out} bytes left out]\n{tail}");
    assert!(
        text == expected,
        "{} bytes: {:.99}",
        text.len(),
        &text[HEAD_BYTES..]
    );
}

/// Law 9: a receiver that takes nothing holds no command up and loses nothing of it.
#[tokio::test]
async fn a_slow_receiver_gets_all_that_fits() {
    let stage = Stage::new();
    let running = stage.start("echo $$ > number; for i in $(seq 1 2000); do echo line $i; done");
    let number = stage.workspace().join("number");
    let over = || {
        let written = fs::read_to_string(&number).unwrap_or_default();
        written.trim().parse().is_ok_and(is_over)
    };
    until("the end of the command", over).await;
    let expected: String = (1..=2000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(running.end().await, (expected, ToolEnd::Ok));
}

#[tokio::test]
async fn a_terminal_program_leaves_plain_text() {
    let stage = Stage::new();
    let command = r"printf '\033[31mred\033[0m\r\n50%%\r100%%\n\342\202'; printf '\254\007\377'";
    let (text, _) = stage.run(command).await;
    assert_eq!(text, "red\n50%\n100%\n€\u{fffd}");
}

#[tokio::test]
async fn there_is_no_input_and_a_dash_is_no_option() {
    let stage = Stage::new();
    assert_eq!(stage.run("cat").await, (String::new(), ToolEnd::Ok));
    let (text, _) = stage.run("-x").await;
    assert!(text.ends_with("[exit code 127]"), "{text}");
}

/// Secrets never reach a child; it gets what is listed and nothing else.
#[tokio::test]
async fn a_command_sees_no_variable_that_is_not_listed() {
    let variables = [
        ("LANG", "C.UTF-8"),
        ("OPENAI_API_KEY", "sk-open-sesame"),
        ("TERM", "xterm"),
        ("TIDEGATE_GATEWAY_TOKEN", "open-sesame"),
    ];
    let stage = Stage::with(Bounds::default(), &variables);
    let (text, _) = stage.run("env").await;
    let mut names: Vec<_> = text.lines().map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    // The shell itself adds PWD.
    assert_eq!(
        names,
        [Some("LANG"), Some("PATH"), Some("PWD"), Some("TERM")]
    );
    assert!(
        text.contains("TERM=dumb") && !text.contains("sesame"),
        "{text}"
    );
}

#[tokio::test]
async fn a_command_starts_in_the_workspace_or_below() {
    let stage = Stage::new();
    let root = stage.workspace();
    let (text, _) = stage.run("pwd; mkdir -p a/b").await;
    assert_eq!(text, format!("{}\n", root.display()));
    let below = json!({"command": "pwd", "workdir": "a/b"});
    let (text, _) = stage.call(&below).end().await;
    assert_eq!(text, format!("{}\n", root.join("a/b").display()));
}

#[tokio::test]
async fn a_working_directory_that_leads_outside_starts_nothing() {
    let stage = Stage::new();
    symlink(stage.outside(), stage.workspace().join("link")).unwrap();
    for (workdir, words) in [
        ("link", "leads outside the workspace"),
        ("..", "is outside the workspace"),
        ("missing", "can't be entered"),
    ] {
        let arguments = json!({"command": "touch started", "workdir": workdir});
        let (text, end) = stage.call(&arguments).end().await;
        assert!(text.contains(words), "{text}");
        assert!(text.ends_with("Nothing was started."), "{text}");
        assert_eq!(end, ToolEnd::Failed);
    }
    assert!(!stage.outside().join("started").exists());
}

/// Law 10: what can't be started says so, and why.
#[tokio::test]
async fn what_can_not_be_started_is_told() {
    let stage = Stage::with(Bounds::default(), &[("TMPDIR", &"x".repeat(200_000))]);
    let (text, end) = stage.run("true").await;
    assert!(
        text.starts_with("The shell /bin/sh could not be started in /"),
        "{text}"
    );
    assert!(text.contains("too long"), "{text}");
    assert_eq!(end, ToolEnd::Failed);

    let stage = Stage::new();
    fs::remove_dir(stage.workspace()).unwrap();
    let (text, end) = stage.run("true").await;
    assert!(text.contains("No such file or directory"), "{text}");
    assert_eq!(end, ToolEnd::Failed);
}
