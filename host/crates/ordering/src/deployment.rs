//! What is deployed: the revisions of each handler, which one serves, and which one is tried on some keys.
//!
//! Part of the [`Catalog`], so that what is accepted and what serves change in one step. A revision is a component with its
//! manifest; the bytes lie in the broker's module registry under their hash. A new revision is a *candidate* first, which
//! hosts load beside the one that serves; nothing changes for any key until it is promoted, or made a canary.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Capabilities, Catalog, EntryRef, GroupName, HandlerEntry, Key, Metadata, Refusal};

/// Revisions of a handler that are kept for a rollback.
const REVISIONS_KEPT_MAX: usize = 10;

/// A component as it was deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// 1 for the handler's first; never used again.
    pub number: u64,
    /// The version that the component declares; free text.
    pub version: String,
    /// Hash of the component's bytes, in hex.
    pub content_hash: String,
    /// Grants and limits, as they were given; the runtime's business.
    pub manifest: String,
    /// Who deployed it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Why it does not serve, if it was taken back.
    pub withdrawn: Option<String>,
}

impl Revision {
    /// How it is named where an event's handling is on record: `1.4.0#7`.
    pub fn label(&self) -> String {
        format!("{}#{}", self.version, self.number)
    }
}

/// The keys that a canary gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// These.
    Keys(BTreeSet<String>),
    /// About this many of 100, always the same ones.
    Percent(u8),
}

impl Selection {
    /// Whether a key of this handler is one of them.
    pub fn contains(&self, group: &GroupName, key: &Key) -> bool {
        match self {
            Self::Keys(keys) => keys.contains(key.as_str()),
            Self::Percent(percent) => hundredth(&format!("{group}\n{key}")) < u64::from(*percent),
        }
    }

    /// Whether an entry of a category that is not partitioned is one of them.
    pub fn contains_entry(&self, group: &GroupName, entry: &EntryRef) -> bool {
        match self {
            Self::Keys(_) => false,
            Self::Percent(percent) => hundredth(&format!("{group}\n{entry}")) < u64::from(*percent),
        }
    }
}

fn hundredth(text: &str) -> u64 {
    xxh3_64(text.as_bytes()) % 100
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keys(keys) if keys.len() > 3 => write!(f, "{} keys", keys.len()),
            Self::Keys(keys) => f.write_str(&keys.iter().cloned().collect::<Vec<_>>().join(", ")),
            Self::Percent(percent) => write!(f, "{percent} % of the keys"),
        }
    }
}

/// A revision that does not serve everything (yet).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Which.
    pub number: u64,
    /// The keys that it is meant for; none for all.
    pub canary: Option<Selection>,
    /// Whether the canary serves its keys already. Until then it is only loaded.
    pub serves: bool,
}

/// What is deployed of one handler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deployment {
    /// The revision that serves.
    pub active: Option<u64>,
    /// The one that served before it: where a rollback goes.
    pub previous: Option<u64>,
    /// The one that comes next.
    pub candidate: Option<Candidate>,
    /// Those that are kept, oldest first.
    pub revisions: Vec<Revision>,
    /// Given to the latest revision.
    pub last_number: u64,
}

impl Deployment {
    /// A revision that is kept.
    pub fn revision(&self, number: u64) -> Option<&Revision> {
        self.revisions.iter().find(|revision| revision.number == number)
    }

    /// The revision that serves.
    pub fn active(&self) -> Option<&Revision> {
        self.active.and_then(|number| self.revision(number))
    }

    /// The candidate's revision.
    pub fn candidate(&self) -> Option<(&Candidate, &Revision)> {
        let candidate = self.candidate.as_ref()?;
        Some((candidate, self.revision(candidate.number)?))
    }

    /// What hosts must have loaded.
    pub fn wanted(&self) -> impl Iterator<Item = &Revision> {
        self.active().into_iter().chain(self.candidate().map(|(_, revision)| revision))
    }

    fn withdraw(&mut self, number: u64, why: &str) {
        if self.candidate.as_ref().is_some_and(|candidate| candidate.number == number) {
            self.candidate = None;
        }
        if let Some(revision) = self.revisions.iter_mut().find(|revision| revision.number == number) {
            revision.withdrawn = Some(why.into());
        }
    }

    fn forget_oldest(&mut self) {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.number);
        while self.revisions.len() > REVISIONS_KEPT_MAX {
            let needed = [self.active, self.previous, candidate];
            let Some(oldest) = self.revisions.iter().position(|revision| !needed.contains(&Some(revision.number)))
            else {
                return;
            };
            self.revisions.remove(oldest);
        }
    }
}

