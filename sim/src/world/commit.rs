//! How the store's time passes: batches, refusals, and the ways of reports.
//!
//! One batch is under way at a time; what comes meanwhile waits for the next. Reports take
//! drawn ways and overtake each other, but those of one session keep their order.

use tidegate_core::{Input, Output, StoreError, Subject};

use super::World;
use crate::shrink::log::{OrderName, What};

use super::queue::{Event, Refusing};

/// Among which reports that of an order keeps its place: those of its session, or of its wait.
pub(crate) fn report_lane(order: &Output) -> Option<Subject> {
    Some(match order {
        Output::Load { session, .. }
        | Output::Reset { session, .. }
        | Output::Configure { session, .. } => Subject::Session(*session),
        Output::Accept { accept, .. } => Subject::Session(accept.session),
        Output::Claim { fence, .. }
        | Output::Settle { fence, .. }
        | Output::Launch { fence, .. } => Subject::Session(fence.session),
        Output::Lookup { ticket, .. } => ticket.subject,
        _ => return None,
    })
}

impl World<'_> {
    /// What waits for the store becomes its next batch, unless one is under way.
    pub(super) fn begin_batch(&mut self) {
        if self.store.busy || self.store.queue.is_empty() {
            return;
        }
        self.store.busy = true;
        self.batch = self.store.queue.len();
        let ms = self.choices.pick(self.swarm.commit_ms + 1, "commit");
        self.after(ms, Event::Apply(self.life));
    }

    /// The batch is durable. Reports go out on their own ways; those of a session keep their
    /// order.
    pub(super) fn apply(&mut self) {
        self.store.busy = false;
        for _ in 0..self.batch {
            let Some(order) = self.store.queue.pop_front() else {
                break;
            };
            let refusal = self.refusal(&order);
            if let Some(name) = OrderName::of(&order) {
                self.note(What::Commit(name, refusal));
            }
            let report = self.store.carry_out(&order, refusal);
            self.told_of_writes(report.as_ref());
            if let Some(report) = report {
                self.report(&order, report);
            }
        }
        self.begin_batch();
    }

    /// Whether the store refuses an order now, and why.
    fn refusal(&mut self, order: &Output) -> Option<StoreError> {
        let may = match self.refusing {
            Refusing::Nothing => false,
            Refusing::Anything => true,
            Refusing::Ends => matches!(order, Output::Settle { .. }),
            Refusing::Launches => matches!(order, Output::Launch { .. }),
        };
        (may && self.choices.chance(2, 3, "refuse")).then(|| match self.choices.pick(3, "error") {
            0 => StoreError::Busy,
            1 => StoreError::Full,
            _ => StoreError::Io,
        })
    }

    fn report(&mut self, order: &Output, report: Input) {
        let way = self.choices.pick(self.swarm.report_ms + 1, "report");
        let Some(lane) = report_lane(order) else {
            return;
        };
        let last = self.reported.entry(lane).or_insert(0);
        let at = (self.now + way).max(*last + 1);
        *last = at;
        let twice = self.swarm.repeats && self.choices.chance(1, 24, "twice");
        if twice {
            let late = self.choices.pick(2_000, "twice");
            self.queue
                .put(at + 1 + late, 0, Event::Report(self.life, report.clone()));
        }
        let tie = self.tie();
        self.queue.put(at, tie, Event::Report(self.life, report));
    }
}
