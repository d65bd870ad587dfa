//! `POST /v1/events`: publishing a list of events, in one of the forms that applications send.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::SemaphorePermit;

use super::super::wire::{ErrorKind, EventAnswer, EventsAnswer, EventsQuery};
use super::openapi::events_operation;
use super::{Api, Failed};
use crate::service::incoming::{self, Form, FormError};
use crate::service::{Batch, ItemOutcome, ItemState, PublishOptions, Verdict};

/// What the attributes of a CloudEvent begin with where they are headers.
const CLOUD_EVENT_PREFIX: &str = "ce-";
/// Where a trace goes on; of the request, it is of every event that has none of its own.
const TRACE_HEADERS: [&str; 2] = ["traceparent", "tracestate"];
const TRACE_MAX_BYTES: usize = 512;

pub(super) fn routes(events_max_bytes: usize) -> ApiRouter<Arc<Api>> {
    let publish = post_with(publish, events_operation).layer(DefaultBodyLimit::max(events_max_bytes));
    ApiRouter::new().api_route("/v1/events", publish)
}

async fn publish(
    State(api): State<Arc<Api>>,
    query: Result<Query<EventsQuery>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Failed> {
    let Query(EventsQuery { skip_bad, lane }) = query?;
    let form = form_of(&headers)?;
    let body = body?;
    let _turn = api.events_turn().await?;
    let events = incoming::events(&form, &body, api.events_max, api.line_max_bytes).map_err(Failed::from)?;
    drop(body);
    let options = PublishOptions { skip_bad, no_dedupe: false, lane };
    Ok(answer(api.service.publish_batch(events, &trace_of(&headers), options).await?))
}

impl Api {
    /// A turn to publish, after a short wait if others have it.
    async fn events_turn(&self) -> Result<SemaphorePermit<'_>, Failed> {
        let turn = tokio::time::timeout(self.events_wait, self.events.acquire()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let text = "as many publishing requests are worked on as http.events_requests_max allows; try again";
            Failed::new(StatusCode::TOO_MANY_REQUESTS, ErrorKind::TooMany, text.into())
        })
    }
}

/// The form that the headers declare.
fn form_of(headers: &HeaderMap) -> Result<Form, Failed> {
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match media.as_str() {
        "application/cloudevents+json" => Ok(Form::CloudEvent),
        "application/cloudevents-batch+json" => Ok(Form::CloudEvents),
        "application/jsonl" | "application/x-ndjson" | "application/x-jsonlines" => Ok(Form::Lines),
        _ if headers.contains_key("ce-specversion") => {
            let attributes = headers.iter().filter_map(|(name, value)| {
                Some((name.as_str().strip_prefix(CLOUD_EVENT_PREFIX)?, unescaped(value.to_str().ok()?)))
            });
            let attributes = attributes.map(|(name, value)| (name.to_string(), value));
            let media = (!media.is_empty()).then(|| ("datacontenttype".to_string(), media.clone()));
            Ok(Form::Binary(attributes.chain(media).collect()))
        }
        "application/json" => Ok(Form::Json),
        other => {
            let text = format!(
                "the content type {other:?} is none of: application/json, application/jsonl, application/cloudevents+json, \
                 application/cloudevents-batch+json, or a CloudEvent in ce- headers"
            );
            Err(Failed::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorKind::Refused, text))
        }
    }
}

/// Attributes in headers are percent-encoded where they are not plain.
fn unescaped(value: &str) -> String {
    let bytes = value.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| value.get(at + 1..at + 3)).flatten();
        if let Some(byte) = escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            text.push(byte);
            at += 3;
        } else {
            text.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn trace_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let short = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        (value.len() <= TRACE_MAX_BYTES).then(|| (name.to_string(), value.to_string()))
    };
    TRACE_HEADERS.iter().filter_map(|name| short(name)).collect()
}

fn answer(batch: Batch) -> Response {
    let Batch { items, verdict } = batch;
    let events: Vec<_> = items.into_iter().map(EventAnswer::from).collect();
    let (status, kind, error) = match verdict {
        Verdict::Published => return Json(EventsAnswer { events }).into_response(),
        Verdict::Partly => return (StatusCode::MULTI_STATUS, Json(EventsAnswer { events })).into_response(),
        Verdict::Bad => {
            let bad = events.iter().filter(|event| event.error.is_some()).count();
            let text = format!("{bad} of {} events cannot be published, so none was; see events", events.len());
            (StatusCode::UNPROCESSABLE_ENTITY, ErrorKind::Refused, text)
        }
        Verdict::Refused => {
            let text = "the broker refused the events; see events, and keyrail doctor";
            (StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Failed, text.into())
        }
        Verdict::Unavailable => {
            let text = "the broker does not answer: some events may be published or not; send the same ids again";
            (StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Unavailable, text.into())
        }
    };
    Failed::new(status, kind, error).with_events(events).into_response()
}

impl From<ItemOutcome> for EventAnswer {
    fn from(item: ItemOutcome) -> Self {
        let id = item.id.map(|id| id.to_string());
        match item.state {
            ItemState::Published { entry, duplicate } => {
                Self { id, entry: Some(entry.to_string()), duplicate, error: None }
            }
            ItemState::Bad(error) | ItemState::Refused(error) => Self { id, error: Some(error), ..Self::default() },
            ItemState::NotTried => Self { id, ..Self::default() },
            ItemState::Unknown(error) => {
                let error = format!("it is published or not: {error}");
                Self { id, error: Some(error), ..Self::default() }
            }
        }
    }
}

impl From<FormError> for Failed {
    fn from(error: FormError) -> Self {
        let status = match error {
            FormError::TooMany { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            FormError::Unreadable(_) | FormError::Empty => StatusCode::BAD_REQUEST,
        };
        Self::new(status, ErrorKind::Refused, error.to_string())
    }
}
