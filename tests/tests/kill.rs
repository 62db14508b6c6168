//! `kill -9` at drawn moments: what was accepted is answered, once, in order.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_tests::{Call, Client, Draws, Frame, Gateway, Provider, Running, reply_to, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How much is tried.
struct Plan {
    rounds: u64,
    sessions: u64,
    messages: u64,
    /// `tidegate agent` processes a round that are killed with the gateway.
    agents: u64,
}

/// The gate's plan.
const GATE: Plan = Plan {
    rounds: 20,
    sessions: 4,
    messages: 12,
    agents: 0,
};
/// The campaign's plan.
const CAMPAIGN: Plan = Plan {
    rounds: 50,
    sessions: 8,
    messages: 20,
    agents: 2,
};
/// Pieces of each answer; each is a moment at which the kill may come.
const PIECES: usize = 4;
/// Moments to draw from, a message: the provider's steps, and the acceptance, final answer
/// and events as each client gets them.
const MOMENTS_A_MESSAGE: u64 = 37;

/// A message of a round.
#[derive(Clone, Debug)]
struct Sent {
    session: String,
    key: String,
    text: String,
}

impl Sent {
    /// The command line client, under way with this message.
    fn by_agent(&self, gateway: &Gateway) -> Running {
        gateway.command(&[
            "agent",
            "-m",
            &self.text,
            "--session-key",
            &self.session,
            "--idempotency-key",
            &self.key,
        ])
    }

    fn params(&self) -> Value {
        json!({ "sessionKey": self.session, "idempotencyKey": self.key, "message": self.text })
    }
}

/// P06, P07, P23, L1, I26, I60: 20 kills at drawn moments with 12 messages under way on 4
/// sessions; all are answered, none twice, the order of each session is kept.
#[tokio::test]
async fn no_message_is_lost_or_answered_twice_over_twenty_kills() {
    GATE.carry_out().await;
}

/// P06, P07, P23, L1, I26, I60: 50 kills with 20 messages on 8 sessions, and with command
/// line clients that are killed as well.
#[tokio::test]
#[ignore = "long: part of make campaign"]
async fn no_message_is_lost_or_answered_twice_over_fifty_kills_of_both_ends() {
    CAMPAIGN.carry_out().await;
}

impl Plan {
    async fn carry_out(&self) {
        let (mut draws, seed) = Draws::seeded();
        println!("TIDEGATE_TEST_SEED={seed}");
        let dir = tempfile::tempdir().expect("a directory for the state");
        let provider = Provider::start().await;
        let url = provider.url();
        let (moments, mut passed) = mpsc::unbounded_channel();
        let (probes, mut probed) = mpsc::unbounded_channel();
        let model = provider.answer_all_but(PIECES, moments.clone(), is_probe, probes);

        let mut under_way = 0;
        for round in 0..self.rounds {
            let moment = draws.below(self.messages * MOMENTS_A_MESSAGE);
            println!("round {round}: kill at moment {moment}");
            while passed.try_recv().is_ok() {}
            let sent = self.messages(round);
            let by_agents = self.agents_messages(round);
            let gateway = Gateway::with_provider(dir.path(), &url).await;
            let agents: Vec<Running> = by_agents
                .iter()
                .map(|sent| sent.by_agent(&gateway))
                .collect();
            let mut clients = JoinSet::new();
            for session in sessions(&sent) {
                let client = gateway.client().await;
                clients.spawn(talk(client, session, moments.clone()));
            }
            let told = kill_at(moment, gateway, agents, &mut passed, &mut clients).await;
            let accepted: usize = told.iter().map(|told| told.accepted.len()).sum();
            let answered: usize = told.iter().map(|told| told.finals.len()).sum();
            println!("round {round}: {accepted} accepted, {answered} answered before the kill");
            under_way += accepted - answered;

            let gateway = Gateway::with_provider(dir.path(), &url).await;
            let mut client = gateway.client().await;
            everything_accepted_is_answered(&mut client, &sent, &told).await;
            // Of an agent's message nobody knows whether it arrived; sent again, it is
            // answered, and its session shows it once.
            for message in sent.iter().chain(&by_agents) {
                let answer = client
                    .answer(&message.session, &message.key, &message.text)
                    .await;
                assert_eq!(text_of(&answer), reply_to(&message.text));
            }
            for session in sessions(&sent).into_iter().chain(sessions(&by_agents)) {
                history_is_exact(&mut client, &session, &mut probed).await;
            }
            gateway.kill().await;
        }
        model.abort();
        assert!(
            under_way > 0,
            "no kill found a message between its acceptance and its answer: nothing was tried"
        );
    }

    /// The messages of a round, by session in the order of their sending.
    fn messages(&self, round: u64) -> Vec<Sent> {
        let message = |number: u64| {
            let (session, n) = (number % self.sessions, number / self.sessions);
            Sent {
                session: format!("agent:main:kill-{round}-{session}"),
                key: format!("key-{round}-{session}-{n}"),
                text: format!("message {n} of session {session} in round {round}"),
            }
        };
        (0..self.messages).map(message).collect()
    }

