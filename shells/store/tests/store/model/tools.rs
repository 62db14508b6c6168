//! The rules of tool calls: what a checkpoint asks for and starts, and what closes it.

use tidegate_core::{CallEnd, CallResult, Epoch, Fence, LaunchOrder, LaunchReport, StoreError};
use tidegate_core::{RunId, Wall};
use tidegate_driver::{CallText, Role, RowMark, ToolAnswer};

use super::Model;

/// A call without a result.
#[derive(Clone, Debug)]
pub(super) struct Call {
    text: CallText,
    started: bool,
    asked: bool,
}

impl Model {
    /// The open calls of a run, and whether they were started.
    pub(crate) fn open_calls(&self, run: RunId) -> Vec<(u16, bool)> {
        let calls = self.runs.get(&run).map_or(&[][..], |run| &run.calls);
        (0..).zip(calls.iter().map(|call| call.started)).collect()
    }

    pub(super) fn launch(
        &mut self,
        fence: &Fence,
        epoch: Epoch,
        order: &LaunchOrder,
        text: &str,
        calls: &[CallText],
    ) -> LaunchReport {
        if epoch != self.epoch {
            return LaunchReport::NotOwner;
        }
        if !self.is_writer(fence) {
            return LaunchReport::Fenced;
        }
        let known = &self.runs[&fence.run].calls;
        let back = |call: &u16| known.get(usize::from(*call)).is_some_and(|c| c.started);
        let refused = order.start.iter().any(|call| order.ask.contains(call))
            || order.ask.iter().any(back)
            || !(known.is_empty() || known.len() == calls.len());
        if refused {
            return LaunchReport::Refused(StoreError::Io);
        }
        if known.is_empty() {
            self.take_partial(fence.run);
            let kind = (Role::Assistant, RowMark::Calls);
            self.push(fence.run, fence.run, kind, order.at, text.into());
            self.last_row(fence.run).calls = calls.to_vec();
            let run = self.runs.get_mut(&fence.run).expect("the writer is known");
            run.saved_at = run.saved_at.max(order.at);
            run.calls = calls
                .iter()
                .map(|text| Call {
                    text: text.clone(),
                    started: false,
                    asked: false,
                })
                .collect();
        }
        let run = self.runs.get_mut(&fence.run).expect("the writer is known");
        for (n, call) in (0..).zip(&mut run.calls) {
            call.started |= order.start.contains(&n);
            call.asked |= order.ask.contains(&n);
        }
        let session = self.sessions.get_mut(&fence.session).expect("known");
        session.updated_at = session.updated_at.max(order.at);
        LaunchReport::Committed
    }

    /// Whether these results may be written.
    pub(super) fn may_close(&self, run: RunId, results: &[CallResult], outputs: &[String]) -> bool {
        let open = self.open_calls(run);
        results.len() == outputs.len()
            && results.is_sorted_by(|a, b| a.call < b.call)
            && results.iter().all(|result| {
                open.iter().any(|(call, started)| {
                    *call == result.call && (*started || !result.end.was_started())
                })
            })
    }

    /// Every open call of a run gets its result.
    pub(super) fn close(
        &mut self,
        id: RunId,
        results: &[CallResult],
        outputs: &[String],
        at: Wall,
    ) {
        let run = self.runs.get_mut(&id).expect("known");
        for (n, call) in (0..).zip(std::mem::take(&mut run.calls)) {
            let left = match (call.started, call.asked) {
                (true, _) => CallEnd::Unknown,
                (false, true) => CallEnd::Stale,
                (false, false) => CallEnd::Skipped,
            };
            let named = results.iter().position(|result| result.call == n);
            let (end, output) = match named {
                Some(place) => (results[place].end, outputs[place].clone()),
                None => (left, String::new()),
            };
            self.push(id, id, (Role::Tool, RowMark::Whole), at, output);
            self.last_row(id).answers = Some(ToolAnswer {
                id: call.text.id,
                name: call.text.name,
                end,
            });
        }
    }
}
