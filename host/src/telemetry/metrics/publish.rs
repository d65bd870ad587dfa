//! What this host took in: events that were published through it, by category.

use std::collections::BTreeMap;

use keyrail_ordering::CategoryName;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Labels;

/// Counted in the process that publishes: what a command writes to the broker by itself is in nobody's numbers but the fleet's.
#[derive(Debug, Clone)]
pub struct PublishMetrics {
    published: Family<Labels, Counter>,
    refused: Counter,
}

impl PublishMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self { published: Family::default(), refused: Counter::default() };
        registry.register(
            "published",
            "Events published through this host; result is new, or duplicate when its id was there already",
            metrics.published.clone(),
        );
        registry.register(
            "publish_refused",
            "Events that this host refused to publish: no such category or type, no key, wrong fields",
            metrics.refused.clone(),
        );
        metrics
    }

    /// The counters of a category, to be kept by whoever publishes many events.
    pub fn of(&self, category: &CategoryName) -> PublishedOf {
        let counter = |result: &str| {
            let labels = vec![("category", category.to_string()), ("result", result.to_string())];
            self.published.get_or_create_owned(&labels)
        };
        PublishedOf { new: counter("new"), duplicates: counter("duplicate") }
    }

    /// An event was refused.
    pub fn refused(&self) {
        self.refused.inc();
    }
}

/// The counters of one category.
#[derive(Debug, Clone)]
pub struct PublishedOf {
    /// Events that were written.
    pub new: Counter,
    /// Events that were there already.
    pub duplicates: Counter,
}

/// The counters that a publisher of many events uses, looked up once a category.
pub(crate) struct Tally {
    metrics: PublishMetrics,
    known: BTreeMap<CategoryName, PublishedOf>,
}

impl Tally {
    pub(crate) fn new(metrics: &PublishMetrics) -> Self {
        Self { metrics: metrics.clone(), known: BTreeMap::new() }
    }

    /// An event of this category is in its stream.
    pub(crate) fn published(&mut self, category: &CategoryName, duplicate: bool) {
        if !self.known.contains_key(category) {
            self.known.insert(category.clone(), self.metrics.of(category));
        }
        let of = &self.known[category];
        if duplicate {
            of.duplicates.inc()
        } else {
            of.new.inc()
        };
    }

    /// An event cannot be published.
    pub(crate) fn refused(&self) {
        self.metrics.refused();
    }
}
