//! The configuration file, as an operator meets it: what it sets is in force, what is wrong
//! with it is refused before anything is made, and its secrets stay where they are.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidegate_tests::{Client, Ended, Gateway, Provider, Running, tidegate};
use tokio::net::TcpListener;

/// A directory of a test: a state directory that is not made yet, and a file.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory for the test");
        Self { root }
    }

    fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Writes the file beside the state directory.
    fn file(&self, json5: &str) -> String {
        let file = self.root.path().join("my.json5");
        write(&file, json5);
        text(&file)
    }

    /// Runs a command over the state directory.
    async fn run(&self, line: &[&str], variables: &[(&str, &str)]) -> Ended {
        let state = text(&self.state());
        let all: Vec<_> = line
            .iter()
            .copied()
            .chain(["--state-dir", &state])
            .collect();
        Running::start_in(&all, variables).ended().await
    }
}

fn write(file: &Path, json5: &str) {
    std::fs::write(file, json5).expect("a test directory is writable");
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, mode).expect("it is our own file");
}

fn text(path: &Path) -> String {
    path.to_str().expect("the name is text").to_owned()
}

fn provided(url: &str, more: &str) -> String {
    format!(
        "{{\n  models: {{ providers: {{ lab: {{ baseUrl: '{url}', {more} models: [{{ id: 'small' }}] }} }} }},\n  \
         agents: {{ defaults: {{ model: 'lab/small' }} }},\n}}"
    )
}

/// Answers one call and gives its head.
async fn answered(provider: &mut Provider) -> (String, Value) {
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text("from the file").await);
    let asked = (call.head.clone(), call.body.clone());
    assert!(call.done().await);
    asked
}

fn value(shown: &Value, key: &str) -> (Value, String) {
    let setting = &shown["settings"][key];
    let source = setting["source"].as_str().unwrap_or_default();
    (setting["value"].clone(), source.to_owned())
}

/// File, variable of the file, provider, key: all the way to a streamed answer.
#[tokio::test]
async fn a_provider_of_the_file_answers() {
    let place = Place::new();
    let mut provider = Provider::start().await;
    std::fs::create_dir(place.state()).expect("a test directory is writable");
    let file = place.state().join("tidegate.json5");
    write(&file, &provided(&provider.url(), "apiKey: '${LAB_KEY}',"));
    let gateway = Gateway::start_in(&place.state(), &[], &[("LAB_KEY", "sk-lab")]).await;
    let banner = gateway.banner.join("\n");
    assert!(banner.contains("small at http"), "{banner}");
    let agent = gateway.command(&["agent", "-m", "hi"]);
    let (head, body) = answered(&mut provider).await;
    assert!(
        head.contains("Bearer sk-lab"),
        "the key of the file is sent"
    );
    assert_eq!(body["model"], "small");
    let said = agent.ended().await;
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "from the file\n"),
        "{said:#?}"
    );
}

/// The port and the token of the file count, and clients find both there.
#[tokio::test]
async fn clients_find_port_and_token_in_the_file() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let port = free.local_addr().expect("it is bound").port();
    let file = place.file(&format!(
        "{{ gateway: {{ port: {port}, auth: {{ token: 'of-the-file' }} }} }}"
    ));
    let gateway = Gateway::start(&place.state(), &["--config", &file]).await;
    assert!(Client::connect(&gateway.url(), "of-the-file").await.is_ok());
    assert!(
        Client::connect(&gateway.url(), &gateway.token())
            .await
            .is_err()
    );
    let said = gateway.run(&["gateway", "health", "--config", &file]).await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    // The gateway took a free port, by a flag. Where the file says it is, it is not.
    drop(free);
    let said = place
        .run(&["gateway", "health", "--config", &file], &[])
        .await;
    assert_eq!(said.code, Some(3), "{said:#?}");
    assert!(
        said.stderr.contains(&format!("127.0.0.1:{port}")),
        "{said:#?}"
    );
}

