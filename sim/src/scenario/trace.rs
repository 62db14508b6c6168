//! A run in words: time, what came in, what was ordered, with the script's names.
//!
//! Owns the wording for people. It is compared with the `trace` section of a file, so a word
//! that changes here changes there.

use tidegate_core::{
    AcceptReport, Answer, CallId, CallResult, Claim, ClaimReport, ConfigureReport, Decision, Event,
    Fence, Input, LaunchOrder, LaunchReport, LoadReport, LookupReport, ModelFact, Output, Place,
    QueueChange, Reply, RequestId, ResetReport, RunId, Scope, SettleReport, StoreError, Subject,
    Submit, Terminal, Ticket, Time, Timer, ToolFact, Turn,
};

use super::ast::{Ended, Step, Terms, Told};
use super::beats::{say_beat, say_call};
use super::calls::{asks, ending};
use super::cast::{Cast, Who};
use super::record::told;
use super::units::show_time;
use super::words::{
    ENDED, RESULTS, STORE_ERRORS, TOOL_ENDS, all_of, say, say_ending, say_queue, say_said,
    say_terms, say_told,
};

/// The column at which an input begins.
const TIME: usize = 9;

/// Who asked a request.
pub(super) type Client<'a> = dyn Fn(RequestId) -> Who<'a> + 'a;

/// The lines of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// Whether lines are kept at all.
    pub(super) on: bool,
    pub(super) lines: Vec<String>,
    slept: Option<(Option<Time>, Option<Timer>)>,
}

impl Trace {
    pub(super) fn line(&mut self, at: u64, what: String) {
        if self.on {
            self.lines.push(format!("{:>TIME$}  {what}", show_time(at)));
        }
    }

    /// A step that is no input: it is told here, since nothing else shows it.
    pub(super) fn aside(step: &Step) -> Option<String> {
        let aside = matches!(
            step,
            Step::StoreTakes(_)
                | Step::StoreRefuses { .. }
                | Step::StoreTwice(_)
                | Step::StoreReports(_)
                | Step::TakenAway { .. }
                | Step::Intruder { .. }
                | Step::Crash { .. }
                | Step::Freeze(_)
                | Step::WallJump(_)
        );
        aside.then(|| super::steps::write(step))
    }

    pub(super) fn input(&mut self, at: u64, input: &Input, cast: &Cast, client: &Client<'_>) {
        if self.on {
            self.line(at, say_input(input, cast, client));
        }
    }

    pub(super) fn output(&mut self, output: &Output, cast: &Cast, client: &Client<'_>) {
        if !self.on {
            return;
        }
        if let Output::Sleep { until, why } = output {
            let same = self.slept.replace((*until, *why)) == Some((*until, *why));
            if same {
                return;
            }
        }
        self.lines.push(format!(
            "{:TIME$}    -> {}",
            "",
            say_output(output, cast, client)
        ));
    }
}

