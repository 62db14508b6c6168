//! The cursor of a conversation: an opaque word that names where a client is, so that it can
//! come back after a lost socket or a restart and be told what it missed, and nothing twice.
//!
//! It names the life of the gateway, the conversation (key and generation), the last row of
//! its transcript and the last published event. Rows outlive the gateway, events do not.

use std::fmt::Write;

/// A place in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The generation of the transcript.
    pub generation: u64,
    /// The number of the last row; 0 before the first.
    pub row: u64,
    /// The number of the last published event; `None` if it was of another life.
    pub event: Option<u64>,
}

const FORM: &str = "t1";

/// The cursor of a place in this life of the gateway.
pub(crate) fn write(boot_id: &str, session_key: &str, place: Place) -> String {
    let event = place.event.unwrap_or_default();
    let mut cursor = format!("{FORM}.{:x}.{:x}.{event:x}.", place.generation, place.row);
    let _ = write!(cursor, "{:016x}.{boot_id}", mark(session_key));
    cursor
}

/// The place that a cursor names. `None`: it is none, or one of another session.
pub(crate) fn read(cursor: &str, boot_id: &str, session_key: &str) -> Option<Place> {
    let mut parts = cursor.splitn(6, '.');
    if parts.next()? != FORM {
        return None;
    }
    let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
    let (generation, row, event, session) = (number()?, number()?, number()?, number()?);
    let boot = parts.next()?;
    (session == mark(session_key)).then_some(Place {
        generation,
        row,
        event: (boot == boot_id).then_some(event),
    })
}

/// Tells the cursors of sessions apart that a client mixed up. No secret: FNV-1a.
fn mark(session_key: &str) -> u64 {
    session_key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// The name of a conversation: a session and its generation.
pub(crate) fn session_id(session_key: &str, generation: u64) -> String {
    format!("{session_key}#{generation}")
}

/// The generation that a session id names, if it is one of this session.
pub(crate) fn generation_of(session_id: &str, session_key: &str) -> Option<u64> {
    let (key, generation) = session_id.rsplit_once('#')?;
    (key == session_key)
        .then(|| generation.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P18: a cursor names one session's conversation, and its events one life of the gateway
    #[test]
    fn a_cursor_leads_back_to_its_place() {
        let place = Place {
            generation: 3,
            row: 17,
            event: Some(255),
        };
        let cursor = write("boot.1", "agent:main:a", place);
        assert_eq!(read(&cursor, "boot.1", "agent:main:a"), Some(place));
        let elsewhen = Place {
            event: None,
            ..place
        };
        assert_eq!(read(&cursor, "boot.2", "agent:main:a"), Some(elsewhen));
        assert_eq!(read(&cursor, "boot.1", "agent:main:b"), None);
        for bad in ["", "t1", "t1.1.2.3", "t2.3.11.ff.0.b", "t1.x.1.1.0.b"] {
            assert_eq!(read(bad, "b", ""), None, "{bad}");
        }
    }

    /// surface 2.5: a session id is that of one generation of one session
    #[test]
    fn a_session_id_names_its_generation() {
        let id = session_id("agent:main:a#1", 7);
        assert_eq!(generation_of(&id, "agent:main:a#1"), Some(7));
        assert_eq!(generation_of(&id, "agent:main:a"), None);
        assert_eq!(generation_of("agent:main:a", "agent:main:a"), None);
    }
}
