//! Deploying: a module is uploaded, proposed, loaded by every host, and then serves, between two events of each key.
//!
//! What a deployment may become is decided by `keyrail_ordering::Catalog`. Here it is stored, and waited for: a candidate
//! serves once every live host has it ready, and is taken back if one cannot run it.

mod rollout;
mod views;

use bytes::Bytes;
use keyrail_broker::{By, ModuleInfo};
use keyrail_ordering::{Catalog, DeployError, GroupName, Metadata, Proposal, Revision, Selection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use rollout::{HostState, Rollout, RolloutHost, RolloutState};
pub use views::{CanaryView, HandlerHost, HandlerView, RevisionView};

use super::change::{ChangeError, change_catalog};
use super::{OperationError, Service, WhoAndWhy};
use crate::hash::sha256_hex;

/// Largest manifest.
const MANIFEST_MAX_BYTES: usize = 64 << 10;
/// Keys that a canary may name.
const CANARY_KEYS_MAX: usize = 1_000;

/// A handler to deploy. Its component was checked already, and is in the registry unless this is a dry run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeployRequest {
    /// The component.
    pub module: ModuleInfo,
    /// Its manifest; empty for none.
    #[serde(default)]
    pub manifest: String,
    /// Only for these keys.
    #[serde(default)]
    pub canary: Option<Selection>,
    /// Only check.
    #[serde(default)]
    pub dry_run: bool,
    /// Who, and why.
    pub by: WhoAndWhy,
}

/// A deployment that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposed {
    /// The handler.
    pub handler: GroupName,
    /// The revision that it became, or would become.
    pub revision: u64,
    /// The version that serves now, if one does.
    pub serving: Option<String>,
}

/// What a rollback came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RolledBack {
    /// What was being deployed, or tried as a canary, is taken back.
    Withdrawn {
        /// The revision.
        revision: u64,
        /// Its version.
        version: String,
    },
    /// An earlier revision serves again.
    Activated {
        /// The revision.
        revision: u64,
        /// Its version.
        version: String,
    },
}

impl From<DeployError> for OperationError {
    fn from(error: DeployError) -> Self {
        let text = error.to_string();
        match error {
            DeployError::Refused(reasons) => Self::Refused(reasons.iter().map(ToString::to_string).collect()),
            DeployError::NothingServes(_) | DeployError::CanaryDiffers(_) => Self::Refused(vec![text]),
            DeployError::NotDeployed { .. } | DeployError::UnknownRevision { .. } | DeployError::NoPrevious(_) => {
                Self::Unknown(text)
            }
            DeployError::NoCandidate(_) | DeployError::Superseded { .. } | DeployError::AlreadyActive { .. } => {
                Self::Conflict(text)
            }
        }
    }
}

impl<E: Into<OperationError> + std::fmt::Display> From<ChangeError<E>> for OperationError {
    fn from(error: ChangeError<E>) -> Self {
        match error {
            ChangeError::Refused(error) => error.into(),
            ChangeError::Contended => Self::Conflict(
                "the catalog was changed by others again and again; nothing was changed here, try again".into(),
            ),
            ChangeError::Broker(error) => Self::Broker(error),
        }
    }
}

impl Service {
    /// Stores a module's bytes under their hash.
    pub async fn upload(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), OperationError> {
        let hash = sha256_hex(&bytes);
        if hash != info.content_hash {
            return Err(OperationError::Usage(format!(
                "the bytes have the SHA-256 {hash}, not {}; was the upload cut off?",
                info.content_hash
            )));
        }
        Ok(self.broker.put_module(info, bytes).await?)
    }

