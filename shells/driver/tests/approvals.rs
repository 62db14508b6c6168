//! Tool calls that a person decides on: allowed, denied, not decided; once, twice, too late, and
//! over a restart.

mod stage;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stage::*;
use tidegate_core::{CallEnd, Config, Decision, ModelEnd, Outcome, Rejection, ToolEnd};
use tidegate_driver::{AbortScope, PendingApproval, Replies, Reply, Role, RunEvent};
use tidegate_store::StateDir;

const NOT_ASKED: Reply = Reply::Rejected(Rejection::NotAsked);

struct Asked {
    stage: Stage,
    clock: Arc<Hand>,
    replies: Replies,
    /// What the person was asked.
    approval: PendingApproval,
}

/// `r1` asks for a guarded call `a`, and a person is asked.
async fn asked(dir: &StateDir) -> Asked {
    let clock = Arc::new(Hand::default());
    let mut stage = Stage::timed(dir, Config::default(), clock.clone());
    let mut replies = stage.say("s", "r1", "hello");
    accepted(&mut replies).await;
    let call = stage.next_call().await;
    call.ask_for(&[("a", "act")]).await;
    let is_asked = |event: &RunEvent| matches!(event, RunEvent::ToolAsked(_));
    let RunEvent::ToolAsked(approval) = stage.event("r1", is_asked).await else {
        panic!("it was looked for")
    };
    Asked {
        stage,
        clock,
        replies,
        approval,
    }
}

impl Asked {
    async fn decide(&self, decision: Decision) -> Reply {
        decide(&self.stage, &self.approval.approval, decision).await
    }

    async fn pending(&self) -> Vec<PendingApproval> {
        self.stage.client.approvals().await.expect("runs")
    }

    fn decided(&self, decision: Decision) -> Reply {
        Reply::Decided {
            approval: self.approval.approval.clone(),
            decision,
        }
    }

    /// The call's end as it was told, with what nobody answered.
    async fn told(&mut self) -> (CallEnd, Option<PendingApproval>) {
        let is_end = |event: &RunEvent| matches!(event, RunEvent::ToolEnd { .. });
        match self.stage.event("r1", is_end).await {
            RunEvent::ToolEnd {
                end, unanswered, ..
            } => (end, unanswered),
            event => panic!("it was looked for: {event:?}"),
        }
    }

    /// The run goes on with the call's end, and ends.
    async fn answered_with(mut self, end: CallEnd) -> Stage {
        let call = self.stage.next_call().await;
        assert_eq!(ends(&call), [end]);
        call.end(ModelEnd::Completed);
        assert_eq!(answer(&mut self.replies).await.0, Outcome::Completed);
        assert!(self.stage.works.try_recv().is_err(), "no other start");
        assert_eq!(
            decide(&self.stage, &self.approval.approval, Decision::Deny).await,
            NOT_ASKED
        );
        let status = self.stage.client.status().await.expect("runs");
        assert_eq!((status.contents, status.timers), (0, 0));
        self.stage
    }
}

/// The ends of the calls whose results a model is given.
fn ends(call: &Call) -> Vec<CallEnd> {
    let rows = call.call.transcript.iter();
    let results = rows.filter(|row| row.role == Role::Tool);
    let answers = results.filter_map(|row| row.answers.as_ref());
    answers.map(|answer| answer.end).collect()
}

async fn decide(stage: &Stage, approval: &str, decision: Decision) -> Reply {
    let mut replies = stage.client.decide(approval, decision);
    replies.next().await.expect("a reply")
}

fn state_dir() -> (tempfile::TempDir, StateDir) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let dir = StateDir::acquire(&temp.path().join("state")).expect("it is ours");
    (temp, dir)
}

