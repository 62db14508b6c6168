//! What was said in a conversation: `chat.history` and `sessions.get`, and how a stored row
//! looks on the wire.
//!
//! Rows come from the store, the run at work from what was told of it. Both are of one
//! moment: if rows may have come between the two looks, it looks again.

use serde_json::Value;
use tidegate_core::CallEnd;
use tidegate_driver::{Client, History, HistoryQuery, Role, RowMark, TranscriptRow};
use tidegate_wire::{
    ChatHistory, ChatHistoryParams, ContentPart, HistoryKind, HistoryMessage, HistoryReset,
    InFlightRun, MessageContent, MessageRow, PendingInput, PendingInputs, SessionInfo,
    SessionMessages, SessionsGetParams, ToolDetails, WireError, method,
};

use crate::cursor::{self, Place, session_id};
use crate::keys::agent_of;
use crate::limits::{
    DELTA_BYTES, DELTA_ROWS, HISTORY_BYTES, HISTORY_CAP, HISTORY_CHARS, HISTORY_DEFAULT, READ_AGAIN,
};
use crate::methods::{Call, Rest};
use crate::project::to_value;
use crate::refusals::{read, session, session_by_key, stopped, unreadable};
use crate::tools;

/// A row as a message.
pub(crate) fn message(row: &TranscriptRow, session_key: &str, generation: u64) -> HistoryMessage {
    let is_user = row.role == Role::User;
    let result = row.answers.as_ref();
    HistoryMessage {
        role: match row.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "toolResult",
        }
        .to_owned(),
        content: content(row),
        timestamp: row.at.0,
        idempotency_key: is_user.then(|| format!("{}:user", row.run_key)),
        stop_reason: match (row.role, row.mark) {
            (Role::Assistant, RowMark::Whole) => Some("stop".to_owned()),
            (_, RowMark::Calls) => Some("toolUse".to_owned()),
            _ => None,
        },
        tool_call_id: result.map(|result| result.id.clone()),
        tool_name: result.map(|result| result.name.clone()),
        is_error: result.map(|result| result.end != CallEnd::Ok),
        details: result.map(|result| ToolDetails {
            status: tools::status(result.end).to_owned(),
        }),
        mark: match row.mark {
            RowMark::Whole | RowMark::Calls => None,
            RowMark::Partial => Some("partial".to_owned()),
            RowMark::Interrupted => Some("interrupted".to_owned()),
            RowMark::Dropped { .. } => Some("dropped".to_owned()),
        },
        truncated: false,
        row: MessageRow {
            id: format!("{}:{}", session_id(session_key, generation), row.seq),
            seq: row.seq,
            run_id: row.run_key.clone(),
        },
    }
}

/// What a row says: a user's text, or parts.
fn content(row: &TranscriptRow) -> MessageContent {
    let text = match (row.role, &row.answers) {
        (Role::User, _) => return MessageContent::Text(row.text.clone()),
        (Role::Tool, Some(result)) => tools::result_text(&row.text, result.end),
        _ => row.text.clone(),
    };
    let has_text = row.mark != RowMark::Calls || !text.is_empty();
    let calls = row.calls.iter().map(|call| ContentPart::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: tools::args(&call.arguments, usize::MAX),
    });
    let text = has_text.then(|| ContentPart::text(text));
    MessageContent::Parts(text.into_iter().chain(calls).collect())
}

/// Cuts a message to so many characters: its text, and the arguments of each of its calls.
fn cut(message: &mut HistoryMessage, chars: usize) {
    let parts = match &mut message.content {
        MessageContent::Text(text) => {
            message.truncated |= shorten(text, chars);
            return;
        }
        MessageContent::Parts(parts) => parts,
    };
    for part in parts {
        message.truncated |= match part {
            ContentPart::Text { text } => shorten(text, chars),
            ContentPart::ToolCall { arguments, .. } => {
                let mut text = arguments.to_string();
                let is_cut = shorten(&mut text, chars);
                if is_cut {
                    *arguments = Value::String(text);
                }
                is_cut
            }
            ContentPart::Other => false,
        };
    }
}

