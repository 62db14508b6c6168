//! P07, I20 to I23, I26, I39, I60, R51: who writes, judged by what the store's transactions
//! wrote.
//!
//! Keeps its own book of claims, from the claims that were written and not from what the
//! store compares a fence with. The book holds over all lives of the process.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    AcceptReport, Attempt, ClaimReport, Fence, Input, LaunchReport, Outcome, Output, ResetReport,
    RunId, SessionId, SettleReport, Subject,
};

use super::{Check, Moment};
use crate::violation::Code;
use crate::world::store::{RowKind, StoredRun, Wrote};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    claimed: BTreeMap<SessionId, (RunId, Attempt)>,
    begun: BTreeSet<RunId>,
    receipts: BTreeSet<RunId>,
    bound: BTreeSet<RunId>,
    /// The run in whose turn each message was taken along.
    along: BTreeMap<RunId, RunId>,
    /// Messages that were dropped and have not reached a transcript.
    dropped: BTreeMap<SessionId, BTreeSet<RunId>>,
    /// Whether the transaction is another process's.
    theirs: bool,
    /// The last attempt of each run that this process claimed.
    attempts: BTreeMap<RunId, Attempt>,
    /// The number of each transcript's last row.
    rows: BTreeMap<SessionId, u64>,
    /// Sessions in which another process wrote, or could, or that began anew. What was durable
    /// for the core may be over there before the core hears of it.
    foreign: BTreeSet<SessionId>,
    /// All claims that were ever durable.
    ever: BTreeSet<(RunId, Attempt)>,
    /// Runs whose model was called in this life: what is left of their budget is known better
    /// than the store knows it.
    called: BTreeSet<RunId>,
    /// How much of the reply of a run was ordered to be saved, and by which attempt.
    saved: BTreeMap<RunId, (Attempt, u64)>,
}

impl Writers {
    fn writes(&self, fence: &Fence) -> bool {
        self.claimed.get(&fence.session) == Some(&(fence.run, fence.attempt))
    }

    /// A receipt comes from the run's own claim, from the claim that supersedes it, or from a
    /// run that never claimed.
    fn receipt(&mut self, at: &mut Moment<'_>, run: RunId, by: &Fence) {
        let own = by.run == run;
        let unclaimed = by.attempt == Attempt(0) && !self.begun.contains(&run);
        let superseded = self
            .claimed
            .get(&by.session)
            .is_some_and(|&(writer, _)| writer == run);
        let along = self.along.get(&run).is_some_and(|turn| {
            *turn == by.run && self.writes(by)
                || self
                    .claimed
                    .get(&by.session)
                    .is_some_and(|(w, _)| w == turn)
        });
        if !(own && (self.writes(by) || unclaimed) || !own && (superseded || along)) {
            at.run(Code::RowUnclaimed, run);
        }
        if !self.receipts.insert(run) {
            at.run(Code::ReceiptTwice, run);
        }
        if self.begun.contains(&run) && self.along.contains_key(&run) {
            at.run(Code::BoundRan, run);
        }
        if self.begun.contains(&run) && !self.bound.contains(&run) {
            at.run(Code::MessageBound, run);
        }
    }
}

impl Writers {
    fn row(&mut self, at: &mut Moment<'_>, run: RunId, kind: RowKind, fence: &Fence) {
        let theirs = match kind {
            RowKind::Message => fence.run == run || self.along.get(&run) == Some(&fence.run),
            // By the next claim; or by a reset, under its own name.
            RowKind::Dropped => true,
            RowKind::Reply | RowKind::Interrupted | RowKind::Calls | RowKind::Result(..) => {
                fence.run == run
            }
        };
        let reset = kind == RowKind::Dropped && fence.run == run && fence.attempt == Attempt(0);
        if !theirs || !(self.writes(fence) || reset) {
            at.run(Code::RowUnclaimed, run);
        }
        let binds = matches!(kind, RowKind::Message | RowKind::Dropped);
        if binds && !self.bound.insert(run) {
            at.run(Code::MessageBound, run);
        }
        if kind == RowKind::Dropped {
            let dropped = self.dropped.entry(fence.session).or_default();
            if !dropped.remove(&run) {
                at.run(Code::DroppedText, run);
            }
        }
    }

