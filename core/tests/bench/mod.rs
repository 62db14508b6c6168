//! A bench to drive a core by hand: orders come out in full, reports go in by name.

#![allow(dead_code, reason = "each test file uses the part it needs")]

use tidegate_core::*;

/// A core, a clock and what came out last.
pub struct Bench {
    pub core: Core,
    pub now: u64,
    requests: u128,
}

pub const WALL: u64 = 1_000_000;

/// A configuration in which a failed call ends its run.
pub fn asks_once() -> Config {
    Config {
        recovery: RecoveryConfig::at_most(0),
        ..Config::default()
    }
}

pub fn session(n: u128) -> SessionId {
    SessionId::from_u128(n)
}

pub fn run(n: u128) -> RunId {
    RunId::from_u128(n)
}

impl Bench {
    pub fn new(config: Config) -> Self {
        Self {
            core: Core::new(config),
            now: 0,
            requests: 0,
        }
    }

    pub fn at(&self) -> Now {
        Now {
            time: Time(self.now),
            wall: Wall(WALL + self.now),
        }
    }

    pub fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId::from_u128(self.requests)
    }

    /// Hands an input in; gives all orders but the last, which must be the sleep.
    pub fn hand(&mut self, input: Input) -> Vec<Output> {
        let now = self.at();
        let mut out: Vec<Output> = self.core.handle(now, input).collect();
        assert!(
            matches!(out.pop(), Some(Output::Sleep { .. })),
            "a drain ends with the sleep"
        );
        self.core.check().expect("invariants hold between inputs");
        out
    }

    /// Moves the clock and ticks.
    pub fn tick(&mut self, ms: u64) -> Vec<Output> {
        self.now += ms;
        self.hand(Input::Tick)
    }

    /// Moves the clock deadline by deadline, as a driver does, and ticks at each.
    pub fn pass(&mut self, ms: u64) -> Vec<Output> {
        let end = self.now + ms;
        let mut out = Vec::new();
        loop {
            let next = self.core.armed().next();
            let Some(armed) = next else { break };
            if armed.at.0 > end {
                break;
            }
            self.now = self.now.max(armed.at.0);
            out.extend(self.hand(Input::Tick));
        }
        self.now = end;
        out.extend(self.hand(Input::Tick));
        out
    }

    pub fn submit_as(
        &mut self,
        request: RequestId,
        s: u128,
        r: u128,
        body: u128,
        budget: Option<Budget>,
    ) -> Vec<Output> {
        self.hand(Input::Submit(Submit {
            request,
            session: session(s),
            run: run(r),
            body: Fingerprint::from_u128(body),
            budget,
            turn: Turn::Agent,
            lane: LaneName::Main,
            priority: Priority::Foreground,
        }))
    }

    /// A chat message with a mode of its own.
    pub fn chat(&mut self, s: u128, r: u128, queue: Option<QueueMode>) -> Vec<Output> {
        self.chat_from(s, r, queue, 1)
    }

    /// A chat message over a route.
    pub fn chat_from(
        &mut self,
        s: u128,
        r: u128,
        queue: Option<QueueMode>,
        route: u128,
    ) -> Vec<Output> {
        let request = self.request();
        self.hand(Input::Submit(Submit {
            request,
            session: session(s),
            run: run(r),
            body: Fingerprint::from_u128(1),
            budget: None,
            turn: Turn::Chat {
                queue,
                route: Fingerprint::from_u128(route),
                speaker: Speaker::User,
            },
            lane: LaneName::Main,
            priority: Priority::Foreground,
        }))
    }

    pub fn submit(&mut self, s: u128, r: u128) -> Vec<Output> {
        let request = self.request();
        self.submit_as(request, s, r, 1, None)
    }

    /// Reports a load of an empty session.
    pub fn load(&mut self, out: &[Output]) -> Vec<Output> {
        self.load_with(out, Vec::new())
    }

    pub fn load_with(&mut self, out: &[Output], open: Vec<OpenRun>) -> Vec<Output> {
        let ticket = load_ticket(out);
        let report = LoadReport::Loaded {
            epoch: Epoch(1),
            generation: Generation(1),
            queue: QueueOverride::default(),
            open,
        };
        self.hand(Input::Loaded { ticket, report })
    }

    /// Reports an accept as committed, with the claim if one was ordered.
    pub fn commit(&mut self, out: &[Output]) -> Vec<Output> {
        let (ticket, accept) = accept(out);
        let claim = accept.claim.as_ref().map(|_| Claim { superseded: None });
        self.hand(Input::Accepted {
            ticket,
            report: AcceptReport::Committed { claim },
        })
    }

    pub fn claim(&mut self, out: &[Output]) -> Vec<Output> {
        self.claim_over(out, None)
    }

    pub fn claim_over(&mut self, out: &[Output], superseded: Option<Terminal>) -> Vec<Output> {
        let ticket = claim_ticket(out);
        self.hand(Input::Claimed {
            ticket,
            report: ClaimReport::Committed(Claim { superseded }),
        })
    }

    /// A run of a cold session, up to the model call.
    pub fn start(&mut self, s: u128, r: u128) -> Ticket {
        let out = self.submit(s, r);
        let out = self.load(&out);
        let out = self.commit(&out);
        model_ticket(&out)
    }

    pub fn model(&mut self, ticket: Ticket, fact: ModelFact) -> Vec<Output> {
        self.hand(Input::Model { ticket, fact })
    }

    pub fn text(&mut self, ticket: Ticket, to: u64) -> Vec<Output> {
        self.model(ticket, ModelFact::Text { to })
    }

    pub fn complete(&mut self, ticket: Ticket) -> Vec<Output> {
        self.model(ticket, ModelFact::Ended(ModelEnd::Completed))
    }

    pub fn settle(&mut self, out: &[Output]) -> Vec<Output> {
        let (ticket, _) = settle(out);
        self.hand(Input::Settled {
            ticket,
            report: SettleReport::Committed,
        })
    }

    pub fn wait(&mut self, r: u128, timeout_ms: Option<u64>) -> (RequestId, Vec<Output>) {
        let request = self.request();
        let out = self.hand(Input::Wait {
            request,
            run: run(r),
            timeout_ms,
        });
        (request, out)
    }

    pub fn abort(&mut self, s: u128, r: Option<u128>) -> Vec<Output> {
        let request = self.request();
        self.hand(Input::Abort {
            request,
            session: session(s),
            scope: r.map_or(Scope::All, |r| Scope::Run(run(r))),
        })
    }
}

