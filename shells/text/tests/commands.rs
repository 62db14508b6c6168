//! Chat lines: which are commands, what they say, and that no line is too strange.

use proptest::prelude::*;
use tidegate_core::{DropPolicy, QueueChange, QueueMode, QueueOverride};
use tidegate_text::{BadCommand, Command, read_command};

fn command(line: &str) -> Command<'_> {
    let read = read_command(line).unwrap_or_else(|bad| panic!("{line}: {bad}"));
    read.unwrap_or_else(|| panic!("{line:?} is a command"))
}

fn wrong(line: &str) -> BadCommand {
    read_command(line).expect_err(line)
}

fn mode(mode: QueueMode) -> QueueOverride {
    QueueOverride {
        mode: Some(mode),
        ..QueueOverride::default()
    }
}

#[test]
fn a_stop_is_a_stop_in_any_case_and_whatever_follows() {
    for line in ["/stop", " /STOP\n", "stop", "Stop", "/stop now, please"] {
        assert_eq!(command(line), Command::Stop, "{line:?}");
    }
    for line in ["stop it", "/stopp", "don't stop", "/ stop", "//stop"] {
        assert_eq!(read_command(line), Ok(None), "{line:?}");
    }
}

#[test]
fn a_new_session_may_bring_its_first_message() {
    assert_eq!(command("/new"), Command::New { message: None });
    let first = Command::New {
        message: Some("hello\nthere"),
    };
    assert_eq!(command(" /New  hello\nthere "), first);
    assert_eq!(command("/reset\n"), Command::Reset { message: None });
    let first = Command::Reset {
        message: Some("hello"),
    };
    assert_eq!(command("/RESET\thello"), first);
    for line in [
        "/newer", "/new:x", "new", "reset", "", "/", "/help", "/x /new",
    ] {
        assert_eq!(read_command(line), Ok(None), "{line:?}");
    }
}

#[test]
fn queue_alone_shows_and_default_clears() {
    assert_eq!(command("/queue"), Command::Queue(QueueChange::Show));
    assert_eq!(command("/QUEUE \n "), Command::Queue(QueueChange::Show));
    for line in ["/queue default", "/queue Reset ", "/queue\tdefault\n"] {
        assert_eq!(command(line), Command::Queue(QueueChange::Clear), "{line}");
    }
    assert!(matches!(
        wrong("/queue default hello"),
        BadCommand::AfterClear { word } if word == "default"
    ));
    assert!(matches!(
        wrong("/queue reset\nhello"),
        BadCommand::AfterClear { .. }
    ));
}