fn say_input(input: &Input, cast: &Cast, client: &Client<'_>) -> String {
    let who = |request: RequestId| client(request).map_or("nobody", |(name, _)| name);
    let of = |subject: Subject| {
        let asked = match subject {
            Subject::Request(request) => client(request),
            _ => None,
        };
        cast.subject(subject, asked)
    };
    match input {
        Input::Submit(submit) => say_submit(submit, who(submit.request), cast),
        Input::Wait {
            request,
            run,
            timeout_ms,
        } => {
            let limit = timeout_ms.map_or(String::new(), |ms| format!(" up to {}", show_time(ms)));
            format!("{} waits for {}{limit}", who(*request), cast.run_name(*run))
        }
        Input::Abort {
            request,
            session,
            scope,
        } => {
            let what = match scope {
                Scope::Run(run) => cast.run_name(*run),
                Scope::AtWork => "the run at work",
                Scope::Queued => "everything queued",
                Scope::All => "everything",
            };
            format!(
                "{} aborts {what} of {}",
                who(*request),
                cast.session_name(*session)
            )
        }
        Input::Reset {
            request,
            session,
            expected,
        } => {
            let only = expected.map_or(String::new(), |g| format!(" at generation {}", g.0));
            let session = cast.session_name(*session);
            format!("{} resets {session}{only}", who(*request))
        }
        Input::Configure {
            request,
            session,
            change,
        } => {
            let (who, session) = (who(*request), cast.session_name(*session));
            match change {
                QueueChange::Show => format!("{who} asks how {session} queues"),
                QueueChange::Set(queue) => {
                    format!("{who} lets {session} queue {}", say_queue(*queue))
                }
                QueueChange::Clear => format!("{who} lets {session} queue as configured"),
            }
        }
        Input::WasReset { ticket, report } => {
            format!("{}: {}", of(ticket.subject), say_was_reset(report, cast))
        }
        Input::Configured { ticket, report } => {
            format!("{}: {}", of(ticket.subject), say_configured(*report))
        }
        Input::Leave { request } => format!("{} leaves a request", who(*request)),
        Input::Drain { budget_ms, .. } => {
            let within = budget_ms.map_or(String::new(), |ms| format!(" within {}", show_time(ms)));
            format!("process is to end{within}")
        }
        Input::Resume { session, .. } => {
            format!("{} has open work", cast.session_name(*session))
        }
        Input::Loaded { ticket, report } => {
            format!("{}: {}", of(ticket.subject), say_loaded(report, cast))
        }
        Input::Accepted { ticket, report } => {
            format!("{}: {}", of(ticket.subject), say_accepted(report, cast))
        }
        Input::Claimed { ticket, report } => {
            format!("{}: {}", of(ticket.subject), say_claimed(report, cast))
        }
        Input::Settled { ticket, report } => {
            format!("{}: {}", of(ticket.subject), say_settled(report))
        }
        Input::LookedUp { ticket, report } => {
            let report = say_looked_up(report, cast);
            format!("looked up for {}: {report}", of(ticket.subject))
        }
        Input::Model { ticket, fact } => {
            format!("model of {}: {}", of(ticket.subject), say_fact(fact))
        }
        Input::Launched { ticket, report } => {
            format!("{}: {}", of(ticket.subject), say_launched(*report))
        }
        Input::Tool { ticket, fact } => {
            format!(
                "tool of {}: {}",
                of_ticket(*ticket, cast),
                say_tool_fact(*fact)
            )
        }
        Input::Decide {
            request,
            call,
            decision,
        } => {
            let what = match decision {
                Decision::AllowOnce => "allows",
                Decision::Deny => "denies",
            };
            format!("{} {what} {}", who(*request), cast.call_name(*call))
        }
        Input::Tick => "tick".into(),
    }
}

fn say_submit(submit: &Submit, who: &str, cast: &Cast) -> String {
    let same = submit.body == cast.body(submit.run, false);
    let other = if same { "" } else { " with another body" };
    let (verb, how) = match submit.turn {
        Turn::Agent => ("sends", String::new()),
        Turn::Chat { queue, route, .. } => ("says", say_said(queue, cast.route_name(route))),
    };
    let terms = say_terms(Terms {
        budget: submit.budget,
        lane: submit.lane,
        priority: submit.priority,
    });
    format!(
        "{who} {verb} {} to {}{how}{terms}{other}",
        cast.run_name(submit.run),
        cast.session_name(submit.session),
    )
}

fn say_claimed(report: &ClaimReport, cast: &Cast) -> String {
    match report {
        ClaimReport::Committed(claim) => format!("claim is durable{}", say_claim(claim, cast)),
        ClaimReport::Fenced => "claim is fenced off".into(),
        ClaimReport::NotOwner => "claim: not the owner".into(),
        ClaimReport::Refused(error) => format!("claim {}", refused(*error)),
    }
}

fn say_settled(report: &SettleReport) -> String {
    match report {
        SettleReport::Committed => "end is durable".into(),
        SettleReport::Fenced => "end is fenced off".into(),
        SettleReport::NotOwner => "end: not the owner".into(),
        SettleReport::Refused(error) => format!("end {}", refused(*error)),
    }
}

fn say_launched(report: LaunchReport) -> String {
    match report {
        LaunchReport::Committed => "checkpoint is durable".into(),
        LaunchReport::Fenced => "checkpoint is fenced off".into(),
        LaunchReport::NotOwner => "checkpoint: not the owner".into(),
        LaunchReport::Refused(error) => format!("checkpoint {}", refused(error)),
    }
}