/// R6: place, expectation, nearest name; and nothing is made.
#[tokio::test]
async fn a_wrong_file_is_refused_before_anything_is_made() {
    let place = Place::new();
    let file = place.file("{\n  gateway: {\n    prot: 1,\n    bind: 'lan',\n  },\n}\n");
    for command in [
        &["gateway", "run"][..],
        &["config", "check"],
        &["config", "show"],
    ] {
        let line: Vec<_> = command.iter().copied().chain(["--config", &file]).collect();
        let said = place.run(&line, &[]).await;
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(4), ""),
            "{said:#?}"
        );
        for needed in [
            "2 mistakes".to_owned(),
            format!("{file}:3:5: gateway.prot is not a known key; did you mean gateway.port?"),
            format!("{file}:4:5: gateway.bind can't be \"lan\""),
        ] {
            assert!(said.stderr.contains(&needed), "{needed} in {said:#?}");
        }
        assert!(
            !place.state().exists(),
            "{command:?} made the state directory"
        );
    }
    let said = place
        .run(&["config", "check", "--json", "--config", &file], &[])
        .await;
    let json = said.json();
    assert_eq!((said.code, &json["ok"]), (Some(4), &Value::Bool(false)));
    assert_eq!(json["problems"][0]["nearest"], "gateway.port");
    assert_eq!(
        (&json["problems"][1]["line"], &json["problems"][1]["column"]),
        (&4.into(), &5.into())
    );
    write(Path::new(&file), "{ gateway: { bind: 'loopback' } }");
    let said = place
        .run(&["config", "check", "--config", &file], &[])
        .await;
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (Some(0), ""),
        "{said:#?}"
    );
    assert!(said.stdout.contains("no mistakes"), "{said:#?}");
}

#[tokio::test]
async fn a_file_that_is_none_is_refused_with_the_reason() {
    let place = Place::new();
    let missing = text(&place.root.path().join("missing.json5"));
    let said = place
        .run(&["gateway", "run", "--config", &missing], &[])
        .await;
    assert_eq!(said.code, Some(4), "{said:#?}");
    assert!(
        said.stderr.contains(&missing) && said.stderr.contains("--config"),
        "{said:#?}"
    );
    let directory = text(place.root.path());
    let said = place
        .run(&["gateway", "run", "--config", &directory], &[])
        .await;
    assert!(
        said.code == Some(4) && said.stderr.contains("plain file"),
        "{said:#?}"
    );
    let broken = place.file("{\n  gateway: {\n    port: 1\n    bind: 'loopback' } }");
    let said = place
        .run(&["gateway", "run", "--config", &broken], &[])
        .await;
    assert!(
        said.code == Some(4) && said.stderr.contains(":4:5: the file is not JSON5"),
        "{said:#?}"
    );
    write(Path::new(&broken), &" ".repeat(256 * 1024 + 1));
    let said = place
        .run(&["gateway", "run", "--config", &broken], &[])
        .await;
    assert!(
        said.code == Some(4) && said.stderr.contains("longer than 262144"),
        "{said:#?}"
    );
    assert!(!place.state().exists());
}

/// A missing variable is a mistake with a place; a client is not kept from its work.
#[tokio::test]
async fn a_variable_that_is_not_set_is_named_with_its_place() {
    let place = Place::new();
    let file = place.file(&provided(
        "http://127.0.0.1:1/v1",
        "\n apiKey: '${NO_SUCH_KEY}',",
    ));
    let said = place.run(&["gateway", "run", "--config", &file], &[]).await;
    assert_eq!(said.code, Some(4), "{said:#?}");
    let needed = format!(
        "{file}:3:2: models.providers.lab.apiKey takes its value from the variable NO_SUCH_KEY"
    );
    assert!(said.stderr.contains(&needed), "{said:#?}");
    assert!(!place.state().exists());
    let said = place
        .run(
            &[
                "gateway", "health", "--config", &file, "--token", "t", "--port", "1",
            ],
            &[],
        )
        .await;
    assert_eq!(said.code, Some(3), "{said:#?}");
}

