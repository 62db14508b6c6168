//! What the models may run: what is read, what is refused, and that nothing is on by itself.

use super::*;

/// Law 10, R205: no command runs unless the file says so, and none without a person unless it
/// says that too.
#[test]
fn commands_are_off_and_asked_for_unless_the_file_says_otherwise() {
    let plain = settings("{}", &[]);
    assert_eq!(plain.exec, None);
    assert_eq!(plain.core.tools.ask, tidegate_core::Ask::Always);
    assert_eq!(
        settings("{ tools: { exec: { ask: 'off' } } }", &[]).exec,
        None
    );
    let on = settings("{ tools: { exec: { security: 'full' } } }", &[]);
    let exec = on.exec.expect("it is on");
    assert!(exec.asks && exec.workspace.is_none());
    assert_eq!(exec.timeout_sec.get(), 1_800);
    let all = "{ tools: { exec: { security: 'full', ask: 'off', timeoutSec: 5 } }, \
               agents: { defaults: { workspace: '/srv/agent' } } }";
    let all = settings(all, &[]);
    let exec = all.exec.expect("it is on");
    assert_eq!(exec.workspace.as_deref(), Some(Path::new("/srv/agent")));
    assert_eq!((exec.asks, exec.timeout_sec.get()), (false, 5));
    assert_eq!(all.core.tools.ask, tidegate_core::Ask::Off);
    assert_eq!(all.core.tools.timeout_ms, 5_000);
}

/// What is a word of the protocol and not supported yet is refused by name.
#[test]
fn lists_of_allowed_commands_are_refused_by_name() {
    let said = |text: &str| problems(text).join("\n");
    let list = said("{ tools: { exec: { security: 'allowlist' } } }");
    assert!(
        list.contains("tools.exec.security can't be \"allowlist\"")
            && list.ends_with("expected \"deny\" or \"full\""),
        "{list}"
    );
    let miss = said("{ tools: { exec: { ask: 'on-miss' } } }");
    assert!(miss.ends_with("expected \"always\" or \"off\""), "{miss}");
    let other = said("{ tools: { exec: { security: 'Full' } } }");
    assert!(other.contains("is another text"), "{other}");
    let place = said("{ agents: { defaults: { workspace: 'here' } } }");
    assert!(
        place.contains("expected a path that begins with / or ~/"),
        "{place}"
    );
}
