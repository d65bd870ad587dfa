//! Talking to the host that serves a socket.

mod deploy;
mod live;
mod operate;
mod publish;

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use keyrail_broker::Backlog;
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;

use super::wire::{ErrorBody, ErrorKind, RegisterAnswer, RegisterRequest};
use crate::access::AccessError;
use crate::config::{ApiConfig, PublishConfig};
use crate::service::{CatalogView, Page, Registered, Registration, Row, Search, State, Status};

/// The parts of a query that are there.
fn given<'a>(parts: &[(&'a str, Option<&'a str>)]) -> Vec<(&'a str, &'a str)> {
    parts.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect()
}

/// A client of one socket.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    http: reqwest::Client,
    chunk_max_bytes: usize,
    line_max_bytes: usize,
}

impl Client {
    /// For this socket. Nothing is sent yet.
    pub fn new(socket: &Path, api: &ApiConfig, publish: &PublishConfig) -> Result<Self, AccessError> {
        let http = reqwest::Client::builder()
            .unix_socket(socket)
            .read_timeout(Duration::from_millis(api.answer_timeout_ms))
            .build()
            .map_err(|error| AccessError::Failed(format!("cannot make an HTTP client: {error}")))?;
        let (chunk_max_bytes, line_max_bytes) = (api.chunk_max_bytes, publish.line_max_bytes);
        Ok(Self { socket: socket.into(), http, chunk_max_bytes, line_max_bytes })
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
        // The name of the host in it means nothing: the socket is the host.
        let mut url = Url::parse_with_params("http://keyrail/v1", query)
            .map_err(|error| AccessError::Failed(format!("cannot make a URL: {error}")))?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
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
            ErrorKind::Unavailable => AccessError::Unavailable(body.error),
            ErrorKind::Refused if !body.refused.is_empty() => AccessError::Refused(body.refused),
            ErrorKind::Refused => AccessError::Usage(body.error),
            ErrorKind::NotAccepted => AccessError::NotAccepted(body.error),
            ErrorKind::Unknown | ErrorKind::Conflict | ErrorKind::Failed => AccessError::Failed(body.error),
        })
    }

    fn broken(&self, error: &reqwest::Error) -> AccessError {
        let socket = self.socket.display();
        if error.is_connect() {
            return AccessError::Unavailable(format!(
                "no host answers on the socket {socket}; start it with keyrail run"
            ));
        }
        if error.is_timeout() {
            return AccessError::Unavailable(format!(
                "the host on the socket {socket} does not answer; look at its log, or raise api.answer_timeout_ms"
            ));
        }
        let mut cause = error.source();
        let mut text = error.to_string();
        while let Some(inner) = cause {
            text = inner.to_string();
            cause = inner.source();
        }
        AccessError::Unavailable(format!("the connection to the host on the socket {socket} broke off: {text}"))
    }

    fn unreadable(&self, why: &str) -> AccessError {
        AccessError::Failed(format!(
            "the answer of the host on the socket {} cannot be read: {why}; is it another release?",
            self.socket.display()
        ))
    }
}
