//! A run in words: what the surroundings did, what the core ordered, and what broke.
//!
//! Owns the wording and the choice of what is worth a line. A message is named after its
//! session and its number in it: B2 is the second one of session B.

mod names;

use tidegate_core::{
    AcceptReport, Answer, CallResult, ClaimReport, ContentOwner, Event, Input, LaunchReport,
    LoadReport, LookupReport, ModelEnd, ModelFact, Output, Place, QueueChange, ResetReport, RunId,
    Scope, SettleReport, Speaker, Subject, Timer, ToolFact, Turn, WaitResult,
};

use self::names::{call, of_ticket, outcome, request, run, session, subject, time};
use crate::adapter::NOBODY;
use crate::run::Step;
use crate::violation::Violation;

/// The most lines of a timeline.
const LINES: usize = 20;

fn input(input: &Input, due: Option<Timer>) -> String {
    match input {
        Input::Submit(submit) => {
            let how = turn(submit.turn);
            let again = u128::from_be_bytes(submit.request.0) & 0xffff != 1;
            let other = u128::from_be_bytes(submit.body.0) & 1 == 1;
            format!(
                "a client sends {}{how}{}{}",
                run(submit.run),
                if again { " again" } else { "" },
                if other { " with another body" } else { "" },
            )
        }
        Input::Wait {
            request: id,
            run: of,
            timeout_ms,
        } => {
            let limit = timeout_ms.map_or("the default limit".into(), time);
            format!("{} waits for {}, {limit}", request(*id), run(*of))
        }
        Input::Abort {
            request: id,
            session: of,
            scope,
        } => {
            let what = match scope {
                Scope::Run(one) => run(*one),
                Scope::AtWork => "what is at work".into(),
                Scope::Queued => "what waits".into(),
                Scope::All => "all".into(),
            };
            format!("{} stops {what} of session {}", request(*id), session(*of))
        }
        Input::Reset {
            request: id,
            session: of,
            expected,
        } => {
            let only = expected.map_or(String::new(), |at| format!(" at generation {}", at.0));
            format!("{} resets session {}{only}", request(*id), session(*of))
        }
        Input::Configure {
            request: id,
            session: of,
            change,
        } => format!(
            "{} wants of session {}'s queue: {}",
            request(*id),
            session(*of),
            wanted(change)
        ),
        Input::WasReset { ticket, report } => {
            let of = subject(ticket.subject);
            match report {
                ResetReport::Committed { generation, ended } => {
                    let ended: Vec<_> = ended.iter().map(|end| run(end.run)).collect();
                    let (at, ended) = (generation.0, ended.join(", "));
                    format!("store: session {of} is at generation {at}, ended: [{ended}]")
                }
                other => format!("store: reset of session {of}: {other:?}"),
            }
        }
        Input::Configured { ticket, report } => {
            let of = subject(ticket.subject);
            format!("store: queue settings of session {of}: {report:?}")
        }
        Input::Leave { request: id } if *id == NOBODY => "time has passed".into(),
        Input::Leave { request: id } => format!("{} goes away", request(*id)),
        Input::Drain { budget_ms, .. } => {
            let limit = budget_ms.map_or("the default budget".into(), time);
            format!("the process is about to end, {limit}")
        }
        Input::Resume { session: of, .. } => {
            format!("the store holds open work of session {}", session(*of))
        }
        Input::Loaded { ticket, report } => {
            let of = subject(ticket.subject);
            match report {
                LoadReport::Loaded { open, .. } if open.is_empty() => {
                    format!("store: session {of} is loaded")
                }
                LoadReport::Loaded { open, .. } => {
                    let open: Vec<_> = open.iter().map(|open| run(open.run)).collect();
                    format!("store: session {of} is loaded, open: {}", open.join(", "))
                }
                LoadReport::NotOwner => format!("store: another process owns session {of}"),
                LoadReport::Refused(error) => format!("store: session {of} not loaded ({error:?})"),
            }
        }
        Input::Accepted { ticket, report } => accepted(&message(ticket.subject), report),
        Input::Claimed { ticket, report } => {
            let of = subject(ticket.subject);
            match report {
                ClaimReport::Committed(claim) => match claim.superseded {
                    Some(old) => format!("store: {of} has claimed and superseded {}", run(old.run)),
                    None => format!("store: {of} has claimed"),
                },
                other => format!("store: claim of {of}: {other:?}"),
            }
        }
        Input::Settled { ticket, report } => {
            let of = subject(ticket.subject);
            match report {
                SettleReport::Committed => format!("store: the end of {of} is durable"),
                other => format!("store: the end of {of}: {other:?}"),
            }
        }
        Input::LookedUp { ticket, report } => {
            let of = subject(ticket.subject);
            match report {
                LookupReport::Ended(end) => {
                    format!(
                        "store, to {of}: {} has ended as {}",
                        run(end.run),
                        outcome(end.outcome)
                    )
                }
                other => format!("store, to {of}: {other:?}"),
            }
        }
        Input::Model { ticket, fact } => model(&subject(ticket.subject), fact),
        Input::Launched { ticket, report } => {
            let of = subject(ticket.subject);
            match report {
                LaunchReport::Committed => format!("store: the checkpoint of {of} is durable"),
                other => format!("store: the checkpoint of {of}: {other:?}"),
            }
        }
        Input::Tool { ticket, fact } => match fact {
            ToolFact::Output { to } => {
                format!("tool of {}: output up to byte {to}", of_ticket(*ticket))
            }
            ToolFact::Ended(end) => format!("tool of {}: it ends ({end:?})", of_ticket(*ticket)),
        },
        Input::Decide {
            request: id,
            call: of,
            decision,
        } => format!("{} says {decision:?} to {}", request(*id), call(*of)),
        Input::Tick => match due {
            Some(timer) => format!(
                "clock: the {} of {} is due",
                timer.name(),
                subject(timer.owner())
            ),
            None => "clock: a tick".into(),
        },
    }
}

