//! What reproduces a run: a seed or a list of choices, and what was left of it.
//!
//! Owns the short string and the file in which a failure travels. Both name their format, and
//! one of another format is refused: a choice means what the world that drew it asked.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use tidegate_core::Digest;

use crate::choices::{Choices, Recorded, Seeded};
use crate::fault::Fault;

/// The format of recordings. Raised with every change of what the world draws, in which order
/// or from what, and with every change of the string itself.
pub const RECORDING_VERSION: u32 = 7;

/// What every recording begins with; the version and a hyphen follow.
const PREFIX: &str = "tg";
/// The digits of the string: no i, l, o, u, so that it survives being read aloud.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The longest line of a file.
const LINE: usize = 76;

/// Where the choices of a run come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A seed.
    Seed(u64),
    /// Its choices, one by one; all further ones are 0.
    Choices(Vec<u64>),
}

impl Source {
    pub(crate) fn choices(&self) -> Box<dyn Choices> {
        match self {
            Self::Seed(seed) => Box::new(Seeded::new(*seed)),
            Self::Choices(list) => Box::new(Recorded::new(list.clone())),
        }
    }
}

/// What is kept of the log of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The entries that are kept, by index, in order.
    pub kept: Vec<u32>,
    /// Entries in whose place, or before it, the store and the model do all that they owe.
    pub calms: Vec<u32>,
    /// The same for the store alone.
    pub served: Vec<u32>,
    /// No entry comes later after the one before it than this, in milliseconds.
    pub gap_ms: u64,
    /// Whether the configuration is the default one.
    pub plain: bool,
}

/// A run that can be run again. Its `Display` is the short string; [`FromStr`] reads that
/// string and the file's text.
///
/// ```
/// use tidegate_sim::{Recording, Source};
///
/// let recording = Recording { source: Source::Seed(4711), fault: None, cut: None };
/// assert_eq!(recording.to_string().parse(), Ok(recording));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Where its choices come from.
    pub source: Source,
    /// The fault that was planted.
    pub fault: Option<Fault>,
    /// What is kept of its log; `None`: the run is the world's and not a log's.
    pub cut: Option<Cut>,
}

/// Why a text is no recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingError {
    /// It does not begin like one.
    NotOne,
    /// It is of another format.
    OtherVersion {
        /// The one that was found.
        found: u32,
    },
    /// It was cut off or altered.
    Damaged,
    /// It plants a fault that this build does not know.
    UnknownFault(String),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOne => write!(
                f,
                "this is no recording: one begins with {PREFIX}{RECORDING_VERSION}-"
            ),
            Self::OtherVersion { found } => write!(
                f,
                "the recording is of format {found}, this build reads format \
                 {RECORDING_VERSION}: replay it with the build that made it"
            ),
            Self::Damaged => f.write_str(
                "the recording is damaged: copy it whole, from the prefix to the last digit",
            ),
            Self::UnknownFault(name) => write!(
                f,
                "the recording plants the fault \"{name}\", which this build does not know"
            ),
        }
    }
}

impl std::error::Error for RecordingError {}

