//! Counts what a stranger sends: before it has proved itself, a socket gives out no more
//! than a bound.
//!
//! The bound lies below the frames, because a frame's length is only a claim: a header that
//! promises 25 MiB is not waited for. What came behind the handshake stays in the socket
//! until the gate opens, so a client may send ahead.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is read of a stranger at once, in bytes.
const STRANGER_CHUNK: usize = 4_096;

/// Opens a [`Gate`]: the peer has proved itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct GateKey(Arc<AtomicBool>);

impl GateKey {
    /// Opens it, for good.
    pub fn open(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A socket that may give out `left` bytes until it is opened.
#[derive(Debug)]
pub(crate) struct Gate<S> {
    io: S,
    left: usize,
    key: GateKey,
}

impl<S> Gate<S> {
    /// A closed gate before `io`.
    pub fn new(io: S, bytes: usize) -> (Self, GateKey) {
        let key = GateKey::default();
        (
            Self {
                io,
                left: bytes,
                key: key.clone(),
            },
            key,
        )
    }
}

/// Whether an error is the gate's own.
pub(crate) fn is_gate_error(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<PreauthTooLarge>())
}

#[derive(Debug)]
struct PreauthTooLarge;

impl std::fmt::Display for PreauthTooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the peer sent more than it may before it has proved itself")
    }
}

impl std::error::Error for PreauthTooLarge {}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.key.0.load(Ordering::Relaxed) {
            return Pin::new(&mut this.io).poll_read(cx, buf);
        }
        if this.left == 0 {
            return Poll::Ready(Err(io::Error::other(PreauthTooLarge)));
        }
        // A stranger sends little: a buffer of our own costs a copy and spares the unsafe code
        // of lending a part of the caller's.
        let mut part = [0; STRANGER_CHUNK];
        let room = this.left.min(STRANGER_CHUNK).min(buf.remaining());
        let mut part = ReadBuf::new(&mut part[..room]);
        ready!(Pin::new(&mut this.io).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.put_slice(part.filled());
        this.left -= read;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().io).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
