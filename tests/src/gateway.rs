//! A real gateway as a child process: started on a free port, asked, stopped, killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout};

use crate::client::Client;
use crate::command::{Ended, Running, bare};
use crate::within;

/// How the panic begins when a gateway ended before it listened.
pub const DIED_BEFORE_LISTENING: &str = "the gateway ended before it listened";

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    /// Keeps the pipe open and what else it says readable.
    lines: Lines<BufReader<ChildStdout>>,
    /// All lines of stdout up to the one that ends the start.
    pub banner: Vec<String>,
    /// The port that it listens on.
    pub port: u16,
    /// Its state directory.
    pub dir: PathBuf,
}

impl Gateway {
    /// Starts a gateway over `dir` on a free port, and waits until it listens.
    ///
    /// # Panics
    /// If it ends or is stuck before it listens.
    pub async fn start(dir: &Path, args: &[&str]) -> Self {
        Self::start_in(dir, args, &[]).await
    }

    /// As [`Gateway::start`], with these variables too.
    ///
    /// # Panics
    /// As [`Gateway::start`].
    pub async fn start_in(dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_on(0, dir, args, variables).await
    }

    async fn start_on(port: u16, dir: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let dir_text = dir.to_str().expect("the directory's name is text");
        let port = port.to_string();
        let mut all = vec!["gateway", "run", "--port", &port, "--state-dir", dir_text];
        all.extend(args);
        let mut child = bare(&all)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let mut banner = Vec::new();
        within("the gateway listens", async {
            loop {
                let line = lines.next_line().await.expect("stdout is readable");
                let line = line.unwrap_or_else(|| panic!("{DIED_BEFORE_LISTENING}: {banner:#?}"));
                let last = line.contains(" agent -m \"hello\"");
                banner.push(line);
                if last {
                    break;
                }
            }
        })
        .await;
        let port = banner.iter().find_map(|line| port_of(line));
        let port = port.unwrap_or_else(|| panic!("the gateway prints its address: {banner:#?}"));
        Self {
            child,
            lines,
            banner,
            port,
            dir: dir.to_owned(),
        }
    }

    /// Starts one whose model is `url`.
    ///
    /// # Panics
    /// As [`Gateway::start`].
    pub async fn with_provider(dir: &Path, url: &str) -> Self {
        Self::start(dir, &["--provider-url", url, "--model", "scripted"]).await
    }

    /// Starts one with the port of one that has ended, whose model is `url`.
    ///
    /// # Panics
    /// As [`Gateway::start`].
    pub async fn with_provider_on(port: u16, dir: &Path, url: &str) -> Self {
        let args = ["--provider-url", url, "--model", "scripted"];
        Self::start_on(port, dir, &args, &[]).await
    }

    /// Its address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the gateway is running")
    }

    /// The token in its state directory.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn token(&self) -> String {
        let path = self.dir.join("token");
        let token = std::fs::read_to_string(&path);
        token
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .trim()
            .to_owned()
    }

    /// A client command, with the flags that lead it here.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Running {
        self.leading(args, Running::start)
    }

    /// The same in a terminal.
    #[must_use]
    pub fn in_terminal(&self, args: &[&str]) -> Running {
        self.leading(args, Running::in_terminal)
    }

    /// A chat with it, through a pipe.
    #[must_use]
    pub fn chat(&self) -> Running {
        self.leading(&["chat"], Running::talking)
    }

    /// A chat with it, in a terminal.
    #[must_use]
    pub fn chat_in_terminal(&self) -> Running {
        self.leading(&["chat"], Running::in_terminal)
    }

    fn leading(&self, args: &[&str], start: fn(&[&str]) -> Running) -> Running {
        let dir = self.dir.to_str().expect("the directory's name is text");
        let port = self.port.to_string();
        let mut all = args.to_vec();
        all.extend(["--state-dir", dir, "--port", &port]);
        start(&all)
    }

    /// Runs a client command to its end.
    ///
    /// # Panics
    /// If it is stuck.
    pub async fn run(&self, args: &[&str]) -> Ended {
        self.command(args).ended().await
    }

    /// Asks by HTTP; gives the status and the body.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let asked = async {
            let mut socket = TcpStream::connect(("127.0.0.1", self.port)).await?;
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            socket.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        let answer = within("HTTP answers", asked)
            .await
            .expect("the gateway answers by HTTP");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (status.expect("an answer has a status"), body.to_owned())
    }

    /// A client, connected with the right token.
    ///
    /// # Panics
    /// If the gateway refuses it.
    pub async fn client(&self) -> Client {
        let connected = Client::connect(&self.url(), &self.token()).await;
        connected.expect("the gateway takes its own token")
    }

    /// Ends it by `kill -9`, and waits until it is gone.
    ///
    /// # Panics
    /// If it cannot be killed.
    pub async fn kill(mut self) {
        self.child.start_kill().expect("the gateway can be killed");
        within("the killed gateway is gone", self.child.wait())
            .await
            .expect("the gateway can be waited for");
    }

    /// Ends it by SIGTERM; gives its exit code and the rest of its stdout.
    ///
    /// # Panics
    /// If it is stuck.
    pub async fn stop(self) -> (Option<i32>, String) {
        signal(self.pid(), "TERM").await;
        self.ended().await
    }

    /// Waits for its end; gives its exit code and the rest of its stdout.
    ///
    /// # Panics
    /// If it is stuck.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        let status = within("the gateway ends", async {
            while let Some(line) = self.lines.next_line().await.expect("stdout is readable") {
                rest.push_str(&line);
                rest.push('\n');
            }
            self.child
                .wait()
                .await
                .expect("the gateway can be waited for")
        })
        .await;
        (status.code(), rest)
    }
}

/// Sends a signal, by name.
///
/// # Panics
/// If there is no such process.
pub async fn signal(pid: u32, name: &str) {
    let sent = tokio::process::Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status()
        .await
        .expect("kill is installed");
    assert!(sent.success(), "no process {pid} to send {name} to");
}

fn port_of(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("ws://127.0.0.1:")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