    /// Checks a deployment against everything that is registered, and, unless it is a dry run, makes it the candidate that
    /// hosts load. What serves goes on serving.
    pub async fn propose(&self, request: &DeployRequest) -> Result<Proposed, OperationError> {
        let by = request.by.checked()?;
        check_request(request)?;
        let metadata = &request.module.metadata;
        let hash = &request.module.content_hash;
        if !request.dry_run && self.broker.module_info(hash).await?.is_none() {
            return Err(OperationError::Conflict(format!("the module {hash} is not in the registry; upload it again")));
        }
        let (capabilities, at_ms) = (self.broker.capabilities(), crate::clock::wall_ms());
        let propose = |catalog: &Catalog| -> Result<_, DeployError> {
            let proposal = Proposal {
                content_hash: hash.clone(),
                manifest: request.manifest.clone(),
                canary: request.canary.clone(),
                by: by.who.clone(),
                reason: by.reason.clone(),
                at_ms,
            };
            let (next, number) = catalog.propose(metadata, proposal, capabilities)?;
            if request.dry_run {
                return Ok((catalog.clone(), (number, vec![])));
            }
            let forgotten = forgotten(catalog, &next);
            Ok((next, (number, forgotten)))
        };
        let (before, (revision, forgotten)) = change_catalog(self.broker.as_ref(), propose).await?;
        self.drop_modules(&forgotten).await;
        let handler = metadata.name.clone();
        let serving = before.deployments.get(&handler).and_then(|it| it.active()).map(Revision::label);
        if !request.dry_run {
            self.on_record("deploy", &handler, revision, &metadata.version, &by).await;
        }
        Ok(Proposed { handler, revision, serving })
    }

    /// Makes the canary serve every key.
    pub async fn promote(&self, handler: &str, by: &WhoAndWhy) -> Result<RevisionView, OperationError> {
        let by = by.checked()?;
        let (catalog, _) = self.broker.catalog().await?;
        let handler = deployed(&catalog, handler)?;
        let Some((_, revision)) = catalog.deployment(&handler)?.candidate() else {
            return Err(DeployError::NoCandidate(handler).into());
        };
        let view = RevisionView::from(revision);
        self.activate(&handler, revision.number, "promote", &by).await?;
        Ok(view)
    }

    /// Goes back: what is being deployed or tried is taken back; if nothing is, the revision `to`, or the one that served
    /// before, serves again.
    pub async fn rollback(&self, handler: &str, to: Option<u64>, by: &WhoAndWhy) -> Result<RolledBack, OperationError> {
        let by = by.checked()?;
        let (catalog, _) = self.broker.catalog().await?;
        let handler = deployed(&catalog, handler)?;
        let deployment = catalog.deployment(&handler)?;
        if let Some((_, revision)) = deployment.candidate().filter(|_| to.is_none()) {
            let (number, version) = (revision.number, revision.version.clone());
            let why = format!("rolled back by {}: {}", by.who, by.reason);
            self.withdraw_candidate(&handler, number, &why).await?;
            self.on_record("rollback", &handler, number, &version, &by).await;
            return Ok(RolledBack::Withdrawn { revision: number, version });
        }
        let number = catalog.rollback_target(&handler, to)?;
        let version = deployment.revision(number).map(|it| it.version.clone()).unwrap_or_default();
        self.activate(&handler, number, "rollback", &by).await?;
        Ok(RolledBack::Activated { revision: number, version })
    }

    /// Lets no host serve the handler any more. It stays registered: its events wait.
    pub async fn undeploy(&self, handler: &str, by: &WhoAndWhy) -> Result<(), OperationError> {
        let by = by.checked()?;
        let (catalog, _) = self.broker.catalog().await?;
        let handler = deployed(&catalog, handler)?;
        let why = format!("undeployed by {}: {}", by.who, by.reason);
        let undeploy = |catalog: &Catalog| catalog.undeploy(&handler, &why).map(|next| (next, ()));
        let (before, ()) = change_catalog(self.broker.as_ref(), undeploy).await?;
        if let Some(revision) = before.deployments.get(&handler).and_then(|it| it.active()) {
            self.on_record("undeploy", &handler, revision.number, &revision.version, &by).await;
        }
        Ok(())
    }

