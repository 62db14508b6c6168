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
            scope: Scope::All,
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
        (1u128..9).prop_map(|n| Subject::Run(run(n))),
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
        Just(OrderKind::Reset),
        Just(OrderKind::Configure),
        Just(OrderKind::Launch),
        Just(OrderKind::Tool),
    ];
    (subject, order, 0u32..3, 0u16..3).prop_map(|(subject, order, attempt, ordinal)| Ticket {
        subject,
        order,
        attempt: Attempt(attempt),
        ordinal,
    })
}

fn any_terminal() -> impl Strategy<Value = Terminal> {
    (1u128..9, 1u128..3).prop_map(|(r, s)| Terminal {
        run: run(r),
        session: session(s),
        outcome: Outcome::Superseded,
        accepted_at: Wall(1),
        started_at: None,
        ended_at: Wall(1),
        attempt: Attempt(1),
        reply: Reply::Empty,
        detail: false,
        turn: None,
    })
}

fn any_mode() -> impl Strategy<Value = QueueMode> {
    prop_oneof![
        Just(QueueMode::Steer),
        Just(QueueMode::Followup),
        Just(QueueMode::Collect),
        Just(QueueMode::Interrupt)
    ]
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let speaker = prop_oneof![
        8 => Just(Speaker::User),
        1 => Just(Speaker::Room),
        1 => Just(Speaker::Heartbeat)
    ];
    let chat = (proptest::option::of(any_mode()), 1u128..3, speaker).prop_map(
        |(queue, route, speaker)| Turn::Chat {
            queue,
            route: Fingerprint::from_u128(route),
            speaker,
        },
    );
    prop_oneof![1 => Just(Turn::Agent), 3 => chat]
}

fn any_lane() -> impl Strategy<Value = (LaneName, Priority)> {
    prop_oneof![
        5 => Just((LaneName::Main, Priority::Foreground)),
        1 => Just((LaneName::Main, Priority::Background)),
        1 => Just((LaneName::Cron, Priority::Background)),
        1 => Just((LaneName::HookDispatch, Priority::Normal))
    ]
}

fn any_change() -> impl Strategy<Value = QueueChange> {
    let drop = prop_oneof![
        Just(DropPolicy::Old),
        Just(DropPolicy::New),
        Just(DropPolicy::Summarize)
    ];
    let set = (any_mode(), 0u64..900, 1u32..4, drop).prop_map(|(mode, debounce_ms, cap, drop)| {
        QueueChange::Set(QueueOverride {
            mode: Some(mode),
            debounce_ms: Some(debounce_ms),
            cap: Some(cap),
            drop: Some(drop),
        })
    });
    prop_oneof![2 => set, 1 => Just(QueueChange::Clear), 1 => Just(QueueChange::Show)]
}

fn any_open() -> impl Strategy<Value = OpenRun> {
    (
        1u128..6,
        0u32..3,
        proptest::option::of(0u64..1_000),
        any_turn(),
        proptest::option::weighted(0.3, 1u128..6),
    )
        .prop_map(|(r, attempt, left_ms, turn, along)| OpenRun {
            run: run(r),
            body: Fingerprint::from_u128(1),
            budget: None,
            left_ms,
            accepted_at: Wall(1),
            attempt: Attempt(attempt),
            turn,
            lane: LaneName::Main,
            priority: Priority::Foreground,
            along: along.map(run),
        })
}

fn any_call() -> impl Strategy<Value = CallFacts> {
    let kind = prop_oneof![
        6 => Just(CallKind::Ready),
        1 => Just(CallKind::NoSuchTool),
        1 => Just(CallKind::BadArguments)
    ];
    let timeout_ms = proptest::option::of(1u64..40_000);
    (kind, any::<bool>(), timeout_ms).prop_map(|(kind, guarded, timeout_ms)| CallFacts {
        kind,
        guarded,
        timeout_ms,
    })
}

fn any_tool_end() -> impl Strategy<Value = ToolEnd> {
    prop_oneof![
        Just(ToolEnd::Ok),
        Just(ToolEnd::Failed),
        Just(ToolEnd::Cancelled)
    ]
}

