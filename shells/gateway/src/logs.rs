//! Logs for people, on stderr, filtered by `TIDEGATE_LOG`.

use tracing_subscriber::EnvFilter;

use crate::problem::Problem;

/// The variable that sets what is logged.
const VARIABLE: &str = "TIDEGATE_LOG";

/// What is logged where the variable is not set.
const DEFAULT: &str = "warn";

/// Starts logging.
///
/// # Errors
/// If the variable holds no filter.
pub fn start() -> Result<(), Problem> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let text = if text.is_empty() { DEFAULT } else { &text };
    let filter = EnvFilter::builder().parse(text).map_err(|error| {
        Problem::configuration(format!("{VARIABLE}={text} is no log filter: {error}"))
            .remedy("Expected for example warn, info, or tidegate_server=debug.")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    Ok(())
}