/// R205, P27: an allowed call starts once; the first answer counts and may be repeated.
#[tokio::test]
async fn an_allowed_call_starts_once() {
    let (_temp, dir) = state_dir();
    let mut asked = asked(&dir).await;
    assert!(asked.stage.works.try_recv().is_err(), "not before");
    let approval = asked.approval.clone();
    let told = (&*approval.session_key, &*approval.run_key, &*approval.id);
    assert_eq!(told, ("s", "r1", "a"));
    assert_eq!(&*approval.arguments, r#"{"of":"a"}"#);
    assert_eq!(approval.until.0 - approval.since.0, 1_800_000);
    assert_eq!(asked.pending().await, std::slice::from_ref(&approval));

    let allowed = asked.decided(Decision::AllowOnce);
    assert_eq!(asked.decide(Decision::AllowOnce).await, allowed);
    assert_eq!(asked.pending().await, []);
    let is_decided = |event: &RunEvent| matches!(event, RunEvent::ToolDecided { .. });
    let decided = asked.stage.event("r1", is_decided).await;
    let expected = RunEvent::ToolDecided {
        asked: approval,
        decision: Decision::AllowOnce,
    };
    assert_eq!(decided, expected);
    let work = asked.stage.next_work().await;
    assert_eq!(asked.decide(Decision::AllowOnce).await, allowed);
    let late = Reply::Rejected(Rejection::AlreadyDecided);
    assert_eq!(asked.decide(Decision::Deny).await, late);
    work.end(ToolEnd::Ok);
    assert_eq!(asked.told().await, (CallEnd::Ok, None));
    asked.answered_with(CallEnd::Ok).await;
}

/// R205
#[tokio::test]
async fn a_denied_call_never_starts_and_the_model_is_told() {
    let (_temp, dir) = state_dir();
    let mut asked = asked(&dir).await;
    let denied = asked.decided(Decision::Deny);
    assert_eq!(asked.decide(Decision::Deny).await, denied);
    assert_eq!(asked.pending().await, []);
    assert_eq!(asked.told().await, (CallEnd::Denied, None));
    asked.answered_with(CallEnd::Denied).await;
}

/// R205, P27: a question that nobody answers expires, which is not a denial.
#[tokio::test]
async fn a_question_that_nobody_answers_expires() {
    let (_temp, dir) = state_dir();
    let mut asked = asked(&dir).await;
    asked.clock.0.fetch_add(1_800_000, Ordering::Relaxed);
    assert_eq!(asked.pending().await, [asked.approval.clone()]);
    let unanswered = Some(asked.approval.clone());
    assert_eq!(asked.told().await, (CallEnd::Expired, unanswered));
    assert_eq!(asked.pending().await, []);
    asked.answered_with(CallEnd::Expired).await;
}

/// Spec 7.3, P17: an abort makes the question void.
#[tokio::test]
async fn a_decision_after_the_abort_is_void() {
    let (_temp, dir) = state_dir();
    let mut asked = asked(&dir).await;
    let client = asked.stage.client.clone();
    let mut abort = client.abort("s".to_owned(), AbortScope::AtWork);
    assert!(matches!(abort.next().await, Ok(Reply::Aborted { .. })));
    let unanswered = Some(asked.approval.clone());
    assert_eq!(asked.told().await, (CallEnd::Skipped, unanswered));
    assert_eq!(asked.decide(Decision::AllowOnce).await, NOT_ASKED);
    assert_eq!(asked.pending().await, []);
    assert!(asked.stage.works.try_recv().is_err());
}

/// P23, spec 7.3: a question does not outlive its process: the next life tells the model that it
/// is void, and knows no such approval.
#[tokio::test]
async fn a_restart_makes_a_question_void() {
    let (_temp, dir) = state_dir();
    let asked = asked(&dir).await;
    asked.stage.kill().await;
    let mut stage = Stage::start(&dir);
    let call = stage.next_call().await;
    assert_eq!(ends(&call), [CallEnd::Stale]);
    assert_eq!(stage.client.approvals().await.expect("runs"), []);
    let approval = &asked.approval.approval;
    assert_eq!(
        decide(&stage, approval, Decision::AllowOnce).await,
        NOT_ASKED
    );
    call.end(ModelEnd::Completed);
    assert!(stage.works.try_recv().is_err());
}

/// R205: without anybody who listens, what waits can still be asked for and decided.
#[tokio::test]
async fn a_question_waits_also_if_nobody_listens() {
    let (_temp, dir) = state_dir();
    let mut stage = Stage::start(&dir);
    stage.events.close();
    accepted(&mut stage.say("s", "r1", "hello")).await;
    let calls = [("a", "act"), ("b", "act")];
    stage.next_call().await.ask_for(&calls).await;
    let pending = loop {
        let pending = stage.client.approvals().await.expect("runs");
        if pending.len() == 2 {
            break pending;
        }
        tokio::task::yield_now().await;
    };
    let ids: Vec<_> = pending.iter().map(|pending| &*pending.id).collect();
    assert_eq!(ids, ["a", "b"]);
    let reply = decide(&stage, &pending[1].approval, Decision::AllowOnce).await;
    assert!(matches!(reply, Reply::Decided { .. }), "{reply:?}");
    assert_eq!(stage.next_work().await.call.text.id, "b");
    assert_eq!(stage.client.approvals().await.expect("runs").len(), 1);
    assert_eq!(decide(&stage, "00000000", Decision::Deny).await, NOT_ASKED);
}