/// D1, D13: older configurations go on working, and say what is idle in them.
#[tokio::test]
async fn a_key_of_the_past_warns_and_runs() {
    let place = Place::new();
    let file = place.file(
        "{ session: { writeLock: { acquireTimeoutMs: 60000 } },\n  diagnostics: { stuckSessionWarnMs: 1 } }",
    );
    let said = place
        .run(&["config", "check", "--config", &file], &[])
        .await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let warned: Vec<_> = said.stderr.lines().collect();
    assert_eq!(warned.len(), 2, "{said:#?}");
    assert!(
        warned[0].contains(&format!(
            "warning: {file}:1:27: session.writeLock.acquireTimeoutMs"
        )) && warned[0].contains("claim"),
        "{said:#?}"
    );
    assert!(warned[1].contains("built in"), "{said:#?}");
    let gateway = Gateway::start(&place.state(), &["--config", &file]).await;
    let said = gateway.run(&["agent", "-m", "hello"]).await;
    assert_eq!(said.code, Some(0), "{said:#?}");
}

/// Defaults, file, environment, flags; each wins over those before it.
#[tokio::test]
async fn a_flag_beats_a_variable_which_beats_the_file() {
    let place = Place::new();
    let file = place.file("{\n  gateway: {\n    port: 4001 } }");
    let show = ["config", "show", "--json"];
    let named: Vec<_> = show.iter().copied().chain(["--config", &file]).collect();
    let flagged: Vec<_> = named.iter().copied().chain(["--port", "4003"]).collect();
    let variable = [("TIDEGATE_GATEWAY_PORT", "4002")];
    for (line, variables, port, source) in [
        (&show[..], &[][..], 18_789, "default".to_owned()),
        (&named, &[], 4001, format!("{file}:3")),
        (&named, &variable, 4002, "TIDEGATE_GATEWAY_PORT".into()),
        (&flagged, &variable, 4003, "--port".into()),
    ] {
        let said = place.run(line, variables).await;
        assert_eq!(said.code, Some(0), "{said:#?}");
        assert_eq!(
            value(&said.json(), "gateway.port"),
            (port.into(), source),
            "{said:#?}"
        );
    }
}

/// Flags and variable win over the file's provider; its key goes to nobody else.
#[tokio::test]
async fn a_provider_of_the_flags_wins_and_gets_no_key_of_the_file() {
    let place = Place::new();
    let file = place.file(&provided(
        "http://127.0.0.1:1/v1",
        "apiKey: 'sk-of-the-file',",
    ));
    let mut provider = Provider::start().await;
    let url = provider.url();
    let flags = [
        "--config",
        &file,
        "--provider-url",
        &url,
        "--model",
        "other",
    ];
    let gateway = Gateway::start(&place.state(), &flags).await;
    let agent = gateway.command(&["agent", "-m", "hi"]);
    let (head, body) = answered(&mut provider).await;
    assert_eq!(body["model"], "other");
    assert!(
        !head.to_lowercase().contains("authorization"),
        "no key was given for it"
    );
    assert_eq!(agent.ended().await.code, Some(0));
    drop(gateway);

    let file = place.file(&provided(&url, "apiKey: 'sk-of-the-file',"));
    let variable = [("TIDEGATE_PROVIDER_KEY", "sk-of-the-variable")];
    let gateway = Gateway::start_in(&place.state(), &["--config", &file], &variable).await;
    let agent = gateway.command(&["agent", "-m", "hi"]);
    let (head, _) = answered(&mut provider).await;
    assert!(head.contains("Bearer sk-of-the-variable"));
    assert_eq!(agent.ended().await.code, Some(0));
}

