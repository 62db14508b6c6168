//! One conversation as this chat knows it: what was sent and has not ended, what came of the
//! replies, and where in the session it is.
//!
//! It decides nothing about runs; what becomes of a message is what the gateway says. Over a
//! lost socket it keeps the place to go on from, so that nothing is missed and nothing is told
//! twice: messages without an answer go out again under their names, and of those whose end
//! may have been missed it asks how they stand (P06, P33).

mod answers;
mod tools;

use std::collections::{BTreeMap, VecDeque};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_wire::{
    AgentEvent, ApprovalDecision, ApprovalResolveParams, ChatEvent, ChatHistory, ChatHistoryParams,
    ChatSendParams, ChatState, Event, HistoryMessage, InputStep, MessagesSubscribeParams,
    ServerFrame, SessionMessage, SessionsAbortParams, SessionsChanged, WaitParams, event_name,
    method,
};

use super::screen::{Reply, Screen};
use super::words::{self, End, quote};
use crate::again;
use crate::exit::Exit;
use crate::problem::{Origin, Problem};
use crate::rpc::{params, payload};
use tools::Tools;
pub use tools::Word;

/// Messages that may wait for the gateway's answer. Beyond, no further line is read.
const UNANSWERED: usize = 64;

/// Runs whose end is remembered, so that it is not told again.
const ENDED: usize = 256;

/// Messages of the history that are shown at the start.
const HISTORY_SHOWN: u64 = 6;

/// The most characters of each.
const HISTORY_CHARS: u64 = 2_000;

/// A message of this chat that has not ended.
#[derive(Debug)]
struct Sent {
    /// Its name, which is the run's.
    key: String,
    /// Its place among all that were typed, from 1.
    number: u64,
    /// What was typed.
    text: String,
    /// The gateway has answered the request.
    answered: bool,
    /// It may have gone out before, on a connection that was lost.
    again: bool,
    /// Its end may have been missed.
    unsure: bool,
    /// It is told that another run's answer answers it.
    bound: bool,
}

/// Where in the session the chat is.
#[derive(Debug, Default)]
struct Place {
    /// The gateway's word for the place where the subscription began.
    cursor: Option<String>,
    /// The number of the last event behind it.
    session_seq: u64,
    /// The number of the last message behind it.
    message_seq: u64,
}

/// A request that is to be sent, or that waits for its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `chat.send` of the message of this name.
    Send(String),
    /// `sessions.messages.subscribe`.
    Subscribe,
    /// `agent.wait`, to look how this run stands.
    Look(String),
    /// `sessions.abort` of the run at work.
    Stop,
    /// `exec.approval.resolve` of the call of this approval.
    Decide(String, ApprovalDecision),
}

/// One conversation.
#[derive(Debug)]
pub struct Talk {
    /// The session's whole key.
    key: String,
    /// Which conversation of it; another one after a reset.
    session_id: String,
    place: Place,
    /// The connection is new, or none: nothing is sent before it is subscribed.
    behind: bool,
    sent: VecDeque<Sent>,
    count: u64,
    replies: BTreeMap<String, Reply>,
    tools: Tools,
    ended: VecDeque<String>,
    to_ask: VecDeque<Ask>,
    asked: BTreeMap<String, Ask>,
    /// How the last message ended, with its number.
    verdict: (u64, Exit),
    /// Ctrl-C has asked for a stop, and nothing was typed since.
    stopping: bool,
}

