//! `/metrics`: what Prometheus reads.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::Api;
use super::openapi::answers;
use crate::telemetry;

pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    ApiRouter::new().api_route(
        "/metrics",
        get_with(metrics, |operation| {
            answers(
                operation.summary("All metrics, as Prometheus reads them"),
                "text/plain",
                "Prometheus's text format, version 0.0.4",
            )
        }),
    )
}

async fn metrics(State(api): State<Arc<Api>>) -> Response {
    ([(CONTENT_TYPE, telemetry::CONTENT_TYPE)], api.service.telemetry().render().await).into_response()
}
