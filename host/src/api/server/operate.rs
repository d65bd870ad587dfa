//! What operators do, over HTTP. Reading is `GET` on a noun; an action is `POST` with its verb as the last part of the path.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use keyrail_broker::HeadAction;

use super::super::caller::Caller;
use super::super::wire::{
    ActionPath, AuditQuery, CategoryPath, DeadLettersQuery, ErrorKind, HaltedQuery, HeadRequest, HeadsAnswer,
    HeadsQuery, KeyQuery, LetterActionPath, LetterPath, MembersAnswer, OperationAnswer, OperationRequest, PausedAnswer,
    RecordingQuery,
};
use super::inspect::parsed;
use super::openapi::is;
use super::{Api, Failed};
use crate::service::{AuditView, DeadLetterView, HaltedRow, Page, Recording};

type Answer<T> = Result<Json<T>, Failed>;
type Queried<T> = Result<Query<T>, QueryRejection>;
type Body<T> = Result<Json<T>, JsonRejection>;

/// Looking.
pub(super) fn reading() -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .api_route("/v1/recordings/{category}", get_with(recording, is("What is needed to try a handler on the events of a key elsewhere: the events, and the state before them")))
        .api_route("/v1/heads/{category}", get_with(heads, is("The event that a key stands on, for each handler")))
        .api_route("/v1/halted", get_with(halted, is("What stands still: a page")))
        .api_route("/v1/dead-letters", get_with(dead_letters, is("Events that were set aside: a page")))
        .api_route("/v1/dead-letters/{category}/{id}", get_with(dead_letter, is("One event that was set aside")))
        .api_route("/v1/paused", get_with(paused, is("What is paused")))
        .api_route("/v1/members", get_with(members, is("The hosts that are there")))
        .api_route("/v1/audit", get_with(audit, is("What was done, by whom and why, newest first: a page")))
}

/// Deciding.
pub(super) fn acting() -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .api_route(
            "/v1/heads/{category}/{action}",
            post_with(act_on_head, is("Decide on the event that a key stands on: retry, skip or set-aside")),
        )
        .api_route(
            "/v1/dead-letters/{category}/{id}/{action}",
            post_with(act_on_letter, is("Publish an event that was set aside again (redrive), or drop it (purge)")),
        )
        .api_route(
            "/v1/categories/{category}/{action}",
            post_with(act_on_category, is("Pause or resume a category, or a key of it")),
        )
}

async fn recording(
    State(api): State<Arc<Api>>,
    Path(CategoryPath { category }): Path<CategoryPath>,
    query: Queried<RecordingQuery>,
) -> Answer<Recording> {
    let Query(RecordingQuery { key, group, from, limit }) = query?;
    let limit = limit.unwrap_or(api.page_max).clamp(1, api.page_max);
    Ok(Json(api.service.recording((&category, &key, group.as_deref()), from, limit).await?))
}

async fn heads(
    State(api): State<Arc<Api>>,
    Path(CategoryPath { category }): Path<CategoryPath>,
    query: Queried<HeadsQuery>,
) -> Answer<HeadsAnswer> {
    let Query(HeadsQuery { key, group }) = query?;
    Ok(Json(HeadsAnswer { heads: api.service.heads(&category, &key, group.as_deref()).await? }))
}

async fn act_on_head(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(ActionPath { category, action }): Path<ActionPath>,
    request: Body<HeadRequest>,
) -> Answer<OperationAnswer> {
    let action = match action.as_str() {
        "retry" => HeadAction::Retry,
        "skip" => HeadAction::Skip,
        "set-aside" => HeadAction::SetAside,
        _ => return Err(no_action(&action, "retry, skip, set-aside")),
    };
    let Json(HeadRequest { key, group, expect, by }) = request?;
    let by = caller.signed(by);
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
    Path(LetterPath { category, id }): Path<LetterPath>,
    query: Queried<KeyQuery>,
) -> Answer<DeadLetterView> {
    let Query(KeyQuery { key }) = query?;
    Ok(Json(api.service.dead_letter(&category, key.as_deref(), &id).await?))
}

async fn act_on_letter(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(LetterActionPath { category, id, action }): Path<LetterActionPath>,
    request: Body<OperationRequest>,
) -> Answer<OperationAnswer> {
    let Json(OperationRequest { key, by }) = request?;
    let by = caller.signed(by);
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
    Extension(caller): Extension<Caller>,
    Path(ActionPath { category, action }): Path<ActionPath>,
    request: Body<OperationRequest>,
) -> Answer<OperationAnswer> {
    let Json(OperationRequest { key, by }) = request?;
    let by = caller.signed(by);
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