    /// A claim or a reset is over: nothing that was dropped before it is left.
    fn all_dropped_told(&mut self, at: &mut Moment<'_>, session: SessionId) {
        let left = self.dropped.get(&session).and_then(BTreeSet::first);
        if let Some(&run) = left {
            at.run(Code::DroppedText, run);
        }
    }
}

impl Check for Writers {
    fn output(&mut self, at: &mut Moment<'_>, output: &Output) {
        match output {
            Output::Forget {
                subject: Subject::Run(run),
            } => {
                self.called.remove(run);
            }
            Output::StartModel { fence, .. } => {
                self.called.insert(fence.run);
                let wrote = self.foreign.contains(&fence.session)
                    && self.ever.contains(&(fence.run, fence.attempt));
                if !self.writes(fence) && !wrote {
                    at.run(Code::CallUnclaimed, fence.run);
                }
            }
            Output::Save { fence, to, .. } => {
                let (attempt, saved) = self.saved.entry(fence.run).or_default();
                if *attempt != fence.attempt {
                    (*attempt, *saved) = (fence.attempt, 0);
                }
                if to <= saved {
                    at.run(Code::SaveShort, fence.run);
                }
                *saved = *to;
            }
            Output::Claim { fence, claim, .. } => {
                if self.along.contains_key(&fence.run) {
                    at.run(Code::BoundRan, fence.run);
                }
                let last = self.attempts.get(&fence.run);
                if last.is_some_and(|&last| fence.attempt <= last) {
                    at.run(Code::AttemptBack, fence.run);
                }
                let stored = at.store.run(fence.run).and_then(StoredRun::left_ms);
                let left = stored.filter(|_| !self.called.contains(&fence.run));
                if left.is_some_and(|left| claim.left_ms.is_none_or(|claimed| claimed > left)) {
                    at.run(Code::BudgetGrew, fence.run);
                }
            }
            _ => {}
        }
    }

    fn died(&mut self) {
        self.called.clear();
    }

    fn wrote(&mut self, at: &mut Moment<'_>, wrote: &Wrote) {
        match wrote {
            Wrote::Inbox { .. } => {}
            Wrote::Along { run, turn } => {
                if self.along.insert(*run, *turn).is_some() || self.begun.contains(run) {
                    at.run(Code::BoundRan, *run);
                }
            }
            Wrote::Generation { session, .. } => {
                self.foreign.insert(*session);
                self.claimed.remove(session);
                self.rows.remove(session);
                self.all_dropped_told(at, *session);
            }
            Wrote::Foreign { session } => {
                self.theirs = true;
                self.foreign.insert(*session);
            }
            Wrote::Claim { fence } => {
                self.claimed
                    .insert(fence.session, (fence.run, fence.attempt));
                self.begun.insert(fence.run);
                self.ever.insert((fence.run, fence.attempt));
                if !self.theirs {
                    self.attempts.insert(fence.run, fence.attempt);
                }
                if self.receipts.contains(&fence.run) {
                    at.run(Code::AfterEnd, fence.run);
                }
            }
            Wrote::Row {
                run,
                kind,
                fence,
                number,
            } => {
                let last = self.rows.entry(fence.session).or_insert(0);
                *last += 1;
                if *number != *last {
                    at.run(Code::RowNumber, *run);
                }
                self.row(at, *run, *kind, fence);
            }
            Wrote::Saved { fence } | Wrote::Launched { fence } => {
                if !self.writes(fence) {
                    at.run(Code::RowUnclaimed, fence.run);
                }
            }
            Wrote::Receipt { terminal, by } => {
                if matches!(terminal.outcome, Outcome::Dropped { .. }) {
                    let dropped = self.dropped.entry(terminal.session).or_default();
                    dropped.insert(terminal.run);
                }
                self.receipt(at, terminal.run, by);
            }
        }
    }

