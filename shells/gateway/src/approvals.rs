//! `tidegate approvals`: what waits for a person, and the person's word on it.

use serde_json::Value;
use tidegate_driver::{Clock, SystemClock};
use tidegate_wire::{
    ApprovalDecision, ApprovalListParams, ApprovalPending, ApprovalResolveParams, method,
};

use crate::cli::{ApprovalArgs, ApprovalsArgs, TargetArgs};
use crate::exit::Exit;
use crate::out;
use crate::problem::Problem;
use crate::rpc::{Rpc, params};
use crate::shown;
use crate::state;
use crate::target::Target;

/// Runs `approvals list`.
pub async fn list(args: &ApprovalsArgs) -> Exit {
    match listed(args).await {
        Ok(()) => Exit::Ok,
        Err(problem) => problem.tell(args.json),
    }
}

/// Runs `approvals allow` and `approvals deny`.
pub async fn decide(args: &ApprovalArgs, decision: ApprovalDecision) -> Exit {
    match decided(args, decision).await {
        Ok(()) => Exit::Ok,
        Err(problem) => problem.tell(args.json),
    }
}

async fn ask(target: &TargetArgs, method: &str, params: Value) -> Result<Value, Problem> {
    let target = Target::resolve(target, state::kept_token)?;
    let mut rpc = Rpc::connect(&target, &["operator.approvals"]).await?;
    let answer = rpc.request(method, Some(params)).await?;
    rpc.close().await;
    Ok(answer)
}

async fn listed(args: &ApprovalsArgs) -> Result<(), Problem> {
    let list = params(&ApprovalListParams {});
    let answer = ask(&args.target, method::APPROVAL_LIST, list).await?;
    if args.json {
        out::json(&answer);
        return Ok(());
    }
    let waiting: Vec<ApprovalPending> = serde_json::from_value(answer)
        .map_err(|error| Problem::transport(format!("the gateway's list is none: {error}")))?;
    if waiting.is_empty() {
        out::err("tidegate: no tool call waits to be allowed.");
    }
    let now = SystemClock::start().now().wall.0;
    for one in &waiting {
        out::line(&row(one, now));
    }
    Ok(())
}

/// A waiting call in one line: its id, its session, how long it waits still, and what it runs.
fn row(one: &ApprovalPending, now: u64) -> String {
    let directory = match &one.request.cwd {
        Some(directory) => format!("  (in {})", shown::whole(directory)),
        None => String::new(),
    };
    format!(
        "{}  {}  expires in {}  {}{directory}",
        shown::whole(&one.id),
        shown::whole(&one.request.session_key),
        left(one.expires_at_ms.saturating_sub(now)),
        shown::whole(&one.request.command)
    )
}

fn left(ms: u64) -> String {
    match ms.div_ceil(1_000) {
        s @ ..=99 => format!("{s} s"),
        s => format!("{} min", s.div_ceil(60)),
    }
}

async fn decided(args: &ApprovalArgs, decision: ApprovalDecision) -> Result<(), Problem> {
    let resolve = params(&ApprovalResolveParams {
        id: args.id.clone(),
        decision,
    });
    let answer = ask(&args.target, method::APPROVAL_RESOLVE, resolve).await?;
    if args.json {
        out::json(&answer);
    } else {
        let word = match decision {
            ApprovalDecision::AllowOnce => "allowed",
            ApprovalDecision::Deny => "denied",
        };
        out::line(&format!("{word} {}", shown::whole(&args.id)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tidegate_wire::ApprovalRequest;

    use super::*;

    /// R205: what is listed is one line, whatever the command holds
    #[test]
    fn a_waiting_call_is_one_line() {
        let one = ApprovalPending {
            id: "k3n9".into(),
            request: ApprovalRequest {
                command: "ls\nrm x".into(),
                cwd: Some("sub".into()),
                session_key: "agent:main:main".into(),
                ..ApprovalRequest::default()
            },
            created_at_ms: 0,
            expires_at_ms: 1_800_000,
        };
        assert_eq!(
            row(&one, 100),
            "k3n9  agent:main:main  expires in 30 min  ls\\nrm x  (in sub)"
        );
        assert!(row(&one, 1_790_000).contains("expires in 10 s"));
        assert!(row(&one, 2_000_000).contains("expires in 0 s"));
    }
}
