//! What all parts of one engine share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use keyrail_broker::{Broker, ReadySource};
use keyrail_ordering::{Catalog, Event, GroupName, Held, HeldState, HotKey, Member, Membership, OwnerId};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::CanaryHalt;
use super::holdings::Holdings;
use super::machine::Machine;
use super::serving::{Served, Version};
use super::wants::{self, Wants, wants};
use crate::config::EngineConfig;
use crate::telemetry::Telemetry;
use crate::telemetry::metrics::WorkMetrics;

pub(super) struct Shared {
    pub(super) machine: Arc<dyn Machine>,
    pub(super) broker: Arc<dyn Broker>,
    pub(super) served: Served,
    pub(super) config: EngineConfig,
    pub(super) owner: OwnerId,
    pub(super) holdings: Holdings,
    pub(super) telemetry: Telemetry,
    /// Execution slots: events that run in a guest at once.
    pub(super) slots: Semaphore,
    /// Nothing new is taken from here on.
    pub(super) stopping: CancellationToken,
    /// The grace period of the shutdown is over.
    pub(super) cancelled: CancellationToken,
    /// Rung by a commit that had emits.
    pub(super) outbox_bell: Notify,
    /// Keys wait for an owner and there is no room: long ownerships end after a quantum.
    pub(super) crowded: AtomicBool,
    /// The others are to hear of a change of ours at once.
    pub(super) announce_now: Notify,
    /// The others have heard, and this host knows of them.
    pub(super) announced: Notify,
    /// Somebody joined or left.
    pub(super) assignment_changed: Notify,
    /// Canaries under which a partition stands still. Nobody may listen.
    pub(super) canary_halts: mpsc::Sender<CanaryHalt>,
    membership: RwLock<Arc<Membership>>,
    catalog: watch::Sender<Arc<Catalog>>,
    /// The versions of handlers that this host has, as it tells the others.
    held: RwLock<Vec<Held>>,
    /// Its busiest keys, as it tells the others.
    hot: RwLock<Vec<HotKey>>,
    /// When it told last and was heard; 0 for not yet.
    announced_at_ms: AtomicU64,
}

impl Shared {
    pub(super) fn new(
        machine: Arc<dyn Machine>,
        telemetry: Telemetry,
        broker: Arc<dyn Broker>,
        config: EngineConfig,
        owner: OwnerId,
        catalog: Catalog,
        canary_halts: mpsc::Sender<CanaryHalt>,
    ) -> Self {
        Self {
            machine,
            broker,
            served: Served::default(),
            owner,
            holdings: Holdings::default(),
            telemetry,
            slots: Semaphore::new(config.executions_max),
            config,
            stopping: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            outbox_bell: Notify::new(),
            crowded: AtomicBool::new(false),
            announce_now: Notify::new(),
            announced: Notify::new(),
            assignment_changed: Notify::new(),
            canary_halts,
            membership: RwLock::default(),
            catalog: watch::Sender::new(Arc::new(catalog)),
            held: RwLock::default(),
            hot: RwLock::default(),
            announced_at_ms: AtomicU64::new(0),
        }
    }

    /// What is counted.
    pub(super) fn metrics(&self) -> &WorkMetrics {
        self.telemetry.work()
    }