impl Recording {
    /// The text of a file: what it is, and the string over several lines.
    #[must_use]
    pub fn to_file(&self) -> String {
        let mut text = format!(
            "# A recorded run of the simulator, format {RECORDING_VERSION}.\n\
             # Again: tidegate sim replay --file THIS_FILE\n"
        );
        let string = self.to_string();
        let mut rest = string.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let name = self.fault.map_or("", Fault::name);
        put(&mut out, name.len() as u64);
        out.extend(name.bytes());
        match &self.source {
            Source::Seed(seed) => {
                put(&mut out, 0);
                put(&mut out, *seed);
            }
            Source::Choices(list) => {
                put(&mut out, 1);
                put_list(&mut out, list);
            }
        }
        match &self.cut {
            None => put(&mut out, 0),
            Some(cut) => {
                put(&mut out, 1 + u64::from(cut.plain));
                put(&mut out, cut.gap_ms);
                put_indexes(&mut out, &cut.kept);
                put_indexes(&mut out, &cut.calms);
                put_indexes(&mut out, &cut.served);
            }
        }
        let sum = checksum(&out);
        out.extend(sum);
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Result<Self, RecordingError>> {
        let (mut rest, sum) = bytes.split_last_chunk::<2>()?;
        if checksum(rest) != *sum {
            return None;
        }
        let rest = &mut rest;
        let length = usize::try_from(take(rest)?).ok()?;
        let (name, after) = rest.split_at_checked(length)?;
        *rest = after;
        let name = std::str::from_utf8(name).ok()?;
        let fault = match (name, Fault::from_name(name)) {
            ("", _) => None,
            (_, Some(fault)) => Some(fault),
            _ => return Some(Err(RecordingError::UnknownFault(name.to_owned()))),
        };
        let source = match take(rest)? {
            0 => Source::Seed(take(rest)?),
            _ => Source::Choices(take_list(rest)?),
        };
        let cut = match take(rest)? {
            0 => None,
            plain => Some(Cut {
                plain: plain == 2,
                gap_ms: take(rest)?,
                kept: take_indexes(rest)?,
                calms: take_indexes(rest)?,
                served: take_indexes(rest)?,
            }),
        };
        let recording = Self { source, fault, cut };
        rest.is_empty().then_some(Ok(recording))
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{RECORDING_VERSION}-")?;
        let (mut bits, mut have) = (0u32, 0);
        for byte in self.bytes().into_iter().chain([0]) {
            (bits, have) = (bits << 8 | u32::from(byte), have + 8);
            while have >= 5 {
                have -= 5;
                let digit = DIGITS[(bits >> have & 31) as usize];
                write!(f, "{}", char::from(digit))?;
            }
        }
        Ok(())
    }
}

impl FromStr for Recording {
    type Err = RecordingError;

    fn from_str(text: &str) -> Result<Self, RecordingError> {
        let lines = text.lines().map(str::trim);
        let string: String = lines.filter(|line| !line.starts_with('#')).collect();
        let (version, digits) = string
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once('-'))
            .ok_or(RecordingError::NotOne)?;
        let found: u32 = version.parse().map_err(|_| RecordingError::NotOne)?;
        if found != RECORDING_VERSION {
            return Err(RecordingError::OtherVersion { found });
        }
        let (mut bytes, mut bits, mut have) = (Vec::new(), 0u32, 0);
        for digit in digits.bytes() {
            let value = DIGITS.iter().position(|d| *d == digit.to_ascii_lowercase());
            let value = value.and_then(|v| u32::try_from(v).ok());
            (bits, have) = (bits << 5 | value.ok_or(RecordingError::Damaged)?, have + 5);
            if have >= 8 {
                have -= 8;
                bytes.push(u8::try_from(bits >> have & 255).unwrap_or_default());
            }
        }
        // The digits are whole only with a last byte of padding, or without it.
        let padded = bytes.split_last().map_or(&[][..], |(_, rest)| rest);
        Self::from_bytes(&bytes)
            .or_else(|| Self::from_bytes(padded))
            .ok_or(RecordingError::Damaged)?
    }
}

fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut digest = Digest::new();
    digest.write(bytes);
    let [a, b, ..] = digest.finish().to_le_bytes();
    [a, b]
}

/// A number in groups of seven bits, the lowest first.
fn put(out: &mut Vec<u8>, number: u64) {
    put_wide(out, number.into());
}

fn put_wide(out: &mut Vec<u8>, mut number: u128) {
    loop {
        let low = u8::try_from(number & 127).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 128);
    }
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    u64::try_from(take_wide(bytes)?).ok()
}

fn take_wide(bytes: &mut &[u8]) -> Option<u128> {
    let mut number = 0u128;
    for group in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u128::from(byte & 127) << (7 * group);
        if byte < 128 {
            return Some(number);
        }
    }
    None
}

/// Numbers as they are, zeros as how many there are: what a shrinker leaves is mostly zeros.
fn put_list(out: &mut Vec<u8>, list: &[u64]) {
    let mut rest = match list.iter().rposition(|&n| n > 0) {
        Some(last) => &list[..=last],
        None => &[],
    };
    while let Some(&first) = rest.first() {
        let zeros = rest.iter().take_while(|&&n| n == 0).count();
        put_wide(
            out,
            match zeros {
                0 => u128::from(first) << 1,
                _ => (zeros as u128) << 1 | 1,
            },
        );
        rest = &rest[zeros.max(1)..];
    }
    put_wide(out, 1); // no zeros at all: the end
}

