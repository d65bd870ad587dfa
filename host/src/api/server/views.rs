//! Looking at the fleet as a whole, and searching its partitions.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};

use super::super::wire::PartitionsQuery;
use super::inspect::parsed;
use super::openapi::is;
use super::{Api, Failed};
use crate::service::{Overview, Page, Row, Search};

pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .api_route(
            "/v1/overview",
            get_with(overview, is("The fleet at one glance: hosts, categories, what waits and since when")),
        )
        .api_route(
            "/v1/partitions",
            get_with(
                partitions,
                is("Who works on what: a page of partitions, searched by category, handler, key, status"),
            ),
        )
}

async fn overview(State(api): State<Arc<Api>>) -> Result<Json<Overview>, Failed> {
    Ok(Json(api.service.live().await?.overview.clone()))
}

async fn partitions(
    State(api): State<Arc<Api>>,
    query: Result<Query<PartitionsQuery>, QueryRejection>,
) -> Result<Json<Page<Row>>, Failed> {
    let Query(PartitionsQuery { category, group, key, prefix, status, cursor, limit }) = query?;
    let cursor = parsed(cursor.as_deref())?;
    let limit = limit.unwrap_or(api.page_max).clamp(1, api.page_max);
    let search = Search { category, group, key, prefix, status };
    Ok(Json(api.service.partitions(&search, cursor, limit).await?))
}
