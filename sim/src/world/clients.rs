//! The modelled clients: what they send, repeat, wait for, stop and give up.
//!
//! Owns what clients know: their messages, which of them are unanswered, which waits are
//! open. Names of runs and requests come from (session, message, how-manyth request), never
//! from a counter that all share, so that leaving a message out renames no other.

use std::collections::BTreeMap;

use tidegate_core::{
    Answer, Budget, Decision, DropPolicy, Fingerprint, Generation, Input, LaneName, Priority,
    QueueChange, QueueMode, QueueOverride, Rejection, RequestId, RunId, Scope, SessionId, Speaker,
    Submit, Turn,
};

use crate::choices::Choices;
use crate::world::swarm::{ACTS, Act, Swarm};
use crate::world::tools::Tools;

/// High bits of request names that belong to no message.
const ASIDE: u128 = 1 << 96;
/// High bits of runs that nobody ever submits.
const UNKNOWN: u128 = 1 << 97;

/// Queue modes, by index.
pub(crate) const MODES: [QueueMode; 4] = [
    QueueMode::Steer,
    QueueMode::Followup,
    QueueMode::Collect,
    QueueMode::Interrupt,
];
/// What may give way, by index.
pub(crate) const DROPS: [DropPolicy; 3] = [DropPolicy::Summarize, DropPolicy::Old, DropPolicy::New];
/// Global lanes, by index; the first one is the plain case.
pub(crate) const LANES: [LaneName; 7] = [
    LaneName::Main,
    LaneName::Subagent,
    LaneName::Cron,
    LaneName::CronNested,
    LaneName::HookDispatch,
    LaneName::Nested,
    LaneName::Background,
];
const PRIORITIES: [Priority; 3] = [Priority::Foreground, Priority::Normal, Priority::Background];

#[derive(Clone, Debug)]
struct Message {
    session: SessionId,
    run: RunId,
    budget: Option<Budget>,
    turn: Turn,
    lane: LaneName,
    priority: Priority,
    requests: u32,
    /// Whether the client knows its end, or gave it up.
    settled: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    messages: Vec<Message>,
    by_run: BTreeMap<RunId, usize>,
    per_session: BTreeMap<SessionId, u32>,
    /// Requests of the current life that may still be answered, by the message's index.
    open: BTreeMap<RequestId, usize>,
    waits: Vec<RequestId>,
    asides: u32,
}

/// The session of an index.
pub(crate) const fn session(index: u64) -> SessionId {
    SessionId::from_u128(index as u128 + 1)
}

/// What a change sets, by its number from 2: everything, or one of the four.
fn queue(choices: &mut dyn Choices, which: u64) -> QueueOverride {
    let mode = MODES[usize::try_from(choices.pick(4, "mode")).unwrap_or(0)];
    let drop = DROPS[usize::try_from(choices.pick(3, "drop")).unwrap_or(0)];
    let debounce_ms = [0, 200, 2_000, 20_000][usize::try_from(choices.pick(4, "ms")).unwrap_or(0)];
    let cap = 1 + u32::try_from(choices.pick(3, "cap")).unwrap_or(0);
    let all = which == 2;
    QueueOverride {
        mode: (all || which == 3).then_some(mode),
        debounce_ms: (all || which == 4).then_some(debounce_ms),
        cap: (all || which == 5).then_some(cap),
        drop: (all || which == 5).then_some(drop),
    }
}

/// How a new message takes part in its session.
fn turn(choices: &mut dyn Choices, swarm: &Swarm) -> Turn {
    if swarm.chats == 0 || !choices.chance(swarm.chats, 4, "chat") {
        return Turn::Agent;
    }
    let mode = choices.weighted(&swarm.modes, "mode");
    let queue = mode.checked_sub(1).and_then(|at| MODES.get(at).copied());
    let route = choices.pick(swarm.routes, "route");
    let odd = swarm.speakers && choices.chance(1, 8, "speaker");
    let speaker = match odd && choices.chance(1, 2, "heartbeat") {
        true => Speaker::Heartbeat,
        false if odd => Speaker::Room,
        false => Speaker::User,
    };
    Turn::Chat {
        queue,
        route: Fingerprint::from_u128(u128::from(route) + 1),
        speaker,
    }
}

