//! What went wrong with a run, in sentences for people and words for programs. Pure, and the
//! only place where they stand.

use tidegate_core::{DropPolicy, ErrorClass, Failure, Limit, Outcome};

/// What went wrong, in a sentence that names the class and repeats the provider's own words.
/// `None` for an answer.
pub(crate) fn sentence(outcome: Outcome, detail: Option<&str>) -> Option<String> {
    Some(match outcome {
        Outcome::Completed => return None,
        Outcome::Failed(failure) => failure_sentence(failure, detail),
        Outcome::TimedOut { limit, .. } => format!("the run timed out: {}", limit_words(limit)),
        Outcome::Cancelled { .. } => "aborted".to_owned(),
        Outcome::Superseded => "superseded by a newer writer of the session".to_owned(),
        Outcome::Dropped { by } => dropped_sentence(by).to_owned(),
    })
}

/// What went wrong with a call that is made again: of the run, nothing is decided.
pub(crate) fn of_call(outcome: Outcome) -> String {
    match outcome {
        Outcome::TimedOut { limit, .. } => limit_words(limit).to_owned(),
        other => sentence(other, None).unwrap_or_default(),
    }
}

const fn dropped_sentence(by: DropPolicy) -> &'static str {
    match by {
        DropPolicy::Old => "dropped: the session's queue was full and this message was the oldest",
        DropPolicy::Summarize => {
            "dropped: the session's queue was full and this message was the oldest; the model is told its first words"
        }
        DropPolicy::New => "dropped: the session's queue was full when this message came",
    }
}

const fn limit_words(limit: Limit) -> &'static str {
    match limit {
        Limit::Budget => "it used up its own time limit",
        Limit::FirstEvent => {
            "the model provider took the request and sent nothing within the first-event limit"
        }
        Limit::Idle => "the model's stream made no progress within the idle limit",
        Limit::Lane => "it made no progress within the limit of its lane",
    }
}

fn failure_sentence(failure: Failure, detail: Option<&str>) -> String {
    let said = detail.map(|words| format!(": {words}")).unwrap_or_default();
    match failure {
        Failure::Provider { class, status } => {
            let status = status
                .map(|code| format!(" (HTTP {code})"))
                .unwrap_or_default();
            format!("{}{status}{said}", class_sentence(class))
        }
        Failure::Incomplete => {
            format!("the model's stream ended before the model had finished{said}")
        }
        Failure::ReplyTooLarge => {
            format!("the reply grew beyond the byte limit of a run{said}")
        }
        Failure::TooManyRounds => {
            format!("the model asked for tool calls more often than a run may go round{said}")
        }
    }
}

const fn class_sentence(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Auth => "the model provider refused the credentials",
        ErrorClass::Format => "the model provider did not understand the request",
        ErrorClass::RateLimit => "the model provider limits the rate of requests",
        ErrorClass::Overloaded => "the model provider is overloaded",
        ErrorClass::Billing => "the model provider asks for payment",
        ErrorClass::ServerError => "the model provider failed",
        ErrorClass::Timeout => "the model provider gave up waiting",
        ErrorClass::TlsCertificate => "the model provider's TLS handshake or certificate failed",
        ErrorClass::ContextOverflow => "the prompt does not fit the model's window",
        ErrorClass::ModelNotFound => "the model provider has no such model",
        ErrorClass::Network => "the model provider can't be reached, or the connection to it broke",
        ErrorClass::Protocol => "the model provider's answer is no model stream",
        ErrorClass::Unknown => "the model provider failed in a way that is not known",
    }
}

/// What went wrong with a call, for programs.
pub(crate) const fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed(failure) => class_word(failure),
        Outcome::TimedOut { .. } => "timeout",
        Outcome::Completed
        | Outcome::Cancelled { .. }
        | Outcome::Superseded
        | Outcome::Dropped { .. } => "unknown",
    }
}

/// The class of a failure, for programs.
pub(crate) const fn class_word(failure: Failure) -> &'static str {
    match failure {
        Failure::Incomplete => "incomplete",
        Failure::ReplyTooLarge => "reply_too_large",
        Failure::TooManyRounds => "too_many_rounds",
        Failure::Provider { class, .. } => match class {
            ErrorClass::Auth => "auth",
            ErrorClass::Format => "format",
            ErrorClass::RateLimit => "rate_limit",
            ErrorClass::Overloaded => "overloaded",
            ErrorClass::Billing => "billing",
            ErrorClass::ServerError => "server_error",
            ErrorClass::Timeout => "timeout",
            ErrorClass::TlsCertificate => "tls_certificate",
            ErrorClass::ContextOverflow => "context_overflow",
            ErrorClass::ModelNotFound => "model_not_found",
            ErrorClass::Network => "network",
            ErrorClass::Protocol => "protocol",
            ErrorClass::Unknown => "unknown",
        },
    }
}
