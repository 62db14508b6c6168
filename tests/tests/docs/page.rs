//! Reads a page of Markdown as far as the tests of the book ask: its links, headings and
//! commands. It knows what stands in code and what does not; it judges nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize()
        .expect("the tests lie in the repository")
}

/// All files below `dir` whose names end with `end`.
pub fn files(dir: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    for entry in entries {
        let path = entry.expect("the directory is readable").path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A page of the book or of the front.
pub struct Page {
    pub path: PathBuf,
    pub text: String,
}

impl Page {
    pub fn all() -> Vec<Self> {
        let root = root();
        let front = [
            "README.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "CONTRIBUTING.md",
        ];
        let front = front.map(|name| root.join(name));
        let pages = front.into_iter().chain(files(&root.join("docs"), ".md"));
        pages
            .map(|path| Self {
                text: read(&path),
                path,
            })
            .collect()
    }

    pub fn name(&self) -> String {
        let name = self.path.strip_prefix(root()).unwrap_or(&self.path);
        name.display().to_string()
    }

    /// Its lines, each with whether it stands in a block of code.
    pub fn lines(&self) -> Vec<(&str, bool)> {
        let mut fenced = false;
        let mut lines = Vec::new();
        for line in self.text.lines() {
            let is_fence = line.trim_start().starts_with("```");
            let is_code = fenced || is_fence || line.starts_with("    ");
            lines.push((line, is_code));
            fenced ^= is_fence;
        }
        lines
    }

    /// The targets of its links.
    pub fn links(&self) -> Vec<String> {
        let mut links = Vec::new();
        for (line, is_code) in self.lines() {
            if is_code {
                continue;
            }
            let prose = without_code(line);
            for rest in prose.split("](").skip(1) {
                links.extend(rest.split_once(')').map(|(target, _)| target.to_owned()));
            }
        }
        links
    }

    /// The anchors of its headings, as GitHub and mdBook make them.
    pub fn anchors(&self) -> BTreeSet<String> {
        let headings = self
            .lines()
            .into_iter()
            .filter(|(line, is_code)| !is_code && line.starts_with('#'));
        headings
            .map(|(line, _)| anchor(line.trim_start_matches('#').trim()))
            .collect()
    }

    /// The commands that it shows: lines of blocks, their continuations joined, and code
    /// within prose.
    pub fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        let mut begun = String::new();
        for (line, is_code) in self.lines() {
            if !is_code {
                commands.extend(code(line).into_iter().filter_map(command));
                continue;
            }
            begun.push_str(line.trim());
            if let Some(more) = begun.strip_suffix('\\') {
                begun = more.to_owned();
            } else {
                commands.extend(command(&begun));
                begun.clear();
            }
        }
        commands
    }
}

/// The pieces of code in a line of prose.
pub fn code(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("` `")
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
        _ => None,
    });
    kept.collect()
}

/// What is typed after the program's name, if `text` is a call of it. A remark may stand
/// behind it, after a wider space or a `#`.
fn command(text: &str) -> Option<String> {
    let typed = [text.find("  "), text.find(" #")].into_iter().flatten();
    let typed = &text[..typed.min().unwrap_or(text.len())];
    let words: Vec<&str> = typed.split_whitespace().collect();
    let at = words.iter().position(|word| {
        let name = word.rsplit('/').next();
        name == Some("tidegate")
    })?;
    let is_variable = |word: &&str| word.contains('=');
    let is_call = words[..at].iter().all(is_variable);
    let first = words.get(at + 1)?;
    let is_word = first.starts_with(|c: char| c.is_ascii_lowercase() || c == '-');
    (is_call && is_word).then(|| words[at + 1..].join(" "))
}

/// The subcommands that a call names; `a|b` names two. What looks like an operand ends them.
pub fn subcommands(call: &str) -> Vec<Vec<String>> {
    let mut paths = vec![Vec::new()];
    for word in call.split(' ') {
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        };
        if word.starts_with('-') || !word.split('|').all(is_name) {
            break;
        }
        let longer = |path: &Vec<String>, part: &str| {
            let mut path = path.clone();
            path.push(part.to_owned());
            path
        };
        paths = paths
            .iter()
            .flat_map(|path| word.split('|').map(|part| longer(path, part)))
            .collect();
    }
    paths
}

pub fn flags(call: &str) -> Vec<&str> {
    let words = call.split(' ');
    let flags = words.filter_map(|word| word.split('=').next());
    flags
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .collect()
}

/// The absolute paths in a line: what begins with a slash and has another.
pub fn absolute(line: &str) -> Vec<&str> {
    let outside = |c: char| c.is_whitespace() || "`'\"()<>|,=".contains(c);
    let words = line.split(outside);
    words
        .filter(|word| {
            let mut parts = word.split('/');
            let (before, first) = (parts.next(), parts.next().unwrap_or_default());
            before == Some("") && !first.is_empty() && parts.next().is_some()
        })
        .collect()
}

#[test]
fn the_reader_of_pages_sees_what_is_there() {
    let page = Page {
        path: root().join("docs/x.md"),
        text: "# A `b`, c!\n\nSee [d](e.md#f), `[no](link)` and `tidegate gateway run --port 0`.\n\n    \
               K=v target/release/tidegate agent \\\n        -m \"hi\"   as one likes\n\n```sh\n# no heading\ntidegate 0.1.0\n```\n"
            .into(),
    };
    assert_eq!(page.links(), ["e.md#f"]);
    assert_eq!(page.anchors(), BTreeSet::from(["a-b-c".to_owned()]));
    assert_eq!(page.commands(), ["gateway run --port 0", "agent -m \"hi\""]);
    assert_eq!(
        subcommands("config check|show --json"),
        [["config", "check"], ["config", "show"]]
    );
    assert_eq!(
        flags("agent --json --timeout=5 -m x --"),
        ["--json", "--timeout"]
    );
    assert_eq!(absolute("in `/srv/x` or http://h/v1, /healthz"), ["/srv/x"]);
}
