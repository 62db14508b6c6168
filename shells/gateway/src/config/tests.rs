//! The configuration as a whole: what is read, what is refused and in which words.

mod chain;
mod tools;

use std::env::VarError;

use clap::{Args, FromArgMatches};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value as Json;
use tidegate_core::{Budget, Config, DropPolicy, QueueMode, QueueSettings, RecoveryConfig};

use super::read::{Reading, Value};
use super::shape::steps;
use super::source::{At, Step};
use super::table::{KEYS, Key, Kind, RETIRED};
use super::*;

fn lookup(name: &str) -> Result<String, VarError> {
    match name {
        "TOKEN" => Ok("from-the-variable".into()),
        "BAD" => Ok("sk-hidden word".into()),
        _ => Err(VarError::NotPresent),
    }
}

fn given(flags: &[&str]) -> Given {
    let command =
        Given::augment_args(clap::Command::new("x")).mut_args(|arg| arg.env(None::<&'static str>));
    let line = ["x"].into_iter().chain(flags.iter().copied());
    let matches = command.try_get_matches_from(line);
    let matches = matches.expect("the flags are right");
    Given::from_arg_matches(&matches).expect("the flags are right")
}

fn read(text: &str, flags: &[&str]) -> Reading {
    let file: Arc<Path> = Path::new("f").into();
    let root = node::parse(text).expect(text);
    let mut reading = read::read(&file, &root, &lookup);
    overlay::lay_over(&mut reading, &given(flags), &lookup);
    judge::judge(&mut reading);
    reading
}

fn problems(text: &str) -> Vec<String> {
    read(text, &[]).problems.lines()
}

fn settings(text: &str, flags: &[&str]) -> Settings {
    let reading = read(text, flags);
    assert_eq!(reading.problems.lines(), [""; 0], "{text}");
    Settings::of(&reading.values)
}

/// Each mistake by place, expectation and nearest name, and all at once.
#[test]
fn all_mistakes_are_told_in_their_order() {
    let text = "{\n  gateway: { prot: 1, port: 70000, bind: 'lan', auth: [] },\n  \
                models: { providers: { a: { api: 'x' }, 'b/c': {} } },\n  \
                timeoutSeconds: 5, agents: { defaults: { timeoutSeconds: -1 } }, agents: {},\n}";
    assert_eq!(
        problems(text),
        [
            "f:2:14: gateway.prot is not a known key; did you mean gateway.port?; expected one \
             of mode, port, bind, auth",
            "f:2:23: gateway.port is 70000; expected a whole number from 1 to 65535",
            "f:2:36: gateway.bind can't be \"lan\": this version listens on 127.0.0.1 only, \
             because it speaks no TLS and knows no devices; reach it from elsewhere through a \
             tunnel, for example ssh -L; expected \"loopback\"",
            "f:2:49: gateway.auth is a list; expected an object with mode, token",
            "f:3:26: models.providers.a has no baseUrl; expected text that is not empty",
            "f:3:31: models.providers.a.api is another text; expected \"openai-completions\"",
            "f:3:43: models.providers[\"b/c\"] is no name for a provider: expected 1 to 64 bytes \
             without a /",
            "f:4:3: timeoutSeconds is not a known key; did you mean \
             models.providers.<id>.timeoutSeconds?; expected one of $schema, gateway, models, \
             retry, agents, tools, messages, tidegate",
            "f:4:44: agents.defaults.timeoutSeconds is another number; expected a whole number \
             from 0 to 31536000 (s)",
            "f:4:68: agents is set twice, first in line 4",
        ]
    );
}

#[test]
fn what_values_mean_together_is_judged() {
    let local =
        "models: { providers: { local: { baseUrl: 'http://h/v1', models: [{ id: 'm' }] } } }";
    for (text, says) in [
        (
            format!("{{ {local}, agents: {{ defaults: {{ model: 'locl/m' }} }} }}"),
            "names the provider \"locl\", which is not configured; did you mean \"local/m\"?; \
             expected one of local",
        ),
        (
            format!("{{ {local}, agents: {{ defaults: {{ model: {{ primary: 'local/n' }} }} }} }}"),
            "names the model \"n\" of local, which is not configured; expected one of m",
        ),
        (
            format!("{{ {local}, agents: {{ defaults: {{ model: 'm' }} }} }}"),
            "names no provider; did you mean \"local/m\"?; expected text of the form",
        ),
        (
            format!("{{ {local}, agents: {{ defaults: {{ model: 'locl' }} }} }}"),
            "names no provider; did you mean \"local/m\"?; expected text of the form",
        ),
        (
            format!("{{ {local}, agents: {{ defaults: {{ model: 'another' }} }} }}"),
            "names no provider; expected text of the form",
        ),
        (
            "{ models: { providers: { a: { baseUrl: 'http://u:sk-1@h/v1' } } } }".into(),
            "holds a user name or password; put the key into apiKey",
        ),
        (
            "{ models: { providers: { a: { baseUrl: 'h/v1' } } } }".into(),
            "is no http:// or https:// address",
        ),
        (
            "{ models: { providers: { a: { baseUrl: 'http://h/v1', apiKey: 'sk 1' } } } }".into(),
            "models.providers.a.apiKey holds a character that can't be sent in a header",
        ),
        (
            "{ tidegate: { limits: { storeRetryMs: 40000 } } }".into(),
            "makes the longest pause (30000 ms) shorter than the first (40000 ms)",
        ),
    ] {
        let said = problems(&text);
        assert!(
            said.len() == 1 && said[0].contains(says),
            "{text}: {said:#?}"
        );
        assert!(!said[0].contains("sk"), "{said:#?}");
    }
}

/// A broken provider is told once, and not that it is missing as well.
#[test]
fn one_mistake_is_one_finding() {
    for models in [
        "{ a: { baseUrl: 5 } }",
        "{ a: { baseURL: 'http://h/v1' } }",
        "{ a: { bseUrl: 'http://h/v1' } }",
        "{ a: { models: [{ di: 'm' }], baseUrl: 'http://h/v1' } }",
        "{ a: {} }",
        "{ a: 5 }",
        "[]",
    ] {
        let text = format!(
            "{{ models: {{ providers: {models} }}, agents: {{ defaults: {{ model: 'a/m' }} }} }}"
        );
        assert_eq!(problems(&text).len(), 1, "{:#?}", problems(&text));
    }
}

/// Law 10: a provider with a mistake in it is there all the same, and is the one that is meant;
/// a model that is set in a wrong way is no model that is not set.
#[test]
fn a_broken_provider_is_still_the_nearest_one() {
    let text = "{ models: { providers: { local: { baseurl: 'http://h/v1' } } }, \
                agents: { defaults: { model: 'lcal/m' } } }";
    let said = problems(text);
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(
        said[1].contains("did you mean \"local/m\"?; expected one of local"),
        "{said:#?}"
    );
    let text = "{ models: { providers: { local: { baseUrl: 'http://h/v1' } } }, \
                agents: { defaults: { model: 'local' } } }";
    let reading = read(text, &[]);
    assert_eq!(
        reading.warnings.count(),
        0,
        "{:#?}",
        reading.warnings.lines()
    );
    let said = reading.problems.lines();
    assert!(
        said.len() == 1 && said[0].contains("did you mean \"local/<model>\"?"),
        "{said:#?}"
    );
}

/// Law 9
#[test]
fn findings_are_bounded() {
    let keys: Vec<_> = (0..1_000).map(|i| format!("k{i}: 1")).collect();
    let said = problems(&format!("{{ {} }}", keys.join(",")));
    assert_eq!(said.len(), 101);
    assert_eq!(said.last().map(String::as_str), Some("and 900 more"));
}

/// No secret and nothing from a variable is repeated.
#[test]
fn a_mistake_repeats_no_secret() {
    for text in [
        "{ gateway: { auth: { token: ['sk-hidden'] } } }",
        "{ gateway: { auth: { token: 4711 } } }",
        "{ gateway: { auth: 'sk-hidden' } }",
        "{ gateway: { bind: '${BAD}' } }",
        "{ gateway: { auth: { mode: 'sk-hidden' } } }",
        "{ agents: { defaults: { model: 'sk-hidden' } } }",
        "{ gateway: { port: 'sk-hidden' } }",
        "{ models: { providers: { a: { baseUrl: '${BAD}' } } } }",
        "{ models: { providers: { a: { baseUrl: 'http://h/v1', apiKey: '${BAD}' } } } }",
        "{ agents: { defaults: { model: '${BAD}' } } }",
    ] {
        let said = problems(text);
        assert_eq!(said.len(), 1, "{text}: {said:#?}");
        let is_told = ["hidden", "4711"]
            .iter()
            .any(|secret| said[0].contains(secret));
        assert!(!is_told, "{text}: {said:#?}");
    }
}

/// D1, D2, D13: what is retired has no effect, and is named with what replaced it.
#[test]
fn settings_of_the_past_are_accepted_with_a_warning() {
    let reading = read(
        "{ session: { writeLock: { acquireTimeoutMs: 1 } }, diagnostics: { stuckSessionWarnMs: 'x' } }",
        &[],
    );
    assert_eq!(reading.problems.count(), 0);
    let said = reading.warnings.lines();
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(
        said[0].starts_with("f:1:27: session.writeLock.acquireTimeoutMs is a setting of the past")
            && said[0].contains("claim"),
        "{said:#?}"
    );
    for retired in RETIRED {
        let reading = read(&nested(retired.path, "{ anything: [] }"), &[]);
        assert_eq!(reading.problems.count(), 0, "{}", retired.path);
        let said = reading.warnings.lines().join("\n");
        assert!(said.contains(retired.instead), "{said}");
    }
}

/// Flags win over the file; the file's key does not follow a flag's address.
#[test]
fn a_flag_wins_over_the_file() {
    let text = "{ models: { providers: { local: { baseUrl: 'http://h/v1', apiKey: 'sk-1', \
                timeoutSeconds: 9 } } }, agents: { defaults: { model: 'local/a/b' } } }";
    let provider = |flags: &[&str]| settings(text, flags).chain.remove(0);
    let file = provider(&[]);
    assert_eq!((file.model.as_str(), file.timeout_ms), ("a/b", Some(9_000)));
    let model = provider(&["--model", "c", "--provider-timeout", "3"]);
    assert_eq!((model.model.as_str(), model.timeout_ms), ("c", Some(3_000)));
    assert!(model.key.is_some() && model.base_url == "http://h/v1");
    let other = provider(&["--provider-url", "http://other/v1", "--model", "c"]);
    assert_eq!(
        (other.base_url.as_str(), other.timeout_ms),
        ("http://other/v1", None)
    );
    assert!(other.key.is_none());
}

#[test]
fn a_flag_about_a_provider_needs_one() {
    for flags in [["--model", "m"], ["--provider-timeout", "5"]] {
        let said = read("{}", &flags).problems.lines();
        assert!(
            said.len() == 1 && said[0].starts_with(flags[0]) && said[0].contains("--provider-url"),
            "{said:#?}"
        );
    }
}

/// R149, R157: zero is no limit, and a limit that is not set is not set.
#[test]
fn the_budget_is_seconds_and_zero_is_unlimited() {
    let budget = |text: &str| settings(text, &[]).core.agent_budget;
    assert_eq!(budget("{}"), None);
    assert_eq!(
        budget("{ agents: { defaults: { timeoutSeconds: 0 } } }"),
        Some(Budget::Unlimited)
    );
    assert_eq!(
        budget("{ agents: { defaults: { timeoutSeconds: 5 } } }"),
        Some(Budget::Limited(5_000))
    );
}

/// Law 9: each limit reaches its own field of the core, and the defaults are the core's.
#[test]
fn each_limit_reaches_the_core() {
    let plain = settings("{}", &[]).core;
    let lane = plain.global_lane_cap;
    assert_eq!(
        plain,
        Config {
            global_lane_cap: lane,
            ..Config::default()
        }
    );
    let mut seen = Vec::new();
    for key in KEYS.iter().filter(|key| key.slot.is_some()) {
        let Kind::Whole { max, .. } = key.kind else {
            panic!("{} is a number", key.path)
        };
        let mut text = nested(key.path, &max.to_string());
        if key.path.ends_with("storeRetryMs") {
            text = text.replace(
                "storeRetryMs",
                &format!("storeRetryMaxMs: {max}, storeRetryMs"),
            );
        }
        let core = settings(&text, &[]).core;
        assert!(core != plain && !seen.contains(&core), "{}", key.path);
        seen.push(core);
    }
}

/// I36: the number of repetitions is the operator's for every kind of failure; a flag wins, and
/// needs no provider.
#[test]
fn repetitions_are_counted_by_the_operator() {
    let recovery = |text: &str, flags: &[&str]| settings(text, flags).core.recovery;
    let file = "{ retry: { provider: { maxRetries: 3 } } }";
    assert_eq!(recovery(file, &[]), RecoveryConfig::at_most(3));
    let flag = ["--provider-retries", "0"];
    assert_eq!(recovery(file, &flag), RecoveryConfig::at_most(0));
    assert_eq!(recovery("{}", &[]), RecoveryConfig::default());
    let said = read("{ retry: { provider: { maxRetries: 10 } } }", &[]);
    let said = said.problems.lines();
    assert!(said[0].contains("from 0 to 9 (times)"), "{said:#?}");
}

/// P21: the limit of whoever stops the process is in the drain that the core is given.
#[test]
fn a_supervisors_limit_shortens_the_drain() {
    let limits = |text: &str| format!("{{ tidegate: {{ limits: {{ {text} }} }} }}");
    for (text, budget, warned) in [
        ("supervisorStopMs: 90000", 75_000, 0),
        ("supervisorStopMs: 90000, drainBudgetMs: 1000", 1_000, 0),
        ("supervisorStopMs: 1000000", 300_000, 0),
        ("supervisorStopMs: 15000", 0, 1),
    ] {
        let text = limits(text);
        assert_eq!(settings(&text, &[]).core.drain_budget_ms, budget, "{text}");
        assert_eq!(read(&text, &[]).warnings.count(), warned, "{text}");
    }
}

/// R44, R45, R46, R47: the words of `messages.queue` reach the core under every name; a name of
/// the past is told.
#[test]
fn how_a_session_queues_reaches_the_core() {
    let queue = |text: &str| {
        settings(&format!("{{ messages: {{ queue: {text} }} }}"), &[])
            .core
            .queue
    };
    assert_eq!(queue("{}"), QueueSettings::default());
    let whole = QueueSettings {
        mode: QueueMode::Collect,
        debounce_ms: 2_000,
        cap: 7,
        drop: DropPolicy::Old,
    };
    let set = "{ mode: 'coalesce', debounceMs: 2000, cap: 7, drop: ' Oldest ' }";
    assert_eq!(queue(set), whole);
    let past = "{ messages: { queue: { mode: 'steer+backlog' } } }";
    let said = read(past, &[]).warnings.lines();
    assert!(
        said.len() == 1 && said[0].contains("name of the past; it is taken for \"followup\""),
        "{said:#?}"
    );
    assert_eq!(settings(past, &[]).core.queue.mode, QueueMode::Followup);
    for (wrong, says) in [
        (
            "mode: 'stear'",
            "mode is another text; did you mean \"steer\"?; expected one of steer, followup, collect, interrupt",
        ),
        ("mode: 5", "mode is 5; expected one of steer"),
        (
            "drop: 'sk-hidden'",
            "drop is another text; expected one of summarize, old, new",
        ),
        (
            "cap: 0",
            "cap is 0; expected a whole number from 1 to 65536 (messages)",
        ),
        (
            "debounceMs: '2s'",
            "debounceMs is text; expected a whole number",
        ),
    ] {
        let said = problems(&format!("{{ messages: {{ queue: {{ {wrong} }} }} }}"));
        assert!(
            said.len() == 1 && said[0].contains(says),
            "{wrong}: {said:#?}"
        );
    }
}

/// The JSON5 text in which `path` has `value`.
fn nested(path: &'static str, value: &str) -> String {
    steps(path)
        .into_iter()
        .rev()
        .fold(value.to_owned(), |inner, step| match step {
            "[]" => format!("[ {inner} ]"),
            "*" => format!("{{ local: {inner} }}"),
            "baseUrl" => format!("{{ baseUrl: {inner} }}"),
            name => format!("{{ {name}: {inner} }}"),
        })
}

/// A file in which only `key` is set, and what it needs.
fn only(key: &Key, value: &str) -> String {
    let text = nested(key.path, value);
    let is_provider = key.path.contains('*') && !key.path.ends_with("baseUrl");
    match is_provider {
        true => text.replacen("local: {", "local: { baseUrl: 'http://h/v1',", 1),
        false if key.kind == Kind::ModelName => {
            let provider = "{ models: { providers: { p: { baseUrl: 'http://h/v1' } } },";
            text.replacen('{', provider, 1)
        }
        false => text,
    }
}

fn a_key() -> impl Strategy<Value = &'static Key> {
    (0..KEYS.len()).prop_map(|i| &KEYS[i])
}

/// A value that a key takes, as JSON5 and as it is shown.
fn right(key: &Key) -> BoxedStrategy<(String, Json)> {
    let text = |text: String| (format!("'{text}'"), Json::from(text));
    match key.kind {
        Kind::Whole { min, max, .. } if key.path.ends_with("storeRetryMs") => {
            let max = max.min(30_000);
            (min..=max).prop_map(|n| (n.to_string(), n.into())).boxed()
        }
        Kind::Whole { max, .. } if key.path.ends_with("storeRetryMaxMs") => (1_000..=max)
            .prop_map(|n| (n.to_string(), n.into()))
            .boxed(),
        Kind::Whole { min, max, .. } => (min..=max).prop_map(|n| (n.to_string(), n.into())).boxed(),
        Kind::Word { only, .. } => Just(text(only.into())).boxed(),
        Kind::OneOf { .. } | Kind::QueueMode | Kind::DropPolicy => select(key.kind.choices())
            .prop_map(move |name| text(name.into()))
            .boxed(),
        Kind::Directory => "(/|~/)[a-zA-Z0-9/. -]{0,20}".prop_map(text).boxed(),
        Kind::ModelName => "[a-z0-9/:.-]{1,20}"
            .prop_map(move |m| text(format!("p/{m}")))
            .boxed(),
        Kind::Secret => "sk-[a-zA-Z0-9]{1,20}"
            .prop_map(|s| (format!("'{s}'"), "***".into()))
            .boxed(),
        Kind::Text if key.path.ends_with("baseUrl") => {
            "https?://[a-z]{1,9}/v1".prop_map(text).boxed()
        }
        Kind::Text => "[a-zA-Z0-9/:.-]{1,20}".prop_map(text).boxed(),
    }
}

/// A name with one or two letters changed.
fn slipped(name: &str, slips: &[(Index, char, u8)]) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    for (at, letter, way) in slips {
        let i = at.index(letters.len());
        match way {
            0 => letters[i] = *letter,
            1 => letters.insert(i, *letter),
            _ if letters.len() > 1 => {
                letters.remove(i);
            }
            _ => {}
        }
    }
    letters.into_iter().collect()
}

