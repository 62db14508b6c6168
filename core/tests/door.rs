//! The front door: drains, snapshots, halts, and any input in any state.

mod bench;

use bench::*;
use proptest::prelude::*;
use tidegate_core::*;

/// Design section 3: what a dropped drain held leads the next one and is counted.
#[test]
fn outputs_left_in_a_dropped_drain_lead_the_next_one() {
    let mut b = Bench::new(Config::default());
    let now = b.at();
    let request = RequestId::from_u128(7);
    drop(b.core.handle(
        now,
        Input::Abort {
            request,
            session: session(1),
            run: None,
        },
    ));
    let out = b.hand(Input::Tick);
    assert!(matches!(answers(&out)[..], [(to, Answer::Aborted { .. })] if to == request));
    assert_eq!(b.core.counts().undrained, 1);
}

/// Design section 3: a clock that goes back is clamped and counted.
#[test]
fn time_that_goes_back_is_clamped() {
    let mut b = Bench::new(Config::default());
    b.now = 10_000;
    b.start(1, 10);
    let before: Vec<Armed> = b.core.armed().collect();
    b.now = 5;
    b.hand(Input::Tick);
    assert_eq!(b.core.counts().clock_back, 1);
    assert_eq!(b.core.armed().collect::<Vec<_>>(), before);
}

/// Design section 3: a snapshot restores the same machine, bit for bit.
#[test]
fn a_restored_core_goes_on_like_the_first() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 3);
    b.wait(10, None);
    let bytes = postcard::to_allocvec(&b.core.snapshot()).expect("a snapshot can be written");
    let snapshot: Snapshot = postcard::from_bytes(&bytes).expect("and read");
    let mut twin = Bench::new(Config::default());
    twin.core = Core::restore(snapshot).expect("by the same schema");
    twin.now = b.now;
    assert_eq!(twin.core.digest(), b.core.digest());
    let (a, b) = (b.complete(call), twin.complete(call));
    assert_eq!(a, b);
}

/// Design section 3: what is armed, for whom, since when, is a query.
#[test]
fn every_armed_deadline_has_a_name_and_an_owner() {
    let mut b = Bench::new(Config::default());
    let call = b.start(1, 10);
    b.text(call, 3);
    let names: Vec<&str> = b.core.armed().map(|armed| armed.timer.name()).collect();
    assert_eq!(
        names,
        [
            "text pacing",
            "save pacing",
            "idle limit",
            "run budget",
            "lane task limit"
        ]
    );
    assert!(
        b.core
            .armed()
            .all(|armed| armed.timer.owner() == Subject::Run(run(10)))
    );
}

fn any_ticket() -> impl Strategy<Value = Ticket> {
    let subject = prop_oneof![
        (1u128..4).prop_map(|n| Subject::Run(run(n))),
        (1u128..9).prop_map(|n| Subject::Request(RequestId::from_u128(n))),
        (1u128..3).prop_map(|n| Subject::Session(session(n))),
    ];
    let order = prop_oneof![
        Just(OrderKind::Load),
        Just(OrderKind::Accept),
        Just(OrderKind::Claim),
        Just(OrderKind::Model),
        Just(OrderKind::Settle),
        Just(OrderKind::Lookup),
    ];
    (subject, order, 0u32..3, 0u16..2).prop_map(|(subject, order, attempt, ordinal)| Ticket {
        subject,
        order,
        attempt: Attempt(attempt),
        ordinal,
    })
}

fn any_terminal() -> impl Strategy<Value = Terminal> {
    (1u128..4, 1u128..3).prop_map(|(r, s)| Terminal {
        run: run(r),
        session: session(s),
        outcome: Outcome::Superseded,
        accepted_at: Wall(1),
        started_at: None,
        ended_at: Wall(1),
        attempt: Attempt(1),
        reply: Reply::Empty,
        detail: false,
    })
}

fn any_open() -> impl Strategy<Value = OpenRun> {
    (1u128..4, 0u32..3, proptest::option::of(0u64..1_000)).prop_map(|(r, attempt, left_ms)| {
        OpenRun {
            run: run(r),
            body: Fingerprint::from_u128(1),
            budget: None,
            left_ms,
            accepted_at: Wall(1),
            attempt: Attempt(attempt),
        }
    })
}

