//! The actors' names and the core's ids.
//!
//! An id follows from the name's place among all names, shorter ones first, so that m2 comes
//! before m10 and a scenario made from a log keeps the order of its ids.

use std::collections::BTreeSet;

use tidegate_core::{Budget, ContentOwner, Fingerprint, RequestId, RunId, SessionId, Subject};

use super::ast::{Scenario, Step, UNKNOWN};

/// High bits of the run that nobody sends.
const NOBODY: u128 = 1 << 97;

/// Who asked a request, and about which run.
pub(super) type Who<'a> = Option<(&'a str, Option<RunId>)>;

/// A message of the scenario.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) name: String,
    pub(super) session: SessionId,
    pub(super) budget: Option<Budget>,
}

/// All names.
#[derive(Clone, Debug, Default)]
pub(super) struct Cast {
    messages: Vec<Message>,
    sessions: Vec<String>,
}

impl Cast {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut cast = Self::default();
        let mut sessions = BTreeSet::new();
        let mut sent = Vec::new();
        for step in scenario.timeline.iter().flat_map(|block| &block.steps) {
            match step {
                Step::Send {
                    messages,
                    session,
                    budget,
                    ..
                } => {
                    sessions.insert((session.len(), session.clone()));
                    sent.extend(
                        messages
                            .iter()
                            .map(|m| (m.clone(), session.clone(), *budget)),
                    );
                }
                Step::Abort {
                    session: Some(session),
                    ..
                } => {
                    sessions.insert((session.len(), session.clone()));
                }
                _ => {}
            }
        }
        cast.sessions = sessions.into_iter().map(|(_, name)| name).collect();
        sent.sort_by(|(a, ..), (b, ..)| (a.len(), a).cmp(&(b.len(), b)));
        cast.messages = sent
            .into_iter()
            .map(|(name, session, budget)| Message {
                session: cast.session(&session),
                name,
                budget,
            })
            .collect();
        cast
    }

    pub(super) fn session(&self, name: &str) -> SessionId {
        let at = self.sessions.iter().position(|known| known == name);
        SessionId::from_u128(at.map_or(NOBODY, |at| at as u128 + 1))
    }

    /// The run of a message; that of a name that nobody sends is known to nobody.
    pub(super) fn run(&self, name: &str) -> RunId {
        let at = self.messages.iter().position(|known| known.name == name);
        RunId::from_u128(at.map_or(NOBODY, |at| at as u128 + 1))
    }

    pub(super) fn message(&self, run: RunId) -> Option<&Message> {
        let at = usize::try_from(u128::from_be_bytes(run.0))
            .ok()?
            .checked_sub(1)?;
        self.messages.get(at)
    }

    /// The body of a message, or another one.
    pub(super) fn body(&self, run: RunId, other: bool) -> Fingerprint {
        Fingerprint::from_u128(u128::from_be_bytes(run.0) << 1 | u128::from(other))
    }

    pub(super) fn run_name(&self, run: RunId) -> &str {
        self.message(run).map_or(UNKNOWN, |message| &message.name)
    }

    pub(super) fn session_name(&self, id: SessionId) -> &str {
        usize::try_from(u128::from_be_bytes(id.0))
            .ok()
            .and_then(|at| self.sessions.get(at.checked_sub(1)?))
            .map_or("another session", String::as_str)
    }

    /// Whom something is about; for a request, who asked and about which run.
    pub(super) fn subject(&self, subject: Subject, asked: Who<'_>) -> String {
        match subject {
            Subject::Run(run) => self.run_name(run).to_owned(),
            Subject::Session(session) => self.session_name(session).to_owned(),
            Subject::Request(_) => self.asked(asked),
        }
    }

    fn asked(&self, asked: Who<'_>) -> String {
        match asked {
            Some((client, Some(run))) => format!("{client}'s {}", self.run_name(run)),
            Some((client, None)) => format!("{client}'s request"),
            None => "a request of the start".into(),
        }
    }

    pub(super) fn owner(&self, owner: ContentOwner, asked: Who<'_>) -> String {
        match owner {
            ContentOwner::Attempt(run, attempt) => {
                format!("the reply of {}, attempt {}", self.run_name(run), attempt.0)
            }
            ContentOwner::Request(_) => format!("what came with {}", self.asked(asked)),
        }
    }
}

/// The name of a client's request: of its step and of how often it was sent.
pub(super) const fn request(step: usize, tries: u32) -> RequestId {
    RequestId::from_u128((step as u128 + 1) << 32 | tries as u128)
}
