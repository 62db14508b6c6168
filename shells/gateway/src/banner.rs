//! What `gateway run` says once it listens: where it is, what it keeps where, which model
//! answers, and what to type next.

use std::net::SocketAddr;
use std::path::Path;

use crate::called::{program, quoted};
use crate::cli::DEFAULT_PORT;
use crate::config::Source;

/// What the banner tells.
#[derive(Clone, Debug)]
pub struct Banner<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// The state directory.
    pub state_dir: &'a Path,
    /// Whether clients find the state directory by themselves.
    pub is_default_dir: bool,
    /// The configuration file, where clients do not find it by themselves.
    pub config: Option<&'a Path>,
    /// Who set the token; `None` if it is that of the state directory.
    pub own_token: Option<&'a Source>,
    /// Which model answers.
    pub model: &'a str,
    /// What it may run.
    pub tools: &'a str,
}

impl Banner<'_> {
    /// The text, without a last newline.
    #[must_use]
    pub fn text(&self) -> String {
        let address = self.address;
        let token = match self.own_token {
            None => format!("in {}", self.state_dir.join("token").display()),
            Some(source) => format!("your own, from {source}"),
        };
        format!(
            "tidegate {version}\n\
             \x20 address  ws://{address}  (HTTP: http://{address}/healthz)\n\
             \x20 state    {state}\n\
             \x20 token    {token}\n\
             \x20 model    {model}\n\
             \x20 tools    {tools}\n\
             \x20 stop     Ctrl-C or SIGTERM; accepted messages are kept\n\
             \n\
             Next, in another terminal:\n\
             \x20 {next}",
            version = env!("CARGO_PKG_VERSION"),
            state = self.state_dir.display(),
            model = self.model,
            tools = self.tools,
            next = self.next(),
        )
    }

    /// The command to type next: it leads here, wherever this gateway listens and keeps.
    fn next(&self) -> String {
        let mut next = format!("{} agent -m \"hello\"", program());
        if self.address.port() != DEFAULT_PORT {
            next.push_str(&format!(" --port {}", self.address.port()));
        }
        let is_found = matches!(self.own_token, None | Some(Source::File(..)));
        if !self.is_default_dir && is_found {
            next.push_str(&format!(" --state-dir {}", quoted(self.state_dir)));
        }
        if let Some(config) = self.config
            && is_found
        {
            next.push_str(&format!(" --config {}", quoted(config)));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner(port: u16, is_default_dir: bool) -> String {
        Banner {
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            state_dir: Path::new("/a dir"),
            is_default_dir,
            config: None,
            own_token: None,
            model: "demo",
            tools: "none",
        }
        .text()
    }

    #[test]
    fn the_next_command_leads_to_this_gateway() {
        let next = |text: String| text.lines().last().unwrap_or_default().trim().to_owned();
        assert!(next(banner(DEFAULT_PORT, true)).ends_with(" agent -m \"hello\""));
        assert!(
            next(banner(7, false)).ends_with(" agent -m \"hello\" --port 7 --state-dir '/a dir'")
        );
    }

    /// A token of the file is found through the file, and nothing else leads to it.
    #[test]
    fn the_next_command_leads_to_the_file_that_holds_the_token() {
        let at = crate::config::At { line: 3, column: 1 };
        let source = Source::File(Path::new("/c.json5").into(), at);
        let text = Banner {
            address: SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)),
            state_dir: Path::new("/s"),
            is_default_dir: true,
            config: Some(Path::new("/c.json5")),
            own_token: Some(&source),
            model: "demo",
            tools: "none",
        }
        .text();
        assert!(text.contains("your own, from /c.json5:3"), "{text}");
        assert!(text.ends_with(" --config /c.json5"), "{text}");
    }
}
