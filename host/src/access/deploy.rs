//! Deploying, by either way.

use bytes::Bytes;
use keyrail_broker::ModuleInfo;

use super::{Access, AccessError};
use crate::service::{DeployRequest, HandlerView, Proposed, RevisionView, RolledBack, Rollout, WhoAndWhy};

impl Access {
    /// Stores a module under its hash.
    pub async fn upload(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), AccessError> {
        match self {
            Self::Direct(service) => Ok(service.upload(info, bytes).await?),
            Self::Host(client) => client.upload(info, bytes).await,
        }
    }

    /// Every handler that is registered, by name.
    pub async fn handlers(&self) -> Result<Vec<HandlerView>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.handlers().await?),
            Self::Host(client) => client.handlers().await,
        }
    }

    /// Checks a deployment, and makes it the candidate that hosts load.
    pub async fn propose(&self, request: &DeployRequest) -> Result<Proposed, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.propose(request).await?),
            Self::Host(client) => client.propose(request).await,
        }
    }

    /// How far a revision is on the hosts; takes its next step if it can.
    pub async fn advance(&self, handler: &str, revision: u64) -> Result<Rollout, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.advance(handler, revision).await?),
            Self::Host(client) => client.advance(handler, revision).await,
        }
    }

    /// Takes a candidate back that did not come to serve.
    pub async fn abandon(&self, handler: &str, revision: u64, why: &str) -> Result<Rollout, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.abandon(handler, revision, why).await?),
            Self::Host(client) => client.abandon(handler, revision, why).await,
        }
    }

    /// Lets the canary serve every key.
    pub async fn promote(&self, handler: &str, by: &WhoAndWhy) -> Result<RevisionView, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.promote(handler, by).await?),
            Self::Host(client) => client.promote(handler, by).await,
        }
    }

    /// Takes a candidate back, or lets an earlier revision serve again.
    pub async fn rollback(&self, handler: &str, to: Option<u64>, by: &WhoAndWhy) -> Result<RolledBack, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.rollback(handler, to, by).await?),
            Self::Host(client) => client.rollback(handler, to, by).await,
        }
    }

    /// Lets no host serve the handler any more.
    pub async fn undeploy(&self, handler: &str, by: &WhoAndWhy) -> Result<(), AccessError> {
        match self {
            Self::Direct(service) => Ok(service.undeploy(handler, by).await?),
            Self::Host(client) => client.undeploy(handler, by).await,
        }
    }
}
