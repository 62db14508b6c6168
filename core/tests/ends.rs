//! Ends and duties: every way a run can end does everything that an end owes (law 6).

mod bench;

use bench::*;
use tidegate_core::*;

/// A call of a tool that is not offered.
const UNKNOWN: CallFacts = CallFacts {
    kind: CallKind::NoSuchTool,
    ..READY
};

/// The run whose end is looked at.
const SUBJECT: u128 = 10;

/// A bench that remembers all that came out.
struct Told {
    b: Bench,
    log: Vec<Output>,
}

impl Told {
    fn new(config: Config) -> Self {
        let b = Bench::new(config);
        Self { b, log: Vec::new() }
    }

    /// Carries out all that follows from these orders.
    fn tell(&mut self, out: Vec<Output>) -> Vec<Output> {
        let out = self.b.store(out);
        self.log.extend(out.iter().cloned());
        out
    }

    fn chat(&mut self, r: u128, mode: Option<QueueMode>) -> Vec<Output> {
        let out = self.b.chat(1, r, mode);
        self.tell(out)
    }

    /// The subject at its model, with some text.
    fn at_the_model(&mut self) -> Ticket {
        let out = self.chat(SUBJECT, None);
        let call = model_ticket(&out);
        let out = self.b.text(call, 3);
        self.tell(out);
        call
    }

    /// The subject waits to ask its model again.
    fn waits_to_ask_again(&mut self) {
        let call = self.at_the_model();
        self.end(call, RATE_LIMIT);
    }

    /// The subject at a tool.
    fn at_a_tool(&mut self, facts: CallFacts) -> Vec<Ticket> {
        let call = self.at_the_model();
        let out = self.b.asks_for(call, &[facts]);
        let out = self.tell(out);
        started(&out)
    }

    fn end(&mut self, call: Ticket, end: ModelEnd) {
        let out = self.b.model(call, ModelFact::Ended(end));
        self.tell(out);
    }

    fn pass(&mut self, ms: u64) -> Vec<Output> {
        let out = self.b.pass(ms);
        self.tell(out)
    }
}

