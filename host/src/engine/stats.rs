//! What an engine did since its start, in all; by category and handler see [`crate::telemetry`].

use crate::telemetry::metrics::WorkMetrics;

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

impl Stats {
    pub(super) fn of(metrics: &WorkMetrics, owned: usize) -> Self {
        let totals = metrics.totals();
        Self {
            settled: totals.settled,
            failed: totals.failed,
            halted: totals.halted,
            emitted: totals.emitted,
            routed: metrics.routed.get(),
            acquired: totals.acquired,
            lost: totals.lost,
            set_aside: totals.set_aside,
            reaped: metrics.reaped.get(),
            owned: owned as u64,
        }
    }
}
