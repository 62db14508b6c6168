//! A driver on a real store, with models that do what the test says.

#![allow(dead_code, reason = "each test file uses the part it needs")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use tidegate_core::{
    CallFacts, CallKind, Config, LaneName, ModelEnd, Now, Priority, QueueMode, Time, ToolEnd, Wall,
};
use tidegate_driver::{
    CallText, Client, Clock, Driver, DriverError, Finished, ModelCall, ModelEvent, ModelSink,
    Models, Placed, Published, Replies, Reply, RunEvent, Store, Submission, SubmissionTurn,
    SystemClock, ToolCall, ToolSink, ToolSpec, Tools,
};
use tidegate_store::{SqliteStore, StateDir};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A clock that the test moves.
#[derive(Default)]
pub struct Hand(pub AtomicU64);

impl Clock for Hand {
    fn now(&self) -> Now {
        let ms = self.0.load(Ordering::Relaxed);
        Now {
            time: Time(ms),
            wall: Wall(ms),
        }
    }
}

/// A model call that the test leads.
pub struct Call {
    pub call: ModelCall,
    pub sink: ModelSink,
    end: oneshot::Sender<Option<ModelEnd>>,
    /// Resolves when the driver has dropped the call's future.
    pub dropped: oneshot::Receiver<()>,
}

impl Call {
    pub async fn text(&self, text: &str) {
        self.sink.send(ModelEvent::Text(text.to_owned())).await;
    }

    pub fn end(self, end: ModelEnd) {
        let _ = self.end.send(Some(end));
    }

    /// Ends the answer with calls: an id and a tool each.
    pub async fn ask_for(self, calls: &[(&str, &str)]) {
        for &(id, name) in calls {
            let call = CallText {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: format!(r#"{{"of":"{id}"}}"#),
            };
            self.sink.send(ModelEvent::Call(call)).await;
        }
        self.end(ModelEnd::Completed);
    }

    pub fn panic(self) {
        let _ = self.end.send(None);
    }
}

/// Hands each call to the test.
struct Led(mpsc::UnboundedSender<Call>);

impl Models for Led {
    fn call(&self, call: ModelCall, sink: ModelSink) -> BoxFuture<'static, ModelEnd> {
        let (end, ended) = oneshot::channel();
        let (guard, dropped) = oneshot::channel();
        let _ = self.0.send(Call {
            call,
            sink,
            end,
            dropped,
        });
        Box::pin(async move {
            let _guard: oneshot::Sender<()> = guard;
            match ended.await {
                Ok(Some(end)) => end,
                Ok(None) => panic!("as the test told"),
                Err(_) => std::future::pending().await,
            }
        })
    }

    fn name(&self, candidate: u16) -> Arc<str> {
        format!("model {candidate}").into()
    }
}

/// A tool call that the test leads.
pub struct Work {
    pub call: ToolCall,
    pub sink: ToolSink,
    end: oneshot::Sender<Option<ToolEnd>>,
    /// Resolves when the driver has dropped the call's future.
    pub dropped: oneshot::Receiver<()>,
}

impl Work {
    pub async fn output(&self, text: &str) {
        self.sink.output(text.to_owned()).await;
    }

    pub fn end(self, end: ToolEnd) {
        let _ = self.end.send(Some(end));
    }

    pub fn panic(self) {
        let _ = self.end.send(None);
    }
}

/// Hands each call to the test. `look` and `wait` are free, and `wait` may take an hour; `act` is
/// guarded; of a `riddle` it panics.
struct LedTools(mpsc::UnboundedSender<Work>);

impl Tools for LedTools {
    fn offered(&self) -> Arc<[ToolSpec]> {
        let spec = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: r#"{"type":"object"}"#.to_owned(),
        };
        Arc::from([spec("look"), spec("act")])
    }

    fn recognise(&self, call: &CallText) -> CallFacts {
        let kind = match call.name.as_str() {
            "look" | "wait" | "act" => CallKind::Ready,
            "riddle" => panic!("as the test told"),
            "odd" => CallKind::BadArguments,
            _ => CallKind::NoSuchTool,
        };
        CallFacts {
            kind,
            guarded: call.name == "act",
            timeout_ms: (call.name == "wait").then_some(3_600_000),
        }
    }

    fn complaint(&self, call: &CallText) -> Option<String> {
        (call.name == "odd").then(|| "Too odd.".to_owned())
    }

    fn run(&self, call: ToolCall, sink: ToolSink) -> BoxFuture<'static, ToolEnd> {
        let (end, ended) = oneshot::channel();
        let (guard, dropped) = oneshot::channel();
        let _ = self.0.send(Work {
            call,
            sink,
            end,
            dropped,
        });
        Box::pin(async move {
            let _guard: oneshot::Sender<()> = guard;
            match ended.await {
                Ok(Some(end)) => end,
                Ok(None) => panic!("as the test told"),
                Err(_) => std::future::pending().await,
            }
        })
    }
}

pub struct Stage {
    pub client: Client,
    pub calls: mpsc::UnboundedReceiver<Call>,
    pub works: mpsc::UnboundedReceiver<Work>,
    pub events: mpsc::Receiver<Arc<Published>>,
    driver: JoinHandle<Result<(), DriverError>>,
}