/// The name of the call that a ticket is about.
fn of_ticket(ticket: Ticket, cast: &Cast) -> String {
    match ticket.subject {
        Subject::Run(run) => cast
            .call_name(CallId {
                run,
                attempt: ticket.attempt,
                call: ticket.ordinal,
            })
            .to_owned(),
        other => cast.subject(other, None),
    }
}

fn say_tool_fact(fact: ToolFact) -> String {
    match fact {
        ToolFact::Output { to } => format!("output up to {to}"),
        ToolFact::Ended(end) => say(TOOL_ENDS, &end).into(),
    }
}

fn say_was_reset(report: &ResetReport, cast: &Cast) -> String {
    match report {
        ResetReport::Committed { generation, ended } => {
            let names: Vec<&str> = ended.iter().map(|end| cast.run_name(end.run)).collect();
            let ended = match names[..] {
                [] => String::new(),
                _ => format!(", which ended {}", names.join(", ")),
            };
            format!("generation {} is durable{ended}", generation.0)
        }
        ResetReport::NotOwner => "reset: not the owner".into(),
        ResetReport::Refused(error) => format!("reset {}", refused(*error)),
    }
}

fn say_configured(report: ConfigureReport) -> String {
    match report {
        ConfigureReport::Committed => "its queue settings are durable".into(),
        ConfigureReport::NotOwner => "queue settings: not the owner".into(),
        ConfigureReport::Refused(error) => format!("queue settings {}", refused(error)),
    }
}

fn say_looked_up(report: &LookupReport, cast: &Cast) -> String {
    match report {
        LookupReport::Ended(terminal) => format!("it {}", say_end(terminal, cast)),
        LookupReport::Open => "it is open".into(),
        LookupReport::Unknown => "there is no such run".into(),
        LookupReport::Refused(error) => refused(*error),
    }
}

fn refused(error: StoreError) -> String {
    format!("refused: the store is {}", say(STORE_ERRORS, &error))
}

fn say_loaded(report: &LoadReport, cast: &Cast) -> String {
    match report {
        LoadReport::Loaded { open, .. } if open.is_empty() => "loaded, nothing open".into(),
        LoadReport::Loaded { open, .. } => {
            let names: Vec<&str> = open.iter().map(|run| cast.run_name(run.run)).collect();
            format!("loaded, open: {}", names.join(", "))
        }
        LoadReport::NotOwner => "not the owner".into(),
        LoadReport::Refused(error) => format!("load {}", refused(*error)),
    }
}

fn say_accepted(report: &AcceptReport, cast: &Cast) -> String {
    match report {
        AcceptReport::Committed { claim: None } => "durable".into(),
        AcceptReport::Committed { claim: Some(claim) } => {
            format!("durable, and its claim{}", say_claim(claim, cast))
        }
        AcceptReport::Duplicate { terminal: None } => "known, and open".into(),
        AcceptReport::Duplicate {
            terminal: Some(terminal),
        } => format!("known, and {}", say_end(terminal, cast)),
        AcceptReport::Conflict => "known with another body".into(),
        AcceptReport::NotOwner => "not the owner".into(),
        AcceptReport::Refused(error) => refused(*error),
    }
}

fn say_claim(claim: &Claim, cast: &Cast) -> String {
    claim.superseded.as_ref().map_or(String::new(), |old| {
        format!(", {} is superseded", cast.run_name(old.run))
    })
}

fn say_end(terminal: &Terminal, cast: &Cast) -> String {
    let reply = match terminal.reply {
        Reply::Empty => String::new(),
        Reply::Text { bytes } => format!(", {bytes} bytes"),
    };
    let turn = terminal.turn.map_or(String::new(), |turn| {
        format!(", in the turn of {}", cast.run_name(turn))
    });
    format!(
        "ended as {}{reply}{turn}",
        say(ENDED, &Ended::of(terminal.outcome))
    )
}

fn say_fact(fact: &ModelFact) -> String {
    match fact {
        ModelFact::Alive => "keep-alive".into(),
        ModelFact::Structure => "begins".into(),
        ModelFact::Reasoning => "reasoning".into(),
        ModelFact::Calling => "arguments".into(),
        ModelFact::Call(facts) => say_call("a tool", *facts),
        ModelFact::Text { to } => format!("text up to {to}"),
        ModelFact::Finished => "finishes".into(),
        ModelFact::Ended(end) => {
            let asks = asks(*end).map_or(String::new(), |asks| format!("{}, ", say_beat(&asks)));
            format!("{asks}{}", say_ending(ending(*end)))
        }
    }
}

