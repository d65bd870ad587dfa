//! Requests and their answers as values, to be kept in a file and compared.
//!
//! Invariant: an exchange is without the secrets that a guest was given, as far as a mask finds them, and without the headers that
//! are secrets by their name.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, header};
use serde::{Deserialize, Serialize};
use wasmtime_wasi_http::Error;

use super::Body;
use super::body::{self, KeptBody};
use crate::grants::{HIDDEN, Mask};

/// Headers whose value is a secret whatever it is.
const SECRET_HEADERS: [HeaderName; 4] =
    [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE, header::SET_COOKIE];

/// A request that was permitted, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpExchange {
    /// What was asked.
    pub request: HttpRequest,
    /// What came of it.
    pub answer: HttpAnswer,
}

/// What a guest asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Its method, in capitals.
    pub method: String,
    /// All of its URL.
    pub url: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, Bytes)>,
    /// Its body. Empty if the request ended before its body did.
    pub body: Bytes,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpAnswer {
    /// An answer.
    Response(HttpResponse),
    /// It failed.
    Fault(HttpFault),
    /// Neither, before the guest gave it up or its call ended.
    Unanswered,
}

/// An answer as the guest was given it, without trailers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// Of three digits.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, Bytes)>,
    /// Its body, up to the end or to where it broke off.
    pub body: Bytes,
    /// Why it broke off.
    pub broke_off: Option<HttpFault>,
}

/// How a request fails, as its guest can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpFault {
    /// The host's name was not found.
    DnsError,
    /// The name has no address.
    DestinationNotFound,
    /// The name has no address that the grant reaches.
    DestinationIpProhibited,
    /// Nobody listens there.
    ConnectionRefused,
    /// Connecting took too long.
    ConnectionTimeout,
    /// The answer took too long.
    ConnectionReadTimeout,
    /// No TLS came about.
    TlsProtocolError,
    /// The URL cannot be sent.
    RequestUriInvalid,
    /// The request's body is over this many bytes.
    RequestBodySize(u64),
    /// The answer's body is over this many bytes.
    ResponseBodySize(u64),
    /// What was sent or came is no HTTP.
    ProtocolError,
}

impl From<&Error> for HttpFault {
    /// With the groups of errors that `wasmtime-wasi-http` makes for a guest; what this host never gives is a protocol error.
    fn from(error: &Error) -> Self {
        match error {
            Error::DnsError { .. } => Self::DnsError,
            Error::DestinationNotFound => Self::DestinationNotFound,
            Error::DestinationIpProhibited => Self::DestinationIpProhibited,
            Error::Connect(_) => Self::ConnectionRefused,
            Error::ConnectionTimeout => Self::ConnectionTimeout,
            Error::ConnectionReadTimeout => Self::ConnectionReadTimeout,
            Error::Tls(_) => Self::TlsProtocolError,
            Error::HttpRequestUriInvalid => Self::RequestUriInvalid,
            Error::HttpRequestBodySize(Some(max)) => Self::RequestBodySize(*max),
            Error::HttpResponseBodySize(Some(max)) => Self::ResponseBodySize(*max),
            _ => Self::ProtocolError,
        }
    }
}

impl From<HttpFault> for Error {
    fn from(fault: HttpFault) -> Self {
        match fault {
            HttpFault::DnsError => Self::DnsError { rcode: None, info_code: None },
            HttpFault::DestinationNotFound => Self::DestinationNotFound,
            HttpFault::DestinationIpProhibited => Self::DestinationIpProhibited,
            HttpFault::ConnectionRefused => Self::ConnectionRefused,
            HttpFault::ConnectionTimeout => Self::ConnectionTimeout,
            HttpFault::ConnectionReadTimeout => Self::ConnectionReadTimeout,
            HttpFault::TlsProtocolError => Self::TlsProtocolError,
            HttpFault::RequestUriInvalid => Self::HttpRequestUriInvalid,
            HttpFault::RequestBodySize(max) => Self::HttpRequestBodySize(Some(max)),
            HttpFault::ResponseBodySize(max) => Self::HttpResponseBodySize(Some(max)),
            HttpFault::ProtocolError => Self::HttpProtocolError,
        }
    }
}

impl HttpRequest {
    /// Without its body, which is not there yet.
    pub(super) fn of_request(request: &Request<Body>, mask: &Mask) -> Self {
        Self {
            method: request.method().as_str().into(),
            url: mask.hide(&request.uri().to_string()).into_owned(),
            headers: masked(request.headers(), mask),
            body: Bytes::new(),
        }
    }
}

impl HttpResponse {
    pub(super) fn of(response: &Response<body::Whole>, mask: &Mask) -> Self {
        Self {
            status: response.status().as_u16(),
            headers: masked(response.headers(), mask),
            body: mask.hide_bytes(&response.body().bytes),
            broke_off: response.body().broke_off,
        }
    }

    /// What a guest is given of it.
    pub(super) fn played(self, under_way: Arc<()>) -> Result<Response<Body>, Error> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, &value[..]);
        }
        let body = KeptBody::of_response(self.body, self.broke_off, under_way).boxed();
        // Only a bundle that was edited by hand has what is no status or no header.
        response.body(body).map_err(|error| Error::InternalError(Some(format!("the answer that was kept: {error}"))))
    }
}

fn masked(headers: &HeaderMap, mask: &Mask) -> Vec<(String, Bytes)> {
    let value = |(name, value): (&HeaderName, &header::HeaderValue)| {
        let value = if SECRET_HEADERS.contains(name) {
            Bytes::from_static(HIDDEN.as_bytes())
        } else {
            mask.hide_bytes(&Bytes::copy_from_slice(value.as_bytes()))
        };
        (name.as_str().to_owned(), value)
    };
    headers.iter().map(value).collect()
}
