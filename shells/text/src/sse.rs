//! Reads a server-sent event stream, fed as the bytes come.
//!
//! Owns framing only: lines, fields, events. It never connects, waits or repeats, and it
//! does not know what the events mean. However the bytes are cut into pieces, the same
//! items come out (P39), each as soon as its last byte is in.

use core::mem;

/// The mark that a stream may begin with, and that is no part of its first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What the stream said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseItem {
    /// An event with data.
    Event {
        /// Its type; empty if it names none.
        name: String,
        /// Its data lines, joined by a line feed. Bytes that are no UTF-8 are replaced.
        data: String,
    },
    /// A sign of life without data: a comment line, or an event that ended with no data
    /// line (S-05, S-06).
    Comment,
}

/// An event grew beyond the parser's limit. The parser takes nothing more after it: where
/// the next event begins is not known (S-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one event of the stream is larger than {limit_bytes} bytes, the most that is read")]
pub struct Oversized {
    /// The limit, in bytes.
    pub limit_bytes: usize,
}

/// The parser. Holds at most its limit in bytes.
#[derive(Clone, Debug)]
pub struct SseParser {
    limit_bytes: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The type of the event that has not ended yet.
    name: Vec<u8>,
    /// Its data, each line followed by a line feed.
    data: Vec<u8>,
    /// Whether the event that has not ended yet has a line at all.
    open: bool,
    /// The last byte was a carriage return: a line feed now belongs to it (S-01).
    after_cr: bool,
    /// No line has ended yet, so the next one may begin with the byte order mark.
    at_start: bool,
    oversized: bool,
}

impl SseParser {
    /// A parser at the beginning of a stream. `limit_bytes` bounds what one event may hold.
    #[must_use]
    pub const fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            open: false,
            after_cr: false,
            at_start: true,
            oversized: false,
        }
    }

    /// Takes the next bytes and appends to `items` what they complete.
    ///
    /// # Errors
    /// [`Oversized`], now and ever after. Items that were complete before are in `items`.
    pub fn push(&mut self, mut bytes: &[u8], items: &mut Vec<SseItem>) -> Result<(), Oversized> {
        while let Some(&first) = bytes.first() {
            if mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|b| matches!(b, b'\r' | b'\n'));
            self.hold(&bytes[..end.unwrap_or(bytes.len())])?;
            let Some(end) = end else { break };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(items);
        }
        Ok(())
    }

    /// How many bytes of an event that never ended are held. At the end of a stream they
    /// are discarded, as the standard says; a number above 0 tells that it was cut.
    #[must_use]
    pub const fn unfinished_bytes(&self) -> usize {
        self.line.len() + self.name.len() + self.data.len()
    }

    /// Keeps a piece of a line, within the limit. What is held only grows within a line, so
    /// the verdict does not depend on how the line was cut.
    fn hold(&mut self, piece: &[u8]) -> Result<(), Oversized> {
        self.oversized |= piece.len() > self.limit_bytes.saturating_sub(self.unfinished_bytes());
        if self.oversized {
            return Err(Oversized {
                limit_bytes: self.limit_bytes,
            });
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self, items: &mut Vec<SseItem>) {
        let mut line = mem::take(&mut self.line);
        let mut text = line.as_slice();
        if mem::take(&mut self.at_start) {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        if text.is_empty() {
            items.extend(self.end_event());
        } else if text[0] == b':' {
            items.push(SseItem::Comment);
        } else {
            self.field(text);
        }
        line.clear();
        self.line = line; // its room is used again
    }

    /// `name:value`, `name: value` or `name` alone. One space is stripped, not two (S-03).
    /// Ids and retry times are for clients that connect again by themselves; we never do.
    fn field(&mut self, line: &[u8]) {
        self.open = true;
        let colon = line.iter().position(|&b| b == b':');
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
    }

    /// Bytes become text only here, when all of them are in: a character that was cut by a
    /// chunk boundary is whole again (S-02).
    fn end_event(&mut self) -> Option<SseItem> {
        let name = mem::take(&mut self.name);
        let mut data = mem::take(&mut self.data);
        if !mem::take(&mut self.open) {
            return None;
        }
        if data.pop().is_none() {
            return Some(SseItem::Comment);
        }
        Some(SseItem::Event {
            name: text(name),
            data: text(data),
        })
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &[u8]) -> Vec<SseItem> {
        let (mut parser, mut items) = (SseParser::new(1024), Vec::new());
        parser.push(stream, &mut items).unwrap();
        items
    }

    fn event(name: &str, data: &str) -> SseItem {
        SseItem::Event {
            name: name.into(),
            data: data.into(),
        }
    }

    #[test]
    fn data_lines_are_joined_and_one_space_is_stripped() {
        let stream = b"event: a\ndata:  x\ndata\ndata:y\nid: 7\nretry: 1\n\ndata: z\n\n";
        assert_eq!(read(stream), [event("a", " x\n\ny"), event("", "z")]);
    }

    /// S-05, S-06
    #[test]
    fn what_holds_no_data_is_a_sign_of_life() {
        assert_eq!(
            read(b": ka\n\nevent: ping\n\n\n\n"),
            [SseItem::Comment, SseItem::Comment]
        );
        assert_eq!(read(b"data\n\n"), [event("", "")]);
    }

    /// S-02
    #[test]
    fn only_bytes_that_are_truly_invalid_are_replaced() {
        assert_eq!(
            read(b"data: \xE6\xBD\xAE\xFF!\n\n"),
            [event("", "\u{6F6E}\u{FFFD}!")]
        );
    }

    #[test]
    fn a_byte_order_mark_is_stripped_at_the_start_and_nowhere_else() {
        let stream = b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n";
        assert_eq!(read(stream), [event("", "a"), SseItem::Comment]);
    }

    /// S-04
    #[test]
    fn an_event_beyond_the_limit_ends_the_reading_at_the_same_byte_for_every_cut() {
        let stream = b"data: ok\n\ndata: 12345\ndata: 67890\n\ndata: later\n\n";
        for size in 1..=stream.len() {
            let (mut parser, mut items) = (SseParser::new(16), Vec::new());
            let end = stream
                .chunks(size)
                .try_for_each(|chunk| parser.push(chunk, &mut items));
            assert_eq!(end, Err(Oversized { limit_bytes: 16 }), "chunks of {size}");
            assert_eq!(items, [event("", "ok")], "chunks of {size}");
            assert!(
                parser.push(b"\n\ndata: x\n\n", &mut items).is_err(),
                "no second life"
            );
        }
    }

    #[test]
    fn an_event_exactly_at_the_limit_passes() {
        let (mut parser, mut items) = (SseParser::new(11), Vec::new());
        parser.push(b"data: 12345\n\n", &mut items).unwrap();
        assert_eq!(items, [event("", "12345")]);
    }

    #[test]
    fn an_event_that_never_ended_is_discarded_and_told() {
        let (mut parser, mut items) = (SseParser::new(64), Vec::new());
        parser.push(b"data: whole\n\n", &mut items).unwrap();
        assert_eq!((items.len(), parser.unfinished_bytes()), (1, 0));
        parser.push(b"data: half\n", &mut items).unwrap();
        assert_eq!((items.len(), parser.unfinished_bytes()), (1, 5));
    }
}
