//! When a provider wants to be asked again, read from the headers of its answer (B-057).
//!
//! Owns the forms in which that is said: milliseconds, seconds and a date. Every value has a
//! reading, and what can't be read counts as unsaid. Whether the wait is kept is decided in the
//! core.

use std::time::UNIX_EPOCH;

use tidegate_core::{RetryAfter, Wall};

/// Decimals of a second that make a millisecond.
const SECOND_PLACES: usize = 3;

/// Reads `retry-after-ms` and `retry-after`, each if the answer has it. The first is the finer
/// one and wins if it can be read. A part of a millisecond counts as a whole one, so that nobody
/// is asked before the time; a date that has passed at `now` is no wait.
#[must_use]
pub fn read_retry_after(millis: Option<&[u8]>, value: Option<&[u8]>, now: Wall) -> RetryAfter {
    let value = value.map(<[u8]>::trim_ascii);
    millis
        .and_then(|millis| decimal(millis.trim_ascii(), 0))
        .or_else(|| decimal(value?, SECOND_PLACES))
        .or_else(|| date(value?, now))
        .unwrap_or_default()
}

/// A number without a sign, moved by so many decimal places; `None` if it is none.
fn decimal(text: &[u8], places: usize) -> Option<RetryAfter> {
    let mut parts = text.splitn(2, |&byte| byte == b'.');
    let whole = parts.next()?;
    let fraction = parts.next();
    let is_number = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_number(whole) || fraction.is_some_and(|fraction| !is_number(fraction)) {
        return None;
    }
    let fraction = fraction.unwrap_or_default();
    let (kept, rest) = fraction.split_at(places.min(fraction.len()));
    let zeros = core::iter::repeat_n(&b'0', places - kept.len());
    let ms = whole
        .iter()
        .chain(kept)
        .chain(zeros)
        .try_fold(0u64, |ms, digit| {
            ms.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        });
    let more = rest.iter().any(|&digit| digit != b'0');
    let ms = ms.and_then(|ms| ms.checked_add(u64::from(more)));
    Some(ms.map_or(RetryAfter::Unrepresentable, RetryAfter::Ms))
}

