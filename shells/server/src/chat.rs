//! `chat.send`: a message of a conversation, or a command in one.
//!
//! One response says where the message stands; the rest comes as events. A command is
//! carried out, acknowledged, and answered as a `chat` final, which any chat client shows.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tidegate_core::{LaneName, Priority, QueueChange, QueueMode, QueueOverride};
use tidegate_driver::{AbortScope, Placed, Replies, Reply, Stopped, Submission, SubmissionTurn};
use tidegate_text::{Command, queue_mode, read_command};
use tidegate_wire::{
    ChatMessage, ChatSendAck, ChatSendParams, ChatState, InputState, Response, Route, SendStatus,
    WireError, method,
};

use crate::changes;
use crate::commands::{self, Known};
use crate::control::{aborted, was_reset};
use crate::events::Hold;
use crate::limits::RETRY_AFTER_MS;
use crate::methods::{Call, budget};
use crate::project::{self, to_value};
use crate::refusals::{confused, read, rejected, session, stopped};
use crate::words::About;

/// A command of a conversation, with the names that its answer bears.
struct Asked {
    session_key: String,
    run_key: String,
}

/// How a `chat.send` is carried on.
pub(crate) enum Sent {
    /// What it asks was sent to the driver; the rest is waited for on the side.
    OnTheSide(BoxFuture<'static, ()>),
    /// It asks more than once: the connection's next frame is read after it, so that what is
    /// sent behind a command comes behind it.
    InTurn(BoxFuture<'static, ()>),
}

impl Call {
    pub(crate) fn chat_send(self, params: Option<Value>) -> Result<Sent, WireError> {
        let params = read(method::CHAT_SEND, ChatSendParams::read(params))?;
        let agent = params.agent_id.as_deref();
        let key = session(method::CHAT_SEND, Some(&params.session_key), None, agent)?;
        let named = params.queue_mode.as_deref().and_then(queue_mode);
        let mode = named.map(|named| named.value);
        let command = match params.suppress_command_interpretation {
            true => None,
            false => read_command(&params.message).map_err(|bad| bad_command(&bad.to_string()))?,
        };
        let (message, mode) = match command {
            None => (params.message.as_str(), mode),
            Some(Command::Once { queue, message }) => (message, mode_alone(queue)?.or(mode)),
            Some(Command::Stop) => return self.stop(params, key),
            Some(Command::Queue(change)) => return self.queue(params, key, change),
            Some(Command::New { message }) => {
                return self.begin(&params, key, "new", message, mode);
            }
            Some(Command::Reset { message }) => {
                return self.begin(&params, key, "reset", message, mode);
            }
        };
        if self.shared.commands.knows(&params.idempotency_key) {
            return Err(rejected(tidegate_core::Rejection::Conflict));
        }
        Ok(Sent::OnTheSide(self.say(&params, key, message, mode)))
    }

    /// Sends a message on its way.
    fn say(
        self,
        params: &ChatSendParams,
        session_key: String,
        message: &str,
        queue: Option<QueueMode>,
    ) -> BoxFuture<'static, ()> {
        let run_key = &params.idempotency_key;
        let hold = self.shared.hub.hold(&session_key, Some(run_key));
        let replies = self.shared.client.submit(Submission {
            session_key,
            run_key: run_key.clone(),
            message: message.to_owned(),
            budget: params.timeout_ms.map(budget),
            turn: SubmissionTurn::Chat {
                queue,
                route: route(&params.route),
            },
            lane: LaneName::Main,
            priority: Priority::Foreground,
        });
        Box::pin(async move { self.placed(replies, hold).await })
    }

    /// Tells where the message stands. The run's further replies are not waited for.
    async fn placed(self, mut replies: Replies, hold: Hold) {
        match replies.next().await {
            Ok(Reply::Accepted {
                run_key,
                session_key,
                at,
                place,
            }) => {
                self.answer(Ok(to_value(&ack(&run_key, &place))));
                self.accepted(&run_key, &session_key, at.0, &place);
            }
            Ok(Reply::InFlight {
                run_key,
                session_key,
            }) => {
                let ack = ChatSendAck::of(run_key.as_ref(), SendStatus::InFlight);
                self.answer(Ok(to_value(&ack)));
                self.remind(&session_key, &run_key);
            }
            Ok(Reply::Final { finished, .. }) => {
                self.respond(project::send_replay(&self.id, &finished));
            }
            Ok(Reply::Rejected(rejection)) => self.answer(Err(rejected(rejection))),
            Ok(_) => self.answer(Err(confused())),
            Err(Stopped) => self.answer(Err(stopped(false))),
        }
        drop(hold);
    }

    fn stop(self, params: ChatSendParams, session_key: String) -> Result<Sent, WireError> {
        if let Some(known) = self.known(&params, &session_key)? {
            return Ok(self.again(&params.idempotency_key, known));
        }
        let asked = Asked {
            session_key,
            run_key: params.idempotency_key,
        };
        Ok(Sent::InTurn(Box::pin(async move {
            if let Err(error) = self.is_no_run(&asked.run_key).await {
                return self.carried_out(&asked, Err(error));
            }
            let client = &self.shared.client;
            let mut replies = client.abort(asked.session_key.clone(), AbortScope::All);
            let runs = aborted(replies.next().await);
            self.carried_out(&asked, runs.map(|runs| commands::stopped(runs.len())));
        })))
    }

    fn queue(
        self,
        params: ChatSendParams,
        session_key: String,
        change: QueueChange,
    ) -> Result<Sent, WireError> {
        if let Some(known) = self.known(&params, &session_key)? {
            return Ok(self.again(&params.idempotency_key, known));
        }
        let asked = Asked {
            session_key,
            run_key: params.idempotency_key,
        };
        Ok(Sent::InTurn(Box::pin(async move {
            if let Err(error) = self.is_no_run(&asked.run_key).await {
                return self.carried_out(&asked, Err(error));
            }
            let client = &self.shared.client;
            let mut replies = client.queue(asked.session_key.clone(), change);
            let said = match replies.next().await {
                Ok(Reply::Queue {
                    settings,
                    own,
                    waiting,
                }) => Ok(commands::queue(settings, own, waiting)),
                Ok(Reply::Rejected(rejection)) => Err(rejected(rejection)),
                Ok(_) => Err(confused()),
                Err(Stopped) => Err(stopped(false)),
            };
            if said.is_ok() && change != QueueChange::Show {
                let state = self.shared.hub.lock();
                let at = self.shared.wall_ms();
                let change = changes::asked(&asked.session_key, at, "patch", None, &state);
                state.tell_change(&change);
            }
            self.carried_out(&asked, said);
        })))
    }

    /// Begins the session anew, and then sends the first message, if there is one.
    fn begin(
        self,
        params: &ChatSendParams,
        session_key: String,
        reason: &'static str,
        message: Option<&str>,
        mode: Option<QueueMode>,
    ) -> Result<Sent, WireError> {
        let known = self.known(params, &session_key)?;
        if let Some(message) = message {
            return Ok(match known {
                None => self.begin_with(params, session_key, reason, message, mode),
                // It began the session; what became of its message is the run's to tell.
                Some(SendStatus::Ok) => {
                    Sent::OnTheSide(self.say(params, session_key, message, mode))
                }
                Some(status) => self.again(&params.idempotency_key, status),
            });
        }
        if let Some(known) = known {
            return Ok(self.again(&params.idempotency_key, known));
        }
        let asked = Asked {
            session_key,
            run_key: params.idempotency_key.clone(),
        };
        Ok(Sent::InTurn(Box::pin(async move {
            if let Err(error) = self.is_no_run(&asked.run_key).await {
                return self.carried_out(&asked, Err(error));
            }
            let replies = self.shared.client.reset(asked.session_key.clone(), None);
            let done = was_reset(&self.shared, replies, &asked.session_key, reason).await;
            let said = done.map(|(_, ended)| commands::begun(reason, ended.len()));
            self.carried_out(&asked, said);
        })))
    }

    /// Begins the session anew with its first message. Neither a repetition nor what is sent
    /// behind it comes between the two.
    fn begin_with(
        self,
        params: &ChatSendParams,
        session_key: String,
        reason: &'static str,
        message: &str,
        mode: Option<QueueMode>,
    ) -> Sent {
        let (params, message) = (params.clone(), message.to_owned());
        Sent::InTurn(Box::pin(async move {
            let key = params.idempotency_key.clone();
            match self.begin_first(&params, &session_key, reason).await {
                Ok(()) => {
                    let shared = std::sync::Arc::clone(&self.shared);
                    let placed = self.say(&params, session_key, &message, mode);
                    shared.commands.done(&key);
                    placed.await;
                }
                Err(error) => {
                    self.shared.commands.refused(&key);
                    self.answer(Err(error));
                }
            }
        }))
    }

    /// Begins the session anew for a message, unless the message was accepted before: then
    /// this is a repetition, and must not end what it began.
    async fn begin_first(
        &self,
        params: &ChatSendParams,
        session_key: &str,
        reason: &str,
    ) -> Result<(), WireError> {
        let client = &self.shared.client;
        match client
            .wait(params.idempotency_key.clone(), Some(0))
            .next()
            .await
        {
            Ok(Reply::WaitTimedOut {
                known: Some(false), ..
            }) => {}
            Ok(Reply::WaitTimedOut { known: None, .. }) => return Err(untold()),
            Ok(Reply::WaitEnded(_) | Reply::WaitPending | Reply::WaitTimedOut { .. }) => {
                return Ok(());
            }
            Ok(Reply::WaitDraining) => {
                return Err(rejected(tidegate_core::Rejection::Draining));
            }
            Ok(Reply::Rejected(rejection)) => return Err(rejected(rejection)),
            Ok(_) => return Err(confused()),
            Err(Stopped) => return Err(stopped(false)),
        }
        let replies = client.reset(session_key.to_owned(), None);
        was_reset(&self.shared, replies, session_key, reason).await?;
        Ok(())
    }

    /// What is known of a command; `None` if it is to be carried out.
    fn known(
        &self,
        params: &ChatSendParams,
        session_key: &str,
    ) -> Result<Option<SendStatus>, WireError> {
        let (key, text) = (&params.idempotency_key, &params.message);
        match self.shared.commands.take(key, session_key, text) {
            Known::No => Ok(None),
            Known::UnderWay => Ok(Some(SendStatus::InFlight)),
            Known::Done => Ok(Some(SendStatus::Ok)),
            Known::Other => Err(rejected(tidegate_core::Rejection::Conflict)),
        }
    }

    fn again(self, run_key: &str, status: SendStatus) -> Sent {
        let ack = ChatSendAck::of(run_key, status);
        Sent::OnTheSide(Box::pin(async move { self.answer(Ok(to_value(&ack))) }))
    }

    /// A command under the name of a run is another request under a known key (P06). Where the
    /// store can't tell, the command is carried out: a stop must not depend on it.
    async fn is_no_run(&self, key: &str) -> Result<(), WireError> {
        let mut asked = self.shared.client.wait(key.to_owned(), Some(0));
        match asked.next().await {
            Ok(Reply::WaitTimedOut {
                known: Some(false) | None,
                ..
            }) => Ok(()),
            Ok(Reply::WaitEnded(_) | Reply::WaitPending | Reply::WaitTimedOut { .. }) => {
                Err(rejected(tidegate_core::Rejection::Conflict))
            }
            // A drain lets no new wait in; what the command asks may still be let in.
            Ok(_) => Ok(()),
            Err(Stopped) => Err(stopped(false)),
        }
    }

    /// Acknowledges a command and answers it in its conversation; or says why it was refused.
    fn carried_out(&self, asked: &Asked, said: Result<String, WireError>) {
        match said {
            Ok(text) => {
                self.shared.commands.done(&asked.run_key);
                let ack = ChatSendAck::of(asked.run_key.as_str(), SendStatus::Ok);
                self.respond(Response::ok(self.id.clone(), to_value(&ack)));
                let at = self.shared.wall_ms();
                let about = About {
                    session: asked.session_key.as_str().into(),
                    run: asked.run_key.as_str().into(),
                    seq: 0,
                    at,
                };
                let said = ChatState::Final {
                    message: Some(ChatMessage::assistant(text, at)),
                    stop_reason: None,
                    answered_in: None,
                };
                self.shared.hub.tell_chat(&about, said);
            }
            Err(error) => {
                self.shared.commands.refused(&asked.run_key);
                self.answer(Err(error));
            }
        }
    }
}

fn ack(run_key: &str, place: &Placed) -> ChatSendAck {
    let mut ack = ChatSendAck::of(run_key, SendStatus::Started);
    ack.input_state = Some(match place {
        Placed::Next => InputState::Started,
        Placed::Queued { ahead } => {
            ack.queued_ahead = Some(*ahead);
            InputState::Queued
        }
        Placed::Steering { into } => {
            ack.steered_into = Some(into.to_string());
            InputState::Steered
        }
        Placed::Interrupting { .. } => {
            ack.interrupted_active_run = Some(true);
            InputState::Interrupting
        }
    });
    ack
}

/// A route as one word. Empty for a message that names none, which goes back to whoever asks.
fn route(route: &Route) -> String {
    if *route == Route::default() {
        return String::new();
    }
    to_value(route).to_string()
}

/// The mode of a message with `/queue` before it. The other settings are a session's.
fn mode_alone(queue: QueueOverride) -> Result<Option<QueueMode>, WireError> {
    let alone = QueueOverride {
        mode: queue.mode,
        ..QueueOverride::default()
    };
    if queue != alone {
        return Err(bad_command(
            "debounce:, cap: and drop: hold for a session and not for one message; send /queue with them by itself",
        ));
    }
    Ok(queue.mode)
}

fn untold() -> WireError {
    WireError::try_later(
        "the store can't tell now whether this message came before, so nothing was done; send it again",
        RETRY_AFTER_MS,
    )
    .with(json!({"reason": "storage"}))
}

fn bad_command(why: &str) -> WireError {
    WireError::invalid(why.to_owned()).with(json!({"reason": "bad-command"}))
}