/// A way to end: how it is brought about, and the outcome that all must be told.
type Way = (&'static str, fn(&mut Told), Outcome);

const CANCELLED: ModelEnd = ModelEnd::Cancelled;
const RATE_LIMIT: ModelEnd = ModelEnd::Failed(ProviderError {
    status: Some(429),
    marker: Marker::None,
    retry_after: RetryAfter::Unsaid,
    detail: false,
});

const fn timed_out(limit: Limit, provider_started: bool) -> Outcome {
    Outcome::TimedOut {
        limit,
        provider_started,
    }
}

const fn cancelled(by: StopReason, provider_started: bool) -> Outcome {
    Outcome::Cancelled {
        by,
        provider_started,
    }
}

/// A terminal of the subject as a store records it.
fn recorded(outcome: Outcome, bytes: u64) -> Terminal {
    Terminal {
        run: run(SUBJECT),
        session: session(1),
        outcome,
        accepted_at: Wall(WALL),
        started_at: Some(Wall(WALL)),
        ended_at: Wall(WALL + 9),
        attempt: Attempt(1),
        reply: match bytes {
            0 => Reply::Empty,
            bytes => Reply::Text { bytes },
        },
        detail: false,
        turn: None,
    }
}

fn error() -> ProviderError {
    ProviderError {
        status: Some(400),
        marker: Marker::None,
        retry_after: RetryAfter::Unsaid,
        detail: true,
    }
}

#[rustfmt::skip]
const WAYS: &[Way] = &[
    ("completed", |t| { let call = t.at_the_model(); t.end(call, ModelEnd::Completed); }, Outcome::Completed),
    ("the provider failed", |t| { let call = t.at_the_model(); t.end(call, ModelEnd::Failed(error())); },
        Outcome::Failed(Failure::Provider { class: ErrorClass::Format, status: Some(400) })),
    ("the stream was cut", |t| { let call = t.at_the_model(); t.end(call, ModelEnd::Incomplete); }, Outcome::Failed(Failure::Incomplete)),
    ("the reply was too large", |t| {
        let call = t.at_the_model();
        let out = t.b.text(call, 1 << 40);
        t.tell(out);
        t.end(call, CANCELLED);
    }, Outcome::Failed(Failure::ReplyTooLarge)),
    ("the budget", |t| {
        let request = t.b.request();
        let out = t.b.submit_as(request, 1, SUBJECT, 1, Some(Budget::Limited(500)));
        let out = t.tell(out);
        let call = model_ticket(&out);
        t.pass(500);
        t.end(call, CANCELLED);
    }, timed_out(Limit::Budget, true)),
    ("no first event", |t| {
        let out = t.chat(SUBJECT, None);
        let call = model_ticket(&out);
        t.pass(120_000);
        t.end(call, CANCELLED);
    }, timed_out(Limit::FirstEvent, true)),
    ("idle", |t| { let call = t.at_the_model(); t.pass(120_000); t.end(call, CANCELLED); }, timed_out(Limit::Idle, true)),
    ("a cancelled call that hangs", |t| { t.at_the_model(); t.pass(120_000); t.pass(30_000); }, timed_out(Limit::Idle, true)),
    ("a claim that is never written", |t| {
        let out = t.b.chat(1, 9, None);
        let out = t.tell(out);
        let call = model_ticket(&out);
        t.chat(SUBJECT, None);
        let out = t.b.complete(call);
        let out = t.b.settle(&out);
        let ticket = claim_ticket(&out);
        t.log.extend(out);
        let budget = t.b.core.config().lane_grace_ms + DEFAULT_BUDGET_MS;
        t.pass(budget);
        let report = ClaimReport::Refused(StoreError::Full);
        let out = t.b.hand(Input::Claimed { ticket, report });
        t.tell(out);
    }, timed_out(Limit::Lane, false)),
    ("stopped at the model", |t| {
        let call = t.at_the_model();
        let out = t.b.abort(1, Some(SUBJECT));
        t.tell(out);
        t.end(call, CANCELLED);
    }, cancelled(StopReason::Rpc, true)),
    ("stopped while it waits to ask again", |t| {
        t.waits_to_ask_again();
        let out = t.b.abort(1, Some(SUBJECT));
        t.tell(out);
    }, cancelled(StopReason::Rpc, true)),
    ("interrupted while it waits to ask again", |t| {
        t.waits_to_ask_again();
        t.chat(11, Some(QueueMode::Interrupt));
    }, cancelled(StopReason::Interrupt, true)),
    ("asked again as often as allowed", |t| {
        t.waits_to_ask_again();
        for _ in 0..2 {
            let out = t.pass(10_000);
            let call = model_ticket(&out);
            t.end(call, RATE_LIMIT);
        }
    }, Outcome::Failed(Failure::Provider { class: ErrorClass::RateLimit, status: Some(429) })),
    ("stopped in the queue", |t| {
        t.chat(9, None);
        t.chat(SUBJECT, None);
        let out = t.b.abort(1, Some(SUBJECT));
        t.tell(out);
    }, cancelled(StopReason::Rpc, false)),
    ("interrupted", |t| {
        let call = t.at_the_model();
        t.chat(11, Some(QueueMode::Interrupt));
        t.end(call, CANCELLED);
    }, cancelled(StopReason::Interrupt, true)),
    ("dropped", |t| {
        t.chat(9, None);
        t.chat(SUBJECT, Some(QueueMode::Followup));
        for r in 20..40 {
            t.chat(r, Some(QueueMode::Followup));
        }
    }, Outcome::Dropped { by: DropPolicy::Summarize }),
    ("reset", |t| {
        t.at_the_model();
        let request = t.b.request();
        let out = t.b.hand(Input::Reset { request, session: session(1), expected: None });
        let ticket = out.iter().find_map(|o| match o { Output::Reset { ticket, .. } => Some(*ticket), _ => None });
        let ended = vec![recorded(cancelled(StopReason::Reset, true), 3)];
        let report = ResetReport::Committed { generation: Generation(2), ended };
        let out = t.b.hand(Input::WasReset { ticket: ticket.expect("ordered"), report });
        t.tell(out);
    }, cancelled(StopReason::Reset, true)),
    ("superseded by another writer's claim", |t| {
        t.at_the_model();
        t.pass(120_000);
        let out = t.b.chat(1, 11, None);
        t.tell(out);
        let out = t.b.pass(30_000);
        // The slot was freed while the end was not written: the next claim records it.
        let kept: Vec<Output> = out.iter().filter(|o| !matches!(o, Output::Settle { .. } | Output::Claim { .. })).cloned().collect();
        t.log.extend(kept);
        let out = t.b.claim_over(&out, Some(recorded(Outcome::Superseded, 3)));
        t.tell(out);
    }, Outcome::Superseded),
    ("fenced, and looked up", |t| {
        let call = t.at_the_model();
        let out = t.b.complete(call);
        let (ticket, _) = settle(&out);
        t.log.extend(out);
        let out = t.b.hand(Input::Settled { ticket, report: SettleReport::Fenced });
        let ticket = lookup_ticket(&out);
        t.log.extend(out);
        let report = LookupReport::Ended(recorded(Outcome::Superseded, 3));
        let out = t.b.hand(Input::LookedUp { ticket, report });
        t.tell(out);
    }, Outcome::Superseded),
    ("completed after tools", |t| {
        let tool = t.at_a_tool(READY);
        let out = t.b.tool_ends(tool[0], ToolEnd::Ok);
        let out = t.tell(out);
        t.end(model_ticket(&out), ModelEnd::Completed);
    }, Outcome::Completed),
    ("stopped at its tools", |t| {
        let tool = t.at_a_tool(READY);
        let out = t.b.abort(1, Some(SUBJECT));
        t.tell(out);
        let out = t.b.tool_ends(tool[0], ToolEnd::Cancelled);
        t.tell(out);
    }, cancelled(StopReason::Rpc, true)),
    ("stopped at a tool that hangs", |t| {
        t.at_a_tool(READY);
        let out = t.b.abort(1, Some(SUBJECT));
        t.tell(out);
        t.pass(10_000);
    }, cancelled(StopReason::Rpc, true)),
    ("stopped while a person is waited for", |t| {
        t.at_a_tool(GUARDED);
        let out = t.b.abort(1, Some(SUBJECT));
        t.tell(out);
    }, cancelled(StopReason::Rpc, true)),
    ("interrupted at its tools", |t| {
        t.at_a_tool(READY);
        t.chat(11, Some(QueueMode::Interrupt));
        t.pass(10_000);
    }, cancelled(StopReason::Interrupt, true)),
    ("the budget, at a tool", |t| {
        let request = t.b.request();
        let out = t.b.submit_as(request, 1, SUBJECT, 1, Some(Budget::Limited(500)));
        let out = t.tell(out);
        let out = t.b.asks_for(model_ticket(&out), &[READY]);
        t.tell(out);
        t.pass(500);
        t.pass(10_000);
    }, timed_out(Limit::Budget, true)),
    ("tools without end", |t| {
        let call = t.at_the_model();
        let out = t.b.asks_for(call, &[UNKNOWN]);
        let mut out = t.tell(out);
        for _ in 0..ToolsConfig::default().rounds_max {
            let asks = t.b.asks_for(model_ticket(&out), &[UNKNOWN]);
            out = t.tell(asks);
        }
    }, Outcome::Failed(Failure::TooManyRounds)),
    ("a checkpoint that another writer fenced", |t| {
        let call = t.at_the_model();
        let out = t.b.asks_for(call, &[READY]);
        let (ticket, _) = launch(&out);
        let out = t.b.hand(Input::Launched { ticket, report: LaunchReport::Fenced });
        let ticket = lookup_ticket(&out);
        t.log.extend(out);
        let report = LookupReport::Ended(recorded(Outcome::Superseded, 3));
        let out = t.b.hand(Input::LookedUp { ticket, report });
        t.tell(out);
    }, Outcome::Superseded),
    ("taken along in another turn", |t| {
        let out = t.chat(9, Some(QueueMode::Collect));
        let call = model_ticket(&out);
        t.chat(8, Some(QueueMode::Collect));
        t.chat(SUBJECT, Some(QueueMode::Collect));
        let out = t.b.complete(call);
        t.tell(out);
        let out = t.pass(500);
        let call = model_ticket(&out);
        t.end(call, ModelEnd::Completed);
    }, Outcome::Completed),
];

fn config() -> Config {
    Config {
        wait_default_ms: u64::MAX / 2,
        // Of all that may pass by itself, a rate limit alone is asked again.
        recovery: RecoveryConfig {
            rate_limit_retries_max: 2,
            ..RecoveryConfig::at_most(0)
        },
        ..Config::default()
    }
}

fn of_subject(output: &Output) -> Option<(u64, &Event)> {
    match output {
        Output::Publish {
            run: r, seq, event, ..
        } if *r == run(SUBJECT) => Some((*seq, event)),
        _ => None,
    }
}

/// The events of the subject: numbered without gaps, one end, the last.
fn told_as_events(log: &[Output], way: &str) -> Terminal {
    let events: Vec<(u64, &Event)> = log.iter().filter_map(of_subject).collect();
    let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
    let expected: Vec<u64> = (1..=events.len() as u64).collect();
    assert_eq!(numbers, expected, "{way}: numbers without gaps");
    let ends = events
        .iter()
        .filter(|(_, event)| matches!(event, Event::End { .. }));
    assert_eq!(ends.count(), 1, "{way}: one end");
    match events.last() {
        Some((_, Event::End { terminal, .. })) => *terminal,
        other => panic!("{way}: the last event is {other:?}"),
    }
}

/// What was told after the subject was forgotten.
fn after_forgotten<'a>(log: &'a [Output], way: &str) -> &'a [Output] {
    let forget = Output::Forget {
        subject: Subject::Run(run(SUBJECT)),
    };
    let at: Vec<usize> = (0..log.len()).filter(|&n| log[n] == forget).collect();
    assert_eq!(at.len(), 1, "{way}: forgotten once");
    &log[at[0] + 1..]
}

