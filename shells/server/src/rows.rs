//! Tells rows that came to transcripts, as `session.message`, to those who subscribed.
//!
//! Events of runs say when rows may have come; what came is read from the store, so that
//! what is told is what is kept. Each listener hears each row once, in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_driver::{Client, History, HistoryQuery, TranscriptRow};
use tidegate_wire::{SessionMessage, event_name};

use crate::cursor::session_id;
use crate::events::{Hub, State};
use crate::history::message;
use crate::keys::agent_of;
use crate::limits::ROWS_AT_ONCE;
use crate::words;

/// A session whose rows are to be read.
struct Wanted {
    key: Arc<str>,
    /// The runs whose rows may have come.
    runs: BTreeSet<Arc<str>>,
    /// Read what is behind this row; `None`: the newest.
    after: Option<u64>,
    /// Somebody hears of them who did not subscribe to this very session.
    hears_all: bool,
}

impl Hub {
    /// Reads and tells rows, until the driver ends.
    pub async fn carry_rows(self: Arc<Self>, client: Client) {
        loop {
            self.rows.notified().await;
            while let Some(wanted) = self.next_rows() {
                let _hold = self.hold(&wanted.key, None);
                let query = HistoryQuery {
                    after_seq: wanted.after,
                    limit: ROWS_AT_ONCE,
                };
                let history = match client.history(wanted.key.to_string(), query).await {
                    Err(_) => return,
                    Ok(Err(error)) => {
                        tracing::warn!(?error, "rows that came to a transcript can't be read now");
                        self.lock().put_off(wanted);
                        continue;
                    }
                    Ok(Ok(history)) => history,
                };
                let mut state = self.lock();
                if !state.tell_rows(&wanted, &history) {
                    for run in &wanted.runs {
                        state.mark(&wanted.key, run);
                    }
                }
            }
        }
    }

    fn next_rows(&self) -> Option<Wanted> {
        let mut state = self.lock();
        let key = state.dirty.pop_first()?;
        let log = state.logs.get_mut(&key)?;
        let runs = std::mem::take(&mut log.dirty);
        let all = log.rows.map(|(_, row)| row);
        let hears_all = state
            .listeners
            .values()
            .any(|listener| listener.roster && !listener.keys.contains_key(&key));
        let own = state
            .listeners
            .values()
            .filter_map(|listener| listener.keys.get(&key).map(|(_, row)| *row))
            .min();
        let after = match (hears_all, own) {
            (false, own) => own,
            (true, None) => all,
            (true, Some(own)) => Some(all.map_or(own, |all| all.min(own))),
        };
        Some(Wanted {
            key,
            runs,
            after,
            hears_all,
        })
    }
}

impl State {
    /// The next row of the session brings these along; by itself none is read again.
    fn put_off(&mut self, wanted: Wanted) {
        if let Some(log) = self.logs.get_mut(&wanted.key) {
            // Who hears of runs is told the newest rows: more runs than that are of no use.
            let room = (ROWS_AT_ONCE as usize).saturating_sub(log.dirty.len());
            log.dirty.extend(wanted.runs.into_iter().take(room));
        }
    }

    /// Tells rows to who has not heard them. `false`: there are more, read again.
    fn tell_rows(&mut self, wanted: &Wanted, history: &History) -> bool {
        let Some(log) = self.logs.get_mut(&wanted.key) else {
            return true;
        };
        let generation = history.generation;
        let mut lowest = u64::MAX;
        let anew = |place: &mut (u64, u64)| {
            if place.0 < generation {
                *place = (generation, 0);
            }
            place.1
        };
        for listener in self.listeners.values_mut() {
            if let Some(place) = listener.keys.get_mut(&wanted.key) {
                lowest = lowest.min(anew(place));
            }
        }
        if let Some(place) = &mut log.rows {
            let row = anew(place);
            lowest = if wanted.hears_all {
                lowest.min(row)
            } else {
                lowest
            };
        }
        if wanted.after.is_some_and(|after| after > lowest) {
            return false;
        }
        let payloads: Vec<Arc<str>> = history
            .rows
            .iter()
            .map(|row| payload(row, &wanted.key, generation))
            .collect();
        let last = history.rows.last().map(|row| row.seq);
        let all = log.rows.filter(|(of, _)| *of == generation);
        for listener in self.listeners.values_mut() {
            let own = listener.keys.get_mut(&wanted.key);
            let told = own.as_ref().map(|place| place.1).or(all.map(|all| all.1));
            let is_new = |row: &TranscriptRow| match told {
                Some(told) => row.seq > told,
                None => wanted.runs.contains(row.run_key.as_str()),
            };
            if own.is_none() && !listener.roster {
                continue;
            }
            for (row, payload) in history.rows.iter().zip(&payloads) {
                if is_new(row) {
                    let name = event_name::SESSION_MESSAGE;
                    listener.outbox.event(name, payload, false);
                }
            }
            if let (Some(place), Some(last)) = (own, last) {
                place.1 = place.1.max(last);
            }
        }
        let reached = last.unwrap_or(history.last_seq);
        log.rows = Some((generation, reached.max(all.map_or(0, |(_, row)| row))));
        reached >= history.last_seq
    }
}

