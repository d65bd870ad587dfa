//! Looking at the fleet as a whole, and searching its partitions.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};

use super::super::wire::PartitionsQuery;
use super::{Api, Failed, parsed};
use crate::service::{Overview, Page, Row, Search};

pub(super) fn routes() -> Router<Arc<Api>> {
    Router::new().route("/v1/overview", get(overview)).route("/v1/partitions", get(partitions))
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
