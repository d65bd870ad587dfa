//! `/health/…`: for Kubernetes and load balancers, without a token, and telling nothing that helps anybody else.

use std::sync::Arc;
use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use keyrail_broker::Error;

use super::super::health::Stage;
use super::super::wire::{ErrorKind, HealthAnswer};
use super::openapi::is;
use super::{Api, Failed};

/// How long the broker may take to answer a probe.
const BROKER_WAIT: Duration = Duration::from_secs(2);

pub(super) fn routes() -> ApiRouter<Arc<Api>> {
    ApiRouter::new()
        .api_route("/health/live", get_with(live, is("The process answers")))
        .api_route("/health/start", get_with(started, is("It has loaded what is deployed, and serves")))
        .api_route("/health/ready", get_with(ready, is("It serves, is not stopping, and its broker answers")))
}

async fn live() -> Json<HealthAnswer> {
    Json(HealthAnswer { status: "live".into() })
}

async fn started(State(api): State<Arc<Api>>) -> Result<Json<HealthAnswer>, Failed> {
    match api.health.stage() {
        Stage::Starting => Err(not("the host is starting")),
        Stage::Serving | Stage::Stopping => Ok(Json(HealthAnswer { status: "started".into() })),
    }
}

async fn ready(State(api): State<Arc<Api>>) -> Result<Json<HealthAnswer>, Failed> {
    match api.health.stage() {
        Stage::Starting => return Err(not("the host is starting")),
        Stage::Stopping => return Err(not("the host is stopping")),
        Stage::Serving => {}
    }
    // Reading the members is the smallest thing that every broker is asked often anyway.
    match tokio::time::timeout(BROKER_WAIT, api.service.broker().members()).await {
        Ok(Ok(_)) => Ok(Json(HealthAnswer { status: "ready".into() })),
        Ok(Err(Error::Unavailable(_))) | Err(_) => Err(not("the broker does not answer")),
        Ok(Err(_)) => Err(not("the broker cannot be used; see the host's log")),
    }
}

fn not(why: &str) -> Failed {
    Failed::new(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Unavailable, why.into())
}
