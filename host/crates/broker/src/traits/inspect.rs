//! Looking without touching: partitions, their state, what waits, what was published.
//!
//! Everything here is for people and their instruments. It may be a moment old when it arrives, and no step of an owner
//! depends on it. Invariant: one call costs a bounded amount, whatever the broker holds, so that looking stops nobody.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{
    CategoryName, Entry, EntryId, EntryRef, Generation, HaltRecord, Key, OwnerId, PartitionId, StreamId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ReadySource;
use super::operate::Rows;
use crate::Error;

/// One partition as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionRow {
    /// Which.
    pub partition: PartitionId,
    /// The last entry of its primary stream.
    pub last: Option<EntryId>,
    /// The last settled entry.
    pub settled: Option<EntryId>,
    /// Entries that are not settled.
    pub waiting: u64,
    /// Who owns it now, or owned it last.
    pub owner: Option<OwnerId>,
    /// At which generation.
    pub generation: Option<Generation>,
    /// Whether `owner` holds the lease now.
    pub owned: bool,
    /// Failed tries of the head.
    pub attempts: u32,
    /// Why it stands still, if it does.
    pub halted: Option<HaltRecord>,
    /// The versions that handled its events, oldest first; the last eight.
    pub versions: Vec<VersionSince>,
}

/// From which entry on a version handled the events of a partition, until the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionSince {
    /// The first entry that it handled.
    pub from: EntryRef,
    /// The version.
    pub version: String,
}

/// The state of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// The category; none for a process manager.
    pub category: Option<CategoryName>,
    /// The key, or the correlation value.
    pub key: Key,
    /// Its values by name.
    pub values: Vec<(String, Bytes)>,
}

/// A partition as it is now, for a trial of its handler elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its state, by name.
    pub state: Vec<(String, Bytes)>,
    /// Entries that are kept of the streams that were asked for: settled ones too. In the order of the streams, then of ids.
    pub entries: Vec<Arc<Entry>>,
}

/// What is left to do in the whole fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Backlog {
    /// Partitions in the ready sets, those that are paused too; and unsettled entries of categories without partitions.
    pub ready: u64,
    /// Records in the outbox.
    pub outbox: u64,
    /// Outbox records that were abandoned.
    pub abandoned: u64,
    /// Partitions that stand still.
    pub halted: u64,
}

/// Which partitions are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// By key.
    pub key: WantedKey,
    /// By how they stand.
    pub standing: Standing,
}

/// Which keys are listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WantedKey {
    /// All.
    #[default]
    Any,
    /// This one.
    Is(Key),
    /// Those that begin so.
    StartsWith(String),
}

impl WantedKey {
    pub(crate) fn has(&self, key: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Is(wanted) => wanted.as_str() == key,
            Self::StartsWith(prefix) => key.starts_with(prefix.as_str()),
        }
    }
}

/// How a partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Anyhow.
    #[default]
    Any,
    /// It has unsettled entries, and does not stand still.
    Waiting,
    /// Somebody holds its lease.
    Owned,
    /// It stands still.
    Halted,
}

/// What a group has before it on one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Lag {
    /// Keys that have work. 0 for a source without keys.
    pub ready: u64,
    /// Keys that stand still.
    pub halted: u64,
    /// Unsettled entries of both.
    pub events: u64,
    /// Whether `events` was counted; otherwise it is reckoned from a sample of the keys.
    pub exact: bool,
    /// When the oldest unsettled entry among the keys that were looked at was recorded, by the broker's clock; none if
    /// nothing waits.
    pub oldest_recorded_at_ms: Option<u64>,
}

/// Where a reader of a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// The entries that follow this one.
    After(EntryId),
    /// The newest entries, as far as they were recorded at this time or later, by the broker's clock.
    Since(u64),
}

/// Entries as somebody reads them who owns nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The broker's time before it read.
    pub at_ms: u64,
    /// Of each stream that was asked for, lowest id first.
    pub entries: Vec<Vec<Arc<Entry>>>,
}

/// See the module. Pages: `cursor` 0 is the start; the answer's cursor is none at the end. A page may be short, or empty, and
/// have a cursor: then there may be more.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// Those partitions of a source that are wanted, in no promised order.
    async fn find(&self, source: &ReadySource, wanted: &Wanted, cursor: u64, limit: usize) -> Rows<PartitionRow>;

    /// All partitions of a source.
    async fn partitions(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<PartitionRow> {
        self.find(source, &Wanted::default(), cursor, limit).await
    }

    /// Keys of a source that have work, whoever owns them.
    async fn waiting_keys(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<Key>;

    /// State of a group's keys, in no promised order.
    async fn states(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<StateRow>;

    /// A partition's state, and up to `limit` entries of each of these streams, from an id on: both as of one moment.
    async fn snapshot(
        &self,
        partition: &PartitionId,
        from: &[(StreamId, EntryId)],
        limit: usize,
    ) -> Result<Snapshot, Error>;

    /// Up to `limit` entries of each of these streams that are kept; settled ones too.
    async fn read_streams(&self, streams: &[(StreamId, ReadFrom)], limit: usize) -> Result<Reading, Error>;

    /// What is left to do for these sources. Of a category that is not partitioned, every unsettled entry counts as ready.
    async fn backlog(&self, sources: &[ReadySource]) -> Result<Backlog, Error>;

    /// What a group has before it. Looks at up to `sample_max` keys that have work and as many that stand still.
    async fn lag(&self, source: &ReadySource, sample_max: usize) -> Result<Lag, Error>;

    /// How many events each of these categories was given since it is counted: published, routed and redriven ones.
    /// None if no event was counted.
    async fn published(&self, categories: &[CategoryName]) -> Result<Vec<Option<u64>>, Error>;

    /// How many events of these categories were set aside and are kept. Where many keys hold some it is at least so many: not every
    /// key is looked at. A store of one host counts those of all categories.
    async fn letters_kept(&self, categories: &[CategoryName]) -> Result<u64, Error>;

    /// How many streams of keys a category has; a key with a backfill lane has two.
    async fn live_keys(&self, category: &CategoryName) -> Result<u64, Error>;
}
