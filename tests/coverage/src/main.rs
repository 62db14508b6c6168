//! `tidegate-coverage` makes docs/coverage.md from docs/promises.toml and the citations in
//! tests and scenarios, and says what does not fit together. It never runs a test.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod check;
mod citations;
mod id;
mod promises;
mod rust;
mod table;

use citations::Citations;
use promises::State;

const USAGE: &str = "\
Makes docs/coverage.md: which promise is held by which test.

usage: tidegate-coverage [--check] [--root DIR]

  --check     write nothing; docs/coverage.md must be up to date
  --root DIR  the repository, if it is not the current directory

Exits with 0 if all fits together, 1 with one line for each problem, 2 if it could not run.";

/// What was asked for.
struct Asked {
    check: bool,
    root: PathBuf,
}

/// Why nothing could be found out.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The command line is not understood.
    #[error("unknown argument {0}\n\n{USAGE}")]
    Usage(String),
    /// The promises can't be read.
    #[error(transparent)]
    Promises(#[from] promises::Unreadable),
    /// A source can't be read, or the page can't be written.
    #[error("cannot work on the repository: {0}")]
    Repository(#[from] io::Error),
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    if args
        .peek()
        .is_some_and(|arg| arg == "--help" || arg == "-h")
    {
        return tell(io::stdout(), &[USAGE.to_owned()], 0);
    }
    match asked(args).and_then(|asked| run(&asked)) {
        Ok((summary, problems)) if problems.is_empty() => tell(io::stdout(), &[summary], 0),
        Ok((_, problems)) => tell(io::stderr(), &problems, 1),
        Err(failure) => tell(io::stderr(), &[failure.to_string()], 2),
    }
}

fn tell(mut to: impl Write, lines: &[String], code: u8) -> ExitCode {
    // Nobody listening is no reason for another exit code.
    let _ = lines.iter().try_for_each(|line| writeln!(to, "{line}"));
    ExitCode::from(code)
}

fn asked(mut args: impl Iterator<Item = String>) -> Result<Asked, Failure> {
    let mut asked = Asked {
        check: false,
        root: PathBuf::from("."),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--check" => asked.check = true,
            "--root" => match args.next() {
                Some(root) => asked.root = PathBuf::from(root),
                None => return Err(Failure::Usage("--root without a directory".to_owned())),
            },
            _ => return Err(Failure::Usage(arg)),
        }
    }
    Ok(asked)
}

/// Makes or checks the page. Gives a summary, and the problems that were found.
fn run(asked: &Asked) -> Result<(String, Vec<String>), Failure> {
    let (promises, mut problems) = promises::read(&asked.root)?;
    let citations = Citations::of_repository(&asked.root)?;
    problems.extend(check::problems(&promises, &citations));
    let page = table::page(&promises, &citations);
    let path = asked.root.join(table::TABLE);
    if !asked.check {
        std::fs::write(&path, page)?;
    } else if !holds(&path, &page)? {
        problems.push(format!(
            "{} is not up to date: run make coverage-table",
            table::TABLE
        ));
    }
    let [kept, later, replaced] = State::ALL.map(|state| table::count(&promises, state));
    let summary = format!(
        "{} promises: {kept} kept, {later} later, {replaced} replaced",
        promises.len()
    );
    Ok((summary, problems))
}

/// Whether the file holds just this text.
fn holds(path: &Path, text: &str) -> io::Result<bool> {
    match std::fs::read_to_string(path) {
        Ok(found) => Ok(found == text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMISES: &str = "[[promise]]\nid = \"P01\"\ntext = \"t\"\nstate = \"kept\"\n";

    fn repository(test: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory for the test");
        for folder in ["docs", "core", "target"] {
            std::fs::create_dir(root.path().join(folder)).expect("made");
        }
        let write = |path: &str, text: &str| {
            std::fs::write(root.path().join(path), text).expect("written");
        };
        write("docs/promises.toml", PROMISES);
        write("docs/prose.md", "P99 is not read here");
        write("target/old.rs", "// P99");
        write("core/a.rs", test);
        root
    }

    fn problems(root: &tempfile::TempDir, check: bool) -> Vec<String> {
        let root = root.path().to_owned();
        run(&Asked { check, root })
            .expect("the repository can be read")
            .1
    }

    #[test]
    fn a_page_that_was_made_is_up_to_date_until_something_changes() {
        let root = repository("/// P01\n#[test]\nfn a() {}");
        let stale = "docs/coverage.md is not up to date: run make coverage-table";
        assert_eq!(problems(&root, true), [stale]);
        assert_eq!(problems(&root, false), Vec::<String>::new());
        assert_eq!(problems(&root, true), Vec::<String>::new());
        std::fs::write(root.path().join("core/b.rs"), "/// P01\n#[test]\nfn b() {}")
            .expect("written");
        assert_eq!(problems(&root, true), [stale]);
    }

    #[test]
    fn a_check_writes_nothing() {
        let root = repository("/// P01\n#[test]\nfn a() {}");
        problems(&root, true);
        assert!(!root.path().join("docs/coverage.md").exists());
    }

    #[test]
    fn problems_of_all_kinds_come_together() {
        let root = repository("/// P02\n#[test]\nfn a() {}");
        let found = problems(&root, false);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[1].starts_with("core/a.rs:1: P02 does not exist"),
            "{found:?}"
        );
    }

    #[test]
    fn a_directory_without_promises_is_told_as_such() {
        let root = tempfile::tempdir().expect("a directory for the test");
        let root = root.path().to_owned();
        let failure = run(&Asked { check: true, root }).expect_err("nothing is there");
        assert!(failure.to_string().contains("--root"), "{failure}");
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        let asked = asked(["--chek".to_owned()].into_iter());
        assert!(matches!(asked, Err(Failure::Usage(arg)) if arg == "--chek"));
    }
}
