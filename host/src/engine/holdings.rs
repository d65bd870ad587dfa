//! What this process owns, or is about to.
//!
//! Invariant: at most one entry a partition, whatever the generation, from before the acquire until the worker has really
//! ended. So one process never runs two calls of one partition, even after it lost the lease and got it back.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use keyrail_ordering::{Lease, PartitionId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::busy::Busy;
use crate::telemetry::metrics::LossCause;

/// One partition of this process.
#[derive(Default)]
pub(super) struct Holding {
    /// Set once the lease is held.
    lease: OnceLock<Lease>,
    /// Until when the lease surely holds, by our clock, counted from when the request was *sent*.
    deadline_ms: AtomicU64,
    /// Until when the worker is expected to have moved. A worker that hangs loses its lease.
    expected_ms: AtomicU64,
    /// The broker said that there is work.
    belled: AtomicBool,
    /// To be given up between two events.
    draining: AtomicBool,
    /// It has run dry, and is kept only in case that more comes.
    resting: AtomicBool,
    /// Something of the above changed.
    changed: Notify,
    /// The lease is gone, or may be: stop at once.
    lost: CancellationToken,
    /// Why, once it is so.
    loss: OnceLock<LossCause>,
    /// The time in which an event of it is handled or committed.
    pub(super) busy: Busy,
}

impl Holding {
    pub(super) fn granted(&self, lease: Lease, deadline_ms: u64) {
        self.deadline_ms.store(deadline_ms, SeqCst);
        assert!(self.lease.set(lease).is_ok(), "a holding is granted once");
    }

    pub(super) fn lease(&self) -> Option<&Lease> {
        self.lease.get()
    }

    /// Nothing may be done under this lease any more. The first cause stands. It says so to the worker only: whether a lease
    /// was lost is known when the worker has ended, since one that it is just giving back is refused as well.
    pub(super) fn lose(&self, cause: LossCause) {
        let _ = self.loss.set(cause);
        self.lost.cancel();
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    pub(super) fn loss(&self) -> Option<LossCause> {
        self.loss.get().copied()
    }

    /// Waits until the lease is gone.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    pub(super) fn renewed(&self, deadline_ms: u64) {
        self.deadline_ms.fetch_max(deadline_ms, SeqCst);
    }

    /// Whether the lease may have lapsed: nothing may start any more.
    pub(super) fn has_lapsed(&self, now_ms: u64) -> bool {
        self.is_lost() || now_ms >= self.deadline_ms.load(SeqCst)
    }

    pub(super) fn expect_by(&self, at_ms: u64) {
        self.expected_ms.store(at_ms, SeqCst);
    }

    /// Whether the worker has not moved when it should have.
    pub(super) fn hangs(&self, now_ms: u64) -> bool {
        now_ms > self.expected_ms.load(SeqCst)
    }

    fn bell(&self) {
        self.belled.store(true, SeqCst);
        self.changed.notify_one();
    }

    pub(super) fn take_bell(&self) -> bool {
        self.belled.swap(false, SeqCst)
    }

    pub(super) fn drain(&self) {
        self.draining.store(true, SeqCst);
        self.changed.notify_one();
    }

    pub(super) fn set_resting(&self, is_resting: bool) {
        self.resting.store(is_resting, SeqCst);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(SeqCst)
    }

    /// Waits until a bell or a drain may have come.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Holdings {
    map: Mutex<BTreeMap<PartitionId, Arc<Holding>>>,
    /// An entry has gone.
    freed: Notify,
}

impl Holdings {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PartitionId, Arc<Holding>>> {
        // The map is consistent after each operation, so a panic elsewhere does not spoil it.
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new entry, or none if there is one already.
    pub(super) fn reserve(&self, partition: &PartitionId) -> Option<Arc<Holding>> {
        match self.lock().entry(partition.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                let holding = Arc::new(Holding::default());
                Some(vacant.insert(holding).clone())
            }
        }
    }

    pub(super) fn contains(&self, partition: &PartitionId) -> bool {
        self.lock().contains_key(partition)
    }

    /// Rings the partition's bell; false if there is no entry. Under the lock, as `remove` is: a bell reaches either the
    /// worker, or whoever learns that it has ended.
    pub(super) fn bell(&self, partition: &PartitionId) -> bool {
        let map = self.lock();
        let Some(holding) = map.get(partition) else { return false };
        holding.bell();
        true
    }

    /// Removes the entry; answers whether a bell rang that its worker has not heard.
    pub(super) fn remove(&self, partition: &PartitionId) -> bool {
        let holding = self.lock().remove(partition);
        self.freed.notify_waiters();
        holding.is_some_and(|holding| holding.take_bell())
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn all(&self) -> Vec<Arc<Holding>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn drain_all(&self) {
        for holding in self.all() {
            holding.drain();
        }
    }

    /// Makes room for so many others: what is kept without having anything to do is given up.
    pub(super) fn drain_resting(&self, count: usize) {
        let map = self.lock();
        let resting = map.values().filter(|holding| holding.resting.load(SeqCst) && !holding.is_draining());
        for holding in resting.take(count) {
            holding.drain();
        }
    }

    /// Waits until nothing is held.
    pub(super) async fn until_empty(&self) {
        loop {
            let freed = self.freed.notified();
            if self.len() == 0 {
                return;
            }
            freed.await;
        }
    }
}
