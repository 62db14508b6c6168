//! What clients ask: each command becomes an input of the core, a read of the store or a look
//! at what is held. Outside names become ids here.

use tidegate_core::{
    Budget, ContentOwner, Decision, Fingerprint, Generation, Input, LaneName, Priority, QueueMode,
    Rejection, RequestId, Scope, Speaker, Submit, Turn,
};
use tokio::sync::{mpsc, oneshot};

use crate::client::{AbortScope, Command, Look, SessionAsk};
use crate::content::{Content, Names};
use crate::driver::Driver;
use crate::reply::{Reply, Submission, SubmissionTurn};
use crate::store::StoreOp;
use crate::writer::Origin;

impl Driver {
    /// A client asked. Whether to stop.
    pub(crate) async fn command(&mut self, command: Option<Command>) -> bool {
        match command {
            None => {
                self.stop().await;
                return true;
            }
            Some(Command::Stop { done }) => {
                self.stop().await;
                let _ = done.send(());
                return true;
            }
            Some(Command::Submit {
                id,
                submission,
                replies,
            }) => self.submit(id, submission, replies),
            Some(Command::Wait {
                id,
                run_key,
                timeout_ms,
                replies,
            }) => {
                self.listeners.ask(id, replies);
                let run = self.fingerprints.run(&run_key);
                self.hand_in(Input::Wait {
                    request: id,
                    run,
                    timeout_ms,
                });
            }
            Some(Command::Decide {
                id,
                approval,
                decision,
                replies,
            }) => {
                self.listeners.ask(id, replies);
                self.decide(id, &approval, decision);
            }
            Some(Command::Leave { id }) => {
                self.listeners.leave(id);
                self.hand_in(Input::Leave { request: id });
            }
            Some(Command::Subscribe { events }) => self.listeners.subscribe(events),
            Some(Command::Drain { budget_ms, done }) => self.begin_drain(budget_ms, done),
            Some(Command::Session {
                id,
                session_key,
                ask,
                replies,
            }) => self.about_session(id, session_key, ask, replies),
            Some(Command::Look(look)) => self.look(look),
        }
        false
    }

    fn submit(
        &mut self,
        id: RequestId,
        submission: Submission,
        replies: mpsc::UnboundedSender<Reply>,
    ) {
        self.listeners.ask(id, replies);
        let turn = match &submission.turn {
            SubmissionTurn::Agent => Turn::Agent,
            SubmissionTurn::Chat { queue, route } => Turn::Chat {
                queue: *queue,
                route: self.route(route),
                speaker: Speaker::User,
            },
        };
        let submit = Submit {
            request: id,
            session: self.fingerprints.session(&submission.session_key),
            run: self.fingerprints.run(&submission.run_key),
            body: self.body(&submission),
            budget: submission.budget,
            turn,
            lane: submission.lane,
            priority: submission.priority,
        };
        let names = Names {
            run_key: submission.run_key.into(),
            session_key: submission.session_key.into(),
        };
        self.contents.open(
            ContentOwner::Request(id),
            Content {
                names: Some(names),
                message: submission.message,
                ..Content::default()
            },
        );
        self.hand_in(Input::Submit(submit));
    }

    /// Routes are compared with routes only, so that they need no kind of id of their own.
    fn route(&self, route: &str) -> Fingerprint {
        self.fingerprints.body(&[b"route", route.as_bytes()])
    }

    /// The fingerprint of all that a message says. A plain one reads as it always did, since
    /// the fingerprints of earlier builds are in the store (P06).
    fn body(&self, submission: &Submission) -> Fingerprint {
        let budget = budget_bytes(submission.budget);
        let mut fields: Vec<&[u8]> = vec![
            submission.session_key.as_bytes(),
            submission.message.as_bytes(),
            &budget,
        ];
        let (lane, priority) = (submission.lane, submission.priority);
        match &submission.turn {
            SubmissionTurn::Agent if (lane, priority) == (LaneName::Main, Priority::Foreground) => {
            }
            SubmissionTurn::Agent => fields.push(b"agent"),
            SubmissionTurn::Chat { queue, route } => {
                fields.extend([b"chat", mode_bytes(*queue), route.as_bytes()]);
            }
        }
        if fields.len() > 3 {
            fields.extend([lane.name().as_bytes(), priority_bytes(priority)]);
        }
        self.fingerprints.body(&fields)
    }

