//! Handlers as they are shown.

use std::collections::BTreeSet;

use keyrail_ordering::{
    Catalog, Deployment, GroupName, HeldState, Member, OwnerId, Revision, Role, SequentialBy, Usage,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::operate::timestamp;
use super::super::{OperationError, Service};

/// A handler: what is registered, what is deployed, what hosts run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerView {
    /// The handler.
    pub handler: GroupName,
    /// Its role; none as long as nothing of it is registered, and its first revision is being loaded.
    pub role: Option<Role>,
    /// What orders its events; none likewise.
    pub sequential_by: Option<SequentialBy>,
    /// The categories that it reads.
    pub categories: Vec<String>,
    /// The version that is registered; none likewise.
    pub version: Option<String>,
    /// The revision that serves; none if nothing is deployed: then hosts run files of their own, or nobody does.
    pub serving: Option<RevisionView>,
    /// A revision that serves some keys, or is being loaded.
    pub candidate: Option<CanaryView>,
    /// Every revision that is kept, newest first.
    pub revisions: Vec<RevisionView>,
    /// The hosts that have it.
    pub hosts: Vec<HandlerHost>,
}

/// A revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionView {
    /// Its number.
    pub revision: u64,
    /// Its version.
    pub version: String,
    /// SHA-256 of the component, in hex.
    pub content_hash: String,
    /// Who deployed it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: String,
    /// Why it does not serve, if it was taken back.
    pub withdrawn: Option<String>,
}

/// A revision that does not serve everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CanaryView {
    /// Which.
    #[serde(flatten)]
    pub revision: RevisionView,
    /// The keys that it is for; none for all, once it is loaded.
    pub keys: Option<String>,
    /// Whether it serves them already.
    pub serves: bool,
}

/// A handler on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerHost {
    /// Which.
    pub host: OwnerId,
    /// The revision; none for a file of its own.
    pub revision: Option<u64>,
    /// The version.
    pub version: String,
    /// How far it is.
    pub state: HeldState,
    /// What it used since this host loaded it.
    pub usage: Usage,
}

impl From<&Revision> for RevisionView {
    fn from(revision: &Revision) -> Self {
        Self {
            revision: revision.number,
            version: revision.version.clone(),
            content_hash: revision.content_hash.clone(),
            by: revision.by.clone(),
            reason: revision.reason.clone(),
            at: timestamp(revision.at_ms),
            withdrawn: revision.withdrawn.clone(),
        }
    }
}

impl Service {
    /// Every handler that is registered or being deployed, by name.
    pub async fn handlers(&self) -> Result<Vec<HandlerView>, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let members = self.members().await?;
        let names: BTreeSet<_> = catalog.handlers.keys().chain(catalog.deployments.keys()).collect();
        Ok(names.into_iter().map(|name| view(&catalog, &members, name)).collect())
    }
}

fn view(catalog: &Catalog, members: &[Member], name: &GroupName) -> HandlerView {
    let metadata = catalog.handlers.get(name).map(|entry| &entry.metadata);
    let nothing = Deployment::default();
    let deployment = catalog.deployments.get(name).unwrap_or(&nothing);
    let hosts = members.iter().flat_map(|member| {
        let held = member.held.iter().filter(|held| held.group == *name);
        held.map(|held| HandlerHost {
            host: member.owner.clone(),
            revision: held.revision,
            version: held.version.clone(),
            state: held.state.clone(),
            usage: held.usage,
        })
    });
    HandlerView {
        handler: name.clone(),
        role: metadata.map(|it| it.role),
        sequential_by: metadata.map(|it| it.sequential_by.clone()),
        categories: metadata.iter().flat_map(|it| it.categories()).map(ToString::to_string).collect(),
        version: metadata.map(|it| it.version.clone()),
        serving: deployment.active().map(RevisionView::from),
        candidate: deployment.candidate().map(|(candidate, revision)| CanaryView {
            revision: revision.into(),
            keys: candidate.canary.as_ref().map(ToString::to_string),
            serves: candidate.serves,
        }),
        revisions: deployment.revisions.iter().rev().map(RevisionView::from).collect(),
        hosts: hosts.collect(),
    }
}
