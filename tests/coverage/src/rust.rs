//! Rust sources, as far as citations need them: comments, attributes, strings, words.
//!
//! Reads tokens, not lines, so that Rust within a string is no Rust. It never parses items:
//! a test is a function with a test attribute, and its doc stands right above.

use std::iter::Peekable;
use std::str::Chars;

/// A piece of a source file.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// `/// …`, without the slashes.
    Doc(String),
    /// Any other comment.
    Comment(String),
    /// `#[…]`, without the brackets.
    Attribute(String),
    /// A string literal, escapes as written.
    Text(String),
    /// A word: a name, a keyword, a number.
    Word(String),
    /// Any other sign.
    Sign(char),
}

/// The pieces of a source file, each with the number of the line where it begins.
pub fn pieces(source: &str) -> Vec<(usize, Piece)> {
    let mut reader = Reader {
        chars: source.chars().peekable(),
        line: 1,
    };
    let mut pieces = Vec::new();
    loop {
        while reader.peek().is_some_and(char::is_whitespace) {
            reader.next();
        }
        let line = reader.line;
        let Some(c) = reader.next() else {
            return pieces;
        };
        pieces.push((line, reader.piece(c)));
    }
}

/// A test function.
#[derive(Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// The line of its first doc comment, or else of its attribute.
    pub line: usize,
    /// Its doc comment, in one line.
    pub doc: String,
    /// Whether it does not run unless it is asked for.
    pub ignored: bool,
}

/// The test functions among the pieces, in the order of the file.
pub fn tests(pieces: &[(usize, Piece)]) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut above = Above::default();
    let mut pieces = pieces.iter();
    while let Some((line, piece)) = pieces.next() {
        match piece {
            Piece::Doc(doc) => {
                above.line.get_or_insert(*line);
                above.doc.push(doc.trim());
            }
            Piece::Attribute(attribute) => {
                above.line.get_or_insert(*line);
                above.test |= is_test(attribute);
                above.ignored |= attribute.trim_start().starts_with("ignore");
            }
            Piece::Comment(_) => {}
            Piece::Word(word) if word == "pub" || word == "async" => {}
            Piece::Word(word) if word == "fn" => {
                let above = std::mem::take(&mut above);
                if let (true, Some((line, Piece::Word(name)))) = (above.test, pieces.next()) {
                    tests.push(Test {
                        name: name.clone(),
                        line: above.line.unwrap_or(*line),
                        doc: above.doc.join(" "),
                        ignored: above.ignored,
                    });
                }
            }
            _ => above = Above::default(),
        }
    }
    tests
}

/// What stands above the next item.
#[derive(Default)]
struct Above<'a> {
    line: Option<usize>,
    doc: Vec<&'a str>,
    test: bool,
    ignored: bool,
}