impl Bench {
    /// Reports every order to the store as carried out, and what follows from that; gives all
    /// that came out.
    pub fn store(&mut self, out: Vec<Output>) -> Vec<Output> {
        let mut all = Vec::new();
        let mut next = std::collections::VecDeque::from(out);
        while let Some(order) = next.pop_front() {
            if let Some(report) = report_of(&order) {
                next.extend(self.hand(report));
            }
            all.push(order);
        }
        all
    }

    /// A chat message, accepted.
    pub fn chatted(&mut self, s: u128, r: u128, queue: Option<QueueMode>) -> Vec<Output> {
        let out = self.chat(s, r, queue);
        self.store(out)
    }

    /// The model call ends well, and all that follows is carried out.
    pub fn completed(&mut self, call: Ticket) -> Vec<Output> {
        let out = self.complete(call);
        self.store(out)
    }
}

/// An open run of an agent turn, as a load reports it.
pub fn open_run(r: u128, attempt: u32) -> OpenRun {
    OpenRun {
        run: run(r),
        body: Fingerprint::from_u128(1),
        budget: None,
        left_ms: None,
        accepted_at: Wall(5),
        attempt: Attempt(attempt),
        turn: Turn::Agent,
        lane: LaneName::Main,
        priority: Priority::Foreground,
        along: None,
    }
}

