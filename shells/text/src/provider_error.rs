//! What a provider says about its failure: the hint in it, and words fit for people.
//!
//! Owns the tables that turn error bodies into a [`Marker`], and the cleaning of foreign
//! words: bounded, on one line, without the key. It decides nothing: the class and what
//! follows from it are the core's (law 1, spec 5.3).

use serde_json::Value;
use tidegate_core::Marker;

use crate::used_up::is_used_up;

/// The most characters of a provider's words that are passed on.
pub const WORDS_LIMIT_CHARS: usize = 500;

/// A key that is shorter stands for none (`x`, `no`); to cut it out would only garble words.
const SHORTEST_SECRET_BYTES: usize = 4;

const HIDDEN: &str = "[redacted]";

/// Codes and types that providers use, exact and in lower case. They beat all phrases.
const CODES: [(&str, Marker); 26] = [
    ("context_length_exceeded", Marker::ContextOverflow),
    ("exceed_context_size_error", Marker::ContextOverflow),
    ("string_above_max_length", Marker::ContextOverflow),
    ("request_too_large", Marker::ContextOverflow),
    ("insufficient_quota", Marker::Billing),
    ("billing_hard_limit_reached", Marker::Billing),
    ("billing_not_active", Marker::Billing),
    ("billing_error", Marker::Billing),
    ("payment_required", Marker::Billing),
    ("invalid_api_key", Marker::Auth),
    ("authentication_error", Marker::Auth),
    ("permission_error", Marker::Auth),
    ("permission_denied", Marker::Auth),
    ("unauthenticated", Marker::Auth),
    ("unauthorized", Marker::Auth),
    ("model_not_found", Marker::ModelNotFound),
    ("model_not_available", Marker::ModelNotFound),
    ("overloaded_error", Marker::Overloaded),
    ("server_is_overloaded", Marker::Overloaded),
    ("engine_overloaded", Marker::Overloaded),
    ("slow_down", Marker::Overloaded),
    ("rate_limit_exceeded", Marker::RateLimit),
    ("rate_limit_error", Marker::RateLimit),
    ("tokens", Marker::RateLimit),
    ("requests", Marker::RateLimit),
    ("resource_exhausted", Marker::RateLimit),
];

/// Phrases of error messages, in lower case, the more specific first.
const PHRASES: [(&str, Marker); 21] = [
    ("context length", Marker::ContextOverflow),
    ("context window", Marker::ContextOverflow),
    ("context size", Marker::ContextOverflow),
    ("prompt is too long", Marker::ContextOverflow),
    ("too many tokens", Marker::ContextOverflow),
    ("current quota", Marker::Billing),
    ("insufficient credit", Marker::Billing),
    ("insufficient balance", Marker::Billing),
    ("insufficient funds", Marker::Billing),
    ("credit balance", Marker::Billing),
    ("more credits", Marker::Billing),
    ("billing", Marker::Billing),
    ("invalid api key", Marker::Auth),
    ("incorrect api key", Marker::Auth),
    ("no such model", Marker::ModelNotFound),
    ("unknown model", Marker::ModelNotFound),
    ("rate limit", Marker::RateLimit),
    ("too many requests", Marker::RateLimit),
    ("overloaded", Marker::Overloaded),
    ("at capacity", Marker::Overloaded),
    ("server is busy", Marker::Overloaded),
];

/// General words for a request that was not understood; they are said beside more specific
/// ones, so they count last.
const FORMAT_CODES: [&str; 3] = [
    "invalid_request_error",
    "badrequesterror",
    "invalid_argument",
];

/// What an error answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderWords {
    /// The hint that was recognised.
    pub marker: Marker,
    /// The provider's words, clean and at most [`WORDS_LIMIT_CHARS`] long; empty if it said
    /// nothing.
    pub words: String,
}

/// Reads the body of an answer whose `status` is an error. `body` may be cut short; `secret`
/// is the key of the request, which some servers echo.
#[must_use]
pub fn read_error_body(
    status: u16,
    content_type: Option<&str>,
    body: &[u8],
    secret: Option<&str>,
) -> ProviderWords {
    let text = String::from_utf8_lossy(body);
    let said = serde_json::from_slice(body)
        .ok()
        .and_then(|value| Said::in_body(&value));
    if let Some(said) = said {
        return ProviderWords {
            marker: said.marker(),
            words: for_people(&said.message, secret),
        };
    }
    let page = content_type.is_some_and(|kind| kind.contains("html")) || looks_like_a_page(&text);
    if page {
        // A page where the interface should be tells of a wrong address; a page with any
        // other status is a gateway's way to say that status.
        let wrong_place = matches!(status, 404 | 405);
        let marker = if wrong_place {
            Marker::NotAStream
        } else {
            Marker::None
        };
        let title = title(&text).unwrap_or("without a title");
        let words = for_people(&format!("a web page: {title}"), secret);
        return ProviderWords { marker, words };
    }
    let words = for_people(&text, secret);
    ProviderWords {
        marker: phrase(&words),
        words,
    }
}

