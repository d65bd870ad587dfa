//! For how long a partition was busy.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Written by the one worker, read by the heartbeat. A reading may miss what ends in just that moment; the next has it.
#[derive(Debug, Default)]
pub(super) struct Busy {
    total_ns: AtomicU64,
    /// Since when something is under way; 0 when nothing is.
    since_ns: AtomicU64,
}

impl Busy {
    /// Something begins.
    pub(super) fn begin(&self, now_ns: u64) {
        self.since_ns.store(now_ns.max(1), Relaxed);
    }

    /// It has ended; answers with how long it took, in seconds. None if nothing had begun.
    pub(super) fn end(&self, now_ns: u64) -> Option<f64> {
        let since_ns = self.since_ns.swap(0, Relaxed);
        if since_ns == 0 {
            return None;
        }
        let took_ns = now_ns.saturating_sub(since_ns);
        self.total_ns.fetch_add(took_ns, Relaxed);
        Some(took_ns as f64 / 1e9)
    }

    /// In all, with what is under way.
    pub(super) fn total_ns(&self, now_ns: u64) -> u64 {
        let since_ns = self.since_ns.load(Relaxed);
        let running_ns = if since_ns == 0 { 0 } else { now_ns.saturating_sub(since_ns) };
        self.total_ns.load(Relaxed) + running_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_counts_and_counts_once() {
        let busy = Busy::default();
        assert_eq!(busy.total_ns(500), 0);
        busy.begin(1_000);
        assert_eq!(busy.total_ns(1_400), 400);
        assert!(busy.end(2_000).is_some_and(|seconds| (seconds - 1e-6).abs() < 1e-12));
        assert!(busy.end(3_000).is_none());
        assert_eq!(busy.total_ns(9_000), 1_000);
    }
}