    fn carried(&mut self, at: &mut Moment<'_>, report: Option<&Input>, wrote: &[Wrote]) {
        self.theirs = false;
        for fact in wrote {
            if let Wrote::Claim { fence } = fact {
                self.all_dropped_told(at, fence.session);
            }
        }
        let (ticket, refused) = match report {
            Some(Input::Accepted { ticket, report }) => {
                (ticket, !matches!(report, AcceptReport::Committed { .. }))
            }
            Some(Input::Claimed { ticket, report }) => {
                (ticket, !matches!(report, ClaimReport::Committed(_)))
            }
            Some(Input::Settled { ticket, report }) => (ticket, *report != SettleReport::Committed),
            Some(Input::Launched { ticket, report }) => {
                (ticket, *report != LaunchReport::Committed)
            }
            Some(Input::WasReset { ticket, report }) => {
                (ticket, !matches!(report, ResetReport::Committed { .. }))
            }
            Some(Input::Loaded { ticket, .. } | Input::LookedUp { ticket, .. }) => (ticket, true),
            _ => return,
        };
        if refused && !wrote.is_empty() {
            at.report(Code::RefusedWrote, ticket.subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{
        Config, DropPolicy, Generation, OrderKind, Reply, StopReason, StoreError, Subject,
        Terminal, Ticket, Time, Wall,
    };

    use super::*;
    use crate::violation::Violation;
    use crate::world::store::Store;

    const SESSION: SessionId = SessionId::from_u128(1);

    fn fence(run: u128, attempt: u32) -> Fence {
        Fence {
            session: SESSION,
            generation: Generation(1),
            run: RunId::from_u128(run),
            attempt: Attempt(attempt),
        }
    }

    fn receipt(run: u128, by: Fence) -> Wrote {
        let terminal = Terminal {
            run: RunId::from_u128(run),
            session: SESSION,
            outcome: Outcome::Cancelled {
                by: StopReason::Rpc,
                provider_started: false,
            },
            accepted_at: Wall(0),
            started_at: None,
            ended_at: Wall(0),
            attempt: by.attempt,
            reply: Reply::Empty,
            detail: false,
            turn: None,
        };
        Wrote::Receipt { terminal, by }
    }

    fn row(run: u128, kind: RowKind, fence: Fence) -> Wrote {
        numbered(run, kind, fence, 1)
    }

    fn numbered(run: u128, kind: RowKind, fence: Fence, number: u64) -> Wrote {
        Wrote::Row {
            run: RunId::from_u128(run),
            kind,
            fence,
            number,
        }
    }

    fn tell(writers: &mut Writers, told: impl FnOnce(&mut Writers, &mut Moment<'_>)) -> Vec<Code> {
        let mut found: Vec<Violation> = Vec::new();
        let mut moment = Moment {
            now: Time(0),
            input: 1,
            config: &Config::default(),
            store: &Store::default(),
            slack_ms: 0,
            store_ms: 0,
            found: &mut found,
        };
        told(writers, &mut moment);
        found.into_iter().map(|violation| violation.code).collect()
    }

    /// What the checker says to these writes.
    fn judge(writes: &[Wrote]) -> Vec<Code> {
        let mut writers = Writers::default();
        let one = |wrote| tell(&mut writers, |writers, at| writers.wrote(at, wrote));
        writes.iter().flat_map(one).collect()
    }

    /// P07, I26
    #[test]
    fn a_run_that_claims_binds_writes_and_ends_is_fine() {
        let own = fence(1, 1);
        let writes = [
            Wrote::Claim { fence: own },
            row(1, RowKind::Message, own),
            numbered(1, RowKind::Reply, own, 2),
            receipt(1, own),
        ];
        assert_eq!(judge(&writes), []);
        assert_eq!(judge(&[receipt(2, fence(2, 0))]), []);
    }

    /// I26
    #[test]
    fn a_message_bound_twice_or_never_is_found() {
        let own = fence(1, 1);
        let claim = Wrote::Claim { fence: own };
        let bound = row(1, RowKind::Message, own);
        let again = numbered(1, RowKind::Message, own, 2);
        assert_eq!(judge(&[claim, bound, again]), [Code::MessageBound]);
        assert_eq!(judge(&[claim, receipt(1, own)]), [Code::MessageBound]);
    }

    /// P07, I20, I21
    #[test]
    fn a_row_of_an_earlier_writer_or_attempt_is_found() {
        let (old, new) = (fence(1, 1), fence(1, 2));
        let claims = [Wrote::Claim { fence: old }, Wrote::Claim { fence: new }];
        let late = |kind| [claims[0], claims[1], row(1, kind, old)];
        assert_eq!(judge(&late(RowKind::Reply)), [Code::RowUnclaimed]);
        let saved = [claims[0], claims[1], Wrote::Saved { fence: old }];
        assert_eq!(judge(&saved), [Code::RowUnclaimed]);
    }

    /// I23
    #[test]
    fn a_row_number_that_is_left_out_or_repeated_is_found() {
        let own = fence(1, 1);
        let claim = Wrote::Claim { fence: own };
        let first = row(1, RowKind::Message, own);
        for wrong in [1, 3] {
            let next = numbered(1, RowKind::Reply, own, wrong);
            assert_eq!(judge(&[claim, first, next]), [Code::RowNumber]);
        }
    }

    /// I27, P05
    #[test]
    fn a_dropped_text_that_is_left_out_or_written_twice_is_found() {
        let (gone, next) = (fence(1, 0), fence(2, 1));
        let mut end = receipt(1, gone);
        if let Wrote::Receipt { terminal, .. } = &mut end {
            terminal.outcome = Outcome::Dropped {
                by: DropPolicy::Old,
            };
        }
        let claim = Wrote::Claim { fence: next };
        let text = row(1, RowKind::Dropped, next);
        let again = numbered(1, RowKind::Dropped, next, 2);
        assert_eq!(judge(&[end, claim, text]), []);
        let twice = [Code::MessageBound, Code::DroppedText];
        assert_eq!(judge(&[end, claim, text, again]), twice);
        let mut writers = Writers::default();
        let left = tell(&mut writers, |writers, at| {
            writers.wrote(at, &end);
            writers.wrote(at, &claim);
            writers.carried(at, None, &[claim]);
        });
        assert_eq!(left, [Code::DroppedText]);
    }

    /// I30
    #[test]
    fn a_message_that_is_bound_to_two_turns_or_to_one_and_runs_is_found() {
        let bound = |turn| Wrote::Along {
            run: RunId::from_u128(1),
            turn: RunId::from_u128(turn),
        };
        let own = fence(1, 1);
        assert_eq!(judge(&[bound(2)]), []);
        assert_eq!(judge(&[bound(2), bound(3)]), [Code::BoundRan]);
        let ran = [Wrote::Claim { fence: own }, bound(2)];
        assert_eq!(judge(&ran), [Code::BoundRan]);
    }

    /// I22
    #[test]
    fn a_transaction_that_was_refused_and_wrote_is_found() {
        let own = fence(1, 1);
        let ticket = Ticket {
            subject: Subject::Run(own.run),
            order: OrderKind::Settle,
            attempt: own.attempt,
            ordinal: 0,
        };
        let wrote = [row(1, RowKind::Reply, own)];
        let settled = |report| Input::Settled { ticket, report };
        let said = |report, wrote: &[Wrote]| {
            tell(&mut Writers::default(), |writers, at| {
                writers.carried(at, Some(&settled(report)), wrote);
            })
        };
        assert_eq!(said(SettleReport::Committed, &wrote), []);
        assert_eq!(said(SettleReport::Fenced, &[]), []);
        for refusal in [
            SettleReport::Fenced,
            SettleReport::NotOwner,
            SettleReport::Refused(StoreError::Io),
        ] {
            assert_eq!(said(refusal, &wrote), [Code::RefusedWrote]);
        }
    }

    /// P02, P03
    #[test]
    fn a_second_receipt_and_a_claim_after_it_are_found() {
        let end = receipt(1, fence(1, 0));
        assert_eq!(judge(&[end, end]), [Code::ReceiptTwice]);
        assert_eq!(
            judge(&[end, Wrote::Claim { fence: fence(1, 1) }]),
            [Code::AfterEnd]
        );
    }
}
