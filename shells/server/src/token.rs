//! The gateway's secret: compared in constant time, never shown.

use std::fmt;

use subtle::ConstantTimeEq;
use tidegate_wire::{Auth, AuthProblem};

/// The secret that makes a client the gateway's operator.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl Token {
    /// Wraps a secret.
    ///
    /// # Panics
    /// If it is empty: an empty secret would let everybody in.
    #[must_use]
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        let secret = secret.into();
        assert!(
            !secret.is_empty(),
            "the gateway's token is not empty: whoever made it checked that"
        );
        Self(secret)
    }

    /// Whether a client proved itself. The token is good in either field; both are always
    /// compared, so that the time says nothing about which one it was.
    ///
    /// # Errors
    /// It is not there, or another one.
    pub(crate) fn check(&self, auth: &Auth) -> Result<(), AuthProblem> {
        let sent = [&auth.token, &auth.password]
            .map(|secret| secret.as_ref().map(|s| s.reveal().as_bytes()));
        if sent
            .iter()
            .all(|secret| secret.is_none_or(<[u8]>::is_empty))
        {
            return Err(AuthProblem::Missing);
        }
        let [token, password] = sent.map(|secret| self.0.ct_eq(secret.unwrap_or_default()));
        if bool::from(token | password) {
            Ok(())
        } else {
            Err(AuthProblem::Mismatch)
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_wire::Secret;

    fn auth(token: Option<&str>, password: Option<&str>) -> Auth {
        Auth {
            token: token.map(Secret::new),
            password: password.map(Secret::new),
        }
    }

    /// The token is good in `auth.token` and in `auth.password`, and nowhere else
    #[test]
    fn only_the_token_opens() {
        let token = Token::new("secret");
        assert_eq!(token.check(&auth(Some("secret"), None)), Ok(()));
        assert_eq!(token.check(&auth(None, Some("secret"))), Ok(()));
        assert_eq!(token.check(&auth(Some("other"), Some("secret"))), Ok(()));
        for wrong in ["secre", "secret ", "Secret", "secrets"] {
            assert_eq!(
                token.check(&auth(Some(wrong), None)),
                Err(AuthProblem::Mismatch),
                "{wrong}"
            );
        }
        assert_eq!(token.check(&auth(None, None)), Err(AuthProblem::Missing));
        assert_eq!(
            token.check(&auth(Some(""), Some(""))),
            Err(AuthProblem::Missing)
        );
    }

    /// secrets never reach a log
    #[test]
    fn a_token_does_not_show_itself() {
        let shown = format!(
            "{:?} {:?}",
            Token::new("hidden"),
            auth(Some("hidden"), None)
        );
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
