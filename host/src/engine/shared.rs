//! What all parts of one engine share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use keyrail_broker::Broker;
use keyrail_ordering::{Catalog, GroupName, Member, Membership, OwnerId};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::holdings::Holdings;
use super::machine::Machine;
use super::stats::Counters;
use crate::config::EngineConfig;

pub(super) struct Shared {
    pub(super) machine: Arc<dyn Machine>,
    pub(super) broker: Arc<dyn Broker>,
    pub(super) handlers: BTreeMap<GroupName, Arc<dyn Handler>>,
    pub(super) config: EngineConfig,
    pub(super) owner: OwnerId,
    pub(super) holdings: Holdings,
    pub(super) stats: Counters,
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
    membership: RwLock<Arc<Membership>>,
    catalog: RwLock<Arc<Catalog>>,
}

impl Shared {
    pub(super) fn new(
        machine: Arc<dyn Machine>,
        broker: Arc<dyn Broker>,
        handlers: Vec<Arc<dyn Handler>>,
        config: EngineConfig,
        owner: OwnerId,
        catalog: Catalog,
    ) -> Self {
        let handlers = handlers.into_iter().map(|handler| (handler.metadata().name.clone(), handler)).collect();
        Self {
            machine,
            broker,
            handlers,
            owner,
            holdings: Holdings::default(),
            stats: Counters::default(),
            slots: Semaphore::new(config.executions_max),
            config,
            stopping: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            outbox_bell: Notify::new(),
            crowded: AtomicBool::new(false),
            announce_now: Notify::new(),
            announced: Notify::new(),
            assignment_changed: Notify::new(),
            membership: RwLock::default(),
            catalog: RwLock::new(Arc::new(catalog)),
        }
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
            groups: self.handlers.keys().cloned().collect(),
            capacity: self.config.partitions_max as u64,
            owned: self.holdings.len() as u64,
            running: (self.config.executions_max - self.slots.available_permits()) as u64,
            settled: self.stats.settled.load(Relaxed),
            release: env!("CARGO_PKG_VERSION").into(),
            leaving: self.stopping.is_cancelled(),
        }
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
        self.catalog.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_catalog(&self, catalog: Catalog) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }
}
