//! Streams as providers really send them, each cut in every way (P39).

use futures_util::{FutureExt, StreamExt, stream};
use proptest::prelude::*;
use tidegate_core::Marker;
use tidegate_text::{
    ChatEnd, ChatError, ChatFact, ChatStream, Finish, Oversized, SseItem, SseParser, Usage,
    read_whole_answer,
};

const LIMIT_BYTES: usize = 4096;
const COMPLETED: ChatEnd = ChatEnd::Completed;
const INCOMPLETE: ChatEnd = ChatEnd::Incomplete {
    unfinished_bytes: 0,
};

/// A stream, and what it must be read as.
struct Fixture {
    id: &'static str,
    stream: Vec<u8>,
    facts: Vec<ChatFact>,
    end: ChatEnd,
}

fn text(text: &str) -> ChatFact {
    ChatFact::Text(text.to_owned())
}

fn stop() -> ChatFact {
    ChatFact::Finish(Finish::Stop)
}

fn fixture(id: &'static str, stream: &[u8], facts: Vec<ChatFact>, end: ChatEnd) -> Fixture {
    Fixture {
        id,
        stream: stream.to_vec(),
        facts,
        end,
    }
}

fn framing() -> Vec<Fixture> {
    vec![
        fixture(
            "S-01",
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ti\"}}]}\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"de\"}}]}\r\n\r\n",
            vec![text("ti"), text("de")],
            INCOMPLETE,
        ),
        fixture(
            "S-01, bare CR",
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ti\"}}]}\r\rdata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"de\"}}]}\r\r",
            vec![text("ti"), text("de")],
            INCOMPLETE,
        ),
        fixture(
            "S-02",
            b"\xEF\xBB\xBFdata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xE6\xBD\xAE\xE6\xB1\x90\"}}]}\n\n",
            vec![text("\u{6F6E}\u{6C50}")],
            INCOMPLETE,
        ),
        fixture(
            "S-03",
            b"data:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata:[DONE]\n\n",
            vec![text("a"), stop(), ChatFact::Done],
            COMPLETED,
        ),
        fixture(
            "S-05",
            b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n: ka\n\n: ka\n\n: ka\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\n",
            vec![ChatFact::Structure, ChatFact::Alive, ChatFact::Alive, ChatFact::Alive, text("ok")],
            INCOMPLETE,
        ),
        fixture(
            "S-06",
            b"event: ping\ndata: {\"type\":\"ping\"}\n\nevent: ping\n\nevent: lamp_lit\ndata: {\"type\":\"lamp_lit\"}\n\nevent: odd\ndata: not json\n\ndata:\n\n",
            vec![ChatFact::Alive; 5],
            INCOMPLETE,
        ),
        fixture(
            "an event that is no JSON object",
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"de\n\ndata: 7\n\n",
            vec![text("a"), ChatFact::Unreadable, ChatFact::Unreadable],
            INCOMPLETE,
        ),
    ]
}

fn endings() -> Vec<Fixture> {
    vec![
        fixture(
            "S-07",
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half an ans\"}}]}\n\n",
            vec![text("half an ans")],
            INCOMPLETE,
        ),
        fixture(
            "S-07, within an event",
            b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\ndata: [DONE]\n",
            vec![text("half")],
            ChatEnd::Incomplete { unfinished_bytes: 7 },
        ),
        fixture(
            "S-08",
            b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            vec![stop()],
            COMPLETED,
        ),
        fixture("S-08, the other way", b"data: [DONE]\n\n", vec![ChatFact::Done], COMPLETED),
        fixture(
            "S-09",
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"828\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            vec![ChatFact::Reasoning, stop(), text("828"), stop(), ChatFact::Done],
            COMPLETED,
        ),
        fixture(
            "S-10, and nothing after the end",
            b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"tail\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"!\"},\"finish_reason\":null}]}\n\ndata: [DONE]\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"ghost\"}}]}\n\n",
            vec![text("tail"), stop(), text("!"), ChatFact::Done],
            COMPLETED,
        ),
        fixture(
            "S-10, and no other sign of the end",
            b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"!\"}}]}\n\n",
            vec![ChatFact::Finish(Finish::Length), text("!")],
            COMPLETED,
        ),
        fixture(
            "S-12",
            b"data: {\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
            vec![ChatFact::Structure, text("a")],
            INCOMPLETE,
        ),
        fixture(
            "S-13",
            b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n",
            vec![ChatFact::Usage(Usage { prompt_tokens: 3, completion_tokens: 4 }), ChatFact::Done],
            COMPLETED,
        ),
    ]
}