/// `test`, `tokio::test`, `tokio::test(flavor = "…")`.
fn is_test(attribute: &str) -> bool {
    let path = attribute.split('(').next().unwrap_or_default();
    path.rsplit("::").next().is_some_and(|l| l.trim() == "test")
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next();
        self.line += usize::from(c == Some('\n'));
        c
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    /// The character behind the next one.
    fn peek_second(&self) -> Option<char> {
        self.chars.clone().nth(1)
    }

    fn piece(&mut self, first: char) -> Piece {
        match (first, self.peek()) {
            ('/', Some('/')) => self.line_comment(),
            ('/', Some('*')) => self.block_comment(),
            ('#', Some('[')) => Piece::Attribute(self.brackets()),
            ('"', _) => Piece::Text(self.string(None)),
            ('\'', _) => self.quote(),
            (c, _) if c.is_alphanumeric() || c == '_' => self.word(c),
            (c, _) => Piece::Sign(c),
        }
    }

    fn line_comment(&mut self) -> Piece {
        let mut text = String::new();
        while self.peek().is_some_and(|c| c != '\n') {
            text.extend(self.next());
        }
        match text.strip_prefix("//") {
            Some(doc) if !doc.starts_with('/') => Piece::Doc(doc.to_owned()),
            _ => Piece::Comment(text),
        }
    }

    fn block_comment(&mut self) -> Piece {
        let (mut text, mut depth, mut last) = (String::new(), 1, '/');
        self.next();
        while let Some(c) = self.next() {
            match (last, c) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            text.push(c);
            last = c;
        }
        Piece::Comment(text)
    }

    fn brackets(&mut self) -> String {
        let (mut text, mut depth) = (String::new(), 0);
        while let Some(c) = self.next() {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                '"' => {
                    text.push_str(&format!("\"{}\"", self.string(None)));
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            text.push(c);
        }
        text.split_off(usize::from(text.starts_with('[')))
    }

    /// The rest of a string whose opening quote was read. `hashes` is given for a raw one.
    fn string(&mut self, hashes: Option<usize>) -> String {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match (c, hashes) {
                ('\\', None) => {
                    text.push(c);
                    text.extend(self.next());
                    continue;
                }
                ('"', None) => break,
                ('"', Some(count)) => {
                    let ahead = self.chars.clone().take(count);
                    if ahead.filter(|&c| c == '#').count() == count {
                        for _ in 0..count {
                            self.next();
                        }
                        break;
                    }
                }
                _ => {}
            }
            text.push(c);
        }
        text
    }

    /// A character literal, or the sign of a lifetime.
    fn quote(&mut self) -> Piece {
        match self.peek() {
            Some('\\') => {
                self.next();
                self.next();
                while self.next().is_some_and(|c| c != '\'') {}
            }
            Some(_) if self.peek_second() == Some('\'') => {
                self.next();
                self.next();
            }
            _ => {}
        }
        Piece::Sign('\'')
    }

    fn word(&mut self, first: char) -> Piece {
        let mut word = String::from(first);
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            word.extend(self.next());
        }
        match (word.as_str(), self.peek()) {
            ("b" | "c", Some('"')) => {
                self.next();
                Piece::Text(self.string(None))
            }
            ("r" | "br" | "cr", Some('"' | '#')) => self.raw(word),
            _ => Piece::Word(word),
        }
    }

    /// A raw string, or a raw name such as `r#type`.
    fn raw(&mut self, word: String) -> Piece {
        let hashes = self.chars.clone().take_while(|&c| c == '#').count();
        if self.chars.clone().nth(hashes) != Some('"') {
            return Piece::Word(word);
        }
        for _ in 0..=hashes {
            self.next();
        }
        Piece::Text(self.string(Some(hashes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(String, String, bool)> {
        tests(&pieces(source))
            .into_iter()
            .map(|test| (test.name, test.doc, test.ignored))
            .collect()
    }

    fn one(name: &str, doc: &str, ignored: bool) -> Vec<(String, String, bool)> {
        vec![(name.into(), doc.into(), ignored)]
    }

    #[test]
    fn a_test_has_the_doc_above_it() {
        let source = "/// One,\n/// two.\n#[test]\nfn holds() {}";
        assert_eq!(found(source), one("holds", "One, two.", false));
    }

    #[test]
    fn async_tests_and_tests_within_macros_are_tests() {
        let source = "/// A\n#[tokio::test(flavor = \"current_thread\")]\nasync fn waits() {}";
        assert_eq!(found(source), one("waits", "A", false));
        let source =
            "proptest! {\n #![proptest_config(x)]\n /// A\n #[test]\n fn all(n in 0..9) {} }";
        assert_eq!(found(source), one("all", "A", false));
    }

    #[test]
    fn functions_without_the_attribute_are_none() {
        assert_eq!(
            found("/// A\n#[inline]\nfn helper() {}\n#[cfg(test)]\nmod tests {}"),
            []
        );
    }

    #[test]
    fn a_doc_belongs_to_the_next_item_only() {
        let source = "/// A\nstruct S;\n#[test]\nfn holds() {}";
        assert_eq!(found(source), one("holds", "", false));
    }

    #[test]
    fn an_ignored_test_says_so() {
        let source = "/// A\n#[test]\n#[ignore = \"slow\"]\nfn slow() {}";
        assert_eq!(found(source), one("slow", "A", true));
    }

    #[test]
    fn rust_within_strings_and_comments_is_no_rust() {
        for source in [
            r##"let a = "/// A\n#[test]\nfn x() {}";"##,
            "let a = r#\"\n/// A\n#[test]\nfn x() {}\"#;",
            "/* /* */\n#[test]\nfn x() {} */",
            "// #[test] fn x() {}",
        ] {
            assert_eq!(found(source), [], "{source}");
        }
    }

    #[test]
    fn quotes_do_not_confuse() {
        let source = "fn f<'a>(c: &'a char) { c == '\"' || c == '\\'' }\n/// A\n#[test]\nfn x() {}";
        assert_eq!(found(source), one("x", "A", false));
    }

    #[test]
    fn lines_are_counted() {
        let source = "\n\n/// A\n#[test]\nfn x() {}\nconst S: &str = \"P01\";";
        let pieces = pieces(source);
        assert_eq!(tests(&pieces)[0].line, 3);
        assert!(pieces.contains(&(6, Piece::Text("P01".into()))));
    }
}