/// The report that a healthy store gives to an order.
pub fn report_of(order: &Output) -> Option<Input> {
    Some(match *order {
        Output::Load { ticket, .. } => Input::Loaded {
            ticket,
            report: LoadReport::Loaded {
                epoch: Epoch(1),
                generation: Generation(1),
                queue: QueueOverride::default(),
                open: Vec::new(),
            },
        },
        Output::Accept { ticket, ref accept } => Input::Accepted {
            ticket,
            report: AcceptReport::Committed {
                claim: accept.claim.as_ref().map(|_| Claim { superseded: None }),
            },
        },
        Output::Claim { ticket, .. } => Input::Claimed {
            ticket,
            report: ClaimReport::Committed(Claim { superseded: None }),
        },
        Output::Launch { ticket, .. } => Input::Launched {
            ticket,
            report: LaunchReport::Committed,
        },
        Output::Settle { ticket, .. } => Input::Settled {
            ticket,
            report: SettleReport::Committed,
        },
        Output::Lookup { ticket, .. } => Input::LookedUp {
            ticket,
            report: LookupReport::Unknown,
        },
        Output::Reset {
            ticket, generation, ..
        } => Input::WasReset {
            ticket,
            report: ResetReport::Committed {
                generation: Generation(generation.0 + 1),
                ended: Vec::new(),
            },
        },
        Output::Configure { ticket, .. } => Input::Configured {
            ticket,
            report: ConfigureReport::Committed,
        },
        _ => return None,
    })
}

/// A call that can be carried out.
pub const READY: CallFacts = CallFacts {
    kind: CallKind::Ready,
    guarded: false,
    timeout_ms: None,
};

/// One for which a person may be asked.
pub const GUARDED: CallFacts = CallFacts {
    guarded: true,
    ..READY
};

impl Bench {
    /// The model's answer asks for calls and is whole; gives what was ordered, the checkpoint.
    pub fn asks_for(&mut self, call: Ticket, calls: &[CallFacts]) -> Vec<Output> {
        for facts in calls {
            let out = self.model(call, ModelFact::Call(*facts));
            let told = |o: &Output| matches!(o, Output::Publish { .. });
            assert!(
                out.iter().all(told),
                "nothing begins before the answer is whole"
            );
        }
        self.complete(call)
    }

    /// A run whose answer asked for calls, with all that a healthy store reports.
    pub fn at_tools(&mut self, s: u128, r: u128, calls: &[CallFacts]) -> Vec<Output> {
        let call = self.start(s, r);
        let out = self.asks_for(call, calls);
        self.store(out)
    }

    pub fn tool(&mut self, ticket: Ticket, fact: ToolFact) -> Vec<Output> {
        self.hand(Input::Tool { ticket, fact })
    }

    pub fn tool_ends(&mut self, ticket: Ticket, end: ToolEnd) -> Vec<Output> {
        self.tool(ticket, ToolFact::Ended(end))
    }

    pub fn decide(&mut self, call: CallId, decision: Decision) -> (RequestId, Vec<Output>) {
        let request = self.request();
        let out = self.hand(Input::Decide {
            request,
            call,
            decision,
        });
        (request, out)
    }
}

/// The checkpoint ordered in a drain.
pub fn launch(out: &[Output]) -> (Ticket, LaunchOrder) {
    find(out, |o| match o {
        Output::Launch { ticket, launch, .. } => Some((*ticket, launch.clone())),
        _ => None,
    })
}

/// The tools started in a drain.
pub fn started(out: &[Output]) -> Vec<Ticket> {
    let tickets = out.iter().filter_map(|o| match o {
        Output::StartTool { ticket, .. } => Some(*ticket),
        _ => None,
    });
    tickets.collect()
}

/// The tools told to stop in a drain.
pub fn stopped(out: &[Output]) -> Vec<Ticket> {
    let tickets = out.iter().filter_map(|o| match o {
        Output::CancelTool { ticket } => Some(*ticket),
        _ => None,
    });
    tickets.collect()
}

/// The calls that wait for a person from a drain on.
pub fn asked(out: &[Output]) -> Vec<CallId> {
    let calls = out.iter().filter_map(|o| match o {
        Output::Publish {
            event: Event::ToolAsked { call, .. },
            ..
        } => Some(*call),
        _ => None,
    });
    calls.collect()
}

/// The ends of calls told in a drain.
pub fn call_ends(out: &[Output]) -> Vec<(u16, CallEnd)> {
    let ends = out.iter().filter_map(|o| match o {
        Output::Publish {
            event: Event::ToolEnd { call, end },
            ..
        } => Some((call.call, *end)),
        _ => None,
    });
    ends.collect()
}

