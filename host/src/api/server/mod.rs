//! Serving a [`Service`] over HTTP: on a Unix socket for its owner, and over TCP for whoever may ([`gate`]).
//!
//! Every answer is bounded: listings come in pages, publishing streams both ways. Errors are `{"error": …}` with a status.
//! Every route belongs to one [`Role`] (see [`router`]); what a route takes and answers is in the OpenAPI document, which is
//! made from the routes.

mod body;
mod dashboard;
mod deploy;
mod events;
mod failed;
mod files;
#[cfg(test)]
mod fuzz_tests;
mod gate;
mod health;
mod inspect;
mod listener;
mod live;
mod metrics;
mod openapi;
mod operate;
mod views;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;
use tower_http::set_header::SetResponseHeaderLayer;

use super::caller::{Allowed, Caller};
use super::health::Health;
use super::publishing;
use super::socket::{self, SocketFile};
use super::tokens::Role;
use super::wire::ErrorKind;
use crate::config::{Config, HttpConfig, TlsFiles};
use crate::service::Service;
pub(super) use body::fault_in;
pub(super) use failed::Failed;
use files::{FollowedTls, FollowedTokens, Follower};
use gate::Gate;
use listener::Listening;
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
    /// The system refuses the address.
    #[error("cannot listen on {at}: {error}; give another address in http.listen, or off")]
    Address {
        /// Where.
        at: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The file of tokens cannot be used.
    #[error("the tokens in {} cannot be used: {why}; see http.tokens_file", .path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The certificate or its key cannot be used.
    #[error(
        "the certificate {} and its key {} cannot be used: {error}; see http.tls_cert_file and http.tls_key_file",
        .files.cert.display(), .files.key.display()
    )]
    Certificate {
        /// The files.
        files: TlsFiles,
        /// Why.
        error: io::Error,
    },
}

/// A running server. Dropping it ends it at once.
pub struct Server {
    unix: Option<UnixServer>,
    tcp: Option<TcpServer>,
    /// Ends those who follow what happens: they would follow for ever.
    following: DropGuard,
}

struct UnixServer {
    stop: Option<oneshot::Sender<()>>,
    task: AbortOnDropHandle<()>,
    path: PathBuf,
    _file: SocketFile,
}

struct TcpServer {
    listening: Listening,
    is_tls: bool,
    _follower: AbortOnDropHandle<()>,
}

impl Server {
    /// Serves on this socket, if one is given, and over TCP where the configuration says.
    pub async fn start(
        service: Service,
        socket: Option<&Path>,
        config: &Config,
        health: Health,
    ) -> Result<Self, ServeError> {
        let stopping = CancellationToken::new();
        let api = Arc::new(Api::new(service, config, health, stopping.clone()));
        let unix = match socket {
            Some(path) => Some(UnixServer::start(api.clone(), path, config).await?),
            None => None,
        };
        let tcp = match listener::bind(&config.http)? {
            Some(bound) => Some(TcpServer::start(api, bound, config).await?),
            None => None,
        };
        Ok(Self { unix, tcp, following: stopping.drop_guard() })
    }

    /// The Unix socket.
    pub fn path(&self) -> Option<&Path> {
        self.unix.as_ref().map(|unix| unix.path.as_path())
    }

    /// Where browsers and other machines find it.
    pub fn url(&self) -> Option<String> {
        let tcp = self.tcp.as_ref()?;
        Some(format!("{}://{}", if tcp.is_tls { "https" } else { "http" }, tcp.listening.at))
    }

    /// Takes nothing new, lets requests under way end for a moment, and removes the socket.
    pub async fn stop(self) {
        drop(self.following);
        let unix = async {
            if let Some(mut unix) = self.unix {
                drop(unix.stop.take());
                let _ = tokio::time::timeout(STOP_GRACE, &mut unix.task).await;
            }
        };
        let tcp = async {
            if let Some(tcp) = self.tcp {
                tcp.listening.stop(STOP_GRACE).await;
            }
        };
        tokio::join!(unix, tcp);
    }
}

impl UnixServer {
    async fn start(api: Arc<Api>, path: &Path, config: &Config) -> Result<Self, ServeError> {
        let (listener, file) = socket::listen(path).await?;
        let (stop, stopped) = oneshot::channel();
        // The file is its owner's alone: whoever reaches it may do everything.
        let routes = router(api, config, None).layer(Extension(Caller::Local));
        let serving = axum::serve(listener, routes).with_graceful_shutdown(async {
            // Ends as well when the sender is gone.
            let _ = stopped.await;
        });
        let task: JoinHandle<()> = tokio::spawn(async {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the HTTP API on the socket ended");
            }
        });
        Ok(Self { stop: Some(stop), task: AbortOnDropHandle::new(task), path: path.into(), _file: file })
    }
}