impl Stage {
    /// Starts a driver on the state directory, as a process start does.
    pub fn start(dir: &StateDir) -> Self {
        Self::configured(dir, Config::default())
    }

    /// The same, with another configuration.
    pub fn configured(dir: &StateDir, config: Config) -> Self {
        Self::timed(dir, config, Arc::new(SystemClock::start()))
    }

    /// The same, with another clock.
    pub fn timed(dir: &StateDir, config: Config, clock: Arc<dyn Clock>) -> Self {
        let store = SqliteStore::open(dir).expect("the store opens");
        let key = store.fingerprint_key();
        Self::build(store, key, config, clock)
    }

    /// Starts a driver on a store.
    pub fn with(store: impl Store, key: [u8; 32]) -> Self {
        let clock = Arc::new(SystemClock::start());
        Self::build(store, key, Config::default(), clock)
    }

    fn build(store: impl Store, key: [u8; 32], config: Config, clock: Arc<dyn Clock>) -> Self {
        let (tx, calls) = mpsc::unbounded_channel();
        let (work, works) = mpsc::unbounded_channel();
        let (models, tools) = (Arc::new(Led(tx)), Arc::new(LedTools(work)));
        let (driver, client) = Driver::new(config, store, models, tools, clock, key);
        let events = client.subscribe(1_000);
        let driver = tokio::task::spawn(driver.run());
        Self {
            client,
            calls,
            works,
            events,
            driver,
        }
    }

    /// Waits until the save pace has passed: no timer of it is armed any more, and the store
    /// has done what it was told.
    pub async fn pass_a_save(&self) {
        loop {
            let armed = self.client.armed().await.expect("runs");
            if !armed.iter().any(|(_, name)| name == "save pacing") {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = self.client.sessions(1).await;
    }

    /// How the driver ended by itself.
    pub async fn ended(self) -> Result<(), DriverError> {
        self.driver.await.expect("no panic")
    }

    pub fn say(&self, session: &str, run: &str, message: &str) -> Replies {
        self.client.submit(submission(session, run, message))
    }

    /// Sends a chat message whose text is `<run> says`.
    pub fn chat(&self, session: &str, run: &str, queue: Option<QueueMode>) -> Replies {
        let route = "here".to_owned();
        self.client.submit(Submission {
            turn: SubmissionTurn::Chat { queue, route },
            ..submission(session, run, &format!("{run} says"))
        })
    }

    /// Waits for the next event of a run that the test looks for.
    pub async fn event(&mut self, run: &str, wanted: fn(&RunEvent) -> bool) -> RunEvent {
        loop {
            let event = self.events.recv().await.expect("an event");
            if &*event.run_key == run && wanted(&event.event) {
                return event.event.clone();
            }
        }
    }

    pub async fn next_call(&mut self) -> Call {
        self.calls.recv().await.expect("a model call")
    }

    pub async fn next_work(&mut self) -> Work {
        self.works.recv().await.expect("a tool call")
    }

    /// Ends the driver between two polls, as a kill does.
    pub async fn kill(self) {
        self.driver.abort();
        let _ = self.driver.await;
    }

    pub async fn stop(self) -> Result<(), DriverError> {
        self.client.stop().await;
        self.driver.await.expect("the driver ends")
    }
}

pub fn submission(session: &str, run: &str, message: &str) -> Submission {
    Submission {
        session_key: session.to_owned(),
        run_key: run.to_owned(),
        message: message.to_owned(),
        budget: None,
        turn: SubmissionTurn::Agent,
        lane: LaneName::Main,
        priority: Priority::Foreground,
    }
}

/// The user's texts that a call was given since the last reply.
pub fn asked(call: &Call) -> Vec<&str> {
    let rows = call.call.transcript.iter().rev();
    let user = rows.take_while(|row| row.role == tidegate_driver::Role::User);
    let mut texts: Vec<&str> = user.map(|row| row.text.as_str()).collect();
    texts.reverse();
    texts
}

/// Waits for the acceptance and tells where the message stands.
pub async fn placed(replies: &mut Replies) -> Placed {
    match replies.next().await.expect("a reply") {
        Reply::Accepted { place, .. } => place,
        other => panic!("not accepted: {other:?}"),
    }
}

/// The final reply.
pub async fn finished(replies: &mut Replies) -> Finished {
    match replies.next().await.expect("a reply") {
        Reply::Final { finished, .. } => finished,
        other => panic!("not final: {other:?}"),
    }
}

pub async fn accepted(replies: &mut Replies) {
    let reply = replies.next().await.expect("a reply");
    assert!(matches!(reply, Reply::Accepted { .. }), "{reply:?}");
}

/// The final reply's text and outcome.
pub async fn answer(replies: &mut Replies) -> (tidegate_core::Outcome, String) {
    match replies.next().await.expect("a reply") {
        Reply::Final { finished, .. } => (
            finished.terminal.outcome,
            finished.reply.as_deref().unwrap_or_default().to_owned(),
        ),
        other => panic!("not final: {other:?}"),
    }
}
