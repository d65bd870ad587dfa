//! What a broker is to the engine. Each trait is one concern; [`Broker`] is all of them.
//!
//! Here is what an owner needs. [`inspect`] and [`operate`] are for operators, [`shared`] for categories that are not
//! partitioned, [`members`] for who is there, [`modules`] for the components, [`housekeeping`] for what nobody waits for.

pub(crate) mod housekeeping;
pub(crate) mod inspect;
pub(crate) mod members;
pub(crate) mod modules;
pub(crate) mod operate;
pub(crate) mod shared;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use keyrail_ordering::{
    AttemptsRecord, Capabilities, Catalog, CategoryName, Effects, Entry, EntryId, EntryRef, Event, GroupName,
    HaltRecord, Key, Lane, Lease, Member, OwnerId, PartitionSpec, Role, StreamId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AcquireError, Error, FencedError, PublishError};
use housekeeping::Housekeeping;
use inspect::Inspect;
use members::Members;
use modules::Modules;
use operate::Operate;
use shared::SharedLog;

/// A validated event on its way into a stream.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The event.
    pub event: Event,
    /// The field its key came from; compared with the category's in the same step.
    pub key_field: Option<String>,
    /// Which lane.
    pub lane: Lane,
    /// How long its id is remembered, so that a repeated publish is answered with the first one's entry; 0 for not at all.
    pub dedupe_window_ms: u64,
}

/// Where an event went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Its entry.
    pub id: EntryId,
    /// Whether its id was there already; nothing was written then.
    pub duplicate: bool,
}

/// Appending events.
#[async_trait]
pub trait Publish: Send + Sync {
    /// Appends the events in order, as one step or a few, and answers in the same order. The first refusal ends the
    /// batch: the rest is answered with [`PublishError::NotTried`].
    async fn publish(&self, batch: Vec<Publication>) -> Result<Vec<Result<Published, PublishError>>, Error>;
}

/// Where a group's ready partitions are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadySource {
    /// Keys of one category.
    Category {
        /// The group.
        group: GroupName,
        /// The category.
        category: CategoryName,
    },
    /// Correlation values of a process manager.
    ProcessManager {
        /// The group.
        group: GroupName,
    },
    /// A category that is not partitioned: there are no keys, only a [`Bell::Look`] when it got an event.
    Shared {
        /// The group.
        group: GroupName,
        /// The category.
        category: CategoryName,
    },
}

impl ReadySource {
    /// The group.
    pub fn group(&self) -> &GroupName {
        match self {
            Self::Category { group, .. } | Self::ProcessManager { group } | Self::Shared { group, .. } => group,
        }
    }

    /// Where a registered handler's work is listed. None for a handler that is not.
    pub fn of_handler(catalog: &Catalog, group: &GroupName) -> Vec<Self> {
        let Some(handler) = catalog.handlers.get(group) else { return vec![] };
        let group = group.clone();
        if handler.metadata.role == Role::ProcessManager {
            return vec![Self::ProcessManager { group }];
        }
        let source = |category: &CategoryName| {
            let partitioned = catalog.categories.get(category).is_some_and(|entry| entry.key_field.is_some());
            let (group, category) = (group.clone(), category.clone());
            if partitioned { Self::Category { group, category } } else { Self::Shared { group, category } }
        };
        handler.metadata.categories().into_iter().map(source).collect()
    }

    /// The partition of a key that this source lists. None for a source without keys, or of a handler that is not
    /// registered.
    pub fn partition(&self, catalog: &Catalog, key: Key) -> Option<PartitionSpec> {
        match self {
            Self::Category { group, category } => Some(PartitionSpec::of_key(group.clone(), category.clone(), key)),
            Self::ProcessManager { group } => {
                let handler = catalog.handlers.get(group)?;
                let categories = handler.metadata.categories();
                Some(PartitionSpec::of_correlation(group.clone(), categories, key))
            }
            Self::Shared { .. } => None,
        }
    }
}

/// A bell: this partition has work. A hint, never relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bell {
    /// A key was added to the ready set of a source.
    Ready {
        /// Which set.
        source: ReadySource,
        /// The key, or the correlation value.
        key: Key,
    },
    /// Look through this source: keys were added without being named, or an event that has no key.
    Look {
        /// Which.
        source: ReadySource,
    },
    /// Records were added to the outbox.
    Outbox,
    /// A member joined, left, or said that it leaves.
    Members,
    /// The catalog was set.
    Catalog,
    /// Bells may have been lost (a reconnect): look through everything.
    Lost,
}

/// Bells as they come. Ends only with the broker.
pub type Bells = BoxStream<'static, Bell>;

/// A part of a ready set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadySet {
    /// Keys that have work due and no owner at the moment.
    pub keys: Vec<Key>,
    /// Where to go on; none at the end.
    pub next: Option<u64>,
    /// How long until the first of the keys that were passed over may be due: its lease lapses unless it is renewed, or
    /// its next try is due. None if none was passed over.
    pub due_ms: Option<u64>,
}

/// What an acquire brings.
#[derive(Debug, Clone)]
pub struct Acquired {
    /// The lease.
    pub lease: Lease,
    /// The first entries: everything pending for the group, lowest first, then new ones.
    pub entries: Vec<Arc<Entry>>,
    /// What is known about the head's failures.
    pub attempts: Option<AttemptsRecord>,
    /// Per stream the id before the first of `entries`.
    pub positions: Vec<(StreamId, EntryId)>,
    /// Whether there may be more.
    pub more: bool,
    /// The partition's whole state, if it is small; none if it must be read by name.
    pub state: Option<Vec<(String, Bytes)>>,
}

