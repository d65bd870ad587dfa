//! Events, and where they stand in a stream.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CategoryName, Key, MessageName};

/// An entry's place in its stream: `epoch-sequence`. The epoch is the stream's writer epoch; sequences are contiguous
/// within one. Unique per stream only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct EntryId {
    /// The stream's writer epoch, 1 or more.
    pub epoch: u64,
    /// The place within the epoch, from 0.
    pub sequence: u64,
}

impl EntryId {
    /// An id from its parts.
    pub const fn new(epoch: u64, sequence: u64) -> Self {
        Self { epoch, sequence }
    }

    /// Whether `next` may directly follow this one: the next sequence, or the first of a later epoch.
    pub const fn is_followed_by(self, next: Self) -> bool {
        (next.epoch == self.epoch && next.sequence == self.sequence + 1)
            || (next.epoch > self.epoch && next.sequence == 0)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every commit names several.
        let mut digits = itoa::Buffer::new();
        f.write_str(digits.format(self.epoch))?;
        f.write_str("-")?;
        f.write_str(digits.format(self.sequence))
    }
}

/// A text that is not an `epoch-sequence`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an entry id of the form EPOCH-SEQUENCE")]
pub struct ParseEntryIdError(String);

impl FromStr for EntryId {
    type Err = ParseEntryIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (epoch, sequence) = text.split_once('-')?;
            Some(Self { epoch: epoch.parse().ok()?, sequence: sequence.parse().ok()? })
        };
        parse().ok_or_else(|| ParseEntryIdError(text.into()))
    }
}

/// Which of a key's two logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub enum Lane {
    /// The ordinary one.
    #[default]
    Primary,
    /// Served only while the primary lane is empty.
    Backfill,
}

/// The physical log of one key of one category, in one lane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct StreamId {
    /// The category.
    pub category: CategoryName,
    /// The key; none for a category that is not partitioned.
    pub key: Option<Key>,
    /// The lane.
    pub lane: Lane,
}

impl StreamId {
    /// What stands before an entry's id where operators name it: nothing, `backfill/`, and in a partition over several
    /// categories `payment/` or `payment/backfill/`.
    pub fn prefix(&self, with_category: bool) -> String {
        let category = if with_category { format!("{}/", self.category) } else { String::new() };
        let lane = if self.lane == Lane::Backfill { "backfill/" } else { "" };
        category + lane
    }

    /// The primary stream of a key.
    pub fn primary(category: CategoryName, key: Key) -> Self {
        Self { category, key: Some(key), lane: Lane::Primary }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.category.as_str())?;
        if let Some(key) = &self.key {
            f.write_str("/")?;
            f.write_str(key.as_str())?;
        }
        if self.lane == Lane::Backfill {
            f.write_str(" (backfill)")?;
        }
        Ok(())
    }
}

/// What identifies an entry within a partition, which may have several streams.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct EntryRef {
    /// The stream.
    pub stream: StreamId,
    /// The place in it.
    pub id: EntryId,
}

impl fmt::Display for EntryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.stream, f)?;
        f.write_str(" ")?;
        fmt::Display::fmt(&self.id, f)
    }
}

/// An event as it is published: already validated against the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The event's own id, the same in every delivery. 1 to 256 bytes.
    pub id: Arc<str>,
    /// The category.
    pub category: CategoryName,
    /// The message type.
    pub name: MessageName,
    /// The version of the message type.
    pub version: u32,
    /// The validated key; none for a category that is not partitioned.
    pub key: Option<Key>,
    /// Free headers.
    pub headers: Vec<(String, String)>,
    /// A JSON object in UTF-8.
    pub data: Bytes,
}

/// What an entry holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// An event.
    Event(Event),
    /// Bytes that cannot be read as an event, and why. Poison, not a connection fault.
    Undecodable(String),
    /// The broker knows that the entry was delivered or due, and it is gone: deleted or trimmed by somebody else.
    Missing,
}

/// One event in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub at: EntryRef,
    /// Milliseconds since 1970 by the broker's clock; 0 when unknown.
    pub recorded_at_ms: u64,
    /// What it holds.
    pub content: Content,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_order_as_two_integers_and_round_trip() {
        let ids = ["9-10", "10-2", "10-11"].map(|text| text.parse::<EntryId>().unwrap());
        assert!(ids.is_sorted());
        assert_eq!(ids[2].to_string(), "10-11");
        for text in ["", "1", "1-", "a-1", "1-2-3", "-1-2"] {
            assert!(text.parse::<EntryId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_successor_is_the_next_sequence_or_the_start_of_a_later_epoch() {
        let id = EntryId::new(3, 41);
        assert!(id.is_followed_by(EntryId::new(3, 42)));
        assert!(id.is_followed_by(EntryId::new(7, 0)));
        assert!(!id.is_followed_by(EntryId::new(3, 43)));
        assert!(!id.is_followed_by(EntryId::new(3, 41)));
        assert!(!id.is_followed_by(EntryId::new(7, 1)));
        assert!(!id.is_followed_by(EntryId::new(2, 0)));
    }
}
