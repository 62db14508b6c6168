//! `tidegate agent`: one message, its streamed reply, its true end.
//!
//! The command follows one run. It never decides that the run has ended: that is what the
//! gateway's final answer says, also after a Ctrl-C.

use std::io::IsTerminal;
use std::path::Path;

use serde_json::Value;
use tidegate_driver::{Clock, SystemClock};
use tidegate_wire::{
    AgentAck, AgentData, AgentEvent, AgentFinal, AgentParams, AgentPayload, ApprovalStep,
    CAP_TOOL_EVENTS, ChatAbortParams, Event, Phase, Response, RunStatus, ServerFrame, ToolStep,
    event_name, method,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::again;
use crate::called::{self, program};
use crate::cli::AgentArgs;
use crate::exit::Exit;
use crate::out;
use crate::problem::{Origin, Problem};
use crate::random;
use crate::rpc::{Rpc, main_session, params, refused};
use crate::shown;
use crate::state;
use crate::target::Target;
use crate::tool_lines::{self, Calls};
use crate::transcript::{Piece, Transcript};

/// Runs the command.
pub async fn agent(args: &AgentArgs) -> Exit {
    match follow(args).await {
        Ok(exit) => exit,
        Err(problem) => problem.tell(args.json),
    }
}

async fn follow(args: &AgentArgs) -> Result<Exit, Problem> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| {
        Problem::configuration(format!("Ctrl-C cannot be listened to: {error}"))
    })?;
    let target = Target::resolve(&args.target, state::kept_token)?;
    let connecting = Rpc::connect_with(&target, &["operator.admin"], &[CAP_TOOL_EVENTS]);
    let rpc = tokio::select! {
        biased;
        _ = interrupts.recv() => return Ok(Exit::Interrupted),
        rpc = connecting => rpc?,
    };
    let mut run = Run::new(args, rpc)?;
    run.submit(args).await?;
    let exit = run.follow(&mut interrupts).await;
    if !args.json {
        out::piece(run.reply.end());
    }
    let exit = exit.map_err(|problem| run.explain(problem));
    run.rpc.close().await;
    exit
}

/// The run that is followed.
struct Run {
    rpc: Rpc,
    json: bool,
    /// Standard output is a terminal, which what is noted shares with the reply.
    is_terminal: bool,
    reply: Transcript,
    calls: Calls,
    /// The flags that lead a further command to this gateway.
    flags: String,
    run_id: String,
    session_key: String,
    /// Of the `agent` request.
    request: String,
    /// Of the `chat.abort` request, once Ctrl-C was pressed.
    abort: Option<String>,
    accepted: bool,
}

impl Run {
    fn new(args: &AgentArgs, rpc: Rpc) -> Result<Self, Problem> {
        let run_id = match &args.idempotency_key {
            Some(key) => key.clone(),
            None => random::name()?,
        };
        let session_key = match &args.session_key {
            Some(key) => key.clone(),
            None => main_session(&rpc),
        };
        let is_terminal = std::io::stdout().is_terminal();
        Ok(Self {
            rpc,
            json: args.json,
            is_terminal,
            reply: Transcript::new(is_terminal),
            calls: Calls::default(),
            flags: called::flags(&args.target),
            run_id,
            session_key,
            request: String::new(),
            abort: None,
            accepted: false,
        })
    }

    async fn submit(&mut self, args: &AgentArgs) -> Result<(), Problem> {
        let agent = AgentParams {
            message: args.message.clone(),
            idempotency_key: self.run_id.clone(),
            session_key: Some(self.session_key.clone()),
            timeout: args.timeout,
            ..AgentParams::default()
        };
        self.request = self.rpc.send(method::AGENT, Some(params(&agent))).await?;
        Ok(())
    }