/// Law 9: a limit of the file is the limit of the core.
#[tokio::test]
async fn a_limit_of_the_file_is_in_force() {
    let place = Place::new();
    let mut provider = Provider::start().await;
    let more = provided(&provider.url(), "");
    let file =
        place.file(&more.replacen('{', "{ tidegate: { limits: { replyCapBytes: 1024 } },", 1));
    let gateway = Gateway::start(&place.state(), &["--config", &file]).await;
    let agent = gateway.command(&["agent", "-m", "hi", "--json"]);
    let mut call = provider.call().await;
    assert!(call.begin().await && call.text(&"x".repeat(1_000)).await);
    assert!(call.text(&"x".repeat(25)).await);
    let said = agent.ended().await;
    assert_eq!(said.code, Some(1), "{said:#?}");
    assert_ne!(said.json()["status"], "ok", "{said:#?}");
}

/// No output, log or error holds a secret; a file that others read is warned of.
#[tokio::test]
async fn a_secret_is_never_shown() {
    let place = Place::new();
    let secrets = [
        "of-the-gateway-17",
        "sk-of-the-provider-17",
        "sk-variable-17",
        "flag-17",
    ];
    let file = place.file(&format!(
        "{{ gateway: {{ auth: {{ token: '{}' }} }}, models: {{ providers: {{ lab: {{ baseUrl: \
         'http://127.0.0.1:1/v1', apiKey: '{}' }} }} }}, agents: {{ defaults: {{ model: 'lab/m' }} }}, \
         retry: {{ provider: {{ maxRetries: 0 }} }} }}",
        secrets[0], secrets[1]
    ));
    let log = ("TIDEGATE_LOG", "trace");
    let variables = [log, ("TIDEGATE_PROVIDER_KEY", secrets[2])];
    let mut said = Vec::new();
    for line in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "show", "--token", secrets[3]],
        &["config", "check", "--json"],
    ] {
        let line: Vec<_> = line.iter().copied().chain(["--config", &file]).collect();
        for variables in [&variables[..1], &variables[..]] {
            let ended = place.run(&line, variables).await;
            assert_eq!(ended.code, Some(0), "{ended:#?}");
            said.push(ended);
        }
    }
    let shown = said[3].json();
    assert_eq!(value(&shown, "gateway.auth.token").0, "***");
    let key = value(&shown, "models.providers.lab.apiKey");
    assert_eq!(key, ("***".into(), "TIDEGATE_PROVIDER_KEY".into()));
    let broken = std::fs::read_to_string(&file).expect("it is there");
    for wrong in [
        broken.replace("token:", "tokn:"),
        broken.replace("'lab/m' } }", "'lab/m' }"),
    ] {
        write(Path::new(&file), &wrong);
        let ended = place
            .run(&["gateway", "run", "--config", &file], &variables)
            .await;
        assert_eq!(ended.code, Some(4), "{ended:#?}");
        said.push(ended);
    }
    write(Path::new(&file), &broken);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&file, open).expect("it is our own file");
    let ended = place
        .run(&["config", "check", "--config", &file], &[])
        .await;
    assert!(
        ended.code == Some(0) && ended.stderr.contains("chmod 600"),
        "{ended:#?}"
    );
    said.push(ended);
    let gateway = Gateway::start_in(&place.state(), &["--config", &file], &variables).await;
    said.push(
        gateway
            .run(&["agent", "-m", "hi", "--config", &file, "--json"])
            .await,
    );
    let banner = gateway.banner.join("\n");
    for secret in secrets {
        assert!(!banner.contains(secret), "{banner}");
        for ended in &said {
            let all = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!all.contains(secret), "{secret} in {ended:#?}");
        }
    }
}

/// An editor gets a schema, from a command that reads nothing.
#[tokio::test]
async fn the_schema_is_printed() {
    let said = tidegate(&["config", "schema"]).await;
    assert_eq!(said.code, Some(0), "{said:#?}");
    let schema = said.json();
    let port = &schema["properties"]["gateway"]["properties"]["port"];
    assert_eq!(
        (&port["type"], &port["maximum"]),
        (&"integer".into(), &65_535.into())
    );
    let lock = &schema["properties"]["session"]["properties"]["writeLock"];
    assert_eq!(lock["deprecated"], true);
}
