//! A collector of traces: takes OTLP over HTTP as a real one does, and keeps what it was told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use prost::Message;

/// One span.
#[derive(Debug, Clone)]
pub struct Told {
    /// The process that it is of.
    pub host: String,
    /// Its name.
    pub name: String,
    /// The trace, in hex.
    pub trace: String,
    /// Its id, in hex.
    pub id: String,
    /// The id of the span above it, in hex; empty for none.
    pub parent: String,
    /// What kind it is.
    pub kind: SpanKind,
    /// Whether it says that something failed, and what.
    pub error: Option<String>,
    /// What it tells besides.
    pub attributes: BTreeMap<String, String>,
}

/// See the module. Ends with the runtime that it was started on.
pub struct Collector {
    address: SocketAddr,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Collector {
    /// Starts on a free port.
    pub async fn start() -> Self {
        let told = Arc::<Mutex<Vec<Told>>>::default();
        let routes = Router::new().route("/v1/traces", post(take)).with_state(told.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, told }
    }

    /// As `traces.endpoint` has it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that it was told so far.
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// The spans of one trace with this name.
    pub fn spans(&self, trace: &str, name: &str) -> Vec<Told> {
        self.told().into_iter().filter(|span| span.trace == trace && span.name == name).collect()
    }
}

async fn take(State(told): State<Arc<Mutex<Vec<Told>>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    for resource in request.resource_spans {
        let about = attributes(resource.resource.unwrap().attributes);
        assert_eq!(about["service.name"], "keyrail");
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        told.lock().unwrap().extend(spans.map(|span| read(about["service.instance.id"].clone(), span)));
    }
    StatusCode::OK
}

fn read(host: String, span: Span) -> Told {
    let status = span.status.clone().unwrap_or_default();
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    Told {
        host,
        kind: span.kind(),
        error: (status.code() == SpanStatus::Error).then_some(status.message),
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        attributes: attributes(span.attributes),
    }
}

fn attributes(pairs: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    pairs.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