proptest! {
    /// Every key of the table can be set in the file, and shows up.
    #[test]
    fn every_key_can_be_set_and_is_shown(
        (key, (written, shown)) in a_key().prop_flat_map(|key| (Just(key), right(key)))
    ) {
        let text = only(key, &written);
        let reading = read(&text, &[]);
        prop_assert_eq!(reading.problems.lines(), Vec::<String>::new(), "{}", text);
        let place = reading.values.iter().find(|(_, setting)| setting.key.path == key.path);
        let (place, setting) = place.expect("it was read");
        if let Value::Secret(secret) = &setting.value {
            prop_assert!(written.contains(secret.reveal()));
        }
        let row = show::rows(&reading.values).into_iter().find(|row| row.place == place.to_string());
        let row = row.expect("it is shown");
        prop_assert_eq!(row.value, shown);
        prop_assert_eq!(row.source, "f:1");
        prop_assert_eq!(place.steps().len(), steps(key.path).len());
    }

    /// Every slip is refused, with a right name that is near.
    #[test]
    fn every_unknown_key_is_refused_with_the_nearest_right_one(
        key in a_key(),
        depth: Index,
        slips in prop::collection::vec((any::<Index>(), select(vec!['a', 'x', 'Z', '_', '9']), 0..3_u8), 1..=2),
    ) {
        let path = steps(key.path);
        let names: Vec<_> = (0..path.len()).filter(|i| !["*", "[]"].contains(&path[*i])).collect();
        let at = names[depth.index(names.len())];
        let wrong = slipped(path[at], &slips);
        let text = only(key, "1").replacen(&format!("{}:", path[at]), &format!("'{wrong}':"), 1);
        let siblings = siblings(&path[..at]);
        let distance = |name: &str| strsim::osa_distance(&wrong, name);
        prop_assume!(!siblings.contains(&wrong.as_str()));
        prop_assume!(distance(path[at]) < path[at].len());

        let reading = read(&text, &[]);
        let found = reading.problems.sorted().into_iter().find(|found| {
            matches!(found.place.steps().last(), Some(Step::Name(last)) if *last == wrong)
        });
        let found = found.expect("it is refused");
        let says = found.says.starts_with("is not a known key; did you mean ");
        prop_assert!(says, "{}", found);
        let nearest = found.nearest.as_deref().unwrap_or_default();
        let last = nearest.rsplit('.').next().unwrap_or_default();
        let folded = strsim::osa_distance(&wrong.to_lowercase(), &last.to_lowercase());
        prop_assert!(siblings.contains(&last) && distance(last).min(folded) <= 2, "{}", found);
        let is_placed = matches!(&found.source, Source::File(_, At { line: 1, column }) if text[column - 1..].starts_with(&format!("'{wrong}'")));
        prop_assert!(is_placed, "{} in {}", found, text);
    }

    /// Law 9: whatever the file holds, reading comes to an end and tells the truth.
    #[test]
    fn any_text_is_read_or_refused(text in "[{}\\[\\]:,'\"a-c0-9$ /*\\\\\n]{0,80}") {
        let file: Arc<Path> = Path::new("f").into();
        if let Ok(root) = node::parse(&text) {
            read::read(&file, &root, &lookup);
        }
    }
}

