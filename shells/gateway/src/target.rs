//! Which gateway a client command talks to, and the token that it shows.
//!
//! A flag wins over its variable (clap sees to that), both over the configuration, and that
//! over the token file. A token that was not named is shown to a gateway on this machine only:
//! `--url` must not carry a secret away that nobody chose to send.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tidegate_wire::Secret;
use tokio_tungstenite::tungstenite::http::Uri;

use crate::cli::{DEFAULT_PORT, StateArgs, TargetArgs};
use crate::config::ClientFile;
use crate::problem::Problem;

/// A gateway's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Address {
    /// `host:port`, as one writes it.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Whether it is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// A gateway and how to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// What to show it, if anything was found.
    pub token: Option<Secret>,
    /// The state directory that was looked at.
    pub state_dir: PathBuf,
}

impl Target {
    /// Finds it from the command line. `kept` reads the token of a state directory.
    ///
    /// # Errors
    /// If the address is none, or the token file cannot be read.
    pub fn resolve(
        args: &TargetArgs,
        kept: impl FnOnce(&Path) -> Result<Option<Secret>, Problem>,
    ) -> Result<Self, Problem> {
        let address = match &args.url {
            Some(url) => parse(url)?,
            None => Address {
                host: "127.0.0.1".into(),
                port: match args.port {
                    Some(port) => port,
                    None => ClientFile::read(&args.state)?
                        .port()?
                        .unwrap_or(DEFAULT_PORT),
                },
            },
        };
        let state_dir = state_dir(&args.state)?;
        let token = match &args.token {
            Some(token) => Some(token.clone()),
            None if address.is_loopback() => match ClientFile::read(&args.state)?.token()? {
                Some(own) => Some(own),
                None => kept(&state_dir)?,
            },
            None => None,
        };
        Ok(Self {
            address,
            token,
            state_dir,
        })
    }
}

/// The state directory that the command line names, or `~/.tidegate`.
///
/// # Errors
/// If none is named and there is no home directory.
pub fn state_dir(args: &StateArgs) -> Result<PathBuf, Problem> {
    if let Some(dir) = &args.state_dir {
        return Ok(dir.clone());
    }
    match std::env::home_dir() {
        Some(home) if !home.as_os_str().is_empty() => Ok(home.join(".tidegate")),
        _ => Err(
            Problem::configuration("there is no home directory to keep the state in")
                .remedy("Name a directory with --state-dir or TIDEGATE_STATE_DIR."),
        ),
    }
}

fn parse(url: &str) -> Result<Address, Problem> {
    let wrong = |why: &str| {
        Problem::configuration(format!(
            "--url {url} is not the address of a gateway: {why}"
        ))
        .remedy("Expected ws://HOST:PORT, for example ws://127.0.0.1:18789.")
    };
    let uri: Uri = url.parse().map_err(|_| wrong("it is not a URL"))?;
    match uri.scheme_str() {
        Some("ws" | "http") => {}
        Some("wss" | "https") => {
            return Err(wrong(
                "TLS is not spoken here; use a tunnel, for example ssh -L",
            ));
        }
        _ => return Err(wrong("it does not begin with ws://")),
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong("it has a path, and a gateway answers at /"));
    }
    let host = uri
        .host()
        .filter(|host| !host.is_empty())
        .ok_or_else(|| wrong("it has no host"))?;
    Ok(Address {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: uri.port_u16().unwrap_or(DEFAULT_PORT),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(url: Option<&str>, token: Option<&str>) -> TargetArgs {
        TargetArgs {
            state: StateArgs {
                state_dir: Some("/state".into()),
                config: None,
            },
            port: Some(1),
            url: url.map(Into::into),
            token: token.map(Secret::new),
        }
    }

    fn file(dir: &Path) -> Result<Option<Secret>, Problem> {
        assert_eq!(dir, Path::new("/state"));
        Ok(Some(Secret::new("file")))
    }

    #[test]
    fn a_named_token_wins_over_the_file() {
        let named = Target::resolve(&args(None, Some("named")), file).unwrap();
        assert_eq!(named.token, Some(Secret::new("named")));
        let kept = Target::resolve(&args(None, None), file).unwrap();
        assert_eq!(kept.token, Some(Secret::new("file")));
    }

    #[test]
    fn the_token_file_is_never_shown_to_another_machine() {
        let far = Target::resolve(&args(Some("ws://gateway.example:1"), None), file).unwrap();
        assert_eq!(far.token, None);
        for near in ["ws://localhost:1", "ws://127.0.0.2:1", "ws://[::1]:1"] {
            let near = Target::resolve(&args(Some(near), None), file).unwrap();
            assert_eq!(near.token, Some(Secret::new("file")), "{near:?}");
        }
    }

    #[test]
    fn an_address_is_understood_or_refused_with_the_reason() {
        let address = |host: &str, port| Address {
            host: host.into(),
            port,
        };
        assert_eq!(parse("ws://h:5"), Ok(address("h", 5)));
        assert_eq!(parse("http://h/"), Ok(address("h", DEFAULT_PORT)));
        assert_eq!(
            parse("ws://[::1]:7").map(|a| a.authority()),
            Ok("[::1]:7".into())
        );
        for (url, why) in [
            ("wss://h", "TLS"),
            ("h:5", "ws://"),
            ("ws://h/x", "path"),
            ("ws://", "not a URL"),
        ] {
            let problem = parse(url).expect_err(url);
            assert!(problem.message.contains(why), "{url}: {}", problem.message);
        }
    }
}
