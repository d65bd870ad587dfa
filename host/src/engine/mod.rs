//! The engine: finds partitions that have work, owns them, and runs one worker on each.
//!
//! It performs what `keyrail_ordering::Partition` decides. It knows the broker and the handlers by their traits only.
//!
//! - [`serving`] says which version of a handler serves which key;
//! - [`discovery`] finds keys with work (bells, and a sweep that does not need them) and acquires them;
//! - [`acquire`] takes a partition, [`worker`] drives it while it is owned;
//! - [`holdings`] is what this process owns: at most one entry a partition, until its worker has really ended;
//! - [`heartbeat`] renews on a thread and a connection of its own;
//! - [`pool`] works on categories that are not partitioned;
//! - [`router`] moves outbox records into their streams, [`housekeeper`] keeps the store small;
//! - [`machine`] is where time and chance come from, [`gauges`] says how all this stands.

mod acquire;
mod busy;
pub(crate) mod call;
mod discovery;
mod gauges;
mod handler;
mod heartbeat;
mod holdings;
mod housekeeper;
mod machine;
mod pool;
mod router;
mod serving;
mod shared;
mod stats;
pub(crate) mod wants;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use keyrail_broker::{Broker, Error, ReadySource};
use keyrail_ordering::{Catalog, GroupName, HaltRecord, Held, OwnerId, PartitionSpec};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{info, warn};

pub use handler::{Handler, HandlerInstance, WasmHandler};
pub use machine::{Apart, Machine, SystemMachine};
pub use serving::{Serving, Version};
pub use stats::Stats;

use crate::config::EngineConfig;
use crate::telemetry::Telemetry;
use gauges::Gauges;
use heartbeat::HeartbeatThread;
use shared::Shared;

/// How often an engine that waits to be idle looks.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A handler that the catalog does not have.
    #[error("handler {0} is not registered; see keyrail register")]
    NotRegistered(String),
    /// The broker failed.
    #[error(transparent)]
    Broker(#[from] Error),
    /// The machine has no thread to give.
    #[error("cannot start the heartbeat's thread: {0}")]
    Thread(std::io::Error),
}

/// What was left when everything had been settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Partitions that stand still.
    pub halted: u64,
    /// Outbox records that could not be published.
    pub abandoned: u64,
}

/// A partition that stands still under a canary.
#[derive(Debug, Clone)]
pub struct CanaryHalt {
    /// Which.
    pub partition: Arc<PartitionSpec>,
    /// The canary's revision.
    pub revision: u64,
    /// Why it stands still.
    pub record: HaltRecord,
}

/// Canary halts that wait to be heard; a few are enough to take a canary back.
const CANARY_HALTS_MAX: usize = 64;

/// Where an engine runs.
#[derive(Clone)]
pub struct Surroundings {
    /// The machine.
    pub machine: Arc<dyn Machine>,
    /// Where it counts.
    pub telemetry: Telemetry,
}

impl Default for Surroundings {
    /// The real machine, and counters of its own.
    fn default() -> Self {
        Self { machine: Arc::new(SystemMachine), telemetry: Telemetry::default() }
    }
}

/// A running engine.
pub struct Engine {
    shared: Arc<Shared>,
    canary_halts: Option<mpsc::Receiver<CanaryHalt>>,
    heartbeat: HeartbeatThread,
    tasks: JoinSet<()>,
}

impl Engine {
    /// Starts serving these handlers; others may come later, see [`Handlers`]. They must be registered in the broker's
    /// catalog already.
    pub async fn start(
        broker: Arc<dyn Broker>,
        handlers: Vec<Arc<dyn Handler>>,
        config: &EngineConfig,
        owner: OwnerId,
    ) -> Result<Self, StartError> {
        Self::start_in(Surroundings::default(), broker, handlers, config, owner).await
    }