/// A date in one of the three forms of HTTP; `None` if it is none.
fn date(text: &[u8], now: Wall) -> Option<RetryAfter> {
    let date = httpdate::parse_http_date(core::str::from_utf8(text).ok()?).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    let ms = u64::try_from(since.as_millis()).ok()?;
    Some(RetryAfter::Ms(ms.saturating_sub(now.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use RetryAfter::{Ms, Unrepresentable, Unsaid};
    use proptest::prelude::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, the example of HTTP.
    const DATE: u64 = 784_111_777_000;

    fn after(value: &str) -> RetryAfter {
        read_retry_after(None, Some(value.as_bytes()), Wall(DATE - 2_000))
    }

    /// B-057
    #[test]
    fn seconds_of_any_form_have_a_reading() {
        for (value, expected) in [
            ("2", Ms(2_000)),
            (" 2\t", Ms(2_000)),
            ("0", Ms(0)),
            ("0.0", Ms(0)),
            ("1.5", Ms(1_500)),
            ("0.0001", Ms(1)),
            ("2.0000", Ms(2_000)),
            ("0002", Ms(2_000)),
            ("86400", Ms(86_400_000)),
            ("18446744073709551.615", Ms(u64::MAX)),
            ("18446744073709551.616", Unrepresentable),
            ("18446744073709551.6150001", Unrepresentable),
            ("18446744073709551616", Unrepresentable),
            ("999999999999999999999999999999", Unrepresentable),
            ("-1", Unsaid),
            ("-0", Unsaid),
            ("+1", Unsaid),
            ("1e3", Unsaid),
            ("1.", Unsaid),
            (".5", Unsaid),
            ("1.2.3", Unsaid),
            ("1,5", Unsaid),
            ("5s", Unsaid),
            ("soon", Unsaid),
            ("inf", Unsaid),
            ("NaN", Unsaid),
            ("", Unsaid),
            (" ", Unsaid),
            ("\u{0662}", Unsaid),
        ] {
            assert_eq!(after(value), expected, "{value:?}");
        }
        assert_eq!(read_retry_after(None, None, Wall(0)), Unsaid);
        assert_eq!(read_retry_after(None, Some(b"\xFF\x00"), Wall(0)), Unsaid);
    }

    /// B-057: the time to a date is taken from the caller's clock.
    #[test]
    fn a_date_is_the_time_until_it() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(after(date), Ms(2_000), "{date}");
        }
        let at = |now| read_retry_after(None, Some(b"Sun, 06 Nov 1994 08:49:37 GMT"), Wall(now));
        assert_eq!(at(DATE), Ms(0));
        assert_eq!(at(DATE + 1), Ms(0), "it has passed");
        assert_eq!(at(u64::MAX), Ms(0));
        assert_eq!(at(0), Ms(DATE));
        for none in [
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 0000 08:49:37 GMT",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(after(none), Unsaid, "{none}");
        }
    }

    /// B-057
    #[test]
    fn milliseconds_win_if_they_can_be_read() {
        let read = |millis: &str, value: &str| {
            read_retry_after(Some(millis.as_bytes()), Some(value.as_bytes()), Wall(0))
        };
        assert_eq!(read("250", "2"), Ms(250));
        assert_eq!(read("0", "2"), Ms(0));
        assert_eq!(read("250.1", "2"), Ms(251));
        assert_eq!(read("18446744073709551615", "2"), Ms(u64::MAX));
        assert_eq!(read("18446744073709551615.1", "2"), Unrepresentable);
        assert_eq!(read("18446744073709551616", "2"), Unrepresentable);
        assert_eq!(read("-250", "2"), Ms(2_000));
        assert_eq!(read("soon", "2"), Ms(2_000));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT", "soon"), Unsaid);
        assert_eq!(read_retry_after(Some(b"7"), None, Wall(0)), Ms(7));
    }

    /// A header's value: any bytes, or something near to what is understood.
    fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
        let near = prop::sample::select(vec![
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "18446744073709551.615",
        ]);
        let near = (near, any::<prop::sample::Index>(), any::<u8>()).prop_map(
            |(text, at, byte): (&str, prop::sample::Index, u8)| {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at.index(text.len())] = byte;
                bytes
            },
        );
        let value = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            "[0-9. +-]{0,40}".prop_map(String::into_bytes),
            near,
        ];
        prop::option::of(value)
    }

    proptest! {
        /// B-057: parse is total, and what is read does not depend on what it is wrapped in.
        #[test]
        fn any_headers_have_a_reading(millis in value(), after in value(), now in any::<u64>()) {
            let read = |millis: &Option<Vec<u8>>, after: &Option<Vec<u8>>| {
                read_retry_after(millis.as_deref(), after.as_deref(), Wall(now))
            };
            let said = read(&millis, &after);
            let wrapped = |value: &Option<Vec<u8>>| {
                value.as_ref().map(|value| [b" \t", &value[..], b" "].concat())
            };
            prop_assert_eq!(read(&wrapped(&millis), &wrapped(&after)), said);
            if read(&millis, &None) != RetryAfter::Unsaid {
                prop_assert_eq!(read(&millis, &None), said);
            }
        }

        /// B-057: never sooner than asked, and never later by a millisecond.
        #[test]
        fn seconds_are_rounded_up(whole in 0u64..1_000_000, nanos in 0u32..1_000_000_000) {
            let asked = u128::from(whole) * 1_000_000_000 + u128::from(nanos);
            let RetryAfter::Ms(ms) = after(&format!("{whole}.{nanos:09}")) else {
                return Err(TestCaseError::fail("a number is said"));
            };
            let told = u128::from(ms) * 1_000_000;
            prop_assert!(told >= asked && told - asked < 1_000_000);
        }
    }
}
