//! Deploying, through the host.

use bytes::Bytes;
use keyrail_broker::ModuleInfo;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;

use super::super::wire::{AbandonRequest, ByRequest, HandlersAnswer, OperationAnswer, RollbackRequest};
use super::Client;
use crate::access::AccessError;
use crate::service::{DeployRequest, HandlerView, Proposed, RevisionView, RolledBack, Rollout, WhoAndWhy};

impl Client {
    /// Stores a module.
    pub async fn upload(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), AccessError> {
        let metadata = serde_json::to_string(&info.metadata)
            .map_err(|error| AccessError::Failed(format!("cannot send what the component declares: {error}")))?;
        let request = self.at(Method::PUT, &["modules", &info.content_hash], &[("metadata", &metadata)])?;
        self.answer::<OperationAnswer>(request.header(CONTENT_TYPE, "application/wasm").body(bytes)).await?;
        Ok(())
    }

    /// Every handler.
    pub async fn handlers(&self) -> Result<Vec<HandlerView>, AccessError> {
        Ok(self.answer::<HandlersAnswer>(self.at(Method::GET, &["handlers"], &[])?).await?.handlers)
    }

    /// Proposes a deployment.
    pub async fn propose(&self, request: &DeployRequest) -> Result<Proposed, AccessError> {
        self.answer(self.at(Method::POST, &["deployments"], &[])?.json(request)).await
    }

    /// How far a revision is, and its next step.
    pub async fn advance(&self, handler: &str, revision: u64) -> Result<Rollout, AccessError> {
        self.answer(self.at(
            Method::POST,
            &["handlers", handler, "revisions", &revision.to_string(), "advance"],
            &[],
        )?)
        .await
    }

    /// Takes a candidate back.
    pub async fn abandon(&self, handler: &str, revision: u64, why: &str) -> Result<Rollout, AccessError> {
        let request =
            self.at(Method::POST, &["handlers", handler, "revisions", &revision.to_string(), "abandon"], &[])?;
        self.answer(request.json(&AbandonRequest { why: why.into() })).await
    }

    /// Lets the canary serve every key.
    pub async fn promote(&self, handler: &str, by: &WhoAndWhy) -> Result<RevisionView, AccessError> {
        let request = self.at(Method::POST, &["handlers", handler, "promote"], &[])?;
        self.answer(request.json(&ByRequest { by: by.clone() })).await
    }

    /// Goes back.
    pub async fn rollback(&self, handler: &str, to: Option<u64>, by: &WhoAndWhy) -> Result<RolledBack, AccessError> {
        let request = self.at(Method::POST, &["handlers", handler, "rollback"], &[])?;
        self.answer(request.json(&RollbackRequest { to, by: by.clone() })).await
    }

    /// Lets no host serve it any more.
    pub async fn undeploy(&self, handler: &str, by: &WhoAndWhy) -> Result<(), AccessError> {
        let request = self.at(Method::POST, &["handlers", handler, "undeploy"], &[])?;
        self.answer::<OperationAnswer>(request.json(&ByRequest { by: by.clone() })).await?;
        Ok(())
    }
}