fn any_input() -> impl Strategy<Value = Input> {
    let request = (1u128..9).prop_map(RequestId::from_u128);
    let store = prop_oneof![Just(StoreError::Busy), Just(StoreError::Full)];
    prop_oneof![
        8 => (request.clone(), 1u128..3, 1u128..9, 1u128..3, any_turn(), any_lane()).prop_map(|(request, s, r, body, turn, (lane, priority))| {
            Input::Submit(Submit { request, session: session(s), run: run(r), body: Fingerprint::from_u128(body), budget: None, turn, lane, priority })
        }),
        1 => (request.clone(), 1u128..3, proptest::option::of(1u64..3)).prop_map(|(request, s, g)| {
            Input::Reset { request, session: session(s), expected: g.map(Generation) }
        }),
        1 => (request.clone(), 1u128..3, any_change()).prop_map(|(request, s, change)| {
            Input::Configure { request, session: session(s), change }
        }),
        1 => (any_ticket(), proptest::collection::vec(any_terminal(), 0..3)).prop_map(|(ticket, ended)| {
            Input::WasReset { ticket, report: ResetReport::Committed { generation: Generation(2), ended } }
        }),
        1 => any_ticket().prop_map(|ticket| Input::Configured { ticket, report: ConfigureReport::NotOwner }),
        1 => (request.clone(), 1u128..4, proptest::option::of(0u64..2_000))
            .prop_map(|(request, r, timeout_ms)| Input::Wait { request, run: run(r), timeout_ms }),
        1 => (request.clone(), 1u128..3, proptest::option::of(1u128..9), 0u8..3).prop_map(|(request, s, r, part)| {
            let scope = match r {
                Some(r) => Scope::Run(run(r)),
                None if part == 0 => Scope::All,
                None if part == 1 => Scope::AtWork,
                None => Scope::Queued,
            };
            Input::Abort { request, session: session(s), scope }
        }),
        1 => request.clone().prop_map(|request| Input::Leave { request }),
        1 => (request, 1u128..3).prop_map(|(request, s)| Input::Resume { request, session: session(s) }),
        2 => (any_ticket(), proptest::collection::vec(any_open(), 0..3)).prop_map(|(ticket, open)| {
            Input::Loaded { ticket, report: LoadReport::Loaded { epoch: Epoch(1), generation: Generation(1), queue: QueueOverride::default(), open } }
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
        3 => (any_ticket(), any_call()).prop_map(|(ticket, facts)| Input::Model { ticket, fact: ModelFact::Call(facts) }),
        1 => any_ticket().prop_map(|ticket| Input::Model { ticket, fact: ModelFact::Calling }),
        1 => (any_ticket(), store).prop_map(|(ticket, e)| Input::Launched { ticket, report: LaunchReport::Refused(e) }),
        1 => any_ticket().prop_map(|ticket| Input::Launched { ticket, report: LaunchReport::Fenced }),
        1 => (any_ticket(), 0u64..40).prop_map(|(ticket, to)| Input::Tool { ticket, fact: ToolFact::Output { to } }),
        2 => (any_ticket(), any_tool_end()).prop_map(|(ticket, end)| Input::Tool { ticket, fact: ToolFact::Ended(end) }),
        2 => (1u128..9, 1u128..9, 1u32..4, 0u16..3, any::<bool>()).prop_map(|(request, r, attempt, call, allow)| Input::Decide {
            request: RequestId::from_u128(request),
            call: CallId { run: run(r), attempt: Attempt(attempt), call },
            decision: if allow { Decision::AllowOnce } else { Decision::Deny },
        }),
        1 => proptest::option::of(0u64..50_000).prop_map(|budget_ms| Input::Drain { request: RequestId::from_u128(77), budget_ms }),
        3 => Just(Input::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Design section 3: the front door is total. Any input in any state: no panic, a drain
    /// that ends with the sleep, and every invariant holds.
    #[test]
    fn any_input_in_any_state_keeps_the_invariants(
        steps in proptest::collection::vec((any_input(), 0u64..40_000, any::<bool>()), 1..120)
    ) {
        let mut b = Bench::new(Config { global_lane_cap: 2, session_queue_cap: 4, reply_cap_bytes: 30, lanes: LaneCaps { cron: 1, ..LaneCaps::default() }, ..Config::default() });
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