/// How a message takes part in its session; nothing for the plain case.
fn turn(turn: Turn) -> String {
    match turn {
        Turn::Agent => String::new(),
        Turn::Chat {
            queue,
            route,
            speaker,
        } => {
            let mode = queue.map_or("plain".into(), |mode| format!("{mode:?}").to_lowercase());
            let who = match speaker {
                Speaker::User => "",
                Speaker::Room => ", of the room",
                Speaker::Heartbeat => ", a heartbeat",
            };
            format!(" (chat, {mode}, route {route}{who})")
        }
    }
}

/// The message that a request sends.
fn message(of: Subject) -> String {
    match of {
        Subject::Request(id) if id.0[..4] == [0; 4] => {
            run(RunId::from_u128(u128::from_be_bytes(id.0) >> 16))
        }
        other => subject(other),
    }
}

fn accepted(of: &str, report: &AcceptReport) -> String {
    match report {
        AcceptReport::Committed { claim: None } => format!("store: the message {of} is durable"),
        AcceptReport::Committed {
            claim: Some(claim), ..
        } => match claim.superseded {
            Some(old) => format!(
                "store: the message {of} and its claim are durable; {} is superseded",
                run(old.run)
            ),
            None => format!("store: the message {of} and its claim are durable"),
        },
        AcceptReport::Duplicate { terminal: None } => {
            format!("store: the message {of} is known and open")
        }
        AcceptReport::Duplicate {
            terminal: Some(end),
        } => {
            format!(
                "store: the message {of} has ended as {}",
                outcome(end.outcome)
            )
        }
        other => format!("store: the message {of}: {other:?}"),
    }
}

fn model(of: &str, fact: &ModelFact) -> String {
    match fact {
        ModelFact::Alive => format!("model of {of}: a sign of life"),
        ModelFact::Structure => format!("model of {of}: data without output"),
        ModelFact::Reasoning => format!("model of {of}: it thinks"),
        ModelFact::Calling => format!("model of {of}: arguments grow"),
        ModelFact::Call(facts) => format!("model of {of}: it asks for a call {facts:?}"),
        ModelFact::Text { to } => format!("model of {of}: text up to byte {to}"),
        ModelFact::Finished => format!("model of {of}: finished, the call stays open"),
        ModelFact::Ended(ModelEnd::Completed) => format!("model of {of}: the answer is complete"),
        ModelFact::Ended(ModelEnd::Cancelled) => format!("model of {of}: the call was cancelled"),
        ModelFact::Ended(ModelEnd::Incomplete) => format!("model of {of}: the stream breaks off"),
        ModelFact::Ended(ModelEnd::Failed(error)) => format!("model of {of}: error {error:?}"),
    }
}

