//! Traces: what became of an event, over hosts and handlers, in the terms of OpenTelemetry.
//!
//! A trace begins with the publisher's `traceparent`, or else with the first handling, for a part of the events
//! (`traces.sample_ratio`). It goes on in the headers of what is emitted. Invariant: a trace never breaks here. Where it is
//! not recorded, what came in is handed on as it is.
//!
//! Spans leave through a queue of bounded size and a thread of its own: a collector that is down, slow or full costs spans,
//! never an event and no time of one.

mod export;
mod handling;

use std::sync::Arc;
use std::time::Duration;

use keyrail_ordering::{EntryId, Event, Generation, GroupName, TRACEPARENT, TraceContext};
use opentelemetry::trace::{SpanBuilder, SpanKind, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

pub use export::StartError;
pub(crate) use handling::{Handling, hand_on, hex};
use handling::{context_of, remote};

use crate::clock;
use crate::config::TracesConfig;

/// The instrumentation scope of our spans.
const SCOPE: &str = "keyrail";
/// What the attributes of messages call us.
const SYSTEM: &str = "keyrail";

/// Makes spans, or none. A handle: clones are the same.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Inner>>);

struct Inner {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    sample_ratio: f64,
    with_keys: bool,
    flush_max: Duration,
}

/// A try that begins.
pub(crate) struct Try<'a> {
    pub(crate) event: &'a Event,
    pub(crate) group: &'a GroupName,
    /// The version of the handler.
    pub(crate) version: &'a str,
    /// Within its stream; the name of the stream has the key.
    pub(crate) entry: EntryId,
    pub(crate) attempt: u32,
    /// The owner's, or how often the event was delivered where nobody owns it.
    pub(crate) generation: Generation,
}

impl Traces {
    /// No spans.
    pub fn off() -> Self {
        Self::default()
    }

    /// Starts sending to the collector of the configuration, if it has one; `instance` is this process. To be called from
    /// tokio, on which requests run.
    pub fn start(config: &TracesConfig, instance: &str) -> Result<Self, StartError> {
        if config.endpoint.is_empty() {
            return Ok(Self::off());
        }
        let provider = export::provider(config, instance)?;
        let tracer = provider.tracer(SCOPE);
        Ok(Self(Some(Arc::new(Inner {
            provider,
            tracer,
            sample_ratio: config.sample_ratio,
            with_keys: config.with_keys,
            flush_max: Duration::from_millis(config.flush_max_ms),
        }))))
    }

    /// Begins a try.
    pub(crate) fn handling(&self, this: &Try<'_>) -> Handling {
        let incoming = TraceContext::of(this.event);
        let Some(inner) = &self.0 else { return Handling::passed(incoming) };
        match incoming {
            Some(incoming) if !incoming.is_sampled => return Handling::passed(Some(incoming)),
            None if clock::chance() >= inner.sample_ratio => return Handling::not_sampled(),
            _ => {}
        }
        let builder = SpanBuilder::from_name(format!("process {}", this.event.category))
            .with_kind(SpanKind::Consumer)
            .with_attributes(inner.attributes_of(this));
        let parent = incoming.map_or_else(Context::new, |incoming| remote(incoming, this.event));
        Handling::recorded(inner.tracer.build_with_context(builder, &parent), inner.tracer.clone())
    }

    /// Begins the publishing of an event that comes with a trace: the event then comes from this span, which ends when it is
    /// dropped. An event without a trace begins none here.
    pub(crate) fn publishing(&self, event: &mut Event) -> Option<Publishing> {
        let inner = self.0.as_ref()?;
        let incoming = TraceContext::of(event).filter(|incoming| incoming.is_sampled)?;
        let category = event.category.to_string();
        let builder = SpanBuilder::from_name(format!("publish {category}")).with_kind(SpanKind::Producer);
        let builder = builder.with_attributes([
            KeyValue::new("messaging.system", SYSTEM),
            KeyValue::new("messaging.operation.type", "send"),
            KeyValue::new("messaging.operation.name", "publish"),
            KeyValue::new("messaging.destination.name", category),
            KeyValue::new("messaging.message.id", event.id.clone()),
        ]);
        let span = inner.tracer.build_with_context(builder, &remote(incoming, event));
        let own = context_of(&span).to_string();
        for (_, value) in event.headers.iter_mut().filter(|(name, _)| name == TRACEPARENT) {
            value.clone_from(&own);
        }
        Some(Publishing { _span: span })
    }

    /// Sends what waits, for as long as the configuration allows, and ends.
    pub async fn stop(self) {
        let Some(inner) = self.0 else { return };
        let (provider, flush_max) = (inner.provider.clone(), inner.flush_max);
        let flushed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(flush_max));
        // The thread that waits for an answer cannot be stopped; the process ends without it.
        match tokio::time::timeout(flush_max, flushed).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "the last spans may not have reached the collector"),
            Ok(Err(_)) | Err(_) => tracing::warn!("the last spans did not reach the collector in time"),
        }
    }
}

/// The span of publishing one event.
pub(crate) struct Publishing {
    _span: Span,
}

impl Inner {
    fn attributes_of(&self, this: &Try<'_>) -> Vec<KeyValue> {
        let (event, group) = (this.event, this.group.to_string());
        let mut attributes = vec![
            KeyValue::new("messaging.system", SYSTEM),
            KeyValue::new("messaging.operation.type", "process"),
            KeyValue::new("messaging.operation.name", "process"),
            KeyValue::new("messaging.destination.name", event.category.to_string()),
            KeyValue::new("messaging.message.id", event.id.clone()),
            KeyValue::new("messaging.consumer.group.name", group.clone()),
            KeyValue::new("keyrail.group", group),
            KeyValue::new("keyrail.version", this.version.to_string()),
            KeyValue::new("keyrail.event.type", event.name.to_string()),
            KeyValue::new("keyrail.entry", this.entry.to_string()),
            KeyValue::new("keyrail.attempt", i64::from(this.attempt)),
            KeyValue::new("keyrail.generation", this.generation.0.cast_signed()),
        ];
        if let Some(key) = event.key.as_ref().filter(|_| self.with_keys) {
            attributes.push(KeyValue::new("keyrail.key", key.to_string()));
        }
        attributes
    }
}