/// The global lane of a new message, and its place there.
fn lane(choices: &mut dyn Choices, swarm: &Swarm) -> (LaneName, Priority) {
    if swarm.lanes.iter().skip(1).all(|&weight| weight == 0) {
        return (LaneName::Main, Priority::Foreground);
    }
    let lane = LANES[choices.weighted(&swarm.lanes, "lane")];
    let priority = PRIORITIES[usize::try_from(choices.pick(3, "priority")).unwrap_or(0)];
    (lane, priority)
}

impl Clients {
    /// How many messages there were.
    pub(crate) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// How many messages have no known end.
    pub(crate) fn unsettled(&self) -> usize {
        self.messages.iter().filter(|m| !m.settled).count()
    }

    /// Draws an act and gives its inputs.
    pub(crate) fn act(
        &mut self,
        choices: &mut dyn Choices,
        swarm: &Swarm,
        tools: &mut Tools,
        inputs: &mut Vec<Input>,
    ) {
        choices.begin("act");
        let act = ACTS[choices.weighted(&swarm.acts, "act")];
        let target = self.target(choices);
        match (act, target) {
            (Act::Submit, _) | (_, None) => {
                let session = session(choices.pick(swarm.sessions, "session"));
                inputs.push(self.submit(choices, swarm, session));
            }
            (Act::Burst, _) => {
                let session = session(choices.pick(swarm.sessions, "session"));
                for _ in 0..choices.between(2, 4, "burst") {
                    inputs.push(self.submit(choices, swarm, session));
                }
            }
            (Act::Repeat, Some(target)) => inputs.push(self.repeat(target, 0)),
            (Act::RepeatOther, Some(target)) => inputs.push(self.repeat(target, 1)),
            (Act::Wait, Some(target)) => {
                let run = self.messages[target].run;
                inputs.push(self.wait(choices, run));
            }
            (Act::WaitUnknown, _) => {
                let run = RunId::from_u128(UNKNOWN | u128::from(self.asides));
                inputs.push(self.wait(choices, run));
            }
            (
                Act::AbortRun
                | Act::AbortSession
                | Act::AbortWrong
                | Act::AbortQueued
                | Act::AbortAtWork,
                Some(target),
            ) => inputs.push(self.abort(act, target)),
            (Act::Reset, Some(target)) => inputs.push(self.reset(choices, target)),
            (Act::Configure, Some(target)) => inputs.push(self.configure(choices, target)),
            (Act::Leave, _) => inputs.extend(self.leave(choices)),
            (Act::Decide, Some(target)) => {
                let call = tools.any_call(choices, self.messages[target].run);
                let decision = match choices.chance(1, 2, "denies") {
                    true => Decision::Deny,
                    false => Decision::AllowOnce,
                };
                inputs.push(Input::Decide {
                    request: tools.request(),
                    call,
                    decision,
                });
            }
        }
        choices.end();
    }

    /// An earlier message, mostly a late one.
    fn target(&self, choices: &mut dyn Choices) -> Option<usize> {
        let all = self.messages.len() as u64;
        let reach = if choices.chance(1, 4, "old") {
            all
        } else {
            all.min(4)
        };
        let back = usize::try_from(choices.pick(reach, "target")).ok()?;
        self.messages.len().checked_sub(back + 1)
    }

    /// A new message.
    pub(crate) fn submit(
        &mut self,
        choices: &mut dyn Choices,
        swarm: &Swarm,
        session: SessionId,
    ) -> Input {
        let number = self.per_session.entry(session).or_insert(0);
        *number += 1;
        let run = RunId::from_u128(u128::from_be_bytes(session.0) << 32 | u128::from(*number));
        let own = swarm.own_budget > 0 && choices.chance(1, swarm.own_budget, "own budget");
        let budget = own.then(|| match choices.pick(3, "budget") {
            0 => Budget::Limited(100_000),
            1 => Budget::Limited(10_000),
            _ => Budget::Unlimited,
        });
        let turn = turn(choices, swarm);
        let (lane, priority) = lane(choices, swarm);
        self.by_run.insert(run, self.messages.len());
        self.messages.push(Message {
            session,
            run,
            budget,
            turn,
            lane,
            priority,
            requests: 0,
            settled: false,
        });
        self.repeat(self.messages.len() - 1, 0)
    }

    /// A request for a message; with another `body` it is not the same message.
    fn repeat(&mut self, index: usize, body: u128) -> Input {
        let message = &mut self.messages[index];
        message.requests += 1;
        let name = u128::from_be_bytes(message.run.0);
        let request = RequestId::from_u128(name << 16 | u128::from(message.requests));
        let submit = Submit {
            request,
            session: message.session,
            run: message.run,
            body: Fingerprint::from_u128(name << 1 | body),
            budget: message.budget,
            turn: message.turn,
            lane: message.lane,
            priority: message.priority,
        };
        if body == 0 {
            self.open.insert(request, index);
        }
        Input::Submit(submit)
    }

