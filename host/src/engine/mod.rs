//! The engine: finds partitions that have work, owns them, and runs one worker on each.
//!
//! It performs what `keyrail_ordering::Partition` decides. It knows the broker and the handlers by their traits only.
//!
//! - [`discovery`] finds keys with work (bells, and a sweep that does not need them) and acquires them;
//! - [`worker`] drives one owned partition;
//! - [`holdings`] is what this process owns: at most one entry a partition, until its worker has really ended;
//! - [`heartbeat`] renews on a thread and a connection of its own;
//! - [`router`] moves outbox records into their streams.

mod call;
mod discovery;
mod handler;
mod heartbeat;
mod holdings;
mod router;
mod shared;
mod stats;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use keyrail_broker::{Broker, Error, ReadySource};
use keyrail_ordering::{OwnerId, Role, SequentialBy};
use tokio::task::JoinSet;
use tracing::{info, warn};

pub use handler::{Handler, HandlerInstance, WasmHandler};
pub use stats::Stats;

use crate::clock;
use crate::config::EngineConfig;
use heartbeat::HeartbeatThread;
use shared::Shared;

/// How often an engine that waits to be idle looks.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing to run.
    #[error("no handler to run")]
    NoHandlers,
    /// A handler of a kind that this release does not run.
    #[error("handler {handler} {why}")]
    Unsupported {
        /// Its name.
        handler: String,
        /// Why.
        why: String,
    },
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

/// A running engine.
pub struct Engine {
    shared: Arc<Shared>,
    sources: Vec<ReadySource>,
    heartbeat: HeartbeatThread,
    tasks: JoinSet<()>,
}

impl Engine {
    /// Starts serving these handlers. They must be registered in the broker's catalog already.
    pub async fn start(
        broker: Arc<dyn Broker>,
        handlers: Vec<Arc<dyn Handler>>,
        config: &EngineConfig,
        owner: OwnerId,
    ) -> Result<Self, StartError> {
        if handlers.is_empty() {
            return Err(StartError::NoHandlers);
        }
        let (catalog, _) = broker.catalog().await?;
        let mut sources = vec![];
        for handler in &handlers {
            sources.extend(sources_of(handler.as_ref(), &catalog)?);
        }
        let bells = broker.bells(sources.clone()).await?;
        let shared = Arc::new(Shared::new(broker, handlers, config.clone(), owner, catalog));
        let heartbeat = HeartbeatThread::start(shared.clone()).map_err(StartError::Thread)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(discovery::run(shared.clone(), sources.clone(), bells));
        tasks.spawn(router::run(shared.clone()));
        info!(owner = %shared.owner, sources = sources.len(), "engine started");
        Ok(Self { shared, sources, heartbeat, tasks })
    }

    /// Counters since the start.
    pub fn stats(&self) -> Stats {
        self.shared.stats.snapshot(self.shared.holdings.len())
    }

    /// Waits until everything that was published for these handlers, by whomever, is settled or halted, and the outbox
    /// is empty.
    pub async fn until_idle(&self) -> Idle {
        loop {
            match self.shared.broker.backlog(&self.sources).await {
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
        self.shared.stopping.cancel();
        self.shared.holdings.drain_all();
        let deadline = clock::now_ms() + grace_ms;
        if tokio::time::timeout(clock::until(deadline), self.shared.holdings.until_empty()).await.is_err() {
            warn!(owned = self.shared.holdings.len(), grace_ms, "the grace period is over: stopping running events");
            self.shared.holdings.cancel_all();
            let stop_ms = self.shared.config.stop_max_ms;
            if tokio::time::timeout(Duration::from_millis(stop_ms), self.shared.holdings.until_empty()).await.is_err() {
                warn!(owned = self.shared.holdings.len(), "leases could not be released; they lapse by themselves");
            }
        }
        self.heartbeat.stop();
        self.tasks.shutdown().await;
    }
}

/// Where a handler's partitions are listed.
fn sources_of(handler: &dyn Handler, catalog: &keyrail_ordering::Catalog) -> Result<Vec<ReadySource>, StartError> {
    let metadata = handler.metadata();
    let unsupported = |why: String| StartError::Unsupported { handler: metadata.name.to_string(), why };
    let group = metadata.name.clone();
    if metadata.role == Role::ProcessManager || matches!(metadata.sequential_by, SequentialBy::Correlation(_)) {
        return Err(unsupported("is a process manager, which this release does not run yet".into()));
    }
    metadata
        .categories()
        .into_iter()
        .map(|category| {
            let partitioned = catalog.categories.get(category).is_some_and(|entry| entry.key_field.is_some());
            if !partitioned {
                return Err(unsupported(format!(
                    "consumes {category}, which no handler partitions; this release runs partitioned categories only: \
                     declare `sequential-by`"
                )));
            }
            Ok(ReadySource::Category { group: group.clone(), category: category.clone() })
        })
        .collect()
}
