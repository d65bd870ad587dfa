//! Deploying, over HTTP. A module's bytes are a body of their own; what it declares travels beside its hash.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use keyrail_broker::ModuleInfo;

use super::super::wire::{
    AbandonRequest, ByRequest, ErrorKind, HandlersAnswer, ModuleQuery, OperationAnswer, RollbackRequest,
};
use super::{Api, Failed};
use crate::service::{DeployRequest, Proposed, RevisionView, RolledBack, Rollout};

type Answer<T> = Result<Json<T>, Failed>;
type Body<T> = Result<Json<T>, JsonRejection>;

pub(super) fn routes(module_max_bytes: usize) -> Router<Arc<Api>> {
    Router::new()
        .route("/v1/modules/{hash}", put(upload).layer(DefaultBodyLimit::max(module_max_bytes)))
        .route("/v1/handlers", get(handlers))
        .route("/v1/deployments", post(propose))
        .route("/v1/handlers/{handler}/revisions/{revision}/advance", post(advance))
        .route("/v1/handlers/{handler}/revisions/{revision}/abandon", post(abandon))
        .route("/v1/handlers/{handler}/promote", post(promote))
        .route("/v1/handlers/{handler}/rollback", post(rollback))
        .route("/v1/handlers/{handler}/undeploy", post(undeploy))
}

async fn upload(
    State(api): State<Arc<Api>>,
    Path(content_hash): Path<String>,
    query: Result<Query<ModuleQuery>, QueryRejection>,
    bytes: Result<Bytes, BytesRejection>,
) -> Answer<OperationAnswer> {
    let Query(ModuleQuery { metadata }) = query?;
    let metadata = serde_json::from_str(&metadata).map_err(|error| {
        Failed::new(StatusCode::BAD_REQUEST, ErrorKind::Refused, format!("the metadata cannot be read: {error}"))
    })?;
    let bytes =
        bytes.map_err(|rejection| Failed::new(rejection.status(), ErrorKind::Refused, rejection.body_text()))?;
    let info = ModuleInfo { content_hash, size_bytes: bytes.len() as u64, metadata };
    api.service.upload(&info, bytes).await?;
    Ok(Json(OperationAnswer { changed: true, entry: None }))
}

async fn handlers(State(api): State<Arc<Api>>) -> Answer<HandlersAnswer> {
    Ok(Json(HandlersAnswer { handlers: api.service.handlers().await? }))
}

async fn propose(State(api): State<Arc<Api>>, request: Body<DeployRequest>) -> Answer<Proposed> {
    let Json(request) = request?;
    Ok(Json(api.service.propose(&request).await?))
}

async fn advance(State(api): State<Arc<Api>>, Path((handler, revision)): Path<(String, u64)>) -> Answer<Rollout> {
    Ok(Json(api.service.advance(&handler, revision).await?))
}

async fn abandon(
    State(api): State<Arc<Api>>,
    Path((handler, revision)): Path<(String, u64)>,
    request: Body<AbandonRequest>,
) -> Answer<Rollout> {
    let Json(AbandonRequest { why }) = request?;
    Ok(Json(api.service.abandon(&handler, revision, &why).await?))
}

async fn promote(
    State(api): State<Arc<Api>>,
    Path(handler): Path<String>,
    request: Body<ByRequest>,
) -> Answer<RevisionView> {
    let Json(ByRequest { by }) = request?;
    Ok(Json(api.service.promote(&handler, &by).await?))
}

async fn rollback(
    State(api): State<Arc<Api>>,
    Path(handler): Path<String>,
    request: Body<RollbackRequest>,
) -> Answer<RolledBack> {
    let Json(RollbackRequest { to, by }) = request?;
    Ok(Json(api.service.rollback(&handler, to, &by).await?))
}

async fn undeploy(
    State(api): State<Arc<Api>>,
    Path(handler): Path<String>,
    request: Body<ByRequest>,
) -> Answer<OperationAnswer> {
    let Json(ByRequest { by }) = request?;
    api.service.undeploy(&handler, &by).await?;
    Ok(Json(OperationAnswer { changed: true, entry: None }))
}
