//! How an engine stands, for whoever looks at its metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, GroupName, HotKey};

use super::shared::Shared;
use crate::telemetry::metrics::{Labels, Page, Source};

/// Of an engine, as long as it runs.
pub(super) struct Gauges(Weak<Shared>);

impl Gauges {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }
}

#[async_trait]
impl Source for Gauges {
    async fn fill(&self, page: &mut Page) {
        let Some(shared) = self.0.upgrade() else { return };
        let (config, whole) = (&shared.config, || vec![]);
        page.gauge("partitions_max", "Partitions that this host may own", whole(), config.partitions_max as f64);
        page.gauge("execution_slots", "Events that this host may run at once", whole(), config.executions_max as f64);
        let used = config.executions_max - shared.slots.available_permits();
        page.gauge("execution_slots_used", "Events that this host runs now", whole(), used as f64);
        if let Some(ago_ms) = shared.announced_ago_ms() {
            let help = "How long ago this host last told the others that it is there";
            page.gauge("heartbeat_age_seconds", help, whole(), ago_ms as f64 / 1_000.0);
        }
        let known = shared.membership().members().count();
        page.gauge("known_hosts", "Live hosts that this one knows of, itself included", whole(), known as f64);
        owned(&shared, page);
        hottest(&shared, page);
        guests(&shared, page);
    }
}

/// By category and handler; what is served and not owned is 0.
fn owned(shared: &Shared, page: &mut Page) {
    let mut counts: BTreeMap<_, u64> = served(shared).into_iter().map(|served| (served, 0)).collect();
    for holding in shared.holdings.all() {
        let Some(lease) = holding.lease() else { continue };
        let category = lease.partition.streams.first().map(|stream| stream.category.clone());
        *counts.entry((lease.partition.id.group.clone(), category)).or_default() += 1;
    }
    for ((group, category), count) in counts {
        let labels = labels(&group, category.as_ref());
        page.gauge("owned_partitions", "Partitions that this host owns", labels, count as f64);
    }
}

/// The busiest key of each handler, without its name: that is in `keyrail top`.
fn hottest(shared: &Shared, page: &mut Page) {
    let mut highest: BTreeMap<_, f64> = served(shared).into_iter().map(|served| (served, 0.0)).collect();
    for HotKey { group, category, share, .. } in shared.hot() {
        let most = highest.entry((group, category)).or_default();
        *most = most.max(share.as_f64());
    }
    let help =
        "Share of the last 10 seconds in which the busiest key was handled or committed; near 1 it is at its limit";
    for ((group, category), share) in highest {
        page.gauge("hottest_key_share", help, labels(&group, category.as_ref()), share);
    }
}

/// Each handler with each category that it reads.
fn served(shared: &Shared) -> Vec<(GroupName, Option<CategoryName>)> {
    let catalog = shared.catalog();
    let of = |group: GroupName| {
        let categories = catalog.handlers.get(&group).map(|handler| handler.metadata.categories()).unwrap_or_default();
        categories.into_iter().map(move |category| (group.clone(), Some(category.clone())))
    };
    shared.served.groups().into_iter().flat_map(of).collect()
}

/// What each version of a handler used, as the runtime counts it.
fn guests(shared: &Shared, page: &mut Page) {
    for held in shared.held() {
        if held.version.is_empty() {
            // Not loaded.
            continue;
        }
        let of = || vec![("group", held.group.to_string()), ("version", held.version.clone())];
        let (usage, seconds) = (&held.usage, |us: u64| us as f64 / 1e6);
        let with_result = |result: &str| {
            let mut labels = of();
            labels.push(("result", result.to_string()));
            labels
        };
        let done = usage.calls.saturating_sub(usage.failed);
        let help = "Calls of a version of a handler; result is done or failed";
        page.counter("guest_calls", help, with_result("done"), done as f64);
        page.counter("guest_calls", help, with_result("failed"), usage.failed as f64);
        page.counter("guest_cpu_seconds", "CPU time of guest code", of(), seconds(usage.cpu_us));
        page.counter("guest_host_seconds", "Time that guests waited for the host", of(), seconds(usage.host_us));
        let help = "The most memory that one instance has had";
        page.gauge("guest_memory_max_bytes", help, of(), usage.memory_max_bytes as f64);
        page.counter("guest_denied", "Attempts of a guest at what it is not granted", of(), usage.denied as f64);
    }
}

fn labels(group: &GroupName, category: Option<&CategoryName>) -> Labels {
    // An empty label is none, as Prometheus has it.
    vec![("category", category.map(ToString::to_string).unwrap_or_default()), ("group", group.to_string())]
}
