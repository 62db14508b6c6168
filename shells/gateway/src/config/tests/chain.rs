//! The first choice and its fallbacks: what is read, what is idle and what is refused.

use super::*;

/// Three providers with keys of their own, and this under `model`.
fn chained(model: &str) -> String {
    let provider =
        |id| format!("{id}: {{ baseUrl: 'http://{id}/v1', apiKey: 'sk-{id}', timeoutSeconds: 9 }}");
    let providers = ["a", "b", "c"].map(provider).join(", ");
    format!(
        "{{ models: {{ providers: {{ {providers} }} }}, \
         agents: {{ defaults: {{ model: {{ {model} }} }} }} }}"
    )
}

/// The names of those that are asked, in their order.
fn asked(text: &str, flags: &[&str]) -> Vec<String> {
    let chain = settings(text, flags).chain.into_iter();
    chain
        .map(|provider| format!("{}/{}", provider.id, provider.model))
        .collect()
}

/// P15: the chain is asked in the order of the file, each with its own address, key and limit;
/// a server of the flags has no fallbacks.
#[test]
fn the_chain_has_the_order_of_the_file() {
    let text = chained("primary: 'a/m', fallbacks: ['c/m/x', 'b/m', 'a/n']");
    assert_eq!(asked(&text, &[]), ["a/m", "c/m/x", "b/m", "a/n"]);
    for provider in settings(&text, &[]).chain {
        let id = &provider.id;
        let key = provider.key.as_ref().map(|key| key.expose().to_owned());
        assert_eq!(key, Some(format!("sk-{id}")));
        assert_eq!(provider.base_url, format!("http://{id}/v1"));
        assert_eq!(provider.timeout_ms, Some(9_000));
    }
    assert_eq!(
        asked(&text, &["--model", "o"]),
        ["a/o", "c/m/x", "b/m", "a/n"]
    );
    let other = ["--provider-url", "http://other/v1", "--model", "m"];
    assert_eq!(asked(&text, &other), ["command-line/m"]);
}

/// P15: each of the chain reaches the core and the models, under the same number.
#[test]
fn the_core_and_the_models_know_the_same_chain() {
    let text = chained("primary: 'a/m', fallbacks: ['c/m', 'a/m', 'b/m']");
    let settings = settings(
        &text.replace("b/v1', apiKey: 'sk-b', timeoutSeconds: 9", "b/v1'"),
        &[],
    );
    let model = crate::model::Model::choose(&settings).expect("it can be used");
    let limits = |config: &Config| {
        let rest = config.fallbacks.iter();
        let all = std::iter::once(&config.provider).chain(rest);
        all.map(|provider| provider.timeout_ms).collect::<Vec<_>>()
    };
    assert_eq!(
        limits(&model.config(&settings)),
        [Some(9_000), Some(9_000), None]
    );
    let names = [0, 1, 2].map(|number| model.models.name(number));
    assert_eq!(names.map(|name| name.to_string()), ["a/m", "c/m", "b/m"]);
    assert!(model.words.ends_with("; else c/m, b/m"), "{}", model.words);
}

/// Law 10: nobody is asked twice for the same, and what is not asked at all is said to be idle.
#[test]
fn what_is_named_once_more_is_asked_once() {
    let text = chained("primary: 'a/m', fallbacks: ['b/m', 'a/m', 'b/m']");
    assert_eq!(asked(&text, &[]), ["a/m", "b/m"]);
    let warnings = |text: &str, flags: &[&str]| read(text, flags).warnings.lines();
    let said = warnings(&text, &[]);
    assert!(
        said.len() == 2
            && said[0].contains("fallbacks[1] names m of a once more")
            && said[1].contains("fallbacks[2] names m of b once more"),
        "{said:#?}"
    );
    assert_eq!(
        warnings(&chained("primary: 'a/m', fallbacks: ['b/m']"), &[]).len(),
        0
    );
    assert_eq!(asked(&text, &["--model", "o"]), ["a/o", "b/m", "a/m"]);
    let idle = chained("fallbacks: ['b/m']");
    assert_eq!(asked(&idle, &[]), [""; 0]);
    let said = warnings(&idle, &[]);
    assert!(
        said.len() == 1 && said[0].contains("fallbacks[0] is not in use, and the demo model"),
        "{said:#?}"
    );
}

/// Laws 9 and 10: each fallback is one of a configured provider, and there are at most eight.
#[test]
fn a_fallback_that_is_none_is_refused() {
    for (fallbacks, place, says) in [
        (
            "'d/m'",
            0,
            "names the provider \"d\", which is not configured",
        ),
        (
            "'b/m', 'm'",
            1,
            "names no provider; expected text of the form",
        ),
        ("7", 0, "is 7; expected text of the form"),
    ] {
        let said = problems(&chained(&format!(
            "primary: 'a/m', fallbacks: [{fallbacks}]"
        )));
        let starts = format!("agents.defaults.model.fallbacks[{place}] {says}");
        assert!(said.len() == 1 && said[0].contains(&starts), "{said:#?}");
    }
    let many = |count: usize| {
        let names: Vec<_> = (0..count).map(|i| format!("'b/m{i}'")).collect();
        chained(&format!(
            "primary: 'a/m', fallbacks: [{}]",
            names.join(", ")
        ))
    };
    assert_eq!(asked(&many(8), &[]).len(), 9);
    let said = problems(&many(10));
    assert!(
        said.len() == 1 && said[0].contains("fallbacks[8] is one too many; expected at most 8"),
        "{said:#?}"
    );
    let said = problems(&chained("primary: 'a/m', fallbacks: 'b/m'"));
    assert!(
        said.len() == 1 && said[0].contains("fallbacks is text; expected a list"),
        "{said:#?}"
    );
}

/// An empty list is shown as one, and each fallback with its line.
#[test]
fn the_fallbacks_are_shown_each_with_its_source() {
    let shown = |text: &str| {
        let rows = show::rows(&read(text, &[]).values).into_iter();
        let of = rows.filter(|row| row.place.contains("fallbacks"));
        of.map(|row| format!("{} {} {}", row.place, row.value, row.source))
            .collect::<Vec<_>>()
    };
    let path = "agents.defaults.model.fallbacks";
    assert_eq!(shown("{}"), [format!("{path} [] default")]);
    let text = chained("primary: 'a/m', fallbacks: [\n'b/m', 'c/m']");
    let row = |i, name| format!("{path}[{i}] \"{name}\" f:1");
    assert_eq!(shown(&text), [row(0, "b/m"), row(1, "c/m")]);
}