/// Says whether there was anything to cut off.
fn shorten(text: &mut String, chars: usize) -> bool {
    let at = text.char_indices().nth(chars).map(|(at, _)| at);
    if let Some(at) = at {
        text.truncate(at);
    }
    at.is_some()
}

/// The newest of the messages that fit into so many bytes as they are written; one always
/// does, cut if it must be.
pub(crate) fn fitting(messages: Vec<HistoryMessage>, max_bytes: u64) -> Vec<HistoryMessage> {
    let mut left = max_bytes;
    let mut kept = Vec::with_capacity(messages.len());
    for mut message in messages.into_iter().rev() {
        let bytes = to_value(&message).to_string().len() as u64;
        if bytes > left {
            if kept.is_empty() {
                // A character is at most six bytes as it is written, and the rest is small.
                let each = max_bytes / 8 / parts(&message);
                cut(&mut message, usize::try_from(each).unwrap_or(usize::MAX));
                kept.push(message);
            }
            break;
        }
        left -= bytes;
        kept.push(message);
    }
    kept.reverse();
    kept
}

fn parts(message: &HistoryMessage) -> u64 {
    match &message.content {
        MessageContent::Text(_) => 1,
        MessageContent::Parts(parts) => parts.len().max(1) as u64,
    }
}

/// Asks the store.
///
/// # Errors
/// The driver has stopped, or the store can't tell.
pub(crate) async fn ask(
    client: &Client,
    session_key: &str,
    after_seq: Option<u64>,
    limit: u64,
) -> Result<History, WireError> {
    let query = HistoryQuery {
        after_seq,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
    };
    let history = client.history(session_key.to_owned(), query).await;
    history
        .map_err(|_| stopped(false))?
        .map_err(|error| unreadable("the conversation", error))
}

/// The rows before the newest `offset` ones.
async fn page(
    client: &Client,
    session_key: &str,
    offset: u64,
    mut limit: u64,
) -> Result<History, WireError> {
    if offset == 0 {
        return ask(client, session_key, None, limit).await;
    }
    loop {
        let newest = ask(client, session_key, None, 1).await?;
        let end = newest.last_seq.saturating_sub(offset);
        limit = limit.min(end);
        if limit == 0 {
            return Ok(History {
                rows: Vec::new(),
                ..newest
            });
        }
        let page = ask(client, session_key, Some(end - limit), limit).await?;
        // The store cuts by bytes at the far end; the far end of this page is its newest row.
        if page.rows.len() as u64 == limit || page.generation != newest.generation || limit == 1 {
            return Ok(page);
        }
        limit /= 2;
    }
}

/// The rows behind a cursor. `None`: it does not lead here any more.
///
/// # Errors
/// As [`ask`].
pub(crate) async fn since(
    client: &Client,
    session_key: &str,
    place: Place,
) -> Result<Option<History>, WireError> {
    let history = ask(client, session_key, Some(place.row), DELTA_ROWS).await?;
    let reached = history.rows.last().map_or(place.row, |row| row.seq);
    let arguments =
        |row: &TranscriptRow| -> usize { row.calls.iter().map(|call| call.arguments.len()).sum() };
    let bytes = |row: &TranscriptRow| row.text.len() + arguments(row);
    let bytes: usize = history.rows.iter().map(bytes).sum();
    let leads_here = history.generation == place.generation
        && reached == history.last_seq
        && bytes as u64 <= DELTA_BYTES;
    Ok(leads_here.then_some(history))
}

/// Whether the end of a run is in these rows: then it is not at work, whatever was told.
fn has_ended(history: &History, run: &InFlightRun) -> bool {
    history.rows.iter().any(|row| {
        row.run_key == run.run_id
            && row.role == Role::Assistant
            && matches!(row.mark, RowMark::Whole | RowMark::Partial)
    })
}

