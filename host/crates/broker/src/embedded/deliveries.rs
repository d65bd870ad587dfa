//! Entries of categories that are not partitioned and that were given out, in memory: who has which since when, and which
//! wait for their next try.
//!
//! Invariant: it has exactly the rows of the deliveries table. Times are by the lease clock, so that no jump of the wall
//! clock makes an entry due early or late. What an earlier process gave out is nobody's any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use keyrail_ordering::{EntryId, OwnerId};
use redb::{Database, ReadableDatabase};

use super::records::{deliveries, storage};
use crate::{DeliveryRef, Error, SharedSource};

/// Where an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Somebody has it.
    Out { owner: OwnerId, count: u64, since_ms: u64 },
    /// It was given out by an earlier process.
    Lost,
    /// It is due at this time.
    Waiting { due_ms: u64 },
}

/// A source's deliveries: each entry is in one place, and in the set that belongs to the place.
#[derive(Debug, Default)]
pub(super) struct Pending {
    places: BTreeMap<EntryId, Place>,
    /// By since when they are out.
    idle: BTreeSet<(u64, EntryId)>,
    lost: BTreeSet<EntryId>,
    /// By when they are due.
    waiting: BTreeSet<(u64, EntryId)>,
}

impl Pending {
    /// Entries that are due, the first due first.
    pub(super) fn due(&self, now_ms: u64, max: usize) -> Vec<EntryId> {
        self.waiting.iter().take_while(|(due_ms, _)| *due_ms <= now_ms).take(max).map(|(_, id)| *id).collect()
    }

    /// Entries whose host has not kept them for so long.
    pub(super) fn abandoned(&self, now_ms: u64, idle_min_ms: u64, max: usize) -> Vec<EntryId> {
        let over = |since_ms: u64| now_ms.saturating_sub(since_ms) >= idle_min_ms;
        let idle = self.idle.iter().take_while(|(since_ms, _)| over(*since_ms)).map(|(_, id)| id);
        self.lost.iter().chain(idle).take(max).copied().collect()
    }

    /// How long until the first of all is due or was idle for long enough.
    pub(super) fn due_in_ms(&self, now_ms: u64, idle_min_ms: u64) -> Option<u64> {
        let waiting = self.waiting.first().map(|(due_ms, _)| *due_ms);
        let idle = self.idle.first().map(|(since_ms, _)| since_ms.saturating_add(idle_min_ms));
        let lost = self.lost.first().map(|_| 0);
        [waiting, idle, lost].into_iter().flatten().min().map(|at_ms| at_ms.saturating_sub(now_ms))
    }

    pub(super) fn give(&mut self, id: EntryId, owner: &OwnerId, count: u64, now_ms: u64) {
        self.put(id, Place::Out { owner: owner.clone(), count, since_ms: now_ms });
    }

    pub(super) fn wait(&mut self, id: EntryId, due_ms: u64) {
        self.put(id, Place::Waiting { due_ms });
    }

    fn put(&mut self, id: EntryId, place: Place) {
        self.forget(id);
        match place {
            Place::Out { since_ms, .. } => self.idle.insert((since_ms, id)),
            Place::Lost => self.lost.insert(id),
            Place::Waiting { due_ms } => self.waiting.insert((due_ms, id)),
        };
        self.places.insert(id, place);
    }

    pub(super) fn forget(&mut self, id: EntryId) {
        match self.places.remove(&id) {
            Some(Place::Out { since_ms, .. }) => self.idle.remove(&(since_ms, id)),
            Some(Place::Lost) => self.lost.remove(&id),
            Some(Place::Waiting { due_ms }) => self.waiting.remove(&(due_ms, id)),
            None => false,
        };
    }

    /// The fence.
    pub(super) fn has(&self, owner: &OwnerId, delivery: DeliveryRef) -> bool {
        let place = self.places.get(&delivery.id);
        matches!(place, Some(Place::Out { owner: its, count, .. }) if its == owner && *count == delivery.count)
    }