/// Foreign words made fit for people: the secret and what looks like a key cut out, control
/// and direction characters made spaces, at most [`WORDS_LIMIT_CHARS`] characters. The
/// secret goes first: a cut through its middle would leave a part of it.
#[must_use]
pub fn for_people(words: &str, secret: Option<&str>) -> String {
    let secret = secret.filter(|secret| secret.len() >= SHORTEST_SECRET_BYTES);
    let words = match secret {
        Some(secret) => words.replace(secret, HIDDEN),
        None => words.to_owned(),
    };
    let mut after_bearer = false;
    let mut clean: Vec<&str> = Vec::new();
    for word in words.split(is_blank).filter(|word| !word.is_empty()) {
        let hide = after_bearer || looks_like_a_key(word);
        clean.push(if hide { HIDDEN } else { word });
        after_bearer = word.eq_ignore_ascii_case("bearer");
    }
    let clean = clean.join(" ");
    if clean.chars().count() <= WORDS_LIMIT_CHARS {
        return clean;
    }
    let cut = clean.chars().take(WORDS_LIMIT_CHARS - 1);
    cut.chain(core::iter::once('…')).collect()
}

/// White space, control characters, and characters that turn the direction of text around.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// Keys of the common form `sk-…`, also in quotes or after a colon.
fn looks_like_a_key(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_'))
        .any(|part| part.len() >= 16 && part.starts_with("sk-"))
}

fn looks_like_a_page(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(15).collect();
    let start = start.to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

fn title(page: &str) -> Option<&str> {
    let lower = page.to_ascii_lowercase(); // keeps all byte positions
    let from = lower.find("<title")?;
    let from = from + lower[from..].find('>')? + 1;
    let to = from + lower[from..].find("</title")?;
    Some(page[from..to].trim()).filter(|title| !title.is_empty())
}

fn phrase(message: &str) -> Marker {
    if is_used_up(message) {
        return Marker::UsageWindow;
    }
    let message = message.to_ascii_lowercase();
    let known = PHRASES.iter().find(|(phrase, _)| message.contains(phrase));
    let no_model = message.contains("model")
        && (message.contains("not found") || message.contains("does not exist"));
    match known {
        Some(&(_, marker)) => marker,
        None if no_model => Marker::ModelNotFound,
        None => Marker::None,
    }
}

/// An error as a JSON value says it, before it is cleaned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// A status that stands in the value itself.
    pub(crate) status: Option<u16>,
    /// Its words, as they came.
    pub(crate) message: String,
    codes: Vec<String>,
}

impl Said {
    /// Mere words.
    pub(crate) fn words(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            ..Self::default()
        }
    }

    /// The error in an event of a stream, if it is one: an `error` member, or a value that
    /// calls itself an error or a failed response (S-16, S-17, S-19).
    pub(crate) fn in_event(value: &Value) -> Option<Self> {
        match value.get("error") {
            Some(Value::String(message)) => Some(Self::words(message)),
            Some(error @ Value::Object(_)) => Some(Self::of(error)),
            Some(Value::Null) | None => {
                let named = |key: &str| value.get(key).and_then(Value::as_str);
                match (named("object"), named("type")) {
                    (Some("error"), _) | (_, Some("error")) => Some(Self::of(value)),
                    (_, Some("response.failed")) => {
                        let error = value.pointer("/response/error");
                        Some(error.map_or_else(Self::default, Self::of))
                    }
                    _ => None,
                }
            }
            Some(other) => Some(Self::words(&other.to_string())),
        }
    }

    /// The error in a whole body, where also a bare `message` or `detail` is one.
    fn in_body(value: &Value) -> Option<Self> {
        let value = match value {
            Value::Array(list) => list.first()?, // some services wrap the error in a list
            other => other,
        };
        Self::in_event(value).or_else(|| {
            let said = Self::of(value);
            (!said.message.is_empty()).then_some(said)
        })
    }

    fn of(error: &Value) -> Self {
        let members = ["code", "type", "status"].map(|key| error.get(key));
        let status = members.iter().flatten().find_map(|value| as_status(value));
        let codes = members.iter().flatten().filter_map(|value| value.as_str());
        let message = ["message", "detail", "error_description"]
            .iter()
            .filter_map(|key| error.get(key))
            .find(|value| !value.is_null());
        Self {
            status,
            message: match message {
                Some(Value::String(message)) => message.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            },
            codes: codes.map(str::to_ascii_lowercase).collect(),
        }
    }

    /// The hint in it: an exact code, else a phrase, else a general word.
    pub(crate) fn marker(&self) -> Marker {
        let code = self.codes.iter().find_map(|code| {
            CODES
                .iter()
                .find(|(known, _)| known == code)
                .map(|&(_, marker)| marker)
        });
        let general = || {
            let general = self
                .codes
                .iter()
                .any(|code| FORMAT_CODES.contains(&code.as_str()));
            if general {
                Marker::Format
            } else {
                Marker::None
            }
        };
        match code.unwrap_or_else(|| phrase(&self.message)) {
            Marker::None => general(),
            // The code of a limit does not tell which one; the words may.
            Marker::RateLimit if is_used_up(&self.message) => Marker::UsageWindow,
            marker => marker,
        }
    }
}