/// R44, R45, R46, R47
#[test]
fn a_mode_and_options_without_a_message_are_the_sessions() {
    let set = |line| match command(line) {
        Command::Queue(QueueChange::Set(set)) => set,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(set("/queue collect"), mode(QueueMode::Collect));
    assert_eq!(set("/queue steer+backlog"), mode(QueueMode::Followup));
    let whole = QueueOverride {
        mode: Some(QueueMode::Followup),
        debounce_ms: Some(2_000),
        cap: Some(5),
        drop: Some(DropPolicy::Old),
    };
    assert_eq!(set("/queue followup debounce:2s cap:5 drop:oldest"), whole);
    assert_eq!(set("/Queue FollowUp DROP:old Cap:5 Debounce:2000"), whole);
    let options = QueueOverride {
        mode: None,
        ..whole
    };
    assert_eq!(set("/queue debounce:2s cap:5 drop:old"), options);
}

/// Spec 3: a cap below 1 is left out of account.
#[test]
fn a_cap_below_one_is_ignored() {
    for cap in ["0", "-3", "00", "-99999999999999999999999"] {
        let line = format!("/queue collect cap:{cap}");
        let set = Command::Queue(QueueChange::Set(mode(QueueMode::Collect)));
        assert_eq!(command(&line), set, "{line}");
    }
}

#[test]
fn a_message_after_the_options_makes_them_its_own() {
    for (line, message) in [
        ("/queue interrupt do this", "do this"),
        ("/queue interrupt\ndo this", "do this"),
        (
            "/queue interrupt  do this\n\nand that ",
            "do this\n\nand that",
        ),
        (
            "/queue interrupt \n cap:5 is a word here",
            "cap:5 is a word here",
        ),
        (
            "/queue interrupt http://host/x is down",
            "http://host/x is down",
        ),
        ("/queue interrupt note: mind", "note: mind"),
        ("/queue interrupt interrupt", "interrupt"),
        ("/queue interrupt\r\ndö thís", "dö thís"),
    ] {
        let once = Command::Once {
            queue: mode(QueueMode::Interrupt),
            message,
        };
        assert_eq!(command(line), once, "{line:?}");
    }
    let once = Command::Once {
        queue: QueueOverride {
            debounce_ms: Some(0),
            ..QueueOverride::default()
        },
        message: "now",
    };
    assert_eq!(command("/queue debounce:0 now"), once);
    assert_eq!(command("/queue debounce:0\nnow"), once);
}

/// Spec 3.1: whatever the session's mode.
#[test]
fn an_explicit_steer_is_one_message_in_mode_steer() {
    let once = Command::Once {
        queue: mode(QueueMode::Steer),
        message: "left\nhere",
    };
    assert_eq!(command("/steer left\nhere"), once);
    assert_eq!(command("/Tell left\nhere"), once);
    assert_eq!(wrong("/tell "), BadCommand::NoMessage { name: "/tell" });
}

#[test]
fn what_is_wrong_is_named_with_what_was_expected() {
    for (line, says) in [
        (
            "/queue stear",
            "\"stear\" is no queue mode; expected steer, followup, collect, interrupt",
        ),
        ("/queue hello there", "\"hello\" is no queue mode"),
        ("/queue\nhello", ""),
        (
            "/queue collect debunce:2s",
            "\"debunce:2s\" is no option; expected debounce:, cap: or drop:",
        ),
        ("/queue stear:1", "\"stear:1\" is no option"),
        (
            "/queue collect debounce:soon",
            "debounce:soon is no length of time",
        ),
        ("/queue collect debounce:8d", "at most 7 d"),
        (
            "/queue collect cap:many",
            "cap:many is no cap; expected a whole number from 1 to 65536",
        ),
        ("/queue collect cap:65537", "cap:65537 is no cap"),
        (
            "/queue collect drop:all",
            "drop:all is no drop policy; expected summarize, old, new",
        ),
        ("/queue collect cap:1 cap:2", "cap is given twice"),
        ("/queue cap:0 cap:2", "cap is given twice"),
    ] {
        if says.is_empty() {
            // Without mode and options nothing holds for the message.
            assert!(matches!(wrong(line), BadCommand::NoMode), "{line}");
            continue;
        }
        let said = wrong(line).to_string();
        assert!(said.contains(says), "{line}: {said}");
    }
    let long = format!("/queue {}", "ü".repeat(5_000));
    let said = wrong(&long).to_string();
    assert!(said.len() < 300 && said.contains('…'), "{said}");
}

/// A line made of what commands are made of.
fn line() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/queue",
        "/stop",
        "/new",
        "/steer",
        "stop",
        "default",
        "steer",
        "collect",
        "cap:",
        "cap:0",
        "cap:7",
        "debounce:",
        "debounce:1s",
        "drop:new",
        "drop",
        ":",
        "//",
        "é",
        "\u{2028}",
        " ",
        " ",
        " ",
        "\n",
        "\r\n",
        "\t",
        "x",
        "-1",
        "18446744073709551616",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Law 9: any text is a command, an error or plain text; no piece of a message is made up
    /// or left out.
    #[test]
    fn any_line_is_understood_or_refused(text in prop_oneof![line(), any::<String>()]) {
        match read_command(&text) {
            Ok(Some(
                Command::Once { message, .. }
                | Command::New { message: Some(message) }
                | Command::Reset { message: Some(message) },
            )) => {
                prop_assert!(!message.is_empty() && text.trim_end().ends_with(message));
                prop_assert_eq!(message, message.trim());
            }
            Ok(_) => {}
            Err(bad) => prop_assert!(bad.to_string().len() < 600),
        }
    }

    /// What is shown of the settings can be typed back.
    #[test]
    fn what_is_written_is_read(
        name in prop::sample::select(vec!["steer", "followup", "collect", "interrupt"]),
        debounce in 0..=tidegate_text::DEBOUNCE_MAX_MS,
        cap in 1..=tidegate_text::QUEUE_CAP_MAX,
        policy in prop::sample::select(tidegate_text::DROP_POLICIES.to_vec()),
    ) {
        let drop = tidegate_text::drop_policy_name(policy);
        let line = format!("/queue {name} debounce:{debounce} cap:{cap} drop:{drop}");
        let set = QueueOverride {
            mode: tidegate_text::queue_mode(name).map(|named| named.value),
            debounce_ms: Some(debounce),
            cap: Some(cap),
            drop: Some(policy),
        };
        prop_assert_eq!(command(&line), Command::Queue(QueueChange::Set(set)));
    }
}
