//! What really happened, one fact each: what the checkers are told, and the lines of the trace.
//!
//! Facts of the broker are noted where an operation is applied, whatever its caller learns of it.

use std::fmt;
use std::sync::Arc;

use keyrail_broker::{Delivery, DeliveryRef, HeadAction, SharedSource};
use keyrail_ordering::{
    CategoryName, EntryRef, Generation, GroupName, HaltRecord, Key, Lease, Outgoing, OwnerId, PartitionId, StreamId,
};

/// A number of one handler call.
pub(super) type CallNumber = u64;

/// One owner at one change of hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) partition: PartitionId,
    pub(super) owner: OwnerId,
    pub(super) generation: Generation,
}

impl Holder {
    pub(super) fn of(lease: &Lease) -> Self {
        Self { partition: lease.partition.id.clone(), owner: lease.owner.clone(), generation: lease.generation }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}:{}", self.partition, self.owner, self.generation)
    }
}

/// On whose behalf a handler was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum On {
    /// Of an owned partition.
    Lease(Holder),
    /// Of a category without partitions.
    Shared { owner: OwnerId, group: GroupName },
}

/// How a handler call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEnd {
    Done,
    Failed,
    Deferred,
    /// Dropped: the host stopped it, or died.
    Cancelled,
}

#[derive(Debug, Clone)]
pub(super) enum Fact {
    /// A fault, or what an operator of hosts does. For the trace alone.
    Note(String),
    Published {
        stream: StreamId,
        event_id: Arc<str>,
    },
    /// Entries that were read: what stands where.
    Read {
        entries: Vec<(EntryRef, Arc<str>)>,
    },
    Acquired {
        holder: Holder,
        streams: Vec<StreamId>,
        ttl_ms: u64,
    },
    Renewed {
        holder: Holder,
        ttl_ms: u64,
    },
    /// The lease went.
    Released {
        holder: Holder,
    },
    Committed {
        holder: Holder,
        entries: Vec<EntryRef>,
        emits: Vec<Outgoing>,
        released: bool,
    },
    Failed {
        holder: Holder,
        head: EntryRef,
        attempt: u32,
    },
    Halted {
        holder: Holder,
        record: HaltRecord,
    },
    Acted {
        partition: PartitionId,
        head: EntryRef,
        action: HeadAction,
    },
    Paused {
        category: CategoryName,
        key: Option<Key>,
    },
    Resumed {
        category: CategoryName,
        key: Option<Key>,
    },
    Delivered {
        source: SharedSource,
        owner: OwnerId,
        deliveries: Vec<Delivery>,
    },
    SharedCommitted {
        source: SharedSource,
        owner: OwnerId,
        delivery: DeliveryRef,
        emits: Vec<Outgoing>,
    },
    SharedSetAside {
        source: SharedSource,
        owner: OwnerId,
        delivery: DeliveryRef,
    },
    Routed {
        published: usize,
    },
    Reaped {
        streams: Vec<StreamId>,
        gone: u64,
    },
    CallBegan {
        call: CallNumber,
        on: On,
        entry: EntryRef,
        event_id: Arc<str>,
        attempt: u32,
    },
    CallEnded {
        call: CallNumber,
        how: CallEnd,
    },
}

fn list<T: fmt::Display>(of: impl IntoIterator<Item = T>) -> String {
    of.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

fn place(category: &CategoryName, key: Option<&Key>) -> String {
    key.map_or(category.to_string(), |key| format!("{category}/{key}"))
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(text) => write!(f, "-- {text}"),
            Self::Published { stream, event_id } => write!(f, "published {event_id} in {stream}"),
            Self::Read { entries } => {
                write!(f, "read [{}]", list(entries.iter().map(|(at, event)| format!("{at} = {event}"))))
            }
            Self::Acquired { holder, ttl_ms, .. } => write!(f, "acquired {holder} for {ttl_ms} ms"),
            Self::Renewed { holder, ttl_ms } => write!(f, "renewed {holder} for {ttl_ms} ms"),
            Self::Released { holder } => write!(f, "released {holder}"),
            Self::Committed { holder, entries, emits, released } => write!(
                f,
                "committed [{}] of {holder}, emits [{}]{}",
                list(entries),
                list(emits.iter().map(|emit| &emit.event.id)),
                if *released { ", released" } else { "" }
            ),
            Self::Failed { holder, head, attempt } => write!(f, "failed try {attempt} of {head} of {holder}"),
            Self::Halted { holder, record } => {
                write!(f, "halted {holder} at {}: {} ({})", record.head, record.cause, record.error)
            }
            Self::Acted { partition, head, action } => write!(f, "operator: {action:?} {head} of {partition}"),
            Self::Paused { category, key } => write!(f, "operator: paused {}", place(category, key.as_ref())),
            Self::Resumed { category, key } => write!(f, "operator: resumed {}", place(category, key.as_ref())),
            Self::Delivered { source, owner, deliveries } => write!(
                f,
                "delivered {} ({}) to {owner}: [{}]",
                source.category,
                source.group,
                list(deliveries.iter().map(|one| format!("{} x{}", one.entry.at.id, one.count)))
            ),
            Self::SharedCommitted { source, owner, delivery, emits } => write!(
                f,
                "committed {} {} x{} ({}) of {owner}, emits [{}]",
                source.category,
                delivery.id,
                delivery.count,
                source.group,
                list(emits.iter().map(|emit| &emit.event.id))
            ),
            Self::SharedSetAside { source, owner, delivery } => {
                write!(
                    f,
                    "set aside {} {} x{} ({}) of {owner}",
                    source.category, delivery.id, delivery.count, source.group
                )
            }
            Self::Routed { published } => write!(f, "routed {published}"),
            Self::Reaped { streams, gone } => write!(f, "reaped {gone} of [{}]", list(streams)),
            Self::CallBegan { call, on, entry, event_id, attempt } => {
                let on = match on {
                    On::Lease(holder) => holder.to_string(),
                    On::Shared { owner, group } => format!("{group} by {owner}"),
                };
                write!(f, "call {call} began: {event_id} at {entry}, try {attempt}, {on}")
            }
            Self::CallEnded { call, how } => write!(f, "call {call} ended: {how:?}"),
        }
    }
}
