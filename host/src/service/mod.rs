//! What can be done to a broker from outside: register, deploy, publish, look, operate.
//!
//! The command line and the HTTP API both go through here, so a file that is opened directly and a running host behave
//! alike. Knows brokers by their traits only, and nothing of terminals, HTTP or WebAssembly.

mod batch;
mod change;
mod cloud_event;
mod deploy;
#[cfg(test)]
mod fake;
mod fleet;
mod ids;
pub mod incoming;
mod inspect;
mod lane;
mod line;
mod lines;
mod operate;
mod overview;
mod publish;
mod recording;
mod register;
mod report;
mod rows;
mod search;
mod tail;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use keyrail_broker::{Broker, Error};
use keyrail_ordering::Catalog;

pub use batch::{Batch, ItemOutcome, ItemState, Verdict};
pub use change::{ChangeError, change_catalog};
pub use deploy::{
    CanaryView, DeployRequest, HandlerHost, HandlerView, HostState, Proposed, RevisionView, RolledBack, Rollout,
    RolloutHost, RolloutState,
};
pub use inspect::{CatalogView, Cursor, CursorError, InspectError, Page};
#[cfg(test)]
pub(crate) use line::tests::catalog as test_catalog;
pub use line::{EventParts, LaneName, LineError, LineLimits, read_line};
pub use lines::{LineSplitter, LineText, RawLine};
pub use operate::{
    AuditView, ContentView, DeadLetterView, EntryName, EventView, HaltedRow, HeadView, NextTry, OperationError,
    PausedView, WhoAndWhy,
};
pub use overview::{CategoryOverview, GroupOverview, LagOverview, Live, OutboxOverview, Overview};
pub use publish::PublishOptions;
pub use recording::{RecordFrom, RecordedEntry, Recording, Value};
pub use register::{Change, RefusedHandler, RegisterError, Registered, Registration};
pub use report::{Outcome, Report, Stop, StopKind};
pub use rows::{Halted, Row, State, Values, VersionView};
pub use search::{Search, Status};
pub use tail::{Following, Tail, Tailed, TailedEntry};

use crate::clock;
use crate::config::{ApiConfig, PublishConfig};
use crate::telemetry::Telemetry;
use overview::Glance;

/// When it was read, and what was found.
type ReadCatalog = (u64, Arc<Catalog>);

/// The operations on one broker.
#[derive(Clone)]
pub struct Service {
    broker: Arc<dyn Broker>,
    publish: PublishConfig,
    catalog: Arc<RwLock<Option<ReadCatalog>>>,
    glance: Arc<Glance>,
    telemetry: Telemetry,
}

impl Service {
    /// Over this broker.
    pub fn new(broker: Arc<dyn Broker>, publish: PublishConfig) -> Self {
        let glance = Glance::new(ApiConfig::default().view_ttl_ms);
        let telemetry = Telemetry::default();
        Self { broker, publish, catalog: Arc::default(), glance: Arc::new(glance), telemetry }
    }

    /// The same, counting there.
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// Where it counts.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The same with an overview that is good for so long.
    pub fn with_view_ttl_ms(self, ttl_ms: u64) -> Self {
        Self { glance: Arc::new(Glance::new(ttl_ms)), ..self }
    }

    /// The broker.
    pub fn broker(&self) -> &Arc<dyn Broker> {
        &self.broker
    }

    /// The catalog as it was at most so long ago. Good enough to publish with: what is older than it seems is found out in the
    /// step that publishes, or is unknown to it.
    async fn recent_catalog(&self, age_max: Duration) -> Result<Arc<Catalog>, Error> {
        let now_ms = clock::now_ms();
        let known = self.catalog.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read_at_ms, catalog)) = known
            && now_ms < read_at_ms + age_max.as_millis() as u64
        {
            return Ok(catalog);
        }
        let catalog = Arc::new(self.broker.catalog().await?.0);
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Some((now_ms, catalog.clone()));
        Ok(catalog)
    }

    /// Size of an input line.
    pub fn line_max_bytes(&self) -> usize {
        self.publish.line_max_bytes
    }
}
