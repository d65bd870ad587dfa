//! How far a revision is on the hosts of the fleet, and its next step.

use keyrail_broker::By;
use keyrail_ordering::{Catalog, DeployError, GroupName, HeldState, Member, OwnerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::change::change_catalog;
use super::super::{OperationError, Service};
use super::deployed;

/// How far a revision is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rollout {
    /// The handler.
    pub handler: GroupName,
    /// The revision.
    pub revision: u64,
    /// The version that the component declares.
    pub version: String,
    /// What it is now.
    pub state: RolloutState,
    /// The hosts that are to have it, by owner.
    pub hosts: Vec<RolloutHost>,
}

/// What a revision is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RolloutState {
    /// Hosts load it.
    Loading,
    /// It serves some keys.
    Canary,
    /// It serves.
    Serving,
    /// It does not serve, for this reason.
    Withdrawn(String),
}

/// One host of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutHost {
    /// Which.
    pub host: OwnerId,
    /// How far it is.
    pub state: HostState,
}

/// How far a host is with a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostState {
    /// It has not heard yet.
    Waiting,
    /// Reads, compiles, checks.
    Loading,
    /// Has it, and does not serve it yet.
    Ready,
    /// Serves it.
    Serving,
    /// Cannot run it, and why.
    Failed(String),
    /// Serves a file of its own under this name, whatever is deployed.
    OwnFile,
}

impl Service {
    /// How far a revision is. A candidate that every live host has ready begins to serve; one that a host cannot run is
    /// taken back.
    pub async fn advance(&self, handler: &str, revision: u64) -> Result<Rollout, OperationError> {
        let rollout = self.rollout(handler, revision).await?;
        if rollout.state != RolloutState::Loading {
            return Ok(rollout);
        }
        let failed: Vec<_> = rollout.hosts.iter().filter_map(RolloutHost::failure).collect();
        if !failed.is_empty() {
            self.give_up(&rollout, &failed.join("; ")).await?;
        } else if rollout.hosts.iter().all(|host| host.state.can_serve()) {
            self.begin(&rollout).await?;
        } else {
            return Ok(rollout);
        }
        self.rollout(handler, revision).await
    }

    /// Takes a candidate back that did not come to serve.
    pub async fn abandon(&self, handler: &str, revision: u64, why: &str) -> Result<Rollout, OperationError> {
        let rollout = self.rollout(handler, revision).await?;
        self.give_up(&rollout, why).await?;
        self.rollout(handler, revision).await
    }

    async fn begin(&self, rollout: &Rollout) -> Result<(), OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let metadata = self.metadata_of(&catalog, &rollout.handler, rollout.revision).await?;
        let capabilities = self.broker.capabilities();
        let begin = |catalog: &Catalog| -> Result<_, DeployError> {
            match catalog.begin(&metadata, rollout.revision, capabilities) {
                Ok(next) => Ok((next, None)),
                // The catalog has changed since it was proposed.
                Err(DeployError::Refused(reasons)) => {
                    let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
                    let why = reasons.join("; ");
                    Ok((catalog.withdraw(&rollout.handler, rollout.revision, &why)?, Some(why)))
                }
                // Whoever else drives this deployment was faster.
                Err(DeployError::Superseded { .. } | DeployError::AlreadyActive { .. }) => Ok((catalog.clone(), None)),
                Err(error) => Err(error),
            }
        };
        change_catalog(self.broker.as_ref(), begin).await?;
        Ok(())
    }

    async fn give_up(&self, rollout: &Rollout, why: &str) -> Result<(), OperationError> {
        match self.withdraw_candidate(&rollout.handler, rollout.revision, why).await {
            // Taken back already, or serving by now.
            Ok(()) => {}
            Err(OperationError::Conflict(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
        let by = By { who: "keyrail".into(), reason: why.into() };
        self.on_record("withdraw", &rollout.handler, rollout.revision, &rollout.version, &by).await;
        Ok(())
    }

    async fn rollout(&self, handler: &str, number: u64) -> Result<Rollout, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let members = self.members().await?;
        let handler = deployed(&catalog, handler)?;
        let deployment = catalog.deployment(&handler)?;
        let revision = deployment.revision(number).ok_or_else(|| {
            let known = deployment.revisions.iter().map(|it| it.number.to_string()).collect::<Vec<_>>().join(", ");
            DeployError::UnknownRevision { handler: handler.clone(), number, known }
        })?;
        let state = match deployment.candidate() {
            Some((candidate, _)) if candidate.number == number && candidate.serves => RolloutState::Canary,
            Some((candidate, _)) if candidate.number == number => RolloutState::Loading,
            _ if deployment.active == Some(number) => RolloutState::Serving,
            _ => RolloutState::Withdrawn(revision.withdrawn.clone().unwrap_or_else(|| "another one serves".into())),
        };
        let hosts = members.iter().filter(|member| !member.leaving);
        let hosts =
            hosts.map(|member| RolloutHost { host: member.owner.clone(), state: host_state(member, &handler, number) });
        Ok(Rollout { version: revision.version.clone(), revision: number, state, hosts: hosts.collect(), handler })
    }
}

impl RolloutHost {
    fn failure(&self) -> Option<String> {
        match &self.state {
            HostState::Failed(why) => Some(format!("{} cannot run it: {why}", self.host)),
            _ => None,
        }
    }
}

impl HostState {
    /// Whether nothing has to be waited for.
    pub fn can_serve(&self) -> bool {
        matches!(self, Self::Ready | Self::Serving | Self::OwnFile)
    }

    /// Whether it serves what it is to serve.
    pub fn has_swapped(&self) -> bool {
        matches!(self, Self::Serving | Self::OwnFile)
    }
}

fn host_state(member: &Member, handler: &GroupName, number: u64) -> HostState {
    let mut of_handler = member.held.iter().filter(|held| held.group == *handler);
    if of_handler.clone().any(|held| held.revision.is_none()) {
        return HostState::OwnFile;
    }
    match of_handler.find(|held| held.revision == Some(number)).map(|held| &held.state) {
        None => HostState::Waiting,
        Some(HeldState::Loading) => HostState::Loading,
        Some(HeldState::Ready) => HostState::Ready,
        Some(HeldState::Serving) => HostState::Serving,
        Some(HeldState::Failed(why)) => HostState::Failed(why.clone()),
    }
}
