//! Rounds of tools under whatever their world does: walks over open orders, drawn.

mod bench;

use std::collections::BTreeMap;

use bench::*;
use proptest::prelude::*;
use tidegate_core::*;

const UNKNOWN_TOOL: CallFacts = CallFacts {
    kind: CallKind::NoSuchTool,
    ..READY
};

/// One step of a walk: which of the open orders is reported on, and how.
type Step = (u8, u8, u64);

/// What is open: every order that will report, and every call that waits for a person.
#[derive(Default)]
struct Open {
    orders: Vec<Output>,
    asked: Vec<CallId>,
    starts: BTreeMap<Ticket, u32>,
    told: BTreeMap<CallId, (u32, u32)>,
}

impl Open {
    fn take(&mut self, out: Vec<Output>) {
        for order in out {
            match &order {
                Output::StartTool { ticket, .. } => {
                    *self.starts.entry(*ticket).or_default() += 1;
                    self.orders.push(order);
                }
                Output::Launch { .. }
                | Output::Claim { .. }
                | Output::Settle { .. }
                | Output::Lookup { .. }
                | Output::StartModel { .. } => self.orders.push(order),
                Output::Publish { event, .. } => match event {
                    Event::ToolAsked { call, .. } => self.asked.push(*call),
                    Event::ToolStart { call } => self.told.entry(*call).or_default().0 += 1,
                    Event::ToolEnd { call, .. } => self.told.entry(*call).or_default().1 += 1,
                    _ => {}
                },
                _ => {}
            }
        }
    }

    /// Reports on one of the open orders.
    fn step(&mut self, b: &mut Bench, (which, how, ms): Step) -> Vec<Output> {
        b.now += ms;
        if how % 8 == 7 && !self.asked.is_empty() {
            let call = self.asked[usize::from(which) % self.asked.len()];
            let allow = how < 128;
            let decision = if allow {
                Decision::AllowOnce
            } else {
                Decision::Deny
            };
            return b.decide(call, decision).1;
        }
        if self.orders.is_empty() {
            return b.hand(Input::Tick);
        }
        let order = self.orders.remove(usize::from(which) % self.orders.len());
        match order {
            Output::StartModel { ticket, .. } => {
                for kind in 0..how % 4 {
                    let facts = match kind {
                        0 => GUARDED,
                        1 => READY,
                        _ => UNKNOWN_TOOL,
                    };
                    let out = b.model(ticket, ModelFact::Call(facts));
                    self.take(out);
                }
                let end = if how >= 240 {
                    ModelEnd::Incomplete
                } else {
                    ModelEnd::Completed
                };
                b.model(ticket, ModelFact::Ended(end))
            }
            Output::StartTool { ticket, .. } => {
                let out = b.tool(
                    ticket,
                    ToolFact::Output {
                        to: u64::from(which),
                    },
                );
                self.take(out);
                let end = [ToolEnd::Ok, ToolEnd::Failed, ToolEnd::Cancelled];
                b.tool_ends(ticket, end[usize::from(how) % 3])
            }
            Output::Launch { ticket, .. } if how >= 200 => {
                let report = LaunchReport::Refused(StoreError::Busy);
                b.hand(Input::Launched { ticket, report })
            }
            Output::Claim { ticket, .. } if how >= 220 => {
                let report = ClaimReport::Refused(StoreError::Busy);
                b.hand(Input::Claimed { ticket, report })
            }
            order => match report_of(&order) {
                Some(report) => b.hand(report),
                None => Vec::new(),
            },
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// I34, P02, R96, L2: whatever the tools, the store and the people do, and whenever somebody
    /// stops the run: no call starts twice, each that was told to start is told to end, once,
    /// and the run ends within its bounds.
    #[test]
    fn whatever_happens_a_call_starts_once_and_the_run_ends(
        steps in proptest::collection::vec((any::<u8>(), any::<u8>(), 0u64..3_000), 1..60),
        stop in proptest::option::of(0usize..60),
    ) {
        let tools = ToolsConfig { rounds_max: 6, approval_ms: 20_000, timeout_ms: 9_000, ..ToolsConfig::default() };
        let mut b = Bench::new(Config { tools, ..Config::default() });
        let mut open = Open::default();
        let out = b.submit(1, 10);
        let out = b.load(&out);
        let out = b.commit(&out);
        open.take(out);
        for (n, step) in steps.into_iter().enumerate() {
            if stop == Some(n) {
                let out = b.abort(1, Some(10));
                open.take(out);
            }
            let out = open.step(&mut b, step);
            open.take(out);
            let out = b.hand(Input::Tick);
            open.take(out);
        }
        // From here on all is well: the store takes all, tools end, models answer, nobody decides.
        for _ in 0..400 {
            let out = if open.orders.is_empty() { b.pass(30_000) } else { open.step(&mut b, (0, 0, 0)) };
            open.take(out);
        }
        prop_assert_eq!(b.core.live_runs(), 0);
        prop_assert!(open.starts.values().all(|&n| n == 1), "{:?}", open.starts);
        prop_assert!(open.told.values().all(|&told| told == (1, 1)), "{:?}", open.told);
    }
}
