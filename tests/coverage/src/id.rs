//! Ids of promises, and how they are read out of running text.
//!
//! Owns the six families and the spelling of their ids. It never knows which promises there
//! are: an id that nobody promised is told apart by `check`.

use std::fmt;

/// A family of promises, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `R12`: a row of the checklist of features.
    Checklist,
    /// `I4`: an invariant, true after every step.
    Invariant,
    /// `L3`: something that must come to pass within a bound.
    Liveness,
    /// `P07`: a property that scenarios and checkers judge.
    Property,
    /// `B-011`: what must happen in a situation that failed elsewhere.
    Bug,
    /// `S-05`: an oddity of a provider's stream.
    Stream,
}

impl Family {
    /// All families, in the order of the table.
    pub const ALL: [Self; 6] = [
        Self::Checklist,
        Self::Invariant,
        Self::Liveness,
        Self::Property,
        Self::Bug,
        Self::Stream,
    ];

    /// The heading of the family's table.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Checklist => "Checklist",
            Self::Invariant => "Invariants",
            Self::Liveness => "Liveness",
            Self::Property => "Properties",
            Self::Bug => "Situations",
            Self::Stream => "Stream oddities",
        }
    }

    /// What an id of the family begins with, and how many digits it has at least.
    const fn spelling(self) -> (&'static str, usize) {
        match self {
            Self::Checklist => ("R", 1),
            Self::Invariant => ("I", 1),
            Self::Liveness => ("L", 1),
            Self::Property => ("P", 2),
            Self::Bug => ("B-", 3),
            Self::Stream => ("S-", 2),
        }
    }
}

/// The id of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Its family.
    pub family: Family,
    /// Its number in the family, from 1.
    pub number: u16,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, digits) = self.family.spelling();
        write!(f, "{prefix}{:0digits$}", self.number)
    }
}

impl Id {
    /// The id that is written so and not otherwise.
    pub fn parse(text: &str) -> Option<Self> {
        match &tokens(text)[..] {
            [only] if only.from == 0 && only.to == text.len() && only.well_spelled => Some(only.id),
            _ => None,
        }
    }
}

/// What a text says about promises.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cited {
    /// The ids that it names, ranges spelled out, in the order of the text.
    pub ids: Vec<Id>,
    /// What looks like an id or a range and is none, with what to write.
    pub wrong: Vec<String>,
}

/// All ids in a text: alone, in lists, as ranges (`R51 to R54`, `I1-I4`, `S-01…S-10`).
pub fn cited(text: &str) -> Cited {
    read(text, &tokens(text))
}

/// The ids in the head of a test's doc line: all up to the first colon behind an id, so
/// that prose which follows (`P11: as P37 asks`) cites nothing.
pub fn cited_in_head(text: &str) -> Cited {
    let mut tokens = tokens(text);
    if let Some(first) = tokens.first() {
        let behind = text[first.to..].match_indices(':');
        let head = behind.map(|(at, _)| first.to + at).find(|&at| {
            let next = text[at + 1..].chars().next();
            next.is_none_or(char::is_whitespace)
        });
        if let Some(end) = head {
            tokens.retain(|token| token.from < end);
        }
    }
    read(text, &tokens)
}

/// Something in a text that is spelled like an id.
struct Token {
    from: usize,
    to: usize,
    id: Id,
    well_spelled: bool,
}

fn read(text: &str, tokens: &[Token]) -> Cited {
    let mut cited = Cited::default();
    let mut open: Option<(Id, usize)> = None; // a token that a range may go on from
    for token in tokens {
        if !token.well_spelled {
            let written = &text[token.from..token.to];
            cited
                .wrong
                .push(format!("{written} is no id, write {}", token.id));
            open = None;
            continue;
        }
        let range = open.filter(|(first, end)| {
            first.family == token.id.family && is_range_sign(&text[*end..token.from])
        });
        match range {
            Some((first, _)) if first.number < token.id.number => {
                let family = first.family;
                let rest = first.number + 1..=token.id.number;
                cited.ids.extend(rest.map(|number| Id { family, number }));
                open = None;
            }
            Some((first, _)) => {
                let range = format!("{first} to {} runs backwards", token.id);
                cited.wrong.push(range);
                open = None;
            }
            None => {
                cited.ids.push(token.id);
                open = Some((token.id, token.to));
            }
        }
    }
    cited
}

