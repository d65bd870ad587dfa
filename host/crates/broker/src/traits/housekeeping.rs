//! What nobody waits for: dropping what all groups settled, and forgetting partitions that hold nothing.

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, EntryId, StreamId};

use crate::Error;

/// How long settled entries are kept. An entry is dropped once every registered group settled it and no limit keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Keep at least this many of the newest entries of each stream.
    pub entries: u64,
    /// Keep entries that are not older than this, by the broker's clock.
    pub age_ms: u64,
}

/// A stream in which nothing is left: no entry, nothing pending, no lease on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleStream {
    /// Which.
    pub stream: StreamId,
    /// The last entry it ever had. As long as this stays, nobody has published.
    pub last: EntryId,
}

/// Keeping the store small.
#[async_trait]
pub trait Housekeeping: Send + Sync {
    /// Drops what retention no longer keeps in one page of a category's streams, and answers with those that are idle
    /// after that. `cursor` 0 is the start; the answer's cursor is none at the end.
    async fn idle_streams(
        &self,
        category: &CategoryName,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<IdleStream>, Option<u64>), Error>;

    /// Forgets those that are still as they were seen: stream, index entry, attempts and last owners go in one step; state
    /// stays. A publisher that comes at the same time is either seen here, or begins the stream anew. Answers with how
    /// many went.
    async fn reap(&self, idle: &[IdleStream]) -> Result<u64, Error>;

    /// How many partitions of a category are in the index.
    async fn live_partitions(&self, category: &CategoryName) -> Result<u64, Error>;
}
