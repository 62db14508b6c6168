//! Times with units, in and out.
//!
//! Owns the spelling of a time: a number and its unit, several of them joined, and never a
//! bare number (P14). It knows nothing of clocks.

/// The units of time, with their milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("min", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// What to write where a time is wanted.
pub(super) const TIME: &str = "a time with its unit (ms, s, min, h or d), such as 5s or 1h30min";

/// Milliseconds of a time such as `250ms`, `1.5s` or `1h30min`. `None` if it has no unit, is
/// not a whole number of milliseconds, or goes beyond the end of time.
pub(super) fn parse_time(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let whole: u64 = rest.get(..digits)?.parse().ok()?;
        rest = &rest[digits..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            fraction = &after[..end];
            rest = &after[end..];
            if fraction.is_empty() || fraction.len() > 9 {
                return None;
            }
        }
        let letters = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_ascii_lowercase())
                .len();
        let (unit, after) = rest.split_at(letters);
        let &(_, ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum = sum.checked_add(whole.checked_mul(ms)?)?;
        if !fraction.is_empty() {
            let scale = 10_u64.pow(u32::try_from(fraction.len()).ok()?);
            let part = fraction.parse::<u64>().ok()?.checked_mul(ms)?;
            if !part.is_multiple_of(scale) {
                return None;
            }
            sum = sum.checked_add(part / scale)?;
        }
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

/// A time as people write it: `0s`, `250ms`, `120s`, `120.01s`, `48h`.
pub(super) fn show_time(ms: u64) -> String {
    match ms {
        0 => "0s".into(),
        1..1_000 => format!("{ms}ms"),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => {
            let text = format!("{}.{:03}", ms / 1_000, ms % 1_000);
            format!("{}s", text.trim_end_matches('0'))
        }
    }
}

/// Two times, or one if they are the same.
pub(super) fn show_span(from: u64, to: u64) -> String {
    match from == to {
        true => show_time(from),
        false => format!("{}..{}", show_time(from), show_time(to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P14
    #[test]
    fn a_time_has_a_unit_and_is_exact() {
        let right = [
            ("0s", 0),
            ("250ms", 250),
            ("1.5s", 1_500),
            ("1h30min", 5_400_000),
            ("48h", 172_800_000),
            ("2147483648ms", 2_147_483_648),
            ("18446744073709551615ms", u64::MAX),
        ];
        for (text, ms) in right {
            assert_eq!(parse_time(text), Some(ms), "{text}");
        }
        for wrong in [
            "",
            "5",
            "s",
            "5 s",
            "5x",
            "0.0001s",
            "-1s",
            "5s3",
            "1..2s",
            "99999999999999999999s",
            "18446744073709551615s",
        ] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for ms in [
            0,
            1,
            999,
            1_000,
            1_001,
            1_010,
            120_000,
            120_100,
            3_600_000,
            172_800_000,
            u64::MAX,
        ] {
            assert_eq!(parse_time(&show_time(ms)), Some(ms), "{}", show_time(ms));
        }
    }
}
