//! What a host tells of itself: numbers for Prometheus, traces, and which keys are hot.
//!
//! Whoever works counts here; nothing here knows the engine or the service. Made before them, handed to each, and
//! read by whoever asks. Each process, and in a test each host, has its own: there is no global.

pub mod hot_keys;
pub mod metrics;
pub mod traces;

use std::sync::{Arc, PoisonError, RwLock};

use metrics::{Page, Process, PublishMetrics, Source, WorkMetrics};
use prometheus_client::registry::Registry;
use traces::Traces;

/// What [`Telemetry::render`] answers, as HTTP says it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// See the module. A handle: clones are the same.
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

struct Inner {
    /// Of everything that is counted while it happens.
    registry: Registry,
    work: WorkMetrics,
    published: PublishMetrics,
    traces: Traces,
    /// Of everything that is looked at when somebody asks.
    sources: RwLock<Vec<Arc<dyn Source>>>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::new(Traces::off())
    }
}

impl Telemetry {
    /// Nothing is counted yet.
    pub fn new(traces: Traces) -> Self {
        let mut registry = Registry::with_prefix(metrics::PREFIX);
        let (work, published) = (WorkMetrics::new(&mut registry), PublishMetrics::new(&mut registry));
        let sources: Vec<Arc<dyn Source>> = vec![Arc::new(Process::new())];
        Self(Arc::new(Inner { registry, work, published, traces, sources: RwLock::new(sources) }))
    }

    /// What an engine counts.
    pub fn work(&self) -> &WorkMetrics {
        &self.0.work
    }

    /// What publishing counts.
    pub fn published(&self) -> &PublishMetrics {
        &self.0.published
    }

    /// Makes spans.
    pub fn traces(&self) -> &Traces {
        &self.0.traces
    }

    /// Shows this too, from here on.
    pub fn show(&self, source: Arc<dyn Source>) {
        self.0.sources.write().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// All metrics, as Prometheus reads them ([`CONTENT_TYPE`]).
    pub async fn render(&self) -> String {
        let sources = self.0.sources.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut page = Page::default();
        for source in sources {
            source.fill(&mut page).await;
        }
        let mut text = String::new();
        metrics::encode(&mut text, &self.0.registry);
        metrics::encode(&mut text, &page.into_registry());
        text
    }
}
