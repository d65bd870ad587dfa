//! Serving a [`Service`] over HTTP on a Unix socket.
//!
//! Every answer is bounded: listings come in pages, publishing streams both ways. Errors are `{"error": …}` with a status.

mod deploy;
mod failed;
mod live;
mod operate;
mod views;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path as UrlPath, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use keyrail_broker::Backlog;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::publishing;
use super::socket::{self, SocketFile};
use super::wire::{ErrorKind, PageQuery, RegisterAnswer, RegisterRequest};
use crate::config::ApiConfig;
use crate::service::{self, CatalogView, Cursor, Page, Service};
pub(super) use failed::Failed;
use live::Followers;

/// How long requests under way may go on when the server stops.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another host listens there.
    #[error("the socket {} is served by another host; stop it, or give another path in api.socket", .0.display())]
    InUse(PathBuf),
    /// The path is taken.
    #[error("{} exists and is not a socket; move it, or give another path in api.socket", .0.display())]
    NotASocket(PathBuf),
    /// The system refuses.
    #[error("cannot serve the socket {}: {error}; give another path in api.socket", .path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A running server. Dropping it ends it at once.
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    path: PathBuf,
    _file: SocketFile,
}

impl Server {
    /// Serves at this socket.
    pub async fn start(service: Service, path: &Path, config: &ApiConfig) -> Result<Self, ServeError> {
        let (listener, file) = socket::listen(path).await?;
        let (stop, stopped) = oneshot::channel();
        let stopping = CancellationToken::new();
        let serving =
            axum::serve(listener, router(service, config, stopping.clone())).with_graceful_shutdown(async move {
                // Ends as well when the sender is gone.
                let _ = stopped.await;
                // Who follows what happens would follow for ever.
                stopping.cancel();
            });
        let task = tokio::spawn(async {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the HTTP API ended");
            }
        });
        Ok(Self { stop: Some(stop), task, path: path.into(), _file: file })
    }

    /// Where it serves.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes nothing new, lets requests under way end for a moment, and removes the socket.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        let _ = tokio::time::timeout(STOP_GRACE, &mut self.task).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) struct Api {
    pub(super) service: Service,
    pub(super) publishes: Semaphore,
    pub(super) line_max_bytes: usize,
    followers: Followers,
    page_max: usize,
}

fn router(service: Service, config: &ApiConfig, stopping: CancellationToken) -> Router {
    let api = Api {
        line_max_bytes: service.line_max_bytes(),
        service,
        publishes: Semaphore::new(config.publishes_max),
        page_max: config.page_max,
        followers: Followers::new(config.followers_max, config.follower_queue_max_bytes, stopping),
    };
    Router::new()
        .route("/v1/publish", post(publishing::publish).layer(DefaultBodyLimit::disable()))
        .route("/v1/register", post(register))
        .route("/v1/states/{group}", get(states))
        .route("/v1/backlog", get(backlog))
        .route("/v1/catalog", get(catalog))
        .merge(views::routes())
        .merge(live::routes())
        .merge(operate::routes())
        .merge(deploy::routes(config.module_max_bytes))
        .fallback(async || Failed::new(StatusCode::NOT_FOUND, ErrorKind::Unknown, "no such path; see /v1/".into()))
        .method_not_allowed_fallback(async || {
            Failed::new(StatusCode::METHOD_NOT_ALLOWED, ErrorKind::Refused, "this path has another method".into())
        })
        .layer(DefaultBodyLimit::max(config.request_max_bytes))
        .with_state(Arc::new(api))
}

async fn register(
    State(api): State<Arc<Api>>,
    request: Result<Json<RegisterRequest>, JsonRejection>,
) -> Result<Json<RegisterAnswer>, Failed> {
    let Json(request) = request?;
    let handlers = api.service.register(&request.handlers).await?;
    Ok(Json(RegisterAnswer { handlers }))
}

async fn states(
    State(api): State<Arc<Api>>,
    UrlPath(group): UrlPath<String>,
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

fn parsed(cursor: Option<&str>) -> Result<Cursor, Failed> {
    let cursor = cursor.map_or(Ok(Cursor::default()), str::parse);
    cursor.map_err(|error: service::CursorError| {
        Failed::new(StatusCode::BAD_REQUEST, ErrorKind::Refused, error.to_string())
    })
}
