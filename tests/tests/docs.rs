//! The book keeps its word: links lead somewhere, tests that it names exist, commands that it
//! shows can be typed, and it speaks of no machine but the reader's.

#[path = "docs/page.rs"]
mod page;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use page::{Page, absolute, code, files, flags, read, root, subcommands};
use tidegate_tests::tidegate;

fn nothing(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let mut problems = Vec::new();
    let mut followed = 0;
    for page in Page::all() {
        for link in page.links() {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, heading) = match link.split_once('#') {
                Some((file, heading)) => (file, Some(heading)),
                None => (link.as_str(), None),
            };
            let beside = page.path.parent().expect("a page lies in a folder");
            let path = match file {
                "" => page.path.clone(),
                file => beside.join(file),
            };
            if !path.exists() {
                problems.push(format!("{}: nothing at {link}", page.name()));
                continue;
            }
            if let Some(heading) = heading {
                let text = read(&path);
                let target = Page { path, text };
                if !target.anchors().contains(heading) {
                    problems.push(format!("{}: no heading at {link}", page.name()));
                }
            }
        }
    }
    assert!(followed > 20, "only {followed} links were found");
    nothing(problems);
}

#[test]
fn every_page_stands_in_the_table_of_contents() {
    let docs = root().join("docs");
    let contents = Page {
        path: docs.join("SUMMARY.md"),
        text: read(&docs.join("SUMMARY.md")),
    };
    let listed: BTreeSet<String> = contents.links().into_iter().collect();
    let pages = files(&docs, ".md");
    let names = pages
        .iter()
        .filter_map(|page| page.strip_prefix(&docs).ok());
    let missing = names
        .map(|name| name.display().to_string())
        .filter(|name| name != "SUMMARY.md" && !listed.contains(name));
    nothing(missing.map(|name| format!("docs/{name}")).collect());
}

/// The folders in which a room's tests lie.
fn room(name: &str) -> Option<PathBuf> {
    let path = match name {
        "core" | "sim" => name.to_owned(),
        "text" | "wire" | "driver" | "store" | "models" | "tools" | "server" | "gateway" => {
            format!("shells/{name}")
        }
        "bench" | "coverage" => format!("tests/{name}"),
        "tests" => "tests/tests".to_owned(),
        _ => return None,
    };
    Some(root().join(path))
}

/// The sources of a room, read once.
struct Room {
    sources: Vec<(String, String)>,
}

impl Room {
    fn open(folder: &Path) -> Self {
        let inside = |path: &Path| {
            let inner = path.strip_prefix(folder).unwrap_or(path);
            let name = inner.display().to_string();
            name.trim_end_matches(".rs")
                .trim_end_matches("/mod")
                .to_owned()
        };
        let sources = files(folder, ".rs");
        let sources = sources.iter().map(|path| (inside(path), read(path)));
        Self {
            sources: sources.collect(),
        }
    }

    /// Whether a function of this name stands in it.
    fn has_test(&self, name: &str) -> bool {
        let function = format!("fn {name}(");
        self.sources
            .iter()
            .any(|(_, text)| text.contains(&function))
    }

    /// Whether one of its files, or a folder of them, has this name.
    fn has_module(&self, name: &str) -> bool {
        let name = format!("/{}", name.replace("::", "/"));
        let is_it = |path: &str| path.ends_with(&name) || path.contains(&format!("{name}/"));
        self.sources
            .iter()
            .any(|(path, _)| is_it(&format!("/{path}")))
    }
}

/// Reads `room: a, b; room: c`, the names in backticks.
fn citations(text: &str) -> Vec<(String, String)> {
    let mut cited = Vec::new();
    for part in text.split(';') {
        let Some((room, names)) = part.split_once(':') else {
            continue;
        };
        let room = room.trim();
        cited.extend(
            code(names)
                .into_iter()
                .map(|name| (room.to_owned(), name.to_owned())),
        );
    }
    cited
}

/// The tests of each row of docs/errors.md: its last cell.
fn held_by() -> Vec<(String, String)> {
    let text = read(&root().join("docs/errors.md"));
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit(" | ").next());
    cells.flat_map(citations).collect()
}