    /// Spawns a task of this host.
    pub(super) fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(self.machine.hosted(task));
    }

    /// Sleeps until `at_ms` of the machine's clock.
    pub(super) async fn sleep_until(&self, at_ms: u64) {
        tokio::time::sleep(Duration::from_millis(at_ms.saturating_sub(self.machine.now_ms()))).await;
    }

    /// Waits until nothing is held and no event runs.
    pub(super) async fn until_done(&self) {
        self.holdings.until_empty().await;
        // Every slot is free once no event of a category without partitions runs either.
        let _ = self.slots.acquire_many(self.config.executions_max as u32).await;
    }

    /// Waits until the others know of this host as it is now, and it of them; not for ever, since nothing depends on it.
    pub(super) async fn until_announced(&self) {
        let longest = Duration::from_millis(self.config.heartbeat_interval_ms);
        let _ = tokio::time::timeout(longest, self.announced.notified()).await;
    }

    /// This host, as it tells the others.
    pub(super) fn member(&self) -> Member {
        Member {
            owner: self.owner.clone(),
            groups: self.served.groups(),
            capacity: self.config.partitions_max as u64,
            owned: self.holdings.len() as u64,
            running: (self.config.executions_max - self.slots.available_permits()) as u64,
            settled: self.metrics().totals().settled,
            release: env!("CARGO_PKG_VERSION").into(),
            leaving: self.stopping.is_cancelled(),
            held: self.held(),
            hot: self.hot(),
        }
    }

    pub(super) fn held(&self) -> Vec<Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn hot(&self) -> Vec<HotKey> {
        self.hot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_hot(&self, hot: Vec<HotKey>) {
        *self.hot.write().unwrap_or_else(PoisonError::into_inner) = hot;
    }

    /// The others have heard.
    pub(super) fn announced_at(&self, now_ms: u64) {
        self.announced_at_ms.store(now_ms, Relaxed);
        self.announced.notify_one();
    }

    /// How long ago the others heard of this host; none if they never did.
    pub(super) fn announced_ago_ms(&self) -> Option<u64> {
        let at_ms = self.announced_at_ms.load(Relaxed);
        (at_ms > 0).then(|| self.machine.now_ms().saturating_sub(at_ms))
    }

    /// The live members as last heard.
    pub(super) fn membership(&self) -> Arc<Membership> {
        self.membership.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_membership(&self, membership: Membership) {
        let mut present = self.membership.write().unwrap_or_else(PoisonError::into_inner);
        let changed = !present.is_same_assignment(&membership);
        *present = Arc::new(membership);
        if changed {
            self.assignment_changed.notify_one();
        }
    }

    /// The catalog as last read.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.borrow().clone()
    }

    pub(super) fn set_catalog(&self, catalog: Catalog) {
        self.catalog.send_if_modified(|present| {
            let changed = **present != catalog;
            if changed {
                *present = Arc::new(catalog);
            }
            changed
        });
    }

    /// Hears of every change of the catalog.
    pub(super) fn catalogs(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    pub(super) fn set_held(&self, held: Vec<Held>) {
        let mut present = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let is_news = !present.iter().map(stage).eq(held.iter().map(stage));
        *present = held;
        if is_news {
            self.announce_now.notify_one();
        }
    }

    /// Where the work of everything that is served is listed.
    pub(super) fn sources(&self) -> Vec<ReadySource> {
        let catalog = self.catalog();
        self.served.groups().iter().flat_map(|group| ReadySource::of_handler(&catalog, group)).collect()
    }

    /// Makes the counters of everything that is served, so that they are seen at zero.
    pub(super) fn prepare_metrics(&self) {
        let catalog = self.catalog();
        for group in self.served.groups() {
            let Some(handler) = catalog.handlers.get(&group) else { continue };
            for category in handler.metadata.categories() {
                self.metrics().of(&group, &category);
            }
        }
    }

    /// Whether an event is the business of this version; with a catalog that surely knows the event's type, if there is one.
    pub(super) async fn wants(&self, version: &Version, event: &Event) -> Wants {
        let metadata = version.handler.metadata();
        match wants(metadata, &self.catalog(), event) {
            Wants::Unknown => {}
            known => return known,
        }
        match self.broker.catalog().await {
            Ok((catalog, _)) => {
                self.set_catalog(catalog);
                match wants(metadata, &self.catalog(), event) {
                    // Nobody declares it any more.
                    Wants::Unknown => wants::without_catalog(metadata, event),
                    known => known,
                }
            }
            Err(error) => {
                self.metrics().broker_failed(&error);
                tracing::warn!(%error, "the catalog could not be read");
                Wants::NotYet
            }
        }
    }
}

/// What the others must hear of at once; usage can wait.
fn stage(held: &Held) -> (&GroupName, Option<u64>, &HeldState) {
    (&held.group, held.revision, &held.state)
}
