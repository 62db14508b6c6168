//! What waits to be written to one connection: bounded in bytes, numbered when it is put in.
//!
//! Producers never wait. A reader that is too slow first loses text events, whose numbers
//! are consumed so that it sees the gap; what may not be lost closes the connection instead.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_wire::event_text;
use tokio::sync::Notify;

use crate::limits::{CLOSE_REASON_BYTES, MAX_BUFFERED_BYTES};

/// Close codes (RFC 6455, 7.4.1).
pub(crate) mod close {
    pub const NORMAL: u16 = 1000;
    pub const PROTOCOL: u16 = 1002;
    pub const POLICY: u16 = 1008;
    pub const TOO_BIG: u16 = 1009;
    pub const INTERNAL: u16 = 1011;
    pub const RESTART: u16 = 1012;
}

/// Something to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// A text frame.
    Text(String),
    /// A ping.
    Ping,
    /// The last frame: code and reason.
    Close(u16, String),
}

#[derive(Debug)]
enum Queued {
    Text(String),
    Event {
        name: &'static str,
        payload: Arc<str>,
        seq: u64,
    },
    Ping,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Queued>,
    bytes: usize,
    seq: u64,
    closing: Option<(u16, String)>,
}

/// The frames that wait for one connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    inner: Mutex<Inner>,
    filled: Notify,
}

impl Outbox {
    /// Puts in a response. Never lost while the connection lives.
    pub fn respond(&self, text: String) {
        let mut inner = self.lock();
        if inner.make_room(text.len()) {
            inner.queue.push_back(Queued::Text(text));
        }
        drop(inner);
        self.filled.notify_one();
    }

    /// Puts in an event under the connection's next number.
    pub fn event(&self, name: &'static str, payload: &Arc<str>, droppable: bool) {
        let mut inner = self.lock();
        if inner.closing.is_some() {
            return;
        }
        inner.seq += 1;
        let seq = inner.seq;
        if droppable && inner.bytes + payload.len() > MAX_BUFFERED_BYTES {
            return;
        }
        if inner.make_room(payload.len()) {
            inner.queue.push_back(Queued::Event {
                name,
                payload: Arc::clone(payload),
                seq,
            });
        }
        drop(inner);
        self.filled.notify_one();
    }

    /// Puts in a ping, unless the connection closes.
    pub fn ping(&self) {
        let mut inner = self.lock();
        if inner.closing.is_none() {
            inner.queue.push_back(Queued::Ping);
        }
        drop(inner);
        self.filled.notify_one();
    }

    /// Closes behind what waits already. The first close counts.
    pub fn close(&self, code: u16, reason: &str) {
        self.lock().close(code, reason);
        self.filled.notify_one();
    }

    /// Closes and forgets what waits: nobody will read it.
    pub fn abandon(&self, code: u16, reason: &str) {
        let mut inner = self.lock();
        inner.queue.clear();
        inner.bytes = 0;
        inner.close(code, reason);
        drop(inner);
        self.filled.notify_one();
    }

    /// Whether the connection closes.
    pub fn is_closing(&self) -> bool {
        self.lock().closing.is_some()
    }

    /// The next frame to write. After [`Out::Close`] there is none.
    pub async fn next(&self) -> Out {
        loop {
            if let Some(out) = self.lock().pop() {
                return out;
            }
            self.filled.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The queue is whole after every statement, so a panic elsewhere left nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Counts `bytes` in, or closes because they do not fit.
    fn make_room(&mut self, bytes: usize) -> bool {
        if self.closing.is_some() {
            return false;
        }
        if self.bytes + bytes > MAX_BUFFERED_BYTES {
            self.queue.clear();
            self.bytes = 0;
            self.close(close::POLICY, "slow consumer");
            return false;
        }
        self.bytes += bytes;
        true
    }

    fn close(&mut self, code: u16, reason: &str) {
        let mut end = reason.len().min(CLOSE_REASON_BYTES);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        self.closing
            .get_or_insert_with(|| (code, reason[..end].to_owned()));
    }

    fn pop(&mut self) -> Option<Out> {
        Some(match self.queue.pop_front() {
            Some(Queued::Text(text)) => {
                self.bytes -= text.len();
                Out::Text(text)
            }
            Some(Queued::Event { name, payload, seq }) => {
                self.bytes -= payload.len();
                Out::Text(event_text(name, &payload, seq))
            }
            Some(Queued::Ping) => Out::Ping,
            None => {
                let (code, reason) = self.closing.clone()?;
                Out::Close(code, reason)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(bytes: usize) -> Arc<str> {
        "x".repeat(bytes).into()
    }

    fn drain(outbox: &Outbox) -> Vec<Out> {
        let mut all = Vec::new();
        while let Some(out) = outbox.lock().pop() {
            let last = matches!(out, Out::Close(..));
            all.push(out);
            if last {
                break;
            }
        }
        all
    }

    /// Law 9: a slow reader loses text, sees that it did, and keeps its connection
    #[test]
    fn a_skipped_text_event_consumes_its_number() {
        let outbox = Outbox::default();
        outbox.event("chat", &payload(MAX_BUFFERED_BYTES - 1), true);
        outbox.event("chat", &payload(2), true);
        outbox.event("chat", &"1".into(), false);
        let texts = drain(&outbox);
        assert_eq!(texts.len(), 2);
        assert_eq!(
            texts[1],
            Out::Text(r#"{"type":"event","event":"chat","payload":1,"seq":3}"#.into())
        );
        assert!(!outbox.is_closing());
    }

    /// Law 9: what may not be lost and does not fit closes the connection, at once
    #[test]
    fn what_may_not_be_lost_closes_a_slow_connection() {
        for put in [
            (|o: &Outbox| o.event("chat", &payload(2), false)) as fn(&Outbox),
            |o: &Outbox| o.respond("xx".into()),
        ] {
            let outbox = Outbox::default();
            outbox.event("chat", &payload(MAX_BUFFERED_BYTES - 1), true);
            put(&outbox);
            assert_eq!(
                drain(&outbox),
                [Out::Close(close::POLICY, "slow consumer".into())]
            );
        }
    }

    /// The reason of a close is the first one, cut to what a close frame holds.
    #[test]
    fn the_first_close_counts_and_its_reason_fits() {
        let outbox = Outbox::default();
        outbox.respond("a".into());
        outbox.close(close::POLICY, &"é".repeat(100));
        outbox.close(close::NORMAL, "late");
        outbox.respond("b".into());
        outbox.ping();
        assert_eq!(
            drain(&outbox),
            [
                Out::Text("a".into()),
                Out::Close(close::POLICY, "é".repeat(61))
            ]
        );
    }
}
