//! A model server that answers every request at once and keeps its connections open, as a
//! real one does. What it says is always the same; it reads of a request only where it ends.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The pieces of each answer.
const PIECES: [&str; 3] = ["This is ", "the answer ", "to that."];
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
    Transfer-Encoding: chunked\r\n\r\n";
/// The end of a request's head.
const BLANK_LINE: &[u8] = b"\r\n\r\n";

/// The listening server. Dropping it ends it and its connections.
#[derive(Debug)]
pub struct Model {
    port: u16,
    _tasks: JoinSet<()>,
}

impl Model {
    /// Listens on a free port.
    ///
    /// # Errors
    /// If there is none.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener));
        Ok(Self {
            port,
            _tasks: tasks,
        })
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

async fn serve(listener: TcpListener) {
    let answer = answer();
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        connections.spawn(connection(socket, answer.clone()));
        // Those that have ended need no place any more.
        while connections.try_join_next().is_some() {}
    }
}

/// Answers request after request until the other side leaves.
async fn connection(mut socket: TcpStream, pieces: Vec<String>) {
    // Each piece is written when it is there, and must go out then.
    let _ = socket.set_nodelay(true);
    let mut bytes = Vec::new();
    while request(&mut socket, &mut bytes).await.is_some() {
        for piece in &pieces {
            if socket.write_all(piece.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Takes one request out of what comes; `None` when no whole one comes any more.
async fn request(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    loop {
        if let Some(length) = whole(bytes) {
            bytes.drain(..length);
            return Some(());
        }
        if socket.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// The length of the request that the bytes begin with, if all of it is there.
fn whole(bytes: &[u8]) -> Option<usize> {
    let head = bytes
        .windows(BLANK_LINE.len())
        .position(|four| four == BLANK_LINE)?;
    let text = std::str::from_utf8(bytes.get(..head)?).ok()?;
    let mut headers = text.lines().filter_map(|line| line.split_once(':'));
    let body = headers
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0);
    let length = head + BLANK_LINE.len() + body;
    (bytes.len() >= length).then_some(length)
}

/// What goes out for each request, write by write: head, pieces, end.
fn answer() -> Vec<String> {
    let mut writes = vec![HEAD.to_owned()];
    writes.extend(PIECES.map(|piece| {
        chunk(&format!(
            r#"{{"id":"c","object":"chat.completion.chunk","model":"bench","choices":[{{"index":0,"delta":{{"content":"{piece}"}},"finish_reason":null}}]}}"#
        ))
    }));
    let stop = chunk(
        r#"{"id":"c","object":"chat.completion.chunk","model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    );
    writes.push(stop + &chunk("[DONE]") + "0\r\n\r\n");
    writes
}

fn chunk(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_when_its_body_is_there() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST";
        assert_eq!(whole(&request[..38]), None);
        assert_eq!(whole(request), Some(request.len() - 4));
        assert_eq!(whole(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
    }
}