/// What docs/decisions.md names: a test or a module with tests, at the end of each paragraph.
fn decided() -> Vec<(String, String)> {
    let text = read(&root().join("docs/decisions.md"));
    let ends = text.lines().filter_map(|line| {
        let line = line.trim_end().strip_suffix('*')?;
        line.rsplit_once(" *").map(|(_, end)| end.to_owned())
    });
    ends.flat_map(|end| citations(&end)).collect()
}

fn missing(cited: Vec<(String, String)>, is_there: fn(&Room, &str) -> bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, test) in cited {
        let there = match room(&name) {
            Some(folder) => is_there(&Room::open(&folder), &test),
            None => false,
        };
        if !there {
            problems.push(format!("{name}: {test}"));
        }
    }
    problems
}

#[test]
fn every_test_that_the_page_of_errors_names_exists() {
    let cited = held_by();
    assert!(cited.len() > 80, "only {} tests are cited", cited.len());
    nothing(missing(cited, Room::has_test));
}

#[test]
fn every_row_of_the_page_of_errors_names_a_test() {
    let text = read(&root().join("docs/errors.md"));
    let (rows, _) = text.split_once("## Exit codes").expect("the last section");
    let rows = rows.lines().filter(|line| line.starts_with("| "));
    let rows = rows.filter(|row| !row.starts_with("| --- ") && !row.ends_with("| held by |"));
    let bare = rows.filter(|row| !row.ends_with("` |") || !row.contains(": `"));
    nothing(bare.map(str::to_owned).collect());
}

#[test]
fn every_test_that_the_page_of_decisions_names_exists() {
    let cited = decided();
    assert!(cited.len() > 30, "only {} tests are cited", cited.len());
    nothing(missing(cited, |room, name| {
        room.has_test(name) || room.has_module(name)
    }));
}

#[tokio::test]
async fn every_command_that_is_shown_can_be_typed() {
    let mut problems = Vec::new();
    let mut typed = 0;
    for page in Page::all() {
        for call in page.commands() {
            for path in subcommands(&call) {
                typed += 1;
                let mut line: Vec<&str> = path.iter().map(String::as_str).collect();
                line.push("--help");
                let said = tidegate(&line).await;
                if said.code != Some(0) {
                    problems.push(format!("{}: tidegate {call}", page.name()));
                    continue;
                }
                let unknown = flags(&call).into_iter().filter(|flag| {
                    !said.stdout.contains(&format!("{flag} "))
                        && !said.stdout.contains(&format!("{flag}\n"))
                });
                problems.extend(
                    unknown.map(|flag| format!("{}: {flag} in tidegate {call}", page.name())),
                );
            }
        }
    }
    assert!(typed > 15, "only {typed} commands were found");
    nothing(problems);
}

#[tokio::test]
async fn the_page_of_errors_has_the_programs_exit_codes() {
    let help = tidegate(&["--help"]).await.stdout;
    let (_, codes) = help
        .split_once("Exit codes:\n")
        .expect("the manual has them");
    let codes: Vec<String> = codes
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .map(|(code, meaning)| format!("| {code} | {meaning} |"))
        .collect();
    let text = read(&root().join("docs/errors.md"));
    let (_, table) = text.split_once("## Exit codes").expect("the last section");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(2)
        .collect();
    assert_eq!(rows, codes);
}

/// The reader's home is called `/home/you`; what is not kept may lie in `/tmp`.
#[test]
fn no_page_names_a_path_of_one_machine() {
    let mut problems = Vec::new();
    for page in Page::all() {
        for (line, _) in page.lines() {
            let paths = absolute(line).into_iter().filter(|path| {
                let anywhere = ["/home/you/", "/tmp/", "/chat/completions"];
                !anywhere.iter().any(|known| path.starts_with(known))
            });
            problems.extend(paths.map(|path| format!("{}: {path}", page.name())));
        }
    }
    nothing(problems);
}

#[test]
fn a_citation_is_a_room_and_its_tests() {
    let cited = citations("core: `a`, `b`; sim: `check/c`");
    let cited: Vec<_> = cited
        .iter()
        .map(|(room, name)| (room.as_str(), name.as_str()))
        .collect();
    assert_eq!(cited, [("core", "a"), ("core", "b"), ("sim", "check/c")]);
}
