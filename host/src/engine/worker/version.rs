//! Which version of its handler a worker runs: looked at between two events.

use keyrail_ordering::{Event, HaltRecord, Input, Policy};
use tracing::{debug, warn};

use super::Worker;
use crate::engine::CanaryHalt;
use crate::engine::serving::Version;
use crate::engine::shared::Shared;

/// How a partition is run by this version.
pub(super) fn policy(shared: &Shared, version: &Version) -> Policy {
    let config = &shared.config;
    Policy {
        retry: version.handler.retry(&config.retry),
        read_ahead: config.read_ahead(),
        batch: version.handler.batch(&config.commit_batch()),
        linger_ms: config.linger_ms,
        pause_ms: config.pause_ms,
        handler_version: version.label.to_string(),
    }
}

impl Worker {
    /// Whether another version may serve from here on.
    pub(super) fn sees_change(&self) -> bool {
        self.shared.served.changes() != self.seen_changes
    }

    /// Takes the version that serves this key now; false if none does any more. The instance of another one is dropped.
    pub(super) fn choose_version(&mut self) -> bool {
        let changes = self.shared.served.changes();
        if changes == self.seen_changes {
            return true;
        }
        let partition = &self.session.lease.partition.id;
        let Some(version) = self.shared.served.for_key(&partition.group, partition.key()) else {
            self.holding.drain();
            return false;
        };
        self.seen_changes = changes;
        if !version.is_same(&self.version) {
            debug!(%partition, from = %self.version.label, to = %version.label, "another version serves from here on");
            self.instance = None;
            self.version = version;
            self.waits_for_version = false;
            self.partition.set_policy(policy(&self.shared, &self.version));
        }
        true
    }

    /// The event is of a type that only the registered version takes. Passing over it would lose it.
    pub(super) fn wait_for_version(&mut self, event: &Event) -> Input {
        if !std::mem::replace(&mut self.waits_for_version, true) {
            let group = &self.session.lease.partition.id.group;
            warn!(
                handler = %group, served = %self.version.label, category = %event.category, message = %event.name,
                next = format!("keyrail handlers {group}"),
                "an event waits for the version of its handler that is registered: this host serves another"
            );
        }
        self.put_off(event, "it waits for the version that is registered")
    }

    /// A canary whose keys halt is to be taken back.
    pub(super) fn tell_of_canary(&self, record: &HaltRecord) {
        let Some(revision) = self.version.revision.filter(|_| self.version.is_canary) else { return };
        let halt = CanaryHalt { partition: self.session.lease.partition.clone(), revision, record: record.clone() };
        if self.shared.canary_halts.try_send(halt).is_err() {
            debug!("nobody listens for halted canaries, or many halted at once");
        }
    }
}
