//! A host's HTTP API as a test uses it: requests one after the other, each with its answer in full.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::host::Host;
use crate::wait_until;

/// What a host answered.
#[derive(Debug)]
pub struct Answered {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; a text if it is not JSON.
    pub body: Value,
}

impl Answered {
    /// The body, of a request that succeeded.
    pub fn ok(self) -> Value {
        assert!(self.status.is_success(), "{self:#?}");
        self.body
    }

    /// Asserts a failure of this status and kind that says this.
    pub fn refused(&self, status: u16, kind: &str, says: &str) {
        let error = self.body["error"].as_str().unwrap_or_default();
        assert_eq!((self.status.as_u16(), self.body["kind"].as_str()), (status, Some(kind)), "{self:#?}");
        assert!(error.contains(says), "expected {says:?} in {self:#?}");
    }
}

/// A way to one host.
pub struct Api {
    /// `http://ADDRESS:PORT`.
    pub url: String,
    token: Option<String>,
    client: Client,
    runtime: Runtime,
}

impl Api {
    /// To this URL.
    pub fn new(url: &str) -> Self {
        keyrail::tls::choose_cryptography();
        let client = Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
        Self::with(client, url)
    }

    /// To this URL, by this client.
    pub fn with(client: Client, url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { url: url.into(), token: None, client, runtime }
    }

    /// To a host that says where it listens.
    pub fn of(host: &Host) -> Self {
        Self::new(&url(host))
    }

    /// With this token from here on.
    pub fn token(mut self, token: &str) -> Self {
        self.token = (!token.is_empty()).then(|| token.into());
        self
    }

    /// `GET`.
    pub fn get(&self, path: &str) -> Answered {
        self.send(self.request(Method::GET, path))
    }

    /// `GET` of what does not end: read until its text is as wanted.
    pub fn begun(&self, path: &str, is_enough: impl Fn(&str) -> bool) -> Answered {
        let request = self.request(Method::GET, path);
        self.runtime.block_on(async {
            let mut response = request.send().await.unwrap();
            let mut text = String::new();
            while !is_enough(&text) {
                let part = response.chunk().await.unwrap().expect("it ended");
                text.push_str(std::str::from_utf8(&part).unwrap());
            }
            let headers = std::mem::take(response.headers_mut());
            Answered { status: response.status(), headers, body: Value::String(text) }
        })
    }

    /// `POST` of JSON.
    pub fn post(&self, path: &str, body: &Value) -> Answered {
        self.send(self.request(Method::POST, path).json(body))
    }

    /// A request to be completed.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends it.
    pub fn send(&self, request: RequestBuilder) -> Answered {
        self.runtime.block_on(async {
            let response = request.send().await.unwrap();
            let (status, headers) = (response.status(), response.headers().clone());
            let bytes = response.bytes().await.unwrap();
            let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
            Answered { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()) }
        })
    }
}

/// Where a host says that it listens.
pub fn url(host: &Host) -> String {
    const SAYS: &str = "the HTTP API and the dashboard are at ";
    wait_until("the host listens", || host.log().contains(SAYS));
    let log = host.log();
    let rest = log.split(SAYS).nth(1).unwrap();
    rest.split_whitespace().next().unwrap().trim_end_matches("\u{1b}[0m").to_string()
}