/// A revision to be: the number is given when it is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Hash of the component's bytes, in hex.
    pub content_hash: String,
    /// Grants and limits.
    pub manifest: String,
    /// Only for these keys.
    pub canary: Option<Selection>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Why a deployment is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeployError {
    /// The rules of the catalog.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused(Vec<Refusal>),
    /// No such handler is deployed.
    #[error("no handler {handler:?} is deployed; {}", known_handlers(.known))]
    NotDeployed {
        /// What was asked for.
        handler: String,
        /// What there is.
        known: Vec<String>,
    },
    /// There is nothing that the other keys could run on.
    #[error("a canary needs a version that serves the other keys; deploy {0} to all keys first, without --canary")]
    NothingServes(GroupName),
    /// A canary of another shape.
    #[error(
        "a canary must handle the same message types, by the same key, as the version that serves ({0}); deploy it to \
         all keys, without --canary"
    )]
    CanaryDiffers(String),
    /// Nothing is being tried.
    #[error("handler {0} has no canary and nothing that is being deployed")]
    NoCandidate(GroupName),
    /// Somebody else deployed or took back meanwhile.
    #[error("revision {number} of {handler} is not being deployed any more: {why}")]
    Superseded {
        /// The handler.
        handler: GroupName,
        /// The revision.
        number: u64,
        /// What happened.
        why: String,
    },
    /// No such revision is kept.
    #[error("handler {handler} has no revision {number}; there are: {known}")]
    UnknownRevision {
        /// The handler.
        handler: GroupName,
        /// What was asked for.
        number: u64,
        /// What there is.
        known: String,
    },
    /// There is nothing to go back to.
    #[error("handler {0} has no earlier revision to go back to; name one with --to, or undeploy it")]
    NoPrevious(GroupName),
    /// It serves already.
    #[error("revision {number} of {handler} serves already")]
    AlreadyActive {
        /// The handler.
        handler: GroupName,
        /// The revision.
        number: u64,
    },
}

fn known_handlers(known: &[String]) -> String {
    if known.is_empty() { "nothing is; see keyrail deploy".into() } else { format!("these are: {}", known.join(", ")) }
}

impl Catalog {
    /// The deployment of a handler.
    pub fn deployment(&self, handler: &GroupName) -> Result<&Deployment, DeployError> {
        self.deployments.get(handler).ok_or_else(|| DeployError::NotDeployed {
            handler: handler.to_string(),
            known: self.deployments.keys().map(ToString::to_string).collect(),
        })
    }

    /// The catalog with a new candidate, and its number; an earlier candidate is taken back. What is accepted does not
    /// change yet, but every rule is checked already.
    pub fn propose(
        &self,
        metadata: &Metadata,
        proposal: Proposal,
        capabilities: Capabilities,
    ) -> Result<(Self, u64), DeployError> {
        self.register(metadata, &proposal.content_hash, capabilities).map_err(DeployError::Refused)?;
        let name = &metadata.name;
        let mut next = self.clone();
        let deployment = next.deployments.entry(name.clone()).or_default();
        if proposal.canary.is_some() {
            let serving = deployment.active().ok_or_else(|| DeployError::NothingServes(name.clone()))?;
            let same = self.handlers.get(name).is_some_and(|entry| is_same_shape(&entry.metadata, metadata));
            if !same {
                return Err(DeployError::CanaryDiffers(serving.label()));
            }
        }
        let number = deployment.last_number + 1;
        if let Some(earlier) = deployment.candidate.as_ref().map(|candidate| candidate.number) {
            deployment.withdraw(earlier, &format!("revision {number} was deployed in its place"));
        }
        deployment.last_number = number;
        deployment.candidate = Some(Candidate { number, canary: proposal.canary, serves: false });
        deployment.revisions.push(Revision {
            number,
            version: metadata.version.clone(),
            content_hash: proposal.content_hash,
            manifest: proposal.manifest,
            by: proposal.by,
            reason: proposal.reason,
            at_ms: proposal.at_ms,
            withdrawn: None,
        });
        deployment.forget_oldest();
        Ok((next, number))
    }

    /// The candidate serves the keys that it was proposed for: as a canary, or all of them.
    pub fn begin(&self, metadata: &Metadata, number: u64, capabilities: Capabilities) -> Result<Self, DeployError> {
        let candidate = self.candidate(&metadata.name, number)?;
        if candidate.canary.is_none() {
            return self.activate(metadata, number, capabilities);
        }
        let mut next = self.clone();
        if let Some(candidate) = next.deployments.get_mut(&metadata.name).and_then(|it| it.candidate.as_mut()) {
            candidate.serves = true;
        }
        Ok(next)
    }

