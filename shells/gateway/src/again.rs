//! What the commands say when a model is asked again, or another one. Pure; that it is, is the
//! gateway's word.

use tidegate_wire::InputStep;

/// What is said before a reply whose shown part no longer counts.
pub const ANEW: &str = "the reply begins anew";

/// Why and when a model is asked again, or which other one; `None`: the step tells something
/// else. `age_ms` is how long ago the step was told: who comes during a wait hears of what is
/// left of it.
#[must_use]
pub fn asking(step: &InputStep, age_ms: u64) -> Option<String> {
    match step {
        InputStep::Retrying {
            attempt,
            max_attempts,
            delay_ms,
            message,
            ..
        } => Some(format!(
            "{message}; asking again in {} s (call {attempt} of {max_attempts})",
            seconds(delay_ms.saturating_sub(age_ms))
        )),
        InputStep::Fallback {
            from, to, message, ..
        } => Some(format!("{from}: {message}; asking {to} instead")),
        _ => None,
    }
}

/// Milliseconds as seconds, to a tenth.
fn seconds(ms: u64) -> String {
    let tenths = ms.saturating_add(50) / 100;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        tenth => format!("{}.{tenth}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_one_line() {
        let again = |delay_ms| InputStep::Retrying {
            attempt: 2,
            max_attempts: 9,
            delay_ms,
            reason: "network".to_owned(),
            message: "it broke".to_owned(),
        };
        let said = |delay_ms| asking(&again(delay_ms), 0).unwrap_or_default();
        assert_eq!(said(1_049), "it broke; asking again in 1 s (call 2 of 9)");
        assert_eq!(said(651), "it broke; asking again in 0.7 s (call 2 of 9)");
        assert!(said(u64::MAX).contains(" s (call 2 of 9)"));
        let late = asking(&again(15_000), 11_000);
        assert_eq!(
            late.as_deref(),
            Some("it broke; asking again in 4 s (call 2 of 9)")
        );
        assert_eq!(asking(&InputStep::Seen, 0), None);
    }

    /// P15: who could not, why, and who is asked now.
    #[test]
    fn another_model_is_told_in_one_line() {
        let another = InputStep::Fallback {
            from: "openai/gpt".to_owned(),
            to: "proxy/x".to_owned(),
            reason: "network".to_owned(),
            message: "it broke".to_owned(),
        };
        let said = asking(&another, 0);
        assert_eq!(
            said.as_deref(),
            Some("openai/gpt: it broke; asking proxy/x instead")
        );
    }
}
