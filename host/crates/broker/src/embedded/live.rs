//! The leases of this process that have not lapsed, in memory: until when they hold, and what was delivered under them.
//!
//! Invariant: a lease holds exactly while its entry is here, is not over its time, and has the same owner and generation.
//! The writer adds and removes entries; the heartbeat only moves their time on, without waiting for the writer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use keyrail_ordering::{EntryId, Generation, Lease, Member, OwnerId, PartitionId, StreamId};

use tokio::sync::broadcast;

use super::clock::ClockFn;
use super::members::LiveMembers;
use crate::{Bell, Error, FencedError, Heartbeat};

/// Entries of one stream that were delivered and are not settled, up to the one before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Serving {
    pub(super) stream: StreamId,
    /// The id after the last delivered entry.
    pub(super) end: EntryId,
}

#[derive(Debug, Clone)]
pub(super) struct LiveLease {
    pub(super) owner: OwnerId,
    pub(super) generation: Generation,
    pub(super) expires_at_ms: u64,
    pub(super) serving: Option<Serving>,
}

impl LiveLease {
    fn matches(&self, lease: &Lease, now_ms: u64) -> bool {
        self.generation == lease.generation && self.owner == lease.owner && now_ms < self.expires_at_ms
    }
}

#[derive(Default)]
pub(super) struct LiveLeases(Mutex<HashMap<PartitionId, LiveLease>>);

impl LiveLeases {
    fn lock(&self) -> MutexGuard<'_, HashMap<PartitionId, LiveLease>> {
        // Each operation leaves the map whole, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who holds the partition.
    pub(super) fn holder(&self, partition: &PartitionId, now_ms: u64) -> Option<(OwnerId, Generation)> {
        let map = self.lock();
        let live = map.get(partition).filter(|live| now_ms < live.expires_at_ms)?;
        Some((live.owner.clone(), live.generation))
    }

    /// How long until the lease on the partition lapses, if there is one.
    pub(super) fn lapses_in_ms(&self, partition: &PartitionId, now_ms: u64) -> Option<u64> {
        let map = self.lock();
        map.get(partition).and_then(|live| live.expires_at_ms.checked_sub(now_ms)).filter(|left| *left > 0)
    }

    /// Every partition that is held and that `wanted` says yes to, with its holder, in order.
    pub(super) fn held(
        &self,
        now_ms: u64,
        wanted: impl Fn(&PartitionId) -> bool,
    ) -> Vec<(PartitionId, OwnerId, Generation)> {
        let map = self.lock();
        let held = map.iter().filter(|(id, live)| now_ms < live.expires_at_ms && wanted(id));
        let mut held: Vec<_> = held.map(|(id, live)| (id.clone(), live.owner.clone(), live.generation)).collect();
        held.sort_unstable();
        held
    }

    pub(super) fn holds(&self, lease: &Lease, now_ms: u64) -> bool {
        self.lock().get(&lease.partition.id).is_some_and(|live| live.matches(lease, now_ms))
    }

    /// The fence. Answers with what was delivered under the lease.
    pub(super) fn fence(&self, lease: &Lease, now_ms: u64) -> Result<Option<Serving>, FencedError> {
        let map = self.lock();
        let live = map.get(&lease.partition.id).filter(|live| live.matches(lease, now_ms));
        live.map(|live| live.serving.clone()).ok_or(FencedError::Fenced)
    }

    pub(super) fn set_serving(&self, lease: &Lease, serving: Option<Serving>) {
        if let Some(live) = self.lock().get_mut(&lease.partition.id) {
            live.serving = serving;
        }
    }

    pub(super) fn insert(&self, partition: PartitionId, live: LiveLease) {
        self.lock().insert(partition, live);
    }

    pub(super) fn remove(&self, partition: &PartitionId) {
        self.lock().remove(partition);
    }

    /// Ends every lease: what the writer did is undone, so nobody's knowledge can be trusted.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }
}

/// Renews in memory. Holds neither the store nor the writer, so that a broker that is dropped frees its file.
pub(super) struct LocalHeartbeat {
    pub(super) live: Arc<LiveLeases>,
    pub(super) members: Arc<LiveMembers>,
    pub(super) bells: broadcast::Sender<Bell>,
    pub(super) clock: ClockFn,
}

#[async_trait]
impl Heartbeat for LocalHeartbeat {
    async fn renew(&mut self, leases: &[Lease], ttl_ms: u64) -> Result<Vec<bool>, Error> {
        let now_ms = (self.clock)();
        let mut map = self.live.lock();
        let renewed = leases.iter().map(|lease| {
            let live = map.get_mut(&lease.partition.id).filter(|live| live.matches(lease, now_ms));
            live.map(|live| live.expires_at_ms = now_ms.saturating_add(ttl_ms)).is_some()
        });
        Ok(renewed.collect())
    }

    async fn announce(&mut self, member: &Member, ttl_ms: u64) -> Result<Vec<Member>, Error> {
        let (members, is_news) = self.members.announce(member, (self.clock)(), ttl_ms);
        if is_news {
            // Nobody may be listening.
            let _ = self.bells.send(Bell::Members);
        }
        Ok(members)
    }
}
