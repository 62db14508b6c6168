//! `tidegate chat`: a conversation in a plain terminal, or through a pipe.
//!
//! Lines go out as they are typed, answers come in as they grow. What becomes of a message
//! is the gateway's decision; the only bounds here are those of a terminal and a socket: a
//! line's length, messages that wait for an answer, and attempts to connect again.

mod lines;
mod screen;
mod talk;
mod words;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tidegate_wire::{CAP_SESSION_EVENTS, CAP_TOOL_EVENTS, ChatHistory, method};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::ChatArgs;
use crate::exit::Exit;
use crate::problem::{Origin, Problem};
use crate::random;
use crate::rpc::{Rpc, main_session};
use crate::state;
use crate::target::Target;
use lines::{LINE_BYTES, Line, Lines};
use screen::Screen;
use talk::{Talk, Word, read};

/// Before the first attempt to connect again.
const AGAIN_FIRST_MS: u64 = 100;

/// Before the later ones: twice as long each time, up to this.
const AGAIN_MOST_MS: u64 = 5_000;

/// Attempts to connect again: some five minutes.
const AGAIN_ATTEMPTS: u32 = 64;

/// Runs the command.
pub async fn chat(args: &ChatArgs) -> Exit {
    match converse(args).await {
        Ok(exit) => exit,
        Err(problem) => problem.tell(false),
    }
}

async fn converse(args: &ChatArgs) -> Result<Exit, Problem> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| {
        Problem::configuration(format!("Ctrl-C cannot be listened to: {error}"))
    })?;
    let target = Target::resolve(&args.target, state::kept_token)?;
    let (mut rpc, mut talk, history) = tokio::select! {
        biased;
        _ = interrupts.recv() => return Ok(Exit::Interrupted),
        begun = begin(&target, args.session.as_deref()) => begun?,
    };
    let mut screen = Screen::new();
    screen.note(&format!(
        "tidegate chat: session {} at {}; /help says what can be typed",
        talk.key(),
        target.address.authority()
    ));
    talk.begin(&mut screen, history);
    let mut chat = Chat {
        target,
        interrupts,
        lines: Lines::of_stdin()?,
        is_open: true,
        screen,
        talk,
    };
    let exit = loop {
        let lost = match chat.over(&mut rpc).await? {
            Stop::Left(exit) => break Ok(exit),
            Stop::Lost(problem) => problem,
        };
        match chat.connect_again(&lost).await {
            Ok(Meanwhile::Done(again)) => rpc = again,
            Ok(Meanwhile::Left(exit)) => break Ok(exit),
            Err(problem) => break Err(problem),
        }
    };
    chat.screen.fresh_line();
    if exit.is_ok() {
        rpc.close().await;
    }
    exit
}

/// A conversation and both its ends.
struct Chat {
    target: Target,
    interrupts: Signal,
    lines: Lines,
    /// Lines may still come.
    is_open: bool,
    screen: Screen,
    talk: Talk,
}

/// Why a connection is used no more.
enum Stop {
    /// The chat is over.
    Left(Exit),
    /// It is lost.
    Lost(Problem),
}

/// What came first.
enum Meanwhile<T> {
    /// What was waited for.
    Done(T),
    /// The end of the chat.
    Left(Exit),
}

impl Chat {
    /// Talks over a connection as long as it lasts.
    async fn over(&mut self, rpc: &mut Rpc) -> Result<Stop, Problem> {
        loop {
            while let Some(ask) = self.talk.next_ask() {
                let Some((method, params)) = self.talk.request(&ask) else {
                    continue;
                };
                match rpc.send(method, Some(params)).await {
                    Ok(id) => self.talk.asked(id, ask),
                    Err(problem) => return Ok(Stop::Lost(problem)),
                }
            }
            if !self.is_open && self.talk.is_over() {
                return Ok(Stop::Left(self.talk.exit()));
            }
            if self.is_open && self.talk.is_idle() {
                self.screen.prompt();
            }
            let left = tokio::select! {
                biased;
                _ = self.interrupts.recv() => self.interrupted(),
                frame = rpc.next() => match frame {
                    Ok(frame) => {
                        self.talk.heard(&mut self.screen, frame)?;
                        None
                    }
                    Err(problem) => return Ok(Stop::Lost(problem)),
                },
                line = self.lines.next(), if self.is_open && self.talk.has_room() => {
                    self.typed(line)?
                }
            };
            if let Some(exit) = left {
                return Ok(Stop::Left(exit));
            }
        }
    }