fn is_range_sign(between: &str) -> bool {
    matches!(
        between.trim(),
        "to" | "through" | "-" | "–" | "—" | "…" | "..." | ".." | "..="
    )
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let after_id = tokens
            .last()
            .is_some_and(|last| is_range_sign(&text[last.to..at]));
        let token = (after_id || may_begin_behind(&text[..at]))
            .then(|| token_at(text, at))
            .flatten();
        match token {
            Some(token) => {
                at = token.to;
                tokens.push(token);
            }
            None => at += c.len_utf8(),
        }
    }
    tokens
}

/// An id is a word of its own: `xR3`, `a-R3`, `x.R3`, `#P07` and `/P07` hold none.
fn may_begin_behind(before: &str) -> bool {
    let last = before.chars().next_back();
    last.is_none_or(|c| !(c.is_alphanumeric() || "_-.#/".contains(c)) || before.ends_with(".."))
}

fn token_at(text: &str, from: usize) -> Option<Token> {
    let rest = &text[from..];
    let family = Family::ALL
        .into_iter()
        .find(|family| rest.starts_with(family.spelling().0))?;
    let digits_from = family.spelling().0.len();
    let digits = rest[digits_from..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    let length = digits_from + digits;
    if digits == 0 || digits > 3 || !may_end_before(&rest[length..]) {
        return None;
    }
    let number = rest[digits_from..length].parse().ok()?;
    let id = Id { family, number };
    Some(Token {
        from,
        to: from + length,
        id,
        well_spelled: id.to_string() == rest[..length],
    })
}

/// `R2D2`, `R2_x` and `R2-D2` are no ids; `I1-I4` is a range of two.
fn may_end_before(after: &str) -> bool {
    let mut chars = after.chars();
    match chars.next() {
        Some('-') => match chars.next() {
            Some(c) if c.is_alphanumeric() => token_at(&after[1..], 0).is_some(),
            _ => true,
        },
        Some(c) => !(c.is_alphanumeric() || c == '_'),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> String {
        let cited = cited(text);
        assert_eq!(cited.wrong, Vec::<String>::new(), "{text}");
        let ids: Vec<String> = cited.ids.iter().map(Id::to_string).collect();
        ids.join(" ")
    }

    #[test]
    fn lists_are_read() {
        assert_eq!(ids("R51, R52"), "R51 R52");
        assert_eq!(ids("I20, I21 and L8 (P05)."), "I20 I21 L8 P05");
        assert_eq!(ids("B-017 S-05"), "B-017 S-05");
    }

    #[test]
    fn ranges_are_spelled_out() {
        assert_eq!(ids("R51 to R54"), "R51 R52 R53 R54");
        assert_eq!(ids("I1-I4, L1"), "I1 I2 I3 I4 L1");
        assert_eq!(ids("S-01…S-04"), "S-01 S-02 S-03 S-04");
        assert_eq!(ids("S-01-S-03"), "S-01 S-02 S-03");
        assert_eq!(ids("B-009–B-011"), "B-009 B-010 B-011");
        assert_eq!(ids("P01..P03"), "P01 P02 P03");
    }

    #[test]
    fn a_range_has_one_family() {
        assert_eq!(ids("from R3 to L4"), "R3 L4");
    }

    #[test]
    fn what_is_part_of_another_word_is_no_id() {
        for text in [
            "xR3", "R3x", "R_3", "R2-D2", "HTTP07", "p99", "B17", "S3", "a/P07", "#P07", "R1234",
        ] {
            assert_eq!(ids(text), "", "{text}");
        }
    }

    #[test]
    fn a_wrong_spelling_is_told_with_the_right_one() {
        let wrong = |text| cited(text).wrong;
        assert_eq!(wrong("P7"), ["P7 is no id, write P07"]);
        assert_eq!(wrong("B-11"), ["B-11 is no id, write B-011"]);
        assert_eq!(wrong("R012"), ["R012 is no id, write R12"]);
        assert_eq!(wrong("R54 to R51"), ["R54 to R51 runs backwards"]);
    }

    #[test]
    fn only_the_head_of_a_doc_line_cites() {
        let head = |text| cited_in_head(text).ids.len();
        assert_eq!(head("P11, B-012: as P37 would have it"), 2);
        assert_eq!(head("Decisions: peek; L4: see P37"), 1);
        assert_eq!(head("Law 5: one commit when ordered together (R51)."), 1);
        assert_eq!(head("Words about nothing: see below"), 0);
        assert_eq!(head("P08 with core::fmt, R92"), 2);
    }

    #[test]
    fn an_id_is_read_alone() {
        assert_eq!(
            Id::parse("B-011").map(|id| id.to_string()),
            Some("B-011".into())
        );
        for text in ["", "P7", "P07 ", "P07,P08", "D3"] {
            assert_eq!(Id::parse(text), None, "{text}");
        }
    }
}
