//! Talking to a host, on its socket or over TCP.

mod broken;
mod deploy;
mod live;
mod operate;
mod publish;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

use keyrail_broker::Backlog;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;

use super::wire::{ErrorBody, ErrorKind, RegisterAnswer, RegisterRequest};
use crate::access::AccessError;
use crate::config::{ApiConfig, ClientConfig, PublishConfig};
use crate::service::{CatalogView, Page, Registered, Registration, Row, Search, State, Status};
use crate::tls;

/// The parts of a query that are there.
fn given<'a>(parts: &[(&'a str, Option<&'a str>)]) -> Vec<(&'a str, &'a str)> {
    parts.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect()
}

/// A client of one host.
#[derive(Debug)]
pub struct Client {
    host: Place,
    base: Url,
    http: reqwest::Client,
    chunk_max_bytes: usize,
    line_max_bytes: usize,
}

/// Where a host is, in the words of messages.
#[derive(Debug)]
enum Place {
    Socket(PathBuf),
    Url(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "on the socket {}", path.display()),
            Self::Url(url) => write!(f, "at {url}"),
        }
    }
}

impl Client {
    /// For the host of this socket. Nothing is sent yet.
    pub fn new(socket: &Path, api: &ApiConfig, publish: &PublishConfig) -> Result<Self, AccessError> {
        // No socket speaks TLS; the client asks for it all the same.
        let http = tls::client("").unix_socket(socket);
        // The name of the host in it means nothing: the socket is the host.
        Self::made(Place::Socket(socket.into()), "http://keyrail", http, api, publish)
    }

    /// For the host at this URL. Nothing is sent yet.
    pub fn at_url(
        url: &str,
        client: &ClientConfig,
        api: &ApiConfig,
        publish: &PublishConfig,
    ) -> Result<Self, AccessError> {
        let mut http = tls::client(url)
            .connect_timeout(Duration::from_millis(client.connect_timeout_ms))
            // A token must not follow a host that sends us elsewhere.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(token) = client.token().map_err(AccessError::Usage)? {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.as_str()))
                .map_err(|_| AccessError::Usage("the token holds characters that no token has".into()))?;
            value.set_sensitive(true);
            http = http.default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
        }
        if let Some(file) = client.ca_file() {
            let wrong = |why: String| {
                AccessError::Usage(format!(
                    "client.ca_file {}: {why}; name a file of certificates in PEM",
                    file.display()
                ))
            };
            let pem = fs::read(file).map_err(|error| wrong(error.to_string()))?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))?;
            http = http.tls_certs_only(certificates);
        }
        Self::made(Place::Url(url.into()), url, http, api, publish)
    }

    fn made(
        host: Place,
        base: &str,
        http: reqwest::ClientBuilder,
        api: &ApiConfig,
        publish: &PublishConfig,
    ) -> Result<Self, AccessError> {
        let failed = |error: &dyn fmt::Display| {
            AccessError::Failed(format!(
                "cannot make an HTTP client: {error}; has this machine certificates? Name a file of them in client.ca_file"
            ))
        };
        let http = http.read_timeout(Duration::from_millis(api.answer_timeout_ms)).build();
        Ok(Self {
            host,
            base: Url::parse(base).map_err(|error| failed(&error))?,
            http: http.map_err(|error| failed(&error))?,
            chunk_max_bytes: api.chunk_max_bytes,
            line_max_bytes: publish.line_max_bytes,
        })
    }

    /// Registers handlers that were checked here.
    pub async fn register(&self, handlers: Vec<Registration>) -> Result<Vec<Registered>, AccessError> {
        let request = self.at(Method::POST, &["register"], &[])?.json(&RegisterRequest { handlers });
        Ok(self.answer::<RegisterAnswer>(request).await?.handlers)
    }

    /// One page of partitions.
    pub async fn partitions(
        &self,
        search: &Search,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page<Row>, AccessError> {
        let limit = limit.to_string();
        let query = given(&[
            ("category", search.category.as_deref()),
            ("group", search.group.as_deref()),
            ("key", search.key.as_deref()),
            ("prefix", search.prefix.as_deref()),
            ("status", search.status.map(Status::word)),
            ("cursor", cursor),
            ("limit", Some(&limit)),
        ]);
        self.answer(self.at(Method::GET, &["partitions"], &query)?).await
    }

    /// One page of a group's states.
    pub async fn states(&self, group: &str, cursor: Option<&str>) -> Result<Page<State>, AccessError> {
        let query: Vec<_> = cursor.map(|cursor| ("cursor", cursor)).into_iter().collect();
        self.answer(self.at(Method::GET, &["states", group], &query)?).await
    }

    /// What is left to do.
    pub async fn backlog(&self) -> Result<Backlog, AccessError> {
        self.answer(self.at(Method::GET, &["backlog"], &[])?).await
    }

    /// What is registered.
    pub async fn catalog(&self) -> Result<CatalogView, AccessError> {
        self.answer(self.at(Method::GET, &["catalog"], &[])?).await
    }

    /// A request to `/v1/` and these parts, each escaped where it must be.
    fn at(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> Result<RequestBuilder, AccessError> {
        // A URL would leave these out.
        if let Some(part) = path.iter().find(|part| matches!(**part, "." | "..")) {
            return Err(AccessError::Usage(format!("{part:?} is not the name of anything")));
        }
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().push("v1").extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(self.http.request(method, url))
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, AccessError> {
        let response = self.send(request).await?;
        let body = response.bytes().await.map_err(|error| self.broken(&error))?;
        serde_json::from_slice(&body).map_err(|error| self.unreadable(&error.to_string()))
    }

    /// The answer, if it is a good one.
    async fn send(&self, request: RequestBuilder) -> Result<Response, AccessError> {
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.broken(&error))?;
        let Ok(body) = serde_json::from_slice::<ErrorBody>(&body) else {
            return Err(self.unreadable(&format!("status {status}")));
        };
        Err(match body.kind {
            ErrorKind::Unavailable | ErrorKind::TooMany => AccessError::Unavailable(body.error),
            ErrorKind::Unauthorized | ErrorKind::Forbidden => {
                AccessError::Usage(format!("{}; see --token-file and KEYRAIL_TOKEN", body.error))
            }
            ErrorKind::Refused if !body.refused.is_empty() => AccessError::Refused(body.refused),
            ErrorKind::Refused => AccessError::Usage(body.error),
            ErrorKind::NotAccepted => AccessError::NotAccepted(body.error),
            ErrorKind::Unknown | ErrorKind::Conflict | ErrorKind::Failed => AccessError::Failed(body.error),
        })
    }

    fn unreadable(&self, why: &str) -> AccessError {
        let host = &self.host;
        AccessError::Failed(format!("the answer of the host {host} cannot be read: {why}; is it another release?"))
    }
}