/// An output that matters, in words.
fn output(output: &Output) -> Option<String> {
    Some(match output {
        Output::Load { .. } | Output::Lookup { .. } | Output::Sleep { .. } => return None,
        Output::Reset { session: of, .. } => format!("reset session {}", session(*of)),
        Output::Configure { session: of, .. } => {
            format!("keep how session {} queues", session(*of))
        }
        Output::Accept { accept, .. } => match accept.claim {
            Some(_) => format!("commit {} with its claim", run(accept.run)),
            None => format!("commit {}", run(accept.run)),
        },
        Output::Claim { fence, claim, .. } => {
            let along: Vec<_> = claim.along.iter().map(|id| run(*id)).collect();
            let along = match along[..] {
                [] => String::new(),
                _ => format!(" along {}", along.join(", ")),
            };
            let attempt = fence.attempt.0;
            let results = results(&claim.results);
            format!(
                "claim for {}{along}{results} (attempt {attempt})",
                run(fence.run)
            )
        }
        Output::Save { fence, to, .. } => format!("save {} up to byte {to}", run(fence.run)),
        Output::Settle {
            terminal,
            fence,
            results: of_calls,
            ..
        } => format!(
            "end {} as {}{} (fence {}.{})",
            run(terminal.run),
            outcome(terminal.outcome),
            results(of_calls),
            run(fence.run),
            fence.attempt.0
        ),
        Output::StartModel {
            fence, candidate, ..
        } => {
            let whom = match candidate {
                0 => "the model".into(),
                n => format!("fallback {n}"),
            };
            let attempt = fence.attempt.0;
            format!("call {whom} for {} (attempt {attempt})", run(fence.run))
        }
        Output::Launch { fence, launch, .. } => format!(
            "checkpoint of {} (attempt {}): start {:?}, ask for {:?}",
            run(fence.run),
            fence.attempt.0,
            launch.start,
            launch.ask
        ),
        Output::StartTool { call: of, .. } => format!("start {}", call(*of)),
        Output::CancelTool { ticket } => format!("stop {}", of_ticket(*ticket)),
        Output::CancelModel { ticket } => format!("cancel the call of {}", subject(ticket.subject)),
        Output::Respond {
            request: id,
            answer,
        } => format!("tell {}: {}", request(*id), told(answer)),
        Output::Publish {
            run: of,
            event,
            seq,
            ..
        } => match event {
            Event::Start { attempt, .. } => {
                format!("show {}#{seq}: attempt {} begins", run(*of), attempt.0)
            }
            Event::Waited {
                active_ahead,
                queued_ahead,
                ..
            } => format!(
                "show {}#{seq}: waited behind {active_ahead} and {queued_ahead}",
                run(*of)
            ),
            Event::Bound { turn } => {
                format!(
                    "show {}#{seq}: bound to the turn of {}",
                    run(*of),
                    run(*turn)
                )
            }
            Event::Seen => format!("show {}#{seq}: seen by the model", run(*of)),
            Event::Retrying {
                call,
                calls_max,
                delay_ms,
                because,
            } => format!(
                "show {}#{seq}: call {call} of {calls_max} in {}, instead of {}",
                run(*of),
                time(*delay_ms),
                outcome(*because)
            ),
            Event::Fallback { candidate, because } => format!(
                "show {}#{seq}: fallback {candidate} is asked, instead of {}",
                run(*of),
                outcome(*because)
            ),
            Event::Text { from, to, .. } => format!("show {}#{seq}: text {from}..{to}", run(*of)),
            Event::ToolStart { call: of } => format!("show #{seq}: {} is asked for", call(*of)),
            Event::ToolAsked { call: of, .. } => {
                format!("show #{seq}: {} waits for a person", call(*of))
            }
            Event::ToolDecided { call: of, decision } => {
                format!("show #{seq}: {} is decided ({decision:?})", call(*of))
            }
            Event::ToolOutput { call: of, from, to } => {
                format!("show #{seq}: output {from}..{to} of {}", call(*of))
            }
            Event::ToolEnd { call: of, end } => {
                format!("show #{seq}: {} has ended ({end:?})", call(*of))
            }
            Event::Finishing { outcome: end } => {
                format!("show {}#{seq}: will end as {}", run(*of), outcome(*end))
            }
            Event::End { terminal, .. } => {
                format!(
                    "show {}#{seq}: ended as {}",
                    run(*of),
                    outcome(terminal.outcome)
                )
            }
        },
        Output::Release { owner } => match owner {
            ContentOwner::Request(id) => format!("free what came with {}", request(*id)),
            ContentOwner::Attempt(of, attempt) => {
                format!("free the reply of {}, attempt {}", run(*of), attempt.0)
            }
        },
        Output::Forget { subject: of } => format!("forget {}", subject(*of)),
        Output::Drained => "the drain is over".into(),
        Output::Halt(halt) => format!("HALT: {halt}"),
    })
}

/// The results that go along with an order, by the calls' places from 1.
fn results(of: &[CallResult]) -> String {
    let words = of
        .iter()
        .map(|it| format!("{} {}", it.call + 1, low(it.end)));
    let words: Vec<String> = words.collect();
    match words[..] {
        [] => String::new(),
        _ => format!(" with results {}", words.join(", ")),
    }
}

/// A word of the core's in small letters.
fn low(word: impl std::fmt::Debug) -> String {
    format!("{word:?}").to_lowercase()
}

/// A change of queue settings, in words.
fn wanted(change: &QueueChange) -> String {
    let QueueChange::Set(set) = change else {
        return match change {
            QueueChange::Show => "to see it".into(),
            _ => "what is configured".into(),
        };
    };
    let mut parts = Vec::new();
    parts.extend(set.mode.map(low));
    parts.extend(set.debounce_ms.map(|ms| format!("debounce {ms} ms")));
    parts.extend(set.cap.map(|cap| format!("cap {cap}")));
    parts.extend(set.drop.map(|drop| format!("drop {}", low(drop))));
    parts.join(", ")
}

