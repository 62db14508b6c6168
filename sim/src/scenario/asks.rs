//! What a client's step says at the front door.

use tidegate_core::{Input, RequestId, RunId, Scope, Submit, Turn};

use super::ast::{Part, Step, Terms};
use super::cast::Cast;

/// The inputs of a client's step: who asks, about which run, and what. `name` names the
/// request of the how-manyth input.
pub(super) fn inputs(
    step: &Step,
    cast: &Cast,
    name: impl Fn(u32) -> RequestId,
) -> Vec<(String, Option<RunId>, Input)> {
    let one = |client: &String, about, input| vec![(client.clone(), about, input)];
    match step {
        Step::Send {
            client, messages, ..
        } => messages
            .iter()
            .zip(0..)
            .map(|(message, nth)| {
                let run = cast.run(message);
                (
                    client.clone(),
                    Some(run),
                    submit(cast, run, name(nth), false),
                )
            })
            .collect(),
        Step::Repeat {
            client,
            message,
            other_body,
        } => {
            let run = cast.run(message);
            one(client, Some(run), submit(cast, run, name(0), *other_body))
        }
        Step::Wait {
            client,
            message,
            limit_ms,
        } => {
            let run = cast.run(message);
            let input = Input::Wait {
                request: name(0),
                run,
                timeout_ms: *limit_ms,
            };
            one(client, Some(run), input)
        }
        Step::Abort {
            client,
            message,
            session,
            part,
        } => {
            let run = message.as_ref().map(|message| cast.run(message));
            let own = run.and_then(|run| cast.message(run)).map(|m| m.session);
            let named = session.as_ref().map(|session| cast.session(session));
            let input = Input::Abort {
                request: name(0),
                session: named.or(own).unwrap_or_else(|| cast.session("")),
                scope: match (run, part) {
                    (Some(run), _) => Scope::Run(run),
                    (None, Part::All) => Scope::All,
                    (None, Part::Queued) => Scope::Queued,
                    (None, Part::AtWork) => Scope::AtWork,
                },
            };
            one(client, run, input)
        }
        Step::Reset {
            client,
            session,
            expected,
        } => {
            let input = Input::Reset {
                request: name(0),
                session: cast.session(session),
                expected: *expected,
            };
            one(client, None, input)
        }
        Step::Queue {
            client,
            session,
            change,
        } => {
            let input = Input::Configure {
                request: name(0),
                session: cast.session(session),
                change: *change,
            };
            one(client, None, input)
        }
        Step::Decide {
            client,
            call,
            decision,
        } => {
            let call = cast.call(call);
            let input = Input::Decide {
                request: name(0),
                call,
                decision: *decision,
            };
            one(client, Some(call.run), input)
        }
        _ => Vec::new(),
    }
}

fn submit(cast: &Cast, run: RunId, request: RequestId, other_body: bool) -> Input {
    let (session, turn, terms) = match cast.message(run) {
        Some(message) => (message.session, message.turn, message.terms),
        None => (cast.session(""), Turn::Agent, Terms::default()),
    };
    Input::Submit(Submit {
        request,
        session,
        run,
        body: cast.body(run, other_body),
        budget: terms.budget,
        turn,
        lane: terms.lane,
        priority: terms.priority,
    })
}
