//! Deploying, over HTTP. A module's bytes are a body of their own; what it declares travels beside its hash.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{post_with, put_with};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, State};
use axum::http::StatusCode;
use keyrail_broker::ModuleInfo;

use super::super::caller::Caller;
use super::super::wire::{
    AbandonRequest, ByRequest, ErrorKind, HandlerPath, HandlersAnswer, HashPath, ModuleQuery, OperationAnswer,
    RegisterAnswer, RegisterRequest, RevisionPath, RollbackRequest,
};
use super::openapi::is;
use super::{Api, Failed};
use crate::service::{DeployRequest, Proposed, RevisionView, RolledBack, Rollout};

type Answer<T> = Result<Json<T>, Failed>;
type Body<T> = Result<Json<T>, JsonRejection>;

/// Changing what runs.
pub(super) fn routes(module_max_bytes: usize) -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .api_route(
            "/v1/register",
            post_with(register, is("Put handlers into the catalog, all or none, without deploying them")),
        )
        .api_route(
            "/v1/modules/{hash}",
            put_with(upload, is("Store a component under its hash")).layer(DefaultBodyLimit::max(module_max_bytes)),
        )
        .api_route(
            "/v1/deployments",
            post_with(propose, is("Check a deployment, and make it the candidate that hosts load")),
        )
        .api_route(
            "/v1/handlers/{handler}/revisions/{revision}/advance",
            post_with(advance, is("How far a revision is on the hosts; takes its next step if it can")),
        )
        .api_route(
            "/v1/handlers/{handler}/revisions/{revision}/abandon",
            post_with(abandon, is("Take a candidate back that did not come to serve")),
        )
        .api_route("/v1/handlers/{handler}/promote", post_with(promote, is("Let the canary serve every key")))
        .api_route(
            "/v1/handlers/{handler}/rollback",
            post_with(rollback, is("Take a candidate back, or let an earlier revision serve again")),
        )
        .api_route("/v1/handlers/{handler}/undeploy", post_with(undeploy, is("Let no host serve the handler any more")))
}

async fn register(State(api): State<Arc<Api>>, request: Body<RegisterRequest>) -> Answer<RegisterAnswer> {
    let Json(request) = request?;
    let handlers = api.service.register(&request.handlers).await?;
    Ok(Json(RegisterAnswer { handlers }))
}

async fn upload(
    State(api): State<Arc<Api>>,
    Path(HashPath { hash: content_hash }): Path<HashPath>,
    query: Result<Query<ModuleQuery>, QueryRejection>,
    bytes: Result<Bytes, BytesRejection>,
) -> Answer<OperationAnswer> {
    let Query(ModuleQuery { metadata }) = query?;
    let metadata = serde_json::from_str(&metadata).map_err(|error| {
        Failed::new(StatusCode::BAD_REQUEST, ErrorKind::Refused, format!("the metadata cannot be read: {error}"))
    })?;
    let bytes = bytes?;
    let info = ModuleInfo { content_hash, size_bytes: bytes.len() as u64, metadata };
    api.service.upload(&info, bytes).await?;
    Ok(Json(OperationAnswer { changed: true, entry: None }))
}

pub(super) async fn handlers(State(api): State<Arc<Api>>) -> Answer<HandlersAnswer> {
    Ok(Json(HandlersAnswer { handlers: api.service.handlers().await? }))
}

async fn propose(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    request: Body<DeployRequest>,
) -> Answer<Proposed> {
    let Json(mut request) = request?;
    request.by = caller.signed(request.by);
    Ok(Json(api.service.propose(&request).await?))
}

async fn advance(
    State(api): State<Arc<Api>>,
    Path(RevisionPath { handler, revision }): Path<RevisionPath>,
) -> Answer<Rollout> {
    Ok(Json(api.service.advance(&handler, revision).await?))
}

async fn abandon(
    State(api): State<Arc<Api>>,
    Path(RevisionPath { handler, revision }): Path<RevisionPath>,
    request: Body<AbandonRequest>,
) -> Answer<Rollout> {
    let Json(AbandonRequest { why }) = request?;
    Ok(Json(api.service.abandon(&handler, revision, &why).await?))
}

async fn promote(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(HandlerPath { handler }): Path<HandlerPath>,
    request: Body<ByRequest>,
) -> Answer<RevisionView> {
    let Json(ByRequest { by }) = request?;
    let by = caller.signed(by);
    Ok(Json(api.service.promote(&handler, &by).await?))
}

async fn rollback(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(HandlerPath { handler }): Path<HandlerPath>,
    request: Body<RollbackRequest>,
) -> Answer<RolledBack> {
    let Json(RollbackRequest { to, by }) = request?;
    let by = caller.signed(by);
    Ok(Json(api.service.rollback(&handler, to, &by).await?))
}

async fn undeploy(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(HandlerPath { handler }): Path<HandlerPath>,
    request: Body<ByRequest>,
) -> Answer<OperationAnswer> {
    let Json(ByRequest { by }) = request?;
    let by = caller.signed(by);
    api.service.undeploy(&handler, &by).await?;
    Ok(Json(OperationAnswer { changed: true, entry: None }))
}
