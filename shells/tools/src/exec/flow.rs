//! The way of an output from a command's pipe to whoever waits for it.
//!
//! Owns the pipe's reading end and the order in which things happen: reading never waits for
//! the receiver, since what is held in between is bounded. It ends no call by itself.

use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::pin::pin;

use futures_util::future::BoxFuture;
use tidegate_driver::ToolSink;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::bounded::Bounded;
use crate::clean::Cleaner;
use crate::limits::{DRAIN_BYTES, READ_BYTES};

/// An output under way. See the module.
pub(crate) struct Flow {
    /// Until its end.
    pipe: Option<pipe::Receiver>,
    buffer: Box<[u8]>,
    cleaner: Cleaner,
    bounded: Bounded,
    sender: Sender,
}

/// What was read and is not yet taken: at most what the bound lets through.
struct Sender {
    sink: ToolSink,
    waiting: String,
    /// The piece that is being handed over. Kept here, so that no wait that is given up loses it.
    sending: Option<BoxFuture<'static, ()>>,
}

impl Flow {
    /// An output that comes through `pipe` and goes to `sink`.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn new(pipe: PipeReader, sink: ToolSink) -> io::Result<Self> {
        Ok(Self {
            pipe: Some(pipe::Receiver::from_owned_fd(OwnedFd::from(pipe))?),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            cleaner: Cleaner::new(),
            bounded: Bounded::default(),
            sender: Sender {
                sink,
                waiting: String::new(),
                sending: None,
            },
        })
    }

    /// Lets the output flow until `event`.
    pub(crate) async fn until<T>(&mut self, event: impl Future<Output = T>) -> T {
        let mut event = pin!(event);
        loop {
            tokio::select! {
                biased;
                value = &mut event => return value,
                () = self.step() => {}
            }
        }
    }

    /// Lets the output flow until nobody can write to its pipe any more.
    pub(crate) async fn closed(&mut self) {
        while self.pipe.is_some() {
            self.step().await;
        }
    }

    /// Takes what still lies in the pipe, closes it, and hands over all that is left, with
    /// `lines` behind it.
    pub(crate) async fn finish(mut self, lines: &[String]) {
        self.drain();
        let mut rest = String::new();
        self.cleaner.finish(&mut rest);
        self.sender.waiting.push_str(self.bounded.push(&rest));
        self.sender.waiting.push_str(&self.bounded.finish(lines));
        while self.sender.is_busy() {
            self.sender.send().await;
        }
    }

    /// Moves one piece: to the receiver if it can take one, else from the pipe. Waits for ever
    /// when there is neither. May be given up at any point.
    async fn step(&mut self) {
        let (sender, buffer) = (&mut self.sender, &mut self.buffer);
        let read = async {
            match &mut self.pipe {
                Some(pipe) => pipe.read(buffer).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = sender.send() => {}
            read = read => match read {
                Ok(bytes @ 1..) => self.take_in(bytes),
                // Nothing is the end, and so is a read that failed: a pipe does not mend.
                _ => self.pipe = None,
            }
        }
    }

    /// Takes what is in the pipe without waiting. Whoever still writes to it is not of the group.
    fn drain(&mut self) {
        let Some(pipe) = self.pipe.take() else { return };
        // Read past the runtime, which knows only of what it has looked at.
        let Ok(fd) = pipe.into_nonblocking_fd() else {
            return;
        };
        let mut pipe = PipeReader::from(fd);
        for _ in 0..DRAIN_BYTES / READ_BYTES {
            match pipe.read(&mut self.buffer) {
                Ok(bytes @ 1..) => self.take_in(bytes),
                _ => return,
            }
        }
    }

    fn take_in(&mut self, bytes: usize) {
        let mut text = String::new();
        self.cleaner.push(&self.buffer[..bytes], &mut text);
        self.sender.waiting.push_str(self.bounded.push(&text));
    }
}

impl Sender {
    fn is_busy(&self) -> bool {
        self.sending.is_some() || !self.waiting.is_empty()
    }

    /// Hands one piece over. Waits for ever when there is none.
    async fn send(&mut self) {
        if self.sending.is_none() && !self.waiting.is_empty() {
            let (sink, piece) = (self.sink.clone(), std::mem::take(&mut self.waiting));
            self.sending = Some(Box::pin(async move { sink.output(piece).await }));
        }
        match &mut self.sending {
            Some(sending) => sending.await,
            None => std::future::pending().await,
        }
        self.sending = None;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A process out of reach may hold the pipe: what was written counts, what may come does not.
    #[tokio::test]
    async fn what_lies_in_the_pipe_at_the_end_is_taken_and_no_more_waited_for() {
        let (reader, mut writer) = io::pipe().unwrap();
        let (sink, mut output, _stop) = ToolSink::channel(8);
        let flow = Flow::new(reader, sink).unwrap();
        writer.write_all(b"last words").unwrap();
        flow.finish(&["end".into()]).await;
        assert_eq!(output.recv().await.unwrap(), "last words\n[end]");
        assert!(writer.write_all(b"more").is_err(), "the pipe is closed");
    }
}