impl TcpServer {
    async fn start(
        api: Arc<Api>,
        bound: (std::net::TcpListener, SocketAddr),
        config: &Config,
    ) -> Result<Self, ServeError> {
        let http: &HttpConfig = &config.http;
        let tokens = match http.tokens_file() {
            Some(path) => {
                let (tokens, bytes) = files::read_tokens(path).await?;
                Some(FollowedTokens { path: path.into(), bytes, current: watch::Sender::new(Arc::new(tokens)) })
            }
            None => None,
        };
        let tls = match http.tls_files() {
            Some(files) => Some(FollowedTls::new(files.clone(), listener::tls(&files).await?).await),
            None => None,
        };
        let receiver = tokens.as_ref().map(|tokens| tokens.current.subscribe());
        let gate = Arc::new(Gate::new(http, receiver, bound.1));
        let routes =
            router(api, config, Some(gate.clone())).layer(middleware::from_fn_with_state(gate.clone(), gate::pass));
        let current = tls.as_ref().map(|tls| tls.current.clone());
        let is_tls = current.is_some();
        let listening = Listening::start(bound, current, routes, http)?;
        let follower = Follower { interval: Duration::from_millis(http.files_check_interval_ms), tokens, tls, gate };
        let follower = AbortOnDropHandle::new(tokio::spawn(follower.run()));
        Ok(Self { listening, is_tls, _follower: follower })
    }
}

pub(super) struct Api {
    pub(super) service: Service,
    pub(super) publishes: Semaphore,
    pub(super) line_max_bytes: usize,
    health: Health,
    followers: Followers,
    page_max: usize,
    events: Semaphore,
    events_wait: Duration,
    events_max: usize,
}

impl Api {
    fn new(service: Service, config: &Config, health: Health, stopping: CancellationToken) -> Self {
        Self {
            line_max_bytes: service.line_max_bytes(),
            service,
            publishes: Semaphore::new(config.api.publishes_max),
            health,
            page_max: config.api.page_max,
            followers: Followers::new(config.api.followers_max, config.api.follower_queue_max_bytes, stopping),
            events: Semaphore::new(config.http.events_requests_max),
            events_wait: Duration::from_millis(config.http.events_wait_ms),
            events_max: config.http.events_max,
        }
    }
}

/// All routes, each under the role that it needs. With a gate, bodies of requests are bounded by it; on the socket, whose one
/// user is its owner, only by their sizes.
fn router(api: Arc<Api>, config: &Config, gate: Option<Arc<Gate>>) -> Router {
    openapi::begin();
    let held = |router: ApiRouter<Arc<Api>>| match &gate {
        Some(gate) => router.route_layer(middleware::from_fn_with_state(gate.clone(), gate::hold_body)),
        None => router,
    };
    let publish = post_with(publishing::publish, openapi::lines_operation).layer(DefaultBodyLimit::disable());
    let streaming = ApiRouter::new().api_route("/v1/publish", publish);
    let streaming = match &gate {
        Some(gate) => streaming.route_layer(middleware::from_fn_with_state(gate.clone(), gate::time_body)),
        None => streaming,
    };
    let deploying = deploy::routes(config.api.module_max_bytes);
    let reading = inspect::routes().merge(operate::reading()).merge(views::routes());
    let reading = reading.merge(live::routes()).merge(metrics::routes());
    let routes = ApiRouter::new()
        .merge(health::routes())
        .merge(dashboard::routes())
        .merge(for_role(Role::Publish, streaming))
        .merge(held(for_role(Role::Publish, events::routes(config.http.events_max_bytes))))
        .merge(held(for_role(Role::Read, reading)))
        .merge(held(for_role(Role::Operate, operate::acting())))
        .merge(held(for_role(Role::Deploy, deploying)));
    openapi::documented(routes)
        .fallback(async || {
            Failed::new(StatusCode::NOT_FOUND, ErrorKind::Unknown, "no such path; see /openapi.json".into())
        })
        .method_not_allowed_fallback(async || {
            Failed::new(StatusCode::METHOD_NOT_ALLOWED, ErrorKind::Refused, "this path has another method".into())
        })
        .layer(DefaultBodyLimit::max(config.api.request_max_bytes))
        // What is answered is of this moment and for this caller.
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        .with_state(api)
}

/// These routes, for callers that have the role.
fn for_role(role: Role, routes: ApiRouter<Arc<Api>>) -> ApiRouter<Arc<Api>> {
    let check = move |Extension(caller): Extension<Caller>, request: Request, next: Next| async move {
        let name = role.as_str();
        match caller.may(role) {
            Allowed::Yes => next.run(request).await,
            Allowed::NeedsToken => Failed::unauthorized(&format!(
                "a token with the role {name} is needed; send it as the header Authorization: Bearer TOKEN"
            ))
            .into_response(),
            Allowed::No => {
                let text = format!("the token has not the role {name}; ask who runs this host for one that has");
                Failed::new(StatusCode::FORBIDDEN, ErrorKind::Forbidden, text).into_response()
            }
        }
    };
    openapi::of_role(role, routes).route_layer(middleware::from_fn(check))
}
