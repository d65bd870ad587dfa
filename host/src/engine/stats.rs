//! Counters of one engine since its start.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events settled.
    pub settled: u64,
    /// Tries that failed.
    pub failed: u64,
    /// Partitions halted.
    pub halted: u64,
    /// Events emitted.
    pub emitted: u64,
    /// Outbox records published by this engine's router.
    pub routed: u64,
    /// Times that a partition was acquired.
    pub acquired: u64,
    /// Leases that were lost while held.
    pub lost: u64,
    /// Events of categories without partitions that were set aside.
    pub set_aside: u64,
    /// Empty partitions forgotten.
    pub reaped: u64,
    /// Partitions owned now.
    pub owned: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) settled: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) halted: AtomicU64,
    pub(super) emitted: AtomicU64,
    pub(super) routed: AtomicU64,
    pub(super) acquired: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) set_aside: AtomicU64,
    pub(super) reaped: AtomicU64,
}

impl Counters {
    pub(super) fn snapshot(&self, owned: usize) -> Stats {
        Stats {
            settled: self.settled.load(Relaxed),
            failed: self.failed.load(Relaxed),
            halted: self.halted.load(Relaxed),
            emitted: self.emitted.load(Relaxed),
            routed: self.routed.load(Relaxed),
            acquired: self.acquired.load(Relaxed),
            lost: self.lost.load(Relaxed),
            set_aside: self.set_aside.load(Relaxed),
            reaped: self.reaped.load(Relaxed),
            owned: owned as u64,
        }
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