/// Owning partitions, and finding those that need an owner.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the partition for `owner`, unless another holds it, or it is halted or paused. Everything pending is claimed. Reads up
    /// to `take_max` entries. A head whose owner died (its lease lapsed and was not released) counts one crash.
    async fn acquire(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        ttl_ms: u64,
        take_max: usize,
    ) -> Result<Acquired, AcquireError>;

    /// Gives the lease up; entries that were read ahead go back, and a bell rings if there is work. A lease that is gone
    /// already is no error.
    async fn release(&self, lease: &Lease) -> Result<(), Error>;

    /// A renewer with a connection of its own, to be used on a thread of its own.
    fn heartbeat(&self) -> Box<dyn Heartbeat>;

    /// Looks through a ready set for up to `limit` keys that are due, not paused and without an owner, from `cursor` on (0
    /// is the start).
    async fn ready(&self, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error>;

    /// Listens for the bells of these sources, of the outbox, of the members and of the catalog.
    async fn bells(&self, sources: Vec<ReadySource>) -> Result<Bells, Error>;
}

/// Renewing leases.
#[async_trait]
pub trait Heartbeat: Send {
    /// Renews many leases in one call; answers for each whether it is still held.
    async fn renew(&mut self, leases: &[Lease], ttl_ms: u64) -> Result<Vec<bool>, Error>;

    /// Tells that this member is there, for `ttl_ms` from now; answers with all that are. [`Bell::Members`] rings if it is
    /// new, or leaves, or serves other groups than before.
    async fn announce(&mut self, member: &Member, ttl_ms: u64) -> Result<Vec<Member>, Error>;
}

/// Entries that were read.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    /// The entries, in order.
    pub entries: Vec<Arc<Entry>>,
    /// The head's failures; only after a recovering take.
    pub attempts: Option<AttemptsRecord>,
    /// Whether there may be more.
    pub more: bool,
}

/// What a commit settles and writes.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The entries that it settles, in order, from the head on. Never empty; all of one stream.
    pub entries: Vec<EntryRef>,
    /// What they change.
    pub effects: Effects,
    /// Read up to this many new entries in the same step; 0 for none.
    pub take_max: usize,
    /// Give the lease up in the same step if nothing is left to read or pending.
    pub release: bool,
    /// The version that handled the first of `entries`, to be put on record; none if it is the one that handled what was
    /// settled last.
    pub version: Option<Arc<str>>,
}

/// What a commit answers.
#[derive(Debug, Clone, Default)]
pub struct Committed {
    /// New entries.
    pub entries: Vec<Arc<Entry>>,
    /// Whether there may be more.
    pub more: bool,
    /// Whether the lease went.
    pub released: bool,
}

/// The log of an owned partition. Everything here is fenced.
#[async_trait]
pub trait Log: Send + Sync {
    /// Reads up to `max` new entries; with `recover` everything pending first, lowest id first. When nothing at all is
    /// left the partition leaves the ready set.
    async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError>;

    /// One value of the partition's state.
    async fn state(&self, lease: &Lease, name: &str) -> Result<Option<Bytes>, FencedError>;

    /// Settles the head, with its effects.
    async fn commit(&self, lease: &Lease, commit: Commit) -> Result<Committed, FencedError>;

    /// Records the `attempt`-th failed try of the head. A repeat of the same attempt changes nothing.
    async fn fail(
        &self,
        lease: &Lease,
        head: &EntryRef,
        attempt: u32,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError>;

    /// Lets the partition stand still on its head and gives the lease up.
    async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError>;
}

/// The catalog as it is stored.
#[async_trait]
pub trait CatalogStore: Send + Sync {
    /// What this broker can do.
    fn capabilities(&self) -> Capabilities;

    /// The catalog and its version; version 0 is the empty one.
    async fn catalog(&self) -> Result<(Catalog, u64), Error>;

    /// Sets the catalog if its version is still `expected`; answers with the new version, or none if somebody else was
    /// faster. In the same step the categories' groups and key fields become visible to publishers, [`Bell::Catalog`] rings, and a new group's
    /// ready set is filled with every key that has entries. A category's key that differs while it has entries is refused.
    async fn set_catalog(&self, catalog: &Catalog, expected: u64) -> Result<Option<u64>, Error>;
}

/// What a routing step did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routed {
    /// Records that were published.
    pub published: usize,
    /// Records that never can be, each with its reason: kept aside for the operator.
    pub abandoned: Vec<String>,
    /// Whether there are more records.
    pub more: bool,
}

/// Moving outbox records into their streams.
#[async_trait]
pub trait Router: Send + Sync {
    /// Takes the oldest `max` records and publishes them in order, in one step: any number of routers keep the order of
    /// commit. `dedupe_window_ms` as in [`Publication`].
    async fn route(&self, max: usize, dedupe_window_ms: u64) -> Result<Routed, Error>;
}

/// A whole broker.
pub trait Broker:
    Publish + Leases + Log + SharedLog + CatalogStore + Modules + Router + Inspect + Members + Operate + Housekeeping
{
    /// Where it is, for logs and errors; never with a password.
    fn address(&self) -> String;
}
