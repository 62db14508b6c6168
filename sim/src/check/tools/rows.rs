//! P08, I24, I34: what the store holds of tool calls, over all lives of the process.
//!
//! Keeps its own book of checkpoints, from the orders that were carried out. Each call of a
//! recorded answer has one result, in its order, directly behind the answer, before anything
//! else of the session; and no result says that something ran which had not been launched.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::{
    Attempt, CallEnd, CallId, Fence, Input, LaunchOrder, LaunchReport, RunId, SessionId, Ticket,
};

use super::super::Moment;
use crate::violation::Code;
use crate::world::store::{RowKind, Wrote};

#[derive(Clone, Copy, Debug, Default)]
struct Call {
    asked: bool,
    launched: bool,
}

#[derive(Debug)]
struct Answer {
    run: RunId,
    attempt: Attempt,
    number: u64,
    calls: Vec<Call>,
    /// How many have results.
    results: u16,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rows {
    orders: BTreeMap<Ticket, (Fence, LaunchOrder)>,
    /// The last answer with calls of each session, until all have results.
    open: BTreeMap<SessionId, Answer>,
    /// Calls that a durable checkpoint let start.
    launched: BTreeSet<CallId>,
}

impl Rows {
    pub(super) fn ordered(&mut self, ticket: Ticket, fence: Fence, launch: &LaunchOrder) {
        self.orders.insert(ticket, (fence, launch.clone()));
    }

    /// Whether a durable checkpoint lets a call start.
    pub(super) fn is_launched(&self, call: CallId) -> bool {
        self.launched.contains(&call)
    }

    /// A checkpoint was carried out.
    pub(super) fn carried(&mut self, report: Option<&Input>) {
        let Some(Input::Launched { ticket, report }) = report else {
            return;
        };
        let Some((fence, launch)) = self.orders.remove(ticket) else {
            return;
        };
        let answer = self.open.get_mut(&fence.session);
        let (LaunchReport::Committed, Some(answer)) = (report, answer) else {
            return;
        };
        if answer.calls.is_empty() {
            answer.calls = vec![Call::default(); usize::from(launch.calls)];
        }
        for &place in &launch.ask {
            if let Some(call) = answer.calls.get_mut(usize::from(place)) {
                call.asked = true;
            }
        }
        for &place in &launch.start {
            if let Some(call) = answer.calls.get_mut(usize::from(place)) {
                call.launched = true;
            }
            self.launched.insert(CallId {
                run: fence.run,
                attempt: fence.attempt,
                call: place,
            });
        }
    }

    /// Something else of a session is written: nothing may be open.
    fn closed(&self, at: &mut Moment<'_>, session: SessionId) {
        if let Some(answer) = self.open.get(&session) {
            at.run(Code::ResultMissing, answer.run);
        }
    }

    pub(super) fn wrote(&mut self, at: &mut Moment<'_>, wrote: &Wrote, started: &BTreeSet<CallId>) {
        match *wrote {
            Wrote::Row {
                run,
                kind: RowKind::Calls,
                fence,
                number,
            } => {
                self.closed(at, fence.session);
                let answer = Answer {
                    run,
                    attempt: fence.attempt,
                    number,
                    calls: Vec::new(),
                    results: 0,
                };
                self.open.insert(fence.session, answer);
            }
            Wrote::Row {
                kind: RowKind::Result(call, end),
                fence,
                number,
                ..
            } => self.result(at, (call, end), fence.session, number, started),
            Wrote::Row { fence, .. } | Wrote::Claim { fence } => self.closed(at, fence.session),
            Wrote::Receipt { ref terminal, .. } => {
                let open = self.open.get(&terminal.session);
                if open.is_some_and(|answer| answer.run == terminal.run) {
                    at.run(Code::ResultMissing, terminal.run);
                }
            }
            Wrote::Generation { session, .. } => {
                self.closed(at, session);
                self.open.remove(&session);
            }
            _ => {}
        }
    }

