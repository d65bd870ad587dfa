//! Metrics that are looked at when somebody asks: a page of them is made for one answer and thrown away.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{LABELS, PREFIX};

/// Labels and their values.
pub type Labels = Vec<(&'static str, String)>;

/// Something that can be looked at.
#[async_trait]
pub trait Source: Send + Sync {
    /// Puts what is so now on the page. Must answer soon, whatever is wrong.
    async fn fill(&self, page: &mut Page);
}

/// What was looked at, by name.
#[derive(Default)]
pub struct Page {
    gauges: BTreeMap<&'static str, (&'static str, Family<Labels, Gauge<f64, AtomicU64>>)>,
    counters: BTreeMap<&'static str, (&'static str, Family<Labels, Counter<f64, AtomicU64>>)>,
}

impl Page {
    /// A value that goes up and down. The name is without the prefix, with the unit.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, labels: Labels, value: f64) {
        let (_, family) = self.gauges.entry(name).or_insert_with(|| (help, Family::default()));
        family.get_or_create(&checked(labels)).set(value);
    }

    /// A value that only grows; of several with the same labels, their sum. The name is without the prefix and `_total`.
    pub fn counter(&mut self, name: &'static str, help: &'static str, labels: Labels, value: f64) {
        let (_, family) = self.counters.entry(name).or_insert_with(|| (help, Family::default()));
        family.get_or_create(&checked(labels)).inc_by(value);
    }

    pub(crate) fn into_registry(self) -> Registry {
        let mut registry = Registry::with_prefix(PREFIX);
        for (name, (help, family)) in self.gauges {
            registry.register(name, help, family);
        }
        for (name, (help, family)) in self.counters {
            registry.register(name, help, family);
        }
        registry
    }
}

fn checked(labels: Labels) -> Labels {
    debug_assert!(labels.iter().all(|(name, _)| LABELS.contains(name)), "a label that is not in the list: {labels:?}");
    labels
}