fn say_output(output: &Output, cast: &Cast, client: &Client<'_>) -> String {
    match output {
        Output::Load { session, .. } => format!("load {}", cast.session_name(*session)),
        Output::Accept { accept, .. } => {
            let claim = accept.claim.as_ref().map_or("", |_| ", with its claim");
            format!("accept {}{claim}", cast.run_name(accept.run))
        }
        Output::Claim { fence, claim, .. } => {
            let along: Vec<&str> = claim.along.iter().map(|&run| cast.run_name(run)).collect();
            let along = match along[..] {
                [] => String::new(),
                _ => format!(", along {}", along.join(", ")),
            };
            format!(
                "claim for {}, attempt {}{along}{}",
                cast.run_name(fence.run),
                fence.attempt.0,
                say_results(&claim.results)
            )
        }
        Output::Reset { session, .. } => format!("reset {}", cast.session_name(*session)),
        Output::Configure { session, .. } => {
            format!("keep how {} queues", cast.session_name(*session))
        }
        Output::Save { fence, to, .. } => format!("save {} up to {to}", cast.run_name(fence.run)),
        Output::Settle {
            terminal, results, ..
        } => {
            format!(
                "settle {}: {}{}",
                cast.run_name(terminal.run),
                say_end(terminal, cast),
                say_results(results)
            )
        }
        Output::Launch { fence, launch, .. } => say_launch(*fence, launch, cast),
        Output::StartTool { call, .. } => format!("start {}", cast.call_name(*call)),
        Output::CancelTool { ticket } => format!("stop {}", of_ticket(*ticket, cast)),
        Output::Lookup { run, .. } => format!("look up {}", cast.run_name(*run)),
        Output::StartModel {
            fence, candidate, ..
        } => {
            let whom = match candidate {
                0 => "the model".into(),
                n => format!("fallback {n}"),
            };
            format!("call {whom} for {}", cast.run_name(fence.run))
        }
        Output::CancelModel { ticket } => {
            format!("stop the model of {}", cast.subject(ticket.subject, None))
        }
        Output::Respond { request, answer } => {
            let (who, about) = client(*request).unwrap_or(("nobody", None));
            format!("tell {who}: {}", say_answer(answer, about, cast))
        }
        Output::Publish {
            run, seq, event, ..
        } => format!(
            "event {seq} of {}: {}",
            cast.run_name(*run),
            say_event(event, cast)
        ),
        Output::Release { owner } => {
            let asked = match owner {
                tidegate_core::ContentOwner::Request(request) => client(*request),
                tidegate_core::ContentOwner::Attempt(..) => None,
            };
            format!("free {}", cast.owner(*owner, asked))
        }
        Output::Forget { subject } => format!("forget {}", cast.subject(*subject, None)),
        Output::Drained => "drained".into(),
        Output::Halt(halt) => format!("halt: {halt}"),
        Output::Sleep { until: None, .. } => "next: nothing".into(),
        Output::Sleep {
            until: Some(until),
            why,
        } => {
            let why = why.map_or(String::new(), |timer| {
                let asked = match timer.owner() {
                    Subject::Request(request) => client(request),
                    _ => None,
                };
                format!(
                    ", {} of {}",
                    timer.name(),
                    cast.subject(timer.owner(), asked)
                )
            });
            format!("next: {}{why}", show_time(until.0))
        }
    }
}

/// A checkpoint: which of the answer's calls start with it, and which wait for a person.
fn say_launch(fence: Fence, launch: &LaunchOrder, cast: &Cast) -> String {
    let named = |what: &str, calls: &[u16]| {
        let names = calls.iter().map(|&call| {
            let (run, attempt) = (fence.run, fence.attempt);
            cast.call_name(CallId { run, attempt, call })
        });
        let names: Vec<&str> = names.collect();
        match names[..] {
            [] => String::new(),
            _ => format!(", {what} {}", names.join(", ")),
        }
    };
    let (start, ask) = (
        named("to start", &launch.start),
        named("to ask for", &launch.ask),
    );
    let run = cast.run_name(fence.run);
    format!("checkpoint of {run}, {} calls{start}{ask}", launch.calls)
}