    /// A revision serves all keys from here on, and what it declares is accepted. The candidate, if it is another one, is
    /// taken back.
    pub fn activate(&self, metadata: &Metadata, number: u64, capabilities: Capabilities) -> Result<Self, DeployError> {
        let name = &metadata.name;
        let deployment = self.deployment(name)?;
        let revision = self.revision(name, number)?;
        if deployment.active == Some(number) {
            return Err(DeployError::AlreadyActive { handler: name.clone(), number });
        }
        let content_hash = revision.content_hash.clone();
        let mut next = self.register(metadata, &content_hash, capabilities).map_err(DeployError::Refused)?;
        if let Some(deployment) = next.deployments.get_mut(name) {
            if let Some(other) = deployment.candidate.as_ref().map(|candidate| candidate.number)
                && other != number
            {
                deployment.withdraw(other, &format!("revision {number} was made to serve"));
            }
            deployment.candidate = None;
            deployment.previous = deployment.active;
            deployment.active = Some(number);
            for revision in deployment.revisions.iter_mut().filter(|revision| revision.number == number) {
                revision.withdrawn = None;
            }
        }
        Ok(next)
    }

    /// The candidate is given up; what served goes on.
    pub fn withdraw(&self, handler: &GroupName, number: u64, why: &str) -> Result<Self, DeployError> {
        self.candidate(handler, number)?;
        let mut next = self.clone();
        if let Some(deployment) = next.deployments.get_mut(handler) {
            deployment.withdraw(number, why);
        }
        Ok(next)
    }

    /// Nothing serves any more; the handler stays registered, so its events wait.
    pub fn undeploy(&self, handler: &GroupName, why: &str) -> Result<Self, DeployError> {
        let deployment = self.deployment(handler)?;
        let mut next = self.clone();
        if let (Some(candidate), Some(changed)) = (&deployment.candidate, next.deployments.get_mut(handler)) {
            changed.withdraw(candidate.number, why);
        }
        if let Some(changed) = next.deployments.get_mut(handler)
            && changed.active.is_some()
        {
            changed.previous = changed.active.take();
        }
        Ok(next)
    }

    /// The number that a rollback goes to: without `to` what served before, if that is older. Two people who roll back at once
    /// must not bring the newer one back.
    pub fn rollback_target(&self, handler: &GroupName, to: Option<u64>) -> Result<u64, DeployError> {
        let deployment = self.deployment(handler)?;
        let older = deployment.previous.filter(|previous| deployment.active.is_none_or(|active| *previous < active));
        let target = to.or(older).ok_or_else(|| DeployError::NoPrevious(handler.clone()))?;
        self.revision(handler, target)?;
        Ok(target)
    }

    fn revision(&self, handler: &GroupName, number: u64) -> Result<&Revision, DeployError> {
        let deployment = self.deployment(handler)?;
        deployment.revision(number).ok_or_else(|| DeployError::UnknownRevision {
            handler: handler.clone(),
            number,
            known: deployment.revisions.iter().map(|it| it.number.to_string()).collect::<Vec<_>>().join(", "),
        })
    }

    fn candidate(&self, handler: &GroupName, number: u64) -> Result<&Candidate, DeployError> {
        let deployment = self.deployment(handler)?;
        if let Some(candidate) = deployment.candidate.as_ref().filter(|candidate| candidate.number == number) {
            return Ok(candidate);
        }
        let why = match deployment.revision(number) {
            _ if deployment.active == Some(number) => "it serves".into(),
            Some(Revision { withdrawn: Some(why), .. }) => why.clone(),
            _ => "it is not on record".into(),
        };
        Err(DeployError::Superseded { handler: handler.clone(), number, why })
    }
}

/// Whether two versions read the same events in the same way.
fn is_same_shape(one: &Metadata, other: &Metadata) -> bool {
    let sorted = |metadata: &Metadata| {
        let mut handles = metadata.handles.clone();
        handles.sort_by(|a, b| (&a.category, &a.name, a.version).cmp(&(&b.category, &b.name, b.version)));
        handles
    };
    one.role == other.role && one.sequential_by == other.sequential_by && sorted(one) == sorted(other)
}

impl HandlerEntry {
    /// Whether the handler as registered takes events of this type; a host whose version does not must not pass over them.
    pub fn handles(&self, event: &crate::Event) -> bool {
        let handles = &self.metadata.handles;
        handles.iter().any(|message| message.category == event.category && message.name == event.name)
    }
}