    /// The messages of a round that command line clients send, each to a session of its own.
    fn agents_messages(&self, round: u64) -> Vec<Sent> {
        let message = |agent: u64| Sent {
            session: format!("agent:main:kill-{round}-agent-{agent}"),
            key: format!("key-{round}-agent-{agent}"),
            text: format!("message of agent {agent} in round {round}"),
        };
        (0..self.agents).map(message).collect()
    }
}

fn sessions(sent: &[Sent]) -> Vec<Vec<Sent>> {
    let mut sessions: BTreeMap<&str, Vec<Sent>> = BTreeMap::new();
    for message in sent {
        sessions
            .entry(&message.session)
            .or_default()
            .push(message.clone());
    }
    sessions.into_values().collect()
}

/// What a client was told before the connection broke, by key.
#[derive(Debug, Default)]
struct Told {
    accepted: Vec<String>,
    finals: BTreeMap<String, Value>,
}

/// Sends a session's messages in one go and listens until all are answered or the gateway is
/// gone. Each frame is a moment.
async fn talk(mut client: Client, session: Vec<Sent>, moments: mpsc::UnboundedSender<()>) -> Told {
    let mut told = Told::default();
    let mut keys = BTreeMap::new();
    for message in &session {
        let Some(id) = client.try_send("agent", message.params()).await else {
            return told;
        };
        keys.insert(id, message.key.clone());
    }
    while told.finals.len() < session.len() {
        let Frame::Json(frame) = client.frame().await else {
            break;
        };
        let _ = moments.send(());
        let Some(key) = frame["id"].as_str().and_then(|id| keys.get(id)) else {
            continue;
        };
        assert_eq!(frame["ok"], true, "{frame}");
        if frame["payload"]["status"] == "accepted" {
            told.accepted.push(key.clone());
        } else {
            let twice = told.finals.insert(key.clone(), frame["payload"].clone());
            assert!(twice.is_none(), "two final answers to {key}");
        }
    }
    told
}

/// Kills the gateway, and the agents before it, when `moment` things have happened, or when all is answered.
async fn kill_at(
    moment: u64,
    gateway: Gateway,
    agents: Vec<Running>,
    passed: &mut mpsc::UnboundedReceiver<()>,
    clients: &mut JoinSet<Told>,
) -> Vec<Told> {
    let mut told = Vec::new();
    let mut count = 0;
    while count < moment && !clients.is_empty() {
        tokio::select! {
            biased;
            Some(client) = clients.join_next() => told.push(client.expect("a client does not panic")),
            Some(()) = passed.recv() => count += 1,
        }
    }
    for agent in &agents {
        signal(agent.pid(), "KILL").await;
    }
    gateway.kill().await;
    while let Some(client) = clients.join_next().await {
        told.push(client.expect("a client does not panic"));
    }
    told
}

/// What was accepted ends without anyone sending it again; what was answered stays answered.
async fn everything_accepted_is_answered(client: &mut Client, sent: &[Sent], told: &[Told]) {
    for key in told.iter().flat_map(|told| &told.accepted) {
        let wait = json!({ "runId": key, "timeoutMs": 60_000 });
        let end = client
            .request("agent.wait", wait)
            .await
            .expect("a wait is answered");
        assert_eq!(end["status"], "ok", "{key} was accepted: {end}");
    }
    for (key, before) in told.iter().flat_map(|told| &told.finals) {
        let message = sent
            .iter()
            .find(|sent| sent.key == *key)
            .expect("we sent it");
        let after = client.answer(&message.session, key, &message.text).await;
        assert_eq!(
            &after, before,
            "the final answer of {key} is told again as it was"
        );
    }
}

/// The next model call of a session shows its whole transcript: every message once, in the
/// order of sending, each followed by its one answer.
async fn history_is_exact(
    client: &mut Client,
    session: &[Sent],
    probed: &mut mpsc::UnboundedReceiver<Call>,
) {
    let key = format!("probe-{}", session[0].session);
    let probe =
        json!({ "sessionKey": session[0].session, "idempotencyKey": key, "message": PROBE });
    client.send("agent", probe).await;
    let mut call = probed.recv().await.expect("the provider is asked");
    let mut expected = Vec::new();
    for message in session {
        expected.push(("user".to_owned(), message.text.clone()));
        expected.push(("assistant".to_owned(), reply_to(&message.text)));
    }
    expected.push(("user".to_owned(), PROBE.to_owned()));
    let spoken = call.conversation();
    let spoken: Vec<_> = spoken
        .into_iter()
        .filter(|(role, _)| role != "system")
        .collect();
    assert_eq!(spoken, expected);
    assert!(call.begin().await && call.text("Seen.").await && call.done().await);
    let wait = json!({ "runId": key, "timeoutMs": 60_000 });
    let end = client
        .request("agent.wait", wait)
        .await
        .expect("a wait is answered");
    assert_eq!(end["status"], "ok", "{end}");
}

const PROBE: &str = "what was said so far?";

fn is_probe(call: &Call) -> bool {
    call.message() == PROBE
}

fn text_of(payload: &Value) -> &str {
    assert_eq!(payload["status"], "ok", "{payload}");
    payload["result"]["payloads"][0]["text"]
        .as_str()
        .unwrap_or_default()
}