    /// What is asked about a session as a whole.
    fn about_session(
        &mut self,
        request: RequestId,
        session_key: String,
        ask: SessionAsk,
        replies: mpsc::UnboundedSender<Reply>,
    ) {
        self.listeners.ask(request, replies);
        let session = self.fingerprints.session(&session_key);
        self.asked.ask(request, session, session_key.into());
        let input = match ask {
            SessionAsk::Abort(scope) => Input::Abort {
                request,
                session,
                scope: match scope {
                    AbortScope::Run(run_key) => Scope::Run(self.fingerprints.run(&run_key)),
                    AbortScope::AtWork => Scope::AtWork,
                    AbortScope::Queued => Scope::Queued,
                    AbortScope::All => Scope::All,
                },
            },
            SessionAsk::Reset(expected) => Input::Reset {
                request,
                session,
                expected: expected.map(Generation),
            },
            SessionAsk::Queue(change) => Input::Configure {
                request,
                session,
                change,
            },
        };
        self.hand_in(input);
    }

    /// A decision on a call that the core holds is judged there; of another one nobody asked.
    fn decide(&mut self, request: RequestId, approval: &str, decision: Decision) {
        match self.approvals.call(approval) {
            Some(call) => self.hand_in(Input::Decide {
                request,
                call,
                decision,
            }),
            None => {
                let reply = Reply::Rejected(Rejection::NotAsked);
                self.listeners.reply(request, reply);
            }
        }
    }

    fn begin_drain(&mut self, budget_ms: Option<u64>, done: oneshot::Sender<()>) {
        if let Some(drains) = &mut self.drains {
            drains.push(done);
            let request = self.own_request();
            self.hand_in(Input::Drain { request, budget_ms });
        } else {
            let _ = done.send(());
        }
    }

    /// Reads: of the store, or of what is held.
    fn look(&mut self, look: Look) {
        match look {
            Look::Sessions { limit, rows } => {
                self.job(Origin::Sessions(rows), StoreOp::Sessions { limit });
            }
            Look::Transcript { session_key, rows } => {
                let session = self.fingerprints.session(&session_key);
                self.job(Origin::Transcript(rows), StoreOp::Transcript { session });
            }
            Look::History {
                session_key,
                query,
                history,
            } => {
                let session = self.fingerprints.session(&session_key);
                let op = StoreOp::History { session, query };
                self.job(Origin::History(history), op);
            }
            Look::Live { session_keys, live } => {
                let keys = session_keys.iter().map(|key| {
                    let runs = self.core.session_runs(self.fingerprints.session(key));
                    runs.map(|run| self.runs.of(run).run_key).collect()
                });
                let _ = live.send(keys.collect());
            }
            Look::Approvals { approvals } => {
                let _ = approvals.send(self.approvals.pending());
            }
            Look::Status { status } => {
                let _ = status.send(self.status());
            }
            Look::Armed { armed } => {
                let _ = armed.send(
                    self.core
                        .armed()
                        .map(|armed| (armed.at, armed.timer.name().to_owned()))
                        .collect(),
                );
            }
        }
    }
}

/// A budget as it goes into a request's fingerprint, which outlives this build.
fn budget_bytes(budget: Option<Budget>) -> Vec<u8> {
    match budget {
        None => Vec::new(),
        Some(Budget::Unlimited) => vec![0],
        Some(Budget::Limited(ms)) => ms.to_le_bytes().to_vec(),
    }
}

/// A mode as it goes into a request's fingerprint.
fn mode_bytes(mode: Option<QueueMode>) -> &'static [u8] {
    match mode {
        None => b"",
        Some(QueueMode::Steer) => b"steer",
        Some(QueueMode::Followup) => b"followup",
        Some(QueueMode::Collect) => b"collect",
        Some(QueueMode::Interrupt) => b"interrupt",
    }
}

/// A priority as it goes into a request's fingerprint.
fn priority_bytes(priority: Priority) -> &'static [u8] {
    match priority {
        Priority::Foreground => b"foreground",
        Priority::Normal => b"normal",
        Priority::Background => b"background",
    }
}
