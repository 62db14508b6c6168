//! What one attempt came to, gathered from all who watched it (spec 1.4).
//!
//! Owns the ranks. An attempt's end is a set of facts that only grows, each of them a maximum;
//! so facts may come in any order, twice or grouped in any way, and the end is the same. What
//! the end is called is asked of the facts, and never stored.

use serde::{Deserialize, Serialize};

/// What an attempt came to. The later one in this list outranks the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttemptKind {
    /// It went through.
    Ok,
    /// Something went wrong.
    Failed,
    /// It was broken off.
    Aborted,
    /// A limit ended it.
    Timeout,
}

/// What an attempt was doing when a limit passed. The later one outranks the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttemptPhase {
    /// It waited for the model.
    Prompt,
    /// A tool was at work.
    ToolExecution,
    /// The transcript was being compacted.
    Compaction,
}

/// Who saw a limit pass. The later one outranks the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimeoutSource {
    /// It was noticed in passing. A note: it ends nothing.
    Observation,
    /// The runtime that carries the attempt.
    Runtime,
    /// The idle limit (R156).
    Idle,
    /// The budget of the run (R149).
    RunBudget,
    /// Somebody outside.
    External,
}

/// Who broke an attempt off. The later one outranks the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AbortSource {
    /// The run parked itself and its call was closed behind it. That is no abort.
    YieldCleanup,
    /// The runtime that carries the attempt.
    Runtime,
    /// Somebody outside.
    External,
}

/// A limit that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptTimeout {
    /// What the attempt was doing.
    pub phase: AttemptPhase,
    /// Who saw it.
    pub source: TimeoutSource,
}

/// The end of an attempt, as far as it is known. [`AttemptEnd::OK`] is the end without facts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct AttemptEnd {
    failed: bool,
    abort: Option<AbortSource>,
    timeout: Option<AttemptTimeout>,
}

impl AttemptEnd {
    /// The attempt went through.
    pub const OK: Self = Self {
        failed: false,
        abort: None,
        timeout: None,
    };

    /// Something went wrong.
    pub const FAILED: Self = Self {
        failed: true,
        ..Self::OK
    };

    /// The attempt was broken off.
    #[must_use]
    pub const fn aborted(source: AbortSource) -> Self {
        Self {
            abort: Some(source),
            ..Self::OK
        }
    }

    /// A limit passed, or was noticed to have passed.
    #[must_use]
    pub const fn timed_out(phase: AttemptPhase, source: TimeoutSource) -> Self {
        Self {
            timeout: Some(AttemptTimeout { phase, source }),
            ..Self::OK
        }
    }

    /// Both ends together: idempotent, commutative, associative, with [`AttemptEnd::OK`] as the
    /// one that adds nothing.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let timeout = match (self.timeout, other.timeout) {
            (Some(a), Some(b)) => Some(AttemptTimeout {
                phase: a.phase.max(b.phase),
                source: a.source.max(b.source),
            }),
            (one, other) => one.or(other),
        };
        Self {
            failed: self.failed || other.failed,
            abort: self.abort.max(other.abort),
            timeout,
        }
    }

    /// What the attempt came to.
    #[must_use]
    pub fn kind(self) -> AttemptKind {
        if self.timeout().is_some() {
            AttemptKind::Timeout
        } else if self.is_aborted() {
            AttemptKind::Aborted
        } else if self.failed {
            AttemptKind::Failed
        } else {
            AttemptKind::Ok
        }
    }

    /// The limit that ended the attempt. If somebody outside broke it off as well, they are
    /// the source: the true cause stays (P40).
    #[must_use]
    pub fn timeout(self) -> Option<AttemptTimeout> {
        let limit = self
            .timeout
            .filter(|limit| limit.source > TimeoutSource::Observation)?;
        Some(match self.abort {
            Some(AbortSource::External) => AttemptTimeout {
                source: TimeoutSource::External,
                ..limit
            },
            _ => limit,
        })
    }

    /// Where a limit was noticed in passing that ended nothing.
    #[must_use]
    pub fn noticed(self) -> Option<AttemptPhase> {
        self.timeout
            .filter(|limit| limit.source == TimeoutSource::Observation)
            .map(|limit| limit.phase)
    }

    /// Whether the attempt was broken off, also if a limit ended it.
    #[must_use]
    pub fn is_aborted(self) -> bool {
        self.abort > Some(AbortSource::YieldCleanup)
    }

    /// Whether something went wrong, also if a stronger fact names the end.
    #[must_use]
    pub const fn is_failed(self) -> bool {
        self.failed
    }
}