fn payload(row: &TranscriptRow, key: &str, generation: u64) -> Arc<str> {
    let message = message(row, key, generation);
    words::written(&SessionMessage {
        session_key: key.to_owned(),
        agent_id: agent_of(key).to_owned(),
        session_id: session_id(key, generation),
        message_id: message.row.id.clone(),
        message_seq: row.seq,
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Interest;
    use crate::outbox::{Out, Outbox, close};
    use tidegate_core::{RunId, Wall};
    use tidegate_driver::{Role, RowMark};

    const KEY: &str = "agent:main:one";

    fn history(generation: u64, seqs: &[u64], last_seq: u64) -> History {
        let rows = seqs.iter().map(|&seq| TranscriptRow {
            seq,
            role: Role::User,
            mark: RowMark::Whole,
            run: RunId::from_u128(1),
            run_key: format!("run-{seq}"),
            turn: RunId::from_u128(1),
            queue: None,
            at: Wall(1),
            text: String::new(),
            calls: Vec::new(),
            answers: None,
        });
        History {
            generation,
            rows: rows.collect(),
            last_seq,
            pending: Vec::new(),
            pending_total: 0,
        }
    }

    fn wanted(after: Option<u64>, hears_all: bool) -> Wanted {
        Wanted {
            key: KEY.into(),
            runs: BTreeSet::from(["run-3".into()]),
            after,
            hears_all,
        }
    }

    /// Subscribes a connection that has heard the rows up to this one.
    fn join(hub: &Hub, listener: u64, row: u64) {
        let joined = hub.subscribe(listener, KEY, (1, row), (0, None), |_| "{}".to_owned());
        assert_eq!(joined, Some(true));
    }

    /// The numbers of the rows that a connection was told.
    async fn told(outbox: &Outbox) -> Vec<u64> {
        outbox.close(close::NORMAL, "");
        let mut told = Vec::new();
        while let Out::Text(text) = outbox.next().await {
            let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
            told.extend(frame["payload"]["messageSeq"].as_u64());
        }
        told
    }

    /// surface 3.3: each hears the rows that it has not heard, and who hears of all sessions
    /// those of the runs that it was told of
    #[tokio::test]
    async fn each_listener_hears_each_row_once() {
        let hub = Arc::new(Hub::default());
        let _hold = hub.hold(KEY, None);
        let outboxes: [Arc<Outbox>; 3] = std::array::from_fn(|_| Arc::default());
        let listening = outboxes
            .each_ref()
            .map(|outbox| hub.listen(outbox, Interest::Everything));
        for (listening, row) in listening.iter().zip([0, 2]) {
            join(&hub, listening.id, row);
        }
        hub.set_roster(listening[2].id, true);
        {
            let mut state = hub.lock();
            assert!(state.tell_rows(&wanted(Some(0), true), &history(1, &[1, 2, 3], 3)));
            assert!(state.tell_rows(&wanted(Some(3), true), &history(1, &[4], 4)));
        }
        assert_eq!(told(&outboxes[0]).await, [1, 2, 3, 4]);
        assert_eq!(told(&outboxes[1]).await, [3, 4]);
        assert_eq!(told(&outboxes[2]).await, [3, 4]);
    }

    /// surface 3.3: rows that could not be read come with the next ones, also for who hears of
    /// all sessions alone; they are not asked for by themselves, and not kept for nobody
    #[test]
    fn rows_that_could_not_be_read_come_with_the_next() {
        let hub = Arc::new(Hub::default());
        let hold = hub.hold(KEY, None);
        let [staying, leaving] = [(); 2].map(|()| {
            let listening = hub.listen(&Arc::default(), Interest::Everything);
            hub.set_roster(listening.id, true);
            listening
        });
        let fail = |run: &str| {
            hub.lock().mark(&KEY.into(), &run.into());
            let wanted = hub.next_rows().expect("it was marked");
            let runs: Vec<String> = wanted.runs.iter().map(ToString::to_string).collect();
            hub.lock().put_off(wanted);
            runs
        };
        assert_eq!(fail("run-1"), ["run-1"]);
        assert!(hub.next_rows().is_none(), "it would be read for ever");
        drop(hold);
        assert_eq!(fail("run-2"), ["run-1", "run-2"]);
        drop(leaving);
        assert_eq!(fail("run-3"), ["run-1", "run-2", "run-3"]);
        hub.set_roster(staying.id, false);
        assert!(hub.lock().logs.is_empty());
        drop(staying);
    }

    /// P18: rows of a conversation that began anew are read again from the first
    #[test]
    fn a_new_conversation_is_read_from_its_beginning() {
        let hub = Arc::new(Hub::default());
        let _hold = hub.hold(KEY, None);
        let listening = hub.listen(&Arc::default(), Interest::Everything);
        join(&hub, listening.id, 7);
        let mut state = hub.lock();
        assert!(!state.tell_rows(&wanted(Some(7), false), &history(2, &[], 2)));
        assert_eq!(state.listeners[&listening.id].keys[KEY], (2, 0));
        // A piece at a time: there are more.
        assert!(!state.tell_rows(&wanted(Some(0), false), &history(2, &[1], 2)));
        assert!(state.tell_rows(&wanted(Some(1), false), &history(2, &[2], 2)));
        assert_eq!(state.listeners[&listening.id].keys[KEY], (2, 2));
        drop(state);
    }

    /// P18: the same for who hears of all sessions
    #[test]
    fn a_new_conversation_is_read_anew_for_who_hears_of_all() {
        let hub = Arc::new(Hub::default());
        let _hold = hub.hold(KEY, None);
        let listening = hub.listen(&Arc::default(), Interest::Everything);
        hub.set_roster(listening.id, true);
        let mut state = hub.lock();
        assert!(state.tell_rows(&wanted(None, true), &history(1, &[1, 2, 3], 3)));
        assert!(!state.tell_rows(&wanted(Some(3), true), &history(2, &[], 2)));
        assert_eq!(state.logs[KEY].rows, Some((2, 0)));
        assert!(state.tell_rows(&wanted(Some(0), true), &history(2, &[1, 2], 2)));
        drop(state);
    }
}
