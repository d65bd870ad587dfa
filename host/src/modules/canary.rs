//! Taking a canary back: its keys halted, so the version that serves the others gets them again.
//!
//! The halt is durable first. Then the canary is withdrawn in the catalog, and the head gets a full budget on the version
//! that serves. A host that dies in between leaves a key that stands still, as after any halt.

use std::time::Duration;

use keyrail_broker::{By, HeadAction, OperateError};
use keyrail_ordering::{Catalog, DeployError};
use tracing::{error, info, warn};

use crate::engine::CanaryHalt;
use crate::service::{ChangeError, Service, change_catalog};

/// How often it is tried when the broker is away.
const TRIES_MAX: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn take_back(service: &Service, halt: &CanaryHalt) {
    for _ in 0..TRIES_MAX {
        match try_to_take_back(service, halt).await {
            Ok(()) => return,
            Err(error) => warn!(%error, partition = %halt.partition.id, "a canary could not be taken back yet"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    error!(partition = %halt.partition.id, revision = halt.revision, "a canary could not be taken back; use keyrail rollback");
}

async fn try_to_take_back(service: &Service, halt: &CanaryHalt) -> Result<(), String> {
    let (partition, group, revision) = (&halt.partition, &halt.partition.id.group, halt.revision);
    let why = format!("{} halted under it: {}", partition.id, halt.record.error);
    let withdraw = |catalog: &Catalog| catalog.withdraw(group, revision, &why).map(|next| (next, ()));
    let by = By { who: "keyrail".into(), reason: why.clone() };
    match change_catalog(service.broker().as_ref(), withdraw).await {
        Ok(_) => {
            error!(handler = %group, revision, version = halt.record.handler_version, "the canary was taken back: {why}");
            let target = format!("{group} {}", halt.record.handler_version);
            service.broker().record("withdraw", &target, &by).await.map_err(|error| error.to_string())?;
        }
        Err(ChangeError::Refused(DeployError::Superseded { .. } | DeployError::NotDeployed { .. })) => {
            let (catalog, _) = service.broker().catalog().await.map_err(|error| error.to_string())?;
            let serves = catalog.deployments.get(group).is_some_and(|deployment| deployment.active == Some(revision));
            if serves {
                info!(handler = %group, revision, "a canary that halted a key serves every key by now: it is not taken back");
                return Ok(());
            }
        }
        Err(error) => return Err(error.to_string()),
    }
    let by = By { reason: "the canary that halted it was taken back".into(), ..by };
    match service.broker().act_on_head(partition, &halt.record.head, HeadAction::Retry, &by).await {
        Ok(()) => Ok(()),
        // An operator was faster.
        Err(OperateError::NotHead { .. } | OperateError::NoDeadLetter { .. }) => Ok(()),
        Err(OperateError::Broker(error)) => Err(error.to_string()),
    }
}
