//! What all parts of one engine share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};

use keyrail_broker::Broker;
use keyrail_ordering::{Catalog, GroupName, OwnerId};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::holdings::Holdings;
use super::stats::Counters;
use crate::config::EngineConfig;

pub(super) struct Shared {
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
    /// Rung by a commit that had emits.
    pub(super) outbox_bell: Notify,
    /// Keys wait for an owner and there is no room: long ownerships end after a quantum.
    pub(super) crowded: AtomicBool,
    catalog: RwLock<Arc<Catalog>>,
}

impl Shared {
    pub(super) fn new(
        broker: Arc<dyn Broker>,
        handlers: Vec<Arc<dyn Handler>>,
        config: EngineConfig,
        owner: OwnerId,
        catalog: Catalog,
    ) -> Self {
        let handlers = handlers.into_iter().map(|handler| (handler.metadata().name.clone(), handler)).collect();
        Self {
            broker,
            handlers,
            owner,
            holdings: Holdings::default(),
            stats: Counters::default(),
            slots: Semaphore::new(config.executions_max),
            config,
            stopping: CancellationToken::new(),
            outbox_bell: Notify::new(),
            crowded: AtomicBool::new(false),
            catalog: RwLock::new(Arc::new(catalog)),
        }
    }

    /// The catalog as last read.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(super) fn set_catalog(&self, catalog: Catalog) {
        *self.catalog.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(catalog);
    }
}