/// The run at work with that of its text which is in none of these rows: while its tool calls
/// run, the answer that asked for them is a message already.
fn still_to_come(history: &History, mut run: InFlightRun) -> InFlightRun {
    let mut rows = history.rows.iter().rev();
    let last = rows.find(|row| row.run_key == run.run_id);
    if last.is_some_and(|row| row.mark == RowMark::Calls && row.text == run.text) {
        run.text.clear();
    }
    run
}

impl Call {
    pub(crate) fn chat_history(self, params: Option<Value>) -> Rest {
        let params = read(method::CHAT_HISTORY, ChatHistoryParams::read(params))?;
        let agent = params.agent_id.as_deref();
        let key = session(method::CHAT_HISTORY, Some(&params.session_key), None, agent)?;
        Ok(Box::pin(async move {
            self.answer(self.history(&key, &params).await);
        }))
    }

    async fn history(&self, key: &str, params: &ChatHistoryParams) -> Result<Value, WireError> {
        let (client, hub) = (&self.shared.client, &self.shared.hub);
        let boot = &self.shared.config.boot_id;
        let place = match &params.cursor {
            Some(cursor) => match cursor::read(cursor, boot, key) {
                Some(place) => Some(place),
                None => return Ok(reset()),
            },
            None => None,
        };
        let _hold = hub.hold(key, None);
        let limit = params.limit.unwrap_or(HISTORY_DEFAULT).min(HISTORY_CAP);
        let offset = params.offset.unwrap_or(0);
        for _ in 0..READ_AGAIN {
            let appended = hub.appended(key);
            let history = match place {
                Some(place) => match since(client, key, place).await? {
                    Some(history) => history,
                    None => return Ok(reset()),
                },
                None => page(client, key, offset, limit).await?,
            };
            let live = client.live(vec![key.to_owned()]).await;
            let live = live.map_err(|_| stopped(false))?.pop().unwrap_or_default();
            let Some((in_flight, last)) = hub.look(key, appended) else {
                continue;
            };
            let live = live.iter().map(ToString::to_string).collect();
            let told = Told {
                in_flight,
                last,
                live,
            };
            return Ok(self.laid_out(key, params, history, told));
        }
        Err(restless())
    }

    fn laid_out(
        &self,
        key: &str,
        params: &ChatHistoryParams,
        history: History,
        told: Told,
    ) -> Value {
        let generation = history.generation;
        let chars = params.max_chars.unwrap_or(HISTORY_CHARS).min(HISTORY_CHARS);
        let in_flight_run = told.in_flight.filter(|run| !has_ended(&history, run));
        let in_flight_run = in_flight_run.map(|run| still_to_come(&history, run));
        let mut messages: Vec<HistoryMessage> = history
            .rows
            .iter()
            .map(|row| message(row, key, generation))
            .collect();
        for message in &mut messages {
            cut(message, usize::try_from(chars).unwrap_or(usize::MAX));
        }
        if params.cursor.is_none() {
            let bytes = params.max_bytes.unwrap_or(HISTORY_BYTES).min(HISTORY_BYTES);
            messages = fitting(messages, bytes);
        }
        let first = messages.first().map_or(0, |message| message.row.seq);
        let has_more = params.cursor.is_none() && first > 1;
        let place = Place {
            generation,
            row: history.last_seq,
            event: Some(told.last),
        };
        to_value(&ChatHistory {
            kind: params.cursor.is_some().then_some(HistoryKind::Delta),
            session_key: key.to_owned(),
            session_id: session_id(key, generation),
            messages,
            pending_inputs: pending(history.pending, history.pending_total),
            in_flight_run,
            delta_cursor: cursor::write(&self.shared.config.boot_id, key, place),
            offset: params.offset,
            next_offset: has_more.then(|| history.last_seq - first + 1),
            has_more,
            total_messages: history.last_seq,
            session_info: SessionInfo {
                key: key.to_owned(),
                agent_id: agent_of(key).to_owned(),
                session_id: session_id(key, generation),
                has_active_run: !told.live.is_empty(),
                active_run_ids: told.live,
            },
        })
    }

