//! `tidegate gateway health` and `tidegate gateway call`: one question, one answer.

use serde_json::Value;
use tidegate_wire::{Health, HelloOk, method};

use crate::cli::{CallArgs, HealthArgs, TargetArgs};
use crate::exit::Exit;
use crate::out;
use crate::problem::{Origin, Problem};
use crate::rpc::Rpc;
use crate::state;
use crate::target::{Address, Target};

/// Runs `gateway health`.
pub async fn health(args: &HealthArgs) -> Exit {
    let asked = ask(&args.target, &["operator.read"], method::HEALTH, None).await;
    match asked.and_then(|answer| well(args, &answer)) {
        Ok(()) => Exit::Ok,
        Err(problem) => problem.tell(args.json),
    }
}

/// Runs `gateway call`.
pub async fn call(args: &CallArgs) -> Exit {
    match ask(
        &args.target,
        &["operator.admin"],
        &args.method,
        args.params.clone(),
    )
    .await
    {
        Ok(answer) => {
            out::json(&answer.payload);
            Exit::Ok
        }
        Err(problem) => problem.tell(args.json),
    }
}

struct Answer {
    address: Address,
    hello: HelloOk,
    payload: Value,
}

async fn ask(
    target: &TargetArgs,
    scopes: &[&str],
    method: &str,
    params: Option<Value>,
) -> Result<Answer, Problem> {
    let target = Target::resolve(target, state::kept_token)?;
    let mut rpc = Rpc::connect(&target, scopes).await?;
    let payload = rpc.request(method, params).await?;
    let hello = rpc.hello.clone();
    rpc.close().await;
    Ok(Answer {
        address: target.address,
        hello,
        payload,
    })
}

fn well(args: &HealthArgs, answer: &Answer) -> Result<(), Problem> {
    let authority = answer.address.authority();
    let health: Health = serde_json::from_value(answer.payload.clone())
        .map_err(|error| Problem::transport(format!("the gateway's health is none: {error}")))?;
    if args.json {
        out::json(&answer.payload);
    }
    if !health.ok {
        let sick = format!("the gateway at {authority} says that it is not well");
        return Err(Problem::new(Exit::Failed, Origin::Gateway, sick)
            .remedy("`tidegate gateway call status` says what it is doing."));
    }
    if !args.json {
        out::line(&format!(
            "{}: gateway {} at {authority}, up {} s, answered in {} ms",
            if health.draining { "draining" } else { "ok" },
            answer.hello.server.version,
            answer.hello.snapshot.uptime_ms / 1_000,
            health.duration_ms,
        ));
    }
    Ok(())
}
