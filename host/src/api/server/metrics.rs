//! `/metrics`: what Prometheus reads.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::Api;
use super::openapi::is;
use crate::telemetry;

pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    ApiRouter::new().api_route("/metrics", get_with(metrics, is("All metrics, as Prometheus reads them")))
}

async fn metrics(State(api): State<Arc<Api>>) -> Response {
    ([(CONTENT_TYPE, telemetry::CONTENT_TYPE)], api.service.telemetry().render().await).into_response()
}
