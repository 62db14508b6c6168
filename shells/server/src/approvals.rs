//! Tool calls that wait for a person: `exec.approval.list`, `exec.approval.get` and
//! `exec.approval.resolve`. Which call waits, and which answer counts, is the core's decision.

use serde_json::Value;
use tidegate_core::{Decision, Rejection};
use tidegate_driver::{PendingApproval, Reply, Stopped};
use tidegate_wire::{
    ApprovalDecision, ApprovalGetParams, ApprovalListParams, ApprovalPending,
    ApprovalResolveParams, ApprovalResolved, WireError, method,
};

use crate::methods::{Call, Rest};
use crate::project::to_value;
use crate::refusals::{confused, read, rejected, stopped};
use crate::tools;

impl Call {
    pub(crate) fn approvals(self, params: Option<Value>) -> Rest {
        read(method::APPROVAL_LIST, ApprovalListParams::read(params))?;
        Ok(Box::pin(async move {
            let asked = self.asked().await;
            self.answer(asked.map(|asked| {
                let asked: Vec<ApprovalPending> = asked.iter().map(tools::pending).collect();
                to_value(&asked)
            }));
        }))
    }

    pub(crate) fn approval(self, params: Option<Value>) -> Rest {
        let params = read(method::APPROVAL_GET, ApprovalGetParams::read(params))?;
        Ok(Box::pin(async move {
            let asked = self.asked().await.and_then(|asked| {
                let one = asked.iter().find(|asked| *asked.approval == *params.id);
                one.map(|one| to_value(&tools::shown(one)))
                    .ok_or_else(|| rejected(Rejection::NotAsked))
            });
            self.answer(asked);
        }))
    }

    pub(crate) fn resolve(self, params: Option<Value>) -> Rest {
        let params = read(
            method::APPROVAL_RESOLVE,
            ApprovalResolveParams::read(params),
        )?;
        let decision = match params.decision {
            ApprovalDecision::AllowOnce => Decision::AllowOnce,
            ApprovalDecision::Deny => Decision::Deny,
        };
        let mut replies = self.shared.client.decide(&params.id, decision);
        Ok(Box::pin(async move {
            self.answer(match replies.next().await {
                Ok(Reply::Decided { .. }) => Ok(to_value(&ApprovalResolved { ok: true })),
                Ok(Reply::Rejected(rejection)) => Err(rejected(rejection)),
                Ok(_) => Err(confused()),
                Err(Stopped) => Err(stopped(false)),
            });
        }))
    }

    async fn asked(&self) -> Result<Vec<PendingApproval>, WireError> {
        let asked = self.shared.client.approvals().await;
        asked.map_err(|Stopped| stopped(false))
    }
}
