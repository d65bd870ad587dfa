//! What is true of the whole fleet: every host exports it alike, so who adds up hosts takes the maximum.
//!
//! It is asked of the broker, at most every few seconds however many ask, and an answer that does not come leaves the last
//! one standing, with its age.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Page, Source};
use crate::clock;

/// How old an answer may be before the broker is asked again.
const FRESH_MS: u64 = 5_000;
/// How long an asker waits for the broker.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// The fleet at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fleet {
    /// Live hosts.
    pub hosts: u64,
    /// Partitions that stand still.
    pub halted: u64,
    /// Records in the outbox.
    pub outbox: u64,
    /// Outbox records that cannot be published.
    pub abandoned: u64,
    /// Per category.
    pub categories: Vec<FleetCategory>,
}

/// A category of the fleet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetCategory {
    /// Its name.
    pub category: String,
    /// Events published since it exists, if that is known.
    pub published: Option<u64>,
    /// Live keys.
    pub keys: u64,
    /// Whether it is paused.
    pub paused: bool,
    /// Its handlers.
    pub groups: Vec<FleetGroup>,
}

/// A handler on a category.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FleetGroup {
    /// Its name.
    pub group: String,
    /// Its role.
    pub role: String,
    /// Keys that have work.
    pub ready: u64,
    /// Partitions that stand still.
    pub halted: u64,
    /// Events that wait, and how long the oldest has, in milliseconds; none where another category tells it.
    pub lag: Option<(u64, Option<u64>)>,
}

/// Who knows the fleet.
#[async_trait]
pub trait FleetView: Send + Sync {
    /// The fleet now, or why it is not known.
    async fn look(&self) -> Result<Fleet, String>;
}

/// The fleet as a source of metrics.
pub struct FleetSource {
    view: Arc<dyn FleetView>,
    last: Mutex<Option<(u64, Fleet)>>,
}

impl FleetSource {
    /// Of whoever knows it.
    pub fn new(view: Arc<dyn FleetView>) -> Self {
        Self { view, last: Mutex::default() }
    }
}

#[async_trait]
impl Source for FleetSource {
    async fn fill(&self, page: &mut Page) {
        let mut last = self.last.lock().await;
        let age_ms = last.as_ref().map(|(at_ms, _)| clock::now_ms().saturating_sub(*at_ms));
        if age_ms.is_none_or(|age_ms| age_ms > FRESH_MS) {
            match tokio::time::timeout(ANSWER_MAX, self.view.look()).await {
                Ok(Ok(fleet)) => *last = Some((clock::now_ms(), fleet)),
                Ok(Err(error)) => tracing::warn!(error, "the state of the fleet could not be read for its metrics"),
                Err(_) => tracing::warn!("the state of the fleet could not be read for its metrics in time"),
            }
        }
        let Some((at_ms, fleet)) = last.as_ref() else { return };
        let age_ms = clock::now_ms().saturating_sub(*at_ms);
        page.gauge("fleet_age_seconds", "How old the values are that are of the whole fleet", vec![], seconds(age_ms));
        fleet.fill(page);
    }
}

impl Fleet {
    fn fill(&self, page: &mut Page) {
        page.gauge("hosts", "Live hosts", vec![], self.hosts as f64);
        page.gauge("halted_partitions", "Partitions of the fleet that stand still", vec![], self.halted as f64);
        page.gauge("outbox_records", "Emitted events that are not in their streams yet", vec![], self.outbox as f64);
        let help = "Emitted events that cannot be published and were set aside";
        page.gauge("outbox_abandoned_records", help, vec![], self.abandoned as f64);
        for category in &self.categories {
            category.fill(page);
        }
    }
}

impl FleetCategory {
    fn fill(&self, page: &mut Page) {
        let labels = || vec![("category", self.category.clone())];
        page.gauge("live_keys", "Keys of the category that the broker knows", labels(), self.keys as f64);
        page.gauge("category_paused", "1 while the category is paused", labels(), f64::from(u8::from(self.paused)));
        if let Some(published) = self.published {
            let help = "Events published to the category by anybody, as far as the broker remembers";
            page.gauge("category_events", help, labels(), published as f64);
        }
        for group in &self.groups {
            let of = |value: &str| {
                vec![("category", self.category.clone()), ("group", group.group.clone()), ("role", value.to_string())]
            };
            page.gauge("ready_keys", "Keys of the handler that have work", of(&group.role), group.ready as f64);
            page.gauge("halted_keys", "Keys of the handler that stand still", of(&group.role), group.halted as f64);
            let Some((events, oldest_ms)) = group.lag else { continue };
            page.gauge("lag_events", "Events that wait for the handler", of(&group.role), events as f64);
            let help = "How long the oldest event has waited for the handler; 0 if none waits";
            page.gauge("lag_oldest_seconds", help, of(&group.role), seconds(oldest_ms.unwrap_or(0)));
        }
    }
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}