    /// The same on another machine than the real one, or where somebody looks at what it counts.
    pub async fn start_in(
        surroundings: Surroundings,
        broker: Arc<dyn Broker>,
        handlers: Vec<Arc<dyn Handler>>,
        config: &EngineConfig,
        owner: OwnerId,
    ) -> Result<Self, StartError> {
        let (catalog, _) = broker.catalog().await?;
        for handler in &handlers {
            let name = &handler.metadata().name;
            if ReadySource::of_handler(&catalog, name).is_empty() {
                return Err(StartError::NotRegistered(name.to_string()));
            }
        }
        let (canary_halts, heard) = mpsc::channel(CANARY_HALTS_MAX);
        let Surroundings { machine, telemetry } = surroundings;
        let shared = Arc::new(Shared::new(machine, telemetry, broker, config.clone(), owner, catalog, canary_halts));
        for handler in handlers {
            shared.served.set(handler.metadata().name.clone(), Serving::all(Version::local(handler)));
        }
        shared.prepare_metrics();
        shared.telemetry.show(Arc::new(Gauges::of(&shared)));
        let sources = shared.sources();
        let bells = shared.broker.bells(sources.clone()).await?;
        let heartbeat = HeartbeatThread::start(&shared).map_err(StartError::Thread)?;
        let mut tasks = JoinSet::new();
        let mut spawn = |task| tasks.spawn(shared.machine.hosted(task));
        info!(owner = %shared.owner, sources = sources.len(), "engine started");
        spawn(Box::pin(discovery::run(shared.clone(), sources, bells)));
        spawn(Box::pin(router::run(shared.clone())));
        spawn(Box::pin(housekeeper::run(shared.clone())));
        Ok(Self { shared, canary_halts: Some(heard), heartbeat, tasks })
    }

    /// What it serves, to be changed while it runs.
    pub fn handlers(&self) -> Handlers {
        Handlers(self.shared.clone())
    }

    /// Partitions that halt under a canary, for whoever takes canaries back. Once.
    pub fn canary_halts(&mut self) -> Option<mpsc::Receiver<CanaryHalt>> {
        self.canary_halts.take()
    }

    /// Counters since the start.
    pub fn stats(&self) -> Stats {
        Stats::of(self.shared.metrics(), self.shared.holdings.len())
    }

    /// Waits until everything that was published for these handlers, by whomever, is settled or halted, and the outbox
    /// is empty.
    pub async fn until_idle(&self) -> Idle {
        loop {
            match self.shared.broker.backlog(&self.shared.sources()).await {
                Ok(backlog) if backlog.ready == 0 && backlog.outbox == 0 && self.shared.holdings.len() == 0 => {
                    return Idle { halted: backlog.halted, abandoned: backlog.abandoned };
                }
                Ok(_) => {}
                Err(error) => warn!(%error, "cannot read the backlog"),
            }
            tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
        }
    }

    /// Takes nothing new, lets running events finish for `grace_ms`, stops those that do not, releases every lease.
    pub async fn shutdown(mut self, grace_ms: u64) {
        let shared = &self.shared;
        shared.stopping.cancel();
        // The others hear of it first, so that what is given up from here on goes to those who stay. What is stored of an
        // earlier announcement is taken out before.
        let _ = futures::FutureExt::now_or_never(shared.announced.notified());
        shared.announce_now.notify_one();
        shared.until_announced().await;
        shared.holdings.drain_all();
        let stop_ms = Duration::from_millis(shared.config.stop_max_ms);
        if tokio::time::timeout(Duration::from_millis(grace_ms), shared.until_done()).await.is_err() {
            warn!(owned = shared.holdings.len(), grace_ms, "the grace period is over: stopping running events");
            shared.cancelled.cancel();
            if tokio::time::timeout(stop_ms, shared.until_done()).await.is_err() {
                warn!(owned = shared.holdings.len(), "leases could not be released; they lapse by themselves");
            }
        }
        self.heartbeat.stop();
        match tokio::time::timeout(stop_ms, shared.broker.leave(&shared.owner)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "this host could not be struck off the members; it lapses by itself"),
            Err(_) => warn!("this host could not be struck off the members in time; it lapses by itself"),
        }
        self.tasks.shutdown().await;
    }
}

/// What an engine serves. Keys stay owned whatever changes here: a key gets another version between two of its events.
#[derive(Clone)]
pub struct Handlers(Arc<Shared>);

impl Handlers {
    /// Serves a handler, which must be registered, in these versions from here on. False if it was so already.
    pub fn set(&self, group: &GroupName, serving: Serving) -> bool {
        self.0.served.set(group.clone(), serving)
    }

    /// The handlers that are served.
    pub fn groups(&self) -> Vec<GroupName> {
        self.0.served.groups()
    }

    /// Serves a handler no more: its keys are given up between two events.
    pub fn remove(&self, group: &GroupName) -> bool {
        self.0.served.remove(group)
    }

    /// The versions that this host has or is getting, for the others to know.
    pub fn tell(&self, held: Vec<Held>) {
        self.0.set_held(held);
    }

    /// The catalog, and every change of it.
    pub fn catalogs(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.catalogs()
    }
}
