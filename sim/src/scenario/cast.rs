//! The actors' names and the core's ids.
//!
//! An id follows from the name's place among all names, shorter ones first, so that m2 comes
//! before m10 and a scenario made from a log keeps the order of its ids.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Attempt, CallId, ContentOwner, Fingerprint, RequestId, RunId, SessionId, Speaker, Subject, Turn,
};

use super::ast::{Beat, Said, Scenario, Step, Terms, UNKNOWN};

/// High bits of the run that nobody sends.
const NOBODY: u128 = 1 << 97;

/// The client that is what happens in a room; there may be more, with a number behind.
pub(super) const ROOM: &str = "room";
/// The client that is the heartbeat; there may be more, with a number behind.
pub(super) const HEARTBEAT: &str = "heartbeat";

/// Who asked a request, and about which run.
pub(super) type Who<'a> = Option<(&'a str, Option<RunId>)>;

/// A message of the scenario.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) name: String,
    pub(super) session: SessionId,
    pub(super) turn: Turn,
    pub(super) terms: Terms,
}

/// All names.
#[derive(Clone, Debug, Default)]
pub(super) struct Cast {
    messages: Vec<Message>,
    sessions: Vec<String>,
    routes: Vec<String>,
    /// What the scenario says of each call: by which message's answer it is asked for, and at
    /// which place.
    planned: BTreeMap<String, (RunId, u16)>,
    /// Calls that a model asked for, in this order.
    asked_for: Vec<(CallId, String)>,
}

impl Cast {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut cast = Self {
            routes: routes(scenario),
            ..Self::default()
        };
        let mut sessions = BTreeSet::new();
        let mut sent = Vec::new();
        for step in scenario.timeline.iter().flat_map(|block| &block.steps) {
            match step {
                Step::Send {
                    messages,
                    client,
                    session,
                    said,
                    terms,
                } => {
                    let turn = cast.turn(client, said.as_ref());
                    sessions.insert((session.len(), session.clone()));
                    sent.extend(
                        messages
                            .iter()
                            .map(|m| (m.clone(), session.clone(), turn, *terms)),
                    );
                }
                Step::Abort {
                    session: Some(session),
                    ..
                }
                | Step::Reset { session, .. }
                | Step::Queue { session, .. } => {
                    sessions.insert((session.len(), session.clone()));
                }
                _ => {}
            }
        }
        cast.sessions = sessions.into_iter().map(|(_, name)| name).collect();
        sent.sort_by(|(a, ..), (b, ..)| (a.len(), a).cmp(&(b.len(), b)));
        cast.messages = sent
            .into_iter()
            .map(|(name, session, turn, terms)| Message {
                session: cast.session(&session),
                name,
                turn,
                terms,
            })
            .collect();
        cast.planned = planned(scenario, &cast);
        cast
    }

    /// A model asks for a call under a name.
    pub(super) fn ask_for(&mut self, call: CallId, name: &str) {
        self.asked_for.push((call, name.to_owned()));
    }

    /// The newest call of a name; before it is asked for, what it is going to be.
    pub(super) fn call(&self, name: &str) -> CallId {
        let asked = self.asked_for.iter().rev().find(|(_, known)| known == name);
        let planned = || self.planned.get(name).copied();
        match asked {
            Some(&(call, _)) => call,
            None => {
                let (run, call) = planned().unwrap_or((RunId::from_u128(NOBODY), 0));
                CallId {
                    run,
                    attempt: Attempt(1),
                    call,
                }
            }
        }
    }

    pub(super) fn call_name(&self, call: CallId) -> &str {
        let known = self.asked_for.iter().find(|&&(known, _)| known == call);
        let planned = self.planned.iter();
        let mut planned = planned.filter(|&(_, &at)| at == (call.run, call.call));
        match known {
            Some((_, name)) => name,
            None => planned.next().map_or("a call", |(name, _)| name),
        }
    }

    /// Whether a name is that of a call, and not of a message.
    pub(super) fn is_call(&self, name: &str) -> bool {
        self.planned.contains_key(name)
    }

    /// How a message takes part in its session.
    fn turn(&self, client: &str, said: Option<&Said>) -> Turn {
        let Some(said) = said else {
            return Turn::Agent;
        };
        let at = self.routes.iter().position(|route| *route == said.route);
        Turn::Chat {
            queue: said.mode,
            route: Fingerprint::from_u128(at.map_or(NOBODY, |at| at as u128 + 1)),
            speaker: match client.trim_end_matches(|c: char| c.is_ascii_digit()) {
                ROOM => Speaker::Room,
                HEARTBEAT => Speaker::Heartbeat,
                _ => Speaker::User,
            },
        }
    }

    pub(super) fn route_name(&self, route: Fingerprint) -> &str {
        usize::try_from(u128::from_be_bytes(route.0))
            .ok()
            .and_then(|at| self.routes.get(at.checked_sub(1)?))
            .map_or("another route", String::as_str)
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

/// Where each call is asked for.
fn planned(scenario: &Scenario, cast: &Cast) -> BTreeMap<String, (RunId, u16)> {
    let mut planned = BTreeMap::new();
    for step in scenario.timeline.iter().flat_map(|block| &block.steps) {
        if let Step::Answer { message, beats, .. } = step {
            for (place, call) in (0..).zip(called(beats)) {
                planned.insert(call.to_owned(), (cast.run(message), place));
            }
        }
    }
    planned
}

/// The calls that an answer asks for, in their order.
pub(super) fn called(beats: &[Beat]) -> impl Iterator<Item = &str> {
    beats.iter().filter_map(|beat| match beat {
        Beat::Calls { call, .. } => Some(call.as_str()),
        _ => None,
    })
}

/// The names of all routes; the plain one has none.
fn routes(scenario: &Scenario) -> Vec<String> {
    let steps = scenario.timeline.iter().flat_map(|block| &block.steps);
    let named = steps.filter_map(|step| match step {
        Step::Send { said, .. } => said.as_ref().map(|said| said.route.clone()),
        _ => None,
    });
    let all: BTreeSet<String> = named.chain([String::new()]).collect();
    all.into_iter().collect()
}

/// The name of a client's request: of its step and of how often it was sent.
pub(super) const fn request(step: usize, tries: u32) -> RequestId {
    RequestId::from_u128((step as u128 + 1) << 32 | tries as u128)
}