/// A number that is an error status, also one written as text.
fn as_status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number)
        .ok()
        .filter(|status| (400..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(status: u16, body: &str) -> ProviderWords {
        read_error_body(
            status,
            Some("application/json"),
            body.as_bytes(),
            Some("sesame-123"),
        )
    }

    fn marker(status: u16, body: &str) -> Marker {
        read(status, body).marker
    }

    /// Spec 5.3
    #[test]
    fn codes_and_phrases_of_known_providers_are_recognised() {
        for (status, body, expected) in [
            (
                429,
                r#"{"error":{"message":"slow","type":"requests","code":"rate_limit_exceeded"}}"#,
                Marker::RateLimit,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Marker::Billing,
            ),
            (
                402,
                r#"{"error":{"message":"This request requires more credits","code":402}}"#,
                Marker::Billing,
            ),
            (
                400,
                r#"{"error":{"message":"m","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                Marker::ContextOverflow,
            ),
            (
                400,
                r#"{"error":{"message":"the request exceeds the available context size","type":"invalid_request_error"}}"#,
                Marker::ContextOverflow,
            ),
            (
                400,
                r#"{"error":{"message":"bad field","type":"invalid_request_error","code":null}}"#,
                Marker::Format,
            ),
            (
                400,
                r#"{"object":"error","message":"bad field","type":"BadRequestError","code":400}"#,
                Marker::Format,
            ),
            (
                401,
                r#"{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Marker::Auth,
            ),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":null}}"#,
                Marker::ModelNotFound,
            ),
            (
                404,
                r#"{"error":"model 'x' not found, try pulling it first"}"#,
                Marker::ModelNotFound,
            ),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Marker::Overloaded,
            ),
            (
                500,
                r#"{"error":{"message":"The server had an error"}}"#,
                Marker::None,
            ),
            (404, r#"{"detail":"Not Found"}"#, Marker::None),
            (503, "", Marker::None),
            (503, "no healthy upstream", Marker::None),
        ] {
            assert_eq!(marker(status, body), expected, "{body}");
        }
        assert_eq!(read(404, r#"{"detail":"Not Found"}"#).words, "Not Found");
        assert_eq!(
            read(422, r#"[{"error":{"message":"in a list"}}]"#).words,
            "in a list"
        );
    }

    #[test]
    fn a_page_is_named_by_its_title() {
        let page = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head>";
        let read = |status| read_error_body(status, None, page, None);
        assert_eq!(read(404).words, "a web page: 404 Not Found");
        assert_eq!(read(404).marker, Marker::NotAStream);
        assert_eq!(
            read(502).marker,
            Marker::None,
            "the status says more than the page"
        );
    }

    #[test]
    fn a_key_that_is_echoed_does_not_get_through() {
        let words = read(401, r#"{"error":{"message":"bad key 'sesame-123' given"}}"#).words;
        assert_eq!(words, "bad key '[redacted]' given");
        assert_eq!(
            read(500, "Authorization: Bearer abc.def").words,
            "Authorization: Bearer [redacted]"
        );
        assert_eq!(for_people("key=sk-0123456789abcdef.", None), HIDDEN);
        assert_eq!(for_people("a risk-free word", None), "a risk-free word");
    }

    #[test]
    fn a_key_across_the_cut_leaves_no_part_of_itself() {
        let words = format!("{}sesame-123", "x".repeat(WORDS_LIMIT_CHARS - 5));
        assert!(!for_people(&words, Some("sesame-123")).contains("sesa"));
    }

    #[test]
    fn control_and_direction_characters_become_spaces() {
        assert_eq!(
            for_people("\x1b[31mred\r\n\u{202E}back\0", None),
            "[31mred back"
        );
    }

    proptest! {
        #[test]
        fn words_are_bounded_and_clean_and_without_the_secret(
            status in 400u16..600,
            body in proptest::collection::vec(any::<u8>(), 0..2000),
            around in ".{0,600}",
        ) {
            let secret = "hunter-two-42";
            let said = read_error_body(status, None, &body, Some(secret));
            let echoed = for_people(&format!("{around}{secret}{around}"), Some(secret));
            for words in [said.words, echoed] {
                prop_assert!(words.chars().count() <= WORDS_LIMIT_CHARS);
                prop_assert!(!words.contains(secret));
                prop_assert!(words.chars().all(|c| !c.is_control()));
            }
        }
    }
}
