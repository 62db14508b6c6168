//! The tables of docs/configuration.md, made from the table of the code.
//!
//! `TIDEGATE_BLESS=1 cargo test -p tidegate the_book` writes them anew.

use std::path::Path;

use super::table::{Default as Otherwise, KEYS, Key, Kind, RETIRED};

const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

fn keys() -> String {
    let head = "| Key | Value | Default | Also set by | Meaning |\n|---|---|---|---|---|\n";
    KEYS.iter().fold(head.to_owned(), |table, key| {
        let path = key.path.replace('*', "<id>");
        format!(
            "{table}| `{path}` | {} | {} | {} | {} |\n",
            value(key.kind),
            default(key),
            also(key),
            key.says
        )
    })
}

fn value(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".into(),
        Kind::Secret => "text, a secret".into(),
        Kind::ModelName => "`\"provider/model\"`".into(),
        Kind::Whole { min, max, unit } => format!("{min} to {max} {unit}").trim_end().to_owned(),
        Kind::Word { only, .. } => format!("`\"{only}\"`"),
        Kind::Directory => "a directory".into(),
        Kind::OneOf { .. } | Kind::QueueMode | Kind::DropPolicy => {
            let names = kind.choices().into_iter();
            let names: Vec<_> = names.map(|name| format!("`\"{name}\"`")).collect();
            names.join(", ")
        }
    }
}

fn default(key: &Key) -> String {
    match key.default {
        Otherwise::Unset => "none".into(),
        Otherwise::Word(word) => format!("`\"{word}\"`"),
        Otherwise::Choice(name) => format!("`\"{}\"`", name()),
        Otherwise::Whole(number) => number().to_string(),
        Otherwise::Machine(_, words) => words.into(),
    }
}

fn also(key: &Key) -> String {
    let names = key.flag.iter().chain(&key.variable);
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn retired() -> String {
    let head = "| Key of the past | What there is instead |\n|---|---|\n";
    RETIRED.iter().fold(head.to_owned(), |table, retired| {
        let (path, instead) = (retired.path, retired.instead);
        let mut letters = instead.chars();
        let first = letters.next().map(|c| c.to_uppercase().to_string());
        let first = first.unwrap_or_default();
        format!("{table}| `{path}` | {first}{}. |\n", letters.as_str())
    })
}

/// The book with `table` between the two marks of its name.
fn with(book: &str, name: &str, table: &str) -> Option<String> {
    let (begin, end) = (
        format!("<!-- {name}: made from the code -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (before, rest) = book.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{table}\n{end}{after}"))
}

/// The book and the program know the same keys.
#[test]
fn the_book_shows_the_table() {
    let path = Path::new(BOOK);
    let book = std::fs::read_to_string(path).expect("docs/configuration.md is there");
    let made = with(&book, "keys", &keys());
    let made = made.and_then(|book| with(&book, "retired", &retired()));
    let made = made.expect("docs/configuration.md has the marks of both tables");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(path, &made).expect("docs/configuration.md can be written");
        return;
    }
    assert!(
        book == made,
        "docs/configuration.md is behind the table: \
         TIDEGATE_BLESS=1 cargo test -p tidegate the_book"
    );
}