    fn result(
        &mut self,
        at: &mut Moment<'_>,
        (call, end): (CallId, CallEnd),
        session: SessionId,
        number: u64,
        started: &BTreeSet<CallId>,
    ) {
        let Some(answer) = self.open.get_mut(&session) else {
            return at.run(Code::ResultMissing, call.run);
        };
        let own =
            (answer.run, answer.attempt, answer.results) == (call.run, call.attempt, call.call);
        if !own || number != answer.number + 1 + u64::from(call.call) {
            at.run(Code::ResultMissing, call.run);
        }
        let state = answer.calls.get(usize::from(call.call));
        let state = state.copied().unwrap_or_default();
        let is_so = match end {
            _ if end.was_started() => state.launched,
            CallEnd::Stale => state.asked && !state.launched,
            _ => !started.contains(&call),
        };
        if !is_so {
            at.run(Code::ResultUntrue, call.run);
        }
        answer.results += 1;
        if usize::from(answer.results) >= answer.calls.len() {
            self.open.remove(&session);
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Config, Generation, OrderKind, Subject, Time, Wall};

    use super::*;
    use crate::violation::Violation;
    use crate::world::store::Store;

    const SESSION: SessionId = SessionId::from_u128(1);
    const RUN: RunId = RunId::from_u128(1);
    const FENCE: Fence = Fence {
        session: SESSION,
        generation: Generation(1),
        run: RUN,
        attempt: Attempt(1),
    };

    fn call(call: u16) -> CallId {
        CallId {
            run: RUN,
            attempt: Attempt(1),
            call,
        }
    }

    fn row(kind: RowKind, number: u64) -> Wrote {
        Wrote::Row {
            run: RUN,
            kind,
            fence: FENCE,
            number,
        }
    }

    /// What the book says to these rows, behind an answer of three calls in row 2 of which the
    /// first was launched and the second is asked about.
    fn judge(rows: &[Wrote], started: &[u16]) -> Vec<Code> {
        let mut book = Rows::default();
        let ticket = Ticket {
            subject: Subject::Run(RUN),
            order: OrderKind::Launch,
            attempt: Attempt(1),
            ordinal: 0,
        };
        let launch = LaunchOrder {
            bytes: 0,
            calls: 3,
            start: vec![0],
            ask: vec![1],
            at: Wall(0),
        };
        book.ordered(ticket, FENCE, &launch);
        let started = started.iter().copied().map(call).collect();
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
        book.wrote(&mut moment, &row(RowKind::Calls, 2), &started);
        let report = LaunchReport::Committed;
        book.carried(Some(&Input::Launched { ticket, report }));
        assert!(book.is_launched(call(0)) && !book.is_launched(call(1)));
        for wrote in rows {
            book.wrote(&mut moment, wrote, &started);
        }
        found.into_iter().map(|violation| violation.code).collect()
    }

    fn result(place: u16, end: CallEnd) -> Wrote {
        row(RowKind::Result(call(place), end), 3 + u64::from(place))
    }

    /// P08, I24
    #[test]
    fn one_result_for_each_call_behind_its_answer_is_fine() {
        let all = [
            result(0, CallEnd::Unknown),
            result(1, CallEnd::Stale),
            result(2, CallEnd::Skipped),
            Wrote::Claim { fence: FENCE },
        ];
        assert_eq!(judge(&all, &[0]), []);
    }

    /// P08, I24
    #[test]
    fn a_result_that_is_left_out_or_out_of_order_is_found() {
        let (first, second) = (result(0, CallEnd::Ok), result(1, CallEnd::Stale));
        let missing = [Code::ResultMissing];
        assert_eq!(
            judge(&[first, Wrote::Claim { fence: FENCE }], &[0]),
            missing
        );
        assert_eq!(judge(&[first, row(RowKind::Reply, 4)], &[0]), missing);
        assert_eq!(judge(&[first, row(RowKind::Calls, 4)], &[0]), missing);
        assert_eq!(judge(&[second], &[0])[..1], missing);
        let late = row(RowKind::Result(call(0), CallEnd::Ok), 4);
        assert_eq!(judge(&[late], &[0]), missing);
    }

    /// I34, law 10
    #[test]
    fn a_result_of_what_was_not_launched_or_was_started_is_found() {
        let untrue = [Code::ResultUntrue];
        let first = result(0, CallEnd::Ok);
        assert_eq!(judge(&[first, result(1, CallEnd::Unknown)], &[0]), untrue);
        assert_eq!(judge(&[result(0, CallEnd::Stale)], &[0]), untrue);
        assert_eq!(judge(&[result(0, CallEnd::Skipped)], &[0]), untrue);
        assert_eq!(judge(&[result(0, CallEnd::Skipped)], &[]), []);
    }
}
