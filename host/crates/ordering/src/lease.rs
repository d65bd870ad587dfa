//! Who owns a partition, and what is remembered about its head.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CategoryName, EntryRef, GroupName, Key, Lane, StreamId};

/// What a partition spans.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Scope {
    /// One key of one category.
    Key {
        /// The category.
        category: CategoryName,
        /// The key.
        key: Key,
    },
    /// A process manager's correlation value, over several categories.
    Correlation {
        /// The value.
        value: Key,
    },
}

/// The unit of ownership.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PartitionId {
    /// The handler's group.
    pub group: GroupName,
    /// What it spans.
    pub scope: Scope,
}

impl PartitionId {
    /// The partition of one key of one category.
    pub fn of_key(group: GroupName, category: CategoryName, key: Key) -> Self {
        Self { group, scope: Scope::Key { category, key } }
    }

    /// The key, or the correlation value.
    pub fn key(&self) -> &Key {
        match &self.scope {
            Scope::Key { key, .. } => key,
            Scope::Correlation { value } => value,
        }
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Key { category, key } => write!(f, "{category}/{key} ({})", self.group),
            Scope::Correlation { value } => write!(f, "{value} ({})", self.group),
        }
    }
}

/// A partition with the streams that it reads, in the order in which take prefers them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpec {
    /// Which partition.
    pub id: PartitionId,
    /// Its streams; never empty.
    pub streams: Vec<StreamId>,
}

impl PartitionSpec {
    /// The partition of a process manager's correlation value: its primary stream in each category, then the backfill lanes.
    pub fn of_correlation<'a>(
        group: GroupName,
        categories: impl IntoIterator<Item = &'a CategoryName> + Clone,
        value: Key,
    ) -> Self {
        let lane = |lane| {
            let value = value.clone();
            categories.clone().into_iter().map(move |category| StreamId {
                category: category.clone(),
                key: Some(value.clone()),
                lane,
            })
        };
        let streams = lane(Lane::Primary).chain(lane(Lane::Backfill)).collect();
        Self { id: PartitionId { group, scope: Scope::Correlation { value } }, streams }
    }

    /// The partition of one key: its primary stream, then its backfill lane.
    pub fn of_key(group: GroupName, category: CategoryName, key: Key) -> Self {
        let lane = |lane| StreamId { category: category.clone(), key: Some(key.clone()), lane };
        let streams = vec![lane(Lane::Primary), lane(Lane::Backfill)];
        Self { id: PartitionId::of_key(group, category, key), streams }
    }
}

/// A host process, unique per process start. Never contains `:`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct OwnerId(Arc<str>);

impl OwnerId {
    /// From a name without `:`; anything else is the caller's mistake.
    pub fn new(name: &str) -> Self {
        assert!(!name.is_empty() && !name.contains(':'), "owner id {name:?} is empty or has a colon");
        Self(name.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Grows each time a partition changes hands. The fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The right to act for a partition, as an owner presents it: every fenced operation takes one. Whether it still holds
/// is the broker's to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What is owned.
    pub partition: Arc<PartitionSpec>,
    /// By whom.
    pub owner: OwnerId,
    /// At which change of hands.
    pub generation: Generation,
}

impl Lease {
    /// `{owner}:{generation}`, as the lease record and the consumer name hold it.
    pub fn token(&self) -> String {
        let mut digits = itoa::Buffer::new();
        [self.owner.as_str(), ":", digits.format(self.generation.0)].concat()
    }
}

/// What is durably known about the head's failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptsRecord {
    /// The head.
    pub head: EntryRef,
    /// How many tries failed.
    pub attempts: u32,
    /// How many hosts died while it was the head.
    pub crashes: u32,
    /// How long until the next try is due; 0 when it is. Relative, so that no host's clock matters.
    pub wait_ms: u64,
    /// What the last try said.
    pub last_error: String,
}

/// Why a partition halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HaltCause {
    /// The head used up its attempts.
    Poison,
    /// The handler said that no try can succeed.
    Rejected,
    /// The head used up its crashes.
    Crashed,
    /// An entry is gone that was due.
    Missing,
    /// The entry cannot be read as an event.
    Undecodable,
}

impl fmt::Display for HaltCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Poison => "poison",
            Self::Rejected => "rejected",
            Self::Crashed => "crashed",
            Self::Missing => "missing",
            Self::Undecodable => "undecodable",
        })
    }
}

/// A partition that stands still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HaltRecord {
    /// The head it stands on.
    pub head: EntryRef,
    /// Why.
    pub cause: HaltCause,
    /// How many tries failed.
    pub attempts: u32,
    /// What the last one said.
    pub error: String,
    /// The version of the handler that failed.
    pub handler_version: String,
}
