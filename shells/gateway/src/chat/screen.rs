//! What is shown: answers on standard output, everything else on standard error.
//!
//! It knows where the cursor stands, so that nobody writes into somebody else's line. On a
//! terminal answers are streamed, what the chat says is dim, and nothing of another's text
//! can steer the screen; elsewhere each answer comes whole, and nothing else with it.

use std::io::{IsTerminal, stderr, stdin, stdout};

use crate::again;
use crate::out;
use crate::problem::Problem;
use crate::transcript::{Piece, Transcript, harmless};

/// What stands before a line that is typed.
const PROMPT: &str = "> ";

/// Where answers and notes go.
#[derive(Debug)]
pub struct Screen {
    /// Standard output is a terminal.
    streams: bool,
    /// Standard input is one too: there is an echo, and a prompt.
    typed: bool,
    /// Standard error is a terminal that may be coloured.
    dim: bool,
    at: At,
    /// Whose text was written last.
    whose: String,
}

/// Where the cursor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Middle,
    Prompt,
}

/// What came of a reply so far, and what of it is on the screen.
#[derive(Debug)]
pub struct Reply {
    text: String,
    shown: Transcript,
}

impl Reply {
    /// What came so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Screen {
    /// The screen of this process.
    #[must_use]
    pub fn new() -> Self {
        let streams = stdout().is_terminal();
        Self {
            streams,
            typed: streams && stdin().is_terminal(),
            dim: stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            at: At::Start,
            whose: String::new(),
        }
    }

    /// Whether a person types, and sees what is asked.
    #[must_use]
    pub const fn is_typed(&self) -> bool {
        self.typed
    }

    /// A reply of which nothing came yet.
    #[must_use]
    pub fn reply(&self) -> Reply {
        Reply {
            text: String::new(),
            shown: Transcript::new(self.streams),
        }
    }

    /// The text of `run` so far.
    pub fn grow(&mut self, run: &str, reply: &mut Reply, text: &str) {
        text.clone_into(&mut reply.text);
        if self.streams {
            let piece = reply.shown.grow(text);
            self.piece(run, &piece);
        }
    }

    /// The answer of `run`, whole; without `text`: what came of it. Says whether there is one.
    pub fn answer(&mut self, run: &str, reply: &mut Reply, text: Option<&str>) -> bool {
        let text = text.unwrap_or(&reply.text);
        if text.is_empty() {
            return false;
        }
        let piece = reply.shown.settle(text);
        self.piece(run, &piece);
        self.fresh_line();
        true
    }

    /// What came of a reply that is no answer. On a terminal it stands there already.
    pub fn partial(&mut self, reply: &Reply, text: Option<&str>) {
        let text = text.unwrap_or(&reply.text);
        if !self.streams && !text.is_empty() {
            self.say(text);
        }
        self.fresh_line();
    }

    /// A word of the chat's own.
    pub fn note(&mut self, text: &str) {
        self.fresh_line();
        if self.dim {
            out::err(&format!("\x1b[2m{}\x1b[0m", harmless(text)));
        } else {
            out::told(text);
        }
    }

    /// Something went wrong.
    pub fn problem(&mut self, problem: &Problem) {
        self.say(&problem.text());
    }

    /// Shows that a line may be typed, if nothing else is to come.
    pub fn prompt(&mut self) {
        if self.typed && self.at != At::Prompt {
            self.fresh_line();
            out::piece(PROMPT);
            self.at = At::Prompt;
        }
    }

    /// A line was typed, and its echo ended with it.
    pub fn typed(&mut self) {
        if self.typed {
            self.at = At::Start;
        }
    }

    /// Ctrl-C was pressed, whose echo stands somewhere.
    pub fn interrupted(&mut self) {
        if self.typed {
            self.at = At::Middle;
        }
    }

    /// Lets the next line begin at its start.
    pub fn fresh_line(&mut self) {
        if self.at != At::Start {
            out::piece("\n");
            self.at = At::Start;
        }
    }

    fn say(&mut self, text: &str) {
        self.fresh_line();
        out::told(text);
    }

    fn piece(&mut self, run: &str, Piece { anew, text }: &Piece) {
        if anew.is_some() {
            self.note(again::ANEW);
        }
        if text.is_empty() {
            return;
        }
        if self.at == At::Prompt || self.whose != run {
            self.fresh_line();
        }
        out::piece(text);
        run.clone_into(&mut self.whose);
        self.at = if text.ends_with('\n') {
            At::Start
        } else {
            At::Middle
        };
    }
}