    /// Ctrl-C. Gives the exit code if the chat is left.
    fn interrupted(&mut self) -> Option<Exit> {
        self.screen.interrupted();
        if !self.talk.stop() {
            return Some(Exit::Interrupted);
        }
        self.screen
            .note("the run at work is being stopped; Ctrl-C once more leaves");
        None
    }

    /// A line was typed. Gives the exit code if the chat is left.
    fn typed(&mut self, line: Option<Line>) -> Result<Option<Exit>, Problem> {
        let text = match line {
            None => {
                self.is_open = false;
                return Ok(None);
            }
            Some(Line::TooLong) => {
                self.talk.unsent();
                self.screen.note(&format!(
                    "a line of more than {LINE_BYTES} bytes was not sent"
                ));
                return Ok(None);
            }
            Some(Line::Broken(why)) => {
                self.is_open = false;
                self.screen
                    .note(&format!("standard input can't be read: {why}"));
                return Ok(None);
            }
            Some(Line::Text(text)) => text,
        };
        self.screen.typed();
        if let Some(word) = Word::read(&text, self.screen.is_typed() && self.talk.is_asking()) {
            self.talk.decide(&mut self.screen, &word);
            return Ok(None);
        }
        self.talk.typed_on();
        match text.trim() {
            "" => {}
            "/help" => self.screen.note(words::HELP),
            "/quit" => {
                let (accepted, unknown) = self.talk.open();
                if accepted + unknown > 0 {
                    self.screen
                        .note("what was accepted goes on, and the session keeps the answers");
                }
                return Ok(Some(self.talk.exit()));
            }
            _ => self.talk.say(random::name()?, text),
        }
        Ok(None)
    }

    /// Connects again, with longer and longer pauses.
    async fn connect_again(&mut self, lost: &Problem) -> Result<Meanwhile<Rpc>, Problem> {
        self.talk.lost();
        self.screen
            .note(&format!("{}; connecting again", lost.message));
        let mut pause = AGAIN_FIRST_MS;
        let mut last = lost.clone();
        for _ in 0..AGAIN_ATTEMPTS {
            let target = self.target.clone();
            let attempt = async move {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                connect(&target).await
            };
            match self.meanwhile(attempt).await? {
                Meanwhile::Left(exit) => return Ok(Meanwhile::Left(exit)),
                Meanwhile::Done(Ok(rpc)) => {
                    self.screen.note("connected again");
                    return Ok(Meanwhile::Done(rpc));
                }
                Meanwhile::Done(Err(problem)) if may_pass(&problem) => last = problem,
                Meanwhile::Done(Err(problem)) => return Err(problem),
            }
            pause = (pause * 2).min(AGAIN_MOST_MS);
        }
        let (accepted, unknown) = self.talk.open();
        Err(words::gave_up(&last, AGAIN_ATTEMPTS, accepted, unknown))
    }

    /// Waits for `work`; lines are taken meanwhile, and sent later.
    async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<Meanwhile<T>, Problem> {
        let mut work = pin!(work);
        loop {
            if !self.is_open && self.talk.is_over() {
                return Ok(Meanwhile::Left(self.talk.exit()));
            }
            let left = tokio::select! {
                biased;
                _ = self.interrupts.recv() => {
                    self.screen.interrupted();
                    Some(Exit::Interrupted)
                }
                done = &mut work => return Ok(Meanwhile::Done(done)),
                line = self.lines.next(), if self.is_open && self.talk.has_room() => {
                    self.typed(line)?
                }
            };
            if let Some(exit) = left {
                return Ok(Meanwhile::Left(exit));
            }
        }
    }
}

/// Connects for the first time, and asks what was said before.
async fn begin(
    target: &Target,
    session: Option<&str>,
) -> Result<(Rpc, Talk, ChatHistory), Problem> {
    let mut rpc = connect(target).await?;
    let key = session.map_or_else(|| main_session(&rpc), ToOwned::to_owned);
    let asked = Some(Talk::history(&key));
    let history: ChatHistory = read(rpc.request(method::CHAT_HISTORY, asked).await?)?;
    let talk = Talk::new(&history.session_key);
    Ok((rpc, talk, history))
}

async fn connect(target: &Target) -> Result<Rpc, Problem> {
    Rpc::connect_with(
        target,
        &["operator.admin"],
        &[CAP_SESSION_EVENTS, CAP_TOOL_EVENTS],
    )
    .await
}

/// Whether another attempt to connect may succeed: the gateway is not there, or not yet.
fn may_pass(problem: &Problem) -> bool {
    match problem.origin {
        Origin::Transport => true,
        Origin::Gateway => problem.retryable == Some(true),
        Origin::Cli => false,
    }
}