fn any_input() -> impl Strategy<Value = Input> {
    let request = (1u128..9).prop_map(RequestId::from_u128);
    let store = prop_oneof![Just(StoreError::Busy), Just(StoreError::Full)];
    prop_oneof![
        4 => (request.clone(), 1u128..3, 1u128..4, 1u128..3).prop_map(|(request, s, r, body)| {
            Input::Submit(Submit { request, session: session(s), run: run(r), body: Fingerprint::from_u128(body), budget: None })
        }),
        1 => (request.clone(), 1u128..4, proptest::option::of(0u64..2_000))
            .prop_map(|(request, r, timeout_ms)| Input::Wait { request, run: run(r), timeout_ms }),
        1 => (request.clone(), 1u128..3, proptest::option::of(1u128..4))
            .prop_map(|(request, s, r)| Input::Abort { request, session: session(s), run: r.map(run) }),
        1 => request.clone().prop_map(|request| Input::Leave { request }),
        1 => (request, 1u128..3).prop_map(|(request, s)| Input::Resume { request, session: session(s) }),
        2 => (any_ticket(), proptest::collection::vec(any_open(), 0..3)).prop_map(|(ticket, open)| {
            Input::Loaded { ticket, report: LoadReport::Loaded { epoch: Epoch(1), generation: Generation(1), open } }
        }),
        1 => (any_ticket(), store.clone()).prop_map(|(ticket, e)| Input::Loaded { ticket, report: LoadReport::Refused(e) }),
        2 => (any_ticket(), proptest::option::of(any_terminal())).prop_map(|(ticket, t)| {
            Input::Accepted { ticket, report: AcceptReport::Committed { claim: t.map(|t| Claim { superseded: Some(t) }) } }
        }),
        1 => any_ticket().prop_map(|ticket| Input::Accepted { ticket, report: AcceptReport::NotOwner }),
        2 => (any_ticket(), proptest::option::of(any_terminal())).prop_map(|(ticket, superseded)| {
            Input::Claimed { ticket, report: ClaimReport::Committed(Claim { superseded }) }
        }),
        1 => (any_ticket(), store.clone()).prop_map(|(ticket, e)| Input::Claimed { ticket, report: ClaimReport::Refused(e) }),
        2 => any_ticket().prop_map(|ticket| Input::Settled { ticket, report: SettleReport::Committed }),
        1 => any_ticket().prop_map(|ticket| Input::Settled { ticket, report: SettleReport::Fenced }),
        1 => (any_ticket(), any_terminal()).prop_map(|(ticket, t)| Input::LookedUp { ticket, report: LookupReport::Ended(t) }),
        4 => (any_ticket(), 0u64..40).prop_map(|(ticket, to)| Input::Model { ticket, fact: ModelFact::Text { to } }),
        1 => any_ticket().prop_map(|ticket| Input::Model { ticket, fact: ModelFact::Finished }),
        2 => any_ticket().prop_map(|ticket| Input::Model { ticket, fact: ModelFact::Ended(ModelEnd::Completed) }),
        1 => proptest::option::of(0u64..50_000).prop_map(|budget_ms| Input::Drain { request: RequestId::from_u128(77), budget_ms }),
        3 => Just(Input::Tick),
    ]
}

/// The report that a kept promise of the shell would give to this order.
fn report_of(order: &Output) -> Option<Input> {
    Some(match *order {
        Output::Load { ticket, .. } => Input::Loaded {
            ticket,
            report: LoadReport::Loaded {
                epoch: Epoch(1),
                generation: Generation(1),
                open: Vec::new(),
            },
        },
        Output::Accept { ticket, ref accept } => Input::Accepted {
            ticket,
            report: AcceptReport::Committed {
                claim: accept.claim.map(|_| Claim { superseded: None }),
            },
        },
        Output::Claim { ticket, .. } => Input::Claimed {
            ticket,
            report: ClaimReport::Committed(Claim { superseded: None }),
        },
        Output::Settle { ticket, .. } => Input::Settled {
            ticket,
            report: SettleReport::Committed,
        },
        Output::Lookup { ticket, .. } => Input::LookedUp {
            ticket,
            report: LookupReport::Unknown,
        },
        _ => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Design section 3: the front door is total. Any input in any state: no panic, a drain
    /// that ends with the sleep, and every invariant holds.
    #[test]
    fn any_input_in_any_state_keeps_the_invariants(
        steps in proptest::collection::vec((any_input(), 0u64..40_000, any::<bool>()), 1..120)
    ) {
        let mut b = Bench::new(Config { global_lane_cap: 2, session_queue_cap: 2, reply_cap_bytes: 30, ..Config::default() });
        for (input, ms, answer) in steps {
            b.now += if ms < 30_000 { ms / 100 } else { ms };
            let out = b.hand(input);
            if answer {
                for report in out.iter().filter_map(report_of) {
                    b.hand(report);
                }
            }
        }
    }
}
