//! The embedded broker: one process, a file or memory, on the ACID store `redb`.
//!
//! - [`records`] has what is stored: one file per kind of record, with its encoding and its life;
//! - [`writer`] is the one place that writes: a thread with many operations a transaction, or the caller;
//! - [`live`] has the leases of this process and what was delivered under them;
//! - [`members`] has who is there, [`deliveries`] who has which entry of a category that is not partitioned;
//! - the traits are implemented in files of their names; operating is in `operate`, `pausing` and `letters`.
//!
//! There is no list of pending entries: a group's cursor in each stream is durable, and what was delivered beyond it is
//! known to the lease alone. A partition serves one stream at a time, so it has one head.
//!
//! Must not know: handlers, hosts, the network. Invariant: whatever was answered is on the disk.

mod bells;
mod catalog;
mod clock;
mod deliveries;
mod diagnose;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod faults;
mod find;
mod housekeeping;
mod inspect;
mod lag;
mod leases;
mod letters;
mod live;
mod log;
mod members;
mod modules;
mod open;
mod operate;
mod pausing;
mod publish;
mod reading;
mod records;
mod router;
mod settings;
mod shared_log;
mod tables;
mod writer;

use std::sync::Arc;

use redb::Database;
use tokio::sync::broadcast;

pub use clock::ClockFn;
pub use diagnose::diagnose;
pub use open::OpenError;
pub use settings::{EmbeddedSettings, Writing};

use crate::{Bell, Broker, Error};
use deliveries::LiveDeliveries;
use live::LiveLeases;
use members::LiveMembers;
use writer::Writer;

/// A broker in this process. Dropping it frees its file.
pub struct EmbeddedBroker {
    shared: Arc<Shared>,
    writer: Writer,
}

/// What the writer and the readers have in common.
struct Shared {
    database: Database,
    store: Store,
    live: Arc<LiveLeases>,
    members: Arc<LiveMembers>,
    deliveries: LiveDeliveries,
    bells: broadcast::Sender<Bell>,
    settings: EmbeddedSettings,
    address: String,
}

/// What the database is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    File,
    Memory,
}

impl Shared {
    /// By the clock of leases.
    fn now_ms(&self) -> u64 {
        (self.settings.lease_clock)()
    }

    /// By the wall clock.
    fn wall_ms(&self) -> u64 {
        (self.settings.wall_clock)()
    }

    /// What is in memory is ahead of the store, and owners may know of entries that are not delivered: nobody owns
    /// anything any more.
    fn disown_all(&self) -> Result<(), Error> {
        self.live.clear();
        self.deliveries.load(&self.database, self.now_ms(), self.wall_ms())
    }

    fn ring(&self, bell: Bell) {
        // Nobody may be listening.
        let _ = self.bells.send(bell);
    }
}

impl EmbeddedBroker {
    /// Reads on a thread of its own, if there may be threads: for what may be long.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self.shared.settings.writing == Writing::Inline {
            return work(&self.shared);
        }
        let shared = self.shared.clone();
        let task = tokio::task::spawn_blocking(move || work(&shared));
        task.await.unwrap_or_else(|error| Err(Error::Unavailable(format!("a reading thread failed: {error}"))))
    }
}

impl Broker for EmbeddedBroker {
    fn address(&self) -> String {
        self.shared.address.clone()
    }
}

#[cfg(any(test, feature = "contract"))]
impl EmbeddedBroker {
    /// Puts bytes in place of a stored entry, for tests of what cannot be read.
    pub async fn overwrite_entry(&self, at: keyrail_ordering::EntryRef, bytes: Vec<u8>) -> Result<(), Error> {
        self.writer
            .call(move |batch| {
                batch.writes();
                let key = records::entries::key(&at.stream, at.id);
                batch.tables.entries.insert(key, bytes.as_slice()).map_err(records::storage)?;
                Ok(())
            })
            .await
    }

    /// How many entries are stored in all, for tests of what is dropped.
    pub fn entries_stored(&self) -> Result<u64, Error> {
        use redb::{ReadableDatabase, ReadableTableMetadata};
        let txn = self.shared.database.begin_read().map_err(records::storage)?;
        txn.open_table(records::entries::TABLE).map_err(records::storage)?.len().map_err(records::storage)
    }
}