    async fn activate(&self, handler: &GroupName, number: u64, action: &str, by: &By) -> Result<(), OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let metadata = self.metadata_of(&catalog, handler, number).await?;
        let capabilities = self.broker.capabilities();
        let activate = |catalog: &Catalog| catalog.activate(&metadata, number, capabilities).map(|next| (next, ()));
        change_catalog(self.broker.as_ref(), activate).await?;
        self.on_record(action, handler, number, &metadata.version, by).await;
        Ok(())
    }

    async fn withdraw_candidate(&self, handler: &GroupName, number: u64, why: &str) -> Result<(), OperationError> {
        let withdraw = |catalog: &Catalog| catalog.withdraw(handler, number, why).map(|next| (next, ()));
        change_catalog(self.broker.as_ref(), withdraw).await?;
        Ok(())
    }

    /// What a revision's component declares.
    async fn metadata_of(
        &self,
        catalog: &Catalog,
        handler: &GroupName,
        number: u64,
    ) -> Result<Metadata, OperationError> {
        let revision = catalog.deployment(handler)?.revision(number);
        let hash = revision.map(|it| it.content_hash.as_str()).unwrap_or_default();
        let info = self.broker.module_info(hash).await?;
        info.map(|info| info.metadata).ok_or_else(|| {
            OperationError::Conflict(format!(
                "the module of {handler}, revision {number}, is not in the registry any more; deploy it again"
            ))
        })
    }

    /// The catalog was changed already, and says who did it too: an audit that is away stops nothing.
    async fn on_record(&self, action: &str, handler: &GroupName, number: u64, version: &str, by: &By) {
        let target = format!("{handler} {version}#{number}");
        if let Err(error) = self.broker.record(action, &target, by).await {
            tracing::warn!(%error, action, target, "an action could not be put on record");
        }
    }

    /// What is left behind here costs space and nothing else.
    async fn drop_modules(&self, content_hashes: &[String]) {
        for content_hash in content_hashes {
            if let Err(error) = self.broker.drop_module(content_hash).await {
                tracing::warn!(%error, content_hash, "a module that nothing names any more could not be dropped");
            }
        }
    }
}

/// The modules that some revision named before, and none does after.
fn forgotten(before: &Catalog, after: &Catalog) -> Vec<String> {
    let hashes = |catalog: &Catalog| -> std::collections::BTreeSet<String> {
        let revisions = catalog.deployments.values().flat_map(|deployment| &deployment.revisions);
        revisions.map(|revision| revision.content_hash.clone()).collect()
    };
    hashes(before).difference(&hashes(after)).cloned().collect()
}

fn check_request(request: &DeployRequest) -> Result<(), OperationError> {
    if request.manifest.len() > MANIFEST_MAX_BYTES {
        return Err(OperationError::Usage(format!(
            "the manifest has {} bytes; at most {MANIFEST_MAX_BYTES} are allowed",
            request.manifest.len()
        )));
    }
    match &request.canary {
        Some(Selection::Percent(percent)) if !(1..=99).contains(percent) => Err(OperationError::Usage(format!(
            "a canary of {percent} % is none; give 1 to 99, or deploy without --canary"
        ))),
        Some(Selection::Keys(keys)) if keys.is_empty() => {
            Err(OperationError::Usage("a canary of no keys is none; name some keys, or give a percentage".into()))
        }
        Some(Selection::Keys(keys)) if keys.len() > CANARY_KEYS_MAX => {
            Err(OperationError::Usage(format!("a canary names at most {CANARY_KEYS_MAX} keys; give a percentage")))
        }
        _ => Ok(()),
    }
}

/// The deployed handler of this name.
fn deployed(catalog: &Catalog, name: &str) -> Result<GroupName, OperationError> {
    let known = || catalog.deployments.keys().map(ToString::to_string).collect();
    let found = catalog.deployments.keys().find(|known| known.as_str() == name);
    Ok(found.cloned().ok_or_else(|| DeployError::NotDeployed { handler: name.into(), known: known() })?)
}
