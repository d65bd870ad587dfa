//! Looking, over HTTP: state, what is registered, what is left to do.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use keyrail_broker::Backlog;

use super::super::wire::{ErrorKind, GroupPath, PageQuery};
use super::openapi::is;
use super::{Api, Failed, deploy};
use crate::service::{self, CatalogView, Cursor, Page};

pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .api_route("/v1/states/{group}", get_with(states, is("What a handler keeps: a page of keys with their state")))
        .api_route("/v1/backlog", get_with(backlog, is("What is left to do in the whole fleet")))
        .api_route(
            "/v1/catalog",
            get_with(catalog, is("What is registered: categories with their key fields, handlers, deployments")),
        )
        .api_route(
            "/v1/handlers",
            get_with(
                deploy::handlers,
                is("Every handler that is registered or being deployed, with its revisions and hosts"),
            ),
        )
}

async fn states(
    State(api): State<Arc<Api>>,
    Path(GroupPath { group }): Path<GroupPath>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Json<Page<service::State>>, Failed> {
    let Query(query) = query?;
    Ok(Json(api.service.states(&group, parsed(query.cursor.as_deref())?, api.page_max).await?))
}

async fn backlog(State(api): State<Arc<Api>>) -> Result<Json<Backlog>, Failed> {
    Ok(Json(api.service.backlog().await?))
}

async fn catalog(State(api): State<Arc<Api>>) -> Result<Json<CatalogView>, Failed> {
    Ok(Json(api.service.catalog().await?))
}

pub(super) fn parsed(cursor: Option<&str>) -> Result<Cursor, Failed> {
    let cursor = cursor.map_or(Ok(Cursor::default()), str::parse);
    cursor.map_err(|error: service::CursorError| {
        Failed::new(StatusCode::BAD_REQUEST, ErrorKind::Refused, error.to_string())
    })
}