/// The results that a drain orders to be written, with a claim or an end.
pub fn results(out: &[Output]) -> Vec<(u16, CallEnd)> {
    find(out, |o| match o {
        Output::Claim { claim, .. } => Some(pairs(&claim.results)),
        Output::Settle { results, .. } => Some(pairs(results)),
        _ => None,
    })
}

fn pairs(results: &[CallResult]) -> Vec<(u16, CallEnd)> {
    results.iter().map(|it| (it.call, it.end)).collect()
}

/// The claims ordered in a drain, with what each takes along.
pub fn claims(out: &[Output]) -> Vec<(RunId, Vec<RunId>)> {
    out.iter()
        .filter_map(|o| match o {
            Output::Claim { fence, claim, .. } => Some((fence.run, claim.along.clone())),
            _ => None,
        })
        .collect()
}

/// Where the accepted messages of a drain stand.
pub fn places(out: &[Output]) -> Vec<Place> {
    answers(out)
        .into_iter()
        .filter_map(|(_, answer)| match answer {
            Answer::Accepted { place, .. } => Some(place),
            _ => None,
        })
        .collect()
}

/// The refusals of a drain.
pub fn refusals(out: &[Output]) -> Vec<Rejection> {
    answers(out)
        .into_iter()
        .filter_map(|(_, answer)| match answer {
            Answer::Rejected(why) => Some(why),
            _ => None,
        })
        .collect()
}

pub fn load_ticket(out: &[Output]) -> Ticket {
    find(out, |o| match o {
        Output::Load { ticket, .. } => Some(*ticket),
        _ => None,
    })
}

pub fn accept(out: &[Output]) -> (Ticket, Accept) {
    find(out, |o| match o {
        Output::Accept { ticket, accept } => Some((*ticket, accept.clone())),
        _ => None,
    })
}

pub fn claim_ticket(out: &[Output]) -> Ticket {
    find(out, |o| match o {
        Output::Claim { ticket, .. } => Some(*ticket),
        _ => None,
    })
}

pub fn model_ticket(out: &[Output]) -> Ticket {
    find(out, |o| match o {
        Output::StartModel { ticket, .. } => Some(*ticket),
        _ => None,
    })
}

pub fn settle(out: &[Output]) -> (Ticket, Terminal) {
    find(out, |o| match o {
        Output::Settle {
            ticket, terminal, ..
        } => Some((*ticket, *terminal)),
        _ => None,
    })
}

pub fn lookup_ticket(out: &[Output]) -> Ticket {
    find(out, |o| match o {
        Output::Lookup { ticket, .. } => Some(*ticket),
        _ => None,
    })
}

/// The answers in a drain, with whom they go to.
pub fn answers(out: &[Output]) -> Vec<(RequestId, Answer)> {
    out.iter()
        .filter_map(|o| match o {
            Output::Respond { request, answer } => Some((*request, answer.clone())),
            _ => None,
        })
        .collect()
}

/// The ends published in a drain.
pub fn ends(out: &[Output]) -> Vec<Terminal> {
    out.iter()
        .filter_map(|o| match o {
            Output::Publish {
                event: Event::End { terminal, .. },
                ..
            } => Some(*terminal),
            _ => None,
        })
        .collect()
}

/// Whether a drain holds an order of which `f` says yes.
pub fn has(out: &[Output], f: impl Fn(&Output) -> bool) -> bool {
    out.iter().any(f)
}

fn find<T>(out: &[Output], f: impl Fn(&Output) -> Option<T>) -> T {
    out.iter()
        .find_map(f)
        .unwrap_or_else(|| panic!("not ordered; the drain was {out:#?}"))
}

/// Two tools at work.
pub fn two_at_work() -> (Bench, Ticket, Ticket) {
    let mut b = Bench::new(Config::default());
    let out = b.at_tools(1, 10, &[READY, READY]);
    let tools = started(&out);
    assert_eq!(tools.len(), 2);
    (b, tools[0], tools[1])
}

/// The outcome of the end that a drain orders to be written.
pub fn outcome_of(out: &[Output]) -> Outcome {
    settle(out).1.outcome
}