    async fn follow(&mut self, interrupts: &mut Signal) -> Result<Exit, Problem> {
        loop {
            let frame = tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    if self.abort.is_some() {
                        return Ok(Exit::Interrupted);
                    }
                    self.stop().await?;
                    continue;
                }
                frame = self.rpc.next() => frame?,
            };
            match frame {
                ServerFrame::Event(event) => self.heard(event),
                ServerFrame::Response(response) => {
                    if let Some(exit) = self.answered(response)? {
                        return Ok(if self.abort.is_some() {
                            Exit::Interrupted
                        } else {
                            exit
                        });
                    }
                }
            }
        }
    }

    /// First Ctrl-C.
    async fn stop(&mut self) -> Result<(), Problem> {
        let abort = ChatAbortParams {
            session_key: self.session_key.clone(),
            agent_id: None,
            run_id: Some(self.run_id.clone()),
        };
        self.abort = Some(
            self.rpc
                .send(method::CHAT_ABORT, Some(params(&abort)))
                .await?,
        );
        Ok(())
    }

    fn heard(&mut self, event: Event) {
        if event.event != event_name::AGENT {
            return;
        }
        let Some(Ok(event)) = event.payload.map(serde_json::from_value::<AgentEvent>) else {
            return;
        };
        if event.run_id != self.run_id {
            return;
        }
        match event.data {
            AgentData::Assistant { text, .. } => {
                // What was written into a pipe can't be taken back if the reply begins anew.
                if self.is_terminal && !self.json {
                    let piece = self.reply.grow(&text);
                    show(&piece);
                }
            }
            AgentData::RunStatus(step) => {
                if let Some(note) = again::asking(&step, age(event.ts)) {
                    self.note(&note);
                }
            }
            AgentData::Tool(step) => self.called(&step),
            AgentData::Approval(step) => self.asked(&step),
            AgentData::Lifecycle(step) if step.phase == Phase::Start => {
                self.calls = Calls::default();
            }
            AgentData::Lifecycle(_) => {}
        }
    }

    /// Says something beside the reply.
    fn note(&mut self, note: &str) {
        if self.is_terminal {
            out::piece(self.reply.cut());
        }
        tell(note);
    }

    /// A tool call went on. What was said before the first is whole: what follows is said anew.
    fn called(&mut self, step: &ToolStep) {
        if self.calls.is_empty() && matches!(step, ToolStep::Start { .. }) {
            if self.is_terminal && !self.json {
                out::piece(self.reply.end());
            }
            self.reply = Transcript::new(self.is_terminal);
        }
        if let Some(line) = self.calls.line(step) {
            self.note(&line);
        }
    }

    /// A tool call waits for a person.
    fn asked(&mut self, step: &ApprovalStep) {
        if step.phase != "requested" {
            return;
        }
        let (program, flags) = (program(), &self.flags);
        let id = called::quoted(Path::new(&shown::whole(&step.approval_id)));
        self.note(&format!(
            "{}\n  allow it: {program} approvals allow {id}{flags}\n  or not:   {program} approvals deny {id}{flags}",
            tool_lines::asks(step)
        ));
    }

    /// Gives the exit code once the run has ended.
    fn answered(&mut self, response: Response) -> Result<Option<Exit>, Problem> {
        if self.abort.as_ref() == Some(&response.id) {
            if let Some(error) = &response.error {
                out::told(&refused(error).text());
            }
            return Ok(None);
        }
        if response.id != self.request {
            return Ok(None);
        }
        let payload = response.payload.clone().unwrap_or(Value::Null);
        match serde_json::from_value(payload.clone()) {
            Ok(AgentPayload::Ack(ack)) => {
                self.acknowledged(ack);
                Ok(None)
            }
            Ok(AgentPayload::Final(end)) => Ok(Some(self.ended(&response, &end, payload))),
            Err(error) => Err(match &response.error {
                Some(refusal) => refused(refusal),
                None => Problem::transport(format!("the gateway's answer is none: {error}")),
            }),
        }
    }

    fn acknowledged(&mut self, ack: AgentAck) {
        self.accepted = true;
        self.run_id = ack.run_id;
        if let Some(key) = ack.session_key {
            self.session_key = key;
        }
    }

    fn ended(&mut self, response: &Response, end: &AgentFinal, payload: Value) -> Exit {
        let parts = end.result.iter().flat_map(|result| &result.payloads);
        let text: Vec<&str> = parts
            .filter(|part| !part.is_error)
            .map(|part| part.text.as_str())
            .collect();
        let text = text.join("\n");
        if self.json {
            out::json(&final_json(response, payload));
        } else if !text.is_empty() {
            show(&self.reply.settle(&text));
        }
        if response.ok && end.status == RunStatus::Ok {
            if self.reply.is_empty() && !self.json {
                out::err("tidegate: the run completed without a reply.");
            }
            return Exit::Ok;
        }
        if !self.json {
            out::piece(self.reply.end());
            self.reply = Transcript::default();
        }
        out::told(&how_it_ended(end, response).text());
        Exit::Failed
    }

    /// What a broken connection, or a gateway that stops, means for the run.
    fn explain(&self, problem: Problem) -> Problem {
        if problem.origin != Origin::Transport && !self.accepted {
            return problem.about(self.run_id.clone());
        }
        let fate = if self.accepted {
            "The message was accepted and its run goes on, now or after the gateway's next start."
        } else {
            "Whether the message was accepted is not known."
        };
        let again = format!(
            "{fate}\n  Send the same message again with --idempotency-key {} for its answer; it is answered once.",
            self.run_id
        );
        problem.about(self.run_id.clone()).remedy(again)
    }
}

/// How long ago that was, in milliseconds of wall time; what lies ahead is now.
fn age(ts: u64) -> u64 {
    SystemClock::start().now().wall.0.saturating_sub(ts)
}

/// Prints a piece of the reply; of one that begins anew, that it does.
fn show(piece: &Piece) {
    if let Some(end) = piece.anew {
        out::piece(end);
        tell(again::ANEW);
    }
    out::piece(&piece.text);
}

fn tell(note: &str) {
    out::told(&format!("tidegate: {note}"));
}

/// The final payload as it came; with the error where the gateway calls it one (surface 5.4).
fn final_json(response: &Response, mut payload: Value) -> Value {
    if let (false, Some(error), Value::Object(fields)) =
        (response.ok, &response.error, &mut payload)
    {
        let envelope = refused(error).about("").json();
        for name in ["ok", "origin", "error"] {
            fields.insert(name.into(), envelope[name].clone());
        }
    }
    payload
}

fn how_it_ended(end: &AgentFinal, response: &Response) -> Problem {
    let own_words = end
        .result
        .iter()
        .flat_map(|result| &result.payloads)
        .find(|part| part.is_error)
        .map(|part| part.text.clone());
    let what = match (end.status, end.summary.as_str(), own_words) {
        (_, "aborted", _) => "the run was stopped".to_owned(),
        (_, _, Some(sentence)) => sentence,
        (RunStatus::Timeout, summary, None) => format!("the run ended by a limit: {summary}"),
        (_, summary, None) => format!("the run failed: {summary}"),
    };
    let mut problem = Problem::new(Exit::Failed, Origin::Gateway, what);
    problem.retryable = response.error.as_ref().and_then(|error| error.retryable);
    problem.about(end.run_id.clone())
}
