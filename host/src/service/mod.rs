//! What can be done to a broker from outside: register, deploy, publish, look, operate.
//!
//! The command line and the HTTP API both go through here, so a file that is opened directly and a running host behave
//! alike. Knows brokers by their traits only, and nothing of terminals, HTTP or WebAssembly.

mod change;
mod deploy;
#[cfg(test)]
mod fake;
mod ids;
mod inspect;
mod lane;
mod line;
mod lines;
mod operate;
mod publish;
mod recording;
mod register;
mod report;
mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use keyrail_broker::Broker;

pub use change::{ChangeError, change_catalog};
pub use deploy::{
    CanaryView, DeployRequest, HandlerHost, HandlerView, HostState, Proposed, RevisionView, RolledBack, Rollout,
    RolloutHost, RolloutState,
};
pub use inspect::{CatalogView, Cursor, CursorError, InspectError, Page};
pub use line::{LaneName, LineError, LineLimits, read_line};
pub use lines::{LineSplitter, LineText, RawLine};
pub use operate::{
    AuditView, ContentView, DeadLetterView, EntryName, EventView, HaltedRow, HeadView, NextTry, OperationError,
    PausedView, WhoAndWhy,
};
pub use publish::PublishOptions;
pub use recording::{RecordFrom, RecordedEntry, Recording, Value};
pub use register::{Change, RefusedHandler, RegisterError, Registered, Registration};
pub use report::{Outcome, Report, Stop, StopKind};
pub use rows::{Halted, Row, State, Values, VersionView};

use crate::config::PublishConfig;
use crate::telemetry::Telemetry;

/// The operations on one broker.
#[derive(Clone)]
pub struct Service {
    broker: Arc<dyn Broker>,
    publish: PublishConfig,
    telemetry: Telemetry,
}

impl Service {
    /// Over this broker.
    pub fn new(broker: Arc<dyn Broker>, publish: PublishConfig) -> Self {
        Self { broker, publish, telemetry: Telemetry::default() }
    }

    /// The same, counting there.
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// Where it counts.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The broker.
    pub fn broker(&self) -> &Arc<dyn Broker> {
        &self.broker
    }

    /// Size of an input line.
    pub fn line_max_bytes(&self) -> usize {
        self.publish.line_max_bytes
    }
}
