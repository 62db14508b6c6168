//! What the gateway answers to the requests of a conversation, and what follows from it.
//!
//! An answer may come on another connection than the one that a message went out on: what was
//! missed between them is caught up here, from events, from rows, or by asking.

use serde_json::Value;
use tidegate_wire::{
    AbortStatus, ChatSendAck, HistoryMessage, MessagesSubscribed, Response, SendStatus,
    SessionsAborted, WaitResult,
};

use super::{Ask, Place, Talk, read};
use crate::chat::screen::Screen;
use crate::chat::words::{self, End};
use crate::exit::Exit;
use crate::problem::Problem;
use crate::rpc::{payload, refused};

impl Talk {
    /// A message was accepted or refused, or is known already.
    pub(super) fn send_answered(&mut self, screen: &mut Screen, key: &str, response: Response) {
        let Some(sent) = self.sent.iter_mut().find(|sent| sent.key == key) else {
            return;
        };
        let answer = response.payload.clone().unwrap_or(Value::Null);
        match serde_json::from_value::<ChatSendAck>(answer) {
            Ok(ack) => {
                sent.answered = true;
                if let Some(note) = words::placed(&ack) {
                    screen.note(&note);
                }
                // A message that was sent again, and has ended meanwhile.
                if ack.status == SendStatus::Ok && sent.again {
                    self.to_ask.push_back(Ask::Look(key.to_owned()));
                }
            }
            Err(_) if response.payload.is_some() => {
                sent.answered = true;
                self.to_ask.push_back(Ask::Look(key.to_owned()));
            }
            Err(_) => self.refused(screen, key, &response),
        }
    }

    fn refused(&mut self, screen: &mut Screen, key: &str, response: &Response) {
        let error = response.error.as_ref();
        let details = error.and_then(|error| error.details.as_ref());
        let reason = details.and_then(|details| details["reason"].as_str());
        if reason == Some("gateway-restarting") {
            // It waits for the next connection, as the gateway asks.
            screen.note("the gateway is about to stop; the message is sent after its restart");
            return;
        }
        let number = self.sent_as(key).map_or(0, |sent| sent.number);
        self.sent.retain(|sent| sent.key != key);
        if number >= self.verdict.0 {
            self.verdict = (number, Exit::Failed);
        }
        screen.problem(&match error {
            Some(error) => refused(error),
            None => Problem::transport("the gateway refuses and does not say why"),
        });
    }

    /// The chat listens from here on, and is told what it missed.
    pub(super) fn subscribed(&mut self, screen: &mut Screen, done: MessagesSubscribed) {
        let is_other = self.session_id != done.session_id;
        let is_reset = done.reset || self.behind && self.place.cursor.is_none();
        self.session_id = done.session_id;
        self.place = Place {
            cursor: Some(done.delta_cursor),
            session_seq: done.session_seq,
            message_seq: 0,
        };
        if is_other {
            screen.note("the conversation was begun anew meanwhile");
        }
        for message in &done.messages {
            if !done.replace_messages {
                self.row(screen, message);
            }
            if is_reset {
                self.answer_of(screen, message, done.replace_messages);
            }
        }
        if is_reset {
            let at_work: Vec<&str> = done
                .events
                .iter()
                .filter_map(|event| event.payload["runId"].as_str())
                .collect();
            let sent = &self.sent;
            self.replies.retain(|run, _| {
                at_work.contains(&run.as_str()) || sent.iter().any(|sent| sent.key == *run)
            });
            for sent in &mut self.sent {
                sent.unsure |= sent.answered;
            }
        }
        for event in done.events {
            self.event(screen, &event.event, event.payload);
        }
        let unsure = self.sent.iter().filter(|sent| sent.unsure);
        self.to_ask
            .extend(unsure.map(|sent| Ask::Look(sent.key.clone())));
        if std::mem::take(&mut self.behind) {
            let waiting = self.sent.iter_mut().filter(|sent| !sent.answered);
            self.to_ask.extend(waiting.map(|sent| {
                sent.again = true;
                Ask::Send(sent.key.clone())
            }));
        }
    }

    /// An answer that was missed, as it is kept. `is_old`: it may have been told long ago.
    fn answer_of(&mut self, screen: &mut Screen, message: &HistoryMessage, is_old: bool) {
        let run = &message.row.run_id;
        let is_asking = message.stop_reason.as_deref() == Some("toolUse");
        let is_answer = message.role == "assistant" && message.mark.is_none() && !is_asking;
        let is_open = self.sent_as(run).is_some() || self.replies.contains_key(run);
        if is_answer && (is_open || !is_old && !self.ended.contains(run)) {
            let end = End::Answered {
                text: Some(message.text()),
                turn: None,
            };
            self.end(screen, run, end);
        }
    }

    /// How a run stands whose end may have been missed.
    pub(super) fn looked(&mut self, screen: &mut Screen, run: &str, response: Response) {
        let Some(at) = self.sent.iter().position(|sent| sent.key == run) else {
            return;
        };
        match payload(response).and_then(read::<WaitResult>) {
            Ok(wait) if wait.known == Some(false) => {
                // A command, whose answer was lost with the connection.
                self.sent.remove(at);
            }
            Ok(wait) => {
                self.sent[at].unsure = false;
                if let Some(end) = End::of_wait(wait) {
                    self.end(screen, run, end);
                }
            }
            Err(problem) => screen.problem(&problem.about(run)),
        }
    }

    /// The run at work was stopped, or there was none.
    pub(super) fn stop_answered(&mut self, screen: &mut Screen, response: Response) {
        match payload(response).and_then(read::<SessionsAborted>) {
            Ok(done) if done.status == AbortStatus::NoActiveRun => {
                self.stopping = false;
                screen.note("nothing was at work");
            }
            Ok(_) => {}
            Err(problem) => {
                self.stopping = false;
                screen.problem(&problem);
            }
        }
    }
}
