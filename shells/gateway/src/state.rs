//! What client commands read of a state directory: the token, and nothing else.

use std::path::Path;

use tidegate_store::{StateDir, TokenError};
use tidegate_wire::Secret;

use crate::problem::Problem;

/// The token that the gateway of this directory keeps; `None` if it keeps none yet.
///
/// # Errors
/// If it cannot be read.
pub fn kept_token(dir: &Path) -> Result<Option<Secret>, Problem> {
    match StateDir::read_token(dir) {
        Ok(token) => Ok(Some(Secret::new(token.reveal()))),
        Err(TokenError::Missing { .. }) => Ok(None),
        Err(error) => Err(Problem::configuration(error.to_string())),
    }
}
