//! What is stored: one file per kind of record, with its table, its encoding and its life.
//!
//! Keys are tuples of texts and numbers, so a range over a prefix is a list in order. A stream is (category, key, lane),
//! a partition (group, category, key), where a process manager's category is empty, since no category's name is.

pub(super) mod attempts;
pub(super) mod audit;
pub(super) mod catalog;
pub(super) mod counters;
pub(super) mod cursors;
pub(super) mod dead;
pub(super) mod deliveries;
pub(super) mod entries;
pub(super) mod halts;
pub(super) mod leases;
pub(super) mod modules;
pub(super) mod outbox;
pub(super) mod paused;
pub(super) mod ready;
pub(super) mod seen;
pub(super) mod state;
pub(super) mod streams;
pub(super) mod turns;
pub(super) mod versions;

use keyrail_ordering::{CategoryName, GroupName, Key, KeyRules, Lane, PartitionId, Scope, StreamId};

use crate::{Error, ReadySource};

/// (category, key, lane).
pub(super) type StreamKey = (&'static str, &'static str, u8);
/// (group, category, key).
pub(super) type PartitionKey = (&'static str, &'static str, &'static str);

pub(super) fn stream_key(stream: &StreamId) -> (&str, &str, u8) {
    let key = stream.key.as_ref().map_or("", Key::as_str);
    (stream.category.as_str(), key, lane_number(stream.lane))
}

pub(super) fn lane_number(lane: Lane) -> u8 {
    match lane {
        Lane::Primary => 0,
        Lane::Backfill => 1,
    }
}

pub(super) fn lane_of(number: u8) -> Result<Lane, Error> {
    match number {
        0 => Ok(Lane::Primary),
        1 => Ok(Lane::Backfill),
        other => Err(Error::Corrupt(format!("a stream has the lane {other}"))),
    }
}

pub(super) fn partition_key(partition: &PartitionId) -> (&str, &str, &str) {
    let category = match &partition.scope {
        Scope::Key { category, .. } => category.as_str(),
        Scope::Correlation { .. } => "",
    };
    (partition.group.as_str(), category, partition.key().as_str())
}

/// (group, category) of a source.
pub(super) fn source_key(source: &ReadySource) -> (&str, &str) {
    match source {
        ReadySource::Category { group, category } | ReadySource::Shared { group, category } => {
            (group.as_str(), category.as_str())
        }
        ReadySource::ProcessManager { group } => (group.as_str(), ""),
    }
}

pub(super) fn source_of(partition: &PartitionId) -> ReadySource {
    let group = partition.group.clone();
    match &partition.scope {
        Scope::Key { category, .. } => ReadySource::Category { group, category: category.clone() },
        Scope::Correlation { .. } => ReadySource::ProcessManager { group },
    }
}

pub(super) fn partition_of(source: &ReadySource, key: Key) -> PartitionId {
    match source {
        ReadySource::Category { group, category } => PartitionId::of_key(group.clone(), category.clone(), key),
        ReadySource::Shared { .. } => unreachable!("a source without keys lists none"),
        ReadySource::ProcessManager { group } => {
            PartitionId { group: group.clone(), scope: Scope::Correlation { value: key } }
        }
    }
}

/// A source from its two stored names.
pub(super) fn parse_source(group: &str, category: &str) -> Result<ReadySource, Error> {
    let group = GroupName::parse(group).map_err(corrupt)?;
    if category.is_empty() {
        return Ok(ReadySource::ProcessManager { group });
    }
    Ok(ReadySource::Category { group, category: CategoryName::parse(category).map_err(corrupt)? })
}

/// A stored key. The catalog's rules were applied when it came in; they may have changed since, and must not make it
/// unreadable.
pub(super) fn parse_key(text: &str) -> Result<Key, Error> {
    Key::parse(text, &KeyRules { backfill_word: String::new() }).map_err(corrupt)
}

pub(super) fn corrupt(error: impl std::fmt::Display) -> Error {
    Error::Corrupt(error.to_string())
}

/// The file failed. A batch in which that happened is undone as a whole.
pub(super) fn storage(error: impl Into<redb::Error>) -> Error {
    Error::Unavailable(format!("the embedded store failed: {}", error.into()))
}
