//! What the end of a tool call means, in words for the model and for people.
//!
//! Owns the sentences and nothing else: a stored result keeps its end and its output, and
//! whoever shows it puts the sentence behind the output.

use tidegate_core::CallEnd;

/// The sentence that an end of a call means; empty where the output says it all. It stands
/// behind the output, after a blank line, in brackets.
#[must_use]
pub const fn call_end_words(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Ok | CallEnd::Failed => "",
        CallEnd::TimedOut => "This call reached its time limit and was stopped.",
        CallEnd::Cancelled => "This call was stopped together with its run.",
        CallEnd::Unknown => {
            "This call was started, and what became of it is not known. It was not repeated."
        }
        CallEnd::Skipped => {
            "This call was not started: its run ended first, or too many calls were asked for at once."
        }
        CallEnd::NoSuchTool => "This call was not started: no tool of this name is offered.",
        CallEnd::BadArguments => {
            "This call was not started: its arguments are not complete, or do not fit the tool."
        }
        CallEnd::Denied => "This call was not started: a person did not allow it.",
        CallEnd::Expired => "This call was not started: nobody allowed or denied it in time.",
        CallEnd::Stale => {
            "This call was not started: the gateway was interrupted while it waited for a person, so it can't be allowed any more."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law 10, law 12: a call that was never started says so, and only such a one; what is not
    /// known is said not to be known; nothing says a thing twice.
    #[test]
    fn the_words_say_whether_the_call_was_started() {
        use CallEnd::*;
        let ends = [
            Ok,
            Failed,
            TimedOut,
            Cancelled,
            Unknown,
            Skipped,
            NoSuchTool,
            BadArguments,
            Denied,
            Expired,
            Stale,
        ];
        let mut seen = Vec::new();
        for end in ends {
            let words = call_end_words(end);
            assert_eq!(words.contains("not started"), !end.was_started(), "{end:?}");
            assert!(words.is_empty() || !seen.contains(&words), "{end:?}");
            assert_eq!(words.is_empty(), matches!(end, Ok | Failed), "{end:?}");
            seen.push(words);
        }
        assert!(call_end_words(Unknown).contains("not known"));
    }
}
