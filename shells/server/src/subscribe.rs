//! Listening to sessions: `sessions.subscribe`, `sessions.messages.subscribe`, and their ends.

use serde_json::Value;
use tidegate_driver::History;
use tidegate_wire::{
    HistoryMessage, MessagesSubscribeParams, MessagesSubscribed, MessagesUnsubscribed, Response,
    ServerFrame, SessionsSubscribeParams, SessionsSubscribed, WireError, method,
};

use crate::cursor::{self, Place, session_id};
use crate::events::Caught;
use crate::history::{ask, fitting, message, restless, since};
use crate::limits::{DELTA_BYTES, DELTA_ROWS, READ_AGAIN, SUBSCRIPTIONS_PER_CONNECTION};
use crate::methods::{Call, Rest};
use crate::project::to_value;
use crate::queries;
use crate::refusals::{read, session_by_key};

impl Call {
    pub(crate) fn subscribe(self, params: Option<Value>) -> Rest {
        let params = read(
            method::SESSIONS_SUBSCRIBE,
            SessionsSubscribeParams::read(params),
        )?;
        // First the events, then the list: what changes between is told as an event.
        self.shared.hub.set_roster(self.listener, true);
        Ok(Box::pin(async move {
            let list = match params.list {
                Some(list) => queries::sessions(&self.shared, list).await.map(Some),
                None => Ok(None),
            };
            self.answer(list.map(|list| {
                to_value(&SessionsSubscribed {
                    subscribed: true,
                    list,
                })
            }));
        }))
    }

    pub(crate) fn unsubscribe(self, params: Option<Value>) -> Rest {
        read(
            method::SESSIONS_UNSUBSCRIBE,
            SessionsSubscribeParams::read(params),
        )?;
        self.shared.hub.set_roster(self.listener, false);
        Ok(Box::pin(async move {
            self.answer(Ok(to_value(&SessionsSubscribed {
                subscribed: false,
                list: None,
            })));
        }))
    }

    pub(crate) fn unsubscribe_messages(self, params: Option<Value>) -> Rest {
        let method = method::MESSAGES_UNSUBSCRIBE;
        let params = read(method, MessagesSubscribeParams::read(params))?;
        let key = session_by_key(method, &params.key, params.agent_id.as_deref())?;
        self.shared.hub.unsubscribe(self.listener, &key);
        Ok(Box::pin(async move {
            self.answer(Ok(to_value(&MessagesUnsubscribed {
                subscribed: false,
                key,
            })));
        }))
    }

    pub(crate) fn subscribe_messages(self, params: Option<Value>) -> Rest {
        let method = method::MESSAGES_SUBSCRIBE;
        let params = read(method, MessagesSubscribeParams::read(params))?;
        let key = session_by_key(method, &params.key, params.agent_id.as_deref())?;
        Ok(Box::pin(async move {
            if let Err(error) = self.catch_up(&key, &params).await {
                self.answer(Err(error));
            }
        }))
    }

    /// Reads the rows, and then in one instant takes the events, answers and listens.
    async fn catch_up(&self, key: &str, params: &MessagesSubscribeParams) -> Result<(), WireError> {
        let (client, hub) = (&self.shared.client, &self.shared.hub);
        let place = params.cursor.as_deref().and_then(|cursor| {
            let place = cursor::read(cursor, &self.shared.config.boot_id, key)?;
            Some(moved_on(place, params))
        });
        let _hold = hub.hold(key, None);
        for _ in 0..READ_AGAIN {
            let appended = hub.appended(key);
            let rows = self.rows(client, key, params, place).await?;
            let after = match (&rows.replace, place) {
                (false, Some(place)) => place.event,
                _ => None,
            };
            let told = (rows.history.generation, rows.history.last_seq);
            let answer = |caught| self.caught_up(key, params, rows, caught);
            match hub.subscribe(self.listener, key, told, (appended, after), answer) {
                Some(true) => return Ok(()),
                Some(false) => return Err(too_many()),
                None => {}
            }
        }
        Err(restless())
    }

    async fn rows(
        &self,
        client: &tidegate_driver::Client,
        key: &str,
        params: &MessagesSubscribeParams,
        place: Option<Place>,
    ) -> Result<Rows, WireError> {
        if params.cursor.is_none() {
            let mut history = ask(client, key, None, 1).await?;
            history.rows.clear();
            return Ok(Rows {
                history,
                replace: false,
            });
        }
        if let Some(place) = place
            && let Some(history) = since(client, key, place).await?
        {
            return Ok(Rows {
                history,
                replace: false,
            });
        }
        Ok(Rows {
            history: ask(client, key, None, DELTA_ROWS).await?,
            replace: true,
        })
    }

    fn caught_up(
        &self,
        key: &str,
        params: &MessagesSubscribeParams,
        Rows { history, replace }: Rows,
        caught: Caught,
    ) -> String {
        let generation = history.generation;
        let rows = history.rows.iter();
        let messages: Vec<HistoryMessage> = rows.map(|row| message(row, key, generation)).collect();
        let place = Place {
            generation,
            row: history.last_seq,
            event: Some(caught.last),
        };
        let done = MessagesSubscribed {
            subscribed: true,
            key: key.to_owned(),
            session_id: session_id(key, generation),
            reset: caught.reset && params.cursor.is_some(),
            replace_messages: replace,
            messages: if replace {
                fitting(messages, DELTA_BYTES)
            } else {
                messages
            },
            events: caught.events,
            session_seq: caught.last,
            delta_cursor: cursor::write(&self.shared.config.boot_id, key, place),
        };
        ServerFrame::Response(Response::ok(self.id.clone(), to_value(&done))).to_text()
    }
}

/// Rows that a client gets when it comes back.
struct Rows {
    history: History,
    /// They stand in place of what it has.
    replace: bool,
}

/// The cursor's place, moved to what the client saw behind it.
fn moved_on(place: Place, params: &MessagesSubscribeParams) -> Place {
    Place {
        row: params.message_seq.unwrap_or(0).max(place.row),
        event: place
            .event
            .map(|event| params.session_seq.unwrap_or(0).max(event)),
        ..place
    }
}

fn too_many() -> WireError {
    WireError::invalid(format!(
        "this connection listens to {SUBSCRIPTIONS_PER_CONNECTION} sessions; unsubscribe from one of them first"
    ))
}