fn take_list(bytes: &mut &[u8]) -> Option<Vec<u64>> {
    /// Far more than a run draws.
    const MOST: usize = 10_000_000;
    let mut list = Vec::new();
    loop {
        let token = take_wide(bytes)?;
        let value = u64::try_from(token >> 1).ok()?;
        match (token & 1, value) {
            (1, 0) => return Some(list),
            (1, zeros) => {
                let length = list.len().checked_add(usize::try_from(zeros).ok()?)?;
                if length > MOST {
                    return None;
                }
                list.resize(length, 0);
            }
            _ => list.push(value),
        }
    }
}

/// Ascending numbers as pairs: how many are left out, how many follow.
fn put_indexes(out: &mut Vec<u8>, indexes: &[u32]) {
    let mut next = 0;
    let mut rest = indexes;
    while let Some(&first) = rest.first() {
        let run = rest
            .iter()
            .zip(first..)
            .take_while(|&(&index, n)| index == n)
            .count();
        put(out, run as u64);
        put(out, u64::from(first - next));
        next = rest[run - 1] + 1;
        rest = &rest[run..];
    }
    put(out, 0);
}

fn take_indexes(bytes: &mut &[u8]) -> Option<Vec<u32>> {
    let (mut indexes, mut next) = (Vec::new(), 0u32);
    loop {
        let run = u32::try_from(take(bytes)?).ok()?;
        if run == 0 {
            return Some(indexes);
        }
        let first = next.checked_add(u32::try_from(take(bytes)?).ok()?)?;
        next = first.checked_add(run)?;
        if run > 10_000_000 {
            return None;
        }
        indexes.extend(first..next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(seed: u64) -> Recording {
        Recording {
            source: Source::Seed(seed),
            fault: None,
            cut: None,
        }
    }

    fn cut(kept: Vec<u32>) -> Recording {
        Recording {
            source: Source::Seed(4711),
            fault: Some(Fault::LateAppend),
            cut: Some(Cut {
                calms: kept.iter().step_by(2).copied().collect(),
                served: kept.iter().skip(1).copied().collect(),
                kept,
                gap_ms: 1_000,
                plain: true,
            }),
        }
    }

    #[test]
    fn a_recording_reads_back_from_its_string_and_from_its_file() {
        let lists = [vec![], vec![1, 0, 0, 0, 7, u64::MAX, 0, 3], vec![0; 40]];
        let mut all: Vec<Recording> = vec![seed(0), seed(u64::MAX), cut(vec![]), cut(vec![0, 1])];
        all.push(cut(vec![3, 4, 5, 900, 1_000, 1_001]));
        all.extend(lists.into_iter().map(|list| Recording {
            source: Source::Choices(list),
            fault: None,
            cut: None,
        }));
        for recording in all {
            let string = recording.to_string();
            let mut read: Recording = string.parse().expect("its own string");
            if let (Source::Choices(list), Source::Choices(wrote)) =
                (&mut read.source, &recording.source)
            {
                list.resize(wrote.len(), 0); // zeros at the end say nothing
            }
            assert_eq!(read, recording, "{string}");
            assert_eq!(recording.to_file().parse(), string.parse::<Recording>());
            assert_eq!(
                string
                    .to_uppercase()
                    .replace("TG", "tg")
                    .parse::<Recording>(),
                string.parse()
            );
        }
        assert!(cut(vec![3, 4, 5, 900, 1_000]).to_string().len() < 80);
    }

    #[test]
    fn a_recording_of_another_format_is_refused_with_both_versions() {
        let other = seed(7).to_string().replace("tg7-", "tg9-");
        let error = other.parse::<Recording>().expect_err("another format");
        assert_eq!(error, RecordingError::OtherVersion { found: 9 });
        let said = error.to_string();
        assert!(
            said.contains("format 9") && said.contains("format 7"),
            "{said}"
        );
    }

    #[test]
    fn what_is_no_recording_or_a_damaged_one_is_refused() {
        for text in ["", "4711", "tg-", "tgx-00", "# tg7-00"] {
            assert_eq!(
                text.parse::<Recording>(),
                Err(RecordingError::NotOne),
                "{text}"
            );
        }
        let string = cut(vec![1, 2, 9]).to_string();
        for end in 4..string.len() - 2 {
            assert_eq!(
                string[..end].parse::<Recording>(),
                Err(RecordingError::Damaged)
            );
        }
        let altered = string.replace("tg7-", "tg7-z");
        assert_eq!(altered.parse::<Recording>(), Err(RecordingError::Damaged));
    }
}