fn told(answer: &Answer) -> String {
    match answer {
        Answer::Accepted { run: of, place, .. } => match place {
            Place::Next => format!("{} is accepted", run(*of)),
            Place::Queued { ahead } => format!("{} is accepted, {ahead} ahead", run(*of)),
            Place::Steering { into } => format!("{} is to steer into {}", run(*of), run(*into)),
            Place::Interrupting { run: other } => {
                format!("{} interrupts {}", run(*of), run(*other))
            }
        },
        Answer::Reset { generation, .. } => format!("it is at generation {}", generation.0),
        Answer::Queue { settings, .. } => format!(
            "it queues so: {}, debounce {} ms, cap {}, drop {}",
            low(settings.mode),
            settings.debounce_ms,
            settings.cap,
            low(settings.drop)
        ),
        Answer::InFlight { run: of, .. } => format!("{} is in flight", run(*of)),
        Answer::Final { terminal, .. } => {
            format!(
                "{} has ended as {}",
                run(terminal.run),
                outcome(terminal.outcome)
            )
        }
        Answer::Wait { run: of, result } => match result {
            WaitResult::Ended { terminal, .. } => {
                format!("{} has ended as {}", run(*of), outcome(terminal.outcome))
            }
            WaitResult::Pending => format!("{} waits in its queue", run(*of)),
            WaitResult::Draining => format!("the wait for {} is cut short", run(*of)),
            WaitResult::TimedOut { known, .. } => {
                let known = match known {
                    Some(true) => "it has not ended",
                    Some(false) => "there is no such run",
                    None => "nobody could tell",
                };
                format!("the wait for {} is over: {known}", run(*of))
            }
        },
        Answer::Aborted { runs } => {
            let runs: Vec<_> = runs.iter().map(|id| run(*id)).collect();
            format!("stopped: [{}]", runs.join(", "))
        }
        Answer::Decided { call: of, decision } => {
            format!("{} is decided ({decision:?})", call(*of))
        }
        Answer::Rejected(why) => format!("refused ({why:?})"),
    }
}

/// Whether an output is small print: it keeps its line only if it is about what broke.
const fn is_small(output: &Output) -> bool {
    matches!(
        output,
        Output::Release { .. } | Output::Forget { .. } | Output::Save { .. }
    ) || matches!(
        output,
        Output::Publish {
            event: Event::Text { .. }
                | Event::Start { .. }
                | Event::Waited { .. }
                | Event::Seen
                | Event::ToolOutput { .. }
                | Event::Finishing { .. },
            ..
        }
    )
}

/// Gathers a timeline, step by step.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    lines: Vec<(String, bool)>,
    due: Option<Timer>,
    life: u32,
}

impl Timeline {
    pub(crate) fn step(&mut self, step: &Step<'_>, about: &Violation) {
        if step.life > self.life {
            self.life = step.life;
            self.lines.push((
                "          the process died and was started again".into(),
                true,
            ));
        }
        let key = subject(about.entity);
        let what = input(step.input, self.due);
        let matters = !matches!(step.input, Input::Loaded { .. } | Input::LookedUp { .. });
        let matters = matters || what.contains(&key);
        let mut line = format!("{:>9}  {what}", time(step.now.time.0));
        let mut orders = Vec::new();
        for out in step.outputs {
            let Some(words) = output(out) else { continue };
            if !is_small(out) || words.contains(&key) || step.index == about.input {
                orders.push(words);
            }
        }
        if !orders.is_empty() {
            line.push_str(" -> ");
            line.push_str(&orders.join("; "));
        }
        self.lines.push((line, matters || !orders.is_empty()));
        self.due = step
            .outputs
            .iter()
            .rev()
            .find_map(|out| match out {
                Output::Sleep { why, .. } => Some(*why),
                _ => None,
            })
            .flatten();
    }

    /// The lines that matter, at most so many; the last one says what broke.
    pub(crate) fn finish(self, violation: &Violation) -> Vec<String> {
        let room = LINES - 1;
        let mut lines: Vec<(String, bool)> = self.lines;
        if lines.len() > room {
            lines.retain(|(_, matters)| *matters);
        }
        let mut lines: Vec<String> = lines.into_iter().map(|(line, _)| line).collect();
        if lines.len() > room {
            let cut = lines.len() - (room - 1);
            let at = room / 2;
            lines.splice(at..at + cut, [format!("           ({cut} steps left out)")]);
        }
        lines.push(format!("{:>9}  BROKEN: {violation}", time(violation.at.0)));
        lines
    }
}