fn failures() -> Vec<Fixture> {
    let error = |status, marker, message: &str| {
        ChatFact::Error(ChatError {
            status,
            marker,
            message: message.to_owned(),
        })
    };
    vec![
        fixture(
            "S-16",
            b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
            vec![error(None, Marker::Overloaded, "busy")],
            INCOMPLETE,
        ),
        fixture(
            "S-16, in plain words",
            b"event: error\ndata: the server is busy\n\n",
            vec![error(None, Marker::Overloaded, "the server is busy")],
            INCOMPLETE,
        ),
        fixture(
            "S-17",
            b"data: {\"error\":{\"message\":\"bad request field\",\"type\":\"invalid_request_error\",\"code\":400}}\n\n",
            vec![error(Some(400), Marker::Format, "bad request field")],
            INCOMPLETE,
        ),
        fixture(
            "S-19",
            b"event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_is_overloaded\",\"message\":\"later\"}}}\n\n",
            vec![error(None, Marker::Overloaded, "later")],
            INCOMPLETE,
        ),
        fixture(
            "S-19, and no reason",
            b"data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":null}}\n\n",
            vec![error(None, Marker::None, "")],
            INCOMPLETE,
        ),
        fixture(
            "S-17, beside an empty choice",
            b"data: {\"error\":{\"message\":\"gone\",\"code\":\"502\"},\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
            vec![error(Some(502), Marker::None, "gone")],
            INCOMPLETE,
        ),
    ]
}

fn fixtures() -> Vec<Fixture> {
    framing()
        .into_iter()
        .chain(endings())
        .chain(failures())
        .collect()
}

fn read<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ChatFact>, Result<ChatEnd, Oversized>) {
    let (mut reader, mut facts) = (ChatStream::new(LIMIT_BYTES), Vec::new());
    for piece in pieces {
        if let Err(oversized) = reader.push(piece, &mut facts) {
            return (facts, Err(oversized));
        }
    }
    (facts, Ok(reader.end()))
}

/// Cuts a stream at positions that are given as parts of its length in 1/65536.
fn cut<'a>(stream: &'a [u8], at: &[u16]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = at
        .iter()
        .map(|&at| (stream.len() * usize::from(at)) >> 16)
        .collect();
    at.sort_unstable();
    at.push(stream.len());
    let mut from = 0;
    at.into_iter()
        .map(|to| &stream[core::mem::replace(&mut from, to)..to])
        .collect()
}

/// P38, P39, S-01, S-02, S-03, S-05, S-06, S-07, S-08, S-09, S-10, S-12, S-13, S-16, S-17, S-19
#[test]
fn a_stream_says_the_same_however_it_is_cut() {
    for Fixture {
        id,
        stream,
        facts,
        end,
    } in fixtures()
    {
        let expected = (facts, Ok(end));
        assert_eq!(read([&stream[..]]), expected, "{id}, whole");
        assert_eq!(read(stream.chunks(1)), expected, "{id}, byte by byte");
        for at in 0..=stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(read([head, tail]), expected, "{id}, cut at {at}");
        }
    }
}

/// S-04: what came before is kept, memory is bounded, and there is no way on.
#[test]
fn an_oversized_event_is_an_error_of_its_own() {
    let mut stream = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: ".to_vec();
    stream.resize(stream.len() + LIMIT_BYTES, b'z');
    for size in [1, 7, 4096, stream.len()] {
        let read = read(stream.chunks(size));
        assert_eq!(
            read,
            (
                vec![text("a")],
                Err(Oversized {
                    limit_bytes: LIMIT_BYTES
                })
            )
        );
    }
}

