//! Tool calls as the store holds them: checkpoints, and the one function that gives results.
//!
//! Owns how far a call came, durably. A checkpoint only moves calls on; a result is written once,
//! behind the answer that asks. What no order names ends by how far it came.

use tidegate_core::{
    Attempt, CallEnd, CallId, CallResult, Fence, LaunchOrder, LaunchReport, RunId,
};

use super::{RowKind, Store, Wrote};

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// The model asked for it.
    Requested,
    /// It waits for a person.
    Asked,
    /// It may have started.
    Launched,
    /// It has a result.
    Ended,
}

/// The calls of an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredCalls {
    attempt: Attempt,
    states: Vec<CallState>,
}

impl Store {
    /// Commits a checkpoint, if the fence is that of the session's writer.
    pub(super) fn launch(&mut self, fence: Fence, launch: &LaunchOrder) -> LaunchReport {
        let writes = self.writer(fence.session) == Some((fence.run, fence.attempt))
            && fence.generation == self.generation(fence.session);
        let Some(row) = self.runs.get_mut(&fence.run).filter(|_| writes) else {
            return LaunchReport::Fenced;
        };
        if row.terminal.is_some() {
            return LaunchReport::Fenced;
        }
        self.unsynced.clear();
        let first = row.calls.attempt != fence.attempt;
        if first {
            row.calls = StoredCalls {
                attempt: fence.attempt,
                states: vec![CallState::Requested; usize::from(launch.calls)],
            };
            // The answer is a row of its own from now on.
            row.saved = 0;
            row.seen_at = row.seen_at.max(launch.at);
        }
        for (places, to) in [
            (&launch.start, CallState::Launched),
            (&launch.ask, CallState::Asked),
        ] {
            for &place in places {
                if let Some(state) = row.calls.states.get_mut(usize::from(place))
                    && *state != CallState::Ended
                {
                    *state = to;
                }
            }
        }
        if first {
            self.write_row(fence.run, RowKind::Calls, fence);
        }
        self.wrote.push(Wrote::Launched { fence });
        LaunchReport::Committed
    }

    /// Gives each open call of a run its result. Those that are not named were left by an earlier
    /// life, or by a writer that lost its session.
    pub(super) fn close_calls(&mut self, run: RunId, results: &[CallResult]) {
        let Some(row) = self.runs.get_mut(&run) else {
            return;
        };
        let fence = Fence {
            session: row.session,
            generation: row.generation,
            run,
            attempt: row.calls.attempt,
        };
        let states = std::mem::take(&mut row.calls.states);
        row.calls.states = vec![CallState::Ended; states.len()];
        for (place, state) in (0u16..).zip(states) {
            let named = results.iter().find(|result| result.call == place);
            let end = match (state, named) {
                (CallState::Ended, _) => continue,
                (_, Some(result)) => result.end,
                (CallState::Requested, None) => CallEnd::Skipped,
                (CallState::Asked, None) => CallEnd::Stale,
                (CallState::Launched, None) => CallEnd::Unknown,
            };
            let call = CallId {
                run,
                attempt: fence.attempt,
                call: place,
            };
            self.write_row(run, RowKind::Result(call, end), fence);
        }
    }
}