    /// A message again, if its client still wants it.
    pub(crate) fn retry(&mut self, run: RunId) -> Option<Input> {
        let index = *self.by_run.get(&run)?;
        (!self.messages[index].settled).then(|| self.repeat(index, 0))
    }

    fn aside(&mut self) -> RequestId {
        self.asides += 1;
        RequestId::from_u128(ASIDE | u128::from(self.asides))
    }

    fn wait(&mut self, choices: &mut dyn Choices, run: RunId) -> Input {
        let request = self.aside();
        self.waits.push(request);
        let timeout_ms = match choices.pick(4, "timeout") {
            0 => None,
            1 => Some(0),
            2 => Some(choices.pick(3_000, "timeout")),
            _ => Some(choices.pick(120_000, "timeout")),
        };
        Input::Wait {
            request,
            run,
            timeout_ms,
        }
    }

    fn abort(&mut self, act: Act, target: usize) -> Input {
        let request = self.aside();
        let Message { session, run, .. } = self.messages[target];
        match act {
            Act::AbortSession => Input::Abort {
                request,
                session,
                scope: Scope::All,
            },
            Act::AbortQueued => Input::Abort {
                request,
                session,
                scope: Scope::Queued,
            },
            Act::AbortAtWork => Input::Abort {
                request,
                session,
                scope: Scope::AtWork,
            },
            Act::AbortWrong => {
                let other = SessionId::from_u128(u128::from_be_bytes(session.0) ^ 1);
                Input::Abort {
                    request,
                    session: other,
                    scope: Scope::Run(run),
                }
            }
            _ => Input::Abort {
                request,
                session,
                scope: Scope::Run(run),
            },
        }
    }

    /// A session is to begin anew; now and then only if it is at a generation that was guessed.
    fn reset(&mut self, choices: &mut dyn Choices, target: usize) -> Input {
        let guess = choices.chance(1, 3, "expected");
        let expected = guess.then(|| Generation(1 + choices.pick(3, "expected")));
        Input::Reset {
            request: self.aside(),
            session: self.messages[target].session,
            expected,
        }
    }

    /// Somebody looks at a session's queue settings, or changes some of them.
    fn configure(&mut self, choices: &mut dyn Choices, target: usize) -> Input {
        let change = match choices.pick(6, "change") {
            0 => QueueChange::Show,
            1 => QueueChange::Clear,
            which => QueueChange::Set(queue(choices, which)),
        };
        Input::Configure {
            request: self.aside(),
            session: self.messages[target].session,
            change,
        }
    }

    fn leave(&mut self, choices: &mut dyn Choices) -> Option<Input> {
        if choices.chance(1, 2, "leave wait") {
            return self.waits.pop().map(|request| Input::Leave { request });
        }
        let (&request, _) = self.open.last_key_value()?;
        self.open.remove(&request);
        Some(Input::Leave { request })
    }

    /// An answer came. Gives the run if its client will try again.
    pub(crate) fn answered(&mut self, request: RequestId, answer: &Answer) -> Option<RunId> {
        let index = *self.open.get(&request)?;
        let message = &mut self.messages[index];
        match answer {
            Answer::Final { .. }
            | Answer::Rejected(Rejection::LaneClosed | Rejection::SessionBusy) => {
                message.settled = true;
            }
            Answer::Rejected(
                Rejection::Storage
                | Rejection::Busy
                | Rejection::QueueFull
                | Rejection::NotOwner
                | Rejection::Draining,
            ) => {
                self.open.remove(&request);
                if message.requests < 4 {
                    return Some(message.run);
                }
                message.settled = true;
            }
            _ => return None,
        }
        self.open.remove(&request);
        None
    }

    /// The process is gone, and all connections with it. Gives the messages whose end their
    /// clients do not know.
    pub(crate) fn crashed(&mut self) -> Vec<RunId> {
        self.waits.clear();
        let mut lost: Vec<usize> = std::mem::take(&mut self.open).into_values().collect();
        lost.sort_unstable();
        lost.dedup();
        lost.into_iter()
            .map(|index| self.messages[index].run)
            .collect()
    }
}
