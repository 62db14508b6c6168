//! The numbers of the tools. They bound IO and memory; none of them ends a call that goes well,
//! that is the core's limit (law 1).

/// The longest command, in bytes: Linux takes 128 KiB for one argument, its final NUL included.
pub const COMMAND_LIMIT_BYTES: usize = 128 * 1024 - 1;

/// How much of a call's output is streamed as it comes, in bytes.
pub const HEAD_BYTES: usize = 32 * 1024;

/// How much of what comes after [`HEAD_BYTES`] is kept, in bytes: the last of it.
pub const TAIL_BYTES: usize = 32 * 1024;

/// The longest escape sequence that is looked for its end, in characters. What claims to be
/// longer is text: one stray introducer must not swallow an output.
pub(crate) const ESCAPE_LIMIT_CHARS: u32 = 4096;

/// How much is read at once, in bytes.
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// How much is still taken from a pipe after its group is gone, in bytes: the most that an
/// unprivileged process can have made a pipe hold on Linux.
pub(crate) const DRAIN_BYTES: usize = 1024 * 1024;

/// How long a command may take to end after SIGTERM, before SIGKILL, in milliseconds.
pub const STOP_GRACE_MS: u64 = 2_000;

/// How long the output is still read after the shell itself has ended, in milliseconds. A child
/// in the background that keeps it open must not hold the call for ever.
pub const LINGER_MS: u64 = 500;

/// How long a killed group is waited for, in milliseconds. A kill is done in less than one; only
/// what hangs in a device is seen longer, and ends when that lets it go.
pub const GONE_WAIT_MS: u64 = 1_000;

/// How often a killed group is looked for, in milliseconds: no event tells of its end.
pub(crate) const GONE_LOOK_MS: u64 = 2;

/// The waits around the end of a command, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From SIGTERM to SIGKILL: [`STOP_GRACE_MS`].
    pub stop_grace_ms: u64,
    /// From the end of the shell to the end of reading: [`LINGER_MS`].
    pub linger_ms: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            stop_grace_ms: STOP_GRACE_MS,
            linger_ms: LINGER_MS,
        }
    }
}