#[test]
fn a_whole_document_is_a_whole_answer() {
    let body = br#"{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let usage = ChatFact::Usage(Usage {
        prompt_tokens: 1,
        completion_tokens: 2,
    });
    assert_eq!(
        read_whole_answer(body).0,
        [text("all"), stop(), usage, ChatFact::Done]
    );
    assert_eq!(
        read_whole_answer(&body[..body.len() - 1]).0,
        [ChatFact::Unreadable]
    );
    assert_eq!(
        read_whole_answer(b"{\"status\":\"up\"}").0,
        [ChatFact::Unreadable]
    );
    let (failed, _) = read_whole_answer(b"{\"error\":{\"message\":\"no\",\"code\":503}}");
    assert!(matches!(
        failed[..],
        [ChatFact::Error(ChatError {
            status: Some(503),
            ..
        })]
    ));
}

#[test]
fn content_in_parts_is_read_and_unknown_content_is_not_skipped() {
    let read = |content: &str| {
        read([
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{content}}}}}]}}\n\n")
                .as_bytes(),
        ])
        .0
    };
    let parts = r#"[{"type":"thinking","thinking":[]},{"type":"text","text":"so"}]"#;
    assert_eq!(read(parts), [ChatFact::Reasoning, text("so")]);
    assert_eq!(read("null"), [ChatFact::Structure]);
    assert_eq!(read("7"), [ChatFact::Unreadable]);
    assert_eq!(read(r#"[{"type":"image"}]"#), [ChatFact::Unreadable]);
}

#[test]
fn an_alternative_choice_is_no_part_of_the_reply() {
    let stream = b"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}},{\"index\":0,\"delta\":{\"refusal\":\"I can't.\"}}]}\n\n";
    assert_eq!(read([&stream[..]]).0, [text("I can't.")]);
}

fn items(stream: &[u8]) -> Vec<(String, String)> {
    let (mut parser, mut items) = (SseParser::new(usize::MAX), Vec::new());
    parser.push(stream, &mut items).unwrap();
    let events = items.into_iter().filter_map(|item| match item {
        SseItem::Event { name, data } => Some((name, data)),
        SseItem::Comment => None,
    });
    events.collect()
}

/// The same stream read by an independent parser.
fn other_reading(pieces: Vec<&[u8]>) -> Vec<(String, String)> {
    let pieces = pieces
        .into_iter()
        .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()));
    let pieces: Vec<_> = pieces
        .map(|piece| piece.map(std::io::Cursor::new))
        .collect();
    let events = sse_stream::SseByteStream::new(stream::iter(pieces)).collect::<Vec<_>>();
    let events = events.now_or_never().expect("all pieces are at hand");
    let events = events
        .into_iter()
        .map(|event| event.expect("the stream is UTF-8"));
    events
        .filter_map(|event| Some((event.event.unwrap_or_default(), event.data?)))
        .collect()
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "data: a",
        "data:b",
        "data:  c",
        "data",
        "data: \u{6F6E}",
        "dat",
        ": ka",
        ":",
        "event: ping",
        "event:",
        "event: x",
        "id: 1",
        "retry: 5",
        "",
        "",
        "",
        "x: y",
        " data: no",
        "data : no",
    ])
}

proptest! {
    /// P39
    #[test]
    fn random_cuts_change_nothing(which in 0..fixtures().len(), at in prop::collection::vec(any::<u16>(), 0..12)) {
        let Fixture { id, stream, facts, end } = fixtures().swap_remove(which);
        prop_assert_eq!(read(cut(&stream, &at)), (facts, Ok(end)), "{}", id);
    }

    /// P39: nor do they in streams of any bytes.
    #[test]
    fn any_bytes_read_the_same_however_they_are_cut(
        bytes in prop::collection::vec(prop::sample::select(b"data:event \r\n\xE6\xBD\xAE{}[]".to_vec()), 0..200),
        at in prop::collection::vec(any::<u16>(), 0..12),
    ) {
        prop_assert_eq!(read(cut(&bytes, &at)), read([&bytes[..]]));
    }

    #[test]
    fn an_independent_parser_agrees(
        bom in any::<bool>(),
        lines in prop::collection::vec((line(), prop::sample::select(vec!["\n", "\r", "\r\n"])), 0..24),
        at in prop::collection::vec(any::<u16>(), 0..6),
    ) {
        let mut stream = if bom { "\u{FEFF}".to_owned() } else { String::new() };
        stream.extend(lines.iter().flat_map(|(line, end)| [*line, *end]));
        let stream = stream.as_bytes();
        prop_assert_eq!(items(stream), other_reading(cut(stream, &at)));
    }
}