impl Talk {
    /// A conversation of which nothing is known yet.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            session_id: String::new(),
            place: Place::default(),
            behind: true,
            sent: VecDeque::new(),
            count: 0,
            replies: BTreeMap::new(),
            tools: Tools::default(),
            ended: VecDeque::new(),
            to_ask: VecDeque::new(),
            asked: BTreeMap::new(),
            verdict: (0, Exit::Ok),
            stopping: false,
        }
    }

    /// The session's whole key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The request for what was said before in a session.
    #[must_use]
    pub fn history(key: &str) -> Value {
        params(&ChatHistoryParams {
            session_key: key.to_owned(),
            limit: Some(HISTORY_SHOWN),
            max_chars: Some(HISTORY_CHARS),
            ..ChatHistoryParams::default()
        })
    }

    /// What was said before. From here on nothing is missed.
    pub fn begin(&mut self, screen: &mut Screen, history: ChatHistory) {
        for message in &history.messages {
            screen.note(&words::of_history(message));
        }
        for input in &history.pending_inputs.items {
            screen.note(&format!("> {} (waits)", input.text));
        }
        if let Some(run) = history.in_flight_run {
            self.grow(screen, &run.run_id, &run.text);
        }
        self.session_id = history.session_id;
        self.place.cursor = Some(history.delta_cursor);
        self.to_ask.push_back(Ask::Subscribe);
    }

    /// A message was typed; `key` is its fresh name.
    pub fn say(&mut self, key: String, text: String) {
        self.count += 1;
        self.stopping = false;
        if !self.behind {
            self.to_ask.push_back(Ask::Send(key.clone()));
        }
        self.sent.push_back(Sent {
            key,
            number: self.count,
            text,
            answered: false,
            again: false,
            unsure: false,
            bound: false,
        });
    }

    /// Asks for the end of the run at work. `false`: there is none, or it was asked for.
    pub fn stop(&mut self) -> bool {
        if self.stopping || self.is_idle() {
            return false;
        }
        self.stopping = true;
        self.to_ask.push_back(Ask::Stop);
        true
    }

    /// Whether nothing of this chat is to come, and no run at work is known.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.replies.is_empty()
    }

    /// Whether every message of this chat has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether another line may be typed.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.sent.iter().filter(|sent| !sent.answered).count() < UNANSWERED
    }

    /// How many messages have not ended: accepted ones, and those of which it is not known.
    #[must_use]
    pub fn open(&self) -> (usize, usize) {
        let accepted = self.sent.iter().filter(|sent| sent.answered).count();
        (accepted, self.sent.len() - accepted)
    }

    /// What a script should read from how the last message ended.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.verdict.1
    }

    /// A line was not sent.
    pub fn unsent(&mut self) {
        self.count += 1;
        self.verdict = (self.count, Exit::Failed);
    }

    /// The connection is lost: what was asked on it is not answered any more.
    pub fn lost(&mut self) {
        self.behind = true;
        self.asked.clear();
        self.to_ask.clear();
        self.to_ask.push_back(Ask::Subscribe);
    }

    /// The next request to send.
    pub fn next_ask(&mut self) -> Option<Ask> {
        self.to_ask.pop_front()
    }

    /// A request as it is sent; `None` if it is not needed any more.
    #[must_use]
    pub fn request(&self, ask: &Ask) -> Option<(&'static str, Value)> {
        Some(match ask {
            Ask::Send(key) => {
                let send = ChatSendParams {
                    session_key: self.key.clone(),
                    message: self.sent_as(key)?.text.clone(),
                    idempotency_key: key.clone(),
                    ..ChatSendParams::default()
                };
                (method::CHAT_SEND, params(&send))
            }
            Ask::Subscribe => {
                let subscribe = MessagesSubscribeParams {
                    key: self.key.clone(),
                    agent_id: None,
                    cursor: self.place.cursor.clone(),
                    session_seq: self
                        .place
                        .cursor
                        .is_some()
                        .then_some(self.place.session_seq),
                    message_seq: self
                        .place
                        .cursor
                        .is_some()
                        .then_some(self.place.message_seq),
                };
                (method::MESSAGES_SUBSCRIBE, params(&subscribe))
            }
            Ask::Look(run) => {
                let wait = WaitParams {
                    run_id: run.clone(),
                    timeout_ms: Some(0),
                };
                (method::AGENT_WAIT, params(&wait))
            }
            Ask::Decide(id, decision) => {
                let resolve = ApprovalResolveParams {
                    id: id.clone(),
                    decision: *decision,
                };
                (method::APPROVAL_RESOLVE, params(&resolve))
            }
            Ask::Stop => {
                let abort = SessionsAbortParams {
                    key: self.key.clone(),
                    ..SessionsAbortParams::default()
                };
                (method::SESSIONS_ABORT, params(&abort))
            }
        })
    }

    /// A request was sent under this id.
    pub fn asked(&mut self, id: String, ask: Ask) {
        self.asked.insert(id, ask);
    }

    /// The gateway said something.
    ///
    /// # Errors
    /// It does not let the chat listen to the session.
    pub fn heard(&mut self, screen: &mut Screen, frame: ServerFrame) -> Result<(), Problem> {
        match frame {
            ServerFrame::Event(Event { event, payload, .. }) => {
                self.event(screen, &event, payload.unwrap_or(Value::Null));
            }
            ServerFrame::Response(response) => match self.asked.remove(&response.id) {
                Some(Ask::Send(key)) => self.send_answered(screen, &key, response),
                Some(Ask::Subscribe) => {
                    let done = read(payload(response)?)?;
                    self.subscribed(screen, done);
                }
                Some(Ask::Look(run)) => self.looked(screen, &run, response),
                Some(Ask::Stop) => self.stop_answered(screen, response),
                Some(Ask::Decide(id, _)) => self.decided(screen, &id, response),
                None => {}
            },
        }
        Ok(())
    }

    fn event(&mut self, screen: &mut Screen, name: &str, event: Value) {
        let is_ours = event["sessionKey"].as_str() == Some(&self.key);
        if !is_ours {
            return;
        }
        let seq = event["sessionSeq"].as_u64().unwrap_or(0);
        self.place.session_seq = self.place.session_seq.max(seq);
        match name {
            event_name::CHAT => {
                if let Ok(event) = serde_json::from_value::<ChatEvent>(event) {
                    self.chat(screen, &event.run_id, event.state);
                }
            }
            event_name::AGENT => {
                if let Ok(event) = serde_json::from_value::<AgentEvent>(event) {
                    self.worked(screen, event);
                }
            }
            event_name::SESSION_MESSAGE => {
                if let Ok(row) = serde_json::from_value::<SessionMessage>(event)
                    && row.session_id == self.session_id
                {
                    self.place.message_seq = self.place.message_seq.max(row.message_seq);
                    self.row(screen, &row.message);
                }
            }
            event_name::SESSIONS_CHANGED => {
                let change = serde_json::from_value::<SessionsChanged>(event).ok();
                let id = change.and_then(|change| change.session_id);
                if let Some(id) = id.filter(|id| *id != self.session_id) {
                    // The place is one of the old conversation: take one in the new.
                    self.session_id = id;
                    self.place = Place::default();
                    self.to_ask.push_back(Ask::Subscribe);
                }
            }
            _ => {}
        }
    }

    fn chat(&mut self, screen: &mut Screen, run: &str, state: ChatState) {
        if self.ended.iter().any(|ended| ended == run) {
            return;
        }
        match state {
            ChatState::Status(InputStep::Bound { turn }) => self.bound(screen, run, &turn),
            ChatState::Status(step) => {
                let sent = self.sent_as(run);
                let is_shown = sent.is_some() || self.replies.contains_key(run);
                if let Some(note) = again::asking(&step, 0).filter(|_| is_shown) {
                    screen.note(&note);
                }
                if let Some(note) = sent.and_then(|sent| words::step(&step, &sent.text)) {
                    screen.note(&note);
                }
            }
            ChatState::Delta {
                delta_text,
                message: None,
                replace: None | Some(false),
            } => self.grow_by(screen, run, &delta_text),
            ChatState::Delta {
                delta_text,
                message: None,
                replace: Some(true),
            } => self.grow(screen, run, &delta_text),
            ChatState::Delta {
                message: Some(message),
                ..
            } => self.grow(screen, run, &message.text()),
            terminal => {
                if let Some(end) = End::of_chat(terminal) {
                    self.end(screen, run, end);
                }
            }
        }
    }

    /// A message of this chat is answered by another run's answer.
    fn bound(&mut self, screen: &mut Screen, run: &str, turn: &str) {
        let other = match self.sent_as(turn) {
            Some(sent) => quote(&sent.text),
            None => "another message".into(),
        };
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.key == run)
            && !std::mem::replace(&mut sent.bound, true)
        {
            screen.note(&words::together(&sent.text, &other));
        }
    }

    fn grow(&mut self, screen: &mut Screen, run: &str, text: &str) {
        let reply = self
            .replies
            .entry(run.to_owned())
            .or_insert_with(|| screen.reply());
        screen.grow(run, reply, text);
    }

    fn grow_by(&mut self, screen: &mut Screen, run: &str, delta: &str) {
        let before = self.replies.get(run).map_or("", Reply::text);
        let text = format!("{before}{delta}");
        self.grow(screen, run, &text);
    }

    /// A run has ended. Told once.
    fn end(&mut self, screen: &mut Screen, run: &str, end: End) {
        if let End::Answered {
            turn: Some(turn), ..
        } = &end
        {
            self.bound(screen, run, turn);
        }
        if self.ended.len() >= ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(run.to_owned());
        self.forget_calls(run);
        let mut reply = self.replies.remove(run).unwrap_or_else(|| screen.reply());
        let at = self.sent.iter().position(|sent| sent.key == run);
        let sent = at.and_then(|at| self.sent.remove(at));
        if let Some(sent) = &sent
            && sent.number >= self.verdict.0
        {
            self.verdict = (sent.number, end.exit(self.stopping));
        }
        match end {
            End::Answered { turn: Some(_), .. } => {}
            End::Answered { text, turn: None } => {
                if !screen.answer(run, &mut reply, text.as_deref()) && sent.is_some() {
                    screen.note("the run completed without a reply");
                }
            }
            End::Stopped { text, why } => {
                screen.partial(&reply, text.as_deref());
                screen.note(&about(sent.as_ref(), &why));
            }
            End::Failed { text, why } => {
                screen.partial(&reply, text.as_deref());
                screen.problem(&Problem::new(
                    Exit::Failed,
                    Origin::Gateway,
                    about(sent.as_ref(), &why),
                ));
            }
        }
    }

    /// A message of the session. Those of this chat are on the screen already.
    fn row(&mut self, screen: &mut Screen, message: &HistoryMessage) {
        let run = &message.row.run_id;
        let is_own = self.sent_as(run).is_some() || self.ended.contains(run);
        if message.role == "user" && !is_own {
            screen.note(&words::of_history(message));
        }
    }

    fn sent_as(&self, key: &str) -> Option<&Sent> {
        self.sent.iter().find(|sent| sent.key == key)
    }
}

fn about(sent: Option<&Sent>, why: &str) -> String {
    match sent {
        Some(sent) => format!("{}: {why}", quote(&sent.text)),
        None => why.to_owned(),
    }
}

/// An answer of the gateway as what it should be.
///
/// # Errors
/// It is none.
pub fn read<T: DeserializeOwned>(answer: Value) -> Result<T, Problem> {
    serde_json::from_value(answer)
        .map_err(|error| Problem::transport(format!("the gateway's answer is none: {error}")))
}
