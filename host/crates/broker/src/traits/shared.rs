//! Categories that are not partitioned: one stream, shared by all hosts of a group, in no promised order.
//!
//! There is no lease. What stands in its place is the delivery: (entry, consumer, count). Whoever is given an entry after
//! a minimum idle time raises the count, and from then on the earlier delivery is fenced.

use std::sync::Arc;

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, Effects, Entry, EntryId, GroupName, OwnerId};

use crate::{Error, FencedError};

/// A group's share in a category that is not partitioned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedSource {
    /// The group.
    pub group: GroupName,
    /// The category.
    pub category: CategoryName,
}

/// One entry given to one host.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Which delivery of the entry this is, from 1. What the fenced operations compare.
    pub count: u64,
    /// Failed tries before this one.
    pub attempts: u32,
    /// Hosts that were given it and did not say what became of it.
    pub crashes: u32,
}

/// A delivery as the fenced operations name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryRef {
    /// The entry.
    pub id: EntryId,
    /// As in [`Delivery`].
    pub count: u64,
}

/// What a take brings.
#[derive(Debug, Clone, Default)]
pub struct SharedTaken {
    /// The deliveries.
    pub deliveries: Vec<Delivery>,
    /// Whether there may be more at once.
    pub more: bool,
    /// How long until an entry is due that is not now: its next try, or the idle time of one that nobody settled.
    pub due_ms: Option<u64>,
}

/// The log of categories that are not partitioned.
#[async_trait]
pub trait SharedLog: Send + Sync {
    /// Gives `owner` up to `max` entries: first those whose next try is due, then those that were given to somebody at
    /// least `idle_min_ms` ago and not kept since (each counts a crash), then new ones. Nothing while the category is paused.
    async fn take_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        max: usize,
        idle_min_ms: u64,
    ) -> Result<SharedTaken, Error>;

    /// Tells that these deliveries are being worked on: their idle time begins again. Those that are not this owner's any
    /// more are passed over.
    async fn keep_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error>;

    /// Settles one, with the events that it emits. State has no place here: nothing orders it, so effects with state are
    /// refused.
    async fn commit_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        effects: Effects,
    ) -> Result<(), FencedError>;

    /// Puts a failed try on record; it is due again after `after_ms`, for any host.
    async fn fail_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError>;

    /// Gives these back untried, for any host at once: no try and no crash is counted. Those that are not this owner's
    /// any more are passed over.
    async fn return_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error>;

    /// Moves one that is poison to the category's dead letters, with its tries (those on record and this one) and this
    /// error, and settles it.
    async fn set_aside_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
    ) -> Result<(), FencedError>;
}