    fn keep(&mut self, owner: &OwnerId, delivery: DeliveryRef, now_ms: u64) {
        if self.has(owner, delivery) {
            self.give(delivery.id, owner, delivery.count, now_ms);
        }
    }

    /// Everything that somebody has, or had in an earlier process.
    pub(super) fn all_out(&self) -> Vec<EntryId> {
        let out = self.places.iter().filter(|(_, place)| !matches!(place, Place::Waiting { .. }));
        out.map(|(id, _)| *id).collect()
    }

    fn len(&self) -> u64 {
        self.places.len() as u64
    }
}

#[derive(Default)]
pub(super) struct LiveDeliveries(Mutex<BTreeMap<SharedSource, Pending>>);

impl LiveDeliveries {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SharedSource, Pending>> {
        // Each operation leaves the map whole, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As the store has it, with nobody's hands on anything: at the start, and after a batch that was undone.
    pub(super) fn load(&self, database: &Database, now_ms: u64, wall_ms: u64) -> Result<(), Error> {
        let txn = database.begin_read().map_err(storage)?;
        let mut loaded: BTreeMap<SharedSource, Pending> = BTreeMap::new();
        for (source, id, record) in deliveries::all(&txn.open_table(deliveries::TABLE).map_err(storage)?)? {
            let pending = loaded.entry(source).or_default();
            pending.put(
                id,
                if record.is_out {
                    Place::Lost
                } else {
                    Place::Waiting { due_ms: now_ms.saturating_add(record.wait_ms(wall_ms)) }
                },
            );
        }
        *self.lock() = loaded;
        Ok(())
    }

    /// Looks at a source's deliveries, or changes them.
    pub(super) fn with<T>(&self, source: &SharedSource, work: impl FnOnce(&mut Pending) -> T) -> T {
        let mut map = self.lock();
        if let Some(pending) = map.get_mut(source) {
            return work(pending);
        }
        work(map.entry(source.clone()).or_default())
    }

    pub(super) fn keep(&self, source: &SharedSource, owner: &OwnerId, deliveries: &[DeliveryRef], now_ms: u64) {
        self.with(source, |pending| {
            for delivery in deliveries {
                pending.keep(owner, *delivery, now_ms);
            }
        });
    }

    /// How many are not settled.
    pub(super) fn count(&self, source: &SharedSource) -> u64 {
        self.lock().get(source).map_or(0, Pending::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_in_one_place_at_a_time() {
        let (a, b) = (OwnerId::new("A"), OwnerId::new("B"));
        let id = EntryId::new(1, 0);
        let mut pending = Pending::default();
        pending.give(id, &a, 1, 10);
        assert!(pending.has(&a, DeliveryRef { id, count: 1 }));
        assert!(!pending.has(&a, DeliveryRef { id, count: 2 }) && !pending.has(&b, DeliveryRef { id, count: 1 }));
        assert_eq!(pending.abandoned(59, 50, 9), []);
        assert_eq!(pending.due_in_ms(59, 50), Some(1));
        assert_eq!(pending.abandoned(60, 50, 9), [id]);
        pending.keep(&b, DeliveryRef { id, count: 1 }, 60);
        assert_eq!(pending.abandoned(60, 50, 9), [id], "another's keeping means nothing");
        pending.keep(&a, DeliveryRef { id, count: 1 }, 60);
        assert_eq!(pending.abandoned(109, 50, 9), []);
        pending.wait(id, 200);
        assert!(pending.abandoned(1_000, 50, 9).is_empty() && !pending.has(&a, DeliveryRef { id, count: 1 }));
        assert_eq!((pending.due(199, 9), pending.due(200, 9)), (vec![], vec![id]));
        pending.give(id, &b, 2, 200);
        assert!(pending.due(300, 9).is_empty());
        pending.forget(id);
        assert_eq!((pending.len(), pending.due_in_ms(0, 50)), (0, None));
    }
}
