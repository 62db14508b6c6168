//! Whether a provider's message says that an allowance of a day or longer is used up.
//!
//! Owns those words. Such an allowance does not come back while a run waits, so it is told apart
//! from a rate (spec 5.2); a message that leaves it open is a rate.

/// Phrases for the allowance of a day or longer that is used up, in lower case, where the words
/// around the period don't follow the rule of [`is_used_up`].
const USED_UP: [&str; 2] = [
    "regain access on",    // the beginning of the next month
    "free-models-per-day", // midnight
];

/// Periods of such an allowance. Limits `per day` are none of them: most of those refill while
/// the day goes by, and what was asked too early is answered minutes later.
const PERIODS: [&str; 3] = ["daily", "weekly", "monthly"];

/// What is allowed in it.
const ALLOWANCES: [&str; 5] = ["limit", "limits", "quota", "allowance", "allocation"];

/// That nothing is left of it.
const GONE: [&str; 5] = ["reached", "exceeded", "exhausted", "depleted", "hit"];

/// The most words from a period to the allowance that it belongs to, as in `daily free tier
/// usage limit`.
const NEAR_WORDS: usize = 4;

/// Whether a message says that the allowance of a day or longer is used up. One part of a
/// sentence must name the period, the allowance close behind it, and that it is gone: a message
/// may name limits that it does not speak of.
pub(crate) fn is_used_up(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let known = USED_UP.iter().any(|phrase| message.contains(phrase));
    let mut parts = message.split(['.', ',', ';', '(', ')', '\n']);
    known || parts.any(says_used_up)
}

fn says_used_up(part: &str) -> bool {
    let words = part.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let gone = words.iter().any(|word| GONE.contains(word))
        || words.windows(2).any(|pair| pair == ["used", "up"]);
    gone && words.iter().enumerate().any(|(at, word)| {
        let mut next = words.iter().skip(at + 1).take(NEAR_WORDS);
        PERIODS.contains(word) && next.any(|word| ALLOWANCES.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use tidegate_core::Marker;

    use crate::read_error_body;

    fn marker(status: u16, body: &str) -> Marker {
        read_error_body(status, None, body.as_bytes(), None).marker
    }

    /// Spec 5.2: the words of long windows, and words of others that are near.
    #[test]
    fn an_allowance_of_a_day_or_longer_that_is_used_up_is_told_from_a_rate() {
        for body in [
            r#"{"error":{"code":"1310","message":"Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-03-06 22:19:54"}}"#,
            r#"{"error":"you (tide) have reached your weekly usage limit, upgrade for higher limits"}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-04-01 at 00:00 UTC."}}"#,
            r#"{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429}}"#,
            r#"{"error":{"message":"Rate limit exceeded: free-models-per-day-high-balance.","type":"rate_limit_error","code":"429"}}"#,
            r#"{"errors":[],"message":"you have used up your daily free allocation of 10,000 neurons"}"#,
            r#"{"error":{"message":"You exceeded your daily quota, please check your billing details","code":"rate_limit_exceeded"}}"#,
            "You've hit your org's monthly usage limit",
            "Daily free tier usage limit reached",
        ] {
            assert_eq!(marker(429, body), Marker::UsageWindow, "{body}");
        }
        for (body, expected) in [
            (
                r#"{"error":{"message":"Rate limit reached for tide-1 on tokens per day (TPD): Limit 100000, Used 99336, Requested 1234. Please try again in 8m13s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
                Marker::RateLimit,
            ),
            (
                r#"{"error":{"message":"Too many requests per minute: limit reached (your daily limit is 1000)","type":"requests"}}"#,
                Marker::RateLimit,
            ),
            (
                r#"{"error":{"message":"Your monthly limit was reached","code":"insufficient_quota"}}"#,
                Marker::Billing,
            ),
            (
                r#"{"error":{"message":"You have exceeded your monthly included credits","code":402}}"#,
                Marker::None,
            ),
            ("The daily maintenance has reached its limit", Marker::None),
            ("Your weekly limit is 1000 requests", Marker::None),
            ("too many requests", Marker::RateLimit),
        ] {
            assert_eq!(marker(429, body), expected, "{body}");
        }
    }
}
