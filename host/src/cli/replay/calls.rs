//! The lines of a bundle that have HTTP calls: `http-call`, in the order in which they were made.
//!
//! Invariant: what was written is read back byte for byte, bodies and headers too.

use bytes::Bytes;
use keyrail::service::Value;
use keyrail::trial::HttpCall;
use keyrail_runtime::{HttpAnswer, HttpExchange, HttpFault, HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};

/// What such a line calls itself.
pub(super) const WHAT: &str = "http-call";

/// One call.
#[derive(Serialize, Deserialize)]
pub(super) struct CallLine {
    what: String,
    /// The number of the event in the bundle, from 1.
    pub(super) event: usize,
    #[serde(rename = "try")]
    attempt: u32,
    asks: Asks,
    answer: Answer,
}

#[derive(Serialize, Deserialize)]
struct Asks {
    method: String,
    url: String,
    headers: Vec<(String, HeaderValue)>,
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    body: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Response(Response),
    Fault(HttpFault),
    Unanswered,
}

#[derive(Serialize, Deserialize)]
struct Response {
    status: u16,
    headers: Vec<(String, HeaderValue)>,
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    body: Value,
    /// Why the body ends here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    broke_off: Option<HttpFault>,
}

/// Text, or for what is none a value as a body is.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum HeaderValue {
    Text(String),
    Bytes(Value),
}

fn nothing() -> Value {
    Value(Bytes::new())
}

fn is_nothing(value: &Value) -> bool {
    value.0.is_empty()
}

impl CallLine {
    pub(super) fn new(event: usize, call: &HttpCall) -> Self {
        let HttpExchange { request, answer } = &call.exchange;
        let answer = match answer {
            HttpAnswer::Response(response) => Answer::Response(Response {
                status: response.status,
                headers: written(&response.headers),
                body: Value(response.body.clone()),
                broke_off: response.broke_off,
            }),
            HttpAnswer::Fault(fault) => Answer::Fault(*fault),
            HttpAnswer::Unanswered => Answer::Unanswered,
        };
        let asks = Asks {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: written(&request.headers),
            body: Value(request.body.clone()),
        };
        Self { what: WHAT.into(), event, attempt: call.attempt, asks, answer }
    }

    pub(super) fn into_call(self) -> HttpCall {
        let Self { attempt, asks, answer, .. } = self;
        let answer = match answer {
            Answer::Response(response) => HttpAnswer::Response(HttpResponse {
                status: response.status,
                headers: read(response.headers),
                body: response.body.0,
                broke_off: response.broke_off,
            }),
            Answer::Fault(fault) => HttpAnswer::Fault(fault),
            Answer::Unanswered => HttpAnswer::Unanswered,
        };
        let headers = read(asks.headers);
        let request = HttpRequest { method: asks.method, url: asks.url, headers, body: asks.body.0 };
        HttpCall { attempt, exchange: HttpExchange { request, answer } }
    }
}

fn written(headers: &[(String, Bytes)]) -> Vec<(String, HeaderValue)> {
    let value = |value: &Bytes| match std::str::from_utf8(value) {
        Ok(text) => HeaderValue::Text(text.into()),
        Err(_) => HeaderValue::Bytes(Value(value.clone())),
    };
    headers.iter().map(|(name, bytes)| (name.clone(), value(bytes))).collect()
}

fn read(headers: Vec<(String, HeaderValue)>) -> Vec<(String, Bytes)> {
    let bytes = |value| match value {
        HeaderValue::Text(text) => text.into(),
        HeaderValue::Bytes(value) => value.0,
    };
    headers.into_iter().map(|(name, value)| (name, bytes(value))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_call_comes_back_as_it_was() {
        let request = HttpRequest {
            method: "POST".into(),
            url: "http://a/b?c=d".into(),
            headers: vec![("x".into(), Bytes::from_static(b"text")), ("y".into(), Bytes::from_static(b"\xff"))],
            body: Bytes::from_static(b"{\"a\": 1.50}"),
        };
        let response = HttpResponse {
            status: 200,
            headers: vec![],
            body: Bytes::from_static(b"\xff\x00"),
            broke_off: Some(HttpFault::ResponseBodySize(2)),
        };
        for answer in [
            HttpAnswer::Response(response.clone()),
            HttpAnswer::Response(HttpResponse { body: Bytes::new(), broke_off: None, ..response }),
            HttpAnswer::Fault(HttpFault::ConnectionRefused),
            HttpAnswer::Unanswered,
        ] {
            let call = HttpCall { attempt: 2, exchange: HttpExchange { request: request.clone(), answer } };
            let line = serde_json::to_string(&CallLine::new(3, &call)).unwrap();
            assert!(!line.contains('\n') && line.contains(r#""body":{"json":{"a": 1.50}}"#), "{line}");
            let read: CallLine = serde_json::from_str(&line).unwrap();
            assert_eq!((read.event, read.into_call()), (3, call), "{line}");
        }
    }
}