/// P02, P03, P04, P36, P40, I5, I6, I8, I9, I17, I46, L1, L17, L20, R30, R31, R127, R128,
/// R130, R131, R143, B-015, B-016, B-101, B-102: every end does every duty.
#[test]
fn every_end_does_every_duty() {
    for &(way, bring_about, outcome) in WAYS {
        let mut t = Told::new(config());
        // Asked before there is a run, so that it also waits for one that never begins.
        let waiter = t.b.request();
        let out = t.b.hand(Input::Wait {
            request: waiter,
            run: run(SUBJECT),
            timeout_ms: None,
        });
        t.tell(out);
        bring_about(&mut t);
        let terminal = told_as_events(&t.log, way);
        assert_eq!(terminal.outcome, outcome, "{way}: the outcome");
        let to_callers: Vec<Answer> = answers(&t.log)
            .into_iter()
            .map(|(_, answer)| answer)
            .filter(|answer| matches!(answer, Answer::Final { terminal, .. } if terminal.run == run(SUBJECT)))
            .collect();
        assert!(
            matches!(&to_callers[..], [Answer::Final { terminal: told, replay: false, .. }] if *told == terminal),
            "{way}: one final answer, the same: {to_callers:?}"
        );
        let to_waiter: Vec<Answer> = answers(&t.log)
            .into_iter()
            .filter(|(to, _)| *to == waiter)
            .map(|(_, answer)| answer)
            .collect();
        let waited = match &to_waiter[..] {
            [
                Answer::Wait {
                    result: WaitResult::Ended { terminal: told, .. },
                    ..
                },
            ] => *told == terminal,
            // A queued chat message was told as such at once.
            [
                Answer::Wait {
                    result: WaitResult::Pending,
                    ..
                },
            ] => true,
            _ => false,
        };
        assert!(waited, "{way}: the waiter: {to_waiter:?}");
        assert!(
            !after_forgotten(&t.log, way)
                .iter()
                .any(|o| of_subject(o).is_some()),
            "{way}: nothing after the end"
        );
        let owner = ContentOwner::Attempt(run(SUBJECT), Attempt(1));
        let asked = has(
            &t.log,
            |o| matches!(o, Output::StartModel { fence, .. } if fence.run == run(SUBJECT)),
        );
        let freed = t
            .log
            .iter()
            .filter(|o| **o == Output::Release { owner })
            .count();
        assert_eq!(
            freed,
            usize::from(asked),
            "{way}: its content is freed once"
        );
        assert!(
            t.b.core
                .armed()
                .all(|armed| armed.timer.owner() != Subject::Run(run(SUBJECT))),
            "{way}: no deadline is left"
        );
        the_lane_moves_on(t, way);
    }
}

/// Whoever waits behind begins, until nothing is left.
fn the_lane_moves_on(mut t: Told, way: &str) {
    t.chat(99, Some(QueueMode::Followup));
    let mut begun = Vec::new();
    for _ in 0..200 {
        let calls: Vec<Ticket> = t
            .log
            .drain(..)
            .filter_map(|o| match o {
                Output::StartModel { ticket, .. } => Some(ticket),
                _ => None,
            })
            .collect();
        for call in calls {
            begun.push(call.subject);
            t.end(call, ModelEnd::Completed);
        }
        t.pass(500);
        if t.b.core.live_runs() == 0 {
            break;
        }
    }
    assert!(
        begun.contains(&Subject::Run(run(99))),
        "{way}: the next one runs: {begun:?}"
    );
    assert_eq!(
        (t.b.core.live_runs(), t.b.core.active_runs()),
        (0, 0),
        "{way}: nothing is left"
    );
    assert_eq!(
        t.b.core.armed().count(),
        t.b.core.open_waits(),
        "{way}: no deadline is left"
    );
}

/// Law 6: the table covers what a run can end with.
#[test]
fn the_table_holds_enough_ways() {
    assert!(WAYS.len() >= 12);
}
