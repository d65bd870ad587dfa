//! What operators do, over HTTP. Reading is `GET` on a noun; an action is `POST` with its verb as the last part of the path.

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use keyrail_broker::HeadAction;

use super::super::wire::{
    AuditQuery, DeadLettersQuery, ErrorKind, HaltedQuery, HeadRequest, HeadsAnswer, HeadsQuery, KeyQuery,
    MembersAnswer, OperationAnswer, OperationRequest, PausedAnswer, RecordingQuery,
};
use super::{Api, Failed, parsed};
use crate::service::{AuditView, DeadLetterView, HaltedRow, Page, Recording};

type Answer<T> = Result<Json<T>, Failed>;
type Queried<T> = Result<Query<T>, QueryRejection>;
type Body<T> = Result<Json<T>, JsonRejection>;

pub(super) fn routes() -> Router<Arc<Api>> {
    Router::new()
        .route("/v1/recordings/{category}", get(recording))
        .route("/v1/heads/{category}", get(heads))
        .route("/v1/heads/{category}/{action}", post(act_on_head))
        .route("/v1/halted", get(halted))
        .route("/v1/dead-letters", get(dead_letters))
        .route("/v1/dead-letters/{category}/{id}", get(dead_letter))
        .route("/v1/dead-letters/{category}/{id}/{action}", post(act_on_letter))
        .route("/v1/categories/{category}/{action}", post(act_on_category))
        .route("/v1/paused", get(paused))
        .route("/v1/members", get(members))
        .route("/v1/audit", get(audit))
}

async fn recording(
    State(api): State<Arc<Api>>,
    Path(category): Path<String>,
    query: Queried<RecordingQuery>,
) -> Answer<Recording> {
    let Query(RecordingQuery { key, group, from, limit }) = query?;
    let limit = limit.unwrap_or(api.page_max).clamp(1, api.page_max);
    Ok(Json(api.service.recording((&category, &key, group.as_deref()), from, limit).await?))
}

async fn heads(
    State(api): State<Arc<Api>>,
    Path(category): Path<String>,
    query: Queried<HeadsQuery>,
) -> Answer<HeadsAnswer> {
    let Query(HeadsQuery { key, group }) = query?;
    Ok(Json(HeadsAnswer { heads: api.service.heads(&category, &key, group.as_deref()).await? }))
}

async fn act_on_head(
    State(api): State<Arc<Api>>,
    Path((category, action)): Path<(String, String)>,
    request: Body<HeadRequest>,
) -> Answer<OperationAnswer> {
    let action = match action.as_str() {
        "retry" => HeadAction::Retry,
        "skip" => HeadAction::Skip,
        "set-aside" => HeadAction::SetAside,
        _ => return Err(no_action(&action, "retry, skip, set-aside")),
    };
    let Json(HeadRequest { key, group, expect, by }) = request?;
    api.service.act_on_head((&category, &key, &group), action, &expect, &by).await?;
    Ok(Json(OperationAnswer { changed: true, entry: None }))
}

async fn halted(State(api): State<Arc<Api>>, query: Queried<HaltedQuery>) -> Answer<Page<HaltedRow>> {
    let Query(HaltedQuery { category, group, cursor }) = query?;
    let cursor = parsed(cursor.as_deref())?;
    Ok(Json(api.service.halted(category.as_deref(), group.as_deref(), cursor, api.page_max).await?))
}

async fn dead_letters(State(api): State<Arc<Api>>, query: Queried<DeadLettersQuery>) -> Answer<Page<DeadLetterView>> {
    let Query(DeadLettersQuery { category, key, cursor }) = query?;
    let cursor = parsed(cursor.as_deref())?;
    Ok(Json(api.service.dead_letters(category.as_deref(), key.as_deref(), cursor, api.page_max).await?))
}

async fn dead_letter(
    State(api): State<Arc<Api>>,
    Path((category, id)): Path<(String, String)>,
    query: Queried<KeyQuery>,
) -> Answer<DeadLetterView> {
    let Query(KeyQuery { key }) = query?;
    Ok(Json(api.service.dead_letter(&category, key.as_deref(), &id).await?))
}

async fn act_on_letter(
    State(api): State<Arc<Api>>,
    Path((category, id, action)): Path<(String, String, String)>,
    request: Body<OperationRequest>,
) -> Answer<OperationAnswer> {
    let Json(OperationRequest { key, by }) = request?;
    let letter = (category.as_str(), key.as_deref(), id.as_str());
    let entry = match action.as_str() {
        "redrive" => Some(api.service.redrive(letter, &by).await?.to_string()),
        "purge" => {
            api.service.purge(letter, &by).await?;
            None
        }
        _ => return Err(no_action(&action, "redrive, purge")),
    };
    Ok(Json(OperationAnswer { changed: true, entry }))
}

async fn act_on_category(
    State(api): State<Arc<Api>>,
    Path((category, action)): Path<(String, String)>,
    request: Body<OperationRequest>,
) -> Answer<OperationAnswer> {
    let Json(OperationRequest { key, by }) = request?;
    let changed = match action.as_str() {
        "pause" => api.service.pause(&category, key.as_deref(), &by).await?,
        "resume" => api.service.resume(&category, key.as_deref(), &by).await?,
        _ => return Err(no_action(&action, "pause, resume")),
    };
    Ok(Json(OperationAnswer { changed, entry: None }))
}

async fn paused(State(api): State<Arc<Api>>) -> Answer<PausedAnswer> {
    Ok(Json(PausedAnswer { paused: api.service.paused().await? }))
}

async fn members(State(api): State<Arc<Api>>) -> Answer<MembersAnswer> {
    Ok(Json(MembersAnswer { members: api.service.members().await? }))
}

async fn audit(State(api): State<Arc<Api>>, query: Queried<AuditQuery>) -> Answer<Page<AuditView>> {
    let Query(AuditQuery { cursor, limit }) = query?;
    let cursor = parsed(cursor.as_deref())?;
    let limit = limit.unwrap_or(api.page_max).clamp(1, api.page_max);
    Ok(Json(api.service.audit(cursor, limit).await?))
}

fn no_action(action: &str, known: &str) -> Failed {
    Failed::new(StatusCode::NOT_FOUND, ErrorKind::Unknown, format!("no action {action:?}; there are: {known}"))
}
