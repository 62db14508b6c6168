//! Asks a gateway by HTTP whether it lets work in (`/readyz`).
//!
//! It adds a word to what the protocol's `health` says, and decides nothing. Whatever goes
//! wrong here is no answer, and no error of the command.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::target::Address;

/// For the whole question; the gateway takes 2 s for a driver that does not answer.
const PROBE_MS: u64 = 4_000;
/// The most bytes of an answer (law 9).
const ANSWER_BYTES: u64 = 64 * 1024;

/// Whether the gateway drains; `None` if it does not say, as it does to its own machine only.
pub async fn is_draining(address: &Address) -> Option<bool> {
    let limit = Duration::from_millis(PROBE_MS);
    let asked = tokio::time::timeout(limit, ready(address)).await;
    draining(&asked.ok()?.ok()?)
}

async fn ready(address: &Address) -> io::Result<String> {
    let mut socket = TcpStream::connect((address.host.as_str(), address.port)).await?;
    let request = format!(
        "GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        address.authority()
    );
    socket.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    socket
        .take(ANSWER_BYTES)
        .read_to_string(&mut answer)
        .await?;
    Ok(answer)
}

/// What the answer says of a drain.
fn draining(answer: &str) -> Option<bool> {
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let body: Value = serde_json::from_str(body).ok()?;
    let failing = body.get("failing")?.as_array()?;
    Some(failing.iter().any(|why| why == "gateway-draining"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_readiness_that_gives_its_reasons_tells_of_a_drain() {
        for (body, says) in [
            ("{\"ready\":true,\"failing\":[]}", Some(false)),
            (
                "{\"ready\":false,\"failing\":[\"core-halted\"]}",
                Some(false),
            ),
            (
                "{\"ready\":false,\"failing\":[\"gateway-draining\"]}",
                Some(true),
            ),
            ("{\"ready\":false}", None),
            ("[]", None),
            ("", None),
        ] {
            let answer = format!("HTTP/1.1 503 X\r\nA: b\r\n\r\n{body}");
            assert_eq!(draining(&answer), says, "{body}");
        }
        assert_eq!(draining("{}"), None);
    }
}
