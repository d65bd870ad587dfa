//! Sending events, and again where that helps.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, StatusCode};
use serde::Deserialize;

use crate::Event;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
const TRIES_MAX: u32 = 5;
/// Between two tries where the host does not say how long to wait; twice as long each time.
const WAIT_BASE: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Why nothing, or not everything, was published.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client cannot be made: a wrong address, token or certificate.
    #[error("{0}")]
    Setup(String),
    /// The data of an event is none.
    #[error("{0}")]
    Data(String),
    /// The host refuses some of the events: nothing was published. Change them.
    #[error("{error}")]
    Refused {
        /// What the host says.
        error: String,
        /// Each event that is refused.
        events: Vec<Refusal>,
    },
    /// The token is missing, unknown, or not good for publishing.
    #[error("{0}")]
    NotAllowed(String),
    /// The host or its broker did not answer, in all tries. The events may be published or not: publish the same ones again.
    #[error("{0}")]
    Unavailable(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// An event that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its place among those that were sent.
    pub index: usize,
    /// Why.
    pub error: String,
}

/// An event that is in its stream.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Published {
    /// Its id.
    pub id: String,
    /// Where it is, as `epoch-sequence`.
    pub entry: String,
    /// Whether it had been published before.
    #[serde(default)]
    pub duplicate: bool,
}

/// How a client is to be.
#[derive(Debug)]
pub struct Builder {
    url: String,
    token: Option<String>,
    certificates: Vec<u8>,
    tries_max: u32,
}

impl Builder {
    /// The token to show.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Certificates in PEM that are trusted in place of the system's.
    pub fn certificates(mut self, pem: &[u8]) -> Self {
        self.certificates = pem.into();
        self
    }

    /// How often a request is made before it is given up; 5 if this is not called.
    pub fn tries_max(mut self, tries_max: u32) -> Self {
        self.tries_max = tries_max.max(1);
        self
    }

    /// The client. Nothing is sent yet.
    pub fn build(self) -> Result<Client, Error> {
        let setup = |error: &dyn std::fmt::Display| Error::Setup(format!("{}: {error}", self.url));
        // Fails if there is one already: then that one does.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url =
            reqwest::Url::parse(&self.url).and_then(|url| url.join("/v1/events")).map_err(|error| setup(&error))?;
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| setup(&error))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            // A token must not follow a host that sends us elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(headers);
        if !self.certificates.is_empty() {
            let certificates = Certificate::from_pem_bundle(&self.certificates).map_err(|error| setup(&error))?;
            http = http.tls_certs_only(certificates);
        } else if url.scheme() == "http" {
            // Never used, so it must not matter whether the machine has any.
            http = http.tls_certs_only([]);
        }
        Ok(Client { url, http: http.build().map_err(|error| setup(&error))?, tries_max: self.tries_max })
    }
}

/// Publishes to one host, or to whatever stands before several. Cheap to clone; connections are shared.
#[derive(Debug, Clone)]
pub struct Client {
    url: reqwest::Url,
    http: reqwest::Client,
    tries_max: u32,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: String,
    #[serde(default)]
    events: Vec<EventAnswer>,
}

#[derive(Deserialize)]
struct EventAnswer {
    error: Option<String>,
}

impl Client {
    /// A client for a host at `http://HOST:PORT` or `https://HOST:PORT`.
    pub fn builder(url: &str) -> Builder {
        Builder { url: url.into(), token: None, certificates: vec![], tries_max: TRIES_MAX }
    }

    /// Publishes these events, in order: all of them, or none if one is refused.
    pub async fn publish(&self, events: Vec<Event>) -> Result<Vec<Published>, Error> {
        if events.is_empty() {
            return Ok(vec![]);
        }
        let body = serde_json::to_vec(&events).map_err(|error| Error::Data(error.to_string()))?;
        let mut wait = WAIT_BASE;
        for tries in 1.. {
            let (error, told) = match self.send(&body).await {
                Ok(published) => return Ok(published),
                Err(Attempt::Over(error)) => return Err(error),
                Err(Attempt::Again(error, told)) => (error, told),
            };
            if tries >= self.tries_max {
                return Err(error);
            }
            tokio::time::sleep(told.unwrap_or(wait).min(WAIT_MAX)).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
        Err(Error::Unavailable("not tried".into()))
    }

    async fn send(&self, body: &[u8]) -> Result<Vec<Published>, Attempt> {
        let request = self.http.post(self.url.clone()).header("content-type", "application/json").body(body.to_vec());
        let away = |error: &reqwest::Error| {
            Attempt::Again(Error::Unavailable(format!("the host at {} does not answer: {error}", self.url)), None)
        };
        let response = request.send().await.map_err(|error| away(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.map_err(|error| away(&error))?;
        if status == StatusCode::OK {
            #[derive(Deserialize)]
            struct Good {
                events: Vec<Published>,
            }
            let good: Good = serde_json::from_slice(&bytes)
                .map_err(|error| Attempt::Over(Error::Failed(format!("the answer cannot be read: {error}"))))?;
            return Ok(good.events);
        }
        let answer = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Answer { error: format!("the host answered {status}"), events: vec![] });
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::REQUEST_TIMEOUT => Attempt::Again(Error::Unavailable(answer.error), retry_after(&headers)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Attempt::Over(Error::NotAllowed(answer.error)),
            StatusCode::UNPROCESSABLE_ENTITY => {
                let refused = answer.events.into_iter().enumerate();
                let events =
                    refused.filter_map(|(index, event)| Some(Refusal { index, error: event.error? })).collect();
                Attempt::Over(Error::Refused { error: answer.error, events })
            }
            _ => Attempt::Over(Error::Failed(answer.error)),
        })
    }
}

/// How a try ended that published nothing.
enum Attempt {
    Over(Error),
    /// Worth another try, after this long.
    Again(Error, Option<Duration>),
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}