/// The results that go along with an order, by the calls' places.
fn say_results(results: &[CallResult]) -> String {
    let words: Vec<&str> = results.iter().map(|it| say(RESULTS, &it.end)).collect();
    match words[..] {
        [] => String::new(),
        _ => format!(", results: {}", words.join(", ")),
    }
}

fn say_answer(answer: &Answer, asked: Option<RunId>, cast: &Cast) -> String {
    let about = match answer {
        Answer::Reset { generation, .. } => {
            return format!("it is at generation {}", generation.0);
        }
        Answer::Queue {
            settings, waiting, ..
        } => {
            let queue = say_queue(all_of(*settings));
            return format!("it queues {queue}; {waiting} wait");
        }
        Answer::Aborted { runs } if runs.is_empty() => return "nothing was stopped".into(),
        Answer::Aborted { runs } => {
            let names: Vec<&str> = runs.iter().map(|&run| cast.run_name(run)).collect();
            return format!("stopped {}", names.join(", "));
        }
        Answer::Accepted { run, place, .. } if *place != Place::Next => {
            return format!(
                "{} accepted, {}",
                cast.run_name(*run),
                say_place(*place, cast)
            );
        }
        Answer::Accepted { run, .. } | Answer::InFlight { run, .. } | Answer::Wait { run, .. } => {
            Some(*run)
        }
        Answer::Decided { call, .. } => {
            let word = told(answer).map(say_told).unwrap_or_default();
            return format!("{} {word}", cast.call_name(*call));
        }
        Answer::Final { terminal, .. } => Some(terminal.run),
        Answer::Rejected(_) => asked,
    };
    let word = told(answer).map(say_told).unwrap_or_default();
    about.map_or(word.clone(), |run| format!("{} {word}", cast.run_name(run)))
}

/// Where an accepted message stands.
pub(super) fn say_place(place: Place, cast: &Cast) -> String {
    match place {
        Place::Next => "begins at once".into(),
        Place::Queued { ahead } => format!("stands behind {ahead}"),
        Place::Steering { into } => format!("is to steer {}", cast.run_name(into)),
        Place::Interrupting { run } => format!("is to interrupt {}", cast.run_name(run)),
    }
}

fn say_event(event: &Event, cast: &Cast) -> String {
    match event {
        Event::Start { attempt, .. } => format!("start, attempt {}", attempt.0),
        Event::Waited {
            ms,
            active_ahead,
            queued_ahead,
        } => format!(
            "waited {} behind {active_ahead} at work and {queued_ahead} waiting",
            show_time(*ms)
        ),
        Event::Bound { turn } => format!("bound to the turn of {}", cast.run_name(*turn)),
        Event::Seen => "seen by the model".into(),
        Event::Retrying {
            call,
            calls_max,
            delay_ms,
            because,
        } => format!(
            "retrying in {}, call {call} of {calls_max}, instead of {}",
            show_time(*delay_ms),
            say(ENDED, &Ended::of(*because))
        ),
        Event::Fallback { candidate, because } => format!(
            "fallback {candidate} instead of {}",
            say(ENDED, &Ended::of(*because))
        ),
        Event::Text { from, to, .. } => format!("text {from} to {to}"),
        Event::ToolStart { call } => format!("{} is asked for", cast.call_name(*call)),
        Event::ToolAsked { call, .. } => format!("{} waits for a person", cast.call_name(*call)),
        Event::ToolDecided { call, decision } => {
            let word = say_told(Told::Decided(*decision));
            format!("{} is {word}", cast.call_name(*call))
        }
        Event::ToolOutput { call, from, to } => {
            format!("output {from} to {to} of {}", cast.call_name(*call))
        }
        Event::ToolEnd { call, end } => {
            format!("{} comes to {}", cast.call_name(*call), say(RESULTS, end))
        }
        Event::Finishing { outcome } => {
            format!("finishing as {}", say(ENDED, &Ended::of(*outcome)))
        }
        Event::End { terminal, .. } => say_end(terminal, cast),
    }
}