/// The right names beside the end of a path.
fn siblings(above: &[&'static str]) -> Vec<&'static str> {
    let beside = KEYS.iter().map(|key| steps(key.path));
    let beside = beside.filter(|path| path.starts_with(above));
    beside
        .filter_map(|path| path.get(above.len()).copied())
        .collect()
}

/// The schema knows the keys of the table, and the short forms.
#[test]
fn the_schema_describes_every_key() {
    let schema = schema::schema();
    for key in KEYS {
        let mut at = &schema;
        for step in steps(key.path) {
            at = match step {
                "*" => &at["additionalProperties"],
                "[]" => &at["items"],
                name => {
                    let object = at.get("anyOf").map_or(at, |ways| &ways[0]);
                    assert_eq!(
                        object["additionalProperties"],
                        Json::Bool(false),
                        "{}",
                        key.path
                    );
                    &object["properties"][name]
                }
            };
        }
        let says = at["description"].as_str().unwrap_or_default();
        assert!(says.starts_with(key.says), "{}: {at}", key.path);
    }
}

#[test]
fn a_client_needs_only_what_it_asks_for() {
    let text = "{ gateway: { port: 5, prot: 6, auth: { token: '${MISSING}' } }, models: 7 }";
    let client = ClientFile(read(text, &[]));
    assert_eq!(client.port(), Ok(Some(5)));
    let refused = client.token().map_err(|problem| problem.text());
    let refused = refused.expect_err("the variable is not set");
    assert!(
        refused.contains("MISSING") && !refused.contains("prot"),
        "{refused}"
    );
    let client = ClientFile(read("{ gateway: { auth: { token: '${TOKEN}' } } }", &[]));
    assert_eq!(client.token(), Ok(Some(Secret::new("from-the-variable"))));
    let client = ClientFile(read("{ gateway: 'x' }", &[]));
    assert!(client.port().is_err() && client.token().is_err());
}