    pub(crate) fn sessions_get(self, params: Option<Value>) -> Rest {
        let params = read(method::SESSIONS_GET, SessionsGetParams::read(params))?;
        let agent = params.agent_id.as_deref();
        let key = session_by_key(method::SESSIONS_GET, &params.key, agent)?;
        let limit = params.limit.unwrap_or(HISTORY_DEFAULT).min(HISTORY_CAP);
        Ok(Box::pin(async move {
            let history = ask(&self.shared.client, &key, None, limit).await;
            self.answer(history.map(|history| {
                let rows = history.rows.iter();
                let messages = rows.map(|row| message(row, &key, history.generation));
                let messages = fitting(messages.collect(), HISTORY_BYTES);
                to_value(&SessionMessages { messages })
            }));
        }))
    }
}

/// What was told of a session, and what is live in it.
struct Told {
    in_flight: Option<InFlightRun>,
    last: u64,
    live: Vec<String>,
}

/// The messages that wait; there may be more of them than are shown.
fn pending(shown: Vec<tidegate_driver::PendingInput>, total: u64) -> PendingInputs {
    let input = |input: tidegate_driver::PendingInput| PendingInput {
        run_id: input.run_key,
        text: input.text,
        accepted_at: input.accepted_at.0,
    };
    PendingInputs {
        items: shown.into_iter().map(input).collect(),
        total,
    }
}

fn reset() -> Value {
    to_value(&HistoryReset {
        kind: HistoryKind::Reset,
    })
}

