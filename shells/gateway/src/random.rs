//! Names that nobody else has.

use crate::problem::Problem;

/// A fresh name: 128 bits of the operating system's randomness, in hexadecimal.
///
/// # Errors
/// If the operating system gives none.
pub fn name() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::configuration(format!("the operating system gives no randomness: {error}"))
    })?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}
