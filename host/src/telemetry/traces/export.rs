//! Sending spans to a collector: OTLP over HTTP, in batches, from a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter as Otlp, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter};
use tokio::runtime::Handle;

use crate::clock;
use crate::config::TracesConfig;
use crate::tls;

/// Where a collector takes traces, under its address.
const PATH: &str = "/v1/traces";
/// A collector that does not take spans is told of no more often.
const WARN_INTERVAL_MS: u64 = 60_000;

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be sent to traces.endpoint {endpoint}: {why}")]
pub struct StartError {
    endpoint: String,
    why: String,
}

/// Sends spans as the configuration says.
pub(super) fn provider(config: &TracesConfig, instance: &str) -> Result<SdkTracerProvider, StartError> {
    let refused = |why: String| StartError { endpoint: config.endpoint.clone(), why };
    let timeout = Duration::from_millis(config.timeout_ms);
    let client = tls::client(&config.endpoint).timeout(timeout).connect_timeout(timeout).build();
    let client = client.map_err(|error| refused(error.to_string()))?;
    let otlp = Otlp::builder()
        .with_http()
        .with_http_client(client)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(endpoint(&config.endpoint))
        .with_timeout(timeout)
        .with_headers(config.header_pairs().unwrap_or_default().into_iter().collect())
        .build()
        .map_err(|error| refused(error.to_string()))?;
    let exporter = OnTokio {
        otlp: Arc::new(otlp),
        runtime: Handle::current(),
        endpoint: config.endpoint.clone(),
        warned_at_ms: AtomicU64::new(0),
    };
    let batch = BatchConfigBuilder::default()
        .with_max_queue_size(config.queue_max)
        .with_max_export_batch_size(config.batch_max)
        .with_scheduled_delay(Duration::from_millis(config.interval_ms))
        .build();
    let resource = Resource::builder_empty()
        .with_service_name(config.service_name.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.instance.id", instance.to_string()))
        .build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
    Ok(SdkTracerProvider::builder().with_span_processor(processor).with_resource(resource).build())
}

fn endpoint(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(PATH) { base.into() } else { format!("{base}{PATH}") }
}

/// The processor's thread waits; the request itself needs tokio, so it runs there.
#[derive(Debug)]
struct OnTokio {
    otlp: Arc<Otlp>,
    runtime: Handle,
    endpoint: String,
    warned_at_ms: AtomicU64,
}

impl SpanExporter for OnTokio {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let (otlp, spans) = (self.otlp.clone(), batch.len());
        let sent = self.runtime.spawn(async move { otlp.export(batch).await }).await;
        let sent = sent.unwrap_or_else(|error| Err(OTelSdkError::InternalFailure(error.to_string())));
        if let Err(error) = &sent {
            self.warn(error, spans);
        }
        sent
    }

    fn set_resource(&mut self, resource: &Resource) {
        // Nothing is being sent yet, so nobody else holds it.
        if let Some(otlp) = Arc::get_mut(&mut self.otlp) {
            otlp.set_resource(resource);
        }
    }
}

impl OnTokio {
    fn warn(&self, error: &OTelSdkError, spans: usize) {
        let now_ms = clock::now_ms().max(1);
        let warned_at_ms = self.warned_at_ms.load(Relaxed);
        if warned_at_ms == 0 || now_ms >= warned_at_ms + WARN_INTERVAL_MS {
            self.warned_at_ms.store(now_ms, Relaxed);
            tracing::warn!(
                %error, spans, endpoint = self.endpoint,
                "traces cannot be sent and are dropped; events go on. Said once a minute"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_its_address_or_in_full() {
        for base in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(endpoint(base), "http://c:4318/v1/traces");
        }
        assert_eq!(endpoint("https://c/otlp"), "https://c/otlp/v1/traces");
    }
}