/// Rows came faster than they could be read.
pub(crate) fn restless() -> WireError {
    WireError::try_later(
        "the conversation changed each time that it was read; ask again in a moment",
        crate::limits::RETRY_AFTER_MS,
    )
    .with(serde_json::json!({"reason": "conversation-changing"}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{RunId, Wall};
    use tidegate_driver::{CallText, ToolAnswer};

    fn row(role: Role, mark: RowMark) -> TranscriptRow {
        TranscriptRow {
            seq: 1,
            role,
            mark,
            run: RunId::from_u128(1),
            run_key: "r".to_owned(),
            turn: RunId::from_u128(1),
            queue: None,
            at: Wall(5),
            text: "é".repeat(1_000),
            calls: Vec::new(),
            answers: None,
        }
    }

    /// Law 10: a run whose answer is stored is not shown at work, even if its end was not told
    #[test]
    fn a_stored_answer_ends_its_run() {
        let ended_run = |run: &str, role, mark| {
            let run = InFlightRun {
                run_id: run.to_owned(),
                text: String::new(),
                started_at: None,
            };
            let history = History {
                generation: 1,
                rows: vec![row(role, mark)],
                last_seq: 1,
                pending: Vec::new(),
                pending_total: 0,
            };
            has_ended(&history, &run)
        };
        let ended = |role, mark| ended_run("r", role, mark);
        assert!(!ended_run("q", Role::Assistant, RowMark::Whole));
        assert!(ended(Role::Assistant, RowMark::Whole));
        assert!(ended(Role::Assistant, RowMark::Partial));
        assert!(!ended(Role::Assistant, RowMark::Interrupted));
        assert!(!ended(Role::Assistant, RowMark::Calls));
        assert!(!ended(Role::User, RowMark::Whole));
    }

    /// Law 10: a list that is cut says how many there are
    #[test]
    fn what_waits_is_counted_whole() {
        let shown = vec![tidegate_driver::PendingInput {
            run_key: "r".to_owned(),
            text: "later".to_owned(),
            accepted_at: Wall(5),
        }];
        let told = pending(shown, 1_200);
        assert_eq!((told.items.len(), told.total), (1, 1_200));
        assert_eq!(told.items[0].run_id, "r");
    }

    /// surface 2.4: a row says whose it is, how complete it is, and never more than asked for
    #[test]
    fn a_row_is_a_message() {
        let partial = message(&row(Role::Assistant, RowMark::Partial), "k", 2);
        assert_eq!(
            (partial.mark.as_deref(), partial.stop_reason),
            (Some("partial"), None)
        );
        let dropped = RowMark::Dropped { told: true };
        let user = message(&row(Role::User, dropped), "k", 2);
        assert_eq!(
            (user.mark.as_deref(), user.row.id.as_str()),
            (Some("dropped"), "k#2:1")
        );
        assert_eq!(user.idempotency_key.as_deref(), Some("r:user"));
        let whole = message(&row(Role::Assistant, RowMark::Whole), "k", 1);
        assert_eq!(whole.stop_reason.as_deref(), Some("stop"));
        let kept = fitting(vec![whole.clone(), whole.clone()], 3_000);
        assert_eq!((kept.len(), kept[0].truncated), (1, false));
        let kept = fitting(vec![whole], 1_024);
        assert_eq!(
            (kept[0].text().chars().count(), kept[0].truncated),
            (128, true)
        );
    }

    /// R96, surface 2.4: an answer that asks for calls has them as parts, and each result names
    /// its call and says how that ended
    #[test]
    fn tool_calls_and_their_results_are_messages() {
        let mut asking = row(Role::Assistant, RowMark::Calls);
        asking.text = String::new();
        asking.calls = vec![CallText {
            id: "c1".to_owned(),
            name: "exec".to_owned(),
            arguments: r#"{"command":"ls"}"#.to_owned(),
        }];
        let mut told = message(&asking, "k", 1);
        assert_eq!(
            serde_json::to_value(&told.content).unwrap(),
            serde_json::json!([{"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"command": "ls"}}])
        );
        assert_eq!(told.stop_reason.as_deref(), Some("toolUse"));
        cut(&mut told, 5);
        assert!(told.truncated, "its arguments are cut");
        let mut result = row(Role::Tool, RowMark::Whole);
        result.text = "gone".to_owned();
        result.answers = Some(ToolAnswer {
            id: "c1".to_owned(),
            name: "exec".to_owned(),
            end: CallEnd::TimedOut,
        });
        let told = message(&result, "k", 1);
        assert_eq!(told.role, "toolResult");
        assert!(told.text().starts_with("gone\n\n["), "{}", told.text());
        let about = (
            told.tool_call_id.as_deref(),
            told.tool_name.as_deref(),
            told.is_error,
        );
        assert_eq!(about, (Some("c1"), Some("exec"), Some(true)));
        assert_eq!(
            told.details.map(|it| it.status).as_deref(),
            Some("timed_out")
        );
        assert_eq!(told.stop_reason, None);
    }

    /// R96: what was said before the calls is told once, as a message
    #[test]
    fn an_answer_that_asked_for_calls_is_not_also_in_flight() {
        let asking = row(Role::Assistant, RowMark::Calls);
        let run = |text: &str| InFlightRun {
            run_id: "r".to_owned(),
            text: text.to_owned(),
            started_at: None,
        };
        let mut history = History {
            generation: 1,
            rows: vec![asking.clone()],
            last_seq: 1,
            pending: Vec::new(),
            pending_total: 0,
        };
        assert_eq!(still_to_come(&history, run(&asking.text)).text, "");
        assert_eq!(still_to_come(&history, run("next")).text, "next");
        history.rows.push(row(Role::Tool, RowMark::Whole));
        let again = still_to_come(&history, run(&asking.text));
        assert_eq!(again.text, asking.text, "the next answer says the same");
    }
}
